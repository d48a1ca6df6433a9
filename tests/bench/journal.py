"""What a journal record and its tag cost on the emulated Pico, in emulated time, which repeats exactly."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from boards.virtual import emulated
from tests.bench import Row
from tests.bench.readers import SCRIPTS, image

BUDGET_MS = 15


def measured() -> dict[str, Any]:
    """See scripts/journal_record.py."""
    with tempfile.TemporaryDirectory() as folder:
        flash = image(Path(folder), SCRIPTS / "journal_record.py", {}, {})
        with emulated.EmulatedPico(flash) as pico:
            pico.run_until(lambda: b"}\r\n" in pico.output.partition(b"RECORD ")[2], 10000)
            told: dict[str, Any] = json.loads(pico.output.split(b"RECORD ", 1)[1].splitlines()[0])
            return told


def run() -> Iterator[Row]:
    """A record of a round with nine wagers; an append includes its hash and its tag."""
    if emulated.find_image() is None:
        print("journal: no MicroPython image for the emulated Pico; `make image` gets one", file=sys.stderr)
        return
    told = measured()
    most = {name: told[name][1] / 1000 for name in told if name != "bytes"}
    yield Row(f"hash of a record of {told['bytes']} bytes", f"{most['hash']:.1f} ms")
    cost = most["hash"] + most["tag"]
    goal = f"{BUDGET_MS} ms{'' if cost <= BUDGET_MS else ', missed'}"
    yield Row("its tag", f"{most['tag']:.1f} ms", f"{cost:.1f} ms with the hash", goal)
    for kind in ("prepared", "append"):
        words = "append, the erase done before" if kind == "prepared" else "append with its erase"
        plain, tagged = most[f"{kind} plain"], most[f"{kind} tagged"]
        yield Row(words, f"{tagged:.1f} ms", f"{plain:.1f} ms without a key")
