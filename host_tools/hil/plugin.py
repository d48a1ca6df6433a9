"""The pytest plugin: pytest tests/table --target sim|emulator|hardware [--port P] [--rig rig.toml] [--interactive].

A test that is marked `@pytest.mark.needs("lid", "power")` runs on every target that has these; `needs()` is one that a
serial port is enough for. A test without the mark looks into a virtual table, and runs only there.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dragoneye.errors import BadInput
from host_tools.hil.capabilities import NEEDS
from host_tools.hil.rig import Rig, load
from host_tools.hil.rigged import Rigged
from host_tools.i18n import _
from host_tools.link import Message
from host_tools.provision import build_hash

SIM, EMULATOR, HARDWARE = TARGETS = ("sim", "emulator", "hardware")

TARGET: pytest.StashKey[str | None] = pytest.StashKey()
RIG: pytest.StashKey[Rigged] = pytest.StashKey()
TOLD: pytest.StashKey[Message] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("table", _("the table that is tested"))
    group.addoption(
        "--target", choices=TARGETS, help=_("where the tests of a whole table run (default: sim, and more)")
    )
    group.addoption("--port", help=_("the serial port of the table, for --target hardware"))
    group.addoption("--rig", type=Path, help=_("the rig file: what the bench has to move the table's parts"))
    group.addoption("--interactive", action="store_true", help=_("ask the person at the bench for what no rig does"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "needs(*names): what a test on a whole table needs (host_tools.hil.capabilities)"
    )
    target, port = config.getoption("--target"), config.getoption("--port")
    config.stash[TARGET] = target
    if target != HARDWARE:
        for option in ("--port", "--rig", "--interactive"):
            if config.getoption(option):
                raise pytest.UsageError(_("{option} goes with --target hardware").format(option=option))
        return
    if not port:
        raise pytest.UsageError(_("--target hardware: name the table's --port; `tablectl ports` lists them"))
    if config.getoption("numprocesses", None):
        raise pytest.UsageError(_("--target hardware: there is one table; leave out -n"))
    try:
        rig = load(config.getoption("--rig")) if config.getoption("--rig") else Rig()
        config.stash[RIG] = Rigged(port, rig, _person(config) if config.getoption("--interactive") else None, unable)
        config.stash[TOLD] = _greet(port)
    except BadInput as error:
        raise pytest.UsageError(str(error)) from None


def _greet(port: str) -> Message:
    from host_tools.board_files import greet

    return greet(port)[0]


def unable(why: str) -> NoReturn:
    """End the test: this target cannot do what it needs."""
    pytest.skip(why)


def _person(config: pytest.Config) -> Callable[[str], str]:
    """Who is asked at the terminal, which pytest's capture gives back meanwhile."""

    def ask(text: str) -> str:
        capture: Any = config.pluginmanager.getplugin("capturemanager")
        capture.suspend_global_capture(in_=True)
        try:
            sys.stdout.write(f"\n{text}")
            sys.stdout.flush()
            line = sys.stdin.readline()
        finally:
            capture.resume_global_capture()
        if not line:
            pytest.exit(_("nobody answers at the terminal any more"))
        return line

    return ask


def _micropython_of(target: str) -> str:
    """The MicroPython version of a virtual table, "" where none can run."""
    if target == EMULATOR:
        try:
            from boards.virtual.emulated import find_image, image_version
        except ImportError:
            return ""
        image = find_image()
        return image_version(image) if image is not None and image.is_file() else ""
    from boards.virtual.unix_port import NoMicroPython, find_micropython

    try:
        command = [*find_micropython(), "-c", "import sys; print('%d.%d.%d' % sys.implementation.version[:3])"]
    except NoMicroPython:
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def facts(config: pytest.Config) -> dict[str, str]:
    """What is tested, by names that stay: for the report's header and JUnit's properties."""
    target = config.stash[TARGET]
    found = {"target": target or SIM}
    if target in (SIM, EMULATOR):
        # Each test has its own table: port and unique id are the test's.
        found.update(build=build_hash(), micropython=_micropython_of(target))
    if target == HARDWARE:
        told, rigged = config.stash[TOLD], config.stash[RIG]
        dice = told.get("dice_set") or {}
        found.update(
            port=rigged.port,
            uid=str(told["uid"]),
            board=str(told.get("board")),
            firmware=str(told.get("fw")),
            build=str(told.get("build")),
            micropython=str(told.get("micropython")),
            protocol=f"{told['major']}.{told['minor']}",
            config_hash=str(told.get("config_hash")),
            dice_set=str(dice.get("serial") or dice.get("hash") or ""),
            rig=rigged.rig.name if rigged.rig.path else "",
        )
    return found


def pytest_report_header(config: pytest.Config) -> str | None:
    if config.stash[TARGET] is None:
        return None
    return "table: " + ", ".join(f"{name} {value}" for name, value in facts(config).items() if value)


@pytest.fixture(scope="session", autouse=True)
def _properties(request: pytest.FixtureRequest, record_testsuite_property: Callable[[str, object], None]) -> None:
    for name, value in facts(request.config).items():
        record_testsuite_property(name, value)


def needs_of(item: pytest.Item) -> tuple[str, ...] | None:
    """What a test needs; None for one that is made for a virtual table."""
    markers = list(item.iter_markers("needs"))
    return tuple(name for marker in markers for name in marker.args) if markers else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        needs = needs_of(item) or ()
        for name in needs:
            if name not in NEEDS:
                raise pytest.UsageError(f"{item.nodeid} needs {name!r}; allowed: {', '.join(NEEDS)}")
        why = _why_not(config, item)
        if why:
            item.add_marker(pytest.mark.skip(reason=why))


def _why_not(config: pytest.Config, item: pytest.Item) -> str | None:
    target = config.stash[TARGET]
    if target is None:
        return None
    emulated = item.get_closest_marker("emulator") is not None
    if target == SIM:
        return _("for the emulated Pico") if emulated else None
    needs = needs_of(item)
    if target == EMULATOR:
        return None if emulated or needs is not None else _("made for the simulated table only")
    if needs is None:
        return _("made for a virtual table only")
    return next(filter(None, map(config.stash[RIG].lacks, needs)), None)


@pytest.fixture(scope="session")
def rig(request: pytest.FixtureRequest) -> Rigged | None:
    """What moves a real table's parts; None where the table is a virtual one, which can do everything."""
    return request.config.stash.get(RIG, None)


@pytest.fixture(scope="session")
def told(request: pytest.FixtureRequest) -> Message | None:
    """What the real table said to hello when the tests began."""
    return request.config.stash.get(TOLD, None)
