"""What is installed on this table's flash: the build that runs, its trial, and a keyed hash of every file.

The firmware lies in a slot (/a, /b) or in the root; firmware/main.py tells how one is chosen.
"""

import os
import sys
from binascii import hexlify
from hashlib import sha256

SLOT = "/slot"
PACKAGE = "dragoneye"

# Bytes hashed in a step: 1.1 ms of the Pico for SHA-256, and the flash's reading (docs/performance.md has the longest).
CHUNK = 1024
# A foreign flash full of files shall not fill the memory.
FILES_MAX = 250
ROWS_MAX = 10
# What changes by itself, and never runs.
_STATE = ("/slot", "/slot.new", "/maintenance", "/service")
_RECORDS = "/journal/"


def root_of(file):
    """The folder, from "/" to "/", that the package was imported from, of a module's __file__ in it."""
    folder = file.replace("\\", "/").rsplit("/", 1)[0]
    root = folder[: -len(PACKAGE)]
    return root if root.startswith("/") else "/" + root


ROOT = root_of(__file__)
# What .mpy files this MicroPython runs, native code included.
MPY = getattr(sys.implementation, "_mpy", 0)


def build(root=ROOT):
    """The build's hash, or "unknown"."""
    for path in (root + "build.txt", "/build.txt"):
        try:
            with open(path) as file:
                return file.read().strip()
        except OSError:
            pass
    return "unknown"


def on_trial(root=ROOT, slot=SLOT):
    """True while the firmware that runs has not proved itself."""
    try:
        with open(slot) as file:
            name, _, tries = file.read().strip().partition(" ")
    except OSError:
        return False
    return bool(tries) and root == "/" + name + "/"


def prove(root=ROOT, slot=SLOT):
    """The firmware that runs is good: the next start runs it again. Raises OSError when the flash refuses."""
    with open(slot + ".new", "w") as file:
        file.write(root.strip("/"))
    os.rename(slot + ".new", slot)


def _is_folder(path):
    return bool(os.stat(path)[0] & 0x4000)


class Survey:
    """A keyed hash of each file on the flash but the journal's records, done step by step in bounded memory.

    `rows` are (path, size in bytes, hash) in order of path, `total` is one over all of them, both set when `running` is
    False and `why` None. A file's hash is H(seed + H(seed + path + NUL + content)), the total H(seed + the rows'
    "path NUL size NUL hash" in turn), with H SHA-256 of which the first 16 bytes count.
    """

    def __init__(self, seed, top="/"):
        self.rows = []
        self.total = None
        self.why = None
        self.running = True
        self._seed = seed.encode()
        self._steps = self._walk(top)

    def step(self):
        """Do a little: a file is looked at, or CHUNK bytes are hashed."""
        try:
            next(self._steps)
        except StopIteration:
            self.running = False
        except (OSError, ValueError) as error:
            self.stop("cannot be read: %s" % error)

    def stop(self, why):
        """End before it is done."""
        self.running = False
        self.why = why
        self.rows = []

    def _walk(self, top):
        folders = [top]
        paths = []
        while folders:
            folder = folders.pop()
            names = os.listdir(folder)
            # A step of its own: on the Pico it takes as long as a look at a file.
            yield
            for name in names:
                path = folder + name
                if _is_folder(path):
                    folders.append(path + "/")
                elif self._counts("/" + path[len(top) :]):
                    paths.append(path)
                    if len(paths) > FILES_MAX:
                        raise ValueError("there are more than %d files" % FILES_MAX)
                yield
        total = sha256(self._seed)
        buffer = bytearray(CHUNK)
        view = memoryview(buffer)
        paths.sort()
        for path in paths:
            name = "/" + path[len(top) :]
            inner = sha256(self._seed + name.encode() + b"\0")
            size = 0
            with open(path, "rb") as file:
                while True:
                    count = file.readinto(buffer)
                    if not count:
                        break
                    inner.update(view[:count])
                    size += count
                    yield
            keyed = keyed_hash(self._seed, inner.digest())
            self.rows.append((name, size, keyed))
            total.update(row_bytes(name, size, keyed))
        self.total = hexlify(total.digest()[:16]).decode()

    def _counts(self, path):
        if path.startswith(_RECORDS):
            return path.rsplit(".", 1)[-1] in ("py", "mpy")
        return path not in _STATE

    def answer(self, first):
        """How it stands, as the answer to `verify`: rows from number `first` on, ROWS_MAX of them at most."""
        told = {"running": self.running, "why": self.why, "root": ROOT, "mpy": MPY}
        if not self.running and self.why is None:
            told["files"] = len(self.rows)
            told["hash"] = self.total
            told["rows"] = [list(row) for row in self.rows[first : first + ROWS_MAX]]
        return told


def keyed_hash(seed, inner):
    """The outer hash of a file as 32 hex digits: seed and the digest of `seed + path + NUL + content`, as bytes."""
    return hexlify(sha256(seed + inner).digest()[:16]).decode()


def row_bytes(name, size, keyed):
    """What a file adds to the hash over all."""
    return ("%s\0%d\0%s" % (name, size, keyed)).encode()
