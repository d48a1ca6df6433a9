"""The record's schema, step by step (Alembic): what an earlier version of this program made is brought up to date.

Each step is a file of `versions`. What was made before there were steps has no `alembic_version`; it is step 0001.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, inspect, text

# The newest step; a test holds it against `versions`.
HEAD = "0005"
_FIRST = "0001"

# The tables of step 0001 with their columns: how one that was made before the steps is known.
_BEFORE = {
    "events": {"uid", "id", "kind", "boot", "ticks", "round", "utc", "body", "link"},
    "rounds": {
        *("uid", "number", "event", "utc", "status", "shaker", "voids", "dice", "eye", "total", "net", "manual"),
        *("result", "tiles"),
    },
}


class Foreign(Exception):
    """The database is not one of this program's, or of a newer version of it; the text says why."""


def revision(connection: Connection) -> str | None:
    """The step that the database is at, or None before the steps."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def upgrade(engine: Engine) -> None:
    """Bring the database to HEAD, as a whole or not at all; an empty one is filled.

    Raises Foreign, and what the database raises.
    """
    with engine.connect() as connection:
        # Without Alembic, which takes its time to load: nearly always there is nothing to do.
        if revision(connection) == HEAD:
            return
    if engine.dialect.name == "sqlite":
        # sqlite3 begins no transaction for a table by itself; and two programs may begin at once.
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                _run(connection)
            except BaseException:
                connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")
    else:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(7229014)"))
            _run(connection)


def _run(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    if revision(connection) is None:
        there = set(inspect(connection).get_table_names())
        if there & set(_BEFORE):
            _check_before(connection)
            command.stamp(config, _FIRST)
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise Foreign(str(error)) from None


def _check_before(connection: Connection) -> None:
    for table, columns in _BEFORE.items():
        found = (
            {column["name"] for column in inspect(connection).get_columns(table)}
            if (inspect(connection).has_table(table))
            else set()
        )
        if found != columns:
            raise Foreign(f"table {table}")


@cache
def _made() -> dict[str, object]:
    """What all steps make of an empty database."""
    engine = create_engine("sqlite://")
    try:
        upgrade(engine)
        with engine.connect() as connection:
            return _parts(connection)
    finally:
        engine.dispose()


def _parts(connection: Connection) -> dict[str, object]:
    """An SQLite database's schema: its columns, indexes, references, and everything else by kind and name."""
    found: dict[str, object] = {}
    for kind, name in connection.exec_driver_sql("SELECT type, name FROM sqlite_master").all():
        # What SQLite keeps for itself: statistics of ANALYZE.
        if kind == "table" and name.startswith("sqlite_stat"):
            continue
        found[f"{kind} {name}"] = True
        if kind != "table":
            continue
        quoted = '"' + name.replace('"', '""') + '"'
        for _place, column, *rest in connection.exec_driver_sql(f"PRAGMA table_xinfo({quoted})").all():
            found[f"column {name}.{column}"] = rest
        for _place, index, *rest in connection.exec_driver_sql(f"PRAGMA index_list({quoted})").all():
            columns = connection.exec_driver_sql('PRAGMA index_xinfo("' + index.replace('"', '""') + '")').all()
            found[f"index {index}"] = [rest, [list(column) for column in columns]]
        references = connection.exec_driver_sql(f"PRAGMA foreign_key_list({quoted})").all()
        found[f"references of {name}"] = sorted([*row][1:] for row in references)
    return found


def differences(connection: Connection) -> list[str]:
    """What of an SQLite database's schema is not as the steps make it: "trigger x", "column rounds.net", in order."""
    made, found = _made(), _parts(connection)
    return sorted(name for name in made.keys() | found.keys() if made.get(name) != found.get(name))
