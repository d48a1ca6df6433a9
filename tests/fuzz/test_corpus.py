"""What once broke something does not any more, and neither does made-up input; and what breaks something is found."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import __main__ as fuzz
from tests.fuzz import watch
from tests.fuzz.mutate import inputs_of
from tests.fuzz.targets import TARGETS, Target
from tests.fuzz.watch import CORPUS, Watch

ROOT = Path(__file__).parents[2]
KEPT = [(path.parent.name, path.name) for path in sorted(CORPUS.glob("*/*"))]
# Made-up inputs of a test run: `make fuzz` makes more.
INPUTS = 150
SEEDS = {name: target.seeds() for name, target in TARGETS.items()}


def watched(target: Target, keep: Path | None = None) -> Iterator[Watch]:
    one = Watch(target, keep)
    try:
        yield one
    finally:
        one.close()


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest) -> Iterator[tuple[str, Watch]]:
    for one in watched(TARGETS[request.param]):
        yield request.param, one


def test_what_once_broke_something(target: tuple[str, Watch]) -> None:
    name, one = target
    for kept in (CORPUS / name).glob("*"):
        assert one.one(kept.read_bytes()) is None, one.findings


def test_every_kept_input_has_its_target() -> None:
    assert {name for name, _file in KEPT} <= set(TARGETS)


def test_seeds_are_taken(target: tuple[str, Watch]) -> None:
    name, one = target
    before = one.taken
    for seed in SEEDS[name]:
        assert one.one(seed) is None, one.findings
    assert one.taken > before


@settings(max_examples=INPUTS, deadline=None, suppress_health_check=[*HealthCheck])
@given(made=st.data())
def test_made_up_input(target: tuple[str, Watch], made: st.DataObject) -> None:
    name, one = target
    one.findings.clear()
    data = made.draw(inputs_of(SEEDS[name]))
    assert one.one(data) is None, one.findings


# -- what breaks something is found --------------------------------------------------------------------------------


def planted(run: Callable[[Path, bytes], Any]) -> Target:
    return Target("planted", lambda folder: lambda data: bool(run(folder, data)), lambda: [b"seed"])


def crash(folder: Path, data: bytes) -> bool:
    if b"x" in data:
        raise KeyError(data)
    return True


def spawn(folder: Path, data: bytes) -> None:
    # Whoever catches it does not hide it.
    try:
        subprocess.run([sys.executable, "--version"])
    except Exception:
        return


def write_elsewhere(folder: Path, data: bytes) -> None:
    (folder.parent / "elsewhere").write_bytes(data)


def remove_elsewhere(folder: Path, data: bytes) -> None:
    os.remove(folder.parent / "elsewhere")


def connect(folder: Path, data: bytes) -> None:
    with socket.socket() as one:
        one.connect(("127.0.0.1", 9))


def hang(folder: Path, data: bytes) -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("run", "place"),
    [
        (crash, "KeyError tests/fuzz/test_corpus.py"),
        (spawn, "Effect"),
        (write_elsewhere, "Effect"),
        (remove_elsewhere, "Effect"),
        (connect, "Effect"),
        (hang, "Hang"),
    ],
)
def test_it_is_found_and_kept(
    run: Callable[[Path, bytes], Any], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "HANG_S", 0.2)
    for one in watched(planted(run), tmp_path / "kept"):
        found = one.one(b"abcx" * 20)
        assert found is not None
        assert found.place.startswith(place)
        # Once is enough.
        assert one.one(b"abcx" * 20) is None
        [kept] = (tmp_path / "kept").iterdir()
        assert kept.read_bytes() == found.data
        if run is crash:
            assert found.data == b"x"
    assert not (tmp_path / "elsewhere").exists()


def test_writing_in_its_own_folder_is_nothing() -> None:
    for one in watched(planted(lambda folder, data: (folder / "x").write_bytes(data))):
        assert one.one(b"abc") is None
        assert (one.inputs, one.taken) == (1, 1)


def test_what_is_kept_with_every_input_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "WARM", 20)
    monkeypatch.setattr(watch, "LOOK", 10)
    monkeypatch.setattr(watch, "GROWTH_MAX", 1000)
    kept: list[Any] = []
    for one in watched(planted(lambda folder, data: kept.append([bytes([n]) * 9 for n in range(100)]))):
        found = [one.one(b"") for _again in range(60)]
        assert [one.place for one in found if one] == ["Grown"]
    for one in watched(planted(lambda folder, data: [bytes([n]) * 9 for n in range(100)])):
        assert [one.one(b"") for _again in range(60)] == [None] * 60


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["hypothesis", "auto"])
def test_the_command_counts_and_tells(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    words = ["cookie", "--engine", engine, "--inputs", "60", "--seconds", "600", "--keep", str(tmp_path), "--json"]
    assert fuzz.main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["inputs"], told["findings"]) == (60, 0)
    [one] = told["targets"]
    assert one["target"] == "cookie"
    assert one["taken"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"), [(["nothing"], "no target nothing; there are frame"), (["--seconds", "0"], "more than 0")]
)
def test_a_mistake_is_told(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        fuzz.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
