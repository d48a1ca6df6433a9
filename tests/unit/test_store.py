"""The record on the host: once, in order, and safe from other processes, other tables and damaged files."""

from __future__ import annotations

import copy
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoneye import round as round_module
from dragoneye.journal import GENESIS, chain
from dragoneye.text import dumps
from host_tools import store as store_module
from host_tools.store import Search, Store, StoreError, default_path
from tests.unit.tables import Desk

Record = tuple[dict[str, Any], str]
UID = "U1"
# What a table says of itself when its journal is begun anew.
ANEW = dict(round_module.initial(), round=4)


def told(desk: Desk) -> list[Record]:
    """Every record that the table has sent, once."""
    while desk.journal.acked < desk.journal.last_id:
        desk.now += 1000
        desk.fetch()
    by_id = {event["id"]: (event, link) for event, link in zip(desk.events, desk.hashes, strict=True)}
    return [by_id[number] for number in sorted(by_id)]


def chained(records: list[dict[str, Any]], previous: str = GENESIS) -> list[Record]:
    """Records with hashes that follow each other."""
    result = []
    for record in records:
        previous = chain(previous, dumps(record))
        result.append((record, previous))
    return result


def record(number: int, kind: str, **data: Any) -> dict[str, Any]:
    return {"id": number, "k": kind, "b": 1, "t": 10 * number, "d": data}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """What a real controller told of four rounds, a void one among them."""
    desk = Desk(tmp_path_factory.mktemp("journal"))
    desk.hello()
    for dice in ([1, 2, 3], [4, 4, 4], [6, 5, 6]):
        desk.play(dice, {2: {"match": 500}})
        desk.tell("lid", False)
    desk.ask("open", shaker=2)
    desk.ask("void", reason="dice on the floor")
    return told(desk)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rounds.db"


@pytest.fixture
def open_store(path: Path) -> Iterator[Callable[..., Store]]:
    """open_store(...): a Store at `path`, closed afterwards."""
    stores = []

    def make(**options: Any) -> Store:
        stores.append(Store(path, **options))
        return stores[-1]

    yield make
    for one in stores:
        one.close()


OpenStore = Callable[..., Store]


def take_all(store: Store, records: list[Record], uid: str = UID, first_event: int = 1) -> list[bool]:
    return [store.take(uid, one, link, first_event) for one, link in records]


def rows(path: Path | str, query: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


# Once, and in order


def test_rounds_follow_from_records(open_store: OpenStore, played: list[Record]) -> None:
    store = open_store(clock=lambda: "2026-05-17T20:00:00.000+00:00")
    assert all(take_all(store, played))
    rounds = store.rounds(UID)
    assert [one["round"] for one in rounds] == [1, 2, 3, 4]
    assert [one["status"] for one in rounds] == ["settled", "settled", "settled", "void"]
    assert [one["result"]["dice"] for one in rounds[:3]] == [[1, 2, 3], [4, 4, 4], [6, 5, 6]]
    assert {one["utc"] for one in rounds} == {"2026-05-17T20:00:00.000+00:00"}
    assert store.last(UID) == (len(played), 4)
    assert store.tables() == [UID]
    assert [event["k"] for event in store.events(UID, 4)] == ["opened", "void"]


def test_taking_everything_again_changes_nothing(open_store: OpenStore, path: Path, played: list[Record]) -> None:
    store = open_store()
    take_all(store, played)
    before = rows(path, "SELECT * FROM events"), rows(path, "SELECT * FROM rounds")
    assert all(take_all(store, played))
    assert (rows(path, "SELECT * FROM events"), rows(path, "SELECT * FROM rounds")) == before


def test_the_databases_own_constraints_keep_a_round_single(
    open_store: OpenStore, path: Path, played: list[Record]
) -> None:
    take_all(open_store(), played)
    connection = sqlite3.connect(path)
    row = "INSERT INTO rounds (uid, number, event, utc, status, shaker, voids) VALUES ('U1', 9, 999, '', 'open', 1, 0)"
    for table in ("rounds", "events"):
        names = ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE constraint failed"):
            connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM {table} LIMIT 1")
    connection.rollback()
    connection.execute("PRAGMA foreign_keys=ON")
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        connection.execute(row)
    connection.close()


def test_a_record_that_comes_too_early_is_not_taken(open_store: OpenStore, played: list[Record]) -> None:
    store = open_store()
    assert take_all(store, [played[1], played[0], played[2], played[1], played[2]]) == [False, True, False, True, True]
    assert [event["id"] for event in store.events(UID)] == [1, 2, 3]


def test_what_the_table_has_removed_may_be_missing(open_store: OpenStore, played: list[Record]) -> None:
    store = open_store()
    assert take_all(store, played[4:], first_event=5) == [True] * len(played[4:])
    assert store.last(UID)[0] == len(played)


def test_another_content_under_the_same_id_is_refused(open_store: OpenStore, path: Path, played: list[Record]) -> None:
    store = open_store()
    take_all(store, played[:5])
    for number, (one, link) in enumerate(played[:5]):
        forged = copy.deepcopy(one)
        forged["t"] += 1
        for changed, hashed in ((forged, link), (one, "0" * 32), (forged, "0" * 32)):
            with pytest.raises(StoreError, match=f"table U1: event {number + 1} differs from the one that is"):
                store.take(UID, changed, hashed, 1)
    assert [event["t"] for event in store.events(UID)] == [one["t"] for one, _ in played[:5]]


def test_a_break_in_the_chain_is_refused(open_store: OpenStore, played: list[Record]) -> None:
    store = open_store()
    take_all(store, played[:5])
    forged = copy.deepcopy(played[5][0])
    forged["t"] += 1
    for changed, link in ((forged, played[5][1]), (played[5][0], "0" * 32), (played[5][0], "")):
        with pytest.raises(StoreError, match="table U1: event 6 does not follow the one before it: its hash differs"):
            store.take(UID, changed, link, 1)
    assert store.last(UID)[0] == 5
    assert all(take_all(store, played[5:]))


def test_a_journal_begun_anew_goes_on(open_store: OpenStore, played: list[Record]) -> None:
    store = open_store()
    take_all(store, played)
    last = len(played)
    anew = chained(
        [record(last + 7, "restart", why="damage", state=ANEW), record(last + 8, "opened", round=5, shaker=1)]
    )
    assert take_all(store, anew, first_event=last + 7) == [True, True]
    # The same without a gap, and a first event that the host did not hear of.
    more = chained([record(last + 9, "restart", why="again", state=ANEW)])
    assert take_all(store, more) == [True]
    with pytest.raises(StoreError, match="does not follow"):
        store.take(UID, record(last + 10, "restart", why="x", state=ANEW), "0" * 32, 1)


def test_a_round_is_opened_and_settled_once(open_store: OpenStore, played: list[Record]) -> None:
    store = open_store()
    settled = next(one["d"] for one, _ in played if one["k"] == "settled")
    records = [
        record(1, "opened", round=1, shaker=1),
        record(2, "settled", **settled),
        record(3, "settled", **{**settled, "dice": [6, 6, 6]}),
    ]
    chain_of = chained(records)
    take_all(store, chain_of[:2])
    with pytest.raises(StoreError, match=r"table U1: round 1 is settled .*event 3"):
        store.take(UID, *chain_of[2], 1)
    again = chained([*records[:2], record(3, "opened", round=1, shaker=2)])
    with pytest.raises(StoreError, match="table U1: round 1 is opened a second time by event 3"):
        store.take(UID, *again[2], 1)
    assert store.last(UID) == (2, 1)
    assert store.round(1)["status"] == "settled"


def test_several_tables_may_have_the_same_round(open_store: OpenStore, played: list[Record]) -> None:
    store = open_store()
    for uid in ("U1", "U2", "U3"):
        take_all(store, played, uid)
    assert store.tables() == ["U1", "U2", "U3"]
    with pytest.raises(StoreError, match="round 2 is there for several tables; name one with --table: U1, U2, U3"):
        store.round(2)
    assert store.round(2, "U2")["table"] == "U2"
    assert len(store.rounds(last=100)) == 12
    assert len(store.rounds("U3")) == 4
    with pytest.raises(StoreError, match="there is no round 9; there are rounds 1 to 4"):
        store.round(9)


# A settled record's data of a round without wagers.
RESULT: dict[str, Any] = {
    "shaker": 1,
    "dice": [1, 2, 3],
    "eye": 0,
    "total": 6,
    "net": 0,
    "manual": None,
    "rows": [],
    "before": 0,
    "level": 0,
    "streak": {"count": 0, "parts": [], "gone": []},
}
SET = {"high": ["6-6", "5-5"], "low": ["4-4", "1-1"]}
HANDS = {
    "start": 4,
    "deal": [4, 5],
    "action": [4],
    "bank": SET,
    "players": [{"position": 3, "stake": 100, "result": "win", "net": 100, "commission": 0, **SET}],
}


def test_a_tables_newest_rounds_are_those_with_the_highest_numbers(open_store: OpenStore, played: list[Record]) -> None:
    now = ["2026-05-17T20:00:00.000+00:00"]
    store = open_store(clock=lambda: now[0])
    half = next(index for index, (one, _link) in enumerate(played) if one["k"] == "opened" and one["d"]["round"] == 3)
    take_all(store, played[:half])
    now[0] = "2026-05-17T17:00:00.000+00:00"
    take_all(store, played[half:])
    assert store.latest(UID) == "2026-05-17T20:00:00.000+00:00"
    assert [one["round"] for one in store.rounds(UID, 2)] == [3, 4]
    assert [one["round"] for one in store.rounds(last=2)] == [3, 4]
    assert [one.number for one in store.rolls(last=2)] == [2, 3]
    early, late = Search(UID, since="2026-05-17T18:00:00.000+00:00"), Search(UID, until="2026-05-17T18:00:00.000+00:00")
    assert [(one["round"], one["utc"][11:13]) for one in store.outside(early)] == [(3, "17"), (4, "17")]
    assert [(one["round"], one["utc"][11:13]) for one in store.outside(late)] == [(1, "20"), (2, "20")]
    assert store.outside(Search(UID)) == store.outside(Search(UID, since="2027")) == []
    # Of several tables the numbers say nothing: these are sorted by the time.
    take_all(store, played, "U2")
    assert [(one["table"], one["round"]) for one in store.rounds(last=3)] == [("U2", 4), ("U1", 1), ("U1", 2)]


def test_tile_hands_are_kept_once(open_store: OpenStore, played: list[Record]) -> None:
    store = open_store()
    with pytest.raises(StoreError, match="round 1 is not stored"):
        store.add_tiles(UID, 1, {})
    with pytest.raises(StoreError, match="there is no round 1; none is stored"):
        store.round(1)
    take_all(store, played)
    store.add_tiles(UID, 1, HANDS)
    with pytest.raises(StoreError, match="round 1 has its tile hands already"):
        store.add_tiles(UID, 1, {"start": 5})
    assert store.round(1)["tiles"] == HANDS


@pytest.mark.parametrize(
    "change", [{"players": None}, {"players": [{"ten": 1}]}, {"players": [{"net": "1"}]}, {"bank": None}]
)
def test_tile_hands_that_are_damaged_are_told(
    open_store: OpenStore, played: list[Record], change: dict[str, Any]
) -> None:
    store = open_store()
    take_all(store, played)
    hands = {**HANDS, **change}
    store.add_tiles(UID, 1, {key: value for key, value in hands.items() if value is not None})
    with pytest.raises(StoreError, match="round 1 of table U1 is damaged in the database; restore a copy"):
        store.round(1)


def test_utc_is_the_hosts(open_store: OpenStore) -> None:
    store = open_store(clock=iter([f"2026-01-0{day}T00:00:00.000+00:00" for day in range(1, 10)]).__next__)
    # A device year is never believed, whatever a record says of one.
    take_all(store, chained([record(1, "opened", round=1, shaker=1, utc="2021-01-01"), record(2, "boot")]))
    assert rows(store.path, "SELECT id, utc FROM events ORDER BY id") == [
        (1, "2026-01-01T00:00:00.000+00:00"),
        (2, "2026-01-02T00:00:00.000+00:00"),
    ]
    assert store.round(1)["utc"] == "2026-01-01T00:00:00.000+00:00"
    assert store_module.utc_now() > "2026"


@pytest.mark.parametrize("kinds", [("settled", "void"), ("void", "settled")])
def test_a_round_that_is_over_stays_as_it_is(open_store: OpenStore, kinds: tuple[str, str]) -> None:
    data: dict[str, dict[str, Any]] = {
        "void": {"reason": "power_loss", "shakes": 1, "over": True},
        "settled": RESULT,
    }
    records = [record(1, "opened", round=1, shaker=1)]
    records += [record(number, kind, round=1, **data[kind]) for number, kind in enumerate(kinds, 2)]
    store = open_store()
    taken = chained(records)
    take_all(store, taken[:2])
    with pytest.raises(StoreError, match="round 1"):
        store.take(UID, *taken[2], 1)
    assert store.round(1)["status"] == kinds[0]


@pytest.mark.parametrize(
    "bad",
    [
        record(1, "opened"),
        record(1, "void", round=1),
        record(1, "settled", round=1),
        record(2**70, "boot"),
        record(1, "closed", round="\ud800"),
        record(1, "closed", round="1"),
        record(1, "opened", round="1", shaker=1),
        record(1, "opened", round=1, shaker="1"),
        record(1, "opened", round=1, shaker=1.5),
        record(1, "\ud800"),
        dict(record(1, "boot"), b="1"),
        dict(record(1, "boot"), id=True),
        record(1, "dice", serial="\ud800", issued="2026-01-01T00:00:00Z", hash="0" * 64),
    ],
)
def test_a_record_of_the_wrong_shape_is_refused(open_store: OpenStore, bad: dict[str, Any]) -> None:
    store = open_store()
    with pytest.raises(StoreError, match="table U1: "):
        store.take(UID, *chained([bad])[0], 1)
    assert store.last(UID) == (0, 0)


@pytest.mark.parametrize("missing", ["id", "k", "d", "b", "t"])
def test_a_record_without_a_part_is_refused(open_store: OpenStore, missing: str) -> None:
    whole = record(1, "boot")
    del whole[missing]
    with pytest.raises(StoreError, match=f"table U1: a record without '{missing}'"):
        open_store().take(UID, whole, "0" * 32, 1)


# Two programs at once


def test_another_program_stores_it_between_our_look_and_our_writing(
    open_store: OpenStore, played: list[Record]
) -> None:
    theirs = open_store()
    one, link = played[0]

    def meanwhile() -> str:
        theirs.take(UID, one, link, 1)
        return "2026-01-01"

    assert open_store(clock=meanwhile).take(UID, one, link, 1)
    assert [event["id"] for event in theirs.events(UID)] == [1]


def test_another_program_stores_something_else_meanwhile(open_store: OpenStore) -> None:
    theirs = open_store()
    [one], [other] = chained([record(1, "boot", cause="power")]), chained([record(1, "boot", cause="watchdog")])

    def meanwhile() -> str:
        theirs.take(UID, *one, 1)
        return "2026-01-01"

    with pytest.raises(StoreError, match="table U1: event 1 differs from the one that is stored in"):
        open_store(clock=meanwhile).take(UID, *other, 1)


WRITER = """
import json, sys
from pathlib import Path
from host_tools.store import Store
records = json.loads(Path(sys.argv[2]).read_text())
store = Store(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for record, link in records:
    while not store.take("U1", record, link, 1):
        pass
    print(record["id"], flush=True)
"""


@pytest.fixture
def writer(path: Path, tmp_path: Path) -> Iterator[Callable[[list[Record]], subprocess.Popen[str]]]:
    """writer(records): a process that waits for a line, then stores them and prints each id that is durable."""
    processes = []

    def start(records: list[Record]) -> subprocess.Popen[str]:
        file = tmp_path / "records.json"
        file.write_text(dumps(records))
        command = [sys.executable, "-c", WRITER, str(path), str(file)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


Writer = Callable[[list[Record]], "subprocess.Popen[str]"]


def many(rounds: int) -> list[Record]:
    records = []
    for number in range(1, rounds + 1):
        records.append(record(2 * number - 1, "opened", round=number, shaker=1))
        records.append(record(2 * number, "void", round=number, reason="supervisor", shakes=0, over=True))
    return chained(records)


def test_two_processes_write_the_same_events_at_once(path: Path, writer: Writer, open_store: OpenStore) -> None:
    records = many(40)
    both = [writer(records), writer(records)]
    for one in both:
        assert one.stdin
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in both:
        out, _ = one.communicate(timeout=60)
        assert one.returncode == 0
        assert out.split() == [str(number) for number in range(1, 81)]
    store = open_store()
    assert [event["id"] for event in store.events(UID)] == list(range(1, 81))
    assert [one["round"] for one in store.rounds(UID, 100)] == list(range(1, 41))


def check_long_numbers(store: Store) -> None:
    """After 24.9 days a table's milliseconds, and at the highest stakes a round's net, have more than 31 bits."""
    settled = {**RESULT, "dice": [3, 3, 3], "total": 9, "net": -(2**40)}
    records = [record(1, "opened", round=1, shaker=1), dict(record(2, "settled", round=1, **settled), t=2**31)]
    assert take_all(store, chained(records)) == [True, True]
    assert store.round(1, UID)["result"]["net"] == -(2**40)
    assert [event["t"] for event in store.events(UID)] == [10, 2**31]


def test_a_table_that_runs_for_months_and_the_highest_stakes(open_store: OpenStore) -> None:
    check_long_numbers(open_store())


def test_tables_of_one_process_wait_for_one_another(path: Path) -> None:
    # Without patience whoever met another's lock would be refused.
    store = Store(path, patience_s=0)
    records = many(25)

    def play(number: int) -> list[bool]:
        return [store.take(f"U{number}", *one, 1) for one in records]

    with ThreadPoolExecutor(8) as tables:
        assert list(tables.map(play, range(8))) == [[True] * len(records)] * 8
    store.close()


def test_killed_in_the_middle_of_a_hundred(path: Path, writer: Writer, open_store: OpenStore) -> None:
    records = many(50)
    for stop_after in (1, 10, 33, 60):
        process = writer(records)
        assert process.stdin
        assert process.stdout
        process.stdin.write("go\n")
        process.stdin.flush()
        durable = 0
        while durable < stop_after:
            durable = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        durable = max([durable, *map(int, process.communicate()[0].split())])
        store = open_store()
        ids = [event["id"] for event in store.events(UID)]
        assert ids == list(range(1, len(ids) + 1))
        assert durable <= len(ids) <= durable + 1
        assert [one["round"] for one in store.rounds(UID, 100)] == list(range(1, (len(ids) + 1) // 2 + 1))
    assert all(take_all(open_store(), records))
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


# Files that are no databases, and folders that are none


@pytest.mark.parametrize("content", [os.urandom(5000), b"hello", b"SQLite format 3\0" + b"\xff" * 3000])
def test_a_file_that_is_no_database(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"rounds\.db: this is not a sound database .*; move it away"):
        Store(path)
    assert path.read_bytes() == content


def test_a_truncated_database(path: Path, open_store: OpenStore, played: list[Record]) -> None:
    store = open_store()
    take_all(store, played)
    store.close()
    whole = path.read_bytes()
    assert not path.with_name("rounds.db-wal").exists()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreError, match=r"rounds\.db: "):
        take_all(Store(path), played)


def test_a_database_of_another_program(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE events (number INTEGER); CREATE TABLE rounds (name TEXT);")
    connection.close()
    with pytest.raises(StoreError, match=r"rounds\.db: "):
        Store(path).last(UID)


def test_a_locked_database(
    path: Path, open_store: OpenStore, played: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    def impatient(connection: Any, record: object) -> None:
        pragmas(connection, record)
        connection.execute("PRAGMA busy_timeout=20")

    pragmas = store_module._pragmas
    monkeypatch.setattr(store_module, "_pragmas", impatient)
    store = open_store()
    take_all(store, played[:1])
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match=r"rounds\.db: another program has locked it; try again when it has finished"):
        take_all(store, played[1:])
    connection.execute("ROLLBACK")
    connection.close()
    assert store.last(UID)[0] == 1
    assert all(take_all(store, played))


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write everywhere")
    for path in (folder / "rounds.db", folder / "deeper" / "rounds.db"):
        with pytest.raises(StoreError, match=rf"{path.name}: "):
            Store(path)


def test_a_parent_is_made_or_named(tmp_path: Path) -> None:
    Store(tmp_path / "a" / "b" / "rounds.db").close()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "rounds.db", tmp_path):
        with pytest.raises(StoreError, match=str(path)):
            Store(path)


def test_a_record_that_must_exist(path: Path) -> None:
    with pytest.raises(StoreError, match=r"rounds\.db: there is no such database yet; play a round first"):
        Store(path, must_exist=True)
    assert not path.exists()


def test_where_the_record_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGONEYE_DB", "/named/rounds.db")
    assert default_path() == Path("/named/rounds.db")
    monkeypatch.delenv("DRAGONEYE_DB")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_path() == Path("/data/dragoneye/rounds.db")
