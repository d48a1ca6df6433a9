"""A record of any size: rounds that never were, by the firmware's own settlement, streak and chain of hashes.

`history` tells what a table would have sent; `fill` writes it into a database in bulk, row for row as `Store.take`
would have (tests/unit/test_synthetic.py holds one against the other).
"""

from __future__ import annotations

import hmac
import random
import sqlite3
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from itertools import islice
from pathlib import Path
from typing import Any

from dragoneye.journal import GENESIS, chain
from dragoneye.rules import wagers
from dragoneye.rules.packs import Pack, load
from dragoneye.rules.streak import Streak
from dragoneye.text import dumps
from host_tools.store import Store, utc_text

Told = tuple[str, dict[str, Any], str]
Roller = Callable[[random.Random], list[int]]

START = datetime(2026, 1, 5, 12, 0, tzinfo=timezone.utc)
ROUND_SECONDS = 120
ROUNDS_A_SET = 20_000
# Of a thousand rolls, how many are void for this reason.
VOIDS = {"die_missing": 4, "two_faces": 2, "not_settled": 1, "no_shake": 1, "lid_opened": 1}


def fair(rng: random.Random) -> list[int]:
    """Three fair dice."""
    return [rng.randint(1, 6) for _die in range(3)]


def biased(die: int, face: int, points: float) -> Roller:
    """Dice of which one (0..2) shows `face` by so much more often than 1/6, at the cost of the other five."""
    weights = [1 / 6 - points / 5] * 6
    weights[face - 1] = 1 / 6 + points

    def roll(rng: random.Random) -> list[int]:
        dice = fair(rng)
        dice[die] = rng.choices(range(1, 7), weights)[0]
        return dice

    return roll


class Table:
    """One table that plays by itself."""

    def __init__(self, seed: int, pack: Pack, roller: Roller, start: datetime, set_rounds: int, eye: int) -> None:
        self.rng = random.Random(seed)
        self.pack = pack
        self.roller = roller
        self.start = start
        self.set_rounds = set_rounds
        self.eye = eye
        self.id = 0
        self.link = GENESIS
        self.ticks = 0
        self.round = 0
        self.streak = Streak()

    def record(self, kind: str, data: dict[str, Any], wait_ms: int = 1000) -> Told:
        self.id += 1
        self.ticks += wait_ms
        record = {"id": self.id, "k": kind, "b": 1, "t": self.ticks, "d": data}
        self.link = chain(self.link, dumps(record))
        return utc_text(self.start + timedelta(milliseconds=self.ticks)), record, self.link

    def bets(self) -> dict[int, dict[str, int]]:
        rng = self.rng
        bets: dict[int, dict[str, int]] = {}
        for position in sorted(rng.sample(range(1, 7), rng.randint(3, 6))):
            chosen = {
                wager: 100 * rng.choice((1, 2, 5, 10, 25)) for wager in self.pack["wagers"] if rng.random() < 0.45
            }
            if self.streak.running:
                chosen.pop("bonus", None)
            if chosen:
                bets[position] = chosen
        for position, stake in self.streak.stakes().items():
            bets.setdefault(position, {})["bonus"] = stake
        return dict(sorted(bets.items()))

    def play(self) -> Iterator[Told]:
        """The boot, and rounds for ever."""
        yield self.record("boot", {"fw": "0.1.0", "build": "test", "pack_hash": self.pack.hash(), "cause": "power"})
        while True:
            self.round += 1
            if self.round % self.set_rounds == 0:
                self.streak.end()
                yield self.record("streak", {"why": "dice changed", "position": 0, "streak": self.streak.as_dict()})
            yield from self._round()

    def _round(self) -> Iterator[Told]:
        rng, number = self.rng, self.round
        began = self.ticks
        bets = self.bets()
        shaker = rng.choice((0, *bets))
        yield self.record("opened", {"round": number, "shaker": shaker})
        rows = [[position, stakes] for position, stakes in bets.items()]
        owed = wagers.liability(bets, shaker, self.streak.count, self.pack)
        yield self.record("closed", {"round": number, "shaker": shaker, "bets": rows, "liability": owed}, 30_000)
        shakes = 1
        while rng.random() < sum(VOIDS.values()) / 1000:
            [reason] = rng.choices(list(VOIDS), list(VOIDS.values()))
            yield self.record("void", {"round": number, "reason": reason, "shakes": shakes, "over": False})
            shakes += 1
        dice = self.roller(rng)
        manual = "reader down" if rng.random() < 0.0005 else None
        locked = {"round": number, "dice": dice, "eye": self.eye, "shaker": shaker, "shakes": shakes, "bets": rows}
        yield self.record("locked", {**locked, "bets_open": False, "manual": manual}, 4000)
        yield self.record("door", {"which": "lid", "open": True})
        settled = wagers.settle_table(bets, dice, self.eye, shaker, self.streak.count, self.pack)
        triple = wagers.is_triple(dice)
        before = self.streak.roll(triple, {one: stakes["bonus"] for one, stakes in bets.items() if "bonus" in stakes})
        result = {
            "round": number,
            "dice": dice,
            "eye": self.eye,
            "total": sum(dice),
            "shaker": shaker,
            "shakes": shakes,
        }
        result.update(manual=manual, rows=settled, net=wagers.net_of(settled), before=before)
        result["level"] = wagers.bonus_level(before, self.pack) if triple else 0
        yield self.record("settled", {**result, "streak": self.streak.as_dict()})
        yield self.record("door", {"which": "lid", "open": False}, 20_000)
        self.ticks = began + 1000 * ROUND_SECONDS


def history(
    rounds: int,
    seed: int = 1,
    pack: Pack | None = None,
    roller: Roller = fair,
    start: datetime = START,
    set_rounds: int = ROUNDS_A_SET,
    eye: int = 1,
) -> Iterator[Told]:
    """(UTC, record, hash) of everything that a table tells of so many settled rounds.

    `roller` throws the dice; `eye` is the dragon's eye die's index.
    """
    settled = 0
    for told in Table(seed, pack or load("nj"), roller, start, set_rounds, eye).play():
        yield told
        settled += told[1]["k"] == "settled"
        if settled == rounds and told[1]["k"] == "door":
            return


def fill(
    path: Path,
    uid: str,
    told: Iterator[Told],
    progress: Callable[[int], None] = lambda events: None,
    key: bytes | None = None,
) -> None:
    """Write a new table's history into the record at `path`, in bulk; with a journal key, its tags."""
    Store(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    row: dict[str, Any] = {}
    dice_set, rolled = 1, False
    while batch := list(islice(told, 20_000)):
        events, rounds, sets = [], [], []
        for utc, record, link in batch:
            kind, data = record["k"], record["d"]
            place = (uid, record["id"], kind, record["b"], record["t"], data.get("round"), utc)
            tag = None if key is None else hmac.digest(key, link.encode(), "sha256")[:8].hex()
            events.append((*place, dumps(record), link, tag, None))
            if kind == "opened":
                row = {"number": data["round"], "event": record["id"], "utc": utc, "shaker": data["shaker"], "voids": 0}
            elif kind == "void":
                row["voids"] += 1
            elif kind == "streak" and rolled:
                dice_set, rolled = dice_set + 1, False
                sets.append((uid, dice_set, record["id"], utc))
            elif kind == "settled":
                rolled = True
                searched = (" ".join(map(str, data["dice"])), data["eye"], data["total"], data["net"], data["manual"])
                rounds.append((uid, *row.values(), "settled", *searched, dumps(data), dice_set))
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO events VALUES ({', '.join('?' * 11)})", events)
        connection.execute("INSERT OR IGNORE INTO firsts VALUES (?, ?, ?)", (uid, events[0][1], events[0][6]))
        connection.execute("INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?, ?)", (uid, record["id"], link, tag, utc))
        connection.executemany(
            "INSERT INTO rounds (uid, number, event, utc, shaker, voids, status, dice, eye, total, net, manual, result,"
            f" dice_set) VALUES ({', '.join('?' * 14)})",
            rounds,
        )
        connection.executemany("INSERT INTO dice_sets (uid, number, event, utc) VALUES (?, ?, ?, ?)", sets)
        connection.execute("COMMIT")
        progress(len(batch))
    connection.close()
