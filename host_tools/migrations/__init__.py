"""The record's schema, step by step (Alembic): what an earlier version of this program made is brought up to date.

Each step is a file of `versions`. What was made before there were steps has no `alembic_version`; it is step 0001.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

# The newest step; a test holds it against `versions`.
HEAD = "0004"
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
