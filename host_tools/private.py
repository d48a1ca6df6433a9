"""Files that only their owner may read, written all or nothing."""

from __future__ import annotations

import os
from pathlib import Path

MODE = 0o600
_OTHERS = 0o077


def write(path: Path, text: str, new: bool = False) -> None:
    """Put `text` in place of a file, readable by its owner only; with `new` only where none is.

    Raises OSError, FileExistsError among it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path if new else path.with_name(path.name + ".new")
    if not new:
        beside.unlink(missing_ok=True)
    # Never for a moment with other rights.
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if not new:
            os.replace(beside, path)
    except BaseException:
        # No half of it stays, which the next try would find there.
        beside.unlink(missing_ok=True)
        raise


def others_may_read(path: Path) -> bool:
    """Whether anybody but its owner has a right to a file. Windows has other means, and says nothing by the mode."""
    return os.name == "posix" and bool(path.stat().st_mode & _OTHERS)
