"""What becomes of a shift when its record or its port fails: told, nothing lost, nothing doubled, and it comes back."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import event

from dragoneye.rules.packs import load
from host_tools.audit import audit
from host_tools.device import Device
from host_tools.link import SerialTransport
from host_tools.store import StoreError, utc_text
from host_tools.web.hub import NotLinked, Recorder
from tests.virtual import LONG, until
from tests.web.conftest import BANK, PLAYERS, Client, Served


class Refusing:
    """A store that takes nothing while `why` is set; `asked` has the ids that it was asked to take."""

    def __init__(self) -> None:
        self.why = ""
        self.stored = 0
        self.asked: list[int] = []

    def last(self, uid: str) -> tuple[int, int]:
        return self.stored, 0

    def history(self, uid: str) -> dict[str, Any]:
        return {}

    def link(self, uid: str, record_id: int) -> None:
        return None

    def take(self, uid: str, record: dict[str, Any], link: str, first_event: int, tag: str) -> bool:
        self.asked.append(record["id"])
        if self.why:
            raise StoreError(self.why)
        self.stored = max(self.stored, record["id"])
        return True


class Refused:
    """A recorder over such a store at a time of one's own, two records of which were stored and three refused."""

    def __init__(self) -> None:
        self.store, self.now = Refusing(), 0.0
        self.recorder = Recorder(self.store, lambda: self.now)  # type: ignore[arg-type]
        self.take(1, 2)
        self.store.why = "the disk is full"
        self.take(3, 4, 5)
        self.now += 10
        self.store.why = ""

    def take(self, *ids: int) -> list[bool]:
        return [self.recorder.take("T", {"id": one}, "", 1) for one in ids]


def test_a_burst_asks_a_store_that_does_not_get_on_once() -> None:
    refused = Refused()
    assert refused.store.asked == [1, 2, 3]
    assert refused.recorder.trouble == "the disk is full"


def test_it_is_not_told_that_all_is_well_before_what_was_refused_is_stored() -> None:
    refused = Refused()
    # The second one was stored long ago and comes again, because its acknowledgement was lost.
    assert refused.take(2, 3, 4) == [True] * 3
    assert refused.recorder.trouble
    assert refused.take(5) == [True]
    assert not refused.recorder.trouble


def test_what_a_table_has_lost_is_not_waited_for() -> None:
    refused = Refused()
    # Its flash was lost: it goes on after the last record that is stored.
    refused.recorder.greeted("T", 3)
    assert refused.recorder.trouble
    assert refused.take(3) == [True]
    assert not refused.recorder.trouble
    other = Refused()
    other.recorder.greeted("T", 2)
    assert not other.recorder.trouble


def whole(served: Served, rounds: int) -> None:
    """The record has these rounds, and all of it fits together."""
    served.all_stored()
    assert [one["round"] for one in served.store.rounds()] == list(range(1, rounds + 1))
    done = audit(served.store, [load("nj")])
    # A table without keys tags nothing.
    notes = [note.what for note in done.notes if "no event has a tag" not in note.what]
    assert (done.rounds, done.findings, notes) == (rounds, [], [])


def test_a_record_that_cannot_be_read_is_told_and_read_again(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.play([1, 2, 4])
    served.all_stored()
    display = served.watch()
    display.until_state("IDLE")

    def broken(*_arguments: Any, **_more: Any) -> Any:
        raise StoreError("rounds.db: disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(served.store, "rounds", broken)
        served.hub.look_again()
        while not any("disk I/O error" in notice["text"] for notice in display.view["notices"]):
            display.next()
        assert Client(served, "dealer").do("open", shaker=1).status == 400
    # Nothing happens at the table, and still it is told that all is well.
    while any("disk I/O error" in notice["text"] for notice in display.view["notices"]):
        display.next()
    assert [roll["round"] for roll in display.view["rolls"]] == [1]
    Client(served, "dealer").done("open", shaker=1)


def test_a_disk_that_is_full_holds_up_no_round_that_is_under_way(served: Served) -> None:
    desk = Client(served, "dealer")
    served.play([1, 2, 4])
    served.all_stored()

    def full(connection: Any, *_more: Any) -> None:
        # No page more than there is: SQLite itself says that the disk is full.
        connection.execute("PRAGMA max_page_count=1")

    served.bench.do("next", dice=[3, 3, 5])
    desk.done("open", shaker=2)
    desk.done("bets", position=2, wagers={"match": 500})
    served.all_stored()
    event.listen(served.store._engine, "checkout", full)
    with closing(sqlite3.connect(served.folder / "rounds.db")) as other:
        # What is free in the file is used up first.
        other.execute("VACUUM")
    desk.done("close")
    while not served.hub.snapshot.record_trouble:
        # A few records may still find room on pages that there are.
        served.ask("changed", unit="shaker", keep=True)
    assert "the disk is full" in served.hub.snapshot.record_trouble
    answer = desk.do("shake")
    assert (answer.status, "the disk is full" in answer.json()["error"]) == (400, True)
    event.remove(served.store._engine, "checkout", full)
    served.store._engine.dispose()
    until(lambda: not served.hub.snapshot.record_trouble, "room")
    desk.done("shake")
    served.wait("LOCKED")
    served.reveal()
    served.finish()
    whole(served, 2)


def test_the_dealer_goes_on_while_another_program_has_locked_the_record(served: Served) -> None:
    desk = Client(served, "dealer")
    with closing(sqlite3.connect(served.folder / "rounds.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        desk.done("open", shaker=2)
        until(lambda: "locked" in served.hub.snapshot.record_trouble, "the trouble")
        # The bets of a round that is open are taken, and it is answered in time.
        desk.done("bets", position=2, wagers={"match": 500})
        desk.done("close")
        answer = desk.do("shake")
        assert (answer.status, "locked" in answer.json()["error"]) == (400, True)
        other.execute("ROLLBACK")
    until(lambda: not served.hub.snapshot.record_trouble, "the end of the trouble")
    served.bench.do("next", dice=[1, 2, 3])
    desk.done("shake")
    served.wait("LOCKED")
    served.reveal()
    served.finish()
    whole(served, 1)


def test_a_record_that_is_damaged_is_told_and_a_copy_of_it_goes_on(served: Served) -> None:
    desk = Client(served, "dealer")
    served.play([1, 2, 4])
    served.all_stored()
    place, copy = served.folder / "rounds.db", served.folder / "copy.db"
    served.store.backup(copy)
    served.play([2, 2, 2])
    served.all_stored()
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    served.store._engine.dispose()
    place.write_bytes(b"\xff" * place.stat().st_size)
    desk.do("open", shaker=1)
    until(lambda: "not a sound database" in served.hub.snapshot.record_trouble, "the trouble")
    assert not desk.stream.until_state("BETTING")["rolls"][2:]
    served.stop()
    for name in ("rounds.db", "rounds.db-wal", "rounds.db-shm"):
        (served.folder / name).unlink(missing_ok=True)
    shutil.copy(copy, place)
    # The copy is older by a round; the table has kept what came after it.
    served.start()
    served.ask("close")
    served.bench.do("next", dice=[1, 5, 3])
    served.ask("shake")
    served.wait("LOCKED")
    served.reveal()
    served.finish()
    whole(served, 3)


def test_a_port_that_another_program_took_meanwhile_is_told(served: Served) -> None:
    desk = Client(served, "dealer")

    def take(device: Device) -> SerialTransport:
        device.close()
        return SerialTransport(served.bench.port)

    other = served.hub.ask(take).result(LONG)
    view = desk.stream.until_state("OFFLINE")
    while "another program holds it" not in view["hint"]:
        view = desk.stream.next()
    answer = desk.do("open", key="held-by-another", shaker=1)
    assert (answer.status, "another program holds it" in answer.json()["error"]) == (503, True)
    other.close()
    desk.stream.until_state("IDLE")
    assert desk.do("open", key="held-by-another", shaker=1).status == 200
    served.all_stored()
    assert len(served.store.rounds()) == 1


def test_what_is_asked_of_a_hub_that_has_ended_is_refused(served: Served) -> None:
    served.hub.stop()
    with pytest.raises(NotLinked, match="the server is ending"):
        served.hub.ask(lambda device: device.uid).result(LONG)


def test_a_clock_that_was_put_back_does_not_mix_up_the_rounds(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = datetime.now(timezone.utc) + timedelta(hours=3)
    with monkeypatch.context() as patched:
        patched.setattr(served.store, "_clock", lambda: utc_text(ahead))
        served.play([1, 2, 4])
        served.play([1, 2, 5])
        served.all_stored()
    served.stop()
    served.start()
    desk, display = Client(served, "dealer"), served.watch()
    [words] = [one["text"] for one in display.next()["notices"] if one["kind"] == "clock"]
    assert utc_text(ahead)[:16].replace("T", " ") in words
    served.lock([6, 6, 2])
    served.reveal()
    until(lambda: served.hub.snapshot.rounds[-1]["status"] == "settled", "the result's record")
    while desk.stream.view.get("tiles_round") != 3:
        desk.stream.next()
    assert [one["round"] for one in desk.stream.view["rolls"]] == [1, 2, 3]
    stale = desk.do("tiles", round=2, keep=True, bank=BANK, players=PLAYERS)
    assert (stale.status, stale.json()["code"]) == (409, "STALE")
    assert desk.done("tiles", round=3, keep=True, bank=BANK, players=PLAYERS)["kept"]
    served.finish()
    served.all_stored()
    assert [one["round"] for one in served.store.rounds() if "tiles" in one] == [3]
    while display.view["state"] != "IDLE" or display.view["round"] != 3:
        display.next()
    assert (display.view["dice"]["total"], display.view["dice"]["past"]) == (14, True)
