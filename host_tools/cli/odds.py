"""`tablectl odds`: exact odds of the tiles, the dragon's eye wagers and the seats."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any, BinaryIO

import click
from rich.table import Table

from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack
from host_tools.cli.answer import answer
from host_tools.cli.numbers import decimal, number, percent
from host_tools.cli.output import batch_option, console, json_option, table
from host_tools.cli.packs import Options, pack_of_case, pack_with, rules_options
from host_tools.i18n import _
from host_tools.rules import houseway, seating
from host_tools.rules.check import fields, shown

OPTIMAL = "optimal"
# Columns of a terminal from which on the widest table here fits as it is.
ROOMY = 120
PACK_FIELDS = ("pack", "options")


@click.group()
def odds() -> None:
    """Exact odds, counted and not simulated: tiles, wagers, seats.

    A batch line of each is an object that may name another "pack", and change its values by "options".
    """


@odds.command("tiles")
@click.option(
    "--player-way",
    default="max_low",
    show_default=True,
    help="How the player sets: a house way, or 'optimal', the best answer to the bank's way.",
)
@click.option("--bank-way", default="max_low", show_default=True, help="The house way by which the bank sets.")
@rules_options()
@batch_option
@json_option
def tile_odds(
    player_way: str, bank_way: str, pack: str, options: Options, batch: BinaryIO | None, as_json: bool
) -> None:
    """Win, lose, push and house edge over all 35,960 x 20,475 ordered matches of two hands.

    A batch line is {"player_way":"max_low","bank_way":"foxwoods"}; what is left out is as the options say.
    """
    from host_tools.rules import tile_odds as rules

    chosen = pack_with(pack, options)

    def handle(case: Any) -> dict[str, Any]:
        parts = fields(case, (), ("player_way", "bank_way", *PACK_FIELDS))
        used = pack_of_case(parts, chosen)
        names = {"player_way": player_way, "bank_way": bank_way, **parts}
        for key in ("player_way", "bank_way"):
            if not isinstance(names[key], str):
                raise BadInput(_("{key} is {value}; needed: a house way").format(key=key, value=shown(names[key])))
        bank = houseway.load(names["bank_way"])
        player = None if names["player_way"] == OPTIMAL else houseway.load(names["player_way"])
        found = rules.odds(player, bank, used)
        return {
            "win": found.win,
            "lose": found.lose,
            "push": found.push,
            "total": found.total,
            "house_edge": str(found.house_edge),
            "house_edge_percent": float(found.house_edge * 100),
            "commission_bp": found.commission_bp,
            "zero_rule": used["zero_rule"],
            "player_way": names["player_way"],
            "bank_way": names["bank_way"],
            "pack": used.name,
        }

    def show(result: dict[str, Any]) -> None:
        rows = table(_("outcome"), _("matches"), _("share"))
        for label, key in ((_("win"), "win"), (_("lose"), "lose"), (_("push"), "push")):
            rows.add_row(label, number(result[key]), percent(Fraction(result[key], result["total"])))
        rows.add_row(_("all"), number(result["total"]), "")
        console().print(rows)
        console().print(
            _("the player sets by {player}, the bank by {bank}, with zero_rule {zero_rule}").format(
                player=result["player_way"], bank=result["bank_way"], zero_rule=result["zero_rule"]
            )
        )
        for name in dict.fromkeys((result["player_way"], result["bank_way"])):
            way = None if name == OPTIMAL else houseway.load(name)
            if way is not None and way.ends:
                console().print(f"{way.name}: {_(way.ends)}")
        console().print(
            _("house edge {edge} with a commission of {commission} on wins").format(
                edge=percent(Fraction(result["house_edge"])),
                commission=percent(Fraction(result["commission_bp"], 10_000), 2),
            )
        )

    answer({} if batch is None else None, batch, handle, show, as_json)


def _draw_together(rows: Table) -> None:
    """Make every column as narrow as its longest line allows, and break no word of a heading: for 80 columns."""
    rows.padding = (0, 0)
    rows.show_edge = False
    for column in rows.columns:
        lines = [line for cell in column.cells for line in str(cell).splitlines()]
        column.width = max(map(len, [*lines, *str(column.header).split()]))


@odds.command("wagers")
@rules_options()
@click.option(
    "--plot", type=click.Path(dir_okay=False), help="Draw the bonus by the share of shaking: FILE.svg, FILE.png, or -."
)
@batch_option
@json_option
def wager_odds(pack: str, options: Options, plot: str | None, batch: BinaryIO | None, as_json: bool) -> None:
    """Exact house edge and variance of every dragon's eye wager, and what the bonus is worth when kept up for ever.

    A positive edge is the house's gain, a positive profit the player's; both are shares of the stake. A batch line is
    {} or {"options":{"after_third":"restart"}}.
    """
    from host_tools.rules import wager_odds as rules

    chosen = pack_with(pack, options)
    if plot is not None and batch is not None:
        raise click.UsageError(_("give either --plot or --batch, not both"))

    def forever_of(used: Pack) -> rules.Forever | None:
        return rules.bonus_forever(used) if "bonus" in used["wagers"] else None

    def handle(case: Any) -> dict[str, Any]:
        used = pack_of_case(fields(case, (), PACK_FIELDS), chosen)
        forever = forever_of(used)
        return {
            "pack": used.name,
            "wagers": [
                {
                    "wager": one.wager,
                    **({"role": one.role, "level": one.level} if one.wager == "bonus" else {}),
                    "ways": {str(profit): rolls for profit, rolls in one.ways},
                    "total": rules.ROLLS,
                    "house_edge": str(-one.mean),
                    "house_edge_percent": float(-one.mean * 100),
                    "variance": float(one.variance),
                    "variance_exact": str(one.variance),
                }
                for one in rules.all_wagers(used)
            ],
            "bonus_forever": None
            if forever is None
            else {
                "player_profit_per_roll_and_stake": {
                    "shaker": float(forever.shaker),
                    "other": float(forever.other),
                    "by_percent_of_rolls_shaken": {
                        str(tenth * 10): float(forever.at(Fraction(tenth, 10))) for tenth in range(11)
                    },
                },
                "player_profit_per_roll_and_stake_exact": {
                    "shaker": str(forever.shaker),
                    "other": str(forever.other),
                },
                "break_even_share_of_rolls_shaken": None if forever.break_even is None else float(forever.break_even),
            },
        }

    def show(result: dict[str, Any]) -> None:
        narrow = console().width < ROOMY
        roles = {"shaker": _("shaker"), "player": _("other player")}
        rows = table(_("wager"), _("who"), _("level"), _("wins out of 216"), _("house edge"), _("exact"), _("variance"))
        for one in result["wagers"]:
            wins = (",\n" if narrow else ", ").join(
                _("{rolls} at {profit} to 1").format(rolls=rolls, profit=number(int(profit)))
                for profit, rolls in one["ways"].items()
                if int(profit) > 0
            )
            rows.add_row(
                _(one["wager"]),
                roles.get(one.get("role"), "").replace(" ", "\n" if narrow else " "),
                str(one.get("level", "")),
                wins,
                percent(Fraction(one["house_edge"])),
                one["house_edge"],
                decimal(one["variance"]),
            )
        if narrow:
            _draw_together(rows)
        console().print(rows)
        forever = forever_of(chosen)
        if forever is None:
            return
        console().print(_("The bonus kept up for ever, by the share of the rolls that one shakes:"))
        console().print(_("the player's expected profit a roll, as a share of the stake"))
        # The longest bar has 40 marks, whatever the pack pays.
        scale = 40 / max(abs(forever.shaker), abs(forever.other), Fraction(1, 100))
        for tenth in range(11):
            value = forever.at(Fraction(tenth, 10))
            bar = f" {'-' if value < 0 else '+'}{'#' * round(abs(value) * scale)}" if plot == "-" else ""
            console().print(f"{percent(Fraction(tenth, 10), 0):>5} {percent(value, 1):>8}{bar}")
        if forever.break_even is not None:
            console().print(_("even at a share of {share}").format(share=percent(forever.break_even, 1)))

    if plot is not None:
        forever = forever_of(chosen)
        if forever is None:
            raise BadInput(_("the rule pack {name} has no bonus wager to plot").format(name=chosen.name))
        if plot != "-":
            from host_tools.cli import plots

            plots.save(plots.bonus(forever), plot)
    answer({} if batch is None else None, batch, handle, show, as_json)


@odds.command()
@rules_options()
@batch_option
@json_option
def seats(pack: str, options: Options, batch: BinaryIO | None, as_json: bool) -> None:
    """How often each deal position is dealt first, out of 216 rolls; * is the pack's number of positions.

    A batch line is {} or {"options":{"positions":8}}.
    """
    chosen = pack_with(pack, options)

    def handle(case: Any) -> dict[str, Any]:
        used = pack_of_case(fields(case, (), PACK_FIELDS), chosen)
        totals = Counter(map(sum, product(range(1, 7), repeat=3)))
        ways: dict[str, list[int]] = {}
        for positions in (6, 7, 8):
            found: Counter[int] = Counter()
            for total, rolls in totals.items():
                found[seating.start(total, positions)] += rolls
            ways[str(positions)] = [found[position] for position in range(1, positions + 1)]
        return {"total": 216, "positions": used["positions"], "ways": ways, "pack": used.name}

    def show(result: dict[str, Any]) -> None:
        console().print(_("How often each deal position is dealt first, out of 216 rolls:"))
        rows = table(_("deal positions"), *(str(position) for position in range(1, 9)))
        for positions, row in result["ways"].items():
            mark = " *" if int(positions) == result["positions"] else ""
            rows.add_row(positions + mark, *(str(count) for count in row))
        console().print(rows)
        console().print(_("* the rule pack's number of positions"))
        console().print(
            _("Deal position 1 is the dealer or the bank; these are not the match wager's player positions.")
        )

    answer({} if batch is None else None, batch, handle, show, as_json)
