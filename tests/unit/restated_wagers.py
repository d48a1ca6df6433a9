"""NJ 13:69F-11.21 said again, clause by clause, so that the firmware's wagers have something to be wrong against.

Written from the regulation and from the rules that settle its doubtful points: sets of faces and literal tables,
never the firmware's own functions or packs. Slow and plain on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

Roll = tuple[int, int, int]
Bets = Mapping[int, Mapping[str, int]]

FACES = (1, 2, 3, 4, 5, 6)
ROLLS: tuple[Roll, ...] = tuple((a, b, c) for a in FACES for b in FACES for c in FACES)
EYES = (0, 1, 2)
POSITIONS = (1, 2, 3, 4, 5, 6, 7)
WAGERS = ("bonus", "double", "even", "match", "odd", "triple")
ROLES = ("player", "shaker")
AFTER_THIRD = ("cap", "hold", "restart")
DOUBLE_ON_TRIPLE = ("loses", "wins")

# (f): "30 to 1 for the player shaking the dice and 25 to 1 for players other than the shaker", and so on.
LADDER = {
    ("shaker", 1): 30,
    ("player", 1): 25,
    ("shaker", 2): 500,
    ("player", 2): 50,
    ("shaker", 3): 10_000,
    ("player", 3): 1_000,
}

# Which payout of (f) a triple gets after 0, 1, 2... triples in a row: "a fourth or later triple still completes three
# in a row"; "back to level 1"; "no bonus until the streak ends". 0 is no payout: a wager that wins on a triple (f)
# cannot lose to one, so its stake stays up.
LEVELS: dict[str, tuple[int, ...]] = {
    "cap": (1, 2, 3, 3, 3, 3),
    "restart": (1, 2, 3, 1, 2, 3),
    "hold": (1, 2, 3, 0, 0, 0),
}


class Options(NamedTuple):
    after_third: str = "cap"
    double_on_triple: str = "wins"


EVERY_OPTION = tuple(Options(after, double) for after in AFTER_THIRD for double in DOUBLE_ON_TRIPLE)


def odds_to_one(
    wager: str, roll: Roll, eye: int, position: int, role: str, streak: int, options: Options
) -> int | None:
    """How many stakes are paid; 0 is a lost wager, None one that neither wins nor loses."""
    different = len(set(roll))
    if wager == "match":  # (a) "1 to 1 for each die with a numeric value that matches the player's player position"
        return sum(1 for value in roll if value == position)
    if wager == "even":  # (b) "2, 4, or 6", "provided that the numeric value on each of the three dice is not the same"
        return 1 if roll[eye] in {2, 4, 6} and different != 1 else 0
    if wager == "odd":  # (c) "1, 3, or 5", with the same proviso
        return 1 if roll[eye] in {1, 3, 5} and different != 1 else 0
    if wager == "double":  # (d) "both dice other than the dragon's eye die are the same"; no proviso in the text
        others = {value for die, value in enumerate(roll) if die != eye}
        barred = different == 1 and options.double_on_triple == "loses"
        return 4 if len(others) == 1 and not barred else 0
    if wager == "triple":  # (e)
        return 30 if different == 1 else 0
    assert wager == "bonus"  # (f)
    if different != 1:
        return 0
    level = LEVELS[options.after_third][streak]
    return LADDER[role, level] if level else None


def level_of(wager: str, roll: Roll, streak: int, options: Options) -> int | None:
    """The level that a bonus wager reached: 0 for none, None for the other five wagers."""
    if wager != "bonus":
        return None
    return LEVELS[options.after_third][streak] if len(set(roll)) == 1 else 0


def settled(stake: int, odds: int | None) -> dict[str, object]:
    """ "30 to 1" is a profit of 30 stakes, and the stake comes back too; a lost wager brings nothing back."""
    if odds is None:
        return {"won": False, "odds": 0, "profit": 0, "returned": stake}
    if odds == 0:
        return {"won": False, "odds": 0, "profit": -stake, "returned": 0}
    return {"won": True, "odds": odds, "profit": odds * stake, "returned": (odds + 1) * stake}


def most_owed(bets: Bets, shaker: int, streak: int, options: Options) -> int:
    """The most that all winners together are paid, over every roll and every choice of the eye die."""
    return max(
        sum(
            stake * (odds_to_one(wager, roll, eye, position, role_of(position, shaker), streak, options) or 0)
            for position, stakes in bets.items()
            for wager, stake in stakes.items()
        )
        for roll in ROLLS
        for eye in EYES
    )


def role_of(position: int, shaker: int) -> str:
    return "shaker" if position == shaker else "player"


def edge(ways: Mapping[int, int]) -> Fraction:
    """The mean gain for one unit, from odds -> ways out of 216 (odds 0: the wager lost)."""
    assert sum(ways.values()) == 216
    return sum((Fraction(count, 216) * (odds or -1) for odds, count in ways.items()), Fraction(0))
