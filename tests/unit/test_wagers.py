"""The six dragon's eye wagers against an independent restatement of NJ 13:69F-11.21, on every roll there is."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoneye.errors import BadInput
from dragoneye.rules import packs, wagers
from dragoneye.text import show
from tests.unit import restated_wagers as text

NJ = packs.load("nj")
HUGE = 10**40
# Nothing of this is a whole number, whatever the field.
NO_NUMBERS: tuple[object, ...] = (True, False, None, "1", 1.0, float("nan"), [1], [[1]], (1,), {"1": 1}, {})


def case(**changes: Any) -> dict[str, Any]:
    good = {"dice": [3, 3, 4], "eye": 2, "position": 3, "wager": "match", "stake": 500, "role": "player", "streak": 0}
    return {**good, **changes}


def odds_at(wager: str, roll: tuple[int, int, int], position: int, eye: int = 0, **options: str) -> int:
    pack = NJ.with_options(options)
    paid: int = wagers.odds(wager, roll, eye, position, "player", 0, pack)
    return paid


# The whole space


@pytest.mark.parametrize("options", text.EVERY_OPTION, ids="-".join)
def test_every_roll_eye_position_wager_role_and_streak_is_settled_as_the_text_says(options: text.Options) -> None:
    pack = NJ.with_options(options._asdict())
    wrong = []
    space = product(text.ROLLS, text.EYES, text.POSITIONS, text.WAGERS, text.ROLES, range(6))
    count = 0
    for roll, eye, position, wager, role, streak in space:
        count += 1
        result = wagers.settle_one(wager, 7, roll, eye, position, role, streak, pack)
        if result != text.settled(7, text.odds_to_one(wager, roll, eye, position, role, streak, options)):
            wrong.append((roll, eye, position, wager, role, streak, result))
    assert (count, wrong[:5]) == (216 * 3 * 7 * 6 * 2 * 6, [])


@pytest.mark.parametrize("options", text.EVERY_OPTION, ids="-".join)
def test_a_checked_case_has_the_same_answer_and_the_bonus_its_level(options: text.Options) -> None:
    pack = NJ.with_options(options._asdict())
    for roll, wager, role, streak in product(text.ROLLS, text.WAGERS, text.ROLES, range(6)):
        expected = text.settled(250, text.odds_to_one(wager, roll, 1, 6, role, streak, options))
        level = text.level_of(wager, roll, streak, options)
        if level is not None:
            expected["level"] = level
        given = case(dice=list(roll), eye=1, position=6, wager=wager, stake=250, role=role, streak=streak)
        assert wagers.settle_case(given, pack) == expected, given


# The regulation's own words


@pytest.mark.parametrize(
    ("roll", "paid"),
    [
        pytest.param((1, 2, 3), {1: 1, 2: 1, 3: 1, 4: 0, 5: 0, 6: 0}, id="example A"),
        pytest.param((3, 3, 4), {1: 0, 2: 0, 3: 2, 4: 1, 5: 0, 6: 0}, id="example B"),
        pytest.param((5, 5, 5), {1: 0, 2: 0, 3: 0, 4: 0, 5: 3, 6: 0}, id="example C"),
    ],
)
def test_the_regulations_examples_of_the_match_wager(roll: tuple[int, int, int], paid: dict[int, int]) -> None:
    for eye in text.EYES:
        assert {position: odds_at("match", roll, position, eye) for position in paid} == paid


@pytest.mark.parametrize(
    ("level", "shaker", "other"), [(1, 30, 25), (2, 500, 50), (3, 10_000, 1_000)], ids=["first", "two", "three"]
)
def test_consecutive_triples_pay_the_shaker_and_the_others_their_own_ladders(
    level: int, shaker: int, other: int
) -> None:
    # Any triples count; they need not be the same number.
    for value in text.FACES:
        roll = (value, value, value)
        paid = {role: wagers.odds("bonus", roll, 0, 1, role, level - 1, NJ) for role in wagers.ROLES}
        assert paid == {"shaker": shaker, "player": other}


@pytest.mark.parametrize(
    ("after_third", "levels"),
    [("cap", [1, 2, 3, 3, 3, 3, 3]), ("restart", [1, 2, 3, 1, 2, 3, 1]), ("hold", [1, 2, 3, 0, 0, 0, 0])],
)
def test_a_fourth_triple_is_the_packs_choice(after_third: str, levels: list[int]) -> None:
    pack = NJ.with_options({"after_third": after_third})
    assert [wagers.bonus_level(streak, pack) for streak in range(7)] == levels


def test_a_bonus_that_is_held_stays_up_and_is_lost_to_no_triple() -> None:
    pack = NJ.with_options({"after_third": "hold"})
    held = case(dice=[2, 2, 2], wager="bonus", stake=700, streak=3)
    assert wagers.settle_case(held, pack) == {"won": False, "odds": 0, "profit": 0, "returned": 700, "level": 0}
    assert wagers.settle_table({3: {"bonus": 700, "match": 100}}, (2, 2, 2), 0, 3, 3, pack) == [[3, "match", 100, 0]]
    assert wagers.settle_case({**held, "dice": [2, 2, 3]}, pack)["profit"] == -700


def test_nj_caps_at_the_third_triple_and_lets_a_triple_win_the_double() -> None:
    assert (NJ["after_third"], NJ["double_on_triple"]) == ("cap", "wins")
    assert odds_at("double", (6, 6, 6), 1) == 4


# Known answers out of 216


def ways(wager: str, role: str = "player", **options: str) -> Counter[int]:
    """Odds -> number of rolls, the same whichever die is the dragon's eye and whatever the position."""
    pack = NJ.with_options(options)
    counts = {
        frozenset(Counter(wagers.odds(wager, roll, eye, position, role, 0, pack) for roll in text.ROLLS).items())
        for eye in text.EYES
        for position in text.FACES
    }
    assert len(counts) == 1
    return Counter(dict(counts.pop()))


@pytest.mark.parametrize(
    ("wager", "role", "options", "won", "edge"),
    [
        ("match", "player", {}, {1: 75, 2: 15, 3: 1}, Fraction(-17, 216)),
        ("even", "player", {}, {1: 105}, Fraction(-1, 36)),
        ("odd", "player", {}, {1: 105}, Fraction(-1, 36)),
        ("double", "player", {}, {4: 36}, Fraction(-1, 6)),
        ("double", "player", {"double_on_triple": "loses"}, {4: 30}, Fraction(-11, 36)),
        ("triple", "player", {}, {30: 6}, Fraction(-5, 36)),
        ("bonus", "shaker", {}, {30: 6}, Fraction(-5, 36)),
        ("bonus", "player", {}, {25: 6}, Fraction(-5, 18)),
    ],
)
def test_win_ways_and_edges(
    wager: str, role: str, options: dict[str, str], won: dict[int, int], edge: Fraction
) -> None:
    found = ways(wager, role, **options)
    assert {odds: count for odds, count in found.items() if odds} == won
    assert text.edge(found) == edge


# A whole table

stakes = st.dictionaries(st.sampled_from(sorted(text.WAGERS)), st.integers(1, 10_000_000), max_size=6)


def without_a_match_at_the_seventh(bets: dict[int, dict[str, int]]) -> dict[int, dict[str, int]]:
    bets.get(7, {}).pop("match", None)
    return bets


tables = st.dictionaries(st.sampled_from(text.POSITIONS), stakes, max_size=7).map(without_a_match_at_the_seventh)
shakers = st.integers(0, 7)
options_of_a_pack = st.sampled_from(text.EVERY_OPTION)


@given(tables, st.sampled_from(text.ROLLS), st.sampled_from(text.EYES), shakers, st.integers(0, 9), options_of_a_pack)
def test_a_table_is_settled_wager_by_wager(
    bets: dict[int, dict[str, int]],
    roll: tuple[int, int, int],
    eye: int,
    shaker: int,
    streak: int,
    options: text.Options,
) -> None:
    pack = NJ.with_options(options._asdict())
    order = ("match", "even", "odd", "double", "triple", "bonus")
    singly = {}
    for position in sorted(bets):
        for wager in sorted(bets[position], key=order.index):
            role = text.role_of(position, shaker)
            singly[position, wager] = wagers.settle_one(
                wager, bets[position][wager], roll, eye, position, role, streak, pack
            )
    rows = wagers.settle_table(bets, roll, eye, shaker, streak, pack)
    assert [tuple(row) for row in rows] == [
        (position, wager, bets[position][wager], one["odds"])
        for (position, wager), one in singly.items()
        if one["won"] or one["profit"]
    ]
    assert wagers.net_of(rows) == sum(one["profit"] for one in singly.values())


def test_when_the_dealer_shakes_everybody_is_paid_as_a_non_shaker() -> None:
    bets = {position: {"bonus": 100} for position in text.POSITIONS}
    dealer = wagers.settle_table(bets, (2, 2, 2), 0, 0, 0, NJ)
    third = wagers.settle_table(bets, (2, 2, 2), 0, 3, 0, NJ)
    assert [row[3] for row in dealer] == [25] * 7
    assert [row[3] for row in third] == [25, 25, 30, 25, 25, 25, 25]


@settings(max_examples=40)
@given(tables, shakers, st.integers(0, 5), options_of_a_pack)
def test_liability_is_the_most_that_any_roll_pays_out(
    bets: dict[int, dict[str, int]], shaker: int, streak: int, options: text.Options
) -> None:
    pack = NJ.with_options(options._asdict())
    assert wagers.liability(bets, shaker, streak, pack) == text.most_owed(bets, shaker, streak, options)


@pytest.mark.parametrize(
    ("bets", "owed"),
    [
        ({}, 0),
        ({1: {"match": 100}}, 300),
        ({1: {"even": 100}, 2: {"odd": 150}}, 150),
        ({1: {"match": 100}, 2: {"match": 100}}, 300),
        ({1: {"triple": 100, "even": 100_000}}, 100_000),
        ({4: {"bonus": 100, "triple": 100, "double": 100, "match": 100}}, 3000 + 3000 + 400 + 300),
        ({7: {"bonus": 100}}, 2500),
    ],
)
def test_liability_of_tables_that_can_be_reckoned_by_hand(bets: dict[int, dict[str, int]], owed: int) -> None:
    assert wagers.liability(bets, 4, 0, NJ) == owed


# Caps


@pytest.mark.parametrize(
    ("options", "wager", "most"),
    [
        ({}, "match", 100_000_000),
        ({}, "bonus", 100_000_000),
        ({"stake_max": 500}, "even", 500),
        ({"stake_max": 500}, "bonus", 500),
        ({"bonus_stake_max": 2500}, "bonus", 2500),
        ({"bonus_stake_max": 2500}, "triple", 100_000_000),
        ({"bonus_stake_max": 2500, "stake_max": 100}, "bonus", 100),
    ],
)
def test_a_stake_over_the_cap_is_refused_with_the_figure(options: dict[str, int], wager: str, most: int) -> None:
    pack = NJ.with_options(options)
    assert wagers.check_stake(most, wager, pack) == most
    assert wagers.check_stake(1, wager, pack) == 1
    for stake in (most + 1, 0, -1, HUGE, -HUGE, *NO_NUMBERS):
        said = f"stake: {show(stake)} on {wager}; allowed: whole cents from 1 to {most}"
        with pytest.raises(BadInput, match="^" + re.escape(said) + "$"):
            wagers.check_stake(stake, wager, pack)


# Refusals: each names the input and what is allowed


@pytest.mark.parametrize(
    "dice", [None, True, 3, "334", "", {}, {1, 2, 3}, [], [3, 3], (3, 3, 4, 4), [[3, 3, 4]], range(3)]
)
def test_what_is_not_three_dice_is_refused(dice: object) -> None:
    with pytest.raises(BadInput, match="^" + re.escape(f"dice: {show(dice)}; allowed: three values from 1 to 6") + "$"):
        wagers.check_dice(dice)


@pytest.mark.parametrize("place", text.EYES)
@pytest.mark.parametrize("die", [0, 7, -1, HUGE, *NO_NUMBERS], ids=repr)
def test_what_no_die_shows_is_refused(die: object, place: int) -> None:
    dice: list[object] = [1, 6, 3]
    dice[place] = die
    said = f"dice: a die shows {show(die)}; allowed: a whole number from 1 to 6"
    with pytest.raises(BadInput, match="^" + re.escape(said) + "$"):
        wagers.check_dice(dice)


def test_good_dice_come_back_as_a_tuple() -> None:
    assert wagers.check_dice([1, 6, 3]) == wagers.check_dice((1, 6, 3)) == (1, 6, 3)


@pytest.mark.parametrize(
    ("check", "name", "good", "bad", "allowed"),
    [
        (wagers.check_eye, "eye", [0, 1, 2], [3, -1, HUGE], "0, 1 or 2"),
        (lambda value: wagers.check_position(value, NJ), "position", range(1, 8), [0, 8, -1, HUGE], "from 1 to 7"),
        (wagers.check_streak, "streak", [0, 1, 1_000_000], [-1, 1_000_001, HUGE], "from 0 to 1000000"),
    ],
    ids=["eye", "position", "streak"],
)
def test_numbers_out_of_their_range_are_refused(check: Any, name: str, good: Any, bad: list[int], allowed: str) -> None:
    assert [check(value) for value in good] == list(good)
    for value in (*bad, *NO_NUMBERS):
        with pytest.raises(BadInput, match="^" + re.escape(f"{name}: {show(value)}; allowed: ") + ".*" + allowed):
            check(value)


@pytest.mark.parametrize("wager", ["", "Match", "matches", "mätch", None, 1, True, ["match"], {"match": 1}, b"match"])
def test_an_unknown_wager_is_refused(wager: object) -> None:
    said = f"wager: {show(wager)}; allowed: match, even, odd, double, triple, bonus"
    with pytest.raises(BadInput, match="^" + re.escape(said) + "$"):
        wagers.check_wager(wager, 1, NJ)


def test_a_wager_that_the_pack_has_not_is_refused() -> None:
    with pytest.raises(BadInput, match=r"rule pack ca has no match wager; allowed: none \(tiles only\)$"):
        wagers.check_wager("match", 1, packs.load("ca"))
    some = NJ.with_options({"wagers": ["odd", "even"]})
    with pytest.raises(BadInput, match=r"rule pack nj has no bonus wager; allowed: even, odd$"):
        wagers.check_wager("bonus", 1, some)


def test_the_seventh_position_makes_every_wager_but_the_match() -> None:
    with pytest.raises(BadInput, match=r"^position: 7 cannot make a match wager; allowed: 1 to 6"):
        wagers.check_wager("match", 7, NJ)
    others = [wager for wager in text.WAGERS if wager != "match"]
    assert [wagers.check_wager(wager, 7, NJ) for wager in others] == others


@pytest.mark.parametrize("role", ["", "Shaker", "dealer", None, 0, True, ["shaker"], {}])
def test_an_unknown_role_is_refused(role: object) -> None:
    with pytest.raises(BadInput, match="^" + re.escape(f"role: {show(role)}; allowed: shaker or player") + "$"):
        wagers.settle_case(case(role=role), NJ)


@pytest.mark.parametrize("wrong", [None, True, 7, "dice", [], [["dice", [1, 2, 3]]]])
def test_a_case_is_an_object(wrong: object) -> None:
    with pytest.raises(
        BadInput, match=r"^a case is an object with dice, eye, position, wager, stake, role and streak$"
    ):
        wagers.settle_case(wrong, NJ)


@pytest.mark.parametrize("field", sorted(case()))
def test_every_field_of_a_case_is_needed_and_checked(field: str) -> None:
    short = case()
    del short[field]
    with pytest.raises(BadInput, match=f"^{field} is missing; a case has "):
        wagers.settle_case(short, NJ)
    with pytest.raises(BadInput, match=f"^{field}: null"):
        wagers.settle_case(case(**{field: None}), NJ)
    with pytest.raises(BadInput, match=r'^"colour" is not a field of a case; there are '):
        wagers.settle_case(case(colour="red"), NJ)


words = st.text("match é0", max_size=5)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(case())), anything)
def test_a_case_is_settled_or_refused_whatever_is_in_it(field: str, value: object) -> None:
    said = ""
    try:
        wagers.settle_case(case(**{field: value}), NJ)
    except BadInput as error:
        said = str(error)
    good = {"dice": list, "wager": str, "role": str}.get(field, int)
    assert isinstance(value, good) if not said else said.startswith(f"{field}: ")
