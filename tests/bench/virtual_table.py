"""Whole rounds on the virtual table with the waits shortened: firmware, wire, host and store."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from dragoneye.rules.packs import load
from host_tools import provision
from host_tools.cli.demo import virtual_table
from host_tools.dealer import Dealer, VirtualLid, plan_round
from host_tools.device import Device
from host_tools.store import Store
from tests.bench import Row

ROUNDS = 200


def run() -> Iterator[Row]:
    """One table, its rounds against the waits that they cannot do without."""
    pack = load("nj")
    with (
        tempfile.TemporaryDirectory() as folder,
        virtual_table(pack, 1, "BE00000000000001", provision.INSTANT) as table,
    ):
        table.do("settle", ms=10)
        store = Store(Path(folder) / "rounds.db")
        began = time.perf_counter()
        device = Device(table.port, store)
        yield Row("port open to hello", f"{time.perf_counter() - began:.2f} s")
        yield Row("heap free after the start, whole app", f"{device.request('stats')['free'] / 1024:.0f} KiB")
        dealer = Dealer(device, pack, VirtualLid(table))
        rng = random.Random(1)
        began = time.perf_counter()
        for _count in range(ROUNDS):
            dealer.play(plan_round(rng, pack, device.refresh()["streak"]))
        device.wait_stored()
        seconds = (time.perf_counter() - began) / ROUNDS
        stats = device.request("stats")
        profile, settings = provision.INSTANT["profile"], provision.INSTANT["settings"]
        waits = (3 * (profile["jolt_ms"] + profile["rest_ms"]) + settings["settle_ms"]) / 1000
        yield Row("rounds a second", f"{1 / seconds:.1f}", f"{seconds / waits:.1f} × the shortened waits")
        yield Row(f"heap free after {ROUNDS} rounds, not collected", f"{stats['free'] / 1024:.0f} KiB")
        for name, (runs, longest, mean, late) in sorted(stats["tasks"].items()):
            yield Row(f"task {name}", f"longest {longest / 1000:.1f} ms", f"mean {mean} µs, {late} of {runs} late")
        device.close()
        store.close()
