"""The record that tests and measurements make up is the one that a store would have kept."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from host_tools.store import Store
from tests.synthetic import fill, history

UID = "S1"


def content(path: Path) -> dict[str, list[Any]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return {
            name: [dict(row) for row in connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2")]
            for name in ("events", "rounds", "dice_sets", "prunings", "heads", "firsts")
        }


def test_filled_in_bulk_is_taken_one_by_one(tmp_path: Path) -> None:
    fill(tmp_path / "bulk.db", UID, history(150, set_rounds=40))
    told = list(history(150, set_rounds=40))
    moment = iter(told)
    now = [""]
    store = Store(tmp_path / "taken.db", clock=lambda: now[0])
    for utc, record, link in moment:
        now[0] = utc
        assert store.take(UID, record, link, 1)
    store.close()
    bulk, taken = content(tmp_path / "bulk.db"), content(tmp_path / "taken.db")
    assert bulk == taken
    assert len(bulk["rounds"]) == 150
    assert {row["dice_set"] for row in bulk["rounds"]} == {1, 2, 3, 4}
    assert sum(row["voids"] for row in bulk["rounds"]) > 0
