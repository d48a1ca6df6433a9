"""Runs a target's inputs one by one and tells what went wrong: a crash, a hang, memory growth, an unasked effect."""

from __future__ import annotations

import gc
import hashlib
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from tests.fuzz.targets import Target

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
# Seconds of this process's own time that one input may take; a busy machine does not lengthen them.
HANG_S = 5
# Inputs before memory is looked at, and between looks; what caches of ours may still fill after that, in blocks.
WARM, LOOK, GROWTH_MAX = 2000, 1000, 20_000
_SHRINK_S = 2.0


class Hang(BaseException):
    """One input took longer than HANG_S. No Exception: nothing on the way may take it for its own."""


class Effect(AssertionError):
    """Something was done that no input may bring about."""


class Grown(AssertionError):
    """More is kept with every input."""


class Finding(NamedTuple):
    """What one input showed: `place` tells two findings apart."""

    place: str
    words: str
    data: bytes


_writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Audit events (docs.python.org/3/library/audit_events.html) that no input may raise, and those on a path.
_NEVER = (
    *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.kill", "pty.spawn"),
    *("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "webbrowser.open", "shutil.rmtree"),
)
_ON_PATH = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")


class _Guard:
    """Audits what is done while an input runs; writing is allowed in `folder` only."""

    def __init__(self) -> None:
        self.folder: str | None = None
        # Told here as well: what was called may take an exception for its own.
        self.effect = ""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in _NEVER:
            self._refuse(event, args)
        paths: tuple[Any, ...] = ()
        if event == "open":
            mode, flags = args[1], args[2]
            if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & _writing):
                paths = args[:1]
        elif event in _ON_PATH:
            paths = args[:2] if event in ("os.rename", "os.link", "os.symlink") else args[:1]
        for path in paths:
            if not isinstance(path, int) and not os.path.abspath(os.fsdecode(path)).startswith(self.folder):
                self._refuse(event, args)

    def _refuse(self, event: str, args: tuple[Any, ...]) -> None:
        self.folder = None
        self.effect = f"{event} {args!r:.200}"
        raise Effect(self.effect)


_guard: _Guard | None = None


class Watch:
    """One target in a folder of its own. `keep`: where inputs that showed something are left, or None."""

    def __init__(self, target: Target, keep: Path | None = None) -> None:
        global _guard
        if _guard is None:
            _guard = _Guard()
        self._folder = tempfile.TemporaryDirectory(
            prefix="fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
        )
        self._run: Callable[[bytes], bool] = target.make(Path(self._folder.name))
        self._keep = keep
        self.inputs = 0
        # Those that were taken as right: a target that takes none tests too little.
        self.taken = 0
        self.slowest = 0.0
        self.findings: dict[str, Finding] = {}
        self._blocks = 0
        self.growth = 0

    def close(self) -> None:
        self._folder.cleanup()

    def one(self, data: bytes) -> Finding | None:
        """Run one input. What it showed, when it is the first at its place."""
        self.inputs += 1
        began = time.process_time()
        found = self._try(data)
        self.slowest = max(self.slowest, time.process_time() - began)
        if found is None:
            if self.inputs >= WARM and self.inputs % LOOK == 0:
                found = self._look(data)
            if found is None:
                return None
        if found.place in self.findings:
            return None
        if self._keep is not None and not found.place.startswith("Grown"):
            found = self._shrunk(found)
            self._keep.mkdir(parents=True, exist_ok=True)
            (self._keep / hashlib.sha256(found.data).hexdigest()[:12]).write_bytes(found.data)
        self.findings[found.place] = found
        return found

    def _try(self, data: bytes) -> Finding | None:
        assert _guard is not None
        before = signal.signal(signal.SIGVTALRM, _late)
        signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)
        _guard.effect = ""
        # A module that is imported only now is no effect of the input.
        cached, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        _guard.folder = self._folder.name
        try:
            self.taken += bool(self._run(data))
            if _guard.effect:
                raise Effect(_guard.effect)
        except (Exception, Hang) as error:
            _guard.folder = None
            return Finding(_place(error), "".join(traceback.format_exception(error)[-6:]), data)
        finally:
            _guard.folder = None
            sys.dont_write_bytecode = cached
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
        return None

    def _look(self, data: bytes) -> Finding | None:
        gc.collect()
        blocks = sys.getallocatedblocks()
        if not self._blocks:
            self._blocks = blocks
        # What a target keeps is bounded, so the least that was there since the start of the looks is the base.
        self._blocks = min(self._blocks, blocks)
        self.growth = blocks - self._blocks
        looks = (self.inputs - WARM) // LOOK
        if self.growth > max(GROWTH_MAX, 200 * looks):
            words = f"{self.growth} more objects are kept after {self.inputs} inputs"
            return Finding("Grown", words, data)
        return None

    def _shrunk(self, found: Finding) -> Finding:
        """The same finding from less, as far as a short search comes."""
        if found.place.startswith("Hang"):
            return found
        end = time.process_time() + _SHRINK_S
        size = len(found.data) // 2
        while size:
            at = 0
            while at < len(found.data) and time.process_time() < end:
                less = self._try(found.data[:at] + found.data[at + size :])
                if less is not None and less.place == found.place:
                    found = less
                else:
                    at += size
            size //= 2
        return found


def _late(number: int, frame: FrameType | None) -> None:
    raise Hang(f"more than {HANG_S} s")


def _place(error: BaseException) -> str:
    """What was raised and where of ours: the file and line that stands last of the project's own."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [one for one in frames if one.filename.startswith(str(ROOT)) and ".venv" not in one.filename]
    ours = [one for one in ours if Path(one.filename) != Path(__file__)] or list(frames)
    last = ours[-1]
    where = f"{os.path.relpath(last.filename, ROOT)}:{last.lineno}"
    return f"{type(error).__name__} {where if not isinstance(error, Hang) else ours[0].name}"
