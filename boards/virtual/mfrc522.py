"""NXP MFRC522 (data sheet rev. 3.9) at register and bit level, byte by byte on SPI, in microseconds of a given clock.

Whatever takes time (a frame on the air, the timer, waking up) has happened when its time has come and somebody looks: a
register is touched, the IRQ pin is asked for, or the bench calls `catch_up` at the time that `due` gives.

Not modelled: UART and I2C, MFIN and MFOUT, the test bus and self-test, heat, Crypto1 (MFAuthent sends and hears no
answer), bit rates other than 106 kBd (nothing answers them), of the analog part all but the receiver's gain. What the
data sheet leaves open:
 - CollPos counts from bit 0 of the first received byte, RxAlign included, as NXP's own reader library takes it.
 - The crystal's start-up time, CRYSTAL_US.
 - While the chip wakes up CommandReg reads as 30h, everything else as 0, and what is written is lost (8.8.2, 9.3.1.2).
"""

from boards.virtual import prng
from boards.virtual.field import crc_a, with_crc

# Registers (9.2).
COMMAND, COM_IEN, DIV_IEN, COM_IRQ, DIV_IRQ, ERROR, STATUS1, STATUS2 = range(0x01, 0x09)
FIFO_DATA, FIFO_LEVEL, WATER_LEVEL, CONTROL, BIT_FRAMING, COLL = range(0x09, 0x0F)
MODE, TX_MODE, RX_MODE, TX_CONTROL, TX_ASK = range(0x11, 0x16)
RX_SEL, DEMOD, MF_TX, MF_RX = 0x17, 0x19, 0x1C, 0x1D
CRC_HIGH, CRC_LOW, RF_CFG = 0x21, 0x22, 0x26
T_MODE, T_PRESCALER, T_RELOAD_HIGH, T_RELOAD_LOW, T_COUNTER_HIGH, T_COUNTER_LOW = range(0x2A, 0x30)
VERSION = 0x37

# The reset value of each register (9.3; what is x there is 0 here), and the bits that a write changes. Reserved bits
# keep their reset value; a mask of 00 also stands for registers that `_write` handles one by one.
RESET = bytes.fromhex(
    "0020800014000021000000081000a000003f000080001084844d0000620000eb"
    "ffffff88268748882020000000000000000000800000400000000000ff000300"
)
WRITABLE = bytes.fromhex(
    "0000ff94000000000000003f0000000000abf8fcfb403ffff7ff0000031000ff"
    "00000000ff0070ff3f3fffffffff00000007fffefe004f00ff3f3f0000000000"
)

# Commands (10.3).
IDLE, MEM, RANDOM_ID, CALC_CRC, TRANSMIT, NO_CHANGE, RECEIVE = 0x0, 0x1, 0x2, 0x3, 0x4, 0x7, 0x8
TRANSCEIVE, MF_AUTHENT, SOFT_RESET = 0xC, 0xE, 0xF

# ComIrqReg, in ComIEnReg too (9.3.1.5); DivIrqReg; ErrorReg (9.3.1.7).
TX_IRQ, RX_IRQ, IDLE_IRQ, HI_ALERT_IRQ, LO_ALERT_IRQ, ERR_IRQ, TIMER_IRQ = 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
CRC_IRQ = 0x04
WR_ERR, BUFFER_OVFL, COLL_ERR, CRC_ERR, PARITY_ERR, PROTOCOL_ERR = 0x80, 0x10, 0x08, 0x04, 0x02, 0x01

# Status2Reg's ModemState (9.3.1.9).
NOTHING, WAIT_SEND, WAIT_FIELD, SENDING, RX_WAIT, WAIT_DATA, RECEIVING = range(7)

FIFO_SIZE = 64
GAINS = (18, 23, 18, 23, 33, 38, 43, 48)  # dB, by RxGain (9.3.3.6)
PRESETS = (0x0000, 0x6363, 0xA671, 0xFFFF)  # of the CRC, by CRCPreset (9.3.2.2)
WAKE_US = 38  # 1024 clocks of 27.12 MHz (8.6.2, 8.8.2)
CRYSTAL_US = 200  # typical of a 27.12 MHz crystal

# The air at 106 kBd, in carrier cycles (ISO/IEC 14443-3): a bit; the time from the end of a frame to the answer, after
# a last bit 0 and 1 (6.2.1.1; counted from the end of the end-of-frame, which leaves room for the chip's own delays).
ETU = 128
ANSWER_AFTER = (1172, 1236)

FLICKERS = -1  # the health of a chip whose supply is marginal
_FLICKER_EVERY = 3
_FLICKERED = (0x00, 0xFF, 0x82)


def us_of(cycles):
    """Whole microseconds that so many cycles of 13.56 MHz fill, rounded up."""
    return (cycles * 100 + 1355) // 1356


class Mfrc522:
    """Reader `number` (from 0) of a `field` (boards.virtual.field.Field), as it sits on an SPI bus.

    `clock` gives microseconds. `health(number)` gives None, a byte that every register then reads as (a dead chip), or
    FLICKERS. `version` is 0x91 or 0x92, or what a clone has: 0x12, 0x88, 0xB2.
    """

    def __init__(self, air, number, clock, version=0x92, health=None):
        self.number = number
        self.version = version
        self.transactions = 0  # how often it was selected
        self._air = air
        self._clock = clock
        self._health = health or (lambda number: None)
        self._sick = None
        self._looks = 0
        self._randoms = 0
        self._selected = False
        self._address = None
        self._reading = False
        self._memory = bytes(25)
        self._down = False
        self._next = None
        # Writes that would clear reserved bits, as (address, byte): a good driver makes none.
        self.cleared = []
        air.attach(self)
        self._reset()
        self._wake(clock() + CRYSTAL_US + WAKE_US)

    # --- pins ----------------------------------------------------------------------------------------------------

    def select(self):
        """NSS went low: the next byte is an address."""
        self._selected = True
        self._address = None
        self._sick = self._health(self.number)
        self.transactions += 1

    def deselect(self):
        """NSS went high."""
        self._selected = False

    def transfer(self, byte):
        """The byte that goes out while `byte` comes in (8.1.2: address first; to read, each byte is the next one's)."""
        if not self._selected:
            return 0
        if self._sick is not None and self._sick >= 0:
            return self._sick
        if self._down:
            return 0
        address = self._address
        if address is None:
            self._reading = byte >= 0x80
            self._address = byte >> 1 & 0x3F
            return 0
        now = self._clock()
        if self._next is not None and now >= self._next:
            self.catch_up(now)
        if self._reading:
            self._address = byte >> 1 & 0x3F
            if self._waking:
                return 0x30 if address == COMMAND else 0
            return self._read(address, now)
        if not self._waking:
            self._write(address, byte, now)
            self._plan()
        return 0

    def reset_pin(self, level):
        """NRSTPD: low is hard power-down, its rising edge a reset (8.6.1, 8.8.1)."""
        now = self._clock()
        self.catch_up(now)
        if not level and not self._down:
            self._stop(now)
            self._reset()
            self._down = True
            self._antenna(now)
        elif level and self._down:
            self._down = False
            self._wake(now + CRYSTAL_US + WAKE_US)

    def irq_pin(self):
        """The level of pin IRQ: 0 or 1, or None where it is not driven (8.3, DivIEnReg's IRQPushPull)."""
        if self._down or (self._sick is not None and self._sick >= 0):
            return None
        level = self._asks() ^ self._regs[COM_IEN] >> 7
        if self._regs[DIV_IEN] & 0x80 or not level:
            return level
        return None

    @property
    def field_on(self):
        """Whether it radiates."""
        return self._air.is_on(self.number)

    def due(self):
        """When pin IRQ may change next by itself, or None."""
        if self._next is None or not (self._regs[COM_IEN] & 0x7F or self._regs[DIV_IEN] & 0x14):
            return None
        return self._next

    def _asks(self):
        regs = self._regs
        return 1 if self._com_irq & regs[COM_IEN] & 0x7F or self._div_irq & regs[DIV_IEN] & 0x14 else 0

    # --- time ----------------------------------------------------------------------------------------------------

    def _plan(self):
        self._next = self._at
        if self._timer_at is not None and (self._next is None or self._timer_at < self._next):
            self._next = self._timer_at

    def catch_up(self, now):
        """Do what is due by now, in order."""
        while self._next is not None and self._next <= now:
            at = self._next
            if at == self._at:
                self._at = None
                self._step(at)
            else:
                self._timer_at = None
                self._counter = 0
                self._com_irq |= TIMER_IRQ
            self._plan()

    def _step(self, at):
        if self._waking:
            self._waking = False
            self._antenna(at)
        elif self._state == SENDING:
            self._sent(at)
        elif self._state == RX_WAIT:
            self._state = RECEIVING
            if not self._regs[RX_MODE] & 0x04 and self._answer[1][1] >= 4:
                self._stop_timer(at)  # at the fifth bit (the start bit is one), unless RxMultiple
            self._at = self._answer_end
        else:
            self._received(at)

    def _wake(self, at):
        self._waking = True
        self._at = at
        self._plan()

    def _reset(self):
        self._regs = bytearray(RESET)
        self._fifo = []
        self._command = IDLE
        self._power_down = False
        self._waking = False
        self._com_irq = IDLE_IRQ | LO_ALERT_IRQ
        self._div_irq = 0
        self._error = 0
        self._low = True
        self._high = False
        self._last_bits = 0
        self._collision = 0x20
        self._crc = 0xFFFF
        self._crc_on = False
        self._start = False
        self._state = NOTHING
        self._at = None
        self._answer = None
        self._answer_end = 0
        self._deaf_until = 0
        self._quiet_until = 0
        self._timer_at = None
        self._timer_start = None
        self._restarts = False
        self._counter = 0
        self._next = None

    def _antenna(self, now):
        """The field is on as the registers say, unless the chip sleeps."""
        on = bool(self._regs[TX_CONTROL] & 0x03) and not (self._down or self._power_down or self._waking)
        self._air.switch(self.number, on, now)
        if on and self._state == WAIT_FIELD:
            self._send(now)

    # --- the timer (8.5) -----------------------------------------------------------------------------------------

    def _start_timer(self, now):
        regs = self._regs
        if regs[T_MODE] & 0x60:
            return  # gated by a pin that is not wired
        self._period = 2 * ((regs[T_MODE] & 0x0F) << 8 | regs[T_PRESCALER]) + (2 if regs[DEMOD] & 0x10 else 1)
        self._reload = regs[T_RELOAD_HIGH] << 8 | regs[T_RELOAD_LOW]
        self._timer_start = now
        # With TAutoRestart it never gets to zero.
        self._timer_at = None if regs[T_MODE] & 0x10 else now + us_of(self._period * (self._reload + 1))
        self._restarts = bool(regs[T_MODE] & 0x10)

    def _running(self):
        return self._timer_start is not None and (self._restarts or self._timer_at is not None)

    def _count(self, now):
        if not self._running():
            return self._counter
        ticks = (now - self._timer_start) * 1356 // (100 * self._period)
        return self._reload - (ticks % (self._reload + 1) if self._restarts else min(ticks, self._reload))

    def _stop_timer(self, now):
        if self._running():
            self._counter = self._count(now)
            self._timer_at = None
            self._restarts = False

    # --- registers -----------------------------------------------------------------------------------------------

    def _read(self, address, now):
        if address == COM_IRQ:
            return self._com_irq
        if address == FIFO_DATA:
            byte = self._fifo.pop(0) if self._fifo else 0
            self._level()
            return byte
        if address == ERROR:
            return self._error
        if address == FIFO_LEVEL:
            return len(self._fifo)
        if address == COMMAND:
            return self._regs[COMMAND] & 0x20 | (0x10 if self._power_down else 0) | self._command
        if address == DIV_IRQ:
            return self._div_irq
        if address == STATUS1:
            ok = 0x40 if self._crc == 0 else 0
            running = 0x08 if self._running() or self._regs[T_MODE] & 0x60 else 0
            return ok | 0x20 | self._asks() << 4 | running | (2 if self._high else 0) | (1 if self._low else 0)
        if address == STATUS2:
            state = self._state
            if state == RX_WAIT and now >= self._deaf_until:
                state = WAIT_DATA
            return self._regs[STATUS2] & 0xC0 | state
        if address == CONTROL:
            return RESET[CONTROL] | self._last_bits
        if address == COLL:
            return self._regs[COLL] & 0x80 | self._collision
        if address == CRC_HIGH:
            return self._crc >> 8
        if address == CRC_LOW:
            return self._crc & 0xFF
        if address == T_COUNTER_HIGH:
            return self._count(now) >> 8
        if address == T_COUNTER_LOW:
            return self._count(now) & 0xFF
        if address == VERSION:
            self._looks += 1
            if self._sick == FLICKERS and self._looks % _FLICKER_EVERY == 0:
                return _FLICKERED[self._looks // _FLICKER_EVERY % 3]
            return self.version
        return self._regs[address]

    def _write(self, address, byte, now):
        if address == FIFO_DATA:
            self._push(byte, now)
        elif address == COM_IRQ:  # Set1: the marked bits are set or cleared
            self._com_irq = self._com_irq | byte & 0x7F if byte & 0x80 else self._com_irq & ~byte
        elif address == DIV_IRQ:  # Set2
            self._div_irq = self._div_irq | byte & 0x14 if byte & 0x80 else self._div_irq & ~byte
        elif address == COMMAND:
            self._write_command(byte, now)
        elif address == FIFO_LEVEL:
            if byte & 0x80:  # FlushBuffer
                self._fifo = []
                self._error &= ~BUFFER_OVFL
                self._level()
        elif address == BIT_FRAMING:
            self._regs[BIT_FRAMING] = byte & 0x77
            self._start = byte >= 0x80
            if self._start and self._state == WAIT_SEND:
                self._send(now)
        elif address == CONTROL:
            if byte & 0x80:
                self._stop_timer(now)
            elif byte & 0x40:
                self._start_timer(now)
        elif address == COLL:
            self._regs[COLL] = byte & 0x80
        elif address == STATUS2:
            self._regs[STATUS2] = byte & 0xC0
        else:
            mask = WRITABLE[address]
            if RESET[address] & ~mask & ~byte & 0xFF:
                # Reserved bits are to be written as they are after a reset.
                self.cleared.append((address, byte))
            self._regs[address] = self._regs[address] & ~mask | byte & mask
            if address == TX_CONTROL:
                self._antenna(now)
            elif address == WATER_LEVEL:
                self._level()

    def _push(self, byte, now):
        listening = self._state in (RX_WAIT, RECEIVING) and self._command != RECEIVE
        if listening or self._command == MF_AUTHENT:
            self._fail(WR_ERR)
        if self._crc_on:
            self._feed(byte)
        elif len(self._fifo) >= FIFO_SIZE:
            self._fail(BUFFER_OVFL)
        else:
            self._fifo.append(byte)
            self._level()

    def _level(self):
        """HiAlert and LoAlert (9.3.1.8): their rising edges are kept in ComIrqReg."""
        water = self._regs[WATER_LEVEL]
        low, high = len(self._fifo) <= water, FIFO_SIZE - len(self._fifo) <= water
        if low and not self._low:
            self._com_irq |= LO_ALERT_IRQ
        if high and not self._high:
            self._com_irq |= HI_ALERT_IRQ
        self._low, self._high = low, high

    def _fail(self, bits):
        self._error |= bits
        self._com_irq |= ERR_IRQ

    # --- commands ------------------------------------------------------------------------------------------------

    def _write_command(self, byte, now):
        self._regs[COMMAND] = byte & 0x20  # RcvOff
        code = byte & 0x0F
        if code == SOFT_RESET:
            self._stop(now)
            self._reset()
            self._air.switch(self.number, False, now)
            self._wake(now + WAKE_US)
            return
        if byte & 0x10:
            if not self._power_down:
                self._stop(now)
                self._power_down = True
                self._antenna(now)
            return
        if self._power_down:
            self._power_down = False
            self._wake(now + WAKE_US)
            return
        if code != NO_CHANGE:
            self._run(code, now)

    def _stop(self, now):
        """End whatever is going on; half a frame is none."""
        if self._state == SENDING:
            self._air.spoil(self.number, now)
        self._state = NOTHING
        self._at = None
        self._crc_on = False
        self._command = IDLE

    def _finish(self):
        self._command = IDLE
        self._state = NOTHING
        self._com_irq |= IDLE_IRQ

    def _run(self, code, now):
        self._stop(now)
        self._command = code
        if code == IDLE:
            return
        self._error = 0
        if code == TRANSCEIVE:
            self._state = WAIT_SEND
            if self._start:
                self._send(now)
        elif code == TRANSMIT:
            self._send(now)
        elif code == RECEIVE:
            self._await(now, 0)
        elif code == CALC_CRC:
            self._crc = PRESETS[self._regs[MODE] & 0x03]
            self._crc_on = True
            for byte in self._fifo:
                self._feed(byte)
            self._fifo = []
            self._level()
            self._div_irq |= CRC_IRQ
        elif code == MEM:
            if self._fifo:
                self._memory = bytes((self._fifo + [0] * 25)[:25])
                self._fifo = self._fifo[25:]
            else:
                self._fifo = list(self._memory)
            self._level()
            self._finish()
        elif code == RANDOM_ID:
            self._randoms += 1
            stream = prng.Stream(self.number, self._randoms, "random id")
            self._memory = bytes([stream.byte() for _ in range(10)]) + self._memory[10:]
            self._finish()
        elif code == MF_AUTHENT:
            self._authenticate(now)
        else:
            self._finish()

    def _feed(self, byte):
        if self._regs[MODE] & 0x80:  # MSBFirst
            crc = self._crc ^ byte << 8
            for _ in range(8):
                crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
            self._crc = crc
        else:
            self._crc = crc_a((byte,), self._crc)
        self._div_irq |= CRC_IRQ

    def _authenticate(self, now):
        # 12 bytes: command, block, key, first four bytes of the UID (10.3.1.9).
        if len(self._fifo) < 12:
            self._fail(PROTOCOL_ERR)
            self._finish()
            return
        head, self._fifo = bytes(self._fifo[:2]), self._fifo[12:]
        self._level()
        self._put_on_air(with_crc(head), 32, now)

    # --- the air -------------------------------------------------------------------------------------------------

    def _send(self, now):
        regs = self._regs
        if not self._fifo:
            return  # nothing to send: it waits
        if regs[MODE] & 0x20 and not self._air.is_on(self.number):
            self._state = WAIT_FIELD
            return
        data = bytes(self._fifo)
        self._fifo = []
        self._level()
        self._start = False
        last = regs[BIT_FRAMING] & 0x07
        bits = 8 * len(data) - (8 - last if last else 0)
        if regs[TX_MODE] & 0x80 and not last:
            data = with_crc(data)
            bits += 16
        self._put_on_air(data, bits, now)

    def _put_on_air(self, data, bits, now):
        self._state = SENDING
        self._frame = data
        self._bits = bits
        # Start of frame, bits with a parity bit a byte, end of frame: a 0 and a period without modulation.
        start = max(now, self._quiet_until)
        self._at = start + us_of(ETU * (1 + bits + bits // 8 + 2))

    def _sent(self, at):
        regs = self._regs
        data, bits = self._frame, self._bits
        self._com_irq |= TX_IRQ
        if regs[T_MODE] & 0x80:
            self._start_timer(at)
        self._deaf_until = at + us_of(ETU * (regs[RX_SEL] & 0x3F))
        self._answer = None
        # Tags take 106 kBd in, 100 % ASK, not inverted, with parity; and the receiver must be set for it, too.
        if regs[TX_ASK] & 0x40 and not (regs[TX_MODE] & 0x78 or regs[MF_RX] & 0x10):
            heard = self._air.transmit(self.number, data, bits, GAINS[regs[RF_CFG] >> 4 & 0x07], at)
            if heard and not regs[RX_MODE] & 0x70 and not regs[COMMAND] & 0x20:
                last_bit = data[(bits - 1) // 8] >> (bits - 1) % 8 & 1
                self._answer = (at + us_of(ANSWER_AFTER[last_bit]), heard)
        else:
            self._air.spoil(self.number, at)
        if self._command == TRANSMIT:
            self._finish()
        elif self._command == MF_AUTHENT:
            self._answer = None
            self._state = RX_WAIT
        else:
            self._await(at, self._deaf_until)

    def _await(self, now, deaf_until):
        """Be ready to receive; an answer that begins later than that is heard."""
        self._state = RX_WAIT
        self._deaf_until = deaf_until
        self._collision = 0x20
        if self._answer is None or self._answer[0] < max(now, deaf_until):
            return
        begins, heard = self._answer
        bits, skip = heard[1], heard[2]
        if bits < 4 and self._regs[RX_MODE] & 0x08:
            return  # RxNoErr: that is no data stream
        self._at = begins + us_of(5 * ETU)
        # Start of communication, bits with a parity bit a byte, end.
        self._answer_end = begins + us_of(ETU * (1 + bits + (bits + skip) // 8 + 1))

    def _received(self, at):
        regs = self._regs
        value, bits, _skip, good, collision = self._answer[1]
        self._answer = None
        align = regs[BIT_FRAMING] >> 4 & 0x07
        if collision is not None:
            self._fail(COLL_ERR)
            place = align + collision + 1
            self._collision = 0x20 if place > 32 else place & 0x1F
            if not regs[COLL] & 0x80:  # ValuesAfterColl: the rest reads as zeros
                value &= (1 << collision) - 1
        elif not good:
            self._fail(PARITY_ERR)
        value <<= align
        bits += align
        data = list(value.to_bytes((bits + 7) // 8, "little"))
        self._last_bits = bits & 7
        if regs[RX_MODE] & 0x80:  # RxCRCEn: checked and taken off
            if bits % 8 or len(data) < 3 or crc_a(data):
                self._fail(CRC_ERR)
            data = data[:-2]
        room = FIFO_SIZE - len(self._fifo)
        if len(data) > room:
            self._fail(BUFFER_OVFL)
        self._fifo += data[:room]
        if regs[RX_MODE] & 0x04:  # RxMultiple: a copy of ErrorReg ends each frame
            self._fifo.append(self._error)
        self._level()
        self._com_irq |= RX_IRQ
        self._quiet_until = at + us_of(ETU * (7 + (regs[MF_TX] & 0x03)))
        if regs[RX_MODE] & 0x04:
            self._state = RX_WAIT
        elif self._command == RECEIVE:
            self._finish()
        else:
            self._state = WAIT_SEND
