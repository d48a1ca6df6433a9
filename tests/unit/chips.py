"""The reader driver under CPython: on the chip model's pins, in a time of its own that only its doings let pass."""

from __future__ import annotations

import asyncio
import importlib.util
import random
import sys
import types
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any
from unittest import mock

from boards.virtual import field
from boards.virtual.mfrc522 import Mfrc522

DRIVER = Path(__file__).parents[2] / "firmware/dragoneye/drivers/mfrc522.py"
# What a call and a byte take on the bus, roughly as on the Pico: time must pass for the chip to get on.
CALL_US = 5
BYTE_US = 1


class Clock:
    """Microseconds that pass only when they are spent; 30 bits wide where the driver sees them."""

    def __init__(self, us: int = 0) -> None:
        self.us = us
        self.longest = 0  # without giving way to others
        self._held_since = us

    def spend(self, us: int) -> None:
        self.us += us
        self.longest = max(self.longest, self.us - self._held_since)

    async def sleep_ms(self, ms: int) -> None:
        self.us += 1000 * ms
        self._held_since = self.us
        await asyncio.sleep(0)

    def ticks_us(self) -> int:
        self.spend(1)
        return self.us & 0x3FFFFFFF


def ticks_diff(end: int, start: int) -> int:
    return ((end - start + 0x20000000) & 0x3FFFFFFF) - 0x20000000


def load_driver(clock: Clock) -> types.ModuleType:
    """The driver's module, with what it imports of MicroPython in our time."""
    fakes = {
        "micropython": types.SimpleNamespace(const=lambda value: value, native=lambda function: function),
        "time": types.SimpleNamespace(ticks_us=clock.ticks_us, ticks_diff=ticks_diff),
        "asyncio": types.SimpleNamespace(sleep_ms=clock.sleep_ms),
    }
    spec = importlib.util.spec_from_file_location("mfrc522_under_test", DRIVER)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, fakes):
        spec.loader.exec_module(module)
    return module


class World:
    """Tags in the field of one reader: UID as hex -> the gain in dB from which on it is heard."""

    def __init__(self, tags: dict[str, int]) -> None:
        self._tags = [(field.Tag(bytes.fromhex(uid)), (gain, None, None)) for uid, gain in tags.items()]
        self.others: list[Any] = []
        self.requests: list[int] = []
        self.present: Callable[[bytes, int], bool] = lambda uid, us: True

    def tags_at(self, us: int) -> list[Any]:
        return [(tag, gains) for tag, gains in self._tags if self.present(tag.uid, us)] + self.others

    def asked(self, us: int, woken: bool) -> None:
        self.requests.append(us)

    def left(self, us: int) -> None:
        """The field is off."""


class Bus:
    """SPI and chip select of one chip, with every transaction kept; `spoil` may change what is read."""

    def __init__(self, chip: Mfrc522, clock: Clock) -> None:
        self._chip = chip
        self._clock = clock
        self.transactions: list[bytes] = []
        self.spoil: Callable[[bytes, bytearray], None] = lambda out, into: None

    def select(self, level: int) -> None:
        self._clock.spend(CALL_US)
        if level:
            self._chip.deselect()
        else:
            self._chip.select()

    def write(self, data: bytes) -> None:
        self.transactions.append(bytes(data))
        self._clock.spend(CALL_US)
        for byte in data:
            self._clock.spend(BYTE_US)
            self._chip.transfer(byte)

    def write_readinto(self, out: bytes, into: bytearray) -> None:
        assert len(out) == len(into)
        self.transactions.append(bytes(out))
        self._clock.spend(CALL_US)
        for i, byte in enumerate(out):
            self._clock.spend(BYTE_US)
            into[i] = self._chip.transfer(byte)
        self.spoil(out, into)


class Rig:
    """One reader with tags in its field. `version`, `health`: as boards.virtual.mfrc522.Mfrc522 takes them."""

    def __init__(
        self, tags: Iterable[str] | dict[str, int] = (), *, irq: bool = False, us: int = 0, **chip: Any
    ) -> None:
        self.clock = Clock(us)
        self.world = World(tags if isinstance(tags, dict) else dict.fromkeys(tags, 18))
        self.chip = Mfrc522(field.Field(self.world), 0, lambda: self.clock.us, **chip)
        self.bus = Bus(self.chip, self.clock)
        self.driver = load_driver(self.clock)
        self.clock.us += 10_000  # it wakes up meanwhile
        self.looks = 0
        self.reader = self.driver.MFRC522(self.bus, self.bus.select, 1, self._irq if irq else None)

    def _irq(self) -> int:
        self.clock.spend(CALL_US)
        self.looks += 1
        self.chip.catch_up(self.clock.us)
        level = self.chip.irq_pin()
        return 1 if level is None else level

    def run(self, job: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(job)

    def scan(self, gain: int = 33) -> set[str] | None:
        """One pass."""
        found: set[str] | None = self.run(self.reader.inventory(gain))
        return found


def uids(rng: random.Random, count: int) -> list[str]:
    """Different UIDs of 4, 7 and 10 bytes that share prefixes of all lengths."""
    made: set[bytes] = set()
    while len(made) < count:
        size = rng.choice((4, 7, 7, 7, 10))
        uid = bytearray(rng.randbytes(size))
        near = [other for other in made if len(other) == size]
        if near and rng.random() < 0.8:
            bits = int.from_bytes(rng.choice(near), "little") ^ 1 << rng.randrange(8 * size)
            uid = bytearray(bits.to_bytes(size, "little"))
        # No UID begins with the cascade tag (ISO/IEC 14443-3, 6.5.4).
        if uid[0] != 0x88:
            made.add(bytes(uid))
    return [uid.hex().upper() for uid in sorted(made, key=lambda _uid: rng.random())]
