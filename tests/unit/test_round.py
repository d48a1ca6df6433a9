"""The round: every request in every state, what each refusal says, and what must never happen on any way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoneye import protocol, round, service
from dragoneye.protocol import (
    BETTING,
    CLOSED,
    FAULT,
    IDLE,
    LOCKED,
    READING,
    REVEALED,
    SETTLED,
    SETTLING,
    SHAKING,
    TEST,
    VOID,
    Problem,
)
from host_tools import codes
from tests.unit.tables import EYE, FOREIGN, LASTING, SHAKE_MS, WAGERS, PowerCut, Rig, pack_named, tags_of

ROLLING = (SHAKING, SETTLING, READING)
OTHER_STATES = tuple(state for state in LASTING if state != FAULT)

OTHER_TAGS = " ".join(f"04{die}{face}0000" for die in range(3) for face in range(6))

# One request of each name that is well formed and asks for nothing impossible.
FIELDS: dict[str, dict[str, Any]] = {
    "open": {"shaker": 1},
    "shaker": {"shaker": 2},
    "bets": {"position": 2, "wagers": {}},
    "leave": {"position": 1},
    "void": {"reason": "dice fell out"},
    "manual": {"dice": [1, 2, 3], "reason": "reader broken"},
    "confirm": {"token": 1, "dice": [1, 2, 3]},
    "correct": {"round": 1, "what": "void", "event": 5, "reason": "dealt twice"},
    "clear": {"code": "READER"},
    "changed": {"unit": "dice"},
    "test": {"on": True},
    "dice": {"serial": "B", "issued": "2026-11-30T08:00:00Z", "eye": 2, "tags": OTHER_TAGS},
}
# These the controller answers without the round.
WITHOUT_ROUND = ("hello", "status", "stats", "verify")
REQUESTS = [name for name in protocol.REQUESTS if name not in WITHOUT_ROUND]

LETTERS = {
    ".": None,
    "S": "E_STATE",
    "C": "E_BETS_CLOSED",
    "O": "E_BETS_OPEN",
    "T": "E_TOKEN",
    "F": "E_FAULT",
    "E": "E_TEST",
    "A": "E_ARGS",
}

# Columns as LASTING: idle, betting, closed; shaking, settling, reading; locked, settled, void; fault, test (of idle).
# "?" is told by a test of its own.
NJ = """
    open     .SS SSS SSS FE
    shaker   S.. SSS SS. FE
    bets     S.C CCC CSC FE
    leave    ..C CCC C.C ?E
    close    S.C CCC CSC FE
    shake    SO. SSS SS. FE
    unlock   ... SSS ... ..
    finish   SSS SSS S.S FE
    void     S.. SSS SS. FE
    resume   SSS SSS SS. FE
    manual   SS. SSS SS. FE
    confirm  SST SSS SST FE
    correct  ASS SSS S.S FE
    clear    SSS SSS SSS .S
    changed  ... SSS S.. ..
    end      .SS SSS S.S .E
    test     .SS SSS S.S ..
    selftest SSS SSS SSS S.
    sensors  ... ... ... ..
    dice     SSS SSS SSS F.
    maintenance .SS SSS S.S ..
"""
CA = """
    open     .SS SSS SSS FE
    shaker   S.. SSS SS. FE
    bets     S.C ... .S. FE
    leave    ..C SSS ... ?E
    close    S.C SSS .S. FE
    shake    S.. SSS SS. FE
    unlock   ... SSS O.. ..
    finish   SSS SSS S.S FE
    void     S.. SSS SS. FE
    resume   SSS SSS SS. FE
    manual   SS. SSS SSO FE
    confirm  SST SSS SST FE
    correct  ASS SSS S.S FE
    clear    SSS SSS SSS .S
    changed  ... SSS S.. ..
    end      .SS SSS S.S .E
    test     .SS SSS S.S ..
    selftest SSS SSS SSS S.
    sensors  ... ... ... ..
    dice     SSS SSS SSS F.
    maintenance .SS SSS S.S ..
"""
PACKS = {"nj": NJ, "ca": CA, "house": CA}


def cells() -> list[tuple[str, str, str, str]]:
    return [
        (pack, row.split()[0], state, letter)
        for pack, text in PACKS.items()
        for row in text.strip().splitlines()
        for state, letter in zip(LASTING, "".join(row.split()[1:]), strict=True)
        if letter != "?"
    ]


def test_the_matrix_has_every_request_in_every_state() -> None:
    for text in PACKS.values():
        rows = [row.split() for row in text.strip().splitlines()]
        assert [row[0] for row in rows] == REQUESTS
        assert {len("".join(row[1:])) for row in rows} == {len(LASTING)}
    assert {*LASTING, REVEALED} == set(codes.STATES)


@pytest.mark.parametrize(("pack", "name", "state", "letter"), cells())
def test_every_request_in_every_state(pack: str, name: str, state: str, letter: str) -> None:
    rig = Rig(pack)
    rig.reach(state)
    assert rig.state == state
    fields = FIELDS.get(name, {})
    code = LETTERS[letter]
    if code is None:
        assert isinstance(rig.ask(name, **fields), dict)
        return
    found, why = rig.refusal(name, **fields)
    assert found == code
    if code == "E_STATE" and name != "clear":
        assert state in why
    if code == "E_FAULT":
        assert "READER" in why


def test_revealed_is_passed_while_the_wagers_are_settled_and_nothing_can_come_between() -> None:
    rig = Rig()
    seen: list[tuple[str, str]] = []
    rig.watch = lambda kind: seen.append((kind, rig.state))
    rig.reach(SETTLED)
    assert ("settled", REVEALED) in seen
    assert seen[-1] == ("settled", REVEALED)
    assert rig.state == SETTLED


# -- a round ---------------------------------------------------------------------------------------------------------


def test_a_round_from_the_first_bet_to_the_end() -> None:
    rig = Rig()
    assert rig.ask("open", shaker=3) == {"round": 1, "bets": []}
    answer = rig.ask("bets", position=3, wagers=WAGERS)
    assert answer == {"position": 3, "wagers": WAGERS, "liability": answer["liability"]}
    # Three threes: all three dice match, the double, the triple and the shaker's bonus.
    assert answer["liability"] == 3 * 500 + 4 * 100 + 30 * 100 + 30 * 100 == rig.view()["liability"]
    assert rig.ask("close") == {"round": 1, "liability": answer["liability"]}
    roll = rig.shake()
    assert rig.state == SHAKING
    rig.settle(roll)
    assert (rig.state, rig.effects(round.READ)) == (READING, [(roll, 0)])
    rig.tell("tags", roll, tags_of([3, 4, 3]))
    assert (rig.state, rig.effects(round.READ)) == (READING, [(roll, 0)])
    rig.tell("tags", roll, tags_of([3, 4, 3]))
    assert rig.state == LOCKED
    rig.ask("unlock")
    assert rig.effects(round.UNLOCK) == [None]
    rig.open_lid()
    assert rig.state == SETTLED
    assert (rig.view()["dice"], rig.view()["eye"]) == ([3, 4, 3], EYE)
    assert rig.ask("finish") == {"round": 1}
    assert rig.kinds() == ["opened", "closed", "locked", "door", "settled"]
    settled = rig.last("settled")
    rows = {wager: odds for _position, wager, _stake, odds in settled["rows"]}
    assert rows == {"match": 2, "even": 1, "odd": 0, "double": 4, "triple": 0, "bonus": 0}
    assert settled["net"] == 2 * 500 + 200 - 300 + 4 * 100 - 100 - 100
    assert (settled["total"], settled["shaker"], settled["shakes"], settled["manual"]) == (10, 3, 1, None)


@pytest.mark.parametrize("pack", ["nj", "ca"])
def test_a_button_alone_plays_a_round_once_bets_are_closed(pack: str) -> None:
    rig = Rig(pack)
    rig.ask("open", shaker=0)
    rig.ask("close")
    rig.tell("button")
    [(roll, jolts)] = rig.effects(round.SHAKE)
    assert jolts == 3
    rig.tell("button")
    assert rig.effects(round.REFUSED) == ["E_STATE"]
    rig.settle(roll)
    rig.show(roll, [1, 1, 2])
    rig.tell("button")
    assert rig.effects(round.UNLOCK) == [None]
    rig.open_lid()
    rig.tell("button")
    assert rig.state == IDLE
    rig.tell("button")
    assert rig.effects(round.REFUSED) == ["E_STATE"]


def test_the_button_is_refused_while_bets_are_open_and_while_a_fault_is_latched() -> None:
    rig = Rig()
    rig.reach(BETTING)
    before = len(rig.records)
    rig.tell("button")
    rig.tell("set_fault", "READER", "no answer")
    rig.tell("button")
    assert rig.effects(round.REFUSED) == ["E_BETS_OPEN", "E_FAULT"]
    assert rig.kinds(before) == ["fault"]


@pytest.mark.parametrize("now", [0, 1000, 2**29 - 3000, 2**30 - 2500, 2**30, 2**31 - 2000, 2**32 - 2000, 10**10])
def test_a_round_plays_at_any_time_of_the_clock(now: int) -> None:
    rig = Rig(now=now)
    for dice in ([1, 2, 3], [4, 4, 4], [4, 4, 4], [6, 5, 4]):
        rig.play(dice, {1: {"bonus": 100}} if dice == [4, 4, 4] and rig.view()["streak"]["count"] == 0 else {})
    assert rig.now > now + 4 * SHAKE_MS
    assert [record["d"]["level"] for record in rig.records if record["k"] == "settled"] == [0, 1, 2, 0]


def test_weeks_may_pass_in_any_state_without_motion() -> None:
    rig = Rig()
    week = 7 * 24 * 3600 * 1000
    for state in (IDLE, BETTING, CLOSED, LOCKED, SETTLED, VOID, FAULT):
        rig = Rig()
        rig.reach(state)
        before = len(rig.records)
        for _ in range(5):
            rig.wait(week)
        assert (rig.state, rig.kinds(before)) == (state, [])


# -- corrections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ({"what": "void"}, {}),
        ({"what": "dice", "dice": [2, 2, 1]}, {"dice": [2, 2, 1]}),
        ({"what": "bets", "position": 4, "wagers": {"odd": 9, "match": 0}}, {"position": 4, "wagers": {"odd": 9}}),
        ({"what": "bets", "position": 1, "wagers": {}, "dice": None}, {"position": 1, "wagers": {}}),
    ],
)
def test_a_correction_is_a_further_record_and_changes_nothing(told: dict[str, Any], kept: dict[str, Any]) -> None:
    rig = Rig()
    rig.play([3, 3, 3], {1: {"bonus": 100}})
    rig.play([1, 2, 4], {2: {"match": 500}})
    before, state = rig.view(), rig.state
    answer = rig.ask("correct", round=1, event=5, reason="seen on camera 4", **told)
    assert answer == {"round": 1, "what": told["what"], "event": rig.records[-1]["id"]}
    record = {"round": 1, "what": told["what"], "event": 5, "why": "seen on camera 4", **kept}
    assert (rig.records[-1]["k"], rig.records[-1]["d"]) == ("correction", record)
    assert (rig.view(), rig.state) == (before, state)
    rig.restart()
    assert rig.view()["streak"] == before["streak"]
    # The next round is none the wiser, and the round just settled may be corrected as well.
    rig.reach(SETTLED)
    assert rig.ask("correct", round=3, event=9, reason="wrong face", **told)["round"] == 3
    assert rig.state == SETTLED


@pytest.mark.parametrize(
    ("told", "code", "words"),
    [
        ({"round": 2, "what": "void"}, "E_ARGS", "correct: round is 2; the last that is over is 1"),
        ({"what": "dice"}, "E_ARGS", "correct: dice is null; dice needs dice"),
        ({"what": "void", "dice": [1, 2, 3]}, "E_ARGS", "correct: dice is [1, 2, 3]; void needs nothing more"),
        ({"what": "bets", "wagers": {}}, "E_ARGS", "correct: position is null; bets needs position and wagers"),
        ({"what": "bets", "position": 7, "wagers": {"match": 500}}, "E_WAGER", "position"),
        ({"what": "bets", "position": 2, "wagers": {"red": 500}}, "E_WAGER", "red"),
        ({"what": "other"}, "E_ARGS", "one of void, dice, bets"),
    ],
)
def test_what_cannot_be_corrected_says_why(told: dict[str, Any], code: str, words: str) -> None:
    rig = Rig()
    rig.play([1, 2, 4])
    before = len(rig.records)
    found, why = rig.refusal("correct", **{"round": 1, "event": 5, "reason": "wrong", **told})
    assert found == code
    assert words in why
    assert len(rig.records) == before


# -- the shake -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", ["nj", "ca"])
def test_a_shake_has_three_jolts_at_least(pack: str) -> None:
    rig = Rig(pack)
    rig.reach(CLOSED)
    for jolts in (1, 2):
        assert rig.refusal("shake", jolts=jolts) == ("E_JOLTS", f"{jolts} jolts; allowed: 3 or more")
    assert rig.ask("shake", jolts=3) == {"shakes": 1, "jolts": 3}
    assert rig.effects(round.SHAKE) == [(1, 3)]


@pytest.mark.parametrize(
    ("own", "least", "asked", "run"), [(5, 3, 0, 5), (2, 3, 0, 3), (5, 3, 3, 3), (3, 3, 12, 12), (4, 6, 0, 6)]
)
def test_the_tables_own_profile_never_falls_below_the_packs_minimum(own: int, least: int, asked: int, run: int) -> None:
    rig = Rig(pack_named("nj", jolts_min=least), settings={"jolts": own})
    rig.reach(CLOSED)
    assert rig.ask("shake", jolts=asked)["jolts"] == run


def test_six_shakes_for_each_player_and_a_seventh_is_refused() -> None:
    rig = Rig(pack_named("ca", void_limit=20))
    rig.ask("open", shaker=4)

    def void_shake() -> int:
        rig.wait_out()
        roll = rig.shake()
        shakes = rig.view()["shakes"]
        rig.tell("shaken", roll, False)
        return int(shakes)

    assert [void_shake() for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    rig.wait_out()
    code, why = rig.refusal("shake")
    assert (code, why) == ("E_SHAKES", "this shaker has shaken 6 times; allowed: 6 in a round")
    # Another player has six as well, and coming back does not begin anew.
    rig.ask("shaker", shaker=5)
    assert rig.view()["shakes"] == 0
    assert void_shake() == 1
    rig.ask("shaker", shaker=4)
    rig.wait_out()
    assert rig.code("shake") == "E_SHAKES"
    # The next round does.
    rig.ask("void", reason="enough of this")
    rig.ask("open", shaker=4)
    assert void_shake() == 1


def test_new_jersey_knows_no_limit_of_shakes() -> None:
    rig = Rig(pack_named("nj", void_limit=20))
    rig.reach(CLOSED)
    for _ in range(12):
        rig.wait_out()
        rig.tell("shaken", rig.shake(), False)
    assert rig.view()["shakes"] == 12


def test_the_lockout_runs_from_the_end_of_the_last_shake() -> None:
    rig = Rig()
    rig.reach(CLOSED)
    roll = rig.shake()
    rig.now += SHAKE_MS
    rig.tell("shaken", roll, False)
    assert rig.view()["lockout_ms"] == 5000
    rig.wait(4999)
    assert rig.refusal("shake") == ("E_LOCKOUT", "wait 1 ms more")
    rig.wait(1)
    assert "lockout_ms" not in rig.view()
    rig.shake()


@pytest.mark.parametrize("state", [BETTING, CLOSED, SHAKING, READING, VOID, LOCKED])
def test_the_lockout_runs_from_a_start_out_of_an_open_round(state: str) -> None:
    rig = Rig()
    rig.reach(state)
    rig.restart()
    assert rig.view()["lockout_ms"] == 5000
    if state == LOCKED:
        rig.open_lid()
        rig.ask("finish")
        rig.tell("lid", False)
    rig.reach(CLOSED)
    rig.now += round.LID_QUIET_MS
    assert rig.code("shake") == "E_LOCKOUT"
    rig.wait_out()
    rig.shake()


def test_a_start_between_rounds_knows_of_no_shake() -> None:
    rig = Rig()
    rig.play([1, 2, 3])
    rig.restart()
    assert "lockout_ms" not in rig.view()


def test_the_lockout_holds_across_rounds_and_after_a_lid_opened_in_the_shake() -> None:
    rig = Rig(settings={"settle_ms": 1})
    rig.play([1, 2, 3])
    rig.reach(CLOSED)
    assert rig.code("shake") == "E_LOCKOUT"
    rig.wait_out()
    rig.shake()
    rig.now += 100
    rig.open_lid()
    rig.tell("lid", False)
    assert (rig.state, rig.view()["lockout_ms"]) == (VOID, 4900)


def test_a_shake_that_did_not_end_counts_for_the_lockout_until_it_was_stopped() -> None:
    rig = Rig()
    rig.reach(SHAKING)
    rig.wait(15000)
    assert (rig.view()["void"], rig.view()["lockout_ms"]) == ("shake_timeout", 5000)


@pytest.mark.parametrize(
    ("what", "code", "word"), [("lid", "E_LID", "lid"), ("supply", "E_SUPPLY", "12 V"), ("tamper", "E_FAULT", "TAMPER")]
)
def test_no_shake_with_the_lid_open_or_the_supply_low(what: str, code: str, word: str) -> None:
    rig = Rig()
    rig.reach(CLOSED)
    rig.tell(what, True)
    found, why = rig.refusal("shake")
    assert found == code
    assert word in (why or codes.ERRORS[code])
    rig.tell(what, False)
    if what == "tamper":
        rig.ask("clear", code="TAMPER")
    rig.shake()


def test_a_shaker_that_is_no_position_of_the_pack_is_refused() -> None:
    rig = Rig(pack_named("nj", player_positions=6))
    assert rig.refusal("open", shaker=7)[0] == "E_ARGS"
    rig.ask("open", shaker=6)
    assert "1 to 6" in rig.refusal("shaker", shaker=7)[1]
    assert rig.refusal("bets", position=7, wagers={"even": 100})[0] == "E_WAGER"


# -- bets ------------------------------------------------------------------------------------------------------------


def test_bets_close_at_the_shake_under_new_jersey() -> None:
    rig = Rig()
    rig.reach(BETTING)
    assert rig.code("shake") == "E_BETS_OPEN"
    rig.ask("close")
    assert rig.code("bets", position=1, wagers={}) == "E_BETS_CLOSED"
    assert rig.code("leave", position=1) == "E_BETS_CLOSED"


def test_bets_stay_open_until_the_lid_opens_under_a_pack_that_says_so() -> None:
    rig = Rig("house")
    rig.ask("open", shaker=1)
    roll = rig.shake()
    rig.ask("bets", position=2, wagers={"even": 100})
    rig.settle(roll)
    rig.ask("bets", position=2, wagers={"even": 200})
    rig.show(roll, [2, 4, 6])
    rig.ask("bets", position=3, wagers={"odd": 300})
    assert rig.code("unlock") == "E_BETS_OPEN"
    rig.open_lid()
    assert rig.state == SETTLED
    assert rig.code("bets", position=3, wagers={"even": 300}) == "E_STATE"
    assert rig.kinds()[-3:] == ["closed", "door", "settled"]
    assert rig.last("closed")["bets"] == [[2, {"even": 200}], [3, {"odd": 300}]]
    assert rig.last("settled")["rows"] == [[2, "even", 200, 1], [3, "odd", 300, 0]]


def test_bets_that_the_lid_has_closed_stay_closed_when_the_power_fails_before_the_settlement() -> None:
    rig = Rig("house")
    rig.reach(LOCKED)
    assert rig.last("locked")["bets_open"]
    # The bets' end, then the door; the settlement is not written any more.
    rig.cut = 2
    with pytest.raises(PowerCut):
        rig.open_lid()
    assert rig.kinds()[-2:] == ["closed", "door"]
    rig.restart()
    assert (rig.state, rig.view()["bets_open"]) == (LOCKED, False)
    assert rig.code("bets", position=1, wagers={}) == "E_BETS_CLOSED"


def test_a_lid_that_flutters_over_a_locked_result_closes_the_bets() -> None:
    rig = Rig("house")
    rig.reach(LOCKED)
    rig.tell("lid_moved")
    assert (rig.state, rig.view()["bets_open"], rig.kinds()[-1]) == (LOCKED, False, "closed")
    assert rig.code("bets", position=1, wagers={}) == "E_BETS_CLOSED"
    rig.tell("lid_moved")
    rig.open_lid()
    assert rig.state == SETTLED
    assert rig.kinds()[-3:] == ["closed", "door", "settled"]


def test_a_bonus_is_not_changed_while_the_dice_roll_as_that_would_have_to_be_written() -> None:
    rig = streaking("house")
    rig.ask("open", shaker=1)
    rig.wait_out()
    roll = rig.shake()
    before = len(rig.records)
    for state in ROLLING:
        assert rig.state == state
        for wagers in ({"bonus": 400}, {"bonus": 0}):
            assert rig.code("bets", position=2, wagers=wagers) == "E_STATE"
        if state == SHAKING:
            rig.now += SHAKE_MS
            rig.tell("shaken", roll, True)
        elif state == SETTLING:
            rig.wait(400)
    assert rig.kinds(before) == []
    rig.show(roll, [1, 2, 3])
    rig.ask("bets", position=2, wagers={"bonus": 400})


def test_bets_closed_by_hand_are_closed_for_the_re_shake_as_well() -> None:
    rig = Rig("house")
    rig.ask("open", shaker=1)
    rig.ask("close")
    rig.tell("shaken", rig.shake(), False)
    assert rig.state == VOID
    assert rig.code("bets", position=1, wagers={"even": 100}) == "E_BETS_CLOSED"
    assert rig.refusal("close") == ("E_BETS_CLOSED", "bets are closed already")


@pytest.mark.parametrize(
    ("position", "wagers", "word"),
    [
        (7, {"match": 100}, "7 cannot make a match wager"),
        (1, {"seven": 100}, '"seven"'),
        (1, {"even": 100000001}, "1 to 100000000"),
        (1, {"bonus": 2501}, "1 to 2500"),
    ],
)
def test_a_wager_that_cannot_be_made_is_refused_with_what_is_allowed(
    position: int, wagers: dict[str, int], word: str
) -> None:
    rig = Rig(pack_named("nj", bonus_stake_max=2500))
    rig.reach(BETTING)
    code, why = rig.refusal("bets", position=position, wagers=wagers)
    assert code == "E_WAGER"
    assert word in (why or codes.ERRORS[code])
    rig.ask("bets", position=1, wagers={"bonus": 2500})


def test_a_pack_without_dice_wagers_takes_none() -> None:
    rig = Rig("ca")
    rig.reach(BETTING)
    for wager in WAGERS:
        assert rig.code("bets", position=1, wagers={wager: 100}) == "E_WAGER"


def test_all_wagers_of_a_position_are_replaced_and_zero_takes_one_off() -> None:
    rig = Rig()
    rig.reach(BETTING)
    rig.ask("bets", position=4, wagers={"even": 100, "triple": 50})
    rig.ask("bets", position=4, wagers={"odd": 100, "even": 0})
    assert [4, {"odd": 100}] in rig.view()["bets"]
    rig.ask("bets", position=4, wagers={"bonus": 100})
    # Without a streak a bonus is a wager like any other.
    rig.ask("bets", position=4, wagers={"even": 100})
    assert [4, {"even": 100}] in rig.view()["bets"]
    rig.ask("bets", position=4, wagers={})
    assert [position for position, _ in rig.view()["bets"]] == [1]


def test_a_wager_beyond_the_liability_limit_is_refused_with_both_figures() -> None:
    rig = Rig(pack_named("nj", liability_max=30000))
    rig.ask("open", shaker=1)
    rig.ask("bets", position=2, wagers={"triple": 1000})
    code, why = rig.refusal("bets", position=3, wagers={"even": 1, "bonus": 1})
    assert (code, why) == ("E_LIABILITY", "the table could owe 30025 cents; the limit is 30000")
    rig.ask("bets", position=3, wagers={"even": 30000})
    assert rig.view()["liability"] == 30000


def test_a_shaker_whose_odds_would_break_the_limit_is_refused() -> None:
    rig = Rig(pack_named("nj", liability_max=2500))
    rig.ask("open", shaker=0)
    rig.ask("bets", position=2, wagers={"bonus": 100})
    assert rig.refusal("shaker", shaker=2) == ("E_LIABILITY", "the table could owe 3000 cents; the limit is 2500")
    assert rig.view()["shaker"] == 0
    assert rig.ask("shaker", shaker=3) == {"shaker": 3, "liability": 2500}


def test_the_bonus_pays_the_shaker_more_and_nobody_when_the_dealer_shakes() -> None:
    for shaker, expected in ((1, [30, 25]), (2, [25, 30]), (3, [25, 25]), (0, [25, 25])):
        rig = Rig()
        rig.play([6, 6, 6], {1: {"bonus": 100}, 2: {"bonus": 100}}, shaker)
        assert [row[3] for row in rig.last("settled")["rows"]] == expected


def test_whoever_shook_the_roll_that_counts_is_paid_as_the_shaker() -> None:
    rig = Rig()
    rig.ask("open", shaker=1)
    for position in (1, 2):
        rig.ask("bets", position=position, wagers={"bonus": 100})
    rig.ask("close")
    rig.tell("shaken", rig.shake(), False)
    rig.ask("shaker", shaker=2)
    rig.roll([5, 5, 5])
    rig.open_lid()
    settled = rig.last("settled")
    assert (settled["shaker"], settled["shakes"]) == (2, 1)
    assert [row[3] for row in settled["rows"]] == [25, 30]


# -- the bonus streak ------------------------------------------------------------------------------------------------


def streaking(pack: Any = "nj") -> Rig:
    """A table where positions 1 and 2 hold a bonus and one triple has come."""
    rig = Rig(pack)
    rig.play([6, 6, 6], {1: {"bonus": 100}, 2: {"bonus": 500, "even": 100}})
    return rig


def test_the_bonus_stays_up_and_is_paid_by_level() -> None:
    rig = streaking()
    assert rig.ask("open", shaker=1)["bets"] == [[1, {"bonus": 100}], [2, {"bonus": 500}]]
    assert rig.view()["liability"] == 100 * 500 + 500 * 50
    rig.ask("close")
    rig.roll([1, 1, 1])
    rig.open_lid()
    assert rig.last("settled")["rows"] == [[1, "bonus", 100, 500], [2, "bonus", 500, 50]]
    rig.tell("lid", False)
    rig.ask("finish")
    rig.play([2, 2, 2])
    assert [row[3] for row in rig.last("settled")["rows"]] == [10000, 1000]
    assert (rig.last("settled")["before"], rig.last("settled")["level"]) == (2, 3)
    rig.play([2, 2, 3])
    assert rig.view()["streak"] == {"count": 0, "parts": [], "gone": []}
    assert rig.ask("open", shaker=1)["bets"] == []


def test_no_bonus_may_be_added_or_raised_while_a_streak_runs() -> None:
    rig = streaking()
    rig.ask("open", shaker=1)
    assert rig.code("bets", position=3, wagers={"bonus": 1}) == "E_BONUS_LATE"
    assert rig.code("bets", position=1, wagers={"bonus": 101}) == "E_BONUS_RAISE"
    rig.ask("bets", position=3, wagers={"even": 100})
    rig.ask("bets", position=1, wagers={"bonus": 100})
    assert "streak" not in rig.kinds()


def test_a_lower_bonus_is_recorded_and_may_not_come_back() -> None:
    rig = streaking()
    rig.ask("open", shaker=1)
    rig.ask("bets", position=2, wagers={"bonus": 400})
    assert rig.last("streak") == {
        "why": "bonus lowered",
        "position": 2,
        "streak": {"count": 1, "parts": [[1, 100], [2, 400]], "gone": []},
    }
    assert rig.code("bets", position=2, wagers={"bonus": 500}) == "E_BONUS_RAISE"
    rig.restart()
    assert rig.ask("open", shaker=1)["bets"] == [[1, {"bonus": 100}], [2, {"bonus": 400}]]


def test_a_bonus_that_is_not_named_stays_and_one_taken_off_is_forfeited() -> None:
    rig = streaking()
    rig.ask("open", shaker=1)
    assert rig.ask("bets", position=2, wagers={"odd": 700})["wagers"] == {"odd": 700, "bonus": 500}
    rig.ask("bets", position=2, wagers={"bonus": 0})
    assert (rig.last("streak")["why"], rig.last("streak")["streak"]["gone"]) == ("bonus taken off", [2])
    assert rig.code("bets", position=2, wagers={"bonus": 1}) == "E_BONUS_FORFEIT"
    assert rig.view()["bets"] == [[1, {"bonus": 100}]]


@pytest.mark.parametrize("when", [IDLE, BETTING, SETTLED])
def test_a_player_who_leaves_forfeits(when: str) -> None:
    rig = streaking()
    if when == SETTLED:
        rig.ask("open", shaker=1)
        rig.ask("close")
        rig.roll([2, 2, 2])
        rig.open_lid()
        rig.tell("lid", False)
    elif when == BETTING:
        rig.ask("open", shaker=1)
    assert rig.state == when
    answer = rig.ask("leave", position=2)
    assert answer["streak"]["gone"] == [2]
    assert rig.last("streak")["why"] == "player left"
    if when == SETTLED:
        rig.ask("finish")
    if when != BETTING:
        assert rig.ask("open", shaker=1)["bets"] == [[1, {"bonus": 100}]]
    assert rig.code("bets", position=2, wagers={"bonus": 1}) == "E_BONUS_FORFEIT"
    # No part, no record.
    before = len(rig.records)
    rig.ask("leave", position=6)
    assert len(rig.records) == before


def test_a_void_roll_and_a_void_round_change_no_streak() -> None:
    rig = streaking()
    before = rig.view()["streak"]
    rig.ask("open", shaker=1)
    rig.ask("close")
    rig.wait_out()
    rig.tell("shaken", rig.shake(), False)
    assert rig.view()["streak"] == before
    rig.ask("void", reason="power in the room")
    assert rig.view()["streak"] == before
    assert rig.ask("open", shaker=1)["bets"] == [[1, {"bonus": 100}], [2, {"bonus": 500}]]


def test_closing_the_table_ends_the_streak() -> None:
    rig = streaking()
    assert rig.ask("end") == {"streak": {"count": 0, "parts": [], "gone": []}}
    assert rig.last("streak")["why"] == "table closed"
    assert rig.ask("open", shaker=1)["bets"] == []


@pytest.mark.parametrize("unit", ["dice", "shaker"])
def test_a_change_of_dice_or_shaker_ends_the_streak_unless_it_is_kept(unit: str) -> None:
    rig = streaking()
    assert rig.ask("changed", unit=unit, keep=True)["streak"]["count"] == 1
    assert rig.last("streak")["why"] == f"{unit} changed, streak kept"
    assert rig.ask("changed", unit=unit)["streak"]["count"] == 0
    assert rig.last("streak")["why"] == f"{unit} changed"


def test_the_streak_outlives_the_power() -> None:
    rig = streaking()
    before = rig.view()["streak"]
    for state in (IDLE, BETTING, CLOSED):
        if state != IDLE:
            rig.ask("open", shaker=1)
        if state == CLOSED:
            rig.ask("close")
        rig.restart()
        assert rig.view()["streak"] == before


# -- a journal that refuses ------------------------------------------------------------------------------------------


class Refusing:
    """The rig's flash refuses after `left` more records."""

    def __init__(self, rig: Rig, left: int) -> None:
        self.left = left
        self.record = rig.table._record
        rig.table._record = self

    def __call__(self, kind: str, data: Any) -> int:
        if self.left == 0:
            raise OSError(5)
        self.left -= 1
        return int(self.record(kind, data))


# What is asked, and how to come to where it writes; all others are asked everywhere as well.
WRITERS: list[tuple[str, dict[str, Any], str]] = [
    ("bets", {"position": 2, "wagers": {"bonus": 300}}, BETTING),
    ("bets", {"position": 2, "wagers": {"bonus": 0}}, BETTING),
    ("bets", {"position": 2, "wagers": {"bonus": 0}}, LOCKED),
    ("leave", {"position": 2}, BETTING),
    ("leave", {"position": 2}, LOCKED),
    ("leave", {"position": 2}, SETTLED),
    ("changed", {"unit": "shaker"}, IDLE),
    ("changed", {"unit": "shaker", "keep": True}, IDLE),
    ("test", {"on": False}, TEST),
]


def refusals() -> list[tuple[str, dict[str, Any], str]]:
    return WRITERS + [(name, FIELDS.get(name, {}), state) for name in REQUESTS for state in LASTING if name != "dice"]


@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize(("name", "fields", "state"), refusals())
def test_a_request_whose_record_is_refused_has_changed_nothing_that_is_not_recorded(
    name: str, fields: dict[str, Any], state: str, left: int
) -> None:
    rig = streaking("house")
    rig.reach(state, [4, 4, 4])
    if name == "confirm" and state == CLOSED:
        fields = {"token": rig.ask("manual", dice=[1, 2, 3], reason="by hand")["token"], "dice": [1, 2, 3]}
    Refusing(rig, left)
    before = rig.snapshot()
    try:
        rig.table.request(*protocol.check_request({"q": name, **fields}), rig.now)
    except Problem:
        assert rig.snapshot() == before
    except OSError:
        if left == 0:
            assert rig.snapshot() == before
        # Where it had two records the first counts, and the table is as a start would make it of them.
        assert rig.view()["streak"] == rig.durable["streak"]
        if state == LOCKED:
            assert rig.view()["bets"] == rig.durable["bets"]


def test_a_refused_end_leaves_the_streak() -> None:
    rig = streaking()
    Refusing(rig, 0)
    with pytest.raises(OSError, match="5"):
        rig.table.request("end", {}, rig.now)
    assert rig.view()["streak"]["count"] == 1


def test_dice_that_are_in_the_flash_are_the_tables_and_recorded_when_that_can_be_done() -> None:
    rig = streaking()
    rig.ask("test", on=True)
    refusing = Refusing(rig, 0)
    rig.ask("dice", **FIELDS["dice"])
    assert rig.table.dice_set == rig.dice_set
    assert rig.view()["streak"]["count"] == 0
    before = len(rig.records)
    refusing.left = 9
    rig.table.write_unwritten()
    assert rig.kinds(before) == ["streak", "dice"]
    assert rig.table.unwritten == []


@pytest.mark.parametrize("restarted", [False, True])
def test_a_fault_that_comes_while_another_is_latched_is_recorded_and_outlives_the_power(restarted: bool) -> None:
    rig = Rig()
    rig.reach(LOCKED)
    rig.tell("set_fault", "READER", "no answer")
    for _ in range(2):
        rig.tell("set_fault", "TASK", "shaker: x")
        rig.tell("set_fault", "MOTOR_STUCK", "300 mA while off")
    assert rig.kinds()[-3:] == ["fault"] * 3
    if restarted:
        rig.restart()
    for code in ("READER", "TASK", "MOTOR_STUCK"):
        assert rig.view()["fault"] == code
        rig.ask("clear", code=code)
        assert (rig.durable["fault"] or {"code": LOCKED})["code"] == rig.view().get("fault", rig.state)
    assert rig.state == LOCKED
    assert rig.durable["waiting"] == []
    # It may come again.
    rig.tell("set_fault", "TASK", "shaker: x")
    assert rig.view()["fault"] == "TASK"


# -- void rolls ------------------------------------------------------------------------------------------------------


def motionless(rig: Rig, roll: int) -> None:
    rig.tell("shaken", roll, False)


def read(*passes: set[str] | None) -> Any:
    def step(rig: Rig, roll: int) -> None:
        for tags in passes:
            rig.tell("tags", roll, tags)

    return step


GOOD = tags_of([1, 2, 3])
VOIDS: list[tuple[str, str, Any]] = [
    ("no_shake", SHAKING, motionless),
    ("shake_timeout", SHAKING, lambda rig, roll: rig.wait(15000)),
    *[("lid_opened", state, lambda rig, roll: rig.tell("lid", True)) for state in ROLLING],
    # An edge that was over before it could be sampled.
    *[("lid_opened", state, lambda rig, roll: rig.tell("lid_moved")) for state in ROLLING],
    *[("tamper", state, lambda rig, roll: rig.tell("tamper", True)) for state in ROLLING],
    *[("brown_out", state, lambda rig, roll: rig.tell("supply", True)) for state in ROLLING],
    *[("fault", state, lambda rig, roll: rig.tell("set_fault", "READER", "x")) for state in ROLLING],
    *[("power_loss", state, lambda rig, roll: rig.restart()) for state in (BETTING, CLOSED, *ROLLING, VOID)],
    ("read_timeout", READING, lambda rig, roll: rig.wait(3000)),
    ("foreign_tag", READING, read(GOOD | {FOREIGN})),
    ("unresolved", READING, read(None, None, None, None)),
    ("two_faces", READING, read(*[GOOD | tags_of([6, 2, 3])] * 4)),
    ("cocked", READING, read(*[GOOD | tags_of([4, 2, 3])] * 4)),
    ("die_missing", READING, read(*[GOOD - {sorted(GOOD)[0]}] * 4)),
    ("not_settled", READING, read(GOOD, tags_of([1, 2, 4]), GOOD, tags_of([1, 2, 4]))),
    ("supervisor", BETTING, lambda rig, roll: rig.ask("void", reason="wrong shoe")),
    ("supervisor", CLOSED, lambda rig, roll: rig.ask("void", reason="wrong shoe")),
    ("supervisor", VOID, lambda rig, roll: rig.ask("void", reason="wrong shoe")),
]


def test_every_void_reason_is_reached() -> None:
    assert {reason for reason, _state, _step in VOIDS} == set(codes.VOIDS)


@pytest.mark.parametrize("state", ROLLING)
def test_an_edge_of_the_tamper_contact_however_short_voids_the_roll(state: str) -> None:
    rig = Rig()
    roll = rig.reach(state)
    rig.table.take_effects()
    rig.tell("tamper_moved")
    assert (rig.state, rig.last("void")["reason"]) == (VOID, "tamper")
    assert rig.effects(service.STOP)
    rig.tell("shaken", roll, True)
    rig.tell("tags", roll, GOOD)
    rig.tell("tags", roll, GOOD)
    assert not {"locked", "settled"} & set(rig.kinds())


@pytest.mark.parametrize("state", [IDLE, BETTING, CLOSED, LOCKED, SETTLED, VOID, FAULT])
def test_such_an_edge_is_nothing_where_no_dice_roll(state: str) -> None:
    rig = Rig()
    rig.reach(state)
    before = rig.snapshot()
    rig.tell("tamper_moved")
    assert rig.snapshot() == before


@pytest.mark.parametrize(("reason", "state", "step"), VOIDS)
def test_a_void_is_recorded_with_its_reason_and_is_no_result(reason: str, state: str, step: Any) -> None:
    rig = Rig()
    roll = rig.reach(state)
    rig.table.take_effects()
    step(rig, roll)
    over = reason in ("power_loss", "supervisor")
    assert (rig.last("void")["reason"], rig.last("void")["over"]) == (reason, over)
    assert rig.last("void")["round"] == 1
    assert not {"locked", "settled"} & set(rig.kinds())
    after_fault = {"fault": "READER", "tamper": "TAMPER", "foreign_tag": "TAMPER"}.get(reason)
    assert rig.state == (FAULT if after_fault else IDLE if over else VOID)
    if not over:
        assert rig.effects(service.STOP)
    if after_fault:
        rig.tell("tamper", False)
        rig.ask("clear", code=after_fault)
        assert rig.state == VOID
    if over:
        assert rig.view()["bets"] == []
        assert rig.ask("open", shaker=1)["round"] == 2
        return
    assert (rig.view()["void"], rig.view()["voids"]) == (reason, 1)
    # What still comes of that roll is not taken for the next one, nor for a result.
    before = len(rig.records)
    rig.tell("shaken", roll, True)
    rig.tell("tags", roll, GOOD)
    rig.tell("tags", roll, GOOD)
    assert rig.kinds(before) == []
    # The re-shake counts, with the same bets.
    bets = rig.view()["bets"]
    rig.tell("lid", False)
    rig.tell("supply", False)
    rig.roll([2, 3, 5])
    rig.open_lid()
    assert (rig.state, rig.last("settled")["dice"], rig.last("settled")["round"]) == (SETTLED, [2, 3, 5], 1)
    assert rig.last("locked")["bets"] == bets


def test_answers_of_an_earlier_roll_are_ignored_during_the_next() -> None:
    rig = Rig()
    first = rig.reach(VOID)
    second = rig.shake()
    assert second == first + 1
    rig.tell("shaken", first, True)
    rig.tell("shaken", second + 1, True)
    assert rig.state == SHAKING
    rig.settle(second)
    for roll in (first, second + 1):
        rig.show(roll, [6, 6, 6])
    assert rig.state == READING
    rig.show(second, [1, 2, 4])
    assert rig.last("locked")["dice"] == [1, 2, 4]


def test_answers_that_come_in_the_wrong_state_are_ignored() -> None:
    rig = Rig()
    roll = rig.reach(SHAKING)
    rig.show(roll, [1, 2, 3])
    assert rig.state == SHAKING
    rig.tell("shaken", roll, True)
    rig.show(roll, [1, 2, 3])
    rig.tell("shaken", roll, False)
    assert rig.state == SETTLING
    rig.wait(399)
    assert rig.state == SETTLING
    rig.wait(1)
    assert rig.state == READING
    rig.tell("shaken", roll, False)
    assert rig.state == READING
    rig.show(roll, [1, 2, 3])
    before = rig.snapshot()
    rig.show(roll, [4, 5, 6])
    rig.tell("shaken", roll, False)
    assert rig.snapshot() == before


def test_one_pass_is_no_result_and_two_must_agree() -> None:
    rig = Rig()
    roll = rig.reach(READING)
    for dice in ([1, 2, 3], [1, 2, 4], [1, 2, 4]):
        assert rig.state == READING
        rig.tell("tags", roll, tags_of(dice))
    assert rig.last("locked")["dice"] == [1, 2, 4]


@pytest.mark.parametrize("limit", [1, 3])
def test_after_the_limit_of_voids_a_person_is_called(limit: int) -> None:
    rig = Rig(pack_named("nj", void_limit=limit))
    rig.reach(CLOSED)
    for number in range(1, limit + 1):
        rig.wait_out()
        rig.tell("shaken", rig.shake(), False)
        assert rig.view()["call"] == (number == limit)
    rig.wait_out()
    assert rig.code("shake") == "E_VOIDS"
    rig.tell("button")
    assert rig.effects(round.REFUSED) == ["E_VOIDS"]
    rig.ask("resume")
    rig.roll([1, 2, 3])
    assert rig.state == LOCKED


def test_a_round_beyond_the_limit_can_be_ended_by_hand_or_void() -> None:
    for way in ("manual", "void"):
        rig = Rig(pack_named("nj", void_limit=1))
        rig.reach(VOID)
        assert rig.code("shake") == "E_VOIDS"
        if way == "void":
            rig.ask("void", reason="reader broken")
            assert rig.state == IDLE
        else:
            token = rig.ask("manual", dice=[1, 2, 3], reason="reader broken")["token"]
            rig.ask("confirm", token=token, dice=[1, 2, 3])
            assert rig.state == LOCKED
        # The count begins anew with the next round.
    rig.open_lid()
    rig.tell("lid", False)
    rig.ask("finish") if rig.state == SETTLED else None
    rig.reach(CLOSED)
    assert rig.view()["voids"] == 0
    rig.shake()


def test_the_reason_of_a_void_by_hand_is_kept() -> None:
    rig = Rig()
    rig.reach(BETTING)
    rig.ask("void", reason="player hit the table")
    assert rig.last("void") == {
        "round": 1,
        "reason": "supervisor",
        "shakes": 0,
        "over": True,
        "note": "player hit the table",
    }


@pytest.mark.parametrize("state", [LOCKED, SETTLED])
def test_a_locked_result_is_final(state: str) -> None:
    rig = Rig()
    rig.reach(state)
    code, why = rig.refusal("void", reason="did not like it")
    assert (code, why) == ("E_STATE", f"the table is {state}; a locked result is final")
    for name in ("shake", "manual", "open", "shaker", "resume"):
        assert rig.code(name, **FIELDS.get(name, {})) == "E_STATE"
    rig.tell("button")
    assert rig.effects(round.SHAKE) == []


# -- what comes from the table itself --------------------------------------------------------------------------------


def test_doors_are_recorded_once_for_each_change() -> None:
    rig = Rig()
    for _ in range(2):
        rig.tell("lid", True)
    for _ in range(2):
        rig.tell("lid", False)
    rig.tell("service", True)
    rig.tell("tamper", True)
    rig.tell("tamper", True)
    rig.tell("tamper", False)
    doors = [(record["d"]["which"], record["d"]["open"]) for record in rig.records if record["k"] == "door"]
    assert doors == [("lid", True), ("lid", False), ("service", True), ("tamper", True), ("tamper", False)]


def test_the_lid_may_be_opened_whenever_no_roll_is_under_way() -> None:
    for state in (IDLE, BETTING, CLOSED, SETTLED, VOID):
        rig = Rig()
        rig.reach(state)
        rig.tell("lid", not rig.view()["lid_open"])
        assert rig.state == state
        assert rig.effects(round.UNLOCK) == []


def test_a_low_supply_outside_a_roll_voids_nothing() -> None:
    for state in (IDLE, BETTING, CLOSED, LOCKED, SETTLED, VOID):
        rig = Rig()
        rig.reach(state)
        before = len(rig.records)
        rig.tell("supply", True)
        rig.tell("supply", False)
        assert (rig.state, rig.kinds(before)) == (state, [])


# -- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [code for code in codes.FAULTS if round.is_latched(code)])
def test_a_fault_is_latched_until_it_is_cleared_by_its_name(code: str) -> None:
    rig = Rig()
    rig.reach(CLOSED)
    rig.tell("set_fault", code, "a broken wire")
    assert (rig.view()["fault"], rig.view()["detail"]) == (code, "a broken wire")
    assert rig.effects(service.STOP) == [None]
    assert rig.last("fault") == {"code": code, "set": True, "detail": "a broken wire"}
    wrong = "READER" if code != "READER" else "TAMPER"
    found, why = rig.refusal("clear", code=wrong)
    assert found == "E_ARGS"
    assert wrong in why
    assert code in why
    assert rig.code("shake") == "E_FAULT"
    assert rig.ask("clear", code=code) == {"state": CLOSED}
    assert rig.last("fault") == {"code": code, "set": False, "detail": "a broken wire"}
    rig.shake()


@pytest.mark.parametrize("state", [state for state in OTHER_STATES if state not in ROLLING])
def test_a_fault_ends_where_it_began(state: str) -> None:
    rig = Rig()
    rig.reach(state)
    view = {key: value for key, value in rig.view().items() if key not in ("lockout_ms",)}
    rig.tell("set_fault", "MOTOR_STUCK", "80 mA while off")
    assert rig.state == FAULT
    rig.ask("clear", code="MOTOR_STUCK")
    assert {key: value for key, value in rig.view().items() if key not in ("lockout_ms",)} == view


@pytest.mark.parametrize("state", OTHER_STATES)
def test_a_fault_is_still_there_after_the_power_came_back(state: str) -> None:
    rig = Rig()
    rig.reach(state)
    rig.tell("set_fault", "READER", "no answer")
    rig.restart()
    assert (rig.state, rig.view()["fault"]) == (FAULT, "READER")
    rig.ask("clear", code="READER")
    assert rig.state == (LOCKED if state == LOCKED else IDLE)
    rig.restart()
    assert rig.state == (LOCKED if state == LOCKED else IDLE)


def test_a_fault_whose_cause_stands_cannot_be_cleared() -> None:
    rig = Rig()
    rig.tell("tamper", True)
    assert rig.refusal("clear", code="TAMPER") == ("E_STANDS", "TAMPER: the tamper contact is open")
    rig.tell("tamper", False)
    rig.ask("clear", code="TAMPER")
    assert rig.state == IDLE


def test_a_second_cause_is_latched_when_the_first_fault_is_cleared() -> None:
    rig = Rig()
    rig.reach(CLOSED)
    rig.tell("set_fault", "READER", "no answer")
    rig.tell("tamper", True)
    assert rig.view()["fault"] == "READER"
    assert rig.ask("clear", code="READER") == {"state": FAULT}
    assert rig.view()["fault"] == "TAMPER"
    assert rig.code("clear", code="TAMPER") == "E_STANDS"
    rig.tell("tamper", False)
    assert rig.ask("clear", code="TAMPER") == {"state": CLOSED}
    told = [(record["d"]["code"], record["d"]["set"]) for record in rig.records if record["k"] == "fault"]
    assert told == [("READER", True), ("TAMPER", True), ("READER", False), ("TAMPER", False)]


def test_a_fault_keeps_a_locked_result() -> None:
    rig = Rig()
    rig.reach(LOCKED, [4, 5, 6])
    rig.tell("set_fault", "READER", "no answer")
    assert "dice" not in json.dumps(rig.view())
    for name in ("void", "shake", "manual", "finish"):
        assert rig.code(name, **FIELDS.get(name, {})) == "E_FAULT"
    rig.open_lid()
    assert "settled" not in rig.kinds()
    assert rig.ask("clear", code="READER") == {"state": SETTLED}
    assert rig.last("settled")["dice"] == [4, 5, 6]


def test_the_table_may_be_closed_during_a_fault_but_only_between_rounds() -> None:
    rig = Rig()
    rig.reach(FAULT)
    rig.ask("end")
    for state in (BETTING, CLOSED, LOCKED, VOID):
        rig = Rig()
        rig.reach(state)
        rig.tell("set_fault", "READER", "no answer")
        assert rig.code("end") == "E_STATE"


def test_a_foreign_tag_is_named() -> None:
    rig = Rig()
    roll = rig.reach(READING)
    rig.tell("tags", roll, GOOD | {FOREIGN})
    assert (rig.view()["fault"], rig.view()["detail"]) == ("TAMPER", f"foreign tag {FOREIGN}")


# -- a result by hand ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [CLOSED, VOID])
def test_a_manual_result_needs_entry_echo_and_a_second_confirmation(state: str) -> None:
    rig = Rig()
    rig.reach(state)
    before = len(rig.records)
    echo = rig.ask("manual", dice=[6, 2, 2], reason="reader broken")
    assert echo == {"token": 1, "dice": [6, 2, 2], "total": 10, "eye": EYE}
    assert rig.kinds(before) == []
    for token, dice in ((2, [6, 2, 2]), (1, [2, 6, 2]), (1, [6, 2, 1])):
        assert rig.code("confirm", token=token, dice=dice) == "E_TOKEN"
    # A second entry takes the place of the first.
    assert rig.ask("manual", dice=[6, 2, 1], reason="typed wrong")["token"] == 2
    assert rig.code("confirm", token=1, dice=[6, 2, 2]) == "E_TOKEN"
    assert rig.code("confirm", token=1, dice=[6, 2, 1]) == "E_TOKEN"
    assert rig.ask("confirm", token=2, dice=[6, 2, 1]) == {"round": 1, "dice": [6, 2, 1]}
    assert rig.state == LOCKED
    assert (rig.last("locked")["dice"], rig.last("locked")["manual"]) == ([6, 2, 1], "typed wrong")
    rig.restart()
    rig.open_lid()
    assert (rig.last("settled")["dice"], rig.last("settled")["manual"]) == ([6, 2, 1], "typed wrong")
    assert rig.code("confirm", token=2, dice=[6, 2, 1]) == "E_STATE"


def test_a_manual_entry_does_not_outlive_a_shake_or_the_round() -> None:
    rig = Rig()
    rig.reach(VOID)
    token = rig.ask("manual", dice=[1, 1, 1], reason="reader broken")["token"]
    rig.tell("shaken", rig.shake(), False)
    assert rig.code("confirm", token=token, dice=[1, 1, 1]) == "E_TOKEN"
    token = rig.ask("manual", dice=[1, 1, 1], reason="reader broken")["token"]
    rig.ask("void", reason="another round")
    rig.reach(CLOSED)
    assert rig.code("confirm", token=token, dice=[1, 1, 1]) == "E_TOKEN"


def test_a_manual_result_with_the_lid_open_is_settled_at_once() -> None:
    rig = Rig()
    rig.reach(CLOSED)
    rig.open_lid()
    token = rig.ask("manual", dice=[1, 2, 3], reason="reader broken")["token"]
    assert rig.state == CLOSED
    rig.ask("confirm", token=token, dice=[1, 2, 3])
    assert rig.state == SETTLED


def test_no_manual_result_while_bets_are_open() -> None:
    rig = Rig("house")
    rig.reach(VOID)
    assert rig.code("manual", dice=[1, 2, 3], reason="reader broken") == "E_BETS_OPEN"
    rig.ask("close")
    rig.ask("manual", dice=[1, 2, 3], reason="reader broken")


# -- nobody knows before the lid opens -------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", ["nj", "house"])
def test_two_results_cannot_be_told_apart_before_the_lid_opens(pack: str) -> None:
    """Everything but the locked record is the same for a triple and for none: view, answers, effects, times."""
    told = []
    for dice in ([6, 6, 6], [1, 2, 4]):
        rig = Rig(pack)
        rig.reach(LOCKED, dice)
        said: list[Any] = [rig.view(), rig.table.take_effects()]
        for name in REQUESTS:
            if name == "close":
                continue
            try:
                said.append(rig.ask(name, **FIELDS.get(name, {})))
            except Problem as problem:
                said.append([problem.code, problem.why])
        rig.tell("button")
        rig.tell("set_fault", "READER", "no answer")
        said += [rig.view(), rig.table.take_effects(), [record for record in rig.records if record["k"] != "locked"]]
        rig.restart()
        said += [rig.view(), rig.table.take_effects()]
        rig.ask("clear", code="READER")
        said += [rig.view(), rig.table.take_effects()]
        told.append(json.dumps(said, default=str))
    assert told[0] == told[1]


@pytest.mark.parametrize("state", OTHER_STATES)
def test_dice_are_in_the_view_only_after_the_reveal(state: str) -> None:
    rig = Rig()
    rig.reach(state)
    assert ("dice" in rig.view()) == (state == SETTLED)


def test_the_next_round_shows_nothing_of_the_last_one() -> None:
    rig = Rig()
    rig.reach(SETTLED)
    rig.ask("finish")
    assert "dice" not in rig.view()
    rig.tell("lid", False)
    rig.reach(LOCKED, [6, 6, 6])
    assert "dice" not in rig.view()


# -- power -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", ["nj", "house"])
def test_a_locked_result_is_recovered_and_finished_once(pack: str) -> None:
    rig = Rig(pack)
    rig.reach(LOCKED, [1, 1, 1])
    for _ in range(3):
        rig.restart()
        assert rig.state == LOCKED
    assert "void" not in rig.kinds()
    rig.open_lid()
    assert rig.state == SETTLED
    assert rig.last("settled")["rows"] == [[1, "match", 500, 3], [1, "bonus", 100, 30]]
    rig.restart()
    assert rig.state == IDLE
    rig.open_lid()
    assert rig.kinds().count("settled") == 1
    assert rig.ask("open", shaker=1)["round"] == 2


def test_the_fold_leaves_the_state_before_as_it_was() -> None:
    rig = Rig("house")
    rig.play([4, 4, 4], {1: {"bonus": 100}})
    rig.ask("open", shaker=2)
    rig.ask("bets", position=1, wagers={"bonus": 50})
    rig.roll([4, 4, 4])
    rig.tell("set_fault", "READER", "no answer")
    rig.ask("clear", code="READER")
    rig.tell("lid", True)
    state = round.initial()
    for record in rig.records:
        before = json.dumps(state)
        after = round.fold(state, record)
        assert json.dumps(state) == before
        state = after
    assert state == rig.durable
    assert set(rig.kinds()) == {"opened", "locked", "door", "closed", "settled", "streak", "fault"}
