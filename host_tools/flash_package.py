"""The package for `mpremote mip install`; `python -m host_tools.flash_package` brings package.json up to date."""

from __future__ import annotations

import json
from pathlib import Path

from dragoneye import __version__
from host_tools.provision import FIRMWARE

PACKAGE = FIRMWARE.parent / "package.json"


def text() -> str:
    """What package.json has to be: each of the firmware's files by its place on the board and here.

    main.py is the last: before it is there, nothing starts.
    """
    paths = [
        path.relative_to(FIRMWARE).as_posix()
        for path in FIRMWARE.rglob("*")
        if path.suffix in (".py", ".json") and "__pycache__" not in path.parts
    ]
    paths.sort(key=lambda path: (path == "main.py", path))
    urls = [[path, f"firmware/{path}"] for path in paths]
    return json.dumps({"version": __version__, "urls": urls}, indent=2) + "\n"


def main(place: Path = PACKAGE) -> None:
    """Write it."""
    place.write_text(text(), encoding="utf-8")
    print(place)


if __name__ == "__main__":
    main()
