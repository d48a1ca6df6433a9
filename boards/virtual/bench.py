"""The bench around a virtual table: power, USB cable, reset button and watchdog of a board, and a control channel.

    python -m boards.virtual.bench --dir FOLDER

runs the firmware on MicroPython's unix port and gives it a serial port, FOLDER/port. Whoever opens that sees a Pico's
USB port: it vanishes when the cable or the power goes, what nobody is there to read is lost, a raw Ctrl-C interrupts.

FOLDER/control is a Unix socket: one JSON object a line in, `{"do": "lid", "to": "open"}`, one out, `{"ok": true, ...}`
or `{"ok": false, "error": "..."}`. `{"do": "help"}` lists what can be done. FOLDER/flash.img is the Pico's flash and
FOLDER/table.json what lies on the table; both outlive the bench. FOLDER/board.log has what the process said besides.
"""

from __future__ import annotations

import argparse
import array
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import secrets
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, Protocol

from boards.virtual import flash, model
from boards.virtual.client import bind_unix
from boards.virtual.unix_port import REPO, find_micropython

START = Path(__file__).resolve().with_name("start.py")

PWRON_RESET, WDT_RESET = 1, 3  # machine.reset_cause of the rp2 port
STDIN_RING = 512  # what the rp2 port buffers of its input (MICROPY_HW_STDIN_BUFFER_LEN)
TX_FIFO = 256  # CFG_TUD_CDC_TX_BUFSIZE
OUT_CHUNK = 4096
LOG_MAX = 4000
EDGES_MAX = 500
ANSWER_S = 15.0  # a board that serves nobody for so long is said to be busy
STATE_S = 2.0  # after which the bench tells of the state what it knows by itself
INTERRUPT_S = 0.25  # a program that calls nothing of ours for so long is interrupted by a signal
HANGUP_CHECK_S = 0.01
STUFFED_CHECK_S = 0.002
SHIM_KIB = 122  # what the virtual table itself takes of MicroPython's heap (measured: 124,736 bytes)
CRASH_S = 1.0  # a process that ends by itself so early is not started again

Json = dict[str, Any]

BENCH_COMMANDS: dict[str, tuple[str, ...]] = {
    "power": ("to", "cut"),
    "cable": ("to",),
    "reset": (),
    "state": (),
    "log": ("clear",),
    "cut": ("at", "torn", "only"),
    "ticks": ("ms",),
    "help": (),
    "stop": (),
}


class BenchError(ValueError):
    """What the bench was asked for cannot be done; the text names what is allowed."""


def now_us() -> int:
    """The clock of everything here: monotonic microseconds, the same as MicroPython's ticks_us on this machine."""
    return time.monotonic_ns() // 1000


def heap_kib(text: str) -> int:
    """The firmware's heap in KiB."""
    if text.endswith("k") and text[:-1].isdigit() and int(text[:-1]) >= 64:
        return int(text[:-1])
    raise BenchError(f"--heapsize must be KiB from 64, such as 480k, not {text!r}")


def check_uid(text: str) -> str:
    """Eight bytes in hex, as `machine.unique_id` gives."""
    try:
        if len(bytes.fromhex(text)) == 8:
            return text.lower()
    except ValueError:
        pass
    raise BenchError(f"--uid must be 8 bytes in hex, not {text!r}")


def write_atomically(path: Path, data: Json) -> None:
    """Never leave half a file, whenever this process ends."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(data))
    beside.replace(path)


def die_with_parent() -> None:
    """Between fork and exec of the board: the kernel ends it when the bench dies, however that dies (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Events(Protocol):
    """What a board tells the bench."""

    def board_said(self, message: Json) -> None: ...

    def board_ended(self) -> None: ...


class Board:
    """One run of the firmware's process, from power-on (or reset) to its end, over soft resets."""

    def __init__(self, bench: Events, selector: selectors.BaseSelector, command: list[str], log: Path) -> None:
        self._bench = bench
        self._selector = selector
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._received = b""
        self._to_send = b""
        # A socket for the input, because what waits in it can be thrown away from outside (Ctrl-C empties the ring).
        self.input, self._input_end = socket.socketpair()
        self.input.setblocking(False)
        self.output, self._output_end = os.pipe()
        os.set_blocking(self.output, False)
        if sys.platform == "linux":
            fcntl.fcntl(self._output_end, 1031, 2 * OUT_CHUNK)  # F_SETPIPE_SZ: a reader that stops is felt soon

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return self._process.pid if self._process else None

    def start(self, boot: Json) -> None:
        """Start the process; `boot` is the first line it reads."""
        self.started = time.monotonic()
        ours, theirs = socket.socketpair()
        from_board, to_bench = os.pipe()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, str(theirs.fileno()), str(to_bench)],
                cwd=REPO,
                stdin=self._input_end.fileno(),
                stdout=self._output_end,
                stderr=log,
                pass_fds=(theirs.fileno(), to_bench),
                preexec_fn=die_with_parent,
            )
        theirs.close()
        os.close(to_bench)
        os.set_blocking(from_board, False)
        ours.setblocking(False)
        self._control = ours
        self._received = self._to_send = b""
        self._from_board = from_board
        self._selector.register(from_board, selectors.EVENT_READ, self._readable)
        self.send(boot)

    def send(self, message: Json) -> None:
        """Send one object; what doesn't fit goes out later."""
        self._to_send += json.dumps(message).encode() + b"\n"
        self._flush()

    def _flush(self, _events: int = 0) -> None:
        control = self._control
        if control is None:
            return
        try:
            while self._to_send:
                self._to_send = self._to_send[control.send(self._to_send) :]
        except BlockingIOError:
            pass
        except OSError:  # it has just died; the end is noticed elsewhere
            self._to_send = b""
        registered = control in self._selector.get_map()
        if self._to_send and not registered:
            self._selector.register(control, selectors.EVENT_WRITE, self._flush)
        elif not self._to_send and registered:
            self._selector.unregister(control)

    def _read_messages(self) -> bool:
        """Hand on what the board said; False at its end."""
        while True:
            try:
                data = os.read(self._from_board, 65536)
            except BlockingIOError:
                return True
            if not data:
                return False
            *lines, self._received = (self._received + data).split(b"\n")
            for line in lines:
                self._bench.board_said(json.loads(line))
                if self._process is None:  # that message made the bench end this process
                    return True

    def _readable(self, _events: int) -> None:
        process = self._process
        if not self._read_messages() and self._process is process:
            self.kill()
            self._bench.board_ended()

    def interrupt(self) -> None:
        """What a Ctrl-C does in the end: KeyboardInterrupt wherever the program is."""
        if self._process:
            self._process.send_signal(signal.SIGINT)

    def drain_input(self) -> None:
        """Throw away what the program has not read yet."""
        with contextlib.suppress(BlockingIOError):
            while self._input_end.recv(65536, socket.MSG_DONTWAIT):
                pass

    def input_waiting(self) -> int:
        """How many bytes the program has not read yet."""
        size = array.array("i", [0])
        fcntl.ioctl(self._input_end.fileno(), termios.FIONREAD, size)
        return size[0]

    def kill(self) -> None:
        """End the process at once, then take what it had said until then."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        self._selector.unregister(self._from_board)
        if self._control is not None:
            if self._control in self._selector.get_map():
                self._selector.unregister(self._control)
            self._control.close()
            self._control = None
        last = b""
        while data := os.read(self._from_board, 65536):
            last += data
        os.close(self._from_board)
        for line in (self._received + last).split(b"\n")[:-1]:
            message = json.loads(line)
            if "table" in message or "log" in message or "provisioned" in message:
                self._bench.board_said(message)

    def keep_last_words(self) -> None:
        """Copy the output that nobody has taken to the log."""
        with self._log.open("ab") as log, contextlib.suppress(BlockingIOError):
            log.write(os.read(self.output, 65536))

    def close(self) -> None:
        """End the process and its serial port."""
        self.kill()
        self.input.close()
        self._input_end.close()
        os.close(self.output)
        os.close(self._output_end)


class Client:
    """One connection of the control channel."""

    def __init__(self, bench: Bench, connection: socket.socket) -> None:
        self._bench = bench
        self.connection = connection
        connection.setblocking(False)
        self._received = b""
        self._to_send = b""
        bench.selector.register(connection, selectors.EVENT_READ, self._ready)

    def answer(self, request: Json, result: Json) -> None:
        """Send an answer, with the request's `id` if it had one."""
        if "id" in request:
            result = {**result, "id": request["id"]}
        self._to_send += json.dumps(result).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        if self.connection.fileno() < 0:
            return
        try:
            while self._to_send:
                self._to_send = self._to_send[self.connection.send(self._to_send) :]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._to_send else 0)
        self._bench.selector.modify(self.connection, events, self._ready)

    def _ready(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._flush()
        if not events & selectors.EVENT_READ or self.connection.fileno() < 0:
            return
        try:
            data = self.connection.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            if line.strip():
                self._bench.request(self, line)

    def close(self) -> None:
        """Forget this client."""
        if self.connection.fileno() >= 0:
            self._bench.selector.unregister(self.connection)
            self.connection.close()
        self._bench.clients.discard(self)


class Port:
    """The USB serial port as the computer sees it: a pseudo-terminal behind a link of a fixed name."""

    def __init__(self, link: Path) -> None:
        self._link = link
        self.master, slave = os.openpty()
        tty.setraw(slave)  # no echo, nothing translated; kept while the master is open
        name = os.ttyname(slave)
        os.close(slave)  # so that a hang-up shows when nobody has the port open
        os.set_blocking(self.master, False)
        with contextlib.suppress(FileNotFoundError):
            link.unlink()
        link.symlink_to(name)
        self._poll = select.poll()
        self._poll.register(self.master, 0)

    def is_open(self) -> bool:
        """Whether a program has the port open."""
        return not any(events & select.POLLHUP for _, events in self._poll.poll(0))

    def forget(self) -> None:
        """Throw away what the last program left unread."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self.master, termios.TCIOFLUSH)

    def close(self) -> None:
        """The cable is pulled: whoever has the port open sees a hang-up."""
        with contextlib.suppress(FileNotFoundError):
            self._link.unlink()
        os.close(self.master)


class Bench:
    """Everything around one board."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.dir = Path(options.dir).resolve()
        self.selector: selectors.BaseSelector = selectors.DefaultSelector()
        self.clients: set[Client] = set()
        self._options = options
        self._emulated = options.target == "emulator"
        heap = heap_kib(options.heapsize) + SHIM_KIB
        if self._emulated:
            self._command = [sys.executable, "-m", "boards.virtual.emulated"]
        else:
            self._command = [*find_micropython(), "-X", f"heapsize={heap}k", str(START)]
        self._board_data = json.loads(Path(options.board).read_text())
        self._tags = json.loads(Path(options.tags).read_text()) if options.tags else None
        self._stopping = False
        self._load()
        if self._emulated:
            self._write_image()
        self._board: Board | None = None
        self._port: Port | None = None
        self._cable_in = True
        self._connected = False
        self._to_board = b""
        self._to_host = b""
        self._kept = b""
        self._boots = 0
        self._resets: dict[str, int] = {}
        self._last_reset = ""
        self._crashes = 0
        self._dropped = 0
        self._log: list[list[Any]] = []
        self._levels: dict[str, int] = {}
        self._waiting: dict[int, tuple[Client, Json, float]] = {}
        self._next_id = 0
        self._interrupt_char = -1
        self._interrupt_at: float | None = None
        self._running = False
        self._wdt_ms: int | None = None
        self._fed_at = 0.0
        self._cut: Json | None = None
        self._ticks_ms = options.ticks_ms
        self._heap = [0, 0]
        self._model: model.Model | None = None

    # --- what is kept in the folder ------------------------------------------------------------------------------

    def _load(self) -> None:
        self.dir.mkdir(parents=True, exist_ok=True)
        self._lock = (self.dir / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BenchError(f"another bench already runs in {self.dir}") from None
        self._image = self.dir / "flash.img"
        if not self._image.exists():
            self._image.write_bytes(b"\xff" * flash.BLOCK * flash.BLOCKS)
        self._facts_path = self.dir / "bench.json"
        self._facts: Json = {"provisioned": False, "uid": secrets.token_hex(8)}
        if self._facts_path.exists():
            self._facts.update(json.loads(self._facts_path.read_text()))
        if self._options.uid:
            self._facts["uid"] = check_uid(self._options.uid)
        write_atomically(self._facts_path, self._facts)
        self._table_path = self.dir / "table.json"
        if self._table_path.exists():
            self._table: Json = json.loads(self._table_path.read_text())
        else:
            self._table = model.Model(1).saved()
        if self._options.seed is not None:
            self._table["seed"] = self._options.seed
        write_atomically(self._table_path, self._table)

    def _write_image(self) -> None:
        """For the emulator: the firmware goes onto the flash, compiled; to a new flash the provisions as well."""
        # Imported only here: the emulator is not part of every installation.
        from boards.virtual.emulated import files_of, find_image, write_files

        if find_image() is None:
            raise BenchError("no image for the emulated Pico: name an RPI_PICO .uf2 in $PICO_UF2")
        with tempfile.TemporaryDirectory() as scratch:
            files = files_of(Path(self._options.firmware).resolve(), Path(scratch))
            if self._options.provision and not self._facts["provisioned"]:
                files.update(files_of(Path(self._options.provision).resolve()))
            write_files(self._image, files)

    def _keep_table(self, saved: Json) -> None:
        self._table = saved
        write_atomically(self._table_path, saved)

    # --- power, reset, cable -------------------------------------------------------------------------------------

    def _power_on(self, cause: int, why: str, cut: Json | None = None) -> None:
        self._boots += 1
        self._last_reset = why
        self._resets[why] = self._resets.get(why, 0) + 1
        self._model = None
        self._board = Board(self, self.selector, self._command, self.dir / "board.log")
        self._cut = cut
        self._cause = cause
        self._start_process(None, {})
        self.selector.register(self._board.output, selectors.EVENT_READ, self._board_output)
        if self._cable_in:
            self._plug()

    def _start_process(self, soft: str | None, pins: Json) -> None:
        assert self._board
        self._interrupt_char = -1  # an image looks for Ctrl-C itself, and the unix port says when it does
        self._interrupt_at = None
        self._running = False
        new = not self._facts["provisioned"]
        provision = self._options.provision
        self._board.start(
            {
                "uid": self._facts["uid"],
                "cause": self._cause,
                "soft": soft,
                "pins": pins,
                "seed": self._table["seed"],
                "table": self._table,
                "tags": self._tags,
                "board": self._board_data,
                "image": str(self._image),
                "firmware": str(Path(self._options.firmware).resolve()),
                "new": new,
                "provision": str(Path(provision).resolve()) if new and provision else None,
                "ticks_ms": self._ticks_ms,
                "cut": self._cut,
                "wdt": self._wdt_ms is not None,
            }
        )
        self._cut = None

    def _power_off(self) -> None:
        """The chip loses its power or is reset: pins fall back to inputs, USB vanishes, the watchdog stops."""
        board, self._board = self._board, None
        if board is None:
            return
        self.selector.unregister(board.output)
        board.close()
        self._unplug()
        self._wdt_ms = None
        self._to_board = b""
        for what in ("motor_in1", "motor_in2"):
            if self._levels.get(what):
                self._note([now_us(), what, 0])
        # Without its driver the motor stands; what lies on the table is looked after here until the next start.
        self._model = model.Model(self._table["seed"], self._table, self._tags, now_us())
        self._keep_table(self._model.saved())
        self._fail_waiting("the board lost its power before it answered")

    def _reset(self, cause: int, why: str) -> None:
        self._power_off()
        self._power_on(cause, why)

    def _plug(self) -> None:
        if self._port is None:
            self._port = Port(self.dir / "port")
            self._connected = False

    def _unplug(self) -> None:
        if self._port is not None:
            self._watch_master(0)
            self._port.close()
            self._port = None
        self._connected = False
        self._dropped += len(self._to_host) + len(self._kept)
        self._to_host = self._kept = b""

    # --- bytes between the port and the firmware -----------------------------------------------------------------

    def _watch_master(self, events: int) -> None:
        assert self._port
        key = self.selector.get_map().get(self._port.master)
        if key is None:
            if events:
                self.selector.register(self._port.master, events, self._master_ready)
        elif not events:
            self.selector.unregister(self._port.master)
        elif key.events != events:
            self.selector.modify(self._port.master, events, self._master_ready)

    def _relay(self) -> float | None:
        """Decide what to wait for; the seconds after which to look again, or None."""
        wait: float | None = None
        if self._board is None:
            return None
        if self._port is None:
            connected = False
        else:
            connected = self._port.is_open()
            if not connected:
                wait = HANGUP_CHECK_S
                if self._connected:
                    self._port.forget()
            if not connected:
                self._keep_latest()
        if connected and not self._connected:
            self._to_host = self._kept + self._to_host
            self._kept = b""
        if self._emulated and connected != self._connected:
            self._board.send({"open": connected})  # DTR
        self._connected = connected
        self._feed()
        if self._port is not None:
            events = 0
            if connected:
                room = STDIN_RING - self._board.input_waiting() - len(self._to_board)
                if room > 0:
                    events |= selectors.EVENT_READ
                else:
                    wait = STUFFED_CHECK_S
                if self._to_host:
                    events |= selectors.EVENT_WRITE
            self._watch_master(events)
        # With the port open and nobody reading, the firmware's pipe fills and stays full: nothing is lost.
        reading = len(self._to_host) < OUT_CHUNK
        registered = self._board.output in self.selector.get_map()
        if reading and not registered:
            self.selector.register(self._board.output, selectors.EVENT_READ, self._board_output)
        elif not reading and registered:
            self.selector.unregister(self._board.output)
        return wait

    def _board_output(self, _events: int) -> None:
        assert self._board
        try:
            data = os.read(self._board.output, OUT_CHUNK)
        except BlockingIOError:
            return
        self._to_host += data
        if self._port is None:
            self._dropped += len(self._to_host)
            self._to_host = b""
        elif self._connected:
            self._write_master()
        elif not self._port.is_open():
            self._keep_latest()

    def _keep_latest(self) -> None:
        """With the port closed the board's transmit buffer keeps the newest bytes (mp_usbd_cdc.c, TinyUSB's FIFO)."""
        unread = self._kept + self._to_host
        self._to_host = b""
        self._kept = unread[-TX_FIFO:]
        self._dropped += len(unread) - len(self._kept)

    def _write_master(self) -> None:
        assert self._port
        try:
            while self._to_host:
                self._to_host = self._to_host[os.write(self._port.master, self._to_host) :]
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self._to_host = b""

    def _master_ready(self, events: int) -> None:
        if self._port is None or self._board is None:
            return
        if events & selectors.EVENT_WRITE:
            self._write_master()
        if not events & selectors.EVENT_READ:
            return
        room = STDIN_RING - self._board.input_waiting() - len(self._to_board)
        if room <= 0:
            return
        try:
            data = os.read(self._port.master, room)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:  # EIO: the last program closed the port
                raise
            return
        if self._interrupt_char >= 0 and bytes([self._interrupt_char]) in data:
            # The rp2 port empties its input ring when the interrupt character arrives (mp_usbd_cdc.c).
            data = data.rpartition(bytes([self._interrupt_char]))[2]
            self._to_board = b""
            self._board.drain_input()
            self._interrupt()
        self._to_board += data
        self._feed()

    def _feed(self) -> None:
        assert self._board
        if self._to_board:
            with contextlib.suppress(BlockingIOError):
                self._to_board = self._to_board[self._board.input.send(self._to_board) :]

    def _interrupt(self) -> None:
        """First by word, which the board obeys at its next call of ours; by signal if it makes none."""
        assert self._board
        if self._interrupt_at is None:
            self._interrupt_at = time.monotonic() + INTERRUPT_S
            self._board.send({"interrupt": 1})

    # --- what the board says -------------------------------------------------------------------------------------

    def board_said(self, message: Json) -> None:
        """One message from the firmware's process."""
        if "table" in message:
            self._keep_table(message["table"])
        elif "log" in message:
            self._note(message["log"])
        elif "reply" in message:
            self._reply(message)
        elif "feed" in message:
            self._fed_at = time.monotonic()
        elif "wdt" in message:
            self._wdt_ms = message["wdt"]
            self._fed_at = time.monotonic()
        elif "interrupted" in message:
            self._interrupt_at = None
        elif "kbd_intr" in message:
            self._interrupt_char = message["kbd_intr"]
            if self._interrupt_char < 0:
                # The board looks for the byte itself, and has not seen one in time.
                self._interrupt_at = None
        elif "provisioned" in message:
            self._facts["provisioned"] = True
            write_atomically(self._facts_path, self._facts)
        elif "cut" in message:
            self._last_reset = f"power cut at a {message['cut']}"
            self._power_off()
        elif "reset" in message:
            self._reset(message["reset"], "reset")
        elif "rebooted" in message:
            self._rebooted({"WATCHDOG": "watchdog", "RUN_PIN": "button"}.get(message["rebooted"], "power"))
        elif "heap" in message:
            self._heap = message["heap"]
            # Now the program begins. A Ctrl-C that came before is its own, and not start.py's.
            self._running = True
            if self._interrupt_at is not None:
                self._interrupt_at = time.monotonic() + INTERRUPT_S
        elif "soft" in message:
            self._soft_reset(message["kind"], message["soft"])

    def _soft_reset(self, kind: str, pins: Json) -> None:
        """Only the interpreter starts anew: USB, watchdog and GPIO outputs go on."""
        assert self._board
        self._board.kill()
        self._resets["soft"] = self._resets.get("soft", 0) + 1
        self._fail_waiting("the board was reset before it answered")
        self._start_process(kind, pins)

    def _rebooted(self, why: str) -> None:
        """The emulated chip was reset inside its process: the computer sees its USB port go and come."""
        self._boots += 1
        self._last_reset = why
        self._resets[why] = self._resets.get(why, 0) + 1
        self._unplug()
        if self._cable_in:
            self._plug()

    def board_ended(self) -> None:
        """The process ended by itself, which a Pico does not do: shown as a crash, and a reset (or left off)."""
        self._crashes += 1
        assert self._board
        self._board.keep_last_words()
        if time.monotonic() - self._board.started < CRASH_S:
            self._last_reset = "crash"
            self._power_off()
        else:
            self._reset(PWRON_RESET, "crash")

    def _note(self, entry: list[Any]) -> None:
        motor = entry[1] in ("motor_in1", "motor_in2")
        if motor and self._levels.get(entry[1], 0) == entry[2]:
            return  # after a soft reset the pins go on as they were
        self._levels[entry[1]] = entry[2]
        self._log.append([*entry, self._boots])
        if len(self._log) > LOG_MAX:
            del self._log[: LOG_MAX // 4]

    def _reply(self, message: Json) -> None:
        waiting = self._waiting.pop(message["reply"], None)
        if waiting is None:
            return
        client, request, _ = waiting
        if "error" in message:
            client.answer(request, {"ok": False, "error": message["error"]})
        else:
            result = message["result"]
            if request["do"] == "state":
                result = self._whole_state(result)
            client.answer(request, {"ok": True, **result})

    # --- the control channel -------------------------------------------------------------------------------------

    def request(self, client: Client, line: bytes) -> None:
        """Do what one line of a client asks for."""
        try:
            request = json.loads(line)
        except ValueError as error:
            client.answer({}, {"ok": False, "error": f"this line is not JSON: {error}"})
            return
        if not isinstance(request, dict) or not isinstance(request.get("do"), str):
            error_text = 'a request is an object with "do", such as {"do": "lid", "to": "open"}'
            client.answer(request if isinstance(request, dict) else {}, {"ok": False, "error": error_text})
            return
        try:
            result = self._do(client, request)
        except (BenchError, model.Refused) as error:
            result = {"ok": False, "error": str(error)}
        if result is not None:
            client.answer(request, result)

    def _do(self, client: Client, request: Json) -> Json | None:
        name = request["do"]
        args = {key: value for key, value in request.items() if key not in ("do", "id")}
        allowed = {**BENCH_COMMANDS, **model.COMMANDS}
        if name not in allowed:
            raise BenchError(f"{name!r} is no command; allowed: {', '.join(sorted(allowed))}")
        for key in args:
            if key not in allowed[name]:
                raise BenchError(f"{name} takes no {key!r}; allowed: {', '.join(allowed[name]) or 'nothing'}")
        if name == "help":
            return {
                "ok": True,
                "commands": {one: list(allowed[one]) for one in sorted(allowed)},
                "faults": model.FAULTS,
                "bench": os.getpid(),
            }
        if name == "power":
            return self._do_power(args)
        if name == "cable":
            return self._do_cable(args)
        if name == "reset":
            if self._board is None:
                raise BenchError("the power is off; allowed: power on")
            self._reset(PWRON_RESET, "button")
            return {"ok": True, "boots": self._boots}
        if name == "log":
            log = list(self._log)
            if args.get("clear"):
                self._log.clear()
            return {"ok": True, "log": [dict(zip(("us", "what", "value", "boot"), one)) for one in log]}
        if name == "ticks":
            if self._emulated:
                raise BenchError("ticks is only for the unix port; the emulated Pico starts at 0")
            ms = args.get("ms")
            if not isinstance(ms, int) or isinstance(ms, bool) or not 0 <= ms < 1 << 30:
                raise BenchError(f"ms must be a whole number from 0 to {(1 << 30) - 1}, not {ms!r}")
            self._ticks_ms = ms
            return {"ok": True, "from": "the next start"}
        if name == "stop":
            self._stopping = True
            return {"ok": True}
        if name == "cut":
            args = self._check_cut(args)
        if "bounce" in args:
            bounce = args["bounce"]
            if not isinstance(bounce, int) or isinstance(bounce, bool) or not 0 <= bounce <= 1000:
                raise BenchError(f"bounce must be a whole number from 0 to 1000, not {bounce!r}")
        if self._board is not None:
            self._next_id += 1
            patience = STATE_S if name == "state" else ANSWER_S
            self._waiting[self._next_id] = (client, request, time.monotonic() + patience)
            self._board.send({"id": self._next_id, "do": name, "args": args})
            return None
        if name == "cut":
            raise BenchError("the power is off; allowed: power on with cut")
        assert self._model
        if name == "state":
            return {"ok": True, **self._whole_state(self._model.state(now_us()))}
        args.pop("bounce", None)
        result = self._model.command(now_us(), name, args)
        self._keep_table(self._model.saved())
        return {"ok": True, **result}

    def _check_cut(self, cut: Any) -> Json:
        if not isinstance(cut, dict) or set(cut) - {"at", "torn", "only"}:
            raise BenchError(f"cut takes at, torn and only, not {cut!r}")
        at = cut.get("at")
        if at is not None and (not isinstance(at, int) or isinstance(at, bool) or at < 1):
            raise BenchError(f"at must be a whole number from 1, or null for no cut, not {at!r}")
        if cut.get("only") not in (None, "program", "erase"):
            raise BenchError(f"only must be program, erase or null, not {cut['only']!r}")
        return {"at": at, "torn": bool(cut.get("torn")), "only": cut.get("only")}

    def _do_power(self, args: Json) -> Json:
        to = args.get("to")
        if to not in ("on", "off"):
            raise BenchError(f"to must be on or off, not {to!r}")
        if to == "off":
            self._power_off()
        elif self._board is None:
            self._power_on(PWRON_RESET, "power", self._check_cut(args["cut"]) if args.get("cut") else None)
        return {"ok": True, "boots": self._boots}

    def _do_cable(self, args: Json) -> Json:
        to = args.get("to")
        if to not in ("in", "out"):
            raise BenchError(f"to must be in or out, not {to!r}")
        self._cable_in = to == "in"
        if not self._cable_in:
            self._unplug()
        elif self._board is not None:
            self._plug()
        return {"ok": True}

    def _whole_state(self, table: Json) -> Json:
        edges = [
            {"us": us, "pin": what, "duty": value, "boot": boot}
            for us, what, value, boot in self._log
            if what in ("motor_in1", "motor_in2")
        ]
        return {
            **table,
            "answered": True,
            "power": self._board is not None,
            "cable": "in" if self._cable_in else "out",
            "connected": self._connected,
            "port": str(self.dir / "port"),
            "pid": self._board.pid if self._board else None,
            "uid": self._facts["uid"],
            "heap_at_start": {"free": self._heap[0], "used": self._heap[1]},
            "boots": self._boots,
            "resets": self._resets,
            "last_reset": self._last_reset,
            "crashes": self._crashes,
            "wdt_ms": self._wdt_ms,
            "dropped": self._dropped,
            "edges": edges[-EDGES_MAX:],
        }

    def _fail_waiting(self, text: str) -> None:
        """The process that was asked is gone: whoever asked is told so, or gets what the bench itself knows."""
        for number in list(self._waiting):
            self._give_up(number, text)

    def _give_up(self, number: int, text: str) -> None:
        client, request, _ = self._waiting.pop(number)
        if request["do"] == "state":
            table = model.Model(self._table["seed"], self._table, self._tags, now_us()).state(now_us())
            client.answer(request, {"ok": True, **self._whole_state(table), "answered": False})
        else:
            client.answer(request, {"ok": False, "error": text})

    # --- the loop ------------------------------------------------------------------------------------------------

    def _overdue(self) -> float | None:
        """Do what time has brought; the seconds until it brings more."""
        now = time.monotonic()
        times = []
        if self._wdt_ms is not None:
            # Feeds are told of an eighth of the time late at most (machine.WDT).
            bites_at = self._fed_at + self._wdt_ms * 1.125 / 1000
            if now >= bites_at:
                self._reset(WDT_RESET, "watchdog")
            else:
                times.append(bites_at)
        if self._interrupt_at is not None and self._running:
            if now >= self._interrupt_at:
                self._interrupt_at = None
                if self._board:
                    self._board.interrupt()
            else:
                times.append(self._interrupt_at)
        for number, (_, _, until) in list(self._waiting.items()):
            if now >= until:
                self._give_up(number, f"the firmware served nobody for {ANSWER_S:.0f} s; power, reset and cable work")
            else:
                times.append(until)
        return max(0.0, min(times) - now) if times else None

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        self.clients.add(Client(self, connection))

    def stop(self, *_: Any) -> None:
        """End the loop soon."""
        self._stopping = True

    def _parent_gone(self, _events: int) -> None:
        if not os.read(0, 4096):
            self._stopping = True

    def run(self, powered: bool = True) -> None:
        """Serve until told to stop."""
        listener = bind_unix(self.dir / "control")
        self.selector.register(listener, selectors.EVENT_READ, lambda _events: self._accept(listener))
        if self._options.exit_with_parent:
            self.selector.register(0, selectors.EVENT_READ, self._parent_gone)
        woken, waker = socket.socketpair()
        waker.setblocking(False)
        woken.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        self.selector.register(woken, selectors.EVENT_READ, lambda _events: woken.recv(4096) and None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.stop)
        try:
            if powered:
                self._power_on(PWRON_RESET, "power")
            else:
                self._model = model.Model(self._table["seed"], self._table, self._tags, now_us())
            while not self._stopping:
                waits = [wait for wait in (self._overdue(), self._relay()) if wait is not None]
                for key, events in self.selector.select(min(waits) if waits else None):
                    # An earlier event of this round may have closed this one's file.
                    if self.selector.get_map().get(key.fd) is key or key.fileobj in self.selector.get_map():
                        callback: Callable[[int], None] = key.data
                        callback(events)
        finally:
            self._power_off()
            for client in list(self.clients):
                client.close()
            listener.close()
            with contextlib.suppress(FileNotFoundError):
                (self.dir / "control").unlink()


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m boards.virtual.bench", description="A virtual table to plug into.")
    parser.add_argument("--dir", required=True, help="folder of this table: port, control, flash.img, table.json")
    parser.add_argument("--seed", type=int, help="what the dice depend on (default 1, or what the folder says)")
    parser.add_argument("--uid", help="the board's unique id, 8 bytes in hex (default: made up once for the folder)")
    parser.add_argument("--heapsize", default="480k", help="the heap the firmware finds (default 480k: a Pico's)")
    parser.add_argument(
        "--target", choices=("sim", "emulator"), default="sim", help="MicroPython's unix port, or an emulated RP2040"
    )
    parser.add_argument("--provision", help="folder whose files a new flash gets")
    parser.add_argument("--firmware", default=str(REPO / "firmware"), help="folder with boot.py, main.py and packages")
    parser.add_argument("--board", default=str(REPO / "boards/rpi_pico/board.json"), help="which pin does what")
    parser.add_argument("--tags", help="JSON file with the dice's tags: 3 lists of 6 UIDs (default: the model's own)")
    parser.add_argument("--ticks-ms", type=int, default=0, help="where the Pico's tick counter starts")
    parser.add_argument("--off", action="store_true", help="begin without power")
    parser.add_argument("--exit-with-parent", action="store_true", help="stop when standard input ends")
    options = parser.parse_args(arguments)
    for name in ("board", "tags"):
        path = getattr(options, name)
        if path and not Path(path).is_file():
            parser.error(f"--{name}: there is no file {path}")
    for name in ("firmware", "provision"):
        path = getattr(options, name)
        if path and not Path(path).is_dir():
            parser.error(f"--{name}: there is no folder {path}")
    if options.seed is not None and not 0 <= options.seed < 1 << 30:
        parser.error(f"--seed must be from 0 to {(1 << 30) - 1}, not {options.seed}")
    return options


def fail(text: str) -> NoReturn:
    """Say what is wrong and end."""
    print(f"error: {text}", file=sys.stderr)
    sys.exit(2)


def main() -> None:
    """Run a bench until it is stopped."""
    options = parse()
    try:
        bench = Bench(options)
        print(f"virtual table: port {bench.dir / 'port'}, control {bench.dir / 'control'}", flush=True)
        bench.run(powered=not options.off)
    except (BenchError, RuntimeError, OSError, json.JSONDecodeError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
