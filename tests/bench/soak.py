"""A soak: rounds without end on virtual tables into one record, with cables pulled and power cut, in bounded memory.

SOAK_ROUNDS rounds are played at SOAK_TABLES tables at once, or as many as SOAK_HOURS leave time for; a line on stderr
for each tenth of them. One process keeps the record, as a shift's would; the tables are processes of their own.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from boards.virtual.client import Control, Table, TableError
from dragoneye.rules.packs import load
from host_tools import provision
from host_tools.audit import audit
from host_tools.cli.demo import virtual_table
from host_tools.dealer import Dealer, VirtualLid, plan_round
from host_tools.device import Device
from host_tools.store import Search, Store
from tests.bench import Row, memory_mb

ROUNDS = int(os.environ.get("SOAK_ROUNDS", "1000"))
TABLES = int(os.environ.get("SOAK_TABLES", "4"))
HOURS = float(os.environ.get("SOAK_HOURS", "24"))
SEGMENTS = 10
# How often a round is disturbed, and by what: a die that leans, a cable pulled, the power cut.
DISTURBED = {"cocked": 0.02, "cable": 0.005, "power": 0.002}


@dataclass
class Sample:
    """What there is after so many rounds: memory in MB, that of the largest process of a table so far in `boards`; the
    least free heap of the boards' last answers and the record's files in bytes."""

    rounds: int
    seconds: float
    host: float
    boards: float
    free: int
    size: int


@dataclass
class Soak:
    """A run that goes on: its tables tell what they have done, the one who watches takes samples."""

    store: Store
    path: Path
    began: float = field(default_factory=time.monotonic)
    played: Counter[str] = field(default_factory=Counter)
    disturbed: Counter[str] = field(default_factory=Counter)
    free: dict[str, int] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)
    failures: list[BaseException] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    largest: float = 0.0
    _begun: int = 0

    def more(self) -> bool:
        """Whether another round is to be played; it is whoever asks who plays it."""
        with self._lock:
            if self._begun >= ROUNDS or self.failures or time.monotonic() - self.began > HOURS * 3600:
                return False
            self._begun += 1
            return True

    def play(self, number: int) -> None:
        """One table's rounds, from its power-on to the last stored record."""
        try:
            uid = f"50AC{number:012X}"
            with virtual_table(load("nj"), number, uid, provision.INSTANT) as table:
                table.do("settle", ms=10)
                self.pids[uid] = table.pid
                self._rounds(table, uid, random.Random(number))
        except BaseException as error:
            self.failures.append(error)

    def _rounds(self, table: Table, uid: str, rng: random.Random) -> None:
        device = Device(table.port, self.store)
        dealer = Dealer(device, load("nj"), VirtualLid(table), patience=300.0)
        while self.more():
            troubles = [name for name, share in DISTURBED.items() if rng.random() < share]
            pulls = [threading.Timer(rng.random() / 2, pull, (table.folder, name)) for name in troubles]
            for pulled in pulls:
                pulled.start()
            dealer.play(plan_round(rng, dealer.pack, dealer.surely(device.refresh)["streak"]))
            for pulled in pulls:
                pulled.join()
            self.played[uid] += 1
            self.disturbed.update(troubles)
            if self.played[uid] % 50 == 1:
                self.free[uid] = dealer.surely(lambda: device.request("stats"))["free"]
        dealer.surely(device.wait_stored)
        device.close()

    def sample(self) -> Sample:
        """What there is now."""
        for pid in list(self.pids.values()):
            with suppress(OSError):
                self.largest = max(self.largest, *map(memory_mb, (pid, *children(pid))))
        return Sample(
            sum(self.played.values()),
            time.monotonic() - self.began,
            memory_mb(os.getpid()),
            self.largest,
            min(self.free.values(), default=0),
            sum(file.stat().st_size for file in self.path.parent.glob(self.path.name + "*")),
        )


def pull(folder: Path, name: str) -> None:
    """Disturb a table for a moment."""
    with suppress(TableError):
        control = Control(folder)
        try:
            if name == "cocked":
                control.do("fault", name="cocked", die=1, rolls=1)
                return
            control.do(name, to="off" if name == "power" else "out")
            time.sleep(0.2)
            control.do(name, to="on" if name == "power" else "in")
        finally:
            control.close()


def children(pid: int) -> list[int]:
    """The processes that another one has started (Linux)."""
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def watched(soak: Soak, threads: list[threading.Thread]) -> list[Sample]:
    """A sample after each tenth of the rounds or of the time, until they have all ended."""
    samples: list[Sample] = []
    due = 1
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(0.5 / len(threads))
        gone = max(sum(soak.played.values()) / ROUNDS, (time.monotonic() - soak.began) / (HOURS * 3600))
        if gone >= due / SEGMENTS and soak.played:
            due = int(gone * SEGMENTS) + 1
            samples.append(soak.sample())
            now = samples[-1]
            print(
                f"soak: {now.rounds:,} rounds, {now.rounds / now.seconds:.1f} a second; host {now.host:.1f} MB, board "
                f"{now.boards:.1f} MB, {now.free / 1024:.0f} KiB of its heap free; record {now.size / 1e6:.1f} MB",
                file=sys.stderr,
                flush=True,
            )
    return samples


def run() -> Iterator[Row]:
    """The rounds, then whether the record is whole."""
    with tempfile.TemporaryDirectory(prefix="dragoneye-soak-") as name:
        path = Path(name) / "rounds.db"
        store = Store(path)
        soak = Soak(store, path)
        threads = [threading.Thread(target=soak.play, args=(number,)) for number in range(1, TABLES + 1)]
        for thread in threads:
            thread.start()
        samples = watched(soak, threads)
        if soak.failures:
            raise soak.failures[0]
        samples.append(soak.sample())
        first, last = samples[0], samples[-1]
        voids = store.count(Search(status="void"))
        yield Row("rounds, events", f"{store.count():,}, {sum(store.last(uid)[0] for uid in store.tables()):,}")
        yield Row("dice cocked, cables pulled, power cut", ", ".join(f"{soak.disturbed[name]:,}" for name in DISTURBED))
        yield Row("rounds that a power cut made void", f"{voids:,}")
        yield Row(f"rounds a second at {TABLES} tables", f"{last.rounds / last.seconds:.1f}", f"{last.seconds:.0f} s")
        halves = " → ".join(f"{one.host:.1f}" for one in (first, samples[len(samples) // 2], last))
        yield Row(f"the recording process after {first.rounds:,} rounds, half, all", f"{halves} MB")
        yield Row("the largest process of a table, the same", f"{first.boards:.1f} → {last.boards:.1f} MB")
        free = [one.free / 1024 for one in samples if one.free]
        yield Row("free heap of a board when asked, not collected", f"{min(free):.0f} to {max(free):.0f} KiB")
        yield Row("the record", f"{last.size / 1e6:.1f} MB", f"{last.size / last.rounds / 1000:.2f} kB a round")
        done = audit(store, [load("nj")])
        yield Row(
            "audit: events, settlements, what does not fit",
            f"{done.events:,}, {done.settlements:,}, {len(done.findings)}",
        )
        for finding in done.findings[:5]:
            print(f"soak: {finding}", file=sys.stderr)
        store.close()
