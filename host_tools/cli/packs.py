"""`tablectl packs`: the rule packs, and where each of their values comes from."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import click

from dragoneye.errors import BadInput
from dragoneye.rules.packs import NAMES, Pack, load
from dragoneye.text import show as text_show
from host_tools.cli.output import console, json_option, print_json, table
from host_tools.i18n import _, pgettext

Function = TypeVar("Function", bound=Callable[..., Any])
Options = tuple[tuple[str, str], ...]


def pack_option(default: str = "nj") -> Callable[[Function], Function]:
    """Add `--pack` as the argument `pack`: a name of NAMES or the path of an operator's own file."""
    return click.option(
        "--pack", default=default, show_default=True, help="Rule pack: nj, pr, ca, or the path of your own .json file."
    )


def rules_options(default: str = "nj") -> Callable[[Function], Function]:
    """Add `--pack` and `--option` as the arguments `pack` and `options`, for `pack_with`."""

    def add(function: Function) -> Function:
        option = click.option(
            "--option",
            "options",
            nargs=2,
            multiple=True,
            metavar="NAME VALUE",
            help="A value of the rule pack to change, for example --option zero_rule bank_wins; see `packs show`.",
        )
        return pack_option(default)(option(function))

    return add


def pack_with(pack: str, options: Options) -> Pack:
    """The rule pack that `rules_options` named, with its values changed; a VALUE is JSON, or else a word."""
    given: dict[str, Any] = {}
    for key, value in options:
        try:
            given[key] = json.loads(value)
        except (ValueError, RecursionError):
            given[key] = value
    changed: Pack = load(pack).with_options(given)
    return changed


def pack_of_case(case: dict[str, Any], pack: Pack) -> Pack:
    """The pack of a batch's case: its own "pack" and "options" win over `pack`. Raises BadInput."""
    if "pack" in case:
        if not isinstance(case["pack"], str):
            raise BadInput(_("pack: {value}; allowed: the name of a rule pack").format(value=text_show(case["pack"])))
        pack = _loaded(case["pack"])
    changed: Pack = pack.with_options(case.get("options", {}))
    return changed


_loaded = lru_cache(maxsize=32)(load)


@click.group()
def packs() -> None:
    """Rule packs: every doubtful point as a value with its source."""


@packs.command("list")
@json_option
def list_packs(as_json: bool) -> None:
    """The packs that come with the program."""
    loaded = [load(name) for name in NAMES]
    if as_json:
        for pack in loaded:
            print_json({"name": pack.name, "title": pack.title})
        return
    for pack in loaded:
        console().print(f"{pack.name}  {_(pack.title)}")


@packs.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Every value of the pack NAME (nj, pr, ca, or your own .json file) and where it comes from."""
    pack = load(name)
    if as_json:
        print_json(pack.as_dict())
        return
    rows = table(
        pgettext("rule pack", "value"),
        pgettext("rule pack", "is"),
        pgettext("rule pack", "from"),
        title=f"{pack.name}: {_(pack.title)}",
    )
    for key in sorted(pack.values):
        value = pack[key]
        rows.add_row(key, value if isinstance(value, str) else json.dumps(value), _(pack.source(key)))
    console().print(rows)
