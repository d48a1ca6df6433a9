"""The rules that the controller owns answer the same under MicroPython as under CPython."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from dragoneye import protocol
from dragoneye.rules import packs
from tests.fuzz.mutate import mutate
from tests.fuzz.targets import TARGETS, framed
from tests.fuzz.watch import CORPUS
from tests.mpy.conftest import Run


@pytest.mark.parametrize("after_third", ["cap", "hold", "restart"])
@pytest.mark.parametrize("double_on_triple", ["loses", "wins"])
def test_every_wager_on_every_roll(micropython: Run, cpython: Run, after_third: str, double_on_triple: str) -> None:
    ours = micropython("enumerate_wagers.py", after_third, double_on_triple)
    assert ours == cpython("enumerate_wagers.py", after_third, double_on_triple)
    assert ours.split()[0] == str(216 * 3 * 7 * 6 * 2 * 6)


@pytest.mark.parametrize("seed", ["1", "2026"])
def test_a_walk_of_the_streak(micropython: Run, cpython: Run, seed: str) -> None:
    ours = micropython("walk_streak.py", seed, "3000").splitlines()
    assert ours == cpython("walk_streak.py", seed, "3000").splitlines()
    # The walk has been everywhere: each refusal, a change of a part, levels above three.
    said = {line.split()[3] for line in ours}
    assert {"E_BONUS_LATE", "E_BONUS_RAISE", "E_BONUS_FORFEIT", "True", "False", "restored", "0", "4"} <= said


@pytest.mark.parametrize("script", ["settle_tables.py", "read_dice.py"])
def test_whole_tables_and_readings(micropython: Run, cpython: Run, script: str) -> None:
    ours = micropython(script, "11", "300").splitlines()
    assert ours == cpython(script, "11", "300").splitlines()
    assert len(set(ours)) > 200


def test_signatures(micropython: Run, cpython: Run) -> None:
    ours = micropython("sign_requests.py")
    assert ours == cpython("sign_requests.py")
    assert "E_AUTH" in ours
    assert "technician" in ours.splitlines()


def test_made_up_frames(micropython: Run, cpython: Run) -> None:
    """MicroPython's json takes more than CPython's; what both take is the same, and neither ends with an exception."""
    rng = random.Random(20)
    seeds = TARGETS["frame"].seeds()
    made = [*seeds, *(path.read_bytes() for path in sorted((CORPUS / "frame").glob("*")))]
    made += [mutate(rng.choice(seeds), rng, protocol.LINE_MAX - 10) for _ in range(3000)]
    lines = [data[1:] if data[:1] == b"!" else framed(data) for data in made]
    # A line's end ends it.
    given = "\n".join(line.hex() or "0a" for line in lines if b"\n" not in line)
    ours, theirs = (run("decode_frames.py", stdin=given).splitlines() for run in (micropython, cpython))
    assert len(ours) == len(theirs) == given.count("\n") + 1
    both = 0
    for one, other in zip(ours, theirs, strict=True):
        if one[:5] == other[:5] == "taken":
            both += 1
            # A dict's order is its own in each.
            assert one.split(" [")[0] == other.split(" [")[0]
            assert json.loads(one[one.index("[") :]) == json.loads(other[other.index("[") :])
        assert other[:5] != "taken" or one[:5] == "taken"
    assert both > 100


def test_singling_out_a_tag_allocates_nothing(micropython: Run) -> None:
    assert micropython("read_tag.py") == "True 7 0ca1b211223344 6\n"


@pytest.mark.parametrize("name", packs.NAMES)
def test_every_value_of_a_pack(micropython: Run, cpython: Run, name: str) -> None:
    ours = micropython("load_packs.py", "rows", name).splitlines()
    assert ours == cpython("load_packs.py", "rows", name).splitlines()
    assert len(ours) == 1 + len(packs.KEYS)


def test_a_pack_as_its_own_file_is_the_same(micropython: Run, cpython: Run) -> None:
    ours = json.loads(micropython("load_packs.py", "file", "nj"))
    assert ours == json.loads(cpython("load_packs.py", "file", "nj"))


def case(**changes: Any) -> dict[str, Any]:
    good = {"dice": [3, 3, 4], "eye": 2, "position": 3, "wager": "match", "stake": 500, "role": "player", "streak": 0}
    return {**good, **changes}


WRONG_CASES: list[Any] = [
    None,
    True,
    7,
    "dice",
    [],
    {},
    case(colour="red"),
    *[case(dice=dice) for dice in (None, 3, "334", [], [3, 3], [3, 3, 7], [0, 3, 3], [-1, 1, 1], [[3, 3, 4]])],
    *[case(dice=[3, 3, die]) for die in (True, None, "4", 4.0, 2.5, [4], {"four": 4}, 10**30, "it's")],
    *[case(eye=eye) for eye in (-1, 3, True, None, "0", 0.0, 10**30)],
    *[case(position=position) for position in (0, 7, 8, -1, True, None, "3", 10**30)],
    *[case(wager=wager) for wager in ("", "Match", None, 1, ["match"], 'a"b', "a\nb\tc\\d")],
    *[case(stake=stake) for stake in (0, -1, 100_000_001, 10**30, True, None, "500", 5.0, 1e22, 0.1)],
    *[case(role=role) for role in ("", "dealer", None, True, ["shaker"])],
    *[case(streak=streak) for streak in (-1, 1_000_001, 10**30, True, None, "0", 1.5)],
]
WRONG_OPTIONS: list[Any] = [
    None,
    [],
    "wins",
    {"colour": "red"},
    {"positions": 9},
    {"positions": True},
    {"positions": 10**30},
    {"double_on_triple": "maybe"},
    {"double_on_triple": None},
    {"after_third": ["cap"]},
    {"wagers": "match"},
    {"wagers": ["match", "match"]},
    {"wagers": ["match", {"even": [1, 2.5]}]},
    {"pays_bonus_shaker": [30, 500]},
    {"pays_bonus_other": [25, 50, False]},
    {"bonus_stake_max": 0},
]
WRONG_FILES: list[Any] = [
    None,
    [],
    {},
    {"name": "house", "values": {}, "base": 7},
    {"name": "house", "values": {}, "base": "zz"},
    {"name": "house", "values": {"positions": 7}},
    {"name": "house", "values": {"positions": [7, 7]}},
    {"name": 7, "values": {}},
]
WRONG_PACKS: list[Any] = ["zz", "", "NJ", "nj.txt", "no-such-file.json", "no/such/file.json", 7, None, []]
WRONG = [
    *[("case", wrong) for wrong in WRONG_CASES],
    *[("options", wrong) for wrong in WRONG_OPTIONS],
    *[("file", wrong) for wrong in WRONG_FILES],
    *[("pack", wrong) for wrong in WRONG_PACKS],
]


def told(run: Run, inputs: list[tuple[str, Any]]) -> list[tuple[Any, str]]:
    lines = run("refuse.py", stdin=json.dumps(inputs, ensure_ascii=False)).splitlines()
    return [(entry[1], line) for entry, line in zip(inputs, lines, strict=True)]


def test_what_bad_input_is_told(micropython: Run, cpython: Run) -> None:
    ours = told(micropython, WRONG)
    assert ours == told(cpython, WRONG)
    assert "taken" not in [line for _, line in ours]


@pytest.mark.parametrize(
    "given",
    [
        ("case", case(wager="mätch")),
        ("options", {"after_third": "später"}),
        ("case", case(dice={"b": 1})),
        ("options", {"zero": 1, "one": 2, "two": 3, "three": 4}),
    ],
)
def test_what_bad_input_in_other_letters_or_of_many_parts_is_told(
    micropython: Run, cpython: Run, given: tuple[str, Any]
) -> None:
    assert told(micropython, [given]) == told(cpython, [given])
