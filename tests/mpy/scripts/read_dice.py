"""Prints what readers make of passes by a generator of its own: read_dice.py seed readers."""

import sys

from dragoneye.rules.reading import Reader, Tally, judge, registry_of

state = int(sys.argv[1])


def below(limit: int) -> int:
    global state
    state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    return (state >> 8) % limit


dice = [[f"04A1{die}{face}80" for face in range(1, 7)] for die in range(3)]
registry = registry_of(dice)
faces = range(6)
for roll in [(a, b, c) for a in faces for b in faces for c in faces]:
    print(judge({dice[die][roll[die]] for die in range(3)}, registry))
tally = Tally()
for _ in range(int(sys.argv[2])):
    reader = Reader(registry, 1 + below(5), 1 + below(3))
    said = None
    while said is None:
        tags = [dice[die][below(2)] for die in range(3)]
        change = below(12)
        if change == 0:
            tags.pop()
        elif change == 1:
            tags.append(dice[0][2])
        elif change == 2:
            tags.insert(below(3), "E004")
        said = reader.add(None if change == 3 else tags)
    print(said, reader.step, reader.absent)
    tally.result(said[0]) if said[0] else tally.void(reader.absent)
print(sorted(tally.as_dict().items()))
