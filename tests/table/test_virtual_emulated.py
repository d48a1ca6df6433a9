"""The table around an emulated Pico: the same dice and chips as under the unix port, in time that repeats exactly."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boards.virtual import model, prng
from boards.virtual.model import default_tags
from dragoneye.rules import packs
from host_tools import provision
from host_tools.dealer import Dealer, plan_round
from host_tools.device import Device
from host_tools.store import Store
from tests.table.conftest import MakeTable
from tests.table.test_virtual_table import MakeReader, reader
from tests.virtual import READERS

pytestmark = pytest.mark.emulator

pytest.importorskip("rp2040py", reason="emulator: rp2040py is not installed")
from rp2040py.device import ResetCause  # noqa: E402

from boards.virtual import emulated  # noqa: E402

FIXTURES = (reader,)
UP = "import time\ntime.sleep_ms(30)\n"  # what is printed before USB is up (17 ms) is lost, as on a Pico

Boot = Callable[..., emulated.EmulatedPico]


@pytest.fixture
def boot(tmp_path: Path) -> Boot:
    def make(main: str, **options: Any) -> emulated.EmulatedPico:
        files: dict[str, str | Path] = {"/main.py": UP + main}
        if "dragoneye" in main:
            scratch = tmp_path / "compiled"
            scratch.mkdir(exist_ok=True)
            real = emulated.files_of(provision.FIRMWARE, scratch)
            files.update({target: path for target, path in real.items() if target.startswith("/dragoneye/")})
        return emulated.EmulatedPico(emulated.image_of(tmp_path, files), **options)

    return make


TABLE = (
    READERS
    + """
import asyncio, machine, neopixel, rp2, sys, time
from machine import ADC, PWM, Pin, SPI

motor = PWM(Pin(14), freq=20000, duty_u16=0)
other = Pin(15, Pin.OUT, value=0)
spi = SPI(0, 10000000, sck=Pin(2), mosi=Pin(3), miso=Pin(4))
lid = Pin(17, Pin.IN, Pin.PULL_UP)
button = Pin(19, Pin.IN, Pin.PULL_UP)
current, supply = ADC(26), ADC(27)

def opened(pin):
    if pin():
        motor.duty_u16(0)

def spent(function):
    start = time.ticks_us()
    function()
    return time.ticks_diff(time.ticks_us(), start)

def count():
    n = 0
    for _ in range(5000):
        n += 1

def shake(ms):
    motor.duty_u16(40000)
    time.sleep_ms(ms)
    on = current.read_u16()
    motor.duty_u16(0)
    return on

lid.irq(opened, Pin.IRQ_RISING | Pin.IRQ_FALLING, hard=True)
ring = neopixel.NeoPixel(Pin(21), 2)
ring[0], ring[1] = (255, 16, 1), (2, 4, 8)
ring.write()
print("id", machine.unique_id().hex(), machine.reset_cause())
print("pins", lid(), button(), current.read_u16() < 900, supply.read_u16() > 35000)
print("moved", shake(60) > 3000)
time.sleep_ms(450)
print("read", sorted(asyncio.run(readers.scan())))
print("spent", spent(count), spent(lambda: spi.write(bytes(16))))
flash = rp2.Flash()
print("flash", spent(lambda: flash.ioctl(6, 351)), spent(lambda: flash.writeblocks(351, bytes(256), 0)))
uart = machine.UART(0, 115200, tx=Pin(0), rx=Pin(1))
print("uart", uart.write("x" * 100))
shake(5)
motor.duty_u16(40000)
print("spins")
while not button():
    pass
dog = machine.WDT(timeout=50)
while True:
    pass
"""
)


def test_the_same_table_around_the_emulated_chip(boot: Boot) -> None:
    said = []
    for _ in range(2):
        with boot(TABLE, seed=7, tracing=True) as pico:
            pico.run_until(lambda: b"spins" in pico.output)
            said.append(bytes(pico.output))
            opened = pico.us
            pico.run_ms(1)
            assert pico.table.state(pico.us)["turning"]
            opened = pico.us
            pico.do("lid", to="open", force=True)
            pico.run_ms(5)
            high = [ns for ns, name, level in pico.trace if level]
            assert max(high) < 1000 * (opened + 1000)  # the handler's own time is far below a millisecond
            assert [name for name in ("motor_in1", "motor_in2") if pico.mcu.gpio[14 + (name[-1] == "2")].value] == []
            pico.run_until(lambda: pico.boots == 2, 100)
            assert pico.last_cause is ResetCause.WATCHDOG
    lines = dict(line.split(" ", 1) for line in said[0].decode().split("\r\n") if " " in line)
    assert said[0] == said[1]  # to the microsecond
    assert lines["id"] == "e66118604b2d5a21 1"
    assert lines["pins"] == "0 1 True True"
    assert lines["moved"] == "True"
    tags = pico.table.tags
    bottom = sorted(tags[die][6 - value] for die, value in enumerate(prng.dice(7, 1)))
    assert lines["read"] == str([uid.upper() for uid in bottom])
    loop, sent = map(int, lines["spent"].split())
    assert 1000 < loop < 36_000  # 24 ms; with the interrupt storm 72
    assert sent >= 16  # 8 MHz at most: the byte takes a microsecond
    erase, program = map(int, lines["flash"].split())
    assert 45_000 < erase < 50_000
    assert 400 < program < 3000
    assert lines["uart"] == "100"
    assert pico.state()["ring"] == [[255, 16, 1], [2, 4, 8]]


def test_an_idle_guest_costs_next_to_nothing(boot: Boot) -> None:
    with boot("import time\nprint('sleeps')\ntime.sleep(20)\nprint('woke')\n") as pico:
        pico.run_until(lambda: b"sleeps" in pico.output)
        core = pico.mcu.core
        before = core.cycles
        pico.run_until(lambda: b"woke" in pico.output, 30_000)
        # It waits for interrupts; with the interrupt storm it would run through all 20 s at 125 MHz.
        assert core.cycles - before < 100_000


def test_output_that_nobody_takes_holds_the_guest_up(boot: Boot) -> None:
    main = "import time\nt = time.ticks_ms()\nprint('x' * 1000)\nt = time.ticks_diff(time.ticks_ms(), t)\nwhile True:\n"
    main += "    print('waited', t)\n    time.sleep_ms(100)\n"
    with boot(main) as pico:
        pico.hold_output(True)
        pico.run_ms(1500)
        assert len(pico.output) < 1000
        pico.hold_output(False)
        pico.run_until(lambda: b"waited" in pico.output, 20_000)
        waited = int(pico.output.split(b"waited ")[1].split()[0])
        assert waited >= 500  # MICROPY_HW_USB_CDC_TX_TIMEOUT


def test_power_cut_at_a_chosen_write_and_back_again(boot: Boot, tmp_path: Path) -> None:
    main = (
        "import os\n"
        "try:\n    n = int(open('n').read())\nexcept (OSError, ValueError):\n    n = 0\n"
        "print('found', n, sorted(os.listdir()))\n"
        "while True:\n"
        "    n += 1\n"
        "    with open('n.new', 'w') as file:\n        file.write(str(n))\n"
        "    os.rename('n.new', 'n')\n"
    )
    with boot(main) as pico:
        image = tmp_path / "flash.img"
        pico.arm(9, torn=True)
        pico.run_until(lambda: not pico.powered, 3000)
        assert pico.cut_kind in ("program", "erase")
        saved = json.loads(json.dumps(pico.table.saved()))
        with pytest.raises(RuntimeError, match="has lost its power"):
            pico.run_ms(1)
    with emulated.EmulatedPico(image, saved=saved) as pico:
        pico.run_until(lambda: b"found" in pico.output)
        found = int(pico.output.split(b"found ")[1].split()[0])
        assert found >= 1
        assert bytes(pico.mcu.flash[emulated.FS_START :][: image.stat().st_size]) == image.read_bytes()


def test_the_firmware_says_hello_to_the_host_in_emulated_time(tmp_path: Path) -> None:
    provisions = tmp_path / "provisions"
    provision.write(provisions, "rpi_pico", packs.load("nj"), default_tags(), 0)
    image = emulated.firmware_image(tmp_path, provision=provisions)
    with emulated.EmulatedPico(image) as pico:
        pico.run_until(lambda: b"\n" in pico.output, 2000)  # the budget from reset to hello
        device = Device(
            "emulated", Store(tmp_path / "store.db"), open_transport=lambda port: emulated.EmulatedTransport(pico)
        )
        assert device.uid == "E66118604B2D5A21"
        assert device.state["state"] == "IDLE"
        assert device.counters["retries"] == 0
        assert pico.state()["motor"] == [0, 0]


@pytest.mark.slow
def test_a_round_on_the_official_image(tmp_path: Path) -> None:
    """From hello to the stored result: the firmware on the emulated Pico, the host tool in emulated seconds."""
    pack = packs.load("nj")
    provisions = tmp_path / "provisions"
    provision.write(provisions, "rpi_pico", pack, default_tags(), 0, **provision.INSTANT)
    with emulated.EmulatedPico(emulated.firmware_image(tmp_path, provision=provisions), seed=7) as pico:
        pico.table.settle_ms = 10

        class Lid:
            def open(self, device: Device) -> None:
                try:
                    pico.do("lid", to="open")
                except model.Refused:
                    device.poll(0.02)

            def shut(self, device: Device) -> None:
                pico.do("lid", to="shut")

        pico.run_until(lambda: b"\n" in pico.output, 2000)
        transport = emulated.EmulatedTransport(pico)
        store = Store(tmp_path / "store.db")
        device = Device("emulated", store, open_transport=lambda port: transport)
        plan = plan_round(random.Random(7), pack, device.refresh()["streak"])
        number = Dealer(device, pack, Lid()).play(plan)
        device.wait_stored()
        result = store.round(number, device.uid)["result"]
        assert result["dice"] == prng.dice(7, 1)
        assert pico.table.shakes == 1
        assert device.counters["noise"] == 0


def test_a_bench_around_the_emulator(make_table: MakeTable, reader: MakeReader) -> None:
    main = (
        "import machine, sys, time\n"
        "pin = machine.Pin(17, machine.Pin.IN, machine.Pin.PULL_UP)\n"
        "print('start', machine.reset_cause(), machine.unique_id().hex())\n"
        "try:\n"
        "    while True:\n"
        "        print('lid', pin())\n"
        "        time.sleep_ms(50)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
        "print('read', sys.stdin.buffer.read(3))\n"
        "time.sleep_ms(100)\n"  # a reset takes along what has not been sent
        "machine.reset()\n"
    )
    table = make_table(main, target="emulator", uid="0102030405060708")
    lines = reader(table)
    lines.until("lid 0")
    assert table.do("lid", to="open", force=True) == {}
    lines.until("lid 1")
    lines.write("\x03")
    lines.until("interrupted")
    lines.write("abc")
    lines.until("read b'abc'")
    lines.until("lid 1")
    state = table.state()
    assert (state["boots"], state["last_reset"], state["crashes"]) == (2, "watchdog", 0)
    table.do("power", to="off")
    assert table.state()["lid_open"] is True
    table.do("power", to="on")
    lines.until("lid 1")
    assert table.state()["boots"] == 3
