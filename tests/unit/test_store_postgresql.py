"""The record in PostgreSQL: what test_store asks of SQLite, asked of a real server."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from dragoneye.rules.packs import load
from host_tools import migrations
from host_tools.audit import audit
from host_tools.store import Search, Store, StoreError
from tests import postgresql
from tests.synthetic import history
from tests.unit.conftest import Tablectl
from tests.unit.tables import Desk
from tests.unit.test_migrations import BEFORE, ROUNDS_BEFORE, rows_of
from tests.unit.test_store import UID, WRITER, Record, check_long_numbers, many, take_all, told


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server that runs as long as these tests."""
    pytest.importorskip("psycopg")
    try:
        with postgresql.server() as url:
            yield url
    except RuntimeError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty database."""
    name = f"t{abs(hash(request.node.nodeid))}"
    engine = create_engine(make_url(server).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield server.replace("/postgres?", f"/{name}?")
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


@pytest.fixture
def played(tmp_path: Path) -> list[Record]:
    desk = Desk(tmp_path)
    desk.hello()
    for dice in ([1, 2, 3], [4, 4, 4], [6, 5, 6]):
        desk.play(dice, {2: {"match": 500}})
        desk.tell("lid", False)
    return told(desk)


def test_rounds_follow_and_nothing_is_doubled(url: str, played: list[Record]) -> None:
    store = Store(url)
    for _time in range(2):
        assert all(take_all(store, played))
    assert [one["status"] for one in store.rounds(UID)] == ["settled"] * 3
    assert store.last(UID) == (len(played), 3)
    assert [one["round"] for one in store.stream(Search(uid=UID))] == [1, 2, 3]
    assert audit(store, [load("nj")]).findings == []
    store.close()


def test_a_table_that_runs_for_months_and_the_highest_stakes(url: str) -> None:
    store = Store(url)
    check_long_numbers(store)
    store.close()


def test_what_differs_is_refused(url: str, played: list[Record]) -> None:
    store = Store(url)
    take_all(store, played[:5])
    forged = copy.deepcopy(played[4][0])
    forged["t"] += 1
    with pytest.raises(StoreError, match="table U1: event 5 differs from the one that is stored in postgresql"):
        store.take(UID, forged, played[4][1], 1)
    with pytest.raises(StoreError, match="table U1: event 1180591620717411303424 is not as it should be"):
        store.take(UID, dict(forged, id=2**70), "0" * 32, 1)
    assert store.last(UID)[0] == 5
    store.close()


def test_a_value_that_does_not_fit_is_named(url: str, played: list[Record]) -> None:
    store = Store(url)
    with pytest.raises(StoreError, match="a value does not fit"):
        store.take("x" * 40, *played[0], 1)
    assert all(take_all(store, played))
    store.close()


def test_who_has_locked_it_is_waited_for_and_no_longer(url: str, played: list[Record]) -> None:
    store = Store(url, patience_s=0.05)
    take_all(store, played[:3])
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(text("LOCK TABLE events IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(StoreError, match="another program has locked it; try again when it has finished"):
            take_all(store, played)
    assert all(take_all(store, played))
    engine.dispose()
    store.close()


def test_two_processes_write_the_same_events_at_once(url: str, tmp_path: Path) -> None:
    records = many(25)
    (tmp_path / "records.json").write_text(json.dumps(records))
    code = WRITER.replace("Path(sys.argv[1])", "sys.argv[1]")
    command = [sys.executable, "-c", code, url, str(tmp_path / "records.json")]
    # Both make the tables, too: one of them waits for the other.
    both = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _one in range(2)]
    for one in both:
        out, _err = one.communicate("go\n", timeout=120)
        assert one.returncode == 0
        assert out.split() == ["ready", *map(str, range(1, 51))]
    store = Store(url)
    assert [event["id"] for event in store.events(UID)] == list(range(1, 51))
    assert [one["round"] for one in store.rounds(UID, 100)] == list(range(1, 26))
    store.close()


def test_killed_in_the_middle_again_and_again(url: str, tmp_path: Path) -> None:
    """kill -9 of the program that writes: what it said is durable is there, once, and the next one goes on."""
    records = many(60)
    (tmp_path / "records.json").write_text(json.dumps(records))
    code = WRITER.replace("Path(sys.argv[1])", "sys.argv[1]")
    command = [sys.executable, "-c", code, url, str(tmp_path / "records.json")]
    for after in (3, 17, 40, 80):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        said = [process.stdout.readline() for _line in range(after + 1)]
        process.kill()
        process.wait(30)
        store = Store(url)
        ids = [event["id"] for event in store.events(UID)]
        assert ids == list(range(1, len(ids) + 1))
        assert len(ids) >= int(said[-1])
        assert store.head(UID)["event"] == len(ids)  # type: ignore[index]
        store.close()
    store = Store(url)
    assert all(take_all(store, records))
    assert [one["round"] for one in store.rounds(UID, 100)] == list(range(1, 61))
    store.close()


def test_a_record_of_before_the_migrations(url: str) -> None:
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.exec_driver_sql(BEFORE.read_text().partition(";\n")[2].replace("COMMIT;", "").replace("%", "%%"))
    store = Store(url)
    assert [(one["round"], one["dice_set"]) for one in store.rounds(UID, 100)] == ROUNDS_BEFORE
    assert audit(store, [load("nj")]).findings == []
    store.close()
    with engine.connect() as connection:
        assert migrations.revision(connection) == migrations.HEAD
    engine.dispose()
    assert rows_of(url)[0] > 0


def test_pruned_rounds_are_gone_and_noted(url: str) -> None:
    now = [""]
    store = Store(url, clock=lambda: now[0])
    for now[0], record, link in history(12, set_rounds=5):
        assert store.take(UID, record, link, 1)
    now[0] = "2026-06-01T00:00:00.000+00:00"
    [removed] = store.prune(90)
    assert (removed["first"], removed["rounds"]) == (1, 11)
    assert [one["round"] for one in store.rounds(UID, 100)] == [12]
    assert audit(store, [load("nj")]).findings == []
    store.close()


def test_the_command_line_takes_a_url(url: str, tablectl: Tablectl, tmp_path: Path) -> None:
    store = Store(url)
    for _utc, record, link in history(5):
        store.take(UID, record, link, 1)
    store.close()
    assert [row["round"] for row in tablectl("rounds", "--db", url, "--json").rows] == [1, 2, 3, 4, 5]
    assert tablectl("audit", "--db", url).code == 0
    target = tmp_path / "copy"
    assert "pg_dump --format=custom --file=" in tablectl("backup", str(target), "--db", url).refusal()
    assert not target.exists()


def test_a_server_that_is_not_there(tablectl: Tablectl, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    said = tablectl("rounds", "--db", f"postgresql://me:secret@/x?host={tmp_path}").refusal()
    assert said.startswith("postgresql+psycopg://me:***@/x")
    assert "secret" not in said
