"""A virtual table for each test that wants one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import tests.virtual
from boards.virtual.client import Table
from host_tools.board_files import wait_for_table
from host_tools.hil.plugin import EMULATOR, SIM, TARGET
from host_tools.hil.rigged import Rigged
from host_tools.link import Message
from host_tools.store import default_place
from tests.table.played import Played
from tests.virtual import LONG, be_patient, instant_table

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
MakeBench = Callable[..., "Table | Rigged"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The target is a parameter, so that a test's name says where it ran."""
    if "target" in metafunc.fixturenames:
        metafunc.parametrize("target", [metafunc.config.stash[TARGET] or SIM], scope="session")


@pytest.fixture
def board(
    target: str, rig: Rigged | None, told: Message | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeBench]:
    """`board(pack="nj", **options)`: a provisioned virtual table that runs the real firmware, or the real one.

    The real one can be given no options but another pack and `more` entries of its configuration; it gets its own back.
    """
    if target == EMULATOR:
        be_patient(monkeypatch, 15 * LONG)
        monkeypatch.setattr("tests.virtual.PATIENCE", 15 * LONG)
    with ExitStack() as stack:
        count = 0

        def virtual(pack: str | None = None, **options: Any) -> Table:
            nonlocal count
            count += 1
            place = tmp_path / f"place{count}"
            return stack.enter_context(instant_table(place, pack or "nj", target=target, **options))

        def real(pack: str | None = None, more: Message | None = None, **options: Any) -> Rigged:
            assert rig is not None
            assert told is not None
            if options:
                pytest.skip(f"{', '.join(options)}: only a virtual table can be made so")
            leave_ready(rig, told["pack"])
            stack.callback(rig.restore)
            rig.configure(told, pack, more)
            stack.callback(leave_ready, rig, pack or told["pack"])
            return rig

        yield virtual if rig is None else real


def record_of(bench: Table | Rigged) -> Path | str:
    """Where a table's rounds are stored: a virtual one's beside it, a real one's where all of it is."""
    return bench.rig.record or default_place() if isinstance(bench, Rigged) else bench.folder.parent / "rounds.db"


def leave_ready(rig: Rigged, pack: str) -> None:
    """Put right what a test left on the bench, and the table between two rounds."""
    rig.undo()
    wait_for_table(rig.port)
    played = Played(rig, record_of(rig), pack)
    try:
        played.make_ready()
    finally:
        played.close()


@pytest.fixture
def open_table(board: MakeBench) -> Iterator[OpenTable]:
    """`open_table(pack=None, **options)`: a table and its host, under that rule pack or the target's usual one."""
    with ExitStack() as stack:

        def make(pack: str | None = None, **options: Any) -> Played:
            bench = board(pack, **options)
            played = Played(bench, record_of(bench), pack, tests.virtual.PATIENCE)
            stack.callback(played.close)
            if not played.is_virtual:
                played.make_ready()
            return played

        yield make


@pytest.fixture
def table(open_table: OpenTable) -> Played:
    """A table under the target's usual rules: New Jersey's, where it is virtual."""
    return open_table()
