"""The table as the controller's pins see it: dice, motor, lid, lock, switches, supply, ring and buzzer.

Pure: no input or output, no clock of its own. Time comes in as whole microseconds that never run backwards, so the same
object works behind MicroPython's unix port, behind an emulated RP2040 (in emulated time) and in a CPython test.

The dice are deterministic: what a shake brings depends only on the seed and on how many shakes have moved the dice,
never on how long anything took. What a person could see on a real table after a power cut (dice, lid, faulty parts)
is in `saved()`; what only electricity keeps (motor, button presses) is not.
"""

from boards.virtual import field, mfrc522, prng

# Motor and mechanics. The scale fits board.json: moving draws more than moving_min_ma, off less than off_max_ma.
MOVES_AT = 9830  # a drive of 15 % of full duty overcomes friction
SETTLE_MIN_US = 200000  # dice lie still this long after the motor stops at the earliest,
SETTLE_MORE_US = 200000  # and at most this much later
SHAKE_GAP_US = 2000000  # jolts closer together than this belong to one shake (if nobody looked at the dice between)
MOTOR_MIN_MV = 6000  # DRV8871 under-voltage lock-out is 6.1..6.4 V (TI SLVSCY9, 6.5)
INRUSH_MA = 1600  # what a motor that starts draws beside, half as much every INRUSH_US
INRUSH_US = 2500
STALL_MA = 2900  # of a jammed motor at full voltage, if nothing limited it
LIMIT_MA = 2100  # the driver's current limit (docs/hardware.md)
LOCK_PULSE_US = 20000  # the solenoid needs this long to pull the bolt

WEAK_DB = 33  # a face that leans over the reader is heard from this gain on; the one that lies on it at every gain
LAYOUTS = ("shared", "apart")

# Faults by name: what each needs, and with which values when nothing is said.
FAULTS = {
    "missing": {"die": 0},
    "two_faces": {"die": 0, "strong": False},
    "cocked": {"die": 0, "faces": 0},
    "stacked": {"die": 0},
    "foreign": {"uid": "04f0f0f0f0f0f0"},
    "dead_tag": {"die": 0, "face": 1},
    "collision": {},
    "dead_reader": {"reader": None, "value": 0x00},
    "weak_supply": {"reader": None},
    "unsettled": {},
    "motor_dead": {},
    "motor_jammed": {},
    "motor_stuck": {},
}

# Commands by name: the arguments each takes (a table for `help` and for refusing others by name).
COMMANDS = {
    "place": ("dice",),
    "next": ("dice",),
    "lid": ("to", "force", "bounce"),
    "button": ("to", "ms", "bounce"),
    "service": ("to",),
    "tamper": ("to",),
    "supply": ("mv",),
    "fault": ("name", "rolls", "die", "face", "faces", "uid", "strong", "reader", "value"),
    "clear": ("name",),
    "seed": ("seed",),
    "settle": ("ms",),
    "layout": ("to",),
}


class Refused(ValueError):
    """A command that the table cannot do; the text names what is allowed."""


def default_tags():
    """The registry of the model's own dice: `tags[die][face - 1]`, 7-byte UIDs as hex.

    NTAG21x UIDs begin with 04, the manufacturer's code (NXP). Those of one die share a prefix on purpose: batches do,
    and a reader's tree walk must tell them apart.
    """
    return [
        ["04d%d5e%02x0000%02x" % (die + 1, 0xA0 + die, 0x10 * face + die) for face in range(1, 7)] for die in range(3)
    ]


def adjacent(face):
    """A face that shares an edge with `face`: neither it nor the opposite one."""
    other = face % 6 + 1
    return other if other != 7 - face else other % 6 + 1


def _whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _number(what, value, low, high):
    if not _whole(value) or not low <= value <= high:
        raise Refused("%s must be a whole number from %d to %d, not %r" % (what, low, high, value))
    return value


def _one_of(what, value, allowed):
    if value not in allowed:
        raise Refused("%s must be %s, not %r" % (what, " or ".join(allowed), value))
    return value


def _three_dice(value):
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise Refused("dice must be three whole numbers from 1 to 6, not %r" % (value,))
    for pips in value:
        if not _whole(pips) or not 1 <= pips <= 6:
            raise Refused("dice must be three whole numbers from 1 to 6, not %r" % (value,))
    return list(value)


class Model:
    """One table. Every public method takes the time first; `advance` may be called at any time in between."""

    def __init__(self, seed=1, saved=None, tags=None, now=0):
        self.tags = tags or default_tags()
        self._uids = [[bytes.fromhex(uid) for uid in die] for die in self.tags]
        self._die_tags = [[field.Tag(uid) for uid in die] for die in self._uids]
        self._strangers = {}
        self.layout = LAYOUTS[0]
        self._rocked = False
        self.seed = seed
        self.shakes = 0
        self.attempts = 0
        self.dice = [1, 2, 3]
        self.queue = []
        self.faults = []
        self.lid_open = False
        self.released = False
        self.tamper_open = False
        self.service_on = False
        self.supply_mv = 12000
        self.settle_ms = None
        self.button_down = False
        self._button_until = None
        self._in1 = self._in2 = 0
        self._driven = False  # the firmware (or a fault) drives the motor hard enough to turn it
        self._turning = False
        self._stopped_at = self._started_at = now
        self._rest_at = None
        self._fresh = True  # the next movement is a new shake
        self._reads = 0
        self._lock = False
        self._lock_since = 0
        self.lock_pulses = 0
        self.lock_longest_us = 0
        self.ring = b""
        self.buzzer = (0, 0)
        self.changed = 0  # counts changes of `saved()`
        if saved:
            self._restore(saved, now)

    # --- what survives a power cut -------------------------------------------------------------------------------

    def saved(self):
        """Everything that lies on the table, as JSON-able data."""
        return {
            "seed": self.seed,
            "shakes": self.shakes,
            "attempts": self.attempts,
            "dice": self.dice,
            "queue": self.queue,
            "faults": self.faults,
            "lid_open": self.lid_open,
            "released": self.released,
            "tamper_open": self.tamper_open,
            "service_on": self.service_on,
            "supply_mv": self.supply_mv,
            "settle_ms": self.settle_ms,
            "layout": self.layout,
            "moving": self._turning,
        }

    def _restore(self, saved, now):
        for key in saved:
            if key != "moving":
                setattr(self, key, saved[key])
        if saved.get("moving"):  # the motor coasts out, the dice come to rest as they would have
            self._stop_turning(now)

    # --- the motor and the dice ----------------------------------------------------------------------------------

    def drive(self, now, in1, in2):
        """The two driver inputs changed: duty 0..65535 each. 0/0 coasts, both high brakes (DRV8871, table 1)."""
        self.advance(now)
        self._in1, self._in2 = in1, in2
        self._motor(now)

    def _duty(self):
        duty = abs(self._in1 - self._in2)
        return max(duty, 40000) if self._has("motor_stuck") else duty

    def _motor(self, now):
        # The motor's supply runs through the lid switch, so an open lid cuts it whatever the pins say.
        powered = not self.lid_open and self.supply_mv >= MOTOR_MIN_MV
        driven = powered and self._duty() >= MOVES_AT
        if driven and not self._driven:
            if now - self._stopped_at >= SHAKE_GAP_US:
                self._fresh = True
            if self._fresh:
                self._new_attempt()
                driven = self._duty() >= MOVES_AT  # a stuck motor may have come free with it
        elif self._driven and not driven:
            self._stopped_at = now
        self._driven = driven
        turning = driven and not self._has("motor_dead") and not self._has("motor_jammed")
        if turning and not self._turning:
            self._turning = True
            self._started_at = now
            self._rest_at = None
            if self._fresh:
                self._new_shake()
            self.changed += 1
        elif self._turning and not turning:
            self._stop_turning(now)
            self.changed += 1
        if driven:
            self._fresh = False

    def _new_attempt(self):
        """A shake begins, whether or not it moves the dice: faults that have lasted their rolls end."""
        self.attempts += 1
        kept = []
        for fault in self.faults:
            if fault["rolls"] is None:
                kept.append(fault)
            elif fault["rolls"] > 0:
                fault["rolls"] -= 1
                kept.append(fault)
        self.faults = kept
        self.changed += 1

    def _new_shake(self):
        """The dice begin to tumble; where they will come to rest is decided now, by the count of shakes alone."""
        self.shakes += 1
        self.dice = self.queue.pop(0) if self.queue else prng.dice(self.seed, self.shakes)

    def _stop_turning(self, now):
        self._turning = False
        if self.settle_ms is not None:
            self._rest_at = now + 1000 * self.settle_ms
            return
        more = 10 * prng.Stream(self.seed, self.shakes, "settle").below(SETTLE_MORE_US // 10)
        self._rest_at = now + SETTLE_MIN_US + more

    def moving(self, now):
        """Whether any die still moves."""
        return self._turning or (self._rest_at is not None and now < self._rest_at)

    def motor_ma(self, now):
        """The motor's current in mA: more while it starts, its stall current when jammed, none with a broken wire."""
        noise = 4 + now // 97 % 5
        duty = self._duty()
        if self.lid_open or self.supply_mv < MOTOR_MIN_MV or self._has("motor_dead"):
            return noise
        if self._turning:
            inrush = INRUSH_MA >> min(15, (now - self._started_at) // INRUSH_US)
            return 350 + (800 + inrush) * duty // 65535 + now // 1000 % 7 * 10
        if duty:  # it is a resistor, but the driver cuts off at its limit
            return noise + min(STALL_MA * duty // 65535, LIMIT_MA)
        return noise

    # --- the field: boards.virtual.field.Field's world -----------------------------------------------------------

    def tags_at(self, now):
        """What lies in the readers' fields: (tag, gains) as field.Field wants it. A die shows 7 - the face below.

        In the layout "shared" reader 1 covers all three dice and readers 2 and 3 those that lie nearest to them; in
        "apart" each die lies over its own reader.
        """
        if self._has("collision"):
            jammer = self._stranger("jammer")
            present = [(jammer, (field.LOUD_DB,) * field.READERS)]
        else:
            present = []
        moving = self.moving(now)
        for die in range(3):
            for face, needed in self._tumbling(now, die) if moving else self._lying(die):
                if not self._has("dead_tag", die=die, face=face):
                    present.append((self._die_tags[die][face - 1], self._gains(die, needed)))
        foreign = self._has("foreign")
        if foreign:
            present.append((self._stranger(foreign["uid"]), self._gains(0, field.LOUD_DB)))
        return present

    def _gains(self, die, needed):
        gains = [None] * field.READERS
        gains[die] = needed
        if self.layout == "shared":
            gains[0] = needed
        return gains

    def _stranger(self, name):
        if name not in self._strangers:
            tag = field.Jammer(self.seed) if name == "jammer" else field.Tag(bytes.fromhex(name))
            self._strangers[name] = tag
        return self._strangers[name]

    def _tumbling(self, now, die):
        """Tags come and go while the dice tumble, so that no two passes see the same for long."""
        chance = prng.Stream(self.seed, (now + 4000 * die) // 15000, "tumble %d" % die).below(12)
        return [(chance + 1, field.LOUD_DB)] if chance < 6 else []

    def _lying(self, die):
        """The faces of a die at rest that a reader may hear: (face, gain from which on)."""
        face = 7 - self.dice[die]
        if self._has("missing", die=die) or self._has("stacked", die=die):
            return []  # the upper one of two stacked dice is out of the field
        cocked = self._has("cocked", die=die)
        leaning = self._has("two_faces", die=die)
        if cocked and cocked["faces"] == 0:
            return []
        if cocked or leaning:
            weak = not cocked and not leaning["strong"]
            return [(face, field.LOUD_DB), (adjacent(face), WEAK_DB if weak else field.LOUD_DB)]
        if die == 0 and self._rocked and self._has("unsettled"):
            face = adjacent(face)
        return [(face, field.LOUD_DB)]

    def asked(self, now, woken):
        """A reader sends a request. One that has been read and is woken again rocks over, if it is unsettled."""
        self._reads += 1
        if not self.moving(now):
            self._fresh = True  # somebody looks: whatever moves the dice now is another shake
        if woken:
            self._rock()

    def left(self, now):
        """A reader's field goes off."""
        self._rock()

    def _rock(self):
        if self._has("unsettled"):
            for tag in self._die_tags[0]:
                if tag.state in (field.ACTIVE, field.HALTED):
                    self._rocked = not self._rocked
                    return

    def health(self, number):
        """What is wrong with reader `number` (from 0), as mfrc522.Mfrc522 wants it."""
        for fault in self.faults:
            if fault["name"] in ("dead_reader", "weak_supply") and fault["reader"] in (None, number + 1):
                return fault["value"] if fault["name"] == "dead_reader" else mfrc522.FLICKERS
        return None

    # --- the other pins ------------------------------------------------------------------------------------------

    def advance(self, now):
        """Do what is due by now: a button that was pressed for a time comes up again."""
        if self._button_until is not None and now >= self._button_until:
            self._button_until = None
            self.button_down = False
        if self._lock and not self.released and now - self._lock_since >= LOCK_PULSE_US:
            self._release()

    def due(self):
        """When `advance` has something to do next, or None."""
        times = []
        if self._button_until is not None:
            times.append(self._button_until)
        if self._lock and not self.released:
            times.append(self._lock_since + LOCK_PULSE_US)
        return min(times) if times else None

    def switch_closed(self, name):
        """Whether the named switch pulls its pin low: lid shut, tamper ok, button pressed, service key turned."""
        if name == "lid":
            return not self.lid_open
        if name == "tamper":
            return not self.tamper_open
        if name == "button":
            return self.button_down
        return self.service_on

    def lock(self, now, level):
        """The solenoid's pin: a pulse pulls the bolt; it falls in again when the lid is shut the next time."""
        self.advance(now)
        if level and not self._lock:
            self._lock_since = now
            self.lock_pulses += 1
        elif self._lock and not level:
            held = now - self._lock_since
            self.lock_longest_us = max(self.lock_longest_us, held)
            if held >= LOCK_PULSE_US:
                self._release()
        self._lock = bool(level)

    def _release(self):
        if not self.lid_open and not self.released:
            self.released = True
            self.changed += 1

    def supply(self, now):
        """The 12 V supply in millivolts; it sags a little while the motor turns."""
        return max(0, self.supply_mv - (200 if self._turning else 0) - now // 113 % 20)

    # --- people and faults ---------------------------------------------------------------------------------------

    def command(self, now, name, args):
        """Do one thing that a person or a test does to the table; a dictionary of what came of it, or Refused."""
        if name not in COMMANDS:
            raise Refused("%r is no command; allowed: %s" % (name, ", ".join(sorted(COMMANDS))))
        for key in args:
            if key not in COMMANDS[name]:
                raise Refused("%s takes no %r; allowed: %s" % (name, key, ", ".join(COMMANDS[name])))
        self.advance(now)
        result = getattr(self, "_do_" + name)(now, args)
        self.changed += 1
        return result or {}

    def _do_place(self, now, args):
        dice = _three_dice(args.get("dice"))
        if self.moving(now):
            raise Refused("the dice are moving; place them when they are at rest, or queue them with next")
        self.dice = dice
        self._fresh = True

    def _do_next(self, now, args):
        dice = args.get("dice")
        if isinstance(dice, (list, tuple)) and dice and isinstance(dice[0], (list, tuple)):
            self.queue.extend([_three_dice(one) for one in dice])
        else:
            self.queue.append(_three_dice(dice))
        return {"queued": len(self.queue)}

    def _do_lid(self, now, args):
        to = _one_of("to", args.get("to"), ("open", "shut"))
        if to == "open" and not self.lid_open:
            if not self.released and not args.get("force"):
                raise Refused("the lid is latched; allowed: after a pulse of the lock, or with force")
            self.lid_open = True
        elif to == "shut" and self.lid_open:
            self.lid_open = False
            self.released = False
        self._fresh = True
        self._motor(now)
        self._fresh = self._fresh or not self._driven

    def _do_button(self, now, args):
        to = _one_of("to", args.get("to", "press"), ("press", "hold", "release"))
        ms = _number("ms", args.get("ms", 100), 1, 600000)
        self.button_down = to != "release"
        self._button_until = now + 1000 * ms if to == "press" else None

    def _do_service(self, now, args):
        self.service_on = _one_of("to", args.get("to"), ("on", "off")) == "on"

    def _do_tamper(self, now, args):
        self.tamper_open = _one_of("to", args.get("to"), ("open", "ok")) == "open"

    def _do_supply(self, now, args):
        self.supply_mv = _number("mv", args.get("mv"), 0, 19800)
        self._motor(now)

    def _do_seed(self, now, args):
        self.seed = _number("seed", args.get("seed"), 0, 0x3FFFFFFF)

    def _do_settle(self, now, args):
        """Lighter dice: they lie still so long after the motor stops (a short wait makes many rounds quick)."""
        self.settle_ms = _number("ms", args.get("ms"), 0, 10000)

    def _do_layout(self, now, args):
        self.layout = _one_of("to", args.get("to"), LAYOUTS)

    def _do_fault(self, now, args):
        name = args.get("name")
        if name not in FAULTS:
            raise Refused("%r is no fault; allowed: %s" % (name, ", ".join(sorted(FAULTS))))
        fault = {"name": name, "rolls": args.get("rolls", 1)}
        if fault["rolls"] is not None:  # None: until cleared
            _number("rolls", fault["rolls"], 0, 1000000)
        for key in args:
            if key not in ("name", "rolls") and key not in FAULTS[name]:
                allowed = ", ".join(["rolls"] + sorted(FAULTS[name]))
                raise Refused("the fault %s takes no %s; allowed: %s" % (name, key, allowed))
        for key in FAULTS[name]:
            fault[key] = args.get(key, FAULTS[name][key])
        if "die" in fault:
            _number("die", fault["die"], 0, 2)
        if "face" in fault:
            _number("face", fault["face"], 1, 6)
        if "faces" in fault and fault["faces"] not in (0, 2):
            raise Refused("faces must be 0 (no tag answers) or 2 (two faces answer), not %r" % (fault["faces"],))
        if "strong" in fault and not isinstance(fault["strong"], bool):
            raise Refused("strong must be true or false, not %r" % (fault["strong"],))
        if fault.get("reader") is not None:
            _number("reader", fault["reader"], 1, field.READERS)
        if "value" in fault and fault["value"] not in (0x00, 0xFF):
            raise Refused("value must be 0 or 255, what a dead reader's registers read as, not %r" % (fault["value"],))
        if "uid" in fault:
            self._check_uid(fault["uid"])
        self.faults.append(fault)
        self._motor(now)

    def _check_uid(self, uid):
        try:
            length = len(bytes.fromhex(uid))
        except (TypeError, ValueError):
            length = 0
        if length not in (4, 7):
            raise Refused("uid must be 4 or 7 bytes as hex, not %r" % (uid,))

    def _do_clear(self, now, args):
        name = args.get("name")
        if name is not None and name not in FAULTS:
            raise Refused("%r is no fault; allowed: %s" % (name, ", ".join(sorted(FAULTS))))
        before = len(self.faults)
        self.faults = [fault for fault in self.faults if name is not None and fault["name"] != name]
        self._motor(now)
        return {"cleared": before - len(self.faults)}

    def _has(self, name, **where):
        """The first fault of that name (with those values), or None."""
        for fault in self.faults:
            if fault["name"] == name:
                for key in where:
                    if fault[key] != where[key]:
                        break
                else:
                    return fault
        return None

    def state(self, now):
        """Everything, for a person or a test to look at."""
        self.advance(now)
        state = self.saved()
        del state["moving"]
        state["at_rest"] = not self.moving(now)
        state["turning"] = self._turning
        state["motor"] = [self._in1, self._in2]
        state["motor_ma"] = self.motor_ma(now)
        state["button_down"] = self.button_down
        state["lock_pulses"] = self.lock_pulses
        state["lock_longest_us"] = self.lock_longest_us
        grb = self.ring  # WS2812 takes green, red, blue (data sheet, "composition of 24bit data")
        state["ring"] = [[grb[i + 1], grb[i], grb[i + 2]] for i in range(0, len(grb) - 2, 3)]
        state["buzzer"] = {"freq": self.buzzer[0], "duty": self.buzzer[1]}
        state["reads"] = self._reads
        return state
