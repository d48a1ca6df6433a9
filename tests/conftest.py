"""What the summary says besides: why tests on the emulated Pico were skipped, and what the power-cut tests counted.

A test adds a line with `record_property("counts", text)`.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is not a fault, and a commit that passed passes again: what is made up is the same in each run.
# `--hypothesis-profile default` makes up other input each time, and so does `make fuzz`.
settings.register_profile("table", deadline=None, derandomize=True)
settings.load_profile("table")

WHY = "no image for the emulated Pico: name an RPI_PICO .uf2 in $PICO_UF2"


def emulator_is_missing() -> str | None:
    """Why tests marked `emulator` cannot run here, or None."""
    if find_spec("rp2040py") is None:
        return "rp2040py is not installed"
    from boards.virtual.emulated import find_image

    image = find_image()
    if image is None:
        return WHY
    return None if image.is_file() else f"$PICO_UF2 names {image}, which is no file"


@pytest.fixture(autouse=True)
def no_keys_of_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test has the keys that it makes, in a file, never those of who runs it."""
    monkeypatch.setenv("DRAGONEYE_KEYS", str(Path(os.devnull).with_name("no-keys") / "keys.json"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = emulator_is_missing()
    if why:
        for item in items:
            if item.get_closest_marker("emulator"):
                item.add_marker(pytest.mark.skip(reason=f"emulator: {why}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "emulator: " in str(report.longrepr)]
    if skipped:
        why = str(skipped[0].longrepr).partition("emulator: ")[2].rstrip("')")
        terminalreporter.write_line(f"{len(skipped)} tests on the emulated Pico were skipped: {why}", yellow=True)
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", ()):
                if name == "counts" and report.when == "call":
                    terminalreporter.write_line(str(value))
