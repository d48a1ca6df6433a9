"""The round's state machine: pure, time is an argument (milliseconds that never go back).

`Table` takes requests, inputs and reader passes, and answers with changes of its state, records (through a function
that makes them durable before it returns) and effects for the board. `fold` is what the records say: the state that
survives a power loss. What lies on the table and the service have modules of their own.
"""

from dragoneye.protocol import (
    BETTING,
    BETWEEN,
    CLOSED,
    FAULT,
    IDLE,
    LOCKED,
    READING,
    REVEALED,
    ROLLING,
    SERVICE_FAULTS,
    SETTLED,
    SETTLING,
    SHAKING,
    TEST,
    VOID,
    Problem,
)
from dragoneye.rules import reading, wagers
from dragoneye.rules.streak import Streak
from dragoneye.service import STOP, Service
from dragoneye.text import show

# What `take_effects` gives the board, beside the service's: SHAKE with (roll, jolts), READ with (roll, step of the gain
# ladder).
SHAKE = "shake"
READ = "read"
UNLOCK = "unlock"
REFUSED = "refused"

# What may be asked while a fault is latched, and in test mode.
_IN_FAULT = ("clear", "unlock", "leave", "end", "changed", "maintenance", "test", "selftest", "sensors")
_IN_TEST = ("clear", "unlock", "changed", "maintenance", "test", "selftest", "sensors", "dice")

# After an edge of the lid switch its debounced state must be known again before a shake.
LID_QUIET_MS = 50

# Settings of a table's configuration with their defaults: milliseconds and counts.
SETTINGS = {
    "jolts": 3,
    "settle_ms": 400,
    "shake_timeout_ms": 15000,
    "read_timeout_ms": 3000,
    "read_tries": 4,
    "lockout_ms": 5000,
}


# What only happens when a round is played: "played" is the last of these, but for what a start makes of an open round.
_PLAY = ("opened", "closed", "locked", "bets", "settled", "void", "streak", "correction")
# What is over once a result was settled, the last of these: its fold sets all that theirs do.
SUPERSEDED = ("opened", "bets", "closed", "locked", "door", "settled")
# What a correction needs beside its round, event and reason.
_CORRECTS = {"void": (), "dice": ("dice",), "bets": ("position", "wagers")}


def initial():
    """The durable state of a table that has recorded nothing."""
    return {
        "boot": 0,
        "played": 0,
        "round": 0,
        "phase": IDLE,
        "shaker": 0,
        "bets": [],
        "locked": None,
        "streak": Streak().as_dict(),
        "fault": None,
        "waiting": [],
        "service": {},
        "dice": None,
    }


def is_latched(code):
    """True when the fault stops the table until it is cleared; an unknown code's does."""
    return code not in SERVICE_FAULTS


def _fold_latched(after, data):
    """Set or clear a latched fault: one that comes while another is latched waits until that is cleared."""
    fault = after["fault"]
    waiting = [row for row in after.get("waiting", ()) if row[0] != data["code"]]
    if data["set"]:
        if fault is None or fault["code"] == data["code"]:
            fault = {"code": data["code"], "detail": data["detail"]}
        else:
            waiting.append([data["code"], data["detail"]])
    elif fault is not None and fault["code"] == data["code"]:
        fault = None
        if waiting:
            code, detail = waiting.pop(0)
            fault = {"code": code, "detail": detail}
    after.update({"fault": fault, "waiting": waiting})


def fold(state, record):
    """The durable state after `record` (see protocol.EVENTS); `state` is left as it was."""
    kind = record["k"]
    data = record["d"]
    after = dict(state)
    if kind in _PLAY and data.get("reason") != "power_loss":
        after["played"] = record["id"]
    # Also of others than "boot": that one is left out when there is no room.
    after["boot"] = record["b"]
    if kind == "opened":
        after.update({"round": data["round"], "phase": BETTING, "shaker": data["shaker"], "bets": [], "locked": None})
    elif kind == "closed":
        after.update({"bets": data["bets"], "shaker": data["shaker"]})
        if after["phase"] == BETTING:
            after["phase"] = CLOSED
        elif after["locked"] is not None:
            after["locked"] = dict(after["locked"], open=False)
    elif kind == "locked":
        after.update({"phase": LOCKED, "bets": data["bets"], "shaker": data["shaker"]})
        after["locked"] = {
            "id": record["id"],
            "dice": data["dice"],
            "eye": data["eye"],
            "manual": data["manual"],
            "shakes": data["shakes"],
            "open": data["bets_open"],
        }
    elif kind == "bets":
        after["bets"] = data["bets"]
    elif kind == "settled":
        after.update({"round": data["round"], "phase": IDLE, "shaker": data["shaker"], "bets": [], "locked": None})
        after["streak"] = data["streak"]
    elif kind == "void":
        if data["over"]:
            after.update({"phase": IDLE, "bets": []})
    elif kind == "streak":
        after["streak"] = data["streak"]
    elif kind == "fault":
        if is_latched(data["code"]):
            _fold_latched(after, data)
        else:
            service = dict(after.get("service", {}))
            service.pop(data["code"], None)
            if data["set"]:
                service[data["code"]] = data["detail"]
            after["service"] = service
    elif kind == "dice":
        after["dice"] = data["hash"]
    elif kind == "restart":
        after = dict(data["state"])
        if after["locked"] is not None:
            after["locked"] = dict(after["locked"], id=record["id"])
    return after


class Table(Service):
    """One table. `state` is the durable state at start, `record(kind, data)` writes one record and returns its id.

    `record` returns 0 when nothing can be written, and raises OSError when the flash refuses just now: then the caller
    latches the fault JOURNAL, also when the table did not pass that on. `unwritten` are the (kind, data) of what has
    happened and is still to be recorded; `write_unwritten` does it.

    `registry` maps tag UIDs to (die, face), `eye` is the index of the dragon's eye die, `settings` as SETTINGS,
    `gain_steps` how many steps the readers' gain ladder has. A round that was open without a locked result at start is
    recorded void; a locked one waits for the lid. `dice_set` says which set the registry is of: {"serial", "issued",
    "hash"}, see config.dice_set_of.
    """

    # See Controller.set_back.
    TIMES = ("_deadline", "_last_shake", "_lid_quiet_at", "_supply_since")

    def __init__(self, pack, registry, eye, settings, state, record, now, gain_steps=1, dice_set=None):
        super().__init__(pack, registry, eye, state, record, now, dice_set)
        self.settings = dict(SETTINGS)
        self.settings.update(settings)
        self.gain_steps = gain_steps
        self.tally = reading.Tally()
        self.locked = None
        self.result = None
        self.void_reason = None
        self.voids = 0
        self.shakes = {}
        # What keeps a fault from being cleared, and [code, detail] of faults that came while another was latched.
        self.standing = {}
        self.waiting = [list(row) for row in state.get("waiting", ())]
        self._late = []
        # No round is opened under a number that a host has stored already.
        self.floor = 0
        self.lid_open = False
        self.tamper_open = False
        self._reader = None
        self._deadline = None
        self._last_shake = None
        self._lid_quiet_at = now
        self._manual = None
        self._tokens = 0
        self._roll = 0

        if state["phase"] != IDLE:
            # A shake may have been under way a moment ago.
            self._last_shake = now
        if state["phase"] == LOCKED:
            self.locked = state["locked"]
            self.shakes = {self.shaker: self.locked["shakes"]}
            self.bets_open = self.locked["open"]
            self._put_bets(state["bets"])
            self.state = LOCKED
            if self.bets_open:
                # The lid may have been open while there was no power.
                self._owed = self._liability(self.bets)
                self._close_bets(self._happened)
        elif state["phase"] in (BETTING, CLOSED):
            self._put_bets(state["bets"])
            self._happened("void", self._void_data("power_loss", True))
            self._drop_round()
        self._owed = self._liability(self.bets)
        if self.fault is not None:
            self._after_fault = self.state
            self.state = FAULT
        known = state.get("dice")
        if known is not None and dice_set is not None and dice_set["hash"] != known:
            # The power failed after the set was written and before it was recorded, or the files were exchanged.
            self._record_dice(True)

    # -- what others see -------------------------------------------------------------------------------------------

    def view(self, now):
        """The live state as JSON. Nothing of a result is in it before the lid opened."""
        view = {
            "state": self.state,
            "round": self.round,
            "shaker": self.shaker,
            "bets_open": self.bets_open,
            "bets": self._bets_list(),
            "streak": self.streak.as_dict(),
            "liability": self._owed,
            # One that is not recorded yet is not told.
            "voids": self.voids - len([kind for kind, _data in self.unwritten if kind == "void"]),
            "shakes": self.shakes.get(self.shaker, 0),
            "lid_open": self.lid_open,
        }
        if self.state == VOID:
            view["void"] = self.void_reason
            view["call"] = self.call
        if self.fault is not None:
            view["fault"] = self.fault["code"]
            view["detail"] = self.fault["detail"]
        if self.beneath == TEST:
            view["test"] = True
        if self.service_due:
            view["service"] = dict(self.service_due)
        if self.state in (REVEALED, SETTLED) and self.result is not None:
            view["dice"] = list(self.result["dice"])
            view["eye"] = self.result["eye"]
        wait = self._lockout_left(now)
        if wait:
            view["lockout_ms"] = wait
        return view

    @property
    def call(self):
        """True when so many rolls were void that a supervisor must come."""
        return self.state == VOID and self.voids >= self.pack["void_limit"]

    def _note_door(self, data):
        """Record a door or the key. One that the journal refuses is lost; what follows from it is not."""
        try:
            self._record("door", data)
        except OSError:
            pass

    def take_effects(self):
        """The effects since the last call, in order."""
        taken = self.effects
        self.effects = []
        return taken

    # -- requests --------------------------------------------------------------------------------------------------

    def request(self, name, fields, now):
        """Do one request (a key of protocol.REQUESTS with checked fields). Returns the answer's fields.

        Raises Problem with a code of protocol.ERRORS when it is refused; then nothing has changed. Raises OSError when
        a record of it cannot be written; then nothing has changed but what was recorded before that.
        """
        if self.leaving:
            raise Problem("E_STATE", "the table is about to restart for maintenance")
        if self.fault is not None and name not in _IN_FAULT:
            raise Problem("E_FAULT", "the fault %s is latched; a supervisor must clear it" % self.fault["code"])
        if self.beneath == TEST and name not in _IN_TEST:
            raise Problem("E_TEST", "the table is in test mode; a technician must leave it first")
        answer = getattr(self, "_do_" + name)(fields, now)
        self.changed = True
        return answer

    def _do_open(self, fields, now):
        self._need(IDLE)
        self._check_shaker(fields["shaker"])
        number = max(self.round, self.floor) + 1
        opened = {"round": number, "shaker": fields["shaker"]}
        if fields["note"]:
            opened["note"] = fields["note"]
        self._record("opened", opened)
        self.round = number
        self.shaker = fields["shaker"]
        self.bets = {}
        if "bonus" in self.pack["wagers"]:
            stakes = self.streak.stakes()
            for position in stakes:
                self.bets[position] = {"bonus": stakes[position]}
        self._owed = self._liability(self.bets)
        self.bets_open = True
        self.result = None
        self.voids = 0
        self.shakes = {}
        self._manual = None
        self.state = BETTING
        return {"round": self.round, "bets": self._bets_list()}

    def _lockout_left(self, now):
        if self._last_shake is None:
            return 0
        return max(0, self._last_shake + self.settings["lockout_ms"] - now)

    def _do_shake(self, fields, now):
        if self.state == BETTING and self.pack["bets_close"] == "shake":
            raise Problem("E_BETS_OPEN", "bets are open; under this rule pack they close before the shake")
        self._need(*((BETTING, CLOSED, VOID) if self.pack["bets_close"] == "reveal" else (CLOSED, VOID)))
        jolts = fields["jolts"] or max(self.settings["jolts"], self.pack["jolts_min"])
        if jolts < self.pack["jolts_min"]:
            raise Problem("E_JOLTS", "%d jolts; allowed: %d or more" % (jolts, self.pack["jolts_min"]))
        if self.voids >= self.pack["void_limit"]:
            raise Problem("E_VOIDS")
        most = self.pack["shakes_max"]
        used = self.shakes.get(self.shaker, 0)
        if most is not None and used >= most:
            raise Problem("E_SHAKES", "this shaker has shaken %d times; allowed: %d in a round" % (used, most))
        if self.lid_open or self.tamper_open:
            raise Problem("E_LID", "the %s is open" % ("lid" if self.lid_open else "tamper contact"))
        if now < self._lid_quiet_at:
            raise Problem("E_LID", "the lid has moved just now; try again")
        if self.supply_low:
            raise Problem("E_SUPPLY")
        wait = self._lockout_left(now)
        if wait:
            raise Problem("E_LOCKOUT", "wait %d ms more" % wait)
        self.prepare()
        self.shakes[self.shaker] = used + 1
        self._manual = None
        self.state = SHAKING
        self._deadline = now + self.settings["shake_timeout_ms"]
        self._last_shake = now
        self._roll += 1
        self.effects.append((SHAKE, (self._roll, jolts)))
        return {"shakes": used + 1, "jolts": jolts}

    def _do_unlock(self, fields, now):
        if self.state in ROLLING:
            raise Problem("E_STATE", "the table is %s; the lid stays locked until the roll is over" % self.state)
        if self.beneath == LOCKED and self.bets_open:
            raise Problem("E_BETS_OPEN", "bets are open; close them, then reveal")
        if self.state == LOCKED and self.lid_open:
            self._reveal(now)
        self.effects.append((UNLOCK, None))
        return {"state": self.state}

    def _do_finish(self, fields, now):
        self._need(SETTLED)
        self.state = IDLE
        self.bets = {}
        self._owed = 0
        return {"round": self.round}

    def _do_void(self, fields, now):
        if self.state in (LOCKED, REVEALED, SETTLED):
            raise Problem("E_STATE", "the table is %s; a locked result is final" % self.state)
        self._need(BETTING, CLOSED, VOID)
        self._record("void", self._void_data("supervisor", True, fields["reason"]))
        self._drop_round()
        self.state = IDLE
        return {"round": self.round}

    def _do_resume(self, fields, now):
        self._need(VOID)
        self.voids = 0
        return {"round": self.round}

    def _do_manual(self, fields, now):
        self._need(CLOSED, VOID)
        if self.bets_open:
            raise Problem("E_BETS_OPEN", "bets are open; close them before a result is entered")
        self._tokens += 1
        self._manual = {"token": self._tokens, "dice": fields["dice"], "reason": fields["reason"]}
        return {"token": self._tokens, "dice": fields["dice"], "total": sum(fields["dice"]), "eye": self.eye}

    def _do_confirm(self, fields, now):
        self._need(CLOSED, VOID)
        entry = self._manual
        if entry is None or entry["token"] != fields["token"] or entry["dice"] != fields["dice"]:
            raise Problem("E_TOKEN")
        self._lock(entry["dice"], entry["reason"])
        if self.lid_open:
            self._reveal(now)
        return {"round": self.round, "dice": entry["dice"]}

    def _do_correct(self, fields, now):
        self._need(*BETWEEN)
        last = max(self.round, self.floor)
        if fields["round"] > last:
            raise Problem("E_ARGS", "correct: round is %d; the last that is over is %d" % (fields["round"], last))
        what = fields["what"]
        needed = _CORRECTS[what]
        for name in ("dice", "position", "wagers"):
            if (fields[name] is not None) != (name in needed):
                told = " and ".join(needed) or "nothing more"
                raise Problem("E_ARGS", "correct: %s is %s; %s needs %s" % (name, show(fields[name]), what, told))
        data = {"round": fields["round"], "what": what, "event": fields["event"], "why": fields["reason"]}
        if what == "bets":
            data["position"] = fields["position"]
            data["wagers"] = self._stakes(fields["position"], fields["wagers"])
        elif what == "dice":
            data["dice"] = fields["dice"]
        return {"round": fields["round"], "what": what, "event": self._record("correction", data)}

    def _do_clear(self, fields, now):
        if self.fault is None:
            raise Problem("E_STATE", "no fault is latched")
        code = self.fault["code"]
        if fields["code"] != code:
            raise Problem("E_ARGS", "code is %s; the latched fault is %s" % (show(fields["code"]), code))
        if self.standing.get(code):
            raise Problem("E_STANDS", "%s: %s" % (code, self.standing[code]))
        cleared = {"code": code, "set": False, "detail": self.fault["detail"]}
        if not self._record("fault", cleared):
            self.unwritten.append(("fault", cleared))
        self.fault = None
        self.state = self._after_fault
        if self.waiting:
            self._latch(*self.waiting.pop(0))
        for other in self.standing:
            if self.standing[other]:
                self.set_fault(other, self.standing[other], now)
        if self.state == LOCKED and self.lid_open and not self.bets_open:
            self._reveal(now)
        return {"state": self.state}

    # -- what the board reports ------------------------------------------------------------------------------------

    # `roll` is the number that came with the effect: an answer that comes late is never taken for the next roll.

    def shaken(self, roll, moved, now):
        """The shaker's profile of `roll` has ended; `moved` when the motor current proved motion in every jolt."""
        if self.state != SHAKING or roll != self._roll:
            return
        self._last_shake = now
        self.changed = True
        if not moved:
            self._void("no_shake")
            return
        self.state = SETTLING
        self._deadline = now + self.settings["settle_ms"]

    def tags(self, roll, tags, now):
        """One pass of the readers for `roll`: the set of UIDs seen, or None when a collision was not resolved."""
        if self.state != READING or roll != self._roll:
            return
        verdict = self._reader.add(tags)
        if verdict is None:
            self._read()
            return
        values, reason = verdict
        self.changed = True
        if reason is not None:
            missing = None
            if reason == reading.DIE_MISSING:
                self.tally.void(self._reader.absent)
                missing = [die + 1 for die in self._reader.absent]
            self._void(reason, missing)
            if reason == reading.FOREIGN_TAG:
                foreign = sorted([uid for uid in tags if uid not in self.registry])
                self.set_fault("TAMPER", "foreign tag " + ", ".join(foreign)[:60], now)
            return
        self._lock(list(values), None)

    def _read(self):
        self.effects.append((READ, (self._roll, self._reader.step)))

    def lid_moved(self, now):
        """An edge of the lid switch, however short: while the dice roll it voids the roll, later it closes the bets."""
        self._lid_quiet_at = now + LID_QUIET_MS
        if self.state in ROLLING:
            self._void("lid_opened")
        self._end_betting()

    def lid(self, is_open, now):
        """The lid switch changed (debounced)."""
        if is_open == self.lid_open:
            return
        self.changed = True
        self.lid_open = is_open
        self._lid_quiet_at = now
        if self.state in ROLLING:
            self._void("lid_opened")
        if is_open:
            self._end_betting()
        self._note_door({"which": "lid", "open": is_open})
        if is_open and self.state == LOCKED:
            self._reveal(now)

    def tamper_moved(self, now):
        """An edge of the tamper contact, however short: while the dice roll it voids the roll."""
        if self.state in ROLLING:
            self._void("tamper")

    def tamper(self, is_open, now):
        """The tamper contact changed (debounced)."""
        if is_open == self.tamper_open:
            return
        self.changed = True
        self.tamper_open = is_open
        if is_open and self.state in ROLLING:
            self._void("tamper")
        self._note_door({"which": "tamper", "open": is_open})
        self.standing["TAMPER"] = "the tamper contact is open" if is_open else None
        if is_open:
            self.set_fault("TAMPER", "tamper contact open", now)

    def service(self, is_held, now):
        """The service key was turned. While the dice roll nothing is written; it is recorded when the roll is over."""
        data = {"which": "service", "open": is_held}
        if self.state in ROLLING:
            self._late.append(data)
        else:
            self._note_door(data)

    def supply(self, is_low, now):
        """The 12 V supply fell below or rose above its limit."""
        if is_low == self.supply_low:
            return
        self.changed = True
        self.supply_low = is_low
        self._supply_since = now
        if is_low and self.state in ROLLING:
            self._void("brown_out")

    def button(self, now):
        """The dealer's button was pressed: the one next step that needs no choice. Refusals only sound."""
        try:
            if self.state == LOCKED:
                self.request("unlock", {}, now)
            elif self.state == SETTLED:
                self.request("finish", {}, now)
            else:
                self.request("shake", {"jolts": 0}, now)
        except Problem as problem:
            self.effects.append((REFUSED, problem.code))

    def set_fault(self, code, detail, now):
        """Latch a fault. A roll that is not locked is void; a locked one is kept."""
        if self.fault is not None:
            if code != self.fault["code"] and code not in [other for other, _detail in self.waiting]:
                self.waiting.append([code, detail])
                self._happened("fault", {"code": code, "set": True, "detail": detail})
            return
        self.changed = True
        self.stop_now()
        if self.state in ROLLING:
            self._void("fault")
        elif self.state == REVEALED:
            self.state = LOCKED
        self._end_selftest("a fault was latched: " + code)
        self._latch(code, detail)
        self._happened("fault", {"code": code, "set": True, "detail": detail})

    def _latch(self, code, detail):
        self._after_fault = self.state
        self.fault = {"code": code, "detail": detail}
        self.state = FAULT
        self.effects.append((STOP, None))

    def forget(self):
        """The host holds more of the open round than this table does: it is the host's to end."""
        if self.state in ROLLING:
            self.effects.append((STOP, None))
        self.locked = None
        self._drop_round()
        self._deadline = None
        self.unwritten = [row for row in self.unwritten if row[0] not in ("void", "closed")]
        if self.state == FAULT:
            self._after_fault = IDLE
        else:
            self.state = IDLE

    def tick(self, now):
        """Let time pass: settling ends, time-outs run out."""
        self._watch_supply(now)
        if self._deadline is None or now < self._deadline:
            return
        if self.state == SETTLING:
            self.changed = True
            self.state = READING
            self._reader = reading.Reader(self.registry, self.settings["read_tries"], self.gain_steps)
            self._deadline = now + self.settings["read_timeout_ms"]
            self._read()
        elif self.state == SHAKING:
            self._last_shake = now
            self._void("shake_timeout")
        elif self.state == READING:
            self._void("read_timeout")
        else:
            self._deadline = None

    # -- ends of a roll --------------------------------------------------------------------------------------------

    def _void(self, reason, missing=None):
        self.effects.append((STOP, None))
        self.stop_now()
        self.changed = True
        self.state = VOID
        self.void_reason = reason
        self.voids += 1
        self._deadline = None
        data = self._void_data(reason, False)
        if missing is not None:
            data["missing"] = missing
        self._happened("void", data)
        self._record_late()

    def _record_late(self):
        late = self._late
        self._late = []
        for data in late:
            self._note_door(data)

    def _void_data(self, reason, over, note=None):
        data = {"round": self.round, "reason": reason, "shakes": self.shakes.get(self.shaker, 0), "over": over}
        if note:
            data["note"] = note
        return data

    def _drop_round(self):
        """The round is over without a result."""
        self.bets = {}
        self.bets_open = False
        self._owed = 0
        self.changed = True

    def _lock(self, dice, manual):
        locked = {
            "round": self.round,
            "dice": dice,
            "eye": self.eye,
            "shaker": self.shaker,
            "shakes": self.shakes.get(self.shaker, 0),
            "bets": self._bets_list(),
            "bets_open": self.bets_open,
            "manual": manual,
        }
        record_id = self._record("locked", locked)
        self.locked = {
            "id": record_id,
            "dice": dice,
            "eye": self.eye,
            "manual": manual,
            "shakes": locked["shakes"],
            "open": self.bets_open,
        }
        self._deadline = None
        self.state = LOCKED
        self._record_late()

    def _reveal(self, now):
        self.state = REVEALED
        dice = self.locked["dice"]
        eye = self.locked["eye"]
        rows = wagers.settle_table(self.bets, dice, eye, self.shaker, self.streak.count, self.pack)
        triple = wagers.is_triple(dice)
        after = self._streak_copy()
        before = after.roll(triple, self._bonuses())
        result = {
            "round": self.round,
            "dice": dice,
            "eye": eye,
            "total": sum(dice),
            "shaker": self.shaker,
            "shakes": self.locked["shakes"],
            "manual": self.locked["manual"],
            "rows": rows,
            "net": wagers.net_of(rows),
            "before": before,
            "level": wagers.bonus_level(before, self.pack) if triple else 0,
            "streak": after.as_dict(),
        }
        self._record("settled", result)
        if not self.locked["manual"]:
            # Not before: `stats` must not tell the result while the lid is shut.
            self.tally.result(dice)
        self.result = result
        self.streak = after
        self.locked = None
        self.state = SETTLED
        self.changed = True
