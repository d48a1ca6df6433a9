"""`tablectl fairness`: are the dice fair, and how many rolls it takes to know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from host_tools.cli.common import db_option, open_store
from host_tools.cli.numbers import decimal, number, percent
from host_tools.cli.output import console, json_option, print_json, table
from host_tools.cli.record import Asked, search_for, search_options, set_name
from host_tools.codes import VOIDS
from host_tools.i18n import _, controller

Analysis = dict[str, Any]


class Between(click.FloatRange):
    """A number in a range; "nan" is in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if number != number:
            self.fail(_("{value} is not a number").format(value=value), param, ctx)
        return number


class Share(Between):
    """A share between 0 and 1, as near to either as the statistics can tell apart."""

    def __init__(self) -> None:
        super().__init__(1e-9, 1 - 1e-9)


_alpha = click.option(
    "--alpha", default=0.01, show_default=True, type=Share(), help="The chance of a false alarm that is put up with."
)


@click.group(invoke_without_command=True)
@search_options
@_alpha
@click.option("--confidence", default=0.99, show_default=True, type=Share(), help="Of the interval of each face.")
@click.option(
    "--plot", "folder", type=click.Path(file_okay=False, path_type=Path), help="Draw into this folder, as SVG."
)
@click.option("--png", is_flag=True, help="With --plot: as PNG.")
@db_option
@json_option
@click.pass_context
def fairness(
    context: click.Context,
    asked: Asked,
    alpha: float,
    confidence: float,
    folder: Path | None,
    png: bool,
    db: Path | str | None,
    as_json: bool,
) -> None:
    """Are the dice fair? Every recorded roll by dice set and die; nothing here ever touches play."""
    if context.invoked_subcommand is not None:
        return
    from host_tools import fairness as fair

    store = open_store(db, must_exist=True)
    sets = fair.gather(store, search_for(store, asked))
    for one in sets:
        analysis = fair.analyse(one, alpha, confidence)
        drawn = draw(one, analysis, folder, "png" if png else "svg") if folder is not None and one.raw else []
        if as_json:
            print_json({**analysis, **({"plots": drawn} if folder is not None else {})})
        else:
            print_analysis(analysis)
            for path in drawn:
                click.echo(path)
    if not sets and not as_json:
        click.echo(_("no rolls are recorded"))


def draw(dice_set: Any, analysis: Analysis, folder: Path, suffix: str) -> list[str]:
    """Draw faces, totals and drift of one dice set into `folder`; the paths of the files."""
    from dragoneye.errors import BadInput
    from host_tools.cli import plots

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror}") from None
    figures = {
        "faces": plots.faces(analysis),
        "totals": plots.totals(analysis),
        "drift": plots.drift(dice_set.rolls, analysis["drift"]["limit"]),
    }
    paths = []
    for name, figure in figures.items():
        path = folder / f"{analysis['table']}-{analysis['dice_set']}-{name}.{suffix}"
        plots.save(figure, str(path))
        paths.append(str(path))
    return paths


def p_text(result: Analysis | None) -> str:
    """A p-value as one reads it."""
    if result is None:
        return _("too few rolls")
    return decimal(result["p"], 4) if result["p"] >= 0.0001 else "< " + decimal(0.0001, 4)


def verdict(analysis: Analysis) -> str:
    """What the tests of a dice set come to, in a sentence."""
    if not analysis["tests"]:
        return _("no rolls are recorded")
    if analysis["suspicious"]:
        return _("SUSPICIOUS: {tests} would come out so with fair dice less than once in {often} times").format(
            tests=", ".join(test_name(name) for name in analysis["suspicious"]),
            often=number(round(1 / analysis["limit"])),
        )
    return _("nothing speaks against fair dice: none of {tests} tests is below p = {limit}").format(
        tests=analysis["tests"], limit=decimal(analysis["limit"], 5)
    )


def test_name(name: str) -> str:
    """The name of a test of host_tools.fairness in the chosen language."""
    die, comma, what = name.partition(", ")
    if not comma:
        return {"totals": _("totals"), "outcomes": _("all three dice")}[name]
    words = {"faces": _("faces"), "runs": _("runs"), "repeats": _("repeats")}
    return _("die {number}").format(number=die.split()[1]) + " " + words[what]


def drift_text(analysis: Analysis) -> str:
    """The state of the drift watch, in a sentence."""
    drift = analysis["drift"]
    if drift["warned_at_round"] is not None:
        return _("WARNING since round {round} (roll {roll} of this set): die {die} drifts from fair").format(
            round=number(drift["warned_at_round"]), roll=number(drift["warned_at_roll"]), die=drift["die"]
        )
    return _("no warning; the strongest evidence was {evidence} to 1, a warning comes at {limit} to 1").format(
        evidence=decimal(drift["evidence"], 1), limit=number(round(drift["limit"]))
    )


def print_analysis(analysis: Analysis) -> None:
    """Tell one dice set's statistics."""
    out = console()
    out.print(
        _("Table {table}, dice set {set}: {rolls} rolls, {manual} entered by hand").format(
            table=analysis["table"],
            set=set_name(analysis),
            rolls=number(analysis["rolls"]),
            manual=number(analysis["manual"]),
        ),
        style="bold",
    )
    if analysis["rolls"]:
        rows = table(_("die"), *(str(face) for face in range(1, 7)), _("faces: p"), _("runs: p"), _("repeats: p"))
        for die in analysis["dice"]:
            eye = " " + _("(dragon's eye)") if die["eye"] else ""
            rows.add_row(
                f"{die['die']}{eye}",
                *(number(count) for count in die["counts"]),
                *(p_text(die[test]) for test in ("chi_square", "runs", "repeats")),
            )
            rows.add_row("", *(percent(face["share"], 2) for face in die["faces"]), "", "", "")
            rows.add_row("", *(interval_text(face) for face in die["faces"]), "", "", "")
        out.print(rows)
        out.print(
            _("totals: p {totals}; all three dice together: p {outcomes}").format(
                totals=p_text(analysis["totals"]), outcomes=p_text(analysis["outcomes"])
            )
        )
        out.print(_("drift: ") + drift_text(analysis), soft_wrap=True)
    reading = analysis["reading"]
    if analysis["voids"]:
        out.print(_("void rolls:"))
        for reason, count in analysis["voids"].items():
            out.print(f"  {number(count):>7}  {reason}: {controller(VOIDS.get(reason, reason))}")
    if reading:
        out.print(reading_text(reading), soft_wrap=True)
    if analysis["smallest_bias"]:
        out.print(bias_text(analysis["smallest_bias"]))
    out.print(verdict(analysis), style="bold", soft_wrap=True)
    out.print()


def bias_text(bias: float) -> str:
    """What so many rolls can show."""
    return _("so many rolls show a bias of {bias} points of one face nine times in ten").format(
        bias=decimal(bias * 100, 2)
    )


def interval_text(face: Analysis) -> str:
    """The exact interval of a face's probability."""
    return f"{percent(face['low'], 1)}–{percent(face['high'], 1)}"


def reading_text(reading: Analysis) -> str:
    """What the voids say of the tags."""
    words = _("a die was not read in {share} of {rolled} rolls").format(
        share=percent(reading["share"], 2), rolled=number(reading["rolled"])
    )
    for die, count in enumerate(reading["missing"], 1):
        if count:
            words += _("; die {die}: {count}").format(die=die, count=number(count))
    if not reading["dead_tag_possible"]:
        words += _("; a dead tag would make it one in six, so every tag answers")
    for never in reading["never"]:
        words += _("; die {die} never showed {face}, which is chance with probability {chance}").format(
            die=never["die"], face=never["face"], chance=percent(never["chance"], 2)
        )
    return words


@fairness.command()
@click.option(
    "--bias",
    type=Between(1e-6, 5 / 6),
    help="How much likelier than 1/6 one face is: 0.01 is one point.",
)
@click.option("--rolls", type=click.IntRange(1, 10**12), help="Or: what so many rolls can show.")
@_alpha
@click.option("--power", default=0.9, show_default=True, type=Share(), help="How surely the bias is to be seen.")
@json_option
def power(bias: float | None, rolls: int | None, alpha: float, power: float, as_json: bool) -> None:
    """How many rolls show a bias of a given size, or what bias so many rolls show."""
    from host_tools import statistics

    if (bias is None) == (rolls is None):
        raise click.UsageError(_("give either --bias or --rolls"))
    if bias is not None:
        needed = statistics.rolls_needed(bias, alpha, power)
        told: Analysis = {"bias": bias, "alpha": alpha, "power": power, "rolls": needed}
        words = _("{rolls} rolls show a face that is {bias} points too frequent (false alarms {alpha}, power {power})")
        words = words.format(
            rolls=number(needed), bias=decimal(bias * 100, 2), alpha=percent(alpha, 1), power=percent(power, 0)
        )
    else:
        assert rolls is not None
        found = statistics.smallest_bias(rolls, alpha, power)
        told = {"rolls": rolls, "alpha": alpha, "power": power, "bias": found}
        words = (
            _("{rolls} rolls show no bias at all with this power").format(rolls=number(rolls))
            if found is None
            else _("{rolls} rolls show a face that is {bias} points too frequent, and more").format(
                rolls=number(rolls), bias=decimal(found * 100, 2)
            )
        )
    if as_json:
        print_json(told)
    else:
        click.echo(words)
