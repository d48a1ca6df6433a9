"""The MFRC522 reader chip on SPI, as an inventory of ISO/IEC 14443 type A tags (NXP MFRC522 data sheet, rev. 3.9).

SPI (8.1.2): an address byte, bit 7 for a read, bits 6..1 the register. A read takes an address a byte, so several
registers come in one transaction; a write puts all its bytes into one register (the FIFO's bytes, or a command after
another).

Every wait is bounded by the chip's own timer (8.5, TAuto): it starts at the end of what is sent and stops with the
answer's first bits. Nothing is allocated between a frame's start and its end.
"""

import asyncio
from binascii import hexlify
from time import ticks_diff, ticks_us

import micropython
from micropython import const

VERSIONS = (0x91, 0x92)

# RFCfgReg's RxGain (9.3.3.6) by gain in dB.
GAIN_BITS = {18: 0x08, 23: 0x18, 33: 0x48, 38: 0x58, 43: 0x68, 48: 0x78}

# What the field needs to be on before the first command, and off for tags to forget (ISO/IEC 14443-3, 5.1; with the
# margin that is customary).
FIELD_ON_US = const(5100)
FIELD_OFF_US = const(5100)
# HLTA's four bytes, 0.36 ms, and the millisecond in which a tag might still object (ISO/IEC 14443-3, 6.4.3).
HALT_US = const(1360)

# Two faces of each die, and some strangers. A walk meets one collision less at most; more of either is noise. It bounds
# how long a walk holds the loop as well: six milliseconds, and one for each collision.
TAGS_MAX = const(8)
# Who has held the loop for so long gives way to others after a tag. The walk to the only tag there takes less: it is
# followed by the end of the field, where others get their turn anyway.
HOLD_US = const(7000)
# Walks of one pass that may fail before it is given up as unresolved.
RETRIES = const(3)

# A frame takes below a millisecond: a chip that says nothing for so many looks and so long is broken.
POLLS_MAX = const(400)
FRAME_US = const(5000)


def _writes(register, *values):
    return bytes((register << 1,) + values)


def _reads(*registers):
    return bytes([0x80 | register << 1 for register in registers] + [0])


# Registers: 01 Command, 02 ComIEn, 03 DivIEn, 04 ComIrq, 06 Error, 09 FIFOData, 0A FIFOLevel, 0C Control,
# 0D BitFraming, 0E Coll, 11 Mode, 12 TxMode, 13 RxMode, 14 TxControl, 15 TxASK, 26 RFCfg, 2A TMode, 2B TPrescaler,
# 2C and 2D TReload, 37 Version.
_FIELD_ON = _writes(0x14, 0x83)
_FIELD_OFF = _writes(0x14, 0x80)
_SETUP = (
    _writes(0x01, 0x00),
    _writes(0x0A, 0x80),  # empty the FIFO
    _writes(0x11, 0x3D),  # CRC preset 6363
    _writes(0x12, 0x00),  # 106 kbit/s, and the CRC is ours: REQA and anticollision go without
    _writes(0x13, 0x08),  # fewer than four bits are noise
    _writes(0x15, 0x40),  # 100 % ASK
    _writes(0x2A, 0x80),  # TAuto
    _writes(0x2B, 67),  # 13.56 MHz / (2 * 67 + 1): 9.96 us
    _writes(0x2C, 0),
    # 249 us. Every answer here begins 86 or 91 us after the command's end and is seen after its first five bits, 47 us.
    _writes(0x2D, 25),
    _writes(0x0E, 0x00),  # bits after a collision read as 0
)
_IRQ_SETUP = (
    _writes(0x02, 0xA1),  # IRQ low at the end of reception or of the timer
    _writes(0x03, 0x80),  # push-pull
)
_IRQ_CLEAR = _writes(0x04, 0x7F)
_FIFO_CLEAR = _writes(0x0A, 0x80)
# Idle ends what went before (a FIFO must not be written while the chip listens), Transceive waits for StartSend.
_TRANSCEIVE = _writes(0x01, 0x00, 0x0C)
_REQA = _writes(0x09, 0x26)
_HLTA = _writes(0x09, 0x50, 0x00, 0x57, 0xCD)

_STATUS = _reads(0x04, 0x06, 0x0A, 0x0C, 0x0E)  # ComIrq, Error, FIFOLevel, Control, Coll
_VERSION = _reads(0x37, 0x14)  # Version, TxControl
_LONGEST = const(5)  # the longest answer: a whole level with its check byte

_RX_IRQ = const(0x20)
_DONE_IRQ = const(0x21)  # reception, timer
_COLLISION = const(0x08)
_ERRORS = const(0xDF)  # all of ErrorReg but its reserved bit

_CASCADE = const(0x88)

# CRC_A (ISO/IEC 14443-3, annex B: x^16 + x^12 + x^5 + 1, reflected) by four bits.
_CRC = (
    0x0000, 0x1081, 0x2102, 0x3183, 0x4204, 0x5285, 0x6306, 0x7387,
    0x8408, 0x9489, 0xA50A, 0xB58B, 0xC60C, 0xD68D, 0xE70E, 0xF78F,
)  # fmt: skip


@micropython.native
def crc_a(data, begin, end):
    """CRC_A of data[begin:end]."""
    table = _CRC
    crc = 0x6363
    for i in range(begin, end):
        crc ^= data[i]
        crc = crc >> 4 ^ table[crc & 15]
        crc = crc >> 4 ^ table[crc & 15]
    return crc


class ReaderFault(Exception):
    """A reader that does not answer as it should; the text names it."""


class MFRC522:
    """One chip: `select` is its chip select pin, `irq` its interrupt pin or None, `number` (from 1) names it."""

    def __init__(self, spi, select, number, irq=None):
        self.number = number
        self._write = spi.write
        self._transfer = spi.write_readinto
        self._select = select
        self._irq = irq
        self.off_at = ticks_us()
        self._state = bytearray(len(_VERSION))
        self._framing = bytearray((0x0D << 1, 0))
        self._status = bytearray(len(_STATUS))
        # The address of the FIFO, SEL, NVB, four bytes of a level, its check byte, CRC_A.
        self._out = bytearray(10)
        self._out[0] = 0x09 << 1
        self._frames = [memoryview(self._out)[: 1 + size] for size in range(10)]
        self._into = bytearray(1 + _LONGEST)
        self._answers = [memoryview(self._into)[: 1 + size] for size in range(1 + _LONGEST)]
        self._asks = [_reads(*[0x09] * size) for size in range(1 + _LONGEST)]
        self._uid = bytearray(10)

    # -- registers -------------------------------------------------------------------------------------------------

    def _put(self, data):
        self._select(0)
        self._write(data)
        self._select(1)

    def version(self):
        """What VersionReg says: 0x91 or 0x92 for this chip, 0x00 or 0xFF when there is none."""
        self._select(0)
        self._transfer(_VERSION, self._state)
        self._select(1)
        return self._state[1]

    def check(self):
        """Raise ReaderFault unless VersionReg is one of VERSIONS (9.3.4.8)."""
        version = self.version()
        if version not in VERSIONS:
            raise ReaderFault("reader %d: VersionReg is 0x%02x; allowed: 0x91 or 0x92" % (self.number, version))

    def off(self):
        """The field goes off."""
        self._put(_FIELD_OFF)
        self.off_at = ticks_us()

    # -- frames ----------------------------------------------------------------------------------------------------

    @micropython.native
    def _start(self, frame, bits):
        """Send `frame` (FIFO address first); `bits` are BitFramingReg's RxAlign and TxLastBits."""
        select = self._select
        write = self._write
        framing = self._framing
        framing[1] = bits
        select(0)
        write(framing)
        select(1)
        select(0)
        write(_TRANSCEIVE)
        select(1)
        select(0)
        write(_IRQ_CLEAR)
        select(1)
        select(0)
        write(frame)
        select(1)
        framing[1] = 0x80 | bits
        select(0)
        write(framing)
        select(1)

    @micropython.native
    def _finish(self):
        """Wait for the answer's end, or for the timer's when there is none.

        Returns the answer's bytes (in `_into` from 1 on), 0 when nothing came, -1 when it is too long for an answer.
        ErrorReg, ControlReg and CollReg are in `_status` at 2, 4 and 5.
        """
        select = self._select
        transfer = self._transfer
        status = self._status
        irq = self._irq
        begun = ticks_us()
        polls = 0
        while True:
            if irq is None or not irq():
                select(0)
                transfer(_STATUS, status)
                select(1)
                if status[1] & _DONE_IRQ:
                    break
            polls += 1
            if polls > POLLS_MAX and ticks_diff(ticks_us(), begun) > FRAME_US:
                raise ReaderFault("reader %d: a frame does not end; ComIrqReg is 0x%02x" % (self.number, status[1]))
        if not status[1] & _RX_IRQ:
            return 0
        size = status[3] & 0x7F
        if size == 0 or size > _LONGEST:
            self._put(_FIFO_CLEAR)
            return -1
        select(0)
        transfer(self._asks[size], self._answers[size])
        select(1)
        return size

    def _request(self):
        """REQA, a frame of seven bits: True when any tag answers, however many do at once."""
        self._start(_REQA, 7)
        return self._finish() != 0

    # -- one tag out of many (ISO/IEC 14443-3, 6.5) ----------------------------------------------------------------

    @micropython.native
    def _level(self, sel):
        """Anticollision on one cascade level: False, or four bytes and a right check byte in `_out` from 3 on.

        At a collision the tags with a 1 there go on; the others answer the next REQA.
        """
        out = self._out
        into = self._into
        status = self._status
        out[1] = sel
        for i in range(3, 8):
            out[i] = 0
        known = 0
        for _ in range(TAGS_MAX):
            whole = known >> 3
            part = known & 7
            place = 3 + whole
            out[2] = (2 + whole) << 4 | part
            self._start(self._frames[2 + whole + (1 if part else 0)], part << 4 | part)
            size = self._finish()
            if size <= 0 or size + whole > 5:
                return False
            # RxAlign puts the answer's first bit beside the last one that was sent.
            out[place] |= into[1] >> part << part & 0xFF
            for i in range(1, size):
                out[place + i] = into[1 + i]
            error = status[2] & _ERRORS
            if not error & _COLLISION:
                if error or status[4] & 7 or size + whole != 5:
                    return False
                return out[3] ^ out[4] ^ out[5] ^ out[6] == out[7]
            coll = status[5]
            if coll & 0x20:
                # Beyond the 32nd bit: check bytes alone can't differ.
                return False
            # The position is that in the FIFO, where RxAlign has left room for the bits that were sent; 0 is the 32nd.
            at = 8 * whole + ((coll & 0x1F) or 32)
            if at <= known or at > 32 or place + size < 3 + (at >> 3):
                return False
            last = 3 + (at - 1 >> 3)
            bit = 1 << (at - 1 & 7)
            out[last] = out[last] & (bit - 1) | bit
            for i in range(last + 1, 8):
                out[i] = 0
            known = at
        return False

    def _choose(self):
        """SELECT the tag of the level in `_out`: its SAK, or -1 when that did not come whole and with a good CRC."""
        out = self._out
        out[2] = 0x70
        crc = crc_a(out, 1, 8)
        out[8] = crc & 0xFF
        out[9] = crc >> 8
        self._start(self._frames[9], 0)
        if self._finish() != 3 or self._status[2] & _ERRORS or self._status[4] & 7:
            return -1
        into = self._into
        if crc_a(into, 1, 2) != into[2] | into[3] << 8:
            return -1
        return into[1]

    def _walk(self):
        """Single out one tag and select it: the length of its UID (4, 7 or 10) in `_uid`, or 0 when that failed."""
        out = self._out
        uid = self._uid
        size = 0
        for sel in (0x93, 0x95, 0x97):
            if not self._level(sel):
                return 0
            sak = self._choose()
            if sak < 0:
                return 0
            goes_on = (sak & 0x04) != 0
            # The cascade tag stands before a UID that goes on, and no UID begins with it.
            if (out[3] == _CASCADE) != goes_on and (goes_on or sel == 0x93):
                return 0
            for i in range(4 if goes_on else 3, 7):
                uid[size] = out[i]
                size += 1
            if not goes_on:
                return size
        return 0

    # -- a pass ----------------------------------------------------------------------------------------------------

    async def inventory(self, gain_db, off_at=None):
        """One pass: the set of UIDs in the field as upper-case hex, or None when they were not all told apart.

        A UID is in it only when its tag has answered its SELECT. The field is on during the pass alone. Gives way to
        other tasks while the field comes up and after each tag. Raises ReaderFault.

        `off_at` is when the last field went off that these tags may have lain in, this reader's own if not given: a tag
        that was put to sleep there may still sleep FIELD_OFF_US later.
        """
        self.check()
        if self._state[2] & 0x03:
            # The last pass could not end: its tags must forget it.
            self.off()
            off_at = None
        left = FIELD_OFF_US - ticks_diff(ticks_us(), self.off_at if off_at is None else off_at)
        if 0 < left <= FIELD_OFF_US:
            await asyncio.sleep_ms(1 + left // 1000)
        self._put(_FIELD_ON)
        try:
            return await self._inventory(gain_db, ticks_us())
        finally:
            self.off()

    async def _inventory(self, gain_db, on_at):
        for data in _SETUP:
            self._put(data)
        self._put(_writes(0x26, GAIN_BITS[gain_db]))
        if self._irq is not None:
            for data in _IRQ_SETUP:
                self._put(data)
        # A sleep may take a millisecond more than it says: that one is waited out here.
        await asyncio.sleep_ms((FIELD_ON_US - ticks_diff(ticks_us(), on_at)) // 1000 - 1)
        held_at = ticks_us()
        while ticks_diff(ticks_us(), on_at) < FIELD_ON_US:
            pass
        tags = set()
        failed = 0
        left = False
        while True:
            if not self._request():
                if not left:
                    return tags
                # A tag that was left in the middle of a walk takes this REQA only as the end of that.
                left = False
                continue
            size = self._walk()
            left = size == 0
            if left:
                failed += 1
                self._put(_FIFO_CLEAR)
            else:
                self._start(_HLTA, 0)
                sent_at = ticks_us()
                uid = hexlify(bytes(self._uid[:size])).decode().upper()
                # A tag that comes again has not taken its HLTA.
                failed += uid in tags
                tags.add(uid)
            if left or ticks_diff(ticks_us(), held_at) > HOLD_US:
                await asyncio.sleep_ms(0)
                held_at = ticks_us()
            while not left and ticks_diff(ticks_us(), sent_at) < HALT_US:
                pass
            if failed > RETRIES or len(tags) > TAGS_MAX:
                return None
