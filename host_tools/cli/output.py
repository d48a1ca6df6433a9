"""How every command prints: one JSON object for machines, Rich on a terminal, plain text in a pipe; batches by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click
from rich import box
from rich.console import Console
from rich.table import Table

from dragoneye.errors import BadInput
from dragoneye.text import show
from host_tools.i18n import _, controller

# A case has some hundred bytes; a line of a device may have no end.
LINE_MAX = 1_000_000

Function = TypeVar("Function", bound=Callable[..., Any])


def json_option(function: Function) -> Function:
    """Add `--json` as the argument `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")(function)


def batch_option(function: Function) -> Function:
    """Add `--batch FILE|-` as the argument `batch`, an open binary file or None."""
    return click.option(
        "--batch",
        type=click.File("rb"),
        help="One JSON case a line in, one result a line out; - is stdin.",
    )(function)


def console() -> Console:
    """A console for standard output; plain and wide when piped. Brackets in a text are brackets, not Rich's markup."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 160)


def table(*headings: str, title: str | None = None) -> Table:
    """An empty table: ruled on a terminal, aligned columns without rules in a pipe."""
    result = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD if sys.stdout.isatty() else None)
    for heading in headings:
        result.add_column(heading, overflow="fold")
    return result


def print_json(data: Any) -> None:
    """Print one JSON object on one line, in ASCII: fit for any terminal and pipe."""
    click.echo(json.dumps(data))


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(_("{name} is there twice").format(name=show(twice)))
    return result


def parse_json(text: str, what: str = "") -> Any:
    """Parse JSON, as BadInput when it is none; `what` names the text, if it is not a line of a batch."""
    what = what or _("this line")
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except BadInput:
        raise
    except json.JSONDecodeError as error:
        said = _("{what} is not JSON: see column {column}").format(what=what, column=error.pos + 1)
    except RecursionError:
        said = _("{what} is not JSON: nested too deep").format(what=what)
    except ValueError:
        # Python reads no more digits than sys.get_int_max_str_digits().
        said = _("{what} is not JSON: a number is too long").format(what=what)
    raise BadInput(said)


def run_batch(lines: Iterable[bytes], handle: Callable[[Any], dict[str, Any]]) -> int:
    """Print `handle(case)` for each JSON line, in order.

    A line that cannot be done, an empty one as well, prints `{"error", "line"}` in its place, so the n-th answer is
    that of the n-th line always. Returns the exit code: 2 if there was an error.
    """
    code = 0
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_MAX:
            words = _("this line is longer than {most} bytes; it and what follows was not done")
            print_json({"error": words.format(most=LINE_MAX), "line": number})
            return 2
        try:
            # Some editors begin a file with a byte order mark.
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip()
            if not text:
                raise BadInput(_("this line is empty; needed: one JSON case"))
            result = handle(parse_json(text))
        except UnicodeDecodeError:
            result = {"error": _("this line is not UTF-8 text"), "line": number}
        except RecursionError:
            result = {"error": _("this line is nested too deep"), "line": number}
        except BadInput as error:
            result = {"error": controller(str(error)), "line": number}
        if "error" in result:
            code = 2
        print_json(result)
    return code
