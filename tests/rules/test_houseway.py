"""House ways: each rule of each file by an example, and what is wrong with a file is named."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from dragoneye.errors import BadInput
from host_tools.rules import houseway, tile_arrays, tiles
from host_tools.rules.tiles import Hands, Tile
from tests.rules.conftest import Run

# Four tiles -> the high hand, the low hand, and the rule that decides, worked out by hand from each source.
FOXWOODS = [
    ("66 66 11 11", "66 66", "11 11", "two-pairs"),
    ("24 12 33 33", "24 12", "33 33", "two-pairs"),
    ("13 13 66 11", "13 13", "66 11", "pairs-a"),
    ("14 23 66 36", "14 23", "66 36", "pairs-a"),
    ("56 56 11 66", "56 56", "11 66", "pairs-a"),
    # Six and four with the supreme pair: the 2-4 counts as 3 with the six, 9, and the 1-2 with the four is 7.
    ("24 12 33 22", "24 33", "12 22", "pairs-b"),
    ("24 12 66 11", "24 12", "66 11", "pairs-kept"),
    # Split, each of these is a 6 or 7 and an 8 or 9: two lower hands than the pair and the 9, 7 or 8 beside it.
    ("66 66 12 33", "66 66", "12 33", "unwritten"),
    ("66 66 12 22", "66 66", "12 22", "unwritten"),
    ("11 11 24 23", "11 11", "24 23", "unwritten"),
    # A twelve with a nine and one with an eight: wong and gong.
    ("66 66 36 26", "66 36", "66 26", "pairs-c"),
    ("11 11 33 13", "11 33", "11 13", "pairs-c"),
    ("66 66 36 56", "66 36", "66 56", "pairs-c-9-11"),
    ("66 66 14 56", "66 66", "14 56", "pairs-kept"),
    ("36 45 66 55", "66 36", "55 45", "pairs-d"),
    ("36 45 66 56", "36 45", "66 56", "pairs-kept"),
    ("26 35 11 56", "11 26", "56 35", "pairs-e"),
    ("44 44 36 56", "56 44", "36 44", "pairs-e-9-11"),
    ("16 16 66 11", "66 16", "11 16", "pairs-f"),
    ("16 16 36 56", "16 16", "36 56", "pairs-kept"),
    ("66 36 26 56", "66 36", "26 56", "tops-a"),
    ("11 36 16 56", "11 36", "16 56", "tops-b"),
    ("66 26 16 22", "66 26", "16 22", "tops-c"),
    ("66 26 16 14", "66 26", "16 14", "tops-c-low-8"),
    ("66 44 16 14", "66 16", "44 14", "high-nine"),
    ("66 11 16 36", "66 36", "11 16", "tops-both"),
    ("66 11 26 16", "66 26", "11 16", "tops-both"),
    ("66 16 26 55", "66 16", "26 55", "high-nine"),
    ("66 26 36 33", "66 26", "36 33", "gong"),
    ("66 36 33 22", "66 36", "33 22", "wong"),
    # 5-5 with 3-6 is 9 and 1-3 with 2-2 is 8; the high ten could be in neither better.
    ("55 36 13 22", "55 36", "13 22", "other-a"),
    ("66 33 11 14", "66 33", "11 14", "other-b"),
    # Best low hand 2 (below a high 3), best high hand 9: the high hand is made as high as possible.
    ("33 22 15 23", "22 23", "33 15", "other-high"),
    ("33 22 14 16", "22 14", "33 16", "other-low"),
]
PENNSYLVANIA = [
    ("24 12 33 22", "24 12", "33 22", "d1"),
    ("36 45 66 55", "36 45", "66 55", "d2"),
    ("66 36 26 56", "66 36", "26 56", "d2"),
    ("33 22 14 16", "22 14", "33 16", "d3"),
    ("55 46 14 12", "14 12", "55 46", "d3"),
    ("46 55 22 15", "55 15", "46 22", "beyond-the-text"),
]


def pair(text: str) -> tuple[Tile, Tile]:
    first, second = text.split()
    return tiles.parse(first), tiles.parse(second)


@pytest.mark.parametrize(
    ("way", "four", "high", "low", "rule"),
    [("foxwoods", *row) for row in FOXWOODS] + [("pennsylvania", *row) for row in PENNSYLVANIA],
)
def test_each_rule_by_an_example(way: str, four: str, high: str, low: str, rule: str) -> None:
    found = houseway.load(way).set([tiles.parse(tile) for tile in four.split()])
    assert (sorted(found.high), sorted(found.low)) == (sorted(pair(high)), sorted(pair(low)))
    assert found.rule == rule


@pytest.mark.parametrize("way", ["foxwoods", "pennsylvania"])
def test_every_rule_of_a_file_is_there_for_some_hand(way: str) -> None:
    loaded = houseway.load(way)
    faces = {tuple(sorted(four)) for four in combinations(tiles.deck(), 4)}
    used = {loaded.set(four).rule for four in faces}
    assert used == {rule.rule for rule in loaded.rules}


@pytest.mark.parametrize("zero_rule", tiles.ZERO_RULES)
@pytest.mark.parametrize("way", houseway.names())
def test_no_way_plays_two_hands_of_which_none_is_better_than_in_another_split(way: str, zero_rule: str) -> None:
    loaded, by = houseway.load(way), tiles.table(zero_rule)

    def strengths(hands: Hands) -> tuple[int, int]:
        return by[hands.high[0]][hands.high[1]], by[hands.low[0]][hands.low[1]]

    faces = {tuple(sorted(four)) for four in combinations(tiles.deck(), 4)}
    assert len(faces) == 8_130
    for four in faces:
        high, low = strengths(loaded.set(four, zero_rule))
        others = [strengths(split) for split in tiles.splits(four)]
        assert (high, low) in others
        assert not [one for one in others if one != (high, low) and one[0] >= high and one[1] >= low], four


@pytest.mark.parametrize("zero_rule", tiles.ZERO_RULES)
@pytest.mark.parametrize("way", [*houseway.names(), "mine"])
def test_setting_all_hands_at_once_is_setting_each(way: str, zero_rule: str) -> None:
    # One of everything that a rule can say, with ties that the preference leaves.
    rules = [
        {"rule": "a", "text": "a", "if": {"one": {"tiles": [[6], [4, "1-2"]]}, "other": {"at_least": [3, "3-3"]}},
         "unless": {"low": {"values": [0, 9]}}, "play": {"high": {"kinds": ["value"]}}, "prefer": ["low"]},
        {"rule": "b", "text": "b", "if": {"high": {"pair_ranks": [1, 2, 9]}, "low": {"tiles": [[11]]}},
         "prefer": ["high"]},
        LAST,
    ]  # fmt: skip
    made = {"name": "mine", "version": "1", "source": "a test", "rules": rules}
    loaded = houseway.from_dict(made) if way == "mine" else houseway.load(way)
    high, low = tile_arrays.set_all(loaded, zero_rule)
    by = tiles.table(zero_rule)
    found = {}
    for four, *strengths in zip(combinations(tiles.deck(), 4), high.tolist(), low.tolist(), strict=True):
        if four not in found:
            hands = loaded.set(four, zero_rule)
            found[four] = [by[hands.high[0]][hands.high[1]], by[hands.low[0]][hands.low[1]]]
        assert strengths == found[four], four
    if way == "mine":
        assert {loaded.set(four, zero_rule).rule for four in found} == {"a", "b", "last"}


def test_pennsylvania_is_max_high_as_far_as_it_is_known() -> None:
    known, plain = houseway.load("pennsylvania"), houseway.load("max_high")
    for four in {tuple(sorted(four)) for four in combinations(tiles.deck(), 4)}:
        one, other = known.set(four), plain.set(four)
        assert (one.high, one.low) == (other.high, other.low)
    assert "as max_high does" in known.ends


def test_the_plain_ways_are_what_they_say() -> None:
    low_way, high_way = houseway.load("max_low"), houseway.load("max_high")

    def by_low(hands: Hands) -> tuple[int, int]:
        return tiles.strength(*hands.low), tiles.strength(*hands.high)

    for four in list(combinations(tiles.deck(), 4))[::37]:
        split = tiles.splits(four)
        assert by_low(low_way.set(four)) == max(map(by_low, split))
        assert by_low(high_way.set(four))[::-1] == max(by_low(hands)[::-1] for hands in split)


def test_equal_zeros_leave_the_choice_to_the_high_hand() -> None:
    # Both low hands are zeros: with the better tile, or beside the better high hand.
    way = houseway.load("max_low")
    differ = 0
    for four in {tuple(sorted(four)) for four in combinations(tiles.deck(), 4)}:
        ranked, equal = way.set(four), way.set(four, "bank_wins")
        if (ranked.high, ranked.low) != (equal.high, equal.low):
            differ += 1
            assert tiles.rank(*ranked.low).value == tiles.rank(*equal.low).value == 0
            assert tiles.strength(*equal.high) > tiles.strength(*ranked.high)
    assert differ


LAST = {"rule": "last", "text": "otherwise", "prefer": ["low"]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rules": []}, "rules is an empty list; needed: a list that is not empty"),
        ({"rules": 5}, "rules is 5"),
        ({"rules": [{**LAST, "if": {"high": {"values": [9]}}}]}, "the last rule must hold for every hand"),
        ({"rules": [{**LAST, "play": {"low": {"at_least": [5]}}}]}, "the last rule must hold for every hand"),
        ({"rules": [{"rule": "x"}]}, "rule 1 has no text"),
        ({"rules": [{**LAST, "prefer": ["middle"]}]}, "prefer is 'middle'; allowed: high, low"),
        ({"rules": [{**LAST, "when": {}}]}, "has a field 'when'"),
        ({"rules": [{**LAST, "if": {"middle": {}}}]}, "has a field 'middle'; allowed: high, low, one, other"),
        ({"rules": [{**LAST, "if": {"high": {"kinds": ["flush"]}}}]}, "kinds is 'flush'"),
        ({"rules": [{**LAST, "if": {"high": {"values": [10]}}}]}, "values is 10; allowed: a whole number from 0 to 9"),
        ({"rules": [{**LAST, "if": {"high": {"pair_ranks": [0]}}}]}, "pair_ranks is 0"),
        ({"rules": [{**LAST, "if": {"high": {"tiles": [[7], [8], [9]]}}}]}, "tiles are of one or two classes"),
        ({"rules": [{**LAST, "if": {"high": {"tiles": [["7-7"]]}}}]}, "there is no tile '7-7'"),
        ({"rules": [{**LAST, "if": {"high": {"tiles": [[13]]}}}]}, "tiles is 13"),
        ({"rules": [{**LAST, "if": {"high": {"at_least": [9, "1-2"], "kinds": []}}}]}, "kinds is an empty list"),
        (
            {"rules": [{**LAST, "if": {"high": {"at_least": [9, "6-6", "1-1"]}}}]},
            "rule 1, if, high: at_least is a value and, if need be, a best tile",
        ),
        (
            {"rules": [{**LAST, "if": {"high": {"at_least": [9, "nine"]}}}]},
            "mine.json, rule 1, if, high: at_least: 'nine' can be 3-6 or 4-5",
        ),
        ({"rules": [{**LAST, "text": 5}]}, "rule and text must be texts"),
        ({"name": 5}, "name must be a text"),
        ({"complete": "yes"}, "complete must be true or false"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"name": "mine", "version": "1", "source": "me", "rules": [LAST], **change}))
    with pytest.raises(BadInput) as raised:
        houseway.load(str(path))
    assert said in str(raised.value)


def test_an_operators_own_way(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"name": "mine", "version": "7", "source": "me", "rules": [LAST]}))
    way = houseway.load(str(path))
    assert (way.name, way.version, way.complete) == ("mine", "7", True)
    assert way.set(tiles.deck()[:4]).rule == "last"


def test_brackets_in_an_operators_words_are_printed_as_they_are(tmp_path: Path, tablectl: Run) -> None:
    path = tmp_path / "mine.json"
    words = {"name": "mine", "version": "[7]", "source": "[/b] of the [red]book", "ends": "[/]"}
    path.write_text(json.dumps({**words, "rules": [LAST]}))
    code, out, _err = tablectl("tiles", "explain", "66", "11", "44", "13", "--house-way", str(path))
    assert code == 0
    assert all(text in out for text in words.values())


@pytest.mark.parametrize("name", ["mine", "", "../max_low", "no/such.json"])
def test_a_way_that_is_not_there(name: str) -> None:
    with pytest.raises(BadInput, match=r"there is no house way|cannot be read"):
        houseway.load(name)


@pytest.mark.parametrize("text", ["", "[1]", "{", "\x00\xff", "[" * 5000])
def test_a_file_that_is_no_house_way(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(BadInput, match="house way"):
        houseway.load(str(path))


def own(**changes: Any) -> dict[str, Any]:
    last = {"rule": "last", "text": "otherwise", "prefer": ["low"]}
    return {"name": "mine", "version": "1", "source": "me", "rules": [last], **changes}


def test_the_hand_that_a_rule_does_not_name_decides_between_equals() -> None:
    assert houseway.from_dict(own()).rules[0].prefer == ("low", "high")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"source": " "}, "house way: source is empty; needed: a text"),
        ({"name": ""}, "house way: name is empty; needed: a text"),
        ({"rules": own()["rules"] * 2}, "house way: two rules are named 'last'"),
        (
            {"rules": [{"rule": "a", "text": "b", "prefer": ["low", "low"]}]},
            "house way, rule 1: prefer names one hand twice",
        ),
    ],
)
def test_an_own_way_that_says_too_little_or_the_same_twice_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)):
        houseway.from_dict(own(**changes))
