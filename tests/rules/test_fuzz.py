"""Whatever JSON a batch line holds, its answer is a result or an error in its place; never a traceback."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rules.conftest import Run, rows

TILES = {"player": {"high": ["66", "66"], "low": ["56", "13"]}, "bank": {"high": ["11", "36"], "low": ["46", "22"]}}
# A good case of every batch command; a fuzzed line is the case with one part replaced, or something else altogether.
CASES: dict[tuple[str, ...], object] = {
    ("tiles", "rank"): ["6-6", "4-5"],
    ("tiles", "compare"): {"first": ["6-6", "4-5"], "second": ["1-1", "1-1"]},
    ("tiles", "set"): ["6-6", "6-6", "4-5", "4-4"],
    ("tiles", "explain"): ["6-6", "6-6", "4-5", "4-4"],
    ("tiles", "settle"): {**TILES, "stake": 100},
    ("tiles", "table"): {
        "bank": TILES["bank"],
        "players": [{"position": 2, "hands": TILES["player"], "stake": 100}],
        "banks": [50, 10],
        "player_banks": True,
    },
    ("seats",): {"total": 9, "positions": 8, "count_direction": "clockwise", "bets": [2], "dead": 3, "bank_seat": 4},
    ("bank", "decides"): {"front": 100, "action": 250},
    ("bank", "covers"): {"banks": [60, 30], "bets": [[2, 50], [3, 50]]},
    ("cards", "rank"): ["AS", "AS", "AS", "AS", "AS"],
    ("cards", "compare"): {"first": ["AS"] * 5, "second": ["KS"] * 5},
    ("cards", "order"): [["AS"] * 5, ["KS"] * 5],
}

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.integers(-3, 20)
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["6-6", "66", "1-2", "AS", "10h", "clockwise", "\ud800"])
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """The paths of every part of a case, itself first."""
    found = [path]
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            found += places(part, (*path, number))
    return found


def replaced(value: object, path: tuple[object, ...], part: object) -> object:
    """The case with the part at `path` replaced."""
    if not path:
        return part
    if isinstance(value, dict):
        return {key: replaced(inner, path[1:], part) if key == path[0] else inner for key, inner in value.items()}
    assert isinstance(value, list)
    return [replaced(inner, path[1:], part) if n == path[0] else inner for n, inner in enumerate(value)]


@pytest.mark.parametrize("command", CASES, ids=" ".join)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_json_has_an_answer_in_its_place(tablectl: Run, command: tuple[str, ...], data: st.DataObject) -> None:
    case = CASES[command]
    where = data.draw(st.lists(st.sampled_from(places(case)), min_size=1, max_size=8))
    lines = [replaced(case, path, data.draw(ANYTHING)) for path in where]
    code, out, err = tablectl(*command, "--batch", "-", stdin="\n".join(map(json.dumps, [*lines, case])))
    answers = rows(out)
    assert err == ""
    assert len(answers) == len(lines) + 1
    assert "error" not in answers[-1]
    wrong = [answer for answer in answers if "error" in answer]
    assert code == (2 if wrong else 0)
    assert [answer["line"] for answer in wrong] == [n for n, answer in enumerate(answers, 1) if "error" in answer]
    assert all(answer["error"] and len(answer["error"]) < 400 for answer in wrong)
