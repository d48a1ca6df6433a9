"""The bonus streak against a model of its own, written from the rules' bullets, and each bullet by example."""

from __future__ import annotations

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dragoneye.rules import packs, wagers
from dragoneye.rules.streak import FORFEIT, LATE, RAISED, Streak

POSITIONS = (1, 2, 3, 4, 5, 6, 7)
positions = st.sampled_from(POSITIONS)
amounts = st.sampled_from((1, 2, 99, 100, 101, 100_000_000))


class TableWithAStreak(RuleBasedStateMachine):
    """Seven boxes with bonus wagers; `least` is the smallest amount each part of the streak was ever held at."""

    def __init__(self) -> None:
        super().__init__()
        self.streak = Streak()
        self.triples = 0
        self.boxes: dict[int, int] = {}
        self.least: dict[int, int] = {}
        self.ended: set[int] = set()

    def why_not(self, position: int, stake: int) -> str | None:
        if self.triples == 0 or stake == 0:
            return None
        if position in self.ended:
            return FORFEIT
        if position not in self.least:
            return LATE
        return RAISED if stake > self.least[position] else None

    def out(self, position: int) -> bool:
        """The position's part, if it has one, is over until the streak ends."""
        self.boxes.pop(position, None)
        if self.least.pop(position, None) is None:
            return False
        self.ended.add(position)
        return True

    def clear(self) -> None:
        self.triples = 0
        self.boxes, self.least, self.ended = {}, {}, set()

    @rule(position=positions, stake=amounts)
    def bets(self, position: int, stake: int) -> None:
        before = self.streak.as_dict()
        said = self.streak.refusal(position, stake)
        assert said == self.why_not(position, stake)
        assert self.streak.as_dict() == before
        if said is None:
            changes = position in self.least and self.least[position] != stake
            assert self.streak.hold(position, stake) is changes
            self.boxes[position] = stake
            if position in self.least:
                self.least[position] = min(self.least[position], stake)

    @rule(position=positions)
    def takes_it_off(self, position: int) -> None:
        assert self.streak.refusal(position, 0) is None
        assert self.streak.hold(position, 0) is self.out(position)

    @rule(position=positions)
    def leaves_or_moves(self, position: int) -> None:
        assert self.streak.leave(position) is self.out(position)

    @rule()
    def a_triple(self) -> None:
        assert self.streak.roll(True, dict(self.boxes)) == self.triples
        if self.triples == 0:
            self.least = dict(self.boxes)
        self.triples += 1

    @rule()
    def another_roll(self) -> None:
        assert self.streak.roll(False, dict(self.boxes)) == self.triples
        self.clear()

    @rule()
    def the_table_closes(self) -> None:
        self.streak.end()
        self.clear()

    @rule()
    def the_power_fails(self) -> None:
        self.streak = Streak.from_dict(json.loads(json.dumps(self.streak.as_dict())))

    @precondition(lambda self: self.triples > 0)
    @rule(position=positions, change=st.sampled_from((-1, 0, 1)))
    def asks_around_its_own_stake(self, position: int, change: int) -> None:
        stake = self.least.get(position, 50) + change
        assert self.streak.refusal(position, stake) == self.why_not(position, stake)

    @invariant()
    def they_agree(self) -> None:
        assert self.streak.count == self.triples
        assert self.streak.running is (self.triples > 0)
        assert self.streak.stakes() == self.least
        assert self.streak.as_dict() == {
            "count": self.triples,
            "parts": [[position, self.least[position]] for position in POSITIONS if position in self.least],
            "gone": [position for position in POSITIONS if position in self.ended],
        }


TestTableWithAStreak = TableWithAStreak.TestCase
TestTableWithAStreak.settings = settings(max_examples=150, stateful_step_count=40)


def started(**boxes: int) -> Streak:
    """A streak of one triple; started(p3=100) had 100 on position 3."""
    streak = Streak()
    streak.roll(True, {int(name[1:]): stake for name, stake in boxes.items()})
    return streak


def test_without_a_streak_everybody_may_bet_anything() -> None:
    streak = Streak()
    assert [streak.refusal(position, 100_000_000) for position in POSITIONS] == [None] * 7
    assert (streak.running, streak.count, streak.stakes()) == (False, 0, {})
    assert streak.hold(1, 100) is False
    assert streak.leave(1) is False


def test_a_bonus_must_be_down_before_the_first_triple() -> None:
    streak = started(p3=100)
    assert streak.refusal(3, 100) is None
    assert streak.refusal(4, 1) == LATE
    streak.roll(True, {3: 100, 4: 100})
    assert streak.refusal(4, 1) == LATE
    assert streak.stakes() == {3: 100}


def test_nobody_may_raise() -> None:
    streak = started(p3=100)
    assert [streak.refusal(3, stake) for stake in (99, 100, 101)] == [None, None, RAISED]


def test_the_smallest_amount_held_is_the_stake() -> None:
    streak = started(p3=100)
    assert streak.hold(3, 60) is True
    assert streak.hold(3, 60) is False
    assert streak.stakes() == {3: 60}
    # Back to what it once was is a raise, also after the next triple.
    assert [streak.refusal(3, stake) for stake in (60, 61, 100)] == [None, RAISED, RAISED]
    streak.roll(True, {3: 60})
    assert [streak.refusal(3, stake) for stake in (60, 61, 100)] == [None, RAISED, RAISED]


def test_taking_it_off_ends_the_part_until_the_streak_ends() -> None:
    streak = started(p3=100, p4=50)
    assert streak.refusal(3, 0) is None
    assert streak.hold(3, 0) is True
    assert (streak.refusal(3, 1), streak.stakes()) == (FORFEIT, {4: 50})
    streak.roll(True, {4: 50})
    assert streak.refusal(3, 1) == FORFEIT
    streak.roll(False, {4: 50})
    assert streak.refusal(3, 100_000_000) is None


def test_a_player_who_leaves_or_moves_forfeits() -> None:
    streak = started(p3=100)
    assert streak.leave(3) is True
    assert streak.leave(3) is False
    # Neither the old place nor the new one has a part.
    assert [streak.refusal(position, 100) for position in (3, 5)] == [FORFEIT, LATE]


def test_a_roll_that_is_no_triple_ends_the_streak_for_everybody() -> None:
    streak = started(p3=100)
    assert streak.roll(True, {3: 100}) == 1
    assert streak.roll(False, {3: 100}) == 2
    assert streak.as_dict() == Streak().as_dict()
    assert [streak.refusal(position, 500) for position in POSITIONS] == [None] * 7


def test_closing_the_table_ends_the_streak() -> None:
    streak = started(p3=100)
    streak.leave(3)
    streak.end()
    assert streak.as_dict() == Streak().as_dict()


def test_a_triple_with_no_bonus_down_starts_a_streak_all_the_same() -> None:
    streak = started()
    assert (streak.running, streak.refusal(1, 1)) == (True, LATE)


def test_a_new_streak_remembers_nothing_of_the_last() -> None:
    streak = started(p3=100)
    streak.leave(3)
    streak.roll(False, {})
    streak.roll(True, {3: 700})
    assert streak.as_dict() == {"count": 1, "parts": [[3, 700]], "gone": []}


@pytest.mark.parametrize(("role", "paid"), [("shaker", [30, 500, 10_000, 10_000]), ("player", [25, 50, 1_000, 1_000])])
def test_each_level_is_paid_on_its_own_roll(role: str, paid: list[int]) -> None:
    streak, nj = Streak(), packs.load("nj")
    levels = [streak.roll(True, {3: 100}) for _ in paid]
    assert [wagers.odds("bonus", (4, 4, 4), 0, 3, role, level, nj) for level in levels] == paid


def test_a_kept_state_is_json_and_shares_nothing_with_the_streak() -> None:
    streak = started(p7=5, p3=100, p1=9)
    streak.leave(7)
    kept = streak.as_dict()
    again = Streak.from_dict(kept)
    again.hold(3, 0)
    again.roll(True, {})
    assert json.loads(json.dumps(kept)) == kept == streak.as_dict()
    assert kept == {"count": 1, "parts": [[1, 9], [3, 100]], "gone": [7]}


def test_the_stakes_that_are_told_and_given_are_copies() -> None:
    boxes = {3: 100}
    streak = Streak()
    streak.roll(True, boxes)
    boxes[4] = 100
    streak.stakes()[5] = 100
    assert streak.stakes() == {3: 100}


def test_a_part_is_never_worth_more_than_what_was_held_on_the_roll() -> None:
    # The bets were recorded, and the power failed before the streak was.
    streak = Streak()
    streak.roll(True, {1: 100, 2: 200, 3: 300})
    streak.roll(True, {1: 100, 2: 50})
    assert streak.as_dict() == {"count": 2, "parts": [[1, 100], [2, 50]], "gone": [3]}
