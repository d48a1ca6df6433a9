"""What a table is provisioned with: the board's data, the table's configuration and the firmware's build hash."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import dragoneye
from dragoneye.rules.packs import Pack
from host_tools import configuration

FIRMWARE = Path(dragoneye.__file__).parents[1]

# The demo's shorter waits: its dice come to rest within 400 ms like real ones, but nobody has to wait for the show.
QUICK = {
    "settings": {"settle_ms": 450, "lockout_ms": 500},
    "profile": {"jolt_ms": 120, "rest_ms": 60},
}
# For many rounds in a short time; the virtual table is told to let its dice settle in 10 ms.
INSTANT = {
    "settings": {"settle_ms": 15, "lockout_ms": 0},
    "profile": {"jolt_ms": 12, "rest_ms": 1, "ramp_ms": 0, "jitter_percent": 0},
}


def build_hash(folder: Path = FIRMWARE) -> str:
    """The first 16 hex digits of SHA-256 over the firmware's files: paths and contents, in order of path."""
    digest = hashlib.sha256()
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    for name in sorted(files):
        path = files[name]
        if path.suffix in (".py", ".json") and "__pycache__" not in path.parts:
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def write(folder: Path, board: str, pack: Pack, dice: list[list[str]], eye: int, **more: Any) -> None:
    """Write the files that a new table gets into `folder`.

    `dice` holds the tags' UIDs of three dice, by face 1 to 6; `eye` is the index of the dragon's eye die; `more` are
    further entries of a table's file (settings, profile, readers, watchdog_ms, ...; see host_tools.configuration).
    """
    data = {
        "format": configuration.FORMAT,
        "name": "virtual table",
        "board": board,
        "rules": {"pack": pack.name},
        "dice": {"eye": eye + 1, **{f"die{number}": faces for number, faces in enumerate(dice, 1)}},
        **more,
    }
    config, whole = configuration.check(data, board, held=pack)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in configuration.device_files(config, whole).items():
        (folder / name).write_bytes(content)
    (folder / "build.txt").write_text(build_hash() + "\n", encoding="utf-8")
