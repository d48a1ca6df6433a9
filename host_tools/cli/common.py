"""Options and helpers that several commands about tables share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from host_tools.store import Store, default_path

Function = TypeVar("Function", bound=Callable[..., Any])


def db_option(function: Function) -> Function:
    """Add `--db` as the argument `db`, a path or None for the default."""
    return click.option(
        "--db",
        type=click.Path(dir_okay=False, path_type=Path),
        help="The record's file (default: $DRAGONEYE_DB, or rounds.db in your data folder).",
    )(function)


def open_store(db: Path | None, must_exist: bool = False) -> Store:
    """The record at `db` or its default place."""
    return Store(db or default_path(), must_exist=must_exist)


def void_reasons(store: Store, uid: str, number: int) -> list[str]:
    """Why rolls of a round were void, in order."""
    return [record["d"]["reason"] for record in store.events(uid, number) if record["k"] == "void"]
