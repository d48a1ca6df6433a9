"""The budgets of the design, in emulated time on the RP2040, which repeats to the microsecond."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoneye.journal import SEGMENT_RECORDS
from tests.bench import Row
from tests.emulated import FULL, EmulatedTable, full_segment

LID_MS = 5
LOOP_MS = 20
SETTLE_MS = 20
HELLO_MS = 2000
HEAP_KB = 100
BLOCK_KB = 20
# From a jolt's first edge: in the ramp up, at full amplitude, in the ramp down.
MOMENTS_MS = (5, 20, 100, 285)
SHAKE = {"profile": {"jolt_ms": 300, "rest_ms": 20, "ramp_ms": 40}}

# Put before the app in main.py: what cannot be seen from outside, and what the table's own counters leave together.
PROBES = """
import gc, time
from dragoneye import app, controller, round
from dragoneye.rules import wagers

spent = {}


def probe(owner, name):
    good = getattr(owner, name)

    def probed(*args):
        began = time.ticks_us()
        try:
            return good(*args)
        finally:
            took = time.ticks_diff(time.ticks_us(), began)
            spent[name] = max(took, spent.get(name, 0))

    setattr(owner, name, probed)


probe(wagers, "settle_table")
probe(wagers, "liability")
stats = app.App._stats


def more(self):
    gc.collect()
    answer = stats(self)
    answer["spent"] = spent
    # The largest block that there is, to a kilobyte.
    low, high = 0, gc.mem_free() // 1024 + 1
    while high - low > 1:
        size = (low + high) // 2
        try:
            bytearray(size * 1024)
            low = size
        except MemoryError:
            high = size
        gc.collect()
    answer["block"] = low * 1024
    return answer


app.App._stats = more
app.start()
"""


def probed(firmware: Path) -> None:
    """Put the probes into a copy of the firmware."""
    (firmware / "main.py").write_text(PROBES)


def filled(firmware: Path) -> None:
    """Give the table a journal whose newest segment is full: a start reads all of it."""
    full_segment(firmware.parent / "provision" / "journal")


def _lid(table: EmulatedTable) -> Iterator[int]:
    """Microseconds from the lid's opening to the last time that a motor pin was high, at each moment."""
    table.device.request("open", shaker=1)
    table.device.request("close")
    for ms in MOMENTS_MS:
        table.device.request("shake")
        table.pico.run_until(lambda: any(table.levels()), 1000, every_us=20)
        table.pico.run_ms(ms)
        opened = table.pico.us
        table.pico.do("lid", to="open", force=True)
        table.pico.run_ms(10)
        yield table.last_high_us(opened)
        table.pico.do("lid", to="shut")
        table.device.poll(0.2)
        table.pico.run_ms(100)
        table.device.request("resume")
    table.device.request("void", reason="measured")


def _goal(value: float, most: float, unit: str) -> str:
    return f"{most} {unit}{'' if value <= most else ', missed'}"


def run() -> Iterator[Row]:
    """The plain firmware first; then with probes in it, which take some microseconds themselves."""
    print("emulated seconds, some minutes ...", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder, EmulatedTable(Path(folder), SHAKE) as table:
        hello = table.hello() / 1000
        yield Row("reset to hello", f"{hello:.0f} ms", goal=_goal(hello, HELLO_MS, "ms"))
        lid = max(_lid(table))
        yield Row(
            f"lid opens while shaking to both motor pins low, most of {len(MOMENTS_MS)} moments",
            f"{lid} µs",
            goal=_goal(lid / 1000, LID_MS, "ms"),
        )
        table.play(FULL)
        stats: dict[str, Any] = table.device.request("stats")
        for name, (runs, longest, mean, late) in sorted(stats["tasks"].items()):
            yield Row(
                f"task {name} holds the loop",
                f"{longest / 1000:.1f} ms, mean {mean / 1000:.1f}",
                f"{late} of {runs} late",
                _goal(longest / 1000, LOOP_MS, "ms"),
            )
        count, longest, mean = stats["writes"]
        yield Row(f"writes to flash, {count}", f"{longest / 1000:.0f} ms, mean {mean / 1000:.0f}")
        moving = len(table.flash_while_moving)
        yield Row("flash operations while motor or lock was driven", f"{moving}", goal=_goal(moving, 0, ""))
        pulse = table.pico.state()["lock_longest_us"] / 1000
        yield Row("lock pulse of 80 ms", f"{pulse:.2f} ms", goal=_goal(pulse, 90, "ms"))
    with tempfile.TemporaryDirectory() as folder, EmulatedTable(Path(folder), change=filled) as table:
        hello = table.hello() / 1000
        yield Row(
            f"reset to hello with {SEGMENT_RECORDS} records to read",
            f"{hello:.0f} ms",
            goal=_goal(hello, HELLO_MS, "ms"),
        )
    with tempfile.TemporaryDirectory() as folder, EmulatedTable(Path(folder), change=probed) as table:
        table.hello()
        stats = table.device.request("stats")
        free = stats["free"] / 1000
        yield Row(
            "heap free after start", f"{free:.0f} kB", goal=f"{HEAP_KB} kB{'' if free >= HEAP_KB else ', missed'}"
        )
        block = stats["block"] / 1000
        yield Row(
            "largest free block then", f"{block:.0f} kB", goal=f"{BLOCK_KB} kB{'' if block >= BLOCK_KB else ', missed'}"
        )
        table.play(FULL)
        stats = table.device.request("stats")
        yield Row("largest free block after the round", f"{stats['block'] / 1000:.0f} kB")
        spent = stats["spent"]
        settled = spent["settle_table"] / 1000
        yield Row("settle six positions with all six wagers", f"{settled:.1f} ms", goal=_goal(settled, SETTLE_MS, "ms"))
        yield Row("liability of the same table", f"{spent['liability'] / 1000:.1f} ms")
