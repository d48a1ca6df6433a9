"""The files on a controller's flash, by MicroPython's raw prompt (mpremote): read, and written in one step.

A running table is asked to stop first, and only between rounds.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import struct
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import NamedTuple

from mpremote.transport import TransportError, TransportExecError  # type: ignore[import-untyped]
from mpremote.transport_serial import SerialTransport as RawPrompt  # type: ignore[import-untyped]
from serial import SerialException

from dragoneye import protocol
from dragoneye.errors import BadInput
from host_tools.i18n import _
from host_tools.link import Link, LinkClosed, LinkError, Message, Prompt, SerialTransport

# States in which a table may be stopped: no round is open.
MAY_STOP = (protocol.IDLE, protocol.SETTLED, protocol.FAULT)
COME_BACK_S = 60.0
# A port that is still there so long after a reset does not go away with it.
GONE_S = 1.0
PROMPT = b">>> "
ENTER_TRIES = 3
ENTER_S = 5.0
# How many starts of a board that goes again before it has answered are waited for as those of a table.
ASKED_STARTS = 2
# How long a board that ends its program again and again is tried to be stopped.
INSIST_S = 60.0
SILENT_S = 20.0
# How long a script may say nothing.
SCRIPT_S = 10.0
BLINK_S = 3.0
# How long a board that was let go after Ctrl-C is waited for.
GIVE_BACK_S = 15.0
# How long a board on which no table ran is waited for; one that was in maintenance comes back as a table.
UNSURE_S = 10.0
# How long a board is waited for when something went wrong; it may have gone for good.
AFTER_S = 5.0


class MayNotStop(BadInput):
    """The table may not be stopped now: a round is open, it is in test mode, or it is locked."""


class NoPrompt(BadInput):
    """What is at the port does not answer as MicroPython's prompt."""


class BoardError(BadInput):
    """A script on the board ended with an error; the text is what MicroPython said."""


def greet(port: str) -> tuple[Message, Message]:
    """What the table on a port says to hello, and its live state. Raises LinkError when no table answers.

    Nothing that the table records is taken: its events stay unacknowledged.
    """
    link = Link(SerialTransport(port))
    try:
        return link.hello(0, 0), link.request("status")
    finally:
        link.close()


def stop_table(port: str) -> Message | None:
    """Let a table restart into maintenance, where the watchdog is not armed, and wait until it is there.

    Returns what it said to hello; None when no table runs there, but the prompt answers or maintenance waits already.

    Raises BadInput while a round is open or when the table is locked, and LinkError when nothing answers.
    """
    link = Link(SerialTransport(port))
    try:
        table = link.hello(0, 0)
        if table.get("locked"):
            words = _(
                "{port}: table {uid} is locked. Turn its service key on and press reset, then do the same again; turn "
                "the key off and press reset afterwards"
            )
            raise MayNotStop(words.format(port=port, uid=table.get("uid")))
        state = link.request("status")
        if state.get("state") == protocol.TEST:
            words = _("{port}: the table is in test mode; end it first: tablectl play --port {port}, then test on=no")
            raise MayNotStop(words.format(port=port))
        if state.get("state") not in MAY_STOP:
            words = _("{port}: a round is open, the table is {state}; finish it first")
            raise MayNotStop(words.format(port=port, state=state.get("state")))
        # A Pico's own USB goes with the reset: the answer may be lost with it.
        with contextlib.suppress(LinkClosed):
            link.request("maintenance")
        link = _in_maintenance(link, port)
    except Prompt:
        return None
    except LinkError:
        if link.in_maintenance:
            return None
        raise
    finally:
        link.close()
    return table


def _in_maintenance(link: Link, port: str) -> Link:
    """Wait until the board says that it is in maintenance, or is at its prompt as its service key is held. The link,
    or a new one when the port has gone meanwhile: a Ctrl-C before main.py has done its part would come too early."""
    end = time.monotonic() + COME_BACK_S
    while not link.in_maintenance and not link.at_prompt:
        if time.monotonic() >= end:
            raise LinkError(_("the table does not restart for maintenance; press its reset"))
        try:
            link.poll(0.05)
        except LinkClosed:
            link.close()
            wait_for_port(port)
            link = Link(SerialTransport(port))
    return link


def wait_for_port(port: str, seconds: float | None = None) -> None:
    """After a reset: wait until the port is there again, COME_BACK_S or so many seconds at most."""
    end = time.monotonic() + (COME_BACK_S if seconds is None else seconds)
    while True:
        try:
            SerialTransport(port).close()
            return
        except LinkError:
            if time.monotonic() >= end:
                raise
        time.sleep(0.05)


# What runs may have armed the watchdog, which MicroPython cannot stop. Its register can, as in the Pico SDK's
# watchdog_disable: CTRL, bit ENABLE, by the alias that clears bits (RP2040 2.1.2, 4.7.6; RP2350 2.1.3, 12.9.7).
DISARM = """
import machine, os
u = os.uname()[4]
if "RP2" in u:
    machine.mem32[(0x400d8000 if "RP2350" in u else 0x40058000) + 0x3000] = 1 << 30
"""
_SERVICE_KEY = """
import json
from machine import Pin
try:
    with open("/board.json") as f:
        n = json.load(f)["pins"]["service"]
except Exception:
    n = 20
print(Pin(n, Pin.IN, Pin.PULL_UP).value())
"""


class Started(NamedTuple):
    """What came of a board's start: what its table said to hello, or why it said nothing.

    `told` is None where the service key keeps the board at its prompt (`key_is_on`), and where no table answers on a
    board on which none ran before either.
    """

    told: Message | None
    key_is_on: bool


class BoardFiles:
    """The files of the controller on `port`; its program does not run meanwhile. A context manager, which resets the
    board at its end, whatever ended it, unless `start` or `reset` has done so.

    `ran` tells whether a table ran there. With `insist` whatever else runs there is stopped as well: a program that is
    not ours, or a table that ends again and again. Every method raises BadInput when the board does not answer as
    MicroPython.
    """

    def __init__(self, port: str, insist: bool = False) -> None:
        self.port = port
        self.ran = False
        self._stopped = False
        # Whether the board has been reset since it was taken.
        self._left = False
        try:
            if insist:
                self._insist()
            else:
                self.ran = stop_table(port) is not None
                self._stopped = True
                self._take()
        except (KeyboardInterrupt, SystemExit):
            self._give_back()
            raise
        except BadInput as error:
            if self.ran and not self._give_back():
                raise BadInput(_still_stopped(port, error)) from None
            raise

    def _give_back(self) -> bool:
        """When stopping it was broken off: a table shall run again, not wait in maintenance. Whether it may."""
        end = time.monotonic() + GIVE_BACK_S
        while time.monotonic() < end:
            try:
                wait_for_port(self.port, GIVE_BACK_S)
                if not self._stopped:
                    stop_table(self.port)
                    self._stopped = True
                self._take()
                self.reset(GIVE_BACK_S)
                return True
            except MayNotStop:
                return True
            except BadInput:
                # While it restarts it refuses, and its port comes and goes.
                time.sleep(0.2)
        return False

    def _insist(self) -> None:
        """Ask whatever runs to stop, where it can be asked, and stop it."""
        # A busy port, or none, is told soon; that of a board that resets again and again is there now and then.
        wait_for_port(self.port, BLINK_S)
        end = time.monotonic() + INSIST_S
        silent_end = time.monotonic() + SILENT_S
        cut_short = 0
        while True:
            # To be asked takes time, which one that resets again and again does not have. A table that refuses is left.
            if cut_short < ASKED_STARTS:
                try:
                    self.ran = self._asked() or self.ran
                except LinkClosed:
                    cut_short += 1
                    wait_for_port(self.port)
                    continue
            try:
                self._take()
                return
            except BadInput as error:
                if time.monotonic() >= (silent_end if isinstance(error, NoPrompt) else end):
                    raise
            wait_for_port(self.port)

    def _asked(self) -> bool:
        """Whether a table ran, and has stopped. Raises LinkClosed when the port went before it answered."""
        try:
            ran = stop_table(self.port) is not None
            self._stopped = True
            return ran
        except LinkClosed:
            raise
        except LinkError:
            return False

    def _take(self) -> None:
        """Get to the raw prompt with no watchdog armed: one that is would reset the board in the midst of a copy."""
        with self._told():
            self._prompt = RawPrompt(self.port, timeout=10)
            try:
                self._enter()
                with contextlib.suppress(TransportExecError):
                    # Of a board that is none of ours the watchdog is not known; it will be told elsewhere.
                    self._prompt.exec(DISARM)
            except BaseException:
                self._prompt.serial.close()
                raise

    def _enter(self) -> None:
        """Stop the program, then take the raw prompt: at once when the prompt shows, as a watchdog may be running.

        Ctrl-C empties MicroPython's input, also of the Ctrl-A that mpremote sends right after it: so what runs is
        stopped beforehand. What a vain try brings late must not be taken for the answer to the next one.
        """
        self._prompt.serial.write(b"\r\x03")
        self._drain(PROMPT)
        for _attempt in range(ENTER_TRIES - 1):
            with contextlib.suppress(TransportError):
                self._prompt.enter_raw_repl(soft_reset=False, timeout_overall=ENTER_S)
                return
            self._drain()
        self._prompt.enter_raw_repl(soft_reset=False, timeout_overall=ENTER_S)

    def _drain_to_end(self) -> None:
        """Read until the port goes, or nothing comes."""
        with contextlib.suppress(BadInput), self._told():
            self._drain(quiet=GONE_S)

    def _drain(self, end: bytes = b"\0never", quiet: float = 0.5) -> None:
        """Read until this has come, or nothing for so many seconds."""
        self._prompt.read_until(1, end, timeout=quiet, timeout_overall=10.0)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """mpremote's failures in words; what it prints besides is dropped."""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        except (TransportError, SerialException, OSError, struct.error) as error:
            # struct.error: mpremote's own, of a port that says nothing.
            last = str(error).strip().splitlines()[-1:] or [repr(error)]
            words = _("{port}: MicroPython's prompt does not answer as it should ({why})")
            kind = NoPrompt if "could not enter" in str(error) else BadInput
            raise kind(words.format(port=self.port, why=last[0])) from None

    def read(self, name: str) -> bytes | None:
        """The content of a file in the root, None when it is not there."""
        with self._told():
            if not self._prompt.fs_exists("/" + name):
                return None
            return bytes(self._prompt.fs_readfile("/" + name))

    def write(self, files: Mapping[str, bytes]) -> None:
        """Put files in the root in one step: beside the old ones, checked by hash, then renamed over them."""
        with self._told():
            for name, content in files.items():
                self._prompt.fs_writefile(f"/{name}.new", content)
                self._check(f"/{name}.new", content)
            renames = [f"os.rename({f'/{name}.new'!r},{'/' + name!r})" for name in files]
            self._prompt.exec("\n".join(["import os", *renames, "os.sync()"]))
            for name, content in files.items():
                self._check("/" + name, content)

    def service_key_is_on(self) -> bool:
        """Whether the board's next start leaves the prompt, as its service key is on."""
        return self.run(_SERVICE_KEY).strip() == b"0"

    def run(self, script: str) -> bytes:
        """Run a script on the board; what it printed. Raises BoardError with what ended it."""
        with self._told():
            said, failed = self._prompt.exec_raw(script, timeout=SCRIPT_S)
        if failed:
            raise BoardError(failed.decode(errors="replace"))
        return bytes(said)

    def _check(self, path: str, content: bytes) -> None:
        if self._prompt.fs_hashfile(path, "sha256") != hashlib.sha256(content).digest():
            raise BadInput(_("{port}: {file} on the board is not what was written").format(port=self.port, file=path))

    def start(self, expected: bool = False) -> Started:
        """Reset the board and wait for its table, where one ran before or is `expected`; what came of it.

        Raises LinkError when the board, or a table that must be there, does not come back.
        """
        key_is_on = self.service_key_is_on()
        sure = self.ran or expected
        try:
            self.reset()
            if key_is_on:
                return Started(None, True)
            return Started(wait_for_table(self.port, COME_BACK_S if sure else UNSURE_S), False)
        except Prompt:
            if sure:
                raise
        except LinkError as error:
            if sure or key_is_on:
                raise LinkError(_still_stopped(self.port, error)) from None
        return Started(None, False)

    def reset(self, seconds: float | None = None) -> bool:
        """A hard reset: the table starts as after power-on. The port goes with it; wait until it is back.

        Returns whether the board took the request; it may go before it has answered. Raises LinkError when it does not
        come back within so many seconds, or COME_BACK_S.
        """
        taken = False
        with contextlib.suppress(BadInput), self._told():
            self._prompt.exec_raw_no_follow("import machine\nmachine.reset()")
            taken = True
        self._left = True
        self._drain_to_end()
        self.close()
        wait_for_port(self.port, seconds)
        return taken

    def close(self) -> None:
        """Give the port back."""
        with contextlib.suppress(OSError, SerialException):
            self._prompt.close()

    def __enter__(self) -> BoardFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._leave(error)
        except (KeyboardInterrupt, SystemExit):
            self._leave(error)
            raise

    def _leave(self, error: BaseException | None) -> None:
        """Reset the board unless that has been done."""
        if self._left:
            return
        seconds = COME_BACK_S if error is None else AFTER_S
        try:
            # It may have gone before it answered; at a prompt that was there before nothing is to come back.
            if not self.reset(seconds) and (self.ran or error is not None):
                wait_for_table(self.port, seconds)
        except LinkError as failed:
            raise BadInput(_still_stopped(self.port, error or failed)) from None


def _still_stopped(port: str, error: BaseException) -> str:
    """What is said when the board may not have been started again after an error."""
    if not isinstance(error, BadInput):
        return _("{port}: the table may still be stopped: press its reset, or plug it in again").format(port=port)
    words = _("{why}; the table may still be stopped: press its reset, or plug it in again")
    return words.format(why=error)


def wait_for_table(port: str, timeout: float = COME_BACK_S) -> Message:
    """After a reset: what the table says to hello. Raises LinkError when it does not come back."""
    end = time.monotonic() + timeout
    while True:
        try:
            return greet(port)[0]
        except Prompt:
            raise
        except LinkError:
            if time.monotonic() >= end:
                raise
        time.sleep(0.2)
