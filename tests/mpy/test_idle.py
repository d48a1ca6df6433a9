"""A table that idles for weeks under MicroPython: its clock and its meters go on."""

from __future__ import annotations

from tests.mpy.conftest import Run


def test_clock_and_meters_bear_weeks(micropython: Run) -> None:
    assert micropython("idle_for_weeks.py").splitlines() == ["weeks 30", f"meter 2000 {400 * 10**6} {400 * 10**6} 0"]
