"""`tablectl odds`: exact odds of the tiles, the dragon's eye wagers and the seats."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import click

from dragoneye.errors import BadInput
from host_tools.cli.numbers import decimal, number, percent
from host_tools.cli.output import console, json_option, print_json, table
from host_tools.cli.packs import Options, pack_with, rules_options
from host_tools.i18n import _
from host_tools.rules import houseway, seating

OPTIMAL = "optimal"


@click.group()
def odds() -> None:
    """Exact odds, counted and not simulated: tiles, wagers, seats."""


@odds.command("tiles")
@click.option(
    "--player-way",
    default="max_low",
    show_default=True,
    help="How the player sets: a house way, or 'optimal', the best answer to the bank's way.",
)
@click.option("--bank-way", default="max_low", show_default=True, help="The house way by which the bank sets.")
@rules_options()
@json_option
def tile_odds(player_way: str, bank_way: str, pack: str, options: Options, as_json: bool) -> None:
    """Win, lose, push and house edge over all 35,960 x 20,475 ordered matches of two hands."""
    from host_tools.rules import tile_odds as rules

    chosen = pack_with(pack, options)
    bank = houseway.load(bank_way)
    player = None if player_way == OPTIMAL else houseway.load(player_way)
    found = rules.odds(player, bank, chosen)
    if as_json:
        print_json(
            {
                "win": found.win,
                "lose": found.lose,
                "push": found.push,
                "total": found.total,
                "house_edge": str(found.house_edge),
                "house_edge_percent": float(found.house_edge * 100),
                "commission_bp": found.commission_bp,
                "zero_rule": chosen["zero_rule"],
                "player_way": player_way,
                "bank_way": bank_way,
                "pack": chosen.name,
            }
        )
        return
    rows = table(_("outcome"), _("matches"), _("share"))
    for label, count in ((_("win"), found.win), (_("lose"), found.lose), (_("push"), found.push)):
        rows.add_row(label, number(count), percent(Fraction(count, found.total)))
    rows.add_row(_("all"), number(found.total), "")
    console().print(rows)
    console().print(
        _("the player sets by {player}, the bank by {bank}, with zero_rule {zero_rule}").format(
            player=player_way, bank=bank_way, zero_rule=chosen["zero_rule"]
        )
    )
    for way in {way.name: way for way in (player, bank) if way is not None and way.ends}.values():
        console().print(f"{way.name}: {_(way.ends)}")
    console().print(
        _("house edge {edge} with a commission of {commission} on wins").format(
            edge=percent(found.house_edge), commission=percent(Fraction(found.commission_bp, 10_000), 2)
        )
    )


@odds.command("wagers")
@rules_options()
@click.option(
    "--plot", type=click.Path(dir_okay=False), help="Draw the bonus by the share of shaking: FILE.svg, FILE.png, or -."
)
@json_option
def wager_odds(pack: str, options: Options, plot: str | None, as_json: bool) -> None:
    """Exact edge and variance of every dragon's eye wager, and what the bonus is worth when it is kept up for ever."""
    from host_tools.rules import wager_odds as rules

    chosen = pack_with(pack, options)
    found = rules.all_wagers(chosen)
    forever = rules.bonus_forever(chosen) if "bonus" in chosen["wagers"] else None
    if plot is not None:
        if forever is None:
            raise BadInput(_("the rule pack {name} has no bonus wager to plot").format(name=chosen.name))
        if plot != "-":
            from host_tools.cli import plots

            plots.save(plots.bonus(forever), plot)
    if as_json:
        print_json(
            {
                "pack": chosen.name,
                "wagers": [
                    {
                        "wager": one.wager,
                        **({"role": one.role, "level": one.level} if one.wager == "bonus" else {}),
                        "ways": {str(profit): rolls for profit, rolls in one.ways},
                        "total": rules.ROLLS,
                        "edge": str(-one.mean),
                        "edge_percent": float(-one.mean * 100),
                        "variance": float(one.variance),
                    }
                    for one in found
                ],
                "bonus_forever": None
                if forever is None
                else {
                    "shaker": float(forever.shaker),
                    "other": float(forever.other),
                    "by_share": {str(tenth * 10): float(forever.at(Fraction(tenth, 10))) for tenth in range(11)},
                    "break_even_share": None if forever.break_even is None else float(forever.break_even),
                },
            }
        )
        return
    roles = {"shaker": _("shaker"), "player": _("other player"), "": ""}
    rows = table(_("wager"), _("who"), _("level"), _("wins out of 216"), _("edge"), _("exact"), _("variance"))
    for one in found:
        wins = ", ".join(
            _("{rolls} at {profit} to 1").format(rolls=rolls, profit=number(profit))
            for profit, rolls in one.ways
            if profit > 0
        )
        rows.add_row(
            _(one.wager),
            roles[one.role],
            str(one.level or ""),
            wins,
            percent(-one.mean),
            str(-one.mean),
            decimal(one.variance),
        )
    console().print(rows)
    if forever is None:
        return
    console().print(_("The bonus kept up for ever, by the share of the rolls that one shakes:"))
    # The longest bar has 40 marks, whatever the pack pays.
    scale = 40 / max(abs(forever.shaker), abs(forever.other), Fraction(1, 100))
    for tenth in range(11):
        value = forever.at(Fraction(tenth, 10))
        bar = f" {'-' if value < 0 else '+'}{'#' * round(abs(value) * scale)}" if plot == "-" else ""
        console().print(f"{percent(Fraction(tenth, 10), 0):>5} {percent(value, 1):>8}{bar}")
    if forever.break_even is not None:
        console().print(_("even at a share of {share}").format(share=percent(forever.break_even, 1)))


@odds.command()
@rules_options()
@json_option
def seats(pack: str, options: Options, as_json: bool) -> None:
    """How often each deal position is dealt first, out of 216 rolls; * is the pack's number of positions."""
    chosen = pack_with(pack, options)["positions"]
    totals = Counter(map(sum, product(range(1, 7), repeat=3)))
    ways: dict[int, list[int]] = {}
    for positions in (6, 7, 8):
        found: Counter[int] = Counter()
        for total, rolls in totals.items():
            found[seating.start(total, positions)] += rolls
        ways[positions] = [found[position] for position in range(1, positions + 1)]
    if as_json:
        print_json(
            {"total": 216, "positions": chosen, "ways": {str(positions): row for positions, row in ways.items()}}
        )
        return
    console().print(_("How often each deal position is dealt first, out of 216 rolls:"))
    rows = table(_("deal positions"), *(str(position) for position in range(1, 9)))
    for positions, row in ways.items():
        rows.add_row(f"{positions}{' *' if positions == chosen else ''}", *(str(count) for count in row))
    console().print(rows)
    console().print(_("* the rule pack's number of positions"))
    console().print(_("Deal position 1 is the dealer or the bank; these are not the match wager's player positions."))
