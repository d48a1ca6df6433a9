"""`tablectl wagers`: the dragon's eye wagers, one by one or in batch, exactly as the controller settles them."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any, BinaryIO

import click

from dragoneye.errors import BadInput
from dragoneye.rules import wagers as rules
from dragoneye.rules.packs import WAGERS, Pack, load
from dragoneye.text import show
from host_tools.cli.numbers import money, number
from host_tools.cli.output import batch_option, console, json_option, print_json, run_batch
from host_tools.cli.packs import Options, pack_with, rules_options
from host_tools.i18n import _

_load = lru_cache(maxsize=32)(load)


@click.group()
def wagers() -> None:
    """Dragon's eye wagers: match, even, odd, double, triple and the dice bonus."""


def settle_case(case: Any, pack: Pack) -> dict[str, Any]:
    """Settle one case of a batch: its own "pack" and "options" win over `pack`."""
    if isinstance(case, dict):
        if "pack" in case:
            if not isinstance(case["pack"], str):
                raise BadInput(_("pack: {value}; allowed: the name of a rule pack").format(value=show(case["pack"])))
            pack = _load(case["pack"])
        pack = pack.with_options(case.get("options", {}))
    return dict(rules.settle_case(case, pack))


@wagers.command()
@rules_options()
@batch_option
@json_option
@click.option("--dice", nargs=3, type=int, help="The three dice in their order, for example 3 3 4.")
@click.option("--eye", type=int, default=0, show_default=True, help="Which of them is the dragon's eye die: 0, 1 or 2.")
@click.option("--position", type=int, default=1, show_default=True, help="Player position.")
@click.option("--wager", default="match", show_default=True, help=", ".join(WAGERS))
@click.option("--stake", type=int, default=100, show_default=True, help="In cents.")
@click.option("--role", default="player", show_default=True, help="shaker or player.")
@click.option("--streak", type=int, default=0, show_default=True, help="Triples in a row before this roll.")
def settle(pack: str, options: Options, batch: BinaryIO | None, as_json: bool, **case: Any) -> None:
    """Settle one wager, or with --batch one JSON case a line."""
    chosen = pack_with(pack, options)
    if batch is not None:
        sys.exit(run_batch(batch, lambda line: settle_case(line, chosen)))
    if case["dice"] is None:
        raise BadInput(_("--dice is missing; give three values, for example --dice 3 3 4, or --batch FILE"))
    result = settle_case(case, chosen)
    if as_json:
        print_json(result)
    elif result["won"]:
        console().print(
            _("{wager} wins at {odds} to 1: profit {profit}, {returned} returned").format(
                wager=_(case["wager"]),
                odds=number(result["odds"]),
                profit=money(result["profit"]),
                returned=money(result["returned"]),
            )
        )
    else:
        console().print(_("{wager} {stake} loses").format(wager=_(case["wager"]), stake=money(case["stake"])))
