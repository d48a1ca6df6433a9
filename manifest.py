"""For who builds a MicroPython image of their own with this firmware in it; the image needs no other files.

    make -C ports/rp2 BOARD=RPI_PICO FROZEN_MANIFEST=/path/to/manifest.py

Flashed onto it with `tablectl flash`, a firmware in a slot goes before the frozen one, which stays the last resort.
"""

# `include`, `package` and `module` are what MicroPython's tools/makemanifest.py has such a file find; paths are
# relative to this one, and PORT_DIR is the port's folder. JSON cannot be frozen: it becomes a module.
import os as _os
import tempfile as _tempfile

_top = _os.path.join(_os.getcwd(), "firmware")
_made = _tempfile.mkdtemp()
_os.mkdir(_os.path.join(_made, "dragoneye"))
_data = {}
for _folder, _folders, _names in _os.walk(_os.path.join(_top, "dragoneye")):
    for _name in _names:
        if _name.endswith(".json"):
            _path = _os.path.join(_folder, _name)
            with open(_path, encoding="utf-8") as _file:
                _data[_os.path.relpath(_path, _top).replace(_os.sep, "/")] = _file.read()
with open(_os.path.join(_made, "dragoneye", "frozen_data.py"), "w", encoding="utf-8") as _file:
    _file.write(f"FILES = {dict(sorted(_data.items()))!r}\n")

include("$(PORT_DIR)/boards/manifest.py")  # noqa: F821
package("dragoneye", base_path="firmware")  # noqa: F821
package("dragoneye", files=("frozen_data.py",), base_path=_made)  # noqa: F821
module("boot.py", base_path="firmware")  # noqa: F821
module("main.py", base_path="firmware")  # noqa: F821
