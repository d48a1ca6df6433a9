"""docs/security.md names a test for each thing that it claims; what nothing stops is tried here."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from dragoneye import installed, keys
from dragoneye.protocol import SUPERVISOR
from host_tools import flash_verify
from host_tools.flash_verify import Survey
from host_tools.keys import Ring, file_of
from host_tools.link import Link
from tests.unit.test_flash import CONFIG, NEW, lay, surveyed
from tests.unit.test_keys import RAW, Keyed
from tests.unit.test_link import Keyed as Wired

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", TEXT)


@cache
def functions_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def rows() -> list[list[str]]:
    """The cells of every row about an attack."""
    about = TEXT.partition("## Who may try what")[2].partition("## What a test lab")[0]
    found = [line for line in about.splitlines() if line.startswith("|") and not line.startswith(("| who and", "|---"))]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found]


def test_every_test_that_is_named_exists() -> None:
    assert len(NAMED) > 50
    missing = [
        f"{path}::{name}" for path, name in NAMED if not (ROOT / path).is_file() or name not in functions_in(path)
    ]
    assert missing == []
    assert all(name.startswith("test_") for _path, name in NAMED)


def test_every_row_names_a_test() -> None:
    assert len(rows()) > 30
    for cells in rows():
        assert len(cells) in (3, 4), cells
        assert "`tests/" in cells[2], cells


# -- where it ends: what nothing stops, so that nobody believes otherwise --------------------------------------------


def test_an_answer_to_another_seed_is_no_answer(tmp_path: Path) -> None:
    files = flash_verify.expected(NEW, "/a/", CONFIG)
    lay(tmp_path, files)
    old, new = surveyed(tmp_path, "an old seed 0123"), surveyed(tmp_path, "a new seed 45678")
    assert flash_verify.is_expected(new, files)
    stale = Survey(new.seed, old.root, old.mpy, old.files, old.total, old.rows)
    assert not flash_verify.is_expected(stale, files)
    assert {verdict for _path, verdict in flash_verify.compare(stale, NEW, CONFIG)} == {flash_verify.CHANGED}


def test_at_a_table_with_keys_only_who_has_the_technicians_can_tell_a_right_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("host_tools.flash_verify.secrets.token_hex", lambda count: "on the cable")
    files = flash_verify.expected(NEW, "/a/", CONFIG)
    lay(tmp_path / "flash", files)
    rig = Wired(tmp_path)
    link = Link(rig.plain(), lambda record, hash_, tag: True, signer=Ring(rig.keys))
    link.hello(0, 0)
    seeds = []

    def begin(seed: str) -> installed.Survey:
        seeds.append(seed)
        survey = installed.Survey(seed, f"{tmp_path}/flash/")
        while survey.running:
            survey.step()
        return survey

    rig.board.controller.start_survey = begin
    answered = flash_verify.ask(link)
    assert flash_verify.is_expected(answered, files)
    flash_verify.fetch_rows(link, answered)
    assert seeds == [answered.seed]
    # Who knows the seed that went over the cable, and the right files, does not know the answer.
    known = Survey("on the cable", "/a/", answered.mpy, answered.files, answered.total)
    assert not flash_verify.is_expected(known, files)
    (tmp_path / "flash" / "main.py").write_bytes(b"another program")
    assert not flash_verify.is_expected(flash_verify.ask(link), files)
    rig.close()


def test_a_program_that_keeps_the_right_files_answers_as_they_would(tmp_path: Path) -> None:
    files = flash_verify.expected(NEW, "/a/", CONFIG)
    lay(tmp_path / "kept", files)
    lay(tmp_path / "flash", {**files, "main.py": b"another program"})
    seed = "nobody knew it"
    assert not flash_verify.is_expected(surveyed(tmp_path / "flash", seed), files)
    # It looks at what it keeps instead of what runs.
    assert flash_verify.is_expected(surveyed(tmp_path / "kept", seed), files)


def test_who_has_read_the_flash_can_sign(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_bytes(file_of(RAW))
    desk = Keyed(tmp_path / "journal")
    desk.hello()
    stolen = keys.read_keys(str(tmp_path / "keys.json"))
    assert stolen is not None
    found = stolen[1][SUPERVISOR]
    desk.role = SUPERVISOR
    desk.reply(desk.send({"q": "open", "shaker": 1}, key=found))
    assert desk.state == "BETTING"
