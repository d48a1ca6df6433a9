"""`tablectl flash` and `verify` on a table: whatever runs there, whatever fails, it plays afterwards."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from boards.virtual.client import Table
from boards.virtual.model import default_tags
from boards.virtual.unix_port import find_micropython
from dragoneye.rules.packs import load
from host_tools import board_files, flash, flash_package, link, provision
from host_tools.board_data import BOARDS
from host_tools.board_files import BoardFiles, greet
from host_tools.flash_build import Build, make
from host_tools.flash_plan import Board, Step, plan
from host_tools.link import LinkError
from tests.table.played import Played, Tap
from tests.table.test_flash_cuts import PROVED, on_image
from tests.unit.conftest import Tablectl
from tests.unit.conftest import tablectl as tablectl  # a fixture
from tests.virtual import LONG, SETTLE_MS, need_micropython, until

BOOT = (provision.FIRMWARE / "boot.py").read_text()


@contextmanager
def bare_table(folder: Path, files: dict[str, str] | None = None, **options: Any) -> Iterator[Table]:
    """A board with MicroPython and nothing on its flash but these files, and a table's configuration."""
    need_micropython()
    (folder / "nothing").mkdir(exist_ok=True)
    configured = folder / "provision"
    provision.write(configured, "rpi_pico", load("nj"), default_tags(), 0, **provision.INSTANT)
    (configured / "build.txt").unlink()
    for name, text in (files or {}).items():
        (configured / name).parent.mkdir(parents=True, exist_ok=True)
        (configured / name).write_text(text)
    options.setdefault("seed", 7)
    with Table(folder / "table", firmware=folder / "nothing", provision=configured, **options) as table:
        table.do("settle", ms=SETTLE_MS)
        yield table


@pytest.fixture(scope="module")
def flashed_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The flash of a board onto which this firmware was copied, and which has proved itself."""
    need_micropython()
    image = tmp_path_factory.mktemp("image") / "flash.img"
    # The virtual table's processor is this computer's, which counts where there is native code.
    command = [*find_micropython(), "-c", "import sys; print(sys.implementation._mpy)"]
    number = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    on_image(image, plan(on_image(image), make(flash.march_of(number))).steps)
    on_image(image, PROVED)
    return image


@pytest.fixture
def ready(tmp_path: Path, flashed_image: Path) -> Iterator[Table]:
    """A running table with this firmware in slot a."""
    (tmp_path / "table").mkdir()
    shutil.copy(flashed_image, tmp_path / "table" / "flash.img")
    with bare_table(tmp_path) as table:
        yield table


OLD = provision.build_hash()
# As long as a firmware runs before it has proved itself; app.py needs a board to be imported.
PROVED_MS = int(re.findall(r"^PROVED_MS = (\d+)$", (provision.FIRMWARE / "dragoneye/app.py").read_text(), re.M)[0])


def board_of(table: Table) -> Board:
    """What is on its flash; the table starts again afterwards."""
    with BoardFiles(table.port) as files:
        board = flash.read_board(files)[0]
        files.reset()
    return board


def plays(table: Table, folder: Path) -> str:
    """Play a round; the build that runs."""
    folder.mkdir(exist_ok=True)
    table.do("settle", ms=SETTLE_MS)
    played = Played(table, folder / "rounds.db", "nj")
    assert played.play([1, 2, 3])[0]["status"] == "settled"
    build = str(played.device.table["build"])
    played.check_record()
    played.close()
    return build


def changed(folder: Path, name: str = "errors.py", more: str = "NEW = 1\n") -> Path:
    """Another firmware: a copy with something more in one module."""
    shutil.copytree(provision.FIRMWARE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "dragoneye" / name).open("a") as file:
        file.write(more)
    return folder


@pytest.fixture
def firmware(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], str]:
    """`firmware(folder)`: from now on that is what is flashed; its build."""

    def use(folder: Path) -> str:
        made: dict[str, Build] = {}

        def source(march: str) -> Build:
            return made.setdefault(march, make(march, folder))

        monkeypatch.setattr(flash.prepare, "__defaults__", (source,))
        return provision.build_hash(folder)

    return use


def flashed(tablectl: Tablectl, table: Table, *more: str) -> dict[str, Any]:
    done = tablectl("flash", "--port", table.port, "--json", *more)
    assert done.code == 0, done
    [row] = done.rows
    return dict(row)


def test_from_a_bare_board_to_a_table_that_plays(tablectl: Tablectl, tmp_path: Path) -> None:
    with bare_table(tmp_path) as table:
        dry = flashed(tablectl, table, "--dry-run")
        assert dry["steps"][-1] == ["rename", "/slot.new", "/slot"]
        assert not board_of(table).folders
        row = flashed(tablectl, table)
        assert (row["build"], row["slot"], row["board"]) == (provision.build_hash(), "a", "rpi_pico")
        assert (row["copied"], row["bytes"], row["unchanged"]) == (dry["copied"], dry["bytes"], 0)
        assert row["uid"] == table.state()["uid"].upper()
        assert plays(table, tmp_path / "one") == row["build"]
        board = board_of(table)
        assert (board.words, board.running, board.on_trial) == ("a", "a", False)
        again = flashed(tablectl, table)
        assert (again["copied"], again["bytes"], again["unchanged"], again["slot"]) == (0, 0, row["copied"] - 2, "a")
        done = tablectl("verify", "--port", table.port)
        assert done.code == 0
        assert f"runs this program's firmware {row['build']}" in done.out
        assert table.state()["motor"] == [0, 0]


def test_only_what_changed_is_copied_and_the_old_one_stays(
    tablectl: Tablectl, ready: Table, tmp_path: Path, firmware: Callable[[Path], str]
) -> None:
    new = firmware(changed(tmp_path / "new"))
    assert flashed(tablectl, ready)["slot"] == "b"
    assert plays(ready, tmp_path / "one") == new
    newer = firmware(changed(tmp_path / "newer", "text.py"))
    row = flashed(tablectl, ready)
    # Two modules that differ from the first one, build.txt, the manifest, the slot's name.
    assert (row["slot"], row["copied"]) == ("a", 4)
    assert greet(ready.port)[0]["build"] == newer
    assert len({OLD, new, newer}) == 3


FAULTY = {
    "an exception at the start": 'raise RuntimeError("flawed")\n',
    "a hang at the start": "while True:\n    pass\n",
    "the end of the program": "import sys\nsys.exit()\n",
}


@pytest.mark.parametrize("flaw", sorted(FAULTY))
def test_a_new_firmware_that_does_not_start_gives_way_to_the_old_one(
    tablectl: Tablectl, ready: Table, tmp_path: Path, firmware: Callable[[Path], str], flaw: str
) -> None:
    new = firmware(changed(tmp_path / "new", "app.py", FAULTY[flaw]))
    said = tablectl("flash", "--port", ready.port, "--json").refusal()
    assert said == f'{ready.port}: the new firmware {new} did not start; the table runs "{OLD}" again'
    assert ready.state()["motor"] == [0, 0]
    assert plays(ready, tmp_path / "one") == OLD
    board = board_of(ready)
    assert (board.words, board.running) == ("a", "a")


def test_when_no_firmware_starts_the_prompt_is_left_and_a_good_one_can_be_flashed(
    tablectl: Tablectl, tmp_path: Path, firmware: Callable[[Path], str]
) -> None:
    with bare_table(tmp_path) as table:
        firmware(changed(tmp_path / "bad", "app.py", FAULTY["an exception at the start"]))
        said = tablectl("flash", "--port", table.port, "--json").refusal()
        assert said.startswith(f"{table.port}: MicroPython's prompt answers, not the new firmware.")
        state = table.state()
        assert (state["motor"], state["wdt_ms"]) == ([0, 0], None)
        good = firmware(provision.FIRMWARE)
        assert flashed(tablectl, table)["build"] == good
        assert plays(table, tmp_path / "one") == good


CRASHING = """
import machine, time
wdt = machine.WDT(timeout=1000)
print("about to crash")
{end}
"""


@pytest.mark.parametrize("end", ['raise RuntimeError("again and again")', "time.sleep(0.3)\nmachine.reset()"])
def test_a_crash_loop_under_an_armed_watchdog_is_ended(tablectl: Tablectl, tmp_path: Path, end: str) -> None:
    """What ends again and again is not our own main.py: it has no maintenance."""
    with bare_table(tmp_path, {"main.py": CRASHING.format(end=end), "boot.py": BOOT}) as table:
        until(lambda: table.state()["boots"] > 2, "the crashes")
        row = flashed(tablectl, table)
        assert plays(table, tmp_path / "one") == row["build"]


def test_our_own_crash_loop_under_its_watchdog_is_ended(
    tablectl: Tablectl, ready: Table, tmp_path: Path, firmware: Callable[[Path], str]
) -> None:
    crash = "\n\nasync def _crash(self):\n    raise KeyError\n\n\nApp.run = _crash\n"
    firmware(changed(tmp_path / "bad", "app.py", crash))
    tablectl("flash", "--port", ready.port, "--json").refusal()
    # It has become the proved one, by a hand that should not have.
    with BoardFiles(ready.port) as files:
        files.write({"slot": b"b"})
        files.reset()
    until(lambda: ready.state()["last_reset"] == "watchdog", "the watchdog")
    good = firmware(provision.FIRMWARE)
    assert flashed(tablectl, ready)["build"] == good
    assert plays(ready, tmp_path / "one") == good


def test_a_table_at_its_prompt_is_flashed(
    tablectl: Tablectl, ready: Table, tmp_path: Path, firmware: Callable[[Path], str]
) -> None:
    greet(ready.port)
    ready.do("service", to="on")
    ready.do("reset")
    new = firmware(changed(tmp_path / "new"))
    assert flashed(tablectl, ready)["build"] == new
    with pytest.raises(LinkError):
        greet(ready.port)
    ready.do("service", to="off")
    ready.do("reset")
    assert plays(ready, tmp_path / "one") == new


def test_a_firmware_that_was_copied_by_hand_is_replaced(tablectl: Tablectl, tmp_path: Path) -> None:
    files = {
        path.relative_to(provision.FIRMWARE).as_posix(): path.read_text()
        for path in provision.FIRMWARE.rglob("*")
        if path.suffix in (".py", ".json")
    }
    with bare_table(tmp_path, files) as table:
        assert plays(table, tmp_path / "one") == "unknown"
        [row] = tablectl("verify", "--port", table.port, "--json").rows
        assert (row["root"], row["same"]) == ("/", True)
        assert flashed(tablectl, table)["slot"] == "a"
        assert plays(table, tmp_path / "one") == provision.build_hash()


def test_an_open_round_is_not_broken_off(tablectl: Tablectl, ready: Table, tmp_path: Path) -> None:
    played = Played(ready, tmp_path / "rounds.db", "nj")
    played.begin()
    played.device.close()
    boots = ready.state()["boots"]
    assert "a round is open" in tablectl("flash", "--port", ready.port, "--json").refusal()
    played.device.reconnect(LONG)
    with pytest.raises(link.Refused, match="E_STATE"):
        played.ask("verify", seed="0123456789abcdef")
    assert ready.state()["boots"] == boots
    played.close()


def test_a_round_that_is_opened_ends_a_verification(tablectl: Tablectl, ready: Table, tmp_path: Path) -> None:
    played = Played(ready, tmp_path / "rounds.db", "nj")
    with pytest.raises(link.Refused, match="E_STATE"):
        played.ask("verify")
    assert played.ask("verify", seed="0123456789abcdef")["running"]
    played.ask("open", shaker=1)
    answer = until(lambda: (told := played.ask("verify")) and not told["running"] and told, "the end")
    assert answer["why"] == "a round was opened"
    played.close()


@pytest.mark.parametrize("at", [3, 60, 150])
def test_the_power_goes_in_the_midst_of_it(
    tablectl: Tablectl,
    ready: Table,
    tmp_path: Path,
    firmware: Callable[[Path], str],
    at: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(board_files, "COME_BACK_S", 5.0)
    new = firmware(changed(tmp_path / "new"))
    real = flash.prepare

    def prepare(*args: Any) -> flash.Flashing:
        done = real(*args)
        ready.do("cut", at=at, torn=True)
        return done

    monkeypatch.setattr(flash, "prepare", prepare)
    tablectl("flash", "--port", ready.port, "--json").refusal()
    assert ready.state()["power"] is False
    ready.do("power", to="on")
    assert plays(ready, tmp_path / "one") == OLD
    monkeypatch.setattr(flash, "prepare", real)
    assert flashed(tablectl, ready)["build"] == new
    assert plays(ready, tmp_path / "one") == new


def test_a_cable_that_is_pulled_leaves_the_old_firmware(
    tablectl: Tablectl, ready: Table, tmp_path: Path, firmware: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    firmware(changed(tmp_path / "new"))
    real = flash.script_of

    def pull(step: Any) -> list[str]:
        if step.path.endswith("round.mpy"):
            ready.do("cable", to="out")
        return real(step)

    monkeypatch.setattr(flash, "script_of", pull)
    assert ready.port in tablectl("flash", "--port", ready.port, "--json").refusal()
    ready.do("cable", to="in")
    # Its prompt is left; a reset brings the table back.
    ready.do("reset")
    assert plays(ready, tmp_path / "one") == OLD


def test_a_full_flash_is_told_before_and_in_the_midst_of_a_copy(
    tablectl: Tablectl, ready: Table, tmp_path: Path, firmware: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with BoardFiles(ready.port) as files:
        free = flash.read_board(files)[1]
        files.run(f"f = open('/big', 'wb')\nfor _ in range({free // 4096 - 25}):\n    f.write(bytes(4096))\nf.close()")
        files.reset()
    firmware(changed(tmp_path / "new"))
    said = tablectl("flash", "--port", ready.port, "--json").refusal()
    assert said.startswith(f"{ready.port}: the board's flash is full; the firmware that was there runs on.")
    assert board_of(ready).folders == {"/a", "/a/dragoneye", "/a/dragoneye/drivers", "/a/dragoneye/rules"} | {
        "/a/dragoneye/rules/data"
    }
    # What is free is taken by something else meanwhile.
    monkeypatch.setattr("host_tools.flash_plan.Plan.blocks", lambda self, board: 0)
    assert tablectl("flash", "--port", ready.port, "--json").refusal() == said
    assert plays(ready, tmp_path / "one") == OLD


def test_a_configuration_of_a_newer_firmware_is_told_before_anything_is_copied(
    tablectl: Tablectl, tmp_path: Path
) -> None:
    with bare_table(tmp_path, {}) as table:
        with BoardFiles(table.port) as files:
            files.write({"config.json": b'{"format": 2}'})
            files.reset()
        said = tablectl("flash", "--port", table.port, "--json").refusal()
        assert "configuration has format 2, this firmware knows 1. Nothing was copied" in said
        assert not board_of(table).folders


def test_an_old_micropython_is_told_before_anything_is_copied(
    tablectl: Tablectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bare_table(tmp_path) as table:
        look = 'print(\'["micropython", [1, 19, 1], 4614, "Raspberry Pi Pico with RP2040"]\')'
        monkeypatch.setattr(flash, "LOOK", look)
        said = tablectl("flash", "--port", table.port, "--json").refusal()
        assert "MicroPython 1.19.1, which takes .mpy 6.2" in said
        monkeypatch.undo()
        assert not board_of(table).folders


@contextmanager
def terminal(folder: Path, answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """A port at which something else is: what it says to what it hears."""
    ours, theirs = pty.openpty()
    # mpremote waits longer where the name is a pseudo-terminal's.
    name = str(folder / "port")
    os.symlink(os.ttyname(theirs), name)

    def serve() -> None:
        try:
            while data := os.read(ours, 1024):
                said = answer(data)
                if said:
                    os.write(ours, said)
        except OSError:
            pass

    Thread(target=serve, daemon=True).start()
    try:
        yield name
    finally:
        os.close(theirs)
        os.close(ours)


@pytest.mark.parametrize("what", ["silent", "modem"])
def test_a_port_without_micropython(
    tablectl: Tablectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(link, "GIVE_UP_S", 0.5)
    monkeypatch.setattr(board_files, "ENTER_S", 0.2)
    monkeypatch.setattr(board_files, "SILENT_S", 0.5)
    with terminal(tmp_path, lambda data: b"" if what == "silent" else b"OK\r\n") as name:
        said = tablectl("flash", "--port", name, "--json").refusal()
        assert said.startswith(f"{name}: MicroPython's prompt does not answer as it should")
        assert tablectl("verify", "--port", name, "--json").refusal()


def test_a_port_that_is_not_there(tablectl: Tablectl, tmp_path: Path) -> None:
    for command in ("flash", "verify"):
        said = tablectl(command, "--port", str(tmp_path / "none"), "--json").refusal()
        assert "there is no such port; `tablectl ports` lists those that exist" in said


def test_verify_names_what_differs(tablectl: Tablectl, ready: Table, tmp_path: Path) -> None:
    example = str(BOARDS / "examples" / "nj.toml")
    assert tablectl("config", "set", "--file", example, "--port", ready.port).code == 0
    [row] = tablectl("verify", "--port", ready.port, "--file", example, "--json").rows
    assert row["same"]
    assert {one["is"] for one in row["files"]} == {"same"}
    other = tmp_path / "other.toml"
    other.write_text(Path(example).read_text(encoding="utf-8").replace("stake_max = 50000", "stake_max = 40000"))
    done = tablectl("verify", "--port", ready.port, "--file", str(other))
    assert done.code == 1
    assert f"but not with the configuration in {other}" in " ".join(done.out.split())
    with BoardFiles(ready.port) as files:
        path = "a/dragoneye/drivers/rpi_pico.json"
        data = (files.read(path) or b"").replace(b"Raspberry", b"Strawbery")
        files.write({path: data, "evil.py": b"x = 1"})
        files.run("import os\nos.remove('/boot.py')")
        files.reset()
    done = tablectl("verify", "--port", ready.port, "--json")
    assert done.code == 1
    [row] = done.rows
    assert not row["same"]
    different = {one["path"]: one["is"] for one in row["files"] if one["is"] != "same"}
    assert different == {
        "/a/dragoneye/drivers/rpi_pico.json": "changed",
        "/evil.py": "added",
        "/boot.py": "missing",
        "/board.json": "unknown",
        "/config.json": "unknown",
    }
    assert "/evil.py" in tablectl("verify", "--port", ready.port).out


def test_verifying_keeps_the_loop_free(tablectl: Tablectl, ready: Table, tmp_path: Path) -> None:
    played = Played(ready, tmp_path / "rounds.db", "nj")
    assert played.ask("verify", seed="0123456789abcdef")["running"]
    # Other requests are answered meanwhile.
    assert played.ask("status")["state"] == "IDLE"
    answer = until(lambda: (told := played.ask("verify")) and not told["running"] and told, "the end")
    assert len(answer["rows"]) == 10 < answer["files"]
    last = played.ask("verify", first=answer["files"] - 1)["rows"]
    assert len(last) == 1
    assert played.ask("verify", first=answer["files"])["rows"] == []
    played.close()


def mpremote(table: Table, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The real mpremote, from this folder."""
    command = [sys.executable, "-m", "mpremote", "connect", table.port, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=2 * LONG)


def test_mpremote_gets_in_while_the_table_runs_which_then_comes_up_by_itself(ready: Table, tmp_path: Path) -> None:
    greet(ready.port)
    # Its watchdog is armed, and a busy computer may be too slow: to copy takes `tablectl maintenance` first.
    done = until(lambda: (one := mpremote(ready, "ls")).returncode == 0 and one, "mpremote")
    assert {"config.json", "slot"} <= set(done.stdout.split())
    until(lambda: ready.state()["last_reset"] == "watchdog", "the watchdog")
    board_files.wait_for_table(ready.port)
    assert plays(ready, tmp_path / "one") == OLD


def test_mip_installs_the_package_and_the_table_comes_up(tmp_path: Path) -> None:
    with bare_table(tmp_path) as table:
        for command in (("mip", "install", "--target", "", str(flash_package.PACKAGE)), ("reset",)):
            done = mpremote(table, *command)
            assert done.returncode == 0, done
        board_files.wait_for_table(table.port)
        assert plays(table, tmp_path / "one") == "unknown"


def test_a_firmware_that_no_host_greets_proves_itself_in_time(tmp_path: Path, flashed_image: Path) -> None:
    (tmp_path / "table").mkdir()
    image = Path(shutil.copy(flashed_image, tmp_path / "table" / "flash.img"))
    on_image(image, (Step("write", "/slot", b"a 2"),))
    with bare_table(tmp_path) as table:
        heard = bytearray()

        def proved() -> bool:
            with closing(Tap(table.port, heard)) as tap:
                tap.read(1.0)
            return bool(table.state()["up_ms"] > PROVED_MS + 2000)

        until(proved, "the time to pass")
        assert b'{"hello"' in heard
        table.do("power", to="off")
        assert on_image(image).words == "a"
