"""What is stored as JSON must look like for whoever reads it: anybody may have written into the database since."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
Check = Callable[[Any], bool]

_ROLL = re.compile(r"[1-6] [1-6] [1-6]")


def _whole(value: Any) -> bool:
    # True is an int, and no number.
    return type(value) is int


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _wholes(value: Any) -> bool:
    return isinstance(value, list) and all(map(_whole, value))


def _dice(value: Any) -> bool:
    return _wholes(value) and len(value) == 3 and all(1 <= die <= 6 for die in value)


def _row(value: Any) -> bool:
    """[position, wager, stake, odds]."""
    return (
        isinstance(value, list)
        and len(value) == 4
        and _text(value[1])
        and all(_whole(value[place]) for place in (0, 2, 3))
    )


def _each(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _members(**checks: Check) -> Check:
    """An object with these members; others may be there as well."""

    def check(value: Any) -> bool:
        return isinstance(value, dict) and all(name in value and one(value[name]) for name, one in checks.items())

    return check


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


_result = _members(
    dice=_dice,
    eye=lambda value: _whole(value) and value in (0, 1, 2),
    total=_whole,
    shaker=_whole,
    manual=_or_none(_text),
    rows=_each(_row),
    net=_whole,
    before=_whole,
    level=_whole,
    streak=_members(count=_whole, parts=_each(_wholes)),
)
_wagers = _members(position=_whole, wagers=lambda value: isinstance(value, dict) and all(map(_whole, value.values())))
_CORRECTED = {"void": _members(), "dice": _members(dice=_dice), "bets": _wagers}


def _told(value: Any) -> bool:
    """One correction (host_tools.corrections.told_of)."""
    told = _members(event=_whole, utc=_text, what=_text, why=_text)
    return (
        told(value)
        and value["what"] in _CORRECTED
        and _CORRECTED[value["what"]](value)
        and _or_none(_text)(value.get("by"))
    )


_set = {"high": _texts, "low": _texts}
_hands = _members(
    start=_whole,
    deal=_wholes,
    action=_wholes,
    bank=_members(**_set),
    players=_each(
        _members(
            position=_whole,
            stake=_whole,
            net=_whole,
            commission=_whole,
            result=lambda value: value in ("win", "lose", "push"),
            **_set,
        )
    ),
)
_corrected = _members(void=lambda value: isinstance(value, bool), result=_or_none(_result), told=_each(_told))


def _void(value: Any) -> bool:
    # Early firmware named no die.
    return _members(round=_whole, reason=_text)(value) and _wholes(value.get("missing", []))


_state = _members(
    state=_members(streak=_members(count=_whole)),
    boot=_members(),
)

KINDS: dict[str, Check] = {
    "object": _members(),
    "record": _members(id=_whole, k=_text, b=_whole, t=_whole, d=_members()),
    "void": _members(d=_void),
    "result": _result,
    "corrected": _corrected,
    "tiles": lambda value: _hands(value) and _whole(value.get("total", 0)),
    "state": _state,
}


def parse(text: Any, kind: str) -> Message:
    """A stored JSON text of one of KINDS. Raises ValueError for one that is not as this program writes it."""
    try:
        value = json.loads(text)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not KINDS[kind](value):
        raise ValueError(kind)
    return dict(value)


def is_roll(dice: Any, eye: Any) -> bool:
    """Whether a row's dice ("1 2 3") and dragon's eye die's index are a roll."""
    return isinstance(dice, str) and _ROLL.fullmatch(dice) is not None and eye in (0, 1, 2)
