"""Imports go only downward: what each folder may import, as a table."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Where our own packages lie.
PACKAGES = {
    "dragoneye": "firmware/dragoneye",
    "main": "firmware/main.py",
    "boot": "firmware/boot.py",
    "boards": "boards",
    "host_tools": "host_tools",
}
OURS = (*PACKAGES, "tests")

NO_IO = "!serial !sqlalchemy !click !rich !mpremote !asyncio !socket !subprocess !threading !sqlite3"
NO_CLI = "!host_tools.cli !host_tools.web !click !rich"

# A module is held to the row with the longest name that it starts with. A row names the modules that may be imported,
# with all below them; * is everything that is not ours; ! forbids, and the longest name that fits decides.
# Lower layers come first.
ALLOWED = {
    "dragoneye.errors": "",
    "dragoneye.text": "dragoneye.errors json sys binascii hashlib",
    "dragoneye.rules": "dragoneye.errors dragoneye.text dragoneye.rules json",
    "dragoneye": "dragoneye !dragoneye.drivers !dragoneye.app * !machine !asyncio",
    "dragoneye.drivers": "dragoneye !dragoneye.app *",
    "dragoneye.app": "dragoneye * !machine",
    "main": "dragoneye *",
    "boot": "dragoneye.errors *",
    "boards": "boards dragoneye *",
    "host_tools.bounded": "* " + NO_IO,
    "host_tools.rules": "host_tools.rules host_tools.bounded host_tools.i18n dragoneye.errors dragoneye.text "
    "dragoneye.rules * " + NO_IO,
    "host_tools.i18n": "* " + NO_IO,
    "host_tools.drift": "* " + NO_IO,
    "host_tools.statistics": "host_tools.drift * " + NO_IO,
    "host_tools.keys": "host_tools.bounded host_tools.private host_tools.i18n dragoneye.errors dragoneye.keys "
    "dragoneye.protocol * " + NO_IO,
    "host_tools.link": "host_tools.link host_tools.codes host_tools.i18n host_tools.keys dragoneye.errors "
    "dragoneye.text dragoneye.keys dragoneye.protocol * !sqlalchemy " + NO_CLI,
    "host_tools.device": "host_tools dragoneye !dragoneye.drivers !dragoneye.app * !host_tools.store !sqlalchemy "
    + NO_CLI,
    "host_tools.migrations": "host_tools.migrations * !serial " + NO_CLI,
    "host_tools.store": "host_tools dragoneye !dragoneye.drivers !dragoneye.app * !serial " + NO_CLI,
    "host_tools.configuration": "host_tools.board_data host_tools.i18n host_tools.pins dragoneye !dragoneye.drivers "
    "!dragoneye.app * " + NO_IO,
    "host_tools.pins": "host_tools.board_data host_tools.i18n * " + NO_IO,
    "host_tools.table_file": "host_tools.board_data host_tools.configuration host_tools.i18n dragoneye.errors "
    "dragoneye.text * " + NO_IO,
    # What is made of the record: numbers and files, told by the commands.
    **dict.fromkeys(
        ("host_tools.audit", "host_tools.export", "host_tools.fairness", "host_tools.report"),
        "host_tools dragoneye !dragoneye.drivers !dragoneye.app * !serial !sqlalchemy !host_tools.device " + NO_CLI,
    ),
    "host_tools.web": "host_tools dragoneye !dragoneye.drivers !dragoneye.app * !serial !sqlalchemy !host_tools.cli "
    "!click !rich",
    "host_tools": "host_tools dragoneye boards !dragoneye.drivers !dragoneye.app *",
}


def starts(module: str, name: str) -> bool:
    return module == name or module.startswith(name + ".")


def sources(root: Path) -> Iterator[tuple[str, Path]]:
    """Every module of ours with its file."""
    for package, place in PACKAGES.items():
        base = root / place
        for path in sorted(base.rglob("*.py")) if base.is_dir() else [base] if base.exists() else []:
            parts = path.relative_to(base).with_suffix("").parts if base.is_dir() else ()
            yield ".".join([package, *(part for part in parts if part != "__init__")]), path


def imports(module: str, path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that the file imports, wherever in it."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            whole = ".".join([*above, *([node.module] if node.module else [])])
            # `from host_tools import cli` imports a module, `from host_tools.i18n import _` a name: both are told.
            yield from ((node.lineno, f"{whole}.{alias.name}") for alias in node.names)


def permitted(imported: str, row: str) -> bool:
    ours = any(starts(imported, name) for name in OURS)
    words = {word.lstrip("!"): not word.startswith("!") for word in row.split()}
    fitting = [name for name in words if starts(imported, name)]
    return words[max(fitting, key=len)] if fitting else words.get("*", False) and not ours


def violations(root: Path) -> list[str]:
    found = []
    for module, path in sources(root):
        row = max((name for name in ALLOWED if starts(module, name)), key=len)
        found += [
            f"{path.relative_to(root)}:{line}: {module} may not import {imported}"
            for line, imported in imports(module, path)
            if imported.split(".")[0] != "__future__" and not permitted(imported, ALLOWED[row])
        ]
    return found


def test_imports_go_only_downward() -> None:
    assert violations(ROOT) == []


def test_the_files_are_found() -> None:
    found = [module for module, _ in sources(ROOT)]
    assert {"dragoneye.rules.wagers", "dragoneye.errors", "host_tools.cli.wagers", "host_tools.rules"} <= set(found)


@pytest.mark.parametrize(
    ("place", "line", "said"),
    [
        ("firmware/dragoneye/rules/wagers.py", "import machine", "machine"),
        ("firmware/dragoneye/rules/wagers.py", "import time", "time"),
        ("firmware/dragoneye/rules/wagers.py", "from dragoneye.round import Round", "dragoneye.round.Round"),
        ("firmware/dragoneye/rules/wagers.py", "from ..round import Round", "dragoneye.round.Round"),
        ("firmware/dragoneye/rules/__init__.py", "from .. import app", "dragoneye.app"),
        ("firmware/dragoneye/errors.py", "import json", "json"),
        ("firmware/dragoneye/round.py", "import asyncio", "asyncio"),
        ("firmware/dragoneye/round.py", "from machine import Pin", "machine.Pin"),
        ("firmware/dragoneye/round.py", "def late():\n    from dragoneye import drivers", "dragoneye.drivers"),
        ("firmware/dragoneye/journal.py", "import host_tools", "host_tools"),
        ("firmware/dragoneye/app.py", "import machine", "machine"),
        ("firmware/dragoneye/drivers/motor.py", "from dragoneye.app import run", "dragoneye.app.run"),
        ("boards/virtual/table.py", "from host_tools.link import Link", "host_tools.link.Link"),
        ("host_tools/rules/tiles.py", "import serial.tools", "serial.tools"),
        ("host_tools/rules/tiles.py", "from sqlalchemy import orm", "sqlalchemy.orm"),
        ("host_tools/rules/tiles.py", "import click", "click"),
        ("host_tools/link/serial.py", "from host_tools import store", "host_tools.store"),
        ("host_tools/link/serial.py", "from host_tools.cli import output", "host_tools.cli.output"),
        ("host_tools/link.py", "from host_tools.device import Device", "host_tools.device.Device"),
        ("host_tools/device.py", "from host_tools.store import Store", "host_tools.store.Store"),
        ("host_tools/device.py", "from .cli import output", "host_tools.cli.output"),
        ("host_tools/store.py", "import click", "click"),
        ("host_tools/web/app.py", "from host_tools.cli import call", "host_tools.cli.call"),
        ("host_tools/cli/play.py", "from dragoneye.drivers import motor", "dragoneye.drivers.motor"),
        ("host_tools/cli/play.py", "import tests.unit", "tests.unit"),
    ],
)
def test_an_import_that_goes_up_is_found(tmp_path: Path, place: str, line: str, said: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    assert [found.partition(" may not import ")[2] for found in violations(tmp_path)] == [said]


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("firmware/dragoneye/rules/wagers.py", "from __future__ import annotations\nfrom dragoneye.rules import packs"),
        ("firmware/dragoneye/round.py", "from . import journal\nfrom .rules.streak import Streak\nimport binascii"),
        ("firmware/dragoneye/drivers/motor.py", "import machine, asyncio\nfrom dragoneye.errors import BadInput"),
        ("firmware/dragoneye/app.py", "import asyncio\nfrom dragoneye.drivers import motor"),
        ("firmware/boot.py", "import machine"),
        ("host_tools/rules/tiles.py", "import numpy\nfrom .cards import Card\nfrom dragoneye.rules import wagers"),
        ("host_tools/link/serial.py", "import serial\nfrom dragoneye.protocol import frame\nfrom . import line"),
        ("host_tools/store.py", "import sqlalchemy\nfrom host_tools.device import Device"),
        ("host_tools/cli/play.py", "import click\nfrom host_tools import device, link, store, rules"),
    ],
)
def test_an_import_that_goes_down_is_let_be(tmp_path: Path, place: str, line: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    assert violations(tmp_path) == []
