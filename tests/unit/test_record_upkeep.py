"""Searching, exporting, backing up and pruning the record, and what is said when the disk is full."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sqlite3
import subprocess
import sys
import tracemalloc
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from dragoneye.rules.packs import load
from host_tools import export
from host_tools import store as store_module
from host_tools.audit import audit
from host_tools.store import Search, Store, StoreError
from tests.synthetic import fill, history
from tests.unit.conftest import Tablectl
from tests.unit.test_store import RESULT, UID, chained, many, take_all
from tests.unit.test_store import record as record_of

A, B = "E660000000000001", "E660000000000002"
ROUNDS = 90


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables with ninety rounds each, one every two minutes, other dice each thirty rounds."""
    path = tmp_path_factory.mktemp("made") / "rounds.db"
    fill(path, A, history(ROUNDS, seed=1, set_rounds=30))
    fill(path, B, history(ROUNDS, seed=2, set_rounds=30))
    return path


@pytest.fixture
def record(made: Path, tmp_path: Path) -> Path:
    """A copy that may be changed, in the default place."""
    path = tmp_path / "rounds.db"
    path.write_bytes(made.read_bytes())
    return path


# Searching


def test_searches_find_what_a_plain_look_finds(made: Path) -> None:
    store = Store(made)
    rounds = list(store.stream())
    assert [(one["table"], one["round"]) for one in rounds] == [
        (uid, n) for uid in (A, B) for n in range(1, ROUNDS + 1)
    ]
    moments = sorted({one["utc"] for one in rounds})
    for uid, since, until, dice_set, status in product(
        (None, B), (None, moments[40]), (None, moments[70]), (None, 2), (None, "settled", "void")
    ):
        expected = [
            (one["table"], one["round"])
            for one in rounds
            if uid in (None, one["table"])
            and (since is None or one["utc"] >= since)
            and (until is None or one["utc"] < until)
            and dice_set in (None, one["dice_set"])
            and status in (None, one["status"])
        ]
        search = Search(uid, since, until, dice_set, status)
        assert [(one["table"], one["round"]) for one in store.stream(search)] == expected
        assert store.count(search) == len(expected)
        pages = [store.rounds(last=25, page=page, search=search) for page in range(1, 10)]
        assert sorted((one["table"], one["round"]) for page in pages for one in page) == expected
        newest_first = [one["utc"] for page in pages for one in reversed(page)]
        assert newest_first == sorted(newest_first, reverse=True)
    store.close()


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (("--last", "1000"), 180),
        (("--last", "100", "--page", "2"), 80),
        (("--last", "1000", "--table", A), 90),
        (("--last", "1000", "--table", A, "--dice-set", "2"), 30),
        (("--last", "1000", "--since", "2026-01-05T13:00", "--until", "2026-01-05T14:00Z"), 60),
        (("--last", "1000", "--since", "2026-01-05T14:00+01:00", "--until", "2026-01-05T14:00"), 60),
        (("--last", "1000", "--until", "2026-01-05"), 180),
        (("--last", "1000", "--since", "2026-01-06"), 0),
        (("--last", "1000", "--status", "void"), 0),
    ],
)
def test_the_command_searches(tablectl: Tablectl, record: Path, arguments: tuple[str, ...], count: int) -> None:
    assert len(tablectl("rounds", "--json", *arguments).rows) == count
    assert tablectl("rounds", *arguments).out.count("\n") == count + 1


def test_searches_use_an_index(made: Path) -> None:
    """Every search of the newest rounds goes by an index, and sorts nothing."""
    connection = sqlite3.connect(made)
    for where in ("1", "uid = 'x'", "status = 'void'", "uid = 'x' AND dice_set = 2", "utc >= 'a' AND utc < 'b'"):
        query = f"SELECT * FROM rounds WHERE {where} ORDER BY utc DESC, number DESC LIMIT 20"
        plan = " ".join(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {query}"))
        assert "USING INDEX ix_rounds" in plan
        assert "TEMP B-TREE" not in plan
    for query in (
        "SELECT * FROM events WHERE uid = 'x' AND round = 5 ORDER BY id",
        "SELECT id, kind, body FROM events WHERE uid = 'x' AND round IN (5, 6, 7)",
    ):
        plan = " ".join(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {query}"))
        assert plan == "SEARCH events USING INDEX ix_events_round (uid=? AND round=?)"
    connection.close()


def test_dice_sets_have_the_serials_that_the_table_tells(tmp_path: Path, tablectl: Tablectl) -> None:
    """A change is told as the streak's end and as the set, or as one of them; the same dice again are no new set."""
    records: list[dict[str, Any]] = []

    def tell(kind: str, **data: Any) -> None:
        records.append(record_of(len(records) + 1, kind, **data))

    def roll(number: int) -> None:
        tell("opened", round=number, shaker=1)
        tell("settled", round=number, **RESULT)

    def dice(serial: str, tags: str) -> None:
        tell("dice", serial=serial, issued="2026-05-17T20:00:00Z", hash=tags, eye=0, found=False)

    dice("DX-1", "aa")
    roll(1)
    dice("DX-1", "aa")
    roll(2)
    tell("streak", why="dice changed", position=0, streak={"count": 0, "parts": [], "gone": []})
    dice("DX-2", "bb")
    roll(3)
    dice("DX-3", "cc")
    dice("DX-4", "dd")
    roll(4)
    tell("streak", why="dice changed, streak kept", position=0, streak={"count": 0, "parts": [], "gone": []})
    roll(5)
    store = Store(tmp_path / "rounds.db")
    assert all(take_all(store, chained(records)))
    assert [(one["round"], one["dice_set"]) for one in store.rounds(UID)] == [(1, 1), (2, 1), (3, 2), (4, 3), (5, 4)]
    assert [one["serial"] for one in store.dice_sets(UID)] == ["DX-1", "DX-2", "DX-4", None]
    # The auditor numbers them by itself.
    assert not [one for one in audit(store, [load("nj")]).findings if "dice_set" in one.what]
    store.close()
    assert [row["round"] for row in tablectl("rounds", "--json", "--dice-set", "DX-4").rows] == [4]
    assert (
        tablectl("rounds", "--dice-set", "DX-9")
        .refusal()
        .endswith('there is no dice set "DX-9"; there are 1 (DX-1), 2 (DX-2), 3 (DX-4), 4')
    )


# Exporting


def test_rounds_as_csv_and_json_lines_and_parquet(tablectl: Tablectl, record: Path, tmp_path: Path) -> None:
    csv_file, jsonl, parquet = (tmp_path / name for name in ("out.csv", "out.jsonl", "out.parquet"))
    [told] = tablectl("export", str(csv_file), "--json").rows
    heads = told.pop("heads")
    assert [(one["table"], one["head"].partition(":")[0]) for one in heads] == [
        (one["table"], str(one["event"])) for one in heads
    ]
    assert [one["table"] for one in heads] == [A, B]
    assert told == {
        "file": str(csv_file), "format": "csv", "rows": 180, "bytes": csv_file.stat().st_size,
        "sha256": hashlib.sha256(csv_file.read_bytes()).hexdigest(),
    }  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(csv_file.read_text())))
    plain = tablectl("rounds", "--last", "1000", "--json").rows
    plain.sort(key=lambda one: (one["table"], one["round"]))
    for row, one in zip(rows, plain, strict=True):
        assert [row[f"die_{die}"] for die in (1, 2, 3)] == [str(value) for value in one["dice"]]
        assert (row["table"], row["round"], row["utc"]) == (one["table"], str(one["round"]), one["utc"])
        assert (row["eye_die"], row["total"], row["dice_net"]) == ("2", str(one["total"]), str(one["net"]))
        assert row["voids"] == " ".join(one["voids"])
    assert tablectl("export", str(jsonl)).code == 0
    assert [json.loads(line) for line in jsonl.read_text().splitlines()] == plain
    parquet_of = pytest.importorskip("pyarrow.parquet")
    assert tablectl("export", str(parquet), "--table", A).code == 0
    table = parquet_of.read_table(parquet)
    assert table.num_rows == 90
    assert table.column("total").to_pylist() == [one["total"] for one in plain if one["table"] == A]


def test_raw_rolls_for_a_lab(tablectl: Tablectl, record: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(tablectl("export", "-", "--rolls", "--last", "50").out)))
    assert len(rows) == 50
    assert [row["round"] for row in rows] == [str(number) for _uid in (A, B) for number in range(66, 91)]
    lines = tablectl("export", "-", "--rolls", "--format", "jsonl", "--table", B).rows
    assert [line["round"] for line in lines] == list(range(1, 91))
    assert {line["dice_set"] for line in lines} == {1, 2, 3, 4}
    assert all(1 <= line[f"die_{die}"] <= 6 for line in lines for die in (1, 2, 3))


def test_a_reason_is_no_formula_in_a_spreadsheet(tablectl: Tablectl, record: Path) -> None:
    connection = sqlite3.connect(record)
    connection.execute(
        'UPDATE rounds SET result = replace(result, \'"manual":null\', \'"manual":"=HYPERLINK(1)"\') WHERE number = 5'
    )
    connection.commit()
    connection.close()
    rows = list(csv.DictReader(io.StringIO(tablectl("export", "-").out)))
    assert {row["manual"] for row in rows if row["round"] == "5"} == {"'=HYPERLINK(1)"}


def test_an_export_is_there_whole_or_not_at_all(tablectl: Tablectl, record: Path, tmp_path: Path) -> None:
    there = tmp_path / "there.csv"
    there.write_text("mine")
    assert tablectl("export", str(there)).refusal() == f"{there}: is there already; name another file"
    assert there.read_text() == "mine"
    assert tablectl("export", "/no/such/x.csv").refusal().startswith("/no/such/x.csv cannot be written: ")
    connection = sqlite3.connect(record)
    connection.execute("UPDATE rounds SET result = '{' WHERE number = 80")
    connection.commit()
    connection.close()
    damaged = tmp_path / "damaged.csv"
    assert "is damaged in the database; restore a copy" in tablectl("export", str(damaged)).refusal()
    assert list(tmp_path.glob("damaged*")) == []


def test_an_export_takes_no_more_memory_for_more_rounds(tmp_path: Path) -> None:
    peaks = []
    for rounds in (1500, 4500):
        path = tmp_path / f"{rounds}.db"
        fill(path, A, history(rounds))
        store = Store(path)
        tracemalloc.start()
        with export.target(str(tmp_path / f"{rounds}.csv")) as out:
            export.write(export.round_rows(store, Search()), export.ROUND_COLUMNS, "csv", out)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        store.close()
        assert out.rows == rounds
    # Batches are full in both.
    assert peaks[1] < 1.2 * peaks[0]


# Backup


def test_a_backup_is_whole_while_a_table_writes(tablectl: Tablectl, record: Path, tmp_path: Path) -> None:
    store = Store(record)
    take_all(store, many(3))
    copy = tmp_path / "copy.db"
    [told] = tablectl("backup", str(copy), "--json").rows
    assert told == {"file": str(copy), "bytes": copy.stat().st_size}
    # Nothing beside it, and what is in the write-ahead log is in it.
    assert sorted(one.name for one in tmp_path.glob("copy*")) == ["copy.db"]
    again = Store(copy)
    assert list(again.stream()) == list(store.stream())
    assert again.last(UID) == (6, 3)
    again.close()
    store.close()
    assert tablectl("backup", str(copy)).refusal() == f"{copy}: is there already; name another file"


# Pruning


def test_nothing_young_and_no_part_of_a_round_is_removed(tmp_path: Path) -> None:
    now = [""]
    store = Store(tmp_path / "rounds.db", clock=lambda: now[0])
    for now[0], one, link in history(40):
        assert store.take(UID, one, link, 1)
    before = {one["round"]: one for one in store.stream()}
    # 90 days before, round 21 has begun: it stays whole.
    now[0] = "2026-04-05T12:40:30.000+00:00"
    with pytest.raises(StoreError, match="--older-than is 89; allowed: 90 days or more"):
        store.prune(89)
    assert store.prune(91) == []
    [removed] = store.prune(90)
    assert (removed["table"], removed["first"], removed["rounds"]) == (UID, 1, 20)
    left = {one["round"]: one for one in store.stream()}
    assert left == {number: one for number, one in before.items() if number > 20}
    events = store.events(UID)
    assert events[0]["id"] == removed["last"] + 1
    assert events[0]["k"] == "opened"
    assert store.prunings(UID) == [removed]
    assert store.prune(90) == []
    # Whatever its age, the last round stays: the table's numbers go on from it.
    now[0] = "2030-01-01T00:00:00.000+00:00"
    [removed] = store.prune(90)
    assert removed["rounds"] == 19
    assert store.last(UID)[1] == 40
    more = list(history(41))[events[-1]["id"] :]
    assert all(store.take(UID, one, link, 1) for _utc, one, link in more)
    store.close()


def test_the_command_says_what_was_removed(tablectl: Tablectl, record: Path) -> None:
    done = tablectl("record", "prune", "--older-than", "90")
    lines = done.out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"table {A}", f"table {B}"]
    assert all(line.endswith("with 89 rounds") for line in lines)
    assert tablectl("record", "prune", "--older-than", "90").out == "nothing is older than 90 days\n"
    [told] = tablectl("record", "info", "--json").rows
    assert [(one["table"], one["rounds"], one["removed"][0]["rounds"]) for one in told["tables"]] == [
        (A, 1, 89),
        (B, 1, 89),
    ]
    assert "1-" in tablectl("record", "info").out


# Full disks


def test_a_disk_that_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What SQLite says on a full tmpfs, where its shared memory cannot grow.
    def refuse(session: Session, objects: object = None) -> None:
        raise OperationalError("", {}, sqlite3.OperationalError("disk I/O error"))

    store = Store(tmp_path / "rounds.db")
    monkeypatch.setattr(Session, "flush", refuse)
    with pytest.raises(StoreError, match=r"rounds\.db: the disk refuses, full or failing: nothing was stored"):
        take_all(store, many(1))
    monkeypatch.undo()
    assert all(take_all(store, many(1)))


def test_a_full_database_takes_nothing_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def small(connection: Any, row: object) -> None:
        pragmas(connection, row)
        connection.execute("PRAGMA max_page_count=40")

    pragmas = store_module._pragmas
    monkeypatch.setattr(store_module, "_pragmas", small)
    store = Store(tmp_path / "rounds.db")
    with pytest.raises(StoreError, match=r"rounds\.db: the disk is full: this was not stored; make room and try again"):
        take_all(store, many(2000))
    taken = store.last(UID)[0]
    assert [event["id"] for event in store.events(UID)] == list(range(1, taken + 1))
    assert taken > 50
    store.close()
    # There is room again: it goes on where it stopped.
    monkeypatch.setattr(store_module, "_pragmas", pragmas)
    store = Store(tmp_path / "rounds.db")
    assert all(take_all(store, many(taken)[taken : taken + 20]))
    store.close()


FULL = """
import resource, signal, sys
import host_tools.cli.record
from host_tools.__main__ import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (32768, resource.RLIM_INFINITY))
sys.argv[0] = "tablectl"
main()
"""


@pytest.mark.parametrize("command", [("export",), ("backup",), ("export", "--rolls")], ids=" ".join)
def test_a_full_disk_leaves_no_half_file(tmp_path: Path, command: tuple[str, ...]) -> None:
    """The limit is what SQLite's shared memory needs; the files that are made are larger."""
    record = tmp_path / "rounds.db"
    fill(record, A, history(700))
    target = tmp_path / "target.csv"
    done = subprocess.run(
        [sys.executable, "-c", FULL, command[0], str(target), *command[1:], "--db", str(record)],
        capture_output=True, text=True, env={"LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"tablectl: error: {target}")
    assert list(tmp_path.glob("target*")) == []
