"""`tablectl doctor`: what is wrong between this computer and a table, and what to do about it."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from host_tools.cli.output import console, json_option, print_json
from host_tools.doctor import FAIL, OK, WARN, Computer, examine
from host_tools.i18n import _


@click.command()
@click.option("--port", help="Look at this port, and at the table on it (default: every Raspberry Pi board's).")
@json_option
def doctor(port: str | None, as_json: bool) -> None:
    """Look at everything that a table needs here; each finding with its remedy.

    The exit code is 0 when all is well, 1 with a warning, 2 with a failure.
    """
    words = {OK: _("ok"), WARN: _("warning"), FAIL: _("failure")}
    width = max(len(word) for word in words.values())
    style = {OK: "green", WARN: "yellow", FAIL: "bold red"}
    worst = 0
    out = console()
    for finding in examine(Computer(), port):
        worst = max(worst, (OK, WARN, FAIL).index(finding.status))
        if as_json:
            print_json(asdict(finding))
            continue
        out.print(words[finding.status].ljust(width), style=style[finding.status], end="  ")
        out.print(f"{finding.check}: {finding.says}", soft_wrap=True)
        if finding.remedy:
            out.print(" " * (width + 2) + "→ " + finding.remedy, soft_wrap=True)
    sys.exit(worst)
