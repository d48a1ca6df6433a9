"""Options and helpers that several commands about tables share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from boards.virtual.client import Control, TableError
from host_tools.cli import call
from host_tools.cli.output import console, print_json
from host_tools.dealer import Dealer, Plan, deal_tiles
from host_tools.device import Device
from host_tools.link import Message
from host_tools.store import Store, default_place

Function = TypeVar("Function", bound=Callable[..., Any])


class Place(click.Path):
    """A database's URL as it is, anything else as the path of a file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and "://" in value:
            return value
        return super().convert(value, param, ctx)


def port_option(function: Function) -> Function:
    """Add `--port` as the argument `port`; a table must be there."""
    return click.option("--port", required=True, help="Serial port of the table; see `tablectl ports`.")(function)


def db_option(function: Function) -> Function:
    """Add `--db` as the argument `db`: a path, a URL, or None for the default."""
    return click.option(
        "--db",
        type=Place(dir_okay=False, path_type=Path),
        help="The record's file, or a URL of PostgreSQL (default: $DRAGONEYE_DB, or rounds.db in your data folder).",
    )(function)


def open_store(db: Path | str | None, must_exist: bool = False, patience_s: float | None = None) -> Store:
    """The record at `db` or its default place; it is closed when the running command ends."""
    store = Store(db or default_place(), must_exist=must_exist, patience_s=patience_s)
    return click.get_current_context().with_resource(contextlib.closing(store))


@contextlib.contextmanager
def on_port(
    port: str, store: Store, watch: Callable[[str, Message], None] = lambda kind, data: None
) -> Iterator[Device]:
    """The table on a port, whose records are kept meanwhile; `watch` as Device takes it."""
    with contextlib.closing(Device(port, store, watch)) as device:
        yield device


@contextlib.contextmanager
def control_of(port: str) -> Iterator[Control | None]:
    """What steers the virtual table whose port this is, None where no virtual table answers beside it."""
    folder = Path(port).parent
    control = None
    if (folder / "control").exists():
        with contextlib.suppress(TableError):
            control = Control(folder)
    try:
        yield control
    finally:
        if control is not None:
            control.close()


def void_reasons(store: Store, uid: str, number: int) -> list[str]:
    """Why rolls of a round were void, in order."""
    return store.void_reasons(uid, [number]).get(number, [])


def play_one(dealer: Dealer, store: Store, plan: Plan, as_json: bool, with_tiles: bool) -> dict[str, Any]:
    """Play one round, store and tell it; the stored round. `with_tiles` deals the plan's tile hands as well."""
    device = dealer.device
    number = dealer.play(plan)
    dealer.surely(device.wait_stored)
    stored = store.round(number, device.uid)
    if with_tiles and stored["status"] == "settled":
        store.add_tiles(device.uid, number, deal_tiles(plan, stored["result"]["total"], dealer.pack))
        stored = store.round(number, device.uid)
    voids = void_reasons(store, device.uid, number)
    if as_json:
        print_json(call.as_json(stored, voids))
    else:
        call.print_round(console(), stored, voids)
    return stored
