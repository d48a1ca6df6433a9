"""`tablectl flash`: the firmware onto a board, so that at any moment the old or the new one runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from host_tools import flash as work
from host_tools.board_data import boards
from host_tools.board_files import BoardFiles
from host_tools.cli.output import console, json_option, print_json
from host_tools.flash_plan import Step
from host_tools.i18n import _
from host_tools.link import Message


@click.command()
@click.option("--port", help="The board's port or unique id (default: the one board that is plugged in).")
@click.option("--board", type=click.Choice(boards()), help="What it must be (default: what it says it is).")
@click.option("--dry-run", is_flag=True, help="Show what would be done; the table is stopped for it and starts again.")
@json_option
def flash(port: str | None, board: str | None, dry_run: bool, as_json: bool) -> None:
    """Copy this program's firmware to a board that runs MicroPython, and start it.

    Between rounds only. Only what differs is copied, beside the firmware that runs; the new one takes its place when
    all is there and right, and gives it back when it does not start. Stop it, or pull the cable, whenever you like.
    """
    place = work.find_port(port)
    with BoardFiles(place, insist=True) as files:
        flashing = work.prepare(files, board)
        if not as_json:
            _introduce(flashing, place)
        if dry_run:
            _dry(flashing, place, as_json)
            return
        with _progress(flashing.plan.size, as_json) as tell:
            flashing.copy(tell)
        told = work.start(files, flashing.build).told
    if as_json:
        print_json(_row(flashing, place, told))
        return
    if told is None:
        words = _("{port}: copied; turn the service key off and press reset, and build {build} runs from slot {slot}")
        console().print(words.format(port=place, build=flashing.build.name, slot=flashing.plan.slot))
        return
    words = _("{port}: table {uid} runs build {build} from slot {slot}; {copied} files copied, {unchanged} were there")
    console().print(
        words.format(
            port=place,
            uid=told.get("uid"),
            build=told.get("build"),
            slot=flashing.plan.slot,
            copied=len(flashing.plan.writes),
            unchanged=flashing.plan.unchanged,
        )
    )


def _introduce(flashing: work.Flashing, place: str) -> None:
    facts = flashing.facts
    words = _("{port}: {machine}, MicroPython {version} with .mpy {mpy}")
    version = ".".join(str(part) for part in facts.version)
    console().print(words.format(port=place, machine=facts.machine, version=version, mpy=facts.mpy_text))


def _row(flashing: work.Flashing, place: str, told: Message | None) -> dict[str, Any]:
    plan = flashing.plan
    row: dict[str, Any] = {
        "port": place,
        "board": flashing.board,
        "micropython": ".".join(str(part) for part in flashing.facts.version),
        "mpy": flashing.facts.mpy_text,
        "build": flashing.build.name,
        "slot": plan.slot,
        "copied": len(plan.writes),
        "bytes": plan.size,
        "unchanged": plan.unchanged,
    }
    if told is not None:
        row["uid"] = told.get("uid")
    return row


def _dry(flashing: work.Flashing, place: str, as_json: bool) -> None:
    plan = flashing.plan
    if as_json:
        steps = [[step.what, step.path, *([step.to] if step.to else [])] for step in plan.steps]
        print_json({**_row(flashing, place, None), "steps": steps, "free": flashing.free, "needed": flashing.needed})
        return
    out = console()
    for step in plan.steps:
        out.print(f"  {_step_text(step)}")
    words = _("build {build} into slot {slot}: {count} files, {size} bytes to copy; {unchanged} are there; {free} free")
    out.print(
        words.format(
            build=flashing.build.name,
            slot=plan.slot,
            count=len(plan.writes),
            size=plan.size,
            unchanged=plan.unchanged,
            free=flashing.free,
        )
    )


def _step_text(step: Step) -> str:
    words = {
        "mkdir": _("make folder {path}"),
        "rmdir": _("remove folder {path}"),
        "remove": _("remove {path}"),
        "write": _("copy {path}, {size} bytes"),
        "rename": _("rename {path} to {to}"),
    }
    return words[step.what].format(path=step.path, size=len(step.data), to=step.to)


@contextlib.contextmanager
def _progress(size: int, as_json: bool) -> Iterator[Callable[[Step, int], None]]:
    """A bar on a terminal; nothing in a pipe."""
    if as_json or not sys.stderr.isatty():
        yield lambda step, count: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, markup=False)) as bar:
        task = bar.add_task("", total=size)
        yield lambda step, count: bar.update(task, advance=count, description=step.path)
