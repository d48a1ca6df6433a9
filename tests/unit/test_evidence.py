"""The record as evidence: each thing that can be done to it afterwards is done to a real one, and found."""

from __future__ import annotations

import contextlib
import copy
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoneye.errors import BadInput
from dragoneye.journal import GENESIS, chain
from dragoneye.keys import Key, name_of
from dragoneye.rules.packs import load
from dragoneye.text import dumps
from host_tools.audit import Audit, audit, check_head, compare
from host_tools.dealer import Dealer, Plan
from host_tools.device import Device
from host_tools.link import Link
from host_tools.store import Store
from tests import lossy
from tests.unit.conftest import Tablectl
from tests.unit.tables import Desk, tag_of

NJ = load("nj")
UID, OTHER = "E6605481DB000001", "E6605481DB000002"
KEY, OTHER_KEY, NEW_KEY = bytes(range(32)), bytes(range(32, 64)), bytes(range(64, 96))
KEYS = {UID: {name_of(KEY): Key(KEY), name_of(NEW_KEY): Key(NEW_KEY)}, OTHER: {name_of(OTHER_KEY): Key(OTHER_KEY)}}
NO_KEYS: dict[str, dict[str, Key]] = {}

# A record, its hash and its tag.
Row = tuple[dict[str, Any], str, str]
Rows = list[Row]


def provision(desk: Desk, key: bytes) -> None:
    """The table's journal key from its next start on."""
    desk.key, desk.identity["key_id"] = key, name_of(key)
    desk.boot()
    desk.hello(desk.known, 0)


def play(folder: Path, uid: str, key: bytes | None, dice: list[int]) -> Rows:
    """What a table tells of three rounds; `dice` fall in the second one."""
    desk = Desk(folder, key=key, uid=uid, key_id=key and name_of(key), pack_hash=NJ.hash())
    desk.hello()
    for each in ([1, 2, 3], dice, [6, 5, 6]):
        desk.play(each, {2: {"match": 500, "odd": 100}})
        desk.tell("lid", False)
        desk.now += 1000
        desk.fetch()
    return list(zip(desk.events, desk.hashes, desk.tags, strict=True))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """A real controller's records, hashes and tags."""
    return play(tmp_path_factory.mktemp("journal"), UID, KEY, [4, 4, 2])


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The same rounds of another table, with its own key."""
    return play(tmp_path_factory.mktemp("other"), OTHER, OTHER_KEY, [4, 4, 2])


def keep(path: Path, rows: Rows, uid: str = UID) -> Path:
    """The record that a host has of these."""
    store = Store(path)
    for record, link, tag in rows:
        assert store.take(uid, record, link, 1, tag)
    store.close()
    return path


@pytest.fixture
def kept(tmp_path: Path, rows: Rows) -> Path:
    return keep(tmp_path / "rounds.db", rows)


def audited(path: Path, keys: Any = None) -> Audit:
    store = Store(path)
    try:
        return audit(store, [NJ], held=KEYS if keys is None else keys)
    finally:
        store.close()


def found(path: Path, keys: Any = None) -> list[tuple[int, str]]:
    """(event, words) of what does not fit."""
    return [(one.event, one.what) for one in audited(path, keys).findings]


def write(path: Path, *queries: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for query in queries:
            connection.execute(query)


def event_of(rows: Rows, kind: str, number: int) -> int:
    """The id of the round's record of this kind."""
    return next(
        int(record["id"]) for record, _link, _tag in rows if record["k"] == kind and record["d"].get("round") == number
    )


# -- what is sound ---------------------------------------------------------------------------------------------------


def test_a_sound_record_is_proved_to_its_end(kept: Path, rows: Rows) -> None:
    done = audited(kept)
    assert (done.findings, done.notes) == ([], [])
    [proof] = done.proofs
    assert proof.tagged == proof.fits == proof.proved == len(rows)
    assert proof.head == f"{len(rows)}:{rows[-1][1]}"


def test_without_the_key_it_says_so(kept: Path, rows: Rows) -> None:
    for keys in (NO_KEYS, {UID: {name_of(NEW_KEY): Key(NEW_KEY)}}):
        done = audited(kept, keys)
        note = f"{len(rows)} tags were not checked: the journal key {name_of(KEY)} is not here"
        assert note in [one.what for one in (done.findings or done.notes)]
        # Who says that he has the table's keys, and has not the last one, has proved nothing.
        assert bool(done.findings) == bool(keys)
        assert done.proofs[0].proved == 0


def test_keys_that_come_and_are_rotated_leave_one_record(tmp_path: Path) -> None:
    """Before there was a key, under the first, under the second, and a journal begun anew."""
    desk = Desk(tmp_path / "journal", uid=UID)
    desk.hello()
    for key in (None, KEY, NEW_KEY):
        if key:
            provision(desk, key)
        desk.play([1, 2, 3])
        desk.tell("lid", False)
        desk.fetch()
    shutil.rmtree(tmp_path / "journal")
    desk.boot()
    desk.hello(desk.known, 3, last_over=3, last_hash=desk.hashes[-1])
    desk.play([5, 6, 5])
    desk.fetch()
    path = keep(tmp_path / "rounds.db", list(zip(desk.events, desk.hashes, desk.tags, strict=True)))
    done = audited(path)
    assert (done.findings, [note.what for note in done.notes]) == ([], [])
    [proof] = done.proofs
    assert proof.proved == desk.known
    assert proof.fits == proof.tagged == len(desk.events) - next(i for i, tag in enumerate(desk.tags) if tag)
    # With the newest key alone, what hangs on it is proved all the same.
    newest = {UID: {name_of(NEW_KEY): Key(NEW_KEY)}}
    done = audited(path, newest)
    assert (done.findings, done.proofs[0].proved) == ([], desk.known)
    assert [note.what for note in done.notes] == [
        f"{proof.tagged - done.proofs[0].fits} tags were not checked: the journal key {name_of(KEY)} is not here"
    ]
    # With the first one alone it ends too early.
    first = {UID: {name_of(KEY): Key(KEY)}}
    assert "is not here" in audited(path, first).findings[-1].what


# -- what can be done to it: by an attacker who changes what is there -------------------------------------------------


@pytest.mark.parametrize("keys", [KEYS, NO_KEYS], ids=["with the key", "without it"])
@pytest.mark.parametrize("what", ["changed", "removed", "reordered", "taken", "another table", "cut off"])
def test_what_is_done_to_the_database_is_found(
    tmp_path: Path, kept: Path, rows: Rows, others: Rows, what: str, keys: Any
) -> None:
    settled = event_of(rows, "settled", 2)
    door = settled + 1
    keep(kept, others, OTHER)
    first = settled
    if what == "changed":
        write(kept, f"UPDATE events SET body = replace(body, '\"total\":10', '\"total\":11') WHERE id = {settled}")
    elif what == "removed":
        write(kept, f"DELETE FROM events WHERE uid = '{UID}' AND id = {door}")
        first = door + 1
    elif what == "reordered":
        write(
            kept,
            f"UPDATE events SET id = 9999 WHERE uid = '{UID}' AND id = {door}",
            f"UPDATE events SET id = {door} WHERE uid = '{UID}' AND id = {door + 1}",
            f"UPDATE events SET id = {door + 1} WHERE uid = '{UID}' AND id = 9999",
        )
        first = door
    elif what == "taken":
        names = ("body", "link", "tag", "key_id")
        values = ", ".join(f"{name} = (SELECT {name} FROM events WHERE uid = '{OTHER}' AND id = 2)" for name in names)
        write(kept, f"UPDATE events SET {values} WHERE uid = '{UID}' AND id = 2")
        # The tables differ from their first event on, so do the hashes.
        first = 2
    elif what == "another table":
        for table in ("rounds", "events", "heads"):
            write(kept, f"DELETE FROM {table} WHERE uid = '{UID}'", f"UPDATE {table} SET uid = '{UID}'")
        first = 1
    else:
        write(
            kept,
            f"DELETE FROM rounds WHERE uid = '{UID}' AND number = 3",
            f"DELETE FROM events WHERE uid = '{UID}' AND id > {door}",
        )
        first = door
    done = audited(kept, keys)
    mine = [(one.event, one.what) for one in done.findings if one.table == UID]
    assert mine[0][0] == first, mine[:3]
    # Later tags fit the hashes that were left as they were: nothing is proved by them.
    [proof] = [one for one in done.proofs if one.table == UID]
    assert proof.proved <= (first if what == "cut off" else first - 1)


def test_a_head_that_was_removed_is_missed(kept: Path) -> None:
    write(kept, "DELETE FROM heads")
    assert found(kept)[0][1] == "what was acknowledged to the table last is not in the record: it was removed"


def test_a_table_that_was_removed_is_missed(kept: Path, others: Rows) -> None:
    keep(kept, others, OTHER)
    assert found(kept) == []
    write(
        kept, *(f"DELETE FROM {table} WHERE uid = '{OTHER}'" for table in ("events", "rounds", "dice_sets", "firsts"))
    )
    [(event, what)] = found(kept)
    assert event == len(others)
    assert f"of which {len(others)}:{others[-1][1]} was acknowledged at " in what


def cut(path: Path, first: int) -> None:
    write(
        path,
        f"DELETE FROM rounds WHERE event < {first}",
        f"DELETE FROM events WHERE id < {first}",
    )


def test_a_beginning_that_was_cut_off_is_missed(kept: Path, rows: Rows) -> None:
    first = event_of(rows, "opened", 2)
    cut(kept, first)
    assert [(event, what.partition(", and ")[0]) for event, what in found(kept)] == [(first, "the record begins here")]
    # With the row that says where it was begun nothing in it tells; what is proved is said, and a head tells.
    write(kept, f"UPDATE firsts SET event = {first}")
    assert found(kept) == []
    [proof] = audited(kept).proofs
    assert (proof.since, proof.proved) == (first + 1, len(rows))
    store = Store(kept)
    done = Audit()
    check_head(store, done, None, 2, rows[1][1])
    store.close()
    assert "this event is not in the record: it was removed" in done.findings[0].what


def test_what_the_first_event_says_is_not_proved_where_the_one_before_it_is_gone(
    tmp_path: Path, rows: Rows, tablectl: Tablectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = event_of(rows, "opened", 2)
    store = Store(tmp_path / "rounds.db")
    for record, link, tag in rows[first - 1 :]:
        assert store.take(UID, record, link, first, tag)
    store.close()
    write(tmp_path / "rounds.db", f"UPDATE events SET body = replace(body, '\"t\":', '\"t\": ') WHERE id = {first}")
    done = audited(tmp_path / "rounds.db")
    assert done.findings == []
    assert "without them nothing proves what this event says" in done.notes[0].what
    assert (done.proofs[0].since, done.proofs[0].proved) == (first + 1, len(rows))
    monkeypatch.setattr("host_tools.audit.held_keys", lambda store: KEYS)
    assert f"proved from event {first + 1} to its end to be as the table wrote it" in tablectl("audit").out


# -- by one who makes all hashes anew --------------------------------------------------------------------------------


def relinked(rows: Rows, tags: Callable[[Row, int], str]) -> Rows:
    """The records under ids and hashes that fit; `tags` gives each one's tag, of the row and its place."""
    made: Rows = []
    link = GENESIS
    for place, row in enumerate(rows):
        record = dict(row[0], id=place + 1)
        link = chain(link, dumps(record))
        made.append((record, link, tags((record, link, row[2]), place)))
    return made


def forged(rows: Rows, what: str) -> tuple[Rows, int]:
    """(the records as the attacker wants them, the id of the first that is not as it was)."""
    mine = copy.deepcopy(rows)
    door = event_of(rows, "settled", 2)
    if what == "changed":
        mine[door - 1][0]["d"]["note"] = "x"
        return mine, door
    if what == "removed":
        # Both edges of the lid.
        return mine[:door] + mine[door + 1 :], door + 1
    if what == "inserted":
        return [*mine[:door], copy.deepcopy(mine[door]), *mine[door:]], door + 2
    one, other = mine[door][0], mine[door + 1][0]
    one["k"], other["k"] = other["k"], one["k"]
    one["d"], other["d"] = other["d"], one["d"]
    return mine, door + 1


TAGS: dict[str, Callable[[Rows], Callable[[Row, int], str]]] = {
    "kept with the record": lambda rows: lambda row, place: row[2],
    "kept in their place": lambda rows: lambda row, place: rows[min(place, len(rows) - 1)][2],
    "made up": lambda rows: lambda row, place: tag_of(row[1], b"guess" * 6),
    "of another table": lambda rows: lambda row, place: tag_of(row[1], OTHER_KEY),
}


@pytest.mark.parametrize("tags", TAGS)
@pytest.mark.parametrize("what", ["changed", "removed", "inserted", "reordered"])
def test_hashes_made_anew_do_not_help_without_the_key(tmp_path: Path, rows: Rows, what: str, tags: str) -> None:
    mine, first = forged(rows, what)
    made = relinked(mine, TAGS[tags](rows))
    if tags in ("made up", "of another table"):
        # He leaves what he did not touch.
        made[: first - 1] = rows[: first - 1]
    path = keep(tmp_path / "forged.db", made)
    told = found(path)
    assert told[0][0] == first, told[:3]
    assert told[0][1].startswith("its tag is not the one that the table's journal key gives")
    assert f"the last event that is proved is {first - 1}" in told[0][1]
    # One change is not told as a hundred.
    assert len([what for _event, what in told if "tag" in what]) == 1
    # Without the key nobody could tell; and that is said.
    done = audited(path, NO_KEYS)
    assert "tags were not checked: the journal key" in done.notes[-1].what


@pytest.mark.parametrize("what", ["changed", "removed", "inserted", "reordered"])
def test_tags_that_are_taken_away_are_missed(tmp_path: Path, rows: Rows, what: str) -> None:
    mine, first = forged(rows, what)
    made = relinked(mine, lambda row, place: "")
    path = keep(tmp_path / "all.db", made)
    assert "no event has a tag, and a journal key of this table is here" in found(path)[0][1]
    made[: first - 1] = rows[: first - 1]
    path = keep(tmp_path / "some.db", made)
    for keys in (KEYS, NO_KEYS):
        assert found(path, keys)[0][0] == first
        assert "from here on no event has a tag, though earlier ones have" in found(path, keys)[0][1]


def test_a_key_that_the_table_never_had_proves_nothing(tmp_path: Path, rows: Rows) -> None:
    """He lets the table start with a key of his own, from the event on that he changes."""
    mine, first = forged(rows, "changed")
    mine[first - 1] = ({**mine[0][0], "d": {**mine[0][0]["d"], "key_id": name_of(OTHER_KEY)}, "b": 9}, "", "")
    mine[first:] = [({**record, "b": 9}, "", "") for record, _link, _tag in mine[first:]]
    made = relinked(mine, lambda row, place: tag_of(row[1], OTHER_KEY))
    made[: first - 1] = rows[: first - 1]
    path = tmp_path / "own.db"
    keep(path, made[:first])
    assert f"the journal key {name_of(OTHER_KEY)} is not here" in found(path)[0][1]
    assert audited(path).proofs[0].proved == first - 1


def test_a_round_played_again_with_other_dice_by_the_firmware_itself_is_found(tmp_path: Path, rows: Rows) -> None:
    """Everything is as a table would have told it: hashes, settlements, streak. The dice are not those that fell."""
    again = play(tmp_path / "again", UID, bytes(32), [4, 4, 4])
    assert [record["k"] for record, _link, _tag in again] == [record["k"] for record, _link, _tag in rows]
    first = next(place for place in range(1, len(rows)) if again[place][0]["d"] != rows[place][0]["d"])
    assert again[first][0]["k"] == "locked"
    made = relinked([*rows[:first], *again[first:]], lambda row, place: rows[place][2])
    told = found(keep(tmp_path / "forged.db", made))
    assert told[0][0] == first + 1
    assert audited(keep(tmp_path / "again.db", made), NO_KEYS).findings == []


def test_what_was_removed_before_a_journal_began_anew_is_missed(tmp_path: Path, rows: Rows) -> None:
    desk = Desk(tmp_path / "journal", key=KEY, uid=UID, key_id=name_of(KEY))
    head = rows[-1]
    desk.hello(head[0]["id"], 3, last_over=3, last_hash=head[1])
    desk.play([1, 1, 2])
    desk.fetch()
    after = [row for row in zip(desk.events, desk.hashes, desk.tags, strict=True) if row[0]["id"] > head[0]["id"]]
    assert after[0][0]["k"] == "restart"
    assert found(keep(tmp_path / "whole.db", [*rows, *after])) == []
    for gone in (1, 4):
        path = keep(tmp_path / f"{gone}.db", [*rows[:-gone], *after])
        told = found(path)
        assert told[0][0] == after[0][0]["id"]
        assert "the table began its journal anew after the event with the hash" in told[0][1]


# -- an end that was cut off, heads and all --------------------------------------------------------------------------


def shortened(tmp_path: Path, rows: Rows) -> tuple[Path, int]:
    last = event_of(rows, "opened", 3) - 1
    return keep(tmp_path / "short.db", rows[:last]), last


def test_an_earlier_state_of_the_whole_record_is_known_by_a_head_that_was_noted(tmp_path: Path, rows: Rows) -> None:
    path, last = shortened(tmp_path, rows)
    assert found(path) == []
    store = Store(path)
    for event, link, words in (
        (len(rows), rows[-1][1], f"the record ends at event {last}: its end was cut off"),
        (last, rows[-1][1], f"its hash is {rows[last - 1][1]}; {rows[-1][1]} was noted elsewhere"),
        (last, rows[last - 1][1], ""),
    ):
        done = Audit()
        check_head(store, done, UID, event, link)
        assert bool(done.findings) == bool(words)
        assert all(words in one.what for one in done.findings)
    store.close()


class Wired(lossy.Board):
    """A board with a record of its own, for a link."""

    def link(self) -> Link:
        return Link(lossy.MemoryWire(self))


def play_on(board: Wired, store: Store, rounds: int) -> None:
    """A host plays so many rounds and stores what there is."""
    device = Device("memory", store, open_transport=lambda port: lossy.MemoryWire(board))
    for _round in range(rounds):
        Dealer(device, NJ, lossy.MemoryLid(board)).play(Plan(1, {1: {"match": 500}}, {}, []))
    device.wait_stored()
    # The last acknowledgement is under way.
    device.poll(1.0)
    device.close()


@pytest.fixture
def wired(tmp_path: Path) -> tuple[Wired, Store]:
    """A table that has played two rounds, and the record of a host that has stored all of it."""
    board = Wired(tmp_path / "board", random.Random(3))
    store = Store(tmp_path / "wired.db")
    play_on(board, store, 2)
    return board, store


def compared(wired: tuple[Wired, Store]) -> tuple[list[str], list[str]]:
    board, store = wired
    done = Audit()
    before = store.last("U1")
    assert compare(store, done, board.link()) == "U1"
    assert store.last("U1") == before
    assert "restart" not in [one["k"] for one in store.events("U1")]
    return [one.what for one in done.findings], [one.what for one in done.notes]


def test_the_tables_own_head_is_the_last_event(wired: tuple[Wired, Store]) -> None:
    assert compared(wired) == ([], [])
    wired[0].lid(True)
    wired[0].lid(False)
    assert compared(wired) == ([], ["the table has 2 events more, which were not fetched yet"])
    # It was asked, not told: its host goes on as before.
    assert wired[0].controller.journal.acked == wired[1].last("U1")[0]


def test_the_tables_own_head_shows_what_was_cut_off_changed_or_added(wired: tuple[Wired, Store]) -> None:
    board, store = wired
    last = store.last("U1")[0]
    path = Path(store.path)
    store.close()
    copies = {}
    for name in ("cut", "changed", "added"):
        copies[name] = Path(shutil.copy(path, path.with_name(f"{name}.db")))
    write(copies["cut"], f"DELETE FROM events WHERE id > {last - 3}")
    write(copies["changed"], f"UPDATE events SET link = '{'0' * 32}' WHERE id = {last}")
    write(
        copies["added"],
        "INSERT INTO events (uid, id, kind, boot, ticks, utc, body, link)"
        f" SELECT uid, {last + 1}, kind, boot, ticks, utc, body, link FROM events WHERE id = {last}",
    )
    said = {}
    for name, copied in copies.items():
        opened = Store(copied)
        said[name], _notes = compared((board, opened))
        opened.close()
    assert f"the table was told that its events up to {last} are stored: the end was cut off" in said["cut"][0]
    assert said["changed"][0].startswith(f"the table's own event {last} is another one")
    assert said["added"][0].startswith(f"the table's own journal ends at event {last}: what follows here was added")
    # And the table is none the worse.
    assert board.controller.journal.last_id == last


def test_a_copy_that_is_put_back_gets_what_it_misses_from_the_table(wired: tuple[Wired, Store], tmp_path: Path) -> None:
    board, store = wired
    store.backup(tmp_path / "copy.db")
    play_on(board, store, 1)
    whole = list(store.stream_events("U1", raw=True))
    restored = Store(tmp_path / "copy.db")
    findings, _notes = compared((board, restored))
    assert f"the table was told that its events up to {len(whole)} are stored" in findings[0]
    play_on(board, restored, 0)
    assert [row["body"] for row in restored.stream_events("U1", raw=True)] == [row["body"] for row in whole]
    assert compared((board, restored)) == ([], [])
    assert audit(restored, [NJ]).findings == []
    restored.close()


def test_a_record_without_this_table_is_refused(wired: tuple[Wired, Store], tmp_path: Path) -> None:
    store = Store(tmp_path / "empty.db")
    with pytest.raises(BadInput, match="nothing of table U1 is stored in this record"):
        compare(store, Audit(), wired[0].link())
    store.close()
