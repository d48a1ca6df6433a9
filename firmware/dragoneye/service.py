"""What a technician does at the table between rounds: test mode, self-test, sensors, dice sets, faults for the service.

Part of the round's table. Nothing here can become a result, as no roll is under way in TEST.
"""

from dragoneye.betting import Betting
from dragoneye.protocol import BETWEEN, IDLE, ROLLING, TEST, Problem
from dragoneye.rules import reading
from dragoneye.rules.streak import Streak

# Of what `take_effects` gives the board.
STOP = "stop"
MAINTENANCE = "maintenance"
SELFTEST = "selftest"
SURVEY = "survey"

# The supply must be low, or good again, for so long before the fault SUPPLY is set or cleared.
SUPPLY_STANDS_MS = 2000


def _nothing():
    pass


def _no_place(dice_set):
    raise Problem("E_STATE", "this table has no place for a dice set")


class Service(Betting):
    """The service of one table; arguments as for `round.Table`, of which this is the second part."""

    def __init__(self, pack, registry, eye, state, record, now, dice_set):
        super().__init__(pack, state, record)
        self.registry = registry
        self.eye = eye
        self.dice_set = dice_set
        self.effects = []
        # Faults of the severity SERVICE: code -> detail.
        self.service_due = dict(state.get("service", {}))
        # The self-test: None, or {"running": flag, "items": rows, "why": why it ended early or None}.
        self.selftest = None
        # Writes another dice set to the flash before it is recorded.
        self.save_dice = _no_place
        # Called before a record is written while the motor may run: the board stops it at once.
        self.stop_now = _nothing
        # Called before anything moves: the result shall be written down quickly.
        self.prepare = _nothing
        # True once a restart for maintenance is certain: nothing may begin any more.
        self.leaving = False
        self.supply_low = False
        self._supply_since = now
        self._after_test = IDLE

    @property
    def may_stop(self):
        """True while no round is open."""
        return self.beneath in BETWEEN or self.beneath == TEST

    def _do_maintenance(self, fields, now):
        if not self.may_stop:
            raise Problem("E_STATE", "the table is %s; allowed in %s" % (self.beneath, ", ".join(BETWEEN)))
        self.leaving = True
        self.effects.append((MAINTENANCE, None))
        return {"round": self.round}

    def _do_test(self, fields, now):
        if fields["on"] == (self.beneath == TEST):
            return {"on": fields["on"], "state": self.state}
        if fields["on"]:
            if self.beneath not in BETWEEN:
                raise Problem("E_STATE", "the table is %s; allowed in %s" % (self.beneath, ", ".join(BETWEEN)))
            self._record("test", {"set": True})
            self._after_test = self.beneath
            self.selftest = None
            self._put_beneath(TEST)
        else:
            # The self-test's motor; the test itself goes on when this cannot be recorded.
            self.stop_now()
            self._record("test", {"set": False})
            self._end_selftest("test mode was left")
            self._put_beneath(self._after_test)
        return {"on": fields["on"], "state": self.state}

    def _put_beneath(self, state):
        if self.fault is None:
            self.state = state
        else:
            self._after_fault = state

    def _need_test(self):
        if self.beneath != TEST:
            raise Problem("E_STATE", "the table is %s; allowed in test mode" % self.state)

    def _do_selftest(self, fields, now):
        self._need_test()
        if fields["start"] and not self._testing:
            self.selftest = {"running": True, "items": [], "why": None}
            self.effects.append((SELFTEST, None))
        return dict(self.selftest or {"running": False, "items": [], "why": "none was started"})

    @property
    def _testing(self):
        return self.selftest is not None and self.selftest["running"]

    def _end_selftest(self, why):
        """Stop a self-test that runs; its motor with it."""
        if self._testing:
            self.selftest = {"running": False, "items": [], "why": why}
            self.stop_now()
            self.effects.append((STOP, None))

    def tested(self, items, now):
        """The self-test has ended; `items` are rows [item, ok, value, allowed]."""
        if not self._testing:
            return
        self.selftest = {"running": False, "items": items, "why": None}
        wrong = [row[0] for row in items if not row[1]]
        self.set_service("SELFTEST", ", ".join(wrong)[:80] if wrong else None, now)

    def _do_sensors(self, fields, now):
        if self.beneath == TEST:
            self.effects.append((SURVEY, fields["step"]))
        return {"state": self.state, "test": self.beneath == TEST}

    def _do_dice(self, fields, now):
        self._need_test()
        tags = fields["tags"].upper().split(" ")
        dice = [tags[0:6], tags[6:12], tags[12:]]
        try:
            for tag in tags:
                reading.check_uid(tag)
            registry = reading.registry_of(dice)
        except ValueError as error:
            raise Problem("E_ARGS", "dice: tags: %s" % error)
        dice_set = self.save_dice(
            {"serial": fields["serial"], "issued": fields["issued"], "eye": fields["eye"] - 1, "dice": dice}
        )
        same = self.dice_set is not None and self.dice_set["hash"] == dice_set["hash"]
        self.registry = registry
        self.eye = fields["eye"] - 1
        self.dice_set = dice_set
        self._record_dice(False, same)
        return dict(dice_set, eye=fields["eye"], streak=self.streak.as_dict())

    def _record_dice(self, found, same=False):
        """Record the dice set, which is in the flash by now; other tags than before are other dice, and a streak ends
        with them.

        The streak first: when the power fails in between, the start finds dice that are not recorded yet.
        """
        if self.streak.running and not same:
            self._change_streak(Streak(), "dice changed", record=self._happened)
        self._happened("dice", dict(self.dice_set, eye=self.eye, found=found))

    def set_service(self, code, detail, now):
        """Set a fault of the severity SERVICE, or clear it (`detail` None). The same again does nothing."""
        before = self.service_due.get(code)
        if before == detail:
            return
        if before is not None:
            self._record_service({"code": code, "set": False, "detail": before})
            del self.service_due[code]
        if detail is not None:
            self._record_service({"code": code, "set": True, "detail": detail})
            self.service_due[code] = detail
        self.changed = True

    def _record_service(self, data):
        """Now, or when the journal can be written again. What was set and cleared meanwhile leaves no trace."""
        undone = ("fault", dict(data, set=not data["set"]))
        if undone in self.unwritten:
            self.unwritten.remove(undone)
        else:
            self._happened("fault", data)

    def _watch_supply(self, now):
        # Not while the dice roll: a record is a flash write.
        stands = now - self._supply_since >= SUPPLY_STANDS_MS and self.state not in ROLLING
        if stands and self.supply_low != ("SUPPLY" in self.service_due):
            self.set_service("SUPPLY", "the 12 V supply stays low" if self.supply_low else None, now)
