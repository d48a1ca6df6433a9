"""Exact odds of the dragon's eye wagers (NJ 13:69F-11.21), settled by the controller's own code on all 216 rolls."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from dragoneye.errors import BadInput
from dragoneye.rules import wagers
from dragoneye.rules.packs import WAGERS, Pack
from host_tools.i18n import _
from host_tools.rules.check import word

ROLLS = 216
TRIPLE = Fraction(1, 36)


@dataclass(frozen=True)
class WagerOdds:
    """One wager on one roll: `ways` are (profit in stakes, rolls out of 216), losses as -1, greatest profit last.

    `role` and `level` are of the bonus only: who shakes, and how many triples in a row this one would make.
    """

    wager: str
    role: str
    level: int
    ways: tuple[tuple[int, int], ...]

    @property
    def mean(self) -> Fraction:
        """The player's expected profit in stakes; the house edge is its negative.

        >>> WagerOdds("triple", "", 0, ((-1, 210), (30, 6))).mean
        Fraction(-5, 36)
        """
        return sum((Fraction(profit * rolls, ROLLS) for profit, rolls in self.ways), Fraction(0))

    @property
    def variance(self) -> Fraction:
        """The variance of the profit, in stakes squared.

        >>> WagerOdds("even", "", 0, ((-1, 111), (1, 105))).variance
        Fraction(1295, 1296)
        """
        square = sum((Fraction(profit * profit * rolls, ROLLS) for profit, rolls in self.ways), Fraction(0))
        return square - self.mean**2


def wager_odds(wager: str, pack: Pack, role: str = wagers.PLAYER, streak: int = 0) -> WagerOdds:
    """Exact odds of `wager` under a rule pack; `role` and the `streak` of triples before the roll matter to the bonus.

    Raises BadInput for a wager that the pack does not know (11.21(a) to (f)).

    >>> from dragoneye.rules import packs
    >>> wager_odds("match", packs.load("nj")).mean
    Fraction(-17, 216)
    """
    position = wagers.check_position(1, pack)
    wagers.check_wager(wager, position, pack)
    word(role, wagers.ROLES, "role")
    wagers.check_streak(streak)
    counts: dict[int, int] = {}
    for dice in product(range(1, 7), repeat=3):
        paid = wagers.odds(wager, dice, 0, position, role, streak, pack)
        profit = 0 if paid is None else paid or -1
        counts[profit] = counts.get(profit, 0) + 1
    bonus = wager == "bonus"
    level = wagers.bonus_level(streak, pack) if bonus else 0
    return WagerOdds(wager, role if bonus else "", level, tuple(sorted(counts.items())))


def all_wagers(pack: Pack) -> list[WagerOdds]:
    """Every wager of a pack, the bonus for both roles at each level (11.21(a) to (f)).

    Raises BadInput if the pack has none.

    >>> from dragoneye.rules import packs
    >>> len(all_wagers(packs.load("nj")))
    11
    """
    if not pack["wagers"]:
        raise BadInput(
            _("the rule pack {name} has no dice wagers; needed: some in its wagers, such as nj has").format(
                name=pack.name
            )
        )
    found = []
    for wager in WAGERS:
        if wager not in pack["wagers"]:
            continue
        if wager != "bonus":
            found.append(wager_odds(wager, pack))
            continue
        for role in (wagers.SHAKER, wagers.PLAYER):
            found.extend(wager_odds(wager, pack, role, streak) for streak in range(wagers.LEVELS))
    return found


def streak_states(pack: Pack) -> list[int]:
    """For each state of the streak's Markov chain the state that a triple leads to; any other roll leads to state 0.

    A state is the number of triples in a row, up to the point from which `after_third` repeats itself (11.21(f)).

    >>> from dragoneye.rules import packs
    >>> streak_states(packs.load("nj"))
    [1, 2, 3, 3]
    >>> streak_states(packs.load("nj").with_options({"after_third": "restart"}))
    [1, 2, 0]
    """
    return [1, 2, 0] if pack["after_third"] == "restart" else [1, 2, 3, 3]


def stationary(pack: Pack) -> list[Fraction]:
    """How often the chain of `streak_states` is in each state before a roll, in the long run: exact, adding up to 1.

    The streak is that of the bonus (11.21(f)).

    >>> from dragoneye.rules import packs
    >>> stationary(packs.load("nj"))[:2]
    [Fraction(35, 36), Fraction(35, 1296)]
    """
    states = streak_states(pack)
    size = len(states)
    # The balance of each state but the last, share = inflow, and the shares' sum of 1, solved by elimination.
    rows = [[Fraction(int(one == other)) for other in range(size)] + [Fraction(0)] for one in range(size - 1)]
    for state, after_triple in enumerate(states):
        for target, chance in ((after_triple, TRIPLE), (0, 1 - TRIPLE)):
            if target < size - 1:
                rows[target][state] -= chance
    rows.append([Fraction(1)] * (size + 1))
    for column in range(size):
        pivot = next(row for row in range(column, size) if rows[row][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(size):
            if row != column and rows[row][column]:
                factor = rows[row][column]
                rows[row] = [value - factor * of for value, of in zip(rows[row], rows[column], strict=True)]
    return [row[-1] for row in rows]


@dataclass(frozen=True)
class Forever:
    """The bonus kept up on every roll: a roll's expected profit in stakes for who always and who never shakes."""

    shaker: Fraction
    other: Fraction

    def at(self, share: Fraction) -> Fraction:
        """The expected profit for one who shakes that share of the rolls, 0 to 1.

        >>> Forever(Fraction(1, 2), Fraction(-1, 4)).at(Fraction(1, 3))
        Fraction(0, 1)
        """
        return share * self.shaker + (1 - share) * self.other

    @property
    def break_even(self) -> Fraction | None:
        """The share of shaking at which nobody has an advantage, or None if there is none from 0 to 1.

        >>> Forever(Fraction(1, 2), Fraction(-1, 4)).break_even
        Fraction(1, 3)
        """
        if self.shaker == self.other:
            return None
        share = self.other / (self.other - self.shaker)
        return share if 0 <= share <= 1 else None


def bonus_forever(pack: Pack) -> Forever:
    """What the bonus is worth to one who keeps it up for ever (11.21(f)), by the streak's Markov chain.

    Raises BadInput if the pack has no bonus wager.

    >>> from dragoneye.rules import packs
    >>> round(float(bonus_forever(packs.load("nj")).shaker), 3)
    0.427
    """
    shares = stationary(pack)
    means = [
        sum((share * wager_odds("bonus", pack, role, state).mean for state, share in enumerate(shares)), Fraction(0))
        for role in (wagers.SHAKER, wagers.PLAYER)
    ]
    return Forever(*means)
