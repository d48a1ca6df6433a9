"""`tablectl config` on a file: what is printed, what is kept, and one clear line for every mistake."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from boards.virtual.model import default_tags
from dragoneye.config import read_config
from dragoneye.text import digest
from host_tools import configuration
from host_tools.board_data import BOARDS
from host_tools.diceset import DiceSet
from tests.unit.conftest import Tablectl


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A right configuration."""
    return str(shutil.copy(BOARDS / "examples" / "nj.toml", tmp_path / "table.toml"))


def test_a_new_file_is_right_and_asks_for_the_dice(tablectl: Tablectl, tmp_path: Path) -> None:
    path = str(tmp_path / "new.toml")
    assert tablectl("config", "new", path, "--board", "rpi_pico2", "--pack", "ca", "--name", "Nine").code == 0
    done = tablectl("config", "validate", "--file", path)
    assert (done.code, done.out) == (0, f"{path}: right\n")
    assert done.err.startswith(f"{path}: the dice are still missing; ")
    assert tablectl("config", "get", "rules.pack", "--file", path).out == "ca\n"
    assert tablectl("config", "export", "--file", path, "--dir", str(tmp_path / "out")).err == done.err
    assert tablectl("config", "new", path + "1", "--json").rows == [{"file": path + "1"}]
    assert tablectl("config", "new", path).refusal() == f"{path}: there is a file already; name another"
    assert "there is no rule pack" in tablectl("config", "new", path + "2", "--pack", "nz").refusal()
    assert tablectl("config", "new", path + "2", "--name", "").refusal().startswith(f"{path}2: name is")


def test_get_and_set(tablectl: Tablectl, file: str) -> None:
    assert tablectl("config", "get", "name", "--file", file).out == "New Jersey table\n"
    assert tablectl("config", "get", "settings", "--file", file).out == ""
    assert tablectl("config", "set", "settings.jolts", "5", "--file", file).out == "settings.jolts = 5\n"
    [told] = tablectl("config", "set", "pins.reader_cs", "[5, 6]", "--file", file, "--json").rows
    assert told == {"key": "pins.reader_cs", "value": [5, 6], "problems": []}
    assert tablectl("config", "get", "pins.reader_cs.1", "--file", file).out == "6\n"
    assert tablectl("config", "get", "settings", "--file", file, "--json").rows == [{"jolts": 5}]
    assert tablectl("config", "get", "--file", file).out == Path(file).read_text(encoding="utf-8")
    assert tablectl("config", "get", "settings.setle_ms", "--file", file).refusal() == (
        f"{file}: there is no entry settings.setle_ms; there are jolts"
    )


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("settings.jolts", "50", "settings.jolts is 50; allowed: a whole number from 1 to 12"),
        ("settings.jolts", "many", 'settings.jolts is "many"; allowed: a whole number from 1 to 12'),
        ("pins.supply", "3", "pins.supply is 3; GP3 is taken by spi_mosi"),
        ("nmae", "x", "there is no entry nmae; did you mean name? There are"),
        ("name.first", "x", 'name is "New Jersey table", which has no entries'),
        ("dice.die1.6", "04AABBCC", "there is no entry 6; there are 0, 1, 2, 3, 4, 5"),
        ("format", "2", "format 2 is newer than this program, which knows 1; update the program"),
    ],
)
def test_a_wrong_value_changes_nothing(tablectl: Tablectl, file: str, key: str, value: str, said: str) -> None:
    before = Path(file).read_bytes()
    done = tablectl("config", "set", key, value, "--file", file)
    assert (done.code, done.out) == (2, "")
    assert f"tablectl: error: {file}: {said}" in done.err
    assert Path(file).read_bytes() == before
    assert os.listdir(Path(file).parent) == ["table.toml"]


def test_what_is_hardly_meant_is_hinted_at(tablectl: Tablectl, file: str) -> None:
    assert tablectl("config", "set", "settings.shake_timeout_ms", "2000", "--file", file).code == 0
    done = tablectl("config", "validate", "--file", file)
    assert (done.code, done.out) == (0, f"{file}: right\n")
    assert f"{file}: settings.shake_timeout_ms is 2000, and" in done.err
    [row] = tablectl("config", "validate", "--file", file, "--json").rows
    assert (row["ok"], row["hints"]) == (True, [done.err.rstrip("\n")])


def test_a_file_can_be_mended_one_entry_at_a_time(tablectl: Tablectl, file: str) -> None:
    path = Path(file)
    path.write_text(path.read_text().replace("format = 1", "format = 0").replace('board = "rpi_pico"', 'board = "x"'))
    done = tablectl("config", "validate", "--file", file)
    assert (done.code, done.err.count("\n")) == (2, 2)
    [row] = tablectl("config", "validate", "--file", file, "--json").rows
    assert (row["ok"], [problem["key"] for problem in row["problems"]]) == (False, ["format", "board"])
    done = tablectl("config", "set", "board", "rpi_pico2", "--file", file)
    assert (done.code, done.err) == (0, "still wrong: format is 0; allowed: 1\n")
    assert tablectl("config", "set", "format", "1", "--file", file).err == ""
    assert tablectl("config", "validate", "--file", file).out == f"{file}: right\n"


def test_export_makes_what_the_firmware_reads(tablectl: Tablectl, file: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tablectl("config", "set", "pins.buzzer", "13", "--file", file)
    [told] = tablectl("config", "export", "--file", file, "--dir", str(out), "--json").rows
    config, pack, _registry, config_hash = read_config(str(out / "config.json"), str(out / "board.json"))
    assert (pack.name, pack["stake_max"], config["watchdog_ms"]) == ("nj", 50000, 8000)
    assert told["hashes"] == {"board.json": digest((out / "board.json").read_bytes()), "config.json": config_hash}
    assert json.loads((out / "board.json").read_text())["pins"]["buzzer"] == 13


def test_diff_names_what_differs(tablectl: Tablectl, file: str, tmp_path: Path) -> None:
    other = str(BOARDS / "examples" / "nj.toml")
    same = tablectl("config", "diff", "--file", file, "--with", other)
    assert (same.code, same.out) == (0, "no difference\n")
    tablectl("config", "set", "name", "Other", "--file", file)
    done = tablectl("config", "diff", "--file", file, "--with", other, "--json")
    assert (done.code, done.rows) == (1, [[{"key": "name", "old": "Other", "new": "New Jersey table"}]])
    assert "New Jersey table" in tablectl("config", "diff", "--file", file, "--with", other).out
    assert "give --port or --with" in tablectl("config", "diff", "--file", file).err


def test_what_cannot_be_read_or_written(tablectl: Tablectl, file: str, tmp_path: Path) -> None:
    absent = str(tmp_path / "absent.toml")
    said = f"{absent}: there is no such file; `tablectl config new` makes one"
    for command in (["validate"], ["get"], ["set", "name", "x"], ["edit"], ["export", "--dir", str(tmp_path)]):
        assert tablectl("config", *command, "--file", absent).refusal() == said
    path = Path(file)
    path.chmod(0o444)
    before = path.read_bytes()
    said = f"{file}: the file is read-only; nothing was changed"
    assert tablectl("config", "set", "name", "x", "--file", file).refusal() == said
    assert path.read_bytes() == before
    path.chmod(0o644)
    path.write_bytes(b'name = "\xff"')
    assert tablectl("config", "validate", "--file", file).refusal() == f"{file}: byte 8 is not UTF-8 text"
    endless = "/dev/zero: this is no table file: it is longer than 1000000 bytes"
    assert tablectl("config", "validate", "--file", "/dev/zero").refusal() == endless
    path.write_text("name = Seven\n")
    assert tablectl("config", "validate", "--file", file).refusal().startswith(f"{file}: line 1, column 7: this is not")
    assert "not both" in tablectl("config", "get", "--file", file, "--port", "p").refusal()
    assert "there is no such port" in tablectl("config", "get", "--port", str(tmp_path / "none")).refusal()
    assert "give KEY and VALUE" in tablectl("config", "set").err
    assert "give a VALUE for name" in tablectl("config", "set", "name").err


def editor(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", command)


def test_edit_keeps_what_is_right(tablectl: Tablectl, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Path(file).read_text(encoding="utf-8")
    editor(monkeypatch, "sed -i 's/stake_max = 50000/stake_max = 70000/'")
    assert tablectl("config", "edit", "--file", file).out == f"{file}: changed\n"
    assert Path(file).read_text(encoding="utf-8") == before.replace("stake_max = 50000", "stake_max = 70000")
    editor(monkeypatch, "true")
    assert tablectl("config", "edit", "--file", file).out == f"{file}: nothing was changed\n"
    assert tablectl("config", "edit", "--file", file, "--json").rows == [{"where": file, "changed": False}]
    editor(monkeypatch, "false")
    assert tablectl("config", "edit", "--file", file).code == 2
    editor(monkeypatch, "no-such-editor")
    assert "the editor no-such-editor does not start" in tablectl("config", "edit", "--file", file).refusal()
    for none in ('"', "  "):
        monkeypatch.setenv("VISUAL", none)
        assert "in $VISUAL or $EDITOR is no command" in tablectl("config", "edit", "--file", file).refusal()


def test_a_file_with_the_mark_of_windows_editors_is_read(tablectl: Tablectl, file: str) -> None:
    Path(file).write_bytes(b"\xef\xbb\xbf" + Path(file).read_bytes())
    assert tablectl("config", "validate", "--file", file).out == f"{file}: right\n"


def test_edit_loses_nothing_that_is_wrong(tablectl: Tablectl, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Path(file).read_bytes()
    editor(monkeypatch, "sed -i 's/^watchdog_ms = 8000/watchdog_ms = 80000/'")
    done = tablectl("config", "edit", "--file", file)
    kept, said = done.err.splitlines()
    draft = Path(kept.removeprefix("your changes are kept in ").split(";")[0])
    assert "watchdog_ms = 80000" in draft.read_text()
    draft.unlink()
    assert said.endswith("watchdog_ms is 80000; allowed: a whole number from 2000 to 8388")
    assert (done.code, Path(file).read_bytes()) == (2, before)


def test_the_schema_is_printed(tablectl: Tablectl) -> None:
    schema = json.loads(tablectl("config", "schema").out)
    assert schema["properties"]["settings"]
    assert schema["$defs"]["Settings"]["additionalProperties"] is False


def test_the_wiring_of_a_table_with_other_pins(tablectl: Tablectl, file: str, tmp_path: Path) -> None:
    tablectl("config", "set", "pins.buzzer", "13", "--file", file)
    picture = tmp_path / "wiring.svg"
    rows = tablectl("config", "wiring", "--file", file, "--svg", str(picture), "--json").rows[0]
    buzzer = next(row for row in rows if row["role"] == "buzzer")
    assert (buzzer["pin"], buzzer["gpio"], buzzer["function"]) == (17, 13, "PWM 6B")
    assert "piezo buzzer" in picture.read_text(encoding="utf-8")
    shown = tablectl("config", "wiring", "--file", file)
    assert (shown.code, shown.out.count("\n")) == (0, len(rows) + 1)
    Path(file).write_text("format = 1\n")
    assert tablectl("config", "wiring", "--file", file).code == 2


def test_a_learned_dice_set_goes_into_the_file(tablectl: Tablectl, tmp_path: Path) -> None:
    path = str(tmp_path / "new.toml")
    learned = tmp_path / "a17.json"
    tags = [[uid.upper() for uid in faces] for faces in default_tags()]
    DiceSet("A-17", "", "2026-05-01T08:00:00Z", 2, tags).save(learned)
    tablectl("config", "new", path)
    done = tablectl("config", "dice", str(learned), "--file", path)
    assert (done.code, done.out, done.err) == (0, f"{path}: has the dice set A-17\n", "")
    dice = tablectl("config", "get", "dice", "--file", path, "--json").rows[0]
    assert dice == {
        "eye": 2,
        "serial": "A-17",
        "issued": "2026-05-01T08:00:00Z",
        **{f"die{number}": faces for number, faces in enumerate(tags, 1)},
    }
    assert Path(path).read_text().count("die1") == 1
    out = tmp_path / "out"
    tablectl("config", "export", "--file", path, "--dir", str(out))
    config = read_config(str(out / "config.json"), str(out / "board.json"))[0]
    assert (config["eye"], config["serial"], config["issued"]) == (1, "A-17", "2026-05-01T08:00:00Z")
    before = Path(path).read_bytes()
    learned.write_text(learned.read_text().replace(tags[2][0], tags[0][0]))
    assert tablectl("config", "dice", str(learned), "--file", path).code == 2
    assert Path(path).read_bytes() == before


def test_an_entry_that_is_taken_out_has_its_default_again(tablectl: Tablectl, tmp_path: Path) -> None:
    path = str(tmp_path / "table.toml")
    shutil.copy(BOARDS / "examples" / "nj.toml", path)
    before = Path(path).read_text()
    assert tablectl("config", "set", "settings.jolts", "5", "--file", path).code == 0
    done = tablectl("config", "unset", "settings.jolts", "--file", path)
    assert (done.code, done.out) == (0, "settings.jolts: taken out\n")
    assert "\njolts" not in Path(path).read_text()
    assert "# settle_ms" in Path(path).read_text()
    assert "there is no entry settings.jolts" in tablectl("config", "unset", "settings.jolts", "--file", path).refusal()
    assert "is one of a list" in tablectl("config", "unset", "dice.die1.0", "--file", path).refusal()
    refused = tablectl("config", "unset", "board", "--file", path).refusal()
    assert "board is missing" in refused
    assert tablectl("config", "unset", "settings.jolts", "--file", path, "--json").code == 2
    assert before.count("board = ") == Path(path).read_text().count("board = ")


@pytest.mark.parametrize("pixels", [7, 25])
def test_a_ring_of_too_many_or_too_few_pixels_is_refused(tablectl: Tablectl, tmp_path: Path, pixels: int) -> None:
    path = str(tmp_path / "table.toml")
    shutil.copy(BOARDS / "examples" / "nj.toml", path)
    refused = tablectl("config", "set", "ring.pixels", str(pixels), "--file", path).refusal()
    assert refused.endswith(f"ring.pixels is {pixels}; allowed: a whole number from 8 to 24")
    assert tablectl("config", "set", "ring.pixels", "16", "--file", path).code == 0
    tablectl("config", "export", "--file", path, "--dir", str(tmp_path / "out"))
    board = json.loads((tmp_path / "out" / "board.json").read_text())
    assert board["ring"] == {"pixels": 16, "brightness_percent": 15}
    files = {name: (tmp_path / "out" / name).read_bytes() for name in ("board.json", "config.json")}
    assert configuration.document_of(files, "here")[0]["ring"] == {"pixels": 16}
