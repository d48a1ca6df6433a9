"""Collects every text that a person reads, merges it into the .po catalogues and compiles the .mo files.

    python -m host_tools.locale

Texts come from `_("...")` in the sources, the help of every command, the data of house ways and rule packs, and
the few words that click prints itself. New texts are left empty in the .po file, for a person to translate; then run
this again.
"""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from dragoneye.rules.packs import NAMES, WAGERS, load
from host_tools import codes
from host_tools.board_data import board_data, boards, chip_data, header_data
from host_tools.configuration import json_schema
from host_tools.i18n import LANGUAGES, SYSTEM
from host_tools.store import STATUSES

FOLDER = Path(__file__).parent
SOURCES = FOLDER.parent
DOMAIN = "tablectl"

# What click prints round our own help and errors.
CLICK: tuple[str | tuple[str, str], ...] = (
    "Usage:",
    "Options",
    "Commands",
    "Positional arguments",
    "default: {default}",
    "required",
    "file",
    "Show the version and exit.",
    "Show this message and exit.",
    "Try '{command} {option}' for help.",
    "Missing command.",
    "Missing option",
    "Missing argument",
    "Missing parameter",
    "No such command {name!r}.",
    "No such option {name!r}.",
    "Could not open file {filename!r}: {message}",
    "Invalid value for {param_hint}: {message}",
    "Invalid value: {message}",
    "Option {name!r} does not take a value.",
    "{value!r} is not a valid {number_type}.",
    "{value} is not in the range {range}.",
    "{name} {filename!r} is not readable.",
    "{name} {filename!r} is not writable.",
    "{name} {filename!r} is a directory.",
    ("Did you mean {possibility}?", "(Did you mean one of: {possibilities}?)"),
    ("{value!r} is not {choice}.", "{value!r} is not one of {choices}."),
    ("Got unexpected extra argument ({args})", "Got unexpected extra arguments ({args})"),
    ("Option {name!r} requires an argument.", "Option {name!r} requires {nargs} arguments."),
)


# The functions of host_tools.i18n, and which of their arguments are texts or the context of one.
KEYWORDS: dict[str, Any] = {"_": None, "pgettext": ((1, "c"), 2), "ngettext": (1, 2)}

# What the data of a record is named where a person reads it; names of versions and the like stay as they are.
RECORD_FIELDS = (
    "bets",
    "by",
    "cause",
    "dice",
    "event",
    "eye",
    "found",
    "hash",
    "issued",
    "liability",
    "manual",
    "missing",
    "note",
    "open",
    "over",
    "position",
    "reason",
    "round",
    "serial",
    "shaker",
    "shakes",
    "streak",
    "times",
    "wagers",
    "what",
    "which",
    "why",
)

# What a supervisor corrects of a round, and what a record `door` tells of.
CORRECTIONS = ("dice", "bets")
DOORS = ("lid", "tamper", "service", "service at start")

# A text with words of its own: not a code, and not only places to fill in.
WORDS = re.compile("^(?!E_).*[a-z]{3}")

# What the controller puts into its messages.
CONTROLLER = (
    "a whole number from %d to %d",
    "a whole number from %d to %d, or null for none",
    "one of %s",
    "%d to %d characters without control characters",
    "three values from 1 to 6",
    "whole cents from 0 to %d by wager",
    "null, or a streak's count, parts (position and cents) and gone (positions)",
    "three whole numbers from 1 to 100000, for one, two and three triples in a row",
    "a list of different wagers out of %s",
    "none (tiles only)",
    "true or false",
    # Details of faults.
    "%d mA while off",
    "foreign tag %s",
    "tamper contact open",
    "the tamper contact is open",
    "the motor still draws current",
    # Why a streak changed or ended, and which dice came.
    "bonus lowered",
    "bonus taken off",
    "player left",
    "table closed",
    "dice changed",
    "shaker changed",
    "dice changed, streak kept",
    "shaker changed, streak kept",
    # What a report says of these where none ran.
    "dice changed, no streak ran",
    "shaker changed, no streak ran",
    "dice set %s",
    # Why a self-test has no report, or a part of it was not run.
    "none was started",
    "test mode was left",
    "a fault was latched: %s",
    "not run: a fault is latched",
    "not run: the lid is open",
    "stopped: the lid was opened",
    "not run: the supply is low",
    "not run: a reader is dead",
)


def _texts_of(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    if command.help:
        yield cleandoc(command.help), name
    for parameter in command.params:
        text = getattr(parameter, "help", None)
        if text:
            yield text, name
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from _texts_of(found, f"{name}.{child}")


def _house_ways() -> Iterator[tuple[str, str]]:
    for path in sorted((SOURCES / "rules" / "data" / "house_ways").glob("*.json")):
        way = json.loads(path.read_text(encoding="utf-8"))
        for text in (way["title"], way["source"], way.get("ends", ""), *(rule["text"] for rule in way["rules"])):
            if text:
                yield text, path.name


def _ranking_texts() -> Iterator[tuple[str, str]]:
    path = SOURCES / "rules" / "data" / "ranking_texts.json"
    for text in json.loads(path.read_text(encoding="utf-8")).values():
        yield text["title"], path.name


def _packs() -> Iterator[tuple[str, str]]:
    for name in NAMES:
        pack = load(name)
        yield pack.title, f"{name}.json"
        for key in sorted(pack.values):
            yield pack.source(key), f"{name}.json"


def _controller() -> Iterator[tuple[str, str]]:
    """What the controller says: the words of its tables, and the messages of the errors that it raises."""
    faults = {code: row[0] for code, row in codes.FAULTS.items()}
    for words in (codes.STATES, codes.ERRORS, codes.VOIDS, faults):
        for text in words.values():
            yield text, "host_tools/codes.py"
    for text in CONTROLLER:
        yield text, "firmware/dragoneye"
    firmware = SOURCES.parent / "firmware"
    for path in sorted(firmware.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("BadInput", "Problem")
            ):
                said = node.args[-1]
                if isinstance(said, ast.BinOp):
                    said = said.left
                if isinstance(said, ast.Constant) and isinstance(said.value, str) and re.search(WORDS, said.value):
                    yield said.value, path.relative_to(firmware.parent).as_posix()


def _descriptions(node: Any) -> Iterator[str]:
    """Every description in a JSON schema."""
    if isinstance(node, dict):
        if isinstance(node.get("description"), str):
            yield node["description"]
        for below in node.values():
            yield from _descriptions(below)


def _table_data() -> Iterator[tuple[str, str]]:
    """What the words about a table's configuration take from the schema and from the boards' data."""
    for text in _descriptions(json_schema()):
        yield text, "host_tools/configuration.py"
    for board in boards():
        for text in header_data(board)["internal"].values():
            yield text, "boards"
        note = chip_data(board_data(board)["chip"])["pull_note"]
        if note:
            yield note, "boards"


def template() -> Catalog:
    """Every text that a person reads, with where it is from.

    >>> "Supreme pair (2-4, 1-2)" in template()
    True
    """
    from host_tools.__main__ import cli

    catalogue = Catalog(domain=DOMAIN, project="dragoneye-table", charset="utf-8")
    for file, _line, message, _comments, context in extract_from_dir(SOURCES, keywords=KEYWORDS):
        catalogue.add(message, locations=[(file, 0)], context=context)
    for text, where in (
        *_texts_of(cli, "tablectl"),
        *_house_ways(),
        *_ranking_texts(),
        *_packs(),
        *_controller(),
        *_table_data(),
    ):
        catalogue.add(text, locations=[(where, 0)])
    for words in CLICK:
        catalogue.add(words, locations=[("click", 0)])
    for text in SYSTEM:
        catalogue.add(text, locations=[("system", 0)])
    for text in (*STATUSES, *CORRECTIONS):
        catalogue.add(text, locations=[("host_tools/store.py", 0)], context="round")
    for text in (*codes.EVENTS, *RECORD_FIELDS):
        catalogue.add(text, locations=[("host_tools/codes.py", 0)], context="record")
    for text in DOORS:
        catalogue.add(text, locations=[("host_tools/report.py", 0)], context="door")
    for text in WAGERS:
        catalogue.add(text, locations=[("wagers", 0)])
    return catalogue


def forms(message: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    """The forms of a message or of its translation: one or, where it has a plural, two; an empty one if there is none.

    >>> forms("a"), forms(("a", "b")), forms(None)
    (('a',), ('a', 'b'), ('',))
    """
    if isinstance(message, str):
        return (message,)
    return tuple(message) if message else ("",)


def path_of(language: str, suffix: str) -> Path:
    """The catalogue file of a language; `suffix` is "po" or "mo"."""
    return FOLDER / language / "LC_MESSAGES" / f"{DOMAIN}.{suffix}"


def read(language: str) -> Catalog:
    """The catalogue of a language as it is in its .po file.

    >>> read("es").locale_identifier
    'es'
    """
    with path_of(language, "po").open("rb") as file:
        return read_po(file, locale=language, domain=DOMAIN)


def compiled(catalogue: Catalog) -> bytes:
    """A catalogue as the bytes of a .mo file."""
    buffer = io.BytesIO()
    write_mo(buffer, catalogue)
    return buffer.getvalue()


def update(language: str) -> int:
    """Bring the .po and .mo files of a language up to date; returns how many texts wait for a translation."""
    current = template()
    catalogue = read(language) if path_of(language, "po").exists() else Catalog(locale=language, domain=DOMAIN)
    catalogue.update(current, no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    catalogue.header_comment = f"# What tablectl prints, in {language}."
    catalogue.fuzzy = False
    catalogue.project, catalogue.version = DOMAIN, "1"
    catalogue.last_translator = catalogue.language_team = catalogue.msgid_bugs_address = ""
    # The time of writing would make every file differ from the last.
    catalogue.creation_date = catalogue.revision_date = datetime(2000, 1, 1, tzinfo=timezone.utc)
    path_of(language, "po").parent.mkdir(parents=True, exist_ok=True)
    with path_of(language, "po").open("wb") as file:
        write_po(file, catalogue, width=100, sort_output=True, omit_header=False, include_lineno=False)
    path_of(language, "mo").write_bytes(compiled(catalogue))
    return sum(1 for message in catalogue if message.id and "" in forms(message.string))


if __name__ == "__main__":
    for code in LANGUAGES:
        if code != "en":
            click.echo(f"{code}: {update(code)} texts without a translation")
