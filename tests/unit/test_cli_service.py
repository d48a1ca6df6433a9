"""`tablectl selftest`, `sensors` and `dice` on a virtual table, and one clear line for what cannot be done."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from boards.virtual.client import Table
from boards.virtual.model import default_tags
from dragoneye import protocol
from dragoneye.errors import BadInput
from host_tools import codes, diceset, faults, i18n
from host_tools.cli import service
from host_tools.cli.dice import FACES, Learner
from host_tools.cli.tables import describe
from host_tools.diceset import ALARM, FINE, UNKNOWN, WARN, DiceSet
from tests.unit.conftest import Done, Tablectl
from tests.virtual import LONG, instant_table, until

TAGS = [[uid.upper() for uid in die] for die in default_tags()]
NOW = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)


def utc(hours_ago: float, now: datetime = NOW) -> str:
    return (now - timedelta(hours=hours_ago)).strftime(diceset.UTC_FORMAT)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    with instant_table(tmp_path / "place") as running:
        yield running


@pytest.fixture
def set_file(tmp_path: Path) -> Path:
    path = tmp_path / "set.json"
    DiceSet("A-1", "blue", utc(0), 2, TAGS).save(path)
    return path


def status(tablectl: Tablectl, table: Table) -> dict[str, Any]:
    done = tablectl("play", "--port", table.port, "--json", stdin=b"status\n")
    return dict(next(row["status"] for row in done.rows if "status" in row))


# -- selftest and sensors --------------------------------------------------------------------------------------------


def test_a_sound_table_passes(tablectl: Tablectl, table: Table) -> None:
    done = tablectl("selftest", "--port", table.port, "--json")
    [report] = done.rows
    assert (done.code, report["ok"], report["same_program"]) == (0, True, True)
    assert {item["ok"] for item in report["items"]} == {True}
    assert {"reader 1", "dice", "motor", "supply", "memory", "program"} <= {item["item"] for item in report["items"]}
    assert status(tablectl, table)["state"] == protocol.IDLE
    plain = tablectl("selftest", "--port", table.port, "--lang", "es")
    assert plain.code == 0
    assert re.search(r"lector 1 +bien +0x", plain.out)
    assert "la autoprueba fue correcta" in plain.out


def test_what_fails_is_named_and_the_exit_code_is_1(tablectl: Tablectl, table: Table) -> None:
    table.do("fault", name="motor_dead", rolls=None)
    done = tablectl("selftest", "--port", table.port)
    assert done.code == 1
    assert "the self-test failed: motor in a jolt (mA)" in done.out
    assert re.search(r"motor in a jolt \(mA\) +FAILS +\d+ +150 to 1439", done.out)
    assert status(tablectl, table)["service"] == {"SELFTEST": "motor"}
    monitored = tablectl("monitor", "--port", table.port, "--seconds", "0.5")
    assert "service: SELFTEST: motor" in monitored.out
    assert "a technician mends what the self-test named" in " ".join(monitored.out.split())


def test_a_round_that_is_open_hinders_a_self_test_and_not_the_sensors(tablectl: Tablectl, table: Table) -> None:
    assert tablectl("play", "--port", table.port, stdin=b"open 1\n").code == 0
    refused = tablectl("selftest", "--port", table.port).refusal()
    assert "allowed in IDLE, SETTLED" in refused
    [told] = tablectl("sensors", "--once", "--port", table.port, "--json").rows
    assert (told["test"], told["readers"], told["lid"]) == (False, None, "shut")
    assert "in test mode only" in tablectl("sensors", "--once", "--port", table.port).out


def test_sensors_tell_the_dice_that_lie_there(tablectl: Tablectl, table: Table) -> None:
    table.do("place", dice=[6, 1, 2])
    [told] = tablectl("sensors", "--once", "--port", table.port, "--json").rows
    assert [tag[1:] for tag in told["readers"][0]["tags"]] == [[1, 6], [2, 1], [3, 2]]
    plain = tablectl("sensors", "--once", "--port", table.port).out
    assert f"die 1 shows 6 ({TAGS[0][0]})" in plain
    assert "tamper contact" in plain
    assert status(tablectl, table)["state"] == protocol.IDLE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_sensors_leave_test_mode_however_they_are_ended(tablectl: Tablectl, table: Table, number: int) -> None:
    command = [sys.executable, "-m", "host_tools", "sensors", "--port", table.port, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert json.loads(process.stdout.readline())["test"] is True
        process.send_signal(number)
        assert process.wait(LONG) == (0 if number == signal.SIGINT else 128 + number)
    assert status(tablectl, table)["state"] == protocol.IDLE


@pytest.mark.parametrize("command", [("selftest",), ("sensors", "--once"), ("dice", "install", "set.json")])
def test_a_port_that_is_not_there_is_one_line(tablectl: Tablectl, set_file: Path, command: tuple[str, ...]) -> None:
    words = [str(set_file) if word == "set.json" else word for word in command]
    assert "there is no such port" in tablectl(*words, "--port", "/nowhere").refusal()


# -- learning --------------------------------------------------------------------------------------------------------


def test_a_set_is_learnt_registered_and_played_with(tablectl: Tablectl, table: Table, tmp_path: Path) -> None:
    out = tmp_path / "set.json"
    arguments = ("--port", table.port, "--out", str(out), "--serial", "A-1", "--name", "blue", "--eye", "3")
    done = tablectl("dice", "learn", *arguments, "--auto", "--json")
    assert done.code == 0
    [told] = done.rows
    assert (told["dice"], told["eye"], told["stands"]) == (TAGS, 3, FINE)
    assert not (tmp_path / "set.json.part").exists()
    assert table.state()["faults"] == []
    [shown] = tablectl("dice", "show", str(out), "--json").rows
    assert shown == told
    installed = tablectl("dice", "install", str(out), "--port", table.port, "--json")
    assert installed.code == 0
    [dice_set] = installed.rows
    assert dice_set["hash"] == told["hash"]
    done = tablectl("play", "--port", table.port, "--rounds", "1", "--json")
    assert done.rows[0]["eye"] == 2
    again = tablectl("dice", "learn", *arguments)
    assert "is there already" in again.refusal()


def test_learning_goes_on_where_it_was_stopped(tablectl: Tablectl, table: Table, tmp_path: Path) -> None:
    out = tmp_path / "set.json"
    part = tmp_path / "set.json.part"
    known: list[list[str | None]] = [list(TAGS[0]), [None] * 6, [None] * 6]
    part.write_text(json.dumps({"format": 1, "serial": "A", "name": "", "eye": 1, "dice": known}))
    other = tablectl("dice", "learn", "--port", table.port, "--out", str(out), "--serial", "B")
    assert 'was begun with serial "A", not "B"' in other.refusal()
    table.do("fault", name="missing", die=1, rolls=None)
    table.do("fault", name="missing", die=2, rolls=None)
    table.do("place", dice=[3, 3, 3])
    arguments = ("--port", table.port, "--out", str(out), "--serial", "A")
    # Nobody turns the dice: die 1 lies there, which is known.
    stuck = tablectl("dice", "learn", *arguments, "--patience", "1")
    assert stuck.code == 2
    assert "7 of 18: put die 2 alone under the reader so that it shows 1" in stuck.err
    assert "this is die 1, which is known already; take die 2" in stuck.err
    assert "die 2 with 1 up was not read within 1 s" in stuck.err
    assert f"6 of 18 faces are kept in {part}" in stuck.err
    assert json.loads(part.read_text())["dice"] == known
    assert status(tablectl, table)["state"] == protocol.IDLE
    done = tablectl("dice", "learn", *arguments, "--auto", "--json")
    assert done.code == 0
    assert "6 of 18 faces are known from before" in done.err
    assert done.rows[0]["dice"] == TAGS


def test_learning_that_is_refused_leaves_nothing_behind(tablectl: Tablectl, table: Table, tmp_path: Path) -> None:
    port = ("--port", table.port, "--out", str(tmp_path / "set.json"))
    assert tablectl("dice", "learn", "--port", "/nowhere", *port[2:], "--serial", "A-l7").code == 2
    assert list(tmp_path.glob("set.json*")) == []
    # The serial is corrected: that is no other set.
    assert tablectl("dice", "learn", *port, "--serial", "A-17", "--auto").code == 0


@pytest.mark.parametrize("broken", ["[]", "{}", '{"format": 1, "serial": "A", "eye": 1, "dice": [[1]]}', "no"])
def test_a_broken_part_is_named(tablectl: Tablectl, tmp_path: Path, broken: str) -> None:
    (tmp_path / "set.json.part").write_text(broken)
    arguments = ("--port", "/nowhere", "--out", str(tmp_path / "set.json"), "--serial", "A")
    assert "set.json.part" in tablectl("dice", "learn", *arguments).refusal()


def take_twice(learner: Learner, tags: list[str] | None) -> str | None:
    first = learner.take(tags)
    return first if first else learner.take(tags)


def test_the_learner_takes_one_new_tag_that_two_passes_see() -> None:
    learner = Learner([[None] * 6 for _ in range(3)])
    assert learner.next == (0, 1)
    assert learner.take(["04AA0001"]) == ""
    assert learner.take(["04AA0002"]) == ""
    assert learner.take(["04AA0002"]) is None
    assert (learner.next, learner.count, learner.faces[0][5]) == ((0, 2), 1, "04AA0002")
    for tags, words in (
        (None, "not told apart"),
        ([], "no tag is read"),
        (["04AA0003", "04AA0004"], "2 tags are read"),
        (["04AA0002"], "it was read with 1 up; turn it so that 2 is up"),
        (["04AA00020405060708AA"], "not 4 or 7 bytes"),
        (["08AA0003"], "changes its number each time"),
    ):
        assert words in (take_twice(learner, tags) or "")
    assert learner.count == 1
    # What was seen once is forgotten when something else lies between.
    assert learner.take(["04AA0003"]) == ""
    learner.take([])
    assert learner.take(["04AA0003"]) == ""
    learner.take([])
    for number in range(3, 8):
        assert take_twice(learner, [f"04AA000{number}"]) is None
    assert learner.next == (1, 1)
    assert "this is die 1, which is known already; take die 2" in (learner.take(["04AA0004"]) or "")
    for number in range(12):
        assert take_twice(learner, [f"04BB00{number:02d}"]) is None
        assert (learner.next is None) == (number == 11)
    assert learner.count == FACES
    assert len({uid for die in learner.faces for uid in die}) == FACES


def test_learning_needs_a_reader_that_answers(tablectl: Tablectl, table: Table, tmp_path: Path) -> None:
    table.do("fault", name="dead_reader", rolls=None)
    arguments = ("--port", table.port, "--out", str(tmp_path / "set.json"), "--serial", "A", "--auto")
    done = tablectl("dice", "learn", *arguments)
    assert done.code == 2
    assert "reader 1 does not answer; run `tablectl selftest`" in done.err


def test_auto_needs_a_virtual_table(tablectl: Tablectl, table: Table, tmp_path: Path) -> None:
    port = str(Path(table.port).resolve())
    arguments = ("--port", port, "--out", str(tmp_path / "set.json"), "--serial", "A", "--auto")
    assert "--auto needs a virtual table" in tablectl("dice", "learn", *arguments).err


@pytest.mark.parametrize("serial", ["", "x" * 25, "número", "a\tb"])
def test_a_serial_that_no_table_takes_is_named(tablectl: Tablectl, tmp_path: Path, serial: str) -> None:
    arguments = ("--port", "/nowhere", "--out", str(tmp_path / "set.json"), f"--serial={serial}")
    assert "allowed: 1 to 24" in tablectl("dice", "learn", *arguments).refusal()


# -- the file and the age of a set -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "format 2 is not known"),
        ({"serial": 5}, "serial is 5"),
        ({"issued": "today"}, "is no time"),
        ({"eye": 0}, "eye is 0; allowed: 1, 2 or 3"),
        ({"dice": TAGS[:2]}, "three are needed"),
        ({"dice": [TAGS[0], TAGS[0], TAGS[2]]}, "is there twice"),
        ({"dice": [TAGS[0], ["X", *TAGS[1][1:]], TAGS[2]]}, "8 or 14 hex digits"),
        ({"dice": 7}, "is no dice set"),
    ],
)
def test_a_file_that_is_no_dice_set_is_one_line(
    tablectl: Tablectl, set_file: Path, change: dict[str, Any], words: str
) -> None:
    set_file.write_text(json.dumps({**json.loads(set_file.read_text()), **change}))
    refusal = tablectl("dice", "show", str(set_file)).refusal()
    assert words in refusal
    assert str(set_file) in refusal


def test_a_missing_file_and_one_of_another_kind_are_named(tablectl: Tablectl, tmp_path: Path) -> None:
    assert "No such file" in tablectl("dice", "show", str(tmp_path / "none.json")).refusal()
    (tmp_path / "other.json").write_text("hello")
    assert "is not JSON" in tablectl("dice", "show", str(tmp_path / "other.json")).refusal()


@pytest.mark.parametrize(
    ("hours", "stands"),
    [(0, FINE), (22.99, FINE), (23, WARN), (23.99, WARN), (24, ALARM), (1000, ALARM), (-0.1, FINE), (-1, ALARM)],
)
def test_a_set_is_warned_of_before_24_hours_and_alarmed_of_after(hours: float, stands: str) -> None:
    issued = utc(hours)
    assert diceset.level(issued, NOW) == stands
    told = diceset.told({"serial": "A-1", "issued": issued}, NOW)
    assert (told == "") == (stands == FINE)
    if stands == ALARM:
        with pytest.raises(BadInput, match=r"A-1.*--keep-dice"):
            diceset.check({"serial": "A-1", "issued": issued}, NOW)
    else:
        diceset.check({"serial": "A-1", "issued": issued}, NOW)


def test_a_set_without_a_time_is_let_be_and_one_with_a_wrong_one_is_not() -> None:
    assert diceset.level("", NOW) == UNKNOWN
    assert diceset.told(None, NOW) == diceset.told({"serial": "", "issued": ""}, NOW) == ""
    assert diceset.level("yesterday, at noon!!", NOW) == ALARM


def test_sensors_look_at_each_step_of_the_ladder(tablectl: Tablectl, table: Table) -> None:
    gains = []
    for step in ("0", "1", "2"):
        [told] = tablectl("sensors", "--port", table.port, "--once", "--step", step, "--json").rows
        gains.append(told["readers"][0]["gain_db"])
    assert gains == [33, 23, 18]


def test_an_overdue_set_opens_no_round_unless_a_supervisor_keeps_it(
    tablectl: Tablectl, table: Table, set_file: Path
) -> None:
    old = utc(25, diceset.utc_now())
    done = tablectl("dice", "install", str(set_file), "--port", table.port, "--issued", old)
    assert done.code == 0
    assert "change or inspect it" in done.out
    for arguments, stdin in ((["--rounds", "1"], b""), ([], b"open 1\n")):
        refused = tablectl("play", "--port", table.port, *arguments, stdin=stdin)
        assert refused.code == 2
        assert "a supervisor keeps it with --keep-dice" in refused.err
    assert status(tablectl, table)["round"] == 0
    assert "dice set A-1" in tablectl("monitor", "--port", table.port, "--seconds", "0.3").out
    told = tablectl("monitor", "--port", table.port, "--seconds", "0.3", "--json").rows
    assert [row["dice_set"]["stands"] for row in told if "dice_set" in row] == [ALARM]
    assert tablectl("play", "--port", table.port, "--rounds", "1", "--keep-dice").code == 0
    [opened] = [event["d"] for event in tablectl("show", "1", "--events", "--json").rows if event["k"] == "opened"]
    assert opened["note"] == f"dice set A-1 of {old} kept by a supervisor"
    # Inspected, and issued again.
    assert tablectl("dice", "install", str(set_file), "--port", table.port).code == 0
    assert tablectl("play", "--port", table.port, "--rounds", "1").code == 0


def test_a_time_of_issue_that_is_none_is_named(tablectl: Tablectl, set_file: Path) -> None:
    done = tablectl("dice", "install", str(set_file), "--port", "/nowhere", "--issued", "noon")
    assert 'noon" is no time; allowed: UTC such as' in done.refusal()


# -- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dice": [TAGS[0], ["ZZ", *TAGS[1][1:]], TAGS[2]]}, "la etiqueta ZZ no tiene 8 o 14 dígitos hexadecimales"),
        ({"dice": [TAGS[0][:5], *TAGS[1:]]}, "el dado 1 tiene 5 etiquetas; hacen falta seis"),
        ({"dice": [TAGS[0], TAGS[0], TAGS[2]]}, f"la etiqueta {TAGS[0][0]} está dos veces"),
        ({"dice": ...}, "falta dice"),
    ],
)
def test_what_is_wrong_with_a_dice_set_in_spanish(
    tablectl: Tablectl, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    data = {"format": 1, "serial": "A", "name": "", "issued": "2026-11-30T08:00:00Z", "eye": 1, "dice": TAGS, **change}
    path = tmp_path / "set.json"
    path.write_text(json.dumps({key: value for key, value in data.items() if value is not ...}))
    assert said in tablectl("dice", "show", str(path), "--lang", "es").refusal()


def test_a_message_that_ends_like_another_one_is_translated_as_what_it_is() -> None:
    i18n.set_language("es")
    try:
        said = i18n.controller('void: reason is ""; allowed: 1 to 120 characters without control characters')
        assert said == 'void: reason es ""; se permite: de 1 a 120 caracteres sin caracteres de control'
    finally:
        i18n.set_language("en")


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("code", codes.FAULTS)
def test_every_fault_has_a_remedy_in_both_languages(code: str, language: str) -> None:
    i18n.set_language("en")
    english = faults.remedy(code)
    try:
        i18n.set_language(language)
        remedy = faults.remedy(code)
        told = faults.told(code, "a broken wire")
    finally:
        i18n.set_language("en")
    assert remedy
    assert (remedy == english) == (language == "en")
    assert told.startswith(f"{code}: a broken wire · ")
    assert remedy in told


def test_records_of_faults_and_test_mode_are_told_in_words() -> None:
    told = describe("fault", {"code": "TAMPER", "set": True, "detail": "tamper contact open"})
    assert told.startswith("fault set: TAMPER: tamper contact open · ")
    assert describe("fault", {"code": "TAMPER", "set": False, "detail": ""}) == "fault cleared: TAMPER"
    assert describe("fault", {"code": "NEWER", "set": True, "detail": "x"}) == "fault set: NEWER: x"
    assert describe("test", {"set": True}) == "test mode was entered"


@pytest.mark.parametrize(
    ("kind", "data", "english", "spanish"),
    [
        ("opened", {"round": 7, "shaker": 2}, "opened: round 7, shaker 2", "ronda abierta: ronda 7, agita 2"),
        (
            "streak",
            {"why": "table closed", "position": 0},
            'streak: position 0, why "table closed"',
            'racha: posición 0, por qué "mesa cerrada"',
        ),
        (
            "door",
            {"which": "tamper", "open": False},
            'door: open false, which "tamper"',
            'apertura: se abrió no, cuál "contacto de manipulación"',
        ),
        ("newer", {"of": "a"}, 'newer: of "a"', 'newer: of "a"'),
    ],
)
def test_records_are_told_in_the_chosen_language(kind: str, data: dict[str, Any], english: str, spanish: str) -> None:
    assert describe(kind, data) == english
    with i18n.speaking("es"):
        assert describe(kind, data) == spanish


def test_what_a_table_could_owe_is_money() -> None:
    view = {"state": "BETTING", "round": 7, "shaker": 2, "bets_open": True, "liability": 12345, "lid_open": False}
    state = {**view, "streak": {"count": 0}}
    assert describe("state", state).endswith(
        " · round 7, player position 2 shakes · bets open, the table could owe $123.45"
    )
    with i18n.speaking("es"):
        told = describe("state", state)
    assert told.endswith(" · ronda 7, agita la posición de jugador 2 · apuestas abiertas, la mesa podría deber $123.45")


def test_open_and_shut_agree_with_what_they_are_said_of() -> None:
    with i18n.speaking("es"):
        assert [service.allowed_text("shut", item) for item in ("lid", "tamper")] == ["cerrada", "cerrado"]
    assert [service.allowed_text("shut", item) for item in ("lid", "tamper")] == ["shut", "shut"]


def test_a_fault_is_shown_with_its_remedy_where_a_table_is_played(tablectl: Tablectl, table: Table) -> None:
    table.do("tamper", to="open")

    def told() -> Done | None:
        done = tablectl("monitor", "--port", table.port, "--seconds", "0.3")
        return done if "TAMPER" in done.out else None

    words = " ".join(until(told, "the fault").out.split())
    assert "TAMPER: tamper contact open" in words
    assert faults.remedy("TAMPER") in words
