"""Writes data/tile_ranks.json, the look-up table of every two-tile hand: `python -m host_tools.rules.make_tile_ranks`.

The table is made from what the ranking *means*, so that it shares nothing with tiles_text.py, which follows
NJ 13:69F-10.2 line by line: a tile has spots and a place in the order; two of a kind are a pair; a nine with one of the
two highest kinds is a wong and an eight a gong; anything else is the last digit of the spots, then the better tile.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

PATH = Path(__file__).parent / "data" / "tile_ranks.json"

# The kinds in the order of their single tiles, best first. Two faces of one kind share a place, except the fives, which
# come before the three, and the six and the three of the supreme pair, which have a place each.
KINDS = (
    ("6-6",), ("1-1",), ("4-4",), ("1-3",), ("5-5",), ("3-3",), ("2-2",), ("5-6",), ("4-6",), ("1-6",), ("1-5",),
    ("3-6", "4-5"), ("2-6", "3-5"), ("2-5", "3-4"), ("2-4",), ("1-4", "2-3"), ("1-2",),
)  # fmt: skip
SUPREME = {"2-4", "1-2"}
FACES = tuple(face for kind in KINDS for face in kind)
PLACE = {face: place for place, kind in enumerate(KINDS, 1) for face in kind}


class Described(NamedTuple):
    """One hand: `key` is greater for the better hand, the rest as in the file."""

    key: tuple[int, int, int]
    kind: str
    pair_rank: int | None
    value: int | None
    best: int | None


def _spots(face: str) -> int:
    return int(face[0]) + int(face[2])


def _uses(face: str) -> list[tuple[int, int]]:
    """The (spots, place) that a tile may count as: one, or two for the tiles of the supreme pair."""
    if face in SUPREME:
        return [(_spots(other), PLACE[other]) for other in SUPREME]
    return [(_spots(face), PLACE[face])]


def describe(first: str, second: str) -> Described | None:
    """What a hand of two faces is (NJ 13:69F-10.2(b), (d) to (g)); None if no set has both tiles.

    >>> describe("6-6", "4-5")
    Described(key=(2, -17, 0), kind='wong', pair_rank=17, value=None, best=None)
    """
    if first == second and (first in SUPREME or len(KINDS[PLACE[first] - 1]) > 1):
        return None
    if {first, second} == SUPREME:
        rank = 1
    elif PLACE[first] == PLACE[second]:
        # Every kind that can pair, in its own order, after the supreme pair; the fives skip the six's place.
        rank = PLACE[first] + (1 if PLACE[first] < PLACE["2-4"] else 0)
    else:
        high, other = sorted((first, second), key=FACES.index)
        rank = 0
        if PLACE[high] <= 2 and other not in SUPREME and _spots(other) in (8, 9):
            rank = (17 if _spots(other) == 9 else 19) + PLACE[high] - 1
    if rank:
        kind = "pair" if rank <= 16 else "wong" if rank <= 18 else "gong"
        return Described((2, -rank, 0), kind, rank, None, None)
    key = max(
        (1, (spots_one + spots_two) % 10, -min(place_one, place_two))
        for spots_one, place_one in _uses(first)
        for spots_two, place_two in _uses(second)
    )
    return Described(key, "value", None, key[1], -key[2])


def make() -> str:
    """The whole file as text: the faces, a 21 × 21 table of strengths (0: no set has both), and what each strength is.

    By NJ 13:69F-10.2(b) to (h), whose copies are one strength.

    >>> make().count("wong")
    2
    """
    hands = {(one, two): describe(one, two) for one in FACES for two in FACES}
    ranks = {hand.key: hand for hand in hands.values() if hand}
    keys = sorted(ranks)
    rows = [[keys.index(hand.key) + 1 if (hand := hands[one, two]) else 0 for two in FACES] for one in FACES]
    return (
        '{\n"about": "made by python -m host_tools.rules.make_tile_ranks; do not edit",\n'
        f'"faces": {json.dumps(FACES)},\n"strength": [\n'
        + ",\n".join(json.dumps(row) for row in rows)
        + '\n],\n"ranks": [\n'
        + ",\n".join(json.dumps(ranks[key][1:]) for key in keys)
        + "\n]\n}\n"
    )


if __name__ == "__main__":
    PATH.write_text(make(), encoding="utf-8")
