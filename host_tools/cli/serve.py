"""`tablectl serve`: the table's display and the dealer's console in a browser."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import click

from dragoneye.errors import BadInput
from dragoneye.rules.packs import NAMES, Pack, load
from host_tools import provision
from host_tools.cli.common import db_option, open_store
from host_tools.cli.demo import UID, virtual_table
from host_tools.i18n import _
from host_tools.web.app import Web
from host_tools.web.hub import Hub
from host_tools.web.server import Server, is_loopback, listen


@contextlib.contextmanager
def _port_of(port: str | None, virtual: bool, pack: Pack | None, seed: int) -> Iterator[str]:
    if (port is None) == (not virtual):
        raise BadInput(_("give either --port PORT or --virtual"))
    if port is not None:
        yield port
        return
    with virtual_table(pack or load("nj"), seed, UID, provision.QUICK) as table:
        yield table.port


@contextlib.contextmanager
def _told_to_end() -> Iterator[None]:
    """Ctrl-C ends what is served; after a SIGTERM, which the server hands on, the program ends in order."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


@click.command()
@click.option("--port", help="Serial port of the table; see `tablectl ports`.")
@click.option("--virtual", is_flag=True, help="A virtual table instead of one on a port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--http", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on.")
@click.option("--pack", help=f"Rule pack, where it is none of {', '.join(NAMES)}: the path of your own .json file.")
@click.option("--seed", default=2026, show_default=True, type=click.IntRange(0, 2**30 - 1), help="Of a virtual table.")
@db_option
def serve(
    port: str | None, virtual: bool, host: str, http: int, pack: str | None, seed: int, db: Path | str | None
) -> None:
    """Serve the table's display and the dealer's console to browsers, and keep the table's record, until Ctrl-C."""
    chosen = load(pack) if pack is not None else None
    with _port_of(port, virtual, chosen, seed) as name, contextlib.closing(open_store(db)) as store:
        listener = listen(host, http)
        hub = Hub(name, store, chosen)
        try:
            hub.start()
            if not is_loopback(host):
                click.echo(
                    _("warning: {host} can be reached from other machines, and nothing is encrypted").format(host=host),
                    err=True,
                )
            address, number = listener.getsockname()[:2]
            shown = f"[{address}]" if ":" in address else address
            click.echo(_("display: http://{host}:{port}/").format(host=shown, port=number))
            with _told_to_end():
                Server(Web(hub, frozenset({host.lower()}))).run(sockets=[listener])
        finally:
            hub.stop()
            listener.close()
