"""A whole table of pai gow tiles settled against the bank: coverage, copies, pushes, commission and dealer signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack
from host_tools.i18n import _
from host_tools.rules import tiles
from host_tools.rules.banking import cover
from host_tools.rules.check import whole
from host_tools.rules.money import share
from host_tools.rules.tiles import Hands

# What the dealer does with the tiles and the bet (card room sheet, rules 9 and 10), as words for machines.
SIGNALS = {
    "win": "tiles_in_T",
    "lose": "bet_forward_one_tile_on_three",
    "push": "tiles_to_tray",
    "no_action": "bet_returned",
}


def signal_words(signal: str) -> str:
    """What one of SIGNALS is in the chosen language (card room sheet, rules 9 and 10).

    >>> signal_words("tiles_in_T")
    'tiles two by two in a T'
    """
    return {
        "tiles_in_T": _("tiles two by two in a T"),
        "bet_forward_one_tile_on_three": _("bet forward, one tile on three"),
        "tiles_to_tray": _("tiles to the tray, the money stays"),
        "bet_returned": _("bet returned"),
    }[signal]


@dataclass(frozen=True)
class Player:
    """A player in the order of action: deal position, hands and stake in cents."""

    position: int
    hands: Hands
    stake: int


@dataclass(frozen=True)
class PlayerResult:
    """A player's round in cents: `covered` played, `returned` did not; `net` is after `commission`.

    `result` is "win", "lose", "push", or "no_action" when nothing was covered; `high` and `low` as in tiles.settle.
    """

    position: int
    result: str
    net: int
    commission: int
    covered: int
    returned: int
    high: str
    low: str
    signal: str


@dataclass(frozen=True)
class TableResult:
    """The whole round in cents: the players in order, and what each bank and the house are up or down.

    A net is always after the commission that its owner pays. `house_net` is the house's: the `commission` it takes, and
    the bank's net where the house is the bank, which it is unless `banks` or `player_banks` say otherwise.
    """

    players: tuple[PlayerResult, ...]
    bank_nets: tuple[int, ...]
    bank_commissions: tuple[int, ...]
    commission: int
    house_net: int


def settle(
    players: Sequence[Player], bank: Hands, pack: Pack, banks: Sequence[int] | None = None, player_banks: bool = False
) -> TableResult:
    """Settle every player, in the order of action, against one bank hand (card room sheet, rules 8 to 13).

    `banks` are the cents of the front bank and those behind it, who cover the action in order; None covers everything.
    Each winner pays the pack's commission on what it won. With `player_banks` each bank pays it too, on its own net
    winnings of the round. Raises BadInput: a position twice, tiles not of one set, a low hand that is better than its
    high hand, a stake out of range.

    >>> from dragoneye.rules import packs
    >>> from host_tools.rules.tiles import Tile
    >>> best = Hands((Tile.T66, Tile.T66), (Tile.T56, Tile.T13))
    >>> bank = Hands((Tile.T11, Tile.T36), (Tile.T46, Tile.T22))
    >>> done = settle([Player(2, best, 10_000)], bank, packs.load("nj"), banks=[6_000])
    >>> done.players[0].net, done.players[0].returned, done.bank_nets, done.house_net
    (5700, 4000, (-6000,), 300)
    """
    positions = [whole(player.position, 2, pack["positions"], _("the deal position")) for player in players]
    for position in positions:
        if positions.count(position) > 1:
            raise BadInput(_("deal position {position} is there twice").format(position=position))
    tiles.one_set(tile for hands in [bank, *(player.hands for player in players)] for tile in (*hands.high, *hands.low))
    for player in players:
        what = _("deal position {position}").format(position=player.position)
        tiles.check_setting(player.hands, what, pack["zero_rule"])
    bets = [(player.position, whole(player.stake, 1, pack["stake_max"], "stake")) for player in players]
    covers = cover(bets, [sum(stake for _position, stake in bets)] if banks is None else banks)
    nets = [0] * (1 if banks is None else len(banks))
    results = []
    for player, covered in zip(players, covers, strict=True):
        done = tiles.settle(player.hands, bank, max(covered.covered, 1), pack)
        if not covered.covered:
            done = replace(done, result="no_action", net=0, commission=0)
        won = {"win": -1, "lose": 1}.get(done.result, 0)
        nets = [net + won * part for net, part in zip(nets, covered.by_bank, strict=True)]
        results.append(
            PlayerResult(
                player.position,
                done.result,
                done.net,
                done.commission,
                covered.covered,
                covered.returned,
                done.high,
                done.low,
                SIGNALS[done.result],
            )
        )
    taken = [
        share(max(net, 0), pack["commission_bp"], pack["commission_rounding"]) if player_banks else 0 for net in nets
    ]
    commission = sum(taken) + sum(result.commission for result in results)
    return TableResult(
        tuple(results),
        tuple(net - paid for net, paid in zip(nets, taken, strict=True)),
        tuple(taken),
        commission,
        commission + (sum(nets) if banks is None and not player_banks else 0),
    )
