"""`tablectl rounds`, `show`, `export`, `audit`, `backup` and `record`: what the record holds, and its upkeep."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.progress import Progress

from dragoneye.errors import BadInput
from dragoneye.protocol import SEQ_MAX
from dragoneye.rules.packs import NAMES, load
from dragoneye.text import show as shown
from host_tools import contested, corrections, dealer, tile_round
from host_tools import export as exports
from host_tools.cli import call
from host_tools.cli.common import db_option, on_port, open_store, port_option, void_reasons
from host_tools.cli.numbers import number as told_number
from host_tools.cli.output import console, json_option, parse_json, print_json, table
from host_tools.cli.tables import parse_request
from host_tools.cli.tiles import house_way_option
from host_tools.i18n import _, ngettext, pgettext
from host_tools.link import Link, SerialTransport
from host_tools.rules import clauses, houseway, seating
from host_tools.store import KEPT_DAYS, STATUSES, Search, Store, utc_text

played_pack_option = click.option(
    "--pack", help="The rule pack's file, where the table played by one of the house's own; nj, pr and ca are known."
)
table_option = click.option("--table", "uid", help="The table's unique id, when the record has several.")


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


class Moment(click.ParamType[str]):
    """A date, or a date with a time, in UTC unless it says otherwise; as the record holds it.

    `ends` is for the end of a time: a date alone means the whole day.
    """

    name = "UTC"

    def __init__(self, ends: bool = False) -> None:
        self._ends = ends

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            text = str(value).replace("Z", "+00:00")
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=timezone.utc)
            if self._ends and _is_date(text):
                moment += timedelta(days=1)
            return utc_text(moment)
        except (ValueError, OverflowError):
            self.fail(
                _("{value}; allowed: a date like 2026-05-17, or with a time like 2026-05-17T20:00 (UTC)").format(
                    value=shown(value)
                ),
                param,
                ctx,
            )


class Noted(click.ParamType[tuple[int, str]]):
    """A head that was noted: a record's id and hash."""

    name = "EVENT:HASH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, str]:
        if not isinstance(value, str):
            return (int(value[0]), str(value[1]))
        found = re.fullmatch(r"([0-9]{1,9}):([0-9a-f]{32})", value.strip().lower())
        if found is None:
            self.fail(
                _("{value}; allowed: an event's number, a colon and the 32 hex digits of its hash").format(
                    value=shown(value)
                ),
                param,
                ctx,
            )
        return int(found[1]), found[2]


class Asked(NamedTuple):
    """What `search_options` were given: a table, from and until when as the record has it, a dice set."""

    uid: str | None = None
    since: str | None = None
    until: str | None = None
    dice_set: str | None = None


def search_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --table, --since, --until and --dice-set; the command gets them as the argument `asked`."""

    @wraps(function)
    def with_asked(*args: Any, **given: Any) -> Any:
        asked = Asked(**{name: given.pop(name) for name in Asked._fields})
        return function(*args, asked=asked, **given)

    wrapped: Callable[..., Any] = with_asked
    for option in (
        click.option("--dice-set", "dice_set", help="The dice set: its serial, or its number at the table."),
        click.option("--until", type=Moment(ends=True), help="Up to this moment (UTC); of a date, the whole day."),
        click.option("--since", type=Moment(), help="From this moment on (UTC)."),
        table_option,
    ):
        wrapped = option(wrapped)
    return wrapped


def search_for(store: Store, asked: Asked, status: str | None = None) -> Search:
    """The search that the options ask for. Raises BadInput when there is no such table or dice set."""
    uid, since, until, dice_set = asked
    store.check_table(uid)
    number = None
    if dice_set is not None:
        sets = [one for table in store.tables() if uid in (None, table) for one in store.dice_sets(table)]
        found = [one for one in sets if one["serial"] == dice_set]
        if len({one["table"] for one in found}) > 1:
            raise BadInput(
                _("the dice set {serial} was at several tables; name one with --table: {tables}").format(
                    serial=shown(dice_set), tables=", ".join(sorted({one["table"] for one in found}))
                )
            )
        if found:
            uid, number = found[-1]["table"], found[-1]["dice_set"]
        elif dice_set.isascii() and dice_set.isdigit() and any(one["dice_set"] == int(dice_set) for one in sets):
            number = int(dice_set)
        else:
            raise BadInput(
                _("there is no dice set {name}; there are {sets}").format(
                    name=shown(dice_set), sets=", ".join(sorted({set_name(one) for one in sets})) or _("none")
                )
            )
    if since is not None and until is not None and since >= until:
        raise BadInput(_("the time from {since} until {until} ends before it begins").format(since=since, until=until))
    return Search(uid, since, until, number, status)


def set_name(dice_set: dict[str, Any]) -> str:
    """How a dice set is called: its number at the table, and its serial where it has one."""
    serial = dice_set.get("serial")
    return f"{dice_set['dice_set']} ({serial})" if serial else str(dice_set["dice_set"])


def heads_of(store: Store, uid: str | None) -> list[dict[str, Any]]:
    """Where the records of the tables end: {"table", "event", "head", "utc"}; to be noted where nobody rewrites it."""
    found = [store.head(table) for table in (store.tables() if uid is None else [uid])]
    return [{key: head[key] for key in ("table", "event", "head", "utc")} for head in found if head is not None]


def format_of(file: str) -> str:
    """The format of an export by the end of the file's name; CSV for standard output. Raises BadInput."""
    ends = file.rpartition(".")[2].lower()
    if file != "-" and ends not in exports.FORMATS:
        words = _("{path}: allowed: a file ending in .csv, .jsonl or .parquet, or -")
        raise BadInput(words.format(path=file))
    return "csv" if file == "-" else ends


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal's standard error; nothing elsewhere. Gives a function that is told what was done."""
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


@click.command()
@click.option("--last", default=20, show_default=True, type=click.IntRange(1, 1_000_000), help="How many, the newest.")
@click.option(
    "--page", default=1, show_default=True, type=click.IntRange(1, 1_000_000), help="2: those before, and so on."
)
@search_options
@click.option("--status", type=click.Choice(STATUSES), help="Only rounds in this status.")
@db_option
@json_option
def rounds(
    last: int,
    page: int,
    asked: Asked,
    status: str | None,
    db: Path | str | None,
    as_json: bool,
) -> None:
    """The newest rounds in the record, or those that are searched for."""
    store = open_store(db, must_exist=True)
    found = store.rounds(last=last, page=page, search=search_for(store, asked, status))
    if as_json:
        for stored, voids in exports.with_void_reasons(store, found):
            print_json(call.as_json(stored, voids))
        return
    rows = table(
        _("round"),
        _("UTC"),
        _("table"),
        _("dice"),
        _("total"),
        _("shaker"),
        _("voids"),
        _("table's net"),
        _("corrected"),
    )
    for stored in found:
        result, status = stored.get("result"), stored["status"]
        rows.add_row(
            str(stored["round"]),
            stored["utc"][:19].replace("T", " "),
            stored["table"],
            call.dice_text(result["dice"], result["eye"]) if result else pgettext("round", status),
            str(result["total"]) if result else "",
            seating.who(stored["shaker"]),
            str(stored["voids"] or ""),
            call.signed(call.house_net(corrections.standing(stored) or result, stored.get("tiles"))) if result else "",
            " ".join(pgettext("round", kind) for kind in corrections.kinds(stored).split()),
        )
    console().print(rows)


@click.command()
@click.argument("number", type=click.IntRange(1, SEQ_MAX))
@table_option
@click.option("--events", is_flag=True, help="Print the records that the table sent for it instead, one JSON a line.")
@db_option
@json_option
def show(number: int, uid: str | None, events: bool, db: Path | str | None, as_json: bool) -> None:
    """Round NUMBER as the dealer called it."""
    store = open_store(db, must_exist=True)
    store.check_table(uid)
    stored = store.round(number, uid)
    if events:
        for record in store.events(stored["table"], number):
            print_json(record)
        return
    voids = void_reasons(store, stored["table"], number)
    if as_json:
        print_json(call.as_json(stored, voids))
    else:
        call.print_round(console(), stored, voids)


@click.command()
@click.argument("number", type=click.IntRange(1, SEQ_MAX))
@port_option
@click.option("--void", is_flag=True, help="The round should have been void.")
@click.option("--dice", help='The dice were these, in the order of the three dice, as `show` has them: "3 3 4".')
@click.option("--position", type=click.IntRange(1, 7), help="With --wagers: the position.")
@click.option("--wagers", help='All its wagers were these, in cents: "match 500 odd 100"; "" is none.')
@click.option("--reason", required=True, help="Why: recorded with it.")
@click.option("--anyway", is_flag=True, help="Also wagers that the table would have refused when the round was played.")
@played_pack_option
@db_option
@json_option
def correct(
    number: int,
    port: str,
    void: bool,
    dice: str | None,
    position: int | None,
    wagers: str | None,
    reason: str,
    anyway: bool,
    pack: str | None,
    db: Path | str | None,
    as_json: bool,
) -> None:
    """Correct round NUMBER, which is over: one more record of the table, under a supervisor's key.

    Dice are typed in the order of the three dice, die 1 first; the dragon's eye die is the one that `show NUMBER` has
    as «3», whatever its value is corrected to.

    Nothing that was recorded is changed. What the round came to is settled anew and counts from then on; of two
    corrections of the same thing the last one does. The streak is not changed: `end` and `changed` are for that. Wagers
    that the table would have refused then, such as a bonus that joins a running streak, are refused without --anyway.
    """
    if [void, dice is not None, position is not None and wagers is not None].count(True) != 1 or (
        (position is None) != (wagers is None)
    ):
        raise click.UsageError(_("give one of: --void; --dice; --position and --wagers"))
    words = [f"reason={reason}", "event=1"]
    words += [f"dice={dice}"] if dice is not None else []
    words += [f"position={position}", f"wagers={wagers}"] if wagers is not None else []
    what = "void" if void else "dice" if dice is not None else "bets"
    _name, fields = parse_request(shlex.join(["correct", str(number), what, *words]))
    value = {name: fields[name] for name in ("dice", "position", "wagers") if name in fields}
    given = None if pack is None else load(pack)
    store = open_store(db)
    if given is not None:
        store.know(given)
    with on_port(port, store) as device:
        device.wait_stored()
        try:
            stored = dealer.correct(device, store, number, reason, anyway=anyway, **value)
        except contested.Contested as error:
            raise BadInput(_("{error}; --anyway corrects it so nevertheless").format(error=error)) from None
    voids = void_reasons(store, stored["table"], number)
    if as_json:
        print_json(call.as_json(stored, voids))
    else:
        call.print_round(console(), stored, voids)


@click.command()
@click.argument("file")
@click.option("--format", "kind", type=click.Choice(exports.FORMATS), help="Default: by the end of FILE's name.")
@click.option("--rolls", is_flag=True, help="Raw rolls for a test lab instead of rounds.")
@click.option("--last", type=click.IntRange(1), help="With --rolls: only so many, the newest.")
@search_options
@click.option("--status", type=click.Choice(STATUSES), help="Only rounds in this status.")
@db_option
@json_option
def export(
    file: str,
    kind: str | None,
    rolls: bool,
    last: int | None,
    asked: Asked,
    status: str | None,
    db: Path | str | None,
    as_json: bool,
) -> None:
    """Write rounds, or raw rolls, to FILE (- is stdout): CSV, JSON Lines or Parquet."""
    if last is not None and not rolls:
        raise click.UsageError(_("--last goes with --rolls"))
    kind = kind or format_of(file)
    store = open_store(db, must_exist=True)
    search = search_for(store, asked, status)
    with exports.target(file) as out, progress(_("export"), last or store.count(search)) as advance:
        if rolls:
            stored = store.rolls(search, last)
            exports.write(exports.roll_rows(store, stored), exports.ROLL_COLUMNS, kind, out, advance)
        elif kind == "jsonl":
            whole = (call.as_json(*one) for one in exports.with_void_reasons(store, store.stream(search)))
            exports.write(whole, {}, kind, out, advance)
        else:
            exports.write(exports.round_rows(store, search), exports.ROUND_COLUMNS, kind, out, advance)
    if file == "-":
        return
    told: dict[str, Any] = {"file": file, "format": kind, "rows": out.rows, "bytes": out.bytes, "sha256": out.sha256}
    told["heads"] = heads_of(store, asked.uid)
    if as_json:
        print_json(told)
    else:
        click.echo(
            _("{file}: {rows} rows, {bytes} bytes, SHA-256 {sha256}").format(
                file=file, rows=told_number(out.rows), bytes=told_number(out.bytes), sha256=out.sha256
            )
        )
        for head in told["heads"]:
            click.echo(_("table {table}: head {head} of {utc}").format(**head))


@click.command()
@table_option
@click.option(
    "--pack",
    "packs",
    multiple=True,
    help="A rule pack's file that was played; nj, pr and ca are known. May be repeated.",
)
@click.option("--most", default=20, show_default=True, type=click.IntRange(1), help="How many findings to print.")
@click.option("--port", help="Also compare with the journal of the table on this port; nothing is fetched from it.")
@click.option(
    "--head",
    "heads",
    multiple=True,
    metavar="EVENT:HASH",
    type=Noted(),
    help="Also compare with a head that was noted elsewhere, as audit, report and export print it. May be repeated.",
)
@db_option
@json_option
def audit(
    uid: str | None,
    packs: tuple[str, ...],
    most: int,
    port: str | None,
    heads: tuple[tuple[int, str], ...],
    db: Path | str | None,
    as_json: bool,
) -> None:
    """Check the whole record: ids, hashes, tags, order, streaks, and every settlement anew by rules of its own.

    The tags prove that a table's record is the one that it wrote, where its journal key is on this computer
    (`tablectl keys`). Ends with exit code 0 when all fits, 1 when something does not, 2 when it cannot be checked.
    """
    from host_tools import audit as auditing

    store = open_store(db, must_exist=True)
    known = [load(name) for name in (*packs, *NAMES)]
    with progress(_("audit"), None) as advance:
        done = auditing.audit(store, known, uid, advance, auditing.held_keys(store))
    for event, link in heads:
        auditing.check_head(store, done, uid, event, link)
    if port is not None:
        wire = Link(SerialTransport(port))
        try:
            auditing.compare(store, done, wire)
        finally:
            wire.close()
    if as_json:
        print_json(done.as_dict())
    else:
        click.echo(
            ", ".join(
                words.format(count=told_number(count))
                for words, count in (
                    (ngettext("{count} table", "{count} tables", done.tables), done.tables),
                    (ngettext("{count} event", "{count} events", done.events), done.events),
                    (ngettext("{count} round", "{count} rounds", done.rounds), done.rounds),
                    (ngettext("{count} settlement", "{count} settlements", done.settlements), done.settlements),
                    (ngettext("{count} tile hand", "{count} tile hands", done.tile_hands), done.tile_hands),
                )
            )
        )
        for proof in done.proofs:
            click.echo(_proved(proof))
        for found, label, more in (
            (done.notes, _("note: "), _("and {count} notes more; --most shows them")),
            (done.findings, _("does not fit: "), _("and {count} more")),
        ):
            for one in _first(found, most):
                click.echo(label + _place(one))
            if len(found) > most:
                click.echo(more.format(count=told_number(len(found) - most)))
        if not done.findings:
            click.echo(_("everything fits"))
    if done.findings:
        sys.exit(1)


def _proved(proof: Any) -> str:
    """What the tags of a table's record prove."""
    last = int(proof.head.partition(":")[0])
    if proof.proved and proof.proved == last and proof.since > 1:
        words = _("table {uid}: proved from event {since} to its end to be as the table wrote it; head {head}")
    elif proof.proved and proof.proved == last:
        words = _("table {uid}: proved to its end to be as the table wrote it; head {head}")
    elif proof.proved and proof.since > 1:
        words = _("table {uid}: proved from event {since} to event {proved} to be as the table wrote it; head {head}")
    elif proof.proved:
        words = _("table {uid}: proved up to event {proved} to be as the table wrote it; head {head}")
    else:
        words = _("table {uid}: not proved by its tags; head {head}")
    return words.format(uid=proof.table, since=proof.since, proved=proof.proved, head=proof.head)


def _first(found: list[Any], most: int) -> list[Any]:
    """`most` of what was found, the first of each table before the second of any, in their order."""
    seen: Counter[str] = Counter()
    turns = []
    for place, one in enumerate(found):
        turns.append((seen[one.table], place))
        seen[one.table] += 1
    return [found[place] for place in sorted(place for _turn, place in sorted(turns)[:most])]


def _place(finding: Any) -> str:
    words = [_("table {uid}").format(uid=shown(finding.table)[1:-1]) if finding.table else _("the record")]
    if finding.event:
        words.append(_("event {number}").format(number=finding.event))
    if finding.round:
        words.append(_("round {number}").format(number=finding.round))
    return ", ".join(words) + ": " + str(finding.what)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@db_option
@json_option
def backup(file: Path, db: Path | str | None, as_json: bool) -> None:
    """Copy the record to FILE in one step, while tables go on writing to it."""
    store = open_store(db, must_exist=True)
    store.backup(file)
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size})
    else:
        click.echo(_("{file}: {bytes} bytes, checked").format(file=file, bytes=told_number(size)))


@click.group()
def record() -> None:
    """The record's upkeep: what is in it, tile hands beside a round, and removing what is old."""


@record.command()
@db_option
@json_option
def info(db: Path | str | None, as_json: bool) -> None:
    """Where the record is, its tables, rounds and dice sets, and what was removed from it."""
    store = open_store(db, must_exist=True)
    told: dict[str, Any] = {
        "db": str(store.path),
        "tables": [
            {
                "table": uid,
                "last_event": store.last(uid)[0],
                "rounds": store.count(Search(uid=uid)),
                "head": next((one["head"] for one in heads_of(store, uid)), None),
                "dice_sets": [
                    {key: one[key] for key in ("dice_set", "serial", "issued", "since")} for one in store.dice_sets(uid)
                ],
                "removed": store.prunings(uid),
            }
            for uid in store.tables()
        ],
    }
    if as_json:
        print_json(told)
        return
    out = console()
    out.print(str(store.path), soft_wrap=True)
    rows = table(_("table"), _("events"), _("rounds"), _("dice sets"), _("removed events"))
    for one in told["tables"]:
        rows.add_row(
            one["table"],
            told_number(one["last_event"]),
            told_number(one["rounds"]),
            ", ".join(set_name(dice_set) for dice_set in one["dice_sets"]),
            ", ".join(f"{gone['first']}-{gone['last']} ({gone['utc'][:10]}, {gone['by']})" for gone in one["removed"]),
        )
    out.print(rows)


@record.command("tiles")
@click.argument("number", type=click.IntRange(1, SEQ_MAX))
@click.argument("case", metavar="CASE")
@table_option
@played_pack_option
@house_way_option(default=houseway.OF_TABLE)
@db_option
@json_option
def keep_tiles(
    number: int, case: str, uid: str | None, pack: str | None, house_way: str, db: Path | str | None, as_json: bool
) -> None:
    """Settle the tile hands of round NUMBER and keep them beside it; once kept they stay.

    They are dealt by the dice that count, and settled by the rule pack that the table played the round by; one of the
    house's own is named with --pack FILE, and one that it did not play by is refused.

    CASE is JSON: {"bank":HANDS,"players":[{"position":2,"stake":5000,"hands":HANDS},..]} with player positions and
    cents. HANDS is {"high":[..],"low":[..]}, or four tiles, which are set by the house way.
    """
    given = None if pack is None else load(pack)
    store = open_store(db, must_exist=True)
    holder = str(store.round(number, uid)["table"])
    own = pack is not None and bool(clauses.of_pack(pack).signals)
    settled = tile_round.settle(store, holder, number, parse_json(case, "CASE"), given, house_way, own)
    store.add_tiles(holder, number, settled)
    kept = store.round(number, holder)
    voids = void_reasons(store, holder, number)
    if as_json:
        print_json(call.as_json(kept, voids))
    else:
        call.print_round(console(), kept, voids)


@record.command()
@click.option(
    "--older-than",
    "days",
    required=True,
    type=click.IntRange(1, 36_500),
    metavar="DAYS",
    help="Age in days, 90 or more.",
)
@db_option
@json_option
def prune(days: int, db: Path | str | None, as_json: bool) -> None:
    """Remove rounds and events that are older than DAYS days, and note in the record what was removed.

    Nothing is ever removed by itself, and nothing younger than 90 days at all. Whole rounds go only, and a table's last
    round stays. Make a backup first.
    """
    store = open_store(db, must_exist=True)
    removed = store.prune(days)
    if as_json:
        print_json({"kept_days": KEPT_DAYS, "removed": removed})
        return
    for one in removed:
        click.echo(
            _("table {table}: removed events {first} to {last} with {rounds} rounds").format(
                table=one["table"], first=one["first"], last=one["last"], rounds=told_number(one["rounds"])
            )
        )
    if not removed:
        click.echo(_("nothing is older than {days} days").format(days=days))
