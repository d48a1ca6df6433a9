"""Test mode, the self-test, the dice set and faults that call for service: nothing of it can become a result."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoneye import config, profile, protocol, round, selftest, service
from dragoneye.protocol import FAULT, IDLE, LOCKED, SETTLED, TEST, Problem
from dragoneye.rules import reading
from tests.unit.tables import DICE, LASTING, REGISTRY, Desk, PowerCut, Rig, tags_of
from tests.unit.test_round import FIELDS, OTHER_TAGS, ROLLING

SERVICE = ("test", "selftest", "sensors", "dice")
ISSUED = "2026-11-30T08:00:00Z"


def in_test() -> Rig:
    rig = Rig()
    rig.ask("test", on=True)
    return rig


# -- test mode -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [IDLE, SETTLED])
def test_test_mode_is_between_rounds_and_ends_where_it_began(state: str) -> None:
    rig = Rig()
    rig.reach(state)
    before = rig.view()
    assert rig.ask("test", on=True) == {"on": True, "state": TEST}
    assert (rig.view()["state"], rig.view()["test"], "dice" in rig.view()) == (TEST, True, False)
    assert rig.ask("test", on=True)["on"]
    assert rig.ask("test", on=False) == {"on": False, "state": state}
    assert rig.ask("test", on=False) == {"on": False, "state": state}
    assert rig.view() == before
    assert [record["d"] for record in rig.records if record["k"] == "test"] == [{"set": True}, {"set": False}]


def test_nothing_that_is_done_in_test_mode_can_become_a_result() -> None:
    rig = in_test()
    first = len(rig.records)
    for name in protocol.REQUESTS:
        # maintenance restarts the table.
        if name in ("hello", "status", "stats", "maintenance", *SERVICE):
            continue
        if name in ("unlock", "changed"):
            rig.ask(name, **FIELDS.get(name, {}))
            continue
        assert rig.code(name, **FIELDS.get(name, {})) in ("E_TEST", "E_STATE")
    rig.tell("button")
    rig.tell("shaken", rig.table._roll, True)
    rig.tell("shaken", rig.table._roll + 1, True)
    for roll in (rig.table._roll, rig.table._roll + 1):
        rig.tell("tags", roll, tags_of([6, 6, 6]))
        rig.tell("tags", roll, tags_of([6, 6, 6]))
    rig.wait(60_000)
    assert round.SHAKE not in [effect for effect, _ in rig.table.take_effects()]
    assert rig.state == TEST
    assert set(rig.kinds(first)) <= {"streak"}
    rig.restart()
    assert (rig.state, "test" in rig.view()) == (IDLE, False)


def test_a_fault_may_be_looked_into_in_test_mode_and_is_cleared_there() -> None:
    rig = Rig()
    rig.reach(FAULT)
    assert rig.ask("test", on=True) == {"on": True, "state": FAULT}
    assert rig.view()["test"]
    rig.ask("sensors")
    assert rig.effects(service.SURVEY) == [0]
    assert rig.ask("clear", code="READER") == {"state": TEST}
    rig.tell("set_fault", "MOTOR_STUCK", "80 mA while off")
    assert rig.ask("test", on=False) == {"on": False, "state": FAULT}
    assert rig.ask("clear", code="MOTOR_STUCK") == {"state": IDLE}


def test_the_readers_are_asked_in_test_mode_only() -> None:
    """What lies under the readers is a result before the lid opens."""
    for state in LASTING:
        rig = Rig()
        rig.reach(state)
        rig.table.take_effects()
        assert rig.ask("sensors")["test"] == (state == TEST)
        assert rig.effects(service.SURVEY) == ([0] if state == TEST else [])


# -- the self-test ---------------------------------------------------------------------------------------------------

ROWS = [["reader 1", True, "0x92", None], ["lid", True, "shut", "shut"]]


def test_a_self_test_runs_once_and_its_report_stays() -> None:
    rig = in_test()
    assert rig.ask("selftest") == {"running": False, "items": [], "why": "none was started"}
    assert rig.ask("selftest", start=True)["running"]
    assert rig.ask("selftest", start=True)["running"]
    assert rig.effects(service.SELFTEST) == [None]
    rig.tell("tested", ROWS)
    assert rig.ask("selftest") == {"running": False, "items": ROWS, "why": None}
    rig.tell("tested", [])
    assert rig.ask("selftest")["items"] == ROWS
    assert "service" not in rig.view()


@pytest.mark.parametrize("end", ["leave", "fault"])
def test_a_self_test_that_is_stopped_stops_the_motor_and_says_why(end: str) -> None:
    rig = in_test()
    rig.ask("selftest", start=True)
    rig.table.take_effects()
    stopped: list[int] = []
    rig.table.stop_now = lambda: stopped.append(len(rig.records))
    if end == "leave":
        rig.ask("test", on=False)
    else:
        rig.tell("set_fault", "TAMPER", "tamper contact open")
    # Before anything is written.
    assert stopped[0] == 2
    assert service.STOP in [effect for effect, _ in rig.table.take_effects()]
    rig.tell("tested", ROWS)
    if end == "leave":
        rig.ask("test", on=True)
    report = rig.ask("selftest")
    assert (report["running"], report["items"], bool(report["why"])) == (False, [], True)


def test_a_failed_self_test_is_a_fault_for_service_until_one_passes() -> None:
    rig = in_test()
    for rows in ([["reader 2", False, "0x00", None], ["supply", False, 9000, 10500]], ROWS):
        rig.ask("selftest", start=True)
        rig.tell("tested", rows)
        assert rig.view().get("service") == (None if rows == ROWS else {"SELFTEST": "reader 2, supply"})
        assert rig.state == TEST
    faults = [record["d"] for record in rig.records if record["k"] == "fault"]
    assert faults == [
        {"code": "SELFTEST", "set": True, "detail": "reader 2, supply"},
        {"code": "SELFTEST", "set": False, "detail": "reader 2, supply"},
    ]


class Part:
    """A switch, the readers and the shaker of a board that a test makes up."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


class Motor:
    def __init__(self, current: int, rest: int, moves: bool) -> None:
        self.running = False
        self.runs = 0
        self.limits_ma = profile.current_limits(DATA["motor"], 80)
        self._current, self._rest, self._moves = current, rest, moves

    def milliamps(self) -> int:
        return self._current if self.running else self._rest

    async def run(self, jolts: int, roll: int) -> bool:
        self.running = True
        self.runs += jolts
        try:
            for _ in range(10):
                await asyncio.sleep(0)
        finally:
            self.running = False
        return self._moves


DATA = {
    "motor": {"moving_min_ma": 150, "stalled_min_ma": 1800, "off_max_ma": 50},
    "supply": {"low_mv": 10500},
}
IDENTITY = {"fw": "0.1", "build": "0011223344556677"}


def reader(tags: set[str] | None, ok: bool = True) -> dict[str, Any]:
    found = None if tags is None else sorted(tags)
    return {"reader": 1, "ok": ok, "version": 0x92 if ok else 0, "gain_db": 33, "tags": found}


def run_selftest(monkeypatch: pytest.MonkeyPatch, may_move: bool = True, **parts: Any) -> dict[str, list[Any]]:
    """The rows of a self-test by item; `parts` differ from a sound board."""
    survey: list[dict[str, Any]] = parts.get("survey", [reader(tags_of([1, 2, 3]))])

    async def look() -> list[dict[str, Any]]:
        return survey

    async def scan(step: int) -> set[str] | None:
        # The ladder's last step sees what `lowest` says.
        rows = parts.get("lowest", survey) if step == 2 else survey
        return None if rows[0]["tags"] is None else set(rows[0]["tags"])

    async def sleep_ms(_ms: int) -> None:
        await asyncio.sleep(0)

    board = Part(
        reader=Part(survey=look, scan=scan, gains=(33, 23, 18)),
        lid=Part(active=parts.get("lid", True), moved=parts.get("moved", not parts.get("lid", True))),
        tamper=Part(active=parts.get("tamper", True)),
        button=Part(active=parts.get("button", False)),
        service=Part(active=False),
        shaker=parts.get("shaker", Motor(700, 4, True)),
        supply_mv=lambda: parts.get("supply", 12000),
    )
    monkeypatch.setattr(selftest, "free_memory", lambda: parts.get("memory", 120_000))
    monkeypatch.setattr(selftest, "free_flash", lambda: parts.get("flash", 1_000_000))
    identity = parts.get("identity", IDENTITY)

    async def go() -> list[list[Any]]:
        rows: list[list[Any]] = await selftest.run(
            board, DATA, identity, REGISTRY, may_move, sleep_ms, asyncio.create_task
        )
        return rows

    rows = asyncio.run(go())
    assert len({row[0] for row in rows}) == len(rows)
    json.dumps(rows)
    return {row[0]: row[1:] for row in rows}


def test_a_sound_table_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = run_selftest(monkeypatch)
    assert all(ok for ok, _value, _allowed in rows.values())
    assert rows["motor"] == [True, 700, [150, 1439]]
    assert rows["dice"] == [True, [1, 2, 3], "three dice"]
    assert set(rows) == {
        *("reader 1", "field 1", "dice", "lid", "tamper", "button", "service key", "supply"),
        *("motor at rest", "motor", "motor after it", "memory", "flash", "program"),
    }


@pytest.mark.parametrize(
    ("parts", "failing"),
    [
        ({"survey": [reader(None, ok=False)]}, {"reader 1", "dice"}),
        ({"survey": [reader(None)]}, {"field 1", "dice"}),
        ({"survey": [reader(set())]}, {"dice"}),
        ({"survey": [reader({"BADC0DE", *tags_of([1, 2, 3])})]}, {"dice"}),
        ({"survey": [reader(tags_of([1, 2, 3]) | tags_of([1, 2, 4]))]}, {"dice"}),
        (
            {"survey": [reader({*tags_of([1, 2, 3]), *tags_of([1, 2, 4])})], "lowest": [reader(tags_of([1, 2, 3]))]},
            set(),
        ),
        ({"lid": False}, {"lid", "motor"}),
        ({"tamper": False}, {"tamper"}),
        ({"button": True}, {"button"}),
        ({"supply": 10499}, {"supply", "motor"}),
        ({"shaker": Motor(4, 4, False)}, {"motor"}),
        ({"shaker": Motor(2900, 4, False)}, {"motor"}),
        ({"shaker": Motor(1439, 4, True)}, set()),
        ({"shaker": Motor(1440, 4, True)}, {"motor"}),
        ({"shaker": Motor(700, 80, True)}, {"motor at rest", "motor after it"}),
        ({"may_move": False}, {"motor"}),
        ({"memory": 1000}, {"memory"}),
        ({"flash": 1000}, {"flash"}),
        ({"identity": {"fw": "0.1", "build": "unknown"}}, {"program"}),
    ],
)
def test_each_part_that_is_wrong_is_named(
    monkeypatch: pytest.MonkeyPatch, parts: dict[str, Any], failing: set[str]
) -> None:
    rows = run_selftest(monkeypatch, **parts)
    assert {item for item, row in rows.items() if not row[0]} == failing


def test_a_lid_opened_in_the_midst_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = run_selftest(monkeypatch, moved=True, shaker=Motor(700, 4, False))
    assert rows["motor"][:2] == [False, "stopped: the lid was opened"]
    assert [item for item, row in rows.items() if not row[0]] == ["motor"]


def test_the_motor_stays_off_over_an_open_lid_and_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[dict[str, Any]] = [{"lid": False}, {"may_move": False}, {"supply": 9000}]
    for parts in cases:
        motor = Motor(700, 4, True)
        run_selftest(monkeypatch, **{"shaker": motor, **parts})
        assert motor.runs == 0


# -- faults that call for service ------------------------------------------------------------------------------------


def test_a_supply_that_stays_low_is_set_and_cleared_once() -> None:
    rig = Rig()
    for length, known in ((service.SUPPLY_STANDS_MS - 1, False), (1, True)):
        rig.tell("supply", True)
        rig.wait(length)
        assert ("service" in rig.view()) == known
    assert rig.state == IDLE
    rig.tell("supply", False)
    rig.wait(service.SUPPLY_STANDS_MS - 1)
    assert rig.view()["service"] == {"SUPPLY": "the 12 V supply stays low"}
    rig.tell("supply", True)
    rig.tell("supply", False)
    rig.wait(service.SUPPLY_STANDS_MS - 1)
    assert "service" in rig.view()
    rig.wait(1)
    assert "service" not in rig.view()
    assert [record["d"]["set"] for record in rig.records if record["k"] == "fault"] == [True, False]


def test_a_fault_for_service_outlives_the_power_and_is_cleared_when_its_cause_is_gone() -> None:
    rig = Rig()
    rig.tell("supply", True)
    rig.wait(service.SUPPLY_STANDS_MS)
    rig.restart()
    assert rig.view()["service"] == {"SUPPLY": "the 12 V supply stays low"}
    assert rig.state == IDLE
    rig.wait(service.SUPPLY_STANDS_MS)
    assert "service" not in rig.view()


def test_nothing_is_written_while_the_dice_roll_of_a_supply_that_has_come_back() -> None:
    rig = Rig()
    rig.tell("supply", True)
    rig.wait(service.SUPPLY_STANDS_MS)
    rig.tell("supply", False)
    roll = rig.reach(ROLLING[0])
    before = len(rig.records)
    rig.wait(service.SUPPLY_STANDS_MS)
    assert (rig.state, len(rig.records)) == (ROLLING[0], before)
    rig.settle(roll)
    rig.show(roll, [1, 2, 3])
    rig.wait(0)
    assert rig.state == LOCKED
    assert rig.kinds(before) == ["locked", "fault"]


# -- the dice set ----------------------------------------------------------------------------------------------------


def dice_request(tags: str = OTHER_TAGS, eye: int = 2) -> dict[str, Any]:
    return {"serial": "B-17", "issued": ISSUED, "eye": eye, "tags": tags}


def test_another_dice_set_is_read_from_then_on() -> None:
    rig = in_test()
    rig.ask("dice", **dice_request(eye=3))
    assert rig.table.eye == 2
    assert rig.table.registry["04250000"] == (2, 6)
    assert rig.last("dice") == {
        "serial": "B-17",
        "issued": ISSUED,
        "eye": 2,
        "hash": rig.dice_set["hash"],
        "found": False,
    }
    rig.ask("test", on=False)
    rig.ask("open", shaker=1)
    rig.ask("close")
    roll = rig.shake()
    rig.settle(roll)
    rig.tell("tags", roll, {"04000000", "04110000", "04250000"})
    rig.tell("tags", roll, {"04000000", "04110000", "04250000"})
    rig.open_lid()
    assert (rig.view()["dice"], rig.view()["eye"]) == ([6, 5, 1], 2)


@pytest.mark.parametrize(
    "tags",
    [
        "x" * 200,
        OTHER_TAGS[:-1] + "G",
        OTHER_TAGS + " 04000001",
        OTHER_TAGS.replace("04010000", "04000000"),
        OTHER_TAGS.replace(" 04010000", "  04010000"),
        " ".join(["04112233445566", *OTHER_TAGS.split()[1:-1], "0411223344"]),
    ],
)
def test_tags_that_are_no_dice_set_are_refused(tags: str) -> None:
    code, why = in_test().refusal("dice", **dice_request(tags))
    assert code == "E_ARGS"
    assert why.startswith("dice: tags")


def streak(rig: Rig) -> None:
    rig.play([6, 6, 6], {1: {"bonus": 100}})
    rig.ask("test", on=True)


def test_other_dice_end_a_streak_and_the_same_ones_issued_again_do_not() -> None:
    rig = Rig()
    streak(rig)
    uids = OTHER_TAGS.split()
    # They are already in play: the rig's own tags are too short for the wire.
    rig.table.dice_set = config.dice_set_of({"dice": [uids[:6], uids[6:12], uids[12:]], "eye": 1})
    rig.ask("dice", **dice_request())
    assert rig.view()["streak"]["count"] == 1
    rig.ask("dice", **dice_request(eye=1))
    assert rig.view()["streak"]["count"] == 0
    assert rig.last("streak")["why"] == "dice changed"


@pytest.mark.parametrize("records", [0, 1])
def test_a_power_cut_while_a_dice_set_is_registered_leaves_no_streak_to_the_new_dice(records: int) -> None:
    rig = in_test()
    rig.ask("dice", **dice_request(eye=3))
    rig.ask("test", on=False)
    rig.ask("open", shaker=1)
    rig.ask("bets", position=1, wagers={"bonus": 100})
    rig.ask("close")
    roll = rig.shake()
    rig.settle(roll)
    for _ in range(2):
        rig.tell("tags", roll, {"04000000", "04100000", "04200000"})
    rig.open_lid()
    rig.ask("finish")
    rig.ask("test", on=True)
    assert rig.view()["streak"]["count"] == 1
    rig.cut = records
    with pytest.raises(PowerCut):
        rig.ask("dice", **dice_request(eye=1))
    rig.restart()
    assert rig.view()["streak"]["count"] == 0
    assert rig.last("dice")["hash"] == rig.dice_set["hash"]


def test_hello_tells_the_dice_set(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.ask("test", on=True)
    desk.table.save_dice = config.dice_set_of
    told = desk.ask("dice", **dice_request())
    assert desk.hello()["dice_set"] == {key: told[key] for key in ("serial", "issued", "hash")}


def test_a_dice_set_in_a_file_is_read_back_and_a_broken_one_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "dice.json")
    assert config.read_dice("00", path) is None
    stored = {"dice": DICE, "eye": 2, "serial": "A", "issued": ISSUED}
    assert config.write_dice(stored, "00", path) == config.dice_set_of(stored)
    assert config.read_dice("00", path) == stored
    # The configuration has got other dice since.
    assert config.read_dice("01", path) is None
    assert reading.registry_of(stored["dice"]) == REGISTRY
    cases: list[Any] = [{**stored, "format": 9}, {**stored, "format": 1, "eye": 3, "over": "00"}, {"format": 1}, [], 5]
    for broken in cases:
        Path(path).write_text(json.dumps(broken))
        with pytest.raises(ValueError, match=r"dice\.json"):
            config.read_dice("00", path)


@pytest.mark.parametrize("name", ["test", "selftest", "sensors", "dice"])
def test_a_technician_is_who_asks(name: str) -> None:
    assert protocol.REQUESTS[name][0] == protocol.TECHNICIAN


def test_a_refused_request_of_service_says_where_it_is_allowed() -> None:
    rig = Rig()
    rig.reach(LOCKED)
    with pytest.raises(Problem, match="LOCKED; allowed in IDLE, SETTLED"):
        rig.ask("test", on=True)
    with pytest.raises(Problem, match="LOCKED; allowed in test mode"):
        rig.ask("dice", **dice_request())
