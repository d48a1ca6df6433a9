"""A reader module that reports the set of tags in its field over SPI.

One transaction with chip select low: the master writes 0x52, reads two bytes (0xA5 ready, 0x5A collision unresolved;
number of tags), then eight bytes a tag: length of the UID (4 or 7) and the UID, padded with zeros.
"""

from binascii import hexlify

from machine import SPI, Pin

READ = b"\x52"
READY = 0xA5
UNRESOLVED = 0x5A
TAGS_MAX = 18


class ReaderFault(Exception):
    """The reader does not answer as it should."""


class TagSensor:
    """The reader on the board's first chip select. `scan` is the interface of every reader: a set of tags seen."""

    def __init__(self, pins, spi):
        self._cs = Pin(pins["reader_cs"][0], Pin.OUT, value=1)
        self._spi = SPI(
            spi["id"],
            baudrate=spi["baudrate"],
            sck=Pin(pins["spi_sck"]),
            mosi=Pin(pins["spi_mosi"]),
            miso=Pin(pins["spi_miso"]),
        )
        self._head = bytearray(2)
        self._record = bytearray(8)

    async def scan(self):
        """One pass: the set of UIDs seen as upper-case hex, or None when a collision was not resolved.

        Raises ReaderFault when the module does not answer.
        """
        tags = set()
        self._cs(0)
        try:
            self._spi.write(READ)
            self._spi.readinto(self._head)
            if self._head[0] == UNRESOLVED:
                return None
            if self._head[0] != READY or self._head[1] > TAGS_MAX:
                raise ReaderFault("status 0x%02x" % self._head[0])
            for _ in range(self._head[1]):
                self._spi.readinto(self._record)
                length = self._record[0]
                if length not in (4, 7):
                    raise ReaderFault("a UID of %d bytes" % length)
                tags.add(hexlify(bytes(self._record[1 : 1 + length])).decode().upper())
        finally:
            self._cs(1)
        return tags
