"""What a table is provisioned with: the board's data, the table's configuration and the firmware's build hash."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import dragoneye
from dragoneye.config import CONFIG_FORMAT
from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack
from dragoneye.text import show
from host_tools.i18n import _

FIRMWARE = Path(dragoneye.__file__).parents[1]
BOARDS = FIRMWARE.parent / "boards"

# The demo's shorter waits: its dice come to rest within 400 ms like real ones, but nobody has to wait for the show.
QUICK = {
    "settings": {"settle_ms": 450, "lockout_ms": 500},
    "profile": {"jolt_ms": 120, "rest_ms": 60, "duty_percent": 80},
}
# For many rounds in a short time; the virtual table is told to let its dice settle in 10 ms.
INSTANT = {
    "settings": {"settle_ms": 15, "lockout_ms": 0},
    "profile": {"jolt_ms": 12, "rest_ms": 1, "duty_percent": 80},
}


def boards() -> list[str]:
    """The names of the boards whose data is in the repository."""
    return sorted(path.parent.name for path in BOARDS.glob("*/board.json"))


def board_data(name: str) -> dict[str, Any]:
    """The data of a board, with what its base says filled in. Raises BadInput naming the boards that there are."""
    if name not in boards():
        raise BadInput(
            _("there is no board {name}; there are {names}").format(name=show(name), names=", ".join(boards()))
        )
    data: dict[str, Any] = json.loads((BOARDS / name / "board.json").read_text(encoding="utf-8"))
    base = data.pop("base", None)
    return {**board_data(base), **data} if base else data


def build_hash(folder: Path = FIRMWARE) -> str:
    """The first 16 hex digits of SHA-256 over the firmware's files: paths and contents, in order of path."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".json") and "__pycache__" not in path.parts:
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def write(folder: Path, board: str, pack: Pack, dice: list[list[str]], eye: int, **more: Any) -> None:
    """Write the files that a new table gets into `folder`.

    `dice` holds the tags' UIDs of three dice, by face 1 to 6; `eye` is the index of the dragon's eye die; `more` are
    further entries of the configuration (settings, profile, reader, watchdog_ms).
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = {"format": CONFIG_FORMAT, "pack": pack.as_dict(), "dice": dice, "eye": eye, **more}
    (folder / "board.json").write_text(json.dumps(board_data(board)), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "build.txt").write_text(build_hash() + "\n", encoding="utf-8")
