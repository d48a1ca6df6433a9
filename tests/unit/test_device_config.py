"""What the firmware reads from its flash: every value is checked, and what is wrong is named."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boards.virtual.model import default_tags
from dragoneye import config, round
from dragoneye.rules import packs
from host_tools import provision
from host_tools.board_data import board_data, boards, chip_data

REFERENCE = board_data("rpi_pico")
JUNK: list[Any] = [None, True, -1, 0, 99, 10**9, 1.5, "x", "", [], [1], {}, {"x": 1}]


def put(data: Any, keys: tuple[Any, ...], value: Any) -> Any:
    """A copy of `data` with the value at `keys`; Ellipsis takes the entry away."""
    data = copy.deepcopy(data)
    inner = data
    for key in keys[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = value
    return data


def places(data: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys of every entry, at any depth."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield (*keys, key)
        yield from places(value, (*keys, key))


def read_board(folder: Path, data: Any) -> tuple[dict[str, Any], str | None]:
    path = folder / "board.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    found: tuple[dict[str, Any], str | None] = config.read_board(str(path))
    return found


@pytest.mark.parametrize("name", boards())
def test_every_board_of_ours_is_right(tmp_path: Path, name: str) -> None:
    assert read_board(tmp_path, board_data(name)) == (board_data(name), None)


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("lock",), {}, ": lock.pulse_ms is null; allowed: a whole number from 10 to 500"),
        (("lock",), None, ": lock is null; allowed: an object"),
        (("ring", "pixels"), 3, ": ring.pixels is 3; allowed: a whole number from 8 to 24"),
        (("pins", "lid"), "x", ': pins.lid is "x"; allowed: a whole number from 0 to 29'),
        (("pins", "lid"), 99, ": pins.lid is 99; allowed: a whole number from 0 to 29"),
        (("pins", "lid"), 16, ": pins.lock is 16; that is lid already"),
        (("pins", "supply"), 13, ": pins.supply is 13; allowed: a whole number from 26 to 29"),
        (("pins", "reader_cs"), 5, ": pins.reader_cs is 5; allowed: a list of 1 to 3 pins"),
        (("pins", "reader_cs"), [], ": pins.reader_cs is []; allowed: a list of 1 to 3 pins"),
        (("pins", "spi_sck"), 0, ": pins.spi_sck is 0; SPI0 has no such signal there"),
        (("pins", "lid"), ..., ": pins.lid is missing"),
        (("spi", "id"), 1, ": pins.spi_miso is 4; SPI1 has no such signal there"),
        (("supply",), {}, ": supply.full_scale_mv is null; allowed: a whole number from 1 to 100000"),
        (("motor", "stalled_min_ma"), ..., ": motor.stalled_min_ma is null; allowed: a whole number from 1 to 100000"),
        (("motor", "stalled_min_ma"), 150, ": motor.moving_min_ma is 150; allowed: from off_max_ma up to below"),
        (("name",), 7, ": name is 7; allowed: a text"),
        (("lock",), ..., " has no lock"),
    ],
)
def test_a_wrong_entry_of_a_board_is_named(tmp_path: Path, keys: tuple[Any, ...], value: Any, said: str) -> None:
    other = put(REFERENCE, ("pins", "buzzer"), 12)
    board, words = read_board(tmp_path, put(other, keys, value))
    assert words is not None
    assert words.startswith(f"{tmp_path}/board.json{said}")
    assert words.endswith("; provision the table from the host")
    # The wrong part is the reference design's; right pins stay the board's own.
    assert board["pins"] == (REFERENCE if keys[0] in ("pins", "spi") else other)["pins"]
    assert {**board, "pins": None} == {**REFERENCE, "pins": None}


def test_no_junk_anywhere_in_a_board_is_more_than_words(tmp_path: Path) -> None:
    taken = 0
    for keys in places(REFERENCE):
        for value in [*JUNK, ...]:
            board, words = read_board(tmp_path, put(REFERENCE, keys, value))
            assert read_board(tmp_path, board) == (board, None), (keys, value)
            taken += words is None
            if words is None:
                assert board == put(REFERENCE, keys, value) or keys == ("title",)
    # Numbers that can be, such as a motor's limits, and texts.
    assert 0 < taken < 60


@pytest.mark.parametrize("text", ["", "{", "[1]", "5", "null", '"x"', '{"pins": ' * 2000])
def test_what_is_not_a_boards_data(tmp_path: Path, text: str) -> None:
    board, words = read_board(tmp_path, text)
    assert board == REFERENCE
    assert words == f"{tmp_path}/board.json is not a board's data; provision the table from the host"


@pytest.mark.parametrize("chip", ["rp2040", "rp2350"])
def test_the_firmware_knows_the_chips_pins(chip: str) -> None:
    data = chip_data(chip)
    assert data["gpio"] == config.GPIO_MAX + 1
    assert [int(gpio) for gpio in data["adc"]] == list(range(config.ADC_MIN, config.GPIO_MAX + 1))
    for bus, signals in data["spi"].items():
        for signal, able in signals.items():
            rest = config._SPI_SIGNALS[f"spi_{signal}"]
            assert able == [gpio for gpio in range(30) if gpio % 4 == rest and gpio // 8 % 2 == int(bus)]


# -- config.json ---------------------------------------------------------------------------------------------------


def test_there_is_a_range_for_every_setting() -> None:
    assert set(config.SETTINGS) == set(round.SETTINGS)
    for name, (least, most) in config.SETTINGS.items():
        assert least <= round.SETTINGS[name] <= most


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """A right configuration with an entry of each kind, whose board lies beside it."""
    more = {
        "settings": dict(round.SETTINGS),
        "profile": {"jolt_ms": 500, "seed": 3},
        "watchdog_ms": 8000,
        "readers": 2,
        "gain_db": [33, 18],
        "reader_irq": True,
        "languages": ["en"],
    }
    provision.write(tmp_path, "rpi_pico", packs.load("nj"), default_tags(), 0, **more)
    data: dict[str, Any] = json.loads((tmp_path / "config.json").read_text())
    return data


def read_config(folder: Path, data: Any) -> Any:
    path = folder / "config.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return config.read_config(str(path), str(folder / "board.json"))


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("settings",), None, "settings is null; allowed: an object"),
        (("settings",), 5, "settings is 5; allowed: an object"),
        (("settings", "lockout_ms"), "x", 'settings.lockout_ms is "x"; allowed: a whole number from 0 to 600000'),
        (("settings", "settle_ms"), "x", 'settings.settle_ms is "x"; allowed: a whole number from 1 to 60000'),
        (("settings", "read_tries"), 0, "settings.read_tries is 0; allowed: a whole number from 2 to 1000000"),
        (("settings", "speed"), 1, 'settings: there is no "speed"; there are jolts, lockout_ms, read_timeout_ms,'),
        (("eye",), True, "eye is true; allowed: a whole number from 0 to 2"),
        (("eye",), 3, "eye is 3; allowed: a whole number from 0 to 2"),
        (("eye",), ..., "eye is missing"),
        (("dice",), ..., "dice is missing"),
        (("dice", 1, 2), "ZZ", "tag ZZ is not 8 or 14 hex digits"),
        (("dice", 1, 2), 17, "tag 17 is not 8 or 14 hex digits"),
        (("speed",), 1, 'there is no entry "speed"; there are board_hash, dice,'),
        (("serial",), 17, "serial is 17; allowed: a text"),
        (("languages",), [1], "languages is 1; allowed: a text"),
        (("pack", "values", "positions"), ..., "rule pack nj: no value for positions"),
        (("readers",), 4, "readers is 4; allowed: a whole number from 1 to 3"),
    ],
)
def test_a_wrong_entry_of_a_configuration_is_named(
    tmp_path: Path, given: dict[str, Any], keys: tuple[Any, ...], value: Any, said: str
) -> None:
    read_config(tmp_path, given)
    with pytest.raises(ValueError, match=re.escape(said)):
        read_config(tmp_path, put(given, keys, value))


def test_no_junk_anywhere_in_a_configuration_is_more_than_words(tmp_path: Path, given: dict[str, Any]) -> None:
    taken = []
    for keys in places(given):
        for value in [*JUNK, ...]:
            try:
                read, _pack, registry, _hash = read_config(tmp_path, put(given, keys, value))
            except ValueError:
                continue
            assert len(registry) == 18
            assert read["eye"] in (0, 1, 2)
            taken.append(keys)
    assert ("dice", 0, 0) not in taken
    assert ("eye",) in taken  # 0 is right


@pytest.mark.parametrize("text", ["", "{", "[1]", "5", "null", '"x"', '{"pack": ' * 2000])
def test_what_is_no_configuration(tmp_path: Path, given: dict[str, Any], text: str) -> None:
    assert given
    with pytest.raises(ValueError, match=r"config\.json"):
        read_config(tmp_path, text)


@pytest.mark.parametrize("key", ["dice", "eye", "serial", "issued", "over", "format"])
def test_no_junk_in_a_dice_set_is_more_than_words(tmp_path: Path, key: str) -> None:
    path = tmp_path / "dice.json"
    stored = {"dice": default_tags(), "eye": 1, "serial": "A", "issued": "x", "over": "h", "format": 1}
    for value in [*JUNK, ...]:
        path.write_text(json.dumps(put(stored, (key,), value)))
        try:
            config.read_dice("h", str(path))
        except ValueError:
            continue
        assert key == "over" or (key, value) in (("eye", 0), ("format", True)) or isinstance(value, str)
