"""The record's rolls by dice set, and what statistics say of them. Reads only; nothing here touches play."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from host_tools import statistics
from host_tools.drift import DICE
from host_tools.statistics import Faces, Result
from host_tools.store import Message, Search, Store

# Voids that the reading ended in: the dice had been rolled.
READ_VOIDS = frozenset(
    ("foreign_tag", "unresolved", "two_faces", "cocked", "die_missing", "not_settled", "read_timeout")
)


@dataclass
class DiceSet:
    """What was rolled with one set: `raw` holds three faces and the eye's index for each roll, one byte each.

    `missing` counts how often each die (1..3) was not read in a roll that was void for that.
    """

    table: str
    number: int
    told: Message
    raw: bytearray = field(default_factory=bytearray)
    rounds: list[int] = field(default_factory=list)
    manual: int = 0
    first: str = ""
    last: str = ""
    voids: Counter[str] = field(default_factory=Counter)
    missing: Counter[int] = field(default_factory=Counter)

    @property
    def rolls(self) -> Faces:
        """A row for each roll, a column for each die; entries by hand are not among them."""
        return np.frombuffer(bytes(self.raw), dtype=np.int8).reshape(-1, 4)[:, :3]

    @property
    def eyes(self) -> list[int]:
        """Which dice were the dragon's eye die, 0..2; one, unless it was changed."""
        return sorted(
            {int(eye) for eye in np.unique(np.frombuffer(bytes(self.raw), dtype=np.int8).reshape(-1, 4)[:, 3])}
        )


def gather(store: Store, search: Search) -> list[DiceSet]:
    """The dice sets of the rounds that are searched for, by table and number. Four bytes of memory a roll."""
    sets: dict[tuple[str, int], DiceSet] = {}
    told: dict[str, dict[int, Message]] = {}

    def of(uid: str, number: int) -> DiceSet:
        if (uid, number) not in sets:
            if uid not in told:
                told[uid] = {row["dice_set"]: row for row in store.dice_sets(uid)}
            sets[uid, number] = DiceSet(uid, number, told[uid].get(number, {}))
        return sets[uid, number]

    for roll in store.rolls(search):
        one = of(roll.uid, roll.dice_set)
        one.first = min(one.first or roll.utc, roll.utc)
        one.last = max(one.last, roll.utc)
        if roll.manual is not None:
            one.manual += 1
            continue
        # "1 2 3": a face is one character.
        one.raw += bytes((int(roll.dice[0]), int(roll.dice[2]), int(roll.dice[4]), roll.eye))
        one.rounds.append(roll.number)
    for uid, number, data in store.voids(search):
        of(uid, number).voids[str(data["reason"])] += 1
        # Early firmware named none.
        of(uid, number).missing.update(int(die) for die in data.get("missing", ()))
    return [sets[key] for key in sorted(sets)]


def _result(result: Result | None) -> Message | None:
    return None if result is None else asdict(result)


def analyse(dice_set: DiceSet, alpha: float = 0.01, confidence: float = 0.99) -> Message:
    """Every test of one dice set, as JSON.

    {"table", "dice_set", "serial", "issued", "since", "first", "last", "rolls", "manual", "dice": [...], "totals",
    "outcomes", "drift", "voids", "reading", "tests", "limit", "suspicious", "smallest_bias"}; p-values are each of one
    test by itself, and `suspicious` names those below `limit`, which is alpha divided by the number of tests
    (Bonferroni): fair dice are called suspicious with a chance of at most alpha.
    """
    rolls = dice_set.rolls
    n = len(rolls)
    p_values: dict[str, float] = {}

    def test(name: str, result: Result | None) -> Message | None:
        if result is not None:
            p_values[name] = result.p
        return _result(result)

    dice = []
    for index in range(DICE):
        faces = rolls[:, index]
        counts = [int(count) for count in statistics.face_counts(faces)]
        name = f"die {index + 1}"
        dice.append(
            {
                "die": index + 1,
                "eye": index in dice_set.eyes,
                "counts": counts,
                "faces": [_interval(face, count, n, confidence) for face, count in enumerate(counts, 1)] if n else [],
                "chi_square": test(f"{name}, faces", statistics.uniform(counts) if n else None),
                "runs": test(f"{name}, runs", statistics.runs(statistics.high(faces))),
                "repeats": test(f"{name}, repeats", statistics.repeats(faces)),
            }
        )
    totals = test("totals", statistics.totals(rolls))
    outcomes = test("outcomes", statistics.outcomes(rolls))
    drift = statistics.drift(rolls, alpha)
    by_total = np.bincount(rolls.sum(axis=1, dtype=np.int64), minlength=19)[3:19]
    limit = alpha / len(p_values) if p_values else None
    return {
        "table": dice_set.table,
        "dice_set": dice_set.number,
        "serial": dice_set.told.get("serial"),
        "issued": dice_set.told.get("issued"),
        "since": dice_set.told.get("since"),
        "first": dice_set.first or None,
        "last": dice_set.last or None,
        "rolls": n,
        "manual": dice_set.manual,
        "alpha": alpha,
        "confidence": confidence,
        "dice": dice,
        "by_total": [int(count) for count in by_total],
        "totals": totals,
        "outcomes": outcomes,
        "drift": {
            "evidence": drift.evidence,
            "die": drift.die,
            "limit": drift.limit,
            "warned_at_roll": drift.warned_at,
            "warned_at_round": None if drift.warned_at is None else dice_set.rounds[drift.warned_at - 1],
        },
        "voids": dict(sorted(dice_set.voids.items())),
        "reading": _reading(dice_set, n, confidence),
        "tests": len(p_values),
        "limit": limit,
        "suspicious": [name for name, p in p_values.items() if limit is not None and p < limit],
        "smallest_bias": statistics.smallest_bias(n, alpha),
    }


def _interval(face: int, count: int, n: int, confidence: float) -> dict[str, Any]:
    found = statistics.clopper_pearson(count, n, confidence)
    return {"face": face, "count": count, "share": found.share, "low": found.low, "high": found.high}


def _reading(dice_set: DiceSet, n: int, confidence: float) -> Message | None:
    """How often a die was not read among all that was rolled, and what a dead tag would make of it.

    A tag that does not answer takes one face of one die away: one roll in six is void then, and the opposite face never
    comes. `missing` is how often each die was not read, by the records that name it. `never` names the faces that were
    never seen, with the chance of that under fair dice, once it is small for all eighteen faces together.
    """
    rolled = n + sum(count for reason, count in dice_set.voids.items() if reason in READ_VOIDS)
    if not rolled:
        return None
    missing = statistics.clopper_pearson(dice_set.voids["die_missing"], rolled, confidence)
    chance = (5 / 6) ** n
    never = [
        {"die": die + 1, "face": face, "chance": chance}
        for die in range(DICE)
        for face, count in enumerate(statistics.face_counts(dice_set.rolls[:, die]), 1)
        if not count and 18 * chance < 0.05
    ]
    return {
        "rolled": rolled,
        "die_missing": missing.count,
        "share": missing.share,
        "low": missing.low,
        "high": missing.high,
        "dead_tag_possible": missing.high >= 1 / 6,
        "missing": [dice_set.missing[die] for die in range(1, DICE + 1)],
        "never": never,
    }
