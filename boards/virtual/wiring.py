"""What is soldered to which pin: joins a board's pin table to the table model.

`machine` (under MicroPython's unix port) and the emulated RP2040 both talk to this: pin numbers on one side, the model
on the other. A board.json that names other pins rewires the virtual table as well.
"""

from boards.virtual.field import Field
from boards.virtual.mfrc522 import Mfrc522

SWITCHES = ("lid", "tamper", "button", "service")
BACK = {"lid": {"to": "shut"}, "button": {"to": "release"}}  # how a bouncing contact falls back
LOG_MAX = 128


class Wiring:
    """One board on one table. `clock()` gives microseconds; `log` gets [us, what, value] for each change."""

    def __init__(self, board, table, clock):
        self.board = board
        self.table = table
        self.clock = clock
        self.log = []
        self.on_log = None
        pins = board["pins"]
        self.switches = {pins[name]: name for name in SWITCHES}
        self.motor = {pins["motor_in1"]: 0, pins["motor_in2"]: 1}
        self._duty = [0, 0]
        self.lock = pins["lock"]
        self.ring = pins["ring"]
        self.buzzer = pins["buzzer"]
        self.current = pins["motor_current"]
        self.supply = pins["supply"]
        # The table has every reader that the board has a place for; which of them it uses is the firmware's business.
        air = Field(table)
        self.readers = [Mfrc522(air, number, clock, health=table.health) for number in range(len(pins["reader_cs"]))]
        self.selects = dict(zip(pins["reader_cs"], self.readers))
        self.reset = pins["reader_reset"]
        self.irqs = dict(zip(pins["reader_irq"], self.readers))
        self.spi_id = board["spi"]["id"]
        self.i2c = {}  # address -> device with write(bytes) and read(n)
        self._selected = None

    def note(self, what, value):
        """Keep a change, with its time, for tests to look at."""
        entry = [self.clock(), what, value]
        if len(self.log) >= LOG_MAX:
            del self.log[: LOG_MAX // 2]
        self.log.append(entry)
        if self.on_log:
            self.on_log(entry)

    def output(self, pin, duty, freq=0):
        """A pin is driven: duty 0 (low) to 65535 (high), in between by PWM of `freq`."""
        now = self.clock()
        if pin in self.motor:
            at = self.motor[pin]
            if self._duty[at] != duty:
                self._duty[at] = duty
                self.note("motor_in%d" % (at + 1), duty)
                self.table.drive(now, self._duty[0], self._duty[1])
        elif pin in self.selects:
            device = self.selects[pin]
            if duty == 0:
                if self._selected is not device:
                    self._selected = device
                    device.select()
            elif self._selected is device:
                self._selected = None
                device.deselect()
        elif pin == self.reset:
            for chip in self.readers:
                chip.reset_pin(1 if duty else 0)
        elif pin == self.lock:
            level = 1 if duty else 0
            self.note("lock", level)
            self.table.lock(now, level)
        elif pin == self.buzzer:
            sound = (freq if 0 < duty < 65535 else 0, duty)
            if sound != self.table.buzzer:
                self.table.buzzer = sound
                self.note("buzzer", sound[0])

    def undriven(self, pin):
        """A pin becomes an input. The motor driver's inputs have pull-downs, the readers' pins pull-ups."""
        self.output(pin, 65535 if pin in self.selects or pin == self.reset else 0)

    def level(self, pin):
        """What is wired to a pin drives it to 0 or 1; None: nothing does (an open switch, an open drain)."""
        if pin in self.switches:
            return 0 if self.table.switch_closed(self.switches[pin]) else None
        if pin in self.irqs:
            return self.irqs[pin].irq_pin()
        return None

    def readers_state(self):
        """For each reader whether its field is on, and how often it was selected."""
        return [{"field": chip.field_on, "transactions": chip.transactions} for chip in self.readers]

    def advance(self, now):
        """Do what is due by now on the table and in the chips."""
        self.table.advance(now)
        for chip in self.readers:
            chip.catch_up(now)

    def due(self):
        """When something that pins can show changes by itself next, or None."""
        due = self.table.due()
        for chip in self.readers:
            at = chip.due()
            if at is not None and (due is None or at < due):
                due = at
        return due

    def analog(self, pin):
        """What the 12-bit converter reads on a pin, 0..4095; 0 where nothing is wired."""
        now = self.clock()
        if pin == self.current:
            return min(4095, self.table.motor_ma(now) * 4095 // self.board["motor"]["full_scale_ma"])
        if pin == self.supply:
            return min(4095, self.table.supply(now) * 4095 // self.board["supply"]["full_scale_mv"])
        return 0

    def transfer(self, bus, byte):
        """One byte out and in on an SPI bus; an undriven MISO reads as 0."""
        if bus != self.spi_id or self._selected is None:
            return 0
        return self._selected.transfer(byte)

    def pixels(self, pin, data, spoiled=False):
        """A WS2812 bit stream went out on a pin, and the pause after it. `spoiled`: not every pulse was a bit."""
        if pin != self.ring:
            return
        data = bytes(data)[: len(data) // 3 * 3]  # a pixel takes over when it has all 24 bits
        if spoiled:
            self.note("ring_spoiled", len(data) // 3)
        elif data != self.table.ring[: len(data)]:
            self.table.ring = data + self.table.ring[len(data) :]
            self.note("ring", len(data) // 3)


def pixel_bit(high_ns):
    """The bit that a WS2812 takes a high pulse for, 0 or 1, or None (data sheet: 0.4 and 0.8 us, 150 ns either way)."""
    if 250 <= high_ns <= 550:
        return 0
    return 1 if 650 <= high_ns <= 950 else None
