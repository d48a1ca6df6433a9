"""What keys cost on the RP2040, in emulated time: a signed request, a record's tag, the challenge over all files."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from boards.virtual import emulated
from host_tools import flash_verify, keys
from host_tools.link import Link
from tests.bench import Row
from tests.bench.budgets import PROBES
from tests.emulated import EmulatedTable

BUDGET_MS = 15
HEAP_KB = 100

# In the place of the budgets' own probes.
OURS = """
from dragoneye import keys, journal
probe(keys.Gate, "check")
probe(controller.Controller, "receive")
probe(journal.Journal, "_tag")
probe(controller.Controller, "_record")
"""


def _row(what: str, ms: float) -> Row:
    return Row(what, f"{ms:.1f} ms", goal=f"{BUDGET_MS} ms{'' if ms <= BUDGET_MS else ', missed'}")


def run() -> Iterator[Row]:
    """A table with keys: a round opened, bet on and void, then verified."""
    if emulated.find_image() is None:
        print("keys: no MicroPython image for the emulated Pico; `make image` gets one", file=sys.stderr)
        return
    print("emulated seconds, some minutes ...", file=sys.stderr)

    def probed(firmware: Path) -> None:
        head, end = PROBES.split("probe(wagers", 1)[0], PROBES[PROBES.index("stats = app.App._stats") :]
        (firmware / "main.py").write_text(head + OURS + end)

    with tempfile.TemporaryDirectory() as folder, EmulatedTable(Path(folder), change=probed, raw=keys.made()) as table:
        table.hello()
        device = table.device
        free = device.request("stats")["free"] / 1000
        device.request("open", shaker=1)
        device.request("bets", position=2, wagers={"match": 500, "odd": 100, "bonus": 100})
        device.request("close")
        device.request("void", reason="a signed request with a reason of the usual length")
        spent: dict[str, Any] = device.request("stats")["spent"]
        yield _row("the look at a request's signature, longest", spent["check"] / 1000)
        yield Row(
            "a signed request to its answer, with its record's write, longest", f"{spent['receive'] / 1000:.0f} ms"
        )
        yield _row("a record's tag", spent["_tag"] / 1000)
        yield Row(
            "a record with its tag, longest, the flash's erase and program in it", f"{spent['_record'] / 1000:.0f} ms"
        )
        yield Row("heap free with keys", f"{free:.0f} kB", goal=f"{HEAP_KB} kB{'' if free >= HEAP_KB else ', missed'}")
        link: Link = device._link
        began = table.pico.us
        survey = flash_verify.ask(link)
        took = (table.pico.us - began) / 1e6
        flash_verify.fetch_rows(link, survey)
        size = sum(row[1] for row in survey.rows) / 1000
        yield Row(f"the challenge over {survey.files} files, {size:.0f} kB", f"{took:.2f} s")
