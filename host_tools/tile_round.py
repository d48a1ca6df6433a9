"""The tile hands of a stored round, as somebody enters them: settled, told with the dealer's signals, and kept."""

from __future__ import annotations

from typing import Any

from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack
from host_tools.i18n import _
from host_tools.rules import houseway, seating, tile_table, tiles
from host_tools.rules.check import fields, filled, whole

Message = dict[str, Any]


def settle(stored: Message, case: Any, pack: Pack, house_way: str = "foxwoods") -> Message:
    """Settle the tile hands `case` of a settled round `stored` (as Store.round gives it).

    `case` is {"bank": HANDS, "players": [{"position", "stake", "hands": HANDS}, ...]} with player positions and cents;
    HANDS is {"high": [2 tiles], "low": [2 tiles]}, or four tiles, which are set by the house way. Returns what
    Store.add_tiles keeps: the deal, the bank, and the players in the order of action with the dealer's `signal`.
    Raises BadInput.
    """
    if stored["status"] != "settled":
        raise BadInput(
            _("round {number} has no result yet; tiles are dealt by its total").format(number=stored["round"])
        )
    parts = fields(case, ("bank", "players"))
    filled(parts["players"], "players")
    way = houseway.load(house_way)

    def hands_of(value: Any, what: str) -> tiles.Hands:
        if isinstance(value, list):
            return way.set(tiles.parse_tiles(value, 4, what), pack["zero_rule"])
        return tiles.parse_hands(value, what, pack["zero_rule"])

    order = seating.order_of_pack(stored["result"]["total"], pack)
    bank = hands_of(parts["bank"], _("the bank"))
    played: dict[int, tile_table.Player] = {}
    for row in parts["players"]:
        player = fields(row, ("position", "stake", "hands"), (), _("a player"))
        position = whole(player["position"], 1, pack["positions"] - 1, "position")
        what = _("position {position}").format(position=position)
        if position in played:
            raise BadInput(_("{what} is there twice").format(what=what))
        played[position] = tile_table.Player(position + 1, hands_of(player["hands"], what), player["stake"])
    action = seating.hands_in_play(order, [position + 1 for position in played]).action
    in_order = [played[deal_position - 1] for deal_position in action]
    done = tile_table.settle(in_order, bank, pack)
    return {
        "start": order.start,
        "deal": list(order.deal),
        "action": list(action),
        "bank": {**bank.as_dict(), "rule": bank.rule},
        "players": [
            {
                "position": player.position - 1,
                **player.hands.as_dict(),
                "rule": player.hands.rule,
                "stake": player.stake,
                "result": result.result,
                "net": result.net,
                "commission": result.commission,
                "signal": result.signal,
            }
            for player, result in zip(in_order, done.players, strict=True)
        ],
    }
