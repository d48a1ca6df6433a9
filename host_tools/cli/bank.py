"""`tablectl bank`: who decides the bank hand, how the action is covered, who banks next."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, BinaryIO

import click

from dragoneye.errors import BadInput
from host_tools.cli.answer import answer
from host_tools.cli.numbers import money, percent
from host_tools.cli.output import batch_option, console, json_option, table
from host_tools.cli.packs import Options, pack_with, rules_options
from host_tools.i18n import _
from host_tools.rules import banking
from host_tools.rules.check import fields, filled, listed, shown, whole


@click.group()
def bank() -> None:
    """Banks: who decides the bank hand, how the action is covered, who banks next. Amounts are cents."""


@bank.command()
@click.option("--front", type=int, help="What the front bank covers, in cents.")
@click.option("--action", type=int, help="The live action in cents, the corporation's buy included.")
@rules_options("ca")
@batch_option
@json_option
def decides(
    front: int | None, action: int | None, pack: str, options: Options, batch: BinaryIO | None, as_json: bool
) -> None:
    """Whether the front bank or the second decides the bank hand; a batch line is {"front":100000,"action":250000}."""
    chosen = pack_with(pack, options)

    def handle(case: Any) -> dict[str, Any]:
        parts = fields(case, ("front", "action"))
        found = banking.decides(parts["front"], parts["action"], chosen)
        return {
            "decides": found.decides,
            "front": parts["front"],
            "action": parts["action"],
            "needed": found.needed,
            "share_percent": chosen["bank_share_percent"],
            "pack": chosen.name,
        }

    def show(result: dict[str, Any]) -> None:
        words = {"front": _("the front bank decides"), "second": _("the second bank decides")}
        console().print(
            _("{who}: {share} of {action} takes {needed}, and the front bank covers {front} (rule pack {pack})").format(
                pack=result["pack"],
                who=words[result["decides"]],
                share=percent(Fraction(result["share_percent"], 100), 0),
                action=money(result["action"]),
                needed=money(result["needed"]),
                front=money(result["front"]),
            )
        )

    case = {key: value for key, value in (("front", front), ("action", action)) if value is not None}
    answer(case or None, batch, handle, show, as_json)


def _bet(text: str) -> list[int]:
    position, separator, cents = text.partition(":")
    if not separator or not position.isdecimal() or not cents.isdecimal() or len(text) > 20:
        raise BadInput(_("a bet is {text}; allowed: POSITION:CENTS, such as 2:5000").format(text=shown(text)))
    return [int(position), int(cents)]


@bank.command()
@click.option("--bank", "banks", type=int, multiple=True, help="A bank's cents; the front bank first.")
@click.option("--bet", "bets", multiple=True, metavar="POSITION:CENTS", help="A bet, in the order of action.")
@rules_options("ca")
@batch_option
@json_option
def covers(
    banks: tuple[int, ...], bets: tuple[str, ...], pack: str, options: Options, batch: BinaryIO | None, as_json: bool
) -> None:
    """How the banks cover the bets in the order of action: what is covered plays, the rest is returned.

    A batch line is {"banks":[60000,30000],"bets":[[2,50000],[3,50000]]}.
    """

    chosen = pack_with(pack, options)
    places = chosen["positions"]

    def handle(case: Any) -> dict[str, Any]:
        parts = fields(case, ("banks", "bets"))
        pairs = [listed(bet, 2, _("a bet"), _("numbers")) for bet in filled(parts["bets"], "bets")]
        checked = [(whole(position, 2, places, _("the deal position")), cents) for position, cents in pairs]
        positions = [position for position, _cents in checked]
        for position in positions:
            if positions.count(position) > 1:
                raise BadInput(_("deal position {position} is there twice").format(position=position))
        return {
            "covers": [
                {
                    "position": one.position,
                    "by_bank": list(one.by_bank),
                    "covered": one.covered,
                    "returned": one.returned,
                }
                for one in banking.cover(checked, filled(parts["banks"], "banks"))
            ],
            "pack": chosen.name,
        }

    def show(result: dict[str, Any]) -> None:
        rows = table(_("deal position"), _("plays"), _("returned"), _("by bank"))
        for one in result["covers"]:
            rows.add_row(
                str(one["position"]),
                money(one["covered"]),
                money(one["returned"]),
                " + ".join(money(part) for part in one["by_bank"]),
            )
        console().print(rows)
        console().print(_("rule pack {name}, {positions} deal positions").format(name=chosen.name, positions=places))

    case = {"banks": list(banks), "bets": [_bet(bet) for bet in bets]} if banks or bets else {}
    answer(case or None, batch, handle, show, as_json)


@bank.command("next")
@click.option("--last", type=int, help="Seat of the last bank; 1 is the house dealer.")
@click.option("--accepts", type=int, multiple=True, help="A seat that would take the bank (repeat).")
@click.option("--played", type=int, multiple=True, help="A seat that played the last round (default: all).")
@click.option(
    "--again", is_flag=True, help="The last bank may keep the bank for a second round: it is asked first, else last."
)
@click.option("--positions", type=int, help="Seats with the dealer's (default: the pack's).")
@rules_options("ca")
@batch_option
@json_option
def next_bank(
    last: int | None,
    accepts: tuple[int, ...],
    played: tuple[int, ...],
    again: bool,
    positions: int | None,
    pack: str,
    options: Options,
    batch: BinaryIO | None,
    as_json: bool,
) -> None:
    """Who banks next: the offer goes round in the count direction; the house dealer banks when nobody takes it.

    It goes all the way round, so the last bank is asked again after all the others. A batch line is
    {"last":3,"accepts":[5]}, with "played":[2,3], "again":true and "positions":7 if they matter.
    """
    chosen = pack_with(pack, options)

    def handle(case: Any) -> dict[str, Any]:
        parts = fields(case, ("last",), ("accepts", "played", "again", "positions"))
        for name in ("accepts", "played"):
            if not isinstance(parts.get(name, []), list):
                raise BadInput(
                    _("{name} is {value}; needed: a list of seats").format(name=name, value=shown(parts[name]))
                )
        if not isinstance(parts.get("again", False), bool):
            raise BadInput(_("again is {value}; allowed: true or false").format(value=shown(parts["again"])))
        found = banking.offer(
            parts["last"],
            parts.get("positions", chosen["positions"]),
            parts.get("accepts", []),
            parts.get("played"),
            int(parts.get("again", False)),
        )
        return {"bank": found.bank, "offered": list(found.offered), "pack": chosen.name}

    def show(result: dict[str, Any]) -> None:
        console().print(_("offered to: {seats}").format(seats=" ".join(map(str, result["offered"])) or "-"))
        if result["bank"] == 1:
            console().print(_("the house dealer banks"))
        else:
            console().print(_("seat {bank} banks").format(**result))

    case: dict[str, Any] = {}
    if last is not None or accepts or played or again or positions is not None:
        if last is None:
            raise click.UsageError(_("bank next needs --last, or --batch"))
        case = {"last": last, "accepts": list(accepts), "again": again}
        if played:
            case["played"] = list(played)
        if positions is not None:
            case["positions"] = positions
    answer(case or None, batch, handle, show, as_json)
