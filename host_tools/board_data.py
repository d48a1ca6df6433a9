"""The data under boards/: pins and parts of each board, its chip, its header, and the reference design's parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boards as boards_package
from dragoneye.errors import BadInput
from dragoneye.text import show
from host_tools.i18n import _

BOARDS = Path(boards_package.__file__).parent


def boards() -> list[str]:
    """The names of the boards whose data is in the repository."""
    return sorted(path.parent.name for path in BOARDS.glob("*/board.json"))


def _read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


def _own_data(name: str) -> dict[str, Any]:
    if name not in boards():
        raise BadInput(
            _("there is no board {name}; there are {names}").format(name=show(name), names=", ".join(boards()))
        )
    return _read(BOARDS / name / "board.json")


def board_data(name: str) -> dict[str, Any]:
    """The data of a board, with what its base says filled in. Raises BadInput naming the boards that there are."""
    data = _own_data(name)
    base = data.pop("base", None)
    return {**board_data(base), **data} if base else data


def header_data(name: str) -> dict[str, Any]:
    """What is at the pins of a board's header, from the USB socket down (`left`, `right`), and its `internal` GPIOs."""
    path = BOARDS / name / "header.json"
    return _read(path) if path.exists() else header_data(_own_data(name)["base"])


def chip_data(name: str) -> dict[str, Any]:
    """What a chip can do at which GPIO: `adc` (GPIO: channel), `spi` (id: signal: GPIOs), `pwm_slices`, `pulls`."""
    return _read(BOARDS / "chips" / f"{name.lower()}.json")


def parts_data() -> dict[str, Any]:
    """The reference design: `roles` of pins, `parts`, the `power` paths and the `bill` of materials."""
    return _read(BOARDS / "parts.json")
