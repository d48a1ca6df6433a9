"""A board's files, on a fake board: whatever ends a command at whatever step, the table runs again or it is said."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mpremote.transport import TransportError  # type: ignore[import-untyped]

from dragoneye.keys import JOURNAL, name_of
from dragoneye.text import digest
from host_tools import board_files, flash
from host_tools.board_data import BOARDS
from host_tools.board_files import BoardFiles, Started
from host_tools.flash_build import Build
from host_tools.flash_plan import Plan
from host_tools.keys import Keys
from host_tools.link import LinkError, Prompt
from tests.unit.conftest import Tablectl

UID = "04B7C621A068A51C"
STOPPED = "the table may still be stopped: press its reset, or plug it in again"


class FakeBoard:
    """A board with a table at a port; `failing` is raised at the step with the number `at`, once."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.runs = True
        self.firmware = True
        self.key_is_on = False
        self.deaf = False
        self.deaf_after = False
        self.steps: list[str] = []
        self.at: int | None = None
        self.failing: BaseException = KeyboardInterrupt()

    def step(self, what: str) -> None:
        self.steps.append(what)
        if self.deaf:
            raise TransportError("deaf")
        if self.at is not None and len(self.steps) > self.at:
            self.at = None
            self.deaf = self.deaf_after
            raise self.failing

    def begin(self, files: dict[str, bytes], at: int, failing: BaseException) -> None:
        """A running table with these files, at which the step with the number `at` will fail."""
        self.steps.clear()
        self.files, self.runs, self.at, self.failing = dict(files), True, at, failing

    def stop(self, port: str) -> dict[str, Any] | None:
        ran, self.runs = self.runs, False
        return {"uid": UID} if ran else None

    def greet(self, port: str, timeout: float = 60.0) -> dict[str, Any]:
        if not self.runs:
            raise LinkError("the table says nothing")
        told: dict[str, Any] = {"uid": UID, "build": "B", "locked": True}
        if "/keys.json" in self.files:
            told["key_id"] = name_of(bytes.fromhex(json.loads(self.files["/keys.json"])[JOURNAL]))
        if "/config.json" in self.files:
            told["config_hash"] = digest(self.files["/config.json"])
        return told

    # What is used of mpremote's SerialTransport.

    def enter_raw_repl(self, **options: Any) -> None:
        self.step("enter")

    def read_until(self, *arguments: Any, **options: Any) -> bytes:
        return b""

    def close(self) -> None:
        pass

    @property
    def serial(self) -> FakeBoard:
        return self

    def write(self, data: bytes) -> None:
        pass

    def fs_exists(self, path: str) -> bool:
        return path in self.files

    def fs_readfile(self, path: str) -> bytes:
        self.step(f"read {path}")
        return self.files[path]

    def fs_writefile(self, path: str, content: bytes) -> None:
        self.step(f"write {path}")
        self.files[path] = content

    def fs_hashfile(self, path: str, algorithm: str) -> bytes:
        self.step(f"hash {path}")
        return hashlib.new(algorithm, self.files[path]).digest()

    def exec(self, script: str) -> None:
        self.step("run")
        for old, new in re.findall(r"os\.rename\('(.*?)','(.*?)'\)", script):
            self.files[new] = self.files.pop(old)

    def exec_raw(self, script: str, timeout: float) -> tuple[bytes, bytes]:
        if "board.json" in script:
            self.step("key")
            return (b"0" if self.key_is_on else b"1"), b""
        self.step("look")
        return f"{UID} {int('/keys.json' in self.files)}".encode(), b""

    def exec_raw_no_follow(self, script: str) -> None:
        assert "machine.reset()" in script
        self.step("reset")
        self.runs = self.firmware and not self.key_is_on


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeBoard:
    fake = FakeBoard()
    monkeypatch.setenv("DRAGONEYE_KEYS", str(tmp_path / "keys.json"))
    monkeypatch.setattr(board_files, "stop_table", fake.stop)
    monkeypatch.setattr(board_files, "RawPrompt", lambda *arguments, **options: fake)
    monkeypatch.setattr(board_files, "wait_for_port", lambda port, seconds=None: None)
    monkeypatch.setattr(board_files, "wait_for_table", fake.greet)
    monkeypatch.setattr(board_files, "GIVE_BACK_S", 0.3)

    def prepare(files: BoardFiles, name: str | None) -> Any:
        """What copies one file, in place of a whole firmware."""

        class Flashing:
            facts = flash.Facts((1, 25, 0), 4614, "Raspberry Pi Pico with RP2040")
            board = "rpi_pico"
            build = Build("B", {}, {}, {})
            plan = Plan("a", (), 0)

            def copy(self, tell: Callable[..., None]) -> None:
                files.write({"a": b"new"})

        return Flashing()

    monkeypatch.setattr(flash, "prepare", prepare)
    shutil.copy(BOARDS / "examples" / "nj.toml", tmp_path / "table.toml")
    monkeypatch.chdir(tmp_path)
    return fake


COMMANDS = {
    "keys provision": ("keys", "provision", "--port", "P", "--json"),
    "config get": ("config", "get", "name", "--port", "P", "--json"),
    "config set": ("config", "set", "settings.jolts", "5", "--port", "P", "--json"),
    "config set --file": ("config", "set", "--file", "table.toml", "--port", "P", "--json"),
    "flash": ("flash", "--port", "P", "--json"),
}
ENDS: dict[str, Callable[[], BaseException]] = {
    "an error": lambda: TransportError("broken"),
    "Ctrl-C": KeyboardInterrupt,
    "SIGTERM": lambda: SystemExit(143),
}


def configured(board: FakeBoard, tablectl: Tablectl) -> None:
    """A board that has a configuration."""
    assert tablectl(*COMMANDS["config set --file"]).code == 0
    board.steps.clear()


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", COMMANDS)
def test_whatever_ends_a_command_the_table_runs_again_or_it_is_said(
    board: FakeBoard, tablectl: Tablectl, name: str, end: str
) -> None:
    configured(board, tablectl)
    kept = dict(board.files)
    done = tablectl(*COMMANDS[name])
    assert (done.code, board.runs) == (0, True), done
    count = len(board.steps)
    assert count >= 3
    for at in range(count):
        board.begin(kept, at, ENDS[end]())
        done = tablectl(*COMMANDS[name])
        assert board.at is None
        assert len(board.steps) > at
        assert board.runs or STOPPED in done.out, done
        # Only the request to reset itself can be lost.
        assert board.runs or (end == "an error" and board.steps[at] == "reset"), (board.steps, done)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_board_that_says_no_more_is_told_to_be_reset(board: FakeBoard, tablectl: Tablectl, name: str) -> None:
    configured(board, tablectl)
    for failing in (TransportError("gone"), KeyboardInterrupt()):
        board.begin(board.files, 2, failing)
        board.deaf, board.deaf_after = False, True
        done = tablectl(*COMMANDS[name])
        assert done.code == 2
        assert STOPPED in done.out


def test_the_service_key_keeps_the_prompt_and_all_say_so(board: FakeBoard, tablectl: Tablectl) -> None:
    board.key_is_on, board.runs = True, False
    done = tablectl(*COMMANDS["config set --file"])
    [row] = done.rows
    assert (done.code, row["runs"]) == (0, False)
    assert row["config_hash"] == digest(board.files["/config.json"])
    assert "turn the service key off and press reset" in done.err
    done = tablectl("config", "set", "--file", "table.toml", "--port", "P")
    assert (done.code, done.out) == (0, f"P: has this configuration, {row['config_hash']}\n")
    for name in ("config set", "keys provision"):
        assert tablectl(*COMMANDS[name]).rows[0]["runs"] is False
    assert "uid" not in tablectl(*COMMANDS["flash"]).rows[0]
    board.key_is_on = False
    with BoardFiles("P") as files:
        assert files.start().key_is_on is False
    for name in ("config set", "config set --file"):
        assert tablectl(*COMMANDS[name]).rows[0]["runs"] is True
    words = ("config", "set", "--file", "table.toml", "--port", "P")
    assert tablectl(*words).out == f"P: the table runs with this configuration, {row['config_hash']}\n"


def test_a_board_without_a_table_is_written_and_not_waited_for_as_one(
    board: FakeBoard, tablectl: Tablectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.firmware = board.runs = False
    waited: list[float] = []

    def nothing(port: str, timeout: float) -> Any:
        waited.append(timeout)
        raise Prompt("the prompt answers")

    monkeypatch.setattr(board_files, "wait_for_table", nothing)
    done = tablectl("config", "set", "--file", "table.toml", "--port", "P")
    assert (done.code, "no table answers there yet" in done.err) == (0, True)
    done = tablectl("keys", "provision", "--port", "P")
    assert (done.code, "no table answers there yet" in done.out) == (0, True)
    [held] = Keys().held()
    assert json.loads(board.files["/keys.json"])
    assert tablectl("keys", "rotate", "--port", "P", "--json").rows[0]["runs"] is False
    assert held.key_id not in [one.key_id for one in Keys().held() if len(one.names) > 1]
    assert set(waited) == {board_files.UNSURE_S}
    said = tablectl(*COMMANDS["flash"]).refusal()
    assert said.startswith("P: MicroPython's prompt answers, not the new firmware.")


def test_a_table_that_was_in_maintenance_is_found_again(board: FakeBoard) -> None:
    board.runs = False
    with BoardFiles("P") as files:
        assert files.ran is False
        assert files.start() == Started(board.greet("P"), False)


def test_keys_that_a_table_does_not_start_with_are_kept_and_named(
    board: FakeBoard, tablectl: Tablectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(port: str, timeout: float) -> Any:
        raise LinkError("the table says nothing")

    monkeypatch.setattr(board_files, "wait_for_table", nothing)
    said = tablectl(*COMMANDS["keys provision"]).refusal()
    [held] = Keys().held()
    assert said.startswith(f"P: table {UID} has its new keys {held.key_id}, but has not started with them: ")
    assert said.endswith(STOPPED)


def test_a_prompt_that_is_not_entered_gives_the_table_back(board: FakeBoard, tablectl: Tablectl) -> None:
    board.failing = TransportError("could not enter raw repl")
    tries = board_files.ENTER_TRIES
    enter = board.enter_raw_repl

    def refuses(**options: Any) -> None:
        nonlocal tries
        if tries:
            tries -= 1
            raise board.failing
        enter(**options)

    board.enter_raw_repl = refuses  # type: ignore[method-assign]
    said = tablectl(*COMMANDS["config get"]).refusal()
    assert "MicroPython's prompt does not answer as it should" in said
    assert (board.runs, STOPPED in said) == (True, False)
    tries = 10_000
    assert tablectl(*COMMANDS["config get"]).refusal().endswith(STOPPED)
