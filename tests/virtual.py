"""A provisioned virtual table for tests: the real firmware, with waits so short that rounds are quick."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from boards.virtual.client import Table
from boards.virtual.model import default_tags
from boards.virtual.unix_port import NoMicroPython, find_micropython
from dragoneye.rules.packs import load
from host_tools import provision

LONG = 60.0
# How long `until` waits; a slower target sets it higher.
PATIENCE = LONG

# For little firmwares: a default board's readers.
READERS = """
from dragoneye.drivers.readers import Readers
readers = Readers(
    {"reader_cs": [5, 6, 7], "reader_reset": 8, "spi_sck": 2, "spi_mosi": 3, "spi_miso": 4},
    {"id": 0, "baudrate": 10000000},
    {},
)
"""
SETTLE_MS = 10


# What the host waits for, in its own seconds, of a board that is slower than its clock says.
WAITS = {
    "host_tools.link.GIVE_UP_S": 1.0,
    "host_tools.link.RETRY_S": 0.1,
    "host_tools.link.PROMPT_S": 0.1,
    "host_tools.board_files.COME_BACK_S": 1.0,
    "host_tools.board_files.ENTER_S": 0.1,
    "host_tools.board_files.SCRIPT_S": 1.0,
    "host_tools.flash_verify.SURVEY_S": 1.0,
    "host_tools.cli.service.SELFTEST_S": 1.0,
    "host_tools.cli.tables.VIRTUAL_S": 1.0,
}


def be_patient(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the host wait so long for an emulated Pico, which runs some 20 times slower than the wall clock when it is
    busy, and still slower on a busy computer."""
    for name, part in WAITS.items():
        monkeypatch.setattr(name, part * seconds)


def need_micropython() -> None:
    """Skip the test where the virtual table cannot run."""
    try:
        find_micropython()
    except NoMicroPython as error:
        pytest.skip(str(error))


@contextmanager
def instant_table(folder: Path, pack: str = "nj", seed: int = 7, more: Any = None, **options: Any) -> Iterator[Table]:
    """A running virtual table; `more` are further entries of its configuration, `options` those of `Table`."""
    need_micropython()
    configured = {**provision.INSTANT, **(more or {})}
    provision.write(folder / "provision", "rpi_pico", load(pack), default_tags(), 0, **configured)
    with Table(folder / "table", seed=seed, provision=folder / "provision", **options) as table:
        table.do("settle", ms=SETTLE_MS)
        yield table


def until(happened: Callable[[], Any], what: str) -> Any:
    """Wait until `happened()` is true; its value."""
    patience = PATIENCE
    end = time.monotonic() + patience
    while True:
        value = happened()
        if value:
            return value
        assert time.monotonic() < end, f"waited {patience:.0f} s for {what}"
        time.sleep(0.005)
