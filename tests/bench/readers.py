"""Reading dice on the emulated Pico, in emulated time, which repeats exactly: against the air's own time and others.

$MFRC522_DRIVERS may name a folder of public MicroPython MFRC522 drivers, one module a file, to compare with.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from boards.virtual import emulated
from boards.virtual.model import default_tags
from dragoneye.rules.packs import load
from host_tools import provision
from tests.bench import Row

SCRIPTS = Path(__file__).parent / "scripts"
# What a pass takes on the air alone (ISO/IEC 14443-3 at 106 kbit/s, the field's 5.1 ms guard included): three 7-byte
# tags on one reader, or one on each of three.
FLOOR_US = {1: 22_800, 3: 29_000}
# name -> (readers, dice that lie over them, layout)
FIELDS = {
    "empty": (1, 0, "shared"),
    "one tag": (1, 1, "shared"),
    "three tags": (1, 3, "shared"),
    "a tag a reader": (3, 3, "apart"),
}


def image(folder: Path, main: Path, config: dict[str, Any], more: dict[str, str | bytes | Path]) -> Path:
    """A flash image with the compiled firmware, a provisioned table, and `main` in the place of main.py."""
    scratch = folder / "compiled"
    scratch.mkdir()
    provision.write(folder / "provision", "rpi_pico", load("nj"), default_tags(), 0, **config)
    files: dict[str, str | bytes | Path] = {}
    files.update(emulated.files_of(provision.FIRMWARE, scratch))
    files.update(emulated.files_of(folder / "provision"))
    files["/main.py"] = main
    files.update(more)
    return emulated.image_of(folder, files)


def lay(pico: emulated.EmulatedPico, dice: int, layout: str) -> None:
    """That many dice lie over the readers, the others are away."""
    pico.do("clear")
    pico.do("layout", to=layout)
    for die in range(dice, 3):
        pico.do("fault", name="missing", die=die, rolls=None)


def scan_fields(driver: Path | None) -> dict[str, list[Any]]:
    """By name of a field what a read of it took and gave.

    Of ours [microseconds of a pass, tags, longest that another pass held the loop, microseconds of the first UID in a
    field that is on already], of others [microseconds of the first UID in a field that is on already, UID].
    """
    names = list(FIELDS) if driver is None else ["empty", "one tag", "three tags"]
    asked = {"ours": [[name, FIELDS[name][0]] for name in names], "theirs": [] if driver is None else names}
    more: dict[str, str | bytes | Path] = {"/fields.json": json.dumps(asked)}
    if driver is not None:
        more["/driver.py"] = driver
        more["/public_driver.py"] = SCRIPTS / "public_driver.py"
    found: dict[str, list[Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        flash = image(Path(folder), SCRIPTS / "scan_fields.py", {}, more)
        with emulated.EmulatedPico(flash) as pico:
            for name in names:
                said = f"field {name}\r\n".encode()
                pico.run_until(lambda said=said: said in pico.output, 3000)  # type: ignore[misc]
                lay(pico, *FIELDS[name][1:])
                del pico.output[: pico.output.index(said) + len(said)]
                pico.run_until(lambda: b"\n" in pico.output, 3000)
                found[name] = json.loads(pico.output.split(b"read ", 1)[1].splitlines()[0])
    return found


def rest_to_locked(readers: int) -> dict[str, Any]:
    """The marks of a roll with this many readers: see scripts/rest_to_locked.py."""
    config = {**provision.INSTANT, "readers": readers}
    with tempfile.TemporaryDirectory() as folder:
        flash = image(Path(folder), SCRIPTS / "rest_to_locked.py", config, {})
        with emulated.EmulatedPico(flash) as pico:
            pico.table.settle_ms = 10
            pico.do("layout", to=FIELDS["three tags" if readers == 1 else "a tag a reader"][2])
            pico.run_until(lambda: b"}\r\n" in pico.output.partition(b"MARKS ")[2], 5000)
            marks: dict[str, Any] = json.loads(pico.output.split(b"MARKS ", 1)[1].splitlines()[0])
            return marks


def verdicts(faults: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """What each of these faults (name, arguments) makes of a roll: the reason of the void one, or the table's state."""
    told = []
    with tempfile.TemporaryDirectory() as folder:
        flash = image(Path(folder), SCRIPTS / "verdicts.py", provision.INSTANT, {})
        with emulated.EmulatedPico(flash) as pico:
            pico.table.settle_ms = 10
            for name, args in faults:
                pico.run_until(lambda: b"shake\r\n" in pico.output, 5000)
                pico.do("clear")
                pico.do("fault", name=name, **args)
                pico.output.clear()
                pico.run_until(lambda: b"\r\n" in pico.output.partition(b"VERDICT ")[2], 3000)
                told.append(pico.output.partition(b"VERDICT ")[2].split()[0].decode())
                del pico.output[: pico.output.index(b"VERDICT ")]
    return told


def _ms(us: float) -> str:
    return f"{us / 1000:.1f} ms"


def run() -> Iterator[Row]:
    """Passes of ours, of others, and whole readings up to the locked record."""
    if emulated.find_image() is None:
        print("readers: no MicroPython image for the emulated Pico; `make image` gets one", file=sys.stderr)
        return
    ours = scan_fields(None)
    for name, readers in (("three tags", 1), ("a tag a reader", 3)):
        spent, tags = ours[name][:2]
        assert len(tags) == 3
        ratio = f"{spent / FLOOR_US[readers]:.2f} × the air's {_ms(FLOOR_US[readers])}"
        yield Row(f"one pass, {readers} reader{'s' * (readers > 1)}, three tags", _ms(spent), ratio, "under 2 ×")
    yield Row("one pass, one tag", _ms(ours["one tag"][0]))
    yield Row("one whole UID in a field that is on", _ms(ours["one tag"][3]))
    yield Row("no tag in a field that is on", _ms(ours["empty"][3]))
    yield Row("one pass, empty field: what an absent die costs", _ms(ours["empty"][0]), goal="under 10 ms")
    yield Row("a pass holds the loop at most", _ms(max(row[2] for row in ours.values())), goal="20 ms")
    for readers in (1, 3):
        marks = rest_to_locked(readers)
        passes = marks["passes"]
        read = marks["lock"][0] - marks["begin"]
        floor = 2 * FLOOR_US[readers]
        ratio = f"{read / floor:.2f} × the air's {_ms(floor)}"
        yield Row(f"settled → {len(passes)} agreeing passes, {readers} reader(s)", _ms(read), ratio, "under 2 ×")
        yield Row(
            f"settled → locked, {readers} reader(s)",
            _ms(marks["lock"][1] - marks["begin"]),
            f"flash {_ms(marks['lock'][1] - marks['lock'][0])}",
            "150 ms",
        )
    folder = os.environ.get("MFRC522_DRIVERS")
    if not folder:
        print("readers: $MFRC522_DRIVERS names no folder of public drivers to compare with", file=sys.stderr)
        return
    for driver in sorted(Path(folder).glob("*.py")):
        theirs = scan_fields(driver)
        for name, goal in (("one tag", "faster"), ("empty", "10 × cheaper")):
            spent, uid = theirs[name]
            ratio = f"{spent / ours[name][3]:.1f} × ours"
            yield Row(f"{driver.stem}: {name} ({uid or 'none'})", _ms(spent), ratio, goal)
        yield Row(f"{driver.stem}: three tags", str(theirs["three tags"][1]), goal="they can't")
