"""The host's end of the wire: frames over a byte stream, requests answered once, events in order exactly once.

A `Transport` moves bytes and knows the time; `SerialTransport` is a real port, tests have one that loses lines.
"""

from __future__ import annotations

import errno
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import serial

from dragoneye import protocol
from dragoneye.errors import BadInput
from dragoneye.keys import GOOD_FOR, KEEPERS, Key
from dragoneye.protocol import TECHNICIAN
from dragoneye.text import dumps, show
from host_tools import codes
from host_tools.i18n import _, controller
from host_tools.keys import RING, signed

RETRY_S = 0.4
GIVE_UP_S = 12.0
# A record's tag: 8 bytes in hex (dragoneye.journal).
TAG_MAX = 16
MAINTENANCE = b"maintenance:"
# A prompt that has answered alone for so long is all that there is.
PROMPT_S = 4.0
Message = dict[str, Any]


class LinkError(BadInput):
    """The table cannot be talked to; the text says why and what to do."""


class LinkClosed(LinkError):
    """The port has gone: the cable was pulled, or the board has lost its power."""


class Prompt(LinkError):
    """MicroPython's prompt answers in the table's place."""


class SessionLost(LinkError):
    """The table restarted or another host spoke to it: say hello, then look at its state before going on."""


class Refused(BadInput):
    """The table refused a request: `code` is one of codes.ERRORS, `state` the table's state."""

    def __init__(self, request: str, code: str, why: str, state: str) -> None:
        super().__init__(f"{request}: {why} ({code})")
        self.code = code
        self.why = why
        self.state = state


class Signer(Protocol):
    """Whoever has the tables' keys. See host_tools.keys.Ring."""

    def key(self, uid: str, key_id: str, roles: Sequence[str]) -> tuple[str, Key]:
        """(role, key) of the first of `roles` whose key of the set `key_id` is held. Raises BadInput."""

    def knows(self, uid: str) -> bool:
        """Whether keys of the table are held."""


class Transport(Protocol):
    """A byte stream with its own clock."""

    def read(self, timeout: float) -> bytes:
        """What has arrived, waiting up to `timeout` seconds for the first byte; b"" when nothing came."""

    def write(self, data: bytes) -> None:
        """Send; raises LinkClosed when the port has gone."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""

    def close(self) -> None:
        """Give the port back."""


class SerialTransport:
    """A serial port by its path or name; exclusive, so that two hosts never share a table."""

    def __init__(self, port: str) -> None:
        self.port = port
        try:
            self._serial = serial.Serial(port, timeout=0, write_timeout=2, exclusive=True)
        except (serial.SerialException, OSError, ValueError) as error:
            raise LinkError(_why_not(port, error)) from None

    def read(self, timeout: float) -> bytes:
        try:
            self._serial.timeout = timeout
            first = self._serial.read(1)
            return bytes(first + self._serial.read(self._serial.in_waiting)) if first else b""
        except (serial.SerialException, OSError, TypeError) as error:
            # TypeError: pyserial's own reaction to a descriptor that was closed under it.
            raise LinkClosed(_("{port}: the port has gone ({error})").format(port=self.port, error=error)) from None

    def write(self, data: bytes) -> None:
        try:
            self._serial.write(data)
        except serial.SerialTimeoutException:
            # Nobody reads at the other end; what is asked is asked again.
            return
        except (serial.SerialException, OSError, TypeError) as error:
            raise LinkClosed(_("{port}: the port has gone ({error})").format(port=self.port, error=error)) from None

    def dtr(self) -> bool | None:
        """Whether DTR is set, which a board takes for a host that listens; None where there is no such line."""
        try:
            import fcntl
            import termios

            lines = fcntl.ioctl(self._serial.fileno(), termios.TIOCMGET, bytes(4))
            return bool(int.from_bytes(lines, sys.byteorder) & termios.TIOCM_DTR)
        except (ImportError, OSError):
            return None

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        self._serial.close()


def _why_not(port: str, error: Exception) -> str:
    number = getattr(error, "errno", None)
    text = str(error)
    # Windows lets one program at a time open a port, and says no more than that it denies it.
    denied = sys.platform == "win32" and "PermissionError" in text
    if number in (errno.EAGAIN, errno.EBUSY) or denied or "exclusively lock" in text or "busy" in text.lower():
        return _("{port}: the port is busy; another program holds it").format(port=port)
    if number == errno.EACCES:
        return _("{port}: no permission to open the port; add yourself to its group, often dialout").format(port=port)
    if number in (errno.ENOENT, errno.ENXIO) or "FileNotFoundError" in text or "No such file" in text:
        return _("{port}: there is no such port; `tablectl ports` lists those that exist").format(port=port)
    return _("{port}: cannot be opened as a serial port ({error})").format(port=port, error=error)


class Link:
    """Requests and events over one transport.

    `on_event(record, hash, tag)` must have made the record durable when it returns; then it is acknowledged. It returns
    False for a record that does not follow what is stored (a later one; it will come again); without it nothing is
    taken. `on_state(view)` is given each live state. At a table with keys, `signer` signs what needs it.
    """

    def __init__(
        self,
        transport: Transport,
        on_event: Callable[[Message, str, str], bool] = lambda record, link, tag: False,
        on_state: Callable[[Message], None] = lambda view: None,
        signer: Signer = RING,
    ) -> None:
        self.transport = transport
        self.counters = {"frames": 0, "noise": 0, "retries": 0, "events": 0, "stray": 0}
        self.table: Message = {}
        self._on_event = on_event
        self._on_state = on_state
        self._buffer = b""
        self._seq = secrets.randbelow(protocol.SEQ_MAX // 2) + 1
        self._answers: dict[int, Message] = {}
        self._waiting: int | None = None
        self._prompt = False
        self._signer = signer
        # The last counter that was signed in this boot of the table, and whether it has lost its keys.
        self._counter = 0
        self._lost: bool | None = None
        # The table has restarted for maintenance and says so (firmware/main.py).
        self.in_maintenance = False

    @property
    def at_prompt(self) -> bool:
        """Whether MicroPython's prompt has shown since the table spoke last."""
        return self._prompt or b">>>" in self._buffer

    def hello(self, last_event: int, last_round: int, keeps: bool = False, **more: Any) -> Message:
        """Start a session; `last_event` and `last_round` are the highest that are stored here, `more` its other fields.

        With `keeps` this host keeps the record: a table with keys that has said who it is takes its word on it where
        one of KEEPERS' keys is held. Any other hello looks on.

        Returns who the table is. Raises LinkError when nothing that speaks this protocol answers, or it refuses.
        """
        # Far from every number of an earlier session, so that a late line of one cannot be taken for one of this.
        self._seq = secrets.randbelow(protocol.SEQ_MAX // 2) + 1
        try:
            self.table = self._ask(
                {
                    "q": "hello",
                    "major": protocol.MAJOR,
                    "minor": protocol.MINOR,
                    "last_event": last_event,
                    "last_round": last_round,
                    **more,
                },
                keeps=keeps,
            )
        except Refused as refused:
            raise LinkError(refused.why) from None
        counter = self.table.get("counter")
        self._counter = counter if isinstance(counter, int) else 0
        self._lost = None
        major = self.table.get("major")
        if major != protocol.MAJOR:
            raise LinkError(
                _("the table speaks protocol {theirs}.{minor}, this program {ours}.{mine}").format(
                    theirs=show(major), minor=show(self.table.get("minor")), ours=protocol.MAJOR, mine=protocol.MINOR
                )
            )
        return self.table

    def request(self, name: str, as_role: str | None = None, **fields: Any) -> Message:
        """Do one request of protocol.REQUESTS; the answer's fields.

        A table with keys wants it signed: by `as_role` where that may ask for it, else by the lowest role that may and
        whose key is held.

        Raises Refused, SessionLost (look at the state before asking again), LinkClosed or LinkError; BadInput, when
        nothing was asked, where the key that it needs is not held or the request is too long.
        """
        try:
            return self._ask({"q": name, **fields}, as_role)
        except Refused as refused:
            if refused.code == "E_HELLO":
                raise SessionLost(_("the table has restarted or was spoken to by another host")) from None
            raise

    def _frame(self, seq: int, message: Message, as_role: str | None, keeps: bool) -> bytes:
        """The request's frame, signed where it has to be."""
        name = message["q"]
        roles = GOOD_FOR.get(protocol.REQUESTS[name][0] if name in protocol.REQUESTS else "", ())
        if keeps:
            roles = KEEPERS
        body = protocol.body_of(seq, dumps(message))
        if not roles:
            return bytes(protocol.seal(body))
        uid = str(self.table.get("uid"))
        if self.table.get("unprovisioned", True):
            if keeps:
                return bytes(protocol.seal(body))
            if self._lost is None:
                self._lost = self._signer.knows(uid)
            # A technician's requests are those that put it right.
            if self._lost and roles != GOOD_FOR[TECHNICIAN]:
                words = _(
                    "table {uid} had keys, and now says that it has none: its flash was exchanged or emptied. Give it "
                    "keys again (tablectl keys provision), or let this computer forget it: tablectl keys forget {uid}"
                )
                raise BadInput(words.format(uid=uid))
            return bytes(protocol.seal(body))
        key_id = self.table.get("key_id")
        if key_id is None:
            # Its keys are damaged: it says so itself.
            return bytes(protocol.seal(body))
        chosen = (as_role,) if as_role in roles else roles
        try:
            role, key = self._signer.key(uid, str(key_id), chosen)
        except BadInput:
            if not keeps:
                raise
            # It can look on all the same.
            return bytes(protocol.seal(body))
        self._counter += 1
        return bytes(protocol.seal(signed(body, role, self._counter, key, uid, str(self.table.get("nonce")))))

    def challenge(self, seed: str) -> str:
        """What the table makes of a challenge's seed: with keys, what only the technician's can make of it.

        Raises BadInput where that is not held.
        """
        key_id = self.table.get("key_id")
        if self.table.get("unprovisioned", True) or key_id is None:
            return seed
        return str(self._signer.key(str(self.table.get("uid")), str(key_id), GOOD_FOR[TECHNICIAN])[1].seed(seed))

    def _ask(self, message: Message, as_role: str | None = None, keeps: bool = False) -> Message:
        seq = self._seq + 1
        frame = self._frame(seq, message, as_role, keeps)
        if len(frame) > protocol.REQUEST_MAX:
            raise BadInput(_("the request {name} is too long for the table").format(name=message["q"]))
        # Not counted before: where nothing is sent, the table waits for this number still.
        self._seq = seq
        now = self.transport.now()
        end = now + GIVE_UP_S
        prompt_end = now + min(PROMPT_S, GIVE_UP_S)
        self._waiting = seq
        try:
            self.transport.write(frame)
            retry = now + RETRY_S
            while seq not in self._answers:
                now = self.transport.now()
                if now >= prompt_end and self.at_prompt:
                    raise Prompt(
                        _(
                            "MicroPython's prompt answers, the table's program does not run; reset the board, or copy "
                            "the firmware to it again"
                        )
                    )
                if now >= end:
                    if self.in_maintenance:
                        raise LinkError(_("the table is in maintenance; reset it, and its program starts"))
                    raise LinkError(
                        _("the table does not answer {name} within {seconds:.0f} s").format(
                            name=message["q"], seconds=GIVE_UP_S
                        )
                    )
                if now >= retry:
                    self.counters["retries"] += 1
                    self.transport.write(frame)
                    retry = now + RETRY_S
                self.poll(min(retry, end) - now)
            answer = self._answers.pop(seq)
        finally:
            self._waiting = None
            self._answers.clear()
        if "err" in answer:
            code = str(answer["err"])
            why = controller(str(answer.get("why") or codes.ERRORS.get(code, code)))
            raise Refused(message["q"], code, why, str(answer.get("state", "")))
        result: Message = answer.get("ok", {})
        return result

    def poll(self, timeout: float = 0.0) -> None:
        """Take in what arrives within `timeout` seconds; returns as soon as something did."""
        self._buffer += self.transport.read(max(timeout, 0.0))
        while b"\n" in self._buffer:
            line, self._buffer = self._buffer.split(b"\n", 1)
            self._line(line)
        if len(self._buffer) > protocol.LINE_MAX:
            self._buffer = b""
            self.counters["noise"] += 1

    def _line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            _seq, message = protocol.decode(line)
        except protocol.Noise:
            self.counters["noise"] += 1
            self._prompt = self._prompt or b">>>" in line
            self.in_maintenance = self.in_maintenance or line.startswith(MAINTENANCE)
            return
        self._prompt = self.in_maintenance = False
        self.counters["frames"] += 1
        if "re" in message:
            if message["re"] == self._waiting:
                self._answers[message["re"]] = message
            else:
                # An answer that comes after its question was given up is never taken for another's.
                self.counters["stray"] += 1
        elif "ev" in message:
            self._event(message)
        elif "st" in message and isinstance(message["st"], dict):
            self._on_state(message["st"])

    def _event(self, message: Message) -> None:
        record, link, tag = message["ev"], message.get("h"), message.get("m", "")
        if not isinstance(record, dict) or not isinstance(link, str) or not isinstance(tag, str) or len(tag) > TAG_MAX:
            self.counters["noise"] += 1
            return
        if self._on_event(record, link, tag):
            self.counters["events"] += 1
            self.transport.write(protocol.encode(0, {"ack": record["id"]}))

    def close(self) -> None:
        """Give the port back."""
        self.transport.close()
