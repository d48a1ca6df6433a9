"""The order in which the collector is shown the firmware's modules; its effect shows on the emulated Pico."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from dragoneye import errors, heap, text
from tests.unit.test_layers import ROOT, imports, sources, starts


def imported_by_each() -> dict[str, set[str]]:
    """The firmware's modules, without its packages, and what each imports: modules of its own, and asyncio."""
    paths = {name: path for name, path in sources(ROOT) if starts(name, "dragoneye") and path.name != "__init__.py"}
    return {
        name: {known for known in (*paths, "asyncio") for _line, told in imports(name, path) if starts(told, known)}
        for name, path in paths.items()
    }


def test_every_module_is_named_after_those_that_it_imports() -> None:
    known = imported_by_each()
    running = {name for name, imported in known.items() if "asyncio" in imported}
    while more := {name for name, imported in known.items() if imported & running} - running:
        running |= more
    assert {"dragoneye.app", "dragoneye.drivers.board", "dragoneye.drivers.mfrc522"} <= running
    named = ["dragoneye." + name for name in heap.MODULES]
    assert sorted(named) == sorted(set(known) - running - {"dragoneye.heap"})
    for at, name in enumerate(named):
        assert known[name] <= set(named[:at]), name


def test_the_modules_are_looked_at_one_by_one_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sys.modules["dragoneye.text"] is text
    monkeypatch.setattr(heap, "MODULES", ("errors", "text"))
    order: list[Any] = [None, None, None]
    monkeypatch.setattr(heap, "_order", order)
    heap.mark_modules_first("app")
    # The collector takes the last of a list or a tuple first.
    app, large, chain = order
    (none, second), first = chain
    assert (first, second, none, large, app) == (errors, text, (), None, "app")
    seen: list[object] = []
    monkeypatch.setattr("gc.collect", lambda: seen.append(order[1]))
    heap.collect("pack", "registry")
    assert (seen, order[1]) == ([("pack", "registry")], None)


def test_a_module_that_is_not_imported_yet_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "MODULES", ("errors", "nowhere"))
    order: list[Any] = [None, None, None]
    monkeypatch.setattr(heap, "_order", order)
    heap.mark_modules_first(None)
    assert order == [None, None, ((), errors)]
