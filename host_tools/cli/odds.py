"""`tablectl odds`: exact odds of the tiles, the dragon's eye wagers and the seats."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

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
@click.option("--plot", type=click.Path(dir_okay=False), help="Draw the bonus by the share of shaking: FILE.svg, or -.")
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
            _write_svg(plot, forever)
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


def _write_svg(path: str, forever: Any) -> None:
    """The bonus's value against the share of shaking, as a small SVG drawing."""
    width, height, left, right, top, bottom = 640, 400, 90, 610, 50, 340
    values = [float(forever.other), 0.0, float(forever.shaker)]
    low, high = min(values) - 0.05, max(values) + 0.05

    def x(share: float) -> float:
        return left + share * (right - left)

    def y(value: float) -> float:
        return top + (high - value) / (high - low) * (bottom - top)

    def text(x: float, y: float, words: str, more: str = 'text-anchor="middle"') -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'

    def line(x1: float, y1: float, x2: float, y2: float, more: str) -> str:
        return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {more}/>'

    middle = (top + bottom) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        text(width / 2, 24, _("The bonus kept up for ever"), 'text-anchor="middle" font-size="15"'),
        text(width / 2, height - 14, _("share of the rolls that one shakes")),
        text(
            20,
            middle,
            _("expected profit a roll, as a share of the stake"),
            f'text-anchor="middle" transform="rotate(-90 20 {middle:g})"',
        ),
        line(left, top, left, bottom, 'stroke="gray"'),
        line(left, bottom, right, bottom, 'stroke="gray"'),
        line(left, y(0), right, y(0), 'stroke="gray" stroke-dasharray="4 4"'),
    ]
    # Whole tenths of a stake, or whole stakes where the pack pays so much that tenths would be a crowd.
    step = next(size for size in (0.1, 0.5, 1, 5, 10, 50, 100, 500, 1000, 10000) if (high - low) / size <= 12)
    for tick in range(math.ceil(low / step), math.floor(high / step) + 1):
        parts.append(line(left - 5, y(tick * step), left, y(tick * step), 'stroke="gray"'))
        parts.append(text(left - 8, y(tick * step) + 4, percent(tick * step, 0), 'text-anchor="end"'))
    parts.append(line(x(0), y(values[0]), x(1), y(values[2]), 'stroke="black" stroke-width="2"'))
    for tenth in range(0, 11, 2):
        share = Fraction(tenth, 10)
        value = float(forever.at(share))
        parts.append(line(x(tenth / 10), bottom, x(tenth / 10), bottom + 5, 'stroke="gray"'))
        parts.append(text(x(tenth / 10), bottom + 18, percent(share, 0)))
        parts.append(f'<circle cx="{x(tenth / 10):.1f}" cy="{y(value):.1f}" r="3"/>')
        # Beside the line, which rises or falls, and inside the drawing.
        below = 16 if tenth < 10 else -10
        parts.append(
            text(
                x(tenth / 10), y(value) + below, percent(value, 1), f'text-anchor="{"start" if tenth < 10 else "end"}"'
            )
        )
    parts.append("</svg>")
    try:
        Path(path).write_text("\n".join(parts) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(_("{path} cannot be written: {why}").format(path=path, why=error.strerror)) from None


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
