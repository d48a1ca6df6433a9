"""One to three MFRC522 on one bus as one reader: one field on at a time, and what they see as one set."""

import asyncio

from machine import SPI, Pin

from dragoneye.config import GAIN_DB
from dragoneye.drivers.mfrc522 import MFRC522, ReaderFault


class Readers:
    """The readers of a board. `pins` and `spi` are its data; `config` has `readers`, `gain_db` and `reader_irq`.

    `scan` is the interface of every reader: a set of tags seen. `gains` is the ladder of receiver gains in dB, the
    first one that of a usual pass.
    """

    def __init__(self, pins, spi, config):
        self.gains = config.get("gain_db", GAIN_DB)
        selects = [Pin(number, Pin.OUT, value=1) for number in pins["reader_cs"]]
        bus = SPI(
            spi["id"],
            baudrate=spi["baudrate"],
            sck=Pin(pins["spi_sck"]),
            mosi=Pin(pins["spi_mosi"]),
            miso=Pin(pins["spi_miso"]),
        )
        # Low is reset and power-down for all of them (8.8.1); they are up long before the first pass.
        reset = Pin(pins["reader_reset"], Pin.OUT, value=0)
        self.chips = []
        for place in range(config.get("readers", 1)):
            irq = None
            if config.get("reader_irq"):
                irq = Pin(pins["reader_irq"][place], Pin.IN, Pin.PULL_UP)
            self.chips.append(MFRC522(bus, selects[place], place + 1, irq))
        reset(1)
        # A pass whose roll has ended meanwhile goes on to its end before the next one may begin.
        self._lock = asyncio.Lock()
        self._last = self.chips[0]

    async def scan(self, step=0):
        """One pass over all readers: the set of UIDs seen as upper-case hex, or None when not all were told apart.

        `step` counts down the gain ladder from 0. Raises ReaderFault when a reader does not answer as it should.
        """
        gain = self.gains[min(step, len(self.gains) - 1)]
        seen = set()
        async with self._lock:
            # Fields may overlap. A tag that one reader has put to sleep need not wake up for the next one in the same
            # pass, but all must be awake for the next pass.
            off_at = self._last.off_at
            for place, chip in enumerate(self.chips):
                self._last = chip
                tags = await chip.inventory(gain, None if place else off_at)
                if tags is None:
                    return None
                seen |= tags
        return seen

    async def survey(self, step=0):
        """What each reader is and sees; never raises for one that is dead. `step` is as for `scan`.

        A list of {"reader": from 1, "ok": bool, "version": VersionReg, "gain_db": int, "tags": [UIDs], or null when
        they were not all told apart or the reader is dead}.
        """
        gain = self.gains[min(step, len(self.gains) - 1)]
        rows = []
        async with self._lock:
            for chip in self.chips:
                row = {"reader": chip.number, "ok": True, "version": 0, "gain_db": gain, "tags": None}
                rows.append(row)
                try:
                    row["version"] = chip.version()
                    off_at = self._last.off_at
                    self._last = chip
                    tags = await chip.inventory(gain, off_at)
                    if tags is not None:
                        row["tags"] = sorted(tags)
                except ReaderFault:
                    row["ok"] = False
        return rows

    def trouble(self):
        """Which reader's VersionReg is wrong, in words, or None. Call it only while no pass runs (see `busy`)."""
        try:
            for chip in self.chips:
                chip.check()
        except ReaderFault as fault:
            return str(fault)
        return None

    @property
    def busy(self):
        """True while a pass runs."""
        return self._lock.locked()
