"""Exact odds of pai gow tiles: all 35,960 × 20,475 ordered matches counted, none tried.

For one player's hand, the bank hands that hold none of its tiles are counted by inclusion and exclusion over the tiles
shared: those below (or not below) it on the grid of (high, low) strengths, less those that hold one of its tiles, plus
those that hold two, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np
import numpy.typing as npt

from dragoneye.rules.packs import Pack
from host_tools.rules import tiles
from host_tools.rules.houseway import HouseWay
from host_tools.rules.tile_arrays import PARTINGS, TABLES, Ints, Strengths, all_hands, set_all
from host_tools.rules.tiles import Hands, Tile

MATCHES = comb(32, 4) * comb(28, 4)
_SIDE = 107


@dataclass(frozen=True)
class Odds:
    """Matches won, lost and pushed by the player out of `total`, and the commission in basis points of a win."""

    win: int
    lose: int
    push: int
    total: int
    commission_bp: int

    @property
    def house_edge(self) -> Fraction:
        """What the player loses on average, as an exact share of the stake.

        >>> Odds(1, 1, 0, 2, 500).house_edge
        Fraction(1, 40)
        """
        return Fraction(self.lose * 10_000 - self.win * (10_000 - self.commission_bp), self.total * 10_000)


class BankHands:
    """Bank hands counted on the grid of strengths: all of them, those with one tile, and those with two."""

    def __init__(self, high: Strengths, low: Strengths) -> None:
        places = all_hands()[0].astype(np.intp)
        self.high, self.low = high, low
        cell = high.astype(np.intp) * _SIDE + low
        singles = [1 + places[:, a] for a in range(4)]
        doubles = [33 + _pair_number(places[:, a], places[:, b]) for a in range(4) for b in range(a + 1, 4)]
        layers = np.concatenate([np.zeros(len(places), dtype=np.intp), *singles, *doubles])
        counts = np.bincount(layers * _SIDE * _SIDE + np.tile(cell, 11), minlength=529 * _SIDE * _SIDE)
        grid = counts.reshape(529, _SIDE, _SIDE).astype(np.int32)
        # below[x, y]: hands with high < x and low < y. above[x, y]: hands with high >= x and low >= y.
        cumulated = grid.cumsum(axis=1, dtype=np.int32).cumsum(axis=2, dtype=np.int32)
        self.below = np.zeros_like(grid)
        self.below[:, 1:, 1:] = cumulated[:, :-1, :-1]
        self.above = grid[:, ::-1, ::-1].cumsum(axis=1, dtype=np.int32).cumsum(axis=2, dtype=np.int32)[:, ::-1, ::-1]

    def count(self, high: Strengths, low: Strengths) -> tuple[Ints, Ints]:
        """(won, lost) bank hands without a tile of the player's, for the player's setting of every hand.

        `high` and `low` are the strengths of (35960,) hands, as of `set_all`, and so are the two counts. The player has
        won with both hands higher and lost with neither: a copy goes to the bank (NJ 13:69F-10.2(c), (h)).

        >>> from host_tools.rules import houseway
        >>> way = houseway.load("max_low")
        >>> won, lost = bank_hands(way, "high_tile").count(*set_all(way))
        >>> int(won[0]), int(lost[0])  # two pairs, 6-6 6-6 and 1-1 1-1, lose to none
        (20290, 0)
        """
        places = all_hands()[0].astype(np.intp)
        won = self.below[0, high, low].astype(np.int64)
        lost = self.above[0, high, low].astype(np.int64)
        for a in range(4):
            won -= self.below[1 + places[:, a], high, low]
            lost -= self.above[1 + places[:, a], high, low]
            for b in range(a + 1, 4):
                layer = 33 + _pair_number(places[:, a], places[:, b])
                won += self.below[layer, high, low]
                lost += self.above[layer, high, low]
        for neighbours in _three_shared():
            their_high, their_low = self.high[neighbours], self.low[neighbours]
            won -= np.count_nonzero((their_high < high[:, None]) & (their_low < low[:, None]), axis=1)
            lost -= np.count_nonzero((their_high >= high[:, None]) & (their_low >= low[:, None]), axis=1)
        won += (self.high < high) & (self.low < low)
        lost += (self.high >= high) & (self.low >= low)
        return won, lost


def _pair_number(a: npt.NDArray[np.intp], b: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Pairs of places a < b numbered 0 to 495."""
    return b * (b - 1) // 2 + a


@lru_cache(maxsize=1)
def _three_shared() -> list[npt.NDArray[np.int32]]:
    """For each place of a hand that is left out: (35960, 29) numbers of the hands with the other three tiles."""
    places = all_hands()[0].astype(np.int64)
    bits = (1 << places).sum(axis=1)
    order = np.argsort(bits)
    ordered = bits[order]
    result = []
    for left_out in range(4):
        three = bits - (1 << places[:, left_out])
        fourth = np.broadcast_to(1 << np.arange(32), (len(places), 32))
        free = (three[:, None] & fourth) == 0
        wanted = (three[:, None] | fourth)[free].reshape(len(places), 29)
        result.append(order[np.searchsorted(ordered, wanted)].astype(np.int32))
    return result


@lru_cache(maxsize=8)
def bank_hands(way: HouseWay, zero_rule: str) -> BankHands:
    """The hands of a bank that sets by a house way, counted: made once for a way and a `zero_rule`.

    Strengths are by NJ 13:69F-10.2(b) to (h). Raises BadInput for another `zero_rule`.

    >>> from host_tools.rules import houseway
    >>> grid = bank_hands(houseway.load("max_low"), "high_tile")
    >>> int(grid.above[0, 0, 0])  # all hands are at least as good as nothing
    35960
    """
    return BankHands(*set_all(way, zero_rule))


def odds(player: HouseWay | None, bank: HouseWay, pack: Pack) -> Odds:
    """Exact odds of a player who sets by `player` against a bank that sets by `bank`, over all ordered matches.

    With None the player sets every hand as well as it can be set against that bank, seeing no other tile. A copy goes
    to the bank (NJ 13:69F-10.2(c), (h)). `pack` gives `zero_rule` and the commission.

    >>> from dragoneye.rules import packs
    >>> from host_tools.rules import houseway
    >>> way = houseway.load("max_low")
    >>> found = odds(way, way, packs.load("nj"))
    >>> found.win + found.lose + found.push == found.total == 736281000
    True
    """
    grid = bank_hands(bank, pack["zero_rule"])
    if player is not None:
        won, lost = grid.count(*set_all(player, pack["zero_rule"]))
    else:
        each = [grid.count(high, low) for high, low in _three_settings(pack["zero_rule"])]
        worth = np.stack([won * (10_000 - pack["commission_bp"]) - lost * 10_000 for won, lost in each])
        best = worth.argmax(axis=0)
        every = np.arange(len(best))
        won, lost = (np.stack([one[which] for one in each])[best, every] for which in (0, 1))
    win, lose = int(won.sum()), int(lost.sum())
    return Odds(win, lose, MATCHES - win - lose, MATCHES, pack["commission_bp"])


def _three_settings(zero_rule: str) -> list[tuple[Strengths, Strengths]]:
    faces = all_hands()[1].astype(np.intp)
    found = []
    table = TABLES[zero_rule]
    for a, b, c, d in PARTINGS:
        one, two = table[faces[:, a], faces[:, b]], table[faces[:, c], faces[:, d]]
        found.append((np.maximum(one, two), np.minimum(one, two)))
    return found


@dataclass(frozen=True)
class Advice:
    """One split of four tiles, how the 20,475 opponents' hands of the unseen tiles fall, and the edge against it."""

    hands: Hands
    odds: Odds


def advise(four: Sequence[Tile], opponent: HouseWay, pack: Pack) -> list[Advice]:
    """Every split of four tiles against an opponent (the bank) who sets the unseen tiles by a house way, best first.

    Exact: each of the C(28, 4) = 20,475 hands of unseen tiles counts once, copies for the bank (NJ 13:69F-10.2(c),
    (h)). Raises BadInput if the tiles are not four from one set.

    >>> from dragoneye.rules import packs
    >>> from host_tools.rules import houseway
    >>> best = advise([Tile.T66, Tile.T66, Tile.T45, Tile.T44], houseway.load("max_low"), packs.load("nj"))[0]
    >>> best.hands.high, best.hands.low, best.odds.total
    ((6-6, 4-5), (6-6, 4-4), 20475)
    """
    options = tiles.splits(four)
    left = list(tiles.deck())
    held = 0
    for tile in sorted(four):
        place = next(place for place, one in enumerate(left) if one == tile and not held >> place & 1)
        held |= 1 << place
    places, _faces = all_hands()
    unseen = ((1 << places.astype(np.int64)).sum(axis=1) & held) == 0
    high, low = (strength[unseen] for strength in set_all(opponent, pack["zero_rule"]))
    table = tiles.table(pack["zero_rule"])
    advice = []
    for hands in options:
        mine_high, mine_low = table[hands.high[0]][hands.high[1]], table[hands.low[0]][hands.low[1]]
        win = int(((high < mine_high) & (low < mine_low)).sum())
        lose = int(((high >= mine_high) & (low >= mine_low)).sum())
        total = len(high)
        advice.append(Advice(hands, Odds(win, lose, total - win - lose, total, pack["commission_bp"])))
    return sorted(advice, key=lambda one: one.odds.house_edge)
