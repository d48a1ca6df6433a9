"""House ways: how a casino sets four tiles, as data files with a name, a version and a source.

A house way is a list of rules. The first rule whose condition holds for at least one of the splits decides: among the
splits it holds for, the one it prefers. See `data/house_ways/*.json`, and docs/rules.md for the form of the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, NamedTuple

from dragoneye.errors import BadInput
from host_tools import bounded
from host_tools.i18n import _
from host_tools.rules.check import fields, filled, shown, whole, word
from host_tools.rules.tiles import Hands, Pair, Rank, Tile, parse, rank, splits, strength, table
from host_tools.rules.tiles_text import individual_ranking

_FOLDER = Path(__file__).parent / "data" / "house_ways"
_KINDS = ("pair", "wong", "gong", "value")
_PREFERENCES = ("high", "low")

# By which a table's bank is set where nobody names a house way: the best documented one.
OF_TABLE = "foxwoods"

TileClass = frozenset[Tile]


@dataclass(frozen=True)
class HandCondition:
    """What a rule asks of one hand; None asks nothing.

    `kinds` and `pair_ranks` list what it may be; `at_least` is the least strength; `values` lists the values that a
    hand of kind "value" may have. `tiles` are one or two classes of tiles, each met by a tile of its own.
    """

    kinds: tuple[str, ...] | None = None
    pair_ranks: tuple[int, ...] | None = None
    values: tuple[int, ...] | None = None
    at_least: int | None = None
    tiles: tuple[TileClass, ...] | None = None

    def holds(self, pair: Pair, found: Rank) -> bool:
        """True when the hand `pair`, of rank `found` with zeros by their best tile, is what is asked for.

        >>> pair = (Tile.T66, Tile.T45)
        >>> HandCondition(kinds=("wong",)).holds(pair, rank(*pair)), HandCondition(values=(9,)).holds(pair, rank(*pair))
        (True, False)
        """
        return (
            (self.kinds is None or found.kind in self.kinds)
            and (self.pair_ranks is None or found.pair_rank in self.pair_ranks)
            and (self.values is None or found.value in self.values)
            and (self.at_least is None or found.strength >= self.at_least)
            and (self.tiles is None or self._has_tiles(pair))
        )

    @cached_property
    def hands(self) -> frozenset[Pair]:
        """Every hand that is asked for, with its tiles in both orders; each hand is judged once, not in every split.

        >>> len(HandCondition(kinds=("pair",)).hands), len(HandCondition(tiles=(frozenset({Tile.T45}),)).hands)
        (21, 40)
        """
        pairs = [(one, two) for one in Tile for two in Tile if strength(one, two)]
        return frozenset(pair for pair in pairs if self.holds(pair, rank(*pair)))

    def _has_tiles(self, pair: Pair) -> bool:
        assert self.tiles is not None
        first, second = pair
        if len(self.tiles) == 1:
            return first in self.tiles[0] or second in self.tiles[0]
        one, two = self.tiles
        return (first in one and second in two) or (first in two and second in one)


_ANY_HAND = HandCondition()


@dataclass(frozen=True)
class SplitCondition:
    """What a rule asks of a split: of the high and the low hand, and of one hand and the other, whichever way round."""

    high: HandCondition = _ANY_HAND
    low: HandCondition = _ANY_HAND
    one: HandCondition = _ANY_HAND
    other: HandCondition = _ANY_HAND

    def holds(self, split: Split) -> bool:
        """True when the split is what is asked for.

        >>> split = Split(Hands((Tile.T66, Tile.T66), (Tile.T44, Tile.T45)), 105, 66)
        >>> pair = HandCondition(kinds=("pair",))
        >>> SplitCondition(high=pair).holds(split), SplitCondition(low=pair).holds(split)
        (True, False)
        """
        high, low = split.hands.high, split.hands.low
        if high not in self.high.hands or low not in self.low.hands:
            return False
        one, other = self.one.hands, self.other.hands
        return (high in one and low in other) or (low in one and high in other)


_ANY_SPLIT = SplitCondition()


class Split(NamedTuple):
    """One split of the four tiles, with the strengths that the preference compares."""

    hands: Hands
    high: int
    low: int


@dataclass(frozen=True)
class Rule:
    """One rule, by its short name and in words.

    It applies when `if_` holds for some split of the four tiles and `unless` for none. Then one of the splits for which
    `play` holds is played, the best by `prefer`, in order: both hands, so that only copies are left equal.
    """

    rule: str
    text: str
    if_: SplitCondition
    unless: SplitCondition | None
    play: SplitCondition
    prefer: tuple[str, ...]

    def choose(self, found: Sequence[Split]) -> Split | None:
        """The split out of `found`, all of one hand, that this rule plays, or None where it does not apply.

        >>> pair = Split(Hands((Tile.T66, Tile.T66), (Tile.T44, Tile.T45)), 105, 66)
        >>> apart = Split(Hands((Tile.T66, Tile.T45), (Tile.T66, Tile.T44)), 90, 88)
        >>> Rule("x", "the best low hand", SplitCondition(), None, SplitCondition(), ("low",)).choose([pair, apart]).low
        88
        >>> only_wongs = SplitCondition(low=HandCondition(kinds=("wong",)))
        >>> Rule("y", "a wong below", only_wongs, None, only_wongs, ("high",)).choose([pair, apart]) is None
        True
        """
        if not any(self.if_.holds(split) for split in found):
            return None
        if self.unless is not None and any(self.unless.holds(split) for split in found):
            return None
        fitting = [split for split in found if self.play.holds(split)]
        if not fitting:
            return None
        return max(fitting, key=lambda split: [split.high if which == "high" else split.low for which in self.prefer])


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
        by = table(zero_rule)
        found = [
            Split(hands, by[hands.high[0]][hands.high[1]], by[hands.low[0]][hands.low[1]]) for hands in splits(four)
        ]
        for rule in self.rules:
            chosen = rule.choose(found)
            if chosen is not None:
                return replace(chosen.hands, rule=rule.rule)
        raise AssertionError("the last rule holds for every hand: from_dict() has seen to it")

    def rule_text(self, rule: str) -> str:
        """What the rule of that short name says.

        >>> load("max_low").rule_text("best-low")
        'the split with the best low hand; among equals the best high hand'
        """
        return next(one.text for one in self.rules if one.rule == rule)


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
        data = json.loads(bounded.read_text(path, encoding="utf-8"))
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
        if key in ("name", "version", "source") and not parts[key].strip():
            raise BadInput(_("{where}: {key} is empty; needed: a text").format(where=where, key=key))
    if not isinstance(parts.get("complete", True), bool):
        raise BadInput(_("{where}: complete must be true or false").format(where=where))
    rules = tuple(
        _rule(row, f"{where}, rule {number}") for number, row in enumerate(filled(parts["rules"], f"{where}: rules"), 1)
    )
    named = [rule.rule for rule in rules]
    for name in named:
        if named.count(name) > 1:
            raise BadInput(_("{where}: two rules are named {name}").format(where=where, name=shown(name)))
    if (rules[-1].if_, rules[-1].unless, rules[-1].play) != (_ANY_SPLIT, None, _ANY_SPLIT):
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
    parts = fields(row, ("rule", "text", "prefer"), ("if", "unless", "play"), where)
    if not isinstance(parts["rule"], str) or not isinstance(parts["text"], str):
        raise BadInput(_("{where}: rule and text must be texts").format(where=where))
    prefer = tuple(
        word(which, _PREFERENCES, f"{where}: prefer") for which in filled(parts["prefer"], f"{where}: prefer")
    )
    # The hand that is not named decides between equals.
    prefer += tuple(which for which in _PREFERENCES if which not in prefer)
    if len(prefer) > len(_PREFERENCES):
        raise BadInput(_("{where}: prefer names one hand twice; allowed: high and low, once each").format(where=where))
    if_ = _split_condition(parts.get("if", {}), f"{where}, if")
    return Rule(
        parts["rule"],
        parts["text"],
        if_,
        _split_condition(parts["unless"], f"{where}, unless") if "unless" in parts else None,
        _split_condition(parts["play"], f"{where}, play") if "play" in parts else if_,
        prefer,
    )


def _split_condition(value: Any, where: str) -> SplitCondition:
    parts = fields(value, (), ("high", "low", "one", "other"), where)
    return SplitCondition(**{which: _hand_condition(parts[which], f"{where}, {which}") for which in parts})


def _hand_condition(value: Any, where: str) -> HandCondition:
    parts = fields(value, (), ("kinds", "pair_ranks", "values", "at_least", "tiles"), where)
    made: dict[str, Any] = {}
    for name, check in (
        ("kinds", lambda one: word(one, _KINDS, f"{where}: kinds")),
        ("pair_ranks", lambda one: whole(one, 1, 20, f"{where}: pair_ranks")),
        ("values", lambda one: whole(one, 0, 9, f"{where}: values")),
        ("tiles", lambda one: _tile_class(one, where)),
    ):
        if name in parts:
            made[name] = tuple(check(one) for one in filled(parts[name], f"{where}: {name}"))
    if len(made.get("tiles", ())) > 2:
        raise BadInput(_("{where}: tiles are of one or two classes").format(where=where))
    if "at_least" in parts:
        made["at_least"] = _least_strength(parts["at_least"], where)
    return HandCondition(**made)


def _tile_class(value: Any, where: str) -> TileClass:
    """The tiles of a class: a list of numbers of spots and of single tiles."""
    found: set[Tile] = set()
    for one in filled(value, f"{where}: tiles"):
        if isinstance(one, str):
            found.add(_tile(one, f"{where}: tiles"))
        else:
            spots = whole(one, 2, 12, f"{where}: tiles")
            found.update(tile for tile in Tile if tile.spots == spots)
    return frozenset(found)


def _tile(value: Any, where: str) -> Tile:
    try:
        return parse(value)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None


def _least_strength(value: Any, where: str) -> int:
    """The strength of the weakest hand of a value, [6], or of a value with a best tile, [3, "3-3"]."""
    parts = filled(value, f"{where}: at_least")
    if len(parts) > 2:
        raise BadInput(_("{where}: at_least is a value and, if need be, a best tile").format(where=where))
    points = whole(parts[0], 0, 9, f"{where}: at_least")
    best = individual_ranking(_tile(parts[1], f"{where}: at_least")) if len(parts) > 1 else 17
    found = [
        one.strength
        for pair in combinations_with_replacement(Tile, 2)
        if strength(*pair) and (one := rank(*pair)).value == points and one.best is not None and one.best <= best
    ]
    if not found:
        raise BadInput(_("{where}: at_least: no hand is like that").format(where=where))
    return min(found)
