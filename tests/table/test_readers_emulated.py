"""The reader driver on the emulated Pico: the same sets as anywhere, and its budgets in time that repeats exactly."""

from __future__ import annotations

import pytest

from boards.virtual.model import default_tags

pytestmark = pytest.mark.emulator

pytest.importorskip("rp2040py", reason="emulator: rp2040py is not installed")
from tests.bench import readers  # noqa: E402

# Default dice 1, 2, 3 lie on their faces 6, 5, 4.
LYING = [tags[face - 1].upper() for tags, face in zip(default_tags(), (6, 5, 4), strict=True)]


def test_passes_on_the_emulated_pico_keep_their_budgets() -> None:
    found = readers.scan_fields(None)
    assert {name: row[1] for name, row in found.items()} == {
        "empty": [],
        "one tag": LYING[:1],
        "three tags": LYING,
        "a tag a reader": LYING,
    }
    assert found["empty"][0] < 10_000  # what an absent die costs
    assert found["three tags"][0] < 2 * readers.FLOOR_US[1]
    assert found["a tag a reader"][0] < 2 * readers.FLOOR_US[3]
    assert max(row[2] for row in found.values()) < 20_000  # the longest that any task may hold the loop


@pytest.mark.slow
@pytest.mark.parametrize(("number", "budget"), [(1, 150_000), (3, 150_000)])
def test_from_rest_to_the_locked_record(number: int, budget: int) -> None:
    marks = readers.rest_to_locked(number)
    assert len(marks["passes"]) == 2
    assert marks["lock"][0] - marks["begin"] < 2 * 2 * readers.FLOOR_US[number]
    assert marks["lock"][1] - marks["begin"] < budget


@pytest.mark.slow
def test_verdicts_on_the_emulated_pico() -> None:
    told = readers.verdicts(
        [
            ("missing", {"die": 1}),
            ("cocked", {"die": 0, "faces": 2}),
            ("collision", {}),
            ("unsettled", {}),
            ("two_faces", {"die": 2}),
        ]
    )
    assert told == ["die_missing", "cocked", "unresolved", "not_settled", "LOCKED"]
