"""The documents: links lead somewhere, commands exist and run, and what is generated is up to date."""

from __future__ import annotations

import re
import shlex
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dragoneye import protocol
from host_tools import codes, protocol_doc, wiring
from host_tools.__main__ import cli
from host_tools.board_data import board_data, boards, header_data
from host_tools.cli.tables import parse_request
from tests.unit.conftest import Tablectl

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [path.relative_to(ROOT).as_posix() for path in DOCUMENTS]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
# What a reader puts a word of their own for.
PLACES = {"N": "1", "PACK": "nj", "FILE": "boards/examples/nj.toml"}
# Commands that need no table, write nothing, and end by themselves.
SAFE = ("bank", "cards", "odds", "packs", "seats", "tiles", "wagers")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def anchors_of(path: Path) -> set[str]:
    """The anchors that a renderer makes of a document's headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(name: str) -> Iterator[str]:
    for target in LINK.findall(text_of(name)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _hash, anchor = target.partition("#")
        path = (ROOT / name).parent / file if file else ROOT / name
        if not path.exists() or (anchor and anchor not in anchors_of(path)):
            yield target


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    assert list(broken_links(name)) == []


def commands_of(name: str) -> list[str]:
    """Every command line of `tablectl` that a document shows: of its own on an indented line, or in backticks."""
    text = text_of(name)
    shown = []
    for line in re.findall(r"^    (.*)$", text, re.MULTILINE):
        parts = [part.strip() for part in re.split(r"\s#\s|;", line)]
        shown += [part for part in parts if re.match(r"(\.venv/bin/)?tablectl\b", part)]
    shown += re.findall(r"`(tablectl [^`]+)`", text)
    return [command.removeprefix(".venv/bin/") for command in shown]


COMMANDS = sorted({(name, command) for name in NAMES for command in commands_of(name)})


def arguments_of(command: str) -> list[str]:
    return [PLACES.get(word, word) for word in shlex.split(command)[1:]]


def parse(arguments: list[str]) -> None:
    """Parse a command line as click would before it runs it. Raises what click raises."""
    context = cli.make_context("tablectl", list(arguments), resilient_parsing=False)
    command: click.Command = cli
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        if not rest:
            return
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command = found
        context = command.make_context(name, list(rest), parent=context)


def test_commands_are_found() -> None:
    assert len(COMMANDS) > 20
    assert ("README.md", "tablectl seats --total 9 --positions 8 --pack ca") in COMMANDS


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_a_command_that_is_shown_exists(name: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    parse(arguments_of(command))


def test_dice_turn_by_themselves_only_at_a_virtual_table() -> None:
    """A technician with hardware turns them by hand: --auto ends with an error there."""
    alone = [(name, command) for name, command in COMMANDS if "--auto" in command.split()]
    assert alone
    assert [one for one in alone if not re.search(r"--port /tmp/\S+/port\b", one[1])] == []


@pytest.mark.parametrize("command", ["tablectl sets --total 9", "tablectl seats --totl 9", "tablectl tiles rnk 6-6"])
def test_a_command_that_does_not_exist_is_found(command: str) -> None:
    with pytest.raises(click.ClickException):
        parse(arguments_of(command))


RUN = sorted({command for _name, command in COMMANDS if arguments_of(command)[0] in SAFE and "--batch" not in command})


@pytest.mark.parametrize("command", RUN)
def test_a_command_that_is_shown_runs(command: str, tablectl: Tablectl) -> None:
    done = tablectl(*arguments_of(command))
    assert (done.code, done.err) == (0, "")
    assert done.out


def test_the_requests_that_are_shown_are_taken() -> None:
    # Fault codes, in another table, are upper-case.
    rows = re.findall(r"^\| (`[a-z].*?) \|", text_of("docs/using.md"), re.MULTILINE)
    requests = [request for row in rows for request in re.findall(r"`([^`]+)`", row)]
    assert len(requests) > 15
    words = {"CODE": "TASK", "TOKEN": "7"}
    for request in requests:
        name, _fields = parse_request(" ".join(words.get(word, word) for word in request.split()))
        assert name in protocol.REQUESTS


# -- what is generated ---------------------------------------------------------------------------------------------


def test_the_protocols_reference_is_up_to_date() -> None:
    assert protocol_doc.PAGE.read_text(encoding="utf-8") == protocol_doc.page(), "python -m host_tools.protocol_doc"


def test_the_protocols_reference_names_everything() -> None:
    page = protocol_doc.page()
    tables = (protocol.REQUESTS, codes.ERRORS, codes.EVENTS, codes.STATES, codes.VOIDS, codes.FAULTS)
    for table in tables:
        for name in table:
            assert f"\n| `{name}` | " in page
    frames = re.findall(r"^    (\d+ \{.*)$", page, re.MULTILINE)
    assert [protocol.decode(frame.encode())[0] for frame in frames] == [1001, 1002, 0, 1002]


def test_the_hardwares_page_and_pictures_are_up_to_date() -> None:
    for path, text in wiring.files().items():
        assert path.read_text(encoding="utf-8") == text, f"python -m host_tools.wiring brings {path.name} up to date"


@pytest.mark.parametrize("board", boards())
@pytest.mark.parametrize("overrides", [{}, {"buzzer": 13, "lid": 28, "reader_cs": [5, 16, 7], "lock": 0}])
def test_the_wiring_shows_every_pin(board: str, overrides: dict[str, int | list[int]]) -> None:
    rows = wiring.rows_of(board, overrides)
    pins = wiring.pins_of(board, overrides)
    assert sorted(row.gpio for row in rows) == sorted(
        gpio for pin in pins.values() for gpio in (pin if isinstance(pin, list) else [pin])
    )
    picture = wiring.svg(board, overrides)
    root = ElementTree.fromstring(picture)
    assert len(root.findall(".//{*}path[@fill='none']")) == len(rows)
    words = [element.text for element in root.iter() if element.text]
    for row in rows:
        assert row.terminal in words
        assert row.role in words
    assert {f"{pin}  {name}" for pin, name in enumerate(header_data(board)["left"], 1)} <= set(words)
    assert any(board_data(board)["title"] in word for word in words)


@pytest.mark.parametrize("board", boards())
def test_no_wire_of_the_boards_crosses_another(board: str) -> None:
    """Wires run across, along their lane, and across: no lane is met by another wire's way."""
    wires = []
    for element in ElementTree.fromstring(wiring.svg(board)).iterfind(".//{*}path[@fill='none']"):
        numbers = [float(number) for number in re.findall(r"[\d.]+", element.attrib["d"])]
        assert len(numbers) == 5
        wires.append(numbers)
    for start_x, start_y, lane, end_y, end_x in wires:
        for other_x, other_start, other_lane, other_end, other_edge in wires:
            low, high = sorted((start_y, end_y))
            if (start_x, start_y) == (other_x, other_start):
                continue
            for level, one, two in ((other_start, other_x, other_lane), (other_end, other_lane, other_edge)):
                assert not (low < level < high and min(one, two) < lane < max(one, two)), (start_y, other_start, end_x)


def test_the_pages_say_what_was_not_proved() -> None:
    text = text_of("docs/hardware.md")
    assert "Nothing here was proved on a bench" in text
    assert "approved nowhere" in text
