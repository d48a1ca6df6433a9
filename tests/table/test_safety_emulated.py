"""The motor's way to stop on the emulated Pico: hard interrupts, exact edges, emulated microseconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoneye import protocol

pytestmark = pytest.mark.emulator

pytest.importorskip("rp2040py", reason="emulator: rp2040py is not installed")

from tests.emulated import EmulatedTable  # noqa: E402

LID_TO_LOW_US = 5000
RESET_TO_HELLO_US = 2_000_000
# The timer that looks after a jolt comes every 100 ms and needs two looks.
ATTENDED_US = 210_000
WATCHDOG_MS = 2000
SHAKE = {"profile": {"jolt_ms": 300, "rest_ms": 60, "ramp_ms": 40}}


def test_the_lid_stops_the_motor_within_the_budget(tmp_path: Path) -> None:
    with EmulatedTable(tmp_path, SHAKE) as table:
        assert table.hello() < RESET_TO_HELLO_US
        assert table.levels() == [0, 0]
        table.shaking(60)
        opened = table.pico.us
        table.pico.do("lid", to="open", force=True)
        table.pico.run_ms(10)
        assert 0 <= table.last_high_us(opened) <= LID_TO_LOW_US
        assert table.stays_low()
        assert [void["reason"] for void in table.records("void")] == ["lid_opened"]
        assert table.flash_while_moving == []


def collects_all_the_time(firmware: Path) -> None:
    """A collection every few milliseconds, also while the dice roll."""
    app = firmware / "dragoneye/app.py"
    text = app.read_text()
    assert "COLLECT_MS = 250\n" in text
    assert "if not moving or not waited_ms:" in text
    text = text.replace("COLLECT_MS = 250\n", "COLLECT_MS = 3\n")
    app.write_text(text.replace("if not moving or not waited_ms:", "if True:"))


@pytest.mark.slow
def test_the_lid_at_any_moment_of_a_shake_full_of_collections(tmp_path: Path) -> None:
    with EmulatedTable(tmp_path, SHAKE, collects_all_the_time) as table:
        table.hello()
        pico = table.pico
        table.shaking(1)
        # In the ramps, between, and in the rest; the last with a port that nobody reads.
        for count, ms in enumerate((12.5, 150, 280, 330)):
            pico.hold_output(ms == 330)
            pico.run_ms(ms)
            opened = pico.us
            pico.do("lid", to="open", force=True)
            pico.run_ms(10)
            assert table.last_high_us(opened) <= LID_TO_LOW_US
            assert table.stays_low()
            pico.hold_output(False)
            pico.do("lid", to="shut")
            pico.run_ms(200)
            assert table.records("void")[count:] == [
                {"round": 1, "reason": "lid_opened", "shakes": count + 1, "over": False}
            ]
            table.device.request("resume")
            table.shake(1)
        # 2 kHz, for longer than the debouncing takes: the motor is off from the first edge on, the state is right.
        fluttered = pico.us
        for _period in range(100):
            pico.do("lid", to="open", force=True)
            pico.run_ms(0.25)
            pico.do("lid", to="shut")
            pico.run_ms(0.25)
        pico.do("lid", to="open", force=True)
        assert table.last_high_us(fluttered) <= LID_TO_LOW_US
        assert table.stays_low(300)
        assert table.device.refresh()["lid_open"] is True
        assert [door["open"] for door in table.records("door")][-1] is True
        assert table.flash_while_moving == []


def hangs_when_asked(firmware: Path) -> None:
    """`stats` never returns."""
    app = firmware / "dragoneye/app.py"
    text = app.read_text()
    assert "    def _stats(self):\n" in text
    app.write_text(
        text.replace("    def _stats(self):\n", "    def _stats(self):\n        while True:\n            pass\n")
    )


@pytest.mark.slow
def test_the_exits_that_only_the_chip_can_show(tmp_path: Path) -> None:
    """Ctrl-C and soft reset, a loop that never ends, the reset button: the motor is low, and the table comes back."""
    more = {"profile": {"jolt_ms": 5000, "rest_ms": 60}, "watchdog_ms": WATCHDOG_MS}
    with EmulatedTable(tmp_path, more, hangs_when_asked) as table:
        table.hello()
        pico = table.pico

        # Ctrl-C: low at once; a soft reset brings the table back before the watchdog does.
        table.shaking(100)
        began = pico.us
        pico.write(b"\x03")
        pico.run_until(lambda: b">>> " in pico.output, 1000)
        assert 0 <= table.last_high_us(began) <= LID_TO_LOW_US
        assert b"KeyboardInterrupt" in pico.output
        pico.write(b"\x04")
        table.hello()
        assert pico.boots == 1
        assert table.stays_low(20)

        # A loop that never ends: the timer stops the motor, the watchdog resets.
        table.shaking(100)
        began = pico.us
        pico.write(bytes(protocol.encode(table.device._link._seq + 1, {"q": "stats"})))
        pico.run_until(lambda: pico.boots == 2, 2 * WATCHDOG_MS, every_us=5000)
        assert 0 <= table.last_high_us(began) <= ATTENDED_US
        assert table.levels() == [0, 0]
        assert pico.us - began <= (WATCHDOG_MS + 100) * 1000
        table.hello()

        # The reset button.
        table.shaking(100)
        began = pico.us
        pico.reset()
        assert table.last_high_us(began) <= 0
        table.hello()
        assert table.levels() == [0, 0]
        device = table.device
        for _count in range(100):  # `stats`, which would tell what is missing, hangs here
            device.poll(0.05)
        assert device.refresh()["state"] == "IDLE"
        events = table.store.events(device.uid)
        boots = [event["d"]["cause"] for event in events if event["k"] == "boot"]
        assert boots == ["pwron", "soft", "wdt", "pwron"]
        assert [event["d"]["why"] for event in events if event["k"] == "stopped"] == ["interrupted"]
        assert [event["d"]["reason"] for event in events if event["k"] == "void"] == ["power_loss"] * 3
        assert table.flash_while_moving == []
