"""`tablectl maintenance`: let mpremote in, also where the watchdog is armed."""

from __future__ import annotations

import click

from host_tools.cli.common import port_option
from host_tools.cli.output import console, json_option, print_json
from host_tools.i18n import _


@click.command()
@port_option
@json_option
def maintenance(port: str, as_json: bool) -> None:
    """Restart a table into MicroPython's prompt, for mpremote; between rounds only.

    The watchdog is not armed then. The table's program starts again at the next reset, or by itself when nobody
    presses Ctrl-C within ten minutes.
    """
    from host_tools.board_files import stop_table

    told = stop_table(port)
    # No table runs where maintenance or the prompt waits already: mpremote can be used there as well.
    uid = None if told is None else told["uid"]
    if as_json:
        print_json({"table": uid, "port": port, "maintenance": True})
        return
    out = console()
    if uid is None:
        out.print(_("the prompt waits for mpremote already: mpremote connect {port}").format(port=port))
    else:
        out.print(_("table {uid} waits for mpremote: mpremote connect {port}").format(uid=uid, port=port))
    out.print(_("afterwards: mpremote connect {port} reset").format(port=port))
