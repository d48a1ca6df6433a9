"""`python -m boards.virtual.image`: put an official RPI_PICO image where the emulator looks for it.

rp2040py downloads it from MicroPython's own site. Nothing else in this project downloads anything but packages.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from rp2040py.utils.firmware_retrieve import MICROPYTHON, retrieve

CACHE = Path.home() / ".cache/dragoneye/RPI_PICO.uf2"


def main() -> int:
    """Download the image; 0 when it is in place."""
    try:
        found = retrieve(MICROPYTHON)
    except OSError as error:
        print(f"image: the official image cannot be had: {error}", file=sys.stderr)
        return 2
    if found is None:
        print("image: the official image cannot be had; put an RPI_PICO .uf2 in $PICO_UF2", file=sys.stderr)
        return 2
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(found, CACHE)
    print(CACHE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
