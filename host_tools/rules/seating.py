"""Who is dealt first and who acts first, from the dice total: NJ 13:69F-31.11, the California card room sheet, rule 3.

A *deal position* is a seat's number in the count: 1 is the dealer or the bank, and the others follow in the count
direction. It is not the player position of a match wager: betting position k is deal position k + 1 (NJ 13:69F-31.11(b)
2.ii: of seven, the sixth betting position is counted as 14). At a table with N deal positions tiles are dealt to N - 1
betting positions; one beyond, such as the seventh where N = 7, can only make dice wagers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack
from host_tools.i18n import _
from host_tools.rules.check import listed, whole, word

DIRECTIONS = ("counter-clockwise", "clockwise")


@dataclass(frozen=True)
class Order:
    """Deal positions (1 is the dealer or bank): where the deal starts, all in order, and who acts in which order."""

    start: int
    deal: tuple[int, ...]
    action: tuple[int, ...]


def start(total: int, positions: int) -> int:
    """The deal position of a dice total: (total - 1) mod positions + 1 (card room sheet, rule 3).

    `total` is of three dice, 3 to 18; `positions` is 6, 7 or 8 and counts empty seats too. Raises BadInput.

    >>> start(9, 8), start(17, 8), start(8, 7), start(14, 7)
    (1, 1, 1, 7)
    """
    whole(total, 3, 18, "total")
    whole(positions, 6, 8, "positions")
    return (total - 1) % positions + 1


def order(total: int, positions: int, count_direction: str, deal_direction: str) -> Order:
    """The whole order for a dice total. Raises BadInput.

    The positions are numbered along the count direction, so the deal goes up when both directions are the same and
    down when they differ. The action follows the deal and skips position 1, the player-dealer (card
    room sheet, rule 3).

    >>> order(9, 8, "counter-clockwise", "counter-clockwise")
    Order(start=1, deal=(1, 2, 3, 4, 5, 6, 7, 8), action=(2, 3, 4, 5, 6, 7, 8))
    >>> order(12, 8, "counter-clockwise", "clockwise").deal
    (4, 3, 2, 1, 8, 7, 6, 5)
    """
    first = start(total, positions)
    word(count_direction, DIRECTIONS, "count_direction")
    step = 1 if word(deal_direction, DIRECTIONS, "deal_direction") == count_direction else -1
    deal = tuple((first - 1 + step * number) % positions + 1 for number in range(positions))
    return Order(first, deal, tuple(position for position in deal if position != 1))


@dataclass(frozen=True)
class Hands:
    """What becomes of each position's tiles: `action` has a bet and plays, in order; `collected` is taken back."""

    action: tuple[int, ...]
    collected: tuple[int, ...]


def hands_in_play(order: Order, bets: Collection[int] | None = None, dead: int | None = None) -> Hands:
    """Who plays of those who were dealt: every position gets tiles, bet or not (card room sheet, rule 5).

    The action passes on to the next position with a bet. `bets` are the deal positions with a bet (all if None);
    `dead` is the dead hand's position (58 Pa. Code 621a.6(c)), which is counted and dealt but never plays. The tiles of
    the others are collected, in the order of the deal. Raises BadInput, also for a position that is there twice.

    >>> hands_in_play(order(9, 8, "counter-clockwise", "counter-clockwise"), bets={5, 3}, dead=8)
    Hands(action=(3, 5), collected=(2, 4, 6, 7, 8))
    """
    last = len(order.deal)
    if dead is not None:
        whole(dead, 2, last, _("the dead hand's deal position"))
    for position in bets or ():
        whole(position, 2, last, _("a deal position with a bet"))
        if list(bets or ()).count(position) > 1:
            raise BadInput(_("deal position {position} is there twice").format(position=position))
        if position == dead:
            raise BadInput(_("deal position {position} is the dead hand; it cannot bet").format(position=position))
    action = tuple(one for one in order.action if (bets is None or one in bets) and one != dead)
    return Hands(action, tuple(one for one in order.deal if one != 1 and one not in action))


def seats(order: Order, bank_seat: int) -> tuple[int, ...]:
    """The seats in the order of the deal when the bank sits at `bank_seat`.

    Seats are counted from the house dealer, who sits at 1, in the count direction; the deal's count starts at the bank
    wherever it sits, so deal position 1 is the bank's seat (card room sheet, rule 3). Raises BadInput.

    >>> seats(order(10, 8, "counter-clockwise", "counter-clockwise"), bank_seat=7)
    (8, 1, 2, 3, 4, 5, 6, 7)
    """
    last = len(order.deal)
    whole(bank_seat, 1, last, _("the bank's seat"))
    return tuple((bank_seat - 1 + position - 1) % last + 1 for position in order.deal)


def order_of_pack(total: int, pack: Pack) -> Order:
    """The order for a dice total with the positions and both directions of a rule pack. Raises BadInput.

    Each value says its source: the card room sheet, rule 3, or NJ 13:69F-31.11.

    >>> from dragoneye.rules import packs
    >>> order_of_pack(17, packs.load("ca")).start
    1
    """
    return order(total, pack["positions"], pack["count_direction"], pack["deal_direction"])


def who(position: int) -> str:
    """A player position in words, or the dealer for 0: who may shake (trade practice).

    >>> who(3), who(0)
    ('player position 3', 'the dealer')
    """
    return _("player position {position}").format(position=position) if position else _("the dealer")


def whose(deal_position: int) -> str:
    """Whose hand a deal position's is: 1 is the bank's, 2 player position 1's (trade practice; docs/rules.md).

    >>> whose(1), whose(6)
    ('the bank', 'player position 5')
    """
    return who(deal_position - 1) if deal_position > 1 else _("the bank")


def total_of_dice(dice: Any) -> int:
    """The total of three dice, each 1 to 6 (card room sheet, rule 3). Raises BadInput.

    >>> total_of_dice([3, 2, 4])
    9
    """
    return sum(whole(die, 1, 6, _("a die")) for die in listed(dice, 3, _("the roll"), _("dice")))
