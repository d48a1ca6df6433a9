"""What has to be done to a board's files, step by step, so that after each step the old or the new firmware runs: pure.

The new firmware goes into the slot that is not in use (firmware/main.py chooses between /a and /b), and is named in
/slot by the last step of all, a rename. Until then nothing that the old one needs is touched: but boot.py and main.py,
which serve every firmware and are each replaced by a rename.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from host_tools.flash_build import MANIFEST, ROOT_FILES, Build

SLOT = "/slot"
SLOTS = ("a", "b")
# How often a new firmware may be started before it has proved itself.
TRIES = 3
BLOCK = 4096
# The file system's own needs beside the files' blocks: folders, and the journal's next segment.
SPARE = 8 * BLOCK


@dataclass(frozen=True)
class Step:
    """One operation: "mkdir", "remove" or "rmdir" of `path`, "write" `data` to it, or "rename" it to `to`."""

    what: str
    path: str
    data: bytes = field(default=b"", repr=False)
    to: str = ""


@dataclass(frozen=True)
class Board:
    """What is on a board's flash: each file's size and SHA-256 (in hex; "" where nobody asked) by path, its folders,
    the words in /slot ("" when there is none), and the slots whose files are all there."""

    files: Mapping[str, tuple[int, str]]
    folders: frozenset[str] = frozenset()
    words: str = ""
    whole: frozenset[str] = frozenset()

    @property
    def running(self) -> str:
        """The slot that the next start would run, "" for the root, as firmware/main.py chooses it."""
        name, _space, tries = self.words.partition(" ")
        if name not in SLOTS:
            return ""
        other = SLOTS[1 - SLOTS.index(name)]
        order = (other,) if tries and not (tries.isdigit() and int(tries)) else (name, other)
        return next((slot for slot in order if slot in self.whole), "")

    @property
    def on_trial(self) -> bool:
        """Whether what runs has not proved itself yet."""
        return bool(self.running) and self.words.partition(" ")[0] == self.running and " " in self.words

    def holds(self, slot: str, build: Build) -> bool:
        """Whether a slot holds this build, whole."""
        there = {path: told for path, told in self.files.items() if path.startswith(f"/{slot}/")}
        return there == {f"/{slot}/{name}": told(data) for name, data in with_manifest(build).items()}


@dataclass(frozen=True)
class Plan:
    """The steps of an update into `slot`; `unchanged` files are there already."""

    slot: str
    steps: tuple[Step, ...]
    unchanged: int

    @property
    def writes(self) -> list[Step]:
        """Those that copy a file."""
        return [step for step in self.steps if step.what == "write"]

    @property
    def size(self) -> int:
        """Bytes to be copied."""
        return sum(len(step.data) for step in self.writes)

    def blocks(self, board: Board) -> int:
        """Bytes of the flash that have to be free, whole blocks and SPARE."""
        needed = sum(-(-len(step.data) // BLOCK) * BLOCK for step in self.writes)
        freed = sum(
            -(-board.files[step.path][0] // BLOCK) * BLOCK
            for step in self.steps
            if step.what in ("remove", "write") and step.path in board.files
        )
        return max(0, needed - freed) + (SPARE if self.writes else 0)


def told(data: bytes) -> tuple[int, str]:
    """Size and SHA-256 of a file's content."""
    return len(data), hashlib.sha256(data).hexdigest()


def with_manifest(build: Build) -> dict[str, bytes]:
    """A slot's files, the manifest last."""
    return {**dict(sorted(build.slot.items())), MANIFEST: build.manifest}


def plan(board: Board, build: Build) -> Plan:
    """The way from what is on the board to `build`. No steps when that runs already."""
    running = board.running
    if running and board.holds(running, build):
        slot, steps = running, list(_root_files(board, build))
        if board.on_trial and board.words.partition(" ")[2] != str(TRIES):
            steps += _name(slot)
        return Plan(slot, tuple(steps), len(build.slot) + len(build.root) - len(steps) // 2)
    # What has not proved itself is the one to be overwritten; a whole build that lies in the other slot need not be.
    slot = running if board.on_trial else SLOTS[0] if running == SLOTS[1] else SLOTS[1] if running else SLOTS[0]
    steps = list(_slot_files(board, build, slot))
    if running and not board.on_trial:
        steps = [*_old_layout(board), *steps]
    steps += _root_files(board, build)
    if not board.holds(slot, build):
        path = f"/{slot}/{MANIFEST}"
        steps += [Step("write", path + ".new", build.manifest), Step("rename", path + ".new", to=path)]
    steps += _name(slot)
    copied = {step.path for step in steps if step.what == "write"}
    unchanged = sum(f"/{slot}/{name}" not in copied for name in build.slot)
    unchanged += sum(f"/{name}.new" not in copied for name in build.root)
    return Plan(slot, tuple(steps), unchanged)


def _name(slot: str) -> list[Step]:
    return [Step("write", SLOT + ".new", f"{slot} {TRIES}".encode()), Step("rename", SLOT + ".new", to=SLOT)]


def _root_files(board: Board, build: Build) -> Iterator[Step]:
    for name in ROOT_FILES:
        data = build.root[name]
        if board.files.get("/" + name) != told(data):
            yield Step("write", f"/{name}.new", data)
            yield Step("rename", f"/{name}.new", to="/" + name)


def _slot_files(board: Board, build: Build, slot: str) -> Iterator[Step]:
    """First of all the slot ceases to count; then what is not of the build goes, and what differs comes."""
    if board.holds(slot, build):
        return
    top = f"/{slot}"
    there = {path for path in board.files if path.startswith(top + "/")}
    if f"{top}/{MANIFEST}" in there:
        yield Step("remove", f"{top}/{MANIFEST}")
        there.remove(f"{top}/{MANIFEST}")
    wanted = {f"{top}/{name}": data for name, data in sorted(build.slot.items())}
    for path in sorted(there - set(wanted)):
        yield Step("remove", path)
    folders = {top}
    for path in wanted:
        parts = path.split("/")
        folders |= {"/".join(parts[:depth]) for depth in range(2, len(parts))}
    stale = {folder for folder in board.folders if folder == top or folder.startswith(top + "/")} - folders
    for folder in sorted(stale, reverse=True):
        yield Step("rmdir", folder)
    for folder in sorted(folders - board.folders):
        if folder in board.files:
            yield Step("remove", folder)
        yield Step("mkdir", folder)
    for path, data in wanted.items():
        if board.files.get(path) != told(data):
            yield Step("write", path, data)


def _old_layout(board: Board) -> Iterator[Step]:
    """A firmware that was copied to the root by hand: with one in a slot that has proved itself it has had its day."""
    for path in sorted(board.files):
        if path.startswith("/dragoneye/") or path == "/build.txt":
            yield Step("remove", path)
    old = [path for path in board.folders if path == "/dragoneye" or path.startswith("/dragoneye/")]
    for folder in sorted(old, reverse=True):
        yield Step("rmdir", folder)
