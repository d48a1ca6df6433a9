"""One way to answer for every command that takes a case: once from its arguments, or a batch of JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import takewhile
from typing import Any, BinaryIO

import click

from host_tools.cli.output import LINE_MAX, print_json, run_batch
from host_tools.i18n import _


class CaseCommand(click.Command):
    """A command that says which option of several values was given too few or too many of them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        takes_words = any(isinstance(one, click.Argument) for one in self.params)
        several = {
            flag: option
            for option in self.params
            if isinstance(option, click.Option) and option.nargs > 1
            for flag in option.opts
        }
        for place, word in enumerate(args):
            if word in several:
                values = list(takewhile(lambda value: not value.startswith("--"), args[place + 1 :]))
                needed = several[word].nargs
                if len(values) < needed or (len(values) > needed and not takes_words):
                    raise click.UsageError(
                        _("{option} has {count} values; needed: {needed}").format(
                            option=word, count=len(values), needed=needed
                        ),
                        ctx,
                    )
        return super().parse_args(ctx, args)


def answer(
    case: Any,
    batch: BinaryIO | None,
    handle: Callable[[Any], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
    as_json: bool,
) -> None:
    """Handle the batch, or the one case (None or no words when the command line gave none), and print what comes of it.

    A batch always prints JSON lines and ends with exit code 2 if a line could not be done.
    """
    given = case is not None and case != ()
    if batch is not None:
        if given:
            raise click.UsageError(_("give either a case or --batch, not both"))
        sys.exit(run_batch(iter(lambda: batch.readline(LINE_MAX + 1), b""), handle))
    if not given:
        raise click.UsageError(_("give a case, or --batch FILE (- is stdin); see --help"))
    result = handle(case)
    if as_json:
        print_json(result)
    else:
        show(result)
