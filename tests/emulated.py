"""A provisioned table on the emulated Pico, with its host, in emulated time; steered from one thread."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from boards.virtual import emulated, model
from boards.virtual.model import default_tags
from dragoneye import journal
from dragoneye.keys import JOURNAL, name_of
from dragoneye.rules.packs import WAGERS as ALL_WAGERS
from dragoneye.rules.packs import load
from host_tools import keys, provision
from host_tools.dealer import Dealer, Plan
from host_tools.device import Device
from host_tools.store import Store
from tests.unit.tables import Desk

WAGERS = {"match": 500, "even": 100, "odd": 100, "double": 100, "triple": 100, "bonus": 100}
# Six positions with all six wagers: the most that is settled at once.
FULL = Plan(1, dict.fromkeys(range(1, 7), WAGERS), {}, [])
HELLO_MS = 3000


def full_segment(folder: Path) -> int:
    """Make a journal whose one segment is full: rounds of six positions with all six wagers each. Its bytes."""
    desk = Desk(folder, now=1000)
    desk.hello()
    bets = {position: dict.fromkeys(ALL_WAGERS, 1_000_000) for position in range(1, 7)}
    for position in bets:
        bets[position]["bonus"] = 100
    while desk.journal.last_id < journal.SEGMENT_RECORDS:
        desk.play([3, 5, 2], bets)
        desk.now += 10_000
    desk.fetch()
    segment, *others = sorted(folder.iterdir())
    for other in others:
        other.unlink()
    assert len(segment.read_bytes().splitlines()) == 1 + journal.SEGMENT_RECORDS
    return segment.stat().st_size


class EmulatedTable:
    """The firmware on an emulated Pico in `folder`.

    `raw` are its keys, which the host holds. `more` are further entries of the configuration, beside
    provision.INSTANT's; `change` is given the copy of the firmware before it is compiled. `flash_while_moving` collects
    every flash operation that came while a motor pin or the lock was driven.
    """

    def __init__(
        self,
        folder: Path,
        more: dict[str, Any] | None = None,
        change: Callable[[Path], None] | None = None,
        pack: str = "nj",
        raw: Mapping[str, bytes] | None = None,
        **options: Any,
    ) -> None:
        self.folder = folder
        self.pack = load(pack)
        self.flash_while_moving: list[tuple[int, str]] = []
        configured = {**provision.INSTANT, **(more or {})}
        provision.write(folder / "provision", "rpi_pico", self.pack, default_tags(), 0, **configured)
        self.keys = keys.Keys(folder / "held.json")
        self._raw = raw
        if raw is not None:
            (folder / "provision" / "keys.json").write_bytes(keys.file_of(raw))
        firmware = folder / "firmware"
        shutil.copytree(provision.FIRMWARE, firmware)
        if change:
            change(firmware)
        image = emulated.firmware_image(folder, firmware, folder / "provision")
        self.pico = emulated.EmulatedPico(image, seed=7, tracing=True, **options)
        self.pico.table.settle_ms = 10
        self._on_flash = self.pico.device.on_flash
        self.pico.device.on_flash = self._flash
        self.store = Store(folder / "rounds.db")
        self._device: Device | None = None

    def _flash(self, kind: str, at: int, data: bytes) -> bytes | None:
        if any(self.levels()) or self.pico.mcu.gpio[self.pico.board["pins"]["lock"]].value == 1:
            self.flash_while_moving.append((self.pico.us, kind))
        return self._on_flash(kind, at, data)

    def __enter__(self) -> EmulatedTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()
        self.pico.close()

    @property
    def device(self) -> Device:
        """The host's end; says hello at its first use."""
        if self._device is None:
            self._device = Device(
                "emulated",
                self.store,
                open_transport=lambda port: emulated.EmulatedTransport(self.pico),
                signer=keys.Ring(self.keys),
            )
            if self._raw is not None:
                self.keys.add(self._device.uid, name_of(self._raw[JOURNAL]), self._raw)
        return self._device

    def hello(self) -> int:
        """Run until the table says hello by itself, after a start; the emulated microseconds it took."""
        self.pico.output.clear()
        self._device = None
        took = self.pico.run_until(lambda: b'{"hello"' in self.pico.output, HELLO_MS)
        self.pico.output.clear()
        return took

    def levels(self) -> list[int]:
        """What both motor pins carry now: 0 or 1."""
        pins = self.pico.board["pins"]
        return [int(self.pico.mcu.gpio[pins[name]].value == 1) for name in ("motor_in1", "motor_in2")]

    def shaking(self, ms: float = 0.0) -> None:
        """Open a round, bet, close and shake; returns so many milliseconds after the motor began to turn."""
        device = self.device
        device.request("open", shaker=1)
        device.request("bets", position=2, wagers={"odd": 100})
        device.request("close")
        self.shake(ms)

    def shake(self, ms: float = 0.0) -> None:
        """Shake; returns so many milliseconds after the motor began to turn."""
        self.device.request("shake")
        self.pico.run_until(lambda: self.pico.table.state(self.pico.us)["turning"], 1000)
        if ms:
            self.pico.run_ms(ms)

    def last_high_us(self, since_us: int) -> int:
        """How long after `since_us` the last motor pin was high; the trace tells, edge by edge. -1: not at all."""
        after = [ns for ns, _pin, level in self.pico.trace if not level and ns // 1000 >= since_us]
        return max(after) // 1000 - since_us if after else -1

    def stays_low(self, ms: float = 50.0) -> bool:
        """Whether both motor pins are low, and no edge comes for so many milliseconds."""
        before = len(self.pico.trace)
        self.pico.run_ms(ms)
        return self.levels() == [0, 0] and len(self.pico.trace) == before

    def play(self, plan: Plan = FULL) -> dict[str, Any]:
        """A whole round to the stored result."""
        device = self.device
        number = Dealer(device, self.pack, _Lid(self.pico)).play(plan)
        device.wait_stored()
        return self.store.round(number, device.uid)

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        """The data of the stored records of these kinds."""
        self.device.wait_stored()
        return [event["d"] for event in self.store.events(self.device.uid) if event["k"] in kinds]


class _Lid:
    def __init__(self, pico: emulated.EmulatedPico) -> None:
        self._pico = pico

    def open(self, device: Device) -> None:
        try:
            self._pico.do("lid", to="open")
        except model.Refused:
            # Still latched: the lock's pulse takes its time.
            device.poll(0.02)

    def shut(self, device: Device) -> None:
        self._pico.do("lid", to="shut")
