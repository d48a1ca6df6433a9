"""What a test may need of a bench: one table, by which the rig file is checked and the tests are marked.

A test names its needs with `@pytest.mark.needs("lid", "power")`. What the tests do to a table (`do("lid", to="open")`,
see boards.virtual.bench) is here mapped to a capability and one of its actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from host_tools.i18n import _


class Capability(NamedTuple):
    """`actions`: the names of what is done with it and the placeholders that each one's command may have.

    `spare` maps an action that a rig may leave out to the one that is done in its place. `answers` is what the command
    prints, or the person says, where something is looked at in place of done.
    """

    actions: Mapping[str, tuple[str, ...]]
    spare: Mapping[str, str] = {}
    answers: tuple[str, ...] = ()


FAULT = ("name", "die", "face", "faces", "uid", "reader", "value")
CAPABILITIES: dict[str, Capability] = {
    # The dice lie as the test says when the shake has ended: on readers that the motor does not move.
    "dice": Capability({"place": ("dice",)}),
    "lid": Capability({"open": (), "shut": (), "force": ()}, {"force": "open"}),
    "button": Capability({"hold": (), "release": ()}),
    "tamper": Capability({"open": (), "shut": ()}),
    "service": Capability({"on": (), "off": ()}),
    "supply": Capability({"low": (), "ok": ()}),
    "power": Capability({"off": (), "on": ()}),
    "cable": Capability({"out": (), "in": ()}),
    "reset": Capability({"press": ()}),
    "fault": Capability({"set": FAULT, "clear": ("name",)}),
    "motor": Capability({"look": ()}, answers=("on", "off")),
}
# A configuration of the test's own is written to the board, and the board's own is put back.
CONFIG = "config"
# What only a virtual table has: dice by seed, pixels, edges of pins, counters of a model.
INSIDE = "inside"
NEEDS = (*CAPABILITIES, CONFIG, INSIDE)

# Below this the table takes the 12 V for low, whatever it was configured to.
LOW_MV = 10_500


def steps_of(name: str, args: Mapping[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """What is done for `do(name, **args)`: (capability, action, values of its placeholders) in order.

    Raises KeyError for what no bench can do.
    """
    if name in ("place", "next"):
        return [("dice", "place", {"dice": list(args["dice"])})]
    if name == "supply":
        return [("supply", "low" if args["mv"] < LOW_MV else "ok", {})]
    if name == "reset":
        return [("reset", "press", {})]
    if name in ("fault", "clear"):
        values = {key: args.get(key, "") for key in FAULT} if name == "fault" else {"name": args["name"]}
        return [("fault", "set" if name == "fault" else "clear", values)]
    to = {"tamper": {"ok": "shut"}}.get(name, {}).get(args.get("to", ""), args.get("to", "press"))
    if name == "button" and to == "press":
        return [("button", "hold", {}), ("button", "release", {})]
    if name == "lid" and args.get("force"):
        to = "force"
    if to not in CAPABILITIES[name].actions:
        raise KeyError(to)
    return [(name, to, {})]


# What ends what was done: each test leaves the bench as it was.
UNDONE_BY = {
    ("lid", "open"): "shut",
    ("lid", "force"): "shut",
    ("button", "hold"): "release",
    ("tamper", "open"): "shut",
    ("service", "on"): "off",
    ("supply", "low"): "ok",
    ("power", "off"): "on",
    ("cable", "out"): "in",
    ("fault", "set"): "clear",
}


def asked(capability: str, action: str, values: Mapping[str, Any]) -> str:
    """What the person at the bench is asked to do, or to look at."""
    if capability == "fault":
        return _fault_words(action, values)
    words = {
        "dice place": _("lay the dice so that they show {dice} (in the order of the dice set)"),
        "lid open": _("open the lid"),
        "lid shut": _("shut the lid"),
        "lid force": _("open the lid although it is latched (or open its switch)"),
        "button hold": _("press the dealer's button and hold it"),
        "button release": _("let go of the dealer's button"),
        "tamper open": _("open the tamper contact"),
        "tamper shut": _("shut the tamper contact"),
        "service on": _("turn the service key on"),
        "service off": _("turn the service key off"),
        "supply low": _("switch the 12 V supply off"),
        "supply ok": _("switch the 12 V supply on"),
        "power off": _("cut all power: USB and 12 V"),
        "power on": _("switch all power on: USB and 12 V"),
        "cable out": _("pull the USB cable; the controller must stay powered"),
        "cable in": _("plug the USB cable in"),
        "reset press": _("press the reset button (short RUN to ground)"),
        "motor look": _("does the motor run?"),
    }
    return words[f"{capability} {action}"].format(dice=" ".join(map(str, values.get("dice", ()))))


def _fault_words(action: str, values: Mapping[str, Any]) -> str:
    name = str(values["name"])
    if action == "clear":
        return _("end the fault {name}").format(name=name)
    die = values.get("die")
    words = {
        "missing": _("take die {die} away"),
        "stacked": _("lay die {die} on top of another"),
        "cocked": _("lean die {die} against the wall"),
        "two_faces": _("hold a second tag of die {die} beside it"),
        "foreign": _("lay a tag of no registered die on a reader"),
        "dead_tag": _("cover the tag of die {die} that lies on the reader"),
        "dead_reader": _("unplug a reader"),
        "motor_dead": _("unplug the motor"),
        "motor_jammed": _("hold the shaker fast"),
    }
    return words.get(name, _("bring about the fault {name}")).format(
        name=name, die=die + 1 if isinstance(die, int) else 1
    )
