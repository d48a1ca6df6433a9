"""`tablectl config`: a table's configuration, in its TOML file or on the table itself."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click
import tomlkit

from dragoneye.config import DICE_PATH, dice_set_of
from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack
from dragoneye.text import digest, show
from host_tools import configuration, table_file, wiring
from host_tools.board_data import boards
from host_tools.cli.output import console, json_option, print_json, table
from host_tools.configuration import BOARD_FILE, CONFIG_FILE, ConfigError, Problem
from host_tools.diceset import DiceSet
from host_tools.i18n import _, language
from host_tools.link import LinkError

if TYPE_CHECKING:
    from host_tools.board_files import BoardFiles

Function = TypeVar("Function", bound=Callable[..., Any])
DEFAULT = Path("table.toml")


class Place(Protocol):
    """Where a configuration is kept."""

    where: str
    folder: Path
    held: Pack | None

    def load(self) -> str:
        """Its text as TOML."""

    def store(self, text: str) -> bool:
        """Put it in place of what is there, in one step; whether a table runs with it now."""


class FilePlace:
    """A TOML file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.where = str(path)
        self.folder = path.parent
        self.held: Pack | None = None

    def load(self) -> str:
        return table_file.read(self._path)

    def store(self, text: str) -> bool:
        table_file.write(self._path, text)
        return False


class PortPlace:
    """A table on a port: stopped to be read and written at MicroPython's prompt, started again with `stack`'s end."""

    def __init__(self, port: str, stack: contextlib.ExitStack) -> None:
        self.where = port
        self.folder = Path()
        self.held: Pack | None = None
        self._stack = stack
        self._board: BoardFiles | None = None

    def _open(self) -> BoardFiles:
        if self._board is None:
            from host_tools.board_files import BoardFiles

            self._board = self._stack.enter_context(BoardFiles(self.where))
        return self._board

    def load(self) -> str:
        found = [(name, self._open().read(name)) for name in (BOARD_FILE, CONFIG_FILE)]
        files = {name: content for name, content in found if content is not None}
        data, self.held = configuration.document_of(files, self.where)
        return table_file.text_of(data)

    def store(self, text: str) -> bool:
        data = table_file.parse(text, self.where).unwrap()
        files = _device_files(data, self.where, self.folder, self.held)
        board = self._open()
        board.write(files)
        if _registered_over(board.read(DICE_PATH.lstrip("/")), files[CONFIG_FILE]):
            words = _("{port}: the dice set that was registered on the table stays in use, not the file's dice")
            click.echo(words.format(port=self.where), err=True)
        try:
            told, key_is_on = board.start()
        except LinkError as error:
            words = _("{port}: written, but the table has not started with it: {why}")
            raise BadInput(words.format(port=self.where, why=error)) from None
        if key_is_on:
            words = _("{port}: written; turn the service key off and press reset, and the table runs with it")
            click.echo(words.format(port=self.where), err=True)
            return False
        if told is None:
            words = _("{port}: written; no table answers there yet; its firmware: tablectl flash --port {port}")
            click.echo(words.format(port=self.where), err=True)
            return False
        theirs = str(told.get("config_hash"))
        if theirs != (digest(files[CONFIG_FILE]) if "dice" in data else ""):
            # A table that has a fault with its configuration tells no hash.
            words = _("{port}: the table runs with the configuration {theirs}, not with {ours} that was written")
            raise BadInput(words.format(port=self.where, theirs=show(theirs), ours=digest(files[CONFIG_FILE])))
        return True


def _registered_over(dice_file: bytes | None, config_file: bytes) -> bool:
    """Whether a dice set that a technician has registered goes before this configuration's dice (dragoneye.config)."""
    try:
        return dice_file is not None and json.loads(dice_file)["over"] == dice_set_of(json.loads(config_file))["hash"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _device_files(data: dict[str, Any], where: str, folder: Path, held: Pack | None = None) -> dict[str, bytes]:
    config, pack = configuration.check(data, where, folder, held)
    for hint in configuration.hints(data, pack, where):
        click.echo(hint, err=True)
    return configuration.device_files(config, pack)


def file_option(function: Function) -> Function:
    """Add `--file` as the argument `file`, a path or None."""
    return click.option(
        "--file",
        "file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="The table's TOML file (default: table.toml here).",
    )(function)


def place_options(function: Function) -> Function:
    """Add `--file` and, in its place, `--port`, as place_of takes them."""
    return file_option(
        click.option("--port", help="The port of a table, in place of a file; see `tablectl ports`.")(function)
    )


@contextlib.contextmanager
def place_of(file: Path | None, port: str | None) -> Iterator[Place]:
    """The file or the table that the options name, while it is used."""
    if file is not None and port is not None:
        raise BadInput(_("give either --file or --port, not both"))
    with contextlib.ExitStack() as stack:
        yield PortPlace(port, stack) if port is not None else FilePlace(file or DEFAULT)


@click.group()
def config() -> None:
    """A table's configuration: one TOML file a table, checked before it is written to the table.

    The file says board, pins, dice, rule pack and options, shake profile, times, and languages.
    """


@config.command("new")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default=DEFAULT)
@click.option("--name", default="table", show_default=True, help="Name of the table.")
@click.option("--board", type=click.Choice(boards()), default="rpi_pico", show_default=True, help="The controller.")
@click.option(
    "--pack", default="nj", show_default=True, help="Rule pack: nj, pr, ca, or the path of your own .json file."
)
@json_option
def new_file(file: Path, name: str, board: str, pack: str, as_json: bool) -> None:
    """Write a new FILE with every entry that there is and what it means."""
    if file.exists():
        raise BadInput(_("{path}: there is a file already; name another").format(path=file))
    data = {"format": configuration.FORMAT, "name": name, "board": board, "languages": [language()]}
    data["rules"] = {"pack": pack}
    configuration.check(data, str(file), file.parent)
    table_file.write(file, table_file.text_of(data))
    if as_json:
        print_json({"file": str(file)})
        return
    click.echo(_("{path}: written; the dice come next").format(path=file))


@config.command()
@click.argument("key", required=False)
@place_options
@json_option
def get(key: str | None, file: Path | None, port: str | None, as_json: bool) -> None:
    """The entry KEY, such as settings.settle_ms, or everything."""
    with place_of(file, port) as place:
        text = place.load()
    data = table_file.parse(text, place.where).unwrap()
    found = table_file.lookup(data, configuration.keys_of(key), place.where) if key else data
    if as_json:
        print_json(found)
    elif not key:
        click.echo(text, nl=False)
    elif isinstance(found, dict):
        click.echo(tomlkit.dumps(found), nl=False)
    else:
        click.echo(found if isinstance(found, str) else show(found))


@config.command("set")
@click.argument("key", required=False)
@click.argument("value", required=False)
@place_options
@json_option
def set_entry(key: str | None, value: str | None, file: Path | None, port: str | None, as_json: bool) -> None:
    """Set the entry KEY to VALUE; with --file and --port and no KEY, write the whole file to the table.

    VALUE is TOML, such as 500, [26, 33] or text. Nothing is changed when something new would be wrong afterwards.
    """
    if key is None:
        if file is None or port is None:
            raise click.UsageError(_("give KEY and VALUE, or --file and --port to write a whole file to the table"))
        _write_whole(file, port, as_json)
        return
    if value is None:
        raise click.UsageError(_("give a VALUE for {key}").format(key=key))
    keys = configuration.keys_of(key)
    data, problems, runs = _change(
        file, port, keys, lambda text, where: table_file.put(text, keys, table_file.value_of(value, keys), where)
    )
    now = table_file.lookup(data, keys, key)
    if as_json:
        rows = [_row(problem) for problem in problems]
        print_json({"key": key, "value": now, "problems": rows, **_runs(port, runs)})
        return
    click.echo(f"{key} = {show(now)}")
    _still_wrong(problems)


@config.command("unset")
@click.argument("key")
@place_options
@json_option
def unset_entry(key: str, file: Path | None, port: str | None, as_json: bool) -> None:
    """Take the entry KEY out, so that its default holds again.

    Nothing is changed when something new would be wrong afterwards.
    """
    keys = configuration.keys_of(key)
    _data, problems, runs = _change(file, port, keys, lambda text, where: table_file.remove(text, keys, where))
    if as_json:
        print_json({"key": key, "problems": [_row(problem) for problem in problems], **_runs(port, runs)})
        return
    click.echo(_("{key}: taken out").format(key=key))
    _still_wrong(problems)


def _runs(port: str | None, runs: bool) -> dict[str, bool]:
    """What JSON says of a table's start."""
    return {} if port is None else {"runs": runs}


def _change(
    file: Path | None, port: str | None, keys: list[int | str], change: Callable[[str, str], str]
) -> tuple[dict[str, Any], list[Problem], bool]:
    """Change the entry at `keys`: what is there afterwards, what was wrong with it before and is still, and whether a
    table runs with it.

    `change(text, where)` returns the changed text. Raises ConfigError when something new would be wrong.
    """
    with place_of(file, port) as place:
        text = place.load()
        before = configuration.problems_of(table_file.parse(text, place.where).unwrap(), place.folder, place.held)
        if keys[0] == "rules" and place.held is not None:
            # Another pack, or other options of it, begin from the pack's own values again.
            place.held = None
        text = change(text, place.where)
        data = table_file.parse(text, place.where).unwrap()
        problems = configuration.problems_of(data, place.folder, place.held)
        caused = [problem for problem in problems if problem not in before]
        if caused:
            raise ConfigError(place.where, caused)
        return data, problems, place.store(text)


def _still_wrong(problems: list[Problem]) -> None:
    for problem in problems:
        click.echo(_("still wrong: {why}").format(why=problem.why), err=True)


@config.command("dice")
@click.argument("learned", type=click.Path(dir_okay=False, path_type=Path))
@file_option
@json_option
def take_dice(learned: Path, file: Path | None, as_json: bool) -> None:
    """Put the dice set LEARNED, a file of `tablectl dice learn`, into the file."""
    dice = DiceSet.load(learned)
    place = FilePlace(file or DEFAULT)
    # Where no die is known yet the whole table stands there as a comment.
    text = place.load().replace("\n# [dice]\n", "\n[dice]\n", 1)
    entries: dict[str, Any] = {"eye": dice.eye, "serial": dice.serial, "issued": dice.issued}
    entries.update({f"die{number}": faces for number, faces in enumerate(dice.dice, 1)})
    for key, value in entries.items():
        if value:
            text = table_file.put(text, ["dice", key], value, place.where)
    problems = configuration.problems_of(table_file.parse(text, place.where).unwrap(), place.folder)
    caused = [problem for problem in problems if problem.key.partition(".")[0] == "dice"]
    if caused:
        raise ConfigError(place.where, caused)
    place.store(text)
    if as_json:
        print_json({"file": place.where, "serial": dice.serial})
        return
    click.echo(_("{path}: has the dice set {serial}").format(path=place.where, serial=dice.serial))


def _write_whole(file: Path, port: str, as_json: bool) -> None:
    source = FilePlace(file)
    data = table_file.parse(source.load(), source.where).unwrap()
    # Resolved here: the rule pack's file lies beside the TOML file, not on the table.
    checked, pack = configuration.check(data, source.where, source.folder)
    files = configuration.device_files(checked, pack)
    with place_of(None, port) as place:
        place.held = pack
        runs = place.store(tomlkit.dumps(data))
    written = digest(files[CONFIG_FILE])
    if as_json:
        print_json({"port": port, "config_hash": written, "runs": runs})
    elif not runs:
        click.echo(_("{port}: has this configuration, {hash}").format(port=port, hash=written))
    else:
        click.echo(_("{port}: the table runs with this configuration, {hash}").format(port=port, hash=written))


def _editor() -> list[str]:
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        command = shlex.split(named)
    except ValueError:
        command = []
    if not command:
        words = _("{command} in $VISUAL or $EDITOR is no command; name an editor there")
        raise BadInput(words.format(command=show(named)))
    return command


@config.command()
@place_options
@json_option
def edit(file: Path | None, port: str | None, as_json: bool) -> None:
    """Open the configuration in your editor ($VISUAL or $EDITOR); it is kept only when it is right."""
    command = _editor()
    with place_of(file, port) as place:
        text = place.load()
    held = place.held
    handle, name = tempfile.mkstemp(prefix="table-", suffix=".toml")
    os.close(handle)
    draft = Path(name)
    draft.write_text(text, encoding="utf-8", newline="\n")
    try:
        code = subprocess.run([*command, name], check=False).returncode
    except OSError as error:
        draft.unlink()
        words = _("the editor {command} does not start: {why}; name another in $EDITOR")
        raise BadInput(words.format(command=command[0], why=error.strerror)) from None
    changed = table_file.read(draft)
    if code or changed == text:
        draft.unlink()
        _told_of_edit(place.where, {"changed": False}, as_json)
        sys.exit(2 if code else 0)
    try:
        problems = configuration.problems_of(table_file.parse(changed, name).unwrap(), place.folder, held)
        if problems:
            raise ConfigError(name, problems)
        with place_of(file, port) as place:
            place.held = held
            runs = place.store(changed)
    except ConfigError:
        words = _("your changes are kept in {draft}; {where} is as it was")
        click.echo(words.format(draft=name, where=place.where), err=True)
        raise
    except BadInput:
        click.echo(_("your changes are kept in {draft}").format(draft=name), err=True)
        raise
    draft.unlink()
    _told_of_edit(place.where, {"changed": True, **_runs(port, runs)}, as_json)


def _told_of_edit(where: str, told: dict[str, bool], as_json: bool) -> None:
    if as_json:
        print_json({"where": where, **told})
        return
    words = _("{where}: changed") if told["changed"] else _("{where}: nothing was changed")
    click.echo(words.format(where=where))


def _row(problem: Problem) -> dict[str, Any]:
    return {"key": problem.key, "value": problem.value, "error": problem.why}


@config.command()
@place_options
@json_option
def validate(file: Path | None, port: str | None, as_json: bool) -> None:
    """Check a configuration and name everything that is wrong; exit code 2 then."""
    with place_of(file, port) as place:
        data = table_file.parse(place.load(), place.where).unwrap()
    problems = configuration.problems_of(data, place.folder, place.held)
    if problems and not as_json:
        raise ConfigError(place.where, problems)
    # What only shows when the whole is put together.
    pack = None if problems else configuration.check(data, place.where, place.folder, place.held)[1]
    hints = [] if pack is None else configuration.hints(data, pack, place.where)
    if as_json:
        rows = [_row(problem) for problem in problems]
        print_json({"where": place.where, "ok": not problems, "problems": rows, "hints": hints})
        sys.exit(2 if problems else 0)
    click.echo(_("{where}: right").format(where=place.where))
    for hint in hints:
        click.echo(hint, err=True)


@config.command()
@place_options
@click.option("--with", "other", type=click.Path(dir_okay=False, path_type=Path), help="Another file to compare with.")
@json_option
def diff(file: Path | None, port: str | None, other: Path | None, as_json: bool) -> None:
    """What differs between the file and the table on --port, or the file --with; exit code 1 if anything does."""
    if (port is None) == (other is None):
        raise click.UsageError(_("give --port or --with, what the file is compared with"))
    with place_of(file, None) as first:
        old = table_file.parse(first.load(), first.where).unwrap()
    with place_of(other, port) as second:
        new = table_file.parse(second.load(), second.where).unwrap()
    found = configuration.differences(old, new)
    if as_json:
        print_json([{"key": key, "old": before, "new": after} for key, before, after in found])
    elif found:
        rows = table(_("entry"), first.where, second.where)
        for key, before, after in found:
            rows.add_row(key, *("" if value is None else show(value) for value in (before, after)))
        console().print(rows)
    else:
        click.echo(_("no difference"))
    sys.exit(1 if found else 0)


@config.command()
@file_option
@click.option(
    "--dir", "folder", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder for the two files."
)
@json_option
def export(file: Path | None, folder: Path, as_json: bool) -> None:
    """Write board.json and config.json, what a device with this configuration has in its root."""
    place = FilePlace(file or DEFAULT)
    data = table_file.parse(place.load(), place.where).unwrap()
    files = _device_files(data, place.where, place.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror}") from None
    for name, content in files.items():
        table_file.write(folder / name, content)
    hashes = {name: digest(content) for name, content in files.items()}
    if as_json:
        print_json({"dir": str(folder), "hashes": hashes})
        return
    for name, written in hashes.items():
        click.echo(f"{folder / name}  {written}")


@config.command("wiring")
@file_option
@click.option(
    "--svg", "picture", type=click.Path(dir_okay=False, path_type=Path), help="Write the wiring diagram to this file."
)
@json_option
def show_wiring(file: Path | None, picture: Path | None, as_json: bool) -> None:
    """Which part is wired to which pin of the controller of this table."""
    place = FilePlace(file or DEFAULT)
    data = table_file.parse(place.load(), place.where).unwrap()
    checked, _pack = configuration.check(data, place.where, place.folder)
    rows = wiring.rows_of(checked.board, data.get("pins"))
    if picture is not None:
        table_file.write(picture, wiring.svg(checked.board, data.get("pins")))
    if as_json:
        print_json([row._asdict() for row in rows])
        return
    shown = table(_("pin"), "GPIO", _("role"), _("function"), _("part"), _("terminal"))
    for row in rows:
        shown.add_row(str(row.pin), f"GP{row.gpio}", *row[2:])
    console().print(shown)


@config.command()
def schema() -> None:
    """Print the JSON schema of the file, for editors that help with it."""
    click.echo(table_file.schema_text(), nl=False)
