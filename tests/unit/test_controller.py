"""The controller: answered once, told until acknowledged, nothing before the reveal, and never an exception."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoneye import controller as module
from dragoneye import journal, protocol
from dragoneye.protocol import BETTING, CLOSED, FAULT, IDLE, LOCKED, SETTLED, TEST, VOID
from dragoneye.signals import Signals
from dragoneye.text import dumps
from host_tools.store import Store
from tests.unit.tables import EYE, LASTING, Desk, Json, Refused, tag_of


def kinds(events: list[Json]) -> list[str]:
    return [event["k"] for event in events]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A table whose host has said hello and fetched everything."""
    desk = Desk(tmp_path)
    desk.hello()
    desk.fetch()
    return desk


def follow(desk: Desk, previous: str = journal.GENESIS) -> None:
    """The events that the host has kept are a chain without a gap."""
    for event, stored in zip(desk.events, desk.hashes, strict=True):
        assert journal.chain(previous, dumps(event)) == stored
        previous = stored


# -- hello -----------------------------------------------------------------------------------------------------------


def test_hello_is_sent_unasked_until_a_host_answers(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert list(desk.next() or {}) == ["hello"]
    assert desk.next() is None
    desk.now += 999
    assert desk.next() is None
    desk.now += 1
    assert list(desk.next() or {}) == ["hello"]
    desk.hello()
    desk.now += 10000
    assert not any("hello" in value for value in desk.drain())
    desk.controller.disconnected()
    assert any("hello" in value for value in desk.drain())


def test_hello_says_who_the_table_is(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    answer = desk.hello()
    assert answer == {
        "firmware": "0.0",
        "build": "test",
        "board": "none",
        "uid": "U1",
        "major": 1,
        "minor": protocol.MINOR,
        "boot": 1,
        "pack": "nj",
        "first_event": 1,
        "last_event": 1,
        "played": 0,
        "state": IDLE,
        "round": 0,
        "unprovisioned": True,
        "nonce": "",
        "counter": 0,
        "dice_set": None,
        "known": [1, desk.journal.head],
    }
    desk.boot()
    assert desk.hello()["boot"] == 2


def test_another_major_version_is_refused_by_name_of_both(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with pytest.raises(Refused) as raised:
        desk.ask("hello", major=2, minor=5)
    assert raised.value.code == "E_VERSION"
    assert raised.value.reply["why"] == f"the host speaks protocol 2.5, this table 1.{protocol.MINOR}"
    assert desk.code("status") == "E_HELLO"


def test_an_older_major_version_is_refused_as_well(tmp_path: Path) -> None:
    assert Desk(tmp_path).code("hello", major=0, minor=9) == "E_VERSION"


def test_a_newer_minor_version_may_say_more_in_hello(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.ask("hello", major=1, minor=9, colour="red", last_event=0)["minor"] == protocol.MINOR
    desk.ask("status")


def test_nothing_is_done_before_hello(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for name, fields in (("open", {"shaker": 1}), ("status", {}), ("stats", {})):
        assert desk.code(name, **fields) == "E_HELLO"
    desk.ack(1)
    assert desk.controller.journal.acked == 0
    assert desk.state == IDLE
    assert not desk.events


@pytest.mark.parametrize("state", LASTING)
def test_status_and_stats_are_answered_in_every_state(desk: Desk, state: str) -> None:
    desk.reach(state)
    assert desk.ask("status") == json.loads(json.dumps(desk.view()))
    assert desk.ask("status")["state"] == state
    stats = desk.ask("stats")
    assert stats["acked"] == desk.journal.acked
    assert stats["voids"] == (1 if state == VOID else 0)
    assert stats["rolls"] == (1 if state == SETTLED else 0)


# -- requests --------------------------------------------------------------------------------------------------------


def test_a_repeated_number_gets_the_same_answer_and_no_second_effect(desk: Desk) -> None:
    seq = desk.send({"q": "open", "shaker": 1})
    first = desk.controller.next_line(desk.now)
    records = desk.journal.last_id
    for _ in range(3):
        desk.send({"q": "open", "shaker": 1}, seq)
        assert desk.controller.next_line(desk.now) == first
    assert desk.journal.last_id == records
    assert desk.ask("stats")["repeats"] == 3


def test_a_refusal_is_repeated_as_it_was_even_when_it_would_be_done_now(desk: Desk) -> None:
    seq = desk.send({"q": "close"})
    refused = desk.reply(seq)
    assert refused["err"] == "E_STATE"
    assert refused["state"] == IDLE
    desk.ask("open", shaker=1)
    desk.send({"q": "close"}, seq)
    assert desk.reply(seq) == refused
    assert desk.state == BETTING


def test_the_last_eight_answers_are_kept_and_an_older_number_is_refused_without_effect(desk: Desk) -> None:
    first = desk.send({"q": "open", "shaker": 1})
    answer = desk.reply(first)
    for _ in range(7):
        desk.ask("status")
    desk.send({"q": "open", "shaker": 1}, first)
    assert desk.reply(first) == answer
    desk.ask("status")
    records = desk.journal.last_id
    desk.send({"q": "open", "shaker": 1}, first)
    assert desk.reply(first)["err"] == "E_HELLO"
    assert desk.journal.last_id == records


def test_a_request_is_not_done_again_when_its_answer_was_pushed_out_by_malformed_ones(desk: Desk) -> None:
    seq = desk.send({"q": "open", "shaker": 1})
    desk.reply(seq)
    for number in range(1, module.ANSWERS_KEPT + 1):
        desk.reply(desk.send({"q": "open", "shaker": 99}, seq + number))
    desk.send({"q": "close"}, seq)
    assert desk.reply(seq)["err"] == "E_HELLO"
    assert desk.state == BETTING


def test_a_hello_that_comes_again_much_later_changes_nothing(desk: Desk) -> None:
    hello = {"q": "hello", "major": 1, "minor": 0}
    session = desk.send(hello)
    desk.reply(session)
    for _ in range(module.ANSWERS_KEPT):
        desk.ask("status")
    last = desk.send({"q": "open", "shaker": 1})
    answer = desk.reply(last)
    desk.send(hello, session)
    assert desk.reply(session)["ok"]["state"] == BETTING
    desk.send({"q": "open", "shaker": 1}, last)
    assert desk.reply(last) == answer
    desk.ask("close")


def test_answers_of_an_earlier_session_are_forgotten(desk: Desk) -> None:
    desk.seq += 10
    seq = desk.send({"q": "open", "shaker": 1})
    desk.reply(seq)
    desk.seq = seq - 2
    desk.hello(desk.known)
    assert desk.ask("status")["state"] == BETTING


def test_numbers_may_skip_but_not_far_nor_back(desk: Desk) -> None:
    desk.seq += 999
    desk.ask("status")
    assert desk.reply(desk.send({"q": "status"}, desk.seq + 1001))["err"] == "E_HELLO"
    assert desk.reply(desk.send({"q": "status"}, desk.seq - 5))["err"] == "E_HELLO"
    desk.ask("status")


def test_a_new_hello_starts_a_new_session_at_any_number(desk: Desk) -> None:
    for seq in (5000, 7, protocol.SEQ_MAX - 1):
        desk.seq = seq - 1
        desk.hello(desk.known)
        desk.ask("status")
        assert desk.seq == seq + 1


def test_a_refused_request_says_why_and_in_which_state(desk: Desk) -> None:
    with pytest.raises(Refused) as raised:
        desk.ask("bets", position=9, wagers={})
    reply = raised.value.reply
    assert (reply["err"], reply["state"]) == ("E_ARGS", IDLE)
    assert reply["why"] == "bets: position is 9; allowed: a whole number from 1 to 7"
    assert desk.code("dance") == "E_UNKNOWN"
    assert desk.ask("stats")["refused"] == 2


def test_answers_come_before_events_and_events_before_the_live_state(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.send({"q": "open", "shaker": 1})
    desk.send({"q": "close"})
    order = ["re" if "re" in value else "ev" if "ev" in value else "st" for value in desk.drain()]
    assert order == ["re", "re", "ev", "ev", "st"]


def test_the_live_state_is_told_once_after_each_change(desk: Desk) -> None:
    desk.drain()
    assert desk.drain() == []
    desk.tell("lid", True)
    assert [value["st"]["lid_open"] for value in desk.drain() if "st" in value] == [True]
    assert [value for value in desk.drain() if "st" in value] == []


# -- events ----------------------------------------------------------------------------------------------------------


def test_events_come_in_a_window_and_again_until_acknowledged(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for _ in range(20):
        desk.tell("lid", True)
        desk.tell("lid", False)
    desk.send({"q": "hello", "major": 1, "minor": 0})

    def events() -> list[int]:
        return [value["ev"]["id"] for value in desk.drain() if "ev" in value]

    window = list(range(1, module.WINDOW + 1))
    assert events() == window
    desk.now += module.RESEND_MS - 1
    assert events() == []
    desk.now += 1
    assert events() == window
    assert desk.controller.counters["resent"] == 1
    desk.ack(3)
    assert events() == [9, 10, 11]
    desk.now += module.RESEND_MS
    assert events() == list(range(4, 12))
    desk.ack(11)
    desk.now += 10 * module.RESEND_MS
    assert events() == list(range(12, 20))
    desk.ack(19)
    assert events() == list(range(20, 28))


def test_a_host_that_fetches_everything_has_every_record_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    for _ in range(30):
        desk.play([1, 2, 3])
        desk.now += 5000
    desk.fetch()
    unique = {event["id"]: event for event in desk.events}
    assert sorted(unique) == list(range(1, desk.journal.last_id + 1))
    assert [data["round"] for data in (unique[i]["d"] for i in sorted(unique)) if "net" in data] == list(range(1, 31))


def test_a_host_is_told_what_it_does_not_have_whatever_another_had(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.play([1, 2, 3])
    desk.fetch()
    last = desk.journal.last_id
    for restart in (False, True):
        if restart:
            desk.boot()
        for known in (last, 2, 0):
            desk.controller.disconnected()
            desk.send({"q": "hello", "major": 1, "minor": 0, "last_event": known})
            told = [value["ev"]["id"] for value in desk.drain() if "ev" in value]
            assert told == list(range(known + 1, desk.journal.last_id + 1))


def test_a_host_that_comes_too_late_is_told_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_RECORDS", 4)
    monkeypatch.setattr(journal, "SEGMENTS_MAX", 3)
    desk = Desk(tmp_path)
    desk.hello()
    for _ in range(15):
        desk.tell("set_fault", "READER", "no answer")
        desk.ask("clear", code="READER")
        desk.fetch()
    assert desk.journal.first_id > 1
    desk.send({"q": "hello", "major": 1, "minor": 0})
    told = [value["ev"]["id"] for value in desk.drain() if "ev" in value]
    assert told == list(range(desk.journal.first_id, desk.journal.last_id + 1))[: module.WINDOW]


@pytest.mark.parametrize("ack", [None, "1", 1.0, [], {}, -1, 0])
def test_an_acknowledgement_of_nothing_changes_nothing(tmp_path: Path, ack: Any) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.tell("lid", True)
    desk.drain()
    desk.ack(ack)
    assert desk.journal.acked == 0
    assert not [value for value in desk.drain() if "re" in value]


@pytest.mark.parametrize("ack", [3, 10**9, 2**70])
def test_what_was_not_sent_yet_cannot_be_acknowledged(tmp_path: Path, ack: int) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    sent = desk.known
    desk.tell("lid", True)
    desk.tell("lid", False)
    assert desk.journal.last_id > sent
    desk.ack(ack)
    assert desk.journal.acked <= sent
    assert kinds(desk.fetch())[-2:] == ["door", "door"]


def test_the_records_are_a_chain_that_the_host_can_follow_over_restarts(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.fetch()
    for state in (BETTING, CLOSED, LOCKED):
        desk.reach(state)
        desk.fetch()
        desk.boot()
        desk.hello(desk.known)
        desk.fetch()
    desk.open_lid()
    desk.fetch()
    assert [event["id"] for event in desk.events] == list(range(1, desk.journal.last_id + 1))
    follow(desk)


# -- nothing before the reveal ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarts", [0, 1, 3])
@pytest.mark.parametrize("pack", ["nj", "house"])
def test_nothing_from_a_locked_record_on_leaves_before_the_lid_opens(tmp_path: Path, pack: str, restarts: int) -> None:
    desk = Desk(tmp_path, pack)
    desk.hello()
    desk.reach(LOCKED, [6, 6, 6])
    desk.tell("service", True)
    desk.tell("set_fault", "READER", "no answer")
    for _ in range(restarts):
        desk.boot()
        desk.hello(desk.known)
        desk.fetch()
    locked = desk.table.locked["id"]
    for _ in range(3):
        desk.now += module.RESEND_MS
        desk.fetch()
    assert desk.events
    assert max(event["id"] for event in desk.events) == locked - 1
    assert "6,6,6" not in json.dumps([desk.events, desk.other], separators=(",", ":"))
    # Nor does it when the host claims to have more, or asks for anything that it may ask for.
    desk.hello(last_event=desk.journal.last_id)
    desk.ask("status")
    desk.ask("stats")
    desk.fetch()
    assert "6,6,6" not in json.dumps([desk.events, desk.other], separators=(",", ":"))


def shown_until_the_reveal(folder: Path, dice: list[int], pack: str) -> tuple[list[bytes], list[Any]]:
    """All that leaves a table from the reading until just before the lid opens: on the wire, on ring and buzzer."""
    folder.mkdir()
    desk = Desk(folder, pack)
    desk.hello()
    desk.fetch()
    roll = desk.reach(protocol.READING)
    signals = Signals(24)
    wire: list[bytes] = []
    seen: list[Any] = []

    def look() -> None:
        for name in ("status", "stats", "sensors", "hello"):
            fields = {"major": 1, "minor": 0, "last_event": desk.known} if name == "hello" else {}
            desk.send({"q": name, **fields})
        for _ in range(20):
            desk.now += module.RESEND_MS // 4
            signals.show(desk.state, desk.table.call, desk.now)
            seen.append((signals.ring(desk.now), signals.hertz(desk.now)))
            while (line := desk.controller.next_line(desk.now)) is not None:
                wire.append(line)

    desk.show(roll, dice)
    assert desk.state == LOCKED
    look()
    desk.tell("service", True)
    desk.tell("set_fault", "READER", "no answer")
    look()
    desk.ask("clear", code="READER")
    desk.boot()
    assert desk.state == LOCKED
    look()
    assert desk.ask("stats")["rolls"] == 0
    faces = desk.ask("stats")["reading"]["faces"]
    assert faces == [[0] * 6] * 3
    return wire, seen


@pytest.mark.parametrize("pack", ["nj", "house"])
def test_two_results_cannot_be_told_apart_before_the_reveal(tmp_path: Path, pack: str) -> None:
    first = shown_until_the_reveal(tmp_path / "first", [6, 6, 6], pack)
    assert len(first[0]) == 15
    for number, dice in enumerate(([1, 2, 3], [6, 6, 5], [1, 1, 1])):
        assert shown_until_the_reveal(tmp_path / str(number), dice, pack) == first


def test_a_result_is_counted_at_the_reveal_and_one_entered_by_hand_never(desk: Desk) -> None:
    desk.reach(LOCKED, [6, 1, 2])
    assert desk.ask("stats")["reading"]["faces"] == [[0] * 6] * 3
    desk.open_lid()
    read = [[1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 1, 0]]
    assert desk.ask("stats")["reading"]["faces"] == read
    desk.tell("lid", False)
    desk.ask("finish")
    desk.ask("open", shaker=1)
    desk.ask("close")
    token = desk.ask("manual", dice=[3, 3, 3], reason="by hand")["token"]
    desk.ask("confirm", token=token, dice=[3, 3, 3])
    desk.open_lid()
    assert desk.table.result["dice"] == [3, 3, 3]
    assert desk.ask("stats")["reading"]["faces"] == read


def test_after_the_reveal_everything_that_was_held_back_comes_in_order(desk: Desk) -> None:
    desk.reach(LOCKED, [6, 6, 6])
    desk.tell("service", True)
    desk.boot()
    desk.hello(desk.known)
    desk.fetch()
    before = len(desk.events)
    desk.open_lid()
    desk.fetch()
    assert kinds(desk.events)[before:] == ["locked", "door", "boot", "door", "settled"]
    assert desk.events[-1]["d"]["dice"] == [6, 6, 6]
    assert desk.events[-1]["d"]["eye"] == EYE
    follow(desk)


@pytest.mark.parametrize("state", [BETTING, CLOSED, VOID])
def test_an_open_round_is_void_after_a_power_loss(desk: Desk, state: str) -> None:
    desk.reach(state)
    desk.boot()
    desk.hello(desk.known)
    assert kinds(desk.fetch())[-2:] == ["boot", "void"]
    assert (desk.events[-1]["d"]["reason"], desk.events[-1]["d"]["over"]) == ("power_loss", True)
    assert desk.ask("open", shaker=1)["round"] == 2


# -- a damaged journal -----------------------------------------------------------------------------------------------


def damage(folder: Path, record: int) -> None:
    """Change one digit of this record in the newest segment."""
    path = sorted(folder.glob("j*.log"))[-1]
    lines = path.read_bytes().splitlines(keepends=True)
    place = record - int(path.stem[1:]) + 1
    lines[place] = lines[place].replace(b'"t":', b'"t":1', 1)
    path.write_bytes(b"".join(lines))


def test_a_damaged_journal_is_a_fault_and_its_good_records_are_still_delivered(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    for _ in range(3):
        desk.play([1, 2, 3])
        desk.now += 5000
    damage(tmp_path, 9)
    desk.boot()
    assert desk.state == FAULT
    assert (desk.view()["fault"], desk.view()["detail"]) == ("JOURNAL", "segment 1, line 10: the hash differs")
    desk.hello()
    assert desk.code("open", shaker=1) == "E_FAULT"
    assert desk.code("clear", code="JOURNAL") == "E_STANDS"
    assert [event["id"] for event in desk.fetch()] == list(range(1, 9))
    assert desk.ask("clear", code="JOURNAL") == {"state": IDLE}
    new = desk.fetch()
    assert new[0]["k"] == "restart"
    assert new[0]["d"]["why"] == "segment 1, line 10: the hash differs"
    assert new[0]["d"]["link"] == desk.hashes[7]
    assert new[0]["id"] > 8
    assert [event["d"]["set"] for event in new if event["k"] == "fault"] == [True, False]
    # It goes on, and a restart finds it whole.
    desk.now += 5000
    desk.play([4, 5, 6])
    desk.boot()
    assert desk.state == IDLE
    desk.hello(desk.known)
    [settled] = [event for event in desk.fetch() if event["k"] == "settled"]
    assert settled["d"]["dice"] == [4, 5, 6]


def test_a_host_that_is_ahead_of_a_damaged_journal_sets_nothing_aside(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    for number in range(10):
        desk.tell("service", bool(number % 2))
    desk.fetch()
    damage(tmp_path, 5)
    desk.boot()
    answer = desk.hello(desk.known)
    assert (desk.state, answer["first_event"], answer["last_event"]) == (FAULT, 1, 4)
    assert not list(tmp_path.glob("*.bad"))
    last = desk.known
    desk.ask("clear", code="JOURNAL")
    new = desk.fetch()
    assert new[0]["k"] == "restart"
    assert new[0]["id"] > last


def test_a_damage_found_while_records_are_sent_is_a_fault_as_well(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for _ in range(10):
        desk.tell("lid", True)
        desk.tell("lid", False)
    damage(tmp_path, 5)
    desk.hello()
    assert [event["id"] for event in desk.fetch()] == [1, 2, 3, 4]
    assert desk.state == FAULT
    assert "record 5 in segment 1" in desk.view()["detail"]
    before = desk.journal.last_id
    desk.ask("clear", code="JOURNAL")
    new = desk.fetch()
    assert [(event["id"], event["k"]) for event in new] == [
        (before + 1, "restart"),
        (before + 2, "fault"),
        (before + 3, "fault"),
    ]
    assert new[0]["d"]["link"] == desk.hashes[3]
    desk.play([2, 2, 3])
    assert kinds(desk.fetch())[-2:] == ["settled", "door"]


def test_a_damage_found_during_a_shake_voids_the_roll_and_stops_the_motor(desk: Desk) -> None:
    desk.reach(CLOSED)
    damage(desk.folder, 1)
    desk.shake()
    # Another host asks for everything.
    desk.hello(last_event=0)
    assert (desk.state, desk.view()["fault"]) == (FAULT, "JOURNAL")
    assert desk.effects("stop")


def test_a_wiped_journal_begins_after_what_the_host_holds(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    answer = desk.hello(last_event=500, last_round=40, last_hash="5" * 32)
    assert (answer["first_event"], answer["last_event"], answer["round"]) == (501, 501, 40)
    new = desk.fetch()
    assert [(event["id"], event["k"]) for event in new] == [(501, "restart")]
    assert new[0]["d"]["why"] == "the journal ended at record 1, the host's at 500"
    assert new[0]["d"]["link"] == "5" * 32
    assert desk.ask("open", shaker=1)["round"] == 41
    desk.boot()
    assert desk.hello(last_event=501)["round"] == 41
    assert [event["id"] for event in desk.fetch()] == [502, 503, 504]
    assert desk.ask("open", shaker=1)["round"] == 42


def test_a_host_that_knows_less_or_as_much_restarts_nothing(desk: Desk) -> None:
    for known in (0, 1, desk.journal.last_id):
        desk.hello(last_event=known)
    assert "restart" not in kinds(desk.events) + kinds(desk.fetch())


def test_hello_names_a_record_by_its_hash_but_none_that_is_held_back(desk: Desk) -> None:
    desk.reach(LOCKED, [6, 6, 6])
    desk.tell("service", True)
    desk.fetch()
    hashes = dict(zip([event["id"] for event in desk.events], desk.hashes, strict=True))
    last = max(hashes)
    assert desk.hello(last_event=2)["known"] == [2, hashes[2]]
    for asked in (0, last, last + 1, desk.journal.last_id):
        assert desk.hello(last_event=asked)["known"] == [last, hashes[last]]


STREAK = {"count": 2, "parts": [[1, 100], [3, 50]], "gone": [2]}


def test_a_wiped_table_goes_on_with_the_streak_that_the_host_holds(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello(last_event=500, last_round=40, last_over=40, streak=STREAK)
    assert desk.view()["streak"] == STREAK
    assert desk.fetch()[0]["d"]["state"]["streak"] == STREAK
    desk.boot()
    assert desk.view()["streak"] == STREAK
    desk.hello(desk.journal.last_id)
    assert desk.ask("open", shaker=1)["bets"] == [[1, {"bonus": 100}], [3, {"bonus": 50}]]
    # Once it has the longer record its own streak counts, whatever a host says.
    desk.hello(last_event=desk.journal.last_id, streak={"count": 9, "parts": [], "gone": []})
    assert desk.view()["streak"] == STREAK


def test_a_host_that_knows_less_does_not_change_the_streak(desk: Desk) -> None:
    desk.play([6, 6, 6], {1: {"bonus": 100}})
    desk.hello(last_event=1, streak=STREAK)
    assert desk.view()["streak"] == {"count": 1, "parts": [[1, 100]], "gone": []}


# -- a journal that is full or refuses -------------------------------------------------------------------------------


def test_no_round_is_opened_when_the_journal_is_full_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "SEGMENTS_MAX", 3)
    desk = Desk(tmp_path)
    desk.hello()
    rounds = 0
    while desk.journal.room >= journal.RESERVE:
        desk.play([1, 2, 3])
        desk.now += 5000
        rounds += 1
    assert rounds > 10
    with pytest.raises(Refused) as raised:
        desk.ask("open", shaker=1)
    assert (raised.value.code, raised.value.reply["state"]) == ("E_JOURNAL", IDLE)
    # The host comes for them: all are there, and the table goes on.
    desk.events = []
    desk.hello()
    desk.now += module.RESEND_MS
    desk.fetch()
    assert [event["id"] for event in desk.events] == list(range(1, desk.journal.last_id + 1))
    assert desk.ask("open", shaker=1)["round"] == rounds + 1
    assert len(list(tmp_path.glob("j*.log"))) <= 3


@pytest.mark.parametrize("pack", ["nj", "house"])
def test_a_locked_result_outlives_any_number_of_starts_faults_and_wagers_that_no_host_has_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: str
) -> None:
    monkeypatch.setattr(journal, "SEGMENTS_MAX", 2)
    desk = Desk(tmp_path, pack)
    desk.hello()
    desk.reach(LOCKED, [6, 6, 6])
    codes = set()
    for number in range(150):
        desk.boot()
        desk.send({"q": "hello", "major": 1, "minor": 0})
        desk.drain()
        desk.tell("service", bool(number % 2))
        desk.tell("set_fault", "READER", "no answer")
        desk.ask("clear", code="READER")
        desk.controller.stopped("interrupted", desk.now)
        codes.add(desk.code("bets", position=1, wagers={"match": 900}))
        desk.code("leave", position=1)
        assert desk.state == LOCKED
        desk.now += 10
    assert codes == {"E_BETS_CLOSED", "E_JOURNAL"}
    assert 4 <= desk.journal.room <= module.LAST
    desk.boot()
    desk.open_lid()
    assert (desk.state, desk.view()["dice"]) == (SETTLED, [6, 6, 6])
    desk.tell("lid", False)
    # The host comes; everything can leave now, and the table goes on.
    desk.events, desk.hashes = [], []
    desk.hello()
    desk.now += module.RESEND_MS
    desk.fetch()
    assert [event["id"] for event in desk.events] == list(range(1, desk.journal.last_id + 1))
    times = [(event["b"], event["t"]) for event in desk.events]
    assert times == sorted(times)
    desk.ask("finish")
    desk.wait_out()
    desk.play([1, 2, 4])
    follow(desk)


def test_bets_that_stay_open_over_a_full_journal_are_closed_by_the_lid_and_the_result_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "SEGMENTS_MAX", 2)
    desk = Desk(tmp_path, "house")
    desk.hello()
    desk.reach(LOCKED, [6, 6, 6])
    stake = 100
    refused = ""
    while not refused:
        stake += 1
        refused = desk.reply(desk.send({"q": "bets", "position": 1, "wagers": {"match": stake}})).get("err", "")
    assert refused == "E_JOURNAL"
    assert desk.journal.room == module.SCARCE - 1
    while desk.journal.room >= module.LAST:
        desk.tell("set_fault", "READER", "no answer")
        desk.ask("clear", code="READER")
    for _ in range(20):
        desk.tell("set_fault", "READER", "no answer")
        desk.ask("clear", code="READER")
    desk.open_lid()
    assert desk.view()["dice"] == [6, 6, 6]
    assert kinds(desk.fetch())[-2:] == ["closed", "settled"]
    assert desk.events[-1]["d"]["rows"][0][:3] == [1, "match", stake - 1]


def test_no_shake_is_begun_whose_result_might_find_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENTS_MAX", 2)
    desk = Desk(tmp_path, "nj")
    desk.hello()
    desk.reach(CLOSED)
    while desk.journal.room >= module.SCARCE:
        desk.wait_out()
        desk.tell("shaken", desk.shake(), False)
        desk.ask("resume")
    desk.wait_out()
    before = desk.view()
    assert desk.code("shake") == "E_JOURNAL"
    desk.tell("button")
    assert desk.effects("refused") == ["E_JOURNAL"]
    assert desk.view() == before
    token = desk.ask("manual", dice=[1, 2, 3], reason="by hand")["token"]
    assert desk.code("confirm", token=token, dice=[1, 2, 3]) == "E_JOURNAL"
    desk.now += module.RESEND_MS
    desk.fetch()
    desk.roll([1, 2, 4])
    assert desk.state == LOCKED


def refuse(path: str, mode: str = "r") -> Any:
    if mode != "rb":
        raise OSError(28, "no space left")
    return open(path, mode)


def refuse_all(path: str, mode: str = "r") -> Any:
    raise OSError(5, "input/output error")


@pytest.mark.parametrize("state", LASTING)
def test_a_flash_that_refuses_is_a_fault_never_an_exception(
    desk: Desk, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    roll = desk.reach(state, [6, 6, 6])
    known = desk.journal.last_id
    desk.fetch()
    with monkeypatch.context() as patch:
        patch.setattr(journal, "open", refuse, raising=False)
        if roll is not None and state not in (LOCKED, SETTLED, VOID):
            desk.tell("lid", True)
        else:
            desk.tell("lid", not desk.view()["lid_open"])
        assert desk.state == FAULT
        assert "stop" in [effect for effect, _ in desk.table.take_effects()]
        if state != FAULT:
            assert desk.view()["fault"] == "JOURNAL"
            assert desk.code("clear", code="JOURNAL") in ("E_STANDS", "E_FAULT")
            assert desk.state == FAULT
        for name in protocol.REQUESTS:
            if name != "hello":
                desk.reply(desk.send({"q": name}))
        for action, arguments in (
            ("button", ()),
            ("tick", ()),
            ("tamper", (True,)),
            ("service", (True,)),
            ("shaken", (1, True)),
        ):
            desk.tell(action, *arguments)
        desk.drain()
    # The power comes back, the flash is well again: what had been written is there, nothing half done.
    desk.boot()
    assert desk.journal.last_id >= known
    if state == LOCKED:
        assert desk.state == LOCKED
        desk.open_lid()
        assert desk.table.result["dice"] == [6, 6, 6]


@pytest.mark.parametrize("fluttered", [False, True])
def test_a_lid_that_opens_while_the_flash_refuses_closes_the_bets_and_reveals_once_it_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fluttered: bool
) -> None:
    desk = Desk(tmp_path, "house")
    desk.hello()
    desk.reach(LOCKED, [6, 6, 6])
    desk.fetch()
    with monkeypatch.context() as patch:
        patch.setattr(journal, "open", refuse, raising=False)
        if fluttered:
            desk.tell("lid_moved")
        desk.open_lid()
        assert desk.view()["fault"] == "JOURNAL"
        assert "dice" not in desk.view()
        assert not desk.view()["bets_open"]
    assert desk.code("bets", position=1, wagers={"match": 900}) == "E_FAULT"
    assert desk.ask("clear", code="JOURNAL") == {"state": SETTLED}
    assert (desk.state, desk.view()["dice"]) == (SETTLED, [6, 6, 6])
    told = kinds(desk.fetch())
    assert told[:2] == ["locked", "closed"]
    assert told[-1] == "settled"
    follow(desk)


class Spoiled:
    """The file that is ready for the result: what is written lands or not; its close says no."""

    def __init__(self, file: Any, lands: bool) -> None:
        self.file = file
        self.lands = lands

    def __enter__(self) -> Spoiled:
        return self

    def write(self, data: bytes) -> None:
        if self.lands:
            self.file.write(data)

    def __exit__(self, *_: object) -> None:
        self.file.close()
        raise OSError(5, "input/output error")


def lose(desk: Desk, patch: pytest.MonkeyPatch, roll: int, lands: bool, cut: bool) -> None:
    """Read a result that the flash does not take; `cut`: it is well again right after that."""
    desk.journal._file = Spoiled(desk.journal._file, lands)
    if not cut:
        patch.setattr(journal, "open", refuse, raising=False)
    desk.show(roll, [6, 6, 6])
    assert (desk.state, desk.view()["fault"]) == (FAULT, "JOURNAL")
    # Nobody is told yet that the roll is void.
    assert desk.view()["voids"] == 0
    assert "void" not in kinds(desk.fetch())


@pytest.mark.parametrize("lands", [False, True])
@pytest.mark.parametrize("cut", [False, True])
def test_a_result_that_could_not_be_recorded_is_a_void_roll_in_the_record(
    desk: Desk, lands: bool, cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    roll = desk.reach(protocol.READING, [6, 6, 6])
    before = desk.journal.last_id
    with monkeypatch.context() as patch:
        lose(desk, patch, roll, lands, cut)
        if not cut:
            assert desk.code("clear", code="JOURNAL") == "E_FAULT"
    assert desk.ask("clear", code="JOURNAL") == {"state": VOID}
    assert desk.view()["voids"] == 1
    told = [(event["k"], event["d"].get("reason"), event["d"].get("set")) for event in desk.fetch()][-3:]
    assert told == [("void", "fault", None), ("fault", None, True), ("fault", None, False)]
    assert desk.known == desk.journal.last_id == before + 3
    desk.wait_out()
    desk.roll([1, 2, 4])
    desk.open_lid()
    assert desk.view()["dice"] == [1, 2, 4]
    desk.fetch()
    follow(desk)


@pytest.mark.parametrize(
    ("lands", "cut", "state"), [(True, False, LOCKED), (True, True, IDLE), (False, False, IDLE), (False, True, IDLE)]
)
def test_after_a_power_cut_the_record_says_whether_such_a_result_counts(
    desk: Desk, lands: bool, cut: bool, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    roll = desk.reach(protocol.READING, [6, 6, 6])
    with monkeypatch.context() as patch:
        lose(desk, patch, roll, lands, cut)
    desk.boot()
    # One that could be cut never comes back.
    assert desk.state == state
    desk.hello(desk.known)
    if state == LOCKED:
        desk.open_lid()
        assert desk.view()["dice"] == [6, 6, 6]
        assert "void" not in kinds(desk.fetch())
    else:
        assert kinds(desk.fetch())[-1] == "void"
    follow(desk)


def test_a_foreign_tag_is_latched_even_when_its_void_roll_cannot_be_recorded(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    roll = desk.reach(protocol.READING)
    with monkeypatch.context() as patch:
        patch.setattr(journal, "open", refuse, raising=False)
        desk.tell("tags", roll, {"BADC0DE0"})
        assert desk.view()["fault"] == "TAMPER"
    # Journal and tag both have to be cleared, and both are in the record.
    assert desk.ask("clear", code="TAMPER") == {"state": FAULT}
    assert desk.view()["fault"] == "JOURNAL"
    assert desk.ask("clear", code="JOURNAL") == {"state": VOID}
    told = [(event["k"], event["d"].get("code"), event["d"].get("set")) for event in desk.fetch()]
    assert told[-5:] == [
        ("void", None, None),
        ("fault", "TAMPER", True),
        ("fault", "JOURNAL", True),
        ("fault", "TAMPER", False),
        ("fault", "JOURNAL", False),
    ]
    desk.boot()
    assert desk.state == IDLE


@pytest.mark.parametrize("name", ["open", "close", "bets", "void", "leave", "end", "changed", "confirm", "correct"])
def test_a_request_that_cannot_be_written_is_answered_with_the_fault(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.play([6, 6, 6], {1: {"bonus": 100}})
    fields: Json = {}
    if name == "open":
        fields = {"shaker": 1}
    elif name in ("bets", "leave"):
        fields = {"position": 1, "wagers": {"bonus": 50}} if name == "bets" else {"position": 1}
    elif name == "void":
        fields = {"reason": "flash test"}
    elif name == "changed":
        fields = {"unit": "dice"}
    elif name == "correct":
        fields = {"round": 1, "what": "void", "event": 1, "reason": "dealt twice"}
    if name in ("close", "bets", "void"):
        desk.ask("open", shaker=1)
    if name == "confirm":
        desk.ask("open", shaker=1)
        desk.ask("close")
        fields = {"token": desk.ask("manual", dice=[1, 2, 3], reason="by hand")["token"], "dice": [1, 2, 3]}
    known = desk.journal.last_id
    with monkeypatch.context() as patch:
        patch.setattr(journal, "open", refuse, raising=False)
        with pytest.raises(Refused) as raised:
            desk.ask(name, **fields)
        assert raised.value.code == "E_FAULT"
        assert "no space left" in raised.value.reply["why"]
        assert desk.view()["fault"] == "JOURNAL"
    assert desk.journal.last_id == known
    desk.boot()
    assert desk.state == IDLE
    assert desk.table.streak.count == 1


def test_a_flash_that_cannot_be_read_is_a_fault(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.tell("lid", True)
    monkeypatch.setattr(journal, "open", refuse_all, raising=False)
    desk.drain()
    assert (desk.state, desk.view()["detail"]) == (FAULT, "cannot be read: input/output error")


def test_a_configuration_that_cannot_be_used_is_a_fault_that_stands(tmp_path: Path) -> None:
    desk = Desk(tmp_path, trouble=("CONFIG", "config.json is missing"))
    desk.hello()
    assert (desk.state, desk.view()["fault"]) == (FAULT, "CONFIG")
    assert desk.code("clear", code="CONFIG") == "E_STANDS"
    assert kinds(desk.fetch()) == ["boot", "fault"]
    desk.boot()
    assert desk.state == FAULT
    desk.hello()
    assert desk.ask("clear", code="CONFIG") == {"state": IDLE}


# -- noise -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.lists(st.one_of(st.binary(max_size=80), st.text(max_size=40).map(str.encode)), max_size=10))
@example([b"\r\n", b"", b"   ", b"\x03\x03", b"\xff" * 9000])
def test_garbage_is_counted_and_never_raises(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    desk = Desk(tmp_path_factory.mktemp("j"))
    for line in lines:
        desk.controller.receive(line, desk.now)
    assert desk.controller.counters["noise"] == sum(1 for line in lines if line.strip())
    assert not [value for value in desk.drain() if "re" in value]


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=4,
)
frames = st.tuples(
    st.integers(0, 30),
    st.dictionaries(
        st.sampled_from(["q", "ack", "major", "minor", "shaker", "position", "wagers", "code", "x"]),
        st.one_of(json_values, st.sampled_from(sorted(protocol.REQUESTS)), st.integers(0, 9)),
        max_size=4,
    ),
)


@settings(max_examples=40)
@given(st.lists(frames, max_size=12), st.booleans())
def test_any_frame_is_answered_acknowledges_or_is_noise(
    tmp_path_factory: pytest.TempPathFactory, sent: list[tuple[int, Json]], greeted: bool
) -> None:
    desk = Desk(tmp_path_factory.mktemp("j"))
    if greeted:
        desk.hello()
    for seq, value in sent:
        desk.send(value, seq)
        answers = [reply["re"] for reply in desk.drain() if "re" in reply]
        assert answers == ([seq] if "q" in value and "ack" not in value else [])
    assert desk.controller.counters["noise"] == sum(1 for _, value in sent if not {"q", "ack"} & set(value))


def test_noise_between_frames_costs_nothing(desk: Desk) -> None:
    line = protocol.encode(desk.seq + 1, {"q": "open", "shaker": 1})
    for piece in (line[:10], line[10:], line[:-2], b"Traceback (most recent call last):"):
        desk.controller.receive(piece, desk.now)
    assert desk.state == IDLE
    assert desk.ask("open", shaker=1) == {"round": 1, "bets": []}
    assert desk.ask("stats")["noise"] == 4


# -- memory ----------------------------------------------------------------------------------------------------------


def test_what_is_kept_for_repeats_is_bounded(desk: Desk) -> None:
    for _ in range(100):
        desk.ask("status")
    for number in range(100):
        desk.send({"q": "open", "shaker": 99}, 10**6 + number)
        desk.drain()
    assert len(desk.controller._answers) == module.ANSWERS_KEPT


def test_a_cable_that_is_pulled_leaves_nothing_behind(desk: Desk) -> None:
    for _ in range(5):
        desk.send({"q": "status"})
    desk.controller.disconnected()
    assert [list(value) for value in desk.drain()] == [["hello"]]
    assert desk.code("status") == "E_HELLO"
    desk.hello(desk.journal.last_id)
    desk.ask("status")


# -- corrections -----------------------------------------------------------------------------------------------------


def test_a_correction_is_sent_like_every_record_and_names_an_event_that_is_there(desk: Desk) -> None:
    desk.play([1, 2, 3])
    desk.fetch()
    told = {"round": 1, "what": "void", "reason": "dealt twice"}
    with pytest.raises(Refused) as raised:
        desk.ask("correct", event=desk.known + 1, **told)
    assert raised.value.reply["why"] == f"correct: event is {desk.known + 1}; the last one is {desk.known}"
    settled = next(event["id"] for event in desk.events if event["k"] == "settled")
    answer = desk.ask("correct", event=settled, **told)
    [new] = desk.fetch()
    assert new["d"] == {"round": 1, "what": "void", "event": settled, "why": "dealt twice"}
    assert answer["event"] == new["id"]
    # A table that recorded one has played: its record is not passed over for an older one.
    assert desk.controller.hello()["played"] == new["id"]


# -- the journal key -------------------------------------------------------------------------------------------------


def test_each_event_is_sent_with_its_tag_where_there_is_a_journal_key(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.play([1, 2, 3])
    desk.fetch()
    untagged = len(desk.events)
    assert desk.tags == [""] * untagged
    desk.key = bytes(range(32))
    desk.boot()
    desk.hello(last_event=desk.known, last_round=1)
    desk.play([3, 3, 3])
    desk.fetch()
    follow(desk)
    assert len(desk.events) > untagged
    for stored, tag in zip(desk.hashes[untagged:], desk.tags[untagged:], strict=True):
        assert tag == tag_of(stored, desk.key)


# -- weeks -----------------------------------------------------------------------------------------------------------


def test_a_table_that_idled_for_weeks_goes_on(desk: Desk, tmp_path: Path) -> None:
    weeks = 20 * 7 * 24 * 3600 * 1000
    desk.now += weeks
    desk.play([1, 2, 3])
    desk.fetch()
    assert desk.events[-1]["t"] > weeks > 2**33
    assert desk.ask("stats")["uptime_ms"] >= weeks
    store = Store(tmp_path / "weeks.db")
    assert all(store.take("U1", event, link, 1) for event, link in zip(desk.events, desk.hashes, strict=True))
    assert store.events("U1")[-1]["t"] == desk.events[-1]["t"]
    store.close()


def times_of(desk: Desk, signals: Signals) -> dict[str, int]:
    """Every time that is kept: whole numbers that are none of a table whose clock has just begun."""
    owners = (desk.controller, desk.controller.gate, desk.table, signals)
    kept = {
        f"{type(owner).__name__}.{name}": value
        for owner in owners
        for name, value in vars(owner).items()
        if isinstance(value, int) and value > 10**9
    }
    # An event's number of the wire begins at random.
    kept.pop("Controller._last_seq", None)
    return kept


@pytest.mark.parametrize("state", [IDLE, SETTLED, TEST, VOID, LOCKED, FAULT])
def test_a_clock_that_is_set_back_sets_back_every_time_that_is_kept(tmp_path: Path, state: str) -> None:
    late, back = 2 * 10**9, 2**29
    old, new = Desk(tmp_path / "old", now=late), Desk(tmp_path / "new", now=late)
    shown = []
    for desk in (old, new):
        signals = Signals(24)
        desk.hello()
        desk.reach(state)
        desk.tell("supply", True)
        signals.show(desk.state, None, desk.now)
        signals.refused(desk.now)
        desk.send({"q": "status"})
        desk.drain()
        if desk is new:
            before = times_of(desk, signals)
            assert {"Controller._resend_at", "Controller._boot_at", "Signals._since", "Table._supply_since"} <= set(
                before
            )
            desk.controller.set_back(back, signals)
            desk.now -= back
            after = {name: value for name, value in vars(desk.controller).items() if name in ("_now", "_resend_at")}
            assert max(after.values()) < late - back + 10_000
            assert times_of(desk, signals) == {name: value - back for name, value in before.items()}
        seen = []
        for _ in range(40):
            desk.now += 250
            desk.tell("tick")
            seen.append((desk.view(), desk.drain(), signals.ring(desk.now), signals.hertz(desk.now)))
        uptime = desk.ask("stats")["uptime_ms"]
        desk.tell("supply", False)
        shown.append((seen, uptime, [event["t"] for event in desk.fetch()]))
    assert shown[0] == shown[1]


def test_what_is_long_past_stays_so_however_often_the_clock_is_set_back(desk: Desk) -> None:
    desk.reach("VOID")
    for _ in range(9):
        desk.now += 2**29
        desk.tell("tick")
        desk.controller.set_back(2**29)
        desk.now -= 2**29
        kept = [getattr(desk.table, name) for name in desk.table.TIMES]
        assert all(at is None or -(2**28) <= at < 2**29 for at in kept)
        assert "lockout_ms" not in desk.view() or desk.view()["lockout_ms"] == 0
    assert desk.ask("stats")["uptime_ms"] > 9 * 2**29
