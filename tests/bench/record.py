"""Many rounds of two tables: how quick they are to search, export, audit and reckon with.

The record is made up once, a hundred thousand rounds in 350 MB at $RECORD_DB or in the temporary folder;
RECORD_ROUNDS=1000000 makes it a million, in ten to thirty minutes.
"""

from __future__ import annotations

import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from dragoneye.keys import Key
from dragoneye.rules.packs import load
from host_tools import export, fairness, report
from host_tools.audit import audit
from host_tools.store import Search, Store
from tests.bench import Row, seconds
from tests.synthetic import fill, history

TABLES = ("E6605481DB000001", "E6605481DB000002")
KEY = bytes(range(32))


def made() -> Path:
    """The record; filled when it is not there."""
    rounds = int(os.environ.get("RECORD_ROUNDS", "100000"))
    path = Path(os.environ.get("RECORD_DB", Path(tempfile.gettempdir()) / f"dragoneye-{rounds}-tagged-rounds.db"))
    if not path.exists():
        for seed, uid in enumerate(TABLES, 1):
            fill(path, uid, history(rounds // 2, seed=seed), key=KEY)
    return path


def once(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def run() -> Iterator[Row]:
    """Searches first, each the least of five; then what reads everything, once."""
    path = made()
    store = Store(path)
    rounds = store.count()
    middle = store.rounds(TABLES[0], 1, page=rounds // 4)[0]
    yield Row(
        "rounds, events, size",
        f"{rounds:,}, {sum(store.last(uid)[0] for uid in TABLES):,}, {path.stat().st_size / 1e9:.1f} GB",
    )
    one = Search(TABLES[0])
    searches: dict[str, Callable[[], object]] = {
        "the newest 20 rounds of all tables": lambda: store.rounds(last=20),
        "the newest 20 of one table": lambda: store.rounds(last=20, search=one),
        "20 of one table in the middle of its time": lambda: store.rounds(
            last=20, search=Search(TABLES[0], until=middle["utc"])
        ),
        "20 of one dice set": lambda: store.rounds(last=20, search=Search(TABLES[0], dice_set=7)),
        "20 that are void, of none": lambda: store.rounds(last=20, search=Search(status="void")),
        "page 1,000 of 20": lambda: store.rounds(last=20, page=1000),
        "one round with its events": lambda: (
            store.round(middle["round"], TABLES[0]),
            store.events(TABLES[0], middle["round"]),
        ),
        "which tables there are": store.tables,
        "what is stored last, asked at each hello": lambda: store.last(TABLES[0]),
    }
    for what, call in searches.items():
        yield Row(what, f"{1000 * seconds(call, repeat=5):.1f} ms", goal="100 ms")
    day = Search(TABLES[0], since=middle["utc"][:10], until=middle["utc"][:11] + "24")
    yield Row("a shift's figures (720 rounds)", f"{once(lambda: report.of_table(store, day)):.2f} s")
    yield Row("count of all rounds", f"{once(store.count):.2f} s")

    def exported(kind: str, rows: Callable[[], object], columns: dict[str, str]) -> str:
        with tempfile.TemporaryDirectory() as folder, export.target(f"{folder}/out") as out:
            tracemalloc.start()
            spent = once(lambda: export.write(rows(), columns, kind, out))  # type: ignore[arg-type]
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return f"{spent:.0f} s, {out.bytes / 1e6:.0f} MB, at most {peak / 1e6:.0f} MB of memory"

    yield Row(
        "export of all raw rolls, CSV",
        exported("csv", lambda: export.roll_rows(store, store.rolls()), export.ROLL_COLUMNS),
    )
    yield Row(
        "export of a dice set's rounds, CSV",
        exported("csv", lambda: export.round_rows(store, Search(TABLES[0], dice_set=7)), export.ROUND_COLUMNS),
    )
    began = time.perf_counter()
    sets = fairness.gather(store, one)
    spent = time.perf_counter() - began
    analysed = once(lambda: [fairness.analyse(each) for each in sets])
    yield Row(f"statistics of {len(sets)} dice sets, {rounds // 2:,} rolls", f"{spent:.1f} s to read, {analysed:.1f} s")
    for what, held in (("their tags among it", {uid: {"": Key(KEY)} for uid in TABLES}), ("no journal key", {})):
        # Of the processor: other programs may run beside it.
        began = time.process_time()
        done = audit(store, [load("nj")], held=held)
        spent = time.process_time() - began
        assert not done.findings
        yield Row(
            f"audit of {done.events:,} events, {what}",
            f"{spent:.0f} s of the processor, {done.events / spent:,.0f} events/s",
        )
    store.close()
