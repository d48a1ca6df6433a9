"""Rule packs: each value has a source, an operator's own pack starts from another, and mistakes are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoneye.errors import BadInput
from dragoneye.rules import packs


@pytest.mark.parametrize("name", packs.NAMES)
def test_every_value_of_a_pack_has_a_source(name: str) -> None:
    pack = packs.load(name)
    assert sorted(pack.values) == list(packs.KEYS)
    assert all(len(pack.source(key)) > 10 for key in packs.KEYS)


def test_packs_say_what_the_rules_say() -> None:
    nj, pr, ca = (packs.load(name) for name in packs.NAMES)
    assert [len(pack["wagers"]) for pack in (nj, pr, ca)] == [6, 0, 0]
    assert [pack["bets_close"] for pack in (nj, pr, ca)] == ["shake", "shake", "reveal"]
    assert [pack["positions"] for pack in (nj, pr, ca)] == [7, 7, 8]
    assert [pack["zero_rule"] for pack in (nj, pr, ca)] == ["high_tile", "high_tile", "bank_wins"]
    assert [pack["commission_bp"] for pack in (nj, pr, ca)] == [500, 500, 0]
    assert [pack["shakes_max"] for pack in (nj, pr, ca)] == [None, None, 6]
    assert {pack["jolts_min"] for pack in (nj, pr, ca)} == {3}


def test_an_operators_pack_changes_values_and_keeps_the_sources_of_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "house.json"
    values = {"wagers": [["bonus", "match"], "house choice"], "bonus_stake_max": [2500, "house choice"]}
    path.write_text(json.dumps({"name": "house", "base": "ca", "values": values}))
    pack = packs.load(str(path))
    assert pack["wagers"] == ["match", "bonus"]
    assert (pack["bonus_stake_max"], pack.source("bonus_stake_max")) == (2500, "house choice")
    assert (pack["positions"], pack.source("positions")) == (8, packs.load("ca").source("positions"))
    again = packs.from_dict(json.loads(json.dumps(pack.as_dict())))
    assert (again.values, again.sources) == (pack.values, pack.sources)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"positions": [9, "x"]}, "positions is 9; allowed: a whole number from 6 to 8"),
        ({"positions": [True, "x"]}, "positions is true"),
        ({"after_third": ["stop", "x"]}, 'after_third is "stop"; allowed: one of cap, restart, hold'),
        ({"wagers": [["match", "match"], "x"]}, "a list of different wagers"),
        ({"pays_bonus_other": [[1, 2], "x"]}, "three whole numbers"),
        ({"colour": ["red", "x"]}, 'no value is named "colour"'),
        ({"positions": 7}, 'positions must be [value, "source"]'),
        ({"positions": [7, " "]}, "positions has an empty source; needed: where its value comes from"),
        ({"positions": [7, "x\x1b[31m"]}, "the source of positions is "),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(tmp_path: Path, values: dict[str, object], said: str) -> None:
    path = tmp_path / "house.json"
    path.write_text(json.dumps({"name": "house", "base": "nj", "values": values}))
    with pytest.raises(BadInput) as raised:
        packs.load(str(path))
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": ""}, 'name is ""; allowed: a text without control characters'),
        ({"title": 5}, "title is 5; allowed: a text"),
        ({"title": None}, "title is null; allowed: a text"),
        ({"title": "a\x1b]0;b\x07"}, "title is "),
        ({"vaules": {}}, 'there is no "vaules"; allowed: name, title, base, values'),
    ],
)
def test_what_a_pack_says_of_itself_is_checked(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    path = tmp_path / "house.json"
    path.write_text(json.dumps({"name": "house", "base": "nj", "values": {}, **changes}))
    with pytest.raises(BadInput) as raised:
        packs.load(str(path))
    assert said in str(raised.value)
    assert "\x1b" not in str(raised.value)


def test_a_value_that_is_there_twice_is_refused_and_a_mark_of_the_editor_is_not(tmp_path: Path) -> None:
    path = tmp_path / "house.json"
    path.write_text('{"name": "a", "base": "nj", "values": {"positions": [8, "x"], "positions": [6, "x"]}}')
    with pytest.raises(BadInput, match=r'house\.json: "positions" is there twice'):
        packs.load(str(path))
    path.write_bytes(b"\xef\xbb\xbf" + b'{"name": "a", "base": "nj", "values": {}}')
    assert packs.load(str(path)).name == "a"


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"name": "a"}', '{"name": "a", "values": {}}', "\x00\xff"])
def test_a_file_that_is_no_whole_pack_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "house.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(BadInput):
        packs.load(str(path))


def test_bases_that_go_round_in_a_circle_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"name": "a", "base": "a.json", "values": {}}))
    with pytest.raises(BadInput, match="circle"):
        packs.load(str(path))
    with pytest.raises(BadInput, match='there is no rule pack "zz"'):
        packs.load("zz")
