"""Dragon's eye wagers settled a second time, to audit what a table settled (NJ 13:69F-11.21).

Written from the clauses apart from the firmware's `dragoneye.rules.wagers`, so that a mistake in one of them shows:
here every roll's winning wagers are looked up in tables made from sets of rolls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product

from dragoneye.rules.packs import Pack

Row = tuple[int, str, int, int]
Roll = tuple[int, int, int]
Bets = Iterable[tuple[int, Mapping[str, int]]]

_FACES = range(1, 7)
_ROLLS: tuple[Roll, ...] = tuple(product(_FACES, _FACES, _FACES))
TRIPLES = frozenset(roll for roll in _ROLLS if len(set(roll)) == 1)
# (b), (c): the dragon's eye die is even or odd, and the three dice are not all the same. (d): the two others are equal.
EVEN = [frozenset(roll for roll in _ROLLS if roll[eye] in (2, 4, 6)) - TRIPLES for eye in range(3)]
ODD = [frozenset(_ROLLS) - EVEN[eye] - TRIPLES for eye in range(3)]
DOUBLE = [frozenset(roll for roll in _ROLLS if len({*roll[:eye], *roll[eye + 1 :]}) == 1) for eye in range(3)]

# Which of the three payouts of (f) a triple brings after so many triples in a row; the last entries go round.
_LADDER = {"cap": ((0, 1, 2), (2,)), "restart": ((), (0, 1, 2)), "hold": ((0, 1, 2), (None,))}


def rung(before: int, after_third: str) -> int | None:
    """The place 0..2 of a triple's payout on the bonus ladder of (f) after `before` triples in a row, or None.

    >>> [rung(before, "restart") for before in range(5)], [rung(before, "hold") for before in range(5)]
    ([0, 1, 2, 0, 1], [0, 1, 2, None, None])
    """
    once, again = _LADDER[after_third]
    return once[before] if before < len(once) else again[(before - len(once)) % len(again)]


@cache
def _fixed(roll: Roll, eye: int, pays: tuple[int, int, int, int], double_on_triple: str) -> dict[str, int]:
    """The odds of the wagers that are the same for every position."""
    even, odd, double, triple = pays
    wins = DOUBLE[eye] - (TRIPLES if double_on_triple == "loses" else frozenset())
    return {
        "even": even if roll in EVEN[eye] else 0,
        "odd": odd if roll in ODD[eye] else 0,
        "double": double if roll in wins else 0,
        "triple": triple if roll in TRIPLES else 0,
    }


def settle(bets: Bets, roll: Roll, eye: int, shaker: int, before: int, pack: Pack) -> list[Row]:
    """What a table's wagers come to: (position, wager, stake, odds) sorted by position and wager; odds 0 is a loss.

    `bets` are (player position, {wager: stake}) pairs, `shaker` is the position that shook or 0 for the dealer,
    `before` how many triples came in a row before this roll. A bonus on a triple beyond the ladder stays up, neither
    won nor lost, and has no row. 11.21(a) to (f).

    >>> from dragoneye.rules import packs
    >>> settle([(4, {"match": 500, "bonus": 100})], (4, 4, 4), 0, 4, 1, packs.load("nj"))
    [(4, 'bonus', 100, 500), (4, 'match', 500, 3)]
    """
    pays = (pack["pays_even"], pack["pays_odd"], pack["pays_double"], pack["pays_triple"])
    fixed = _fixed(roll, eye, pays, pack["double_on_triple"])
    place = rung(before, pack["after_third"]) if roll in TRIPLES else None
    rows: list[Row] = []
    for position, stakes in bets:
        for wager, stake in stakes.items():
            if wager == "match":
                odds = sum(pack["pays_match"] for die in roll if die == position)
            elif wager == "bonus":
                if roll in TRIPLES and place is None:
                    continue
                ladder = pack["pays_bonus_shaker" if position == shaker else "pays_bonus_other"]
                odds = ladder[place] if place is not None else 0
            else:
                odds = fixed[wager]
            rows.append((position, wager, stake, odds))
    return sorted(rows)


def net(rows: Iterable[Row]) -> int:
    """What the players together are up or down, in cents; "30 to 1" is a profit of 30 stakes (11.21).

    >>> net([(1, "odd", 500, 0), (2, "triple", 100, 30)])
    2500
    """
    return sum(stake * (odds or -1) for _position, _wager, stake, odds in rows)
