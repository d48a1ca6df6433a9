"""Every drawing of tablectl: made by matplotlib, as SVG or PNG, with numbers and words in the chosen language."""

from __future__ import annotations

import io
import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoneye.errors import BadInput
from host_tools import statistics
from host_tools.cli.numbers import number, percent
from host_tools.i18n import _

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
# A page's own colour takes the place of this one: text and lines are then right on light and on dark.
_INK = "#010203"
# Told apart in grey and by the colour-blind (Okabe and Ito); what they mean is written beside them too.
_BLUE, _ORANGE = "#0072b2", "#d55e00"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK),
}


def _figure(width: float, height: float) -> Figure:
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(_STYLE)
    return Figure(figsize=(width, height), layout="constrained")


def _percent_axis(axis: Any, digits: int = 0) -> None:
    axis.set_major_formatter(lambda value, _position: percent(value, digits))


def _number_axis(axis: Any) -> None:
    axis.set_major_formatter(lambda value, _position: number(round(value)))


def faces(analysis: dict[str, Any]) -> Figure:
    """The share of each face of each die with its exact confidence interval, against 1/6."""
    figure = _figure(7.2, 2.6)
    panels: list[Axes] = list(figure.subplots(1, 3, sharey=True))
    for axes, die in zip(panels, analysis["dice"], strict=True):
        shares = [face["share"] for face in die["faces"]]
        errors = [
            [face["share"] - face["low"] for face in die["faces"]],
            [face["high"] - face["share"] for face in die["faces"]],
        ]
        axes.errorbar(list(statistics.FACES), shares, yerr=errors, fmt="o", color=_BLUE, markersize=4, capsize=4)
        axes.axhline(1 / 6, color=_ORANGE, linestyle="--", linewidth=1.2)
        title = _("die {number}").format(number=die["die"])
        axes.set_title(title + (" · " + _("dragon's eye") if die["eye"] else ""), fontsize=9)
        axes.set_xticks(list(statistics.FACES))
        axes.set_xlabel(_("face"))
    panels[0].set_ylabel(_("share of rolls"))
    _percent_axis(panels[0].yaxis, 1)
    return figure


def totals(analysis: dict[str, Any]) -> Figure:
    """How often each total came, beside what the 216 rolls have it."""
    figure = _figure(7.2, 2.6)
    axes: Axes = figure.subplots()
    expected = [analysis["rolls"] * ways / 216 for ways in statistics.WAYS]
    axes.bar(statistics.TOTALS, analysis["by_total"], color=_BLUE, alpha=0.45, label=_("rolled"))
    axes.plot(list(statistics.TOTALS), expected, "_", color=_ORANGE, markersize=16, markeredgewidth=2, label=_("fair"))
    axes.set_xticks(list(statistics.TOTALS))
    axes.set_xlabel(_("total"))
    axes.set_ylabel(_("rolls"))
    _number_axis(axes.yaxis)
    axes.legend(frameon=False)
    return figure


def drift(rolls: statistics.Faces, limit: float) -> Figure:
    """The evidence against each die, roll by roll, and the line at which a warning is given."""
    figure = _figure(7.2, 2.6)
    axes: Axes = figure.subplots()
    paths = statistics.drift_paths(rolls)
    # A thousand points are as much as a line this long can show.
    step = max(1, len(rolls) // 1000)
    where = np.arange(0, len(rolls), step)
    for die, style in enumerate(("-", "--", ":")):
        evidence = np.exp(np.clip(paths[where, die], -50, 50))
        name = _("die {number}").format(number=die + 1)
        axes.plot(where + 1, evidence, style, color=_BLUE, linewidth=1.2, label=name)
    axes.axhline(limit, color=_ORANGE, linewidth=1.5, label=_("warning"))
    axes.set_yscale("log")
    axes.set_xlabel(_("roll"))
    axes.set_ylabel(_("odds against fair dice"))
    _number_axis(axes.xaxis)
    figure.legend(frameon=False, ncols=4, loc="outside upper center")
    return figure


def bonus(forever: Any) -> Figure:
    """What a bonus kept up for ever is worth by the share of the rolls that one shakes."""
    figure = _figure(6.4, 4.0)
    axes: Axes = figure.subplots()
    tenths = range(0, 11, 2)
    values = [float(forever.at(Fraction(tenth, 10))) for tenth in tenths]
    axes.plot([tenth / 10 for tenth in tenths], values, "o-", color=_BLUE, markersize=4)
    for tenth, value in zip(tenths, values, strict=True):
        right = tenth < 10
        axes.annotate(
            percent(value, 1),
            (tenth / 10, value),
            xytext=(4, -12) if right else (-4, 6),
            textcoords="offset points",
            ha="left" if right else "right",
        )
    axes.axhline(0, color=_INK, linewidth=0.8, linestyle="--")
    axes.set_xticks([tenth / 10 for tenth in tenths])
    _percent_axis(axes.xaxis)
    _percent_axis(axes.yaxis)
    axes.set_title(_("The bonus kept up for ever"))
    axes.set_xlabel(_("share of the rolls that one shakes"))
    axes.set_ylabel(_("expected profit a roll, as a share of the stake"))
    return figure


def svg(figure: Figure, name: str) -> str:
    """The drawing as an <svg> element for a page, in the page's own colour of text; `name` makes its ids its own."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    found = text.getvalue()
    found = found[found.index("<svg") :].replace(_INK, "currentColor")
    found = re.sub(r"\s*<metadata>.*?</metadata>", "", found, flags=re.DOTALL)
    found = re.sub(r'\bid="', f'id="{name}-', found)
    found = re.sub(r'((?:xlink:)?href)="#', rf'\1="#{name}-', found)
    return re.sub(r"url\(#", f"url(#{name}-", found)


def png(figure: Figure, dots: int = 200) -> bytes:
    """The drawing as a PNG on white."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dots)
    return file.getvalue()


def check_path(path: str) -> None:
    """Raise BadInput unless `path` is that of a drawing."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise BadInput(
            _("{path}: allowed: a file ending in {suffixes}").format(path=path, suffixes=", ".join(SUFFIXES))
        )


def save(figure: Figure, path: str) -> None:
    """Write the drawing to a file ending in one of SUFFIXES. Raises BadInput."""
    check_path(path)
    try:
        if Path(path).suffix.lower() == ".png":
            Path(path).write_bytes(png(figure))
        else:
            # Black where no page says another colour.
            Path(path).write_text(svg(figure, "figure") + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(_("{path} cannot be written: {why}").format(path=path, why=error.strerror)) from None
