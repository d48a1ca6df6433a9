"""Times the settlement of six positions with six wagers each, and the liability, under either Python.

Prints microseconds a call as JSON.
"""

import json
import time

from dragoneye.rules import packs, wagers

TIMES = 200

pack = packs.load("nj")
bets = {position: dict.fromkeys(packs.WAGERS, 100 * position) for position in range(1, 7)}


def now_us():
    """Microseconds on a clock that never goes back."""
    return time.ticks_us() if hasattr(time, "ticks_us") else time.perf_counter_ns() // 1000


def timed(action):
    """The least microseconds of one of TIMES calls over some repeats: the machine's other work only adds."""
    best = 0
    for _ in range(7):
        began = now_us()
        for _ in range(TIMES):
            action()
        spent = (now_us() - began) / TIMES
        best = min(best or spent, spent)
    return best


print(
    json.dumps(
        {
            "settle": timed(lambda: wagers.settle_table(bets, (4, 4, 4), 0, 3, 2, pack)),
            "liability": timed(lambda: wagers.liability(bets, 3, 2, pack)),
        }
    )
)
