"""Files that a person names, read whole: a device or a pipe may have no end."""

from __future__ import annotations

import errno
from pathlib import Path

# What is read so has some kilobytes.
SIZE_MAX = 1_000_000


def read_bytes(path: Path) -> bytes:
    """What is in a file. Raises OSError, for one that is longer than SIZE_MAX as well."""
    with path.open("rb") as file:
        data = file.read(SIZE_MAX + 1)
    if len(data) > SIZE_MAX:
        raise OSError(errno.EFBIG, f"it is longer than {SIZE_MAX} bytes")
    return data


def read_text(path: Path, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The text in a file. Raises OSError as read_bytes does, and UnicodeDecodeError."""
    return read_bytes(path).decode(encoding, errors)
