"""A table's TOML file: its schema, mistakes in words, pins against the chip, and the way to the device and back."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.virtual.model import default_tags
from dragoneye import profile
from dragoneye.config import read_config
from dragoneye.errors import BadInput
from dragoneye.round import SETTINGS
from dragoneye.rules import packs
from dragoneye.text import digest
from host_tools import configuration, i18n, pins, table_file
from host_tools.board_data import BOARDS, board_data, boards, chip_data, header_data, parts_data
from host_tools.configuration import BOARD_FILE, CONFIG_FILE

EXAMPLES = sorted((BOARDS / "examples").glob("*.toml"))
FIRMWARE = Path(configuration.__file__).parents[1] / "firmware"


def whole(**changes: Any) -> dict[str, Any]:
    """A right configuration with some entries changed."""
    dice = {f"die{number}": faces for number, faces in enumerate(default_tags(), 1)}
    return {"format": 1, "name": "Seven", "board": "rpi_pico", "rules": {"pack": "nj"}, "dice": dice, **changes}


def wrong(**changes: Any) -> list[str]:
    """What is said about a configuration with these changes."""
    return [problem.why for problem in configuration.problems_of(whole(**changes))]


def files_of(data: dict[str, Any]) -> dict[str, bytes]:
    config, pack = configuration.check(data, "test")
    return configuration.device_files(config, pack)


def test_a_shake_that_has_less_time_than_its_jolts_take_is_hinted_at() -> None:
    """4 jolts of 600 ms and rests of 300 ms, each up to a tenth longer, take 3,960 ms."""

    def hints(**changes: Any) -> list[str]:
        data = whole(**changes)
        return configuration.hints(data, configuration.check(data, "test")[1], "T")

    told = "T: settings.shake_timeout_ms is 3960, and 4 jolts can take 3960 ms: void rolls"
    assert hints(settings={"shake_timeout_ms": 3960, "jolts": 4}) == [told]
    assert hints(settings={"shake_timeout_ms": 3961, "jolts": 4}) == []
    # The pack's least number of jolts counts too.
    [said] = hints(settings={"shake_timeout_ms": 15000}, rules={"pack": "nj", "options": {"jolts_min": 20}})
    assert "and 20 jolts can take 19800 ms" in said


# -- what is wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"settings": {"jolts": 13}}, "settings.jolts is 13; allowed: a whole number from 1 to 12"),
        ({"settings": {"jolts": "3"}}, 'settings.jolts is "3"; allowed: a whole number from 1 to 12'),
        ({"settings": {"jolts": True}}, "settings.jolts is true; allowed: a whole number from 1 to 12"),
        ({"settings": {"jolts": 3.0}}, "settings.jolts is 3.0; allowed: a whole number from 1 to 12"),
        ({"settings": 3}, "settings is 3; allowed: a table of entries"),
        ({"name": ""}, 'name is ""; allowed: text of 1 to 40 printable characters'),
        ({"name": "a\nb"}, 'name is "a\\nb"; allowed: text of 1 to 40 printable characters'),
        ({"board": "pico"}, 'board is "pico"; allowed: one of rpi_pico, rpi_pico2'),
        ({"languages": ["en", "fr"]}, 'languages.1 is "fr"; allowed: one of en, es'),
        ({"languages": []}, "languages is []; allowed: a list of 1-2, each one of en, es"),
        ({"watchdog_ms": 9000}, "watchdog_ms is 9000; allowed: a whole number from 2000 to 8388"),
        ({"readers": 4}, "readers is 4; allowed: a whole number from 1 to 3"),
        ({"readers": 2, "pins": {"reader_cs": [5]}}, "readers is 2; the board has pins for 1"),
        ({"gain_db": [33, 20]}, "gain_db.1 is 20; allowed: one of 18, 23, 33, 38, 43, 48"),
        ({"gain_db": [23, 33]}, "gain_db is [23, 33]; allowed: gains that fall from one to the next"),
        ({"gain_db": [33, 33]}, "gain_db is [33, 33]; allowed: gains that fall from one to the next"),
        ({"reader_irq": 1}, "reader_irq is 1; allowed: true or false"),
        (
            {"dice": {"die1": []}},
            "dice.die2 is missing; allowed: a list of 6, each a tag's UID: 8 or 14 hex digits",
        ),
        ({"format": 2}, "format 2 is newer than this program, which knows 1; update the program"),
        ({"format": "1"}, 'format is "1"; allowed: 1'),
        ({"setings": {}}, "there is no entry setings; did you mean settings? There are board, dice, format"),
        ({"profile": {"speed": 1}}, "there is no entry profile.speed; did you mean seed? There are duty_percent,"),
        ({"pins": {"buzer": 3}}, "there is no entry pins.buzer; did you mean buzzer? There are"),
        ({"rules": {"pack": "nz"}}, 'rules.pack: there is no rule pack "nz"; allowed: nj, pr, ca'),
        ({"rules": {"options": {"stake_mx": 1}}}, "there is no entry rules.options.stake_mx; did you mean stake_max?"),
        (
            {"rules": {"options": {"positions": 9}}},
            "rules.options.positions is 9; allowed: a whole number from 6 to 8",
        ),
        (
            {"rules": {"options": {"liability_max": 0}}},
            "rules.options.liability_max is 0; allowed: a whole number from 1 to 1000000000000, or none for none",
        ),
    ],
)
def test_a_mistake_is_named(changes: dict[str, Any], said: str) -> None:
    assert any(why.startswith(said) for why in wrong(**changes)), wrong(**changes)


def test_all_mistakes_are_told_at_once() -> None:
    dice = whole()["dice"]
    said = wrong(
        name=7,
        settings={"jolts": 0, "setle_ms": 1},
        pins={"buzzer": 15, "supply": 3},
        rules={"options": {"positions": 1, "stake_max": 0}},
        dice={**dice, "die3": dice["die1"]},
    )
    keys = ["name", "settings.jolts", "setle_ms", "pins.supply", "pins.buzzer", "positions", "stake_max", "dice.die3.5"]
    assert all(any(key in why for why in said) for key in keys), said


def test_mistakes_are_told_in_spanish(monkeypatch: pytest.MonkeyPatch) -> None:
    i18n.set_language("es")
    try:
        said = wrong(settings={"jolts": 99}, sttings={}, pins={"supply": 3, "buzzer": 25})
    finally:
        i18n.set_language("en")
    text = "\n".join(said)
    for english in ("allowed", "there is", "did you mean", "can measure", "is not on"):
        assert english not in text
    assert "settings.jolts es 99; se permite: un número entero de 1 a 12" in said


def test_a_tag_is_on_one_face() -> None:
    dice = copy.deepcopy(whole()["dice"])
    dice["die2"][3] = dice["die1"][0].upper()
    assert wrong(dice=dice) == [f'dice.die2.3 is "{dice["die2"][3]}"; that tag is dice.die1.0 already']


@settings(max_examples=20)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists, max_leaves=4))
def test_no_value_anywhere_ends_in_anything_but_words(value: Any) -> None:
    for key in (*whole(), "settings", "pins", "watchdog_ms", "languages", "profile"):
        for problem in configuration.problems_of(whole(**{key: value})):
            assert problem.key.split(".")[0] in problem.why
    for role in parts_data()["roles"]:
        configuration.problems_of(whole(pins={role: value}))
    for key in packs.KEYS:
        configuration.problems_of(whole(rules={"options": {key: value}}))


# -- pins ----------------------------------------------------------------------------------------------------------


def pin_problems(board: str = "rpi_pico", **overrides: Any) -> list[str]:
    return [f"{problem.key} {problem.gpio}: {problem.why}" for problem in pins.check_pins(board, overrides)]


@pytest.mark.parametrize("board", boards())
def test_the_boards_own_pins_are_right(board: str) -> None:
    assert pin_problems(board) == []
    roles = parts_data()["roles"]
    assert set(board_data(board)["pins"]) == set(roles)
    assert {row["part"] for row in roles.values()} <= set(parts_data()["parts"])


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"buzzer": 17}, "buzzer 17: GP17 is taken by lid"),
        ({"lid": 24}, "lid 24: GP24 is not on the header of the Raspberry Pi Pico: sense of the USB supply"),
        ({"lid": 30}, "lid 30: allowed: GP0 to GP29 of the RP2040"),
        ({"supply": 28, "motor_current": 12}, "motor_current 12: only GP26, GP27, GP28, GP29 can measure a voltage"),
        ({"spi_sck": 12}, "spi_sck 12: SPI0 has its SCK on GP2, GP6, GP18, GP22"),
        (
            {"buzzer": 0, "lock": 12, "motor_in2": 16},
            "motor_in2 16: GP16 is PWM slice 0 channel A, as buzzer on GP0 is",
        ),
        (
            {"motor_in2": 13, "buzzer": 15},
            "buzzer 15: GP15 is in PWM slice 7 with motor_in1 on GP14, and a slice has one",
        ),
        ({"reader_cs": [5, 6, 4]}, "reader_cs.2 4: GP4 is taken by spi_miso"),
    ],
)
def test_a_pin_that_cannot_is_refused(overrides: dict[str, Any], said: str) -> None:
    assert any(problem.startswith(said) for problem in pin_problems(**overrides)), pin_problems(**overrides)


def test_pins_that_can_are_taken() -> None:
    assert pin_problems(buzzer=13) == []
    assert pin_problems(spi_sck=18, tamper=2, spi_mosi=19, button=3, spi_miso=16, lock=4) == []
    assert pin_problems(reader_irq=[], buzzer=9) == []
    assert pin_problems(supply=28) == []


def test_a_pull_down_is_refused_on_the_rp2350(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = copy.deepcopy(parts_data())
    parts["roles"]["tamper"]["pull"] = "down"
    monkeypatch.setattr(pins, "parts_data", lambda: parts)
    assert pin_problems("rpi_pico") == []
    [said] = pin_problems("rpi_pico2")
    assert said.startswith("tamper 18: an input with a pull-down does not work on the RP2350: erratum RP2350-E9")


@pytest.mark.parametrize("name", ["RP2040", "RP2350"])
def test_the_chips_functions_repeat_as_the_data_sheet_says(name: str) -> None:
    """Functions go round every eight GPIOs (RX, CSn, SCK, TX twice); the port changes every eight."""
    chip = chip_data(name)
    for gpio in range(chip["gpio"]):
        port = "1" if gpio // 8 in (1, 3) else "0"
        signal = ("miso", None, "sck", "mosi")[gpio % 4]
        for other in ("0", "1"):
            for pin in ("miso", "sck", "mosi"):
                assert (gpio in chip["spi"][other][pin]) == (other == port and pin == signal)
    assert {int(gpio): channel for gpio, channel in chip["adc"].items()} == {26: 0, 27: 1, 28: 2, 29: 3}


def test_the_header_has_every_gpio_that_is_not_internal() -> None:
    for board in boards():
        header = header_data(board)
        names = header["left"] + header["right"]
        assert (len(header["left"]), len(header["right"])) == (20, 20)
        on_header = {int(name[2:]) for name in names if name.startswith("GP")}
        assert on_header | {int(gpio) for gpio in header["internal"]} == set(range(30))
        assert names.count("GND") == 7


# -- to the device and back ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        whole(),
        whole(
            board="rpi_pico2",
            languages=["es", "en"],
            watchdog_ms=8000,
            readers=1,
            gain_db=[48, 18],
            pins={"buzzer": 13, "reader_cs": [5]},
        ),
        whole(rules={"pack": "ca", "options": {"shakes_max": "none", "wagers": ["match"], "positions": 7}}),
        whole(settings={"jolts": 5, "lockout_ms": 0}, profile={"jolt_ms": 100, "rest_ms": 2, "duty_percent": 90}),
    ],
)
def test_what_the_device_gets_is_read_back_the_same(data: dict[str, Any], tmp_path: Path) -> None:
    data = {**data, "dice": {"eye": 2, **data["dice"]}}
    files = files_of(data)
    back, held = configuration.document_of(files, "device")
    assert back == data
    config, pack = configuration.check(back, "device", held=held)
    assert configuration.device_files(config, pack) == files
    assert configuration.differences(table_file.parse(table_file.text_of(back), "text").unwrap(), data) == []
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    read, device_pack, registry, config_hash = read_config(str(tmp_path / CONFIG_FILE), str(tmp_path / BOARD_FILE))
    assert read["eye"] == 1
    assert device_pack.values == pack.values
    assert registry[data["dice"]["die3"][0].upper()] == (2, 1)
    assert config_hash == digest(files[CONFIG_FILE])


def test_options_change_the_pack(tmp_path: Path) -> None:
    data = whole(rules={"pack": "nj", "options": {"stake_max": 700, "liability_max": "none"}})
    config = json.loads(files_of(data)[CONFIG_FILE])
    assert config["pack"]["values"]["stake_max"] == [700, "given as an option"]
    assert config["pack"]["values"]["liability_max"] == [None, "given as an option"]


def test_a_pack_beside_the_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"name": "mine", "base": "ca", "values": {"positions": [7, "house"]}}')
    config, pack = configuration.check(whole(rules={"pack": "mine.json"}), "file", tmp_path)
    assert (pack.name, pack["positions"]) == ("mine", 7)
    back, held = configuration.document_of(configuration.device_files(config, pack), "device")
    assert back["rules"] == {"pack": "mine.json"}
    assert configuration.problems_of(back, held=held) == []
    assert [problem.key for problem in configuration.problems_of(back)] == ["rules.pack"]


def test_a_table_without_dice_can_be_written_and_does_not_play(tmp_path: Path) -> None:
    data = whole()
    del data["dice"]
    files = files_of(data)
    assert configuration.document_of(files, "device")[0] == data
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match="there are 0 dice; three are needed"):
        read_config(str(tmp_path / CONFIG_FILE), str(tmp_path / BOARD_FILE))


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (CONFIG_FILE, b"", "no table's configuration is there"),
        (CONFIG_FILE, b"[]", "no table's configuration is there"),
        (CONFIG_FILE, b'{"format": 9}', "config.json has format 9; this program knows 1"),
        (BOARD_FILE, b'{"name": "other", "title": "x", "pins": {}}', 'there is no board "other"'),
        (
            BOARD_FILE,
            None,
            r"no table's configuration is there, board\.json is missing; write one: tablectl config set",
        ),
    ],
)
def test_a_device_without_a_right_configuration(name: str, change: bytes | None, said: str) -> None:
    files: dict[str, bytes] = dict(files_of(whole()))
    if change is None:
        del files[name]
    else:
        files[name] = change
    with pytest.raises(BadInput, match=said):
        configuration.document_of(files, "device")


def test_the_firmware_refuses_two_files_that_were_not_written_together(tmp_path: Path) -> None:
    old, new = files_of(whole()), files_of(whole(pins={"buzzer": 13}))
    (tmp_path / BOARD_FILE).write_bytes(new[BOARD_FILE])
    (tmp_path / CONFIG_FILE).write_bytes(old[CONFIG_FILE])
    with pytest.raises(ValueError, match=r"board\.json was not written together with it"):
        read_config(str(tmp_path / CONFIG_FILE), str(tmp_path / BOARD_FILE))
    (tmp_path / BOARD_FILE).unlink()
    with pytest.raises(ValueError, match=r"board\.json is missing"):
        read_config(str(tmp_path / CONFIG_FILE), str(tmp_path / BOARD_FILE))


def test_the_schema_knows_what_the_firmware_reads() -> None:
    """Names and defaults of the settings and of the shake profile are the firmware's own."""
    assert configuration.Settings().model_dump() == SETTINGS
    assert configuration.Profile().model_dump() == profile.check({})


# -- the file ------------------------------------------------------------------------------------------------------


def test_there_is_an_example_for_every_pack() -> None:
    assert {path.stem for path in EXAMPLES} == set(packs.NAMES)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.stem))
def test_an_example_is_right_and_tells_every_entry(path: Path) -> None:
    text = table_file.read(path)
    data = table_file.parse(text, path.name).unwrap()
    configuration.check(data, path.name)
    assert data["rules"]["pack"] == path.stem
    schema, example, rest = text.split("\n", 2)
    assert schema == "#:schema ./table.schema.json"
    assert example.startswith("# An example")
    assert rest == table_file.text_of(data), "bring the example up to date with table_file.text_of"


def test_the_schema_for_editors_is_up_to_date() -> None:
    committed = (BOARDS / "examples" / "table.schema.json").read_text(encoding="utf-8")
    assert committed == table_file.schema_text(), "tablectl config schema > boards/examples/table.schema.json"


HAND_WRITTEN = """\
# The table by the window.
format = 1   # never mind
board = "rpi_pico"
name = "Seven"

[settings]
# Quick dice.
settle_ms = 450     # measured

# [rules]

[profile]
# jolt_ms = 600  # the motor runs
duty_percent = 70
"""


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("settings.settle_ms", "500", "settle_ms = 450     # measured", "settle_ms = 500     # measured"),
        ("name", "Eight", 'name = "Seven"', 'name = "Eight"'),
        ("settings.jolts", "4", "# measured\n", "# measured\njolts = 4\n"),
        ("profile.jolt_ms", "700", "# jolt_ms = 600  # the motor runs", "jolt_ms = 700  # the motor runs"),
        ("watchdog_ms", "8000", 'name = "Seven"\n', 'name = "Seven"\nwatchdog_ms = 8000\n'),
        ("pins.reader_cs", "[7, 6]", "duty_percent = 70\n", "duty_percent = 70\n\n[pins]\nreader_cs = [7, 6]\n"),
    ],
)
def test_comments_and_order_stay(key: str, value: str, old: str, new: str) -> None:
    keys = configuration.keys_of(key)
    text = table_file.put(HAND_WRITTEN, keys, table_file.value_of(value, keys), "file")
    assert text == HAND_WRITTEN.replace(old, new)


@settings(max_examples=40)
@given(
    st.sampled_from(["settings.jolts", "name", "rules.options.stake_max", "pins.reader_cs", "dice.die1", "languages"]),
    st.integers(-5, 10**9) | st.text(max_size=8) | st.lists(st.integers(0, 40), max_size=4),
    st.sampled_from([HAND_WRITTEN, *(path.read_text(encoding="utf-8") for path in EXAMPLES)]),
)
def test_an_entry_that_is_set_is_there_and_nothing_else_changes(key: str, value: Any, text: str) -> None:
    before = configuration.flat(table_file.parse(text, "file").unwrap())
    after = configuration.flat(table_file.parse(table_file.put(text, key.split("."), value, "file"), "file").unwrap())
    assert after == {**before, key: value}
    comments = [line for line in text.splitlines() if line.startswith("#") and "=" not in line]
    kept = table_file.put(text, key.split("."), value, "file").splitlines()
    assert [line for line in comments if line not in kept] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = \n", "file: line 1, column 4: this is not TOML"),
        ("a = 1\n[b\n", "file: line 2, column 2: this is not TOML"),
        ("a = 1\na = 2\n", "this is not TOML"),
        ("[a]\n[b]\n[a]\n", "this is not TOML"),
    ],
)
def test_a_mistake_in_the_toml_is_placed(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        table_file.parse(text, "file")


def test_a_file_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "real.toml"
    path.write_text("old")
    path.chmod(0o640)
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    table_file.write(link, "new")
    assert (link.is_symlink(), path.read_text(), path.stat().st_mode & 0o777) == (True, "new", 0o640)

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(BadInput, match="No space left on device; nothing was changed"):
        table_file.write(path, "newer")
    assert path.read_text() == "new"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["link.toml", "real.toml"]
