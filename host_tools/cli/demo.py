"""`tablectl demo`: rounds on a virtual table, from the shake to the stored round."""

from __future__ import annotations

import contextlib
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from boards.virtual.client import Table, TableError
from boards.virtual.model import default_tags
from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack, load
from host_tools import provision
from host_tools.cli.call import house_net, signed
from host_tools.cli.common import db_option, on_port, open_store, play_one
from host_tools.cli.output import console, json_option, print_json
from host_tools.cli.packs import pack_option
from host_tools.dealer import Dealer, VirtualLid, plan_round
from host_tools.i18n import _, ngettext
from host_tools.store import default_path

# The demo's own table, so that its record is never taken for a real one's.
UID = "DE30000000000001"
COCKED_ROUND = 3


@contextlib.contextmanager
def virtual_table(pack: Pack, seed: int, uid: str, waits: dict[str, dict[str, int]]) -> Iterator[Table]:
    """A provisioned virtual table that is gone afterwards; `waits` are settings and profile."""
    with tempfile.TemporaryDirectory(prefix="dragoneye-") as folder:
        provision.write(Path(folder) / "provision", "rpi_pico", pack, default_tags(), 0, **waits)
        table = Table(Path(folder) / "table", seed=seed, uid=uid, provision=Path(folder) / "provision")
        try:
            table.start()
        except TableError as error:
            raise BadInput(str(error)) from None
        try:
            yield table
        finally:
            table.stop()


def _begun_anew(path: Path) -> Path:
    """`path` without the database that stood there."""
    try:
        for name in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
            name.unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    return path


@click.command()
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100_000), help="How many rounds.")
@click.option("--seed", default=2026, show_default=True, type=click.IntRange(0, 2**30 - 1), help="Of dice and players.")
@pack_option()
@db_option
@json_option
def demo(rounds: int, seed: int, pack: str, db: Path | str | None, as_json: bool) -> None:
    """Play rounds on a virtual table: the controller's own firmware, no hardware.

    Without --db the demo keeps a record of its own, begun anew each time.
    """
    chosen = load(pack)
    path = db or _begun_anew(default_path().with_name("demo.db"))
    store = open_store(path)
    started = time.monotonic()
    with virtual_table(chosen, seed, UID, provision.QUICK) as table, on_port(table.port, store) as device:
        out = console()
        if not as_json:
            hello = device.table
            out.print(
                _("Table {uid}: firmware {fw} ({build}) on MicroPython {micropython}, rule pack {pack}").format(
                    pack=_(chosen.title), **{key: hello[key] for key in ("uid", "fw", "build", "micropython")}
                )
            )
        net = 0
        rng = random.Random(seed)
        dealer = Dealer(device, chosen, VirtualLid(table))
        for count in range(1, rounds + 1):
            if count == COCKED_ROUND:
                # One die leans on the wall once: a void roll, shaken again.
                table.do("fault", name="cocked", die=1, rolls=1)
            plan = plan_round(rng, chosen, dealer.surely(device.refresh)["streak"])
            stored = play_one(dealer, store, plan, as_json, with_tiles=True)
            if stored["status"] == "settled":
                net += house_net(stored["result"], stored["tiles"])
        seconds = time.monotonic() - started
        if as_json:
            print_json(
                {
                    "summary": {
                        "rounds": rounds,
                        "net": net,
                        "seed": seed,
                        "pack": chosen.name,
                        "table": device.uid,
                        "db": str(store.path),
                        "seconds": round(seconds, 3),
                    }
                }
            )
        else:
            out.print(
                ngettext(
                    "{rounds} round in {seconds:.1f} s; the table's net is {net}.",
                    "{rounds} rounds in {seconds:.1f} s; the table's net is {net}.",
                    rounds,
                ).format(rounds=rounds, seconds=seconds, net=signed(net))
            )
            named = f" --db {store.path}"
            if len(store.tables()) > 1:
                named = f" --table {device.uid}{named}"
            last = store.last(device.uid)[1]
            more = _("See more: tablectl rounds{db} · tablectl show {n}{db}").format(db=named, n=last)
            out.print(more, soft_wrap=True)
