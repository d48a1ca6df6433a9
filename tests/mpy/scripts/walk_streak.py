"""Prints the states of a long random walk of Streak, from a generator of its own: walk_streak.py seed steps."""

import json
import sys

from dragoneye.rules.streak import Streak

state = int(sys.argv[1])


def below(limit: int) -> int:
    global state
    state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    return (state >> 8) % limit


streak = Streak()
boxes: dict[int, int] = {}
for _ in range(int(sys.argv[2])):
    position = 1 + below(7)
    stake = 50 * below(5)
    step = below(8)
    if step < 4:
        said = streak.refusal(position, stake)
        if said is None:
            said = streak.hold(position, stake)
            boxes[position] = stake
            if not stake:
                del boxes[position]
    elif step == 4:
        said = streak.leave(position)
        boxes.pop(position, 0)
    elif step == 5:
        said = streak.roll(True, boxes)
    elif step == 6:
        streak = Streak.from_dict(json.loads(json.dumps(streak.as_dict())))
        said = "restored"
    elif below(3):
        continue
    else:
        said = streak.roll(False, boxes)
        boxes = {}
    print(
        step, position, stake, said, streak.running, sorted(streak.as_dict().items()), sorted(streak.stakes().items())
    )
