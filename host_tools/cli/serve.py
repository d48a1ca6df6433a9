"""`tablectl serve`: the table's display and the dealer's console in a browser."""

from __future__ import annotations

import contextlib
import secrets
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

from boards.virtual.client import TableError
from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack, load
from host_tools import provision
from host_tools.cli.common import control_of, db_option, open_store
from host_tools.cli.demo import UID, virtual_table
from host_tools.cli.output import json_option, print_json
from host_tools.cli.tiles import house_way_option
from host_tools.i18n import _
from host_tools.rules import clauses, houseway
from host_tools.store import Store, default_path
from host_tools.web.access import ROLES, Pins, is_loopback, role_name
from host_tools.web.app import Web
from host_tools.web.console import Console
from host_tools.web.hub import PATIENCE_S, Hub
from host_tools.web.server import Server, listen, tls_context


@contextlib.contextmanager
def _table_of(
    port: str | None, virtual: bool, pack: Pack | None, seed: int
) -> Iterator[tuple[str, Callable[[str], None] | None]]:
    """The table's port, and what moves its lid where it is a virtual one."""
    if (port is None) == (not virtual):
        raise BadInput(_("give either --port PORT or --virtual"))
    if port is not None:
        yield port, _lid_beside(port)
        return
    with virtual_table(pack or load("nj"), seed, UID, provision.QUICK) as table:
        yield table.port, _lid_beside(table.port)


def _lid_beside(port: str) -> Callable[[str], None] | None:
    """What moves the lid of the virtual table whose port this is; None at a real one."""
    with control_of(port) as control:
        if control is None:
            return None

    def move(to: str) -> None:
        with control_of(port) as control:
            if control is None:
                raise BadInput(_("{port}: the virtual table does not answer").format(port=port))
            try:
                control.do("lid", to=to)
            except TableError as error:
                raise BadInput(str(error)) from None

    return move


def _set_pin(pins: Pins, role: str, as_json: bool) -> None:
    words = _("new PIN of the {role}").format(role=role_name(role))
    if sys.stdin.isatty():
        pin = click.prompt(words, hide_input=True, confirmation_prompt=True, err=True)
    else:
        pin = sys.stdin.readline().rstrip("\r\n")
    pins.set(role, pin)
    if as_json:
        print_json({"role": role, "file": str(pins.path)})
        return
    click.echo(_("{path}: the {role}'s PIN is set").format(path=pins.path, role=role_name(role)))


def _made_up(folder: Path) -> tuple[Pins, dict[str, str]]:
    """PINs for a virtual table to try things out, and what they are by role."""
    pins = Pins(folder / "pins.json")
    told = {role: f"{secrets.randbelow(10**6):06d}" for role in ROLES}
    for role, pin in told.items():
        pins.set(role, pin)
    return pins, told


@click.command()
@click.option("--port", help="Serial port of the table; see `tablectl ports`.")
@click.option("--virtual", is_flag=True, help="A virtual table instead of one on a port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--http", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on.")
@click.option(
    "--tls-cert", type=click.Path(path_type=Path), help="TLS with this certificate (PEM, with those above it)."
)
@click.option("--tls-key", type=click.Path(path_type=Path), help="The certificate's key (PEM, without a passphrase).")
@click.option("--name", "names", multiple=True, help="A name that this machine is reached by; more than once for more.")
@click.option("--pack", help="Rule pack, where it is none of nj, pr, ca: the path of your own .json file.")
@house_way_option(default=houseway.OF_TABLE)
@click.option("--pins", type=click.Path(dir_okay=False, path_type=Path), help="File of the PINs' hashes.")
@click.option(
    "--set-pin", type=click.Choice(ROLES), help="Set the PIN of a role, asked for or read from stdin; then end."
)
@click.option("--seed", default=2026, show_default=True, type=click.IntRange(0, 2**30 - 1), help="Of a virtual table.")
@db_option
@json_option
def serve(
    port: str | None,
    virtual: bool,
    host: str,
    http: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    names: tuple[str, ...],
    pack: str | None,
    house_way: str,
    pins: Path | None,
    set_pin: str | None,
    seed: int,
    db: Path | str | None,
    as_json: bool,
) -> None:
    """Serve the table's display and the dealer's console to browsers, and keep the table's record, until Ctrl-C.

    The display is at /, the console at /dealer. Each role needs a PIN: `tablectl serve --set-pin dealer`.
    """
    known = Pins(pins or default_path().with_name("pins.json"))
    if set_pin is not None:
        _set_pin(known, set_pin, as_json)
        return
    if (tls_cert is None) != (tls_key is None):
        raise BadInput(_("give --tls-cert and --tls-key together"))
    tls = tls_context(tls_cert, tls_key) if tls_cert and tls_key else None
    chosen = load(pack) if pack is not None else None
    houseway.load(house_way)
    with contextlib.ExitStack() as stack:
        name, lid = stack.enter_context(_table_of(port, virtual, chosen, seed))
        store = open_store(db, patience_s=PATIENCE_S)
        listener = stack.enter_context(contextlib.closing(listen(host, http)))
        hub = Hub(name, store, chosen)
        stack.callback(hub.stop)
        hub.start()
        made: dict[str, str] = {}
        if virtual and not known.roles:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoneye-"))
            known, made = _made_up(Path(folder))
        tell(host, listener, known, made, tls is not None, as_json)
        text = clauses.of_pack(pack or str(hub.snapshot.table["pack"]))
        desk = Console(hub, lid, bool(text.signals), house_way)
        web = Web(hub, known, desk, fairness_of(store), frozenset(map(str.lower, (host, *names))))
        # After a SIGTERM the server ends what it does and hands it on.
        with contextlib.suppress(KeyboardInterrupt):
            Server(web, tls).run(sockets=[listener])


def fairness_of(store: Store) -> Callable[[str, int], str]:
    """What makes the page about the dice sets in a record, for the console."""

    def made(uid: str, dice_set: int) -> str:
        # Only who asks for it waits until it is loaded.
        from host_tools.cli.report import fairness_page

        return fairness_page(store, uid, dice_set, ("/dealer", _("to the console")))

    return made


def tell(
    host: str, listener: socket.socket, pins: Pins, made: Mapping[str, str], encrypted: bool, as_json: bool
) -> None:
    """Where it is served, the PINs that were `made` up for it, and what is missing for it to be used safely."""
    if not is_loopback(host):
        words = _("warning: {host} can be reached from other machines")
        if not encrypted:
            words = _("warning: {host} can be reached from other machines, and nothing is encrypted")
        click.echo(words.format(host=host), err=True)
    address, number = listener.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    url = f"{'https' if encrypted else 'http'}://{shown}:{number}/"
    console = url + "dealer"
    if not pins.roles:
        click.echo(_("console: no PIN is set; set one with `tablectl serve --set-pin dealer`"), err=True)
    if as_json:
        print_json({"display": url, "console": console if pins.roles else None, "pins": dict(made)})
        sys.stdout.flush()
        return
    for role, pin in made.items():
        click.echo(_("for this run only: the {role}'s PIN is {pin}").format(role=role_name(role), pin=pin))
    click.echo(_("display: {url}").format(url=url))
    if pins.roles:
        click.echo(_("console: {url}").format(url=console))
