"""How long a start takes on the emulated Pico that has as much to read as there can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoneye import config, journal
from dragoneye.protocol import decode
from dragoneye.rules.packs import WAGERS
from tests.unit.tables import Desk

pytestmark = [pytest.mark.emulator, pytest.mark.slow]

pytest.importorskip("rp2040py", reason="emulator: rp2040py is not installed")

from tests.emulated import EmulatedTable  # noqa: E402

RESET_TO_HELLO_US = 2_000_000


def full_segment(folder: Path) -> int:
    """A journal whose one segment is full: rounds of six positions with all six wagers each. Its bytes."""
    desk = Desk(folder, now=1000)
    desk.hello()
    bets = {position: dict.fromkeys(WAGERS, 1_000_000) for position in range(1, 7)}
    for position in bets:
        bets[position]["bonus"] = 100
    while desk.journal.last_id < journal.SEGMENT_RECORDS:
        desk.play([3, 5, 2], bets)
        desk.now += 10_000
    desk.fetch()
    segment, *others = sorted(folder.iterdir())
    for other in others:
        other.unlink()
    assert len(segment.read_bytes().splitlines()) == 1 + journal.SEGMENT_RECORDS
    return segment.stat().st_size


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
