"""What must be true of a table after its power or its flash failed, said independently of the firmware.

`run` lets tests/bench/scripts/power.py fail a real controller on a real littlefs at every program and erase; `check`
holds what it noted to a history of its own: rounds, streak and money from the records alone, by the regulation said
again in tests/unit/restated_wagers.py.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from boards.virtual.model import default_tags
from boards.virtual.unix_port import REPO, find_micropython
from dragoneye.journal import GENESIS, chain
from dragoneye.rules.packs import WAGERS, Pack, load
from host_tools import provision
from host_tools.store import Store
from tests.unit import restated_wagers as restated

Json = dict[str, Any]
Kept = tuple[str, str]
SCRIPT = Path(__file__).parent / "bench" / "scripts" / "power.py"
UID = "U1"


def pack() -> Pack:
    """Bets stay open until the reveal, and every dice wager is there: whatever can be in a record is."""
    made: Pack = load("ca").with_options({"wagers": list(WAGERS)})
    return made


def configure(folder: Path) -> Path:
    """The configuration of such a table, in `folder`; the path of config.json."""
    provision.write(folder, "rpi_pico", pack(), default_tags(), 0, **provision.INSTANT)
    return folder / "config.json"


def run(config: Path, out: Path, mode: str, *arguments: object) -> Iterator[Json]:
    """The rows of one run of the script; `out` is where it writes them."""
    command = [*find_micropython(), "-X", "heapsize=64m", str(SCRIPT), str(config), str(out), mode]
    path = os.pathsep.join((".frozen", str(REPO / "firmware"), str(REPO)))
    done = subprocess.run(
        [*command, *map(str, arguments)], env={**os.environ, "MICROPYPATH": path}, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"power.py {mode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    with out.open() as file:
        for line in file:
            yield json.loads(line)


OPTIONS = restated.Options(pack()["after_third"], pack()["double_on_triple"])


@lru_cache(None)
def _owed(bets: tuple[tuple[int, tuple[tuple[str, int], ...]], ...], shaker: int, streak: int) -> int:
    return restated.most_owed({position: dict(stakes) for position, stakes in bets}, shaker, streak, OPTIONS)


@dataclass
class History:
    """What a host's records say: followed one by one, with what is wrong in `lost` and `twice`."""

    last: int = 0
    link: str = GENESIS
    boot: int = 0
    status: dict[int, str] = field(default_factory=dict)
    dice: dict[int, list[int]] = field(default_factory=dict)
    open: int | None = None
    locked: bool = False
    shaker: int = 0
    bets: dict[int, dict[str, int]] = field(default_factory=dict)
    count: int = 0
    parts: dict[int, int] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)

    def follow(self, kept: Iterable[Kept]) -> History:
        """Go on with these records."""
        for text, link in kept:
            record = json.loads(text)
            if record["id"] != self.last + 1 or chain(self.link, text) != link:
                (self.twice if record["id"] <= self.last else self.lost).append(f"record {record['id']}")
            self.last, self.link = record["id"], link
            getattr(self, "_" + record["k"], lambda data: None)(record["d"])
            if record["k"] == "boot":
                assert record["b"] == self.boot + 1, record
            self.boot = record["b"]
        return self

    @property
    def streak(self) -> Json:
        return {
            "count": self.count,
            "parts": [[p, self.parts[p]] for p in sorted(self.parts)],
            "gone": sorted(self.gone),
        }

    @property
    def owed(self) -> int:
        bets = tuple((position, tuple(sorted(stakes.items()))) for position, stakes in sorted(self.bets.items()))
        return _owed(bets, self.shaker, min(self.count, 5))

    def _opened(self, data: Json) -> None:
        number = data["round"]
        if number in self.status:
            self.twice.append(f"round {number} opened")
        assert self.open is None, data
        assert number == max(self.status, default=0) + 1, data
        self.status[number], self.open, self.locked, self.shaker = "open", number, False, data["shaker"]
        self.bets = {}

    def _over(self, number: int, status: str) -> None:
        if self.status.get(number) != "open":
            self.twice.append(f"round {number} {status}")
        self.status[number], self.open, self.locked, self.bets = status, None, False, {}

    def _void(self, data: Json) -> None:
        assert not self.locked, data
        if data["over"]:
            self._over(data["round"], "void")

    def _closed(self, data: Json) -> None:
        if self.locked:
            assert dict(data["bets"]) == self.bets, data
        self.bets, self.shaker = dict(data["bets"]), data["shaker"]
        assert data["liability"] == self.owed, data

    def _locked(self, data: Json) -> None:
        if data["round"] in self.dice:
            self.twice.append(f"round {data['round']} locked")
        assert self.open == data["round"], data
        self.dice[data["round"]], self.locked = data["dice"], True
        self.bets, self.shaker = dict(data["bets"]), data["shaker"]

    def _bets(self, data: Json) -> None:
        assert self.locked, data
        self.bets = dict(data["bets"])

    def _streak(self, data: Json) -> None:
        position, said = data["position"], data["streak"]
        assert data["why"] in ("bonus lowered", "bonus taken off", "player left"), data
        held = self.parts.pop(position)
        if data["why"] == "bonus lowered":
            self.parts[position] = dict(said["parts"])[position]
            assert 0 < self.parts[position] < held, data
        else:
            self.gone.add(position)
        assert said == self.streak, data

    def _settled(self, data: Json) -> None:
        dice, before = data["dice"], self.count
        assert (self.locked, self.open, dice) == (True, data["round"], self.dice[data["round"]]), data
        assert (data["before"], data["shaker"]) == (before, self.shaker), data
        held = {position: stakes["bonus"] for position, stakes in self.bets.items() if "bonus" in stakes}
        rows = []
        for position, stakes in self.bets.items():
            role = restated.role_of(position, self.shaker)
            for wager, stake in stakes.items():
                odds = restated.odds_to_one(wager, tuple(dice), data["eye"], position, role, min(before, 5), OPTIONS)
                if odds is not None:
                    rows.append((position, wager, stake, odds))
        assert sorted(map(tuple, data["rows"])) == sorted(rows), data
        assert data["net"] == sum(stake * (odds or -1) for _position, _wager, stake, odds in rows), data
        if len(set(dice)) > 1:
            self.count, self.parts, self.gone = 0, {}, set()
        else:
            if not self.count:
                self.parts = held
            # What was held on this roll is what a part is worth from now on.
            self.gone |= set(self.parts) - set(held)
            self.parts = {
                position: min(part, held[position]) for position, part in self.parts.items() if position in held
            }
            self.count += 1
        assert data["streak"] == self.streak, data
        self._over(data["round"], "settled")


def split(kept: list[Kept]) -> tuple[list[Kept], list[Kept], list[Kept]]:
    """(up to the failure, between it and the last boot, from the last boot on) of what the host has in the end.

    The first boot belongs to what was cut, unless that very record was lost.
    """
    boots = [place for place, (text, _link) in enumerate(kept) if json.loads(text)["k"] == "boot"]
    first = boots[1] if len(boots) > 1 else boots[0]
    return kept[:first], kept[first : boots[-1]], kept[boots[-1] :]


@dataclass
class Counts:
    """How the failures ended."""

    what: str
    ends: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    operations: int = 0

    def __str__(self) -> str:
        return (
            f"{self.what}: {self.ends.total()} failures at {self.operations} programs and erases: "
            f"{self.ends['finished']} recovered and finished, {self.ends['void']} void, "
            f"{self.ends['between']} between rounds, {len(self.lost)} lost, {len(self.twice)} twice"
        )

    def add(self, base: History, row: Json) -> None:
        """Check one failure and count how its round ended."""
        before, between, after = split([(text, link) for text, link in row["kept"]])
        history = copy.deepcopy(base).follow(before)
        number, locked = history.open, history.locked
        promised, link = row["promised"]
        if promised > base.last and dict(enumerate([h for _t, h in row["kept"]], base.last + 1)).get(promised) != link:
            self.lost.append(f"record {promised} had been promised at {row['at']}")
        history.follow(between)
        self._boot(copy.deepcopy(history), row)
        history.follow(after)
        assert history.open is None, row
        end = history.status[number] if number is not None else "between"
        assert (end == "settled") == locked, row
        self.ends["finished" if end == "settled" else end] += 1
        view = row["end"]
        assert (view["state"], view["round"], view["bets"]) == ("IDLE", max(history.status), []), row
        assert (view["streak"], history.status[view["round"]]) == (history.streak, "settled"), row
        # What was shown to people while the flash refused has been recorded all the same.
        assert all(history.dice[number] == dice for number, dice in row.get("shown", [])), row
        self.lost += history.lost
        self.twice += history.twice

    def _boot(self, at: History, row: Json) -> None:
        """What the table was after its last start must follow from what it had recorded before."""
        view = row["boot"]
        assert (view["streak"], view["bets_open"]) == (at.streak, False), row
        assert "dice" not in view, row
        if at.locked:
            bets = [[position, at.bets[position]] for position in sorted(at.bets)]
            assert (view["state"], view["round"], view["shaker"]) == ("LOCKED", at.open, at.shaker), row
            assert (view["bets"], view["liability"]) == (bets, at.owed), row
        else:
            assert (view["state"], view["bets"], view["liability"]) == ("IDLE", [], 0), row
            assert view["round"] == max(at.status, default=0), row


def all_of(what: str, rows: Iterator[Json]) -> tuple[Counts, list[Kept], list[Json]]:
    """Counts, the records before the failures, and the rows, of a whole run."""
    counts = Counts(what)
    first = next(rows)
    kept = [(text, link) for text, link in first["base"]]
    base = History().follow(kept)
    assert not base.lost + base.twice
    every = []
    for row in rows:
        if "operations" in row:
            counts.operations = row["operations"]
        else:
            counts.add(base, row)
            every.append(row)
    return counts, kept, every


def store_all(store: Store, kept: Iterable[Kept], uid: str = UID) -> None:
    """A real host's record takes them all, and all of them again."""
    for text, link in kept:
        assert store.take(uid, json.loads(text), link, 1)
