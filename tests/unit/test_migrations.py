"""The record's schema: what earlier versions made is taken over with nothing lost, what others made is refused."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, make_url, text

from dragoneye.rules.packs import load
from host_tools import migrations
from host_tools.audit import audit
from host_tools.store import Base, Store, StoreError

# Made by the version before there were migrations: dice changed twice, once in the middle of a round.
BEFORE = Path(__file__).parents[1] / "golden" / "record-before-migrations.sql"
ROUNDS_BEFORE = [(1, 1), (2, 1), (3, 1), (4, 2), (5, 3), (6, 3), (7, 3)]
UID = "U1"


def make(path: Path, script: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def content(path: Path, names: str, table: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT {names} FROM {table} ORDER BY 1, 2").fetchall()


def rows_of(url: str) -> tuple[int, int]:
    """How many events and rounds there are."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        counts = [connection.scalar(text(f"SELECT count(*) FROM {name}")) for name in ("events", "rounds")]
    engine.dispose()
    return int(counts[0] or 0), int(counts[1] or 0)


EVENT_COLUMNS = "uid, id, kind, boot, ticks, round, utc, body, link"
ROUND_COLUMNS = (
    "uid, number, event, utc, status, shaker, voids, dice, eye, total, net, manual, result, tiles"  # as they were
)


def test_a_record_of_before_the_migrations_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    make(path, BEFORE.read_text())
    before = content(path, "*", "events"), content(path, "*", "rounds")
    store = Store(path)
    assert [(one["round"], one["dice_set"]) for one in store.rounds(UID, 100)] == ROUNDS_BEFORE
    assert [(one["dice_set"], one["event"]) for one in store.dice_sets(UID)] == [(1, 0), (2, 20), (3, 29)]
    assert audit(store, [load("nj")]).as_dict()["findings"] == []
    newest = before[0][-1]
    assert store.head(UID) == {
        "table": UID,
        "event": newest[1],
        "head": f"{newest[1]}:{newest[8]}",
        "utc": newest[6],
        "tag": None,
    }
    store.close()
    assert (content(path, EVENT_COLUMNS, "events"), content(path, ROUND_COLUMNS, "rounds")) == before
    # A second time there is nothing to do.
    Store(path).close()
    assert content(path, EVENT_COLUMNS, "events") == before[0]


def test_a_new_record_has_the_tables_that_the_code_has(tmp_path: Path) -> None:
    paths = [tmp_path / "new.db", tmp_path / "old.db"]
    make(paths[1], BEFORE.read_text())
    for path in paths:
        Store(path).close()
        engine = create_engine(f"sqlite:///{path}")
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, Base.metadata) == []
            assert migrations.revision(connection) == migrations.HEAD
        engine.dispose()


def test_head_is_the_newest_step() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [migrations.HEAD]


def test_a_step_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    make(path, BEFORE.read_text() + "CREATE TABLE prunings (mine TEXT);")
    before = content(path, "name, sql", "sqlite_master"), content(path, "*", "events")
    with pytest.raises(StoreError, match=r"old\.db: "):
        Store(path)
    assert (content(path, "name, sql", "sqlite_master"), content(path, "*", "events")) == before


def test_a_damaged_event_does_not_keep_the_record_shut(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    make(path, BEFORE.read_text().replace('{"id":20,', "{{", 1))
    store = Store(path)
    assert [one["dice_set"] for one in store.rounds(UID, 100)] == [1, 1, 1, 1, 2, 2, 2]
    assert [(one.event, one.what[:21]) for one in audit(store, [load("nj")]).findings][:2] == [
        (20, "its hash does not fol"),
        (20, "it is not as an event"),
    ]
    store.close()


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE events (number INTEGER);",
        "CREATE TABLE rounds (name TEXT);",
        "CREATE TABLE alembic_version (version_num VARCHAR(32)); INSERT INTO alembic_version VALUES ('9999');",
    ],
)
def test_a_database_of_another_program_or_a_newer_version_is_left_alone(tmp_path: Path, script: str) -> None:
    path = tmp_path / "other.db"
    make(path, script)
    before = content(path, "name, sql", "sqlite_master")
    with pytest.raises(StoreError, match=r"other\.db: another version of this program has made it; name another file"):
        Store(path)
    assert content(path, "name, sql", "sqlite_master") == before


OPENER = "import sys; from pathlib import Path; from host_tools.store import Store; Store(Path(sys.argv[1])).close()"


def test_several_programs_open_an_old_record_at_once(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    make(path, BEFORE.read_text())
    processes = [subprocess.Popen([sys.executable, "-c", OPENER, str(path)]) for _one in range(3)]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    assert len(content(path, "*", "dice_sets")) == 2
    assert content(path, "version_num, 1", "alembic_version") == [(migrations.HEAD, 1)]
