"""The firmware's own work under MicroPython's unix port: settling, and memory over 10,000 rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from boards.virtual.unix_port import find_micropython
from host_tools.provision import FIRMWARE
from tests.bench import Row

SCRIPTS = Path(__file__).parent / "scripts"
ROUNDS = 10_000


def _run(interpreter: list[str], script: str, *arguments: str) -> list[dict[str, float]]:
    path = {"MICROPYPATH": f".frozen:{FIRMWARE}", "PYTHONPATH": str(FIRMWARE)}
    done = subprocess.run(
        [*interpreter, str(SCRIPTS / script), *arguments],
        env={**os.environ, **path},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def run() -> Iterator[Row]:
    """Settlement against CPython's in the same run, then the heap."""
    # The 64-bit port's objects are twice as large as the Pico's: this equals the Pico's heap.
    ours = [*find_micropython(), "-X", "heapsize=480k"]
    (micropython,) = _run(ours, "settle.py")
    (cpython,) = _run([sys.executable], "settle.py")
    for what in ("settle", "liability"):
        ratio = f"{micropython[what] / cpython[what]:.1f} × CPython's"
        yield Row(f"{what}, six positions with six wagers", f"{micropython[what]:.0f} µs", ratio)
    print(f"{ROUNDS:,} rounds, about a minute ...", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        rows = _run(ours, "many_rounds.py", folder, str(ROUNDS))
    first, last = rows[0], rows[-1]
    yield Row("heap free after the first round, no app", f"{first['free'] / 1024:.0f} KiB of 480")
    drift = (first["free"] - last["free"]) / 1024
    yield Row(f"heap lost over {ROUNDS:,} rounds", f"{drift:.1f} KiB", goal="no drift")
    yield Row("rounds a second, no board and no waits", f"{ROUNDS / last['seconds']:.0f}")
    yield Row("journal at the end", f"{last['journal'] / 1024:.0f} KiB", goal="bounded")
