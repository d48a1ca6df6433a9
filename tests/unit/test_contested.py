"""Corrections of wagers that the table would have refused live: 11.21(f) and the liability limit, from the record."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoneye.errors import BadInput
from dragoneye.rules.packs import load
from dragoneye.text import dumps
from host_tools import contested, dealer
from host_tools.audit import audit
from host_tools.cli import common
from host_tools.cli import tables as playing
from host_tools.contested import Contested
from host_tools.device import Device
from host_tools.link import Refused
from host_tools.store import Store
from tests import lossy
from tests.unit import tables
from tests.unit.conftest import Tablectl

NJ = load("nj")
UID = tables.IDENTITY["uid"]
# Rounds 2 to 5 are a streak: what is paid in 3 is level 2.
DICE = [[1, 2, 4], [5, 5, 5], [6, 6, 6], [2, 2, 2], [3, 3, 3], [1, 2, 3]]
BETS: list[dict[int, dict[str, int]]] = [
    {2: {"match": 500}},
    {2: {"bonus": 200}, 4: {"bonus": 100}, 5: {"bonus": 100}},
    {2: {"bonus": 150}, 5: {"bonus": 0}},
    {},
    {},
    {},
]


class Fixed(random.Random):
    """Dice that fall as DICE tells."""

    def __init__(self) -> None:
        super().__init__()
        self._values = [value for dice in DICE for value in dice]

    def randint(self, a: int, b: int) -> int:
        return self._values.pop(0)


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> lossy.Board:
    monkeypatch.setitem(tables.IDENTITY, "pack_hash", NJ.hash())
    return lossy.Board(tmp_path / "board", Fixed())


@pytest.fixture
def played(tmp_path: Path, board: lossy.Board, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Device, Store]]:
    """A table that has played them; position 4 leaves after round 3."""

    def device(port: str, store: Store, *_more: Any) -> Device:
        return Device(port, store, open_transport=lambda port: lossy.MemoryWire(board))

    monkeypatch.setattr(common, "Device", device)
    store = Store(tmp_path / "rounds.db")
    table = device("memory", store)
    who = dealer.Dealer(table, NJ, lossy.MemoryLid(board))
    for number, bets in enumerate(BETS, 1):
        who.play(dealer.Plan(2, bets, {}, []))
        if number == 3:
            table.request("leave", position=4)
    table.wait_stored()
    yield table, store
    table.close()
    store.close()


def why_not(store: Store, number: int, position: int, **stakes: int) -> str:
    """The code of the refusal, or nothing."""
    found = contested.refusal(store, UID, number, position, stakes)
    return found[0] if found else ""


def test_what_the_table_would_have_refused_is_refused(played: tuple[Device, Store]) -> None:
    _device, store = played
    # No streak ran: anybody may.
    assert why_not(store, 1, 1, bonus=100) == ""
    assert why_not(store, 2, 1, bonus=100) == ""
    assert why_not(store, 3, 1, bonus=100) == "E_BONUS_LATE"
    assert why_not(store, 3, 1, match=100) == ""
    # That it was lowered in this round may be what is wrong; more than the part is not.
    assert why_not(store, 3, 2, bonus=200) == ""
    assert why_not(store, 3, 2, bonus=201) == "E_BONUS_RAISE"
    assert why_not(store, 4, 2, bonus=200) == "E_BONUS_RAISE"
    assert why_not(store, 4, 2, bonus=150) == ""
    # Who left, and who took it off.
    assert why_not(store, 3, 4, bonus=100) == ""
    assert why_not(store, 4, 4, bonus=100) == "E_BONUS_FORFEIT"
    assert why_not(store, 3, 5, bonus=100) == ""
    assert why_not(store, 4, 5, bonus=100) == "E_BONUS_FORFEIT"
    assert why_not(store, 4, 5) == ""
    # The roll that ended it belonged to it; nothing is refused after it.
    assert why_not(store, 6, 1, bonus=100) == "E_BONUS_LATE"


def test_the_words_are_the_tables_own(played: tuple[Device, Store]) -> None:
    device, store = played
    with pytest.raises(Contested) as told:
        dealer.correct(device, store, 3, "he had one", position=1, wagers={"bonus": 100})
    words = "no bonus was down before the first triple; wait until the streak ends"
    assert str(told.value) == f"round 3, position 1: {words} (E_BONUS_LATE); the table would have refused this"
    # Nothing was sent.
    assert "corrected" not in store.round(3, UID)


def test_a_correction_before_has_its_consequences_after(played: tuple[Device, Store]) -> None:
    device, store = played
    dealer.correct(device, store, 2, "it was down", position=1, wagers={"bonus": 300})
    assert why_not(store, 3, 1, bonus=300) == ""
    assert why_not(store, 3, 1, bonus=400) == "E_BONUS_RAISE"
    # Not yet in the round after next, where it had none.
    assert why_not(store, 4, 1, bonus=300) == "E_BONUS_FORFEIT"
    dealer.correct(device, store, 3, "it was down", position=1, wagers={"bonus": 300})
    assert why_not(store, 4, 1, bonus=300) == ""
    # Taken back: the last one counts.
    dealer.correct(device, store, 2, "it was not", position=1, wagers={})
    assert why_not(store, 4, 1, bonus=300) == "E_BONUS_LATE"
    dealer.correct(device, store, 3, "not lowered", position=2, wagers={"bonus": 200})
    assert why_not(store, 4, 2, bonus=200) == ""
    # What was not yet corrected then is known by the event.
    assert contested.refusal(store, UID, 3, 1, {"bonus": 300}, until=store.last(UID)[0] - 1) is None


def test_a_supervisor_may_and_the_audit_tells(tablectl: Tablectl, played: tuple[Device, Store], tmp_path: Path) -> None:
    _device, store = played
    store.close()
    given = ("correct", "4", "--port", "x", "--position", "4", "--wagers", "bonus 100", "--reason", "camera 4")
    said = tablectl(*given).refusal()
    assert "this position's part in the streak is forfeited" in said
    assert "--anyway corrects it so nevertheless" in said
    assert tablectl("audit", "--json").rows[0]["corrections"] == 0
    [row] = tablectl(*given, "--anyway", "--json").rows
    assert {"position": 4, "wager": "bonus", "stake": 100, "odds": 1000, "profit": 100_000} in row["corrected"][
        "wagers"
    ]
    done = audit(store, [NJ])
    [note] = [one for one in done.notes if "would have refused" in one.what]
    assert done.findings == []
    assert note.event == row["corrected"]["corrections"][0]["event"]
    assert note.what.startswith(
        "it gives position 4 in round 4 wagers that the table would have refused: this position"
    )
    assert note.what.endswith("(E_BONUS_FORFEIT)")


def test_whoever_sends_it_is_told_and_noted(played: tuple[Device, Store]) -> None:
    device, store = played
    fields: dict[str, Any] = {
        "round": 3,
        "what": "bets",
        "event": 1,
        "position": 1,
        "wagers": {"bonus": 100},
        "reason": "past the host",
    }
    with pytest.raises(BadInput, match="`tablectl correct --anyway` corrects it so nevertheless"):
        playing._check_correction(store, UID, fields)
    device.request("correct", **{**fields, "event": store.settled_event(UID, 3)})
    device.wait_stored()
    assert [one.what for one in audit(store, [NJ]).notes if "E_BONUS_LATE" in one.what] == [
        "it gives position 1 in round 3 wagers that the table would have refused: no bonus was down before the first "
        "triple; wait until the streak ends (E_BONUS_LATE)"
    ]


def test_the_liability_limit_holds_for_corrections(
    played: tuple[Device, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    _device, store = played
    limited = NJ.with_options({"liability_max": 10_000})
    monkeypatch.setattr(store, "_packs", {NJ.hash(): limited})
    assert contested.refusal(store, UID, 1, 3, {"match": 2_500}) is None
    assert contested.refusal(store, UID, 1, 3, {"triple": 400}) == (
        "E_LIABILITY",
        "the table could owe 13500 cents; the limit is 10000",
    )
    # What lowers the debt never is: round 3 owed more than the limit.
    assert contested.refusal(store, UID, 3, 4, {}) is None


def test_a_streak_goes_on_from_what_was_removed(played: tuple[Device, Store]) -> None:
    _device, store = played
    second = store.settled_event(UID, 2)
    data = next(one["d"] for one in store.stream_events(UID, first=second, last=second))
    with closing(sqlite3.connect(str(store.path))) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute("DELETE FROM events WHERE id <= ?", [second])
        connection.execute(
            "INSERT INTO prunings (uid, last, first, rounds, older_than, utc, by, link, state) "
            "VALUES (?, ?, 1, 2, '', '', '', '', ?)",
            [UID, second, dumps({"state": {"streak": data["streak"]}, "boot": {}})],
        )
        connection.commit()
    assert why_not(store, 3, 1, bonus=100) == "E_BONUS_LATE"
    assert why_not(store, 3, 2, bonus=200) == ""
    assert why_not(store, 4, 2, bonus=200) == "E_BONUS_RAISE"


def test_the_table_refuses_the_same_live(tmp_path: Path) -> None:
    """The host's look back at each round is what the table said in it."""
    board = lossy.Board(tmp_path / "board", Fixed())
    with closing(Store(tmp_path / "live.db")) as store:
        device = Device("memory", store, open_transport=lambda port: lossy.MemoryWire(board))
        who = dealer.Dealer(device, NJ, lossy.MemoryLid(board))
        live: dict[tuple[int, int], str] = {}
        for number, bets in enumerate(BETS, 1):
            if number > 2:
                device.request("open", shaker=2)
                for position in (1, 4, 5):
                    try:
                        device.request("bets", position=position, wagers={"bonus": 900})
                        live[number, position] = ""
                    except Refused as refused:
                        live[number, position] = refused.code
            who.play(dealer.Plan(2, bets, {}, []))
            if number == 3:
                device.request("leave", position=4)
        device.wait_stored()
        assert {place: why_not(store, *place, bonus=900) for place in live} == live
        assert set(live.values()) == {"E_BONUS_LATE", "E_BONUS_RAISE", "E_BONUS_FORFEIT"}
        device.close()


def test_a_round_says_that_its_streak_counts_a_triple_that_was_corrected_away(
    tablectl: Tablectl, played: tuple[Device, Store]
) -> None:
    device, store = played
    assert "rests_on" not in store.round(4)
    dealer.correct(device, store, 2, "camera 4 shows a 3", dice=[3, 3, 5])
    dealer.correct(device, store, 3, "dealt twice")
    words = "it counts triples before it that were corrected away (round {}); the streak stays as it was played"
    for number, rounds in ((2, ""), (3, "2"), (4, "2, 3"), (5, "2, 3"), (6, "2, 3")):
        shown = " ".join(tablectl("show", str(number)).out.split())
        assert (words.format(rounds) in shown) == bool(rounds)
        assert ("corrected away" in shown) == bool(rounds)
        [row] = tablectl("show", str(number), "--json").rows
        assert row.get("rests_on", []) == [int(one) for one in rounds.split(", ") if one]
    # Back again: a triple is a triple.
    dealer.correct(device, store, 2, "they were sixes", dice=[6, 6, 6])
    dealer.correct(device, store, 3, "not twice", dice=[6, 6, 6])
    assert "rests_on" not in store.round(4)


def test_each_figure_of_a_report_is_of_one_kind_of_rolls(
    tablectl: Tablectl, board: lossy.Board, played: tuple[Device, Store]
) -> None:
    device, store = played
    lid = lossy.MemoryLid(board)
    entered = _by_hand(device, lid, [5, 5, 5])
    _by_hand(device, lid, [4, 4, 5])
    dealer.correct(device, store, entered, "misread", dice=[3, 3, 5])
    dealer.correct(device, store, 3, "dealt twice")
    [shift] = tablectl("report", "-", "--json").rows
    [figures] = shift["tables"]
    # Rounds 2 to 5 were triples in a row, and one was typed; two of these five count no more.
    assert (figures["triples_rolled"], figures["longest_streak"], figures["triples"]) == (5, 4, 3)
    assert figures["corrected_rounds"] == 2
    assert [(one["dice"], one.get("counts")) for one in figures["manual"]] == [
        ([5, 5, 5], [3, 3, 5]),
        ([4, 4, 5], None),
    ]
    page = tablectl("report", "-").out
    for words in ("triples as they were rolled", "triples as corrected", "5 5 5, corrected to 3 3 5", "4 4 5<"):
        assert words in page
    dealer.correct(device, store, entered, "enough")
    assert "5 5 5, corrected to void" in tablectl("report", "-").out


def _by_hand(device: Device, lid: lossy.MemoryLid, dice: list[int]) -> int:
    """A round whose result is entered by hand; its number."""
    number = int(device.request("open", shaker=2)["round"])
    device.request("close")
    entry = device.request("manual", dice=dice, reason="reader down")
    device.request("confirm", token=entry["token"], dice=dice)
    lid.open(device)
    device.wait_for(("SETTLED",), 10.0)
    lid.shut(device)
    device.poll(0.2)
    device.request("finish")
    device.wait_stored()
    return number
