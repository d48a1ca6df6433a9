"""What rounds cost the flash: programs, erases of each block, and how long a Pico's lasts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from boards.virtual import emulated
from tests import power
from tests.bench import Row

ROUNDS = 3000
# Winbond W25Q16JV, data sheet revision H, section 1: "min. 100K program-erase cycles per sector".
CYCLES = 100_000
ROUNDS_A_DAY = 480


def run() -> Iterator[Row]:
    """Rounds with three wagers, no void roll, and a host that takes every record."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = power.configure(folder / "provision")
        image = emulated.firmware_image(folder, provision=folder / "provision")
        (row,) = power.run(config, folder / "rows", "wear", image, ROUNDS)
    erases = row["erases"]
    most, total = max(erases), sum(erases)
    worn = [count for count in erases if count]
    yield Row("records a round", f"{row['records'] / ROUNDS:.1f}")
    yield Row("programs of 256 bytes a round", f"{row['programs'] / ROUNDS:.1f}")
    yield Row("erases of 4 KB a round", f"{total / ROUNDS:.1f}", f"{total / row['records']:.2f} a record")
    yield Row("blocks that were erased", f"{len(worn)} of {len(erases)}", f"{row['free']} free at the end")
    yield Row(
        f"erases of the most worn block in {ROUNDS:,} rounds", str(most), f"{most * len(worn) / total:.2f} × mean"
    )
    lasts = CYCLES * ROUNDS // most
    yield Row(f"rounds until a block has {CYCLES:,} erases", f"{lasts:,}")
    yield Row(f"at {ROUNDS_A_DAY} rounds a day, day and night", f"{lasts / ROUNDS_A_DAY / 365:.0f} years")
