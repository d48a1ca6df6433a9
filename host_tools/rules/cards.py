"""Fast action hold'em: the seventeen ranks of five-card hands over several decks (NJ 13:69F-21.3).

(b)'s own order is not the usual poker order, and the same card can be there five times. Inside a rank (b)'s "highest
is" and "lowest is" order by group (the four, the three, the higher pair), then the other cards from the top; suits are
equal. The text gives no payouts and no rule for a copy's wager: nor does this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dragoneye.errors import BadInput
from host_tools.i18n import _
from host_tools.rules.check import filled, listed, shown, whole

RANKS = "23456789TJQKA"
SUITS = "SHDC"
DECKS = 6
_SUIT_SIGNS = {"♠": "S", "♥": "H", "♦": "D", "♣": "C", "♤": "S", "♡": "H", "♢": "D", "♧": "C"}
_ACE = 14


class Card(NamedTuple):
    """A card: `rank` 2 to 14 (the ace, (a)) and `suit`, a letter of SUITS.

    >>> str(Card(14, "S")), str(Card(10, "H"))
    ('AS', 'TH')
    """

    rank: int
    suit: str

    def __str__(self) -> str:
        return RANKS[self.rank - 2] + self.suit


@dataclass(frozen=True)
class CardRank:
    """What five cards are: `rank` 1 (best) to 17 of (b), and a `strength` that is greater for the better hand.

    Strengths compare like Python's tuples; equal ones are a copy ((c)).
    """

    rank: int
    strength: tuple[int, ...]

    @property
    def name(self) -> str:
        """The rank's name in the chosen language.

        >>> CardRank(11, (7, 14, 13)).name
        'Full house'
        """
        return rank_name(self.rank)


def rank_name(rank: int) -> str:
    """The name of one of the seventeen ranks ((b)) in the chosen language.

    >>> rank_name(1), rank_name(17)
    ('Flush with five-of-a-kind', 'Highest ranking card')
    """
    return {
        1: _("Flush with five-of-a-kind"),
        2: _("Royal flush"),
        3: _("Flush with four-of-a-kind"),
        4: _("Straight flush"),
        5: _("Flush with full house"),
        6: _("Five-of-a-kind"),
        7: _("Flush with three-of-a-kind"),
        8: _("Flush with two pairs"),
        9: _("Flush with one pair"),
        10: _("Four-of-a-kind"),
        11: _("Full house"),
        12: _("Flush"),
        13: _("Straight"),
        14: _("Three-of-a-kind"),
        15: _("Two pairs"),
        16: _("Pair"),
        17: _("Highest ranking card"),
    }[rank]


# Sizes of the groups of equal rank -> (b)'s rank when all cards are of one suit, and when not; straights apart.
_BY_GROUPS = {
    (5,): (1, 6),
    (4, 1): (3, 10),
    (3, 2): (5, 11),
    (3, 1, 1): (7, 14),
    (2, 2, 1): (8, 15),
    (2, 1, 1, 1): (9, 16),
    (1, 1, 1, 1, 1): (12, 17),
}


def parse(text: Any) -> Card:
    """The card that a person wrote, of a rank of (a): "AS", "as", "10h", "T♥". Raises BadInput.

    >>> parse("10h"), parse("A♠")
    (Card(rank=10, suit='H'), Card(rank=14, suit='S'))
    >>> parse("1S")
    Traceback (most recent call last):
    dragoneye.errors.BadInput: there is no card '1S'; allowed: 2 to 9, T or 10, J, Q, K, A and a suit S, H, D or C
    """
    if isinstance(text, str):
        plain = text.strip()
        rank, suit = plain[:-1].upper(), plain[-1:]
        rank = "T" if rank == "10" else rank
        suit = _SUIT_SIGNS.get(suit, suit.upper())
        if len(rank) == 1 and rank in RANKS and len(suit) == 1 and suit in SUITS:
            return Card(RANKS.index(rank) + 2, suit)
    raise BadInput(
        _("there is no card {text}; allowed: 2 to 9, T or 10, J, Q, K, A and a suit S, H, D or C").format(
            text=shown(text)
        )
    )


def parse_hand(values: Any, what: str = "", decks: int = DECKS) -> tuple[Card, ...]:
    """Five cards ((b)) out of a list of texts, none there more often than `decks` allow; `what` names it in errors.

    Raises BadInput.

    >>> parse_hand(["AS"] * 5)[0]
    Card(rank=14, suit='S')
    >>> parse_hand(["AS"] * 5, decks=4)
    Traceback (most recent call last):
    dragoneye.errors.BadInput: AS is there 5 times; allowed: once for each deck, and decks is 4
    """
    hand = tuple(parse(text) for text in listed(values, 5, what or _("hand"), _("cards")))
    check_decks(hand, decks)
    return hand


def check_decks(cards: Sequence[Card], decks: int = DECKS) -> None:
    """Raise BadInput unless `decks` decks, 1 to 100, hold all these cards at once ((b)1 takes five of one card).

    >>> check_decks([Card(14, "S")] * 6)
    """
    whole(decks, 1, 100, "decks")
    for card, count in Counter(cards).items():
        if count > decks:
            raise BadInput(
                _("{card} is there {count} times; allowed: once for each deck, and decks is {decks}").format(
                    card=card, count=count, decks=decks
                )
            )


def rank(hand: Sequence[Card], literal_c: bool = False) -> CardRank:
    """What five cards are ((a), (b)). Raises BadInput if they are not five.

    With `literal_c` the hands of one rank are ordered by (c) read alone, for study: by their highest cards from the
    top, whatever group they are in, the ace always high. Then 2-2-2-A-A beats K-K-K-Q-Q.

    >>> rank([parse(card) for card in "KS KH KD QS QH".split()]).strength
    (7, 13, 12)
    >>> rank([parse(card) for card in "AS 2H 3D 4S 5H".split()]).strength
    (5, 5)
    """
    ranks = [card.rank for card in listed(hand, 5, _("hand"), _("cards"))]
    return _rank(ranks, len({card.suit for card in hand}) == 1, literal_c)


def _rank(ranks: list[int], one_suit: bool, literal_c: bool = False) -> CardRank:
    groups = sorted(Counter(ranks).items(), key=lambda group: (group[1], group[0]), reverse=True)
    place = _BY_GROUPS[tuple(size for _rank, size in groups)][0 if one_suit else 1]
    order = [value for value, _size in groups]
    if len(order) == 5:
        top = order[0] if order[0] - order[4] == 4 else 5 if order == [_ACE, 5, 4, 3, 2] else 0
        if top:
            place = (2 if top == _ACE else 4) if one_suit else 13
            order = [top]
    if literal_c:
        order = sorted(ranks, reverse=True)
    return CardRank(place, (18 - place, *order))


def compare(first: Sequence[Card], second: Sequence[Card], literal_c: bool = False) -> str:
    """ "first" or "second", whichever hand is higher ((b), (c)), or "copy". Raises BadInput.

    >>> kings, deuces = ([parse(card) for card in text.split()] for text in ("KS KH KD QS QH", "2S 2H 2D AS AH"))
    >>> compare(kings, deuces), compare(kings, deuces, literal_c=True)
    ('first', 'second')
    """
    one, two = rank(first, literal_c).strength, rank(second, literal_c).strength
    return "copy" if one == two else "first" if one > two else "second"


def placed(hands: Sequence[Sequence[Card]], literal_c: bool = False) -> list[int]:
    """The place of each hand among all, 1 for the best; copies ((c)) share a place and the next one is left free.

    Raises BadInput.

    >>> pair, high = ([parse(card) for card in text.split()] for text in ("2S 2H 3D 4S 5H", "AS KH QD JS 9H"))
    >>> placed([high, pair, high])
    [2, 1, 2]
    """
    found = [rank(hand, literal_c).strength for hand in filled(hands, "hands")]
    return [1 + sum(other > one for other in found) for one in found]


# Many hands at once. A card is the number (rank - 2) * 4 + suit; two cards make one of 91 x 5 classes (their ranks, and
# their suit or none), four make one of 1820 x 5, and the fifth card gives the hand: three small tables in a row.
_MIXED = 4


def _numbered(cards: int) -> dict[tuple[int, ...], int]:
    return {ranks: number for number, ranks in enumerate(combinations_with_replacement(range(13), cards))}


@lru_cache(maxsize=1)
def _tables() -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16], npt.NDArray[np.int16]]:
    pairs = _numbered(2)
    fours = _numbered(4)
    two = np.zeros((52, 52), dtype=np.int16)
    for one in range(52):
        for other in range(52):
            suit = one % 4 if one % 4 == other % 4 else _MIXED
            two[one, other] = pairs[min(one, other) // 4, max(one, other) // 4] * 5 + suit
    joined = np.array([[fours[tuple(sorted(a + b))] for b in pairs] for a in pairs], dtype=np.int16)
    suits = np.full((5, 5), _MIXED, dtype=np.int16)
    for suit in range(4):
        suits[suit, suit] = suit
    four = (joined[:, None, :, None] * 5 + suits[None, :, None, :]).reshape(len(pairs) * 5, len(pairs) * 5)
    strengths = {}
    for ranks in _numbered(5):
        for one_suit in (False, True):
            strengths[ranks, one_suit] = _rank([value + 2 for value in ranks], one_suit).strength
    dense = {strength: number for number, strength in enumerate(sorted(set(strengths.values())), 1)}
    numbers = {key: dense[strength] for key, strength in strengths.items()}
    mixed = np.array([[numbers[tuple(sorted((*r, fifth))), False] for fifth in range(13)] for r in fours], np.int16)
    flush = np.array([[numbers[tuple(sorted((*r, fifth))), True] for fifth in range(13)] for r in fours], np.int16)
    five = np.repeat(mixed[:, None, :, None], 5, axis=1).repeat(4, axis=3)
    for suit in range(4):
        five[:, suit, :, suit] = flush
    return two.ravel(), four.ravel(), five.reshape(-1)


def strengths(hands: npt.NDArray[np.integer]) -> npt.NDArray[np.int16]:
    """The strengths of n hands: an (n, 5) array of card numbers in, (n,) of 1 (worst) upwards out; equal is a copy.

    A card's number is (rank - 2) * 4 + its suit's place in SUITS, 0 to 51. Ordered by (b), as by `rank`.
    Raises BadInput.

    >>> best = [number_of(parse("AS"))] * 5
    >>> worst = [number_of(parse(card)) for card in "2S 3H 4D 5S 7H".split()]
    >>> strengths(np.array([best, worst])).tolist()
    [12376, 1]
    """
    if hands.ndim != 2 or hands.shape[1] != 5 or not np.issubdtype(hands.dtype, np.integer):
        raise BadInput(
            _("hands have shape {shape}; needed: whole numbers of shape (n, {width})").format(
                shape=hands.shape, width=5
            )
        )
    if hands.size and (hands.min() < 0 or hands.max() > 51):
        raise BadInput(_("a card's number is outside 0 to 51"))
    two, four, five = _tables()
    cards = [hands[:, place].astype(np.intp) for place in range(5)]
    first = two.take(cards[0] * 52 + cards[1]).astype(np.intp)
    second = two.take(cards[2] * 52 + cards[3])
    first *= 455
    first += second
    held = four.take(first).astype(np.intp)
    held *= 52
    held += cards[4]
    return five.take(held)


def number_of(card: Card) -> int:
    """The number of a card in `strengths`, 0 to 51, in the order of (a) from the lowest.

    >>> number_of(Card(2, "S")), number_of(Card(14, "C"))
    (0, 51)
    """
    return (card.rank - 2) * 4 + SUITS.index(card.suit)
