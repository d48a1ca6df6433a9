"""Fast action hold'em: the seventeen ranks, two implementations against each other, and the commands."""

from __future__ import annotations

import json
import re
from itertools import combinations, combinations_with_replacement, pairwise
from pathlib import Path

import numpy as np
import pytest

from dragoneye.errors import BadInput
from host_tools.rules import cards, cards_text
from host_tools.rules.cards import Card
from tests.rules.conftest import Run, rows

# Every class of hands: the ranks of five cards with repetition, of one suit or not.
CLASSES = [
    tuple(Card(rank, "S" if one_suit or place else "H") for place, rank in enumerate(ranks))
    for ranks in combinations_with_replacement(range(2, 15), 5)
    for one_suit in (True, False)
]


def hand(text: str) -> tuple[Card, ...]:
    return cards.parse_hand(text.split())


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("AS AS AS AS AS", 1),
        ("AS KS QS JS TS", 2),
        ("9H 9H 9H 9H 2H", 3),
        ("KS QS JS TS 9S", 4),
        ("5D 4D 3D 2D AD", 4),
        ("AC AC AC KC KC", 5),
        ("2S 2H 2D 2C 2S", 6),
        ("8S 8S 8S 3S 4S", 7),
        ("3S 3S 2S 2S 9S", 8),
        ("2S 2S 9S 8S 7S", 9),
        ("KS KH KD KC 2S", 10),
        ("2S 2H 2D 3C 3S", 11),
        ("AS KS QS JS 9S", 12),
        ("AS KS QS JS TH", 13),
        ("5D 4D 3D 2D AH", 13),
        ("KS AH 2D 3C 4S", 17),
        ("7S 7S 7H 2D 3C", 14),
        ("7S 7S 2H 2D 3C", 15),
        ("7S 7S 2H 4D 3C", 16),
        ("AS KS QS JS 9H", 17),
    ],
)
def test_examples_of_each_rank(text: str, rank: int) -> None:
    assert cards.rank(hand(text)).rank == rank


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("5S 5S 5S 5S 2H", "KS KH KD QS QH"),  # four-of-a-kind over full house
        ("3S 3S 4S 6S 8S", "KS KH KD KC AS"),  # a flush with one pair over four-of-a-kind
        ("2S 2S 2S 2S 2S", "AS KS QS JS TS"),  # five of one card over the royal flush
        ("2S 2S 2S 2S 3S", "KS QS JS TS 9S"),  # a flush with four-of-a-kind over the straight flush
        ("KS KH KD QS QH", "2S 2H 2D AS AH"),  # the three first, then the pair
        ("6S 5H 4D 3C 2S", "5S 4H 3D 2C AS"),  # the wheel is the lowest straight
        ("3S 3H 2D 2C 2S", "2S 2H 2D 3C 4S"),
        ("AS AH 3D 3C 2S", "KS KH QD QC AS"),
        ("AS AH AD KC 3S", "AS AH AD KC 2S"),
    ],
)
def test_the_order_inside_and_between_ranks(better: str, worse: str) -> None:
    assert cards.compare(hand(better), hand(worse)) == "first"
    assert cards.compare(hand(worse), hand(better)) == "second"


def test_suits_are_equal_and_equal_hands_are_copies() -> None:
    assert cards.compare(hand("AS KS QS JS TS"), hand("AH KH QH JH TH")) == "copy"
    assert cards.compare(hand("AS AH 3D 3C 2S"), hand("AC AD 3S 3H 2C")) == "copy"


def test_clause_c_read_alone_is_only_for_study() -> None:
    deuces, kings = hand("2S 2H 2D AS AH"), hand("KS KH KD QS QH")
    assert cards.compare(deuces, kings) == "second"
    assert cards.compare(deuces, kings, literal_c=True) == "first"
    # Between ranks nothing changes.
    assert cards.compare(hand("2S 2H 2D 2C 3S"), kings, literal_c=True) == "first"


def test_there_are_as_many_classes_as_there_should_be() -> None:
    assert len(CLASSES) == 2 * 6188
    found = {cards.rank(one).strength for one in CLASSES}
    # Every class is a strength of its own: suits apart, only the same ranks make a copy.
    assert len(found) == len(CLASSES)
    assert {cards.rank(one).rank for one in CLASSES} == set(range(1, 18))


def test_both_implementations_agree_on_every_class() -> None:
    ordered = sorted(CLASSES, key=lambda one: cards.rank(one).strength)
    # The text's comparison is by rank and then card by card, so neighbours in order put all in order.
    assert all(cards_text.compare(worse, better) == "second" for worse, better in pairwise(ordered))
    for one in CLASSES:
        assert cards.rank(one).rank == cards_text.rank_and_order(one)[0]


def test_the_batch_agrees_on_every_class() -> None:
    numbers = np.array([[cards.number_of(card) for card in one] for one in CLASSES])
    by_batch = np.argsort(cards.strengths(numbers)).tolist()
    assert by_batch == sorted(range(len(CLASSES)), key=lambda place: cards.rank(CLASSES[place]).strength)
    assert sorted(cards.strengths(numbers).tolist()) == list(range(1, len(CLASSES) + 1))


def check_random_hands(count: int, seed: int) -> None:
    """Deal hands from six decks and hold all three ways of ranking them against each other, neighbour by neighbour."""
    random = np.random.default_rng(seed)
    dealt = np.concatenate([np.argsort(random.random((1000, 312)), axis=1)[:, :5] for _block in range(count // 1000)])
    numbers = dealt % 52
    strengths = cards.strengths(numbers).tolist()
    made = [Card(number // 4 + 2, cards.SUITS[number % 4]) for number in range(52)]
    before: tuple[int, tuple[int, ...], tuple[int, list[int]]] | None = None
    for row, batch in zip(numbers.tolist(), strengths, strict=True):
        one = [made[number] for number in row]
        found, text = cards.rank(one), cards_text.rank_and_order(one)
        assert found.rank == text[0]
        if before is not None:
            by_text = (text[1] > before[2][1]) - (text[1] < before[2][1]) if text[0] == before[2][0] else None
            sign = (found.strength > before[1]) - (found.strength < before[1])
            assert sign == (batch > before[0]) - (batch < before[0])
            assert sign == (by_text if by_text is not None else 1 if text[0] < before[2][0] else -1)
        before = batch, found.strength, text
    assert len(numbers) == count


def test_random_hands_from_six_decks() -> None:
    check_random_hands(10_000, seed=1)


@pytest.mark.slow
def test_a_million_random_hands_from_six_decks() -> None:
    check_random_hands(1_000_000, seed=2)


def test_ordinary_hands_of_one_deck_fall_into_ranks_as_in_poker() -> None:
    # The known counts of the 2,598,960 hands of one deck, for the ranks that one deck can make.
    hands = np.array(list(combinations(range(52), 5)), dtype=np.int8)
    found = np.bincount(cards.strengths(hands), minlength=len(CLASSES) + 1)
    numbers = np.array([[cards.number_of(card) for card in one] for one in CLASSES])
    ranks = np.zeros(len(CLASSES) + 1, dtype=int)
    ranks[cards.strengths(numbers)] = [cards.rank(one).rank for one in CLASSES]
    counts = {rank: int(found[ranks == rank].sum()) for rank in range(1, 18)}
    assert {rank: count for rank, count in counts.items() if count} == {
        2: 4, 4: 36, 10: 624, 11: 3_744, 12: 5_108, 13: 10_200, 14: 54_912, 15: 123_552, 16: 1_098_240, 17: 1_302_540,
    }  # fmt: skip


def test_the_names_are_those_of_the_text() -> None:
    text = (Path(__file__).parent.parent / "golden" / "nj-13-69F-21.3.txt").read_text(encoding="utf-8")
    names = re.findall(r'^\d+\. "([^"]+)" is a hand', text, flags=re.MULTILINE)
    assert [cards.rank_name(rank) for rank in range(1, 18)] == names


@pytest.mark.parametrize(
    "text", ["", "A", "S", "1S", "11S", "AX", "ASS", "10", "ASKS", "ſS", "Aß", 1, None, True, ["AS"], {"AS": 1}]
)
def test_what_is_no_card_is_refused(text: object) -> None:
    with pytest.raises(BadInput, match="there is no card"):
        cards.parse(text)


def test_no_hand_has_more_of_a_card_than_there_are_decks() -> None:
    with pytest.raises(BadInput, match="AS is there 5 times; allowed: once for each deck, and decks is 4"):
        cards.parse_hand(["AS"] * 5, decks=4)
    with pytest.raises(BadInput, match="decks is 0"):
        cards.parse_hand(["AS"] * 5, decks=0)
    with pytest.raises(BadInput, match="hand has 4; needed: a list of 5 cards"):
        cards.parse_hand(["AS"] * 4)


@pytest.mark.parametrize("hands", [np.zeros((2, 4), int), np.zeros(5, int), np.full((1, 5), 52), np.full((1, 5), 0.5)])
def test_a_batch_that_is_no_array_of_hands_is_refused(hands: np.ndarray) -> None:  # type: ignore[type-arg]
    with pytest.raises(BadInput):
        cards.strengths(hands)


def test_card_commands_keep_their_contract(tablectl: Run) -> None:
    lines = '["AS","AS","AS","AS","AS"]\n["AS","KS","QS","JS"]\n["10h","9h","8h","7h","6h"]\n["AS",1,2,3,4]\n'
    code, out, _err = tablectl("cards", "rank", "--batch", "-", "--json", stdin=lines)
    best, four_cards, straight, wrong = rows(out)
    assert code == 2
    assert (best["rank"], best["name"], straight["rank"]) == (1, "Flush with five-of-a-kind", 4)
    assert best["strength"] > straight["strength"]
    assert [row["line"] for row in (four_cards, wrong)] == [2, 4]
    case = json.dumps({"first": ["2S", "2H", "2D", "AS", "AH"], "second": ["KS", "KH", "KD", "QS", "QH"]})
    assert rows(tablectl("cards", "compare", "--batch", "-", stdin=case)[1])[0]["result"] == "second"
    [told] = rows(tablectl("cards", "compare", "--literal-c", "--batch", "-", stdin=case)[1])
    assert (told["result"], told["literal_c"]) == ("first", True)
    [told] = rows(tablectl("cards", "compare", "--batch", "-", stdin=case)[1])
    assert (told["result"], "literal_c" in told) == ("second", False)
    for command, words in (("rank", ["2S", "2H", "2D", "AS", "AH"]), ("order", ["2S,2H,2D,AS,AH"])):
        assert "for study, not for play" in tablectl("cards", command, "--literal-c", *words)[1]
        assert "for study" not in tablectl("cards", command, *words)[1]
    assert tablectl("cards", "compare", *["2S"] * 5, *["KS"] * 4)[0] == 2
    code, out, _err = tablectl("cards", "order", "2S,2S,3H,4D,5C", "AS,KS,QS,JS,9H", "AH,KH,QH,JH,9S", "--json")
    assert [row["place"] for row in json.loads(out)["hands"]] == [1, 2, 2]
