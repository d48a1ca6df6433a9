"""`tablectl selftest` and `sensors`: what a technician looks at, in the table's test mode."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Group
from rich.live import Live

from dragoneye.errors import BadInput
from host_tools import provision
from host_tools.cli.common import db_option, on_port, open_store, port_option
from host_tools.cli.output import console, json_option, print_json, table
from host_tools.device import Device
from host_tools.i18n import _, controller, pgettext
from host_tools.link import LinkError, Refused

Message = dict[str, Any]

POLL_S = 0.05
SELFTEST_S = 60.0
PASS_S = 10.0


@contextlib.contextmanager
def test_mode(device: Device) -> Iterator[None]:
    """The table in test mode; afterwards it is left again, unless the table was in it before."""
    if device.refresh().get("test"):
        yield
        return
    device.request("test", on=True)
    try:
        yield
    finally:
        with contextlib.suppress(BadInput):
            _leave(device)


def _leave(device: Device) -> None:
    try:
        device.request("test", on=False)
    except LinkError:
        device.reconnect(10.0)
        device.request("test", on=False)
    device.wait_stored(2.0)


def wait_until(device: Device, ask: Callable[[], Message | None], seconds: float, what: str) -> Message:
    """Ask until there is an answer. Raises LinkError after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer is not None:
            return answer
        if time.monotonic() >= end:
            raise LinkError(
                _("the table has not ended {what} within {seconds:.0f} s").format(what=what, seconds=seconds)
            )
        device.poll(POLL_S)


def item_text(item: str) -> str:
    """An item of the self-test as a person reads it; a number stays at its end."""
    name, _space, number = item.rpartition(" ")
    words = {
        "reader": _("reader"),
        "field": _("field of reader"),
        "dice": _("dice"),
        "lid": _("lid"),
        "tamper": _("tamper contact"),
        "button": _("dealer's button"),
        "service key": _("service key"),
        "supply": _("12 V supply (mV)"),
        "motor at rest": _("motor at rest (mA)"),
        "motor": _("motor in a jolt (mA)"),
        "motor after it": _("motor after the jolt (mA)"),
        "memory": _("memory free (bytes)"),
        "flash": _("flash free (bytes)"),
        "program": _("program"),
    }
    if item in words:
        return words[item]
    return f"{words[name]} {number}" if number.isdigit() and name in words else item


def _word(value: Any, item: str = "") -> str:
    """A value as a person reads it; `item` is what it is of."""
    words = {
        # The Spanish says by their ends of what they are: of the lid here, of the contact below.
        "open": _("open"),
        "shut": _("shut"),
        "up": _("up"),
        "pressed": _("pressed"),
        "on": _("on"),
        "off": _("off"),
        "unresolved": _("not told apart"),
        "three dice": _("three dice of the set"),
    }
    if item == "tamper":
        words.update(open=pgettext("tamper contact", "open"), shut=pgettext("tamper contact", "shut"))
    if isinstance(value, list):
        return " ".join(map(str, value))
    return words.get(value, controller(str(value))) if isinstance(value, str) else str(value)


def allowed_text(allowed: Any, item: str = "") -> str:
    """What is allowed for an item: `allowed` as the table gives it."""
    if allowed is None:
        return ""
    if isinstance(allowed, list):
        return _("{least} to {most}").format(least=allowed[0], most=allowed[1])
    return _("{least} or more").format(least=allowed) if isinstance(allowed, int) else _word(allowed, item)


@click.command()
@port_option
@db_option
@json_option
def selftest(port: str, db: Path | str | None, as_json: bool) -> None:
    """Let a table test itself: readers, dice, motor, lid, supplies, memory, program. The exit code is 1 when one fails.

    Put the three dice in the shaker and shut the lid first; the motor jolts once. The table is in test mode meanwhile.
    """
    with on_port(port, open_store(db)) as device, test_mode(device):
        device.request("selftest", start=True)

        def ended() -> Message | None:
            report = device.request("selftest")
            return None if report["running"] else report

        report = wait_until(device, ended, SELFTEST_S, _("the self-test"))
        hello = device.table
    if report["why"] is not None:
        raise BadInput(_("the self-test has ended early: {why}").format(why=controller(report["why"])))
    rows = report["items"]
    passed = all(row[1] for row in rows)
    ours = provision.build_hash() == hello.get("build")
    if as_json:
        items = [dict(zip(("item", "ok", "value", "allowed"), row, strict=True)) for row in rows]
        print_json({"table": hello["uid"], "ok": passed, "same_program": ours, "items": items})
    else:
        shown = table(_("part"), _("is"), _("measured"), _("allowed"))
        for item, ok, value, allowed in rows:
            shown.add_row(
                item_text(item), _("ok") if ok else _("FAILS"), _word(value, item), allowed_text(allowed, item)
            )
        console().print(shown)
        console().print(
            _("the program is the one that this tablectl would install")
            if ours
            else _("the program is another one than this tablectl would install")
        )
        wrong = ", ".join(item_text(row[0]) for row in rows if not row[1])
        console().print(_("the self-test passed") if passed else _("the self-test failed: {wrong}").format(wrong=wrong))
    if not passed:
        sys.exit(1)


def new_pass(device: Device, last: int, step: int = 0) -> Message:
    """What the sensors say, with a pass of the readers after the pass number `last`; only in test mode.

    `step` counts down the readers' gains.
    """

    def seen() -> Message | None:
        told = device.request("sensors", step=step)
        return told if told["pass"] > last else None

    return wait_until(device, seen, PASS_S, _("a pass of the readers"))


def tag_text(tag: list[Any]) -> str:
    """A tag as [UID, die or 0, value]."""
    uid, die, value = tag
    return _("die {die} shows {value} ({uid})").format(die=die, value=value, uid=uid) if die else f"{uid} ?"


def sensors_view(told: Message) -> Group:
    """What the sensors say, for a person."""
    readers = table(_("reader"), _("is"), _("version"), _("gain"), _("tags"))
    for one in told["readers"] or []:
        tags = one["tags"]
        readers.add_row(
            str(one["reader"]),
            _("ok") if one["ok"] else _("FAILS"),
            f"0x{one['version']:02x}",
            f"{one['gain_db']} dB",
            _("not told apart") if tags is None else "\n".join(map(tag_text, tags)) or _("none"),
        )
    parts = table(_("part"), _("is"))
    for name, key in (("lid", "lid"), ("tamper", "tamper"), ("button", "button"), ("service key", "service")):
        parts.add_row(item_text(name), _word(told[key], name))
    parts.add_row(_("motor (mA)"), str(told["motor_ma"]))
    parts.add_row(item_text("supply"), str(told["supply_mv"]))
    cycles = told["cycles"]
    parts.add_row(
        _("since the start"),
        _("{shakes} shakes, {lid} lid openings, {lock} lock pulses").format(**cycles),
    )
    if told["readers"] is None:
        return Group(_("the readers are read in test mode only, between rounds"), parts)
    return Group(readers, parts)


@click.command()
@port_option
@click.option("--once", is_flag=True, help="Look once.")
@click.option("--interval", default=0.5, show_default=True, type=click.FloatRange(0.05, 60), help="Seconds between.")
@click.option(
    "--step",
    default=0,
    show_default=True,
    type=click.IntRange(0, 7),
    help="Steps down the ladder of the readers' gains.",
)
@db_option
@json_option
def sensors(port: str, once: bool, interval: float, step: int, db: Path | str | None, as_json: bool) -> None:
    """Show what a table's sensors say, until Ctrl-C: tags by reader, current, supply, switches, cycles.

    Between rounds the table is in test mode meanwhile, and the readers are read; during a round they are not.
    """
    with on_port(port, open_store(db)) as device, contextlib.ExitStack() as stack:
        try:
            stack.enter_context(test_mode(device))
        except Refused as refused:
            if refused.code != "E_STATE":
                raise
        live: Live | None = None
        if sys.stdout.isatty() and not once and not as_json:
            live = stack.enter_context(Live(console=console(), auto_refresh=False))
        try:
            while True:
                told = device.request("sensors", step=step)
                if told["test"]:
                    told = new_pass(device, told["pass"], step)
                if as_json:
                    print_json(told)
                    sys.stdout.flush()
                elif live:
                    live.update(sensors_view(told), refresh=True)
                else:
                    console().print(sensors_view(told))
                if once:
                    return
                end = time.monotonic() + interval
                while time.monotonic() < end:
                    device.poll(max(0.0, end - time.monotonic()))
        except KeyboardInterrupt:
            pass
