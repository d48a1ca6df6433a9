"""The Pico's own USB serial as lines, without ever blocking the loop.

`sys.stdin.buffer.read(n)` waits for all n bytes, and a write to a port that is open and unread waits for up to 500 ms
(MicroPython #9634): so poll first, and on the RP2 write no more than the one byte that poll has promised.
"""

import select
import sys

from micropython import const

LINE_MAX = 1024
READ_SLICE = 64
WRITE_SLICE = 64
CHUNK = 1 if sys.platform == "rp2" else 512

_NEWLINE = const(0x0A)


def _ready(poll):
    """True when the one stream of `poll` is ready; without making a list."""
    for _ in poll.ipoll(0):
        return True
    return False


class Console:
    """`read_line` and `write_some` return at once, and leave next to no garbage: a collection holds up everything."""

    def __init__(self):
        self._in = sys.stdin.buffer
        self._out = sys.stdout.buffer
        self._poll_in = select.poll()
        self._poll_in.register(sys.stdin, select.POLLIN)
        self._poll_out = select.poll()
        self._poll_out.register(sys.stdout, select.POLLOUT)
        self._line = bytearray()
        self._byte = bytearray(1)
        self._pending = b""
        self._place = 0
        self.overlong = 0

    def read_line(self):
        """The next whole line as bytes, or None. A line of more than LINE_MAX bytes is dropped and counted."""
        byte = self._byte
        for _ in range(READ_SLICE):
            if not _ready(self._poll_in) or not self._in.readinto(byte):
                return None
            if byte[0] == _NEWLINE:
                line = bytes(self._line)
                self._line = bytearray()
                return line
            self._line.append(byte[0])
            if len(self._line) > LINE_MAX:
                self._line = bytearray()
                self.overlong += 1
        return None

    @property
    def idle(self):
        """True when all that was given to `put` has been written."""
        return self._place >= len(self._pending)

    def put(self, line):
        """Take one line to be written; call only when `idle`."""
        self._pending = line
        self._place = 0

    def drop(self):
        """Forget what is left of the line."""
        self._place = len(self._pending)

    def write_some(self):
        """Write what fits now. True when anything was."""
        place = self._place
        pending = self._pending
        length = len(pending)
        poll = self._poll_out
        write = self._out.write
        byte = self._byte
        for _ in range(WRITE_SLICE):
            if place >= length or not _ready(poll):
                break
            if CHUNK == 1:
                byte[0] = pending[place]
                place += write(byte) or 0
            else:
                place += write(pending[place : place + CHUNK]) or 0
        wrote = place > self._place
        self._place = place
        return wrote
