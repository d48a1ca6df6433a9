"""Corrections: further records of the table; totals follow them, the original stays, and nothing is edited."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoneye.journal import chain
from dragoneye.rules.packs import load
from dragoneye.text import dumps
from host_tools import corrections, dealer, keys, report
from host_tools.audit import Audit, audit
from host_tools.cli import common
from host_tools.cli import record as commands
from host_tools.device import Device
from host_tools.link import Refused
from host_tools.store import Search, Store, StoreError
from tests import lossy
from tests.unit import tables
from tests.unit.conftest import Tablectl

NJ = load("nj")
UID = tables.IDENTITY["uid"]
DICE = {1: [1, 2, 4], 2: [5, 5, 5], 3: [6, 5, 6]}
BETS = {2: {"match": 500, "odd": 100}, 4: {"even": 300, "bonus": 200}}


class Fixed(random.Random):
    """Dice that fall as DICE tells, then once more, then sixes."""

    def __init__(self) -> None:
        super().__init__()
        self._values = [value for dice in (*DICE.values(), [4, 3, 1]) for value in dice]

    def randint(self, a: int, b: int) -> int:
        return self._values.pop(0) if self._values else b


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> lossy.Board:
    monkeypatch.setitem(tables.IDENTITY, "pack_hash", NJ.hash())
    board = lossy.Board(tmp_path / "board", Fixed())

    def device(port: str, store: Store, *_more: Any) -> Device:
        return Device(port, store, open_transport=lambda port: lossy.MemoryWire(board))

    monkeypatch.setattr(common, "Device", device)
    monkeypatch.setattr(commands, "SerialTransport", lambda port: lossy.MemoryWire(board))
    return board


@pytest.fixture
def played(tmp_path: Path, board: lossy.Board) -> Iterator[tuple[Device, Store]]:
    """A table that has played three rounds, and the record of them in the default place."""
    store = Store(tmp_path / "rounds.db")
    device = Device("memory", store, open_transport=lambda port: lossy.MemoryWire(board))
    who = dealer.Dealer(device, NJ, lossy.MemoryLid(board))
    for _round in DICE:
        who.play(dealer.Plan(2, BETS if _round != 3 else {2: BETS[2]}, {}, []))
    device.wait_stored()
    yield device, store
    device.close()
    store.close()


def nets(store: Store) -> list[int]:
    """The players' net of each round, as it counts."""
    return [int((corrections.standing(one) or {"net": 0})["net"]) for one in store.rounds(UID)]


def checked(store: Store) -> Audit:
    return audit(store, [NJ])


# What follows from corrections


@pytest.mark.parametrize(
    ("told", "dice", "rows"),
    [
        ([{"what": "void"}], [1, 2, 4], []),
        # Position 2 matches no two; the eye die (the second) is 3: odd.
        ([{"what": "dice", "dice": [1, 3, 4]}], [1, 3, 4], [[2, "match", 500, 0], [2, "odd", 100, 1]]),
        ([{"what": "bets", "position": 2, "wagers": {}}], [1, 2, 4], []),
        (
            # The wrong position: off from one, on to another.
            [{"what": "bets", "position": 2, "wagers": {}}, {"what": "bets", "position": 4, "wagers": {"match": 500}}],
            [1, 2, 4],
            [[4, "match", 500, 1]],
        ),
        # Of two of the same thing the last one counts; what is void may come back.
        (
            [{"what": "dice", "dice": [6, 6, 6]}, {"what": "void"}, {"what": "dice", "dice": [2, 2, 2]}],
            [2, 2, 2],
            [[2, "match", 500, 3], [2, "odd", 100, 0]],
        ),
        ([{"what": "dice", "dice": [2, 2, 2]}, {"what": "void"}], [1, 2, 4], []),
    ],
)
def test_a_round_is_settled_anew_from_what_it_was_played_by(
    told: list[dict[str, Any]], dice: list[int], rows: list[Any]
) -> None:
    result = {"dice": [1, 2, 4], "eye": 1, "total": 7, "shaker": 2, "before": 0, "rows": [], "net": 0, "manual": None}
    found = corrections.settle(result, {2: BETS[2]}, told, NJ)
    assert found["void"] == (told[-1]["what"] == "void")
    assert (found["result"]["dice"], found["result"]["total"]) == (dice, sum(dice))
    assert found["result"]["rows"] == rows
    assert found["result"]["net"] == sum(stake * odds if odds else -stake for _position, _wager, stake, odds in rows)
    # What it was settled by first is as it was.
    assert result["dice"] == [1, 2, 4]
    unknown = corrections.settle(result, {2: BETS[2]}, told, None)
    assert (unknown["result"] is None) == (told[-1]["what"] != "void")


# From the table to the totals


def test_corrections_count_and_the_original_stays(played: tuple[Device, Store]) -> None:
    device, store = played
    before = store.rounds(UID)
    events = store.events(UID)
    streak = device.refresh()["streak"]
    assert nets(store) == [one["result"]["net"] for one in before]
    dealer.correct(device, store, 1, "camera 4 shows a 3", dice=[1, 3, 4])
    dealer.correct(device, store, 2, "dealt twice")
    dealer.correct(device, store, 3, "seat 3, not 2", position=2, wagers={})
    found = dealer.correct(device, store, 3, "seat 3, not 2", position=3, wagers=BETS[2])
    assert [one["what"] for one in found["corrected"]["told"]] == ["bets", "bets"]
    # As they were: every record, every row but for what is said beside it, and the streak.
    assert store.events(UID)[: len(events)] == events
    after = store.rounds(UID)
    assert [{key: one[key] for key in one if key != "corrected"} for one in after] == before
    assert device.refresh()["streak"] == streak
    eye = tables.EYE
    parity = [1 if value % 2 else -1 for value in ([1, 3, 4][eye], DICE[3][eye])]
    assert nets(store) == [-500 + 100 * parity[0] - 300 * parity[0] - 200, 0, -500 + 100 * parity[1] - 200]
    done = checked(store)
    assert (done.findings, done.corrections) == ([], 4)


def test_what_was_pruned_is_still_known(
    played: tuple[Device, Store], board: lossy.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, store = played
    streak = store.history(UID)["streak"]
    device.request("open", shaker=2)
    device.request("void", reason="enough")
    device.wait_stored()
    monkeypatch.setattr(store, "_clock", lambda: "2099-01-01T00:00:00.000+00:00")
    [removed] = store.prune(90)
    assert (removed["first"], removed["rounds"]) == (1, 3)
    # The void round that is left tells of no streak.
    assert store.history(UID)["streak"] == streak
    found = dealer.Dealer(device, NJ, lossy.MemoryLid(board)).play(dealer.Plan(2, BETS, {}, []))
    device.wait_stored()
    corrected = dealer.correct(device, store, found, "camera 4", dice=[2, 2, 2])["corrected"]
    # By the rule pack that a start told which is gone by now.
    assert corrected["result"]["dice"] == [2, 2, 2]


@pytest.mark.parametrize("value", [{"void": True}, {"dice": [2, 2, 2]}], ids=["void", "dice"])
def test_a_correction_that_was_undone_is_found(played: tuple[Device, Store], value: dict[str, Any]) -> None:
    device, store = played
    dealer.correct(device, store, 1, "camera 4", **({} if "void" in value else value))
    assert checked(store).findings == []
    with contextlib.closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE rounds SET corrected = json_set(corrected, '$.result', null) WHERE number = 1")
    [finding] = checked(store).findings
    assert finding.round == 1
    assert finding.what.startswith("the round's row: corrected is ")


def test_what_cannot_be_corrected_is_refused(played: tuple[Device, Store], board: lossy.Board) -> None:
    device, store = played
    with pytest.raises(StoreError, match="round 9 has no result that could be corrected"):
        dealer.correct(device, store, 9, "never was")
    with pytest.raises(Refused, match="E_WAGER"):
        dealer.correct(device, store, 1, "no such wager", position=2, wagers={"red": 500})
    device.request("open", shaker=1)
    with pytest.raises(Refused, match="E_STATE"):
        dealer.correct(device, store, 1, "in the midst of it")
    device.request("void", reason="enough")
    with pytest.raises(StoreError, match="round 4 has no result that could be corrected"):
        dealer.correct(device, store, 4, "was void")
    # Another host may ask all the same: then nothing follows, and that is said.
    device.request("correct", round=4, what="void", event=1, reason="was void")
    device.wait_stored()
    done = checked(store)
    assert done.findings == []
    assert "it corrects a round that has no result here: nothing follows from it" in [one.what for one in done.notes]


def test_a_correction_that_cannot_be_stored_yet_is_not_told_to_be_tried_again(
    played: tuple[Device, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, store = played

    def locked(*_arguments: object) -> bool:
        raise StoreError("rounds.db: the database is locked")

    with monkeypatch.context() as patched:
        patched.setattr(store, "take", locked)
        words = r"the table was told; .* is stored at the next connection, look then \(rounds.db: the database"
        with pytest.raises(StoreError, match=words):
            dealer.correct(device, store, 1, "camera 4 shows a 3", dice=[1, 3, 4])
    device.wait_stored()
    assert store.round(1, UID)["corrected"]["result"]["dice"] == [1, 3, 4]


def test_a_rule_pack_that_is_not_known_leaves_it_to_who_knows_it(
    tmp_path: Path, board: lossy.Board, played: tuple[Device, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, store = played
    monkeypatch.setattr(store, "_packs", {})
    found = dealer.correct(device, store, 1, "camera 4 shows a 3", dice=[1, 3, 4])
    assert found["corrected"]["result"] is None
    # Until then the recorded one counts.
    assert nets(store)[0] == found["result"]["net"]
    assert report.of_table(store, Search(uid=UID))["corrected"] == {"void": 0, "not settled": 1}
    with monkeypatch.context() as patched:
        # A house's own.
        patched.setattr(corrections, "known_packs", dict)
        done = checked(store)
    assert done.findings == []
    assert "round 1 is corrected, and was not settled anew" in [one.what for one in done.notes]
    # Of a pack that every host knows it was undone.
    assert len(checked(store).findings) == 1
    # Known again, the next correction settles it.
    store.know(NJ)
    assert dealer.correct(device, store, 1, "a 3 it was", dice=[1, 3, 4])["corrected"]["result"]["dice"] == [1, 3, 4]
    assert checked(store).findings == []


def test_what_is_changed_about_a_correction_is_found(played: tuple[Device, Store]) -> None:
    device, store = played
    dealer.correct(device, store, 1, "camera 4 shows a 3", dice=[1, 3, 4])
    path = str(store.path)
    for query, words in (
        ("UPDATE rounds SET corrected = NULL WHERE number = 1", "the round's row: corrected is null"),
        ("UPDATE rounds SET corrected = replace(corrected, '[1,3,4]', '[1,3,6]') WHERE number = 1", "corrected is"),
        ("UPDATE rounds SET corrected = '{' WHERE number = 1", "the round's row is damaged"),
        ("UPDATE rounds SET corrected = '[]' WHERE number = 1", "corrected is []"),
        ("UPDATE rounds SET corrected = '{\"void\":true}' WHERE number = 2", "corrected is"),
    ):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            kept = connection.execute("SELECT number, corrected FROM rounds").fetchall()
            connection.execute(query)
            connection.commit()
            found = [one.what for one in checked(store).findings]
            assert any(words in one for one in found), (query, found)
            connection.executemany("UPDATE rounds SET corrected = ?2 WHERE number = ?1", kept)
            connection.commit()
    assert checked(store).findings == []


def test_a_correction_that_does_not_fit_its_round_is_found(played: tuple[Device, Store]) -> None:
    """The table tells it by the right hashes; the round or the event that it names is another."""
    _device, store = played
    last = store.last(UID)[0]
    link = store.link(UID, last) or ""
    for number, event, words in ((9, 1, "it corrects a round that is not over"), (1, 1, "it names event 1; the round")):
        last += 1
        data = {"round": number, "what": "void", "event": event, "why": "for the test"}
        record = {"id": last, "k": "correction", "b": 1, "t": 10**8, "d": data}
        link = chain(link, dumps(record))
        assert store.take(UID, record, link, 1)
        assert any(one.what.startswith(words) for one in checked(store).findings)


# As commands


def test_the_command_corrects_and_the_others_tell(
    tablectl: Tablectl, played: tuple[Device, Store], tmp_path: Path
) -> None:
    device, store = played
    device.close()
    store.close()
    before = {row["round"]: row for row in tablectl("rounds", "--json").rows}
    done = tablectl("correct", "1", "--port", "x", "--dice", "1 3 4", "--reason", "camera 4")
    assert done.code == 0, done
    assert "the dice were 1 3 4; camera 4" in done.out
    [told] = tablectl(
        "correct", "3", "--port", "x", "--position", "3", "--wagers", "match 500", "--reason", "seat 3", "--json"
    ).rows
    assert told["corrected"]["corrections"][0]["wagers"] == {"match": 500}
    assert (told["dice"], told["wagers"]) == (before[3]["dice"], before[3]["wagers"])
    assert tablectl("correct", "2", "--port", "x", "--void", "--reason", "dealt twice").code == 0
    shown = tablectl("show", "2").out
    assert "the round should have been void; dealt twice" in shown
    assert "nothing: all dice wagers go back" in shown
    assert [row["k"] for row in tablectl("show", "2", "--events").rows][-1] == "correction"
    after = {row["round"]: row for row in tablectl("rounds", "--json").rows}
    assert after[2]["net"] == 0 != before[2]["net"]
    assert after[1]["dice"] == before[1]["dice"]
    rows = {row["round"]: row for row in csv.DictReader(io.StringIO(tablectl("export", "-").out))}
    assert [(rows[n]["corrected"], rows[n]["corrected_dice"]) for n in "123"] == [
        ("dice", "1 3 4"),
        ("void", " ".join(map(str, DICE[2]))),
        ("bets", " ".join(map(str, DICE[3]))),
    ]
    assert [rows[n]["dice_net"] for n in "123"] == [str(after[n]["net"]) for n in (1, 2, 3)]
    # What the readers saw of a roll that was corrected is not taken for how the dice fell.
    rolls = list(csv.DictReader(io.StringIO(tablectl("export", "-", "--rolls").out)))
    assert [row["manual"] for row in rolls] == ["1", "1", "0"]
    [shift] = tablectl("report", "-", "--json").rows
    [figures] = shift["tables"]
    assert figures["dice_net"] == sum(after[n]["net"] for n in after)
    assert [one["what"] for one in figures["corrections"]] == ["dice", "bets", "void"]
    assert figures["triples"] == 0
    page = tablectl("report", "-").out
    assert "the round should have been void; dealt twice" in page
    assert tablectl("audit").code == 0
    assert tablectl("audit", "--port", "x").code == 0


def test_the_heads_are_told_and_can_be_checked(
    tablectl: Tablectl, played: tuple[Device, Store], tmp_path: Path
) -> None:
    device, store = played
    device.close()
    store.close()
    [told] = tablectl("export", str(tmp_path / "x.csv"), "--json").rows
    [head] = told["heads"]
    assert head["head"] in tablectl("report", "-").out
    assert head["head"] in tablectl("export", str(tmp_path / "y.csv")).out
    assert head["head"] in tablectl("audit").out
    assert tablectl("record", "info", "--json").rows[0]["tables"][0]["head"] == head["head"]
    assert tablectl("audit", "--head", head["head"]).code == 0
    changed = head["head"][:-1] + ("0" if head["head"][-1] != "0" else "1")
    assert tablectl("audit", "--head", changed).code == 1
    assert tablectl("audit", "--head", f"{head['event'] + 5}:{'0' * 32}").code == 1
    said = tablectl("audit", "--head", "12:xy").refusal()
    assert '"12:xy"; allowed: an event\'s number, a colon and the 32 hex digits of its hash' in said
    [done] = tablectl("audit", "--json").rows
    assert done["proofs"][0]["head"] == head["head"]
    assert json.dumps(done)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give one of: --void; --dice; --position and --wagers"),
        (("--void", "--dice", "1 2 3"), "give one of"),
        (("--position", "3"), "give one of"),
        (("--dice", "1 2 7"), "three values from 1 to 6"),
        (("--dice", "1 2"), "three values from 1 to 6"),
        (("--position", "3", "--wagers", "match"), "different wagers and whole cents"),
        (("--void", "--reason", "x"), "3 to 80 characters"),
    ],
)
def test_a_mistake_is_told_before_anything_is_sent(tablectl: Tablectl, arguments: tuple[str, ...], words: str) -> None:
    more = () if "--reason" in arguments else ("--reason", "for the test")
    assert words in tablectl("correct", "1", "--port", "/no/such", *arguments, *more).refusal()


def test_a_report_says_when_the_table_had_no_keys(played: tuple[Device, Store], board: lossy.Board) -> None:
    device, store = played
    assert report.of_table(store, Search(uid=UID))["unprovisioned"]
    [start] = list(store.stream_events(UID, ("boot",)))
    # Without a start of its own, the time goes on as the one before it.
    assert report.of_table(store, Search(uid=UID, since="2099-01-01"))["unprovisioned"]
    board._raw = keys.made()
    board.start()
    device.reconnect()
    device.wait_stored()
    *_others, last = list(store.stream_events(UID, ("boot",)))
    assert last["d"]["key_id"]
    assert start["id"] < last["id"]
    told = report.of_table(store, Search(uid=UID))
    assert told["unprovisioned"]
    times = [one["utc"] for one in store.stream_events(UID, ("boot",))]
    assert told["keyless"] == [{"since": times[0], "until": times[-1]}]
    assert not report.of_table(store, Search(uid=UID, since="2099-01-01"))["unprovisioned"]


def test_a_report_does_not_say_that_a_streak_was_kept_where_none_ran(played: tuple[Device, Store]) -> None:
    device, store = played
    device.request("changed", unit="dice", keep=False)
    device.request("changed", unit="shaker", keep=True)
    device.wait_stored()
    *_before, dice, shaker = report.of_table(store, Search(uid=UID))["changes"]
    assert (dice["what"], shaker["what"]) == ("dice changed, no streak ran", "shaker changed, no streak ran")


# Tile hands beside a round

# The player's hands beat both of the bank's.
HANDS: dict[str, Any] = {
    "bank": {"high": ["5-5", "3-6"], "low": ["2-2", "1-5"]},
    "players": [{"position": 2, "stake": 5000, "hands": {"high": ["6-6", "4-5"], "low": ["1-1", "3-3"]}}],
}


def keep(tablectl: Tablectl, number: int, *more: str) -> Any:
    return tablectl("record", "tiles", str(number), json.dumps(HANDS), *more)


def test_tile_hands_are_settled_by_the_pack_that_the_table_played_by(
    tablectl: Tablectl, board: lossy.Board, played: tuple[Device, Store], tmp_path: Path
) -> None:
    device, store = played
    ca = load("ca")
    # The same table, with other rules from its next start on.
    tables.IDENTITY["pack_hash"] = ca.hash()
    board.start()
    device.reconnect()
    dealer.Dealer(device, NJ, lossy.MemoryLid(board)).play(dealer.Plan(2, {}, {}, []))
    device.wait_stored()
    said = keep(tablectl, 4, "--pack", "nj").refusal()
    assert "round 4 was played by the rule pack ca; --pack nj is another one" in said
    said = keep(tablectl, 1, "--pack", "ca").refusal()
    assert "round 1 was played by the rule pack nj; --pack ca is another one" in said
    [theirs] = keep(tablectl, 4, "--json").rows
    [first] = keep(tablectl, 1, "--json").rows
    # Only New Jersey takes a commission, only the card room has signals.
    for row, commission, signals in ((theirs, 0, ["tiles_in_T"]), (first, 250, [])):
        [player] = row["tiles"]["players"]
        assert (player["commission"], [player[key] for key in player if key == "signal"]) == (commission, signals)
    assert len(theirs["deal"]) == 8
    assert len(first["deal"]) == 7
    # Round 1 is held to New Jersey's rules though another start has come before it is compared.
    done = audit(store, [load("pr"), NJ, ca])
    assert (done.findings, done.tile_hands) == ([], 2)


def test_a_houses_own_pack_is_named_by_its_file(
    tablectl: Tablectl, board: lossy.Board, played: tuple[Device, Store], tmp_path: Path
) -> None:
    device, store = played
    own = tmp_path / "house.json"
    own.write_text(json.dumps({"name": "house", "base": "ca", "values": {"commission_bp": [300, "house rule"]}}))
    tables.IDENTITY["pack_hash"] = load(str(own)).hash()
    board.start()
    device.reconnect()
    dealer.Dealer(device, NJ, lossy.MemoryLid(board)).play(dealer.Plan(2, {}, {}, []))
    device.wait_stored()
    assert "not known here" in keep(tablectl, 4).refusal()
    assert "--pack FILE" in keep(tablectl, 4).refusal()
    said = keep(tablectl, 4, "--pack", "ca").refusal()
    assert f"{tables.IDENTITY['pack_hash']}; --pack ca is another one" in said
    [player] = keep(tablectl, 4, "--pack", str(own), "--json").rows[0]["tiles"]["players"]
    assert (player["commission"], player["signal"]) == (150, "tiles_in_T")
    assert audit(store, [load(str(own)), NJ]).findings == []
    # Where it told nothing the pack must be named.
    with sqlite3.connect(str(store.path)) as connection:
        connection.execute("UPDATE events SET body = replace(body, 'pack_hash', 'pack_hush')")
    assert "did not tell which rule pack it played by; name it with --pack" in keep(tablectl, 1).refusal()
    assert keep(tablectl, 1, "--pack", "nj").code == 0


def test_tile_hands_are_dealt_by_the_dice_that_count(
    tablectl: Tablectl, played: tuple[Device, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, store = played
    keep(tablectl, 1)
    told = tablectl("correct", "1", "--port", "x", "--dice", "1 3 4", "--reason", "camera 4 shows a 3")
    words = "the tile hands were dealt by the total 7, before the dice were corrected to 8, and stay so"
    assert words in " ".join(told.out.split())
    assert words in " ".join(tablectl("show", "1").out.split())
    # Entered later they are dealt by what counts: 6 and not 15; that the rules are not known here is no matter.
    device.reconnect()
    known, store._packs = store._packs, {}
    dealer.correct(device, store, 2, "a 1, a 2 and a 3", dice=[1, 2, 3])
    store._packs = known
    assert store.round(2)["corrected"]["result"] is None
    [row] = keep(tablectl, 2, "--json").rows
    assert (row["tiles"]["total"], row["start"], row["total"]) == (6, 6, 15)
    assert "were dealt by" not in tablectl("show", "2").out
    assert tablectl("show", "1", "--json").rows[0]["tiles"]["total"] == 7
    monkeypatch.setattr(corrections, "known_packs", dict)
    assert checked(store).findings == []
    # What says another total than the dice ever had is found.
    with contextlib.closing(sqlite3.connect(str(store.path))) as connection:
        connection.execute("UPDATE rounds SET tiles = replace(tiles, '\"total\": 6', '\"total\": 9') WHERE number = 2")
        connection.commit()
    assert [one.what for one in checked(store).findings] == [
        "the tile hands were dealt by the total 9, which the dice never had"
    ]


def test_a_round_without_dice_that_count_takes_no_tile_hands(tablectl: Tablectl, played: tuple[Device, Store]) -> None:
    device, store = played
    dealer.correct(device, store, 2, "dealt twice")
    device.request("open", shaker=1)
    device.wait_stored()
    for number, words in (
        (2, "round 2 was corrected: it should have been void; it takes no tile hands"),
        (4, "round 4 has no result yet; tiles are dealt by its total"),
    ):
        assert words in keep(tablectl, number).refusal()
        # Nor by whoever writes it past the command.
        with pytest.raises(StoreError, match=words):
            store.add_tiles(UID, number, {"start": 1, "deal": [], "action": [], "bank": {}, "players": []})
    device.request("void", reason="enough")
    device.wait_stored()
    assert "round 4 is void; it takes no tile hands" in keep(tablectl, 4).refusal()
