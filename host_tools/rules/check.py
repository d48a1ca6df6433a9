"""Checks of values that come from outside: BadInput names the input and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoneye.errors import BadInput
from dragoneye.text import is_whole
from host_tools.i18n import _


def shown(value: Any) -> str:
    """A short form of `value` for an error message, whatever it is and however large.

    Letters stay as they were typed; what does not print, such as a control character, is escaped.

    >>> shown("7-7"), shown(True), shown(10**30), shown([[1]]), shown(None)
    ("'7-7'", 'true', 'a number of more than 18 digits', 'a list', 'null')
    >>> print(shown("dú\\x1b"))
    'dú\\x1b'
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(int(value)) if abs(value) < 10**18 else _("a number of more than 18 digits")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:37] + "...")
    if isinstance(value, dict):
        return _("an object")
    return _("a list") if isinstance(value, (list, tuple)) else type(value).__name__


def whole(value: Any, low: int, high: int, what: str) -> int:
    """`value` if it is a whole number from `low` to `high`, both included; `what` names it in the error.

    Raises BadInput; `true` is not 1 and `2.0` is not 2.

    >>> whole(9, 3, 18, "total")
    9
    >>> whole(True, 3, 18, "total")
    Traceback (most recent call last):
    dragoneye.errors.BadInput: total is true; allowed: a whole number from 3 to 18
    """
    if is_whole(value, low, high):
        return int(value)
    raise BadInput(
        _("{what} is {value}; allowed: a whole number from {low} to {high}").format(
            what=what, value=shown(value), low=low, high=high
        )
    )


def word(value: Any, allowed: Sequence[str], what: str) -> str:
    """`value` if it is one of the words `allowed`; `what` names it in the error. Raises BadInput.

    >>> word("nearest", ("nearest", "down", "up"), "rounding")
    'nearest'
    """
    if isinstance(value, str) and value in allowed:
        return value
    raise BadInput(
        _("{what} is {value}; allowed: {words}").format(what=what, value=shown(value), words=", ".join(allowed))
    )


def listed(value: Any, length: int, what: str, of: str) -> list[Any]:
    """`value` as a list if it is a list of exactly `length` things; `what` names it, `of` the things. Raises BadInput.

    >>> listed(["6-6", "4-5"], 2, "hand", "tiles")
    ['6-6', '4-5']
    >>> listed(["6-6"], 2, "hand", "tiles")
    Traceback (most recent call last):
    dragoneye.errors.BadInput: hand has 1; needed: a list of 2 tiles
    """
    if not isinstance(value, (list, tuple)):
        raise BadInput(
            _("{what} is {value}; needed: a list of {length} {of}").format(
                what=what, value=shown(value), length=length, of=of
            )
        )
    if len(value) != length:
        raise BadInput(
            _("{what} has {count}; needed: a list of {length} {of}").format(
                what=what, count=len(value), length=length, of=of
            )
        )
    return list(value)


def filled(value: Any, what: str) -> list[Any]:
    """`value` as a list if it is a list that is not empty; `what` names it. Raises BadInput.

    >>> filled([1], "bets")
    [1]
    """
    if isinstance(value, (list, tuple)) and value:
        return list(value)
    raise BadInput(
        _("{what} is {value}; needed: a list that is not empty").format(
            what=what, value=_("an empty list") if value == [] else shown(value)
        )
    )


def fields(value: Any, needed: Sequence[str], optional: Sequence[str] = (), what: str = "") -> dict[str, Any]:
    """`value` if it is an object with every field of `needed` and no other than those of `optional`. Raises BadInput.

    `what` names it, if it is not the case itself. An empty object is for the caller to judge.

    >>> fields({"stake": 5}, ["stake"], ["pack"])
    {'stake': 5}
    """
    what = what or _("the case")
    if not isinstance(value, dict):
        if needed:
            said = _("{what} is {value}; needed: an object with {fields}")
        else:
            said = _("{what} is {value}; needed: an object with some of {fields}")
        raise BadInput(said.format(what=what, value=shown(value), fields=", ".join(needed or optional)))
    for name in needed:
        if name not in value:
            raise BadInput(
                _("{what} has no {name}; needed: {fields}").format(what=what, name=name, fields=", ".join(needed))
            )
    for name in value:
        if name not in needed and name not in optional:
            raise BadInput(
                _("{what} has a field {name}; allowed: {fields}").format(
                    what=what, name=shown(name), fields=", ".join([*needed, *optional])
                )
            )
    return value
