"""Which pin may do what: a board's pins checked against its chip, its header and the reference design's roles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from host_tools.board_data import board_data, chip_data, header_data, parts_data
from host_tools.i18n import _


class Use(NamedTuple):
    """One pin in one role; `key` is the role's name, with an index where a role has several pins."""

    key: str
    role: str
    gpio: int


class PinProblem(NamedTuple):
    """A pin that cannot do what its role needs."""

    key: str
    gpio: int
    why: str


def uses(pins: Mapping[str, int | list[int]]) -> list[Use]:
    """Every pin of `pins` (role: GPIO or a list of them) by itself, in order."""
    found = []
    for role, numbers in pins.items():
        if isinstance(numbers, list):
            found += [Use(f"{role}.{index}", role, number) for index, number in enumerate(numbers)]
        else:
            found.append(Use(role, role, numbers))
    return found


def slice_of(gpio: int, chip: Mapping[str, Any]) -> tuple[int, str]:
    """The PWM slice and channel behind a GPIO below 32 (RP2040 datasheet 4.5.2, RP2350 datasheet 12.5.2).

    >>> slice_of(14, {"pwm_slices": 8}), slice_of(15, {"pwm_slices": 8}), slice_of(16, {"pwm_slices": 8})
    ((7, 'A'), (7, 'B'), (0, 'A'))
    """
    return gpio // 2 % int(chip["pwm_slices"]), "AB"[gpio % 2]


def check_pins(board: str, overrides: Mapping[str, int | list[int]]) -> list[PinProblem]:
    """What is wrong with a board's pins when `overrides` are put in place of some."""
    data = board_data(board)
    chip = chip_data(data["chip"])
    # The overrides come last: they are what a conflict is told of.
    usual = {role: pins for role, pins in data["pins"].items() if role not in overrides}
    found = uses({**usual, **overrides})
    internal = {int(gpio): words for gpio, words in header_data(board)["internal"].items()}
    problems = []
    users: dict[int, str] = {}
    for use in found:
        if not 0 <= use.gpio < chip["gpio"]:
            allowed = _("GP0 to GP{last} of the {chip}").format(last=chip["gpio"] - 1, chip=chip["name"])
            problems.append(PinProblem(use.key, use.gpio, _("allowed: {allowed}").format(allowed=allowed)))
            continue
        if use.gpio in internal:
            why = _("GP{gpio} is not on the header of the {board}: {what}")
            why = why.format(gpio=use.gpio, board=data["title"], what=_(internal[use.gpio]))
            problems.append(PinProblem(use.key, use.gpio, why))
        if use.gpio in users:
            why = _("GP{gpio} is taken by {other}").format(gpio=use.gpio, other=users[use.gpio])
            problems.append(PinProblem(use.key, use.gpio, why))
        users.setdefault(use.gpio, use.key)
        problems += _by_role(use, data, chip)
    there = [use for use in found if 0 <= use.gpio < chip["gpio"]]
    return [*problems, *_pwm_conflicts(there, chip)]


def _by_role(use: Use, data: Mapping[str, Any], chip: Mapping[str, Any]) -> Iterator[PinProblem]:
    """What the role needs and this GPIO has not."""
    role = parts_data()["roles"].get(use.role, {"needs": "output"})
    function, _space, signal = role["needs"].partition(" ")
    if function == "adc" and str(use.gpio) not in chip["adc"]:
        why = _("only {pins} can measure a voltage").format(pins=_names(int(pin) for pin in chip["adc"]))
        yield PinProblem(use.key, use.gpio, why)
    if function == "spi":
        port = str(data["spi"]["id"])
        able = chip["spi"][port][signal]
        if use.gpio not in able:
            why = _("SPI{port} has its {signal} on {pins}")
            yield PinProblem(use.key, use.gpio, why.format(port=port, signal=signal.upper(), pins=_names(able)))
    if role.get("pull") and role["pull"] not in chip["pulls"]:
        note = chip["pull_note"]
        why = _("an input with a pull-{pull} does not work on the {chip}: {note}")
        why = why.format(pull=role["pull"], chip=chip["name"], note=_(note))
        yield PinProblem(use.key, use.gpio, why)


def _names(gpios: Any) -> str:
    return ", ".join(f"GP{gpio}" for gpio in gpios)


def _pwm_conflicts(found: list[Use], chip: Mapping[str, Any]) -> Iterator[PinProblem]:
    """Two pins on one PWM output repeat each other; two frequencies in one slice cannot be."""
    roles = parts_data()["roles"]
    pulsed = [use for use in found if roles.get(use.role, {}).get("needs") in ("pwm", "tone")]
    for index, use in enumerate(pulsed):
        mine = slice_of(use.gpio, chip)
        for other in pulsed[:index]:
            theirs = slice_of(other.gpio, chip)
            if use.gpio == other.gpio or mine[0] != theirs[0]:
                continue
            words = {"gpio": use.gpio, "slice": mine[0], "channel": mine[1], "other": other.key, "there": other.gpio}
            if mine == theirs:
                why = _("GP{gpio} is PWM slice {slice} channel {channel}, as {other} on GP{there} is")
            elif roles[use.role]["needs"] != roles[other.role]["needs"]:
                why = _("GP{gpio} is in PWM slice {slice} with {other} on GP{there}, and a slice has one frequency")
            else:
                continue
            yield PinProblem(use.key, use.gpio, why.format(**words))
