"""`tablectl seats`: who is dealt first and who acts first."""

from __future__ import annotations

from typing import Any, BinaryIO

import click

from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack
from host_tools.cli.answer import CaseCommand, answer
from host_tools.cli.output import batch_option, console, json_option
from host_tools.cli.packs import Options, pack_with, rules_options
from host_tools.i18n import _
from host_tools.rules import seating
from host_tools.rules.check import fields, shown


@click.command(cls=CaseCommand)
@click.option("--total", type=int, help="Total of the three dice, 3 to 18.")
@click.option("--dice", type=int, nargs=3, metavar="D D D", help="The three dice instead of their total.")
@click.option("--positions", type=int, help="Deal positions at the table, 6 to 8 (default: the pack's).")
@click.option("--count-direction", help="counter-clockwise or clockwise (default: the pack's).")
@click.option("--deal-direction", help="counter-clockwise or clockwise (default: the pack's).")
@click.option("--bet", "bets", type=int, multiple=True, help="A deal position with a bet (repeat; default: all).")
@click.option("--dead", type=int, help="Deal position of the dead hand.")
@click.option("--bank-seat", type=int, help="Seat of the bank, counted from the house dealer's 1 (default 1).")
@rules_options()
@batch_option
@json_option
def seats(
    total: int | None,
    dice: tuple[int, int, int] | None,
    positions: int | None,
    count_direction: str | None,
    deal_direction: str | None,
    bets: tuple[int, ...],
    dead: int | None,
    bank_seat: int | None,
    pack: str,
    options: Options,
    batch: BinaryIO | None,
    as_json: bool,
) -> None:
    """The first deal position of a dice total, and the deal and action order from there.

    Deal position 1 is the dealer or the bank, and the others follow in the count direction. It is not the player
    position of a match wager. A batch line is {"total":9} or {"dice":[3,2,4]}, with "positions", "count_direction"
    and "deal_direction" if they differ from the pack's, and "bets", "dead" and "bank_seat" if they matter.
    """
    given = {"positions": positions, "count_direction": count_direction, "deal_direction": deal_direction}
    chosen = pack_with(pack, options).with_options({key: value for key, value in given.items() if value is not None})
    case = {
        key: value
        for key, value in (
            ("total", total),
            ("dice", list(dice) if dice else None),
            ("bets", list(bets) or None),
            ("dead", dead),
            ("bank_seat", bank_seat),
        )
        if value is not None
    }
    answer(case or None, batch, lambda one: _handle(one, chosen), _show, as_json)


def _handle(case: Any, pack: Pack) -> dict[str, Any]:
    settings = ("positions", "count_direction", "deal_direction")
    parts = fields(case, (), ("total", "dice", "bets", "dead", "bank_seat", *settings))
    if ("total" in parts) == ("dice" in parts):
        raise BadInput(_("give either a total or three dice"))
    total = parts["total"] if "total" in parts else seating.total_of_dice(parts["dice"])
    chosen = pack.with_options({key: parts[key] for key in settings if key in parts})
    order = seating.order_of_pack(total, chosen)
    bets = parts.get("bets")
    if bets is not None and not isinstance(bets, list):
        raise BadInput(_("bets is {value}; needed: a list of deal positions").format(value=shown(bets)))
    hands = seating.hands_in_play(order, bets, parts.get("dead"))
    return {
        "start": order.start,
        "deal": list(order.deal),
        "action": list(hands.action),
        "collected": list(hands.collected),
        "seats": list(seating.seats(order, parts.get("bank_seat", 1))),
        "total": total,
        "pack": chosen.name,
        **{key: chosen[key] for key in settings},
    }


def _show(result: dict[str, Any]) -> None:
    directions = {"counter-clockwise": _("counter-clockwise"), "clockwise": _("clockwise")}
    out = console()
    out.print(
        _("Total {total}: deal position {start} is dealt first (of {positions}; 1 is the dealer or the bank)").format(
            **result
        )
    )
    out.print(
        _("counted {count}, dealt {deal}").format(
            count=directions[result["count_direction"]], deal=directions[result["deal_direction"]]
        )
    )
    out.print(_("deal order: {order}").format(order=" ".join(map(str, result["deal"]))))
    out.print(_("action order: {order}").format(order=" ".join(map(str, result["action"])) or "-"))
    if result["collected"]:
        out.print(_("tiles collected: {order}").format(order=" ".join(map(str, result["collected"]))))
    if result["seats"] != result["deal"]:
        out.print(_("seats in the order of the deal: {order}").format(order=" ".join(map(str, result["seats"]))))
