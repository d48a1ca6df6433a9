"""Times what a record costs on the board: its hash, its tag, and whole appends, on the board's own file system.

Prints the least and the most microseconds of each as one line of JSON after RECORD.
"""

import json
import time

from dragoneye import round
from dragoneye.journal import Journal, chain
from dragoneye.keys import Key
from dragoneye.text import dumps

TIMES = 5

key = Key(bytes(range(32)))
rows = [[position, wager, 500, 0] for position in (1, 3, 5) for wager in ("match", "odd", "bonus")]
DATA = {
    "round": 4711,
    "dice": [3, 3, 4],
    "eye": 1,
    "total": 10,
    "shaker": 3,
    "shakes": 1,
    "manual": None,
    "rows": rows,
    "net": -4500,
    "before": 0,
    "level": 0,
    "streak": {"count": 0, "parts": [], "gone": []},
}
text = dumps({"id": 1, "k": "settled", "b": 1, "t": 1, "d": DATA})


def timed(action):
    """[least, most] microseconds of TIMES calls."""
    spent = []
    for _ in range(TIMES):
        began = time.ticks_us()
        action()
        spent.append(time.ticks_diff(time.ticks_us(), began))
    return [min(spent), max(spent)]


def journal(name, with_key):
    """A journal in a folder of its own with a record in it."""
    log = Journal(name, round.fold, round.initial, with_key)
    log.load()
    log.append("settled", DATA, 1, 1)
    return log


tagged = journal("/tagged", key)
plain = journal("/plain", None)
told = {"bytes": len(text), "hash": timed(lambda: chain("0" * 32, text)), "tag": timed(lambda: key.mac(b"0" * 32))}
for name, log in (("plain", plain), ("tagged", tagged)):
    told["append " + name] = timed(lambda log=log: log.append("settled", DATA, 1, 1))
    spent = []
    for _ in range(TIMES):
        log.prepare()
        began = time.ticks_us()
        log.append("settled", DATA, 1, 1)
        spent.append(time.ticks_diff(time.ticks_us(), began))
    told["prepared " + name] = [min(spent), max(spent)]
print("RECORD " + json.dumps(told))
