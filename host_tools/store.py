"""The record on the host: every event of every table exactly once, and the rounds that follow from them.

The database's own constraints keep it so: an event's key is (table's unique id, event id), a round's (unique id, round
number), and an event is written in one transaction with what follows from it. A table's clock is never believed: UTC is
the host's, at the moment of storing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Engine,
    ForeignKeyConstraint,
    Integer,
    String,
    Text,
    create_engine,
    event,
    func,
    select,
)
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from dragoneye.errors import BadInput
from dragoneye.journal import GENESIS, chain
from dragoneye.protocol import IDLE
from dragoneye.text import dumps, show
from host_tools.i18n import _

Message = dict[str, Any]


class StoreError(BadInput):
    """The database cannot be used, or a record does not fit what is stored; nothing of it was written."""


def _parsed(text: str, what: str) -> Message:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise StoreError(_("{what} is damaged in the database; restore a copy").format(what=what))
    return value


class Base(DeclarativeBase):
    """The tables of the database."""


class Event(Base):
    """One record of a table's journal, as it came."""

    __tablename__ = "events"
    uid: Mapped[str] = mapped_column(String(32), primary_key=True)
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), index=True)
    boot: Mapped[int]
    ticks: Mapped[int]
    round: Mapped[int | None] = mapped_column(index=True)
    utc: Mapped[str] = mapped_column(String(32))
    body: Mapped[str] = mapped_column(Text)
    link: Mapped[str] = mapped_column(String(32))


class Round(Base):
    """One round: "open", then "settled" or "void" for good."""

    __tablename__ = "rounds"
    __table_args__ = (ForeignKeyConstraint(["uid", "event"], ["events.uid", "events.id"]),)
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
    net: Mapped[int | None]
    manual: Mapped[str | None] = mapped_column(String(80))
    result: Mapped[str | None] = mapped_column(Text)
    tiles: Mapped[str | None] = mapped_column(Text)

    def as_dict(self) -> Message:
        """The round as JSON."""
        data: Message = {
            "table": self.uid,
            "round": self.number,
            "utc": self.utc,
            "status": self.status,
            "shaker": self.shaker,
            "voids": self.voids,
        }
        if self.result is not None:
            data["result"] = _parsed(self.result, f"round {self.number} of table {self.uid}")
        if self.manual is not None:
            data["manual"] = self.manual
        if self.tiles is not None:
            data["tiles"] = _parsed(self.tiles, f"round {self.number} of table {self.uid}")
        return data


def default_path() -> Path:
    """$DRAGONEYE_DB, or rounds.db in the user's data folder."""
    named = os.environ.get("DRAGONEYE_DB")
    if named:
        return Path(named)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "dragoneye" / "rounds.db"


def utc_now() -> str:
    """This moment as ISO 8601 in UTC, to the millisecond."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class Store:
    """The record in the SQLite file `path`; made when it is not there.

    Raises StoreError when it cannot be opened or is no database of this program.
    """

    def __init__(self, path: Path, clock: Callable[[], str] = utc_now, must_exist: bool = False) -> None:
        self.path = path
        self._clock = clock
        if must_exist and not path.exists():
            raise StoreError(_("{path}: there is no such database yet; play a round first").format(path=path))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from None
        self._engine: Engine = create_engine(f"sqlite:///{path}")
        event.listen(self._engine, "connect", _pragmas)
        with self._guard():
            Base.metadata.create_all(self._engine)

    def close(self) -> None:
        """Let go of the file."""
        self._engine.dispose()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except OperationalError as error:
            words = str(error.orig)
            if "no such column" in words or "has no column" in words:
                words = _("another version of this program has made it; name another file")
            if "locked" in words:
                words = _("another program has locked it; try again when it has finished")
            raise StoreError(f"{self.path}: {words}") from None
        except IntegrityError:
            raise
        except DatabaseError as error:
            raise StoreError(
                _("{path}: this is not a sound database ({error}); move it away or restore a copy").format(
                    path=self.path, error=error.orig
                )
            ) from None

    # -- events ----------------------------------------------------------------------------------------------------

    def last(self, uid: str) -> tuple[int, int]:
        """The highest event id and round number stored for the table; 0 when there is none."""
        with self._guard(), Session(self._engine) as session:
            last_event = session.scalar(select(func.max(Event.id)).where(Event.uid == uid))
            last_round = session.scalar(select(func.max(Round.number)).where(Round.uid == uid))
            return last_event or 0, last_round or 0

    def take(self, uid: str, record: Message, link: str, first_event: int) -> bool:
        """Store one record of the table `uid` with its chain hash `link`; durable when this returns True.

        True as well for one that is here already, the same to the letter; False for one that does not follow the last
        one here, unless the table keeps none before it (`first_event`). Raises StoreError when a record of this id is
        stored and differs, or the chain of hashes does not fit.
        """
        for key in ("id", "k", "d", "b", "t"):
            if key not in record:
                raise StoreError(_("table {uid}: a record without {key}").format(uid=uid, key=repr(key)))
        try:
            return self._take(uid, record, link, first_event)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise StoreError(
                _("table {uid}: event {id} is not as it should be ({error})").format(
                    uid=uid, id=show(record["id"]), error=repr(error)
                )
            ) from None

    def _take(self, uid: str, record: Message, link: str, first_event: int) -> bool:
        record_id, kind, data = record["id"], record["k"], record["d"]
        boot, ticks = record["b"], record["t"]
        body = dumps(record)
        with self._guard(), Session(self._engine) as session:
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
                session.add(
                    Event(
                        uid=uid,
                        id=record_id,
                        kind=kind,
                        boot=boot,
                        ticks=ticks,
                        round=data.get("round"),
                        utc=self._clock(),
                        body=body,
                        link=link,
                    )
                )
                session.flush()
                self._follow(session, uid, record_id, kind, data)
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
        return self._take(uid, record, link, first_event)

    def _follow(self, session: Session, uid: str, record_id: int, kind: str, data: Message) -> None:
        """What a record means for its round."""
        if kind == "restart":
            # What the table does not take up again is over; of an open round it will send the end.
            state = data["state"]
            going_on = state["round"] if state["phase"] != IDLE else 0
            for left in session.scalars(select(Round).where(Round.uid == uid, Round.status == "open")):
                if left.number != going_on:
                    left.status = "void"
        if kind not in ("opened", "void", "settled"):
            return
        number = data["round"]
        row = session.get(Round, (uid, number))
        if row is None:
            row = Round(
                uid=uid,
                number=number,
                event=record_id,
                utc=self._clock(),
                status="open",
                shaker=data.get("shaker", 0),
                voids=0,
            )
            session.add(row)
        elif kind == "opened":
            raise StoreError(
                _("table {uid}: round {number} is opened a second time by event {id}").format(
                    uid=uid, number=number, id=record_id
                )
            )
        elif kind == "settled" and row.result is not None and _same_result(json.loads(row.result), data):
            # A table whose journal was damaged settles a locked result again: the round is what it is.
            return
        elif row.status != "open":
            raise StoreError(
                _("table {uid}: round {number} is {status} already; event {id} says {kind}").format(
                    uid=uid, number=number, status=row.status, id=record_id, kind=kind
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

    def events(self, uid: str, number: int | None = None) -> list[Message]:
        """The stored records of a table in order, or those that name the round `number`."""
        with self._guard(), Session(self._engine) as session:
            query = select(Event).where(Event.uid == uid).order_by(Event.id)
            if number is not None:
                query = query.where(Event.round == number)
            return [
                dict(_parsed(row.body, f"event {row.id} of table {uid}"), utc=row.utc) for row in session.scalars(query)
            ]

    # -- rounds ----------------------------------------------------------------------------------------------------

    def add_tiles(self, uid: str, number: int, tiles: Message) -> None:
        """Keep the tile hands of a round beside it; a second time is refused."""
        with self._guard(), Session(self._engine) as session:
            row = session.get(Round, (uid, number))
            if row is None:
                raise StoreError(_("round {number} is not stored").format(number=number))
            if row.tiles is not None:
                raise StoreError(_("round {number} has its tile hands already").format(number=number))
            row.tiles = json.dumps(tiles)
            session.commit()

    def tables(self) -> list[str]:
        """The unique ids of the tables in this record."""
        with self._guard(), Session(self._engine) as session:
            return list(session.scalars(select(Event.uid).distinct().order_by(Event.uid)))

    def rounds(self, uid: str | None = None, last: int = 20) -> list[Message]:
        """The newest `last` rounds, oldest first, of one table or of all."""
        with self._guard(), Session(self._engine) as session:
            query = select(Round).order_by(Round.utc.desc(), Round.number.desc()).limit(last)
            if uid is not None:
                query = query.where(Round.uid == uid)
            return [row.as_dict() for row in reversed(session.scalars(query).all())]

    def round(self, number: int, uid: str | None = None) -> Message:
        """One round. Raises StoreError when there is none, or several tables have one and `uid` does not say which."""
        with self._guard(), Session(self._engine) as session:
            query = select(Round).where(Round.number == number)
            if uid is not None:
                query = query.where(Round.uid == uid)
            found = session.scalars(query).all()
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
            return found[0].as_dict()


def _same_result(one: Message, other: Message) -> bool:
    return all(one[key] == other[key] for key in ("dice", "eye", "shaker", "rows", "net", "manual"))


def _pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    # WAL with full synchronisation: what was acknowledged to a table survives a power cut of this computer.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=5000"):
        cursor.execute("PRAGMA " + pragma)
    cursor.close()
