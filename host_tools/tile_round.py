"""The tile hands of a stored round, as somebody enters them: settled, told with the dealer's signals, and kept."""

from __future__ import annotations

from typing import Any

from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack
from host_tools import corrections
from host_tools.i18n import _
from host_tools.rules import clauses, houseway, seating, tile_table, tiles
from host_tools.rules.check import fields, filled, whole
from host_tools.store import Store, need_roll

Message = dict[str, Any]


def dealt_before(stored: Message) -> str:
    """That a round's tile hands were dealt by another total than the one that counts now; empty where they were not."""
    dealt, dice = corrections.dealt_by(stored), corrections.rolled(stored)
    if dealt is None or dice is None or dealt == sum(dice):
        return ""
    words = _("the tile hands were dealt by the total {dealt}, before the dice were corrected to {total}, and stay so")
    return words.format(dealt=dealt, total=sum(dice))


def settle(
    store: Store,
    uid: str,
    number: int,
    case: Any,
    given: Pack | None = None,
    house_way: str = houseway.OF_TABLE,
    own_signals: bool = False,
) -> Message:
    """Settle the tile hands `case` of the stored round `number` of table `uid`, by the dice that count of it.

    The rules are those that the round was played by; `given` is the pack that a person names, see Store.pack_of.
    `own_signals` is whether the text of a house's own pack has the dealer's signals (clauses.of_pack).

    `case` is {"bank": HANDS, "players": [{"position", "stake", "hands": HANDS}, ...]} with player positions and cents;
    HANDS is {"high": [2 tiles], "low": [2 tiles]}, or four tiles, which are set by the house way. Returns what
    Store.add_tiles keeps: the total, the deal, the bank, and the players in the order of action, with the dealer's
    `signal` where the text has signals. Raises BadInput.
    """
    total = sum(need_roll(store.round(number, uid)))
    pack = store.pack_of(uid, number, given)
    signalled = bool(clauses.of_pack(pack.name).signals) if corrections.is_shipped(pack) else own_signals
    parts = fields(case, ("bank", "players"))
    filled(parts["players"], "players")
    way = houseway.load(house_way)

    def hands_of(value: Any, what: str) -> tiles.Hands:
        if isinstance(value, list):
            return way.set(tiles.parse_tiles(value, 4, what), pack["zero_rule"])
        return tiles.parse_hands(value, what, pack["zero_rule"])

    order = seating.order_of_pack(total, pack)
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
        "total": total,
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
                **({"signal": result.signal} if signalled else {}),
            }
            for player, result in zip(in_order, done.players, strict=True)
        ],
    }
