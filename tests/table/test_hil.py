"""The plugin for hardware in the loop, proved on a virtual table that is started beside it and driven by commands."""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from boards.virtual.client import Table
from host_tools.board_files import greet
from host_tools.hil.capabilities import CAPABILITIES
from host_tools.provision import build_hash
from host_tools.store import Store
from tests.virtual import LONG, instant_table

ROOT = Path(__file__).parents[2]
ROUNDS = "tests/table/test_rounds.py::"
DO = f"{sys.executable} -m host_tools virtual --dir {{folder}} --do "
LOOK = (
    f"{sys.executable} -c 'from pathlib import Path; from boards.virtual.client import Control;"
    ' print("on" if Control(Path("{folder}")).do("state")["turning"] else "off")\''
)

# The bench of a virtual table: everything by `tablectl virtual --do`.
ACTIONS: dict[str, dict[str, str]] = {
    "dice": {"place": "next dice=[{{dice}}]"},
    "lid": {"open": "lid open", "shut": "lid shut", "force": "lid open force=true"},
    "button": {"hold": "button hold", "release": "button release"},
    "tamper": {"open": "tamper open", "shut": "tamper ok"},
    "service": {"on": "service on", "off": "service off"},
    "supply": {"low": "supply mv=7000", "ok": "supply mv=12000"},
    "power": {"off": "power off", "on": "power on"},
    "cable": {"out": "cable out", "in": "cable in"},
    "reset": {"press": "reset"},
    "fault": {"set": "fault name={{name}} die={{die}} rolls=null", "clear": "clear name={{name}}"},
}


def rig_of(folder: Path, *leave_out: str) -> str:
    """The text of a rig file for the virtual table in `folder`."""
    lines = ["format = 1", 'name = "virtual"', "configure = true", 'record = "hil.db"']
    for capability, actions in ACTIONS.items():
        if capability not in leave_out:
            lines.append(f"[{capability}]")
            for action, command in actions.items():
                whole = DO.format(folder=folder) + f'"{command.format()}"'
                lines.append(f"{action} = '''{whole}'''")
    if "motor" not in leave_out:
        lines += ["[motor]", f"look = '''{LOOK.format(folder=folder)}'''"]
    return "\n".join(lines) + "\n"


def command_of(table: Table, tmp_path: Path, *arguments: str, rig: str | None = None) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "--target", "hardware"]
    command += ["--port", table.port, f"--junitxml={tmp_path / 'report.xml'}", *arguments]
    if rig is not None:
        (tmp_path / "rig.toml").write_text(rig)
        command += ["--rig", str(tmp_path / "rig.toml")]
    return command


def environment(tmp_path: Path) -> Mapping[str, str]:
    # Not the session's of the tests around it.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    return {**kept, "DRAGONEYE_DB": str(tmp_path / "usual.db")}


def run(table: Table, tmp_path: Path, *arguments: str, rig: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command_of(table, tmp_path, *arguments, rig=rig),
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=10 * LONG,
        stdin=subprocess.DEVNULL,
    )


def outcomes(text: str) -> dict[str, int]:
    """The counts of pytest's last line."""
    return {
        word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|skipped|error)", text.splitlines()[-1])
    }


def header_of(text: str) -> str:
    """The line of a report's header that names the table."""
    return next(line for line in text.splitlines() if line.startswith("table: "))


def properties_of(report: Path) -> dict[str | None, str | None]:
    """JUnit's properties of the whole run."""
    return {row.get("name"): row.get("value") for row in ElementTree.parse(report).iter("property")}


@pytest.mark.emulator
def test_the_tables_tests_run_on_the_emulated_pico(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--target", "emulator"]
    command += [
        f"--junitxml={report}",
        ROUNDS + "test_a_result_by_hand",
        ROUNDS + "test_the_same_seed_brings_the_same_dice",
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=30 * LONG
    )
    assert done.returncode == 0, done.stdout
    assert outcomes(done.stdout) == {"passed": 1, "skipped": 1}, done.stdout
    assert "made for the simulated table only" in done.stdout
    properties = properties_of(report)
    assert (properties["target"], properties["build"]) == ("emulator", build_hash())
    version = [int(part) for part in str(properties["micropython"]).split(".")]
    assert version >= [1, 24, 0]
    assert header_of(done.stdout) == "table: " + ", ".join(f"{name} {value}" for name, value in properties.items())
    assert "[emulator]" in next(case.get("name", "") for case in ElementTree.parse(report).iter("testcase"))


def test_the_tables_tests_run_on_a_table_that_is_driven_by_commands(tmp_path: Path) -> None:
    with instant_table(tmp_path) as table:
        # A fault that others have left.
        table.do("tamper", to="open")
        table.do("tamper", to="ok")
        before, _state = greet(table.port)
        names = [
            "test_a_round_under_each_rule_pack[hardware-nj]",
            "test_a_result_by_hand",
            "test_the_lid_is_opened_while_the_motor_runs",
            "test_the_button_is_the_next_step",
            "test_a_restart_recovers_the_round_or_voids_it[hardware-BETTING-None]",
        ]
        done = run(table, tmp_path, *(ROUNDS + name for name in names), rig=rig_of(table.folder))
        assert done.returncode == 0, done.stdout
        assert outcomes(done.stdout) == {"passed": 4, "skipped": 1}, done.stdout
        assert "made for a virtual table only" in done.stdout
        after, state = greet(table.port)
        assert (state["state"], state["lid_open"]) == ("IDLE", False)
    # What was written for the tests has gone again.
    assert after["config_hash"] == before["config_hash"]
    line = header_of(done.stdout)
    for name in ("build", "micropython", "uid"):
        assert f"{name} {before[name]}" in line
    assert f"port {table.port}" in line
    properties = properties_of(tmp_path / "report.xml")
    assert properties["uid"] == before["uid"]
    assert properties["build"] == before["build"]
    assert properties["target"] == "hardware"
    assert properties["rig"] == "virtual"
    store = Store(tmp_path / "hil.db")
    assert store.last(before["uid"])[1] >= 5
    store.close()
    assert not (tmp_path / "usual.db").exists()


def test_a_bare_table_skips_with_reasons(tmp_path: Path) -> None:
    with instant_table(tmp_path) as table:
        done = run(table, tmp_path, "tests/table/test_rounds.py", "tests/table/test_exits.py", "--durations=3")
        assert done.returncode == 0, done.stdout
        # Nothing can be done but ask the table; no test of it needs nothing else.
        assert set(outcomes(done.stdout)) == {"skipped"}, done.stdout
        for need in ("dice", "lid"):
            assert f"{need}: nothing of this bench does it (no rig file)" in done.stdout
        assert "config: no configuration may be written (no rig file)" in done.stdout
        rig = rig_of(table.folder, "motor").replace("configure = true", "")
        done = run(
            table, tmp_path, ROUNDS + "test_a_result_by_hand", ROUNDS + "test_a_round_under_each_rule_pack", rig=rig
        )
        assert outcomes(done.stdout) == {"passed": 1, "skipped": 3}, done.stdout
        assert f"motor: nothing of this bench does it ({tmp_path / 'rig.toml'})" in done.stdout


def test_the_person_at_the_bench_is_asked(tmp_path: Path) -> None:
    """Everything is asked; who answers does it to the virtual table, and skips what is too much to ask."""
    deeds: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "open the lid": [("lid", {"to": "open"})],
        "shut the lid": [("lid", {"to": "shut"})],
    }
    with instant_table(tmp_path) as table:
        command = command_of(
            table,
            tmp_path,
            "--interactive",
            ROUNDS + "test_a_result_by_hand",
            ROUNDS + "test_a_state_tells_the_dice_only_when_the_lid_has_opened",
        )
        with (
            subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment(tmp_path),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            ) as process,
            ExitStack() as stack,
        ):
            assert process.stdin
            assert process.stdout
            stack.callback(process.kill)
            heard = Heard(process.stdout)
            asked = []
            while True:
                text = heard.until_asked()
                if text is None:
                    process.wait(LONG)
                    break
                question = text.splitlines()[-1]
                asked.append(question)
                deed = next((deed for words, deed in deeds.items() if question.startswith(words)), None)
                for name, arguments in deed or ():
                    if arguments["to"] == "open":
                        # A hand is slower than the bolt.
                        table.wait_for("released", True)
                    table.do(name, **arguments)
                process.stdin.write(b"\n" if deed else b"S\n")
                process.stdin.flush()
    whole = heard.text
    assert process.returncode == 0, whole
    assert outcomes(whole) == {"passed": 1, "skipped": 1}, whole
    assert "dice: the person at the bench skipped it" in whole
    assert [question.partition(" [")[0] for question in asked] == [
        "open the lid",
        "shut the lid",
        "lay the dice so that they show 1 2 6 (in the order of the dice set)",
    ]
    # A record that no rig names is the one that tablectl uses.
    assert (tmp_path / "usual.db").exists()


class Heard:
    """What a process says, up to its questions."""

    def __init__(self, stream: Any) -> None:
        self.text = ""
        self._chunks: queue.Queue[bytes] = queue.Queue()
        self._stream = stream
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while chunk := self._stream.read1(4096):
            self._chunks.put(chunk)
        self._chunks.put(b"")

    def until_asked(self) -> str | None:
        """The text up to the next question; None when the process has ended."""
        while True:
            chunk = self._chunks.get(timeout=5 * LONG)
            if not chunk:
                return None
            self.text += chunk.decode()
            if self.text.endswith("skip this test] "):
                return self.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "/dev/null"], "--port goes with --target hardware"),
        (["--interactive", "--target", "sim"], "--interactive goes with --target hardware"),
        (["--target", "hardware"], "--target hardware: name the table's --port"),
        (["--target", "hardware", "--port", "/dev/absent"], "/dev/absent: there is no such port"),
        (["--target", "hardware", "--port", "/dev/absent", "--rig", "absent.toml"], "there is no such rig file"),
        (["--target", "hardware", "--port", "/dev/absent", "-n", "2"], "there is one table; leave out -n"),
        (["--target", "moon"], "invalid choice: 'moon'"),
    ],
)
def test_options_that_do_not_fit_are_told(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments, "tests/table/test_time.py"],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_every_capability_has_an_action_here() -> None:
    assert {*ACTIONS, "motor"} == set(CAPABILITIES)
    assert all(set(CAPABILITIES[name].actions) == set(actions) for name, actions in ACTIONS.items())
