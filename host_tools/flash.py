"""The firmware copied to a board over its serial port, so that whatever happens the old or the new one runs."""

from __future__ import annotations

import contextlib
import json
from binascii import b2a_base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from serial.tools import list_ports

from boards import mpy
from dragoneye.config import CONFIG_FORMAT
from dragoneye.errors import BadInput
from dragoneye.text import show
from host_tools import flash_plan
from host_tools.board_data import board_data, boards
from host_tools.board_files import BoardError, BoardFiles, Started
from host_tools.configuration import CONFIG_FILE
from host_tools.flash_build import Build, make
from host_tools.flash_plan import Board, Plan, Step
from host_tools.i18n import _
from host_tools.link import LinkError, Prompt

VENDOR = 0x2E8A  # Raspberry Pi
OLDEST = (1, 24)
# What is sent of a file at once: its text, its bytes and what is made of them lie in the board's memory together.
CHUNK = 1024
ENOSPC = 28

# Run on the board; each prints JSON lines. The names are short as they stay in the prompt's memory.
LOOK = """
import os, sys, json
i, u = sys.implementation, os.uname()[4]
print(json.dumps([i.name, list(i.version[:3]), getattr(i, "_mpy", 0), u]))
"""
LIST = """
import os, json
from hashlib import sha256
from binascii import hexlify
b = bytearray(1024)
def h(p):
    d, v = sha256(), memoryview(b)
    with open(p, "rb") as f:
        while True:
            n = f.readinto(b)
            if not n:
                return hexlify(d.digest()).decode()
            d.update(v[:n])
def w(d):
    for e in os.ilistdir(d or "/"):
        p = d + "/" + e[0]
        if e[1] & 0x4000:
            if p != "/journal":
                print(json.dumps([p]))
                w(p)
        else:
            ours = p[:3] in ("/a/", "/b/") or p in ("/boot.py", "/main.py")
            print(json.dumps([p, os.stat(p)[6], h(p) if ours else ""]))
def q(s):
    try:
        with open("/" + s + "/manifest.json") as f:
            return all(os.stat("/" + s + "/" + n)[6] == z for n, z, _ in json.load(f)["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
w("")
try:
    with open("/slot") as f:
        t = f.read().strip()
except OSError:
    t = ""
s = os.statvfs("/")
print(json.dumps({"words": t, "whole": [s for s in ("a", "b") if q(s)], "free": s[0] * s[3]}))
"""


@dataclass(frozen=True)
class Facts:
    """What a board says of itself."""

    version: tuple[int, int, int]
    mpy: int
    machine: str

    @property
    def board(self) -> str | None:
        """Which of our boards it is, None when it is none of them."""
        return next((name for name in boards() if board_data(name)["chip"] == self.chip), None)

    @property
    def chip(self) -> str:
        """Its chip's name, the last word of what it says of itself."""
        return self.machine.rpartition(" ")[2]

    @property
    def mpy_text(self) -> str:
        """The .mpy version that it runs."""
        return f"{self.mpy & 0xFF}.{self.mpy >> 8 & 3}"


def find_port(wanted: str | None, ports: Iterable[Any] | None = None) -> str:
    """The port of the one board that is there, or of the one with the unique id `wanted`, or `wanted` as it is.

    Raises BadInput when there is none, or more than one.
    """
    found = sorted(list_ports.comports() if ports is None else ports, key=lambda port: str(port.device))
    if wanted is not None:
        named = [port.device for port in found if str(port.serial_number or "").upper() == wanted.upper()]
        return str(named[0]) if named else wanted
    ours = [port for port in found if port.vid == VENDOR]
    if not ours:
        raise BadInput(
            _(
                "no board is there: no serial port of a Raspberry Pi board. Plug it in; if nothing appears, the cable "
                "may only charge, take one that carries data. A new board, without MicroPython, shows as a USB drive: "
                "copy MicroPython's .uf2 onto it first (docs/flashing.md)"
            )
        )
    if len(ours) > 1:
        listed = "; ".join(f"{port.device} ({port.serial_number})" for port in ours)
        raise BadInput(_("more than one board is there: {boards}; name one with --port").format(boards=listed))
    return str(ours[0].device)


def look(files: BoardFiles) -> Facts:
    """Ask a board what it is. Raises BadInput when it does not run MicroPython that we can use."""
    try:
        name, version, number, machine = json.loads(files.run(LOOK))
    except (BoardError, ValueError) as error:
        words = _("{port}: the board does not tell what it runs ({why})")
        raise BadInput(words.format(port=files.port, why=_last(error))) from None
    if name != "micropython":
        words = _("{port}: the board runs {name}, not MicroPython; copy MicroPython's .uf2 to it (docs/flashing.md)")
        raise BadInput(words.format(port=files.port, name=name))
    return Facts((version[0], version[1], version[2]), number, machine)


def check(facts: Facts, board: str | None, where: str) -> str:
    """The board that it is, once it is one that our firmware runs on. Raises BadInput otherwise, before any copy."""
    cross, major, minor = mpy.cross_version()
    told = ".".join(str(part) for part in facts.version)
    if facts.version[:2] < OLDEST or facts.mpy & 0xFF != major or (facts.mpy >> 8 & 3) != minor:
        words = _(
            "{where}: the board runs MicroPython {theirs}, which takes .mpy {their_mpy}; this firmware needs {oldest} "
            "or later, and mpy-cross {cross} makes .mpy {our_mpy}. Nothing was copied; put a newer MicroPython on the "
            "board (docs/flashing.md)"
        )
        raise BadInput(
            words.format(
                where=where,
                theirs=told,
                their_mpy=facts.mpy_text,
                oldest=".".join(str(part) for part in OLDEST),
                cross=cross,
                our_mpy=f"{major}.{minor}",
            )
        )
    if facts.board is None or (board is not None and facts.board != board):
        words = _("{where}: this board is a {machine}; allowed: {boards}")
        allowed = [board] if board is not None else boards()
        raise BadInput(words.format(where=where, machine=show(facts.machine), boards=", ".join(allowed)))
    return facts.board


def march_of(number: int) -> str:
    """What mpy-cross calls the architecture that a board's `_mpy` names."""
    return mpy.MARCH.get(number >> 10 & 0xF, "armv6m")


def read_board(files: BoardFiles) -> tuple[Board, int]:
    """What is on the flash, and how many bytes of it are free."""
    there: dict[str, tuple[int, str]] = {}
    folders = set()
    last: dict[str, Any] = {}
    for line in files.run(LIST).splitlines():
        told = json.loads(line)
        if isinstance(told, dict):
            last = told
        elif len(told) == 1:
            folders.add(told[0])
        else:
            there[told[0]] = (told[1], told[2])
    return Board(there, frozenset(folders), last["words"], frozenset(last["whole"])), last["free"]


def check_configuration(files: BoardFiles) -> None:
    """A configuration of a newer firmware is not understood by this one. Raises BadInput, before any copy."""
    try:
        there = json.loads(files.read(CONFIG_FILE) or b"")["format"]
    except (ValueError, KeyError, TypeError):
        return
    if isinstance(there, int) and there > CONFIG_FORMAT:
        words = _(
            "{port}: the table's configuration has format {theirs}, this firmware knows {ours}. Nothing was copied; "
            "use a newer firmware, or write this program's configuration first: "
            "tablectl config set --file table.toml --port {port}"
        )
        raise BadInput(words.format(port=files.port, theirs=there, ours=CONFIG_FORMAT))


def script_of(step: Step) -> list[str]:
    """What is run on the board, piece by piece, for one step."""
    path = repr(step.path)
    if step.what == "write":
        pieces = [f"from binascii import a2b_base64 as d\nf = open({path}, 'wb')"]
        for at in range(0, len(step.data), CHUNK):
            text = b2a_base64(step.data[at : at + CHUNK], newline=False).decode()
            pieces.append(f"f.write(d('{text}'))")
        return [*pieces, "f.close()"]
    if step.what == "rename":
        return [f"import os\nos.rename({path}, {step.to!r})"]
    return [f"import os\nos.{step.what}({path})"]


def copy(files: BoardFiles, plan: Plan, tell: Callable[[Step, int], None]) -> None:
    """Do all steps. `tell(step, n)` is told when n more bytes of a step have been copied. What was written is read back
    before it is named. Raises BadInput; the firmware that ran before runs again then.
    """
    written: dict[str, Step] = {}
    begun: list[str] = []
    try:
        for step in plan.steps:
            if step.what == "rename" and written:
                _check_written(files, written)
                written = {}
            if step.what == "write":
                begun.append(step.path)
                written[step.path] = step
            _do(files, step, tell)
    except BoardError as error:
        with contextlib.suppress(BadInput):
            # The table needs the room for its record.
            files.run(UNDO.format(names=[path for path in begun if path.startswith(f"/{plan.slot}/")]))
        why = _last(error)
        if "ENOSPC" in why or f"OSError: {ENOSPC}" in why:
            raise BadInput(full(files.port)) from None
        words = _("{port}: the firmware cannot be copied: {why}; the one that was there runs on")
        raise BadInput(words.format(port=files.port, why=why)) from None


def _do(files: BoardFiles, step: Step, tell: Callable[[Step, int], None]) -> None:
    left = len(step.data)
    for piece in script_of(step):
        files.run(piece)
        if piece.startswith("f.write"):
            tell(step, min(CHUNK, left))
            left -= min(CHUNK, left)


def full(port: str) -> str:
    """What is said when there is no room."""
    words = _(
        "{port}: the board's flash is full; the firmware that was there runs on. Remove files that do not belong "
        "there: tablectl maintenance --port {port}, then mpremote connect {port} ls, rm"
    )
    return words.format(port=port)


def _check_written(files: BoardFiles, written: dict[str, Step]) -> None:
    text = HASHES.format(names=list(written))
    there = dict(json.loads(line) for line in files.run(text).splitlines())
    for path, step in written.items():
        if there.get(path) != flash_plan.told(step.data)[1]:
            raise BadInput(_("{port}: {file} on the board is not what was written").format(port=files.port, file=path))


UNDO = """
import os
try:
    f.close()
except (NameError, OSError):
    pass
for p in {names}:
    try:
        os.remove(p)
    except OSError:
        pass
"""
HASHES = """
for p in {names}:
    print(json.dumps([p, h(p)]))
"""


def _last(error: Exception) -> str:
    return (str(error).strip().splitlines() or [repr(error)])[-1]


@dataclass(frozen=True)
class Flashing:
    """An update of one board that can begin: `free` bytes of its flash are free, `needed` have to be."""

    files: BoardFiles
    facts: Facts
    board: str
    build: Build
    plan: Plan
    free: int
    needed: int

    def copy(self, tell: Callable[[Step, int], None]) -> None:
        """Copy what has to be copied."""
        if self.needed > self.free:
            raise BadInput(full(self.files.port))
        copy(self.files, self.plan, tell)


def prepare(files: BoardFiles, board: str | None, source: Callable[[str], Build] = make) -> Flashing:
    """Look at the board and decide what to do. Nothing is written. Raises BadInput."""
    facts = look(files)
    name = check(facts, board, files.port)
    check_configuration(files)
    build = source(march_of(facts.mpy))
    there, free = read_board(files)
    plan = flash_plan.plan(there, build)
    return Flashing(files, facts, name, build, plan, free, plan.blocks(there))


def start(files: BoardFiles, build: Build) -> Started:
    """Reset the board; what came of it. Raises BadInput when it is not the new firmware that answers."""
    port = files.port
    try:
        started = files.start(expected=True)
    except Prompt:
        words = _(
            "{port}: MicroPython's prompt answers, not the new firmware. Turn the service key off and reset the board; "
            "if the prompt comes again, see what went wrong: mpremote connect {port}"
        )
        raise BadInput(words.format(port=port)) from None
    except LinkError as error:
        raise BadInput(_("{port}: the new firmware does not answer: {why}").format(port=port, why=error)) from None
    if started.told is not None and started.told.get("build") != build.name:
        words = _("{port}: the new firmware {ours} did not start; the table runs {theirs} again")
        raise BadInput(words.format(port=port, ours=build.name, theirs=show(started.told.get("build"))))
    return started
