"""Fast action hold'em's ranking line by line from NJ 13:69F-21.3, sharing nothing with cards.py but the card itself.

Each item of (b) is one function that returns what orders the hands of its rank, most important first, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from host_tools.rules.cards import Card

Order = list[int]
Hand = Sequence[Card]

# (a): "in order from the highest to lowest rank".
_ORDER_OF_CARDS = "ace king queen jack 10 nine eight seven six five four three two"
_VALUES = dict(zip(_ORDER_OF_CARDS.split(), range(14, 1, -1), strict=True))


def _same_suit(hand: Hand) -> bool:
    return all(card.suit == hand[0].suit for card in hand)


def _ranks(hand: Hand) -> list[int]:
    return sorted([card.rank for card in hand], reverse=True)


def _of_a_kind(hand: Hand, many: int) -> list[int]:
    """The ranks that are there exactly `many` times, highest first."""
    ranks = _ranks(hand)
    return [value for value in range(14, 1, -1) if ranks.count(value) == many]


def _consecutive(hand: Hand) -> Order | None:
    """The top card of five consecutive ranks; the ace may also be below the two ((a)), and then the five is the top."""
    ranks = _ranks(hand)
    if ranks == list(range(ranks[0], ranks[0] - 5, -1)):
        return [ranks[0]]
    low_ace = [_VALUES[name] for name in ("ace", "five", "four", "three", "two")]
    return [_VALUES["five"]] if ranks == low_ace else None


def _four_and_one(hand: Hand) -> Order | None:
    fours = _of_a_kind(hand, 4)
    return fours + _of_a_kind(hand, 1) if fours else None


def _three_and_two(hand: Hand) -> Order | None:
    threes, pairs = _of_a_kind(hand, 3), _of_a_kind(hand, 2)
    return threes + pairs if threes and pairs else None


def _three_and_others(hand: Hand) -> Order | None:
    threes, others = _of_a_kind(hand, 3), _of_a_kind(hand, 1)
    return threes + others if threes and len(others) == 2 else None


def _two_pairs(hand: Hand) -> Order | None:
    pairs = _of_a_kind(hand, 2)
    return pairs + _of_a_kind(hand, 1) if len(pairs) == 2 else None


def _one_pair(hand: Hand) -> Order | None:
    pairs, others = _of_a_kind(hand, 2), _of_a_kind(hand, 1)
    return pairs + others if len(pairs) == 1 and len(others) == 3 else None


def flush_with_five_of_a_kind(hand: Hand) -> Order | None:
    """(b)1: "five cards of the same suit and same rank".

    >>> flush_with_five_of_a_kind([Card(14, "S")] * 5)
    [14]
    """
    return five_of_a_kind(hand) if _same_suit(hand) else None


def royal_flush(hand: Hand) -> Order | None:
    """(b)2: "an ace, king, queen, jack, and 10 of the same suit".

    >>> royal_flush([Card(rank, "H") for rank in (14, 13, 12, 11, 10)])
    []
    """
    royal = [_VALUES[name] for name in ("ace", "king", "queen", "jack", "10")]
    return [] if _same_suit(hand) and _ranks(hand) == royal else None


def flush_with_four_of_a_kind(hand: Hand) -> Order | None:
    """(b)3: "five cards of the same suit, four of which are also of the same rank".

    >>> flush_with_four_of_a_kind([Card(9, "S")] * 4 + [Card(2, "S")])
    [9, 2]
    """
    return _four_and_one(hand) if _same_suit(hand) else None


def straight_flush(hand: Hand) -> Order | None:
    """(b)4: "five cards of the same suit in consecutive ranking".

    >>> straight_flush([Card(rank, "D") for rank in (5, 4, 3, 2, 14)])
    [5]
    """
    return _consecutive(hand) if _same_suit(hand) else None


def flush_with_full_house(hand: Hand) -> Order | None:
    """(b)5: "a three-of-a-kind and a pair all of the same suit".

    >>> flush_with_full_house([Card(14, "C")] * 3 + [Card(13, "C")] * 2)
    [14, 13]
    """
    return _three_and_two(hand) if _same_suit(hand) else None


def five_of_a_kind(hand: Hand) -> Order | None:
    """(b)6: "five cards of the same rank regardless of suit".

    >>> five_of_a_kind([Card(2, suit) for suit in "SHDCS"])
    [2]
    """
    return _of_a_kind(hand, 5) or None


def flush_with_three_of_a_kind(hand: Hand) -> Order | None:
    """(b)7: "five cards of the same suit, three of which also are of the same rank".

    >>> flush_with_three_of_a_kind([Card(8, "S")] * 3 + [Card(3, "S"), Card(4, "S")])
    [8, 4, 3]
    """
    return _three_and_others(hand) if _same_suit(hand) else None


def flush_with_two_pairs(hand: Hand) -> Order | None:
    """(b)8: "five cards of the same suit, four of which also form two pairs".

    >>> flush_with_two_pairs([Card(3, "S")] * 2 + [Card(2, "S")] * 2 + [Card(9, "S")])
    [3, 2, 9]
    """
    return _two_pairs(hand) if _same_suit(hand) else None


def flush_with_one_pair(hand: Hand) -> Order | None:
    """(b)9: "five cards of the same suit, two of which also form one pair".

    >>> flush_with_one_pair([Card(2, "S")] * 2 + [Card(rank, "S") for rank in (9, 8, 7)])
    [2, 9, 8, 7]
    """
    return _one_pair(hand) if _same_suit(hand) else None


def flush(hand: Hand) -> Order | None:
    """(b)12: "five cards of the same suit but of varying rank".

    >>> flush([Card(rank, "S") for rank in (14, 3, 5, 7, 9)])
    [14, 9, 7, 5, 3]
    """
    return _ranks(hand) if _same_suit(hand) else None


def highest_ranking_card(hand: Hand) -> Order | None:
    """(b)17: "determined by the highest ranking individual card in the hand".

    >>> highest_ranking_card([Card(rank, suit) for rank, suit in zip((14, 3, 5, 7, 9), "SSSSH")])
    [14, 9, 7, 5, 3]
    """
    return _ranks(hand)


# (b): "in order of highest to lowest rank".
RANKS: tuple[Callable[[Hand], Order | None], ...] = (
    flush_with_five_of_a_kind,
    royal_flush,
    flush_with_four_of_a_kind,
    straight_flush,
    flush_with_full_house,
    five_of_a_kind,
    flush_with_three_of_a_kind,
    flush_with_two_pairs,
    flush_with_one_pair,
    _four_and_one,  # 10. four-of-a-kind
    _three_and_two,  # 11. full house
    flush,
    _consecutive,  # 13. straight
    _three_and_others,  # 14. three-of-a-kind
    _two_pairs,  # 15.
    _one_pair,  # 16. pair
    highest_ranking_card,
)


def rank_and_order(hand: Hand) -> tuple[int, Order]:
    """(b): the first of the seventeen ranks that five cards are, and what orders them inside it.

    >>> rank_and_order([Card(13, "S")] * 3 + [Card(12, "H")] * 2)
    (11, [13, 12])
    """
    for number, item in enumerate(RANKS, 1):
        order = item(hand)
        if order is not None:
            return number, order
    raise AssertionError(hand)


def compare(first: Hand, second: Hand) -> str:
    """ "first" or "second", whichever hand is higher by (b) and then inside the rank, or "copy" ((c)).

    >>> compare([Card(2, "S")] * 5, [Card(14, suit) for suit in "SSSSH"])
    'first'
    """
    first_rank, first_order = rank_and_order(first)
    second_rank, second_order = rank_and_order(second)
    if first_rank != second_rank:
        return "first" if first_rank < second_rank else "second"
    for one, two in zip(first_order, second_order, strict=True):
        if one != two:
            return "first" if one > two else "second"
    return "copy"
