"""An audit finds nothing in what a table told, and every single thing that is changed afterwards."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoneye import protocol
from dragoneye.errors import BadInput
from dragoneye.journal import GENESIS, chain
from dragoneye.rules.packs import Pack, load
from dragoneye.text import dumps
from host_tools.audit import Audit, audit
from host_tools.dealer import deal_tiles, plan_round
from host_tools.store import Store
from tests.synthetic import fill, history
from tests.unit.conftest import Tablectl
from tests.unit.tables import Desk
from tests.unit.test_store import take_all, told

UID = "U1"
NJ = load("nj")
UNTAGGED = "no event has a tag: the hashes alone are checked, which whoever can write this record can make anew"


def checked(path: Path, *packs: Pack) -> Audit:
    store = Store(path)
    try:
        return audit(store, list(packs or (NJ,)))
    finally:
        store.close()


def whats(found: Audit) -> list[str]:
    return [finding.what for finding in found.findings]


def write(path: Path, query: str, *values: Any) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(query, values)


def forge(path: Path, change: Callable[[dict[str, Any]], None], kind: str, number: int) -> None:
    """Change the data of round `number`'s record of this kind, and hang all later hashes on it anew, as a forger would.

    A round's row is changed with it.
    """
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        link = GENESIS
        for event, text in connection.execute("SELECT id, body FROM events ORDER BY id").fetchall():
            record = json.loads(text)
            if record["k"] == kind and record["d"].get("round", number) == number:
                change(record["d"])
                number = -1
                if kind == "settled":
                    data = record["d"]
                    connection.execute(
                        "UPDATE rounds SET result = ?, net = ?, total = ?, dice = ? WHERE number = ?",
                        (dumps(data), data["net"], data["total"], " ".join(map(str, data["dice"])), data["round"]),
                    )
            body = dumps(record)
            link = chain(link, body)
            connection.execute("UPDATE events SET body = ?, link = ? WHERE id = ?", (body, link, event))
    assert number == -1


def often_triples(rng: random.Random) -> list[int]:
    return [rng.randint(1, 6)] * 3 if rng.random() < 0.5 else [rng.randint(1, 6) for _die in range(3)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty rounds with many triples, tile hands in two of them."""
    found = tmp_path_factory.mktemp("made") / "rounds.db"
    fill(found, UID, history(60, seed=5, roller=often_triples, set_rounds=25))
    store = Store(found)
    for number in (3, 4):
        plan = plan_round(random.Random(number), NJ, {"count": 0})
        store.add_tiles(UID, number, deal_tiles(plan, store.round(number)["result"]["total"], NJ))
    store.close()
    return found


@pytest.fixture
def path(tmp_path: Path, made: Path) -> Path:
    return Path(shutil.copy(made, tmp_path / "rounds.db"))


def test_a_sound_record_is_clean(path: Path) -> None:
    found = checked(path)
    assert (found.findings, [note.what for note in found.notes]) == ([], [UNTAGGED])
    assert (found.tables, found.rounds, found.settlements) == (1, 60, 60)
    assert found.tile_hands > 4


@pytest.mark.parametrize("pack", ["nj", "house"])
def test_a_real_controllers_rounds_are_clean(tmp_path: Path, pack: str) -> None:
    """Voids, power cuts, manual results, a lowered bonus, a player who leaves, changed dice, and open rounds."""
    (tmp_path / "journal").mkdir()
    desk = Desk(tmp_path / "journal", pack)
    desk.hello()
    bonus = {2: {"bonus": 500, "match": 100}, 3: {"bonus": 300}}
    desk.play([4, 4, 4], bonus)
    desk.tell("lid", False)
    desk.ask("open", shaker=2)
    desk.ask("bets", position=2, wagers={"bonus": 200})
    desk.ask("leave", position=3)
    desk.ask("close")
    desk.roll([5, 5, 5])
    desk.open_lid()
    desk.tell("lid", False)
    desk.ask("finish")
    desk.ask("open", shaker=1)
    desk.boot()
    desk.hello()
    desk.play([1, 1, 1], {4: {"odd": 100}})
    desk.tell("lid", False)
    desk.ask("open", shaker=0)
    desk.ask("close")
    token = desk.ask("manual", dice=[2, 3, 4], reason="reader down")["token"]
    desk.ask("confirm", token=token, dice=[2, 3, 4])
    desk.open_lid()
    desk.tell("lid", False)
    desk.ask("finish")
    desk.play([6, 6, 6], bonus)
    desk.tell("lid", False)
    desk.ask("changed", unit="dice", keep=True)
    desk.play([6, 6, 6])
    desk.tell("lid", False)
    desk.ask("end")
    desk.reach(protocol.VOID)
    desk.ask("void", reason="enough")
    desk.ask("open", shaker=1)
    store = Store(tmp_path / "rounds.db")
    assert all(take_all(store, told(desk)))
    store.close()
    found = checked(tmp_path / "rounds.db", desk.pack)
    assert found.findings == []
    assert found.settlements == 6


# One thing changed, and what is said of it


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "UPDATE events SET link = '" + "0" * 32 + "' WHERE id = 40",
            "its hash does not follow from the event before it",
        ),
        ("UPDATE events SET body = replace(body, '\"t\":', '\"t\": ') WHERE id = 40", "its hash does not follow"),
        ("UPDATE events SET body = '{' WHERE id = 40", "it is not as an event should be"),
        ("UPDATE events SET ticks = 1 WHERE id = 40", "what is stored beside the event differs"),
        ("DELETE FROM events WHERE id = 41", "the events 41 to 41 are missing"),
        ("UPDATE rounds SET net = 1 WHERE number = 7", "the round's row: net is 1; its events say"),
        ("UPDATE rounds SET dice = '1 1 1' WHERE number = 8", "the round's row: dice is"),
        ("UPDATE rounds SET voids = 9 WHERE number = 9", "the round's row: voids is 9; its events say 0"),
        ("UPDATE rounds SET status = 'void' WHERE number = 9", 'the round\'s row: status is "void"'),
        ("UPDATE dice_sets SET serial = 'mine'", "the row of dice set 2 is not what this event tells"),
        ("UPDATE dice_sets SET event = event + 1", "the row of dice set 2 is not what this event tells"),
        ("UPDATE dice_sets SET number = number + 7", "dice set 2 has no row in the record"),
        ("UPDATE dice_sets SET utc = '2020-01-01T00:00:00.000+00:00'", "the row of dice set 2 is not what this event"),
        ("DELETE FROM dice_sets WHERE number = 3", "dice set 3 has no row in the record"),
        (
            "INSERT INTO dice_sets (uid, number, event, utc, serial) SELECT uid, 1, -1, utc, 'A-1' FROM heads",
            "no event tells of dice set 1, and it has a row in the record",
        ),
        ("UPDATE heads SET tag = '00'", "the record ends here, and "),
        ("UPDATE heads SET utc = '2020-01-01T00:00:00.000+00:00'", "it was acknowledged to the table when it was"),
        ("DELETE FROM firsts", "where the record of this table was begun is not in it: it was removed"),
        ("UPDATE firsts SET event = 9", "the record begins here, and it was begun at "),
        (
            "INSERT INTO events SELECT uid, 0, kind, boot, ticks, round, utc, body, link, tag, key_id FROM events"
            " WHERE id = 1",
            "no table numbers an event so: it was added",
        ),
        (
            "UPDATE rounds SET result = replace(result, '\"eye\":1', '\"eye\":true') WHERE number = 9",
            "the round's row: result",
        ),
        ("UPDATE rounds SET result = json_set(result, '$.net', net + 0.0) WHERE number = 9", "the round's row: result"),
        ("CREATE TRIGGER t AFTER INSERT ON rounds BEGIN DELETE FROM rounds; END", "the database's trigger t is not as"),
        ("CREATE VIEW v AS SELECT * FROM rounds", "the database's view v is not as"),
        ("ALTER TABLE rounds ADD COLUMN more INTEGER", "the database's column rounds.more is not as"),
        ("DROP INDEX ix_rounds_utc", "the database's index ix_rounds_utc is not as"),
        (
            "INSERT INTO rounds SELECT '', number, event, utc, status, shaker, voids, dice, eye, total, net, manual,"
            " result, tiles, dice_set, corrected FROM rounds WHERE number = 9",
            "no event of this table is here, and there are rows of it in rounds",
        ),
        ("INSERT INTO heads SELECT 'U2', event, link, tag, utc FROM heads", "no event of this table is here, and"),
        ("INSERT INTO dice_sets SELECT 'U2', number, event, utc, serial, issued, tags FROM dice_sets", "no event of"),
        ("UPDATE rounds SET uid = CAST(uid AS BLOB) WHERE number = 9", "rounds.uid: X'5531' is a value of a type"),
        ("DELETE FROM events", "no event of this table is here, and there are rows of it in heads, firsts, rounds,"),
        ("UPDATE rounds SET dice_set = 7 WHERE number = 30", "the round's row: dice_set is 7; its events say 2"),
        ("UPDATE rounds SET result = replace(result, 'net', 'ten') WHERE number = 9", "the round's row: result is"),
        ("UPDATE rounds SET result = '{' WHERE number = 9", "the round's row is damaged"),
        ("UPDATE rounds SET event = event + 1 WHERE number = 9", "the round's row: event is "),
        ("UPDATE rounds SET utc = '2020-01-01T00:00:00.000+00:00' WHERE number = 9", "the round's row: utc is "),
        ("UPDATE rounds SET utc = 'never' WHERE number = 9", 'the round\'s row: utc is "never"; its events say "'),
        ("UPDATE events SET body = x'7b7d' WHERE id = 40", "events.body: X'7B7D' is a value of a type that"),
        ("UPDATE rounds SET result = CAST(result AS BLOB) WHERE number = 9", "rounds.result: X'"),
        ("UPDATE rounds SET voids = 'none' WHERE number = 9", "rounds.voids: 'none' is a value of a type"),
        (
            f"UPDATE events SET body = '{'[' * 4000 + ']' * 4000}' WHERE id = 40",
            "its hash does not follow from the event before it",
        ),
        ("DELETE FROM rounds WHERE number = 9", "the round has no row in the record"),
        ("UPDATE rounds SET number = 99 WHERE number = 60", "the round has no row in the record"),
        (
            "UPDATE rounds SET tiles = replace(tiles, '\"commission\": ', '\"commission\": 1') WHERE number = 3",
            "the tile hand of position",
        ),
        ("UPDATE rounds SET tiles = replace(tiles, '\"start\": ', '\"start\": 1') WHERE number = 3", "the deal is not"),
        ("UPDATE rounds SET tiles = '{}' WHERE number = 3", "its tile hands cannot be settled"),
    ],
)
def test_a_change_in_the_database_is_found(path: Path, query: str, said: str) -> None:
    write(path, query)
    found = whats(checked(path))
    assert any(one.startswith(said) for one in found[:2]), found
    # One change is not told as a hundred.
    assert len(found) <= 8


def _more(rows: list[Any]) -> None:
    position, wager, stake, odds = rows[0]
    rows[0] = [position, wager, stake + 100, odds]


@pytest.mark.parametrize(
    ("kind", "number", "change", "said"),
    [
        ("settled", 11, lambda data: data.update(net=data["net"] + 100), "the players' net: "),
        ("settled", 11, lambda data: data.update(total=data["total"] + 1), "the total: "),
        ("settled", 11, lambda data: data["rows"].pop(), "the wagers: "),
        ("settled", 11, lambda data: _more(data["rows"]), "the wagers: "),
        ("settled", 11, lambda data: data["rows"][0].__setitem__(3, 9), "the wagers: "),
        ("settled", 11, lambda data: data.update(dice=[1, 2, data["dice"][2] % 6 + 1]), "dice is"),
        ("settled", 11, lambda data: data.update(eye=2), "eye is 2; the locked result has 1"),
        ("settled", 11, lambda data: data.update(before=data["before"] + 1), "it counts"),
        ("settled", 11, lambda data: data.update(level=data["level"] + 1), "bonus level"),
        ("settled", 11, lambda data: data["streak"].update(count=7), "the streak after it does not follow"),
        ("settled", 11, lambda data: data.pop("rows"), "it is not as an event should be"),
        ("locked", 11, lambda data: data.update(dice=[0, 1, 2]), "no dice show [0, 1, 2]"),
        ("locked", 11, lambda data: data.update(manual="not so"), "manual is null; the locked result has"),
        ("locked", 11, lambda data: data.update(bets=[]), "the wagers: "),
        ("opened", 11, lambda data: data.update(round=10), "it opens a round that is not after round 10"),
        ("streak", 25, lambda data: data["streak"].update(count=5), "the streak it tells of cannot come"),
    ],
)  # fmt: skip
def test_a_forgery_with_sound_hashes_is_found(
    path: Path, kind: str, number: int, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    forge(path, change, kind, number)
    found = whats(checked(path))
    assert any(one.startswith(said) for one in found), found
    assert not any("hash" in one for one in found)


def test_an_index_that_leaves_out_a_round_is_found(path: Path) -> None:
    """Every row fits its events, and `rounds` would not tell of one."""
    index = "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE name LIKE 'ix_rounds%'"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        row = connection.execute("SELECT * FROM rounds WHERE number = 9").fetchone()
        connection.execute("DELETE FROM rounds WHERE number = 9")
        kept = connection.execute(index).fetchall()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name LIKE 'ix_rounds%'")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"INSERT INTO rounds VALUES ({', '.join('?' * len(row))})", row)
        connection.execute("PRAGMA writable_schema = ON")
        connection.executemany("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", kept)
    with pytest.raises(BadInput, match=r"this is not a sound database .*index ix_rounds"):
        checked(path)
    store = Store(path)
    with pytest.raises(BadInput, match=r"this is not a sound database .*index ix_rounds"):
        store.backup(path.with_name("copy.db"))
    store.close()
    assert not list(path.parent.glob("copy*"))


def test_a_state_that_a_pruning_left_and_that_is_damaged_is_told(path: Path) -> None:
    columns = 'uid, last, first, rounds, older_than, utc, "by", link, state'
    write(
        path,
        f"INSERT INTO prunings ({columns}) "
        "SELECT uid, id, 1, 1, utc, utc, 'me', link, '{}' FROM events WHERE id = 20",
    )
    write(path, "DELETE FROM events WHERE id <= 20")
    with pytest.raises(BadInput, match="pruning 20 is damaged in the database"):
        checked(path)


def test_the_first_that_does_not_fit_is_named_first(path: Path) -> None:
    write(path, "UPDATE events SET link = '' WHERE id IN (50, 90)")
    found = checked(path).findings
    assert [finding.event for finding in found] == [50, 51, 90, 91]


def test_rounds_under_another_rule_pack(path: Path) -> None:
    with pytest.raises(BadInput, match="table U1 played by a rule pack that is not known here"):
        checked(path, NJ.with_options({"pays_triple": 31}))
    assert checked(path, NJ.with_options({"pays_triple": 31}), NJ).findings == []


def test_what_is_explained_is_a_note(tmp_path: Path) -> None:
    told_us = list(history(4))
    store = Store(tmp_path / "late.db")
    late = [one for one in told_us if one[1]["id"] >= 8]
    for _utc, record, link in late:
        assert store.take(UID, record, link, 8)
    store.close()
    found = checked(tmp_path / "late.db")
    assert found.findings == []
    assert [(note.event, note.what) for note in found.notes] == [
        (
            8,
            "the events 1 to 7 are missing: the table no longer had them when this record was begun; without them "
            "nothing proves what this event says",
        ),
        (told_us[-1][1]["id"], UNTAGGED),
    ]


def test_a_pruned_record_is_audited_from_there_on(path: Path) -> None:
    store = Store(path, clock=lambda: "2026-04-05T13:00:00.000+00:00")
    assert [(one["first"], one["rounds"]) for one in store.prune(90)] == [(1, 30)]
    store.close()
    found = checked(path)
    assert found.findings == []
    assert found.rounds == 30
    assert [note.what for note in found.notes] == [
        "the events up to this one were removed by `record prune`",
        UNTAGGED,
    ]
    write(path, "UPDATE prunings SET link = ''")
    assert whats(checked(path))[0].startswith("its hash does not follow")


@pytest.mark.parametrize("column", ["utc", "older_than"])
def test_a_pruning_of_less_than_the_days_that_are_kept_is_found(path: Path, column: str) -> None:
    store = Store(path, clock=lambda: "2026-04-05T13:00:00.000+00:00")
    [removed] = store.prune(90)
    store.close()
    other = {"utc": "2026-04-05T12:59:59.000+00:00", "older_than": "2026-01-05T13:00:01.000+00:00"}[column]
    write(path, f"UPDATE prunings SET {column} = '{other}'")
    [found] = checked(path).findings
    assert found.event == removed["last"]
    assert "90 days are to be kept" in found.what
    assert other in found.what
    write(path, f"UPDATE prunings SET {column} = 'long ago'")
    assert "long ago" in checked(path).findings[0].what


def test_the_command(tablectl: Tablectl, path: Path) -> None:
    done = tablectl("audit")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "everything fits"
    assert tablectl("audit", "--json").rows[0]["clean"] is True
    write(path, "UPDATE rounds SET net = 1 WHERE number = 7")
    done = tablectl("audit")
    assert done.code == 1
    _counts, proof, _note, line = done.out.splitlines()
    assert proof.startswith("table U1: not proved by its tags; head ")
    assert line.startswith("does not fit: table U1, event ")
    assert "round 7: the round's row: net is 1; its events say " in line
    done = tablectl("audit", "--json")
    assert (done.code, done.rows[0]["clean"], len(done.rows[0]["findings"])) == (1, False, 1)
    assert 'there is no table "T9" in this record; there are U1' in tablectl("audit", "--table", "T9").refusal()
    assert "rule pack" in tablectl("audit", "--pack", "nowhere.json").refusal()


def test_the_dice_set_of_a_void_round_and_its_tile_hands(path: Path) -> None:
    write(
        path,
        "UPDATE rounds SET tiles = (SELECT tiles FROM rounds WHERE number = 3) WHERE number = 60",
    )
    settled = "SELECT max(id) FROM events WHERE kind = 'settled'"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        [event] = connection.execute(settled).fetchone()
    # The newest round is left open, and closed by a void record of the same chain.
    forge_end(path, event, {"round": 60, "reason": "enough", "shakes": 1, "over": True})
    assert whats(checked(path)) == ["the round has tile hands and no result: they are dealt by its total"]
    write(path, "UPDATE rounds SET dice_set = 9, tiles = NULL WHERE number = 60")
    assert whats(checked(path)) == ["the round's row: dice_set is 9; its events say 3"]


def forge_end(path: Path, event: int, void: dict[str, Any]) -> None:
    """Let the record end at `event`, a void one in the place of the one that settled the last round."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        [before] = connection.execute("SELECT link FROM events WHERE id = ?", (event - 1,)).fetchone()
        [text] = connection.execute("SELECT body FROM events WHERE id = ?", (event,)).fetchone()
        body = dumps(dict(json.loads(text), k="void", d=void))
        link = chain(before, body)
        connection.execute("DELETE FROM events WHERE id > ?", (event,))
        connection.execute("UPDATE events SET kind = 'void', body = ?, link = ? WHERE id = ?", (body, link, event))
        connection.execute(
            "UPDATE heads SET event = ?, link = ?, utc = (SELECT utc FROM events WHERE id = ?)", (event, link, event)
        )
        connection.execute(
            "UPDATE rounds SET status = 'void', voids = voids + 1, dice = NULL, eye = NULL, total = NULL, net = NULL,"
            " result = NULL, manual = NULL WHERE number = ?",
            (void["round"],),
        )


READERS = ("rounds", "show 9", "show 9 --events", "export -", "export - --rolls", "fairness", "record info", "report -")


@pytest.mark.parametrize(
    "query",
    [
        "UPDATE rounds SET uid = CAST(uid AS BLOB) WHERE number = 9",
        *(
            f"UPDATE rounds SET {column} = x'00ff' WHERE number = 9"
            for column in (
                "event",
                "utc",
                "status",
                "shaker",
                "voids",
                "dice",
                "eye",
                "net",
                "result",
                "tiles",
                "dice_set",
            )
        ),
        "UPDATE rounds SET result = '{}' WHERE number = 9",
        "UPDATE rounds SET corrected = '{}' WHERE number = 9",
        "UPDATE rounds SET dice = 'none' WHERE number = 9",
        *(f"UPDATE events SET {column} = x'00ff' WHERE round = 9" for column in ("kind", "utc", "body", "tag")),
        "UPDATE events SET body = '{}', kind = 'fault' WHERE round = 9",
        "UPDATE events SET body = json_set(body, '$.d', json('{}')), kind = 'fault' WHERE round = 9",
        "UPDATE events SET body = json_set(body, '$.d', json('{}')), kind = 'void' WHERE round = 9",
        "UPDATE events SET body = CAST(x'ff' AS TEXT) WHERE round = 9",
        "UPDATE heads SET link = x'00ff'",
        "UPDATE dice_sets SET serial = x'00ff'",
        "UPDATE dice_sets SET issued = 5",
    ],
)
def test_no_value_in_the_database_ends_a_command_in_a_traceback(tablectl: Tablectl, path: Path, query: str) -> None:
    write(path, query)
    assert tablectl("audit").code != 0
    for line in READERS:
        done = tablectl(*line.split())
        assert done.code == 0 or (done.code == 2 and done.err.startswith("tablectl: error: ")), done


def test_each_tables_notes_and_findings_are_told(tablectl: Tablectl, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for table in ("events", "rounds", "dice_sets", "heads", "firsts"):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "uid"]
            names = ", ".join(f'"{column}"' for column in columns)
            connection.execute(f"INSERT INTO {table} (uid, {names}) SELECT 'U2', {names} FROM {table}")
        connection.execute("UPDATE events SET utc = '2020-01-01T00:00:00.000+00:00' WHERE id % 50 = 9 AND uid = 'U1'")
        connection.execute("UPDATE rounds SET net = 1")
    notes = checked(path).notes
    # What an auditor must know is before the clock that was put back.
    assert notes[0].what == UNTAGGED
    assert {note.table for note in notes} == {"U1", "U2"}
    done = tablectl("audit", "--most", "2")
    lines = done.out.splitlines()
    assert [line.split(",")[0] for line in lines if line.startswith("note: ")] == ["note: table U1", "note: table U2"]
    assert f"and {len(notes) - 2} notes more; --most shows them" in lines
    assert {line.split(",")[0] for line in lines if line.startswith("does not fit: ")} == {
        "does not fit: table U1",
        "does not fit: table U2",
    }


def test_a_head_of_a_record_that_was_emptied(tablectl: Tablectl, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        [head] = connection.execute("SELECT event || ':' || link FROM heads").fetchone()
        connection.execute("DELETE FROM events")
    done = tablectl("audit", "--head", head)
    assert done.code == 1
    assert done.out.count("does not fit: ") == 2
    for table in ("rounds", "heads", "firsts", "dice_sets"):
        write(path, f"DELETE FROM {table}")
    done = tablectl("audit", "--head", head)
    assert done.code == 1
    assert "the record ends at event 0: its end was cut off" in done.out
    assert tablectl("audit").code == 0
