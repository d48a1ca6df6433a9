"""One end of the wire joined to the round and the journal: pure but for the journal's files; time is an argument.

`Controller` takes lines from the host and gives lines back; the app joins it to a board, and tests join it to a
transport that loses what it likes.
"""

from dragoneye import protocol, round
from dragoneye.journal import RESERVE, Damaged
from dragoneye.protocol import Noise, Problem
from dragoneye.text import dumps

# Events under way at once, unacknowledged; sent again from the first one after RESEND_MS.
WINDOW = 8
RESEND_MS = 1000
ANNOUNCE_MS = 1000
ANSWERS_KEPT = 8
SEQ_STEP_MAX = 1000


def _nothing():
    return {}


class Controller:
    """The controller of one table.

    `identity` is what `hello` tells of the board and the firmware; `pack`, `registry`, `eye` and `settings` make the
    table. `cause` is why the board started. A configuration that could not be used is given as `trouble`, a
    (fault code, words) pair; then the other four may be those of an empty table.
    """

    def __init__(self, journal, pack, registry, eye, settings, identity, cause, now, trouble=None):
        self.journal = journal
        self.identity = identity
        self.counters = {"frames": 0, "noise": 0, "repeats": 0, "refused": 0, "resent": 0, "rolls": 0, "voids": 0}
        self._out = []
        self._answers = []
        self._session = None
        self._last_seq = 0
        self._seq = 0
        # What this session's host has acknowledged; the journal keeps the highest of all hosts.
        self._acked = 0
        self._sent = 0
        self._resend_at = None
        self._announce_at = now
        self._boot_at = now
        self._now = now
        # Why the journal cannot be written, and the last record before what is damaged.
        self._broken = None
        self._good = None
        self._host_last = 0
        self.more_stats = _nothing
        try:
            journal.load()
        except Damaged as damage:
            self._broken = str(damage)
            self._good = journal.last_id
        except OSError as error:
            self._broken = "cannot be read: %s" % error
        self.boot = journal.state["boot"] + 1
        self._record("boot", dict(identity, cause=cause))
        self.table = round.Table(pack, registry, eye, settings, journal.state, self._record, now)
        if self._broken:
            self._fail(self._broken)
        if trouble is not None:
            self.table.standing[trouble[0]] = trouble[1]
            self.table.set_fault(trouble[0], trouble[1], now)

    # -- records ---------------------------------------------------------------------------------------------------

    def _record(self, kind, data):
        """Make one record durable and return its id. With a broken journal nothing is written: a fault stands."""
        if self._broken:
            return 0
        if kind == "void":
            self.counters["voids"] += 1
        elif kind == "settled":
            self.counters["rolls"] += 1
        return self.journal.append(kind, data, self.boot, self._now - self._boot_at)["id"]

    def _fail(self, words):
        self._broken = words
        self.table.standing["JOURNAL"] = words
        self.table.set_fault("JOURNAL", words, self._now)

    def guard(self, now, action, *args):
        """Call a method of the table; a journal that refuses becomes the fault JOURNAL."""
        self._now = now
        try:
            return action(*args, now)
        except OSError as error:
            self._fail("cannot be written: %s" % error)
            return None

    # -- from the host ---------------------------------------------------------------------------------------------

    def receive(self, line, now):
        """Take one line of bytes from the host. Noise is counted; every request is answered once."""
        self._now = now
        if not line.strip():
            return
        try:
            seq, value = protocol.decode(line)
        except Noise:
            self.counters["noise"] += 1
            return
        self.counters["frames"] += 1
        if "ack" in value:
            if self._session is not None and isinstance(value["ack"], int):
                self._acked = max(self._acked, min(value["ack"], self._sent))
                self.journal.ack(self._acked)
                if self._acked >= self._sent:
                    self._resend_at = None
            return
        if "q" not in value:
            self.counters["noise"] += 1
            return
        for kept, answer in self._answers:
            if kept == seq:
                self.counters["repeats"] += 1
                self._out.append(answer)
                return
        self._out.append(self._answer(seq, value, now))

    def _answer(self, seq, value, now):
        try:
            name, fields = protocol.check_request(value)
            if name == "hello":
                answer = self._hello(seq, fields)
            else:
                if self._session is None or not self._last_seq < seq <= self._last_seq + SEQ_STEP_MAX:
                    # Not kept: it is no answer of this session.
                    return protocol.encode(seq, {"re": seq, "err": "E_HELLO", "why": protocol.ERRORS["E_HELLO"]})
                self._last_seq = seq
                answer = self._do(name, fields, now)
            reply = {"re": seq, "ok": answer}
        except Problem as problem:
            self.counters["refused"] += 1
            reply = {"re": seq, "err": problem.code, "why": problem.why, "state": self.table.state}
        frame = protocol.encode(seq, reply)
        self._answers.append((seq, frame))
        if len(self._answers) > ANSWERS_KEPT:
            self._answers.pop(0)
        return frame

    def _do(self, name, fields, now):
        if name == "status":
            return self.table.view(now)
        if name == "stats":
            return self.stats()
        if name == "open" and self.journal.room < RESERVE:
            raise Problem("E_JOURNAL")
        if name == "clear" and fields["code"] == "JOURNAL" and self._good is not None:
            self._begin_anew()
        try:
            return self.table.request(name, fields, now)
        except OSError as error:
            self._fail("cannot be written: %s" % error)
            raise Problem("E_FAULT", "the journal cannot be written: %s" % error)

    def _hello(self, seq, fields):
        if fields["major"] != protocol.MAJOR:
            raise Problem(
                "E_VERSION",
                "the host speaks protocol %d.%d, this table %d.%d"
                % (fields["major"], fields["minor"], protocol.MAJOR, protocol.MINOR),
            )
        if seq == self._session:
            # The same hello again, so late that its answer is not kept any more.
            return self.hello()
        self._host_last = fields["last_event"]
        self.table.round = max(self.table.round, fields["last_round"])
        if self._host_last > self.journal.last_id and not self._broken:
            # The flash was wiped, or lost its end: the host holds the history, and no id may occur twice.
            self._restart("the journal ended at record %d, the host's at %d" % (self.journal.last_id, self._host_last))
        self._session = seq
        self._last_seq = seq
        self._answers = []
        self._acked = self._sent = min(self._host_last, self.journal.last_id)
        self.journal.ack(self._acked)
        self._resend_at = None
        return self.hello()

    def _restart(self, why):
        if self._host_last > self.journal.last_id:
            # The host knows how the round went on after what is left here: it must not be taken up again.
            self.table.forget()
        state = dict(self.journal.state, round=self.table.round, boot=self.boot)
        locked = self.table.locked
        if locked is None:
            state.update({"phase": round.IDLE, "bets": [], "locked": None})
        self.journal.restart(max(self._host_last, self.journal.last_id))
        self.journal.acked = self._acked = self._sent = self.journal.last_id
        record_id = self._record("restart", {"why": why, "state": state})
        if locked is not None:
            # This record holds the result now, and is held back like it until the lid opens.
            locked["id"] = record_id

    def _begin_anew(self):
        """A supervisor clears a damaged journal: only when the host has stored what stands before the damage."""
        if self._session is None or self.journal.acked < self._sendable():
            raise Problem("E_STANDS", "the host has not stored the records before the damage yet")
        why = self._broken
        self._broken = self._good = None
        self.table.standing["JOURNAL"] = None
        self._restart(why)
        self._record("fault", {"code": "JOURNAL", "set": True, "detail": why})

    def hello(self):
        """Who this table is, as `hello` tells it (design: firmware, board, unique id, boot, hashes, last event)."""
        answer = dict(self.identity)
        answer.update(
            {
                "major": protocol.MAJOR,
                "minor": protocol.MINOR,
                "boot": self.boot,
                "pack": self.table.pack.name,
                "first_event": self.journal.first_id,
                "last_event": self.journal.last_id,
                "state": self.table.state,
                "round": self.table.round,
                "unprovisioned": True,
            }
        )
        return answer

    def stats(self):
        """Counters since the boot, and what the app adds (memory, task times)."""
        answer = dict(self.counters)
        answer["uptime_ms"] = self._now - self._boot_at
        answer["acked"] = self.journal.acked
        answer["sendable"] = self._sendable()
        answer.update(self.more_stats())
        return answer

    # -- to the host -----------------------------------------------------------------------------------------------

    def _sendable(self):
        """The last event that may leave: nothing from a locked result on before the lid has opened."""
        locked = self.table.locked
        last = self.journal.last_id if self._good is None else self._good
        if locked is not None and self.journal.first_id <= locked["id"] <= last:
            return locked["id"] - 1
        return last

    def _next_event(self, now):
        if self._session is None:
            return None
        if self._resend_at is not None and now >= self._resend_at and self._acked < self._sent:
            self.counters["resent"] += 1
            self._sent = self._acked
        if self._sent + 1 < self.journal.first_id:
            # What went before has been removed, as another host had stored it.
            self._acked = self._sent = self.journal.first_id - 1
        if self._sent >= self._sendable() or self._sent - self._acked >= WINDOW:
            return None
        stored = self.journal.line(self._sent + 1)
        if stored is None:
            return None
        self._sent += 1
        self._resend_at = now + RESEND_MS
        text, link = stored
        return self._frame_text('{"ev":%s,"h":"%s"}' % (text, link))

    def _frame(self, value):
        return self._frame_text(dumps(value))

    def _frame_text(self, text):
        self._seq = (self._seq + 1) & protocol.SEQ_MAX
        return protocol.encode_text(self._seq, text)

    def next_line(self, now):
        """The next line for the host as bytes, or None. Answers first, then events, then the live state."""
        self._now = now
        if self._out:
            return self._out.pop(0)
        line = None
        try:
            line = self._next_event(now)
        except OSError as error:
            self._fail("cannot be read: %s" % error)
        except Damaged as damage:
            self._good = self._sent
            self._fail(str(damage))
        if line is not None:
            return line
        if self._session is None:
            if now >= self._announce_at:
                self._announce_at = now + ANNOUNCE_MS
                return self._frame({"hello": self.hello()})
            return None
        if self.table.changed:
            self.table.changed = False
            return self._frame({"st": self.table.view(now)})
        return None

    def disconnected(self):
        """The cable was pulled or the host closed the port: the session is over."""
        self._session = None
        self._out = []
        self._answers = []
        self._resend_at = None
