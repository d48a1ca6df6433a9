"""Both ends of the cable are killed at random moments: no round is lost, none is there twice."""

from __future__ import annotations

import multiprocessing
import random
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from boards.virtual.client import Control
from dragoneye.rules.packs import load
from host_tools.dealer import Dealer, VirtualLid, plan_round
from host_tools.device import Device
from host_tools.link import LinkError
from host_tools.store import Store
from tests.table.conftest import OpenTable
from tests.table.played import Played, check_record
from tests.virtual import LONG

KILLS = 40
# A round takes a third of a second: the moments fall everywhere.
LATEST_S = 0.6

# Processes that begin with everything imported: a host is up at once.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])


def play_forever(port: str, db: Path, seed: int, up: Connection) -> None:
    """A host: play rounds until killed."""
    store = Store(db)
    while True:
        with suppress(LinkError):
            device = Device(port, store)
            break
    dealer = Dealer(device, load("nj"), VirtualLid(Control(Path(port).parent)), patience=1000.0)
    rng = random.Random(seed)
    up.send(True)
    while True:
        dealer.play(plan_round(rng, dealer.pack, device.state["streak"]))


class Host:
    """A process that plays rounds until it is killed."""

    def __init__(self, table: Played, db: Path, seed: int) -> None:
        hears, says = FORKS.Pipe(duplex=False)
        self._process = FORKS.Process(target=play_forever, args=(table.bench.port, db, seed, says))
        self._process.start()
        says.close()
        self.up = hears.poll(LONG) and hears.recv()
        hears.close()

    def kill(self) -> None:
        """kill -9; the process must have been well until then."""
        self._process.kill()
        self._process.join(LONG)
        assert (self.up, self._process.exitcode) == (True, -signal.SIGKILL)
        self._process.close()


def kill_everything(table: Played, db: Path, seed: int, kills: int) -> dict[str, int]:
    """Play while the host, the board or both lose their lives; how often each did."""
    rng = random.Random(seed)
    counts = dict.fromkeys(("host", "board", "both"), 0)
    pause = threading.Event()
    host = Host(table, db, seed)
    try:
        for number in range(kills):
            # Not to wait for anything: the moment is what is random here.
            pause.wait(rng.random() * LATEST_S)
            who = rng.choice(sorted(counts))
            counts[who] += 1
            if who != "board":
                host.kill()
            if who != "host":
                table.do("power", to="off")
                table.do("power", to="on")
            if who != "board":
                host = Host(table, db, seed + number + 1)
    finally:
        host.kill()
    return counts


def finish_and_check(table: Played, db: Path) -> list[dict[str, Any]]:
    """Bring the open round to its end and look at the whole record."""
    table.device.close()
    table.store = Store(db)
    table.device.sink = table.store
    table.device.reconnect(LONG)
    if table.device.state["state"] != "IDLE":
        table.finish()
    rounds = table.check_record()
    assert {one["status"] for one in rounds} <= {"settled", "void"}
    told = table.device._link.hello(*table.store.last(table.device.uid))
    assert (told["last_event"], told["round"]) == table.store.last(table.device.uid)
    return rounds


def journal_of(table: Played, folder: Path) -> list[Any]:
    """Every record that the board still keeps, as a host hears it who knows nothing."""
    fresh = Store(folder / "fresh.db")
    table.device.sink = fresh
    table.device.reconnect(LONG)
    table.device.wait_stored(LONG)
    events = fresh.events(table.device.uid)
    check_record(fresh, table.device.uid)
    fresh.close()
    return [{key: value for key, value in event.items() if key != "utc"} for event in events]


@pytest.mark.parametrize(
    ("seed", "kills"), [(1, KILLS // 2), (2, KILLS // 2), pytest.param(3, 1000, marks=pytest.mark.slow)]
)
def test_killing_either_end_loses_and_doubles_nothing(
    open_table: OpenTable, tmp_path: Path, seed: int, kills: int
) -> None:
    table = open_table(seed=seed)
    table.device.close()
    db = tmp_path / "played.db"
    counts = kill_everything(table, db, seed, kills)
    assert sum(counts.values()) == kills
    rounds = finish_and_check(table, db)
    settled = [one for one in rounds if one["status"] == "settled"]
    assert settled
    assert len(table.records("locked")) == len(table.records("settled")) == len(settled)
    if kills <= KILLS:  # later the board has let go of its oldest records
        stored = table.store.events(table.device.uid)
        assert [{key: value for key, value in event.items() if key != "utc"} for event in stored] == journal_of(
            table, tmp_path
        )
    table.store.close()
