"""Flashing and verifying without a board: which port, which board, what to copy, the same bytes every time."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from boards import mpy
from boards.virtual.unix_port import find_micropython
from dragoneye import installed
from dragoneye.errors import BadInput
from host_tools import board_files, flash, flash_package, flash_verify, provision
from host_tools.flash_build import MANIFEST, Build, make
from host_tools.flash_plan import BLOCK, Board, Plan, Step, plan, told, with_manifest
from host_tools.flash_verify import ADDED, CHANGED, MISSING, SAME, SPARE, UNKNOWN
from host_tools.link import Refused
from tests.virtual import need_micropython


def port(device: str, serial: str | None, vid: int | None = flash.VENDOR) -> Any:
    return SimpleNamespace(device=device, serial_number=serial, vid=vid)


PICO, OTHER = port("/dev/ttyACM1", "E6614C311B4F8B2C"), port("/dev/ttyACM0", "E6614C311B123456")
FOREIGN = port("/dev/ttyUSB0", None, 0x0403)


def test_the_one_board_is_found() -> None:
    assert flash.find_port(None, [FOREIGN, PICO]) == "/dev/ttyACM1"


def test_two_boards_are_both_named() -> None:
    with pytest.raises(BadInput) as raised:
        flash.find_port(None, [PICO, FOREIGN, OTHER])
    assert str(raised.value) == (
        "more than one board is there: /dev/ttyACM0 (E6614C311B123456); /dev/ttyACM1 (E6614C311B4F8B2C); name one with "
        "--port"
    )


@pytest.mark.parametrize("there", [[], [FOREIGN]])
def test_no_board_tells_of_cables_that_only_charge(there: list[Any]) -> None:
    with pytest.raises(BadInput, match=r"no board is there: .* may only charge.*\.uf2"):
        flash.find_port(None, there)


def test_a_board_is_named_by_its_port_or_its_unique_id() -> None:
    assert flash.find_port("e6614c311b4f8b2c", [PICO, OTHER]) == "/dev/ttyACM1"
    assert flash.find_port("/dev/ttyS9", [PICO, OTHER]) == "/dev/ttyS9"


def facts(version: tuple[int, int, int] = (1, 28, 0), number: int = 0x1306, chip: str = "RP2040") -> flash.Facts:
    return flash.Facts(version, number, f"Raspberry Pi Pico with {chip}")


def test_a_board_that_fits() -> None:
    assert flash.check(facts(), None, "P") == "rpi_pico"
    assert flash.check(facts(chip="RP2350", number=0x1F06), "rpi_pico2", "P") == "rpi_pico2"
    assert flash.march_of(0x1306) == "armv6m"
    assert flash.march_of(0x1F06) == "armv7emsp"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (facts((1, 19, 1), 0x1206), "MicroPython 1.19.1, which takes .mpy 6.2; this firmware needs 1.24 or later"),
        (facts((1, 18, 0), 0x0005), "MicroPython 1.18.0, which takes .mpy 5.0"),
        # The version alone does not decide.
        (facts((1, 40, 0), 0x1007), "MicroPython 1.40.0, which takes .mpy 7.0"),
        (facts((1, 28, 0), 0x1106), "takes .mpy 6.1"),
    ],
)
def test_a_micropython_that_does_not_fit_is_named_with_mpy_cross(given: flash.Facts, said: str) -> None:
    with pytest.raises(BadInput) as raised:
        flash.check(given, None, "P")
    assert said in str(raised.value)
    cross, major, minor = mpy.cross_version()
    assert f"mpy-cross {cross} makes .mpy {major}.{minor}" in str(raised.value)


def test_another_board_is_refused() -> None:
    with pytest.raises(BadInput, match=r'P: this board is a "Raspberry Pi Pico with RP2040"; allowed: rpi_pico2'):
        flash.check(facts(), "rpi_pico2", "P")
    with pytest.raises(BadInput, match=r"with ESP32.*allowed: rpi_pico, rpi_pico2"):
        flash.check(facts(chip="ESP32"), None, "P")


def firmware(folder: Path) -> Path:
    shutil.copytree(provision.FIRMWARE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_the_same_sources_make_the_same_build_anywhere(tmp_path: Path) -> None:
    one = make(folder=firmware(tmp_path / "one"))
    two = make(folder=firmware(tmp_path / "another" / "place with a longer name"))
    assert one == two
    assert one == make()
    assert one.manifest == two.manifest
    assert one.name == provision.build_hash()
    assert str(tmp_path).encode() not in b"".join(one.slot.values())
    assert make("armv7emsp").name == one.name


def test_a_build_has_what_a_table_needs() -> None:
    build = make()
    assert sorted(build.root) == ["boot.py", "main.py"]
    assert {"build.txt", "dragoneye/app.mpy", "dragoneye/drivers/rpi_pico.json"} <= set(build.slot)
    assert not [name for name in build.slot if name.endswith(".py")]
    manifest = json.loads(build.manifest)
    assert manifest["build"] == build.name
    assert {name: (size, sha) for name, size, sha in manifest["files"]} == {
        name: told(data) for name, data in build.slot.items()
    }
    assert build.arch == 4


def test_sources_that_do_not_compile_are_named(tmp_path: Path) -> None:
    folder = firmware(tmp_path / "one")
    (folder / "dragoneye" / "text.py").write_text("def (:\n")
    with pytest.raises(BadInput, match=r"text\.py does not compile"):
        make(folder=folder)


OLD = Build("old", {"boot.py": b"b", "main.py": b"m"}, {"dragoneye/x.mpy": b"x", "dragoneye/gone/y.mpy": b"y"}, {})
NEW = Build("new", {"boot.py": b"b", "main.py": b"M"}, {"dragoneye/x.mpy": b"xx", "dragoneye/in/z.mpy": b"z"}, {})


def after(board: Board, steps: tuple[Step, ...]) -> Board:
    """What the steps make of a board; none may fail there."""
    files, folders, words = dict(board.files), set(board.folders), board.words
    content: dict[str, bytes] = {}
    for step in steps:
        parent = step.path.rpartition("/")[0]
        if step.what == "mkdir":
            assert step.path not in folders | set(files)
            assert parent in folders | {""}
            folders.add(step.path)
        elif step.what == "rmdir":
            assert not [one for one in [*files, *folders] if one.startswith(step.path + "/")]
            folders.remove(step.path)
        elif step.what == "remove":
            del files[step.path]
        elif step.what == "write":
            assert parent in folders | {""}
            files[step.path] = told(step.data)
            content[step.path] = step.data
        else:
            files[step.to] = files.pop(step.path)
            if step.to == "/slot":
                words = content[step.path].decode()
    del files["/slot"]
    whole = frozenset(slot for slot in ("a", "b") if any(Board(files).holds(slot, build) for build in (OLD, NEW)))
    return Board(files, frozenset(folders), words, whole)


def proved(board: Board) -> Board:
    return Board(board.files, board.folders, board.words.partition(" ")[0], board.whole)


def test_a_bare_board_gets_slot_a_then_b_then_a() -> None:
    board = Board({})
    board = after(board, plan(board, OLD).steps)
    assert (board.running, board.on_trial, board.words) == ("a", True, "a 3")
    board = proved(board)
    way = plan(board, NEW)
    assert way.slot == "b"
    board = proved(after(board, way.steps))
    assert board.running == "b"
    assert board.holds("a", OLD)
    assert board.holds("b", NEW)
    # The old one is still there: only its name has to be written, and main.py as it was.
    back = plan(board, OLD)
    assert (back.slot, [step.path for step in back.writes]) == ("a", ["/main.py.new", "/slot.new"])


def test_nothing_is_done_where_the_build_runs() -> None:
    board = Board({})
    board = proved(after(board, plan(board, NEW).steps))
    assert plan(board, NEW) == Plan("a", (), len(NEW.slot) + len(NEW.root))


def test_what_has_not_proved_itself_is_overwritten_not_what_has() -> None:
    board = Board({})
    board = proved(after(board, plan(board, OLD).steps))
    board = after(board, plan(board, NEW).steps)
    assert (board.running, board.on_trial) == ("b", True)
    again = plan(board, Build("third", NEW.root, {"dragoneye/x.mpy": b"3"}, {}))
    assert again.slot == "b"
    assert again.steps[0] == Step("remove", f"/b/{MANIFEST}")


def test_a_slot_whose_tries_are_used_up_does_not_run() -> None:
    board = Board({}, words="b 0", whole=frozenset("ab"))
    assert board.running == "a"
    assert Board({}, words="b 2", whole=frozenset("a")).running == "a"
    assert Board({}, words="b", whole=frozenset()).running == ""


def test_a_firmware_copied_by_hand_goes_when_a_slot_has_proved_itself() -> None:
    files = {"/dragoneye/x.py": (1, ""), "/build.txt": (1, ""), "/config.json": (1, "")}
    board = Board(files, frozenset({"/dragoneye"}))
    first = plan(board, OLD)
    assert not [step for step in first.steps if step.path.startswith("/dragoneye")]
    board = proved(after(board, first.steps))
    board = after(board, plan(board, NEW).steps)
    assert "/dragoneye/x.py" not in board.files
    assert "/dragoneye" not in board.folders
    assert "/config.json" in board.files


def test_the_old_one_is_not_touched_before_the_last_step() -> None:
    board = Board({})
    board = proved(after(board, plan(board, OLD).steps))
    way = plan(board, NEW)
    assert way.steps[-1] == Step("rename", "/slot.new", to="/slot")
    assert not [step for step in way.steps if step.path.startswith("/a/")]
    # Nothing is written over: what is not in the slot comes beside the old one, then takes its place.
    assert not [step for step in way.writes if step.path in board.files]


def test_room_is_reckoned_in_blocks() -> None:
    way = Plan("a", (Step("write", "/a/x", b"x" * (BLOCK + 1)), Step("remove", "/a/y")), 0)
    assert way.blocks(Board({"/a/y": (1, "")})) == 2 * BLOCK - BLOCK + 8 * BLOCK
    assert Plan("a", (), 0).blocks(Board({})) == 0


# --- verifying -------------------------------------------------------------------------------------------------------


def surveyed(folder: Path, seed: str = "0123456789abcdef", root: str = "/a/") -> flash_verify.Survey:
    """As the table answers for the files in a folder."""
    survey = installed.Survey(seed, f"{folder}/")
    steps = 0
    while survey.running:
        survey.step()
        steps += 1
    assert survey.why is None
    rows: list[Any] = []
    while len(rows) < survey.answer(0)["files"]:
        rows += survey.answer(len(rows))["rows"]
    assert steps > len(rows)
    return flash_verify.Survey(seed, root, 0x1306, len(rows), survey.answer(0)["hash"], [tuple(row) for row in rows])


def lay(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


CONFIG = {"config.json": b"{}", "board.json": b"{}"}


def test_a_table_as_it_was_flashed_is_the_same(tmp_path: Path) -> None:
    files = flash_verify.expected(NEW, "/a/", CONFIG)
    lay(tmp_path, {**files, "/slot": b"a 2", "/journal/1.seg": b"records", "/maintenance": b""})
    survey = surveyed(tmp_path)
    assert flash_verify.is_expected(survey, files)
    assert survey.total == flash_verify.total_of(survey.seed, survey.rows)
    assert {verdict for _path, verdict in flash_verify.compare(survey, NEW, CONFIG)} == {SAME}
    assert surveyed(tmp_path, "another seed 1234").rows != survey.rows


def test_everything_that_differs_is_named(tmp_path: Path) -> None:
    big = Build("big", NEW.root, {**NEW.slot, "dragoneye/big.mpy": bytes(5000)}, {})
    files = flash_verify.expected(big, "/a/", {})
    lay(tmp_path, files)
    lay(tmp_path, {"a/dragoneye/big.mpy": bytes(4999) + b"x", "main.py": b"m"})
    (tmp_path / "a/dragoneye/x.mpy").unlink()
    added = {"lib/json.py": b"", "a/dragoneye/x.py": b"", "journal/evil.mpy": b"", "a/data.json": b""}
    lay(
        tmp_path,
        {**added, "config.json": b"{}", "notes.txt": b"", "b/dragoneye/x.mpy": b"x", "b/dragoneye/in/z.mpy": b"z"},
    )
    survey = surveyed(tmp_path)
    assert not flash_verify.is_expected(survey, files)
    verdicts = dict(flash_verify.compare(survey, big, {}))
    assert verdicts.pop("/a/dragoneye/big.mpy") == CHANGED
    assert verdicts.pop("/main.py") == CHANGED
    assert {path for path, verdict in verdicts.items() if verdict == ADDED} == {"/" + name for name in added}
    assert verdicts["/config.json"] == verdicts["/notes.txt"] == UNKNOWN
    assert (verdicts["/b/dragoneye/x.mpy"], verdicts["/b/dragoneye/in/z.mpy"]) == (SPARE, SAME)
    assert verdicts["/boot.py"] == SAME
    assert verdicts["/a/dragoneye/x.mpy"] == MISSING


def test_the_other_slot_must_be_what_its_manifest_says(tmp_path: Path) -> None:
    files = {**flash_verify.expected(NEW, "/a/", {}), **flash_verify.expected(NEW, "/b/", {})}
    lay(tmp_path, {**files, "b/dragoneye/x.mpy": b"x", "b/evil.mpy": b""})
    verdicts = dict(flash_verify.compare(surveyed(tmp_path), NEW, {}))
    differ = {path: verdict for path, verdict in verdicts.items() if verdict != SAME}
    assert differ == {"/b/dragoneye/x.mpy": CHANGED, "/b/evil.mpy": ADDED}


def test_a_configuration_that_is_another_is_named(tmp_path: Path) -> None:
    lay(tmp_path, flash_verify.expected(NEW, "/a/", CONFIG))
    changed = {**CONFIG, "config.json": b"[]"}
    verdicts = dict(flash_verify.compare(surveyed(tmp_path), NEW, changed))
    assert [path for path, verdict in verdicts.items() if verdict != SAME] == ["/config.json"]


def test_a_firmware_copied_by_hand_as_sources_is_the_same(tmp_path: Path) -> None:
    build = make()
    lay(tmp_path, dict(build.sources))
    verdicts = flash_verify.compare(surveyed(tmp_path, root="/"), build, {})
    assert {verdict for _path, verdict in verdicts} == {SAME}


def test_too_many_files_end_a_survey(tmp_path: Path) -> None:
    lay(tmp_path, {f"f{number}": b"" for number in range(installed.FILES_MAX + 1)})
    survey = installed.Survey("0123456789abcdef", f"{tmp_path}/")
    while survey.running:
        survey.step()
    told_of = survey.answer(0)
    assert (told_of["running"], told_of["why"]) == (False, "cannot be read: there are more than 250 files")
    assert "rows" not in told_of


@pytest.mark.parametrize(
    ("file", "root"),
    [
        ("/a/dragoneye/installed.mpy", "/a/"),
        ("dragoneye/installed.mpy", "/"),
        ("/lib/dragoneye/installed.py", "/lib/"),
        ("/dragoneye/installed.py", "/"),
    ],
)
def test_the_folder_that_the_firmware_runs_from(file: str, root: str) -> None:
    assert installed.root_of(file) == root


def test_a_trial_ends_when_the_firmware_proves_itself(tmp_path: Path) -> None:
    slot = tmp_path / "slot"
    assert not installed.on_trial("/b/", str(slot))
    slot.write_text("b 2")
    assert installed.on_trial("/b/", str(slot))
    assert not installed.on_trial("/a/", str(slot))
    installed.prove("/b/", str(slot))
    assert slot.read_text() == "b"
    assert not installed.on_trial("/b/", str(slot))


def test_the_manifest_is_the_last_of_a_slot() -> None:
    assert list(with_manifest(NEW))[-1] == MANIFEST


# --- other ways onto a board -----------------------------------------------------------------------------------------


def test_package_json_is_up_to_date() -> None:
    assert flash_package.PACKAGE.read_text(encoding="utf-8") == flash_package.text(), (
        "run: python -m host_tools.flash_package"
    )
    urls = json.loads(flash_package.text())["urls"]
    assert {target for target, _source in urls} == set(make().sources)
    assert all((flash_package.PACKAGE.parent / source).is_file() for _target, source in urls)
    assert urls[-1][0] == "main.py"


def test_a_frozen_firmware_needs_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the freeze manifest names, without any JSON, as modules alone."""
    top = flash_package.PACKAGE.parent
    monkeypatch.chdir(top)
    included: list[str] = []

    def package(name: str, files: Any = None, base_path: str = ".") -> None:
        for path in sorted((Path(base_path) / name).rglob("*.py")):
            inside = path.relative_to(Path(base_path) / name)
            if files is None or str(inside) in files:
                lay(tmp_path, {f"{name}/{inside}": path.read_bytes()})

    def module(name: str, base_path: str = ".") -> None:
        lay(tmp_path, {name: (Path(base_path) / name).read_bytes()})

    names = {"include": included.append, "package": package, "module": module}
    exec(compile((top / "manifest.py").read_text(), "manifest.py", "exec"), names)
    assert included == ["$(PORT_DIR)/boards/manifest.py"]
    assert (tmp_path / "main.py").is_file()
    assert not list(tmp_path.rglob("*.json"))
    need_micropython()
    script = (
        "from dragoneye.rules import packs; from dragoneye import config; import dragoneye\n"
        "print([packs.load(name).name for name in packs.NAMES], config.read_board('/none')[0]['name'])\n"
        "try:\n    packs.load('/none/own.json')\nexcept ValueError as error:\n    print(error)\n"
    )
    command = [*find_micropython(), "-c", script]
    # As in a frozen image, whose modules have paths that begin with their package's name.
    done = subprocess.run(command, cwd=tmp_path, env={"MICROPYPATH": ""}, capture_output=True, text=True)
    assert done.stdout == ("['nj', 'pr', 'ca'] rpi_pico\nrule pack /none/own.json: the file cannot be read\n"), (
        done.stderr
    )


def test_a_table_that_refuses_to_stop_is_not_made_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that is locked, or whose key is not held: by insisting it would lose what it guards."""

    def refuse(port: str) -> None:
        raise Refused("maintenance", "E_AUTH", "the table has keys", "IDLE")

    monkeypatch.setattr(board_files, "stop_table", refuse)
    monkeypatch.setattr(board_files, "wait_for_port", lambda port, seconds=None: None)
    monkeypatch.setattr(board_files, "RawPrompt", lambda *arguments, **more: pytest.fail("its program is stopped"))
    for insist in (True, False):
        with pytest.raises(Refused, match="maintenance: the table has keys"):
            board_files.BoardFiles("P", insist)
