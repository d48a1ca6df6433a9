"""The firmware as it goes onto a board: modules compiled, data as they are, and a manifest. The same sources give the
same bytes, wherever they lie."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from boards import mpy
from dragoneye import __version__
from dragoneye.errors import BadInput
from host_tools.i18n import _
from host_tools.provision import FIRMWARE, build_hash

# These run before any slot is chosen, as they are.
ROOT_FILES = ("boot.py", "main.py")
MANIFEST = "manifest.json"
MANIFEST_FORMAT = 1


@dataclass(frozen=True)
class Build:
    """One build. `root` and `slot` hold the files' contents by name: those of the root, those of a slot's folder.

    `arch` is the number of the architecture that its native code is for, 0 where it has none.
    """

    name: str
    root: Mapping[str, bytes]
    slot: Mapping[str, bytes]
    sources: Mapping[str, bytes] = field(repr=False)
    arch: int = 0

    @property
    def manifest(self) -> bytes:
        """The slot's manifest: name, size and SHA-256 of each file."""
        files = [[name, len(data), hashlib.sha256(data).hexdigest()] for name, data in sorted(self.slot.items())]
        whole = {"format": MANIFEST_FORMAT, "fw": __version__, "build": self.name, "files": files}
        return json.dumps(whole, separators=(",", ":")).encode()


def make(march: str = "armv6m", folder: Path = FIRMWARE) -> Build:
    """Compile the firmware in `folder` for `march` (see boards.mpy.MARCH). Raises BadInput when it does not compile."""
    root, slot, sources = {}, {}, {}
    arch = 0
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.suffix not in (".py", ".json") or "__pycache__" in path.parts:
                continue
            sources[name] = path.read_bytes()
            if name in ROOT_FILES:
                root[name] = sources[name]
            elif path.suffix == ".json":
                slot[name] = sources[name]
            else:
                try:
                    compiled = mpy.compile_file(path, name, Path(scratch) / "one.mpy", march).read_bytes()
                except RuntimeError as error:
                    raise BadInput(str(error)) from None
                arch = arch or mpy.native_arch(compiled)
                slot[name[:-3] + ".mpy"] = compiled
    build = build_hash(folder)
    slot["build.txt"] = (build + "\n").encode()
    return Build(build, root, slot, sources, arch)


def missing(build: Build) -> str | None:
    """What a firmware without one of its first files lacks."""
    for name in (*ROOT_FILES, "dragoneye/app.py"):
        if name not in build.sources:
            return _("the firmware to copy has no {name}").format(name=name)
    return None
