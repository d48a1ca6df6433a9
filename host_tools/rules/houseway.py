"""House ways: how a casino sets four tiles, as data files with a name, a version and a source.

A house way is a list of rules. The first rule whose condition holds for at least one of the splits decides: among the
splits it holds for, the one it prefers. See `data/house_ways/*.json`, and docs/rules.md for the form of the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoneye.errors import BadInput
from host_tools.i18n import _
from host_tools.rules.check import fields, shown, whole, word
from host_tools.rules.tiles import Hands, Rank, Tile, rank, splits

_FOLDER = Path(__file__).parent / "data" / "house_ways"
_KINDS = ("pair", "wong", "gong", "value")
_PREFERENCES = ("high", "low")


@dataclass(frozen=True)
class HandCondition:
    """What a rule asks of one hand of a split; None asks nothing. Bounds are inclusive."""

    kinds: tuple[str, ...] | None = None
    pair_ranks: tuple[int, int] | None = None
    values: tuple[int, int] | None = None

    def holds(self, hand: Rank) -> bool:
        """True when a hand of this rank is what is asked for."""
        return (
            (self.kinds is None or hand.kind in self.kinds)
            and (self.pair_ranks is None or _within(hand.pair_rank, self.pair_ranks))
            and (self.values is None or _within(hand.value, self.values))
        )


class Candidate:
    """One split of the four tiles with the ranks of its two hands."""

    def __init__(self, hands: Hands, zero_rule: str) -> None:
        self.hands = hands
        self.high = rank(*hands.high, zero_rule)
        self.low = rank(*hands.low, zero_rule)


@dataclass(frozen=True)
class Rule:
    """One rule: its short name, its words, what it asks of the high and the low hand, and what it prefers, in order."""

    rule: str
    text: str
    high: HandCondition
    low: HandCondition
    prefer: tuple[str, ...]


@dataclass(frozen=True)
class HouseWay:
    """A house way: `complete` is False where its public description ends, and `ends` says what happens from there."""

    name: str
    version: str
    title: str
    source: str
    complete: bool
    ends: str
    rules: tuple[Rule, ...]

    def set(self, four: Sequence[Tile], zero_rule: str = "high_tile") -> Hands:
        """Four tiles set as two hands, with the rule that decided. Raises BadInput if they are not four from one set.

        >>> load("max_low").set((Tile.T66, Tile.T66, Tile.T45, Tile.T44))
        Hands(high=(6-6, 4-5), low=(6-6, 4-4), rule='best-low')
        >>> load("max_high").set((Tile.T66, Tile.T66, Tile.T45, Tile.T44))
        Hands(high=(6-6, 6-6), low=(4-4, 4-5), rule='best-high')
        """
        candidates = [Candidate(hands, zero_rule) for hands in splits(four)]
        for rule in self.rules:
            fitting = [one for one in candidates if rule.high.holds(one.high) and rule.low.holds(one.low)]
            if fitting:
                best = max(fitting, key=lambda one: [getattr(one, which).strength for which in rule.prefer])
                return replace(best.hands, rule=rule.rule)
        raise AssertionError("the last rule holds for every hand: load() has seen to it")


def _within(number: int | None, bounds: tuple[int, int]) -> bool:
    return number is not None and bounds[0] <= number <= bounds[1]


def names() -> list[str]:
    """The house ways that come with the program.

    >>> "max_low" in names()
    True
    """
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def load(name: str) -> HouseWay:
    """The house way `name`, or the one in an operator's own .json file. Raises BadInput when there is none.

    >>> load("max_low").version
    '1'
    """
    if name in names():
        path = _FOLDER / f"{name}.json"
    elif name.endswith(".json"):
        path = Path(name)
    else:
        raise BadInput(
            _("there is no house way {name}; allowed: {names}, or the path of a file ending in .json").format(
                name=shown(name), names=", ".join(names())
            )
        )
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise BadInput(_("house way {path}: the file cannot be read").format(path=path)) from None
    except (ValueError, RecursionError):
        raise BadInput(_("house way {path}: the file is not JSON").format(path=path)) from None
    return from_dict(data, _("house way {path}").format(path=path.name))


def from_dict(data: Any, where: str = "house way") -> HouseWay:
    """A HouseWay out of a parsed file; `where` names it in errors. Raises BadInput.

    >>> from_dict({"name": "x"})
    Traceback (most recent call last):
    dragoneye.errors.BadInput: house way has no version; needed: name, version, source, rules
    """
    parts = fields(data, ("name", "version", "source", "rules"), ("title", "complete", "ends"), where)
    for key in ("name", "version", "source", "title", "ends"):
        if not isinstance(parts.get(key, ""), str):
            raise BadInput(_("{where}: {key} must be a text").format(where=where, key=key))
    if not isinstance(parts.get("complete", True), bool):
        raise BadInput(_("{where}: complete must be true or false").format(where=where))
    if not isinstance(parts["rules"], list):
        raise BadInput(_("{where}: rules must be a list").format(where=where))
    rules = tuple(_rule(row, f"{where}, rule {number}") for number, row in enumerate(parts["rules"], 1))
    if not rules or rules[-1].high != HandCondition() or rules[-1].low != HandCondition():
        raise BadInput(_("{where}: the last rule must hold for every hand").format(where=where))
    return HouseWay(
        parts["name"],
        parts["version"],
        parts.get("title", parts["name"]),
        parts["source"],
        parts.get("complete", True),
        parts.get("ends", ""),
        rules,
    )


def _rule(row: Any, where: str) -> Rule:
    parts = fields(row, ("rule", "text", "prefer"), ("high", "low"), where)
    if not isinstance(parts["rule"], str) or not isinstance(parts["text"], str):
        raise BadInput(_("{where}: rule and text must be texts").format(where=where))
    if not isinstance(parts["prefer"], list) or not parts["prefer"]:
        raise BadInput(_("{where}: prefer must be a list of high and low").format(where=where))
    prefer = tuple(word(which, _PREFERENCES, f"{where}: prefer") for which in parts["prefer"])
    return Rule(
        parts["rule"],
        parts["text"],
        _condition(parts.get("high", {}), f"{where}, high"),
        _condition(parts.get("low", {}), f"{where}, low"),
        prefer,
    )


def _condition(value: Any, where: str) -> HandCondition:
    parts = fields(value, (), ("kinds", "pair_ranks", "values"), where)
    kinds = parts.get("kinds")
    if kinds is not None:
        if not isinstance(kinds, list):
            raise BadInput(_("{where}: kinds must be a list").format(where=where))
        kinds = tuple(word(kind, _KINDS, f"{where}: kinds") for kind in kinds)
    return HandCondition(
        kinds, _bounds(parts.get("pair_ranks"), 1, 20, where), _bounds(parts.get("values"), 0, 9, where)
    )


def _bounds(value: Any, low: int, high: int, where: str) -> tuple[int, int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise BadInput(_("{where}: bounds are a list of two numbers").format(where=where))
    return whole(value[0], low, high, where), whole(value[1], low, high, where)
