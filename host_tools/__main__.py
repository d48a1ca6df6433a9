"""`tablectl` and `python -m host_tools`: the same."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import threading
from types import FrameType

import click

from dragoneye import __version__
from dragoneye.errors import BadInput
from host_tools import i18n
from host_tools.cli.helptext import in_language
from host_tools.cli.output import print_json
from host_tools.rules.check import shown

# command -> module of host_tools.cli with a click command of that name; loaded when it is used, so that
# `tablectl seats` does not wait for the database.
COMMANDS = {
    "audit": "record",
    "backup": "record",
    "bank": "bank",
    "cards": "cards",
    "config": "config",
    "correct": "record",
    "odds": "odds",
    "demo": "demo",
    "dice": "dice",
    "doctor": "doctor",
    "export": "record",
    "fairness": "fairness",
    "flash": "flash",
    "keys": "keys",
    "maintenance": "maintenance",
    "monitor": "tables",
    "packs": "packs",
    "play": "tables",
    "ports": "tables",
    "record": "record",
    "report": "report",
    "rounds": "record",
    "seats": "seats",
    "selftest": "service",
    "serve": "serve",
    "sensors": "service",
    "show": "record",
    "tiles": "tiles",
    "verify": "verify",
    "virtual": "tables",
    "wagers": "wagers",
}


class Commands(click.Group):
    """The commands of COMMANDS, each imported at its first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module("host_tools.cli." + COMMANDS[cmd_name])
        command: click.Command = getattr(module, cmd_name)
        return in_language(command, ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        in_language(self, ctx.parent)
        super().format_help(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(
                i18n._("there is no command {name}; there are {names}").format(
                    name=shown(args[0]), names=", ".join(sorted(COMMANDS))
                ),
                ctx,
            )
        return super().resolve_command(ctx, args)


def _language_of_line(words: list[str]) -> str:
    """The language that `--lang` names anywhere on the line, else the environment's."""
    for place, word in enumerate(words):
        if word == "--":
            break
        named = word[len("--lang=") :] if word.startswith("--lang=") else ""
        if word == "--lang" and place + 1 < len(words):
            named = words[place + 1]
        if named in i18n.LANGUAGES:
            return named
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name, "")
        if value:
            return value[:2] if value[:2] in i18n.LANGUAGES else "en"
    return "en"


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tablectl")
@click.option(
    "--lang",
    type=click.Choice(i18n.LANGUAGES),
    is_eager=True,
    expose_value=False,
    callback=lambda _ctx, _param, lang: i18n.set_language(lang) if lang else None,
    help="Language of what is printed (default: LANG, or en).",
)
def cli() -> None:
    """The dragon's eye table: play rounds, keep the record, deal seats, score hands."""


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _end_in_order() -> None:
    """A SIGTERM, or a terminal that closes, ends a command in order, so that a table leaves test mode."""
    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGTERM", "SIGHUP"):
        # Windows has no SIGHUP; who was told to ignore one (nohup) still does.
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


def main() -> None:
    """Run the command line; bad input ends with one clear line and exit code 2."""
    _end_in_order()
    i18n.set_language(_language_of_line(sys.argv[1:]))
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a letter shows a question mark.
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            cli.main(prog_name="tablectl", standalone_mode=False)
        finally:
            sys.stdout.flush()
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.Abort:
        sys.exit(130)
    except (BadInput, click.ClickException) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else i18n.controller(str(error))
        message = i18n.system(message)
        if "--json" in sys.argv:
            print_json({"error": message})
        else:
            for line in message.splitlines():
                click.echo(f"tablectl: {i18n._('error')}: {line}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody left to tell.
        _drop_output()
        sys.exit(1)
    except OSError as error:
        _drop_output()
        click.echo(f"tablectl: {i18n._('error')}: {i18n.system(str(error))}", err=True)
        sys.exit(2)


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    main()
