"""The help of the commands in the chosen language."""

from __future__ import annotations

from inspect import cleandoc

import click

from host_tools.i18n import _


def in_language(command: click.Command) -> click.Command:
    """`command` with its help, its options' and its subcommands' help in the language that is chosen now."""
    command.help = _translated(command, command.help)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            parameter.help = _translated(parameter, parameter.help)
    if type(command) is click.Group:
        for child in command.commands.values():
            in_language(child)
    return command


def _translated(owner: click.Command | click.Option, text: str | None) -> str | None:
    """The translation of the English text that `owner` started with."""
    original: str | None = getattr(owner, "_english_help", text)
    owner._english_help = original  # type: ignore[union-attr]
    return _(cleandoc(original)) if original else original
