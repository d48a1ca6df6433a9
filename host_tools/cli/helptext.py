"""The help of the commands in the chosen language."""

from __future__ import annotations

import re
from inspect import cleandoc

import click

from host_tools.i18n import LANGUAGES, _, set_language


def in_language(command: click.Command, parent: click.Context | None) -> click.Command:
    """`command` with its help, its options' and its subcommands' help in the language that is chosen now.

    `parent` is the context of the group that it is called from, None for the first.
    """
    context = click.Context(command, parent=parent)
    command.help = _translated(command, command.help)
    if not any(parameter.name == "lang" for parameter in command.params):
        command.params.append(_lang_option())
    command.options_metavar = _("[OPTIONS]")
    if isinstance(command, click.Group):
        command.subcommand_metavar = _("COMMAND [ARGS]...")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            parameter.help = _translated(parameter, parameter.help)
        _name_values(parameter, context)
    if type(command) is click.Group:
        for child in command.commands.values():
            in_language(child, context)
    # click makes its own --help once, in the language of that moment.
    shown = command.get_help_option(context)
    if shown is not None:
        shown.help = _("Show this message and exit.")
    return command


def _name_values(parameter: click.Parameter, context: click.Context) -> None:
    """Say in the chosen language what the parameter's values are: FILE, NAME VALUE."""
    if isinstance(parameter, click.Option) and (parameter.is_flag or parameter.count):
        return
    english: str | None = getattr(parameter, "_english_metavar", None)
    if english is None:
        english = parameter.make_metavar(context)
        parameter._english_metavar = english  # type: ignore[attr-defined]
    words = {
        "CARD": _("CARD"),
        "CARDS": _("CARDS"),
        "CENTS": _("CENTS"),
        "DAYS": _("DAYS"),
        "DIRECTORY": _("DIRECTORY"),
        "FILE": _("FILE"),
        "FILENAME": _("FILE"),
        "FIVE": _("FIVE"),
        "FLOAT": _("NUMBER"),
        "FLOAT RANGE": _("NUMBER"),
        "HAND": _("HAND"),
        "HIGH": _("HIGH"),
        "INTEGER": _("INTEGER"),
        "INTEGER RANGE": _("INTEGER"),
        "KEY": _("KEY"),
        "LOW": _("LOW"),
        "NAME": _("NAME"),
        "NUMBER": _("NUMBER"),
        "POSITION": _("POSITION"),
        "TEXT": _("TEXT"),
        "THEN": _("THEN"),
        "VALUE": _("VALUE"),
    }
    parameter.metavar = re.sub("[A-Z]+( RANGE)?", lambda found: words.get(found[0], found[0]), english)


def _lang_option() -> click.Option:
    """`--lang` for a command itself, so that it may stand anywhere on the line."""

    def choose(context: click.Context, _parameter: click.Parameter, language: str | None) -> None:
        if language:
            set_language(language)
            in_language(context.command, context.parent)

    return click.Option(
        ["--lang"],
        type=click.Choice(LANGUAGES),
        is_eager=True,
        expose_value=False,
        callback=choose,
        help="Language of what is printed.",
    )


def _translated(owner: click.Command | click.Option, text: str | None) -> str | None:
    """The translation of the English text that `owner` started with."""
    original: str | None = getattr(owner, "_english_help", text)
    owner._english_help = original  # type: ignore[union-attr]
    return _(cleandoc(original)) if original else original
