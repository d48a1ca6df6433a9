"""Banks: who decides the bank hand, whose money covers which bet, and who banks next.

Clauses are those of the California card room sheet; amounts are integer cents.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack
from host_tools.i18n import _
from host_tools.rules.check import whole

MOST = 10**12


@dataclass(frozen=True)
class Decision:
    """Who decides the bank hand, "front" or "second", and the least the front bank must cover to decide, in cents."""

    decides: str
    needed: int


def decides(front: int, action: int, pack: Pack) -> Decision:
    """Who decides how the bank hand is set: the front bank iff it covers the pack's share of the live action (rule 12).

    `front` and `action` are cents, the action with the corporation's buy included. With 40 %: 5 x front >= 2 x action.
    Raises BadInput, also for a pack that has no such rule.

    >>> from dragoneye.rules import packs
    >>> decides(100_000, 250_000, packs.load("ca")), decides(100_000, 250_001, packs.load("ca"))
    (Decision(decides='front', needed=100000), Decision(decides='second', needed=100001))
    """
    share = pack["bank_share_percent"]
    if share is None:
        raise BadInput(
            _(
                "bank_share_percent of the rule pack {name} is null, so no share lets a front bank decide; needed: a "
                "percentage, such as 40 in the pack ca"
            ).format(name=pack.name)
        )
    whole(front, 0, MOST, "front")
    whole(action, 1, MOST, "action")
    return Decision("front" if 100 * front >= share * action else "second", -(-share * action // 100))


@dataclass(frozen=True)
class Cover:
    """How one bet is covered: by each bank in order, and what goes back to the player, all in cents."""

    position: int
    by_bank: tuple[int, ...]
    returned: int

    @property
    def covered(self) -> int:
        """What of the bet plays.

        >>> Cover(2, (100, 50), 0).covered
        150
        """
        return sum(self.by_bank)


def cover(bets: Sequence[tuple[int, int]], banks: Sequence[int]) -> list[Cover]:
    """Cover (position, cents) bets in the order of action with the banks' cents, the front bank first (rules 12, 13).

    Each bet takes as much as is left; what is covered plays and the rest is returned. Raises BadInput.

    >>> cover([(2, 500), (3, 500)], [600, 300])
    [Cover(position=2, by_bank=(500, 0), returned=0), Cover(position=3, by_bank=(100, 300), returned=100)]
    """
    left = [whole(bank, 0, MOST, _("a bank")) for bank in banks]
    covers = []
    for position, bet in bets:
        open_part = whole(bet, 1, MOST, _("the bet of deal position {position}").format(position=position))
        parts = []
        for number in range(len(left)):
            part = min(left[number], open_part)
            left[number] -= part
            open_part -= part
            parts.append(part)
        covers.append(Cover(position, tuple(parts), open_part))
    return covers


@dataclass(frozen=True)
class Offer:
    """Whom the bank was offered to, in order, and who took it: a position, or 1, the house dealer."""

    offered: tuple[int, ...]
    bank: int


def offer(
    last: int, positions: int, accepts: Collection[int], played: Collection[int] | None = None, hands_in_a_row: int = 0
) -> Offer:
    """Who banks next: the bank is offered round the table from the position after the last bank's, as in the count.

    Positions are seats counted from the house dealer, who is 1 and banks when nobody takes the offer (trade practice;
    no text of the packs gives an order). `accepts` are those who would take it, `played` those who played the last
    round (everybody if None): only they are offered it. `hands_in_a_row` is 1 when the last bank, a player, may keep
    the bank for a second round, and is then asked first. Raises BadInput, also for a position that is there twice.

    >>> offer(1, 7, {5, 3})
    Offer(offered=(2, 3), bank=3)
    >>> offer(6, 7, set())
    Offer(offered=(7, 2, 3, 4, 5, 6), bank=1)
    """
    whole(positions, 6, 8, "positions")
    whole(last, 1, positions, "last")
    whole(hands_in_a_row, 0, 1, "hands_in_a_row")
    for named, what in ((accepts, _("a seat that accepts")), (played or (), _("a seat that played"))):
        for position in named:
            whole(position, 2, positions, what)
            if list(named).count(position) > 1:
                raise BadInput(_("seat {position} is there twice").format(position=position))
    asked = [(last - 1 + step) % positions + 1 for step in range(1, positions + 1)]
    if hands_in_a_row and last != 1:
        asked = [last, *asked[:-1]]
    offered = []
    for position in asked:
        if position == 1 or (played is not None and position not in played):
            continue
        offered.append(position)
        if position in accepts:
            return Offer(tuple(offered), position)
    return Offer(tuple(offered), 1)
