"""The power fails at every program and erase of an update: the old firmware runs or the new one, never a half."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from boards.virtual import flash
from boards.virtual.unix_port import REPO, find_micropython
from host_tools import provision
from host_tools.flash import LIST, script_of
from host_tools.flash_build import MANIFEST, Build, make
from host_tools.flash_plan import Board, Plan, Step, plan
from tests.virtual import need_micropython

Json = dict[str, Any]
SCRIPT = Path(__file__).parents[1] / "bench" / "scripts" / "flash.py"
PATH = os.pathsep.join((".frozen", str(REPO / "firmware"), str(REPO)))

# On a flash image, as on a board.
_AT = """
import io, json, os, sys, vfs
from boards.virtual import flash
image, job = sys.argv[1:]
with open(job) as file:
    pieces, listing = json.load(file)
device = flash.FileFlash(open(image, "r+b"))
vfs.umount("/")
try:
    root = vfs.VfsLfs2(device, progsize=256)
except OSError:
    vfs.VfsLfs2.mkfs(device, progsize=256)
    root = vfs.VfsLfs2(device, progsize=256)
vfs.mount(root, "/")
names = {}
for piece in pieces:
    exec(piece, names)
exec(listing, {})
"""


def on_image(image: Path, steps: tuple[Step, ...] = ()) -> Board:
    """Do the steps on a flash image (a new one if need be) as the host has a board do them; what is there then."""
    if not image.exists():
        image.write_bytes(b"\xff" * flash.BLOCK * flash.BLOCKS)
    script, job = image.with_suffix(".at.py"), image.with_suffix(".job")
    script.write_text(_AT)
    job.write_text(json.dumps([[piece for step in steps for piece in script_of(step)], LIST]))
    command = [*find_micropython(), "-X", "heapsize=64m", str(script), str(image), str(job)]
    done = subprocess.run(command, env={**os.environ, "MICROPYPATH": PATH}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    files = {row[0]: (row[1], row[2]) for row in told if isinstance(row, list) and len(row) == 3}
    folders = frozenset(row[0] for row in told if isinstance(row, list) and len(row) == 1)
    return Board(files, folders, told[-1]["words"], frozenset(told[-1]["whole"]))


def fingerprint(files: Mapping[str, bytes]) -> str:
    """As the script makes it of a folder."""
    lines = sorted(f"{name} {hashlib.sha256(data).hexdigest()}\n" for name, data in files.items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def of(build: Build) -> str:
    return fingerprint({**build.slot, MANIFEST: build.manifest})


def copied_by_hand(build: Build) -> str:
    """The same firmware in the root."""
    top = "dragoneye/"
    return fingerprint({name[len(top) :]: data for name, data in build.slot.items() if name.startswith(top)})


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Build]:
    """This firmware as the old one, and a new one: a module changed, one more, one less, another main.py."""
    folder = tmp_path_factory.mktemp("new") / "firmware"
    shutil.copytree(provision.FIRMWARE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "dragoneye" / "errors.py").open("a") as file:
        file.write("NEW = 1\n")
    (folder / "dragoneye" / "more").mkdir()
    (folder / "dragoneye" / "more" / "extra.py").write_text("x = 1\n")
    (folder / "dragoneye" / "drivers" / "buzzer.py").unlink()
    with (folder / "main.py").open("a") as file:
        file.write("# new\n")
    return make(), make(folder=folder)


def as_root(build: Build) -> tuple[Step, ...]:
    """A firmware copied to the root by hand."""
    folders = sorted({parent.as_posix() for name in build.slot for parent in Path("/" + name).parents} - {"/"})
    files = {**build.root, **build.slot}
    return tuple(Step("mkdir", path) for path in folders) + tuple(Step("write", "/" + n, d) for n, d in files.items())


PROVED = (Step("write", "/slot", b"a"),)
# What the table itself does after the update: four starts, or one and its proof.
FAILING = [[99, "start()"]] * 5
PROVING = [[99, "start()"], [99, "from dragoneye import installed\ninstalled.prove('/{slot}/', '/slot')"]]


class Cut:
    """One run of the script: the update `way` on `image`, and what the table does after it."""

    def __init__(self, folder: Path, image: Path, way: Plan, then: list[list[Any]], every: int = 0) -> None:
        need_micropython()
        self.keep = folder / "keep"
        self.keep.mkdir()
        pieces = [[number, piece] for number, step in enumerate(way.steps) for piece in script_of(step)]
        pieces += [[number, piece.format(slot=way.slot)] for number, piece in then]
        job, out = folder / "job.json", folder / "rows"
        job.write_text(
            json.dumps({"image": str(image), "pieces": pieces, "keep": str(self.keep), "every": every or 1_000_000})
        )
        command = [*find_micropython(), "-X", "heapsize=64m", str(SCRIPT), str(job), str(out)]
        done = subprocess.run(command, env={**os.environ, "MICROPYPATH": PATH}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        self.first, *self.rows = map(json.loads, out.read_text().splitlines())
        # The step that makes the new firmware the one to be run.
        self.last = len(way.steps) - 1


def judge(cut: Cut, old: Collection[str], new: str, roots: list[list[str]]) -> Counter[str]:
    """Each failure leaves an old or the new firmware, whole; before the last step the old one. How many of each.

    Where it takes the place of one on trial, /slot names it already: it runs from its manifest's rename on.
    """
    last = cut.last if len(old) == 1 else cut.last - 2
    ends: Counter[str] = Counter()
    for row in cut.rows:
        assert row["found"] in {*old, new}, row
        if row["step"] is None or row["step"] < last:
            assert row["found"] in old, row
        for number, hashes in enumerate(zip(*roots, strict=True)):
            assert row["root"][number] in hashes, row
        ends["new" if row["found"] == new else "old"] += 1
    assert ends.total() == 2 * cut.first["operations"] > 30
    return ends


def roots(*builds: Build) -> list[list[str]]:
    return [[hashlib.sha256(data).hexdigest() for _name, data in sorted(build.root.items())] for build in builds]


def test_an_update_that_is_cut_anywhere_leaves_the_old_or_the_new_firmware(
    tmp_path: Path, builds: tuple[Build, Build], record_property: Callable[[str, object], None]
) -> None:
    """From slot a to b; the new firmware proves itself."""
    old, new = builds
    image = tmp_path / "base.img"
    on_image(image, plan(on_image(image), old).steps)
    on_image(image, PROVED)
    way = plan(on_image(image), new)
    assert (way.slot, way.unchanged) == ("b", 1)
    cut = Cut(tmp_path, image, way, PROVING, every=50)
    assert cut.first["before"]["runs"] == ["a", None]
    assert cut.first["after"]["runs"] == ["b", None]
    ends = judge(cut, [of(old)], of(new), roots(old, new))
    assert min(ends["old"], ends["new"]) > 5
    # The next try finishes what the power broke off.
    kept = sorted(cut.keep.glob("*.img"))
    assert len(kept) >= 3
    for one in kept:
        board = on_image(one)
        board = on_image(one, plan(board, new).steps)
        assert board.running == plan(board, new).slot
        assert board.holds(board.running, new)
    said = f"update cut at each of {cut.first['operations']} programs and erases, clean and torn"
    record_property("counts", f"{said}: {ends['old']} old, {ends['new']} new, 0 half; {len(kept)} finished after it")


def test_a_new_firmware_that_does_not_prove_itself_gives_way_wherever_the_power_fails(
    tmp_path: Path, builds: tuple[Build, Build], record_property: Callable[[str, object], None]
) -> None:
    old, new = builds
    image = tmp_path / "base.img"
    on_image(image, plan(on_image(image), old).steps)
    on_image(image, PROVED)
    on_image(image, plan(on_image(image), new).steps)
    # All is there; only the name is missing.
    on_image(image, PROVED)
    way = plan(on_image(image), new)
    assert [step.what for step in way.steps] == ["write", "rename"]
    cut = Cut(tmp_path, image, way, FAILING)
    assert cut.first["after"]["runs"] == ["a", None]
    ends = judge(cut, [of(old)], of(new), roots(new))
    assert min(ends["old"], ends["new"]) > 2
    record_property("counts", f"trial cut at each of {cut.first['operations']}: {ends['old']} old, {ends['new']} new")


@pytest.mark.slow
@pytest.mark.parametrize("begin", ["bare", "root", "trial"])
def test_a_whole_firmware_that_is_cut_anywhere(
    tmp_path: Path, builds: tuple[Build, Build], begin: str, record_property: Callable[[str, object], None]
) -> None:
    """On a bare board, one with a firmware copied by hand, and one whose firmware has not proved itself."""
    old, new = builds
    image = tmp_path / "base.img"
    board = on_image(image)
    before, known = [""], [["", ""], *roots(new)]
    if begin == "root":
        on_image(image, as_root(old))
        before, known = [copied_by_hand(old)], roots(old, new)
    elif begin == "trial":
        third = make(folder=changed(tmp_path))
        on_image(image, plan(board, old).steps)
        on_image(image, PROVED)
        on_image(image, plan(on_image(image), third).steps)
        # Until its manifest goes, the one on trial is run; then the one before it.
        before, known = [of(third), of(old)], roots(third, new)
    way = plan(on_image(image), new)
    assert way.slot == ("b" if begin == "trial" else "a")
    cut = Cut(tmp_path, image, way, PROVING)
    ends = judge(cut, before, of(new), known)
    assert {row["found"] for row in cut.rows} == {*before, of(new)}
    said = f"from {begin}, cut at each of {cut.first['operations']} programs and erases, clean and torn"
    record_property("counts", f"{said}: {ends['old']} old, {ends['new']} new, 0 half")


def changed(folder: Path) -> Path:
    """A third firmware."""
    made = folder / "third"
    shutil.copytree(provision.FIRMWARE, made, ignore=shutil.ignore_patterns("__pycache__"))
    with (made / "dragoneye" / "round.py").open("a") as file:
        file.write("THIRD = 1\n")
    return made
