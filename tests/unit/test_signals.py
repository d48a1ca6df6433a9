"""Ring and buzzer: every state is told without colours, nothing of a result is told, and nothing flickers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoneye import signals
from dragoneye.protocol import FAULT, LOCKED, SETTLED, TEST, VOID
from dragoneye.signals import SIGNALS, STEP_MS, Signals
from host_tools import codes
from tests.unit.tables import LASTING, Rig, pack_named

KEYS = list(SIGNALS)
RINGS = range(8, 25)
# Every pattern has come round by then: 24 pixels, and pauses of 16 steps.
STEPS = 48


def frames(key: str, pixels: int, steps: int = STEPS) -> list[int]:
    pattern: Any = SIGNALS[key][1]
    return [pattern(step, pixels) for step in range(steps)]


def turned(lit: int, pixels: int) -> int:
    """The same for every way that the ring may be built in: the least of its turns."""
    return min((lit >> by | lit << (pixels - by)) & ((1 << pixels) - 1) for by in range(pixels))


def seen(key: str, pixels: int) -> tuple[Any, ...]:
    """What tells a pattern from another, whenever one looks and however the ring is turned.

    The forms that are lit, the changes between them, whether it mostly grows or shrinks, and how long a form lasts.
    """
    shown = frames(key, pixels)
    forms = frozenset(turned(lit, pixels) for lit in shown)
    moves = frozenset(turned(one ^ other, pixels) for one, other in itertools.pairwise(shown))
    growth = [other.bit_count() - one.bit_count() for one, other in itertools.pairwise(shown)]
    mostly = sum(step > 0 for step in growth) > sum(step < 0 for step in growth) + 2
    runs = [len(list(run)) for _lit, run in itertools.groupby(shown)][1:-1]
    return forms, moves, mostly, frozenset(runs)


def test_every_state_has_a_signal() -> None:
    assert set(KEYS) == {*codes.STATES, signals.CALL}


@pytest.mark.parametrize("pixels", RINGS)
def test_states_are_told_apart_without_colours(pixels: int) -> None:
    shown = {key: seen(key, pixels) for key in KEYS}
    for one, other in itertools.combinations(KEYS, 2):
        assert shown[one] != shown[other], (one, other)


@pytest.mark.parametrize("pixels", RINGS)
@pytest.mark.parametrize("key", KEYS)
def test_a_pattern_stays_on_the_ring_and_is_seen(key: str, pixels: int) -> None:
    shown = frames(key, pixels)
    assert all(0 <= lit < 1 << pixels for lit in shown)
    assert any(shown)


@pytest.mark.parametrize("key", KEYS)
def test_no_ring_flashes_more_than_three_times_a_second(key: str) -> None:
    """WCAG 2.3.1: a flash is a pair of opposing changes of the whole ring."""
    bright = [lit.bit_count() >= 6 for lit in frames(key, 12)]
    second = 1000 // STEP_MS
    for start in range(len(bright) - second):
        changes = sum(one != other for one, other in itertools.pairwise(bright[start : start + second + 1]))
        assert changes <= 6


@pytest.mark.parametrize("pack", ["nj", "house"])
@pytest.mark.parametrize("state", LASTING)
def test_nothing_of_a_result_is_shown(pack: str, state: str) -> None:
    """Two tables whose dice differ show and sound the same at every moment, before and after the reveal."""
    told = []
    for dice in ([6, 6, 6], [1, 2, 4]):
        rig = Rig(pack)
        shown = Signals(12)
        rig.watch = lambda kind, rig=rig, shown=shown: shown.show(rig.table.state, rig.table.call, rig.now)  # type: ignore[misc]
        said: list[Any] = []
        rig.reach(state, dice)
        for _ in range(400):
            rig.now += 25
            shown.show(rig.table.state, rig.table.call, rig.now)
            said.append((shown.ring(rig.now), shown.hertz(rig.now)))
        told.append(said)
    assert told[0] == told[1]


@given(st.sampled_from(list(codes.STATES)), st.booleans(), st.integers(0, 10**6), st.integers(0, 10**5))
def test_a_signal_depends_on_the_state_and_the_time_since_it_began_alone(
    state: str, call: bool, start: int, later: int
) -> None:
    one, other = Signals(12), Signals(12)
    one.show(state, call, start)
    other.show(SETTLED if state != SETTLED else VOID, False, 0)
    other.show(state, call, start + 7)
    assert one.ring(start + later) == other.ring(start + 7 + later)
    assert one.hertz(start + later) == other.hertz(start + 7 + later)


def sounds(shown: Signals, now: int, for_ms: int) -> list[int]:
    """The tones in a row, without repeats."""
    return [hertz for hertz, _run in itertools.groupby(shown.hertz(now + ms) for ms in range(0, for_ms, 5)) if hertz]


def test_a_fault_sounds_until_it_is_cleared() -> None:
    shown = Signals(12)
    shown.show(FAULT, False, 0)
    once = sounds(shown, 0, 2900)
    assert len(once) == 3
    assert sounds(shown, 3000 * 50, 2900) == once
    shown.show(LOCKED, False, 200_000)
    assert sounds(shown, 210_000, 10_000) == []


def test_a_void_calls_once_and_a_supervisor_is_called_again_and_again() -> None:
    shown = Signals(12)
    shown.show(VOID, False, 0)
    assert sounds(shown, 0, 1000)
    assert not sounds(shown, 1000, 20_000)
    shown.show(VOID, True, 30_000)
    assert len(sounds(shown, 30_000, 20_000)) >= 8


def test_test_mode_ticks() -> None:
    shown = Signals(12)
    shown.show(TEST, False, 0)
    assert len(sounds(shown, 0, 40_000)) == 10


def test_a_refused_press_sounds_short_and_then_the_state_goes_on() -> None:
    shown = Signals(12)
    shown.show(FAULT, False, 0)
    assert shown.hertz(50) == SIGNALS[FAULT][2][0][0]
    shown.refused(50)
    [(hertz, length_ms)] = signals.REFUSED
    assert shown.hertz(50 + length_ms - 1) == hertz
    assert shown.hertz(3050) == SIGNALS[FAULT][2][0][0]
    assert shown.ring(60) == (SIGNALS[FAULT][0], frames(FAULT, 12)[0])


def test_nothing_is_shown_before_the_table_stands() -> None:
    assert Signals(12).ring(5) is None
    assert Signals(12).hertz(5) == 0


def test_a_call_is_what_the_view_says() -> None:
    rig = Rig(pack_named("nj", void_limit=1))
    rig.reach(VOID)
    assert rig.view()["call"]
    assert rig.table.call
    assert signals.key_of(rig.state, rig.view()["call"]) == signals.CALL
    rig = Rig()
    rig.reach(SETTLED)
    assert not rig.table.call
