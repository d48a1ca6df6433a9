"""One end of the wire joined to the round and the journal: pure but for the journal's files; time is an argument.

`Controller` takes lines from the host and gives lines back; the app joins it to a board, and tests join it to a
transport that loses what it likes.
"""

from dragoneye import protocol, round
from dragoneye.journal import RESERVE, Damaged
from dragoneye.keys import Gate
from dragoneye.protocol import Noise, Problem
from dragoneye.text import dumps, is_whole

# Events under way at once, unacknowledged; sent again from the first one after RESEND_MS.
WINDOW = 8
RESEND_MS = 1000
ANNOUNCE_MS = 1000
ANSWERS_KEPT = 8
# Answers that wait to be sent; a host that reads none of them asks again.
OUT_MAX = 16
SEQ_STEP_MAX = 1000
WHY_MAX = 80
# With less room than this nothing is recorded that the round can do without, and nothing begun that can wait: a locked
# result keeps it until the lid opens, however often the table starts. The last of it is for closed bets and result.
SCARCE = RESERVE // 2
LAST = 8
# Requests that write and can wait until a host has fetched what there is.
_PUT_OFF = ("bets", "leave", "changed", "end", "dice", "confirm", "correct")
# In the place of an id: the record was left out, as what is left of the journal is for the round.
DROPPED = -1


# MicroPython gives a file system's error as its number only.
_ERRNO = {5: "input/output error", 19: "no such device", 28: "no space left", 84: "the file system is damaged"}


def _nothing():
    return {}


def _no_survey(seed):
    raise Problem("E_STATE", "no flash is there to be looked at")


def _why(error):
    """An OSError in words."""
    if len(error.args) > 1:
        return error.args[1]
    return _ERRNO.get(error.errno, "error %d of the file system" % error.errno)


class Controller:
    """The controller of one table.

    `identity` is what `hello` tells of the board and the firmware; `pack`, `registry`, `eye` and `settings` make the
    table. `cause` is why the board started. A configuration that could not be used is given as `trouble`, a
    (fault code, words) pair; then the other four may be those of an empty table. `gain_steps` and `dice_set`: as for
    the table. `gate` (a keys.Gate) says who may ask for what; without one it is a table without keys.
    """

    # See set_back.
    TIMES = ("_now", "_resend_at", "_announce_at")

    def __init__(
        self,
        journal,
        pack,
        registry,
        eye,
        settings,
        identity,
        cause,
        now,
        trouble=None,
        gain_steps=1,
        dice_set=None,
        gate=None,
    ):
        self.journal = journal
        self.identity = identity
        self.gate = gate or Gate("", b"")
        # The role whose signed request is being done.
        self._by = None
        self.counters = {
            "frames": 0,
            "noise": 0,
            "repeats": 0,
            "refused": 0,
            "resent": 0,
            "rolls": 0,
            "voids": 0,
            "dropped": 0,
        }
        self._void_reasons = {}
        self._out = []
        self._answers = []
        self._session = None
        # Whether this session's host keeps the record: what it says of it counts.
        self._keeps = False
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
        self._unread = False
        # What the host held beyond this table's record, as its hello told it.
        self._host_last = 0
        self._host_over = 0
        self._host_streak = None
        self._host_hash = ""
        self._started = False
        self._writing = False
        self.more_stats = _nothing
        self.more_sensors = _nothing
        # Begins a survey of the flash (installed.Survey) with this seed; the last one.
        self.start_survey = _no_survey
        self.survey = None
        try:
            journal.load()
        except Damaged as damage:
            self._broken = str(damage)
            self._good = journal.last_id
        except OSError as error:
            self._broken = "cannot be read: %s" % _why(error)
            self._unread = True
        self.boot = journal.state["boot"] + 1
        # A start that there is no room for is recorded before the first thing that there is room for.
        self._boot_owed = None
        started = dict(identity, cause=cause)
        if dice_set is not None:
            started["dice_set"] = dice_set
        if self._record("boot", started) == DROPPED:
            self._boot_owed = started
        self.table = round.Table(pack, registry, eye, settings, journal.state, self._record, now, gain_steps, dice_set)
        self.table.prepare = self._prepare
        self._started = True
        if self._broken:
            self._fail(self._broken)
        if trouble is not None:
            self.table.standing[trouble[0]] = trouble[1]
            self.guard(now, self.table.set_fault, trouble[0], trouble[1])

    # -- records ---------------------------------------------------------------------------------------------------

    def _record(self, kind, data):
        """Make one record durable and return its id, or 0 with a broken journal: a fault stands.

        A record that a signed request makes says whose it was: `by`, a role.

        Raises OSError when the flash refuses, and then for every other record until the fault JOURNAL is latched.

        A flash write stops interrupts, the lid's among them: whatever moves is stopped first.
        """
        if self._started:
            self.table.stop_now()
        if self._broken:
            if self._started and not self.table.standing.get("JOURNAL"):
                raise OSError(5)
            return 0
        if self._by is not None:
            data = dict(data, by=self._by)
        if self._left_out(kind, data):
            self.counters["dropped"] += 1
            return DROPPED
        if kind == "void":
            self.counters["voids"] += 1
            self._void_reasons[data["reason"]] = self._void_reasons.get(data["reason"], 0) + 1
        elif kind == "settled":
            self.counters["rolls"] += 1
        # No `finally`: after an interrupt in the midst of it the journal in memory is not to be trusted.
        self._writing = True
        try:
            ticks = self._now - self._boot_at
            # Nothing goes before a restart: the chain begins with it.
            if self._boot_owed is not None and kind != "restart" and self.journal.room > LAST // 2:
                self.journal.append("boot", self._boot_owed, self.boot, ticks)
                self._boot_owed = None
            record_id = self.journal.append(kind, data, self.boot, ticks)["id"]
            self._writing = False
            return record_id
        except OSError as error:
            self._writing = False
            self._broken = "cannot be written: %s" % _why(error)
            if self._started:
                raise
            # While the table starts: the fault is set when it stands.
            return 0

    def _left_out(self, kind, data):
        """True for a record that what is left of the journal is too dear for: nothing from a locked result on can be
        fetched, and so make room, before its round has ended."""
        room = self.journal.room
        if kind == "fault" and round.is_latched(data["code"]):
            # One that is recorded as set may be cleared.
            known = self.journal.state["fault"]
            return room < LAST and (data["set"] or known is None or known["code"] != data["code"])
        return kind in ("boot", "door", "fault", "service", "stopped") and room < SCARCE

    def _need_room(self, least):
        if self.journal.room < least:
            raise Problem("E_JOURNAL")

    def _prepare(self):
        """Before a shake: have the flash ready for the record that ends it."""
        self._need_room(SCARCE)
        if not self._broken:
            self.journal.prepare()

    def _fail(self, words):
        self._broken = words
        self.table.standing["JOURNAL"] = words
        self.table.set_fault("JOURNAL", words, self._now)

    def note_service(self, times, now):
        """The board was started so often with its service key held, into the prompt. True when that is recorded."""
        self._now = now
        try:
            return self._record("service", {"times": times}) > 0
        except OSError as error:
            self._refused(error)
            return False

    def stopped(self, why, now):
        """The program is about to end: record why. The journal refuses in silence; then the next boot tells."""
        if not self._writing:
            self.guard(now, self._stopped, why)

    def _stopped(self, why, _now):
        self._record("stopped", {"why": why[:WHY_MAX]})

    @property
    def delivered(self):
        """True when the host has all that may leave."""
        return not self._out and (self._session is None or self._acked >= self._sendable())

    def set_back(self, ms, *owners):
        """The clock was set back by `ms`, and so is every time that is kept here or by one of `owners`: their TIMES.

        What is long past stays so, but no further back than half of that: numbers shall stay small.
        """
        self._boot_at -= ms
        for owner in (self, self.gate, self.table) + owners:
            for name in owner.TIMES:
                at = getattr(owner, name)
                if at is not None:
                    setattr(owner, name, max(at - ms, -ms // 2))

    def guard(self, now, action, *args):
        """Call a method of the table; a journal that refuses becomes the fault JOURNAL."""
        self._now = now
        try:
            action(*args, now)
        except OSError as error:
            self._refused(error)
        self._look()

    def _refused(self, error):
        """Something raised OSError: the journal's own words count, if it was that."""
        self._fail(self._broken or "cannot be written: %s" % _why(error))

    def _look(self):
        """Latch the fault JOURNAL when the table went on over a record that was refused."""
        if self._broken and not self.table.standing.get("JOURNAL"):
            self._fail(self._broken)

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
            if self._session is not None and is_whole(value["ack"], 0, protocol.SEQ_MAX):
                self._acked = max(self._acked, min(value["ack"], self._sent))
                self._ack()
                if self._acked >= self._sent:
                    self._resend_at = None
            return
        if "q" not in value:
            self.counters["noise"] += 1
            return
        for kept, answer in self._answers:
            if kept == seq:
                self.counters["repeats"] += 1
                self._put(answer)
                return
        # The signature is over the frame without its CRC.
        self._put(self._answer(seq, value, line.rstrip(b"\r\n")[:-9], now))

    def _ack(self):
        """What the host has stored may go, where it may say so."""
        if self._keeps:
            self.journal.ack(self._acked)

    def _put(self, answer):
        if answer not in self._out:
            self._out.append(answer)
            if len(self._out) > OUT_MAX:
                self._out.pop(0)

    def _answer(self, seq, value, body, now):
        greets = value["q"] == "hello"
        try:
            if not greets:
                if self._session is None or not self._last_seq < seq <= self._last_seq + SEQ_STEP_MAX:
                    raise Problem("E_HELLO")
                self._last_seq = seq
            self._by = self.gate.check(value, body, now)
            name, fields = protocol.check_request(value)
            answer = self._hello(seq, fields) if greets else self._do(name, fields, now)
            reply = {"re": seq, "ok": answer}
        except Problem as problem:
            self.counters["refused"] += 1
            reply = {"re": seq, "err": problem.code, "why": problem.why, "state": self.table.state}
        finally:
            self._by = None
        frame = protocol.encode(seq, reply)
        if seq != self._last_seq:
            # Not kept: it is no answer of this session.
            return frame
        self._answers.append((seq, frame))
        if len(self._answers) > ANSWERS_KEPT:
            self._answers.pop(0)
        return frame

    def _do(self, name, fields, now):
        if name == "status":
            return self.table.view(now)
        if name == "stats":
            return self.stats()
        if name == "verify":
            return self._verify(fields)
        if name == "maintenance" and self.identity.get("locked"):
            raise Problem("E_LOCKED")
        if name == "open" or (name == "test" and fields["on"]):
            self._need_room(RESERVE)
        elif name in _PUT_OFF:
            self._need_room(SCARCE)
        if self._broken and name in ("leave", "end", "changed", "test", "dice", "correct"):
            raise Problem("E_FAULT", "the journal is broken: nothing can be recorded")
        if name == "correct" and fields["event"] > self.journal.last_id:
            told = (fields["event"], self.journal.last_id)
            raise Problem("E_ARGS", "correct: event is %d; the last one is %d" % told)
        try:
            if name == "clear" and fields["code"] == "JOURNAL" and self._can_begin_anew():
                self._begin_anew()
            answer = self.table.request(name, fields, now)
            self._look()
            if name == "sensors":
                answer.update(self.more_sensors())
            return answer
        except OSError as error:
            why = self._broken or "cannot be written: %s" % _why(error)
            self._fail(why)
            raise Problem("E_FAULT", "the journal %s" % why)

    def _verify(self, fields):
        if fields["seed"]:
            if not self.table.may_stop:
                raise Problem("E_STATE", "the table is %s; allowed between rounds" % self.table.beneath)
            self.survey = self.start_survey(self.gate.seed(fields["seed"]))
        if self.survey is None:
            raise Problem("E_STATE", "none was begun; give a seed")
        return self.survey.answer(fields["first"])

    @property
    def greeted(self):
        """True while a host has said hello."""
        return self._session is not None

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
        for field, own in (
            ("last_event", self.journal.last_id),
            ("last_round", self.table.round),
            ("last_over", self.table.round),
        ):
            if fields[field] > max(own, protocol.HISTORY_MAX):
                raise Problem("E_ARGS", "hello: %s is %d; no table gets that far" % (field, fields[field]))
        keeps = self.gate.unprovisioned or self._by is not None
        if not keeps and (
            fields["last_event"] > self.journal.last_id
            or fields["last_round"] > max(self.table.round, self.table.floor)
        ):
            self.gate.deny("a hello beyond the table's own record")
        self._keeps = keeps
        answer = self._known(fields["last_event"])
        self._host_last = fields["last_event"]
        self._host_over = fields["last_over"]
        self._host_streak = fields["streak"]
        self._host_hash = fields["last_hash"]
        self.table.floor = max(self.table.floor, fields["last_round"])
        self.table.changed = True
        if self._host_last > self.journal.last_id and not self._broken:
            # The flash was wiped, or lost its end: the host holds the history, and no id may occur twice.
            try:
                self._restart(
                    "the journal ended at record %d, the host's at %d" % (self.journal.last_id, self._host_last)
                )
            except OSError as error:
                self._fail("cannot be written: %s" % _why(error))
        self._session = seq
        self._last_seq = seq
        self._answers = []
        self._acked = self._sent = min(self._host_last, self.journal.last_id)
        self._ack()
        self._resend_at = None
        answer.update(self.hello())
        return answer

    def _known(self, record_id):
        """{"known": [id, hash]} of this record as it is here before anything else is done, or of the newest that may
        leave: by it the host tells whether its record and this one are the same. Nothing when neither can be read."""
        last = self._sendable()
        if not self.journal.first_id <= record_id <= last:
            record_id = last
        if record_id == self.journal.last_id:
            # Without a look at the flash; the usual case.
            return {"known": [record_id, self.journal.head]}
        try:
            stored = self.journal.line(record_id)
        except (OSError, Damaged):
            stored = None
        return {} if stored is None else {"known": [record_id, stored[1]]}

    def _restart(self, why, drop=False):
        state = dict(self.journal.state, boot=self.boot)
        # The new chain hangs on what the host holds, or nobody could tell whether the end of that was cut off later.
        known = self._known(self._sendable()).get("known", (0, ""))
        beyond = self._host_last > self.journal.last_id
        link = self._host_hash if beyond else known[1]
        self.table.stop_now()
        # Before the table changes: it may be refused.
        self.journal.restart(max(self._host_last, self.journal.last_id), drop)
        if beyond:
            over = state["phase"] != protocol.IDLE and state["round"] <= self._host_over
            if over or (self._good is not None and state["locked"] is None):
                # The host knows how the round went on after what is left here: it must not be taken up again.
                self.table.forget()
                state.update({"phase": protocol.IDLE, "bets": [], "locked": None})
            if self._host_streak is not None:
                self.table.resume_streak(self._host_streak)
                state["streak"] = self._host_streak
        if state["phase"] == protocol.IDLE:
            state["round"] = max(state["round"], self.table.floor)
        if state["locked"] is not None:
            # The record that is written now tells the result: it is held back in place of the one set aside.
            state["locked"] = dict(state["locked"], id=self.journal.last_id + 1)
            self.table.locked = state["locked"]
        self.journal.acked = self._acked = self._sent = self.journal.last_id
        # The start's own record may be set aside with the rest: which key tags this chain is told here.
        key_id = self.identity.get("key_id")
        self._record("restart", {"why": why, "state": state, "link": link, "key_id": key_id})

    def _can_begin_anew(self):
        fault = self.table.fault
        return self._broken is not None and not self._unread and fault is not None and fault["code"] == "JOURNAL"

    def _begin_anew(self):
        """A supervisor clears a damaged journal: only when the host has stored what stands before the damage.

        One that could only not be written is tried again. Raises OSError when it still cannot.
        """
        if self._good is not None and self.journal.acked < self._sendable():
            raise Problem("E_STANDS", "the host has not stored the records before the damage yet")
        why = self._broken
        good = self._good
        self._broken = None
        try:
            if good is not None or self._host_last > self.journal.last_id:
                self._restart(why, True)
            self._good = None
            # What happened meanwhile was not asked for now.
            self._by = None
            self.table.write_unwritten()
        except OSError:
            self._broken = why
            self._good = good
            raise
        self.table.standing["JOURNAL"] = None

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
                "played": self.journal.state["played"],
                "state": self.table.state,
                "round": max(self.table.round, self.table.floor),
                "dice_set": self.table.dice_set,
                "unprovisioned": self.gate.unprovisioned,
                "nonce": self.gate.nonce,
                "counter": self.gate.counter,
            }
        )
        return answer

    def stats(self):
        """Counters since the boot, and what the app adds (memory, task times)."""
        answer = {"void_reasons": self._void_reasons, "reading": self.table.tally.as_dict()}
        answer.update(self.counters)
        answer["unsigned"] = self.gate.refused
        answer["uptime_ms"] = self._now - self._boot_at
        answer["acked"] = self.journal.acked
        answer["sendable"] = self._sendable()
        answer["journal"] = self.journal.stats()
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
        if not self.journal.near(self._sent + 1):
            return None
        stored = self.journal.line(self._sent + 1)
        if stored is None:
            return None
        self._sent += 1
        self._resend_at = now + RESEND_MS
        text, link, tag = stored
        return self._frame_text('{"ev":%s,"h":"%s"%s}' % (text, link, ',"m":"%s"' % tag if tag else ""))

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
        if self.table.state == protocol.READING:
            # Nothing unasked while the dice are read: making a frame would hold up the readers for many milliseconds.
            return None
        line = None
        try:
            line = self._next_event(now)
        except OSError as error:
            self._fail("cannot be read: %s" % _why(error))
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
        """The host has gone: the session is over."""
        self._session = None
        self._out = []
        self._answers = []
        self._resend_at = None
