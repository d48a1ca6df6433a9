"""A damaged file system: the table says so, refuses to arm, and is provisioned again from the host, which goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from boards.virtual import flash
from dragoneye.protocol import FAULT, IDLE
from host_tools.dealer import Plan
from host_tools.link import Refused
from tests.table.conftest import OpenTable
from tests.table.played import Played, check_record
from tests.virtual import LONG, until

BONUS = Plan(1, {2: {"bonus": 100}}, {}, [])
NONE = Plan(1, {}, {}, [])


def refused(table: Played, name: str, **fields: Any) -> str:
    with pytest.raises(Refused) as raised:
        table.ask(name, **fields)
    return raised.value.code


def image_of(table: Played) -> Path:
    return Path(table.bench.folder) / "flash.img"


def mpremote(table: Played, *arguments: str) -> None:
    """As a technician does it, by cable; once more where the port was not free yet."""
    table.device.close()
    command = [sys.executable, "-m", "mpremote", "connect", table.bench.port, *arguments]
    until(lambda: subprocess.run(command, capture_output=True, timeout=LONG).returncode == 0, "mpremote")


def copy_files(table: Played, *names: str) -> None:
    folder = Path(table.bench.folder).parent / "provision"
    mpremote(table, "cp", *(str(folder / name) for name in names), ":")
    table.restart()


def is_not_armed(table: Played, words: str) -> None:
    """The fault CONFIG stands, and nothing moves."""
    view = table.device.refresh()
    assert (view["state"], view["fault"]) == (FAULT, "CONFIG")
    assert words in view["detail"]
    assert refused(table, "clear", code="CONFIG") == "E_STANDS"
    assert [refused(table, name, **more) for name, more in (("open", {"shaker": 1}), ("shake", {}))] == ["E_FAULT"] * 2
    table.do("button")
    table.ask("status")
    assert table.motor_is_off()


def test_a_damaged_superblock_is_a_missing_configuration_and_the_history_goes_on(table: Played) -> None:
    table.play([4, 4, 4], plan=BONUS)
    last = table.store.last(table.device.uid)[0]
    table.do("power", to="off")
    with image_of(table).open("r+b") as file:
        file.write(b"\x5a" * 2 * flash.BLOCK)
    table.do("power", to="on")
    table.device.reconnect(LONG)
    is_not_armed(table, "/config.json is missing")
    assert "/board.json is missing" in table.device.state["detail"]
    assert table.device.table["first_event"] == last + 1
    copy_files(table, "board.json", "config.json")
    assert table.ask("clear", code="CONFIG")["state"] == IDLE
    # Ids, round numbers and the streak with its bonus go on after what the host holds.
    [stored] = table.play([4, 4, 4], plan=NONE)
    assert (stored["round"], stored["result"]["before"]) == (2, 1)
    assert stored["result"]["rows"] == [[2, "bonus", 100, 50]]
    events = table.store.events(table.device.uid)
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert [event["id"] for event in events if event["k"] == "restart"] == [last + 1]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("board.json", None, "/board.json is missing; provision the table from the host"),
        ("board.json", "{}", "/board.json has no "),
        ("board.json", "[1]", "/board.json is not a board's data"),
        ("board.json", {"lock": {}}, "/board.json: lock.pulse_ms is null; allowed: a whole number from 10 to 500"),
        ("board.json", {"pins": {"lid": 99}}, "/board.json: pins.button is missing"),
        ("config.json", {"settings": None}, "settings is null; allowed: an object"),
        ("config.json", {"settings": {"lockout_ms": "x"}}, 'settings.lockout_ms is "x"; allowed: a whole number'),
        ("config.json", None, "/config.json is missing; provision the table from the host"),
        ("config.json", '{"format": 1', "/config.json"),
    ],
)
def test_a_file_that_is_missing_or_damaged_is_a_fault_with_words(
    table: Played, tmp_path: Path, name: str, content: str | dict[str, Any] | None, words: str
) -> None:
    table.play([1, 2, 3])
    if content is None:
        mpremote(table, "rm", ":" + name)
    else:
        if isinstance(content, dict):
            # All the rest is right.
            right = json.loads((Path(table.bench.folder).parent / "provision" / name).read_text())
            content = json.dumps({**right, **content})
        (tmp_path / name).write_text(content)
        mpremote(table, "cp", str(tmp_path / name), ":")
    table.restart()
    is_not_armed(table, words)
    copy_files(table, name)
    table.ask("clear", code="CONFIG")
    table.play([1, 2, 3])
    assert [one["status"] for one in check_record(table.store, table.device.uid)] == ["settled"] * 2


def test_a_bit_that_flips_in_a_record_is_found_and_the_host_knows_the_rest(table: Played) -> None:
    table.play([4, 4, 4], plan=BONUS)
    uid = table.device.uid
    [settled] = [event["id"] for event in table.store.events(uid) if event["k"] == "settled"]
    link = (table.store.link(uid, settled) or "").encode()
    table.do("power", to="off")
    data = image_of(table).read_bytes()
    assert link in data
    flipped = bytes([link[0] ^ 1]) + link[1:]
    image_of(table).write_bytes(data.replace(link, flipped))
    table.do("power", to="on")
    table.device.reconnect(LONG)
    view = table.device.state
    assert (view["state"], view["fault"]) == (FAULT, "JOURNAL")
    assert view["detail"].endswith(": the hash differs")
    assert refused(table, "open", shaker=1) == "E_FAULT"
    assert table.ask("clear", code="JOURNAL")["state"] == IDLE
    [stored] = table.play([4, 4, 4], plan=NONE)
    assert (stored["round"], stored["result"]["before"]) == (2, 1)
    assert stored["result"]["rows"] == [[2, "bonus", 100, 50]]


def test_a_flash_that_cannot_be_mounted_comes_back_without_a_host(open_table: OpenTable) -> None:
    table = open_table()
    table.device.close()
    table.do("power", to="off")
    image_of(table).write_bytes(bytes(flash.BLOCK * flash.BLOCKS))
    table.do("power", to="on")
    # It says who it is and what it lacks to whoever listens, and starts once, not over and over.
    until(table.reconnects, "the table")
    assert table.device.state["fault"] == "CONFIG"
    assert table.bench.state()["crashes"] == 0


@pytest.mark.parametrize("pins", [{"motor_in1": "x"}, {"motor_in1": 99}, {"motor_in2": None}, {"service": 99}, None])
def test_wrong_pins_leave_the_motor_held_low_and_the_table_talking(table: Played, tmp_path: Path, pins: Any) -> None:
    board = json.loads((Path(table.bench.folder).parent / "provision" / "board.json").read_text())
    board["pins"] = pins and {**board["pins"], **pins}
    (tmp_path / "board.json").write_text(json.dumps(board))
    mpremote(table, "cp", str(tmp_path / "board.json"), ":")
    table.restart()
    is_not_armed(table, "/board.json: pins")
    assert table.bench.state()["motor"] == [0, 0]
