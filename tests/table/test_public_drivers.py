"""Public MicroPython MFRC522 drivers, unmodified, on the chip model: an independent proof that it is one.

None is in this repository. $MFRC522_DRIVERS names a folder of them, one module a file, each with a class MFRC522: such
as mfrc522.py of github.com/danjperron/micropython-mfrc522, of wendlers/micropython-mfrc522, of vtt-info's.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from boards.virtual.client import Table
from tests.table.test_virtual_table import MakeReader, reader
from tests.virtual import need_micropython

FIXTURES = (reader,)
FOLDER = os.environ.get("MFRC522_DRIVERS")
DRIVERS = sorted(Path(FOLDER).glob("*.py")) if FOLDER else []
SHARED = Path(__file__).parents[1] / "bench" / "scripts" / "public_driver.py"

pytestmark = pytest.mark.skipif(
    not DRIVERS, reason="public drivers: $MFRC522_DRIVERS names no folder with MFRC522 drivers for MicroPython"
)

# A Pico's transaction takes these drivers 100 us; MicroPython on a PC is several times faster.
MAIN = """
import json, select, sys, time, public_driver
reader = public_driver.use("driver", 50)
asked = select.poll()
asked.register(sys.stdin, select.POLLIN)
while True:
    while not asked.poll(0):
        time.sleep_ms(1)
    sys.stdin.readline()
    print("look", json.dumps(reader.look()))
"""


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda path: path.stem)
def test_a_public_driver_reads_a_tag_and_sees_an_empty_field(driver: Path, tmp_path: Path, reader: MakeReader) -> None:
    need_micropython()
    firmware = tmp_path / "firmware"
    firmware.mkdir()
    (firmware / "boot.py").write_text("")
    (firmware / "main.py").write_text(MAIN)
    (firmware / "driver.py").write_bytes(driver.read_bytes())
    (firmware / "public_driver.py").write_bytes(SHARED.read_bytes())
    with Table(tmp_path / "table", firmware=firmware, seed=7) as table:
        for die in range(3):
            table.do("fault", name="missing", die=die, rolls=None)
        port = reader(table)

        def look() -> tuple[str | None, int, int]:
            port.write("look\r\n")
            answer: tuple[str | None, int, int] = tuple(json.loads(port.until("look").split(" ", 1)[1]))
            return answer

        uid, empty, _us = look()
        assert uid is None
        assert empty > 1000  # they poll to the end of a counter: the timer's interrupt is not looked at
        cascades = b"def SelectTagSN" in driver.read_bytes()  # the others stop after the first level
        for expected in ("01020304", "a1b2c3d4", *["04a1b2c3d4e5f6"][: int(cascades)]):
            table.do("fault", name="foreign", uid=expected, rolls=None)
            assert look()[0] is None  # its power has come just now
            uid, transactions, _us = look()
            assert uid == expected
            assert transactions < empty / 10
            table.do("clear", name="foreign")
