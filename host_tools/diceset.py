"""A dice set: its serial, the tags of its three dice, and how long it has been in play.

Dice are changed or inspected at least every 24 hours (58 Pa. Code 661a.4 and 668a.3; N.J.A.C. 13:69E-1.16 has sets in
use for longer reconciled daily). The table has no clock: the time of issue is this computer's UTC, kept in the table.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from dragoneye.config import DICE_FORMAT, dice_set_of
from dragoneye.errors import BadInput
from dragoneye.rules import reading
from dragoneye.text import show
from host_tools import bounded
from host_tools.i18n import _, controller

WARN_AFTER = timedelta(hours=23)
ALARM_AFTER = timedelta(hours=24)
# A time of issue so far ahead is not the clocks' difference.
AHEAD_MAX = timedelta(minutes=10)
UTC_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
SERIAL_MAX = 24

UNKNOWN, FINE, WARN, ALARM = "unknown", "fine", "warn", "alarm"


def utc_now() -> datetime:
    """This moment, to the second."""
    return datetime.now(timezone.utc).replace(microsecond=0)


def parse_utc(text: str) -> datetime:
    """A time as UTC_FORMAT writes it. Raises BadInput saying how it must look."""
    try:
        return datetime.strptime(text, UTC_FORMAT).replace(tzinfo=timezone.utc)
    except ValueError:
        raise BadInput(
            _("{text} is no time; allowed: UTC such as 2026-11-30T08:00:00Z").format(text=show(text))
        ) from None


@dataclass(frozen=True)
class DiceSet:
    """One set. `eye` is 1..3; `dice` are UIDs as upper-case hex, by die and by face 1 to 6; `issued` is UTC as text."""

    serial: str
    name: str
    issued: str
    eye: int
    dice: list[list[str]]

    @property
    def hash(self) -> str:
        """What the table tells of its dice set: over the tags and the dragon's eye die alone."""
        return str(dice_set_of({"dice": self.dice, "eye": self.eye - 1})["hash"])

    def request(self) -> dict[str, Any]:
        """The fields of the request `dice`."""
        tags = " ".join(uid for faces in self.dice for uid in faces)
        return {"serial": self.serial, "issued": self.issued, "eye": self.eye, "tags": tags}

    def save(self, path: Path) -> None:
        """Write it to a file, all or nothing."""
        write_json(path, {"format": DICE_FORMAT, **asdict(self)})

    @staticmethod
    def load(path: Path) -> DiceSet:
        """Read it from a file. Raises BadInput naming the file and what is wrong."""
        data = read_json(path)
        try:
            if data["format"] != DICE_FORMAT:
                raise ValueError(_("format {format} is not known").format(format=show(data["format"])))
            found = DiceSet(**{key: data[key] for key in ("serial", "name", "issued", "eye", "dice")})
            check_serial(found.serial)
            parse_utc(found.issued)
            if found.eye not in (1, 2, 3):
                raise ValueError(_("eye is {eye}; allowed: 1, 2 or 3").format(eye=show(found.eye)))
            reading.registry_of(found.dice)
            for faces in found.dice:
                for uid in faces:
                    reading.check_uid(uid)
        except KeyError as error:
            words = _("{path} is no dice set: {entry} is missing")
            raise BadInput(words.format(path=path, entry=error.args[0])) from None
        except (TypeError, AttributeError) as error:
            raise BadInput(_("{path} is no dice set: {error}").format(path=path, error=repr(error))) from None
        except ValueError as error:
            raise BadInput(f"{path}: {controller(str(error))}") from None
        return found


def check_serial(serial: Any) -> str:
    """`serial` itself, when a table takes it. Raises BadInput saying what is allowed."""
    fits = isinstance(serial, str) and 1 <= len(serial) <= SERIAL_MAX and serial.isascii() and serial.isprintable()
    if not fits:
        raise BadInput(
            _("serial is {serial}; allowed: 1 to {most} letters, digits and signs").format(
                serial=show(serial), most=SERIAL_MAX
            )
        )
    return str(serial)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises BadInput naming the file."""
    try:
        data = json.loads(bounded.read_text(path, encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(_("{path} is not JSON: {error}").format(path=path, error=error)) from None
    if not isinstance(data, dict):
        raise BadInput(_("{path} is no dice set: {error}").format(path=path, error=show(data)))
    return data


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a JSON object to a file, all or nothing. Raises BadInput naming the file."""
    new = path.with_name(path.name + ".new")
    try:
        new.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        os.replace(new, path)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None


def level(issued: str, now: datetime) -> str:
    """How a set stands that was issued then: UNKNOWN (no time is known), FINE, WARN or ALARM."""
    if not issued:
        return UNKNOWN
    try:
        age = now - parse_utc(issued)
    except BadInput:
        return ALARM
    if age < -AHEAD_MAX or age >= ALARM_AFTER:
        return ALARM
    return WARN if age >= WARN_AFTER else FINE


def told(dice_set: dict[str, Any] | None, now: datetime) -> str:
    """One line about the table's dice set (its hello's `dice_set`) when it needs care, else an empty text."""
    if not dice_set:
        return ""
    serial, issued = dice_set["serial"], dice_set["issued"]
    stands = level(issued, now)
    if stands == WARN:
        return _("dice set {serial} was issued at {issued}: change or inspect it before 24 hours are over").format(
            serial=serial, issued=issued
        )
    if stands == ALARM:
        return _(
            "dice set {serial} was issued at {issued}: change or inspect it, then `tablectl dice install` it again"
        ).format(serial=serial, issued=issued)
    return ""


def check(dice_set: dict[str, Any] | None, now: datetime) -> None:
    """Raises BadInput when no round may be opened with this set unless a supervisor says so."""
    if dice_set and level(dice_set["issued"], now) == ALARM:
        raise BadInput(_("{told}; or a supervisor keeps it with --keep-dice").format(told=told(dice_set, now)))


def kept(dice_set: dict[str, Any] | None, now: datetime) -> str | None:
    """The note in a round's record that a supervisor keeps this set although it is too old; None when it is not."""
    if dice_set and level(dice_set["issued"], now) == ALARM:
        return f"dice set {dice_set['serial']} of {dice_set['issued']} kept by a supervisor"
    return None
