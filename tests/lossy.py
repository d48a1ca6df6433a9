"""Transports for tests: a controller in memory on a clock of its own, and a wire that loses what it likes."""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoneye import round
from dragoneye.controller import Controller
from dragoneye.journal import Journal
from dragoneye.keys import JOURNAL, Gate, Key, name_of
from host_tools.link import LinkClosed, Transport
from tests.unit import tables

STEP_S = 0.1
SETTINGS = {"settle_ms": 0, "lockout_ms": 0}


class Board:
    """A whole controller whose dice fall at once; `rolled` is what they showed, in order. `raw` are its keys."""

    def __init__(
        self, folder: Path, rng: random.Random, pack: str = "nj", raw: Mapping[str, bytes] | None = None
    ) -> None:
        self._raw = raw
        self._folder = folder
        self._rng = rng
        self._pack = tables.pack_named(pack)
        self.rolled: list[list[int]] = []
        self.seconds = 1.0
        self.cable = True
        self.start()

    def start(self) -> None:
        """Power on (again): only what the journal holds lives on."""
        self._received = b""
        self._unread = b""
        self.controller = Controller(
            Journal(str(self._folder), round.fold, round.initial),
            self._pack,
            tables.REGISTRY,
            tables.EYE,
            SETTINGS,
            dict(tables.IDENTITY, key_id=name_of(self._raw[JOURNAL]) if self._raw else None),
            "power",
            self.now_ms,
            gate=None
            if self._raw is None
            else Gate(
                tables.IDENTITY["uid"], self._rng.randbytes(16), {name: Key(self._raw[name]) for name in self._raw}
            ),
        )

    @property
    def now_ms(self) -> int:
        return int(self.seconds * 1000)

    def lid(self, is_open: bool) -> None:
        self.controller.guard(self.now_ms, self.controller.table.lid, is_open)

    def feed(self, data: bytes) -> None:
        """Bytes from the host."""
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            self.controller.receive(line, self.now_ms)
            self._act()

    def _act(self) -> None:
        table = self.controller.table
        while effects := table.take_effects():
            for effect, value in effects:
                if effect == round.SHAKE:
                    self._dice = [self._rng.randint(1, 6) for _ in range(3)]
                    self.rolled.append(self._dice)
                    table.shaken(value[0], True, self.now_ms)
                    table.tick(self.now_ms)
                elif effect == round.READ:
                    table.tags(value[0], tables.tags_of(self._dice), self.now_ms)

    def take(self) -> bytes:
        """What the board says now, a few lines at a time."""
        self.controller.guard(self.now_ms, self.controller.table.tick)
        for _ in range(4):
            line = self.controller.next_line(self.now_ms)
            if line is None:
                break
            self._unread += line
        data, self._unread = self._unread, b""
        return data


class MemoryWire:
    """The cable between a host and a Board; time passes while the host waits, and only then."""

    def __init__(self, board: Board) -> None:
        self._board = board
        board.controller.disconnected()
        self._plugged()

    def _plugged(self) -> None:
        if not self._board.cable:
            raise LinkClosed("memory: the port has gone")

    def read(self, timeout: float) -> bytes:
        until = self.now() + max(timeout, 0.001)
        while True:
            self._plugged()
            data = self._board.take()
            if data or self.now() >= until:
                return data
            self._board.seconds = min(until, self._board.seconds + STEP_S)

    def write(self, data: bytes) -> None:
        self._plugged()
        self._board.feed(data)

    def now(self) -> float:
        return self._board.seconds

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Rates:
    """How often a line is lost, repeated, corrupted or delayed (0 to 1), and the longest delay in seconds."""

    drop: float = 0.0
    repeat: float = 0.0
    corrupt: float = 0.0
    delay: float = 0.0
    longest: float = 1.5


@dataclass
class Way:
    """One direction of a lossy wire: lines in, what is left of them out in the order of their arrival."""

    rng: random.Random
    rates: Rates
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("lines", "drop", "repeat", "corrupt"), 0))
    _partial: bytes = b""
    _under_way: list[tuple[float, int, bytes]] = field(default_factory=list)

    def put(self, data: bytes, now: float) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            self._send(line + b"\n", now)

    def _happens(self, name: str) -> bool:
        happens = self.rng.random() < float(getattr(self.rates, name))
        if happens and name in self.counts:
            self.counts[name] += 1
        return happens

    def _send(self, line: bytes, now: float) -> None:
        self.counts["lines"] += 1
        if self._happens("drop"):
            return
        for _ in range(2 if self._happens("repeat") else 1):
            sent = self._corrupted(line) if self._happens("corrupt") else line
            due = now + self.rng.random() * self.rates.longest if self._happens("delay") else now
            heapq.heappush(self._under_way, (due, self.counts["lines"], sent))

    def _corrupted(self, line: bytes) -> bytes:
        at = self.rng.randrange(len(line))
        kind = self.rng.randrange(3)
        if kind == 0:  # a byte flips: the line's end too
            return line[:at] + bytes([line[at] ^ 1 << self.rng.randrange(7)]) + line[at + 1 :]
        if kind == 1:
            return line[:at]
        return line[:at] + bytes(self.rng.randrange(0x20, 0x7F) for _ in range(self.rng.randint(1, 40))) + line[at:]

    def due(self, now: float) -> bytes:
        """What has arrived by now."""
        data = b""
        while self._under_way and self._under_way[0][0] <= now:
            data += heapq.heappop(self._under_way)[2]
        return data


class Lossy:
    """A transport that passes lines between `inner` and the host by the given rates.

    `to_host` and `to_table` outlive a transport: what was delayed in an earlier session arrives in a later one.
    """

    def __init__(self, inner: Transport, to_host: Way, to_table: Way) -> None:
        self._inner = inner
        self._to_host = to_host
        self._to_table = to_table

    def read(self, timeout: float) -> bytes:
        until = self.now() + timeout
        while True:
            late = self._to_table.due(self.now())
            if late:
                self._inner.write(late)
            self._to_host.put(self._inner.read(min(STEP_S, max(until - self.now(), 0.0))), self.now())
            data = self._to_host.due(self.now())
            if data or self.now() >= until:
                return data

    def write(self, data: bytes) -> None:
        self._to_table.put(data, self.now())
        arrived = self._to_table.due(self.now())
        if arrived:
            self._inner.write(arrived)

    def now(self) -> float:
        return self._inner.now()

    def close(self) -> None:
        self._inner.close()


class MemoryLid:
    """The lid of a Board, as host_tools.dealer.Lid."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def open(self, device: Any) -> None:
        self._board.lid(True)

    def shut(self, device: Any) -> None:
        self._board.lid(False)
