"""`tablectl doctor`: each finding on a made-up computer, and what a virtual table answers."""

from __future__ import annotations

import json
import os
import re
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoneye.protocol import DEALER
from host_tools import doctor, keys
from host_tools.doctor import FAIL, OK, RULES, WARN, Computer, Finding
from host_tools.flash import VENDOR
from host_tools.link import SerialTransport
from tests.unit.conftest import Tablectl
from tests.virtual import instant_table, until

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    """A computer on which all is well, but for a board."""
    root = tmp_path / "root"
    (root / "etc/udev/rules.d").mkdir(parents=True)
    (root / "etc/udev/rules.d" / RULES.name).write_text(RULES.read_text())
    image = tmp_path / "image.uf2"
    image.touch()
    return Computer(
        root=root,
        platform="linux",
        python=(3, 12),
        record=tmp_path / "data" / "rounds.db",
        ports=list,
        now=lambda: NOW,
        free_mb=lambda folder: 5000,
        image=lambda: image,
    )


def found(findings: Iterator[Finding]) -> dict[str, tuple[str, str]]:
    """Check -> (status, what is said and the remedy)."""
    return {finding.check: (finding.status, f"{finding.says} | {finding.remedy}") for finding in findings}


def fake_board(vid: int = VENDOR, device: str = "/dev/ttyACM0") -> SimpleNamespace:
    return SimpleNamespace(device=device, vid=vid)


def process(root: Path, number: int, name: str, *opened: str) -> None:
    place = root / "proc" / str(number)
    (place / "fd").mkdir(parents=True)
    (place / "comm").write_text(name + "\n")
    for count, path in enumerate(opened):
        (place / "fd" / str(count)).symlink_to(path)


def test_a_computer_without_a_board_is_told_what_to_try(computer: Computer) -> None:
    said = found(doctor.examine(computer))
    assert {check: status for check, (status, _) in said.items() if status != OK} == {"board": WARN}
    assert "the cable may only charge" in said["board"][1]
    assert "tablectl virtual" in said["board"][1]


@pytest.mark.parametrize("version", [(3, 9), (3, 14), (4, 0)])
def test_a_python_that_is_too_old_or_new(computer: Computer, version: tuple[int, int]) -> None:
    computer.python = version
    assert found(doctor.python_and_packages(computer))["python"][0] == FAIL


def test_packages_are_held_against_what_is_pinned(computer: Computer) -> None:
    computer.requires = lambda name: [
        "right==1.0",
        'either==2.0; python_version >= "3.11"',
        'either==1.9; python_version < "3.11"',
        "other==3.0",
        'elsewhere==1; sys_platform == "plan9"',
        'tool==1; extra == "dev"',
        "absent==1",
    ]

    def version_of(name: str) -> str:
        versions = {"right": "1.0", "either": "1.9", "other": "3.1"}
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    computer.version_of = version_of
    findings = [finding for finding in doctor.python_and_packages(computer) if finding.check == "packages"]
    assert [(finding.status, finding.says) for finding in findings] == [
        (WARN, "other is 3.1, tested was 3.0"),
        (FAIL, "absent is not installed"),
        (OK, "2 packages are as tested"),
    ]

    def unknown(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    computer.requires = unknown
    assert found(doctor.python_and_packages(computer))["packages"][0] == WARN


def test_this_installation_is_as_pinned() -> None:
    said = found(doctor.python_and_packages(Computer()))
    assert [said["python"][0], said["packages"][0]] == [OK, OK]


def test_a_clock_that_was_never_set_or_has_gone_back(computer: Computer) -> None:
    assert found(doctor.clock(computer))["clock"][0] == OK
    computer.record.parent.mkdir()
    computer.record.touch()
    later = (NOW + timedelta(days=1)).timestamp()
    os.utime(computer.record, (later, later))
    status, said = found(doctor.clock(computer))["clock"]
    assert (status, "but the record was written to at 2026-06-02" in said) == (FAIL, True)
    computer.now = lambda: datetime(1970, 1, 1, 0, 5, tzinfo=timezone.utc)
    status, said = found(doctor.clock(computer))["clock"]
    assert (status, "it was never set" in said) == (FAIL, True)


@pytest.mark.parametrize(("free", "status"), [(10, FAIL), (100, WARN), (1000, OK)])
def test_room_for_the_record(computer: Computer, free: int, status: str) -> None:
    computer.free_mb = lambda folder: free
    assert found(doctor.record(computer))["record"][0] == status


def test_a_record_that_may_not_be_written(computer: Computer) -> None:
    computer.may = lambda path, mode: not mode & os.W_OK
    status, said = found(doctor.record(computer))["record"]
    assert (status, "may not be written" in said) == (FAIL, True)


def test_an_image_that_is_missing_and_a_micropython_that_is(
    computer: Computer, monkeypatch: pytest.MonkeyPatch
) -> None:
    computer.image = lambda: None
    monkeypatch.setenv("MICROPYTHON", "/no/such/micropython")
    said = found(doctor.virtual_tables(computer))
    assert {check: status for check, (status, _) in said.items()} == {"virtual": WARN, "image": WARN}


def test_the_udev_rule(computer: Computer) -> None:
    assert found(doctor.udev_rule(computer))["udev"][0] == OK
    rule = computer.root / "etc/udev/rules.d" / RULES.name
    rule.write_text("# an older one\n")
    assert "is not this program's udev rule" in found(doctor.udev_rule(computer))["udev"][1]
    rule.unlink()
    status, said = found(doctor.udev_rule(computer))["udev"]
    assert (status, "sudo cp" in said, "ModemManager" in said) == (WARN, True, False)
    process(computer.root, 17, "ModemManager")
    assert "ModemManager runs" in found(doctor.udev_rule(computer))["udev"][1]


def test_the_shipped_rule_is_of_the_form_that_udev_reads() -> None:
    """Each line: comma-separated matches and assignments; the jump has its label."""
    lines = [line for line in RULES.read_text().splitlines() if line and not line.startswith("#")]
    part = r'(ACTION|SUBSYSTEM|KERNEL|ENV\{\w+\}|ATTRS?\{\w+\}|GOTO|LABEL|SYMLINK|TAG)(==|=|\+=)"[^"]*"'
    assert all(re.fullmatch(rf"{part}(, {part})*", line) for line in lines)
    assert next(line for line in lines if "GOTO" in line).split('GOTO="')[1] == lines[-1].split('LABEL="')[1]
    assert 'ENV{ID_MM_DEVICE_IGNORE}="1"' in RULES.read_text()


def test_a_board_in_its_boot_loader(computer: Computer) -> None:
    place = computer.root / "sys/bus/usb/devices/1-1"
    place.mkdir(parents=True)
    (place / "idVendor").write_text("2e8a\n")
    (place / "idProduct").write_text("000f\n")
    [first, second] = doctor.board_there(computer, [], None)
    assert "the RP2350 is in its boot loader" in first.says
    assert "copy MicroPython's .uf2" in first.remedy
    assert second.status == WARN
    (place / "idProduct").write_text("0005\n")
    assert [finding.status for finding in doctor.board_there(computer, ["/dev/ttyACM0"], None)] == [OK]


def test_every_board_that_is_found_is_looked_at(computer: Computer, tmp_path: Path) -> None:
    computer.ports = lambda: [fake_board(device=str(tmp_path / "gone"))]
    said = found(doctor.examine(computer))
    assert (said["board"][0], said["port"][0]) == (OK, FAIL)
    computer.ports = lambda: [fake_board(vid=0x1234)]
    assert "port" not in found(doctor.examine(computer))


def test_a_port_that_is_not_there(computer: Computer, tmp_path: Path) -> None:
    [finding] = doctor.port_and_table(computer, str(tmp_path / "none"))
    assert (finding.status, "a cable that only charges" in finding.remedy) == (FAIL, True)


@pytest.mark.parametrize(("member", "remedy"), [(False, " and log in anew"), (True, "; you are in it already")])
def test_a_port_that_may_not_be_opened(computer: Computer, tmp_path: Path, member: bool, remedy: str) -> None:
    port = tmp_path / "ttyACM0"
    port.touch()
    computer.may = lambda path, mode: False
    computer.group_of = lambda path: ("dialout", member)
    [finding] = doctor.port_and_table(computer, str(port))
    assert (finding.status, "belongs to the group dialout" in finding.says) == (FAIL, True)
    assert finding.remedy.startswith("sudo usermod -aG dialout $USER" + remedy)


def test_who_holds_a_port(computer: Computer, tmp_path: Path) -> None:
    port = tmp_path / "ttyACM0"
    port.touch()
    process(computer.root, 4711, "minicom", str(port), "/dev/null")
    process(computer.root, 4712, "other", "/dev/null")
    process(computer.root, os.getpid(), "pytest", str(port))
    [finding] = doctor.port_and_table(computer, str(port))
    assert (finding.status, finding.says) == (FAIL, f"{port}: another program has it open: minicom (4711)")


@contextmanager
def pseudo_terminal() -> Iterator[str]:
    master, slave = os.openpty()
    tty.setraw(slave)
    try:
        yield os.ttyname(slave)
    finally:
        os.close(slave)
        os.close(master)


def test_a_port_that_another_has_locked(computer: Computer) -> None:
    with pseudo_terminal() as port:
        first = SerialTransport(port)
        [finding] = doctor.port_and_table(computer, port)
        first.close()
    assert (finding.status, "the port is busy" in finding.says, "lsof" in finding.remedy) == (FAIL, True, True)


class Scripted(SerialTransport):
    """A port whose control lines and answers are made up."""

    def __init__(self, dtr: bool | None, answer: bytes) -> None:
        self._dtr = dtr
        self._answer = answer
        self._time = 0.0

    def dtr(self) -> bool | None:
        return self._dtr

    def read(self, timeout: float) -> bytes:
        self._time += max(timeout, 0.1)
        return self._answer

    def write(self, data: bytes) -> None:
        pass

    def now(self) -> float:
        return self._time

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("dtr", "answer", "expected", "words"),
    [
        (True, b"", {"port": OK, "dtr": OK, "table": FAIL}, "does not answer hello"),
        (False, b"", {"port": OK, "dtr": FAIL, "table": FAIL}, "does not answer hello"),
        (None, b"\r\n>>> ", {"port": OK, "dtr": OK, "table": FAIL}, "MicroPython's prompt answers"),
    ],
)
def test_what_does_not_answer(
    computer: Computer, tmp_path: Path, dtr: bool | None, answer: bytes, expected: dict[str, str], words: str
) -> None:
    port = tmp_path / "ttyACM0"
    port.touch()
    computer.open_port = lambda name: Scripted(dtr, answer)
    said = found(doctor.port_and_table(computer, str(port)))
    assert {check: status for check, (status, _) in said.items()} == expected
    assert words in said["table"][1]
    assert said["table"][1].endswith(f"tablectl flash --port {port}")


def test_a_virtual_table_and_its_fault(computer: Computer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with instant_table(tmp_path) as table:
        said = found(doctor.port_and_table(computer, table.port))
        well = {"port": OK, "dtr": OK, "table": OK, "keys": WARN, "build": OK}
        assert {check: status for check, (status, _) in said.items()} == well
        assert "protocol 1." in said["table"][1]
        monkeypatch.setattr(doctor, "build_hash", lambda: "another")
        table.do("fault", name="motor_stuck")
        said = until(
            lambda: (now := found(doctor.port_and_table(computer, table.port))).get("fault") and now, "the fault"
        )
        assert (said["build"][0], said["fault"][0]) == (WARN, FAIL)
        assert said["build"][1].endswith(f"tablectl flash --port {table.port}")
        assert "the table has a fault, MOTOR_STUCK" in said["fault"][1]
        assert "clear MOTOR_STUCK" in said["fault"][1]


def test_the_exit_code_is_the_worst(tablectl: Tablectl, monkeypatch: pytest.MonkeyPatch) -> None:
    worst = [Finding("one", OK, "well"), Finding("two", WARN, "hm", "look"), Finding("three", FAIL, "no", "mend it")]
    for code in (0, 1, 2):
        shown: list[Any] = worst[: code + 1]
        monkeypatch.setattr("host_tools.cli.doctor.examine", lambda computer, port, shown=shown: iter(shown))
        done = tablectl("doctor")
        assert (done.code, done.err) == (code, "")
        rows = tablectl("doctor", "--json").rows
        assert [row["status"] for row in rows] == [OK, WARN, FAIL][: code + 1]
    assert "failure  three: no\n         → mend it\n" in done.out
    assert json.loads(json.dumps(rows[2])) == {"check": "three", "status": "fail", "says": "no", "remedy": "mend it"}
    assert "fallo  three" in tablectl("doctor", "--lang", "es").out


def test_here_and_now(tablectl: Tablectl, tmp_path: Path) -> None:
    done = tablectl("doctor", "--port", str(tmp_path / "none"), "--json")
    assert done.code == 2
    assert {row["check"] for row in done.rows} >= {"python", "packages", "clock", "record", "virtual", "image", "port"}


@pytest.mark.parametrize(
    ("told", "status", "words"),
    [
        ({"unprovisioned": True, "key_id": None, "locked": True}, WARN, "tablectl keys provision --port P"),
        ({"unprovisioned": False, "key_id": None, "locked": True}, FAIL, "tablectl keys rotate --port P"),
        ({"unprovisioned": False, "key_id": "0badcafe", "locked": False}, WARN, "config set locked true --port P"),
        ({"unprovisioned": False, "key_id": "0badcafe", "locked": True}, OK, "the keys 0badcafe, and is locked"),
    ],
)
def test_whether_a_table_has_keys_and_is_locked(told: dict[str, Any], status: str, words: str) -> None:
    finding = doctor._keys(told, "P")
    assert finding.status == status
    assert words in f"{finding.says} {finding.remedy}"


def test_which_keys_of_the_table_are_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys.json"
    monkeypatch.setenv("DRAGONEYE_KEYS", str(path))
    assert doctor._held("U1", "0badcafe").status == WARN
    raw = keys.made()
    keys.Keys().add("U1", "0badcafe", {DEALER: raw[DEALER]})
    finding = doctor._held("U1", "0badcafe")
    assert (finding.status, finding.says) == (OK, "this computer holds the keys of: dealer")
    assert doctor._held("U2", "0badcafe").status == WARN
    path.write_text("{")
    finding = doctor._held("U1", "0badcafe")
    assert finding.status == FAIL
    assert finding.says.startswith(f"{path}: this is no file of keys")
