"""A virtual table for each test that wants one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from boards.virtual.client import Table
from tests.table.played import Played
from tests.virtual import instant_table

REAL = Path(__file__).parents[2] / "firmware"

MakeTable = Callable[..., Table]


@pytest.fixture
def make_table(tmp_path: Path) -> Iterator[MakeTable]:
    """`make_table(main=..., boot=..., **options)`: a running table with that little firmware.

    One that imports from `dragoneye` finds the real firmware's.
    """
    with ExitStack() as stack:
        count = 0

        def make(main: str = "", boot: str = "", **options: Any) -> Table:
            nonlocal count
            count += 1
            firmware = tmp_path / f"firmware{count}"
            firmware.mkdir()
            (firmware / "boot.py").write_text(boot)
            (firmware / "main.py").write_text(main)
            if "dragoneye" in main:
                (firmware / "dragoneye").symlink_to(REAL / "dragoneye")
            options.setdefault("folder", tmp_path / f"table{count}")
            options.setdefault("seed", 7)
            return stack.enter_context(Table(firmware=firmware, **options))

        yield make


OpenTable = Callable[..., Played]


@pytest.fixture(params=["sim"])
def open_table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenTable]:
    """`open_table(pack="nj", **options)`: a provisioned table that runs the real firmware, and its host.

    The parameter is the target; "sim" is MicroPython's unix port over the virtual table.
    """
    with ExitStack() as stack:
        count = 0

        def make(pack: str = "nj", **options: Any) -> Played:
            nonlocal count
            count += 1
            folder = tmp_path / f"place{count}"
            bench = stack.enter_context(instant_table(folder, pack, **options))
            played = Played(bench, folder, pack)
            stack.callback(played.close)
            return played

        yield make


@pytest.fixture
def table(open_table: OpenTable) -> Played:
    """A table under the New Jersey rules."""
    return open_table()
