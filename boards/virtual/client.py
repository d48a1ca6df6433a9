"""Steer a virtual table from Python: start a bench, do things to the table, leave nothing behind.

with Table(seed=7) as table:
    table.do("next", dice=[3, 2, 4])
    serial.Serial(table.port)
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

REPO = Path(__file__).resolve().parents[2]
UP_S = 30.0
SUN_PATH = 100  # a Unix socket's path is limited to 108 bytes on Linux, 104 on macOS

_chdir = threading.Lock()


class TableError(RuntimeError):
    """The table refused, or there is none; the text says why."""


def _short(path: Path, stack: contextlib.ExitStack) -> str:
    """A name for a socket's path that is short enough, valid while `stack` is open."""
    if len(os.fsencode(path)) < SUN_PATH:
        return str(path)
    if Path("/proc/self/fd").is_dir():
        folder = os.open(path.parent, os.O_RDONLY)
        stack.callback(os.close, folder)
        return f"/proc/self/fd/{folder}/{path.name}"
    stack.enter_context(_chdir)
    stack.callback(os.chdir, Path.cwd())
    os.chdir(path.parent)
    return path.name


def bind_unix(path: Path) -> socket.socket:
    """A listening Unix socket at a path of any length; a stale one in its place goes."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.ExitStack() as stack:
        listener.bind(_short(path, stack))
    listener.listen(16)
    return listener


def connect_unix(path: Path, timeout: float | None = None) -> socket.socket:
    """Connect to a Unix socket at a path of any length."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    try:
        with contextlib.ExitStack() as stack:
            connection.connect(_short(path, stack))
    except BaseException:
        connection.close()
        raise
    return connection


class Control:
    """A connection to a running bench's control channel; one at a time in one thread, as many as you like at once."""

    def __init__(self, folder: Path, timeout: float = 30.0) -> None:
        self._folder = folder
        try:
            self._connection = connect_unix(folder / "control", timeout)
        except OSError as error:
            raise TableError(f"no bench answers in {folder}: {error.strerror or error}") from None
        self._file = self._connection.makefile("rb")

    def do(self, name: str, /, **args: Any) -> dict[str, Any]:
        """Do one thing to the table; what came of it, or TableError with what was wrong."""
        try:
            self._connection.sendall(json.dumps({"do": name, **args}).encode() + b"\n")
            line = self._file.readline()
        except OSError as error:
            raise TableError(f"the bench in {self._folder} does not answer: {error}") from None
        if not line:
            raise TableError(f"the bench in {self._folder} has ended")
        answer: dict[str, Any] = json.loads(line)
        if not answer.pop("ok"):
            raise TableError(answer["error"])
        return answer

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._connection.close()


class Table:
    """A bench process of one's own.

    `target`: "sim" (MicroPython's unix port) or "emulator" (an RP2040 with the official image, which is slower and
    gets the firmware compiled). `folder`: where it lives (kept afterwards), or None for a temporary one (removed).
    `firmware`, `provision`, `board` and `tags` are the bench's options of those names; `powered=False` begins without
    power; `ticks_ms` is where the Pico's tick counter starts. Use it as a context manager, or call `start` and `stop`.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        target: str = "sim",
        seed: int | None = None,
        uid: str | None = None,
        heapsize: str = "480k",
        provision: str | Path | None = None,
        firmware: str | Path | None = None,
        board: str | Path | None = None,
        tags: str | Path | None = None,
        ticks_ms: int = 0,
        powered: bool = True,
    ) -> None:
        self._temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="table-")) if folder is None else Path(folder).resolve()
        self._arguments = ["--dir", str(self.folder), "--heapsize", heapsize, "--ticks-ms", str(ticks_ms)]
        for name, value in (
            ("--target", target),
            ("--seed", seed),
            ("--uid", uid),
            ("--provision", provision),
            ("--firmware", firmware),
            ("--board", board),
            ("--tags", tags),
        ):
            if value is not None:
                self._arguments += [name, str(Path(value).resolve() if isinstance(value, Path) else value)]
        if not powered:
            self._arguments.append("--off")
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Control | None = None

    @property
    def port(self) -> str:
        """The serial port to open; a link that always names the present pseudo-terminal."""
        return str(self.folder / "port")

    @property
    def pid(self) -> int:
        """The bench's own process."""
        if self._process is None:
            raise TableError("the bench does not run")
        return self._process.pid

    def start(self) -> Table:
        """Start the bench and wait until it answers."""
        # The bench stops when its standard input ends: also when this process is killed.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop
        self._process = subprocess.Popen(
            [sys.executable, "-m", "boards.virtual.bench", "--exit-with-parent", *self._arguments],
            cwd=REPO,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
        )
        try:
            self._wait_until_up()
        except BaseException:
            self.stop()
            raise
        return self

    def _wait_until_up(self) -> None:
        assert self._process
        until = time.monotonic() + UP_S
        while True:
            if self._process.poll() is not None:
                raise TableError(f"the bench ended at once: {self._said()}")
            try:
                self._control = Control(self.folder)
                # Another bench may already be there; this one then ends with an error.
                if self._control.do("help")["bench"] == self._process.pid:
                    return
                self._control.close()
            except TableError:
                pass
            if time.monotonic() > until:
                raise TableError(f"the bench was not up after {UP_S:.0f} s: {self._said()}")
            time.sleep(0.01)

    def _said(self) -> str:
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace").strip()
        return text.removeprefix("error: ") or "it said nothing"

    def do(self, name: str, /, **args: Any) -> dict[str, Any]:
        """Do one thing to the table (`help` lists all); what came of it, or TableError."""
        if self._control is None:
            raise TableError("the bench does not run")
        return self._control.do(name, **args)

    def state(self) -> dict[str, Any]:
        """Everything about the table and its board."""
        return self.do("state")

    def wait_for(self, what: str, value: Any, seconds: float = 30.0) -> dict[str, Any]:
        """The state as soon as its entry `what` equals `value`; TableError if it never does."""
        until = time.monotonic() + seconds
        while True:
            state = self.state()
            if state.get(what) == value:
                return state
            if time.monotonic() > until:
                raise TableError(f"{what} is {state.get(what)!r} after {seconds:.0f} s, not {value!r}")
            time.sleep(0.01)

    def stop(self) -> None:
        """End the bench and its board; a temporary folder goes."""
        if self._control is not None:
            self._control.close()
            self._control = None
        process, self._process = self._process, None
        if process is not None:
            if process.stdin:
                process.stdin.close()
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._errors.close()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Table:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
