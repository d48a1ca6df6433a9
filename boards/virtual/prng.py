"""Numbers for the table model that depend on nothing but a seed and a counter.

MicroPython and CPython run this file and get the same numbers: SHA-256 is the same in both, their `random` modules are
not. It decides how the *modelled* dice fall, so that a test can be repeated; the real table's dice need no generator.
"""

import hashlib


class Stream:
    """Whole numbers from SHA-256 over "seed:counter:label:block".

    A number that would favour small results is thrown away, not folded (rejection), so every value is equally likely.
    """

    def __init__(self, seed, counter, label):
        self._head = "%d:%d:%s:" % (seed, counter, label)
        self._block = 0
        self._bytes = b""
        self._at = 0

    def byte(self):
        """The next byte, 0..255."""
        if self._at == len(self._bytes):
            # MicroPython's sha256 allows one digest() and has no copy(): a new object for each block.
            self._bytes = hashlib.sha256((self._head + str(self._block)).encode()).digest()
            self._block += 1
            self._at = 0
        self._at += 1
        return self._bytes[self._at - 1]

    def below(self, n):
        """A number from 0 to n - 1, for n up to 65536."""
        if not 1 <= n <= 65536:
            raise ValueError("n must be from 1 to 65536, not %r" % (n,))
        limit = 65536 - 65536 % n
        while True:
            number = self.byte() << 8 | self.byte()
            if number < limit:
                return number % n


def dice(seed, shake):
    """The three values that shake number `shake` (from 1) of a table with this seed brings."""
    stream = Stream(seed, shake, "dice")
    return [stream.below(6) + 1 for _ in range(3)]
