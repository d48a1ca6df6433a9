"""A damaged journal and the host's record of it: what was settled stays so, and nothing sound is kept from the host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoneye.protocol import IDLE
from host_tools.store import Store
from tests.unit.tables import Desk
from tests.unit.test_store import UID, take_all, told


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "rounds.db")
    yield made
    made.close()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    folder = tmp_path / "journal"
    folder.mkdir()
    made = Desk(folder)
    made.hello()
    return made


def damage(desk: Desk, words: str) -> None:
    """Change the last line of the newest segment that has these words in it."""
    journal = max(desk.folder.glob("*.log"))
    lines = journal.read_bytes().splitlines(keepends=True)
    at = max(number for number, line in enumerate(lines) if words.encode() in line)
    lines[at] = lines[at].replace(words.encode(), b"!" * len(words))
    journal.write_bytes(b"".join(lines))


def restart(desk: Desk, store: Store) -> None:
    """Power off and on; a host that has `store` says hello."""
    desk.boot()
    desk.events, desk.hashes = [], []
    desk.hello(**store.history(UID))


def sync(desk: Desk, store: Store) -> None:
    """The host takes and acknowledges what the table may tell."""
    desk.now += 1000
    while fetched := desk.fetch():
        del fetched
        desk.now += 1000
    known = store.last(UID)[0]
    new = {event["id"]: (event, link) for event, link in zip(desk.events, desk.hashes, strict=True)}
    records = [new[number] for number in sorted(new) if number > known]
    assert all(take_all(store, records, first_event=desk.journal.first_id))


@pytest.mark.parametrize("kind", ["closed", "locked", "settled"])
def test_a_settled_round_survives(desk: Desk, store: Store, kind: str) -> None:
    desk.play([1, 2, 3])
    take_all(store, told(desk))
    damage(desk, f'"k":"{kind}"')
    for _ in range(2):  # with the damage, and once more when it has been cleared
        restart(desk, store)
        if desk.view().get("fault"):
            desk.ask("clear", code="JOURNAL")
        desk.tell("lid", False)
        desk.tell("lid", True)
        sync(desk, store)
    assert store.round(1)["status"] == "settled"
    assert store.round(1)["result"]["dice"] == [1, 2, 3]


@pytest.mark.parametrize("kind", ["opened", "closed", "locked", "settled"])
def test_the_streak_is_the_one_after_what_the_host_holds(desk: Desk, store: Store, kind: str) -> None:
    desk.play([5, 5, 5], {1: {"bonus": 100}, 2: {"bonus": 200}})
    desk.tell("lid", False)
    desk.ask("leave", position=2)
    take_all(store, told(desk))
    after = desk.view()["streak"]
    assert after == {"count": 1, "parts": [[1, 100]], "gone": [2]}
    damage(desk, f'"k":"{kind}"')
    restart(desk, store)
    assert desk.view()["streak"]["count"] == 0
    desk.ask("clear", code="JOURNAL")
    # What the host has settled is not settled again.
    assert (desk.state, desk.view()["streak"]) == (IDLE, after)
    sync(desk, store)
    restart(desk, store)
    desk.play([5, 5, 5])
    sync(desk, store)
    assert [(one["status"], one["result"]["before"]) for one in store.rounds(UID)] == [("settled", 0), ("settled", 1)]
    assert store.round(2)["result"]["rows"] == [[1, "bonus", 100, 500]]


def test_a_locked_result_outlives_the_damage_and_stays_secret(desk: Desk, store: Store) -> None:
    desk.reach("LOCKED", [6, 1, 2])
    sync(desk, store)
    desk.open_lid()
    damage(desk, '"k":"settled"')
    desk.tell("lid", False)
    restart(desk, store)  # the table knows the result again, and that nobody has seen it
    sync(desk, store)
    desk.ask("clear", code="JOURNAL")
    sync(desk, store)
    assert desk.state == "LOCKED"
    assert "[6,1,2]" not in "".join(str(event) for event in store.events(UID)).replace(" ", "")
    restart(desk, store)
    desk.open_lid()
    sync(desk, store)
    assert store.round(1)["result"]["dice"] == [6, 1, 2]


def test_what_stands_before_a_damaged_segment_is_delivered(desk: Desk, store: Store) -> None:
    while len(list(desk.folder.glob("*.log"))) < 2:
        desk.play([1, 2, 3])
        desk.tell("lid", False)
        desk.now += 10_000
    damage(desk, '"first"')
    restart(desk, store)  # a host that has nothing of it yet
    sync(desk, store)
    # The last one may be a result, which is kept back until the lid opens.
    assert store.last(UID)[0] == desk.ask("stats")["sendable"] >= 63
    desk.ask("clear", code="JOURNAL")
    sync(desk, store)
    desk.tell("lid", False)
    desk.open_lid()
    sync(desk, store)
    assert {one["status"] for one in store.rounds(UID, 1000)} == {"settled"}


def test_a_round_that_was_open_at_the_damage_is_void(desk: Desk, store: Store) -> None:
    desk.ask("open", shaker=1)
    desk.ask("close")
    damage(desk, '"k":"closed"')
    restart(desk, store)
    sync(desk, store)
    desk.ask("clear", code="JOURNAL")
    assert desk.state == IDLE
    desk.play([1, 1, 2])
    sync(desk, store)
    assert [one["status"] for one in store.rounds(UID)] == ["void", "settled"]
