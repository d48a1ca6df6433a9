"""`tablectl wagers`: the dragon's eye wagers, one by one or in batch, exactly as the controller settles them."""

from __future__ import annotations

from typing import Any, BinaryIO

import click

from dragoneye.errors import BadInput
from dragoneye.rules import wagers as rules
from dragoneye.rules.packs import WAGERS, Pack
from host_tools.cli.answer import CaseCommand, answer
from host_tools.cli.numbers import money, number
from host_tools.cli.output import batch_option, console, json_option
from host_tools.cli.packs import Options, pack_of_case, pack_with, rules_options
from host_tools.i18n import _

BY_EYE = ("even", "odd", "double")


@click.group()
def wagers() -> None:
    """Dragon's eye wagers: match, even, odd, double, triple and the dice bonus."""


def settle_case(case: Any, pack: Pack) -> dict[str, Any]:
    """Settle one case of a batch: its own "pack" and "options" win over `pack`."""
    return dict(rules.settle_case(case, pack_of_case(case, pack) if isinstance(case, dict) else pack))


def _told(case: dict[str, Any]) -> str:
    """The roll and whatever else decides the wager, as it was given or left at its default."""
    dice = " ".join(
        f"«{die}»" if index == case["eye"] and case["wager"] in BY_EYE else str(die)
        for index, die in enumerate(case["dice"])
    )
    said = [_("dice {dice}").format(dice=dice)]
    if case["wager"] in BY_EYE:
        said.append(_("« » is the dragon's eye die"))
    if case["wager"] == "match":
        said.append(_("player position {position}").format(position=case["position"]))
    if case["wager"] == "bonus":
        said.append(_("the shaker") if case["role"] == rules.SHAKER else _("not the shaker"))
        said.append(_("triples in a row before this roll: {count}").format(count=case["streak"]))
    return ", ".join(said)


@wagers.command(cls=CaseCommand)
@rules_options()
@batch_option
@json_option
@click.option("--dice", nargs=3, type=int, help="The three dice in their order, for example 3 3 4.")
@click.option(
    "--eye", type=int, help="Which of them is the dragon's eye die: 0, 1 or 2. Needed for even, odd and double."
)
@click.option("--position", type=int, default=1, show_default=True, help="Player position.")
@click.option("--wager", default="match", show_default=True, help=", ".join(WAGERS))
@click.option("--stake", type=int, default=100, show_default=True, help="In cents.")
@click.option("--role", default="player", show_default=True, help="shaker or player.")
@click.option("--streak", type=int, default=0, show_default=True, help="Triples in a row before this roll.")
def settle(
    pack: str,
    options: Options,
    batch: BinaryIO | None,
    as_json: bool,
    dice: tuple[int, int, int] | None,
    eye: int | None,
    **given: Any,
) -> None:
    """Settle one wager, or with --batch one JSON case a line."""
    chosen = pack_with(pack, options)
    case: dict[str, Any] | None = None
    if dice is not None:
        if eye is None and given["wager"] in BY_EYE:
            raise BadInput(
                _("--eye is missing; {wager} hangs on which die is the dragon's eye: allowed: 0, 1 or 2").format(
                    wager=given["wager"]
                )
            )
        case = {"dice": dice, "eye": eye or 0, **given}
    elif batch is None:
        raise BadInput(_("--dice is missing; give three values, for example --dice 3 3 4, or --batch FILE"))

    def show(result: dict[str, Any]) -> None:
        assert case is not None
        console().print(_told(case))
        wager, stake = _(case["wager"]), money(case["stake"])
        if result["won"] and case["wager"] == "bonus":
            # 11.21(f): it is paid on its own roll, and the stake stays up for the next one.
            said = _("{wager} wins at {odds} to 1: profit {profit}; the stake of {stake} stays up").format(
                wager=wager, odds=number(result["odds"]), profit=money(result["profit"]), stake=stake
            )
            said += _(" (bonus level {level})").format(level=result["level"])
        elif result["won"]:
            said = _("{wager} wins at {odds} to 1: profit {profit}, {returned} returned").format(
                wager=wager,
                odds=number(result["odds"]),
                profit=money(result["profit"]),
                returned=money(result["returned"]),
            )
        elif result["profit"]:
            said = _("{wager} {stake} loses").format(wager=wager, stake=stake)
        else:
            said = _("{wager} {stake} stays up: no bonus until the streak ends").format(wager=wager, stake=stake)
        console().print(said)

    answer(case, batch, lambda one: settle_case(one, chosen), show, as_json)
