"""A stand-in for the reader chips: one SPI device that answers with the set of tags in its field.

The master selects it and writes 0x52. It then reads two bytes, the status (0xA5 read, 0x5A collision that could not be
resolved; anything else: no sensor there) and the number of tags, and for each tag eight: the UID's length (4 or 7) and
the UID, padded with zeros to 7.
"""

from boards.virtual import model

READ = 0x52
OK = 0xA5
UNRESOLVED = 0x5A


class TagSensor:
    """Byte by byte, as it sits on a bus: the same object serves a `machine.SPI` and an emulated one."""

    def __init__(self, table, clock):
        self._table = table
        self._clock = clock  # () -> microseconds
        self._selected = False
        self._answer = b""
        self._at = 0

    def select(self):
        """Chip select went low: a new exchange."""
        self._selected = True
        self._answer = b""
        self._at = 0

    def deselect(self):
        """Chip select went high."""
        self._selected = False

    def transfer(self, byte):
        """The byte that goes out while `byte` comes in."""
        if not self._selected:
            return 0
        if self._at < len(self._answer):
            self._at += 1
            return self._answer[self._at - 1]
        if byte == READ and not self._answer:
            self._answer = self._read()
        return 0

    def _read(self):
        status, uids = self._table.tags_seen(self._clock())
        if status == model.TAGS_NONE:
            return b""
        if status == model.TAGS_COLLISION:
            return bytes([UNRESOLVED, 0])
        answer = bytearray([OK, len(uids)])
        for uid in uids:
            answer.append(len(uid))
            answer.extend(uid)
            answer.extend(bytes(7 - len(uid)))
        return bytes(answer)
