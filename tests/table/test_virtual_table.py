"""The virtual table from outside: a tiny firmware on it, a serial port, and everything the control channel can do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import serial

from boards.virtual.client import Control, Table, TableError, connect_unix
from boards.virtual.unix_port import REPO
from tests.table.conftest import MakeTable
from tests.virtual import READERS

LONG = 30.0

SHAKE = (
    READERS
    + """
import asyncio, machine, sys
from machine import ADC, PWM, Pin

motor = PWM(Pin(14), freq=20000, duty_u16=0)
current = ADC(26)

async def main():
    while True:
        off = current.read_u16()
        motor.duty_u16(40000)
        await asyncio.sleep_ms(60)
        on = current.read_u16()
        motor.duty_u16(0)
        await asyncio.sleep_ms(450)
        print("shaken", off, on, sorted(await readers.scan()))
        await asyncio.sleep_ms(50)

asyncio.run(main())
"""
)


class Reader:
    """The host's end of the serial port, line by line."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._buffer = b""
        self._open()

    def _open(self) -> None:
        until = time.monotonic() + LONG
        while True:
            try:
                self.port = serial.Serial(self._table.port, timeout=0.05)
                return
            except serial.SerialException:
                assert time.monotonic() < until
                time.sleep(0.01)

    def until(self, text: str) -> str:
        """The first whole line that begins with `text`."""
        end = time.monotonic() + LONG
        while True:
            *lines, rest = self._buffer.split(b"\n")
            for at, line in enumerate(lines):
                if line.startswith(text.encode()):
                    self._buffer = b"\n".join([*lines[at + 1 :], rest])
                    return line.decode().strip()
            assert time.monotonic() < end, f"{text!r} never came; this did: {self._buffer!r}"
            self._read_some()

    def prompt(self) -> None:
        """Wait for MicroPython's prompt, which no line's end follows."""
        end = time.monotonic() + LONG
        while b">>> " not in self._buffer:
            assert time.monotonic() < end, f"the prompt never came; this did: {self._buffer!r}"
            self._read_some()
        self._buffer = self._buffer.partition(b">>> ")[2]

    def _read_some(self) -> None:
        try:
            self._buffer += self.port.read(4096)
        except serial.SerialException:  # the board was reset
            self.port.close()
            self._open()

    def write(self, text: str) -> None:
        self.port.write(text.encode())


@pytest.fixture
def reader() -> Iterator[Callable[[Table], Reader]]:
    readers = []

    def make(table: Table) -> Reader:
        readers.append(Reader(table))
        return readers[-1]

    yield make
    for one in readers:
        one.port.close()


MakeReader = Callable[[Table], Reader]


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie that nobody has buried yet counts as ended)."""
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_dice_are_shaken_and_read_and_the_current_tells(make_table: MakeTable, reader: MakeReader) -> None:
    table = make_table(SHAKE)
    lines = reader(table)
    first = lines.until("shaken").split(" ", 3)
    assert int(first[1]) < 50 * 65535 // 3300 < 150 * 65535 // 3300 < int(first[2])
    table.do("next", dice=[[1, 1, 1], [6, 6, 6], [2, 2, 2]])
    seen = [lines.until("shaken").split(" ", 3)[3] for _ in range(5)]
    ones = str(sorted(["04D15EA0000060", "04D25EA1000061", "04D35EA2000062"]))
    assert ones in seen
    state = table.state()
    assert state["shakes"] >= 6
    assert [edge["duty"] for edge in state["edges"][:4]] == [40000, 0, 40000, 0]
    assert state["pid"]
    assert state["boots"] == 1


LID = """
import asyncio, machine, time
from machine import Pin

edges = [0, 0]
lid = Pin(17, Pin.IN, Pin.PULL_UP)

def moved(pin):
    edges[pin.value()] += 1

lid.irq(moved, Pin.IRQ_FALLING | Pin.IRQ_RISING, hard=True)
print("up", lid.value())

async def main():
    seen = None
    while True:
        if edges != seen:
            seen = list(edges)
            print("edges", edges)
        await asyncio.sleep_ms(5)

def busy():
    end = time.ticks_add(time.ticks_ms(), 60000)
    while time.ticks_diff(end, time.ticks_ms()) > 0 and edges[1] < 3:
        time.sleep_ms(200)
    print("slept", edges)

MODE
"""


def test_the_lid_interrupts_a_program_that_awaits(make_table: MakeTable, reader: MakeReader) -> None:
    table = make_table(LID.replace("MODE", "asyncio.run(main())"))
    lines = reader(table)
    lines.until("edges [0, 0]")
    table.do("lid", to="open", force=True)
    lines.until("edges [0, 1]")
    table.do("lid", to="shut", bounce=3)
    lines.until("edges [1, 1]")
    table.do("lid", to="open", force=True, bounce=3)
    lines.until("edges [4, 5]")


def test_the_lid_interrupts_a_program_that_sleeps(make_table: MakeTable, reader: MakeReader) -> None:
    table = make_table(LID.replace("MODE", "busy()"))
    lines = reader(table)
    lines.until("up 0")
    table.do("lid", to="open", force=True, bounce=2)
    lines.until("slept [2, 3]")


def test_a_hard_handler_that_allocates_is_shown(make_table: MakeTable, reader: MakeReader) -> None:
    main = LID.replace("edges[pin.value()] += 1", "edges.append(bytearray(64))").replace("MODE", "asyncio.run(main())")
    table = make_table(main)
    lines = reader(table)
    lines.until("edges")
    table.do("lid", to="open", force=True)
    lines.until("Uncaught exception in IRQ callback handler")
    lines.until("MemoryError")


MACHINE = """
import machine, neopixel, sys, time, os
from machine import *

def raises(function):
    try:
        function()
    except ValueError as error:
        return str(error)
    return "no error"

print("pins", raises(lambda: Pin(30)), "|", raises(lambda: Pin("X")))
print("same", Pin(14) is Pin("GP14"), Pin(17)(), end=" ")
for number, pull in ((17, Pin.PULL_UP), (19, None), (19, Pin.PULL_UP)):
    print(Pin(number, Pin.IN, pull)(), end=" ")
print()
print("spi", raises(lambda: SPI(0, sck=Pin(5))), "|", raises(lambda: SPI(2)))
print("adc", raises(lambda: ADC(Pin(5))), "|", ADC(27).read_u16() > 30000)
print("pwm", raises(lambda: PWM(Pin(14), freq=1)), "|", end=" ")
one = PWM(Pin(14), freq=20000, duty_u16=1000)
print(raises(lambda: PWM(Pin(15), freq=1000)))
two = PWM(Pin(15), freq=20000, duty_ns=25000)
print("duty", two.duty_u16(), two.duty_ns(), two.freq())
Pin(14, Pin.OUT, value=0)
one.duty_u16(50000)
two.deinit()
Pin(15, Pin.OUT, value=0)
print("wdt", raises(lambda: WDT(timeout=9000)), "|", raises(lambda: WDT(timeout=0)))
print("i2c", raises(lambda: I2C(0, scl=Pin(2), sda=Pin(4))), "|", I2C(0, scl=Pin(1), sda=Pin(0)).scan())
print("id", unique_id().hex(), freq(), reset_cause(), os.uname()[0], os.listdir("/"))
ring = neopixel.NeoPixel(Pin(21), 2)
ring[0] = (255, 16, 1)
ring.write()
PWM(Pin(22), freq=440, duty_u16=32768)
fired = []
once = Timer(period=5, mode=Timer.ONE_SHOT, callback=lambda t: fired.append(2))
timer = Timer(period=20, mode=Timer.PERIODIC, callback=lambda t: fired.append(1))
while len(fired) < 4:
    time.sleep_ms(5)
timer.deinit()
print("timer", fired)
state = disable_irq()
enable_irq(state)
print("ticks", 0 <= time.ticks_diff(time.ticks_ms(), 0x3FFFFFF0) < 60000, time.gmtime(time.time())[0])
print("done")
"""


def test_machine_is_the_rp2_ports(make_table: MakeTable, reader: MakeReader) -> None:
    table = make_table(MACHINE, uid="e66118604b2d5a21", ticks_ms=0x3FFFFFF0)
    lines = reader(table)
    said = {}
    for name in ("pins", "same", "spi", "adc", "pwm", "duty", "wdt", "i2c", "id", "timer", "ticks", "done"):
        said[name] = lines.until(name)
    assert said["pins"] == "pins unknown pin: 30 | unknown pin: 'X'"
    assert said["same"] == "same True 0 0 0 1"  # the lid is shut; an open switch without a pull-up floats
    assert said["spi"] == "spi bad SCK pin: GPIO5 is not one of SPI0 | SPI(2) doesn't exist"
    assert said["adc"] == "adc Pin(5) doesn't have ADC capabilities | True"
    assert said["pwm"] == "pwm freq too small | PWM slice 7 already runs at 20000 Hz for Pin(GPIO14, mode=IN)"
    assert said["duty"] == "duty 32767 24999 20000"
    assert said["wdt"] == "wdt timeout exceeds 8388 | timeout must be at least 1"
    assert said["i2c"] == "i2c bad SCL pin: GPIO2 is not one of I2C0 | []"
    assert said["id"] == "id e66118604b2d5a21 125000000 1 rp2 []"
    assert said["timer"] == "timer [2, 1, 1, 1]"
    assert said["ticks"] == "ticks True 2021"
    state = table.state()
    assert state["ring"] == [[255, 16, 1], [0, 0, 0]]
    assert state["buzzer"] == {"freq": 440, "duty": 32768}
    # The pin left the PWM when it became an output; deinit stops a slice at the worse of its two levels.
    assert [(edge["pin"], edge["duty"]) for edge in state["edges"]] == [
        ("motor_in1", 1000),
        ("motor_in2", 32767),
        ("motor_in1", 0),
        ("motor_in2", 65535),
        ("motor_in2", 0),
    ]


def test_the_watchdog_resets_a_program_that_hangs(make_table: MakeTable, reader: MakeReader) -> None:
    main = (
        "import machine, time\n"
        "print('cause', machine.reset_cause())\n"
        "if machine.reset_cause() == machine.PWRON_RESET:\n"
        "    machine.Pin(14, machine.Pin.OUT, value=1)\n"
        "    dog = machine.WDT(timeout=400)\n"
        "    for _ in range(20):\n"
        "        dog.feed()\n"
        "        time.sleep_ms(50)\n"
        "    print('hangs')\n"
        "    while True:\n"
        "        pass\n"
    )
    table = make_table(main)
    reader(table).until("hangs")
    state = table.wait_for("boots", 2)
    assert state["last_reset"] == "watchdog"
    assert [edge["duty"] for edge in state["edges"]] == [65535, 0]  # the reset lets the motor's pin fall
    reader(table).until("cause 3")


def test_reset_and_soft_reset(make_table: MakeTable, reader: MakeReader) -> None:
    main = (
        "import machine, sys\n"
        "pin = machine.Pin(14)\n"
        "print('start', machine.reset_cause(), pin.value())\n"
        "while True:\n"
        "    word = sys.stdin.readline().strip()\n"
        "    if word == 'soft':\n"
        "        machine.Pin(14, machine.Pin.OUT, value=1)\n"
        "        machine.soft_reset()\n"
        "    if word == 'hard':\n"
        "        machine.reset()\n"
    )
    table = make_table(main)
    lines = reader(table)
    lines.until("start 1 0")
    lines.write("soft\n")
    lines.until("MPY: soft reboot")
    lines.until("start 1 1")  # the port stays open
    assert [edge["duty"] for edge in table.state()["edges"]] == [65535]  # and so does the pin
    lines.write("hard\n")
    lines.until("start 3 0")
    table.do("reset")
    lines.until("start 1 0")


def test_ctrl_c_interrupts_and_throws_away_what_waits(make_table: MakeTable, reader: MakeReader) -> None:
    main = (
        "import time, sys, micropython\n"
        "try:\n"
        "    print('waits')\n"
        "    while True:\n"
        "        time.sleep_ms(10)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
        "try:\n"
        "    print('counts')\n"
        "    while True:\n"
        "        pass\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted again')\n"
        "print('got', sys.stdin.buffer.read(1))\n"
        "micropython.kbd_intr(-1)\n"
        "print('plain')\n"
        "print('got', sys.stdin.buffer.read(3))\n"
    )
    table = make_table(main)
    lines = reader(table)
    lines.until("waits")
    lines.write("lost\x03")
    lines.until("interrupted")
    lines.until("counts")
    lines.write("lost\x03x")
    lines.until("interrupted again")
    lines.until("got b'x'")
    lines.until("plain")
    lines.write("a\x03b")
    lines.until("got b'a\\x03b'")
    lines.prompt()
    lines.write("6 * 7\r")
    lines.until("42")
    lines.write("\x04")
    lines.until("waits")
    assert table.state()["crashes"] == 0


def test_mpremote_gets_in(make_table: MakeTable, tmp_path: Path) -> None:
    table = make_table("import time\nwhile True:\n    print('runs')\n    time.sleep_ms(20)\n")

    def mpremote(*arguments: str) -> str:
        command = [sys.executable, "-m", "mpremote", "connect", table.port, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=LONG).stdout

    (tmp_path / "more.py").write_text("print(6 * 7)\n")
    mpremote("cp", str(tmp_path / "more.py"), ":more.py")
    assert mpremote("exec", "import more").strip() == "42"
    assert mpremote("ls").split() == ["ls", ":", "13", "more.py"]
    assert table.state()["crashes"] == 0


KEEPS = """
import os, json, time
try:
    with open("/kept.json") as file:
        boots = json.load(file)
except OSError:
    boots = 0
boots += 1
with open("/kept.json", "w") as file:
    json.dump(boots, file)
print("boots", boots, sorted(os.listdir("/")))
number = 0
while True:
    number += 1
    with open("/log", "a") as file:
        file.write("%06d\\n" % number)
"""


def test_files_survive_power_cuts(make_table: MakeTable, reader: MakeReader, tmp_path: Path) -> None:
    provisions = tmp_path / "provisions"
    (provisions / "lib").mkdir(parents=True)
    (provisions / "board.json").write_text("{}")
    (provisions / "lib/more.py").write_text("MORE = 1\n")
    table = make_table("import more\n" + KEEPS, provision=provisions, heapsize="300k")
    reader(table).until("boots 1 ['board.json', 'kept.json', 'lib']")
    for boots in range(2, 6):
        time.sleep(0.02 * boots)
        table.do("power", to="off")
        state = table.state()
        assert (state["power"], state["pid"]) == (False, None)
        table.do("power", to="on")
        reader(table).until(f"boots {boots} ['board.json', 'kept.json', 'lib', 'log']")


def test_the_power_can_be_cut_at_a_chosen_write(make_table: MakeTable, reader: MakeReader) -> None:
    table = make_table(KEEPS, powered=False)
    with pytest.raises(TableError, match="the power is off; allowed: power on with cut"):
        table.do("cut", at=1)
    for at in (1, 2, 3, 5, 8, 13):
        table.do("power", to="on", cut={"at": at, "torn": at % 2 == 1})
        state = table.wait_for("power", False)
        assert state["last_reset"].startswith("power cut at a ")
    table.do("power", to="on")
    reader(table).until("boots")
    table.do("cut", at=2, only="erase", torn=True)
    assert table.wait_for("power", False)["last_reset"] == "power cut at a erase"
    table.do("power", to="on")
    reader(table).until("boots")


def test_the_table_is_looked_after_without_power(make_table: MakeTable, reader: MakeReader) -> None:
    table = make_table(LID.replace("MODE", "asyncio.run(main())"), powered=False)
    assert not Path(table.port).exists()
    table.do("lid", to="open", force=True)
    table.do("place", dice=[2, 2, 2])
    table.do("power", to="on")
    reader(table).until("up 1")
    assert table.state()["dice"] == [2, 2, 2]


ECHO = """
import sys, select, time
poll = select.poll()
poll.register(sys.stdin, select.POLLIN)
print("ready")
while True:
    if poll.poll(50):
        sys.stdout.buffer.write(sys.stdin.buffer.read(1))
    if poll.poll(0):
        continue
    time.sleep_ms(1)
"""


def test_bytes_pass_both_ways_unharmed_and_in_order(make_table: MakeTable, reader: MakeReader) -> None:
    table = make_table(ECHO)
    lines = reader(table)
    lines.until("ready")
    sent = bytes(number % 256 for number in range(20000) if number % 256 != 3)
    got = b""
    end = time.monotonic() + LONG
    for at in range(0, len(sent), 1500):  # more than the board's input ring holds
        lines.port.write(sent[at : at + 1500])
        while len(got) < min(at + 1500, len(sent)) and time.monotonic() < end:
            got += lines.port.read(4096)
    assert got == sent


def test_nobody_reading_backs_up_and_loses_nothing(make_table: MakeTable, reader: MakeReader) -> None:
    table = make_table("for i in range(40000):\n    print('line', i)\nprint('end')\n")
    port = reader(table).port  # open, and not read
    time.sleep(0.5)
    table.do("help")  # the bench lives
    data = b""
    end = time.monotonic() + LONG
    while b"end\n" not in data and time.monotonic() < end:
        data += port.read(65536)
    numbers = [int(line[5:]) for line in data.splitlines() if line.startswith(b"line")]
    assert numbers == list(range(numbers[0], 40000))


def test_the_cable_can_be_pulled_and_the_firmware_runs_on(make_table: MakeTable, reader: MakeReader) -> None:
    table = make_table("import time\nn = 0\nwhile True:\n    print('tick', n)\n    n += 1\n    time.sleep_ms(5)\n")
    lines = reader(table)
    before = int(lines.until("tick").split()[1])
    table.do("cable", to="out")
    with pytest.raises((serial.SerialException, OSError)):  # noqa: PT012 - the hang-up may take a read to show
        for _ in range(200):
            lines.port.read(4096)
    assert not Path(table.port).exists()
    time.sleep(0.3)
    table.do("cable", to="in")
    lines = reader(table)
    after = int(lines.until("tick").split()[1])
    assert after > before + 10
    assert table.state()["boots"] == 1
    assert table.state()["dropped"] > 0


def test_the_control_channel_names_what_is_wrong(make_table: MakeTable) -> None:
    table = make_table("import time\nwhile True:\n    time.sleep(1)\n")
    for name, args, said in (
        ("dance", {}, "'dance' is no command; allowed: button, cable, clear, cut, "),
        ("lid", {"to": "up"}, "to must be open or shut, not 'up'"),
        ("lid", {"way": "up"}, "lid takes no 'way'; allowed: to, force, bounce"),
        ("lid", {"to": "open"}, "the lid is latched"),
        ("power", {"to": "maybe"}, "to must be on or off, not 'maybe'"),
        ("power", {"to": "on", "cut": {"when": 1}}, "allowed|cut takes at, torn and only"),
        ("cable", {}, "to must be in or out, not None"),
        ("cut", {"at": 0}, "at must be a whole number from 1"),
        ("cut", {"at": 1, "only": "read"}, "only must be program, erase or null"),
        ("ticks", {"ms": -1}, "ms must be a whole number from 0"),
        ("lid", {"to": "shut", "bounce": -1}, "bounce must be a whole number from 0 to 1000"),
    ):
        if name == "power" and "cut" in args:
            table.do("power", to="off")
        with pytest.raises(TableError, match=said):
            table.do(name, **args)
        if name == "power" and "cut" in args:
            table.do("power", to="on")
    raw = connect_unix(table.folder / "control", LONG)
    file = raw.makefile("rwb")
    for line, said in ((b"{", "is not JSON"), (b"[1]", 'an object with "do"'), (b'{"do": 5, "id": 9}', '"do"')):
        file.write(line + b"\n")
        file.flush()
        answer = json.loads(file.readline())
        assert answer["ok"] is False
        assert said in answer["error"]
    assert answer["id"] == 9
    file.close()
    raw.close()


def test_several_clients_at_once(make_table: MakeTable) -> None:
    table = make_table("import time\nwhile True:\n    time.sleep(1)\n")
    controls = [Control(table.folder) for _ in range(8)]
    for number, control in enumerate(controls):
        control.do("next", dice=[1 + number % 6] * 3)
    assert len(table.state()["queue"]) == 8
    for control in controls:
        control.close()


def test_a_busy_firmware_does_not_hinder_power_and_reset(make_table: MakeTable, reader: MakeReader) -> None:
    table = make_table("print('busy')\nwhile True:\n    pass\n")
    reader(table).until("busy")
    other = Control(table.folder)
    assert table.state()["answered"] is False  # told by the bench alone
    other._connection.sendall(b'{"do": "lid", "to": "shut"}\n')  # cannot be done
    table.do("power", to="off")
    assert b"the board lost its power before it answered" in other._file.readline()
    other.close()


def test_the_same_folder_serves_one_bench_and_remembers(make_table: MakeTable, tmp_path: Path) -> None:
    table = make_table("", uid="0102030405060708", folder=tmp_path / "same")
    with pytest.raises(TableError, match="another bench already runs in"):
        Table(tmp_path / "same").start()
    table.do("place", dice=[6, 5, 4])
    table.stop()
    again = Table(tmp_path / "same", firmware=tmp_path / "firmware1", seed=7).start()
    state = again.state()
    again.stop()
    assert (state["dice"], state["uid"]) == ([6, 5, 4], "0102030405060708")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"firmware": "/no/such/folder"}, "--firmware: there is no folder /no/such/folder"),
        ({"seed": -1}, "--seed must be from 0"),
        ({"uid": "12"}, "--uid must be 8 bytes in hex, not '12'"),
        ({"heapsize": "lots"}, "--heapsize must be KiB from 64, such as 480k, not 'lots'"),
        ({"tags": "/no/file"}, "--tags: there is no file /no/file"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], said: str) -> None:
    with pytest.raises(TableError, match=said):
        Table(**options).start()  # type: ignore[arg-type]


def test_long_folder_names(make_table: MakeTable, tmp_path: Path, reader: MakeReader) -> None:
    table = make_table("print('here')\n", folder=tmp_path / ("long" * 20) / ("name" * 20))
    reader(table).until("here")
    assert len(table.port) > 150


@pytest.mark.parametrize("busy", [False, True])
def test_killing_the_bench_leaves_no_process(make_table: MakeTable, reader: MakeReader, busy: bool) -> None:
    if busy and sys.platform != "linux":
        pytest.skip("only Linux ends a child with its parent")
    loop = "    pass\n" if busy else "    time.sleep_ms(5)\n"
    table = make_table("import time\nprint('runs')\nwhile True:\n" + loop)
    reader(table).until("runs")
    pid = (
        table.state()["pid"]
        if not busy
        else int(subprocess.run(["pgrep", "-P", str(table.pid)], capture_output=True, text=True, check=True).stdout)
    )
    os.kill(table.pid, signal.SIGKILL)
    assert gone(pid)


def test_a_killed_test_leaves_no_bench(tmp_path: Path) -> None:
    script = (
        "import sys, os, signal\n"
        f"sys.path.insert(0, {str(REPO)!r})\n"
        "from boards.virtual.client import Table\n"
        f"table = Table({str(tmp_path)!r}, firmware={str(tmp_path)!r}).start()\n"
        "print(table.pid, table.state()['pid'], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    bench, board = map(int, run.stdout.split())
    assert gone(bench)
    assert gone(board)
