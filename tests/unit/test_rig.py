"""The rig file of a bench: what is wrong is named; what it can and cannot do; commands and people."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import pytest

from dragoneye.errors import BadInput
from host_tools.hil.capabilities import CAPABILITIES, NEEDS, asked, steps_of
from host_tools.hil.rig import Rig, load
from host_tools.hil.rigged import RigError, Rigged

EXAMPLE = Path(__file__).parents[1] / "table" / "rig.example.toml"
TRUE = f"{sys.executable} -c pass"


class Skipped(Exception):
    """What pytest.skip raises, here."""


def unable(why: str) -> NoReturn:
    raise Skipped(why)


def bench(*answers: str, **sections: dict[str, str]) -> tuple[Rigged, list[str]]:
    """A bench with these sections, and the questions that its person was asked; no person without answers."""
    questions: list[str] = []
    left = list(answers)

    def person(text: str) -> str:
        questions.append(text)
        return left.pop(0) + "\n"

    return Rigged("PORT", Rig({"format": 1, **sections}), person if answers else None, unable), questions


def test_the_example_is_right() -> None:
    rig = load(EXAMPLE)
    assert (rig.name, rig.configure, rig.record) == ("bench 1", True, None)
    for name, capability in CAPABILITIES.items():
        assert all(rig.command(name, action) for action in capability.actions)
    assert rig.lacks("lid", False) is None
    assert rig.lacks("dice", False) == "dice: asks the person at the bench; run with --interactive"
    assert rig.lacks("dice", True) is None
    assert rig.lacks("inside", True) == "inside: only a virtual table has it"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "format is missing; allowed: a whole number from 1 to 1"),
        ("format = 2", "format is 2; allowed: a whole number from 1 to 1"),
        ("format = 1\nlidd = 1", "there is no entry lidd; did you mean lid?"),
        ("format = 1\n[lid]\nopen = 'x'", "lid.shut is missing; allowed: text of 1 to 1000 printable characters"),
        ("format = 1\n[lid]\nopen = 'x'\nshut = 'y'\nopne = 'z'", "there is no entry lid.opne; did you mean open?"),
        ("format = 1\n[lid]\nopen = 7\nshut = 'y'", "lid.open is 7; allowed: text of"),
        ("format = 1\n[dice]\nplace = 'p {die}'", 'dice.place is "p {die}": there is nothing for {die}; allowed'),
        ("format = 1\n[reset]\npress = 'p {x}'", "there is nothing for {x}; allowed between braces: nothing"),
        ("format = 1\n[reset]\npress = 'p {'", "reset.press is"),
        ('format = 1\n[reset]\npress = "p \'q"', "No closing quotation"),
        ("format = 1\nconfigure = 'yes'", 'configure is "yes"; allowed: true or false'),
        ("format = 1\ntimeout_s = 0", "timeout_s is 0; allowed: a whole number from 1 to 600"),
        ("format = ", "line 1, column"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "rig.toml"
    path.write_text(text)
    with pytest.raises(BadInput) as raised:
        load(path)
    assert said in str(raised.value)
    assert str(raised.value).startswith(str(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"absent\.toml: there is no such rig file"):
        load(tmp_path / "absent.toml")


def test_the_record_lies_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rig.toml"
    path.write_text("format = 1\nrecord = 'bench.db'")
    assert load(path).record == tmp_path / "bench.db"
    path.write_text("format = 1\nrecord = 'postgresql://me@host/bench'")
    assert load(path).record == "postgresql://me@host/bench"


def test_a_command_is_run_with_its_values(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write = f"{sys.executable} -c \"import sys; open('{out}', 'a').write(' '.join(sys.argv[1:]) + ';')\" "
    rigged, _ = bench(
        dice={"place": write + "place={dice}"},
        lid={"open": write + "open", "shut": write + "shut"},
        fault={"set": write + "{name} {die}", "clear": write + "no {name}"},
    )
    rigged.do("next", dice=[1, 2, 6])
    rigged.do("lid", to="open", force=True, bounce=200)
    rigged.do("fault", name="missing", die=2, rolls=None)
    assert out.read_text() == "place=1,2,6;open;missing 2;"
    rigged.undo()
    assert out.read_text() == "place=1,2,6;open;missing 2;no missing;shut;"
    rigged.undo()
    rigged.do("lid", to="open")
    rigged.do("lid", to="shut")
    rigged.undo()
    assert out.read_text().endswith("no missing;shut;open;shut;")


def test_a_command_that_fails_is_named() -> None:
    fails = f"{sys.executable} -c \"import sys; sys.exit('no relay')\""
    rigged, _ = bench(reset={"press": fails})
    with pytest.raises(RigError, match="ended with 1: no relay"):
        rigged.do("reset")
    rigged, _ = bench(reset={"press": "/no/such/program"})
    with pytest.raises(RigError, match="/no/such/program"):
        rigged.do("reset")
    rigged, _ = bench(motor={"look": f"{sys.executable} -c 'print(7)'"})
    with pytest.raises(RigError, match=r'motor\.look said "7"; allowed: on, off'):
        rigged.look("motor")


def test_what_the_bench_lacks_skips() -> None:
    rigged, _ = bench(lid={"open": TRUE, "shut": "ask"})
    for name, args, why in (
        ("lid", {"to": "open"}, "lid: asks the person at the bench; run with --interactive"),
        ("power", {"to": "off"}, "power: nothing of this bench does it (no rig file)"),
        ("ticks", {"ms": 1}, "inside: only a virtual table has it"),
        ("cable", {"to": "sideways"}, "inside: only a virtual table has it"),
    ):
        with pytest.raises(Skipped) as raised:
            rigged.do(name, **args)
        assert str(raised.value) == why
    with pytest.raises(Skipped, match="inside"):
        rigged.state()
    with pytest.raises(Skipped, match=r"config: no configuration may be written"):
        rigged.configure({"pack": "nj"}, "pr", None)
    rigged.configure({"pack": "nj"}, "nj", None)


def test_a_person_is_asked_until_the_answer_fits() -> None:
    rigged, questions = bench("what?", "", "yes", "ON", "s", lid={"open": TRUE, "shut": TRUE})
    rigged.do("button", to="hold")
    assert rigged.look("motor") == "on"
    assert len(questions) == 4
    assert questions[0] == "press the dealer's button and hold it [Enter when it is done; s: skip this test] "
    assert questions[2] == "does the motor run? [on/off; s: skip this test] "
    rigged.do("lid", to="open")
    assert len(questions) == 4
    with pytest.raises(Skipped, match="power: the person at the bench skipped it"):
        rigged.do("power", to="off")


def test_every_action_can_be_asked_for() -> None:
    for name, capability in CAPABILITIES.items():
        for action in capability.actions:
            assert asked(name, action, {"name": "missing", "die": 1, "dice": [1, 2, 3]})
    assert asked("fault", "set", {"name": "missing", "die": 1}) == "take die 2 away"
    assert asked("fault", "set", {"name": "unsettled", "die": ""}) == "bring about the fault unsettled"
    assert steps_of("button", {}) == [("button", "hold", {}), ("button", "release", {})]
    assert steps_of("supply", {"mv": 12000}) == [("supply", "ok", {})]
    assert steps_of("tamper", {"to": "ok"}) == [("tamper", "shut", {})]
    assert {"config", "inside"} < set(NEEDS)
