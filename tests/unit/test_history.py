"""A table whose flash was lost, and the record that the host holds of it: one history, or a clear refusal."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from dragoneye.errors import BadInput
from dragoneye.keys import KEEPERS, NAMES, Key
from dragoneye.protocol import TECHNICIAN
from dragoneye.rules.packs import load
from host_tools.dealer import Dealer, Plan
from host_tools.device import Device
from host_tools.keys import made
from host_tools.link import LinkError
from host_tools.store import Store
from tests.lossy import Board, MemoryLid, MemoryWire
from tests.table.played import check_record

BONUS = Plan(1, {2: {"bonus": 100}}, {}, [])
NONE = Plan(1, {}, {}, [])


class Desk:
    """A table in memory and the host that keeps its record."""

    def __init__(self, folder: Path) -> None:
        self.journal = folder / "journal"
        self.journal.mkdir()
        self.board = Board(self.journal, random.Random(1))
        self.store = Store(folder / "rounds.db")
        self.other = Store(folder / "other.db")

    def connect(self, store: Store | None = None) -> Device:
        return Device("memory", store or self.store, open_transport=lambda port: MemoryWire(self.board))

    def play(self, *rolls: list[int], plan: Plan = NONE, store: Store | None = None) -> Device:
        """A round for each roll, kept by the host."""
        device = self.connect(store)
        for dice in rolls:
            self.board._rng = Loaded(dice)
            Dealer(device, load("nj"), MemoryLid(self.board), patience=60.0).play(plan)
        device.wait_stored()
        return device

    def wipe(self) -> None:
        for file in self.journal.iterdir():
            file.unlink()
        self.board.start()


class Loaded(random.Random):
    """Dice that show what is wanted."""

    def __init__(self, dice: list[int]) -> None:
        super().__init__(1)
        self._wanted = list(dice)

    def randint(self, _low: int, _high: int) -> int:
        return self._wanted.pop(0)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.store.close()
    made.other.close()


def test_a_wiped_table_goes_on_after_the_hosts_record_with_its_streak(desk: Desk) -> None:
    desk.play([5, 5, 5], plan=BONUS)
    last, _round = desk.store.last("U1")
    desk.wipe()
    # It was started once more before the host came.
    desk.board.start()
    device = desk.play([6, 6, 6])
    assert [(one["round"], one["status"]) for one in desk.store.rounds("U1")] == [(1, "settled"), (2, "settled")]
    assert desk.store.round(2)["result"]["rows"] == [[2, "bonus", 100, 50]]
    events = desk.store.events("U1")
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert [event["id"] for event in events if event["k"] == "restart"] == [last + 1]
    assert device.state["streak"]["count"] == 2


def test_a_wiped_table_that_only_started_often_goes_on_as_well(desk: Desk) -> None:
    desk.board.lid(True)
    desk.board.lid(False)
    desk.connect().wait_stored()
    desk.wipe()
    for _ in range(5):
        desk.board.start()
    used = desk.board.controller.journal.last_id
    desk.play([1, 2, 3])
    events = desk.store.events("U1")
    assert [event["id"] for event in events if event["k"] == "restart"] == [used + 2]
    assert len({event["id"] for event in events}) == len(events)
    assert desk.store.round(1)["status"] == "settled"


def test_an_older_copy_of_the_flash_goes_on_after_the_hosts_record(desk: Desk, tmp_path: Path) -> None:
    desk.play([1, 2, 3])
    shutil.copytree(desk.journal, tmp_path / "copy")
    desk.play([5, 5, 5], plan=BONUS)
    shutil.rmtree(desk.journal)
    shutil.copytree(tmp_path / "copy", desk.journal)
    desk.board.start()
    desk.play([6, 6, 6])
    assert [one["result"]["before"] for one in desk.store.rounds("U1")] == [0, 0, 1]


@pytest.mark.parametrize("rounds", [1, 6])
def test_a_table_that_has_played_on_without_its_history_is_refused(desk: Desk, rounds: int) -> None:
    desk.play([1, 2, 3], [5, 5, 5], [2, 2, 4])
    before = desk.store.events("U1")
    desk.wipe()
    desk.play(*[[4, 4, 1]] * rounds, store=desk.other)
    with pytest.raises(
        LinkError, match=r"table U1: its record is not the one that is stored here; they differ from event"
    ):
        desk.connect()
    assert desk.store.events("U1") == before
    # Nothing was told to the table either: the record that fits goes on.
    desk.play([4, 5, 6], store=desk.other)
    assert len(check_record(desk.other, "U1")) == rounds + 1


def test_two_hosts_that_take_turns_are_refused_by_none(desk: Desk) -> None:
    for _ in range(3):
        desk.play([1, 2, 3])
        desk.play([5, 5, 5], store=desk.other)
    desk.connect().wait_stored()
    assert desk.store.events("U1")[-1]["id"] == desk.other.events("U1")[-1]["id"]
    check_record(desk.store, "U1")


# -- at a table with keys --------------------------------------------------------------------------------------------


class Held:
    """A host's keys of some roles."""

    def __init__(self, raw: Mapping[str, bytes], *roles: str) -> None:
        self._raw = raw
        self._roles = roles

    def key(self, uid: str, key_id: str, roles: Sequence[str]) -> tuple[str, Key]:
        for role in roles:
            if role in self._roles:
                return role, Key(self._raw[role])
        raise BadInput("no such key here")

    def knows(self, uid: str) -> bool:
        return bool(self._roles)


class KeyedDesk(Desk):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.raw = dict(made())
        self.board = Board(self.journal, random.Random(1), raw=self.raw)
        self.roles: tuple[str, ...] = NAMES

    def connect(self, store: Store | None = None) -> Device:
        held = Held(self.raw, *self.roles)
        return Device("memory", store or self.store, open_transport=lambda port: MemoryWire(self.board), signer=held)


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[KeyedDesk]:
    desk = KeyedDesk(tmp_path)
    yield desk
    desk.store.close()
    desk.other.close()


@pytest.mark.parametrize("role", KEEPERS)
def test_a_wiped_table_takes_its_history_from_who_serves_it(keyed: KeyedDesk, role: str) -> None:
    keyed.play([5, 5, 5], plan=BONUS)
    last, _round = keyed.store.last("U1")
    keyed.wipe()
    keyed.roles = (role,)
    device = keyed.play([6, 6, 6])
    [restart] = [event for event in keyed.store.events("U1") if event["k"] == "restart"]
    assert (restart["id"], restart["d"]["by"]) == (last + 1, role)
    assert device.state["streak"]["count"] == 2
    assert len(check_record(keyed.store, "U1")) == 2


@pytest.mark.parametrize("roles", [(), (TECHNICIAN,)])
def test_who_holds_no_such_key_looks_on_and_cannot_give_a_history_back(
    keyed: KeyedDesk, roles: tuple[str, ...]
) -> None:
    keyed.play([5, 5, 5])
    acked = keyed.board.controller.journal.acked
    keyed.roles = roles
    keyed.board.lid(True)
    device = keyed.connect(keyed.other)
    device.wait_stored()
    assert keyed.other.last("U1")[0] > acked == keyed.board.controller.journal.acked
    keyed.wipe()
    before = {path.name: path.read_bytes() for path in keyed.journal.iterdir()}
    with pytest.raises(LinkError, match="not signed; it needs a key of: dealer, supervisor"):
        keyed.connect(keyed.other)
    assert {path.name: path.read_bytes() for path in keyed.journal.iterdir()} == before
    # Then it looks on again.
    keyed.roles = NAMES
    keyed.connect(keyed.other).wait_stored()
    keyed.roles = roles
    keyed.connect(keyed.other).wait_stored()
