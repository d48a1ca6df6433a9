"""The power fails, or the flash refuses, at every single program and erase: nothing is lost, nothing is there twice."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoneye.journal import SEGMENT_RECORDS
from host_tools.store import Store
from tests import power
from tests.power import Counts, Json, Kept
from tests.virtual import need_micropython

# Records in the newest segment before the rounds: the next one begins, and the oldest goes, amid the reveal.
AMID = 50

Fail = Callable[..., tuple[Counts, list[Kept], list[Json]]]


@pytest.fixture
def fail(tmp_path: Path, record_property: Callable[[str, object], None]) -> Fail:
    """fail(what, mode, argument...): a run of the script; its counts go to the summary of the tests."""
    need_micropython()
    config = power.configure(tmp_path / "provision")

    def run(what: str, mode: str, *arguments: object) -> tuple[Counts, list[Kept], list[Json]]:
        done = power.all_of(what, power.run(config, tmp_path / f"{mode}.rows", mode, *arguments))
        record_property("counts", str(done[0]))
        return done

    return run


def nothing_is_lost(counts: Counts) -> None:
    assert not counts.lost
    assert not counts.twice
    assert counts.operations > 80
    assert min(counts.ends[end] for end in ("finished", "void", "between")) > counts.operations // 10


def test_the_power_is_cut_at_every_program_and_erase_of_whole_rounds(fail: Fail, tmp_path: Path) -> None:
    counts, base, rows = fail("power cut at each", "cuts", AMID)
    nothing_is_lost(counts)
    assert counts.ends.total() == 2 * counts.operations
    # A real host's record takes what came of every tenth.
    store = Store(tmp_path / "base.db")
    power.store_all(store, base)
    store.close()
    for row in rows[::10]:
        shutil.copy(tmp_path / "base.db", tmp_path / "one.db")
        store = Store(tmp_path / "one.db")
        had = row["had"] - len(base)
        power.store_all(store, row["kept"][:had])
        assert store.last(power.UID)[0] == len(base) + had
        power.store_all(store, row["kept"])
        events = [json.loads(text) for text, _link in [*base, *row["kept"]]]
        assert [{k: v for k, v in event.items() if k != "utc"} for event in store.events(power.UID)] == events
        assert {one["status"] for one in store.rounds(power.UID, last=10_000)} <= {"settled", "void"}
        store.close()


def test_the_power_is_cut_again_while_the_table_starts(fail: Fail) -> None:
    counts, _base, _rows = fail("power cut again at each of the start after every sixteenth", "twice", AMID, 16)
    nothing_is_lost(counts)
    assert counts.ends.total() > counts.operations


@pytest.mark.slow
def test_the_power_is_cut_twice_everywhere(fail: Fail) -> None:
    counts, _base, _rows = fail("power cut at each and again at each of the start", "twice", AMID, 1)
    nothing_is_lost(counts)


@pytest.mark.slow
@pytest.mark.parametrize("offset", range(SEGMENT_RECORDS - 36, SEGMENT_RECORDS + 1))
def test_the_segments_end_at_every_record_of_the_rounds(fail: Fail, offset: int) -> None:
    counts, _base, _rows = fail(f"power cut at each, {offset} records in the segment", "cuts", offset)
    nothing_is_lost(counts)


def test_a_flash_that_refuses_from_any_moment_on_is_a_fault_and_tells_nothing_that_is_not_recorded(fail: Fail) -> None:
    counts, _base, rows = fail("flash refuses from each on", "refuses", AMID)
    nothing_is_lost(counts)
    for row in rows:
        view = row["refused"]
        assert (view["state"], view["fault"]) == ("FAULT", "JOURNAL"), row
        assert view["detail"].startswith("cannot be written: "), row
    assert max(len(row["shown"]) for row in rows) > 0


def test_a_full_file_system_is_a_fault_until_there_is_room_again(tmp_path: Path) -> None:
    need_micropython()
    config = power.configure(tmp_path / "provision")
    states = set()
    for offset, blocks in ((AMID, 0), (5, 1), (10, 1), (15, 1)):
        first, row = power.run(config, tmp_path / "full.rows", "full", offset, blocks)
        base = power.History().follow((text, link) for text, link in first["base"])
        had = row["had"] - base.last
        after = base.follow((text, link) for text, link in row["kept"])
        assert not after.lost + after.twice
        assert row["promised"][0] >= row["had"]
        assert all(after.dice[number] == dice for number, dice in row["shown"])
        assert row["fault"] == {"code": "JOURNAL", "detail": "cannot be written: no space left"}
        # The technician makes room, the supervisor clears it, and the table goes on where it was.
        assert "fault" not in row["cleared"]
        states.add(row["cleared"]["state"])
        if row["cleared"]["state"] != "LOCKED":  # what is locked is held back
            assert row["cleared"]["streak"] == after.streak
            told = [json.loads(text) for text, _link in row["kept"][had:]]
            assert [one["d"]["set"] for one in told if one["k"] == "fault"] == [True, False]
    assert {"IDLE", "LOCKED"} <= states
