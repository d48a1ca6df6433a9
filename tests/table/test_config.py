"""`tablectl config` on a table: read and written at MicroPython's prompt, in one step, checked by hash."""

from __future__ import annotations

import hashlib
import json
import pkgutil
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boards.virtual.client import Table
from boards.virtual.model import default_tags
from dragoneye.errors import BadInput
from dragoneye.rules.packs import load
from dragoneye.text import digest
from host_tools import provision
from host_tools.board_data import BOARDS
from host_tools.board_files import BoardFiles, greet, wait_for_table
from host_tools.cli.config import FilePlace
from host_tools.device import Device
from host_tools.store import Store
from tests.unit.conftest import Tablectl
from tests.unit.conftest import tablectl as tablectl  # a fixture
from tests.virtual import instant_table, until

# What is said where the service key holds the table at its prompt.
AT_KEY = "written; turn the service key off and press reset, and the table runs with it"


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Another right configuration."""
    return str(shutil.copy(BOARDS / "examples" / "pr.toml", tmp_path / "table.toml"))


def config_hash(table: Table) -> Any:
    return greet(table.port)[0]["config_hash"]


def test_a_tables_configuration_is_read_changed_and_replaced(tablectl: Tablectl, tmp_path: Path, file: str) -> None:
    with instant_table(tmp_path) as table:
        port = table.port
        before = config_hash(table)
        assert tablectl("config", "get", "settings", "--port", port, "--json").rows == [
            {"settle_ms": 15, "lockout_ms": 0}
        ]
        assert config_hash(table) == before
        done = tablectl("config", "set", "settings.jolts", "5", "--port", port)
        assert (done.code, done.out, done.err) == (0, "settings.jolts = 5\n", "")
        changed = config_hash(table)
        assert changed != before
        assert tablectl("config", "set", "settings.jolts", "50", "--port", port).refusal().endswith("from 1 to 12")
        assert config_hash(table) == changed
        [told] = tablectl("config", "set", "--file", file, "--port", port, "--json").rows
        assert told == {"port": port, "config_hash": config_hash(table), "runs": True}
        assert greet(port)[0]["pack"] == "pr"
        done = tablectl("config", "diff", "--file", file, "--port", port)
        assert (done.code, done.out) == (0, "no difference\n")
        assert tablectl("config", "validate", "--port", port).out == f"{port}: right\n"
        whole = tablectl("config", "get", "--port", port).out
        table.do("reset")
        assert wait_for_table(port)["config_hash"] == told["config_hash"]
    copy = tmp_path / "copy.toml"
    FilePlace(copy).store(whole)
    [exported] = tablectl("config", "export", "--file", str(copy), "--dir", str(tmp_path / "out"), "--json").rows
    assert exported["hashes"]["config.json"] == told["config_hash"]


def test_a_round_that_is_open_is_not_broken_off(tablectl: Tablectl, tmp_path: Path) -> None:
    with instant_table(tmp_path) as table:
        store = Store(tmp_path / "rounds.db")
        device = Device(table.port, store)
        device.request("open", shaker=2)
        device.close()
        for command in (["get"], ["set", "name", "x"], ["validate"]):
            said = tablectl("config", *command, "--port", table.port).refusal()
            assert said == f"{table.port}: a round is open, the table is BETTING; finish it first"
        assert greet(table.port)[1]["state"] == "BETTING"
        assert table.state()["boots"] == 1


def test_a_table_in_test_mode_is_told_as_that(tablectl: Tablectl, tmp_path: Path) -> None:
    with instant_table(tmp_path) as table:
        tablectl("play", "--port", table.port, stdin=b"test on=yes\n")
        said = tablectl("config", "get", "--port", table.port).refusal()
        end = f"tablectl play --port {table.port}, then test on=no"
        assert said == f"{table.port}: the table is in test mode; end it first: {end}"


@pytest.mark.parametrize("insist", [False, True])
def test_ctrl_c_while_a_table_is_stopped_lets_it_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, insist: bool
) -> None:
    with instant_table(tmp_path) as table:
        for name in ("host_tools.board_files._in_maintenance", "host_tools.board_files.BoardFiles._enter"):
            with monkeypatch.context() as patched:
                patched.setattr(name, interrupted_once(patched, name))
                with pytest.raises(KeyboardInterrupt):
                    BoardFiles(table.port, insist)
            assert wait_for_table(table.port)["config_hash"], name


def interrupted_once(patched: pytest.MonkeyPatch, name: str) -> Callable[..., Any]:
    """A function that Ctrl-C ends at its first call."""
    owner, _dot, last = name.rpartition(".")
    whole = getattr(pkgutil.resolve_name(owner), last)

    def call(*arguments: Any) -> Any:
        patched.setattr(name, whole)
        raise KeyboardInterrupt

    return call


def test_files_are_written_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with instant_table(tmp_path) as table:
        with BoardFiles(table.port) as board:
            before = {name: board.read(name) for name in ("board.json", "config.json")}
            assert board.read("absent") is None
            monkeypatch.setattr("host_tools.board_files.hashlib.sha256", lambda data: hashlib.new("md5", data))
            with pytest.raises(BadInput, match=r"/board\.json\.new on the board is not what was written"):
                board.write({"board.json": b"{}", "config.json": b"{}"})
            monkeypatch.undo()
            assert {name: board.read(name) for name in before} == before
            board.reset()
        assert wait_for_table(table.port)["config_hash"] == digest(before["config.json"] or b"")


def test_a_table_whose_two_files_do_not_fit_says_so(tmp_path: Path) -> None:
    """The power goes between the two renames: board data and configuration are of two writes."""
    with instant_table(tmp_path) as table:
        with BoardFiles(table.port) as board:
            data = json.loads(board.read("board.json") or b"")
            data["pins"]["buzzer"] = 13
            board.write({"board.json": json.dumps(data).encode()})
            board.reset()
        wait_for_table(table.port)
        state = greet(table.port)[1]
        assert (state["state"], state["fault"]) == ("FAULT", "CONFIG")
        assert "/board.json was not written together with it" in state["detail"]


@pytest.mark.parametrize("pixels", [3, 25])
def test_a_ring_that_cannot_be_is_a_fault_of_the_configuration(tmp_path: Path, pixels: int) -> None:
    with instant_table(tmp_path) as table:
        with BoardFiles(table.port) as board:
            data = json.loads(board.read("board.json") or b"")
            data["ring"]["pixels"] = pixels
            board.write({"board.json": json.dumps(data).encode()})
            board.reset()
        wait_for_table(table.port)
        state = greet(table.port)[1]
        assert (state["state"], state["fault"]) == ("FAULT", "CONFIG")
        assert f"/board.json: ring.pixels is {pixels}; allowed: a whole number from 8 to 24" in state["detail"]


def test_a_board_at_its_prompt_is_configured(tablectl: Tablectl, tmp_path: Path, file: str) -> None:
    with instant_table(tmp_path) as table:
        table.do("power", to="off")
        table.do("service", to="on")
        table.do("power", to="on")
        done = tablectl("config", "set", "--file", file, "--port", table.port)
        assert (done.code, done.err) == (0, f"{table.port}: {AT_KEY}\n")
        done = tablectl("config", "get", "rules.pack", "--port", table.port)
        assert (done.code, done.out, done.err) == (0, "pr\n", "")
        table.do("service", to="off")
        table.do("reset")
        assert wait_for_table(table.port)["pack"] == "pr"


@pytest.mark.emulator
@pytest.mark.slow
def test_files_are_written_on_the_official_image(
    tablectl: Tablectl, tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the prompt of the emulated Pico, over its pseudo-terminal; it runs slower than the wall clock."""
    monkeypatch.setattr("host_tools.link.GIVE_UP_S", 120.0)
    provision.write(tmp_path / "provision", "rpi_pico", load("nj"), default_tags(), 0)
    with Table(tmp_path / "table", target="emulator", provision=tmp_path / "provision", seed=7, powered=False) as table:
        table.do("service", to="on")
        table.do("power", to="on")
        until(lambda: Path(table.port).exists(), "the port")
        done = tablectl("config", "set", "--file", file, "--port", table.port)
        assert (done.code, done.err) == (0, f"{table.port}: {AT_KEY}\n")
        with BoardFiles(table.port) as board:
            config = board.read("config.json") or b""
    [told] = tablectl("config", "export", "--file", file, "--dir", str(tmp_path / "out"), "--json").rows
    assert digest(config) == told["hashes"]["config.json"]


def test_a_table_without_dice_learns_them(tablectl: Tablectl, tmp_path: Path) -> None:
    """From a new file to a table that has its dice: write, learn, take, write again."""
    path, learned = str(tmp_path / "new.toml"), str(tmp_path / "a17.json")
    tablectl("config", "new", path, "--name", "New")
    with instant_table(tmp_path) as table:
        port = table.port
        assert tablectl("config", "set", "--file", path, "--port", port).code == 0
        state = greet(port)[1]
        assert (state["state"], state["fault"]) == ("FAULT", "CONFIG")
        assert tablectl("dice", "learn", "--port", port, "--serial", "A-17", "--out", learned, "--auto").code == 0
        assert tablectl("config", "dice", learned, "--file", path).code == 0
        assert tablectl("config", "set", "--file", path, "--port", port).code == 0
        told, state = greet(port)
        assert told["dice_set"]["serial"] == "A-17"
        assert (state["state"], state["fault"]) == ("FAULT", "CONFIG")
        device = Device(port, Store(tmp_path / "rounds.db"))
        device.request("clear", code="CONFIG")
        assert device.refresh()["state"] == "IDLE"
        device.close()
