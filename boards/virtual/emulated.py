"""The table around an emulated RP2040 that runs the official MicroPython image: rp2040py, put right from outside.

    with EmulatedPico(image_of(tmp_path, files), seed=7) as pico:
        pico.run_until(lambda: b"ready" in pico.output)
        pico.do("lid", to="open", force=True)
        pico.run_ms(20)

Time is the emulated clock's and repeats to the nanosecond. The same table model, wiring and chips as under the unix
port's `machine` sit behind its pins, SPI, ADC and PWM. As a program (`python -m boards.virtual.emulated IN OUT`) it
speaks start.py's protocol to a bench, paced to the wall clock, with its USB serial port on standard input and output.

What rp2040py 0.3.6 gets wrong for our purposes is corrected in `_correct_*`, each with its reason (all measured).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rp2040py.boards import BoardSpec, FlashLayout
from rp2040py.device.base_device import BaseDevice, ResetCause
from rp2040py.gpio_pin import FUNCTION_PWM, GPIOPinState
from rp2040py.memory_map import FLASH_START_ADDRESS
from rp2040py.peripherals.ssi import CMD_PAGE_PROGRAM, CMD_READ_STATUS_1, CMD_SECTOR_ERASE
from rp2040py.peripherals.uart import RPUART, RXFE, RXFF, UARTDR, UARTTXINTR

from boards.mpy import compile_file
from boards.virtual import flash, model, wiring
from boards.virtual.image import CACHE
from boards.virtual.unix_port import REPO, find_micropython

FS_START = 0xA0000  # of MicroPython's RPI_PICO build, up to the end of 2 MB
PERIPHERAL_HZ = 48_000_000  # clk_peri under MicroPython; rp2040py takes 125 MHz
ERASE_NS = 45_000_000  # a 4 KB sector, typical (W25Q16JV, table 9.6); the whole time interrupts are off
PROGRAM_NS = 400_000  # a 256-byte page, typical
READ_UNIQUE_ID = 0x4B
WS2812_LATCH_NS = 50_000  # low for so long: the pixels take over (data sheet: RES, above 50 us)
MOTOR_STEADY_NS = 200_000  # four periods at 20 kHz without an edge: the pin does not pulse any more
MS = 1_000_000

Json = dict[str, Any]


class NoImage(RuntimeError):
    """There is no MicroPython image for the emulator."""


class GuestTimeout(RuntimeError):
    """What was waited for did not come in emulated time."""


def find_image() -> Path | None:
    """The official image: $PICO_UF2, or RPI_PICO.uf2 in the user's cache folder."""
    named = os.environ.get("PICO_UF2")
    if named:
        return Path(named)
    return CACHE if CACHE.is_file() else None


def image_version(uf2: Path) -> str:
    """The MicroPython version that an image's banner names, such as "1.28.0"; "" where it names none."""
    blocks = uf2.read_bytes()
    # UF2: blocks of 512 bytes, each with 256 of the flash from its byte 32 on.
    flash_bytes = b"".join(blocks[at + 32 : at + 288] for at in range(0, len(blocks), 512))
    found = re.search(rb"MicroPython v([0-9]+\.[0-9]+\.[0-9]+)", flash_bytes)
    return found[1].decode() if found else ""


# --- files on the emulated flash ---------------------------------------------------------------------------------

_BUILD = """
import os, sys, vfs
image, repo, listing = sys.argv[1:]
sys.path.insert(0, repo)
from boards.virtual import flash
device = flash.FileFlash(open(image, "r+b"))
pairs = [line.rstrip("\\n").split("\\t") for line in open(listing)]
vfs.umount("/")
vfs.mount(vfs.VfsPosix("/"), "/pc")
try:
    root = vfs.VfsLfs2(device, progsize=256)
except OSError:
    vfs.VfsLfs2.mkfs(device, progsize=256)
    root = vfs.VfsLfs2(device, progsize=256)
vfs.mount(root, "/")
for source, target in pairs:
    folder = ""
    for part in target.split("/")[1:-1]:
        folder += "/" + part
        try:
            os.mkdir(folder)
        except OSError:
            pass
    with open("/pc" + source, "rb") as one, open(target, "wb") as other:
        other.write(one.read())
"""


def files_of(folder: Path, scratch: Path | None = None) -> dict[str, Path]:
    """What of a folder goes to the flash: path there -> file here. Modules are compiled into `scratch` if given."""
    files = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if not path.is_file() or "__pycache__" in inside.parts or inside.suffix in (".pyc", ".typed"):
            continue
        target = "/" + inside.as_posix()
        if scratch is not None and path.suffix == ".py" and target not in ("/boot.py", "/main.py"):
            target = target[:-3] + ".mpy"
            path = compile_file(path, inside.as_posix(), scratch / target[1:].replace("/", "%"))
        files[target] = path
    return files


def write_files(image: Path, files: Mapping[str, Path]) -> None:
    """Put files onto a flash image, a new one if need be, with the unix port's own littlefs."""
    if not image.exists():
        image.write_bytes(b"\xff" * flash.BLOCK * flash.BLOCKS)
    script = image.with_suffix(".build.py")
    listing = image.with_suffix(".files")
    script.write_text(_BUILD)
    listing.write_text("".join(f"{path.resolve()}\t{target}\n" for target, path in files.items()))
    command = [*find_micropython(), "-X", "heapsize=16m", str(script), str(image.resolve()), str(REPO), str(listing)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"the flash image could not be built: {run.stdout}{run.stderr}")
    script.unlink()
    listing.unlink()


def image_of(folder: Path, files: Mapping[str, str | bytes | Path]) -> Path:
    """A new flash image in `folder` with these files: path -> text, bytes, or a file here."""
    image = folder / "flash.img"
    image.unlink(missing_ok=True)
    scratch = folder / "flash.sources"
    scratch.mkdir(exist_ok=True)
    sources = {}
    for number, (target, content) in enumerate(files.items()):
        if isinstance(content, Path):
            sources[target] = content
        else:
            sources[target] = scratch / str(number)
            sources[target].write_bytes(content.encode() if isinstance(content, str) else content)
    write_files(image, sources)
    shutil.rmtree(scratch)
    return image


def firmware_image(folder: Path, firmware: Path = REPO / "firmware", provision: Path | None = None) -> Path:
    """A new flash image in `folder` with the firmware, compiled, and what a table is provisioned with."""
    scratch = folder / "flash.compiled"
    scratch.mkdir(exist_ok=True)
    files = files_of(firmware, scratch)
    if provision is not None:
        files.update(files_of(provision))
    image = folder / "flash.img"
    image.unlink(missing_ok=True)
    write_files(image, files)
    shutil.rmtree(scratch)
    return image


# --- the chip ----------------------------------------------------------------------------------------------------


class _Uart(RPUART):
    """Correction 3: rp2040py's transmit interrupt is always pending, which hangs the guest for good.

    It is an event: the FIFO, drained at the baud rate, falls to a quarter (PL011 3.4.2).
    """

    def correct(self) -> None:
        self._level = 0
        self._drain = self.rp2040.clock.create_alarm(self._drained)

    @property
    def flags(self) -> int:
        full, empty, busy = 1 << 5, 1 << 7, 1 << 3  # TXFF, TXFE, BUSY
        transmit = (full if self._level >= 32 else 0) | (0 if self._level else empty) | (busy if self._level else 0)
        return (RXFF if self.rx_fifo.full else 0) | (RXFE if self.rx_fifo.empty else 0) | transmit

    def check_interrupts(self) -> None:
        """Only what has happened, where the original adds a transmit interrupt each time."""
        self.rp2040.set_interrupt(self.irq, bool(self._interrupt_status & self._interrupt_mask))

    def write_uint32(self, offset: int, value: int) -> None:
        super().write_uint32(offset, value)
        if offset == UARTDR:
            self._level += 1
            if self._level > 8:
                self._interrupt_status &= ~UARTTXINTR
                self.check_interrupts()
            if self._level == 1:
                self._drain.schedule(1e10 / max(300, self.baud_rate))

    def _drained(self) -> None:
        self._level -= 1
        if self._level in (8, 0):
            self._interrupt_status |= UARTTXINTR
            self.check_interrupts()
        if self._level:
            self._drain.schedule(1e10 / max(300, self.baud_rate))


class Device(BaseDevice):
    """rp2040py's device, corrected; BaseDevice because MicroPythonDevice types at the guest (correction 5)."""

    def __init__(self, uf2: Path, uid: bytes) -> None:
        layout = FlashLayout(fs_start=FS_START, fs_blockcount=flash.BLOCKS, fs_blocksize=flash.BLOCK)
        super().__init__(board=BoardSpec(image=uf2, layout=layout))
        self.uid = uid
        self.clock = self.simulator.clock
        self.to_board: deque[int] = deque()
        self.on_usb_output: Callable[[bytes], None] = lambda data: None
        self.on_flash: Callable[[str, int, bytes], bytes | None] = lambda kind, at, data: data
        self.on_reset: Callable[[ResetCause], None] = lambda cause: None
        self.on_connected: Callable[[], None] = lambda: None
        self.take_output = True
        self.mcu.clk_peri = PERIPHERAL_HZ  # SPI and UART run 2.6 times too fast otherwise
        self._correct_usb_reads()
        self._correct_usb_writes()
        self._correct_flash()
        for uart in self.mcu.uart:
            uart.__class__ = _Uart
            _Uart.correct(uart)  # type: ignore[arg-type]

    # 1: an armed endpoint with nothing to send is answered by an empty packet every 10 us, an interrupt storm in
    # which the guest's own work takes three times as long; a real host says NAK until it has something.
    def _correct_usb_reads(self) -> None:
        usb, cdc = self.mcu.usb_ctrl, self.cdc
        answer, on_reset = usb.on_endpoint_read, usb.on_reset
        assert answer
        assert on_reset
        self._pending_reads: list[tuple[int, int]] = []

        def on_endpoint_read(endpoint: int, size: int) -> None:
            if endpoint == cdc._out_endpoint and cdc._pending_line_coding is None and not self._fill():
                self._pending_reads.append((endpoint, size))
            else:
                answer(endpoint, size)

        def fire() -> None:
            if self._pending_reads and self._fill():
                answer(*self._pending_reads.pop(0))

        def reset() -> None:
            on_reset()
            self._pending_reads.clear()
            self.to_board.clear()
            self._held = 0

        usb.on_endpoint_read = on_endpoint_read
        usb.on_reset = reset
        self._wake = self.clock.create_alarm(fire)
        cdc.on_serial_data = lambda data: self.on_usb_output(bytes(data))
        cdc.on_device_connected = lambda: self.on_connected()

    def _fill(self) -> bool:
        fifo = self.cdc.tx_fifo
        while self.to_board and not fifo.full:
            fifo.push(self.to_board.popleft())
        return not fifo.empty

    def send(self, data: bytes) -> None:
        """Bytes from the host; they wait until the guest takes them."""
        self.to_board.extend(data)
        if self._pending_reads:
            self._wake.schedule(0)

    # Output that nobody takes: a real host says NAK, and the guest sees its buffer stay full.
    def _correct_usb_writes(self) -> None:
        usb = self.mcu.usb_ctrl
        ready = usb._indicate_buffer_ready
        self._held = 0

        def indicate(endpoint: int, out: bool) -> None:
            if not out and endpoint == self.cdc._in_endpoint and not self.take_output:
                self._held += 1
            else:
                ready(endpoint, out)

        usb._indicate_buffer_ready = indicate  # type: ignore[method-assign]
        self._ready = ready

    def set_taking(self, taking: bool) -> None:
        """Whether the host takes output."""
        self.take_output = taking
        if taking and self._held:
            self._held = 0
            self._ready(self.cdc._in_endpoint, False)

    # 4: unique_id is all ones until the flash answers command 4B; erasing and programming take no time until the busy
    # bit is modelled. The boot ROM polls it with interrupts off and does nothing else, so the clock jumps there.
    def _correct_flash(self) -> None:
        ssi = self.mcu.ssi
        apply, shift = ssi._apply_command, ssi._shift_byte
        self._busy_until = 0.0

        def apply_command() -> None:
            command = ssi._tx_buffer[0] if ssi._tx_buffer else 0
            if command not in (CMD_SECTOR_ERASE, CMD_PAGE_PROGRAM) or not ssi._write_enabled:
                apply()
                return
            erase = command == CMD_SECTOR_ERASE
            at = ssi._address_from_buffer() - FS_START
            data = b"\xff" * flash.BLOCK if erase else bytes(ssi._tx_buffer[4:])
            done = self.on_flash("erase" if erase else "program", at, data)
            if done is not None and len(done) == len(data):
                apply()
            elif done is not None:  # torn: only the first part has happened when the power goes
                for offset, byte in enumerate(done):
                    old = self.mcu.flash[FS_START + at + offset]
                    self.mcu.flash[FS_START + at + offset] = byte if erase else byte & old
            self._busy_until = self.clock.nanos + (ERASE_NS if erase else PROGRAM_NS)

        def shift_byte(byte: int) -> int:
            position = len(ssi._tx_buffer)
            command = ssi._tx_buffer[0] if position else byte
            if command == READ_UNIQUE_ID:
                ssi._tx_buffer.append(byte)
                return self.uid[position - 5] if 5 <= position < 13 else 0xFF
            if command == CMD_READ_STATUS_1 and position:
                left = self._busy_until - self.clock.nanos
                if left > 0:
                    self.clock.tick(left)
            return shift(byte)

        ssi._apply_command = apply_command  # type: ignore[method-assign]
        ssi._shift_byte = shift_byte  # type: ignore[method-assign,assignment]

    def hard_reset(self, *, cause: ResetCause = ResetCause.RUN_PIN) -> None:
        """Any reset of the chip, also the guest's own."""
        super().hard_reset(cause=cause)
        self.on_reset(cause)


class _Pixels:
    """A WS2812 ring on a pin: the lengths of the high pulses are the bits, a long low hands them over."""

    def __init__(self, pico: EmulatedPico, pin: int) -> None:
        self._pico = pico
        self._pin = pin
        self._rose = 0.0
        self._bits = 0
        self._count = 0
        self._spoiled = False
        self._data = bytearray()
        self._latch = pico.clock.create_alarm(self._latched)

    def edge(self, level: int) -> None:
        """The pin changed."""
        if level:
            self._rose = self._pico.clock.nanos
            self._latch.cancel()
            return
        bit = wiring.pixel_bit(self._pico.clock.nanos - self._rose)
        self._spoiled = self._spoiled or bit is None
        self._bits = self._bits << 1 | (bit or 0)
        self._count += 1
        if self._count % 8 == 0:
            self._data.append(self._bits & 0xFF)
        self._latch.schedule(WS2812_LATCH_NS)

    def _latched(self) -> None:
        self._pico.wiring.pixels(self._pin, self._data, self._spoiled)
        self._bits = self._count = 0
        self._spoiled = False
        self._data = bytearray()


class EmulatedPico:
    """One emulated Pico on one table, run by whoever calls `run_ms` and `run_until`.

    `image`: its file system's flash (352 blocks), written through at every erase and program, so that this process
    can be killed like a power cut. `us`: emulated microseconds since it was switched on. `output`: what it has sent
    over USB. `table`, `wiring` (with its `log`): the world around it. `trace`: every edge of the motor's pins as
    (nanoseconds, pin name, level), if `tracing`.
    """

    def __init__(
        self,
        image: Path,
        *,
        seed: int = 1,
        uid: str = "e66118604b2d5a21",
        uf2: Path | None = None,
        board: Json | None = None,
        saved: Json | None = None,
        tags: list[list[str]] | None = None,
        tracing: bool = False,
    ) -> None:
        uf2 = uf2 or find_image()
        if uf2 is None or not uf2.is_file():
            raise NoImage(f"no MicroPython image for the emulated Pico: {uf2 or 'name an RPI_PICO .uf2 in $PICO_UF2'}")
        self.device = Device(uf2, bytes.fromhex(uid))
        self.mcu = self.device.mcu
        self.clock = self.device.clock
        self._simulator = self.device.simulator
        data = image.read_bytes()
        if len(data) != flash.BLOCK * flash.BLOCKS:
            raise ValueError(f"{image} is {len(data)} bytes; a flash image has {flash.BLOCK * flash.BLOCKS}")
        self.mcu.flash[FS_START : FS_START + len(data)] = data
        self._image = image.open("r+b", buffering=0)
        self.board = board or json.loads((REPO / "boards/rpi_pico/board.json").read_text())
        self.table = model.Model(seed, saved, tags, 0)
        self.wiring = wiring.Wiring(self.board, self.table, lambda: self.us)
        self.output = bytearray()
        self.on_output: Callable[[bytes], None] = self.output.extend
        self.trace: list[tuple[int, str, int]] = []
        self.tracing = tracing
        self.boots = 1
        self.last_cause = ResetCause.POWER_ON
        self.connected = False
        self.powered = True
        self.programs = 0
        self.erases = 0
        self.cut_kind: str | None = None
        self._cut: Json | None = None
        self._stop_alarm = self.clock.create_alarm(self._simulator.stop)
        self._check: Callable[[], bool] | None = None
        self._check_alarm = self.clock.create_alarm(self._checked)
        self._every = MS
        self._due_alarm = self.clock.create_alarm(self._due)
        self.device.on_usb_output = self._usb_output
        self.device.on_flash = self._flash
        self.device.on_reset = self._was_reset
        self.device.on_connected = self._usb_up
        self.on_usb_up: Callable[[], None] = lambda: None
        self.on_reboot: Callable[[ResetCause], None] = lambda cause: None
        self._wire()
        self.mcu.core.pc = FLASH_START_ADDRESS

    # --- pins ----------------------------------------------------------------------------------------------------

    def _wire(self) -> None:
        pins = self.board["pins"]
        names = {pins["motor_in1"]: "motor_in1", pins["motor_in2"]: "motor_in2", pins["buzzer"]: "buzzer"}
        self._settle: dict[int, Any] = {}
        for number, name in names.items():
            self._settle[number] = self.clock.create_alarm(self._settled_on(number))
            self.mcu.gpio[number].add_listener(self._pulsed(number, name))
        self._levels = [pins["lock"], self.wiring.reset, *self.wiring.selects]
        for number in self._levels:
            self.mcu.gpio[number].add_listener(self._switched(number))
        pixels = _Pixels(self, pins["ring"])
        self.mcu.gpio[pins["ring"]].add_listener(lambda value, last: pixels.edge(int(value == GPIOPinState.HIGH)))
        self._driven: dict[int, int | None] = {}
        self.sync()
        spi = self.mcu.spi[self.board["spi"]["id"]]
        done = self.clock.create_alarm(lambda: spi.complete_transmit(self._miso))

        def on_transmit(value: int) -> None:
            # The byte takes its time on the wire; rp2040py's own default takes none.
            self._miso = self.wiring.transfer(self.board["spi"]["id"], value)
            done.schedule(spi.data_bits * 1e9 / spi.clock_frequency)

        spi.on_transmit = on_transmit
        adc = self.mcu.adc
        sample = adc.on_adc_read

        def on_adc_read(channel: int) -> None:
            adc.channel_values[channel] = 876 if channel == 4 else self.wiring.analog(26 + channel)
            sample(channel)

        adc.on_adc_read = on_adc_read

    def _switched(self, number: int) -> Callable[[GPIOPinState, GPIOPinState], None]:
        def listener(value: GPIOPinState, _last: GPIOPinState) -> None:
            if value in (GPIOPinState.LOW, GPIOPinState.HIGH):
                self.wiring.output(number, 65535 if value == GPIOPinState.HIGH else 0)
            else:
                self.wiring.undriven(number)
            self.sync()

        return listener

    def _pulsed(self, number: int, name: str) -> Callable[[GPIOPinState, GPIOPinState], None]:
        """A pin that may carry PWM: the duty is read from the slice, and a pin that rests has its own level."""
        pin = self.mcu.gpio[number]
        motor = name != "buzzer"
        settle = self._settle[number]

        def listener(value: GPIOPinState, _last: GPIOPinState) -> None:
            high = value == GPIOPinState.HIGH
            if motor and self.tracing:
                self.trace.append((round(self.clock.nanos), name, int(high)))
            if pin.function_select == FUNCTION_PWM:
                if high:
                    self.wiring.output(number, *self._pwm(number))
                settle.schedule(MOTOR_STEADY_NS if motor else 200 * MS)
            else:
                settle.cancel()
                self.wiring.output(number, 65535 if high else 0)
            self._plan()

        return listener

    def _pwm(self, number: int) -> tuple[int, int]:
        """Duty (0..65535) and frequency of the slice behind a pin, as they are in force."""
        channel = self.mcu.pwm.channels[number // 2 % 8]
        compare = (channel.alarm_b if number % 2 else channel.alarm_a).target
        period = channel.timer.top + 1
        duty = min(65535, compare * 65535 // period)
        return duty, round(self.mcu.clk_sys / (period * channel.timer.prescaler))

    def _settled_on(self, number: int) -> Callable[[], None]:
        def settled() -> None:
            high = self.mcu.gpio[number].value == GPIOPinState.HIGH
            self.wiring.output(number, 65535 if high else 0)
            self._plan()

        return settled

    def sync(self) -> None:
        """Let the switches and the readers' IRQ outputs drive their pins; what is open is left to the pull-up."""
        for number in (*self.wiring.switches, *self.wiring.irqs):
            level = self.wiring.level(number)
            if number not in self._driven or self._driven[number] != level:
                self._driven[number] = level
                if level is None:
                    self.mcu.gpio[number].release_input()
                else:
                    self.mcu.gpio[number].set_input_value(bool(level))
        self._plan()

    def _plan(self) -> None:
        due = self.wiring.due()
        if due is not None:
            self._due_alarm.schedule(max(0, due * 1000 - self.clock.nanos))

    def _due(self) -> None:
        self.wiring.advance(self.us)
        self.sync()

    # --- USB, flash, resets --------------------------------------------------------------------------------------

    def _usb_output(self, data: bytes) -> None:
        if data:
            self.on_output(data)

    def _usb_up(self) -> None:
        self.connected = True
        self.on_usb_up()

    def write(self, data: bytes | str) -> None:
        """Type at the serial port."""
        self.device.send(data.encode() if isinstance(data, str) else data)

    def hold_output(self, hold: bool) -> None:
        """The port is open, and nobody reads."""
        self.device.set_taking(not hold)

    def set_open(self, is_open: bool) -> None:
        """A program on the host opened or closed the port: DTR, which is what the guest can see of it."""
        if self.connected:
            self.device.cdc.set_control_lines(dtr=is_open, rts=is_open)

    def _flash(self, kind: str, at: int, data: bytes) -> bytes | None:
        if not self.powered:
            return None
        if 0 <= at < flash.BLOCK * flash.BLOCKS:
            self.programs += kind == "program"
            self.erases += kind == "erase"
            if self._cut is not None and self._cut["only"] in (None, kind):
                self._cut["at"] -= 1
                if self._cut["at"] == 0:
                    data = data[: len(data) // 2] if self._cut["torn"] else b""
                    self._cut = None
                    self.cut_kind = kind
                    self.powered = False
                    self._simulator.stop()
            if kind == "program":
                old = self.mcu.flash[FS_START + at : FS_START + at + len(data)]
                data_now = bytes(byte & before for byte, before in zip(data, old, strict=True))
            else:
                data_now = data
            self._image.seek(at)
            self._image.write(data_now)
        return data

    def arm(self, at: int | None, torn: bool = False, only: str | None = None) -> None:
        """Cut the power at the `at`-th program or erase of the file system from now on, as flash.FileFlash does."""
        self._cut = None if at is None else {"at": at, "torn": torn, "only": only}

    def _was_reset(self, cause: ResetCause) -> None:
        self.boots += 1
        self.last_cause = cause
        self.connected = False
        for number in [*self.wiring.motor, *self._levels, self.wiring.buzzer]:
            self.wiring.undriven(number)  # every pin is an input again
        for alarm in self._settle.values():
            alarm.cancel()
        self.on_reboot(cause)

    def reset(self) -> None:
        """Press the reset button (the RUN pin)."""
        self.device.hard_reset(cause=ResetCause.RUN_PIN)

    # --- time ----------------------------------------------------------------------------------------------------

    @property
    def us(self) -> int:
        """Emulated microseconds since power-on."""
        return int(self.clock.nanos // 1000)

    def _checked(self) -> None:
        assert self._check
        if self._check():
            self._simulator.stop()
        else:
            self._check_alarm.schedule(self._every)

    def _run(self, ns: float) -> None:
        if not self.powered:
            raise RuntimeError("this Pico has lost its power; make another one on its image")
        self._stop_alarm.schedule(ns)
        self._simulator.stopped = False
        while not self._simulator.stopped:
            self._simulator._execute_batch()
        self._stop_alarm.cancel()

    def run_ms(self, ms: float) -> None:
        """Let that much emulated time pass (less if the power is cut meanwhile)."""
        self._run(ms * MS)

    def run_until(self, check: Callable[[], bool], ms: float = 5000, every_us: float = 1000) -> int:
        """Run until `check()` is true, asked so often; the emulated microseconds it took. GuestTimeout after `ms`."""
        start = self.us
        if check():
            return 0
        self._check = check
        self._every = round(every_us * 1000)
        self._check_alarm.schedule(self._every)
        self._run(ms * MS)
        self._check_alarm.cancel()
        self._check = None
        if self.powered and not check():
            raise GuestTimeout(f"not after {ms} emulated ms; the last output was {bytes(self.output[-300:])!r}")
        return self.us - start

    def do(self, name: str, /, **args: Any) -> Json:
        """Do one thing to the table, as over a bench's control channel."""
        for _ in range(args.pop("bounce", 0)):
            self.table.command(self.us, name, args)
            self.sync()
            self.table.command(self.us, name, wiring.BACK[name])
            self.sync()
        result: Json = self.table.command(self.us, name, args)
        if name in wiring.SWITCHES:
            self.wiring.note(name, args.get("to", "press"))
        self.sync()
        return result

    def state(self) -> Json:
        """Everything about the table, as over a bench's control channel."""
        state: Json = self.table.state(self.us)
        state["flash"] = {"programs": self.programs, "erases": self.erases}
        state["readers"] = self.wiring.readers_state()
        state["up_ms"] = self.us // 1000
        state["emulated"] = True
        return state

    def close(self) -> None:
        """Let go of the image."""
        self._image.close()

    def __enter__(self) -> EmulatedPico:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class EmulatedTransport:
    """The host tool's end of an emulated Pico's port, in emulated seconds: what `host_tools.link.Transport` asks for.

    A busy guest runs some 20 times slower than the wall clock, so a host that waits in wall seconds gives up (or
    floods it with repeats) where this one waits as long as with a real Pico.
    """

    def __init__(self, pico: EmulatedPico) -> None:
        self._pico = pico

    def read(self, timeout: float) -> bytes:
        """What has arrived, letting up to `timeout` emulated seconds pass for the first byte."""
        output = self._pico.output
        if not output and timeout > 0:
            with contextlib.suppress(GuestTimeout):
                self._pico.run_until(lambda: bool(output), timeout * 1000)
        data = bytes(output)
        output.clear()
        return data

    def write(self, data: bytes) -> None:
        """Type at the port."""
        self._pico.write(data)

    def now(self) -> float:
        """Emulated seconds since power-on."""
        return self._pico.us / 1e6

    def close(self) -> None:
        """Nothing is held."""


# --- behind a bench ----------------------------------------------------------------------------------------------

SLICE_MS = 2.0  # emulated time between two looks at the outside
BEHIND_S = 0.05  # a guest this late is not hurried up: its time-outs would come too early later on
OUTPUT_MAX = 4096  # what waits for the port before the guest is told to wait


class Guest:
    """The emulated board's side of a bench: what start.py is under the unix port, in paced emulated time."""

    def __init__(self, receive: int, send: int) -> None:
        self._in = receive
        self._out = send
        self._received = b""
        boot = self._first_line()
        self.pico = EmulatedPico(
            Path(boot["image"]),
            seed=boot["seed"],
            uid=boot["uid"],
            board=boot["board"],
            saved=boot["table"],
            tags=boot["tags"],
        )
        if boot["cut"]:
            self.pico.arm(**boot["cut"])
        self._to_host = bytearray()
        self._open = False
        self._seen = 0
        self.pico.on_output = self._to_host.extend
        self.pico.on_usb_up = lambda: self.pico.set_open(self._open)
        self.pico.on_reboot = lambda cause: self.send({"rebooted": cause.name})
        self.pico.wiring.on_log = lambda entry: self.send({"log": entry})

    def _first_line(self) -> Json:
        while b"\n" not in self._received:
            data = os.read(self._in, 65536)
            if not data:
                sys.exit(0)
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        first: Json = json.loads(line)
        return first

    def send(self, message: Json) -> None:
        """Tell the bench."""
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self._out, data) :]

    def _touch(self) -> None:
        if self._seen != self.pico.table.changed:
            self._seen = self.pico.table.changed
            self.send({"table": self.pico.table.saved()})

    def _handle(self, message: Json) -> None:
        if "open" in message:
            self._open = message["open"]
            self.pico.set_open(self._open)
            return
        answer: Json = {"reply": message["id"], "result": {}}
        try:
            if message["do"] == "state":
                answer["result"] = self.pico.state()
            elif message["do"] == "cut":
                self.pico.arm(**message["args"])
            else:
                answer["result"] = self.pico.do(message["do"], **message["args"])
        except model.Refused as error:
            answer["error"] = str(error)
        self._touch()
        self.send(answer)

    def _take(self, data: bytes) -> None:
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            self._handle(json.loads(line))

    def _serve(self, wait: float) -> None:
        """Look outside for at most that long: at the bench, and at both ways of the serial port."""
        reading = [self._in]
        if len(self.pico.device.to_board) < 64:  # a full-speed bulk packet
            reading.append(0)
        ready, writable, _ = select.select(reading, [1] if self._to_host else [], [], wait)
        if self._in in ready:
            data = os.read(self._in, 65536)
            if not data:
                sys.exit(0)  # the bench is gone, and with it the power
            self._take(data)
        if 0 in ready:
            self.pico.write(os.read(0, 512))
        if writable:
            with contextlib.suppress(BlockingIOError):
                del self._to_host[: os.write(1, self._to_host)]
        self.pico.hold_output(len(self._to_host) > OUTPUT_MAX)

    def run(self) -> None:
        """Run the guest at the wall clock's pace, or slower when it is busy."""
        os.set_blocking(1, False)
        self.send({"provisioned": 1})
        self._take(b"")  # what came together with the first line, such as that the port is open
        wall, emulated = time.monotonic(), self.pico.us
        while self.pico.powered:
            self.pico.run_ms(SLICE_MS)
            self._touch()
            # Time that a sleeping guest skips is waited for here, so that a host program's seconds are the guest's.
            ahead = (self.pico.us - emulated) / 1e6 - (time.monotonic() - wall)
            if ahead < -BEHIND_S:
                wall, emulated = time.monotonic(), self.pico.us
            self._serve(max(0.0, ahead))
        self.send({"cut": self.pico.cut_kind})
        while True:
            time.sleep(60)


def main() -> None:
    """Serve the bench whose pipes are given by number."""
    Guest(int(sys.argv[1]), int(sys.argv[2])).run()


if __name__ == "__main__":
    main()
