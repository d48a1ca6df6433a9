"""The durable record: append-only, bounded, hash-chained, and what the table knows after a power loss.

Segments of at most SEGMENT_RECORDS lines in one folder, named by their first record's id. A segment's first line is
its head: {"first", "prev", "acked", "state"}, where `state` is the fold of every record before it, so that a boot reads
one segment only, and `acked` what a host had stored by then, so that a boot may remove the oldest. Every further line
is a record {"id", "k", "b", "t", "d"}: running id, kind, boot number, milliseconds since that boot, data. Each line
ends with " " and its hash: SHA-256 over the previous record's hash and the line's JSON, the first 16 bytes in hex.
With a journal key a record's line goes on with " " and its tag: HMAC-SHA-256 of that hash, the first 8 bytes in hex.
Nobody here checks it: it is the host's proof. As the hash covers all records before, so does one tag.
Heads hang on the chain of records but are no links of it: a host that has only the records can follow it.
Files are opened for each append and closed again: littlefs commits at close, all or nothing. What takes longest of an
append, the erase of a block that the file's last one is copied into, may be done ahead (`prepare`).
"""

import binascii
import hashlib
import json
import os

from dragoneye.text import dumps

SEGMENT_RECORDS = 64
SEGMENTS_MAX = 24
# So many lie aside at most, damaged or overtaken by what a host holds.
ASIDE_MAX = SEGMENTS_MAX
# What one round can write at most with some voids; a round is opened only when this much is free.
RESERVE = 64

GENESIS = "0" * 32

# littlefs on the Pico: a file's blocks.
BLOCK = 4096
# What the longest record needs: a result with all wagers of seven positions.
RECORD_MAX = 1220
# Read at once while lines are looked for: readline would fetch byte by byte.
CHUNK = 2048
# Records that wait to be parsed: more than a round has without voids.
WAITING_MAX = 12
# So much is looked through at most before others get their turn.
NEAR = 4096
# What a line raises that no journal has written. RuntimeError: nested deeper than the stack.
_WRONG = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RuntimeError)


class Damaged(Exception):
    """The journal does not fit itself: the text names the segment, the line and what is wrong."""


class _Unreadable(Exception):
    """A record that waited to be parsed is none."""


def chain(previous, text):
    """The hash of a line: `previous` hash (32 hex digits) and the line's JSON `text`, as 32 hex digits."""
    digest = hashlib.sha256((previous + text).encode()).digest()
    return binascii.hexlify(digest[:16]).decode()


def _checked(line, previous):
    """(JSON, hash, tag or b"") of one stored line, all bytes. Raises ValueError saying what is wrong."""
    tag = b""
    # Without a tag there is a digit of the hash.
    if line[-17:-16] == b" ":
        tag = line[-16:]
        line = line[:-17]
    if len(line) < 34 or line[-33:-32] != b" ":
        raise ValueError("the line is cut short")
    stored = line[-32:]
    # As `chain`, without its copies of the text: a start does this for a whole segment.
    digest = hashlib.sha256(previous.encode())
    digest.update(memoryview(line)[:-33])
    if binascii.hexlify(digest.digest()[:16]) != stored:
        raise ValueError("the hash differs")
    try:
        binascii.unhexlify(tag)
    except ValueError:
        raise ValueError("the tag is not hexadecimal")
    return line[:-33], stored, tag


def _is_of(text, record_id):
    """Whether the JSON is that of the record, as far as can be told without parsing it."""
    name = ('"id":%d' % record_id).encode()
    return name + b"," in text or name + b"}" in text


def _hash_of(line):
    """The hash of a record's line that was checked before."""
    end = -17 if line[-17:-16] == b" " else len(line)
    return line[:end][-32:].decode()


def _lines(file):
    """The lines of a file, each with its end."""
    rest = b""
    while True:
        data = file.read(CHUNK)
        if not data:
            break
        rest += data
        begin = 0
        end = rest.find(b"\n") + 1
        while end:
            yield rest[begin:end]
            begin = end
            end = rest.find(b"\n", begin) + 1
        rest = rest[begin:]
    if rest:
        yield rest


def left_of_block(size):
    """How many bytes of its last block a littlefs file of `size` bytes leaves free.

    A block begins with pointers to earlier ones, of 4 bytes each: its number's trailing zeros and one (littlefs,
    DESIGN.md, "CTZ skip-lists").
    """
    number = 0
    left = BLOCK
    while size > left:
        size -= left
        number += 1
        left = BLOCK - 4
        bits = number
        while not bits & 1:
            bits >>= 1
            left -= 4
    return left - size


def _is_segment(name):
    return name[:1] == "j" and name[-4:] == ".log" and name[1:-4].isdigit()


class Journal:
    """The journal in `folder`, with `fold(state, record)` giving the state after a record.

    `initial` is the state before any record. Both are pure; records and state are JSON. `key` is the journal key, whose
    `mac(bytes)` is HMAC-SHA-256, or None: records are not tagged then. `superseded` are kinds of records: once one of
    the last kind follows, those before it make no difference to the state, and a start parses none of them.
    """

    def __init__(self, folder, fold, initial, key=None, superseded=()):
        self.folder = folder
        self._fold = fold
        self._kinds = [('"k":"%s"' % kind).encode() for kind in superseded]
        # The JSON of such records, while the journal is read.
        self._waiting = []
        self._key = key
        self.state = initial()
        self.head = GENESIS
        self.last_id = 0
        self.acked = 0
        # Records that were written since the start.
        self.appends = 0
        self._firsts = []
        self._count = 0
        # Bytes of the newest segment that are known to be whole, and whether more may stand there.
        self._size = 0
        self._torn = False
        # The highest id that a damaged segment may hold.
        self._used = 0
        # Where the newest segment's lines end, and those of another one as far as it was looked through.
        self._ends = []
        self._other = None
        self._other_ends = []
        # The newest segment, open for the next record, and how much was written there already.
        self._file = None
        self._begun = 0

    def _path(self, first):
        return "%s/j%09d.log" % (self.folder, first)

    def load(self):
        """Read the newest segment; leave `state`, `head` and `last_id` as of the last record.

        A last line that was cut short (no file system of the device does that, but a copied one can) is dropped.
        Raises Damaged naming the segment and the line.
        """
        try:
            os.mkdir(self.folder)
        except OSError:
            pass
        self._firsts = sorted([int(name[1:-4]) for name in os.listdir(self.folder) if _is_segment(name)])
        while self._firsts and not self._load(self._firsts[-1]):
            # The segment was begun but its head never landed; the one before it is whole.
            os.remove(self._path(self._firsts.pop()))

    def _load(self, first):
        try:
            try:
                return self._read(first)
            finally:
                self._fold_waiting()
        except _Unreadable:
            # Among those that nobody parsed: now each is, and the one is found.
            self._kinds = []
            return self._read(first)

    def _fold_waiting(self):
        waiting = self._waiting
        self._waiting = []
        try:
            for text in waiting:
                self.state = self._fold(self.state, json.loads(text))
        except _WRONG:
            raise _Unreadable

    def _waits(self, text):
        """Whether this record, the next one, need not be parsed now, or ever when a later one supersedes it."""
        if not _is_of(text, self.last_id + 1):
            return False
        for kind in self._kinds:
            if kind in text:
                if kind == self._kinds[-1]:
                    self._waiting = []
                elif len(self._waiting) >= WAITING_MAX:
                    self._fold_waiting()
                self._waiting.append(text)
                return True
        return False

    def _read(self, first):
        path = self._path(first)
        number = 0
        end = 0
        self._ends = []
        with open(path, "rb") as file:
            for line in _lines(file):
                number += 1
                try:
                    self._take(line[:-1].lstrip(b" "), number, first)
                except _WRONG as error:
                    if not line.endswith(b"\n"):
                        break
                    self._used = first + SEGMENT_RECORDS - 1
                    if number == 1 and len(self._firsts) > 1:
                        self._fall_back(first)
                    raise Damaged("segment %d, line %d: %s" % (first, number, error))
                if not line.endswith(b"\n"):
                    # The line is whole, only its end is another byte, or its tag is missing.
                    self._size = end
                    line = line[:-1]
                    if number > 1 and line[-17:-16] != b" ":
                        line += self._tag(self.head).encode()
                    self._cut(path, line + b"\n")
                    self._ends.append(self._size)
                    return True
                end += len(line)
                self._ends.append(end)
        if end == 0:
            return False
        self._size = end
        if os.stat(path)[6] != end:
            self._cut(path)
        return True

    def _fall_back(self, first):
        """The head of the newest segment is damaged: take the state from the segments before it."""
        self._firsts.pop()
        try:
            self._load(self._firsts[-1])
        except Damaged:
            pass
        self._firsts.append(first)

    def _cut_torn(self):
        """Cut what a refused append may have left; where the flash refuses that too, the next append tries again."""
        try:
            self._cut(self._path(self._firsts[-1]))
        except OSError:
            pass

    def _cut(self, path, more=b""):
        """Cut the newest segment down to what is known to be whole, and `more`."""
        with open(path, "rb") as file:
            whole = file.read(self._size) + more
        with open(path + ".new", "wb") as file:
            file.write(whole)
        os.rename(path + ".new", path)
        self._size = len(whole)
        self._torn = False

    def _take(self, line, number, first):
        if number == 1:
            head = json.loads(line[:-33])
            _checked(line, head["prev"])
            if head["first"] != first:
                raise ValueError("the head names record %d" % head["first"])
            if not isinstance(head["state"], dict):
                raise ValueError("the head has no state")
            self.state = head["state"]
            self.head = head["prev"]
            self.last_id = first - 1
            self.acked = head.get("acked", 0)
            self._count = 0
            return
        text, stored, _tag = _checked(line, self.head)
        if not self._waits(text):
            record = json.loads(text)
            if record["id"] != self.last_id + 1:
                raise ValueError("record %d stands where %d should" % (record["id"], self.last_id + 1))
            self._fold_waiting()
            self.state = self._fold(self.state, record)
        self.head = stored.decode()
        self.last_id += 1
        self._count += 1

    @property
    def first_id(self):
        """The oldest record that is still here; last_id + 1 when there is none."""
        return self._firsts[0] if self._firsts else self.last_id + 1

    def stats(self):
        """{"records", "segments", "room", "appends"}: what is here, and how many were written since the start."""
        return {
            "records": self.last_id + 1 - self.first_id,
            "segments": len(self._firsts),
            "room": self.room,
            "appends": self.appends,
        }

    @property
    def room(self):
        """How many records fit before the oldest that no host has acknowledged would have to go."""
        freeable = 0
        for index in range(len(self._firsts) - 1):
            if self._firsts[index + 1] - 1 <= self.acked:
                freeable += 1
        segments = SEGMENTS_MAX - len(self._firsts) + freeable
        return segments * SEGMENT_RECORDS + (SEGMENT_RECORDS - self._count if self._firsts else 0)

    def append(self, kind, data, boot, ticks):
        """Write one record; when this returns it survives a power cut. Returns the record.

        Raises OSError when the flash refuses.
        """
        record = {"id": self.last_id + 1, "k": kind, "b": boot, "t": ticks, "d": data}
        if not self._firsts or self._count >= SEGMENT_RECORDS:
            self._begin(record["id"])
        text = dumps(record)
        stored = chain(self.head, text)
        line = ("%s %s%s\n" % (text, stored, self._tag(stored))).encode()
        if self._file is None:
            self._open(b"")
        file = self._file
        self._file = None
        try:
            with file:
                file.write(line[1:] if self._begun else line)
        except OSError:
            # It may have landed all the same, and the next start would take it for recorded.
            self._cut_torn()
            raise
        self._torn = False
        self._size += (self._begun or 1) - 1 + len(line)
        self._ends.append(self._size)
        self.state = self._fold(self.state, record)
        self.head = stored
        self.last_id = record["id"]
        self._count += 1
        self.appends += 1
        return record

    def _tag(self, stored):
        """What follows a record's hash on its line."""
        return "" if self._key is None else " " + binascii.hexlify(self._key.mac(stored.encode())[:8]).decode()

    def _open(self, begun):
        """Open the newest segment for the next record and write `begun` already."""
        path = self._path(self._firsts[-1])
        if self._torn:
            self._cut(path)
        self._torn = True
        self._begun = len(begun)
        self._file = open(path, "ab")  # noqa: SIM115 - kept
        try:
            if begun:
                self._file.write(begun)
        except OSError:
            self._close()
            raise

    def prepare(self):
        """Have the flash erased for the next record: its append will only program. Raises OSError as `append` does.

        The segment is left open with the record's first byte, which all have; nothing of that is on the flash before
        the file is closed. Spaces before it fill a block in which the longest record would not fit.
        """
        if self._file is not None:
            return
        if not self._firsts or self._count >= SEGMENT_RECORDS:
            self._begin(self.last_id + 1)
        left = left_of_block(self._size)
        self._open(b" " * (left if left < RECORD_MAX else 0) + b"{")

    def _close(self):
        """Give up what `prepare` has opened; what that leaves is cut before the next append."""
        file = self._file
        self._file = None
        if file is not None:
            try:
                file.close()
            except OSError:
                pass

    def _begin(self, first):
        self._close()
        self.prune()
        if len(self._firsts) >= SEGMENTS_MAX:
            raise OSError(28, "the journal is full")
        self._write_head(first)
        self._firsts.append(first)

    def _write_head(self, first):
        text = dumps({"first": first, "prev": self.head, "acked": self.acked, "state": self.state})
        line = ("%s %s\n" % (text, chain(self.head, text))).encode()
        with open(self._path(first), "wb") as file:
            file.write(line)
        self._size = len(line)
        self._ends = [self._size]
        self._torn = False
        self._count = 0

    def prune(self):
        """Remove the oldest segments that every host has acknowledged, down to the bound."""
        while len(self._firsts) >= SEGMENTS_MAX and self._firsts[1] - 1 <= self.acked:
            os.remove(self._path(self._firsts[0]))
            self._firsts.pop(0)

    def ack(self, record_id):
        """A host has stored every record up to `record_id`."""
        if self.acked < record_id <= self.last_id:
            self.acked = record_id

    def near(self, record_id):
        """Look for the record's place, a few milliseconds at most. True when `line` need not any more."""
        if not self.first_id <= record_id <= self.last_id:
            return True
        first, ends = self._ends_of(record_id)
        place = record_id - first + 1
        if len(ends) > place:
            return True
        known = len(ends)
        begin = ends[-1] if ends else 0
        with open(self._path(first), "rb") as file:
            file.seek(begin)
            for _ in range(NEAR // CHUNK):
                data = file.read(CHUNK)
                if not data:
                    break
                at = data.find(b"\n") + 1
                while at:
                    ends.append(begin + at)
                    at = data.find(b"\n", at) + 1
                begin += len(data)
        if len(ends) <= place and (not data or len(ends) == known):
            raise Damaged("record %d in segment %d: there is no such line" % (record_id, first))
        return len(ends) > place

    def _ends_of(self, record_id):
        """(first record of its segment, where the lines of that end as far as known)."""
        index = len(self._firsts) - 1
        if self._firsts[index] <= record_id:
            return self._firsts[index], self._ends
        while self._firsts[index] > record_id:
            index -= 1
        first = self._firsts[index]
        if self._other != first:
            self._other = first
            self._other_ends = []
        return first, self._other_ends

    def line(self, record_id):
        """(JSON text, hash, tag or "") of the record, or None when it is not here (any more).

        Raises Damaged when what is stored does not fit the record before it.
        """
        if not self.first_id <= record_id <= self.last_id:
            return None
        while not self.near(record_id):
            pass
        first, ends = self._ends_of(record_id)
        place = record_id - first + 1
        begin = ends[place - 2] if place > 1 else 0
        with open(self._path(first), "rb") as file:
            file.seek(begin)
            data = file.read(ends[place] - begin)
        before = data[: ends[place - 1] - begin - 1].lstrip(b" ")
        line = data[ends[place - 1] - begin : -1].lstrip(b" ")
        try:
            previous = json.loads(before[:-33])["prev"] if place == 1 else _hash_of(before)
            text, stored, tag = _checked(line, previous)
            # The hash has told that it is a record; to parse it would take the Pico some milliseconds.
            if not _is_of(text, record_id):
                raise ValueError("another record stands there")
            return text.decode(), stored.decode(), tag.decode()
        except _WRONG as error:
            raise Damaged("record %d in segment %d: %s" % (record_id, first, error))

    def restart(self, last_id, drop=False):
        """Set every segment aside (kept as .bad) and go on after `last_id` with the same state.

        Or after the highest id that a damaged segment may hold. The new segment is there before the old ones go. No
        name is used twice, as no id is. Where more than ASIDE_MAX would be kept, the oldest go first with `drop`, and
        else it is refused: raises OSError.
        """
        aside = sorted([name for name in os.listdir(self.folder) if name.endswith(".bad")])
        over = aside[: max(len(aside) + len(self._firsts) - ASIDE_MAX, 0)]
        if over and not drop:
            raise OSError(28, "%d segments lie aside already" % len(aside))
        for name in over:
            os.remove(self.folder + "/" + name)
        self._close()
        old = self._firsts
        self.last_id = max(last_id, self._used)
        self.head = GENESIS
        self._write_head(self.last_id + 1)
        self._firsts = [self.last_id + 1]
        self._other = None
        self._used = 0
        for first in old:
            if first != self._firsts[0]:
                os.rename(self._path(first), self._path(first)[:-4] + ".bad")
