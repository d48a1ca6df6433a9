"""The MFRC522's model against its data sheet (rev. 3.9) and the tags' against ISO/IEC 14443-3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.virtual import field, mfrc522
from boards.virtual.field import LOUD_DB, REQA, WUPA, Field, Jammer, Tag, crc_a, with_crc
from boards.virtual.mfrc522 import (
    BIT_FRAMING,
    COLL,
    COM_IEN,
    COM_IRQ,
    COMMAND,
    CONTROL,
    CRC_HIGH,
    CRC_LOW,
    DEMOD,
    DIV_IEN,
    DIV_IRQ,
    ERROR,
    FIFO_DATA,
    FIFO_LEVEL,
    MF_RX,
    MODE,
    RF_CFG,
    RX_MODE,
    RX_SEL,
    STATUS1,
    STATUS2,
    T_COUNTER_HIGH,
    T_COUNTER_LOW,
    T_MODE,
    T_PRESCALER,
    T_RELOAD_HIGH,
    T_RELOAD_LOW,
    TX_ASK,
    TX_CONTROL,
    TX_MODE,
    VERSION,
    WATER_LEVEL,
    Mfrc522,
)

NTAG = "04a1b2c3d4e5f6"
OTHER = "04a1b2c3d4e5f7"
CLASSIC = "01020304"
TEN = "0102030405060708090a"


class World:
    """Tags on a table that has nothing else: (tag, gain in dB for each reader)."""

    def __init__(self) -> None:
        self.tags: list[tuple[Any, tuple[int | None, ...]]] = []
        self.asked_for: list[bool] = []
        self.fields_off = 0

    def tags_at(self, now: int) -> list[tuple[Any, tuple[int | None, ...]]]:
        return self.tags

    def asked(self, now: int, woken: bool) -> None:
        self.asked_for.append(woken)

    def left(self, now: int) -> None:
        self.fields_off += 1


class Bench:
    """Readers on a bus, in time that passes only when a test says so."""

    def __init__(self, *uids: str, readers: int = 1, world: Any = None, **options: Any) -> None:
        self.now = 0
        self.world = world or World()
        for uid in uids:
            self.put(Tag(bytes.fromhex(uid)))
        self.air = Field(self.world)
        self.chips = [Mfrc522(self.air, number, lambda: self.now, **options) for number in range(readers)]
        self.chip = self.chips[0]
        self.now = 1000  # awake

    def put(self, tag: Any, *gains: int | None) -> Any:
        self.world.tags.append((tag, (*gains, None, None, None)[:3] if gains else (LOUD_DB, None, None)))
        return tag

    def write(self, register: int, *values: int) -> None:
        self.chip.select()
        self.chip.transfer(register << 1)
        for value in values:
            self.chip.transfer(value)
        self.chip.deselect()

    def read(self, register: int) -> int:
        return self.read_all(register)[0]

    def read_all(self, *registers: int) -> list[int]:
        """Several registers in one transaction: each byte out names the next one (8.1.2.1)."""
        self.chip.select()
        addresses = [register << 1 | 0x80 for register in registers]
        self.chip.transfer(addresses[0])
        values = [self.chip.transfer(address) for address in [*addresses[1:], 0]]
        self.chip.deselect()
        return values

    def start(self, gain: int = 4, guard_us: int = 5000) -> None:
        """As a driver sets it up: 25 us timer ticks, 100 % ASK, CRC preset 6363, the field on."""
        self.write(T_MODE, 0x80)
        self.write(T_PRESCALER, 0xA9)
        self.write(T_RELOAD_LOW, 40)
        self.write(TX_ASK, 0x40)
        self.write(MODE, 0x3D)
        self.write(RF_CFG, gain << 4)
        self.write(TX_CONTROL, 0x83)
        self.now += guard_us

    def stop(self, for_us: int = 5000) -> None:
        """The field off, for so long."""
        self.write(TX_CONTROL, 0x80)
        self.now += for_us

    def send(self, data: bytes, last_bits: int = 0, align: int = 0) -> int:
        """Transceive; microseconds until an answer or the timer."""
        self.write(COMMAND, 0x00)
        self.write(COM_IRQ, 0x7F)
        self.write(FIFO_LEVEL, 0x80)
        self.write(FIFO_DATA, *data)
        self.write(COLL, 0x00)
        self.write(COMMAND, 0x0C)
        begin = self.now
        self.write(BIT_FRAMING, 0x80 | align << 4 | last_bits)
        return self.wait(0x21) - begin

    def wait(self, irqs: int) -> int:
        self.write(COM_IEN, 0x80 | irqs)
        while not self.read(COM_IRQ) & irqs:
            due = self.chip.due()
            assert due is not None, "no interrupt request will come"
            self.now = due
        return self.now

    def fifo(self) -> bytes:
        level = self.read(FIFO_LEVEL)
        return bytes(self.read_all(*[FIFO_DATA] * level)) if level else b""

    def ask(self, data: bytes, last_bits: int = 0, align: int = 0) -> bytes | None:
        """Transceive; what was received, or None when the timer came."""
        self.send(data, last_bits, align)
        return self.fifo() if self.read(COM_IRQ) & 0x20 else None

    def request(self, code: int = REQA) -> bytes | None:
        return self.ask(bytes([code]), 7)

    def select(self, level: int, part: bytes) -> bytes | None:
        check = part[0] ^ part[1] ^ part[2] ^ part[3]
        return self.ask(with_crc(bytes([field.SELECT[level], 0x70, *part, check])))

    def halt(self) -> None:
        assert self.ask(with_crc(b"\x50\x00")) is None


# --- SPI, reset, registers -------------------------------------------------------------------------------------------


def test_registers_have_their_reset_values() -> None:
    one = Bench()
    expected = {
        0x01: 0x20, 0x02: 0x80, 0x04: 0x14, 0x07: 0x21, 0x0B: 0x08, 0x0C: 0x10, 0x0E: 0xA0, 0x11: 0x3F, 0x14: 0x80,
        0x16: 0x10, 0x17: 0x84, 0x18: 0x84, 0x19: 0x4D, 0x1C: 0x62, 0x1F: 0xEB, 0x21: 0xFF, 0x22: 0xFF, 0x23: 0x88,
        0x24: 0x26, 0x25: 0x87, 0x26: 0x48, 0x27: 0x88, 0x28: 0x20, 0x29: 0x20, 0x33: 0x80, 0x36: 0x40, 0x37: 0x92,
    }  # fmt: skip
    for register in (*range(0x2A, 0x30), 0x05, 0x06, 0x08, 0x0A, 0x0D, 0x12, 0x13, 0x15, 0x1D, 0x31, 0x32, 0x34, 0x38):
        expected[register] = 0x00
    assert {register: one.read(register) for register in expected} == expected


def test_reserved_bits_and_read_only_registers_take_no_write() -> None:
    one = Bench()
    for register in (RF_CFG, 0x1C, MF_RX, TX_ASK, WATER_LEVEL, VERSION, ERROR, 0x23, 0x0F, T_COUNTER_LOW):
        one.write(register, 0xFF)
    assert one.read_all(RF_CFG, 0x1C, MF_RX, TX_ASK, WATER_LEVEL) == [0x78, 0x63, 0x10, 0x40, 0x3F]
    assert one.read_all(VERSION, ERROR, 0x23, 0x0F, T_COUNTER_LOW) == [0x92, 0x00, 0x88, 0x00, 0x00]


def test_spi_reads_several_registers_and_writes_several_bytes_to_one() -> None:
    one = Bench()
    one.write(FIFO_DATA, 1, 2, 3)
    assert one.read_all(VERSION, FIFO_LEVEL, FIFO_DATA, FIFO_DATA, FIFO_LEVEL) == [0x92, 3, 1, 2, 1]
    one.chip.select()
    assert one.chip.transfer(FIFO_DATA << 1 | 0x80) == 0
    one.chip.deselect()
    assert one.read(FIFO_LEVEL) == 1  # an address alone reads nothing
    assert one.chip.transfer(VERSION << 1 | 0x80) == one.chip.transfer(0) == 0  # not selected


@pytest.mark.parametrize("version", [0x91, 0x92, 0x12])
def test_the_version_of_the_chip_or_its_clone(version: int) -> None:
    assert Bench(version=version).read(VERSION) == version


def test_the_chip_can_be_addressed_only_after_its_oscillator_has_started() -> None:
    one = Bench()
    one.chip.reset_pin(0)
    assert one.read(VERSION) == 0
    one.now += 10
    one.chip.reset_pin(1)
    one.write(WATER_LEVEL, 0x20)  # lost
    assert one.read_all(COMMAND, VERSION) == [0x30, 0x00]  # PowerDown reads as 1 while it wakes up
    one.now += mfrc522.CRYSTAL_US + 38
    assert one.read_all(COMMAND, VERSION, WATER_LEVEL) == [0x20, 0x92, 0x08]


def test_a_soft_reset_sets_every_register_back_and_takes_1024_clocks() -> None:
    one = Bench(CLASSIC)
    one.start()
    one.write(FIFO_DATA, 1, 2, 3)
    one.write(COMMAND, 0x0F)
    one.now += 37
    assert one.read(COMMAND) & 0x10
    one.now += 1
    assert one.read_all(COMMAND, FIFO_LEVEL, TX_CONTROL, COM_IRQ) == [0x20, 0, 0x80, 0x14]
    assert one.world.fields_off == 1


def test_soft_power_down_keeps_the_registers_and_switches_the_field_off() -> None:
    one = Bench(CLASSIC)
    one.start()
    one.write(COMMAND, 0x10)
    assert one.world.fields_off == 1
    assert one.read_all(COMMAND, TX_CONTROL) == [0x10, 0x83]
    one.write(COMMAND, 0x00)
    assert one.read(COMMAND) & 0x10
    one.now += 38
    assert one.read_all(COMMAND, TX_CONTROL) == [0x00, 0x83]
    assert one.request() is None  # the tag's power has just come back
    one.now += 5000
    assert one.request() == b"\x04\x00"


# --- FIFO, interrupts ------------------------------------------------------------------------------------------------


def test_fifo_levels_and_their_alerts() -> None:
    one = Bench()
    one.write(WATER_LEVEL, 2)
    one.write(COM_IRQ, 0x7F)
    one.write(FIFO_DATA, 1, 2, 3)
    assert one.read(STATUS1) & 0x03 == 0
    one.read(FIFO_DATA)
    assert one.read(STATUS1) & 0x03 == 1  # FIFO length <= WaterLevel
    assert one.read(COM_IRQ) == 0x04
    one.write(FIFO_DATA, *range(59))
    assert one.read_all(FIFO_LEVEL, STATUS1)[1] & 0x03 == 0
    one.write(FIFO_DATA, 0)
    assert one.read(STATUS1) & 0x03 == 2  # 64 - FIFO length <= WaterLevel
    assert one.read(COM_IRQ) == 0x0C
    one.write(FIFO_DATA, 0, 0)
    assert one.read_all(FIFO_LEVEL, ERROR) == [64, 0]
    one.write(FIFO_DATA, 0)
    assert one.read_all(FIFO_LEVEL, ERROR) == [64, 0x10]  # BufferOvfl
    one.write(FIFO_LEVEL, 0x80)
    assert one.read_all(FIFO_LEVEL, ERROR, FIFO_DATA) == [0, 0, 0]


def test_interrupt_requests_are_set_and_cleared_by_the_marked_bits() -> None:
    one = Bench()
    one.write(COM_IRQ, 0x04)
    assert one.read(COM_IRQ) == 0x10
    one.write(COM_IRQ, 0x80 | 0x21)
    assert one.read(COM_IRQ) == 0x31
    one.write(COM_IRQ, 0x7F)
    assert one.read(COM_IRQ) == 0x00
    one.write(DIV_IRQ, 0x80 | 0x7F)
    assert one.read(DIV_IRQ) == 0x14
    one.write(DIV_IRQ, 0x10)
    assert one.read(DIV_IRQ) == 0x04


def test_the_irq_pin_follows_inversion_and_push_pull() -> None:
    one = Bench()
    one.write(COM_IRQ, 0x7F)
    pin: Callable[[], int | None] = one.chip.irq_pin
    assert pin() is None  # after the reset: inverted, open drain, no request
    one.write(COM_IEN, 0x80 | 0x01)
    one.write(COM_IRQ, 0x81)
    assert (pin(), one.read(STATUS1) & 0x10) == (0, 0x10)
    one.write(DIV_IEN, 0x80)
    one.write(COM_IRQ, 0x01)
    assert (pin(), one.read(STATUS1) & 0x10) == (1, 0)
    one.write(COM_IEN, 0x01)  # not inverted
    assert pin() == 0
    one.write(COM_IRQ, 0x81)
    assert pin() == 1
    one.chip.reset_pin(0)
    assert pin() is None


def test_due_tells_when_the_irq_pin_changes_by_itself() -> None:
    one = Bench(CLASSIC)
    one.start()
    one.write(COM_IRQ, 0x7F)
    one.write(FIFO_DATA, REQA)
    one.write(COMMAND, 0x0C)
    one.write(BIT_FRAMING, 0x87)
    assert one.chip.due() is None  # no request is enabled
    one.write(COM_IEN, 0x80 | 0x20)
    begin, pins = one.now, []
    while one.chip.due() is not None:
        one.now = one.chip.due()
        one.chip.catch_up(one.now)
        pins.append((one.now - begin, one.chip.irq_pin()))
    assert [level for _at, level in pins] == [None] * (len(pins) - 1) + [0]
    assert pins[-1][0] == 371


# --- commands ---------------------------------------------------------------------------------------------------------


def test_calc_crc_gives_crc_a_low_byte_first() -> None:
    one = Bench()
    one.write(MODE, 0x3D)
    one.write(FIFO_DATA, 0x50)
    one.write(COMMAND, 0x03)
    one.write(FIFO_DATA, 0x00)  # what is written afterwards is added
    assert one.read(DIV_IRQ) & 0x04
    assert one.read_all(CRC_LOW, CRC_HIGH) == [0x57, 0xCD]  # HLTA (ISO/IEC 14443-3, 6.4.3)
    assert with_crc(b"\x50\x00") == b"\x50\x00\x57\xcd"
    one.write(FIFO_DATA, 0x57, 0xCD)
    assert one.read(STATUS1) & 0x40  # CRCOk: the result is zero
    assert one.read_all(FIFO_LEVEL, COMMAND) == [0, 0x03]


@pytest.mark.parametrize(("mode", "result"), [(0x00, 0x2189), (0x03, 0x6F91), (0x80, 0x31C3), (0x83, 0x29B1)])
def test_the_crc_presets_and_msb_first(mode: int, result: int) -> None:
    # Check values of the CRC catalogue: KERMIT, MCRF4XX, XMODEM, IBM-3740 (reveng.sourceforge.io).
    one = Bench()
    one.write(MODE, mode)
    one.write(FIFO_DATA, *b"123456789")
    one.write(COMMAND, 0x03)
    assert one.read(CRC_HIGH) << 8 | one.read(CRC_LOW) == result


def test_the_internal_buffer_takes_and_gives_25_bytes() -> None:
    one = Bench()
    one.write(FIFO_DATA, *range(1, 26))
    one.write(COM_IRQ, 0x7F)
    one.write(COMMAND, 0x01)
    assert one.read_all(FIFO_LEVEL, COMMAND, COM_IRQ) == [0, 0, 0x14]
    one.write(COMMAND, 0x02)  # GenerateRandomID overwrites ten of them
    one.write(COMMAND, 0x01)
    got = one.fifo()
    assert len(got) == 25
    assert got[:10] != bytes(range(1, 11))
    assert got[10:] == bytes(range(11, 26))


def test_a_command_that_ends_by_itself_asks_and_idle_does_not() -> None:
    one = Bench()
    one.write(COM_IRQ, 0x7F)
    one.write(COMMAND, 0x0C)
    one.write(COMMAND, 0x27)  # NoCmdChange: only RcvOff
    assert one.read(COMMAND) == 0x2C
    one.write(COMMAND, 0x00)
    assert one.read(COM_IRQ) & 0x10 == 0
    one.write(COMMAND, 0x05)  # unknown
    assert one.read_all(COMMAND, COM_IRQ) == [0x00, 0x10]


def test_mf_authent_needs_twelve_bytes_and_is_refused_by_every_tag() -> None:
    one = Bench(CLASSIC)
    one.start()
    one.request()
    one.select(0, bytes.fromhex(CLASSIC))
    one.write(COM_IRQ, 0x7F)
    one.write(FIFO_DATA, *[0x60] * 11)
    one.write(COMMAND, 0x0E)
    assert one.read_all(COMMAND, COM_IRQ, ERROR) == [0, 0x12, 0x01]  # ProtocolErr
    one.write(FIFO_LEVEL, 0x80)
    one.write(FIFO_DATA, 0x60, 8, *[0xFF] * 6, 1, 2, 3, 4)
    one.write(COMMAND, 0x0E)
    one.write(FIFO_DATA, 0)
    assert one.read(ERROR) & 0x80  # WrErr: the host wrote during MFAuthent
    one.wait(0x01)
    assert one.read_all(COMMAND, STATUS2)[1] & 0x08 == 0  # no Crypto1
    assert one.read(COMMAND) == 0x0E


# --- the timer --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("even", "prescaler", "reload", "us"),
    [(0, 0xA9, 39, 1000), (0, 0xD3E, 30, 15503), (1, 0xA9, 39, 1003), (0, 0, 0, 1), (0, 0xFFF, 99, 60406)],
)
def test_the_timer_runs_out_after_its_formula(even: int, prescaler: int, reload: int, us: int) -> None:
    # td = (2 TPrescaler + 1) (TReload + 1) / 13.56 MHz, with TPrescalEven + 2 (8.5)
    assert us == round((2 * prescaler + 1 + even) * (reload + 1) / 13.56 + 0.5)
    one = Bench()
    one.write(DEMOD, 0x4D | even << 4)
    one.write(T_MODE, prescaler >> 8)
    one.write(T_PRESCALER, prescaler & 0xFF)
    one.write(T_RELOAD_HIGH, reload >> 8)
    one.write(T_RELOAD_LOW, reload & 0xFF)
    one.write(COM_IRQ, 0x7F)
    one.write(CONTROL, 0x40)
    assert one.read(STATUS1) & 0x08
    assert one.read(T_COUNTER_LOW) == reload & 0xFF
    one.now += us - 1
    assert one.read(COM_IRQ) & 0x01 == 0
    one.now += 1
    assert one.read(COM_IRQ) & 0x01
    assert one.read_all(STATUS1, T_COUNTER_HIGH, T_COUNTER_LOW)[1:] == [0, 0]
    assert one.read(STATUS1) & 0x08 == 0


def test_the_timer_counts_stops_and_restarts() -> None:
    one = Bench()
    one.write(T_PRESCALER, 0xA9)  # 25 us
    one.write(T_RELOAD_HIGH, 0x01)
    one.write(CONTROL, 0x40)
    one.now += 1010
    assert one.read_all(T_COUNTER_HIGH, T_COUNTER_LOW) == [0, 256 - 40]
    one.write(CONTROL, 0x80)
    one.now += 100_000
    assert one.read_all(T_COUNTER_LOW, COM_IRQ) == [256 - 40, 0x14]
    one.write(T_MODE, 0x10)  # TAutoRestart: it never ends
    one.write(T_RELOAD_HIGH, 0x00)
    one.write(T_RELOAD_LOW, 3)
    one.write(CONTROL, 0x40)
    one.now += 110
    assert one.read_all(T_COUNTER_LOW, COM_IRQ) == [3, 0x14]
    assert one.read(STATUS1) & 0x08


def test_with_tauto_it_starts_with_the_end_of_sending_and_stops_at_the_fifth_bit() -> None:
    one = Bench(CLASSIC)
    one.start()
    assert one.send(bytes([REQA]), 7) == 371
    assert one.read(COM_IRQ) & 0x61 == 0x60  # sent and received, no timer
    assert one.read_all(T_COUNTER_HIGH, T_COUNTER_LOW) == [0, 40 - (87 + 48) // 25]
    one.world.tags.clear()
    one.now += 86
    assert one.send(bytes([REQA]), 7) == 95 + 1025  # an empty field costs the frame and the timer
    assert one.read(COM_IRQ) & 0x61 == 0x41


# --- the air ----------------------------------------------------------------------------------------------------------


def test_the_time_on_the_air_is_the_standards() -> None:
    # At 106 kbit/s: request 0.37 ms, anticollision 0.81, select 1.24, with the 86 us to the next frame.
    one = Bench(NTAG)
    one.start()
    ready = one.now
    assert one.send(bytes([REQA]), 7) == 371
    one.now += 86
    assert one.send(b"\x93\x20") == 730
    uid = one.fifo()
    one.now += 86
    assert one.send(with_crc(b"\x93\x70" + uid)) == 1154
    # Faster than the frame delay time to the next command nothing is sent: 9 bits after the answer (MfTxReg, TxWait).
    assert one.send(b"\x95\x20") == 730 + 85
    assert one.now - ready == 371 + 86 + 730 + 86 + 1154 + 85 + 730


def test_a_tag_answers_five_milliseconds_after_the_field_came() -> None:
    one = Bench(CLASSIC)
    one.start(guard_us=4800)
    assert one.request() is None
    one = Bench(CLASSIC)
    one.start(guard_us=5000)
    assert one.request() == b"\x04\x00"
    one.write(TX_CONTROL, 0x80)
    one.write(TX_CONTROL, 0x83)
    assert one.request() is None


@pytest.mark.parametrize(
    ("register", "value"),
    [(TX_ASK, 0x00), (TX_MODE, 0x10), (RX_MODE, 0x10), (MF_RX, 0x10), (RX_SEL, 0x84 | 0x3F), (TX_CONTROL, 0x80)],
)
def test_nothing_is_heard_with_a_wrong_setting(register: int, value: int) -> None:
    one = Bench(CLASSIC)
    one.start()
    one.write(MODE, 0x1D)  # TxWaitRF off, or without a field it would not send at all
    one.write(register, value)
    assert one.request() is None


def test_it_waits_for_a_field_before_it_sends() -> None:
    one = Bench(CLASSIC)
    one.start()
    one.write(TX_CONTROL, 0x80)
    one.write(FIFO_DATA, REQA)
    one.write(COM_IRQ, 0x7F)
    one.write(COMMAND, 0x0C)
    assert one.read(STATUS2) & 0x07 == 1  # wait for StartSend
    one.write(BIT_FRAMING, 0x87)
    one.now += 10_000
    assert one.read_all(STATUS2, COM_IRQ, FIFO_LEVEL) == [2, 0, 1]
    one.write(TX_CONTROL, 0x83)
    assert one.read(STATUS2) & 0x07 == 3
    one.now += 95
    assert one.read(STATUS2) & 0x07 == 4  # the receiver waits RxWait bits
    one.now += 40
    assert one.read(STATUS2) & 0x07 == 5


def test_transmit_ends_by_itself_and_receive_takes_the_answer() -> None:
    one = Bench(CLASSIC)
    one.start()
    one.write(COM_IRQ, 0x7F)
    one.write(BIT_FRAMING, 0x07)
    one.write(FIFO_DATA, REQA)
    one.write(COMMAND, 0x04)
    one.wait(0x40)
    assert one.read_all(COMMAND, COM_IRQ)[0] == 0
    assert one.read(COM_IRQ) & 0x10
    one.write(BIT_FRAMING, 0x00)
    one.write(COM_IRQ, 0x7F)
    one.write(COMMAND, 0x08)
    one.wait(0x20)
    assert (one.fifo(), one.read(COMMAND), one.read(COM_IRQ) & 0x10) == (b"\x04\x00", 0, 0x10)


def test_a_byte_written_between_sending_and_the_answer_is_an_error() -> None:
    one = Bench(CLASSIC)
    one.start()
    one.write(COM_IRQ, 0x7F)
    one.write(FIFO_DATA, REQA)
    one.write(COMMAND, 0x0C)
    one.write(BIT_FRAMING, 0x87)
    one.now += 100
    one.write(FIFO_DATA, 0)
    assert one.read_all(ERROR, COM_IRQ)[0] == 0x80
    assert one.read(COM_IRQ) & 0x02


def test_the_crc_is_made_and_checked_by_the_chip() -> None:
    one = Bench(NTAG)
    one.start()
    one.request()
    first = one.ask(b"\x93\x20")
    assert first is not None
    one.write(TX_MODE, 0x80)
    one.write(RX_MODE, 0x80)
    assert one.ask(b"\x93\x70" + first) == b"\x04"
    assert one.read_all(ERROR, CONTROL) == [0, 0x10]
    one.write(TX_MODE, 0x00)
    assert one.ask(b"\x95\x20") == bytes.fromhex(NTAG)[3:6]  # the last two bytes were taken for a CRC
    assert one.read(ERROR) & 0x04


# --- tags -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uid", "atqa", "parts", "saks"),
    [
        (CLASSIC, b"\x04\x00", ["01020304"], [0x08]),
        (NTAG, b"\x44\x00", ["8804a1b2", "c3d4e5f6"], [0x04, 0x00]),
        (TEN, b"\x84\x00", ["88010203", "88040506", "0708090a"], [0x04, 0x04, 0x00]),
    ],
)
def test_the_cascade_levels(uid: str, atqa: bytes, parts: list[str], saks: list[int]) -> None:
    one = Bench(uid)
    one.start()
    assert one.request() == atqa
    for level, (part, sak) in enumerate(zip(parts, saks, strict=True)):
        got = one.ask(bytes([field.SELECT[level], 0x20]))
        assert got is not None
        assert got[:4].hex() == part
        assert got[0] ^ got[1] ^ got[2] ^ got[3] == got[4]
        answer = one.select(level, got[:4])
        assert answer == with_crc(bytes([sak]))


def test_halted_tags_hear_only_wupa_and_return_to_where_they_came_from() -> None:
    one = Bench(CLASSIC)
    tag = one.world.tags[0][0]
    one.start()
    assert one.request() == b"\x04\x00"
    assert one.select(0, bytes.fromhex(CLASSIC)) == with_crc(b"\x08")
    one.halt()
    assert tag.state == field.HALTED
    assert one.request() is None
    assert one.request(WUPA) == b"\x04\x00"
    assert one.request(WUPA) is None  # not expected in READY*
    assert tag.state == field.HALTED
    assert one.request(WUPA) == b"\x04\x00"
    one.select(0, bytes.fromhex(CLASSIC))
    one.halt()
    one.stop(4900)
    one.write(TX_CONTROL, 0x83)
    one.now += 5000
    assert one.request() is None  # it was off for too short a time
    one.stop(5000)
    one.write(TX_CONTROL, 0x83)
    one.now += 5000
    assert one.request() == b"\x04\x00"  # without power all is forgotten
    assert one.world.asked_for == [False, False, True, True, True, False, False]


@pytest.mark.parametrize(
    "frame",
    [
        bytes([REQA, 0x00]),
        b"\x95\x20",  # another cascade level
        b"\x93\x10",  # NVB below 20
        b"\x93\x30",  # more bits than NVB says follow
        with_crc(b"\x93\x70\x01\x02\x03\x05\x01"),  # another UID
        b"\x93\x70\x01\x02\x03\x04\x04\x00\x00",  # a wrong CRC
        with_crc(b"\x50\x00"),
    ],
)
def test_a_wrong_frame_sends_a_ready_tag_back_to_idle(frame: bytes) -> None:
    one = Bench(CLASSIC)
    one.start()
    one.request()
    assert one.ask(frame) is None
    assert one.world.tags[0][0].state == field.IDLE
    assert one.ask(b"\x93\x20") is None


def test_a_frame_that_is_cut_short_is_none() -> None:
    one = Bench(CLASSIC)
    one.start()
    one.request()
    one.write(FIFO_DATA, 0x93, 0x20)
    one.write(COMMAND, 0x0C)
    one.write(BIT_FRAMING, 0x80)
    one.now += 50
    one.write(COMMAND, 0x00)
    assert one.world.tags[0][0].state == field.IDLE


@pytest.mark.parametrize("known", [0, 1, 5, 7, 8, 9, 16, 23, 24, 31, 32, 39])
def test_anticollision_takes_any_number_of_known_bits(known: int) -> None:
    one = Bench(CLASSIC)
    one.start()
    level = field.levels_of(bytes.fromhex(CLASSIC))[0]
    number = int.from_bytes(level, "little")
    one.request()
    whole, bits = divmod(known, 8)
    part = (number & (1 << known) - 1).to_bytes(whole + (bits > 0), "little")
    got = one.ask(bytes([0x93, 0x20 + 16 * whole + bits]) + part, bits, bits)
    assert got is not None
    # The first received bit lies behind the last one sent (RxAlign).
    assert int.from_bytes(got, "little") == number >> known << bits
    assert one.read_all(CONTROL, ERROR) == [0x10, 0]
    if known:
        one.request()
        one.request()
        flipped = part[:-1] + bytes([part[-1] ^ 1])
        assert one.ask(bytes([0x93, 0x20 + 16 * whole + bits]) + flipped, bits, bits) is None
        assert one.world.tags[0][0].state == field.READY  # another one is meant


def test_fewer_than_four_bits_are_no_answer_with_rx_no_err() -> None:
    one = Bench(CLASSIC)
    one.start()
    level = field.levels_of(bytes.fromhex(CLASSIC))[0]
    for mode, bits, heard in ((0x00, 5, True), (0x08, 4, True), (0x08, 5, False)):
        one.write(RX_MODE, mode)
        assert one.request() or one.request()
        got = one.ask(bytes([0x93, 0x60 | bits]) + level, bits, bits)
        assert (got is not None) == heard
        one.ask(bytes([REQA]), 7)


def test_an_ntag_gives_its_pages_and_refuses_what_it_does_not_know() -> None:
    one = Bench(NTAG)
    one.start()
    one.request()
    one.select(0, bytes.fromhex("8804a1b2"))
    one.select(1, bytes.fromhex("c3d4e5f6"))
    pages = one.ask(with_crc(b"\x30\x00"))
    assert pages is not None
    assert crc_a(pages) == 0
    assert (pages[:3] + pages[4:8]).hex() == NTAG
    assert pages[3] == 0x88 ^ pages[0] ^ pages[1] ^ pages[2]
    assert one.ask(with_crc(b"\x30\x2c")) is not None  # the last page, and over to the first
    assert one.ask(with_crc(b"\x31\x00")) == b"\x00"  # NAK
    assert one.read(CONTROL) & 0x07 == 4
    assert one.world.tags[0][0].state == field.IDLE


# --- several tags, several readers ------------------------------------------------------------------------------------


def test_a_collision_is_told_by_its_place_and_the_rest_reads_as_zeros() -> None:
    one = Bench("01020304", "01020b04")  # bits 17 + 3 differ first
    one.start()
    assert one.request() == b"\x04\x00"
    assert one.ask(b"\x93\x20") == b"\x01\x02\x03\x00\x00"
    assert one.read_all(ERROR, COLL) == [0x08, 20]
    assert one.read(COM_IRQ) & 0x22 == 0x22
    # From the known bits on: CollPos counts from bit 0 of the first byte received, RxAlign included.
    assert one.ask(b"\x93\x32\x01\x01", 2, 2) is None  # another prefix
    assert one.ask(b"\x93\x43\x01\x02\x03", 3, 3) == b"\x00\x00\x00"
    assert one.read_all(ERROR, COLL) == [0x08, 4]
    assert one.ask(b"\x93\x44\x01\x02\x03", 4, 4) == bytes([0, 4, 1 ^ 2 ^ 3 ^ 4])
    assert one.read_all(ERROR, COLL) == [0, 0x20]


def test_values_after_a_collision_are_kept_when_they_are_asked_for() -> None:
    one = Bench("01020304", "01020b04")
    one.start()
    one.request()
    one.write(COMMAND, 0x00)
    one.write(COM_IRQ, 0x7F)
    one.write(FIFO_LEVEL, 0x80)
    one.write(FIFO_DATA, 0x93, 0x20)
    one.write(COLL, 0x80)
    one.write(COMMAND, 0x0C)
    one.write(BIT_FRAMING, 0x80)
    one.wait(0x20)
    assert one.fifo() == bytes([1, 2, 0x0B, 4, (1 ^ 2 ^ 3 ^ 4) | (1 ^ 2 ^ 0x0B ^ 4)])
    assert one.read(COLL) == 0x80 | 20


def test_a_collision_in_bit_32_reads_as_0_and_behind_it_as_not_valid() -> None:
    one = Bench("01020304", "01020384")
    one.start()
    one.request()
    one.ask(b"\x93\x20")
    assert one.read(COLL) == 0
    two = Bench("01020304")
    two.put(Tag(bytes.fromhex("01020304"))).levels = [b"\x01\x02\x03\x04\x05"]  # a wrong check byte
    two.start()
    two.request()
    two.ask(b"\x93\x20")
    assert two.read_all(ERROR, COLL) == [0x08, 0x20]


def test_tags_with_uids_of_different_lengths_collide_in_the_request() -> None:
    one = Bench(CLASSIC, NTAG)
    one.start()
    one.request()
    assert one.read_all(ERROR, COLL) == [0x08, 7]


def test_a_wrong_parity_bit_is_told() -> None:
    one = Bench()
    tag = one.put(Tag(bytes.fromhex(CLASSIC)))
    hear = tag.hear
    tag.hear = lambda data, bits, now: [(*answer[:3], False) for answer in hear(data, bits, now)]
    one.start()
    assert one.request() == b"\x04\x00"
    assert one.read(ERROR) == 0x02


def test_the_receivers_gain_decides_which_tags_are_heard() -> None:
    for code, gain in enumerate((18, 23, 18, 23, 33, 38, 43, 48)):
        one = Bench()
        one.put(Tag(bytes.fromhex(CLASSIC)), 38)
        one.start(gain=code)
        assert (one.request() is not None) == (gain >= 38)
        assert one.world.tags[0][0].state == field.READY  # it hears the reader whatever the reader's gain


def test_readers_see_what_lies_in_their_field_and_two_fields_at_once_are_noise() -> None:
    one = Bench(readers=3)
    both = one.put(Tag(bytes.fromhex(CLASSIC)), LOUD_DB, LOUD_DB)
    alone = one.put(Tag(bytes.fromhex("0a0b0c0d")), None, None, LOUD_DB)
    seen = []
    for chip in one.chips:
        one.chip = chip
        one.start()
        one.request()
        seen.append(one.ask(b"\x93\x20"))
        one.stop()
        assert both.state == alone.state == field.OFF
    assert [got and got[:4].hex() for got in seen] == [CLASSIC, CLASSIC, "0a0b0c0d"]
    one.chip = one.chips[0]
    one.start()
    one.chip = one.chips[1]
    one.start()
    assert one.request() is None
    one.chip = one.chips[2]
    one.start()
    assert one.request() == b"\x04\x00"  # out of the other two's reach


def test_what_one_reader_has_sent_is_heard_before_another_one_starts() -> None:
    one = Bench(CLASSIC, readers=2)
    one.start()
    one.write(FIFO_DATA, REQA)
    one.write(COMMAND, 0x0C)
    one.write(BIT_FRAMING, 0x87)
    one.now += 1000
    one.chip = one.chips[1]
    one.write(TX_CONTROL, 0x83)  # nobody has looked at the first one since
    assert one.world.asked_for == [False]


@pytest.mark.parametrize("reads_as", [0x00, 0xFF])
def test_a_dead_chip_reads_the_same_everywhere(reads_as: int) -> None:
    one = Bench(readers=2, health=lambda number: reads_as if number == 1 else None)
    assert one.read(VERSION) == 0x92
    one.chip = one.chips[1]
    assert one.read_all(VERSION, COMMAND, FIFO_LEVEL) == [reads_as] * 3


def test_a_marginal_supply_shows_in_the_version_now_and_then() -> None:
    one = Bench(health=lambda number: mfrc522.FLICKERS)
    seen = [one.read(VERSION) for _ in range(12)]
    assert 0 < seen.count(0x92) < 12
    assert one.read(WATER_LEVEL) == 0x08


# --- a tree walk over the registers finds exactly what is there -------------------------------------------------------


def inventory(one: Bench, budget: int = 400) -> set[str]:
    """Every UID in the field: select one after the other by their first collisions, halt it, go on until silence.

    Raises OverflowError after `budget` frames.
    """
    found = set()
    frames = 0

    def ask(data: bytes, *args: int) -> bytes | None:
        nonlocal frames
        frames += 1
        if frames > budget:
            raise OverflowError
        return one.ask(data, *args)

    while ask(bytes([REQA]), 7) is not None:
        uid = b""
        for level in range(3):
            known, number = 0, 0
            while True:
                whole, bits = divmod(known, 8)
                sent = number.to_bytes(whole + (bits > 0), "little")
                got = ask(bytes([field.SELECT[level], 0x20 + 16 * whole + bits]) + sent, bits, bits)
                if got is None:
                    break
                number |= int.from_bytes(got, "little") << 8 * whole
                if not one.read(ERROR) & 0x08:
                    break
                at = one.read(COLL)
                assert not at & 0x20
                known = 8 * whole + ((at & 0x1F) or 32)
                number |= 1 << known - 1
            if got is None:
                break
            part = number.to_bytes(5, "little")
            if part[0] ^ part[1] ^ part[2] ^ part[3] != part[4]:
                break
            sak = ask(with_crc(bytes([field.SELECT[level], 0x70]) + part))
            if sak is None or crc_a(sak):
                break
            uid += part[1:4] if sak[0] & 0x04 else part[:4]
            if not sak[0] & 0x04:
                found.add(uid.hex())
                ask(with_crc(b"\x50\x00"))
                break
    return found


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_tree_walk_finds_exactly_the_tags_that_are_there(data: st.DataObject) -> None:
    length = data.draw(st.sampled_from([4, 7, 10]))
    shared = data.draw(st.integers(0, length - 1))
    prefix = data.draw(st.binary(min_size=shared, max_size=shared))
    tails = st.binary(min_size=length - shared, max_size=length - shared)

    def fits(uid: bytes) -> bool:  # 88 begins no UID CLn but a cascade tag's (6.5.4)
        return 0x88 not in (uid[0], *uid[3:4], *uid[6:7])

    uids = data.draw(st.sets(tails.map(lambda tail: prefix + tail).filter(fits), min_size=1, max_size=6))
    one = Bench(*[uid.hex() for uid in sorted(uids)])
    one.start()
    assert inventory(one) == {uid.hex() for uid in uids}


def test_nothing_can_be_told_apart_from_a_jammer() -> None:
    one = Bench(NTAG, OTHER)
    one.put(Jammer(7))
    one.start()
    with pytest.raises(OverflowError):
        inventory(one)
