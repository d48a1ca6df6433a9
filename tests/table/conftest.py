"""A virtual table for each test that wants one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from boards.virtual.client import Table

MakeTable = Callable[..., Table]


@pytest.fixture
def make_table(tmp_path: Path) -> Iterator[MakeTable]:
    """`make_table(main=..., boot=..., **options)`: a running table with that little firmware."""
    with ExitStack() as stack:
        count = 0

        def make(main: str = "", boot: str = "", **options: Any) -> Table:
            nonlocal count
            count += 1
            firmware = tmp_path / f"firmware{count}"
            firmware.mkdir()
            (firmware / "boot.py").write_text(boot)
            (firmware / "main.py").write_text(main)
            options.setdefault("folder", tmp_path / f"table{count}")
            options.setdefault("seed", 7)
            return stack.enter_context(Table(firmware=firmware, **options))

        yield make
