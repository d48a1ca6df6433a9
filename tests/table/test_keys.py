"""A table with keys, and a locked one: only who may does, and nobody gets in but by the service key."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import serial

from boards.virtual.client import Table
from dragoneye import protocol
from dragoneye.errors import BadInput
from dragoneye.keys import NAMES
from host_tools import keys, provision
from host_tools.board_files import BoardFiles, greet
from host_tools.device import Device
from host_tools.hil.rigged import Rigged
from host_tools.keys import Keys
from host_tools.link import Refused
from host_tools.store import Store
from tests.table.conftest import MakeBench, OpenTable
from tests.table.played import Played
from tests.virtual import LONG, until


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this computer's keys are."""
    path = tmp_path / "keys.json"
    monkeypatch.setenv("DRAGONEYE_KEYS", str(path))
    return path


def tablectl(*arguments: str, code: int = 0) -> Any:
    """What a command says with --json."""
    command = [sys.executable, "-m", "host_tools", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=4 * LONG)
    assert done.returncode == code, done.stdout + done.stderr
    assert not any(raw in done.stdout + done.stderr for raw in held_hex())
    return json.loads(done.stdout.splitlines()[-1])


def held_hex() -> list[str]:
    """Every key that this computer holds, as hex."""
    sets = [Keys().find(one.uid, one.key_id) for one in Keys().held()]
    return [raw.hex() for found in sets if found for raw in found.raw.values()]


def provisioned(table: Played) -> str:
    """Give a running table keys; their name."""
    table.device.close()
    told = tablectl("keys", "provision", "--port", table.bench.port)
    assert told["runs"] is True
    table.device.reconnect(LONG)
    assert table.device.table["key_id"] == told["key_id"]
    return str(told["key_id"])


def test_keys_are_given_used_and_given_anew(open_table: OpenTable, tmp_path: Path) -> None:
    table = open_table()
    uid = table.device.uid
    assert table.device.table["unprovisioned"]
    first = provisioned(table)
    assert not table.device.table["unprovisioned"]
    table.device.close()
    assert "has keys already" in tablectl("keys", "provision", "--port", table.bench.port, code=2)["error"]
    until(table.reconnects, "the table")
    table.play([1, 2, 3])
    number = table.begin([2, 4, 6])
    table.ask("void", reason="a supervisor's")
    assert {record.get("by") for record in table.records("opened", "closed")} == {"dealer"}
    assert [record["by"] for record in table.records("void")] == ["supervisor"]
    assert number == 2
    table.check_record()
    table.device.close()
    second = tablectl("keys", "rotate", "--port", table.bench.port)["key_id"]
    assert second != first
    until(table.reconnects, "the table")
    table.play([1, 2, 3])
    # What was recorded under the old journal key can still be told.
    assert sorted(Keys().journal_keys(uid)) == sorted([first, second])
    assert [one.names for one in Keys().held()] == [("journal",), NAMES]
    listed = tablectl("keys", "list")
    assert (listed["table"], listed["key_id"]) == (uid, second)
    # Nothing that the table ever said holds a key.
    assert not any(raw.encode() in table.heard for raw in held_hex())


def test_a_dealers_station_can_do_what_a_dealer_may(open_table: OpenTable, tmp_path: Path) -> None:
    table = open_table()
    uid = table.device.uid
    provisioned(table)
    carried = tmp_path / "dealer.keys"
    tablectl("keys", "export", "--table", uid, "--role", "dealer", str(carried))
    assert "--yes" in tablectl("keys", "forget", uid, code=2)["error"]
    table.device.close()
    assert tablectl("keys", "forget", uid, "--yes") == {"table": uid, "forgotten": 1}
    # A new program, which has looked up no key yet.
    said = [sys.executable, "-m", "host_tools", "maintenance", "--port", table.bench.port]
    done = subprocess.run(said, capture_output=True, text=True, check=False, timeout=LONG)
    assert done.returncode == 2
    assert f"table {uid}: this needs the key of its technician" in done.stderr
    assert "tablectl keys import FILE" in done.stderr
    assert tablectl("keys", "import", str(carried))["keys"] == ["dealer"]
    with closing(Store(tmp_path / "station.db")) as store:
        device = Device(table.bench.port, store, signer=keys.Ring())
        device.request("open", shaker=1)
        with pytest.raises(BadInput, match="this needs the key of its supervisor"):
            device.request("void", reason="not by a dealer")
        assert device.refresh()["state"] == protocol.BETTING
        device.close()


@pytest.mark.parametrize("damage", ["", "{}", "cut"])
def test_damaged_keys_are_a_fault_and_never_a_trial(open_table: OpenTable, damage: str) -> None:
    table = open_table()
    provisioned(table)
    # As a failing flash would leave it.
    table.device.close()
    with BoardFiles(table.bench.port) as files:
        files.run(
            "with open('/keys.json', 'r+') as f:\n    text = f.read()\n"
            f"with open('/keys.json', 'w') as f:\n    f.write(text[:100] if {damage!r} == 'cut' else {damage!r})\n"
        )
        files.reset()
    until(table.reconnects, "the table")
    assert table.state == protocol.FAULT
    assert table.device.table["unprovisioned"] is False
    assert table.device.state["fault"] == "CONFIG"
    assert table.device.state["detail"].startswith("/keys.json is damaged")
    with pytest.raises(Refused, match=r"/keys\.json is damaged; .* \(E_AUTH\)"):
        table.ask("open", shaker=1)
    table.device.close()
    # The technician's key is gone with the others: the service key is the way.
    with pytest.raises(Refused, match="E_AUTH"):
        BoardFiles(table.bench.port)
    start_with_key(table, "on")
    rotated = tablectl("keys", "rotate", "--port", table.bench.port)
    assert rotated["runs"] is False
    # Of the set before, the roles' keys are of no use any more.
    assert {one.names for one in Keys().held() if one.key_id != rotated["key_id"]} == {("journal",)}
    start_with_key(table, "off")
    until(table.reconnects, "the table")
    table.ask("clear", code="CONFIG")
    table.play([1, 2, 3])


# -- locked ----------------------------------------------------------------------------------------------------------

PROMPT = re.compile(rb">>>|MicroPython v|raw REPL|MicroPython on the virtual table")


@contextmanager
def flooded(table: Table | Rigged) -> Iterator[list[bytes]]:
    """Ctrl-C, Ctrl-A to Ctrl-E and returns without end, from another program; what the port said."""
    heard: list[bytes] = []
    ending = threading.Event()

    def flood() -> None:
        while not ending.is_set():
            try:
                with serial.Serial(table.port, timeout=0, write_timeout=0.2) as port:
                    while not ending.is_set():
                        with suppress(serial.SerialTimeoutException):
                            port.write(b"\x03\x03\r\n\x01\x02\x04\x05import machine\r\n")
                        heard.append(port.read(4096))
                        time.sleep(0.02)
            except (serial.SerialException, OSError, TypeError):
                time.sleep(0.005)

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        yield heard
    finally:
        ending.set()
        thread.join()


def start_with_key(table: Played, to: str) -> None:
    """Turn the service key, and press reset."""
    table.do("service", to=to)
    assert table.bench.state()["service_on"] is (to == "on")
    table.do("reset")


def said_hello(heard: list[bytes], boot: int) -> bool:
    """Whether the table said so after this start."""
    return re.search(rb'{"hello":{[^\n]*"boot":%d[,}]' % boot, b"".join(heard)) is not None


def test_nothing_at_the_port_stops_a_locked_table(open_table: OpenTable) -> None:
    table = open_table(more={"locked": True})
    table.device.close()
    with flooded(table.bench) as heard:
        for boot in range(2, 5):
            table.do("reset")
            until(partial(said_hello, heard, boot), "the table")
    said = b"".join(heard)
    assert b'{"hello"' in said
    assert not PROMPT.search(said)
    until(table.reconnects, "the table")
    assert table.device.table["locked"] is True
    assert table.records("stopped") == []
    table.play([1, 2, 3])


def test_the_same_flood_stops_one_that_is_not_locked(open_table: OpenTable) -> None:
    """That the flood is one."""
    table = open_table(more={"watchdog_ms": 8000})
    table.device.close()
    with flooded(table.bench) as heard:
        until(lambda: PROMPT.search(b"".join(heard)), "the prompt")


ENDS = {
    "an exception": "    raise MemoryError('full')",
    "the end": "    pass",
    "SystemExit": "    raise SystemExit",
    "no package": "    import nothing_of_this_name",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_locked_table_whose_program_ends_is_reset_and_shows_no_prompt(
    board: MakeBench, tmp_path: Path, end: str
) -> None:
    firmware = tmp_path / "ending"
    shutil.copytree(provision.FIRMWARE, firmware, ignore=shutil.ignore_patterns("__pycache__"))
    main = (firmware / "main.py").read_text()
    run = "    from dragoneye import app\n\n    app.start()\n"
    assert run in main
    (firmware / "main.py").write_text(main.replace(run, ENDS[end] + "\n"))
    table = board(more={"locked": True}, firmware=firmware)
    with flooded(table) as heard:
        until(lambda: table.state()["boots"] >= 3, "the third start")
    assert not PROMPT.search(b"".join(heard))


def test_the_service_key_is_the_way_into_a_locked_table_and_is_recorded(open_table: OpenTable, tmp_path: Path) -> None:
    table = open_table(more={"locked": True})
    uid = table.device.uid
    with pytest.raises(Refused, match="E_LOCKED"):
        table.ask("maintenance")
    table.device.close()
    for words in (("flash", "--dry-run"), ("config", "get"), ("keys", "provision"), ("maintenance",)):
        told = tablectl(*words, "--port", table.bench.port, code=2)["error"]
        assert f"table {uid} is locked. Turn its service key on and press reset" in told
    start_with_key(table, "on")
    assert tablectl("keys", "provision", "--port", table.bench.port)["runs"] is False
    assert tablectl("flash", "--port", table.bench.port)["slot"] == "a"
    # The start after the flash has come as far as the prompt: the next reset finds it noted.
    with BoardFiles(table.bench.port) as files:
        assert files.read("service") == b"+++"
    start_with_key(table, "off")
    until(table.reconnects, "the table")
    assert table.device.table["unprovisioned"] is False
    assert table.device.table["locked"] is True
    # Once for the reset, and once after each of the two commands.
    assert table.records("service") == [{"times": 3}]
    table.do("reset")
    until(table.reconnects, "the table")
    assert table.records("service") == [{"times": 3}]
    table.play([1, 2, 3])
    table.check_record()


def test_a_locked_table_can_be_unlocked_by_its_service_key(open_table: OpenTable) -> None:
    table = open_table(more={"locked": True})
    table.device.close()
    start_with_key(table, "on")
    tablectl("config", "set", "locked", "false", "--port", table.bench.port)
    start_with_key(table, "off")
    until(table.reconnects, "the table")
    assert table.device.table["locked"] is False
    table.ask("maintenance")


def test_a_locked_table_whose_configuration_is_damaged_stays_locked(open_table: OpenTable) -> None:
    table = open_table(more={"locked": True})
    table.device.close()
    start_with_key(table, "on")
    with BoardFiles(table.bench.port) as files:
        files.run(
            "with open('/config.json') as f:\n    t = f.read()\n"
            "with open('/config.json', 'w') as f:\n    f.write(t[:-1])\n"
        )
        files.reset()
    start_with_key(table, "off")
    with flooded(table.bench) as heard:
        until(lambda: b'{"hello"' in b"".join(heard), "the table")
    assert not PROMPT.search(b"".join(heard))
    told, state = greet(table.bench.port)
    assert state["fault"] == "CONFIG"
    assert told["uid"] == table.device.uid


# -- the lid's sequence: shut, shake, read, and nothing in between ---------------------------------------------------


@pytest.mark.parametrize("which", ["lid", "tamper"])
@pytest.mark.parametrize("state", [protocol.SHAKING, protocol.SETTLING])
def test_no_result_when_a_guard_opens_and_shuts_between_shake_and_read(
    open_table: OpenTable, which: str, state: str
) -> None:
    table = open_table(more={"settings": {"settle_ms": 1000}, "profile": {"jolt_ms": 500, "rest_ms": 10}})
    table.begin([2, 4, 6])
    table.may_shake()
    table.ask("shake")
    table.wait(state)
    force = {"force": True} if which == "lid" else {}
    table.do(which, to="open", **force)
    table.do(which, to="shut" if which == "lid" else "ok")
    until(lambda: table.records("void"), "the void roll")
    assert [void["reason"] for void in table.records("void")] == ["lid_opened" if which == "lid" else "tamper"]
    assert table.records("locked") == []
