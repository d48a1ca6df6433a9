"""`tablectl verify`: whether a table runs this program's firmware, file by file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dragoneye.keys import NAMES, PATH
from host_tools import configuration, flash, flash_verify, keys, table_file
from host_tools.cli.output import console, json_option, print_json, table
from host_tools.flash_build import make
from host_tools.i18n import _
from host_tools.link import Link, Message, SerialTransport


@click.command()
@click.option("--port", help="The table's port or unique id (default: the one board that is plugged in).")
@click.option(
    "--file",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The table's TOML file, to compare its configuration as well.",
)
@json_option
def verify(port: str | None, file: Path | None, as_json: bool) -> None:
    """Challenge a table to hash every file on its flash, and compare with this program's firmware.

    Between rounds only. What differs is named: changed, missing, added. The other slot's files (spare) run only when
    the present firmware is damaged. Exit code 1 when something differs.
    """
    place = flash.find_port(port)
    expected_configuration = _configuration(file)
    link = Link(SerialTransport(place))
    try:
        told = link.hello(0, 0)
        survey = flash_verify.ask(link)
        expected_configuration.update(_keys(told))
        build = make(flash.march_of(survey.mpy))
        wanted = flash_verify.expected(build, survey.root, expected_configuration)
        if flash_verify.is_expected(survey, wanted):
            verdicts = [(path, flash_verify.SAME) for path in sorted(wanted)]
        else:
            flash_verify.fetch_rows(link, survey)
            verdicts = flash_verify.compare(survey, build, expected_configuration)
    finally:
        link.close()
    wrong = [path for path, verdict in verdicts if verdict in flash_verify.WRONG]
    if as_json:
        _print_json(told, survey, build.name, verdicts, not wrong)
    else:
        own = {path.lstrip("/") for path in wrong} <= set(expected_configuration)
        _print(told, build.name, verdicts, _said(wrong, own), file)
    sys.exit(1 if wrong else 0)


def _keys(told: Message) -> dict[str, bytes]:
    """The table's file of keys, where this computer holds all of them."""
    held = keys.Keys().find(str(told.get("uid")), str(told.get("key_id")))
    return {PATH.lstrip("/"): keys.file_of(held.raw)} if held and held.names == NAMES else {}


def _configuration(file: Path | None) -> dict[str, bytes]:
    if file is None:
        return {}
    data = table_file.parse(table_file.read(file), str(file)).unwrap()
    config, pack = configuration.check(data, str(file), file.parent)
    return configuration.device_files(config, pack)


def _print_json(
    told: Message, survey: flash_verify.Survey, build: str, verdicts: list[tuple[str, str]], same: bool
) -> None:
    print_json(
        {
            "table": told.get("uid"),
            "build": build,
            "runs": told.get("build"),
            "root": survey.root,
            "same": same,
            "keyed": not told.get("unprovisioned", True),
            "config_hash": told.get("config_hash"),
            "files": [{"path": path, "is": verdict} for path, verdict in verdicts],
        }
    )


def _said(wrong: list[str], own: bool) -> str:
    """What it comes to; `own` where at most the table's own files, configuration and keys, are wrong."""
    if not wrong:
        return _("table {uid}: runs this program's firmware {build}; {same} files are the same")
    if not own:
        return _("table {uid}: its files are not this program's, {build}; it says {theirs}; {same} files are the same")
    if PATH in wrong:
        return _("table {uid}: runs this program's firmware {build}, but not with the keys that this computer holds")
    return _("table {uid}: runs this program's firmware {build}, but not with the configuration in {file}")


def _print(told: Message, build: str, verdicts: list[tuple[str, str]], said: str, file: Path | None) -> None:
    words = {
        flash_verify.CHANGED: _("changed"),
        flash_verify.MISSING: _("missing"),
        flash_verify.ADDED: _("added; it is not of this firmware"),
        flash_verify.SPARE: _("of the other slot, another build; not compared"),
        flash_verify.UNKNOWN: _("not compared"),
    }
    out = console()
    rows = [(path, words[verdict]) for path, verdict in verdicts if verdict != flash_verify.SAME]
    if rows:
        listed = table(_("file"), _("verdict"))
        for row in rows:
            listed.add_row(*row)
        out.print(listed)
    same = sum(verdict == flash_verify.SAME for _path, verdict in verdicts)
    out.print(said.format(uid=told.get("uid"), build=build, theirs=told.get("build"), same=same, file=file))
    if told.get("unprovisioned", True):
        out.print(_("the table has no keys: anybody who has its files could have given this answer"))
