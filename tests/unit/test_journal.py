"""The journal: what was written is read, whatever the power does; what was changed is found; and it never grows."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dragoneye import journal, round
from dragoneye.journal import Damaged, Journal
from dragoneye.keys import Key
from tests.unit.tables import Desk, tag_of

Json = dict[str, Any]


def initial() -> Json:
    return {"sum": 0, "kinds": []}


def fold(state: Json, record: Json) -> Json:
    return {"sum": state["sum"] + record["d"]["value"], "kinds": sorted({*state["kinds"], record["k"]})}


def fill(log: Any, count: int) -> None:
    for _ in range(count):
        number = log.last_id + 1
        log.append("odd" if number % 2 else "even", {"value": number, "note": "é\U0001f409" * (number % 3)}, 1, number)


KEY = bytes(range(32))
# The key of every journal in a test that asks for `small`.
keys: dict[str, bytes | None] = {"journal": None}


def new(folder: Path) -> Any:
    key = keys["journal"]
    return Journal(str(folder), fold, initial, None if key is None else Key(key))


def loaded(folder: Path) -> Any:
    log = new(folder)
    log.load()
    return log


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("j*.log"))


def lines_of(log: Any) -> list[tuple[str, str, str]]:
    return [log.line(number) for number in range(log.first_id, log.last_id + 1)]


@pytest.fixture(params=[None, KEY], ids=["untagged", "tagged"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of four records, three of them; with a journal key and without one."""
    monkeypatch.setitem(keys, "journal", request.param)
    monkeypatch.setattr(journal, "SEGMENT_RECORDS", 4)
    monkeypatch.setattr(journal, "SEGMENTS_MAX", 3)


# -- writing and reading ---------------------------------------------------------------------------------------------


def test_stats_count_what_is_there_and_what_was_written(tmp_path: Path, small: None) -> None:
    fill(loaded(tmp_path), 3)
    log = loaded(tmp_path)
    assert log.stats() == {"records": 3, "segments": 1, "room": 9, "appends": 0}
    fill(log, 3)
    assert log.stats() == {"records": 6, "segments": 2, "room": 6, "appends": 3}
    fill(log, 6)
    log.ack(12)
    fill(log, 1)
    assert log.stats() == {"records": 9, "segments": 3, "room": 11, "appends": 10}


def test_an_empty_journal_knows_nothing(tmp_path: Path) -> None:
    log = loaded(tmp_path / "new")
    assert (log.last_id, log.first_id, log.state, log.head) == (0, 1, initial(), journal.GENESIS)
    assert log.line(0) is None
    assert log.line(1) is None
    assert log.room == journal.SEGMENTS_MAX * journal.SEGMENT_RECORDS


@pytest.mark.parametrize("count", [1, 63, 64, 65, 128, 129, 200])
def test_what_was_written_is_there_after_a_restart(tmp_path: Path, count: int) -> None:
    log = loaded(tmp_path)
    fill(log, count)
    again = loaded(tmp_path)
    for one in (log, again):
        assert one.last_id == count
        assert one.state["sum"] == count * (count + 1) // 2
        assert [json.loads(text)["id"] for text, *_ in lines_of(one)] == list(range(1, count + 1))
    assert (again.head, again.room, again.first_id) == (log.head, log.room, log.first_id)
    assert lines_of(again) == lines_of(log)
    assert len(files(tmp_path)) == (count + 63) // 64


def test_a_record_is_what_was_given(tmp_path: Path) -> None:
    log = loaded(tmp_path)
    record = log.append("void", {"value": 3, "reason": "é"}, 7, 12345)
    assert record == {"id": 1, "k": "void", "b": 7, "t": 12345, "d": {"value": 3, "reason": "é"}}
    assert json.loads(log.line(1)[0]) == record


def test_the_records_alone_are_a_chain_from_the_beginning(tmp_path: Path) -> None:
    log = loaded(tmp_path)
    fill(log, 150)
    previous = journal.GENESIS
    for text, stored, _ in lines_of(log):
        assert journal.chain(previous, text) == stored
        previous = stored
    assert previous == log.head


def test_records_are_read_in_any_order_and_between_writes(tmp_path: Path, small: None) -> None:
    log = loaded(tmp_path)
    fill(log, 12)
    expected = lines_of(log)
    dice = random.Random(3)
    for _ in range(300):
        number = dice.randint(1, 12)
        assert log.line(number) == expected[number - 1]
    log.ack(12)
    for number in range(13, 60):
        fill(log, 1)
        log.ack(number)
        assert json.loads(log.line(number)[0])["id"] == number
        oldest = json.loads(log.line(log.first_id)[0])
        assert oldest["id"] == log.first_id


def test_what_is_not_here_is_none(tmp_path: Path, small: None) -> None:
    log = loaded(tmp_path)
    fill(log, 12)
    log.ack(12)
    fill(log, 1)
    assert log.first_id == 5
    assert [log.line(number) is None for number in (-1, 0, 4, 5, 13, 14)] == [True, True, True, False, False, True]


def busy(desk: Desk) -> None:
    """Rounds with all that may come between their records."""
    desk.hello()
    desk.play([4, 4, 4], {1: {"bonus": 100}}, shaker=3)
    desk.tell("service", True)
    desk.ask("open", shaker=2)
    desk.ask("bets", position=1, wagers={"bonus": 50})
    desk.roll([4, 4, 4])
    desk.tell("set_fault", "READER", "no answer")
    desk.ask("clear", code="READER")
    desk.open_lid()
    desk.tell("lid", False)
    desk.ask("finish")
    desk.wait(10_000)
    desk.play([1, 2, 3], shaker=4)
    desk.boot()
    desk.hello()
    desk.ask("open", shaker=1)
    desk.boot()
    desk.hello()
    desk.play([1, 2, 3], {2: {"odd": 100}}, shaker=5)
    desk.ask("open", shaker=6)


def test_what_a_result_supersedes_need_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    busy(Desk(tmp_path / "all", "house"))
    [segment] = files(tmp_path / "all")
    lines = segment.read_bytes().splitlines(keepends=True)
    (tmp_path / "part").mkdir()
    parsed: list[object] = []
    loads = json.loads

    def counted(text: Any) -> Any:
        parsed.append(text)
        return loads(text)

    monkeypatch.setattr("json.loads", counted)
    for most in (2, journal.WAITING_MAX):
        monkeypatch.setattr(journal, "WAITING_MAX", most)
        for count in range(1, len(lines) + 1):
            (tmp_path / "part" / segment.name).write_bytes(b"".join(lines[:count]))
            logs = []
            for superseded in ((), round.SUPERSEDED):
                parsed.clear()
                logs.append(Journal(str(tmp_path / "part"), round.fold, round.initial, None, superseded))
                logs[-1].load()
            assert vars(logs[1]) == {**vars(logs[0]), "_kinds": logs[1]._kinds}
    assert b'"k":"opened"' in lines[-1]
    assert 3 < len(parsed) < len(lines) - 5


def test_a_record_that_waited_and_cannot_be_read_is_damage(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    desk.play([1, 2, 3], {2: {"odd": 100}})
    last = desk.journal.last_id
    text = f'{{"id":{last + 1},"k":"opened","b":1,"t":5,"d":'
    with files(tmp_path)[-1].open("a") as file:
        file.write(f"{text} {journal.chain(desk.journal.head, text)}\n")
    log = Journal(str(tmp_path), round.fold, round.initial, None, round.SUPERSEDED)
    with pytest.raises(Damaged, match=f"segment 1, line {last + 2}: "):
        log.load()
    assert (log.last_id, log.state) == (last, desk.journal.state)


def test_the_head_of_each_segment_is_the_fold_of_all_before(tmp_path: Path, small: None) -> None:
    log = loaded(tmp_path)
    fill(log, 11)
    for path in files(tmp_path):
        head = json.loads(path.read_text().splitlines()[0][:-33])
        first = int(path.stem[1:])
        assert head["first"] == first
        assert head["state"]["sum"] == first * (first - 1) // 2
        assert head["prev"] == (log.line(first - 1)[1] if first > 1 else journal.GENESIS)


def test_a_boot_reads_the_newest_segment_only(tmp_path: Path, small: None) -> None:
    log = loaded(tmp_path)
    fill(log, 10)
    for path in files(tmp_path)[:-1]:
        path.write_bytes(b"\xff" * 100)
    again = loaded(tmp_path)
    assert (again.last_id, again.state, again.head) == (10, log.state, log.head)


# -- tags ------------------------------------------------------------------------------------------------------------


def test_each_record_has_the_keyed_tag_of_its_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(keys, "journal", KEY)
    log = loaded(tmp_path)
    fill(log, 130)
    for one in (log, loaded(tmp_path)):
        for _text, stored, tag in lines_of(one):
            assert tag == tag_of(stored, KEY)


def test_a_key_that_comes_goes_or_is_another_leaves_old_lines_sound(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags: list[str] = []
    for key in (None, KEY, bytes(32), None, KEY):
        monkeypatch.setitem(keys, "journal", key)
        log = loaded(tmp_path)
        assert [tag for *_, tag in lines_of(log)] == tags
        for _ in range(2):
            fill(log, 1)
            tags.append("" if key is None else tag_of(log.head, key))
        assert [tag for *_, tag in lines_of(log)] == tags
    assert loaded(tmp_path).state["sum"] == 55


def test_a_tag_that_is_none_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(keys, "journal", KEY)
    fill(loaded(tmp_path), 3)
    path = files(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-3] + b'"}\n')
    with pytest.raises(Damaged, match="segment 1, line 4: the tag is not hexadecimal"):
        loaded(tmp_path)


# -- the bound -------------------------------------------------------------------------------------------------------


def test_it_never_grows_beyond_its_bound_while_a_host_acknowledges(tmp_path: Path, small: None) -> None:
    log = loaded(tmp_path)
    for number in range(1, 200):
        fill(log, 1)
        log.ack(number)
        assert len(files(tmp_path)) <= 3
        assert log.room >= 4
    assert [path.name for path in files(tmp_path)] == ["j000000189.log", "j000000193.log", "j000000197.log"]


@pytest.mark.parametrize("acked", range(13))
def test_room_is_what_fits_without_losing_what_is_not_acknowledged(tmp_path: Path, small: None, acked: int) -> None:
    log = loaded(tmp_path)
    fill(log, 12)
    log.ack(acked)
    room = log.room
    assert room == acked // 4 * 4 - (4 if acked == 12 else 0)
    fill(log, room)
    # A segment that was still being written could not be counted as one that may go.
    assert log.room == (4 if acked == 12 else 0)
    assert len(files(tmp_path)) <= 3
    assert log.first_id <= acked + 1
    assert loaded(tmp_path).first_id == log.first_id


def test_room_counts_down_record_by_record(tmp_path: Path, small: None) -> None:
    log = loaded(tmp_path)
    for room in range(12, 0, -1):
        assert log.room == room
        fill(log, 1)
    assert log.room == 0


def test_what_no_host_has_acknowledged_is_never_removed(tmp_path: Path, small: None) -> None:
    log = loaded(tmp_path)
    fill(log, 12)
    log.ack(3)
    with contextlib.suppress(OSError):
        fill(log, 4)
    assert log.first_id == 1
    assert log.room <= 0
    assert [json.loads(text)["id"] for text, *_ in lines_of(log)] == list(range(1, log.last_id + 1))
    log.ack(4)
    fill(log, 1)
    assert log.first_id == 5


def test_an_acknowledgement_never_goes_back_nor_beyond_the_end(tmp_path: Path) -> None:
    log = loaded(tmp_path)
    fill(log, 5)
    for asked, acked in ((3, 3), (2, 3), (-1, 3), (6, 3), (10**9, 3), (5, 5), (0, 5)):
        log.ack(asked)
        assert log.acked == acked


# -- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 4, 5, 7])
def test_a_cut_at_every_byte_of_the_last_segment_leaves_the_last_whole_record(
    tmp_path: Path, small: None, count: int
) -> None:
    folder = tmp_path / "journal"
    fill(loaded(folder), count)
    whole = {path: path.read_bytes() for path in files(folder)}
    last = files(folder)[-1]
    expected = lines_of(loaded(folder))
    data = whole[last]
    for length in range(len(data) + 1):
        for path in files(folder):
            path.unlink()
        for path, content in whole.items():
            path.write_bytes(content)
        last.write_bytes(data[:length])
        log = loaded(folder)
        kept = int(last.stem[1:]) - 1 + max(0, data[:length].count(b"\n") - 1)
        if keys["journal"] and re.match(rb".* [0-9a-f]{32} \Z", data[:length].splitlines()[-1:][0] if length else b""):
            # All but the tag has landed: that is made up for.
            kept += 1
        assert log.last_id == kept
        assert log.state["sum"] == kept * (kept + 1) // 2
        # It goes on from there, and a second start finds no trace of the cut.
        fill(log, 1)
        again = loaded(folder)
        assert again.last_id == kept + 1
        assert lines_of(again)[:kept] == expected[:kept]
        assert again.line(kept + 1)[1] == journal.chain(
            log.line(kept)[1] if kept else journal.GENESIS, again.line(kept + 1)[0]
        )
        assert not list(folder.glob("*.new"))


def test_a_changed_byte_anywhere_is_found_or_changes_nothing(tmp_path: Path, small: None) -> None:
    folder = tmp_path / "journal"
    log = loaded(folder)
    fill(log, 11)
    expected = lines_of(log)
    paths = files(folder)
    assert len(paths) == 3
    found = harmless = tags = 0
    for path in paths:
        data = path.read_bytes()
        for place in range(len(data)):
            for mask in (0x01, 0x20, 0x80):
                path.write_bytes(data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :])
                where = f"{path.name}, byte {place}"
                log = new(folder)
                said = ""
                try:
                    log.load()
                    got = lines_of(log)
                except Damaged as damage:
                    said = str(damage)
                if said:
                    found += 1
                    assert str(int(path.stem[1:])) in said, where
                    continue
                if got != expected and [one[:2] for one in got] == [one[:2] for one in expected]:
                    # A digit of a tag: the host's to find.
                    line = data[: place + len(data[place:].partition(b"\n")[0])].rpartition(b"\n")[2]
                    assert line[-17:-16] == b" ", where
                    assert place > data.index(line) + len(line) - 17, where
                    tags += 1
                    continue
                if path == paths[-1] and place == len(data) - 1:
                    # The newline at the very end: may be taken for a line that was cut short.
                    assert got[:10] == expected[:10], where
                    path.write_bytes(data)
                    continue
                # In the head of an older segment (nothing reads its state again), or at its very end.
                assert got == expected, where
                assert (log.head, log.last_id) == (expected[-1][1], 11), where
                assert path != paths[-1], where
                assert place <= data.index(b"\n") or place == len(data) - 1, where
                harmless += 1
        path.write_bytes(data)
    assert found > harmless > 0
    assert (tags > 0) == bool(keys["journal"])


@pytest.mark.parametrize("what", ["lost", "swapped", "doubled", "empty"])
def test_records_that_are_lost_swapped_or_doubled_are_found(tmp_path: Path, small: None, what: str) -> None:
    fill(loaded(tmp_path), 10)
    path = files(tmp_path)[1]
    lines = path.read_bytes().splitlines(keepends=True)
    changed = {
        "lost": lines[:2] + lines[3:],
        "swapped": [lines[0], lines[2], lines[1], *lines[3:]],
        "doubled": [*lines[:2], *lines[1:]],
        "empty": [],
    }[what]
    path.write_bytes(b"".join(changed))
    log = loaded(tmp_path)
    with pytest.raises(Damaged, match="in segment 5"):
        lines_of(log)
    # What stands in other segments can be read all the same.
    assert json.loads(log.line(4)[0])["id"] == 4
    assert json.loads(log.line(9)[0])["id"] == 9
    # In the newest segment, the boot finds it.
    files(tmp_path)[-1].unlink()
    if what != "empty":
        with pytest.raises(Damaged, match="segment 5, line "):
            loaded(tmp_path)


def test_a_segment_that_is_missing_is_found(tmp_path: Path, small: None) -> None:
    fill(loaded(tmp_path), 10)
    files(tmp_path)[1].unlink()
    log = loaded(tmp_path)
    with pytest.raises(Damaged, match="record 5 in segment 1"):
        log.line(5)
    assert json.loads(log.line(9)[0])["id"] == 9


def test_segments_under_each_others_names_are_found(tmp_path: Path, small: None) -> None:
    fill(loaded(tmp_path), 12)
    first, second, third = files(tmp_path)
    contents = first.read_bytes(), third.read_bytes()
    second.write_bytes(contents[0])
    with pytest.raises(Damaged, match="record 5 in segment 5: another record stands there"):
        loaded(tmp_path).line(5)
    third.write_bytes(contents[0])
    with pytest.raises(Damaged, match="segment 9, line 1: the head names record 1"):
        loaded(tmp_path)


def test_a_damage_is_named_and_what_stands_before_it_is_kept(tmp_path: Path) -> None:
    fill(loaded(tmp_path), 10)
    path = files(tmp_path)[0]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], lines[6].replace(b'"value":6', b'"value":7'), *lines[7:]]))
    log = new(tmp_path)
    with pytest.raises(Damaged) as raised:
        log.load()
    assert str(raised.value) == "segment 1, line 7: the hash differs"
    assert (log.last_id, log.state["sum"]) == (5, 15)
    assert [json.loads(log.line(number)[0])["id"] for number in range(1, 6)] == [1, 2, 3, 4, 5]


# -- a new beginning -------------------------------------------------------------------------------------------------


def test_a_restart_sets_all_aside_and_goes_on_with_state_and_ids(tmp_path: Path, small: None) -> None:
    log = loaded(tmp_path)
    fill(log, 10)
    log.restart(40)
    assert (log.last_id, log.first_id, log.head) == (40, 41, journal.GENESIS)
    assert (log.line(5), log.line(40)) == (None, None)
    record = log.append("restart", {"value": 1}, 2, 3)
    assert record["id"] == 41
    assert log.line(41)[1] == journal.chain(journal.GENESIS, log.line(41)[0])
    again = loaded(tmp_path)
    assert (again.last_id, again.state["sum"], again.first_id) == (41, 56, 41)
    assert len(list(tmp_path.glob("*.bad"))) == 3
    again.restart(50)
    aside = ["j000000001.bad", "j000000005.bad", "j000000009.bad", "j000000041.bad"]
    assert sorted(path.name for path in tmp_path.glob("*.bad")) == aside


def test_what_lies_aside_goes_only_when_somebody_says_so_and_the_oldest_first(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "ASIDE_MAX", 4)
    log = loaded(tmp_path)
    fill(log, 10)
    log.restart(40)
    log.append("restart", {"value": 1}, 2, 3)
    log.restart(50)
    log.append("restart", {"value": 1}, 2, 3)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len([name for name in before if name.endswith(".bad")]) == 4
    with pytest.raises(OSError, match="4 segments lie aside already"):
        log.restart(60)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    # The journal goes on as if nothing had been asked.
    log.append("after", {"value": 1}, 2, 3)
    log.restart(60, drop=True)
    aside = ["j000000005.bad", "j000000009.bad", "j000000041.bad", "j000000051.bad"]
    assert sorted(path.name for path in tmp_path.glob("*.bad")) == aside
    assert (tmp_path / "j000000041.bad").read_bytes() == before["j000000041.bad"]
    assert loaded(tmp_path).last_id == 60


# -- a flash that refuses --------------------------------------------------------------------------------------------


class Refusing(io.BytesIO):
    """A file that takes nothing and says so when it is closed, as a full file system may."""

    def close(self) -> None:
        super().close()
        raise OSError(28, "no space left")


def refuse_at_open(path: str, mode: str = "r") -> Any:
    if "r" in mode:
        return open(path, mode)
    raise OSError(28, "no space left")


def refuse_at_close(path: str, mode: str = "r") -> Any:
    return open(path, mode) if "r" in mode else Refusing()


@pytest.mark.parametrize("refuse", [refuse_at_open, refuse_at_close])
@pytest.mark.parametrize("count", [0, 3, 4, 12])
def test_a_write_that_is_refused_leaves_the_journal_as_it_was(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch, refuse: Callable[..., Any], count: int
) -> None:
    log = loaded(tmp_path)
    fill(log, count)
    log.ack(count)
    before = (log.last_id, log.head, log.state)
    with monkeypatch.context() as patch:
        patch.setattr(journal, "open", refuse, raising=False)
        for _ in range(3):
            with pytest.raises(OSError, match="no space left"):
                fill(log, 1)
    assert (log.last_id, log.head, log.state) == before
    again = loaded(tmp_path)
    assert (again.last_id, again.head, again.state) == before
    fill(log, 6)
    again = loaded(tmp_path)
    assert again.last_id == count + 6
    assert lines_of(again) == lines_of(log)


def test_a_read_that_is_refused_passes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = loaded(tmp_path)
    fill(log, 3)
    expected = log.line(2)
    os.rename(files(tmp_path)[0], tmp_path / "away")
    with pytest.raises(OSError, match="No such file"):
        log.line(2)
    os.rename(tmp_path / "away", tmp_path / "j000000001.log")
    assert log.line(2) == expected


# -- a walk ----------------------------------------------------------------------------------------------------------


class AnyJournal(RuleBasedStateMachine):
    """Writes, acknowledgements, restarts and cuts, against a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(journal, "SEGMENT_RECORDS", 4)
        self.patch.setattr(journal, "SEGMENTS_MAX", 3)
        self.folder = tempfile.TemporaryDirectory()
        self.log = loaded(Path(self.folder.name))
        self.told: list[Json] = []

    def teardown(self) -> None:
        self.patch.undo()
        self.folder.cleanup()

    @precondition(lambda self: self.log.room > 0)
    @rule(value=st.integers(-(2**40), 2**40))
    def append(self, value: int) -> None:
        room = self.log.room
        self.told.append(self.log.append("odd", {"value": value}, 1, 1))
        assert self.log.room >= room - 1

    @rule(back=st.integers(0, 6))
    def ack(self, back: int) -> None:
        before = self.log.acked
        self.log.ack(len(self.told) - back)
        assert self.log.acked == max(before, len(self.told) - back)

    @rule()
    def start_again(self) -> None:
        acked = self.log.acked
        self.log = loaded(Path(self.folder.name))
        self.log.acked = acked

    @rule(lost=st.integers(1, 30))
    def lose_the_end(self, lost: int) -> None:
        """The power failed before the last write was whole: it was never answered for."""
        if self.log.last_id in (0, self.log.acked):
            return
        path = files(Path(self.folder.name))[-1]
        lines = path.read_bytes().splitlines(keepends=True)
        if len(lines) < 2:
            return
        path.write_bytes(b"".join(lines[:-1]) + lines[-1][: -min(lost, len(lines[-1]))])
        self.told.pop()
        self.start_again()

    @invariant()
    def it_is_the_list(self) -> None:
        log = self.log
        assert log.last_id == len(self.told)
        assert log.state["sum"] == sum(record["d"]["value"] for record in self.told)
        assert log.first_id <= log.acked + 1
        assert len(files(Path(self.folder.name))) <= 3
        for number in {log.first_id, (log.first_id + log.last_id) // 2, log.last_id} - {0}:
            line = log.line(number)
            assert (json.loads(line[0]) if line else None) == (
                self.told[number - 1] if number <= len(self.told) else None
            )


TestAnyJournal = AnyJournal.TestCase
TestAnyJournal.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
