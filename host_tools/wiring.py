"""The wiring of a board, drawn and listed from its data; `python -m host_tools.wiring` brings docs/ up to date.

What a pin is for comes from `boards/`: pins from board.json, the header from header.json, parts from parts.json.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from host_tools.board_data import BOARDS, board_data, boards, chip_data, header_data, parts_data
from host_tools.pins import slice_of, uses

DOCS = BOARDS.parent / "docs"
PAGE = DOCS / "hardware.md"

Pins = Mapping[str, int | list[int]]


class Row(NamedTuple):
    """One wire: header pin (1 to 40), GPIO, its role, what the chip does there, the part's name and terminal."""

    pin: int
    gpio: int
    role: str
    function: str
    part: str
    terminal: str


def pins_of(board: str, overrides: Pins | None = None) -> dict[str, int | list[int]]:
    """The board's pins with some replaced."""
    return {**board_data(board)["pins"], **(overrides or {})}


def header_pins(board: str) -> dict[str, int]:
    """Name of a GPIO ("GP7") -> its pin on the header: 1 to 20 down the left, 21 to 40 up the right."""
    header = header_data(board)
    names = dict(zip(header["left"], range(1, 21), strict=True))
    names.update(zip(header["right"], range(40, 20, -1), strict=True))
    return {name: pin for name, pin in names.items() if name.startswith("GP")}


def _function(board: Mapping[str, Any], needs: str, gpio: int, pull: str | None) -> str:
    chip = chip_data(board["chip"])
    kind, _space, signal = needs.partition(" ")
    if kind == "spi":
        return f"SPI{board['spi']['id']} {signal.upper()}"
    if kind == "adc":
        return f"ADC{chip['adc'][str(gpio)]}"
    if kind in ("pwm", "tone"):
        return "PWM {}{}".format(*slice_of(gpio, chip))
    return f"input, pull-{pull}" if kind == "input" else kind


def rows_of(board: str, overrides: Pins | None = None) -> list[Row]:
    """Every wire between the header and a part, by header pin."""
    data, parts = board_data(board), parts_data()
    places = header_pins(board)
    rows = []
    for use in uses(pins_of(board, overrides)):
        role = parts["roles"][use.role]
        number = int(use.key.rpartition(".")[2]) + 1 if "." in use.key else 0
        rows.append(
            Row(
                places[f"GP{use.gpio}"],
                use.gpio,
                use.key if not number else f"{use.role} {number}",
                _function(data, role["needs"], use.gpio, role.get("pull")),
                parts["parts"][role["part"]]["title"],
                role["terminal"].format(n=number),
            )
        )
    return sorted(rows)


# --- the picture -------------------------------------------------------------------------------------------------

WIDTH = 1480
PITCH = 36  # between header pins
TOP = 112
PICO_X, PICO_W = 580, 320
BOX_W = 390
LEFT_X, RIGHT_X = 20, WIDTH - 20 - BOX_W
ROW = 22  # between terminals
COLOURS = ("#1f5fa8", "#b3261e", "#1b7f3b", "#8a4baf", "#b26a00", "#00727a", "#a0306e", "#5c5c00", "#3d3d8f")
FONT = 'font-family="DejaVu Sans, Verdana, Arial, sans-serif"'


def _text(x: float, y: float, words: str, size: int = 13, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def _rect(x: float, y: float, width: float, height: float, fill: str, stroke: str = "#333") -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" fill="{fill}" stroke="{stroke}"/>'


class _Part:
    """A part's box: its wires in the order of their pins."""

    def __init__(self, data: Mapping[str, Any], rows: Sequence[Row], colour: str) -> None:
        self.title = data["title"]
        self.rows = rows
        self.colour = colour
        self.power = " · ".join(data["power"])
        self.notes = textwrap.wrap(data["note"] or "", 52)
        self.y = 0.0

    @property
    def height(self) -> float:
        return 34 + ROW * (len(self.rows) + 1) + 17 * len(self.notes) + 4

    def terminal_y(self, index: int) -> float:
        return self.y + 30 + ROW * index + ROW / 2

    def draw(self, x: float, left: bool) -> Iterator[str]:
        yield _rect(x, self.y, BOX_W, self.height, "#f7f7f2", self.colour)
        yield _text(x + 12, self.y + 21, self.title, 15, more=' font-weight="bold"')
        edge = x + BOX_W if left else x
        inner, anchor = (edge - 14, "end") if left else (edge + 14, "start")
        for index, row in enumerate(self.rows):
            y = self.terminal_y(index)
            yield f'<circle cx="{edge:g}" cy="{y:g}" r="4" fill="{self.colour}"/>'
            yield _text(inner, y + 4.5, row.terminal, 13, anchor)
        y = self.terminal_y(len(self.rows))
        yield _text(x + 12, y + 4.5, f"also: {self.power}", 12, more=' fill="#444"')
        for index, line in enumerate(self.notes):
            yield _text(x + 12, y + 23 + 17 * index, line, 12, more=' fill="#444" font-style="italic"')


def _lanes(wires: Sequence[tuple[float, float]], near: float, far: float) -> list[float]:
    """Where each wire (from y, to y), in order, runs up or down so that none crosses another.

    Those that go down nest with the lowest nearest to the pins, those that go up with the highest nearest.
    """
    down = [index for index, (start, end) in enumerate(wires) if end >= start]
    up = [index for index, (start, end) in enumerate(wires) if end < start]
    step = (far - near) / (max(len(down), len(up)) + 1)
    place = {index: number for group in (list(reversed(down)), up) for number, index in enumerate(group, 1)}
    return [near + step * place[index] for index in range(len(wires))]


def _side(parts: list[_Part], ys: Mapping[int, float], left: bool) -> Iterator[str]:
    """The parts beside one row of pins, and the wires to them."""
    box_x = LEFT_X if left else RIGHT_X
    pin_x = PICO_X if left else PICO_X + PICO_W
    edge = box_x + BOX_W if left else box_x
    y = float(TOP - 20)
    for part in parts:
        part.y = y
        y += part.height + 12
    wires = [(ys[row.pin], part.terminal_y(i), part.colour) for part in parts for i, row in enumerate(part.rows)]
    lanes = _lanes([(start, end) for start, end, _colour in wires], pin_x, edge)
    for part in parts:
        yield from part.draw(box_x, left)
    for (start, end, colour), lane in zip(wires, lanes, strict=True):
        path = f"M{pin_x:g} {start:g}H{lane:.1f}V{end:g}H{edge:g}"
        yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>'


def _pico(title: str, header: Mapping[str, Any], roles: Mapping[int, str], ys: Mapping[int, float]) -> Iterator[str]:
    bottom = ys[20] + 24
    yield _rect(PICO_X, TOP - 46, PICO_W, bottom - TOP + 46, "#e4f0e4", "#2c5e2c")
    yield _rect(PICO_X + PICO_W / 2 - 34, TOP - 58, 68, 26, "#ccc")
    yield _text(PICO_X + PICO_W / 2, TOP - 41, "USB", 12, "middle")
    yield _text(PICO_X + PICO_W / 2, TOP - 14, title, 15, "middle", ' font-weight="bold"')
    for side, names in (("left", header["left"]), ("right", header["right"])):
        left = side == "left"
        x = PICO_X if left else PICO_X + PICO_W
        for index, name in enumerate(names):
            pin = index + 1 if left else 40 - index
            y = ys[pin]
            fill = "#222" if name.endswith("GND") else "#c33" if name in ("3V3", "VSYS", "VBUS") else "#d9a520"
            yield f'<rect x="{x - 7:g}" y="{y - 7:g}" width="14" height="14" fill="{fill}" stroke="#333"/>'
            number_x, anchor = (x + 14, "start") if left else (x - 14, "end")
            role = roles.get(pin, "")
            grey = "" if role or not name.startswith("GP") else ' fill="#999"'
            label = f"{pin}  {name}" if left else f"{name}  {pin}"
            yield _text(number_x, y + 4.5, label, 13, anchor, grey)
            role_x = x + 84 if left else x - 84
            yield _text(role_x, y + 4.5, role, 11, anchor, ' fill="#555"')


def _power(y: float, chains: Sequence[Sequence[str]]) -> Iterator[str]:
    """The supplies, as rows of boxes."""
    yield _text(LEFT_X, y, "Supplies (every GND and AGND is one net)", 15, more=' font-weight="bold"')
    for row, chain in enumerate(chains):
        x = float(LEFT_X)
        top = y + 18 + 46 * row
        for index, words in enumerate(chain):
            width = 7.7 * len(words) + 24
            if index:
                yield f'<path d="M{x - 34:g} {top + 16:g}H{x - 6:g}" stroke="#b3261e" stroke-width="1.8"/>'
                yield f'<path d="M{x - 10:g} {top + 11:g}L{x:g} {top + 16:g}L{x - 10:g} {top + 21:g}Z" fill="#b3261e"/>'
            yield _rect(x, top, width, 32, "#fdf1ef", "#b3261e")
            yield _text(x + width / 2, top + 20.5, words, 13, "middle")
            x += width + 34


def svg(board: str, overrides: Pins | None = None) -> str:
    """The wiring diagram of a board, or of a table that has other pins, as an SVG document."""
    data, parts, header = board_data(board), parts_data(), header_data(board)
    rows = rows_of(board, overrides)
    ys = {pin: TOP + 14 + PITCH * (pin - 1 if pin <= 20 else 40 - pin) for pin in range(1, 41)}
    sides: dict[bool, list[_Part]] = {True: [], False: []}
    for index, part in enumerate(parts["parts"].values()):
        # A part whose pins are on both sides is drawn twice, each time with the wires of that side.
        for left in (True, False):
            mine = [row for row in rows if row.part == part["title"] and (row.pin <= 20) == left]
            if mine:
                mine.sort(key=lambda row: ys[row.pin])
                sides[left].append(_Part(part, mine, COLOURS[index % len(COLOURS)]))
    drawn = []
    for left, boxes in sides.items():
        boxes.sort(key=lambda part: ys[part.rows[0].pin])
        drawn += list(_side(boxes, ys, left))
    ends = [part.y + part.height for boxes in sides.values() for part in boxes]
    bottom = max(*ends, ys[20] + 30)
    height = bottom + 70 + 46 * len(parts["power"])
    body = [
        _rect(0, 0, WIDTH, height, "#fff", "#fff"),
        _text(
            LEFT_X, 36, f"Dragon's eye table on the {data['title']} ({data['chip']})", 22, more=' font-weight="bold"'
        ),
        _text(LEFT_X, 58, "The reference design. Not proved on a bench, approved nowhere.", 13, more=' fill="#b3261e"'),
        *_pico(data["title"], header, {row.pin: row.role for row in rows}, ys),
        *drawn,
        *_power(bottom + 42, parts["power"]),
    ]
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" {FONT}>'
    return "\n".join([start, *body, "</svg>"]) + "\n"


# --- the page ----------------------------------------------------------------------------------------------------


def _table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def blocks() -> dict[str, str]:
    """What stands between the page's markers: the wiring and the bill of materials as tables."""
    groups: dict[str, list[str]] = {}
    for board in boards():
        rows = [
            (row.pin, f"GP{row.gpio}", f"`{row.role}`", row.function, row.part, row.terminal) for row in rows_of(board)
        ]
        table = _table(("pin", "GPIO", "`board.json`", "function", "part", "terminal"), rows)
        groups.setdefault(table, []).append(board_data(board)["title"])
    wires = [f"{' and '.join(titles)}:\n\n{table}" for table, titles in groups.items()]
    bill = _table(("pieces", "part", "for"), parts_data()["bill"])
    return {"wiring": "\n\n".join(wires), "bill": bill}


def page(text: str) -> str:
    """The page with its generated blocks brought up to date."""
    for name, block in blocks().items():
        pattern = re.compile(rf"(<!-- {name}: .*? -->\n).*?(\n<!-- end -->)", re.DOTALL)
        text, count = pattern.subn(lambda found, block=block: f"{found[1]}\n{block}\n{found[2]}", text)  # type: ignore[misc]
        assert count == 1, f"the page has {count} blocks {name}"
    return text


def files() -> dict[Path, str]:
    """Every generated file of docs/ about the hardware, as it should be."""
    found = {DOCS / f"wiring-{board}.svg": svg(board) for board in boards()}
    return {**found, PAGE: page(PAGE.read_text(encoding="utf-8"))}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
        print(path)
