"""The service of a whole table: ring and buzzer, test mode, self-test, sensors, the dice set, faults in pairs."""

from __future__ import annotations

from typing import Any

import pytest

from boards.virtual.model import default_tags
from dragoneye import signals
from dragoneye.protocol import BETTING, CLOSED, FAULT, IDLE, LOCKED, SETTLED, TEST, VOID
from dragoneye.rules.packs import load
from host_tools.audit import audit
from host_tools.link import Refused
from tests.table.conftest import OpenTable
from tests.table.played import Played
from tests.table.test_rounds import INSTANT_SETTINGS, _cleared, _press
from tests.virtual import until

PIXELS = 12
PERCENT = 15
SLOW = {"profile": {"jolt_ms": 300, "rest_ms": 10, "duty_percent": 80}}


def ring(table: Played) -> tuple[tuple[int, ...], int] | None:
    """What the ring shows: (colour, lit pixels as bits), or None when it is dark."""
    shown = table.bench.state()["ring"]
    assert len(shown) == PIXELS
    colours = {tuple(pixel) for pixel in shown if any(pixel)}
    assert len(colours) <= 1
    lit = sum(1 << index for index, pixel in enumerate(shown) if any(pixel))
    return (next(iter(colours)), lit) if colours else None


def expected(key: str) -> tuple[tuple[int, ...], set[int]]:
    colour: Any = signals.SIGNALS[key][0]
    pattern: Any = signals.SIGNALS[key][1]
    return tuple(channel * PERCENT // 100 for channel in colour), {pattern(step, PIXELS) for step in range(48)}


def shows(table: Played, key: str) -> None:
    """Wait until the ring shows this signal."""
    colour, forms = expected(key)

    def seen() -> bool:
        shown = ring(table)
        return shown is not None and shown[0] == colour and shown[1] in forms

    until(seen, f"the signal of {key}")


def test_the_ring_follows_a_round(open_table: OpenTable) -> None:
    table = open_table(more=SLOW)
    shows(table, IDLE)
    table.ask("open", shaker=1)
    shows(table, BETTING)
    table.ask("close")
    shows(table, CLOSED)
    table.ask("shake")
    shows(table, "SHAKING")
    table.wait(LOCKED)
    shows(table, LOCKED)
    table.ask("unlock")
    until(lambda: table.bench.state()["released"], "the bolt")
    table.do("lid", to="open")
    shows(table, SETTLED)


def test_the_chase_moves(open_table: OpenTable) -> None:
    table = open_table(more={"profile": {"jolt_ms": 5000, "rest_ms": 10, "duty_percent": 80}})
    table.begin()
    table.ask("shake")
    seen: set[int] = set()

    def moved() -> bool:
        shown = ring(table)
        if shown:
            seen.add(shown[1])
        return len(seen) >= 5

    until(moved, "five places of the chase")


def test_a_fault_is_shown_and_sounds_until_it_is_cleared(table: Played) -> None:
    table.do("tamper", to="open")
    shows(table, FAULT)
    hertz = signals.SIGNALS[FAULT][2][0][0]
    for _ in range(2):
        until(lambda: table.bench.state()["buzzer"]["freq"] == hertz, "the alarm")
        until(lambda: table.bench.state()["buzzer"]["freq"] == 0, "the alarm's end")
    table.do("tamper", to="ok")
    until(lambda: _cleared(table, "TAMPER"), "the contact")
    shows(table, IDLE)
    until(lambda: table.bench.state()["buzzer"] == {"freq": 0, "duty": 0}, "silence")


def test_a_refused_press_sounds(table: Played) -> None:
    table.do("button", to="hold")
    [(hertz, _ms)] = signals.REFUSED
    until(lambda: table.bench.state()["buzzer"]["freq"] == hertz, "the refusal")
    until(lambda: table.bench.state()["buzzer"]["freq"] == 0, "its end")
    table.do("button", to="release")


def test_ring_and_buzzer_are_still_after_a_ctrl_c(table: Played) -> None:
    table.do("tamper", to="open")
    shows(table, FAULT)
    until(lambda: table.bench.state()["buzzer"]["freq"], "the alarm")
    table.write_raw(b"\x03")
    until(lambda: ring(table) is None, "a dark ring")
    assert table.bench.state()["buzzer"] == {"freq": 0, "duty": 0}


# Test mode


def survey(table: Played) -> dict[str, Any]:
    """The sensors after a pass that began now."""
    # One may be under way already: the second one after this began now.
    last = table.ask("sensors")["pass"] + 1
    return dict(until(lambda: (told := table.ask("sensors"))["pass"] > last and told, "a pass of the readers"))


def seen_dice(told: dict[str, Any]) -> list[list[Any]]:
    return sorted(tag for one in told["readers"] for tag in one["tags"] or [])


def test_sensors_tell_what_lies_on_the_table(table: Played) -> None:
    table.do("place", dice=[2, 5, 6])
    assert table.ask("sensors")["readers"] is None
    table.ask("test", on=True)
    # On a busy machine a pass may be held up so long that it sees less; never anything else.
    told = until(lambda: len(seen_dice(found := survey(table))) >= 3 and found, "a pass that sees the dice")
    assert [tag[1:] for tag in seen_dice(told)] == [[1, 2], [2, 5], [3, 6]]
    assert {tag[0] for tag in seen_dice(told)} == {
        default_tags()[die][6 - value].upper() for die, value in enumerate([2, 5, 6])
    }
    assert (told["lid"], told["tamper"], told["button"], told["service"]) == ("shut", "shut", "up", "off")
    assert 11500 < told["supply_mv"] < 12100
    assert told["motor_ma"] < 50
    table.do("fault", name="foreign", uid="04aabbccddeeff", rolls=None)
    until(lambda: ["04AABBCCDDEEFF", 0, 0] in seen_dice(survey(table)), "the foreign tag")
    table.do("clear", name="foreign")
    table.ask("unlock")
    until(lambda: table.bench.state()["released"], "the bolt")
    table.do("lid", to="open")
    told = until(lambda: (now := table.ask("sensors"))["lid"] == "open" and now, "the lid")
    assert told["cycles"] == {"shakes": 0, "lid": 1, "lock": 1}
    table.ask("test", on=False)
    assert table.ask("sensors")["readers"] is None


def test_nothing_done_in_test_mode_can_become_a_result(table: Played) -> None:
    table.play([1, 2, 3])
    shakes = table.bench.state()["shakes"]
    table.ask("test", on=True)
    shows(table, TEST)
    assert table.state == TEST
    _press(table)
    for name, fields in (
        ("open", {"shaker": 1}),
        ("shake", {}),
        ("manual", {"dice": [6, 6, 6], "reason": "a test"}),
        ("finish", {}),
    ):
        with pytest.raises(Refused, match="E_TEST"):
            table.ask(name, **fields)
    assert table.bench.state()["shakes"] == shakes
    report = selftest(table)
    assert {row[0]: row[1] for row in report["items"]}["motor"]
    assert table.bench.state()["shakes"] == shakes + 1
    survey(table)
    table.ask("test", on=False)
    assert table.play([4, 5, 6])[0]["result"]["dice"] == [4, 5, 6]
    assert [data["set"] for data in table.records("test")] == [True, False]
    assert len(table.check_record()) == 2


def test_a_power_cut_leaves_test_mode(table: Played) -> None:
    table.ask("test", on=True)
    table.ask("selftest", start=True)
    table.restart()
    assert table.state == IDLE
    assert table.motor_is_off()
    table.records()
    kinds = [event["k"] for event in table.store.events(table.device.uid)]
    assert kinds[-2:] == ["test", "boot"]


# The self-test


def selftest(table: Played) -> dict[str, Any]:
    table.ask("selftest", start=True)
    return dict(until(lambda: not (told := table.ask("selftest"))["running"] and told, "the self-test's end"))


def test_a_sound_table_passes_its_self_test(table: Played) -> None:
    table.ask("test", on=True)
    rows = {row[0]: row[1:] for row in selftest(table)["items"]}
    assert [item for item, row in rows.items() if not row[0]] == []
    assert rows["dice"][1] == [1, 2, 3]
    assert rows["motor"][1] > 350
    assert rows["program"][1].endswith(table.device.table["build"])
    assert table.motor_is_off()
    assert table.bench.state()["shakes"] == 1


@pytest.mark.parametrize(
    ("fault", "failing"),
    [
        ({"name": "motor_dead"}, {"motor"}),
        ({"name": "motor_jammed"}, {"motor"}),
        ({"name": "missing", "die": 1}, {"dice"}),
    ],
)
def test_a_self_test_finds_a_fault(table: Played, fault: dict[str, Any], failing: set[str]) -> None:
    table.do("fault", **{"rolls": None, **fault})
    table.ask("test", on=True)
    assert {row[0] for row in selftest(table)["items"] if not row[1]} == failing
    until(lambda: table.device.refresh().get("service") == {"SELFTEST": ", ".join(failing)}, "the fault for service")
    table.do("clear", name=fault["name"])
    assert {row[0] for row in selftest(table)["items"] if not row[1]} == set()
    assert "service" not in table.device.refresh()
    pairs(table, "SELFTEST")


def test_a_dead_reader_is_found_by_the_self_test_that_a_fault_does_not_hinder(table: Played) -> None:
    table.do("fault", name="dead_reader", rolls=None)
    table.wait(FAULT)
    assert table.ask("test", on=True) == {"on": True, "state": FAULT}
    # The motor is not moved while a fault is latched.
    assert {row[0] for row in selftest(table)["items"] if not row[1]} == {"reader 1", "dice", "motor"}
    assert table.bench.state()["shakes"] == 0
    table.do("clear", name="dead_reader")
    until(lambda: _cleared(table, "READER"), "the reader")
    assert {row[0] for row in selftest(table)["items"] if not row[1]} == set()
    pairs(table, "READER", "SELFTEST")


def test_the_lid_stops_the_motor_of_a_self_test(open_table: OpenTable) -> None:
    table = open_table(more={"profile": {"jolt_ms": 6000, "rest_ms": 10, "duty_percent": 80}})
    table.ask("test", on=True)
    table.ask("selftest", start=True)
    until(lambda: table.bench.state()["turning"], "the motor")
    table.do("lid", to="open", force=True)
    report = until(lambda: not (told := table.ask("selftest"))["running"] and told, "the self-test's end")
    assert table.motor_is_off()
    [motor] = [row for row in report["items"] if row[0] == "motor"]
    assert motor[1:3] == [False, "stopped: the lid was opened"]


@pytest.mark.parametrize("how", ["leave", "tamper"])
def test_a_self_test_that_is_ended_stops_the_motor(open_table: OpenTable, how: str) -> None:
    table = open_table(more={"profile": {"jolt_ms": 6000, "rest_ms": 10, "duty_percent": 80}})
    table.ask("test", on=True)
    table.ask("selftest", start=True)
    until(lambda: table.bench.state()["turning"], "the motor")
    if how == "leave":
        table.ask("test", on=False)
    else:
        table.do("tamper", to="open")
        table.wait(FAULT)
    until(table.motor_is_off, "the motor's end")
    assert not table.ask("selftest")["running"] if how == "tamper" else table.state == IDLE


# The dice set

OTHER = [[f"04{die}{face}5566778899" for face in range(6)] for die in range(3)]


def test_a_dice_set_is_registered_and_outlives_the_power(table: Played) -> None:
    table.ask("test", on=True)
    tags = " ".join(uid for faces in default_tags()[::-1] for uid in faces)
    told = table.ask("dice", serial="B-17", issued="2026-11-30T08:00:00Z", eye=3, tags=tags)
    table.restart()
    assert table.device.table["dice_set"] == {key: told[key] for key in ("serial", "issued", "hash")}
    [stored] = table.play([1, 2, 6])
    # The dice lie as before; their order and the dragon's eye die are those of the set.
    assert (stored["result"]["dice"], stored["result"]["eye"]) == ([6, 2, 1], 2)
    [record] = table.records("dice")
    assert record == {
        "serial": "B-17",
        "issued": "2026-11-30T08:00:00Z",
        "eye": 2,
        "hash": told["hash"],
        "found": False,
    }


def test_dice_of_another_set_are_foreign(table: Played) -> None:
    table.ask("test", on=True)
    tags = " ".join(uid for faces in OTHER for uid in faces)
    table.ask("dice", serial="C", issued="2026-11-30T08:00:00Z", eye=1, tags=tags)
    table.ask("test", on=False)
    table.begin([1, 2, 3])
    assert table.shake(FAULT) == FAULT
    assert table.device.state["fault"] == "TAMPER"


def test_a_table_tells_at_each_start_which_dice_it_has(table: Played) -> None:
    told = table.device.table["dice_set"]
    table.restart()
    table.play([1, 2, 3])
    assert [boot["dice_set"] for boot in table.records("boot")] == [told, told]
    [stored] = table.store.dice_sets(table.device.uid)
    assert (stored["dice_set"], stored["tags"], stored["event"]) == (1, told["hash"], 1)
    assert audit(table.store, [load("nj")], table.device.uid).findings == []


# Faults in pairs


def pairs(table: Played, *codes: str) -> None:
    """Each fault of the record was set and cleared in turn, and these were."""
    said = [(data["code"], data["set"]) for data in table.records("fault")]
    for code in {code for code, _ in said}:
        of_code = [is_set for one, is_set in said if one == code]
        assert of_code == [True, False] * (len(of_code) // 2), said
    assert {code for code, _ in said} == set(codes)


def test_a_supply_that_stays_low_calls_for_service_and_clears_itself(table: Played) -> None:
    table.do("supply", mv=9000)
    until(lambda: "SUPPLY" in table.device.refresh().get("service", {}), "the fault for service")
    assert table.state == IDLE
    table.begin()
    with pytest.raises(Refused, match="E_SUPPLY"):
        table.ask("shake")
    table.do("supply", mv=12000)
    until(lambda: "service" not in table.device.refresh(), "its end")
    assert table.shake() == LOCKED
    table.finish()
    pairs(table, "SUPPLY")


# The failure table of the reference hardware, row by row: what is done, the verdict, the fault that is latched.
FAILURES: list[tuple[str, dict[str, Any], str, str | None]] = [
    ("cocked die, no tag", {"name": "cocked", "die": 0, "faces": 0}, "die_missing", None),
    ("cocked die, two faces", {"name": "cocked", "die": 0, "faces": 2}, "cocked", None),
    ("two faces of one die", {"name": "two_faces", "die": 1, "strong": True}, "cocked", None),
    ("collision", {"name": "collision"}, "unresolved", None),
    ("die missing", {"name": "missing", "die": 2}, "die_missing", None),
    ("two dice stacked", {"name": "stacked", "die": 1}, "die_missing", None),
    ("foreign tag", {"name": "foreign"}, "foreign_tag", "TAMPER"),
    ("dead tag", {"name": "dead_tag", "die": 0, "face": 4}, "die_missing", None),
    # Looked at once a second between rolls; what it does to a roll is told in test_rounds.
    ("reader dead", {"name": "dead_reader"}, "", "READER"),
    ("motor stuck on", {"name": "motor_stuck"}, "", "MOTOR_STUCK"),
    ("no motion", {"name": "motor_dead"}, "no_shake", None),
    ("motor jammed", {"name": "motor_jammed"}, "no_shake", None),
    ("not settled", {"name": "unsettled"}, "not_settled", None),
]


@pytest.mark.parametrize(("row", "fault", "reason", "code"), FAILURES, ids=[row[0] for row in FAILURES])
def test_every_failure_of_the_table(
    table: Played, row: str, fault: dict[str, Any], reason: str, code: str | None
) -> None:
    """The verdict, the fault's pair of records, and a sound round afterwards with the other dice."""
    table.begin([3, 1, 5])
    table.do("fault", **{"rolls": None, **fault})
    if reason:
        assert table.shake(VOID, FAULT) == (FAULT if code else VOID)
        assert table.records("void")[-1]["reason"] == reason
    else:
        table.wait(FAULT)
    shows(table, FAULT if code else VOID)
    assert "dice" not in table.device.refresh()
    table.do("clear", name=fault["name"])
    assert table.motor_is_off()
    if code:
        assert table.device.state["fault"] == code
        until(lambda: _cleared(table, code), f"{code} to be gone")
    # Somebody looks at the dice: what moves them now is another shake.
    until(lambda: table.bench.state()["at_rest"], "the dice")
    table.do("place", dice=[1, 1, 1])
    table.do("next", dice=[2, 4, 6])
    queue = table.bench.state()["queue"]
    table.shake()
    stored = table.finish()
    assert (stored["status"], stored["result"]["dice"]) == ("settled", queue[0])
    pairs(table, *([code] if code else []))
    table.check_record()


def test_two_faces_of_a_die_that_are_one_at_a_lower_gain_are_no_failure(table: Played) -> None:
    table.begin([3, 1, 5])
    table.do("fault", name="two_faces", die=1, rolls=None)
    assert table.shake(LOCKED, VOID) == LOCKED
    assert table.finish()["result"]["dice"] == [3, 1, 5]
    assert table.records("fault") == []


ROLLING = {"settings": {**INSTANT_SETTINGS, "settle_ms": 60_000}}


@pytest.mark.parametrize(
    ("action", "undo", "reason", "codes"),
    [
        (("lid", {"to": "open", "force": True}), ("lid", {"to": "shut"}), "lid_opened", []),
        (("tamper", {"to": "open"}), ("tamper", {"to": "ok"}), "tamper", ["TAMPER"]),
        (("supply", {"mv": 7000}), ("supply", {"mv": 12000}), "brown_out", []),
        (("power", {"to": "off"}), ("power", {"to": "on"}), "power_loss", []),
    ],
)
def test_every_interruption_while_the_dice_come_to_rest(
    open_table: OpenTable, action: tuple[str, Any], undo: tuple[str, Any], reason: str, codes: list[str]
) -> None:
    table = open_table(more=ROLLING)
    table.begin()
    table.shake("SETTLING")
    table.do(action[0], **action[1])
    if action[0] == "power":
        table.do(undo[0], **undo[1])
        table.device.reconnect()
    else:
        # The first edge voids the roll; the fault comes when it has lasted.
        table.wait(*((FAULT,) if codes else (VOID, FAULT)))
        table.do(undo[0], **undo[1])
    assert [data["reason"] for data in table.records("void")] == [reason]
    for code in codes:
        until(lambda code=code: _cleared(table, code), f"{code} to be gone")  # type: ignore[misc]
    pairs(table, *codes)
