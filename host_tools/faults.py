"""What a person is told about a fault of the table: what it is, and what the dealer or the technician does."""

from __future__ import annotations

from typing import Any

from host_tools.codes import FAULTS
from host_tools.i18n import _, controller


def remedy(code: str) -> str:
    """What to do about the fault of this code; empty for a code that is not known here."""
    return {
        "JOURNAL": _(
            "let the host fetch the records, then a supervisor clears it; if it comes again, change the board"
        ),
        "CONFIG": _("a technician provisions the table again and restarts it; then a supervisor clears it"),
        "READER": _("a technician looks at the reader's cable and supply and runs a self-test; then clear it"),
        "MOTOR_STUCK": _("open the lid, which cuts the motor's supply; a technician changes the motor driver"),
        "TAMPER": _("the dealer stops play and calls a supervisor, who looks at the shaker and counts the dice"),
        "TASK": _("a supervisor clears it; if it comes again, restart the table and send its record to the maker"),
        "SUPPLY": _("no shake is possible; look at the 12 V supply and its cable"),
        "SELFTEST": _("a technician mends what the self-test named and runs it again"),
    }.get(code, "")


def told(code: str, detail: str) -> str:
    """One line: the code, what was seen, what the fault is, and what to do."""
    what = controller(str(FAULTS[code][0])) if code in FAULTS else ""
    detail = controller(detail)
    parts = [f"{code}: {detail}"]
    if what and what != detail:
        parts.append(what)
    if remedy(code):
        parts.append(_("to do: {remedy}").format(remedy=remedy(code)))
    return " · ".join(parts)


def in_words(view: dict[str, Any]) -> str:
    """One line: that the table has a fault, from its live state."""
    return _("the table has a fault, {told}").format(told=told(str(view.get("fault")), str(view.get("detail"))))


def told_record(data: dict[str, Any]) -> str:
    """One line for a record `fault`."""
    if data["set"]:
        return _("fault set: {told}").format(told=told(data["code"], data["detail"]))
    return _("fault cleared: {code}").format(code=data["code"])
