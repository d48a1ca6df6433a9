"""The record on the host: every event of every table exactly once, and the rounds that follow from them.

The database's own constraints keep it so: an event's key is (table's unique id, event id), a round's (unique id, round
number), and an event is written in one transaction with what follows from it. A table's clock is never believed: UTC is
the host's, at the moment of storing. SQLite by default, PostgreSQL by a URL; host_tools.migrations brings what an
earlier version made up to date.
"""

from __future__ import annotations

import getpass
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import (
    URL,
    BigInteger,
    Engine,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Text,
    TypeDecorator,
    create_engine,
    delete,
    event,
    func,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DatabaseError, DataError, IntegrityError, OperationalError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, validates

from dragoneye.errors import BadInput
from dragoneye.journal import GENESIS, chain
from dragoneye.protocol import IDLE, SEQ_MAX
from dragoneye.round import fold, initial
from dragoneye.rules.packs import Pack
from dragoneye.rules.streak import Streak
from dragoneye.text import dumps, show
from host_tools import corrections, migrations, stored
from host_tools.i18n import _, pgettext

Message = dict[str, Any]

STATUSES = ("open", "settled", "void")
# NY 9 NYCRR 5319.60: logs are kept for 90 days at least.
KEPT_DAYS = 90
_BATCH = 500


class StoreError(BadInput):
    """The database cannot be used, or a record does not fit what is stored; nothing of it was written."""


def _parsed(text: str, what: str, kind: str = "record") -> Message:
    """A stored JSON text, of one of stored.KINDS."""
    try:
        return stored.parse(text, kind)
    except ValueError:
        raise damaged(what) from None


def damaged(what: str) -> StoreError:
    """What is said of something stored that this program did not write so."""
    return StoreError(_("{what} is damaged in the database; restore a copy").format(what=what))


def event_name(event: int, uid: str) -> str:
    """An event in words."""
    return f"event {event} of table {uid}"


class _Sound(TypeDecorator[Any]):
    """A column's values as they were written: SQLite gives what anybody has put there. Reading raises StoreError."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: Any, name: str = "") -> None:
        super().__init__()
        self.impl = self.kind = kind
        self.name = name

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        """The value itself."""
        if value is not None and type(value) is not self.kind.python_type:
            raise damaged(f"{self.name} ({show(value)})")
        return value


class Base(DeclarativeBase):
    """The tables of the database."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for column in cls.__table__.columns:
            column.type = _Sound(column.type, f"{cls.__tablename__}.{column.name}")


# Milliseconds of months, and cents of the highest stakes; SQLite's integers are as long as need be.
_LONG = BigInteger().with_variant(Integer, "sqlite")


def _whole(name: str, value: object) -> object:
    """A value for a column of whole numbers: SQLite would take anything. Raises TypeError."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise TypeError(f"{name} is {show(value)}")


class Event(Base):
    """One record of a table's journal, as it came."""

    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_kind", "kind", "uid", "id"),
        # With `id`: SQLite goes through a whole table's events rather than sort the few of a round.
        Index("ix_events_round", "uid", "round", "id"),
    )
    uid: Mapped[str] = mapped_column(String(32), primary_key=True)
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    boot: Mapped[int]
    ticks: Mapped[int] = mapped_column(_LONG)
    round: Mapped[int | None]
    utc: Mapped[str] = mapped_column(String(32))
    body: Mapped[str] = mapped_column(Text)
    link: Mapped[str] = mapped_column(String(32))
    # Where the table has a journal key: the record's tag, and the key's name as far as the table has told it.
    tag: Mapped[str | None] = mapped_column(String(16))
    key_id: Mapped[str | None] = mapped_column(String(8))

    @validates("id", "boot", "ticks", "round")
    def _is_whole(self, name: str, value: object) -> object:
        return _whole(name, value)


class Head(Base):
    """The newest event of a table that was acknowledged to it: where its record must not end before."""

    __tablename__ = "heads"
    uid: Mapped[str] = mapped_column(String(32), primary_key=True)
    event: Mapped[int]
    link: Mapped[str] = mapped_column(String(32))
    tag: Mapped[str | None] = mapped_column(String(16))
    utc: Mapped[str] = mapped_column(String(32))

    def as_dict(self) -> Message:
        """The head as JSON; `head` is how it is noted: the event's id and its hash."""
        return {"table": self.uid, "event": self.event, "head": f"{self.event}:{self.link}", "utc": self.utc}


class First(Base):
    """The first event of a table that was stored: where its record must not begin after, but for prunings."""

    __tablename__ = "firsts"
    uid: Mapped[str] = mapped_column(String(32), primary_key=True)
    event: Mapped[int]
    utc: Mapped[str] = mapped_column(String(32))


class Round(Base):
    """One round: "open", then "settled" or "void" for good.

    `corrected` is what later corrections make of a settled one, as JSON: {"void", "result", "told"}, see
    host_tools.corrections; `told` are the corrections.
    """

    __tablename__ = "rounds"
    __table_args__ = (
        ForeignKeyConstraint(["uid", "event"], ["events.uid", "events.id"]),
        Index("ix_rounds_utc", "utc", "number"),
        Index("ix_rounds_table", "uid", "utc", "number"),
        Index("ix_rounds_status", "status", "utc", "number"),
        Index("ix_rounds_dice_set", "uid", "dice_set", "utc", "number"),
    )
    uid: Mapped[str] = mapped_column(String(32), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    event: Mapped[int]
    utc: Mapped[str] = mapped_column(String(32))
    status: Mapped[str] = mapped_column(String(8))
    shaker: Mapped[int]
    voids: Mapped[int] = mapped_column(default=0)
    dice: Mapped[str | None] = mapped_column(String(8))
    eye: Mapped[int | None]
    total: Mapped[int | None]
    net: Mapped[int | None] = mapped_column(_LONG)
    manual: Mapped[str | None] = mapped_column(String(80))
    result: Mapped[str | None] = mapped_column(Text)
    tiles: Mapped[str | None] = mapped_column(Text)
    dice_set: Mapped[int] = mapped_column(default=1)
    corrected: Mapped[str | None] = mapped_column(Text)

    @validates("number", "shaker", "eye", "total", "net")
    def _is_whole(self, name: str, value: object) -> object:
        return _whole(name, value)

    def as_dict(self) -> Message:
        """The round as JSON."""
        data: Message = {
            "table": self.uid,
            "round": self.number,
            "utc": self.utc,
            "status": self.status,
            "shaker": self.shaker,
            "voids": self.voids,
            "dice_set": self.dice_set,
        }
        if self.result is not None:
            data["result"] = _parsed(self.result, f"round {self.number} of table {self.uid}", "result")
        if self.corrected is not None:
            data["corrected"] = _parsed(self.corrected, f"round {self.number} of table {self.uid}", "corrected")
        if self.manual is not None:
            data["manual"] = self.manual
        if self.tiles is not None:
            data["tiles"] = _parsed(self.tiles, f"round {self.number} of table {self.uid}", "tiles")
        return data


class DiceSet(Base):
    """One set of dice of a table, numbered from 1; the first has a row only when its serial was told."""

    __tablename__ = "dice_sets"
    uid: Mapped[str] = mapped_column(String(32), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    event: Mapped[int]
    utc: Mapped[str] = mapped_column(String(32))
    serial: Mapped[str | None] = mapped_column(String(40))
    issued: Mapped[str | None] = mapped_column(String(32))
    tags: Mapped[str | None] = mapped_column(String(64))

    def as_dict(self) -> Message:
        """The set as JSON; `since` is when it was told, `issued` when it came to the table."""
        return {
            "table": self.uid,
            "dice_set": self.number,
            "event": self.event,
            "since": self.utc,
            "serial": self.serial,
            "issued": self.issued,
            "tags": self.tags,
        }


class Pruning(Base):
    """What was removed from the record: the events `first` to `last` of a table, and what must be known of them.

    `link` is the hash of the last one, on which the next one hangs; `state` is the fold of all of them as JSON
    ({"state", "boot"}, the last boot's data beside it).
    """

    __tablename__ = "prunings"
    uid: Mapped[str] = mapped_column(String(32), primary_key=True)
    last: Mapped[int] = mapped_column(Integer, primary_key=True)
    first: Mapped[int]
    rounds: Mapped[int]
    older_than: Mapped[str] = mapped_column(String(32))
    utc: Mapped[str] = mapped_column(String(32))
    by: Mapped[str] = mapped_column(String(80))
    link: Mapped[str] = mapped_column(String(32))
    state: Mapped[str] = mapped_column(Text)

    def as_dict(self) -> Message:
        """What was removed, as JSON."""
        names = ("first", "last", "rounds", "older_than", "utc", "by")
        return {"table": self.uid, **{name: getattr(self, name) for name in names}}


class Roll(NamedTuple):
    """A settled round's roll: `dice` is "1 2 3", `eye` the dragon's eye die's index, `manual` why it was entered.

    Or why it was corrected: what the readers saw is not taken for the roll then.
    """

    uid: str
    number: int
    utc: str
    dice_set: int
    dice: str
    eye: int
    manual: str | None


@dataclass(frozen=True)
class Search:
    """Which rounds: of a table, opened from `since` to before `until` (UTC as stored), of a dice set, in a status."""

    uid: str | None = None
    since: str | None = None
    until: str | None = None
    dice_set: int | None = None
    status: str | None = None

    def of(self, query: Any) -> Any:
        """`query` over rounds, narrowed."""
        if self.uid is not None:
            query = query.where(Round.uid == self.uid)
        if self.since is not None:
            query = query.where(Round.utc >= self.since)
        if self.until is not None:
            query = query.where(Round.utc < self.until)
        if self.dice_set is not None:
            query = query.where(Round.dice_set == self.dice_set)
        if self.status is not None:
            query = query.where(Round.status == self.status)
        return query


EVERYTHING = Search()


def default_path() -> Path:
    """$DRAGONEYE_DB where it is a file, or rounds.db in the user's data folder."""
    named = os.environ.get("DRAGONEYE_DB")
    if named and "://" not in named:
        return Path(named)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "dragoneye" / "rounds.db"


def default_place() -> Path | str:
    """$DRAGONEYE_DB, a file or a database's URL; else default_path()."""
    named = os.environ.get("DRAGONEYE_DB", "")
    return named if "://" in named else default_path()


def utc_now() -> str:
    """This moment as ISO 8601 in UTC, to the millisecond."""
    return utc_text(datetime.now(timezone.utc))


def utc_text(moment: datetime) -> str:
    """A moment as the record holds it: such texts sort as the moments do.

    >>> utc_text(datetime(2026, 5, 17, 22, 0, tzinfo=timezone(timedelta(hours=2))))
    '2026-05-17T20:00:00.000+00:00'
    """
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds")


def _url(place: Path | str) -> URL:
    """Where the database is, for SQLAlchemy. Raises StoreError for a URL of another kind."""
    if isinstance(place, Path):
        return URL.create("sqlite", database=str(place))
    try:
        url = make_url(place)
    except (ArgumentError, ValueError):
        url = URL.create("unknown")
    kind = url.get_backend_name()
    if kind == "sqlite" and url.database:
        return URL.create("sqlite", database=url.database)
    if kind in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    raise StoreError(
        _("{url}: not a place for a record; allowed: a file, or postgresql://USER@HOST/DATABASE").format(
            url=show(place.partition("@")[2] or place)
        )
    )


class Store:
    """The record at `place`, a file for SQLite or a URL of PostgreSQL; made when it is not there.

    `path` is the place as it may be told: without a password. `patience_s` is how long others' locks are waited for,
    where it shall not be the default. Raises StoreError when it cannot be opened or is no database of this program.
    """

    def __init__(
        self,
        place: Path | str,
        clock: Callable[[], str] = utc_now,
        must_exist: bool = False,
        patience_s: float | None = None,
    ) -> None:
        url = _url(place)
        self.path: Path | str = (
            url.render_as_string() if url.get_backend_name() != "sqlite" else Path(url.database or "")
        )
        self._clock = clock
        self._turn = threading.Lock()
        self._packs = dict(corrections.known_packs())
        if isinstance(self.path, Path):
            if must_exist and not self.path.exists():
                raise StoreError(_("{path}: there is no such database yet; play a round first").format(path=self.path))
            if self.path.exists() and not self.path.is_file():
                raise StoreError(_("{path}: this is no file").format(path=show(str(self.path))[1:-1]))
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"{self.path}: {error.strerror}") from None
        try:
            self._engine: Engine = create_engine(url)
        except ModuleNotFoundError:
            raise StoreError(
                _("PostgreSQL needs one more package; install it with: pip install 'dragoneye-table[postgresql]'")
            ) from None
        if isinstance(self.path, Path):
            event.listen(self._engine, "connect", _pragmas)
        if patience_s is not None:
            event.listen(self._engine, "connect", _patience(self._engine.dialect.name, round(patience_s * 1000)))
        try:
            with self._guard():
                migrations.upgrade(self._engine)
        except migrations.Foreign as error:
            self.close()
            words = _("another version of this program has made it; name another file")
            raise StoreError(f"{self.path}: {words} ({error})") from None
        except StoreError:
            self.close()
            raise

    def know(self, pack: Pack) -> None:
        """A house's own rule pack, by which corrected rounds can be settled anew."""
        self._packs[pack.hash()] = pack

    def pack_of(self, uid: str, number: int, given: Pack | None = None) -> Pack:
        """The rule pack that a settled round was played by, as the table told its hash when it started.

        `given` is one that a person names: it must be that one, and where the table told none it is taken. Raises
        StoreError for another one, and for a pack that is not known here (see `know`).
        """
        event = self.settled_event(uid, number)
        with self._guard(), Session(self._engine) as session:
            told = _pack_hash(session, uid, event)
        if given is not None and told in ("", given.hash()):
            return given
        pack = self._packs.get(told)
        if pack is not None and given is None:
            return pack
        if given is not None:
            theirs = told if pack is None else pack.name
            words = _("round {number} was played by the rule pack {theirs}; --pack {given} is another one")
            raise StoreError(words.format(number=number, theirs=theirs, given=given.name))
        if not told:
            words = _("round {number}: the table did not tell which rule pack it played by; name it with --pack")
            raise StoreError(words.format(number=number))
        words = _(
            "round {number} was played by a rule pack that is not known here (hash {hash}); give its file with "
            "--pack FILE"
        )
        raise StoreError(words.format(number=number, hash=told))

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except OperationalError as error:
            raise StoreError(f"{self.path}: {_operational(str(error.orig).strip())}") from None
        except IntegrityError:
            raise
        except DataError as error:
            words = str(error.orig).strip().splitlines()[0]
            raise StoreError(_("{path}: a value does not fit ({error})").format(path=self.path, error=words)) from None
        except DatabaseError as error:
            raise StoreError(_unsound(self.path, error.orig)) from None

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """A session that changes the record.

        Threads of this process wait in line: SQLite lets whoever asks at the right moment write, and one of many
        busy tables could wait for longer than its patience.
        """
        with self._turn, self._guard(), Session(self._engine) as session:
            yield session

    # -- events ----------------------------------------------------------------------------------------------------

    def last(self, uid: str) -> tuple[int, int]:
        """The highest event id and round number stored for the table; 0 when there is none."""
        with self._guard(), Session(self._engine) as session:
            last_event = session.scalar(select(func.max(Event.id)).where(Event.uid == uid))
            last_round = session.scalar(select(func.max(Round.number)).where(Round.uid == uid))
            return last_event or 0, last_round or 0

    def history(self, uid: str) -> Message:
        """What hello tells of the table's stored history: protocol.REQUESTS["hello"] without the versions."""
        last_event, last_round = self.last(uid)
        with self._guard(), Session(self._engine) as session:
            over = session.scalar(select(func.max(Round.number)).where(Round.uid == uid, Round.status != "open"))
            newest = session.scalars(
                select(Event)
                .where(Event.uid == uid, Event.kind.in_(("settled", "streak", "restart")))
                .order_by(Event.id.desc())
                .limit(1)
            ).one_or_none()
            pruned = _pruned(session, uid)
            streak = Streak().as_dict() if pruned is None else pruned["state"]["streak"]
            if newest is not None:
                data = _parsed(newest.body, event_name(newest.id, uid))["d"]
                try:
                    streak = data["state"]["streak"] if newest.kind == "restart" else data["streak"]
                except (KeyError, TypeError):
                    raise damaged(event_name(newest.id, uid)) from None
        return {
            "last_event": last_event,
            "last_round": last_round,
            "last_over": over or 0,
            "streak": streak,
            "last_hash": self.link(uid, last_event) or "",
        }

    def head(self, uid: str) -> Message | None:
        """The newest event of the table that was acknowledged to it, as Head.as_dict gives it."""
        with self._guard(), Session(self._engine) as session:
            row = session.get(Head, uid)
            return None if row is None else dict(row.as_dict(), tag=row.tag)

    def first(self, uid: str) -> tuple[int, str] | None:
        """(id, UTC) of the first event of the table that was ever stored here, or None where that is not told."""
        with self._guard(), Session(self._engine) as session:
            row = session.get(First, uid)
            return None if row is None else (row.event, row.utc)

    def link(self, uid: str, record_id: int) -> str | None:
        """The chain hash of one stored record; None when it is not stored."""
        with self._guard(), Session(self._engine) as session:
            return session.scalar(select(Event.link).where(Event.uid == uid, Event.id == record_id))

    def take(self, uid: str, record: Message, link: str, first_event: int, tag: str = "") -> bool:
        """Store one record of the table `uid` with its chain hash `link` and `tag`; durable when this returns True.

        True as well for one that is here already, the same to the letter; False for one that does not follow the last
        one here, unless the table keeps none before it (`first_event`). Raises StoreError when a record of this id is
        stored and differs, or the chain of hashes does not fit.
        """
        for key in ("id", "k", "d", "b", "t"):
            if key not in record:
                raise StoreError(_("table {uid}: a record without {key}").format(uid=uid, key=repr(key)))
        try:
            if not 0 < record["id"] <= SEQ_MAX:
                raise OverflowError(record["id"])
            return self._take(uid, record, link, first_event, tag)
        except (KeyError, TypeError, AttributeError, OverflowError, UnicodeEncodeError) as error:
            raise StoreError(
                _("table {uid}: event {id} is not as it should be ({error})").format(
                    uid=uid, id=show(record["id"]), error=repr(error)
                )
            ) from None

    def _take(self, uid: str, record: Message, link: str, first_event: int, tag: str) -> bool:
        record_id, kind, data = record["id"], record["k"], record["d"]
        boot, ticks = record["b"], record["t"]
        body = dumps(record)
        with self._writing() as session:
            # Another program may write meanwhile: the last one is looked for first, so that this one cannot be missed.
            before = session.scalars(
                select(Event).where(Event.uid == uid).order_by(Event.id.desc()).limit(1)
            ).one_or_none()
            stored = session.get(Event, (uid, record_id))
            if stored is not None:
                if stored.link != link or stored.body != body:
                    raise StoreError(
                        _("table {uid}: event {id} differs from the one that is stored in {path}").format(
                            uid=uid, id=record_id, path=self.path
                        )
                    )
                return True
            follows = record_id == (before.id + 1 if before else 1)
            if not follows and record_id != first_event and kind != "restart":
                return False
            previous = before.link if before else GENESIS
            if kind == "restart":
                previous = GENESIS
            if (follows or kind == "restart") and chain(previous, body) != link:
                raise StoreError(
                    _("table {uid}: event {id} does not follow the one before it: its hash differs").format(
                        uid=uid, id=record_id
                    )
                )
            try:
                utc = self._clock()
                session.add(
                    Event(
                        uid=uid,
                        id=record_id,
                        kind=kind,
                        boot=boot,
                        ticks=ticks,
                        round=data.get("round"),
                        utc=utc,
                        body=body,
                        link=link,
                        tag=tag or None,
                        key_id=_key_id(record, before) if tag else None,
                    )
                )
                session.flush()
                if before is None and session.get(First, uid) is None:
                    session.add(First(uid=uid, event=record_id, utc=utc))
                session.merge(Head(uid=uid, event=record_id, link=link, tag=tag or None, utc=utc))
                self._follow(session, uid, record_id, kind, data, utc)
                session.commit()
            except IntegrityError:
                # Another program stored something between our look and our writing: the constraint has decided.
                session.rollback()
                if session.get(Event, (uid, record_id)) is None:
                    return False
                session.rollback()
            else:
                return True
        # Look again: it may be another one of the same id.
        return self._take(uid, record, link, first_event, tag)

    def _follow(self, session: Session, uid: str, record_id: int, kind: str, data: Message, utc: str) -> None:
        """What a record that is stored at `utc` means for its round."""
        if kind == "restart":
            # What the table does not take up again is over; of an open round it will send the end.
            state = data["state"]
            going_on = state["round"] if state["phase"] != IDLE else 0
            for left in session.scalars(select(Round).where(Round.uid == uid, Round.status == "open")):
                if left.number != going_on:
                    left.status = "void"
        if kind == "boot" and data.get("dice_set"):
            # Which set a new table was provisioned with, or an old one when it first tells; else the one that is known.
            self._change_dice(session, uid, record_id, data["dice_set"])
        if kind == "dice" or (kind == "streak" and data["why"].startswith(DICE_CHANGED)):
            self._change_dice(session, uid, record_id, data)
        if kind == "correction":
            self._correct(session, uid, data)
        if kind not in ("opened", "void", "settled"):
            return
        number = data["round"]
        row = session.get(Round, (uid, number))
        if row is None:
            row = Round(
                uid=uid,
                number=number,
                event=record_id,
                utc=utc,
                status="open",
                shaker=data.get("shaker", 0),
                voids=0,
                dice_set=_dice_set(session, uid),
            )
            session.add(row)
        elif kind == "opened":
            raise StoreError(
                _("table {uid}: round {number} is opened a second time by event {id}").format(
                    uid=uid, number=number, id=record_id
                )
            )
        elif (
            kind == "settled"
            and row.result is not None
            and _same_result(_parsed(row.result, f"round {number} of table {uid}", "result"), data)
        ):
            # A table whose journal was damaged settles a locked result again: the round is what it is.
            return
        elif row.status != "open":
            raise StoreError(
                _("table {uid}: round {number} is {status} already; event {id} says {kind}").format(
                    uid=uid,
                    number=number,
                    status=pgettext("round", row.status),
                    id=record_id,
                    kind=pgettext("record", kind),
                )
            )
        if kind == "void":
            row.voids += 1
            if data["over"]:
                row.status = "void"
        elif kind == "settled":
            row.status = "settled"
            row.shaker = data["shaker"]
            row.dice = " ".join(str(die) for die in data["dice"])
            row.eye = data["eye"]
            row.total = data["total"]
            row.net = data["net"]
            row.manual = data["manual"]
            row.result = dumps(data)
            try:
                stored.parse(row.result, "result")
            except ValueError:
                # What could not be told again is not taken.
                raise TypeError("the result") from None
            # Dice may be changed between the bets and the shake.
            row.dice_set = _dice_set(session, uid)

    def _correct(self, session: Session, uid: str, data: Message) -> None:
        """Settle a round anew by all corrections that there are of it."""
        row = session.get(Round, (uid, data["round"]))
        if row is None or row.result is None:
            # Removed by now, or void or open: there is nothing that could be settled otherwise.
            return
        bets, told, settled = _story(session, uid, row.number)
        bets = bets or {}
        pack = self._packs.get(_pack_hash(session, uid, settled))
        result = _parsed(row.result, f"round {row.number} of table {uid}", "result")
        row.corrected = dumps({**corrections.settle(result, bets, told, pack), "told": told})

    def down(self, uid: str, number: int) -> corrections.Bets | None:
        """What each position had down when the bets of a round were closed; None where they never were."""
        with self._guard(), Session(self._engine) as session:
            return _story(session, uid, number)[0]

    def as_corrected(self, uid: str, number: int, more: Message | None = None) -> Message:
        """How a settled round stands, or would with one more correction `more` (its record's data).

        As corrections.settle gives it, and "bets": all wagers of each position that a correction would start from.
        Raises StoreError for a round without a result.
        """
        self.settled_event(uid, number)
        with self._guard(), Session(self._engine) as session:
            row = session.get(Round, (uid, number))
            if row is None or row.result is None:
                raise StoreError(_("round {number} has no result that could be corrected").format(number=number))
            result = _parsed(row.result, f"round {number} of table {uid}", "result")
            bets, told, settled = _story(session, uid, number)
            pack = self._packs.get(_pack_hash(session, uid, settled))
        bets, told = bets or {}, told if more is None else [*told, more]
        # A void round is brought back by a correction of its wagers: from those that it had.
        left = corrections.as_corrected(result["dice"], bets, [one for one in told if one["what"] != "void"])
        return {**corrections.settle(result, bets, told, pack), "bets": left[1] if left else {}}

    def _change_dice(self, session: Session, uid: str, record_id: int, data: Message) -> None:
        """Other dice: a new set, unless nothing was rolled with the one that was told last."""
        number = _dice_set(session, uid)
        told = session.get(DiceSet, (uid, number))
        if "hash" in data and told is not None and told.tags == data["hash"]:
            # The same dice, told again.
            return
        rolled = session.scalar(
            select(Round.number).where(Round.uid == uid, Round.dice_set == number, Round.dice.is_not(None)).limit(1)
        )
        gone = session.scalar(select(func.max(Pruning.last)).where(Pruning.uid == uid)) or 0
        if rolled is None and gone and (told is None or told.event <= gone):
            # What was rolled with them was removed.
            rolled = gone
        if told is None and rolled is None and "hash" not in data:
            # Nothing was rolled before: these are the first set.
            return
        if told is None or rolled is not None:
            told = DiceSet(uid=uid, number=number if rolled is None else number + 1)
            session.add(told)
        told.event, told.utc = record_id, self._clock()
        told.serial, told.issued, told.tags = data.get("serial"), data.get("issued"), data.get("hash")

    def events(self, uid: str, number: int | None = None) -> list[Message]:
        """The stored records of a table in order, or those that name the round `number`."""
        with self._guard(), Session(self._engine) as session:
            query = select(Event).where(Event.uid == uid).order_by(Event.id)
            if number is not None:
                query = query.where(Event.round == number)
            return [dict(_parsed(row.body, event_name(row.id, uid)), utc=row.utc) for row in session.scalars(query)]

    # -- rounds ----------------------------------------------------------------------------------------------------

    def add_tiles(self, uid: str, number: int, tiles: Message) -> None:
        """Keep the tile hands of a round beside it; a second time is refused, and where no dice count."""
        with self._writing() as session:
            row = session.get(Round, (uid, number))
            if row is None:
                raise StoreError(_("round {number} is not stored").format(number=number))
            if row.tiles is not None:
                raise StoreError(_("round {number} has its tile hands already").format(number=number))
            need_roll(row.as_dict())
            row.tiles = json.dumps(tiles)
            session.commit()

    def settled_event(self, uid: str, number: int) -> int:
        """The id of the event that settled a round. Raises StoreError for one that has no result."""
        query = select(func.min(Event.id)).where(Event.uid == uid, Event.round == number, Event.kind == "settled")
        with self._guard(), Session(self._engine) as session:
            found = session.scalar(query)
        if found is None:
            raise StoreError(_("round {number} has no result that could be corrected").format(number=number))
        return int(found)

    def streak_start(self, uid: str, event: int) -> tuple[int, Message]:
        """Where to begin to follow the streak up to an event: the id of the last one before it after which none ran.

        With the streak after it, as Streak.as_dict gives it: what is known of the events before, where these were
        removed. 0 where there is none.
        """
        query = (
            select(Event.id, Event.kind, Event.body)
            .where(Event.uid == uid, Event.id < event, Event.kind.in_(("settled", "streak", "restart")))
            .order_by(Event.id.desc())
        )
        with self._guard(), Session(self._engine) as session:
            for number, kind, body in session.execute(query.execution_options(yield_per=_BATCH)):
                data = _parsed(body, f"event {number} of table {uid}")["d"]
                streak = data["state"]["streak"] if kind == "restart" else data["streak"]
                if not streak["count"]:
                    return number, streak
        pruned = self.pruned_end(uid)
        if pruned is not None and pruned[0] < event:
            return pruned[0], pruned[2]["state"]["streak"]
        return 0, Streak().as_dict()

    def tables(self) -> list[str]:
        """The unique ids of the tables in this record."""
        found: list[str] = []
        with self._guard(), Session(self._engine) as session:
            # One step by the index for each table, not one for each event.
            query = select(func.min(Event.uid))
            while (uid := session.scalar(query.where(Event.uid > found[-1]) if found else query)) is not None:
                found.append(uid)
        return found

    def strays(self) -> list[tuple[str, str]]:
        """(unique id, name of the database's table) where there are rows of a table that has no events here."""
        there = set(self.tables())
        with self._guard(), Session(self._engine) as session:
            return [
                (uid, table.name)
                for table in map(
                    Base.metadata.tables.__getitem__, ("heads", "firsts", "rounds", "dice_sets", "prunings")
                )
                for uid in session.scalars(select(table.c.uid).distinct().order_by(table.c.uid))
                if uid not in there
            ]

    def wrong_types(self) -> Iterator[tuple[str | None, str]]:
        """(unique id or None, words) of every value that is not of its column's type: SQLite takes any."""
        if self._engine.dialect.name != "sqlite":
            return
        with self._guard(), Session(self._engine) as session:
            for table in Base.metadata.sorted_tables:
                wrong = {
                    column.name: f'typeof("{column.name}") NOT IN ({", ".join(map(repr, _types(column)))})'
                    for column in table.columns
                }
                shown = ", ".join(f'CASE WHEN {wrong[name]} THEN substr(quote("{name}"), 1, 60) END' for name in wrong)
                query = (
                    f"SELECT CASE typeof(uid) WHEN 'text' THEN uid END, {shown} FROM {table.name}"
                    f" WHERE {' OR '.join(wrong.values())} LIMIT {_BATCH}"
                )
                for uid, *values in session.connection().exec_driver_sql(query):
                    for name, value in zip(wrong, values, strict=True):
                        if value is not None:
                            yield uid, f"{table.name}.{name}: {value}"

    def changed_schema(self) -> list[str]:
        """What of the database's own tables, indexes, triggers and views is not as the migrations make it (SQLite)."""
        if self._engine.dialect.name != "sqlite":
            return []
        with self._guard(), self._engine.connect() as connection:
            return migrations.differences(connection)

    def check_table(self, uid: str | None) -> None:
        """Raise StoreError naming the tables that there are when `uid` is none of them."""
        if uid is None:
            return
        there = self.tables()
        if uid not in there:
            raise StoreError(
                _("there is no table {uid} in this record; there are {tables}").format(
                    uid=show(uid), tables=", ".join(there) or _("none")
                )
            )

    def rounds(
        self, uid: str | None = None, last: int = 20, page: int = 1, search: Search = EVERYTHING
    ) -> list[Message]:
        """The newest `last` rounds that are searched for, oldest first; `page` 2 are those before them, and so on."""
        if uid is not None:
            search = Search(uid, search.since, search.until, search.dice_set, search.status)
        newest = self._newest_first(search)
        with self._guard(), Session(self._engine) as session:
            query = search.of(select(Round)).order_by(*newest)
            found = session.scalars(query.limit(last).offset((page - 1) * last)).all()
            return [row.as_dict() for row in reversed(found)]

    def _newest_first(self, search: Search) -> tuple[Any, ...]:
        """How rounds are sorted: one table's by their numbers, whatever this computer's clock said; several by time."""
        if search.uid is not None or len(self.tables()) < 2:
            return (Round.number.desc(),)
        return Round.utc.desc(), Round.number.desc()

    def latest(self, uid: str) -> str:
        """The latest moment (UTC as stored) that the record has of a table; empty where it has none.

        Later than this computer's time, its clock was put back.
        """
        with self._guard(), Session(self._engine) as session:
            known = (
                session.scalar(select(func.max(Round.utc)).where(Round.uid == uid)),
                session.scalar(select(Head.utc).where(Head.uid == uid)),
            )
        return max((one for one in known if one is not None), default="")

    def outside(self, search: Search) -> list[Message]:
        """{"round", "utc"} of a table's rounds that the search's time misses because the clock was put back.

        They were opened after a round that is in it and are dated before it, or the other way round.
        """
        if search.uid is None or (search.since is None and search.until is None):
            return []
        found: list[Any] = []
        with self._guard(), Session(self._engine) as session:
            within = search.of(select(func.min(Round.number), func.max(Round.number)))
            first, last = session.execute(within).one()
            if first is None:
                return []
            rows = select(Round.number, Round.utc).where(Round.uid == search.uid)
            if search.since is not None:
                found += session.execute(rows.where(Round.utc < search.since, Round.number > first)).all()
            if search.until is not None:
                found += session.execute(rows.where(Round.utc >= search.until, Round.number < last)).all()
        return [{"round": number, "utc": utc} for number, utc in sorted(found)]

    def count(self, search: Search = EVERYTHING) -> int:
        """How many rounds are searched for."""
        with self._guard(), Session(self._engine) as session:
            return int(session.scalar(search.of(select(func.count()).select_from(Round))) or 0)

    def stream_rows(self, search: Search = EVERYTHING) -> Iterator[Message]:
        """The rows of the rounds as they are stored, in order of table and number, in constant memory."""
        query = search.of(select(*Round.__table__.columns)).order_by(Round.uid, Round.number)
        with self._guard(), Session(self._engine) as session:
            for row in session.execute(query.execution_options(yield_per=_BATCH)):
                yield row._asdict()

    def stream(self, search: Search = EVERYTHING) -> Iterator[Message]:
        """Every round that is searched for, in order of table and number, as of one moment and in constant memory."""
        for row in self.stream_rows(search):
            yield Round(**row).as_dict()

    def void_reasons(self, uid: str, numbers: Sequence[int]) -> dict[int, list[str]]:
        """Why rolls of these rounds were void, in order, by round; rounds without a void roll are not there."""
        found: dict[int, list[str]] = {}
        with self._guard(), Session(self._engine) as session:
            for start in range(0, len(numbers), 500):
                query = select(Event.id, Event.kind, Event.body).where(
                    Event.uid == uid, Event.round.in_(numbers[start : start + 500])
                )
                # Chosen and sorted here: asked for both, SQLite would rather read all void rolls there are.
                for event_id, kind, body in sorted(session.execute(query).all()):
                    if kind == "void":
                        data = _parsed(body, event_name(event_id, uid), "void")["d"]
                        found.setdefault(int(data["round"]), []).append(str(data["reason"]))
        return found

    def stream_events(
        self,
        uid: str,
        kinds: Sequence[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        raw: bool = False,
        first: int = 0,
        last: int | None = None,
    ) -> Iterator[Message]:
        """The events of a table in order, as of one moment and in constant memory; of some kinds or a time only.

        `first` and `last` are ids, both counted.
        `raw` gives the row as it is stored (see Event), else the record with its "utc".
        """
        columns = [*Event.__table__.columns]
        query = select(*columns).where(Event.uid == uid).order_by(Event.id)
        if kinds is not None:
            query = query.where(Event.kind.in_(kinds))
        if since is not None:
            query = query.where(Event.utc >= since)
        if until is not None:
            query = query.where(Event.utc < until)
        if first:
            query = query.where(Event.id >= first)
        if last is not None:
            query = query.where(Event.id <= last)
        with self._guard(), Session(self._engine) as session:
            for row in session.execute(query.execution_options(yield_per=_BATCH)):
                if raw:
                    yield row._asdict()
                else:
                    yield dict(_parsed(row.body, event_name(row.id, uid)), utc=row.utc)

    def rolls(self, search: Search = EVERYTHING, last: int | None = None) -> Iterator[Roll]:
        """Every settled round's roll in order of table and number, in constant memory; the newest `last` only."""
        names = ("uid", "number", "utc", "dice_set", "dice", "eye", "manual", "corrected")
        columns = [getattr(Round, name) for name in names]
        query = search.of(select(*columns)).where(Round.status == "settled")
        if last is not None:
            query = query.order_by(*self._newest_first(search)).limit(last)
            query = select(query.subquery()).order_by("uid", "number")
        else:
            query = query.order_by(Round.uid, Round.number)
        with self._guard(), Session(self._engine) as session:
            for uid, number, utc, dice_set, dice, eye, manual, corrected in session.execute(
                query.execution_options(yield_per=_BATCH)
            ):
                if not stored.is_roll(dice, eye):
                    raise damaged(f"round {number} of table {uid}")
                if corrected is not None:
                    told = _parsed(corrected, f"round {number} of table {uid}", "corrected")["told"]
                    manual = next((one["why"] for one in told if one["what"] != "bets"), manual)
                yield Roll(uid, number, utc, dice_set, dice, eye, manual)

    def voids(self, search: Search = EVERYTHING) -> Iterator[tuple[str, int, Message]]:
        """(table, dice set, the record's data) of every void roll in the rounds that are searched for."""
        query = search.of(
            select(Event.uid, Event.id, Round.dice_set, Event.body)
            .join(Round, (Round.uid == Event.uid) & (Round.number == Event.round))
            .where(Event.kind == "void")
        ).order_by(Event.uid, Event.id)
        with self._guard(), Session(self._engine) as session:
            for uid, event_id, dice_set, body in session.execute(query.execution_options(yield_per=_BATCH)):
                yield uid, dice_set, _parsed(body, event_name(event_id, uid), "void")["d"]

    def dice_sets(self, uid: str, raw: bool = False) -> list[Message]:
        """The dice sets of a table, oldest first, as DiceSet.as_dict gives them; `raw`: only those that have a row."""
        with self._guard(), Session(self._engine) as session:
            query = select(DiceSet).where(DiceSet.uid == uid).order_by(DiceSet.number)
            found = [row.as_dict() for row in session.scalars(query)]
            if not raw and (not found or found[0]["dice_set"] != 1):
                first = session.scalar(select(Event.utc).where(Event.uid == uid).order_by(Event.id).limit(1))
                found.insert(0, DiceSet(uid=uid, number=1, event=0, utc=first).as_dict())
            return found

    # -- upkeep ----------------------------------------------------------------------------------------------------

    def prunings(self, uid: str | None = None) -> list[Message]:
        """What was removed from the record, oldest first."""
        with self._guard(), Session(self._engine) as session:
            query = select(Pruning).order_by(Pruning.uid, Pruning.last)
            if uid is not None:
                query = query.where(Pruning.uid == uid)
            return [row.as_dict() for row in session.scalars(query)]

    def check_sound(self) -> None:
        """Raise StoreError where the file's indexes, by which rounds are found, are not those of its rows (SQLite)."""
        if self._engine.dialect.name != "sqlite":
            return
        with self._guard(), Session(self._engine) as session:
            told = session.connection().exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
        if told != "ok":
            # Its first line may only name the database.
            raise StoreError(_unsound(self.path, told.splitlines()[-1]))

    def pruned_end(self, uid: str) -> tuple[int, str, Message] | None:
        """(id, hash, {"state", "boot"}) of the last event of a table that was removed, or None."""
        with self._guard(), Session(self._engine) as session:
            row = _last_pruning(session, uid)
            return None if row is None else (row.last, row.link, _state_of(row))

    def prune(self, days: int) -> list[Message]:
        """Remove the events and rounds that are older than `days` days, and note what was removed.

        Whole rounds only, and never a table's last round. Raises StoreError for less than KEPT_DAYS.
        """
        if days < KEPT_DAYS:
            raise StoreError(
                _("--older-than is {days}; allowed: {least} days or more").format(days=days, least=KEPT_DAYS)
            )
        moment = datetime.fromisoformat(self._clock())
        older_than = utc_text(moment - timedelta(days=days))
        tables = self.tables()
        with self._writing() as session:
            removed = [
                row.as_dict()
                for uid in tables
                if (row := self._prune_table(session, uid, older_than, utc_text(moment))) is not None
            ]
            session.commit()
        return removed

    def _prune_table(self, session: Session, uid: str, older_than: str, utc: str) -> Pruning | None:
        first, newest = session.execute(select(func.min(Event.id), func.max(Event.id)).where(Event.uid == uid)).one()
        kept = session.scalar(select(func.min(Event.id)).where(Event.uid == uid, Event.utc >= older_than))
        end = (kept or newest) - 1
        # A round that reaches over the end stays as a whole.
        over = select(Event.round).where(Event.uid == uid, Event.id > end, Event.round.is_not(None))
        begun = session.scalar(select(func.min(Event.id)).where(Event.uid == uid, Event.round.in_(over)))
        still_open = session.scalar(select(func.min(Round.event)).where(Round.uid == uid, Round.status == "open"))
        # A table whose flash was lost counts on from the newest round that is here.
        last_round = session.scalar(select(func.max(Round.event)).where(Round.uid == uid))
        end = min(end, *(event - 1 for event in (begun, still_open, last_round) if event is not None))
        if end < first:
            return None
        known = _pruned(session, uid) or {"state": initial(), "boot": {}}
        query = select(Event.id, Event.body, Event.link).where(Event.uid == uid, Event.id <= end).order_by(Event.id)
        hashed = GENESIS
        for number, body, link in session.execute(query.execution_options(yield_per=_BATCH)):
            record = _parsed(body, event_name(number, uid))
            hashed = link
            known["state"] = fold(known["state"], record)
            if record["k"] == "boot":
                known["boot"] = record["d"]
        rounds = session.scalar(select(func.count()).where(Round.uid == uid, Round.event <= end)) or 0
        session.execute(delete(Round).where(Round.uid == uid, Round.event <= end))
        session.execute(delete(Event).where(Event.uid == uid, Event.id <= end))
        row = Pruning(
            uid=uid,
            first=first,
            last=end,
            rounds=rounds,
            older_than=older_than,
            utc=utc,
            by=_user(),
            link=hashed,
            state=dumps(known),
        )
        session.add(row)
        return row

    def backup(self, target: Path) -> None:
        """Copy the whole record to the file `target` while tables go on writing; whole, or not there at all.

        Raises StoreError when `target` is there already, cannot be written, or the record is not a file.
        """
        if not isinstance(self.path, Path):
            raise StoreError(
                _("{path}: PostgreSQL has its own: pg_dump --format=custom --file={target} DATABASE").format(
                    path=self.path, target=target
                )
            )
        if target.exists():
            raise StoreError(_("{path}: is there already; name another file").format(path=target))
        unfinished = target.with_name(target.name + ".part")
        try:
            unfinished.unlink(missing_ok=True)
            with closing(sqlite3.connect(self.path)) as ours, closing(sqlite3.connect(unfinished)) as copy:
                ours.backup(copy)
                # A copy that is read alone: no files beside it.
                copy.execute("PRAGMA journal_mode=DELETE")
                # As check_sound: a copy whose indexes are not its rows' is none.
                [sound] = copy.execute("PRAGMA integrity_check(1)").fetchone()
                if sound != "ok":
                    raise sqlite3.DatabaseError(sound.splitlines()[-1])
            with open(unfinished, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(unfinished, target)
        except (sqlite3.Error, OSError) as error:
            for left in (unfinished, unfinished.with_name(unfinished.name + "-journal")):
                left.unlink(missing_ok=True)
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                raise StoreError(_unsound(self.path, error)) from None
            words = _operational(getattr(error, "strerror", None) or str(error))
            raise StoreError(f"{target}: {words}") from None

    def round(self, number: int, uid: str | None = None) -> Message:
        """One round; `rests_on` lists the rounds before it whose triples its streak counts and corrections took away.

        Raises StoreError when there is none, or several tables have one and `uid` does not say which.
        """
        tables = self.tables() if uid is None else [uid]
        with self._guard(), Session(self._engine) as session:
            found = session.scalars(select(Round).where(Round.uid.in_(tables), Round.number == number)).all()
            if not found:
                numbers = session.execute(select(func.min(Round.number), func.max(Round.number))).one()
                there = (
                    _("there are rounds {first} to {last}").format(first=numbers[0], last=numbers[1])
                    if numbers[0] is not None
                    else _("none is stored")
                )
                raise StoreError(_("there is no round {number}; {there}").format(number=number, there=there))
            if len(found) > 1:
                raise StoreError(
                    _("round {number} is there for several tables; name one with --table: {tables}").format(
                        number=number, tables=", ".join(row.uid for row in found)
                    )
                )
            told = found[0].as_dict()
            lost = _lost_triples(session, told)
            return {**told, "rests_on": lost} if lost else told


def need_roll(stored: Message) -> list[int]:
    """The dice that count of a stored round, by which its tiles are dealt. Raises StoreError where none do."""
    dice = corrections.rolled(stored)
    if dice is not None:
        return dice
    if stored["status"] == "settled":
        words = _("round {number} was corrected: it should have been void; it takes no tile hands")
    elif stored["status"] == "void":
        words = _("round {number} is void; it takes no tile hands")
    else:
        words = _("round {number} has no result yet; tiles are dealt by its total")
    raise StoreError(words.format(number=stored["round"]))


def _story(session: Session, uid: str, number: int) -> tuple[corrections.Bets | None, list[Message], int]:
    """Of a round: the wagers that stood when its bets were closed (None: never), its corrections, who settled it."""
    bets: corrections.Bets | None = None
    told = []
    settled = 0
    for one in session.scalars(select(Event).where(Event.uid == uid, Event.round == number).order_by(Event.id)):
        body = _parsed(one.body, event_name(one.id, uid))["d"]
        try:
            if one.kind in ("closed", "locked", "bets"):
                bets = dict(body["bets"])
            elif one.kind == "settled":
                settled = settled or one.id
            elif one.kind == "correction":
                told.append(corrections.told_of(one.id, one.utc, body))
        except (KeyError, TypeError, ValueError):
            raise damaged(event_name(one.id, uid)) from None
    return bets, told, settled


def _types(column: Any) -> list[str]:
    """What SQLite calls the type of a column's values."""
    kinds = ["integer" if column.type.kind.python_type is int else "text"]
    return kinds + ["null"] * bool(column.nullable)


def _key_id(record: Message, before: Event | None) -> str | None:
    """The name of the key that a record was tagged with: each start reads the key, and tells of it."""
    if record["k"] in ("boot", "restart"):
        told = record["d"].get("key_id")
        return told[:8] if isinstance(told, str) else None
    return before.key_id if before is not None and before.boot == record["b"] else None


def _pack_hash(session: Session, uid: str, event: int) -> str:
    """The hash of the rule pack that was played when this event was recorded; empty when it was not told."""
    boot = session.scalar(
        select(Event.body)
        .where(Event.uid == uid, Event.kind == "boot", Event.id < event)
        .order_by(Event.id.desc())
        .limit(1)
    )
    if boot is not None:
        return str(_parsed(boot, f"a start of table {uid}")["d"].get("pack_hash", ""))
    pruned = _pruned(session, uid)
    return "" if pruned is None else str(pruned["boot"].get("pack_hash", ""))


def _last_pruning(session: Session, uid: str) -> Pruning | None:
    return session.scalars(
        select(Pruning).where(Pruning.uid == uid).order_by(Pruning.last.desc()).limit(1)
    ).one_or_none()


def _state_of(pruning: Pruning) -> Message:
    return _parsed(pruning.state, f"pruning {pruning.last}", "state")


def _pruned(session: Session, uid: str) -> Message | None:
    """{"state", "boot"} as the last pruning left them, or None where nothing was removed."""
    row = _last_pruning(session, uid)
    return None if row is None else _state_of(row)


# How a record says that other dice are on the table (dragoneye.service, request `changed`).
DICE_CHANGED = "dice changed"


def _dice_set(session: Session, uid: str) -> int:
    """The number of the set that is on the table."""
    return session.scalar(select(func.max(DiceSet.number)).where(DiceSet.uid == uid)) or 1


def _user() -> str:
    try:
        return getpass.getuser()[:80]
    except (KeyError, OSError, ImportError):
        # No name in the environment, and none for this user in the system.
        return str(os.getuid()) if hasattr(os, "getuid") else "?"


def _unsound(path: Path | str, error: object) -> str:
    return _("{path}: this is not a sound database ({error}); move it away or restore a copy").format(
        path=path, error=str(error).strip().partition("\n")[0]
    )


def _operational(words: str) -> str:
    """What a database says that cannot do it now, for a person."""
    if "no such column" in words or "has no column" in words:
        return _("another version of this program has made it; name another file")
    if "locked" in words or "lock timeout" in words:
        return _("another program has locked it; try again when it has finished")
    if "full" in words or "No space" in words:
        return _("the disk is full: this was not stored; make room and try again")
    if "disk I/O error" in words:
        # What a full tmpfs, and a disk that fails, come to.
        return _("the disk refuses, full or failing: nothing was stored; make room or look after it, and try again")
    if "readonly" in words:
        return _("this user may not write it")
    return words.partition("\n")[0]


def _lost_triples(session: Session, told: Message) -> list[int]:
    """The rounds that made up the streak before a round, and whose dice are no triple as corrections leave them."""
    before = told.get("result", {}).get("before", 0)
    if not isinstance(before, int) or before < 1:
        return []
    query = select(Round).where(Round.uid == told["table"], Round.number < told["round"], Round.status == "settled")
    found = session.scalars(query.order_by(Round.number.desc()).limit(before))
    dice = {row.number: corrections.rolled(row.as_dict()) for row in found if row.corrected is not None}
    return sorted(number for number, left in dice.items() if left is None or len(set(left)) > 1)


def _same_result(one: Message, other: Message) -> bool:
    return all(one[key] == other[key] for key in ("dice", "eye", "shaker", "rows", "net", "manual"))


def _pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    # WAL with full synchronisation: what was acknowledged to a table survives a power cut of this computer.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=5000"):
        cursor.execute("PRAGMA " + pragma)
    cursor.close()


def _patience(dialect: str, milliseconds: int) -> Callable[[Any, object], None]:
    setting = "PRAGMA busy_timeout" if dialect == "sqlite" else "SET lock_timeout"

    def tell(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"{setting} = {milliseconds}")
        cursor.close()
        # PostgreSQL would take it back with a transaction that fails.
        connection.commit()

    return tell
