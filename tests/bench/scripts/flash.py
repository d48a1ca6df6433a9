"""An update of the firmware on a littlefs in memory, whose power fails at every program and erase, one after another.

    micropython flash.py JOB OUT

JOB is JSON: `image` (a file with the flash before it), `pieces` ([number of the step, what is run on the board] in
turn), `keep` (a folder), `every`. Writes one JSON object a line to OUT: for each failure what the next start would run,
and what is there. Of every `every`-th failure the image stays in `keep`. Nothing here says what is right;
tests/table/test_flash_cuts.py does.
"""

import gc
import io
import json
import os
import sys
from binascii import hexlify
from hashlib import sha256

import vfs

from boards.virtual import flash

ROOT_FILES = ("/boot.py", "/main.py")


class Flash(flash.FileFlash):
    """The Pico's flash in memory; without power it refuses everything."""

    def __init__(self, image):
        self.memory = io.BytesIO(image)
        super().__init__(self.memory, self._dies)
        self.kind = None

    def _dies(self, kind):
        self.refuses = True
        self.kind = kind

    def put(self, image):
        self.memory.seek(0)
        self.memory.write(image)
        self.refuses = False
        self.kind = None
        self.programs = self.erases = 0

    def image(self):
        self.memory.seek(0)
        return self.memory.read()


class Machine:
    """Where main.py imports `machine`: nothing of it is used here."""

    Pin = None


def mount(device):
    vfs.mount(vfs.VfsLfs2(device, progsize=256), "/")


def start(device):
    """What main.py, as it lies on the flash, would run now: [slot, tries left]; None when there is no main.py."""
    names = {"__name__": "main"}
    try:
        with open("/main.py") as file:
            source = file.read()
    except OSError:
        return None
    exec(source, names)
    if "choose_slot" not in names:
        # A firmware of before there were slots.
        return ["", None]
    return list(names["choose_slot"]())


def content(path):
    try:
        with open(path, "rb") as file:
            return hexlify(sha256(file.read()).digest()).decode()
    except OSError:
        return ""


def fingerprint(top):
    """One hash over the names and contents of a folder's files."""
    found = []

    def walk(folder):
        for entry in os.ilistdir(folder):
            path = folder + "/" + entry[0]
            if entry[1] & 0x4000:
                walk(path)
            else:
                found.append(path[len(top) + 1 :] + " " + content(path) + "\n")

    try:
        walk(top)
    except OSError:
        return ""
    found.sort()
    whole = sha256()
    for line in found:
        whole.update(line.encode())
    return hexlify(whole.digest()).decode()


def look(device):
    """What stands there after the power is back."""
    runs = start(device)
    row = {"runs": runs, "root": [content(path) for path in ROOT_FILES]}
    row["found"] = fingerprint("/" + runs[0] if runs and runs[0] else "/dragoneye")
    return row


def update(pieces, device):
    """Run the pieces until the power fails; the number of the step that it failed in, None when it did not."""
    names = {"start": lambda: start(device)}
    for number, source in pieces:
        try:
            exec(source, names)
        except OSError:
            if device.kind is None:
                raise
        if device.kind is not None:
            return number
    return None


def main():
    job_path, out_path = sys.argv[1:3]
    with open(job_path) as file:
        job = json.load(file)
    with open(job["image"], "rb") as file:
        base = file.read()
    sys.modules["machine"] = Machine
    # Loaded while the computer's files are there.
    import dragoneye.installed  # noqa: F401

    out = open(out_path, "w")  # noqa: SIM115 - until the end
    keep = job["keep"]
    posix = vfs.VfsPosix("/")
    vfs.umount("/")
    vfs.mount(posix, "/pc")
    device = Flash(base)
    mount(device)
    before = look(device)
    device.put(base)
    vfs.umount("/")
    mount(device)
    update(job["pieces"], device)
    operations = device.programs + device.erases
    after = look(device)
    out.write(json.dumps({"operations": operations, "before": before, "after": after}) + "\n")
    for at in range(1, operations + 1):
        for torn in (False, True):
            vfs.umount("/")
            device.put(base)
            mount(device)
            device.arm(at, torn)
            number = update(job["pieces"], device)
            row = {"at": at, "torn": torn, "kind": device.kind, "step": number}
            vfs.umount("/")
            device.refuses = False
            device.kind = None
            if keep and not torn and at % job["every"] == 0:
                with open("/pc" + keep + "/" + str(at) + ".img", "wb") as file:
                    file.write(device.image())
            mount(device)
            row.update(look(device))
            out.write(json.dumps(row) + "\n")
            gc.collect()
    out.close()


main()
