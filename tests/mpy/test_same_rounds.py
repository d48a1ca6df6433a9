"""A controller with its journal says the same, line by line, under MicroPython as under CPython."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragoneye import protocol
from dragoneye.journal import GENESIS, chain
from dragoneye.text import dumps
from tests.mpy.conftest import Run


def decoded(printed: str) -> list[tuple[int, dict[str, Any]]]:
    return [protocol.decode(line.encode()) for line in printed.splitlines()]


def without_order(frames: list[tuple[int, dict[str, Any]]]) -> list[str]:
    """The frames but for the order of keys, which MicroPython does not keep, and what hangs on it: hashes."""
    for _seq, value in frames:
        for part in (value.get("ok"), value.get("hello")):
            if part is not None:
                part.pop("known", None)
    return [
        json.dumps([seq, {key: part for key, part in value.items() if key != "h"}], sort_keys=True)
        for seq, value in frames
    ]


def events_of(frames: list[tuple[int, dict[str, Any]]]) -> dict[int, tuple[str, str]]:
    """The text and hash of each event; one that came twice came the same."""
    events: dict[int, tuple[str, str]] = {}
    for _seq, value in frames:
        if "ev" in value:
            told = (dumps(value["ev"]), value["h"])
            assert events.setdefault(value["ev"]["id"], told) == told
    return events


def test_a_game_with_power_cuts(micropython: Run, cpython: Run, tmp_path: Path) -> None:
    told = [
        decoded(run("play_rounds.py", str(tmp_path / name)))
        for name, run in (("micropython", micropython), ("cpython", cpython))
    ]
    assert without_order(told[0]) == without_order(told[1])
    for frames in told:
        events = events_of(frames)
        assert sorted(events) == list(range(1, len(events) + 1))
        previous = GENESIS
        for number in sorted(events):
            text, link = events[number]
            assert chain(previous, text) == link
            previous = link
        kinds = [json.loads(events[number][0])["k"] for number in sorted(events)]
        assert kinds.count("settled") == 6
        assert kinds.count("boot") == 3
        assert {"opened", "closed", "locked", "streak", "fault", "door"} <= set(kinds)
        assert any("err" in value for _seq, value in frames)


def test_a_journal_that_one_wrote_is_read_by_the_other(micropython: Run, cpython: Run, tmp_path: Path) -> None:
    micropython("play_rounds.py", str(tmp_path))
    again = [value for _seq, value in decoded(cpython("play_rounds.py", str(tmp_path)))]
    boots = [value["ev"]["b"] for value in again if "ev" in value and value["ev"]["k"] == "boot"]
    assert max(boots) == 6
    assert not [value for value in again if "st" in value and value["st"].get("fault") == "JOURNAL"]
