"""One way to answer for every command that takes a case: once from its arguments, or a batch of JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import click

from host_tools.cli.output import print_json, run_batch
from host_tools.i18n import _


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
        sys.exit(run_batch(batch, handle))
    if not given:
        raise click.UsageError(_("give a case, or --batch FILE (- is stdin); see --help"))
    result = handle(case)
    if as_json:
        print_json(result)
    else:
        show(result)
