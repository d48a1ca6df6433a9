"""The Pico's file system area as a block device over a file that the bench keeps.

Nothing is held in memory: every read, program and erase goes to the file at once, so killing the process is a power
cut. 352 blocks of 4,096 bytes, as MicroPython's RPI_PICO build lays out its flash; VfsLfs2 programs 256 bytes at a time
and reads 32. It runs under MicroPython (inside the board) and CPython (to look at an image from outside).
"""

BLOCK = 4096
BLOCKS = 352
EIO = 5
# Made once: on the Pico an erase needs no memory either, and an exception here would leave the middle of littlefs.
ERASED = b"\xff" * BLOCK


class FileFlash:
    """`cut(kind)` is called instead of finishing the operation that `arm` chose, `after()` when one is done.

    `refuses`: from now on nothing is programmed or erased, and littlefs is told EIO; what is there can be read.
    """

    def __init__(self, file, cut=None, after=None):
        self._file = file
        self._cut = cut
        self._after = after
        self.programs = 0
        self.erases = 0
        self._left = None
        self._torn = False
        self._only = None
        self.refuses = False

    def arm(self, at, torn=False, only=None):
        """Cut the power at the `at`-th program or erase from now on (1 is the next one; None: not at all).

        `torn`: half of it is done by then. `only`: count just "program" or just "erase".
        """
        self._left = at
        self._torn = torn
        self._only = only

    def _operation(self, kind, at, data):
        if self.refuses:
            return -EIO
        if self._left is not None and self._only in (None, kind):
            self._left -= 1
            if self._left == 0:
                self._left = None
                if self._torn:
                    self._file.seek(at)
                    self._file.write(data[: len(data) // 2])
                self._cut(kind)
                return -EIO
        self._file.seek(at)
        self._file.write(data)
        if self._after:
            self._after()
        return 0

    def readblocks(self, block, buf, offset=0):
        self._file.seek(block * BLOCK + offset)
        self._file.readinto(buf)

    def writeblocks(self, block, buf, offset=None):
        if offset is None:  # the plain interface: a whole block, erased first
            self.ioctl(6, block)
            offset = 0
        self.programs += 1
        return self._operation("program", block * BLOCK + offset, buf)

    def ioctl(self, op, arg):
        if op == 4:
            return BLOCKS
        if op == 5:
            return BLOCK
        if op == 6:
            self.erases += 1
            return self._operation("erase", arg * BLOCK, ERASED)
        return 0 if op in (1, 2, 3) else None
