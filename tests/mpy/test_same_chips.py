"""The models of the reader chip and the tags say the same under MicroPython as under CPython, to the microsecond."""

from __future__ import annotations

from tests.mpy.conftest import Run


def test_a_reader_and_its_tags(micropython: Run, cpython: Run) -> None:
    told = micropython("ask_chip.py")
    assert told == cpython("ask_chip.py")
    assert told.count("asked") == 10
    assert told.splitlines()[-1] == "[48]"
