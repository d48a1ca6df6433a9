"""What the codes of the protocol mean, in words: the host's part of dragoneye.protocol's table.

The table sends codes only. Its heap and the time of each collection are dear; a person reads these in his language.
"""

from __future__ import annotations

from dragoneye.protocol import (
    BETTING,
    CLOSED,
    FAULT,
    IDLE,
    LOCKED,
    READING,
    REVEALED,
    SETTLED,
    SETTLING,
    SHAKING,
    TEST,
    VOID,
)

STATES = {
    IDLE: "no round is open",
    BETTING: "bets are open",
    CLOSED: "bets are closed, ready to shake",
    SHAKING: "the shaker runs",
    SETTLING: "the dice come to rest",
    READING: "the dice are being read",
    LOCKED: "the result is written down; nobody knows it before the lid opens",
    REVEALED: "the lid is open, the wagers are being settled",
    SETTLED: "the wagers are settled",
    VOID: "the roll is void; shake again",
    FAULT: "a fault is latched until a supervisor clears it",
    TEST: "a technician tests the table; nothing that is done can become a result",
}

# What the requests do, for the reference.
REQUESTS = {
    "hello": (
        "start a session: the highest event, round and ended round that the host has stored, and the streak "
        "then, which counts where the host's record is the longer one; the answer says who the table is and "
        "names that event or its newest by the hash. last_hash (since 1.3), the hash of the newest that is "
        "stored, goes into a restart"
    ),
    "status": "the live state",
    "stats": "counters since the boot: frames, noise, rolls, voids, journal, memory, task times",
    "open": (
        "open a round; the shaker is a player position, or 0 for the dealer; a note (since 1.2) is recorded with it"
    ),
    "shaker": "another position, or the dealer (0), shakes next",
    "bets": "all wagers of one position; a bonus that must stay up stays unless it is named",
    "leave": "the player left or moved: wagers come off, a part in the streak is forfeited",
    "close": "no more bets",
    "shake": "shake; 0 jolts means the table's own profile",
    "unlock": "release the lid; after a locked result this is the reveal",
    "finish": "the settled round is done",
    "void": "the round is void: wagers go back, the streak is as before",
    "resume": "go on shaking after the limit of void rolls",
    "manual": "enter a result by hand; the answer echoes it with a token to confirm",
    "confirm": "the second confirmation of a manual result",
    "correct": (
        "between rounds: a further record that corrects a round that is over, told by its number and the "
        "event that settled it. The round should have been void; or the dice were these; or all wagers of one"
        " position were these"
    ),
    "clear": "clear the latched fault of this code",
    "changed": "dice or shaker unit were changed; the streak ends unless keep confirms it",
    "end": "the table closes: the streak ends",
    "test": "enter test mode between rounds, or leave it; a restart leaves it as well",
    "selftest": "in test mode: start the self-test; without start, whether it runs and its last report",
    "sensors": (
        "what the sensors say now; in test mode the readers as well: asks for a pass, tells the last one. "
        "step counts down the ladder of the readers' gains"
    ),
    "dice": (
        "in test mode: another dice set; its time of issue (UTC), which die is the dragon's eye die, and 18 "
        "tags: die 1 by face 1 to 6, die 2, die 3. Other tags than before end the streak"
    ),
    "verify": (
        "between rounds: with a seed, begin a keyed hash of every file on the flash; without one, how far it "
        "is: the hash over all and rows of path, size and hash, ten from number first on"
    ),
    "maintenance": (
        "restart into MicroPython's prompt, watchdog not armed; the next reset brings the table back. Not when locked"
    ),
}

ERRORS = {
    "E_UNKNOWN": "there is no such request",
    "E_ARGS": "a field is missing, unknown or out of range",
    "E_HELLO": "say hello first; this number is not of the present session",
    "E_VERSION": "the host speaks another major version of the protocol",
    "E_AUTH": "not signed as this request must be",
    "E_LOCKED": "the table is locked: hold its service key and reset it, and MicroPython's prompt answers",
    "E_STATE": "not in this state",
    "E_FAULT": "a fault is latched; a supervisor must clear it",
    "E_TEST": "the table is in test mode",
    "E_STANDS": "the cause of the fault is still there",
    "E_BETS_CLOSED": "bets are closed",
    "E_BETS_OPEN": "bets are still open; close them first",
    "E_WAGER": "this wager cannot be made here",
    "E_LIABILITY": "the table could owe more than its limit",
    "E_BONUS_LATE": "no bonus was down before the first triple; wait until the streak ends",
    "E_BONUS_RAISE": "a bonus may not be raised while a streak runs",
    "E_BONUS_FORFEIT": "this position's part in the streak is forfeited; wait until the streak ends",
    "E_SHAKES": "this shaker has used up the shakes of this round",
    "E_JOLTS": "fewer jolts than the rule pack's minimum",
    "E_LOCKOUT": "too soon after the last shake",
    "E_LID": "the lid is open",
    "E_SUPPLY": "the 12 V supply is low",
    "E_VOIDS": "too many void rolls; a supervisor must resume, enter a result or void the round",
    "E_TOKEN": "the confirmation does not fit the entry",
    "E_JOURNAL": "the journal is full of records that no host has fetched",
}

# Records, which are also the events: what happened, in order, under a running id.
EVENTS = {
    "boot": "the controller started: cause, versions, hashes, dice set",
    "opened": "a round was opened: round, shaker, note if there is one",
    "closed": "bets closed: round, shaker, bets, liability",
    "locked": "a result is final: round, dice, eye, shaker, shakes, bets, manual reason or null; sent after the reveal",
    "bets": "bets changed after the result was locked: round, bets; sent after the reveal",
    "settled": "wagers settled: round, dice, eye, total, shaker, rows (position, wager, stake, odds), players' net",
    "void": "a roll was void: round, reason, shakes, over (true: the round too), missing (by die_missing: the dice)",
    "streak": "the streak changed other than by a roll: why, position, streak",
    "fault": "a fault was set or cleared: code, set, detail",
    "test": "test mode was entered or left: set",
    "dice": "another dice set: serial, issued (UTC), hash of its tags, eye; found (true: at the start, not by request)",
    "door": "lid, tamper contact or service key: which, open",
    "service": "the board was started with its service key held, into the prompt, since the last record: times",
    "stopped": "the controller's program ended by itself: why (maintenance, interrupted, or what went wrong)",
    "correction": "a round that is over was corrected: round, what, event (that settled it), why, dice or position and "
    "wagers",
    "restart": "the journal was begun anew: why, link (the hash of the host's newest record before it), key_id",
}

VOIDS = {
    "no_shake": "the shaker was not seen to move",
    "shake_timeout": "the shake did not end in time",
    "lid_opened": "the lid was opened before the result was locked",
    "tamper": "the tamper contact opened before the result was locked",
    "brown_out": "the supply was low before the result was locked",
    "power_loss": "the controller restarted before the result was locked",
    "fault": "a fault stopped the roll",
    "read_timeout": "the reader did not answer in time",
    "foreign_tag": "a tag that is on none of the dice",
    "unresolved": "a collision of tags was not resolved",
    "two_faces": "two faces of one die were read",
    "cocked": "a die lies cocked: two adjacent faces of it were read",
    "die_missing": "fewer than three dice were read",
    "not_settled": "no two readings in a row agreed",
    "supervisor": "voided by a supervisor",
}

# How a fault is cleared: see protocol.SERVICE_FAULTS.
LATCHED = "latched"
SERVICE = "service"

# code -> (what, severity, what clears it). Each is recorded as it is set and as it is cleared; the remedies are told by
# the host. A start by the watchdog is no fault: its cause is in the record `boot`. The age of the dice is the host's to
# watch, as the table has no clock.
FAULTS = {
    "JOURNAL": ("the journal is damaged", LATCHED, "clear, once the host has what stands before the damage"),
    "CONFIG": ("the configuration is missing or not valid", LATCHED, "a valid configuration, a restart, clear"),
    "READER": ("the reader does not answer as it should", LATCHED, "clear; it comes again while a reader is dead"),
    "MOTOR_STUCK": ("the motor draws current while it should be off", LATCHED, "clear, once no current is drawn"),
    "TAMPER": ("a foreign tag or an open tamper contact", LATCHED, "clear, once the contact is shut"),
    "TASK": ("a task of the firmware died", LATCHED, "clear"),
    "SUPPLY": ("the 12 V supply stays low", SERVICE, "the supply is good again"),
    "SELFTEST": ("the last self-test found something wrong", SERVICE, "a self-test that passes"),
}
