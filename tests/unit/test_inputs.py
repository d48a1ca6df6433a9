"""The switches that guard the dice: every edge counts, however short."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


class Pin:
    """A pin that the test sets, with a hard interrupt at each edge."""

    IN = PULL_UP = 0
    IRQ_RISING, IRQ_FALLING = 1, 2

    def __init__(self, number: int, *_mode: int) -> None:
        self.level = 0
        self.handler: Callable[[Any], None] | None = None

    def value(self) -> int:
        return self.level

    def irq(self, handler: Callable[[Any], None], trigger: int, hard: bool) -> None:
        assert (trigger, hard) == (3, True)
        self.handler = handler

    def set(self, level: int) -> None:
        if level != self.level:
            self.level = level
            assert self.handler is not None
            self.handler(self)


@pytest.fixture
def inputs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, on a clock that `inputs.now` is."""
    machine = ModuleType("machine")
    machine.Pin = Pin  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "machine", machine)
    monkeypatch.delitem(sys.modules, "dragoneye.drivers.inputs", raising=False)
    module: Any = importlib.import_module("dragoneye.drivers.inputs")
    module.now = 0
    monkeypatch.setattr(time, "ticks_ms", lambda: module.now, raising=False)
    monkeypatch.setattr(time, "ticks_diff", lambda end, start: end - start, raising=False)
    yield module
    sys.modules.pop("dragoneye.drivers.inputs", None)


def made(inputs: Any, name: str) -> tuple[Any, list[int]]:
    """The guard of this name, and when it stopped the motor."""
    stopped: list[int] = []
    guard = inputs.Lid(17, lambda: stopped.append(inputs.now)) if name == "lid" else inputs.Guard(18)
    return guard, stopped


@pytest.mark.parametrize("name", ["lid", "tamper"])
@pytest.mark.parametrize("edges", [1, 2, 7, 0xFFFF])
def test_what_opens_and_shuts_between_two_samples_is_seen_once(inputs: Any, name: str, edges: int) -> None:
    guard, stopped = made(inputs, name)
    assert guard.active
    assert not guard.take_edge()
    for _ in range(edges):
        guard.pin.set(1)
        guard.pin.set(0)
    assert guard.moved
    assert guard.take_edge()
    assert not guard.take_edge()
    assert not guard.moved
    # Shut again before it was known to be open: no change, but it must be quiet before it is believed.
    assert not guard.poll()
    assert guard.active
    assert len(stopped) == (2 * edges if name == "lid" else 0)


@pytest.mark.parametrize("name", ["lid", "tamper"])
def test_a_level_that_stays_is_known_after_the_debounce(inputs: Any, name: str) -> None:
    guard, _stopped = made(inputs, name)
    guard.pin.set(1)
    assert not guard.poll()
    inputs.now += inputs.DEBOUNCE_MS - 1
    assert not guard.poll()
    inputs.now += 1
    assert guard.poll()
    assert not guard.active
