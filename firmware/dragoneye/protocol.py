"""THE table of messages, errors, events, states and reasons, and the frame. Host and device import this same file.

A frame is one line of printable ASCII: `<seq> <JSON object> <CRC-32 of what stands before, 8 hex digits>\\n`. A line
that is not a frame is noise: it is counted and passed over. Bytes outside 0x20..0x7e never occur in a frame, because
one raw 0x03 interrupts MicroPython and empties its input.

What a frame's object holds:
    host to device    {"q": request, fields...}         answered once by {"re": seq of the request, ...}
                      {"ack": event id}                 all events up to this one are stored; not answered
    device to host    {"re": seq, "ok": {...}} or {"re": seq, "err": code, "why": words or "", "state": state}
                      {"ev": record, "h": chain hash, "m": tag}   sent again until acknowledged, in order; "m" where
                                                        the table has a journal key: see journal.py
                      {"st": {...}}                     the live state; may be lost, the next one corrects it
                      {"hello": {...}}                  sent unasked while no host has said hello

A host starts a session with `hello`; its sequence numbers rise by one from there. A repeated number gets the same
answer again and no second effect; a number out of order is refused with E_HELLO, and the host says hello anew.

At a table with keys each request of a role is signed (since 1.3), by the last member of its object:
    "a":"<role>:<counter>:<mac>"                        see below

What `hello` answers has, for that, the table's `uid`, the `nonce` of this boot, the last `counter` that was accepted,
which rises over the whole boot whoever signs, `key_id`, which names the table's set of keys or is null, and
`unprovisioned`: true for a table that never got keys. There nothing is signed and everybody may ask for everything;
this is for a trial. A request that isn't signed by somebody who may ask for it is refused with E_AUTH, which says why;
after several wrong signatures in a row none is read for a time.

`hello` may be signed by the dealer's or the supervisor's key: by the host that keeps the record. One that is not signed
starts a session all the same, but it is refused with E_AUTH where it tells of more than the table has, and what its
host acknowledges is not removed.
"""

import binascii
import json

from dragoneye.text import dumps, is_text, is_whole, show

MAJOR = 1
MINOR = 3

# A request must fit the 512-byte input ring of MicroPython's USB serial; what the device sends may be longer.
REQUEST_MAX = 500
LINE_MAX = 8000
SEQ_MAX = 0x1FFFFFFF
# A host may claim this much more history than the table has; what lies above is for the table to use up.
HISTORY_MAX = SEQ_MAX // 2

ANYONE = "anyone"
DEALER = "dealer"
SUPERVISOR = "supervisor"
TECHNICIAN = "technician"

IDLE = "IDLE"
BETTING = "BETTING"
CLOSED = "CLOSED"
SHAKING = "SHAKING"
SETTLING = "SETTLING"
READING = "READING"
LOCKED = "LOCKED"
REVEALED = "REVEALED"
SETTLED = "SETTLED"
VOID = "VOID"
FAULT = "FAULT"
TEST = "TEST"
# A roll is under way, and none is.
ROLLING = (SHAKING, SETTLING, READING)
BETWEEN = (IDLE, SETTLED)

# name -> (role, since, fields); what it does stands in host_tools/codes.py. A field is (name, kind, low or words, high,
# default); a default of REQUIRED means that it must be given. Kinds: int (low..high), word (one of), text (0..high
# printable characters), flag, dice (three values 1..6), wagers ({wager: cents}, 0 takes it off), streak (see
# rules.streak.Streak.as_dict).
REQUIRED = "required"
_POSITION = ("position", "int", 1, 7, REQUIRED)
_SHAKER = ("shaker", "int", 0, 7, REQUIRED)
_REASON = ("reason", "text", 3, 80, REQUIRED)

REQUESTS = {
    "hello": (
        ANYONE,
        "1.0",
        (
            ("major", "int", 0, 999, REQUIRED),
            ("minor", "int", 0, 999, REQUIRED),
            ("last_event", "int", 0, SEQ_MAX, 0),
            ("last_round", "int", 0, SEQ_MAX, 0),
            ("last_over", "int", 0, SEQ_MAX, 0),
            ("streak", "streak", 0, 0, None),
            ("last_hash", "text", 0, 32, ""),
        ),
    ),
    "status": (ANYONE, "1.0", ()),
    "stats": (ANYONE, "1.0", ()),
    "open": (
        DEALER,
        "1.0",
        (_SHAKER, ("note", "text", 0, 80, "")),
    ),
    "shaker": (DEALER, "1.0", (_SHAKER,)),
    "bets": (
        DEALER,
        "1.0",
        (_POSITION, ("wagers", "wagers", 0, 0, REQUIRED)),
    ),
    "leave": (
        DEALER,
        "1.0",
        (_POSITION,),
    ),
    "close": (DEALER, "1.0", ()),
    "shake": (DEALER, "1.0", (("jolts", "int", 0, 12, 0),)),
    "unlock": (DEALER, "1.0", ()),
    "finish": (DEALER, "1.0", ()),
    "void": (SUPERVISOR, "1.0", (_REASON,)),
    "resume": (SUPERVISOR, "1.0", ()),
    "manual": (
        SUPERVISOR,
        "1.0",
        (("dice", "dice", 0, 0, REQUIRED), _REASON),
    ),
    "confirm": (
        SUPERVISOR,
        "1.0",
        (("token", "int", 1, SEQ_MAX, REQUIRED), ("dice", "dice", 0, 0, REQUIRED)),
    ),
    "correct": (
        SUPERVISOR,
        "1.3",
        (
            ("round", "int", 1, SEQ_MAX, REQUIRED),
            ("what", "word", ("void", "dice", "bets"), 0, REQUIRED),
            ("event", "int", 1, SEQ_MAX, REQUIRED),
            _REASON,
            ("dice", "dice", 0, 0, None),
            ("position", "int", 1, 7, None),
            ("wagers", "wagers", 0, 0, None),
        ),
    ),
    "clear": (SUPERVISOR, "1.0", (("code", "text", 1, 20, REQUIRED),)),
    "changed": (
        SUPERVISOR,
        "1.0",
        (("unit", "word", ("dice", "shaker"), 0, REQUIRED), ("keep", "flag", 0, 0, False)),
    ),
    "end": (SUPERVISOR, "1.0", ()),
    "test": (
        TECHNICIAN,
        "1.1",
        (("on", "flag", 0, 0, REQUIRED),),
    ),
    "selftest": (
        TECHNICIAN,
        "1.1",
        (("start", "flag", 0, 0, False),),
    ),
    "sensors": (
        TECHNICIAN,
        "1.1",
        (("step", "int", 0, 7, 0),),
    ),
    "dice": (
        TECHNICIAN,
        "1.1",
        (
            ("serial", "text", 1, 24, REQUIRED),
            ("issued", "text", 20, 20, REQUIRED),
            ("eye", "int", 1, 3, REQUIRED),
            ("tags", "text", 161, 269, REQUIRED),
        ),
    ),
    "verify": (
        TECHNICIAN,
        "1.2",
        (("seed", "text", 0, 64, ""), ("first", "int", 0, 999, 0)),
    ),
    "maintenance": (
        TECHNICIAN,
        "1.1",
        (),
    ),
}

# A fault latches: the table stops in FAULT until a supervisor's `clear`, which is refused while the cause stands. With
# these the table goes on instead, and they are cleared by themselves when the cause is gone.
SERVICE_FAULTS = ("SUPPLY", "SELFTEST")


class Problem(Exception):
    """A request that is refused: `why` says what was wrong and what is allowed, or is empty: the code says it.

    The codes and their words are in host_tools/codes.py.
    """

    def __init__(self, code, why=""):
        super().__init__(code, why)
        self.code = code
        self.why = why


class Noise(ValueError):
    """A line that is not a frame; the text says why not."""


def body_of(seq, text):
    """What of a frame its CRC is over, as bytes: of an object that is JSON in printable ASCII already."""
    return ("%d %s" % (seq, text)).encode()


def seal(body):
    """The frame of a `body`, as bytes with its newline."""
    return body + b" %08x\n" % (binascii.crc32(body) & 0xFFFFFFFF)


def encode_text(seq, text):
    """The frame of an object that is JSON in printable ASCII already, as bytes with its newline."""
    return seal(body_of(seq, text))


def encode(seq, value):
    """The frame of `value` (a dict) under sequence number `seq`, as bytes with its newline."""
    return encode_text(seq, dumps(value))


def decode(line):
    """(seq, object) of a frame given as bytes, with or without its line end. Raises Noise."""
    line = line.rstrip(b"\r\n")
    if len(line) > LINE_MAX:
        raise Noise("longer than %d bytes" % LINE_MAX)
    if len(line) < 13 or line[-9:-8] != b" ":
        raise Noise("no CRC at the end")
    if min(line) < 0x20 or max(line) > 0x7E:
        raise Noise("bytes that never occur in a frame")
    body = line[:-9]
    if line[-8:] != b"%08x" % (binascii.crc32(body) & 0xFFFFFFFF):
        raise Noise("the CRC differs")
    try:
        seq, text = body.decode().split(" ", 1)
        number = int(seq)
        value = json.loads(text)
    except (ValueError, RuntimeError):
        # RuntimeError: nested deeper than the stack.
        raise Noise("not a number and JSON")
    if not isinstance(value, dict) or not 0 <= number <= SEQ_MAX:
        raise Noise("not an object")
    return number, value


def _streak_ok(value):
    if value is None:
        return True
    if not isinstance(value, dict) or set(value) != {"count", "parts", "gone"} or not is_whole(value["count"], 0, 9999):
        return False
    parts, gone = value["parts"], value["gone"]
    if not isinstance(parts, list) or not isinstance(gone, list):
        return False
    for part in parts:
        if not isinstance(part, list) or len(part) != 2 or not is_whole(part[1], 1, SEQ_MAX):
            return False
    places = [part[0] for part in parts] + gone
    for place in places:
        if not is_whole(place, 1, 7) or places.count(place) > 1:
            return False
    return value["count"] > 0 or not places


def _field_ok(value, kind, low, high):
    if kind == "int":
        return is_whole(value, low, high)
    if kind == "flag":
        return isinstance(value, bool)
    if kind == "word":
        return isinstance(value, str) and value in low
    if kind == "text":
        return isinstance(value, str) and low <= len(value) <= high and is_text(value)
    if kind == "dice":
        return isinstance(value, list) and len(value) == 3 and all(is_whole(v, 1, 6) for v in value)
    if kind == "streak":
        return _streak_ok(value)
    return isinstance(value, dict) and all(isinstance(k, str) and is_whole(value[k], 0, SEQ_MAX) for k in value)


def _allowed(kind, low, high):
    if kind == "int":
        return "a whole number from %d to %d" % (low, high)
    if kind == "flag":
        return "true or false"
    if kind == "word":
        return "one of " + ", ".join(low)
    if kind == "text":
        return "%d to %d characters without control characters" % (low, high)
    if kind == "dice":
        return "three values from 1 to 6"
    if kind == "streak":
        return "null, or a streak's count, parts (position and cents) and gone (positions)"
    return "whole cents from 0 to %d by wager" % SEQ_MAX


def check_request(value):
    """(name, fields with defaults filled in) of a request object {"q": name, ...}. Raises Problem."""
    name = value.get("q")
    if not isinstance(name, str) or name not in REQUESTS:
        raise Problem("E_UNKNOWN", "there is no request %s; there are %s" % (show(name), ", ".join(sorted(REQUESTS))))
    fields = REQUESTS[name][2]
    # The signature was looked at before (dragoneye.keys).
    known = {"q", "a"}
    checked = {}
    for field, kind, low, high, default in fields:
        known.add(field)
        # What may be left out by None may be given as null too.
        if field in value and (default is not None or value[field] is not None):
            if not _field_ok(value[field], kind, low, high):
                raise Problem(
                    "E_ARGS", "%s: %s is %s; allowed: %s" % (name, field, show(value[field]), _allowed(kind, low, high))
                )
            checked[field] = value[field]
        elif default == REQUIRED:
            raise Problem("E_ARGS", "%s: %s is missing; allowed: %s" % (name, field, _allowed(kind, low, high)))
        else:
            checked[field] = default
    # A newer host of the same major version may send fields that this one does not know, but only in hello: there
    # they can change nothing.
    if name != "hello":
        for field in value:
            if field not in known:
                raise Problem("E_ARGS", "%s: there is no field %s" % (name, show(field)))
    return name, checked
