"""Random walks over the round with the power cut at any record: what must hold on every way."""

from __future__ import annotations

import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from dragoneye import service
from dragoneye.protocol import FAULT, IDLE, LOCKED, SETTLED, Problem
from host_tools import codes
from tests.unit.tables import FOREIGN, Json, PowerCut, Rig, pack_named, tags_of
from tests.unit.walk import Walk, dice


def is_triple(dice: list[int]) -> bool:
    return len(set(dice)) == 1


def streak_of(records: list[Json]) -> int:
    """The triples in a row that the records tell, without the controller's own bookkeeping."""
    count = 0
    for record in records:
        data = record["d"]
        if record["k"] == "settled":
            count = count + 1 if is_triple(data["dice"]) else 0
        elif record["k"] == "streak" and (data["why"] == "table closed" or data["why"].endswith(" changed")):
            count = 0
    return count


def highest_bonuses(records: list[Json]) -> dict[int, int]:
    """What each position may hold during the present streak: what it held at its last roll, and no more than later."""
    most: dict[int, int] = {}
    for record in records:
        if record["k"] == "settled":
            most = {row[0]: row[2] for row in record["d"]["rows"] if row[1] == "bonus"}
        elif record["k"] == "streak":
            parts = dict(record["d"]["streak"]["parts"])
            most = {position: min(most[position], parts.get(position, 0)) for position in most}
    return most


class AnyRound(Walk):
    """Anything may happen at any time, but the natural next step comes often, so that rounds get somewhere."""

    @initialize(pack=st.sampled_from(["nj", "house"]), limit=st.sampled_from([1, 3]))
    def begin(self, pack: str, limit: int) -> None:
        self.rig = Rig(pack_named(pack, void_limit=limit), settings={"lockout_ms": 500})
        self.rig.table.take_effects()
        self.checked = 0
        self.stopped = 0
        self.entry: Json | None = None

    @property
    def at(self) -> Rig:
        return self.rig

    # -- steps

    def attempt(self, name: str, fields: Json) -> None:
        """A request; that a refused one changes nothing is checked by the rig."""
        try:
            answer = self.rig.ask(name, **fields)
        except Problem:
            return
        if name == "manual":
            self.entry = {"token": answer["token"], "dice": answer["dice"]}

    @precondition(lambda self: self.entry is not None)
    @rule()
    def confirm(self) -> None:
        self.attempt("confirm", self.entry or {})

    @rule(milliseconds=st.sampled_from([0, 1, 399, 400, 499, 500, 3000, 15000]))
    def wait(self, milliseconds: int) -> None:
        self.rig.wait(milliseconds)

    @rule(late=st.integers(0, 2), moved=st.booleans())
    def shaken(self, late: int, moved: bool) -> None:
        before = self.rig.snapshot()
        self.rig.tell("shaken", self.rig.table._roll - late, moved)
        if late:
            assert self.rig.snapshot() == before

    @rule(late=st.integers(0, 2), dice=dice, kind=st.sampled_from(["good", "short", "two", "none", "foreign"]))
    def tags(self, late: int, dice: list[int], kind: str) -> None:
        before = self.rig.snapshot()
        tags: set[str] | None = tags_of(dice)
        if kind == "short":
            tags = set(sorted(tags or ())[1:])
        elif kind == "two":
            tags = (tags or set()) | tags_of([dice[0] % 6 + 1, *dice[1:]])
        elif kind == "none":
            tags = None
        elif kind == "foreign":
            tags = (tags or set()) | {FOREIGN}
        self.rig.tell("tags", self.rig.table._roll - late, tags)
        if late:
            assert self.rig.snapshot() == before

    @rule()
    def lose_power(self) -> None:
        self.rig.restart()

    @rule(records=st.integers(0, 2), dice=dice)
    def lose_power_within_a_step(self, records: int, dice: list[int]) -> None:
        self.rig.cut = records
        try:
            self.next_step(dice)
        except PowerCut:
            self.stopped += 1
            self.rig.restart()
        self.rig.cut = None

    # -- what must hold

    @invariant()
    def the_motor_stops_when_a_roll_is_void(self) -> None:
        if not hasattr(self, "rig"):
            return
        new = self.rig.records[self.checked :]
        effects = [effect for effect, _value in self.rig.table.take_effects()]
        restarted = any(record["k"] == "boot" for record in new)
        voids = [record["d"] for record in new if record["k"] == "void" and not record["d"]["over"]]
        if voids and not restarted:
            assert effects.count(service.STOP) >= len(voids)
        self.checked = len(self.rig.records)

    @invariant()
    def nothing_is_known_before_the_lid_opens(self) -> None:
        if not hasattr(self, "rig"):
            return
        told = json.dumps(self.rig.view())
        assert ('"dice"' in told) == (self.rig.state == SETTLED)
        if self.rig.state == SETTLED:
            assert self.rig.view()["dice"] == self.rig.last("settled")["dice"]

    @invariant()
    def the_streak_is_what_the_records_tell(self) -> None:
        if not hasattr(self, "rig"):
            return
        streak = self.rig.view()["streak"]
        assert streak["count"] == streak_of(self.rig.records)
        assert self.rig.durable["streak"] == streak

    @invariant()
    def no_bonus_is_raised_during_a_streak(self) -> None:
        if not hasattr(self, "rig"):
            return
        view = self.rig.view()
        if view["streak"]["count"] and self.rig.state != SETTLED:
            most = highest_bonuses(self.rig.records)
            assert all(bets.get("bonus", 0) <= most.get(position, 0) for position, bets in view["bets"])

    @invariant()
    def the_durable_state_is_the_fold_of_the_records(self) -> None:
        if not hasattr(self, "rig"):
            return
        table = self.rig.table
        assert self.rig.durable["round"] == table.round
        assert (self.rig.durable["fault"] is not None) == (self.rig.state == FAULT)
        assert (self.rig.durable["locked"] is None) == (table.locked is None)

    def teardown(self) -> None:
        if not hasattr(self, "rig"):
            return
        # The end: power comes back once more, and whatever was locked is shown.
        rig = self.rig
        rig.restart()
        while rig.state == FAULT:
            rig.ask("clear", code=rig.view()["fault"])
        if rig.state == LOCKED:
            rig.open_lid()
        assert rig.state in (IDLE, SETTLED)
        check_rounds(rig.records)


def check_rounds(records: list[Json]) -> None:
    """Each opened round has one end; numbers rise by one; a locked result is settled with exactly those dice."""
    ids = [record["id"] for record in records]
    assert ids == list(range(1, len(records) + 1))
    opened = [record["d"]["round"] for record in records if record["k"] == "opened"]
    assert opened == list(range(1, len(opened) + 1))
    ends = [
        record["d"]["round"]
        for record in records
        if record["k"] == "settled" or (record["k"] == "void" and record["d"]["over"])
    ]
    assert ends == opened
    locked = [record["d"] for record in records if record["k"] == "locked"]
    settled = [record["d"] for record in records if record["k"] == "settled"]
    same = ("round", "dice", "eye", "shaker", "shakes", "manual")
    assert [[data[key] for key in same] for data in locked] == [[data[key] for key in same] for data in settled]
    for record in records:
        if record["k"] == "void":
            assert record["d"]["reason"] in codes.VOIDS
        assert record["k"] in codes.EVENTS


TestAnyRound = AnyRound.TestCase
TestAnyRound.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
