"""Rounds on a whole table: the real firmware, its faults, power cuts and cables, and what may be on the wire when."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from boards.virtual import prng
from boards.virtual.model import default_tags
from dragoneye import protocol
from dragoneye.protocol import (
    BETTING,
    CLOSED,
    FAULT,
    IDLE,
    LOCKED,
    READING,
    SETTLED,
    SETTLING,
    SHAKING,
    VOID,
)
from dragoneye.rules import wagers
from host_tools.dealer import Plan
from host_tools.link import LinkClosed, LinkError, Refused, SessionLost
from tests.table.conftest import OpenTable
from tests.table.played import PLAN, Played
from tests.virtual import LONG, until

INSTANT_SETTINGS = {"settle_ms": 15, "lockout_ms": 0}
# A shake that lasts until somebody stops it.
LONG_SHAKE = {"profile": {"jolt_ms": 6000, "rest_ms": 10, "ramp_ms": 0}}
# A shake that lasts long enough to do something meanwhile.
SLOW_SHAKE = {"profile": {"jolt_ms": 200, "rest_ms": 50, "ramp_ms": 0}}
LONG_SETTLING = {"settings": {**INSTANT_SETTINGS, "settle_ms": 60000}}
LONG_READING = {"settings": {**INSTANT_SETTINGS, "read_tries": 1_000_000, "read_timeout_ms": 60000}}


def hear(table: Played, words: bytes) -> None:
    """Read the port until these bytes have come."""

    def heard() -> bool:
        table.device._link.transport.read(0.05)
        return words in table.heard

    until(heard, str(words))


# Whole rounds


@pytest.mark.needs("dice", "lid", "motor")
@pytest.mark.parametrize("pack", ["nj", "pr", "ca"])
def test_a_round_under_each_rule_pack(open_table: OpenTable, pack: str) -> None:
    table = open_table(pack)
    noise = table.ask("stats")["noise"]
    first, second = table.play([1, 5, 3], [6, 6, 6])
    for stored, dice in ((first, [1, 5, 3]), (second, [6, 6, 6])):
        result = stored["result"]
        eye = result["eye"]
        assert (stored["status"], result["dice"], result["total"]) == ("settled", dice, sum(dice))
        staked = PLAN.wagers if table.pack["wagers"] else {}
        assert result["rows"] == wagers.settle_table(staked, dice, eye, 1, result["before"], table.pack)
    assert table.device.table["pack"] == pack
    assert table.ask("stats")["noise"] == noise
    # The port may have been opened in the middle of a line.
    assert table.device.counters["noise"] <= 1
    assert table.motor_is_off()
    if table.is_virtual:
        state = table.bench.state()
        assert eye == 0
        assert state["lock_pulses"] >= 2
        assert len([edge for edge in state["edges"] if edge["duty"]]) == 6  # three jolts for each roll
    table.check_record()


def test_the_same_seed_brings_the_same_dice(open_table: OpenTable) -> None:
    def dice(seed: int) -> list[Any]:
        table = open_table(seed=seed)
        return [stored["result"]["dice"] for stored in table.play() + table.play()]

    assert dice(42) == dice(42) == [prng.dice(42, 1), prng.dice(42, 2)] != dice(43)


@pytest.mark.needs("lid")
def test_a_result_by_hand(table: Played) -> None:
    number = table.begin()
    told = table.ask("manual", dice=[2, 2, 5], reason="reader is being repaired")
    with pytest.raises(Refused, match="E_TOKEN"):
        table.ask("confirm", token=told["token"] + 1, dice=[2, 2, 5])
    table.ask("confirm", token=told["token"], dice=[2, 2, 5])
    stored = table.finish()
    assert (stored["round"], stored["manual"]) == (number, "reader is being repaired")
    assert (stored["result"]["dice"], stored["result"]["shakes"]) == ([2, 2, 5], 0)
    if table.is_virtual:
        assert table.bench.state()["shakes"] == 0


@pytest.mark.needs("dice", "lid", "power")
def test_a_streak_goes_on_over_power_losses(table: Played) -> None:
    bonus = Plan(1, {2: {"bonus": 100}}, {}, [])
    levels = []
    for count, roll in enumerate([[2, 2, 2], [3, 3, 3], [5, 5, 5]]):
        # The bonus stays up by itself while the streak runs.
        [stored] = table.play(roll, plan=bonus if count == 0 else Plan(1, {}, {}, []))
        levels.append((stored["result"]["before"], stored["result"]["level"]))
        table.restart()
        assert table.device.state["streak"]["count"] == count + 1
    assert levels == [(0, 1), (1, 2), (2, 3)]
    [stored] = table.play([1, 2, 4], plan=Plan(1, {}, {}, []))
    assert (stored["result"]["before"], stored["result"]["streak"]["count"]) == (3, 0)


# Faults of the dice, the readers and the motor


@pytest.mark.needs("dice", "lid", "fault", "motor")
@pytest.mark.parametrize(
    ("name", "fault", "reason", "latched"),
    [
        ("missing", {"die": 1}, "die_missing", None),
        ("stacked", {"die": 2}, "die_missing", None),
        ("cocked", {"die": 0, "faces": 0}, "die_missing", None),
        ("cocked", {"die": 0, "faces": 2}, "cocked", None),
        ("two_faces", {"die": 1, "strong": True}, "cocked", None),
        ("dead_tag", {"die": 0, "face": 4}, "die_missing", None),
        ("collision", {}, "unresolved", None),
        ("unsettled", {}, "not_settled", None),
        ("foreign", {}, "foreign_tag", "TAMPER"),
        ("motor_dead", {}, "no_shake", None),
        (
            "motor_jammed",
            {},
            "no_shake",
            None,
        ),
    ],
)
def test_a_fault_voids_the_roll_and_the_next_one_counts(
    table: Played, name: str, fault: dict[str, int], reason: str, latched: str | None
) -> None:
    # The die shows 3: its face below is 4.
    number = table.begin([3, 1, 5])
    table.do("fault", name=name, **fault)
    after = table.shake(LOCKED, VOID, FAULT)
    void = table.records("void")[-1]
    assert void.pop("missing", None) == ([fault["die"] + 1] if reason == "die_missing" else None)
    assert void == {"round": number, "reason": reason, "shakes": 1, "over": False}
    assert table.motor_is_off()
    if latched:
        assert after == FAULT
        assert table.device.state["fault"] == latched
        with pytest.raises(Refused, match=f"E_FAULT.*|the fault {latched} is latched"):
            table.ask("shake")
        table.ask("clear", code=latched)
    assert table.state == VOID
    table.do("next", dice=[2, 4, 6])
    expected = [2, 4, 6]
    if not table.is_virtual:
        table.do("clear", name=name)
    elif reason == "no_shake":  # nothing had moved: the first roll is still queued
        assert table.bench.state()["queue"][0] == [3, 1, 5]
        table.do("place", dice=[1, 1, 1])
        expected = [3, 1, 5]
    table.shake()
    stored = table.finish()
    assert (stored["status"], stored["voids"]) == ("settled", 1)
    assert stored["result"]["dice"] == expected
    assert stored["result"]["shakes"] == 2
    table.check_record()


def test_a_motor_that_does_not_stop(table: Played) -> None:
    table.do("fault", name="motor_stuck", rolls=None)
    table.wait(FAULT)
    assert table.device.state["fault"] == "MOTOR_STUCK"
    with pytest.raises(Refused, match="E_STANDS"):
        table.ask("clear", code="MOTOR_STUCK")
    table.do("clear", name="motor_stuck")
    until(lambda: _cleared(table, "MOTOR_STUCK"), "the fault to be gone")
    assert table.play([1, 2, 3])[0]["status"] == "settled"


def test_nothing_is_locked_while_the_motor_is_driven(open_table: OpenTable) -> None:
    # Dice at rest under a jammed motor would be read long before a motor that never stops is found.
    table = open_table(more={"settings": {"settle_ms": 400, "lockout_ms": 0}})
    number = table.begin([3, 2, 4])
    table.ask("shake")
    table.wait(SETTLING)
    for name in ("motor_jammed", "motor_stuck"):
        table.do("fault", name=name, rolls=None)
    assert table.wait(LOCKED, VOID, FAULT) == FAULT
    assert table.device.state["fault"] == "MOTOR_STUCK"
    assert [(one["round"], one["reason"]) for one in table.records("void")] == [(number, "fault")]
    assert not table.records("locked")
    table.do("clear")
    until(lambda: _cleared(table, "MOTOR_STUCK"), "the fault to be gone")
    table.shake()
    assert table.finish()["result"]["dice"] == table.do("state")["dice"]


def _cleared(table: Played, code: str) -> bool:
    try:
        table.ask("clear", code=code)
    except Refused as refused:
        if refused.code != "E_STANDS":
            raise
        return False
    return True


@pytest.mark.needs("config", "lid", "motor")
def test_the_lid_is_opened_while_the_motor_runs(open_table: OpenTable) -> None:
    table = open_table(more=LONG_SHAKE)
    number = table.begin()
    table.roll()
    table.do("lid", to="open", force=True)
    table.wait(VOID)
    assert table.motor_is_off()
    assert table.records("void") == [{"round": number, "reason": "lid_opened", "shakes": 1, "over": False}]
    with pytest.raises(Refused, match="E_LID"):
        table.ask("shake")
    table.do("lid", to="shut")
    until(lambda: not table.device.refresh()["lid_open"], "the lid")
    table.roll()
    assert table.device.state["voids"] == 1


@pytest.mark.needs("config", "motor")
@pytest.mark.parametrize(
    ("action", "undo", "reason", "code"),
    [
        pytest.param(
            ("supply", {"mv": 7000}),
            ("supply", {"mv": 12000}),
            "brown_out",
            "E_SUPPLY",
            marks=pytest.mark.needs("supply"),
        ),
        pytest.param(
            ("tamper", {"to": "open"}), ("tamper", {"to": "ok"}), "tamper", "E_FAULT", marks=pytest.mark.needs("tamper")
        ),
    ],
)
def test_supply_and_tamper_contact(
    open_table: OpenTable, action: tuple[str, Any], undo: tuple[str, Any], reason: str, code: str
) -> None:
    table = open_table(more=LONG_SHAKE)
    number = table.begin()
    table.roll()
    table.do(action[0], **action[1])
    # An edge of the tamper contact voids the roll; that it stays open is a fault a little later.
    table.wait(FAULT if code == "E_FAULT" else VOID)
    assert table.motor_is_off()
    assert table.records("void") == [{"round": number, "reason": reason, "shakes": 1, "over": False}]
    with pytest.raises(Refused, match=code):
        table.ask("shake")
    if code == "E_FAULT":
        with pytest.raises(Refused, match="E_STANDS"):
            table.ask("clear", code="TAMPER")
    table.do(undo[0], **undo[1])
    if code == "E_FAULT":
        until(lambda: _cleared(table, "TAMPER"), "the contact")
    until(lambda: _shakes(table), "a shake")


def _shakes(table: Played) -> bool:
    try:
        table.ask("shake")
    except Refused as refused:
        if refused.code not in ("E_SUPPLY", "E_LOCKOUT"):
            raise
        return False
    return True


def _turns(table: Played, count: int) -> None:
    """Let the table's loop turn so often."""
    runs = table.ask("stats")["tasks"]["table"][0]
    until(lambda: table.ask("stats")["tasks"]["table"][0] >= runs + count, "more turns of the loop")


def _press(table: Played, bounce: int = 0) -> None:
    """Press the button long enough to be seen, and let it up as long."""
    table.do("button", to="hold", bounce=bounce)
    _turns(table, 20)
    table.do("button", to="release", bounce=bounce)
    _turns(table, 20)


@pytest.mark.needs("dice", "lid", "button")
def test_the_button_is_the_next_step(table: Played) -> None:
    number = table.begin([4, 2, 1])
    for state, after in ((CLOSED, LOCKED), (SETTLED, IDLE)):
        assert table.state == state
        _press(table, bounce=4)
        table.wait(after)
        if after == LOCKED:
            _press(table)
            if table.is_virtual:
                until(lambda: table.bench.state()["released"], "the bolt")
            table.do("lid", to="open")
            table.wait(SETTLED)
            table.do("lid", to="shut")
    table.device.wait_stored(LONG)
    assert table.store.round(number, table.device.uid)["result"]["dice"] == [4, 2, 1]


@pytest.mark.needs("button", "dice", "lid")
def test_a_held_button_does_not_repeat(table: Played) -> None:
    table.begin()
    table.do("button", to="hold")
    table.wait(LOCKED)
    _turns(table, 50)
    assert table.state == LOCKED
    assert table.records("void") == []
    if table.is_virtual:
        state = table.bench.state()
        assert (state["shakes"], state["lock_pulses"]) == (1, 0)
    table.do("button", to="release")


# Cables and ports


@pytest.mark.needs("config", "dice", "lid", "cable", "motor")
def test_the_cable_is_pulled_while_the_dice_roll(open_table: OpenTable) -> None:
    table = open_table(more=SLOW_SHAKE)
    number = table.begin([6, 1, 2])
    table.roll()
    table.do("cable", to="out")
    # The roll goes on by itself: two passes that agree.
    if table.is_virtual:
        until(lambda: table.bench.state()["reads"] >= 2, "the reading")
    with pytest.raises((LinkClosed, SessionLost)):
        table.ask("status")
    table.do("cable", to="in")
    table.device.reconnect(LONG)
    table.wait(LOCKED)
    stored = table.finish()
    assert (stored["round"], stored["result"]["dice"], stored["voids"]) == (number, [6, 1, 2], 0)
    if table.is_virtual:
        assert table.bench.state()["boots"] == 1
    table.check_record()


@pytest.mark.parametrize("duty", [50, 51, 65, 100])
def test_a_jam_is_no_shake_at_any_duty(open_table: OpenTable, duty: int) -> None:
    """The default duty is tested with the other faults."""
    table = open_table(more={"profile": {"jolt_ms": 40, "rest_ms": 1, "ramp_ms": 9, "duty_percent": duty}})
    table.begin([3, 1, 5])
    table.do("fault", name="motor_jammed", rolls=None)
    assert table.shake(LOCKED, VOID, FAULT) == VOID
    assert [void["reason"] for void in table.records("void")] == ["no_shake"]
    table.do("clear", name="motor_jammed")
    # Somebody looks at the dice, so the next movement is a shake of its own.
    table.do("place", dice=[1, 1, 1])
    assert table.shake(LOCKED, VOID, FAULT) == LOCKED
    assert table.finish()["result"]["dice"] == [3, 1, 5]


@pytest.mark.parametrize("flaw", ["motor_jammed", "motor_stuck"])
def test_a_motor_that_fails_in_the_ramp(open_table: OpenTable, flaw: str) -> None:
    """Jammed: its jolts did not move the dice. Stuck on: no result, and a fault."""
    table = open_table(more={"profile": {"jolt_ms": 1000, "rest_ms": 1, "ramp_ms": 200}})
    table.begin([3, 1, 5])
    table.roll()
    table.do("fault", name=flaw, rolls=None)
    table.wait(VOID if flaw == "motor_jammed" else FAULT)
    [void] = table.records("void")
    assert flaw == "motor_stuck" or void["reason"] == "no_shake"
    assert table.records("locked") == []
    assert table.motor_is_off()


def test_an_open_port_that_nobody_reads_hinders_no_roll(open_table: OpenTable) -> None:
    table = open_table(more=SLOW_SHAKE)
    table.begin([5, 3, 3])
    # More answers than the pipe and the port hold, and one frame that shakes; nothing is read meanwhile.
    seq = table.device._link._seq
    for step in range(1, 120):
        table.write_raw(protocol.encode(seq + step, {"q": "stats"}))
    table.write_raw(protocol.encode(seq + 120, {"q": "shake"}))
    state = until(lambda: (now := table.bench.state())["reads"] >= 2 and now, "the reading")
    assert [edge["duty"] > 0 for edge in state["edges"]] == [True, False] * 3
    table.device.reconnect(LONG)
    stored = table.finish()
    assert (stored["result"]["dice"], stored["voids"]) == ([5, 3, 3], 0)
    table.check_record()


@pytest.mark.needs("config", "motor")
def test_a_raw_ctrl_c_stops_the_motor(open_table: OpenTable) -> None:
    table = open_table(more=LONG_SHAKE)
    number = table.begin()
    table.roll()
    table.write_raw(b"\x03")
    until(table.motor_is_off, "the motor to stop")
    # The program ends and says so; a soft reset brings the table back.
    hear(table, b">>> ")
    assert b"KeyboardInterrupt" in table.heard
    table.write_raw(b"\x04")
    until(table.reconnects, "the table")
    table.device.wait_stored(LONG)
    assert table.store.round(number, table.device.uid)["status"] == "void"
    assert table.motor_is_off()
    table.check_record()


def test_the_watchdog_brings_an_interrupted_table_back(open_table: OpenTable) -> None:
    table = open_table(more={**LONG_SHAKE, "watchdog_ms": 2000})
    number = table.begin()
    table.roll()
    table.write_raw(b"\x03")
    state = table.bench.wait_for("boots", 2, LONG)
    assert state["last_reset"] == "watchdog"
    until(table.reconnects, "the table")
    table.device.wait_stored(LONG)
    assert table.store.round(number, table.device.uid)["status"] == "void"
    assert table.motor_is_off()


@pytest.mark.needs("dice", "lid")
def test_a_flood_of_noise_is_counted(table: Played) -> None:
    rng = random.Random(3)
    lines: list[bytes] = []
    while sum(len(line) for line in lines) < 100_000:
        lines.append(bytes(rng.randrange(0x20, 0x7F) for _ in range(rng.randint(13, 60))) + b"\n")
    number = table.begin()
    before = table.ask("stats")["noise"]
    for first in range(0, len(lines), 20):
        table.write_raw(b"".join(lines[first : first + 20]))
        table.device.poll()
    until(lambda: table.ask("stats")["noise"] >= before + len(lines), "the noise")
    assert table.ask("stats")["noise"] == before + len(lines)
    table.shake()
    assert table.finish()["round"] == number


# Power cuts in every state


@pytest.mark.parametrize(
    ("state", "more"),
    [
        (BETTING, None),
        (CLOSED, None),
        (SHAKING, LONG_SHAKE),
        (SETTLING, LONG_SETTLING),
        (READING, LONG_READING),
        (VOID, None),
        (LOCKED, None),
        (SETTLED, None),
        (FAULT, None),
    ],
)
def test_a_restart_recovers_the_round_or_voids_it(open_table: OpenTable, state: str, more: Any) -> None:
    table = open_table(more=more)
    if state == READING:
        table.do("fault", name="unsettled", rolls=None)
    if state == VOID:
        table.do("fault", name="missing")
    if state == BETTING:
        table.ask("open", shaker=1)
    else:
        table.begin([2, 6, 3])
    if state in (LOCKED, SETTLED, FAULT, VOID):
        table.shake(LOCKED, VOID)
    elif state not in (BETTING, CLOSED):
        table.shake(state)
    if state == SETTLED:
        table.reveal()
    if state == FAULT:
        table.do("tamper", to="open")
        table.wait(FAULT)
        table.do("tamper", to="ok")
    assert table.state == state
    table.restart()
    recovered = state in (LOCKED, SETTLED, FAULT)
    if state == FAULT:
        assert table.state == FAULT
        table.ask("clear", code="TAMPER")
    if recovered and state != SETTLED:
        assert table.state == LOCKED
        table.finish()
    assert table.state == IDLE
    [stored] = table.check_record()
    if recovered:
        assert (stored["status"], stored["result"]["dice"]) == ("settled", [2, 6, 3])
        assert [event["reason"] for event in table.records("void")] == []
    else:
        assert (stored["status"], stored.get("result")) == ("void", None)
        assert table.records("void")[-1]["reason"] == "power_loss"
        assert len(table.records("void")) == (2 if state == VOID else 1)
    assert table.motor_is_off()
    if not more:
        table.do("lid", to="shut")
        assert table.play([1, 1, 2])[-1]["round"] == 2


# Nobody knows before the lid opens


def _spoken(heard: bytes) -> list[dict[str, Any]]:
    frames = []
    for line in heard.split(b"\n"):
        try:
            frames.append(protocol.decode(line)[1])
        except protocol.Noise:
            continue
    return frames


def _leaves(value: Any) -> list[Any]:
    """Every list and every key of a JSON value."""
    if isinstance(value, dict):
        return [*value, *(leaf for one in value.values() for leaf in _leaves(one))]
    if isinstance(value, list):
        return [value, *(leaf for one in value for leaf in _leaves(one))]
    return []


@pytest.mark.parametrize("dice", [[6, 1, 4], [3, 3, 3]])
def test_nothing_of_a_result_is_on_the_wire_before_the_lid_opens(table: Played, dice: list[int]) -> None:
    table.begin(dice)
    del table.heard[:]
    table.shake()
    table.ask("stats")
    for request, fields in (("shake", {}), ("close", {}), ("finish", {}), ("void", {"reason": "let me see"})):
        with pytest.raises(Refused):
            table.ask(request, **fields)
    # Another host asks for everything from the beginning, before and after a power cut.
    for _ in range(2):
        table.device._link.hello(0, 0)
        until(lambda: _resent(table), "the events from the first one on")
        table.ask("status")
        table.restart()
    table.write_raw(b"\x03")
    hear(table, b">>> ")
    before_the_lid = bytes(table.heard)
    table.do("power", to="off")
    table.do("power", to="on")
    table.device.reconnect(LONG)

    frames = _spoken(before_the_lid)
    assert len(frames) > 20
    text = before_the_lid.replace(b" ", b"")
    for written in (dice, sorted(dice), dice[::-1]):
        assert json.dumps(written).replace(" ", "").encode() not in text
    for leaf in _leaves(frames):
        assert leaf not in ("dice", "total", "rows", "net", "level", "before", "manual", dice)
        assert not (isinstance(leaf, list) and sorted(map(str, leaf)) == sorted(map(str, dice)))
    assert {frame["ev"]["k"] for frame in frames if "ev" in frame} <= {"boot", "opened", "closed"}
    assert table.finish()["result"]["dice"] == dice


def _resent(table: Played) -> bool:
    """Whether the record that bets were closed has come since the last hello."""
    table.device.poll(0.05)
    frames = _spoken(bytes(table.heard))
    hellos = [at for at, frame in enumerate(frames) if isinstance(frame.get("ok"), dict) and "uid" in frame["ok"]]
    return any(frame.get("ev", {}).get("k") == "closed" for frame in frames[hellos[-1] :])


# What differs from one table to another that plays the same, whatever the dice: name, hashes, clocks, memory, currents,
# and how often it was asked.
APART = {
    *("b", "config_hash", "counter", "issued", "known", "nonce", "t", "uid", "uptime_ms"),
    *("frames", "free", "motor_ma", "repeats", "resent", "supply_mv", "tasks", "writes"),
}


def _without_these(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_these(one) for key, one in value.items() if key not in APART}
    return [_without_these(one) for one in value] if isinstance(value, list) else value


def _told_before_the_lid_opens(table: Played, dice: list[int]) -> tuple[set[str], set[str]]:
    """What a host with ears and questions is told while the dice roll, and from then on until the lid opens."""
    table.begin(dice)
    table.may_shake()
    table.device.wait_stored(LONG)
    del table.heard[:]
    table.shake()
    for _ in range(2):
        for name in ("status", "stats", "sensors"):
            table.ask(name)
        table.device._link.hello(0, 0)
        until(lambda: _resent(table), "the events from the first one on")
    rolling: set[str] = set()
    locked: set[str] = set()
    for frame in _spoken(bytes(table.heard)):
        if "ev" in frame:
            continue  # from before the roll
        told = _without_these(frame.get("ok", frame.get("st", frame)))
        # Which of these a host happens to be told is a matter of moments.
        rolls = told.get("state") in (SHAKING, SETTLING, READING)
        (rolling if rolls else locked).add(json.dumps({**told, "state": "rolls"} if rolls else told, sort_keys=True))
    return rolling, locked


def test_what_a_table_tells_before_the_lid_opens_is_the_same_whatever_the_dice(open_table: OpenTable) -> None:
    rolling, locked = _told_before_the_lid_opens(open_table(), [6, 6, 6])
    assert len(locked) >= 5  # the shake's answer, the state, counters, sensors, the hello
    for dice in ([1, 2, 3], [4, 1, 1]):
        more, told = _told_before_the_lid_opens(open_table(), dice)
        assert told == locked
        rolling |= more
    assert len(rolling) <= 1


@pytest.mark.needs("dice", "lid")
def test_a_state_tells_the_dice_only_when_the_lid_has_opened(table: Played) -> None:
    table.begin([1, 2, 6])
    table.shake()
    assert "dice" not in table.device.refresh()
    table.unlock()
    assert "dice" not in table.device.refresh()
    table.do("lid", to="open")
    table.wait(SETTLED)
    assert table.device.state["dice"] == [1, 2, 6]


@pytest.mark.needs("dice", "lid")
def test_a_lid_that_is_forced_ends_the_round_all_the_same(table: Played) -> None:
    number = table.begin([5, 1, 1])
    table.shake()
    table.do("lid", to="open", force=True)
    table.wait(SETTLED)
    with pytest.raises((Refused, LinkError)):
        table.ask("bets", position=4, wagers={"odd": 100})
    assert table.finish()["round"] == number


def test_a_cloned_tag_is_taken_for_its_original(table: Played) -> None:
    """What the README says of it: by its UID alone it cannot be told. Beside its original's die it voids the roll."""
    clone = default_tags()[1][6 - 5]
    table.do("fault", name="foreign", uid=clone, rolls=None)
    table.begin([3, 1, 6])
    assert table.shake(LOCKED, VOID, FAULT) == VOID
    table.do("fault", name="missing", die=1, rolls=None)
    table.do("place", dice=[3, 1, 6])
    table.do("next", dice=[3, 1, 6])
    assert table.shake(LOCKED, VOID, FAULT) == LOCKED
    stored = table.finish()
    assert (stored["status"], stored["result"]["dice"]) == ("settled", [3, 5, 6])
