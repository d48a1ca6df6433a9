"""What is wrong today: each test fails until the firmware is put right. None of these is on main."""

from __future__ import annotations

import binascii
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoneye import journal, protocol, round
from dragoneye.journal import Damaged, Journal
from dragoneye.protocol import BETTING, CLOSED, FAULT, IDLE, LOCKED, SETTLED, SHAKING, Noise, Problem
from dragoneye.service import SUPPLY_STANDS_MS
from host_tools.store import Store
from tests.unit.tables import Desk, Refused, Rig, pack_named
from tests.unit.test_controller import damage, kinds, refuse
from tests.unit.test_journal import files, fill, lines_of, loaded

# 1 -- the locked result leaves before the lid opens ------------------------------------------------------------------


def told(desk: Desk) -> str:
    return json.dumps([desk.events, desk.other], separators=(",", ":"))


def test_a_host_that_claims_a_longer_history_is_not_told_a_locked_result(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.fetch()
    desk.reach(LOCKED, [6, 6, 6])
    desk.hello(last_event=1000)
    desk.fetch()
    assert "6,6,6" not in told(desk)
    desk.open_lid()
    desk.fetch()
    assert "6,6,6" in told(desk)


def test_a_damage_cleared_while_a_result_is_locked_does_not_tell_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.fetch()
    desk.reach(LOCKED, [6, 6, 6])
    desk.fetch()
    damage(tmp_path, 2)
    desk.hello(last_event=0)
    desk.fetch()
    assert desk.state == FAULT
    desk.ask("clear", code="JOURNAL")
    desk.fetch()
    assert "6,6,6" not in told(desk)
    desk.open_lid()
    assert desk.state == SETTLED
    desk.fetch()
    assert desk.events[-1]["d"]["dice"] == [6, 6, 6]


# 2 -- a damage behind a locked record cannot be cleared, ever ---------------------------------------------------------


def test_a_damage_behind_a_locked_record_can_be_cleared(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.fetch()
    desk.reach(LOCKED, [6, 6, 6])
    desk.tell("service", True)
    desk.fetch()
    damage(tmp_path, desk.journal.last_id)
    desk.boot()
    assert desk.state == FAULT
    desk.hello(desk.known)
    desk.fetch()
    desk.ask("clear", code="JOURNAL")
    desk.fetch()
    assert desk.state == LOCKED
    assert "6,6,6" not in told(desk)
    desk.open_lid()
    assert desk.state == SETTLED


# 3 -- a fault lets the streak be ended over a locked triple ----------------------------------------------------------


def test_units_cannot_be_changed_over_a_locked_result_that_a_fault_keeps() -> None:
    rig = Rig()
    rig.play([6, 6, 6], {2: {"bonus": 100}})
    rig.play([5, 5, 5])
    rig.ask("open", shaker=2)
    rig.ask("close")
    rig.roll([4, 4, 4])
    rig.tell("set_fault", "READER", "no answer")
    with pytest.raises(Problem, match="E_STATE"):
        rig.ask("changed", unit="dice")
    rig.ask("clear", code="READER")
    rig.open_lid()
    assert rig.last("settled")["rows"] == [[2, "bonus", 100, 10000]]


# 4 -- bets after the dice can be seen --------------------------------------------------------------------------------


def test_a_lid_opened_during_a_fault_ends_the_betting() -> None:
    rig = Rig("house")
    rig.reach(LOCKED, [6, 6, 6])
    rig.tell("set_fault", "READER", "no answer")
    rig.open_lid()
    assert not rig.view()["bets_open"]
    with pytest.raises(Problem, match="E_BETS_CLOSED"):
        rig.ask("leave", position=1)
    rig.ask("clear", code="READER")
    assert rig.state == SETTLED
    with pytest.raises(Problem):
        rig.ask("bets", position=1, wagers={"triple": 100000})


def test_a_fault_does_not_unlock_the_lid_over_open_bets() -> None:
    rig = Rig("house")
    rig.reach(LOCKED, [6, 6, 6])
    rig.tell("set_fault", "READER", "no answer")
    with pytest.raises(Problem, match="E_BETS_OPEN"):
        rig.ask("unlock")


def test_bets_do_not_open_again_when_the_power_failed_over_a_locked_result() -> None:
    """The lid may have been open meanwhile."""
    rig = Rig("house")
    rig.reach(LOCKED, [6, 6, 6])
    rig.restart()
    assert not rig.view()["bets_open"]


def test_a_bet_that_was_taken_after_the_lock_outlives_the_power() -> None:
    rig = Rig("house")
    rig.reach(LOCKED, [1, 1, 1])
    rig.ask("bets", position=2, wagers={"even": 700})
    rig.ask("bets", position=1, wagers={})
    rig.restart()
    assert rig.view()["bets"] == [[2, {"even": 700}]]


def test_a_bonus_lowered_after_the_lock_is_not_raised_by_a_power_loss() -> None:
    rig = Rig("house")
    rig.play([6, 6, 6], {1: {"bonus": 100}})
    rig.ask("open", shaker=1)
    rig.roll([6, 6, 6])
    rig.ask("bets", position=1, wagers={"bonus": 50})
    rig.restart()
    rig.open_lid()
    assert rig.last("settled")["rows"] == [[1, "bonus", 50, 500]]


# 5 -- hello renumbers an open round ----------------------------------------------------------------------------------


def test_a_hello_in_the_middle_of_a_round_does_not_change_its_number(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.reach(CLOSED)
    desk.hello(last_event=0, last_round=40)
    desk.roll([1, 2, 3])
    desk.open_lid()
    desk.tell("lid", False)
    desk.ask("finish")
    desk.fetch()
    assert {event["d"]["round"] for event in desk.events if "round" in event["d"]} == {1}
    assert desk.ask("open", shaker=1)["round"] == 41


@pytest.mark.parametrize("field", ["last_event", "last_round"])
def test_one_hello_cannot_use_up_all_numbers(tmp_path: Path, field: str) -> None:
    desk = Desk(tmp_path)
    with contextlib.suppress(Refused):
        desk.ask("hello", major=1, minor=0, **{field: protocol.SEQ_MAX})
    if desk.controller._session is None:
        desk.hello()
    desk.play([1, 2, 3])
    desk.fetch()
    last_round = max(event["d"]["round"] for event in desk.events if "round" in event["d"])
    desk.hello(desk.known, last_round)
    assert desk.ask("open", shaker=1)["round"] == last_round + 1


# 6 -- a damaged head of the newest segment --------------------------------------------------------------------------


def test_a_damaged_head_loses_neither_state_nor_undelivered_records_nor_reuses_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "SEGMENT_RECORDS", 8)
    desk = Desk(tmp_path)
    desk.hello()
    desk.controller.disconnected()
    for number in range(8):
        desk.table.service(bool(number % 2), desk.now)
    last = desk.journal.last_id
    newest = files(tmp_path)[-1]
    first = int(newest.stem[1:])
    data = newest.read_bytes()
    newest.write_bytes(data[:20] + b"9" + data[21:])
    desk.boot()
    assert desk.state == FAULT
    desk.hello()
    got = [event["id"] for event in desk.fetch()]
    assert got == list(range(1, first))
    desk.ask("clear", code="JOURNAL")
    new = desk.fetch()
    assert new[0]["k"] == "restart"
    assert new[0]["id"] > last


def test_a_damaged_head_keeps_the_streak_and_the_round_number(tmp_path: Path) -> None:
    log = Journal(str(tmp_path), round.fold, round.initial)
    log.load()
    desk = Desk(tmp_path)
    desk.hello()
    while not (desk.journal.last_id > 64 and desk.journal._count < 20):
        desk.play([6, 6, 6], {1: {"bonus": 100}} if desk.table.streak.count == 0 else None)
        desk.now += 5000
        desk.fetch()
    rounds, streak = desk.table.round, desk.table.streak.as_dict()
    newest = files(tmp_path)[-1]
    data = newest.read_bytes()
    newest.write_bytes(data[:20] + b"9" + data[21:])
    desk.boot()
    assert desk.state == FAULT
    # All but what stood in the damaged segment.
    assert desk.table.round >= rounds - 4
    assert desk.table.streak.count >= streak["count"] - 4


def test_ids_behind_a_damage_are_not_used_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for number in range(10):
        desk.tell("service", bool(number % 2))
    last = desk.journal.last_id
    damage(tmp_path, 5)
    desk.boot()
    desk.hello()
    desk.fetch()
    desk.ask("clear", code="JOURNAL")
    assert desk.fetch()[0]["id"] > last


# 7 -- exceptions out of the controller -------------------------------------------------------------------------------


def test_a_flash_that_refuses_at_boot_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.reach(BETTING)
    monkeypatch.setattr(journal, "open", refuse, raising=False)
    desk.boot()
    assert (desk.state, desk.view()["fault"]) == (FAULT, "JOURNAL")
    desk.hello()


def test_a_flash_that_refuses_during_hello_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path)
    monkeypatch.setattr(journal, "open", refuse, raising=False)
    desk.hello(last_event=500)
    assert desk.state == FAULT


def test_a_flash_that_refuses_during_a_clear_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    for number in range(6):
        desk.tell("service", bool(number % 2))
    damage(tmp_path, 5)
    desk.boot()
    desk.hello()
    desk.fetch()
    with monkeypatch.context() as patch:
        patch.setattr(journal, "open", refuse, raising=False)
        assert desk.code("clear", code="JOURNAL") == "E_FAULT"
        assert desk.state == FAULT
    desk.boot()
    desk.hello(desk.known)
    desk.fetch()
    if desk.state == FAULT:
        desk.ask("clear", code="JOURNAL")
    desk.play([1, 2, 3])


def test_a_foreign_file_in_the_folder_is_no_exception(tmp_path: Path) -> None:
    (tmp_path / "jxyz.log").write_text("hello\n")
    assert Desk(tmp_path).state in (IDLE, FAULT)


# 8 -- the journal grows without bound --------------------------------------------------------------------------------


def test_doors_and_boots_without_a_host_do_not_fill_the_flash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENTS_MAX", 4)
    desk = Desk(tmp_path)
    for number in range(400):
        desk.tell("service", bool(number % 2))
        if number % 10 == 0:
            desk.boot()
    assert len(files(tmp_path)) <= 4
    # And when the host comes, it goes on.
    desk.hello()
    desk.fetch()
    while desk.state == FAULT:
        desk.ask("clear", code=desk.view()["fault"])
    desk.play([1, 2, 3])
    desk.fetch()
    assert "settled" in kinds(desk.events)[-4:]


# 9 -- a limit of the liability that refuses to lower it --------------------------------------------------------------


def test_a_table_over_its_limit_may_always_be_brought_down() -> None:
    """A streak carries a bonus to the level where it pays 500 to 1: nobody could know, everybody may lower."""
    rig = Rig(pack_named("nj", liability_max=10000))
    rig.play([6, 6, 6], {1: {"bonus": 100}, 2: {"bonus": 100}})
    rig.ask("open", shaker=1)
    assert rig.view()["liability"] == 100 * 500 + 100 * 50
    rig.ask("bets", position=1, wagers={"bonus": 90})
    rig.ask("shaker", shaker=0)
    with pytest.raises(Problem, match="E_LIABILITY"):
        rig.ask("shaker", shaker=1)


# 10 -- a round without an end ----------------------------------------------------------------------------------------


def test_a_round_that_was_open_before_a_damage_is_recorded_void(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.reach(BETTING)
    desk.tell("service", True)
    desk.fetch()
    damage(tmp_path, desk.journal.last_id)
    desk.boot()
    desk.hello()
    desk.fetch()
    desk.ask("clear", code="JOURNAL")
    desk.play([1, 2, 3])
    desk.fetch()
    opened = [event["d"]["round"] for event in desk.events if event["k"] == "opened"]
    ended = [event["d"]["round"] for event in desk.events if event["k"] == "settled" or event["d"].get("over")]
    assert opened == ended == [1, 2]


# 11 -- a journal restarted by a request that is refused --------------------------------------------------------------


def test_a_damage_behind_another_fault_is_cleared_after_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.tell("tamper", True)
    desk.tell("tamper", False)
    for number in range(6):
        desk.tell("service", bool(number % 2))
    desk.fetch()
    damage(tmp_path, desk.journal.last_id)
    desk.boot()
    desk.hello(desk.known)
    desk.fetch()
    assert desk.view()["fault"] == "TAMPER"
    records = desk.journal.last_id
    assert desk.code("clear", code="JOURNAL") == "E_ARGS"
    assert desk.journal.last_id == records
    desk.boot()
    assert desk.view()["fault"] == "TAMPER"


# 12 -- memory --------------------------------------------------------------------------------------------------------


def test_what_waits_for_a_host_that_never_reads_is_bounded(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    for _ in range(500):
        desk.send({"q": "status"})
    for _ in range(500):
        desk.send({"q": "status"}, desk.seq)
    assert len(desk.controller._out) <= 32
    # The last answers are there.
    assert [value["re"] for value in desk.drain() if "re" in value][-1] == desk.seq


# 13 -- smaller things ------------------------------------------------------------------------------------------------


def test_a_player_may_leave_between_rounds_during_a_fault() -> None:
    rig = Rig()
    rig.play([6, 6, 6], {2: {"bonus": 100}})
    rig.tell("set_fault", "READER", "no answer")
    assert rig.ask("leave", position=2)["streak"]["gone"] == [2]


def test_true_is_no_event_id(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.drain()
    desk.ack(True)
    assert desk.journal.acked == 0


def test_a_changed_byte_of_the_crc_is_noise() -> None:
    for seq in range(400):
        line = protocol.encode(seq, {"q": "status"})[:-1]
        for place in range(len(line) - 8, len(line)):
            for mask in range(1, 256):
                with pytest.raises(Noise):
                    protocol.decode(line[:place] + bytes([line[place] ^ mask]) + line[place + 1 :])


def test_bytes_that_never_occur_in_a_frame_are_noise() -> None:
    body = '1 {"q":"void","reason":"\N{DRAGON FACE}"}'.encode()
    with pytest.raises(Noise):
        protocol.decode(body + b" %08x" % binascii.crc32(body))


def test_an_emoji_is_kept_alike_by_micropython_and_half_of_one_is_refused(tmp_path: Path) -> None:
    micropython = Path(sys.executable).with_name("micropython")
    if not micropython.exists():
        pytest.skip("no MicroPython")
    script = tmp_path / "s.py"
    script.write_text(
        "import json\n"
        "from dragoneye.protocol import Problem, check_request\n"
        "from dragoneye.text import dumps\n"
        "for reason in ('abc\\\\ud83d\\\\udc09', 'abc\\\\ud83d', 'abc\\\\udc09', 'abc\\\\udc09\\\\ud83d'):\n"
        "    try:\n"
        "        name, fields = check_request({'q': 'void', 'reason': json.loads('\"' + reason + '\"')})\n"
        "        print(dumps(fields['reason']))\n"
        "    except Problem as problem:\n"
        "        print(dumps(problem.code))\n"
    )
    firmware = Path(__file__).parents[2] / "firmware"
    done = subprocess.run(
        [str(micropython), str(script)],
        env={**os.environ, "MICROPYPATH": str(firmware)},
        capture_output=True,
        text=True,
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == ["abc\N{DRAGON}", *["E_ARGS"] * 3]


def test_an_answer_from_before_hello_is_not_given_to_hello(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert "err" in desk.reply(desk.send({"q": "dance"}, 77))
    desk.seq = 76
    desk.hello()


def test_a_new_session_is_told_the_live_state(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.fetch()
    desk.controller.disconnected()
    desk.other = []
    desk.hello(desk.known)
    desk.fetch()
    assert [value for value in desk.other if "st" in value]


def test_a_write_that_was_half_done_does_not_spoil_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Half:
        def __init__(self, path: str, mode: str) -> None:
            self.file = open(path, mode)  # noqa: SIM115

        def __enter__(self) -> Half:
            return self

        def read(self, size: int) -> bytes:
            raise OSError(5, "input/output error")

        def write(self, data: bytes) -> None:
            self.file.write(data[: len(data) // 2])
            self.file.close()
            raise OSError(28, "no space left")

        def __exit__(self, *args: object) -> None:
            self.file.close()

    log = loaded(tmp_path)
    fill(log, 3)
    with monkeypatch.context() as patch:
        patch.setattr(journal, "open", Half, raising=False)
        with pytest.raises(OSError, match="no space left"):
            fill(log, 1)
    fill(log, 2)
    again = loaded(tmp_path)
    assert again.last_id == 5
    assert lines_of(again) == lines_of(log)


def test_a_power_cut_anywhere_in_a_restart_keeps_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Cut(BaseException):
        pass

    for steps in range(12):
        folder = tmp_path / str(steps)
        log = loaded(folder)
        fill(log, 130)
        state = log.state
        left = [steps]

        def count(real: Any, left: list[int] = left) -> Any:
            def step(*args: Any) -> Any:
                if left[0] == 0:
                    raise Cut
                left[0] -= 1
                return real(*args)

            return step

        with monkeypatch.context() as patch:
            patch.setattr(journal, "open", count(open), raising=False)
            patch.setattr(os, "rename", count(os.rename))
            patch.setattr(os, "remove", count(os.remove))
            try:
                log.restart(200)
                log.append("odd", {"value": 0}, 1, 1)
            except Cut:
                pass
        again = loaded(folder)
        assert again.state["sum"] == state["sum"], steps
        assert again.last_id >= 130


def test_a_removal_that_is_refused_forgets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SEGMENT_RECORDS", 4)
    monkeypatch.setattr(journal, "SEGMENTS_MAX", 3)
    log = loaded(tmp_path)
    fill(log, 12)
    log.ack(12)

    def refuse_remove(path: str) -> None:
        raise OSError(5, "input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "remove", refuse_remove)
        with pytest.raises(OSError, match="input/output"):
            fill(log, 1)
    assert log.first_id == 1
    fill(log, 1)
    assert len(files(tmp_path)) == 3


def test_a_changed_newline_at_the_very_end_loses_no_record(tmp_path: Path) -> None:
    fill(loaded(tmp_path), 5)
    path = files(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-1] + b"\x0b")
    with contextlib.suppress(Damaged):
        assert loaded(tmp_path).last_id == 5


def test_nothing_is_written_to_the_flash_before_the_motor_is_told_to_stop() -> None:
    """A flash write stops interrupts: the STOP has to be taken by the board before the record is written."""
    rig = Rig()
    rig.reach(SHAKING)
    rig.table.take_effects()
    moving = [True]
    written: list[str] = []

    def watch(kind: str) -> None:
        if moving[0]:
            written.append(kind)

    rig.table.stop_now = lambda: moving.__setitem__(0, False)
    rig.watch = watch
    rig.tell("tamper", True)
    assert written == []


def test_the_service_key_writes_nothing_while_the_dice_roll() -> None:
    rig = Rig()
    rig.reach(SHAKING)
    before = len(rig.records)
    rig.tell("service", True)
    assert len(rig.records) == before


def test_a_second_fault_is_not_forgotten_when_the_first_is_cleared() -> None:
    rig = Rig()
    rig.tell("set_fault", "READER", "no answer")
    rig.tell("set_fault", "TASK", "table: ValueError")
    rig.ask("clear", code="READER")
    assert (rig.state, rig.view().get("fault")) == (FAULT, "TASK")


def test_a_latched_fault_outlives_the_power_though_it_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a write that failed once can be cleared when the flash is well again."""
    desk = Desk(tmp_path)
    desk.hello()
    with monkeypatch.context() as patch:
        patch.setattr(journal, "open", refuse, raising=False)
        desk.tell("service", True)
        assert desk.view()["fault"] == "JOURNAL"
    desk.fetch()
    assert desk.ask("clear", code="JOURNAL") == {"state": IDLE}
    desk.play([1, 2, 3])


def test_faults_for_service_while_the_journal_is_broken_are_recorded_as_they_stand_when_it_is_well_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path)
    desk.hello()

    def supply(is_low: bool) -> None:
        desk.tell("supply", is_low)
        desk.now += SUPPLY_STANDS_MS
        desk.tell("tick")

    def due() -> dict[str, str]:
        told: dict[str, str] = desk.view().get("service", {})
        return told

    desk.tell("set_service", "SELFTEST", "motor")
    with monkeypatch.context() as patch:
        patch.setattr(journal, "open", refuse, raising=False)
        # The supply's own record is the first that the flash refuses.
        for _time in range(40):
            supply(True)
            assert (desk.view()["fault"], due()["SUPPLY"]) == ("JOURNAL", "the 12 V supply stays low")
            supply(False)
            assert "SUPPLY" not in due()
        assert [data["code"] for _kind, data in desk.table.unwritten] == ["JOURNAL"]
        supply(True)
        desk.tell("set_service", "SELFTEST", "lid")
        desk.tell("set_service", "SELFTEST", None)
        assert len(desk.table.unwritten) == 3
    desk.ask("clear", code="JOURNAL")
    desk.fetch()
    faults = [(event["d"]["code"], event["d"]["set"]) for event in desk.events if event["k"] == "fault"]
    assert [one for one in faults if one[0] != "JOURNAL"] == [
        ("SELFTEST", True),
        ("SUPPLY", True),
        ("SELFTEST", False),
    ]
    desk.boot()
    assert due() == {"SUPPLY": "the 12 V supply stays low"}


def test_a_result_settled_again_after_a_damage_is_taken_by_the_store(tmp_path: Path) -> None:
    """The flash lost the settled record, the host has it: the same dice are settled again, the round counts once."""
    store = Store(tmp_path / "rounds.db")
    desk = Desk(tmp_path / "journal")
    desk.hello()
    desk.play([6, 6, 6], {1: {"bonus": 100}})
    desk.now += 5000
    desk.fetch()
    settled = next(event["id"] for event in desk.events if event["k"] == "settled")
    damage(desk.folder, settled)
    desk.boot()
    desk.hello(*store_all(store, desk))
    desk.fetch()
    desk.ask("clear", code="JOURNAL")
    if desk.state == LOCKED:
        desk.open_lid()
        desk.tell("lid", False)
    if desk.state == SETTLED:
        desk.ask("finish")
    desk.play([1, 2, 3])
    desk.fetch()
    store_all(store, desk)
    store.close()
    assert desk.table.streak.count == 0
    assert [event["d"]["before"] for event in desk.events if event["k"] == "settled"][-1] == 1


def store_all(store: Any, desk: Desk) -> tuple[int, int]:
    for event, link in zip(desk.events, desk.hashes, strict=True):
        assert store.take("U1", event, link, 1)
    last: tuple[int, int] = store.last("U1")
    return last
