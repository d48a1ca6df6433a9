"""`tablectl rounds` and `show`: what the record holds, and what is said of records that cannot be used."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from host_tools import store as store_module
from host_tools.store import Store
from tests.unit.conftest import Tablectl
from tests.unit.tables import Desk
from tests.unit.test_store import take_all, told


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Three settled rounds and a void one of table U1, in the default place."""
    journal = tmp_path / "journal"
    journal.mkdir()
    desk = Desk(journal)
    desk.hello()
    for dice in ([1, 2, 3], [4, 4, 4], [6, 5, 6]):
        desk.play(dice, {2: {"match": 500, "odd": 100}}, shaker=2)
        desk.tell("lid", False)
    desk.ask("open", shaker=0)
    desk.ask("void", reason="dice on the floor")
    path = tmp_path / "rounds.db"
    store = Store(path, clock=lambda: "2026-05-17T20:00:00.000+00:00")
    take_all(store, told(desk))
    store.close()
    return path


def test_the_rounds_as_a_table(tablectl: Tablectl, record: Path) -> None:
    done = tablectl("rounds")
    heading, *rows = [re.split(r" {2,}", line.strip()) for line in done.out.splitlines()]
    assert heading == ["round", "UTC", "table", "dice", "total", "shaker", "voids", "table's net", "corrected"]
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    assert rows[1] == ["2", "2026-05-17 20:00:00", "U1", "4", "«4»", "4", "12", "player position 2", "+$6.00"]
    assert rows[3] == ["4", "2026-05-17 20:00:00", "U1", "void", "the dealer", "1"]
    assert (done.code, done.err) == (0, "")


def test_the_rounds_in_spanish(tablectl: Tablectl, record: Path) -> None:
    rows = [re.split(r" {2,}", line.strip()) for line in tablectl("rounds", "--lang", "es").out.splitlines()]
    assert rows[4] == ["4", "2026-05-17 20:00:00", "U1", "nula", "el Croupier", "1"]
    assert rows[2][-2] == "la posición de jugador 2"
    assert [row["status"] for row in tablectl("rounds", "--lang", "es", "--json").rows][3] == "void"
    assert tablectl("show", "2", "--lang", "es").out.splitlines()[0] == "Ronda 2 · agita la posición de jugador 2"
    audited = tablectl("audit", "--lang", "es").out.splitlines()[0]
    assert audited.startswith("1 mesa, ")
    assert ", 4 rondas, " in audited
    assert tablectl("audit").out.startswith("1 table, ")


def test_a_report_by_time_says_what_a_clock_that_was_put_back_keeps_out(
    tablectl: Tablectl, record: Path, tmp_path: Path
) -> None:
    with contextlib.closing(sqlite3.connect(record)) as database, database:
        database.execute("UPDATE rounds SET utc = '2026-05-17T17:00:00.000+00:00' WHERE number > 2")
    page, since = tmp_path / "shift.html", ("--from", "2026-05-17T18:00")
    assert tablectl("report", str(page), *since).code == 0
    words = "of the rounds that were played in between, 2 lie outside this time"
    assert words in page.read_text()
    assert "3: 2026-05-17 17:00, 4: 2026-05-17 17:00" in page.read_text()
    [figures] = tablectl("report", "-", *since, "--json").rows[0]["tables"]
    assert [one["round"] for one in figures["outside"]] == [3, 4]
    assert words not in tablectl("report", "-").out


def test_the_rounds_as_json(tablectl: Tablectl, record: Path) -> None:
    rows = tablectl("rounds", "--json").rows
    assert [(row["round"], row["status"], row["voids"]) for row in rows] == [
        (1, "settled", []),
        (2, "settled", []),
        (3, "settled", []),
        (4, "void", ["supervisor"]),
    ]
    assert [row.get("dice") for row in rows] == [[1, 2, 3], [4, 4, 4], [6, 5, 6], None]
    assert rows[0]["wagers"] == [
        {"position": 2, "wager": "match", "stake": 500, "odds": 1, "profit": 500},
        {"position": 2, "wager": "odd", "stake": 100, "odds": 0, "profit": -100},
    ]
    assert [row.get("net") for row in rows] == [-400, 600, 400, None]
    assert [row["round"] for row in tablectl("rounds", "--last", "2", "--json").rows] == [3, 4]


def test_one_round(tablectl: Tablectl, record: Path) -> None:
    assert tablectl("show", "2", "--json").rows == [tablectl("rounds", "--json").rows[1]]
    plain = tablectl("show", "1").out.splitlines()
    assert plain[0] == "Round 1 · player position 2 shakes"
    assert plain[1] == "  dice     1  «2»  3    total 6   (the dragon's eye die shows 2)"
    assert plain[2] == "  wagers  player position 2: match $5.00 pays 1 to 1, odd $1.00 loses  +$4.00"
    assert plain[-1] == "  net     table -$4.00"
    assert tablectl("show", "4").out.splitlines()[1:] == [
        "  void    supervisor: voided by a supervisor",
        "  result  none: the round is void",
    ]


def test_the_events_of_a_round(tablectl: Tablectl, record: Path) -> None:
    rows = tablectl("show", "3", "--events").rows
    assert [row["k"] for row in rows] == ["opened", "closed", "locked", "settled"]
    assert {row["d"]["round"] for row in rows} == {3}
    assert {row["utc"] for row in rows} == {"2026-05-17T20:00:00.000+00:00"}


def test_several_tables_in_one_record(tablectl: Tablectl, record: Path, tmp_path: Path) -> None:
    journal = tmp_path / "other"
    journal.mkdir()
    desk = Desk(journal)
    desk.hello()
    desk.play([1, 1, 2])
    store = Store(record)
    take_all(store, told(desk), "U2")
    store.close()
    said = "round 1 is there for several tables; name one with --table: U1, U2"
    assert tablectl("show", "1").refusal() == said
    assert tablectl("show", "1", "--json").refusal() == said
    assert tablectl("show", "1", "--table", "U2", "--json").rows[0]["dice"] == [1, 1, 2]
    assert {row["table"] for row in tablectl("rounds", "--json").rows} == {"U1", "U2"}
    assert {row["table"] for row in tablectl("rounds", "--table", "U2", "--json").rows} == {"U2"}


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["plain", "json"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "9"), "there is no round 9; there are rounds 1 to 4"),
        (("show", "0"), "Invalid value for 'NUMBER': 0 is not in the range"),
        (("show", "one"), "Invalid value for 'NUMBER': 'one' is not a valid integer range."),
        (("show",), "Missing argument 'NUMBER'."),
        (("rounds", "--last", "-1"), "Invalid value for '--last': -1 is not in the range"),
        (("rounds", "--lost", "1"), "No such option: --lost Did you mean --last?|No such option"),
        (("show", "1", "--table", "T9"), 'there is no table "T9" in this record; there are U1'),
        (("rounds", "--table", "NOPE"), 'there is no table "NOPE" in this record; there are U1'),
        (("export", "-", "--table", "NOPE"), 'there is no table "NOPE" in this record; there are U1'),
        (
            ("rounds", "--since", "yesterday"),
            "Invalid value for '--since': \"yesterday\"; allowed: a date like 2026-05-17",
        ),
        (("rounds", "--since", "2026-05-18", "--until", "2026-05-17"), "ends before it begins"),
        (("rounds", "--dice-set", "9"), 'there is no dice set "9"; there are 1'),
        (("rounds", "--dice-set", "DX-1"), 'there is no dice set "DX-1"; there are 1'),
        (("rounds", "--status", "lost"), "Invalid value for '--status': 'lost' is not one of"),
        (("rounds", "--page", "0"), "Invalid value for '--page': 0 is not in the range"),
        (("export", "-", "--last", "5"), "--last goes with --rolls"),
        (("record", "prune", "--older-than", "89"), "--older-than is 89; allowed: 90 days or more"),
        (("record", "prune"), "Missing option '--older-than'"),
        (("backup", "/no/such/folder/x"), "/no/such/folder/x: "),
        (
            ("rounds", "--db", "mysql://x/y"),
            "not a place for a record; allowed: a file, or postgresql://USER@HOST/DATABASE",
        ),
        (
            ("show", "9" * 30),
            "there is no round 9|is not in the range",
        ),
    ],
)
def test_bad_arguments(
    tablectl: Tablectl, record: Path, arguments: tuple[str, ...], said: str, more: tuple[str, ...]
) -> None:
    told_us = tablectl(*arguments, *more).refusal()
    assert any(one in told_us for one in said.split("|"))


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["plain", "json"])
@pytest.mark.parametrize("command", [("rounds",), ("show", "1"), ("show", "1", "--events")], ids=" ".join)
def test_records_that_cannot_be_used(
    tablectl: Tablectl, tmp_path: Path, command: tuple[str, ...], more: tuple[str, ...]
) -> None:
    def refusal(db: Path) -> str:
        return tablectl(*command, *more, "--db", str(db)).refusal()

    absent, random, foreign = (tmp_path / name for name in ("absent.db", "random.db", "foreign.db"))
    assert refusal(absent) == f"{absent}: there is no such database yet; play a round first"
    assert not absent.exists()
    random.write_bytes(os.urandom(4096))
    assert refusal(random) == (
        f"{random}: this is not a sound database (file is not a database); move it away or restore a copy"
    )
    connection = sqlite3.connect(foreign)
    connection.executescript("CREATE TABLE rounds (name TEXT); INSERT INTO rounds VALUES ('mine');")
    connection.close()
    assert refusal(foreign).startswith(f"{foreign}: ")
    assert str(tmp_path) in refusal(tmp_path)


def test_a_damaged_record_is_named(tablectl: Tablectl, record: Path) -> None:
    whole = record.read_bytes()
    record.write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))
    for command in (("rounds",), ("show", "1"), ("rounds", "--json")):
        assert tablectl(*command).refusal().startswith(f"{record}: ")


def test_a_locked_record_is_named(tablectl: Tablectl, record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def impatient(connection: Any, row: object) -> None:
        pragmas(connection, row)
        connection.execute("PRAGMA busy_timeout=20")

    pragmas = store_module._pragmas
    monkeypatch.setattr(store_module, "_pragmas", impatient)
    connection = sqlite3.connect(record, isolation_level=None)
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr("sqlite3.dbapi2.connect", _without_patience(sqlite3.connect))
    for more in ((), ("--json",)):
        said = tablectl("rounds", *more).refusal()
        assert said == f"{record}: another program has locked it; try again when it has finished"
    connection.close()


def _without_patience(connect: Any) -> Any:
    """sqlite3.connect waits five seconds by itself."""
    return lambda *arguments, **options: connect(*arguments, **{**options, "timeout": 0.02})


def test_a_damaged_row_is_one_clear_line(tablectl: Tablectl, tmp_path: Path) -> None:
    path = tmp_path / "rounds.db"
    Store(path).close()
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        base.execute(
            "insert into events (uid, id, kind, boot, ticks, round, utc, body, link)"
            " values ('U1', 1, 'opened', 1, 1, 1, '2026-01-01', 'zz', '')"
        )
        base.execute(
            "insert into rounds (uid, number, event, utc, status, shaker, voids, result)"
            " values ('U1', 1, 1, '2026-01-01', 'settled', 0, 0, '{xx')"
        )
    assert tablectl("show", "1").refusal() == "round 1 of table U1 is damaged in the database; restore a copy"
    assert tablectl("rounds").refusal() == "round 1 of table U1 is damaged in the database; restore a copy"
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        base.execute("update rounds set result = null")
    assert (
        tablectl("show", "1", "--events").refusal() == "event 1 of table U1 is damaged in the database; restore a copy"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("record prune --older-than 4000000", "--older-than"),
        ("fairness --alpha nan", "nan is not a number"),
        ("fairness --alpha 1e-320", "--alpha"),
        ("fairness power --bias 1e-300", "--bias"),
        ("keys import /dev/zero", "it is longer than 1000000 bytes"),
        ("rounds --db /dev/null", "/dev/null: this is no file"),
        ("export x.xyz", "allowed: a file ending in .csv"),
        ("report - --from 2026-05-18 --until 2026-05-17", "ends before it begins"),
    ],
)
def test_what_has_no_end_or_no_sense_is_refused(tablectl: Tablectl, tmp_path: Path, line: str, said: str) -> None:
    Store(tmp_path / "rounds.db").close()
    assert said in tablectl(*line.split()).refusal()
    assert not Path("x.xyz").exists()


READING = {
    "rounds": ("rounds",),
    "show": ("show", "1"),
    "export": ("export", "-"),
    "audit": ("audit",),
    "report": ("report", "-"),
    "fairness": ("fairness",),
    "record info": ("record", "info"),
    "backup": ("backup", "copy.db"),
    "a refusal": ("show", "77"),
}


@pytest.mark.parametrize("name", READING)
def test_a_command_lets_go_of_the_record(
    name: str, tablectl: Tablectl, record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: set[Store] = set()
    begin, end = Store.__init__, Store.close

    def opened(store: Store, *arguments: Any, **options: Any) -> None:
        begin(store, *arguments, **options)
        held.add(store)
        seen.append(store)

    def closed(store: Store) -> None:
        held.discard(store)
        end(store)

    seen: list[Store] = []
    monkeypatch.setattr(Store, "__init__", opened)
    monkeypatch.setattr(Store, "close", closed)
    monkeypatch.chdir(tmp_path)
    tablectl(*READING[name])
    assert seen
    assert not held
