"""Safe on every exit: the motor low, the lock not driven, the reason on record, and the table back by itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from boards.virtual.client import Table
from dragoneye.drivers import __name__ as drivers
from dragoneye.protocol import FAULT, IDLE, VOID
from host_tools import provision
from host_tools.board_files import BoardFiles, stop_table
from host_tools.link import LinkError, Refused
from tests.table.conftest import OpenTable
from tests.table.played import Tap
from tests.table.test_rounds import LONG_SHAKE
from tests.virtual import LONG, instant_table, until

ARMED = {**LONG_SHAKE, "watchdog_ms": 2000}

# Firmware with a flaw: `flaw()` happens once, the first time that the named method is called while the motor runs (or
# while the dice are read).
FLAWED = f"""
import asyncio, machine, time
from dragoneye import app, selftest, signals
from {drivers} import board, console, readers, shaker

shakers = []
spent = []
make = shaker.Shaker.__init__


def remember(self, *args):
    shakers.append(self)
    make(self, *args)


shaker.Shaker.__init__ = remember


def moving():
    return shakers and shakers[0].running


def once(owner, name, flaw, when=moving):
    good = getattr(owner, name)

    def bad(self, *args):
        if not spent and when():
            spent.append(1)
            flaw()
        return good(self, *args)

    setattr(owner, name, bad)


def fail():
    raise RuntimeError("flawed")


def hang():
    while True:
        time.sleep_ms(1000)


read = app.App._read


async def flawed_read(*args):
    if not spent:
        spent.append(1)
        fail()
    await read(*args)


run = app.App.run


async def cut_short(self):
    asyncio.create_task(run(self))
    while spent or not moving():
        await asyncio.sleep_ms(1)
    spent.append(1)

"""
START = "\napp.start()\n"

TASKS = {
    "input": 'once(console.Console, "read_line", fail)',
    "output": 'once(console.Console, "write_some", fail)',
    "table": 'once(app.App, "_inputs", fail)',
    "memory": 'once(app.App, "_collect", fail)',
    "signals": 'once(signals.Signals, "show", fail)',
    "shaker": 'once(shaker.Shaker, "milliamps", fail)',
    "reader": "app.App._read = flawed_read",
}


def flawed(folder: Path, flaw: str) -> Path:
    """A copy of the firmware with this flaw."""
    firmware = folder / "flawed"
    shutil.copytree(provision.FIRMWARE, firmware, ignore=shutil.ignore_patterns("__pycache__"))
    (firmware / "main.py").write_text(FLAWED + flaw + START)
    return firmware


@pytest.mark.parametrize("task", sorted(TASKS))
def test_an_exception_in_any_task_stops_the_motor_and_latches_a_fault(
    open_table: OpenTable, tmp_path: Path, task: str
) -> None:
    more = {"profile": {"jolt_ms": 400, "rest_ms": 10}}
    table = open_table(firmware=flawed(tmp_path, TASKS[task]), more=more)
    number = table.begin([2, 4, 6])
    table.ask("shake")
    table.wait(FAULT)
    assert table.motor_is_off()
    (fault,) = table.records("fault")
    assert (fault["code"], fault["set"]) == ("TASK", True)
    assert fault["detail"].startswith(task)
    assert [void["reason"] for void in table.records("void")] == ["fault"]
    # The table goes on talking; a supervisor clears the fault, and the round goes on.
    table.ask("clear", code="TASK")
    assert table.state == VOID
    table.shake()
    stored = table.finish()
    assert (stored["round"], stored["voids"]) == (number, 1)
    assert table.bench.state()["boots"] == 1
    table.check_record()


SERVICE_TASKS = {
    "selftest": ('once(selftest, "free_memory", fail, always)', "selftest", {"start": True}),
    "survey": ('once(readers.Readers, "survey", fail, always)', "sensors", {}),
    "maintenance": ('once(board, "restart_for_maintenance", fail, always)', "maintenance", {}),
}


@pytest.mark.parametrize("task", sorted(SERVICE_TASKS))
def test_an_exception_in_a_service_task_latches_a_fault(open_table: OpenTable, tmp_path: Path, task: str) -> None:
    flaw, request, fields = SERVICE_TASKS[task]
    table = open_table(firmware=flawed(tmp_path, "def always():\n    return True\n\n\n" + flaw))
    if task != "maintenance":
        table.ask("test", on=True)
    table.ask(request, **fields)
    until(lambda: table.device.refresh().get("fault") == "TASK", "the fault")
    assert table.motor_is_off()
    (fault,) = table.records("fault")
    assert (fault["code"], fault["set"]) == ("TASK", True)
    assert fault["detail"].startswith(task)
    table.ask("clear", code="TASK")
    if task != "maintenance":
        table.ask("test", on=False)
    assert table.play([1, 2, 3])[0]["status"] == "settled"
    assert table.bench.state()["boots"] == 1


@pytest.mark.parametrize(
    ("flaw", "why", "how"),
    [
        ("app.App.run = cut_short", "returned", "watchdog"),
        ('once(app.App, "_inputs", lambda: (_ for _ in ()).throw(KeyboardInterrupt))', "interrupted", "watchdog"),
        ('once(app.App, "_inputs", machine.soft_reset)', "SystemExit()", "soft"),
        ('once(app.App, "_inputs", machine.reset)', None, "reset"),
        ('once(app.App, "_inputs", hang)', None, "watchdog"),
    ],
)
def test_the_table_comes_back_by_itself(
    open_table: OpenTable, tmp_path: Path, flaw: str, why: str | None, how: str
) -> None:
    table = open_table(firmware=flawed(tmp_path, flaw), more=ARMED)
    number = table.begin()
    with suppress(LinkError):
        # The answer may not come any more.
        table.ask("shake")
    until(lambda: table.bench.state()["boots"] >= 2 or table.bench.state()["resets"].get("soft"), "the restart")
    assert table.motor_is_off()
    until(table.reconnects, "the table")
    assert table.device.state["state"] == IDLE
    assert [record["why"] for record in table.records("stopped")] == ([why] if why else [])
    first, second = table.records("boot")
    assert first["cause"] == "pwron"
    assert second["cause"] == ("soft" if how == "soft" else "wdt")
    assert table.store.round(number, table.device.uid)["status"] == "void"
    assert [void["reason"] for void in table.records("void")] == ["power_loss"]
    assert table.motor_is_off()
    table.check_record()


@pytest.mark.needs("config", "motor", "reset")
def test_a_hard_reset_in_a_shake(open_table: OpenTable) -> None:
    table = open_table(more=ARMED)
    number = table.begin()
    table.roll()
    table.do("reset")
    assert table.motor_is_off()
    until(table.reconnects, "the table")
    table.device.wait_stored(LONG)
    boots = table.records("boot")
    # A virtual table was new: its record begins with its first start.
    assert [record["cause"] for record in boots] == ["pwron"] * (2 if table.is_virtual else 1)
    assert table.store.round(number, table.device.uid)["status"] == "void"
    assert table.motor_is_off()


@pytest.mark.needs("config", "motor", "lid")
def test_a_flood_of_garbage_does_not_keep_the_lid_from_stopping_the_motor(open_table: OpenTable) -> None:
    table = open_table(more=LONG_SHAKE)
    table.begin()
    table.roll()
    for _count in range(20):
        table.write_raw(bytes(range(0x20, 0x7F)) * 20)
    table.do("lid", to="open", force=True)
    until(table.motor_is_off, "the motor to stop")
    table.write_raw(b"\n")
    table.wait(VOID)
    assert [void["reason"] for void in table.records("void")] == ["lid_opened"]
    stats = table.ask("stats")
    assert stats["overlong"] > 0


@pytest.mark.needs("config", "motor", "lid")
def test_a_flutter_of_the_lid_leaves_the_right_state(open_table: OpenTable) -> None:
    table = open_table(more=LONG_SHAKE)
    table.begin()
    table.roll()
    table.do("lid", to="open", force=True, bounce=200)
    table.wait(VOID)
    assert table.motor_is_off()
    until(lambda: table.device.refresh()["lid_open"], "the lid")
    table.do("lid", to="shut", bounce=200)
    until(lambda: not table.device.refresh()["lid_open"], "the lid")
    assert [door["open"] for door in table.records("door")] == [True, False]


def mpremote(table: Table, *arguments: str) -> str:
    command = [sys.executable, "-m", "mpremote", "connect", table.port, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=2 * LONG).stdout


def maintenance(table: Table) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "host_tools", "maintenance", "--port", table.port, "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * LONG)


def test_mpremote_gets_in_where_the_watchdog_is_armed(open_table: OpenTable, tmp_path: Path) -> None:
    table = open_table(more={"watchdog_ms": 2000})
    assert table.bench.state()["wdt_ms"] == 2000
    uid = table.device.uid
    table.begin()
    table.device.close()
    refused = maintenance(table.bench)
    assert refused.returncode == 2
    assert "BETTING" in json.loads(refused.stdout)["error"] or "CLOSED" in json.loads(refused.stdout)["error"]
    table.device.reconnect(LONG)
    table.ask("void", reason="maintenance")
    table.device.close()
    done = maintenance(table.bench)
    assert json.loads(done.stdout) == {"table": uid, "port": table.bench.port, "maintenance": True}
    state = table.bench.state()
    assert (state["boots"], state["wdt_ms"]) == (2, None)
    source = tmp_path / "more.py"
    source.write_text("print(6 * 7)\n")
    mpremote(table.bench, "cp", str(source), ":more.py")
    # Longer than the watchdog would wait, and a soft reset on the way, as each mpremote makes one.
    assert mpremote(table.bench, "exec", "import time; time.sleep(2.5); import more").strip() == "42"
    state = table.bench.state()
    assert (state["boots"], state["wdt_ms"]) == (2, None)
    assert table.motor_is_off()
    again = maintenance(table.bench)
    assert json.loads(again.stdout) == {"table": None, "port": table.bench.port, "maintenance": True}
    mpremote(table.bench, "reset")
    until(table.reconnects, "the table")
    assert table.bench.state()["wdt_ms"] == 2000
    assert [record["why"] for record in table.records("stopped")] == ["maintenance"]
    assert len(table.records("boot")) == 2
    table.check_record()


def test_a_table_in_maintenance_says_so_and_starts_by_itself_when_nobody_comes(
    open_table: OpenTable, tmp_path: Path
) -> None:
    firmware = tmp_path / "impatient"
    shutil.copytree(provision.FIRMWARE, firmware, ignore=shutil.ignore_patterns("__pycache__"))
    main = (firmware / "main.py").read_text()
    assert "MAINTENANCE_S = 600\n" in main
    (firmware / "main.py").write_text(main.replace("MAINTENANCE_S = 600\n", "MAINTENANCE_S = 4\n"))
    table = open_table(firmware=firmware)
    table.device.close()
    stop_table(table.bench.port)

    def heard() -> bool:
        # The port goes and comes with the reset.
        with suppress(LinkError), closing(Tap(table.bench.port, table.heard)) as tap:
            while tap.read(1.5):
                if b"maintenance: Ctrl-C" in table.heard:
                    return True
        return False

    until(heard, "what it says")
    until(table.reconnects, "the table")
    assert table.bench.state()["boots"] == 3
    assert table.play([1, 2, 3])[0]["status"] == "settled"


def test_a_table_in_maintenance_is_not_shut_off_by_what_nobody_reads(open_table: OpenTable) -> None:
    """A tablectl that takes it for a running table writes more than the port's buffer holds."""
    table = open_table()
    table.device.close()
    stop_table(table.bench.port)
    for _count in range(8):
        table.write_raw(b"~ 1 hello of a host that does not know\r\n" * 10)
    with BoardFiles(table.bench.port) as board:
        assert board.run("print(6 * 7)").strip() == b"42"
        board.reset()
    until(table.reconnects, "the table")


@pytest.mark.parametrize("fault", [True, False])
def test_maintenance_between_rounds_also_under_a_fault(open_table: OpenTable, fault: bool) -> None:
    table = open_table()
    if fault:
        table.do("tamper", to="open")
        table.wait(FAULT)
    table.ask("maintenance")
    # It is certain now: nothing may begin any more.
    with pytest.raises(Refused, match="E_STATE"):
        table.ask("open", shaker=1)
    until(lambda: table.bench.state()["boots"] == 2, "the restart")


def test_the_service_key_always_leaves_the_prompt(open_table: OpenTable) -> None:
    table = open_table(more=ARMED)
    table.begin()
    table.roll()
    table.do("service", to="on")
    assert table.bench.state()["service_on"]
    table.do("reset")
    assert table.motor_is_off()
    table.device.close()
    assert mpremote(table.bench, "exec", "print(6 * 7)").strip() == "42"
    assert table.bench.state()["wdt_ms"] is None
    assert table.motor_is_off()
    table.do("service", to="off")
    table.do("reset")
    until(table.reconnects, "the table")
    assert table.device.state["state"] == IDLE


def test_the_lockout_holds_at_the_table_and_a_held_button_shakes_once(open_table: OpenTable) -> None:
    table = open_table(more={"settings": {"settle_ms": 15, "lockout_ms": 5000}})
    table.do("fault", name="missing")
    table.begin()
    table.do("button", to="hold")
    table.wait(VOID)
    with pytest.raises(Refused, match="E_LOCKOUT"):
        table.ask("shake")
    assert 0 < table.device.refresh()["lockout_ms"] <= 5000
    table.do("button", to="release")
    table.do("button", to="press")
    table.device.poll(0.3)
    assert table.state == VOID
    assert len([edge for edge in table.bench.state()["edges"] if edge["duty"]]) == 3


# Counts collections, and those while the motor runs or the dice settle and are read.
COLLECTIONS = """
collections = [0, 0]
good_gc = app.heap.gc
stats = app.App._stats


class Gc:
    @staticmethod
    def collect():
        collections[0] += 1
        if moving() or (apps and apps[0].controller.table.state in ("SETTLING", "READING")):
            collections[1] += 1
        good_gc.collect()


apps = []


def counted(self):
    apps[:] = [self]
    return dict(stats(self), collections=list(collections))


app.heap.gc = Gc
app.App._stats = counted
"""
CARELESS = """
app.App._collect = lambda self, waited_ms: app.heap.collect()
"""


@pytest.mark.parametrize("careless", [False, True])
def test_nothing_is_collected_while_the_dice_roll(open_table: OpenTable, tmp_path: Path, careless: bool) -> None:
    """Of the collections that the program asks for; a careless one is seen."""
    more = {"profile": {"jolt_ms": 400, "rest_ms": 10}, "settings": {"settle_ms": 600}}
    table = open_table(firmware=flawed(tmp_path, COLLECTIONS + (CARELESS if careless else "")), more=more)
    table.begin([1, 2, 3])
    before = table.ask("stats")["collections"]
    table.shake()
    all_of_them, rolling_ones = table.ask("stats")["collections"]
    # One just before the shake, at least.
    assert all_of_them > before[0]
    assert (rolling_ones > 0) == careless


# Something that makes a record happens right after the pulse of the lock has begun.
DISTURBED = """
from dragoneye.drivers import lock

apps = []
effects = app.App._effects
pulse = lock.Lock.pulse


def known(self):
    apps[:] = [self]
    effects(self)


def disturbed(self):
    pulse(self)
    apps[0].report(apps[0].controller.table.set_fault, "TAMPER", "flawed")


app.App._effects = known
lock.Lock.pulse = disturbed
"""


def test_no_record_cuts_the_pulse_of_the_lock_short(open_table: OpenTable, tmp_path: Path) -> None:
    table = open_table(firmware=flawed(tmp_path, DISTURBED))
    table.ask("unlock")
    table.wait(FAULT)
    # The bolt needs 20 ms.
    assert table.bench.state()["released"]
    assert [fault["code"] for fault in table.records("fault")] == ["TAMPER"]


DRIVERS = """
import asyncio, json
from dragoneye import profile
from dragoneye.drivers import board

with open("/board.json") as file:
    parts = board.Board(json.load(file), {"profile": {"jolt_ms": 60, "rest_ms": 10}})
turns = 0


async def others():
    global turns
    while True:
        turns += 1
        await asyncio.sleep_ms(0)


async def run():
    asyncio.create_task(others())
    before = turns
    moved = await parts.shaker.run(2, 1)
    print("shaker", moved, turns - before > 10, parts.shaker.running)
    before = turns
    parts.lock.pulse()
    print("lock", parts.lock.active, turns - before)
    while parts.lock.active:
        await asyncio.sleep_ms(5)
    print("pulse over", turns - before > 10)
    parts.lock.pulse()
    parts.safe()
    print("safe", parts.lock.active)


asyncio.run(run())
"""


def test_drivers_let_others_run(tmp_path: Path) -> None:
    """Turns of another task while each driver is at work; a driver that waits by itself leaves none."""
    firmware = tmp_path / "drivers"
    shutil.copytree(provision.FIRMWARE, firmware, ignore=shutil.ignore_patterns("__pycache__"))
    (firmware / "main.py").write_text(DRIVERS)
    with instant_table(tmp_path / "place", firmware=firmware, powered=False) as bench:
        heard = bytearray()
        bench.do("power", to="on")

        def done() -> bool:
            with suppress(LinkError), closing(Tap(bench.port, heard)) as tap:
                while tap.read(1.0):
                    pass
            return b"safe" in heard

        until(done, "the drivers")
        lines = heard.decode().replace("\r", "").split("\n")
        assert lines[lines.index("shaker True True False") :][:4] == [
            "shaker True True False",
            "lock True 0",
            "pulse over True",
            "safe False",
        ]
        assert bench.state()["motor"] == [0, 0]
