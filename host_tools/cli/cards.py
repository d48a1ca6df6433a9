"""`tablectl cards`: fast action hold'em hands over several decks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO, TypeVar

import click

from dragoneye.rules.packs import load
from host_tools.cli.answer import answer
from host_tools.cli.output import batch_option, console, json_option, table
from host_tools.cli.packs import pack_option
from host_tools.i18n import _
from host_tools.rules import cards as rules
from host_tools.rules.check import fields, filled

Function = TypeVar("Function", bound=Callable[..., Any])


def _hand_options(function: Function) -> Function:
    """Add `--decks`, `--literal-c`, `--batch`, `--json`, and `--pack`, of which no value bears on the cards."""
    for add in (
        json_option,
        batch_option,
        pack_option(),
        click.option("--decks", type=int, default=rules.DECKS, show_default=True, help="Decks in play."),
        click.option("--literal-c", is_flag=True, help="Order by (c) read alone: for study, not for play."),
    ):
        function = add(function)
    return function


def _study(literal_c: bool) -> dict[str, Any]:
    """What an answer for study carries, so that nobody takes it for one for play."""
    return {"literal_c": True} if literal_c else {}


def _told_for_study(result: dict[str, Any]) -> None:
    if "literal_c" in result:
        console().print(_("ordered by (c) read alone: for study, not for play"))


@click.group()
def cards() -> None:
    """Fast action hold'em: rank and compare five-card hands over several decks (NJ 13:69F-21.3).

    Cards are written AS, 10h, T♥. The text gives no payouts and none are computed.
    """


@cards.command("rank")
@click.argument("hand", nargs=-1, metavar="CARD CARD CARD CARD CARD")
@_hand_options
def rank_hand(
    hand: tuple[str, ...], batch: BinaryIO | None, as_json: bool, pack: str, decks: int, literal_c: bool
) -> None:
    """Which of the seventeen ranks five cards are; a batch line is ["AS","AS","AS","AS","AS"].

    Strengths compare like lists: a greater one is the better hand, an equal one a copy.
    """
    load(pack)

    def handle(case: Any) -> dict[str, Any]:
        found = rules.rank(rules.parse_hand(case, decks=decks), literal_c)
        return {"rank": found.rank, "name": found.name, "strength": list(found.strength), **_study(literal_c)}

    def show(result: dict[str, Any]) -> None:
        console().print(_("{name}, rank {rank} of 17").format(**result))
        _told_for_study(result)

    answer(hand, batch, handle, show, as_json)


@cards.command()
@click.argument("hands", nargs=-1, metavar="FIVE CARDS, THEN FIVE")
@_hand_options
def compare(
    hands: tuple[str, ...], batch: BinaryIO | None, as_json: bool, pack: str, decks: int, literal_c: bool
) -> None:
    """Which of two hands is higher; a batch line is {"first":[5 cards],"second":[5 cards]}."""
    load(pack)

    def handle(case: Any) -> dict[str, Any]:
        if case is hands:
            case = {"first": list(hands[:5]), "second": list(hands[5:])}
        parts = fields(case, ("first", "second"))
        first, second = (rules.parse_hand(parts[which], which, decks) for which in ("first", "second"))
        rules.check_decks([*first, *second], decks)
        return {
            "result": rules.compare(first, second, literal_c),
            "first": rules.rank(first).name,
            "second": rules.rank(second).name,
            **_study(literal_c),
        }

    def show(result: dict[str, Any]) -> None:
        words = {"first": _("the first hand is higher"), "second": _("the second hand is higher"), "copy": _("a copy")}
        console().print(f"{result['first']} / {result['second']}: {words[result['result']]}")
        _told_for_study(result)

    answer(hands, batch, handle, show, as_json)


@cards.command()
@click.argument("hands", nargs=-1, metavar="HAND...")
@_hand_options
def order(
    hands: tuple[str, ...], batch: BinaryIO | None, as_json: bool, pack: str, decks: int, literal_c: bool
) -> None:
    """Rank a list of hands in one call, each written AS,KS,QS,JS,TS; a batch line is a list of hands.

    Copies share a place.
    """
    load(pack)

    def handle(case: Any) -> dict[str, Any]:
        if case is hands:
            case = [hand.split(",") for hand in hands]
        parsed = [
            rules.parse_hand(hand, _("hand {number}").format(number=number), decks)
            for number, hand in enumerate(filled(case, "hands"), 1)
        ]
        rules.check_decks([card for hand in parsed for card in hand], decks)
        rows = [
            {
                "place": place,
                "hand": [str(card) for card in hand],
                "rank": rules.rank(hand).rank,
                "name": rules.rank(hand).name,
            }
            for place, hand in zip(rules.placed(parsed, literal_c), parsed, strict=True)
        ]
        return {"hands": sorted(rows, key=lambda row: int(str(row["place"]))), **_study(literal_c)}

    def show(result: dict[str, Any]) -> None:
        rows = table(_("place"), _("cards"), _("rank"), _("name"))
        for row in result["hands"]:
            rows.add_row(str(row["place"]), " ".join(row["hand"]), str(row["rank"]), row["name"])
        console().print(rows)
        _told_for_study(result)

    answer(hands, batch, handle, show, as_json)
