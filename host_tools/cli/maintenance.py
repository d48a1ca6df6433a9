"""`tablectl maintenance`: let mpremote in, also where the watchdog is armed."""

from __future__ import annotations

from pathlib import Path

import click

from host_tools.cli.common import db_option, open_store
from host_tools.cli.output import console, json_option, print_json
from host_tools.cli.tables import port_option
from host_tools.device import Device
from host_tools.i18n import _


@click.command()
@port_option
@db_option
@json_option
def maintenance(port: str, db: Path | None, as_json: bool) -> None:
    """Restart a table into MicroPython's prompt, for mpremote; between rounds only.

    The watchdog is not armed then. The table's program starts again at the next reset, or by itself when nobody
    presses Ctrl-C within ten minutes.
    """
    store = open_store(db)
    try:
        device = Device(port, store)
        try:
            device.enter_maintenance()
        finally:
            device.close()
    finally:
        store.close()
    if as_json:
        print_json({"table": device.uid, "port": port, "maintenance": True})
        return
    out = console()
    out.print(_("table {uid} waits for mpremote: mpremote connect {port}").format(uid=device.uid, port=port))
    out.print(_("afterwards: mpremote connect {port} reset").format(port=port))
