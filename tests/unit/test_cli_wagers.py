"""`tablectl wagers settle`, one wager or a batch, and `tablectl packs`: the contract that others build on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoneye.rules import packs
from tests.unit import restated_wagers as text
from tests.unit.conftest import Done, Tablectl

EXAMPLE = '{"dice":[3,3,4],"eye":2,"position":3,"wager":"match","stake":500,"role":"player","streak":0}'
PAID = {"won": True, "odds": 2, "profit": 1000, "returned": 1500}
LOST = {"won": False, "odds": 0, "profit": -500, "returned": 0}


@pytest.fixture
def settle(tablectl: Tablectl) -> Callable[..., Done]:
    """settle(line, line...) settles a batch from standard input."""

    def run(*lines: str, **more: str) -> Done:
        options = [part for key, value in more.items() for part in ("--" + key, value)]
        whole = "".join(line + "\n" for line in lines).encode()
        return tablectl("wagers", "settle", "--batch", "-", "--json", *options, stdin=whole)

    return run


def case(**changes: Any) -> str:
    return json.dumps({**json.loads(EXAMPLE), **changes}, ensure_ascii=False)


# A batch


def test_the_contracts_own_example(settle: Tablectl) -> None:
    done = settle(EXAMPLE)
    assert (done.code, done.rows, done.err) == (0, [PAID], "")


def test_a_bonus_tells_its_level(settle: Tablectl) -> None:
    lines = [case(dice=[2, 2, 2], wager="bonus", streak=streak, role="shaker", stake=1) for streak in range(5)]
    rows = settle(*lines, case(wager="bonus")).rows
    assert [(row["level"], row["odds"]) for row in rows] == [(1, 30), (2, 500), *[(3, 10_000)] * 3, (0, 0)]


def test_a_batch_of_every_roll_and_wager(settle: Tablectl) -> None:
    cases = [(roll, wager) for roll in text.ROLLS for wager in text.WAGERS]
    done = settle(*[case(dice=list(roll), eye=0, position=6, wager=wager) for roll, wager in cases])
    told = [{key: row[key] for key in PAID} for row in done.rows]
    options = text.Options()
    odds = [text.odds_to_one(wager, roll, 0, 6, "player", 0, options) for roll, wager in cases]
    assert told == [text.settled(500, paid) for paid in odds]


def test_bad_lines_and_empty_lines_have_their_answer_in_their_place(settle: Tablectl) -> None:
    done = settle(EXAMPLE, "", "{", "   \t", case(position=6), "[1, 2, 3]", EXAMPLE, case(eye=3))
    assert done.code == 2
    paid, second, third, fourth, lost, sixth, again, eighth = done.rows
    assert (paid, lost, again) == (PAID, LOST, PAID)
    wrong = (second, third, fourth, sixth, eighth)
    assert [row["line"] for row in wrong] == [2, 3, 4, 6, 8]
    words = ("line is empty", "not JSON: see column 2", "line is empty", "an object", "eye: 3")
    for row, said in zip(wrong, words, strict=True):
        assert said in row["error"]
        assert sorted(row) == ["error", "line"]


def test_a_batch_of_nothing_is_nothing(tablectl: Tablectl) -> None:
    assert tablectl("wagers", "settle", "--batch", "-", "--json", stdin=b"") == (0, "", "")


@pytest.mark.parametrize("whole", [EXAMPLE, EXAMPLE + "\r\n", "\ufeff" + EXAMPLE + "\n"])
def test_a_batch_is_taken_from_a_file_however_it_begins_and_its_lines_end(
    tablectl: Tablectl, tmp_path: Path, whole: str
) -> None:
    path = tmp_path / "cases"
    path.write_bytes(whole.encode())
    assert tablectl("wagers", "settle", "--batch", str(path), "--json").rows == [PAID]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "this line is not JSON: see column 2"),
        (EXAMPLE[:-1], f"this line is not JSON: see column {len(EXAMPLE)}"),
        (EXAMPLE + EXAMPLE, f"this line is not JSON: see column {len(EXAMPLE) + 1}"),
        ("dice", "this line is not JSON: see column 1"),
        (case(stake=5).replace("5", "9" * 5000), "this line is not JSON: a number is too long"),
        ("[" * 100_000, "this line is not JSON: nested too deep"),
        ("[]", "a case is an object with dice, eye, position, wager, stake, role and streak"),
        (f"[{EXAMPLE}]", "a case is an object"),
        ("null", "a case is an object"),
        ("7", "a case is an object"),
        ('"dice"', "a case is an object"),
        ("{}", "dice is missing; a case has "),
        (case(dice=[3, 3]), "dice: [3, 3]; allowed: three values from 1 to 6"),
        (case(dice=[3, 3, 7]), "dice: a die shows 7; allowed: a whole number from 1 to 6"),
        (case(dice=[3, 3, True]), "dice: a die shows true; allowed: a whole number from 1 to 6"),
        (case(eye=True), "eye: true; allowed: 0, 1 or 2"),
        (case(position=True), "position: true; allowed: a whole number from 1 to 7"),
        (case(position=9), "position: 9; allowed: a whole number from 1 to 7"),
        (case(position=7), "position: 7 cannot make a match wager; allowed: 1 to 6"),
        (case(stake=-1), "stake: -1 on match; allowed: whole cents from 1 to 100000000"),
        (case(stake=True), "stake: true on match; allowed: whole cents from 1 to "),
        (case(stake=10**30), f"stake: {10**30} on match; allowed: whole cents from 1 to "),
        (case(stake=5.0), "stake: 5.0 on match; allowed: whole cents"),
        (case(stake=float("nan")), "stake: NaN on match; allowed: whole cents"),
        (case(streak=-1), "streak: -1; allowed: a whole number from 0 to "),
        (case(streak=True), "streak: true; allowed: "),
        (case(role="dealer"), 'role: "dealer"; allowed: shaker or player'),
        (case(wager="mätch 骰"), 'wager: "mätch 骰"; allowed: match, even, odd, double, triple, bonus'),
        (case(colour="red"), '"colour" is not a field of a case; there are '),
        (case(pack="zz"), 'there is no rule pack "zz"; allowed: nj, pr, ca, or the path of a file ending in .json'),
        (case(pack="no/such.json"), "rule pack no/such.json: the file cannot be read"),
        (case(pack=None), "pack: null; allowed: the name of a rule pack"),
        (case(pack=["nj"]), 'pack: ["nj"]; allowed: the name of a rule pack'),
        (case(pack="ca"), "wager: the rule pack ca has no match wager; allowed: none (tiles only)"),
        (case(options=None), "options: null is not an object of rule pack values"),
        (case(options=["wins"]), 'options: ["wins"] is not an object of rule pack values'),
        (case(options={"colour": 1}), 'rule pack: no value is named "colour"; there are after_third, '),
        (case(options={"after_third": "stop"}), 'after_third is "stop"; allowed: one of cap, restart, hold'),
        (case(options={"stake_max": 499}), "stake: 500 on match; allowed: whole cents from 1 to 499"),
        (case(options={"player_positions": 2}), "position: 3; allowed: a whole number from 1 to 2"),
    ],
    ids=lambda value: value[:60] if value[:1] not in "{[" else "",
)
def test_a_bad_line_is_told_what_is_wrong_and_the_next_is_settled(settle: Tablectl, line: str, said: str) -> None:
    done = settle(line, EXAMPLE)
    assert (done.code, done.err) == (2, "")
    error, paid = done.rows
    assert said in error.pop("error")
    assert (error, paid) == ({"line": 1}, PAID)


def test_a_case_has_its_own_pack_and_options(settle: Tablectl, tmp_path: Path) -> None:
    house = tmp_path / "house.json"
    values = {"wagers": [["match"], "house choice"], "pays_match": [3, "house choice"]}
    house.write_text(json.dumps({"name": "house", "base": "ca", "values": values}))
    triple = {"dice": [3, 3, 3], "wager": "double"}
    assert [row["odds"] for row in settle(case(pack=str(house)), EXAMPLE, case(options={}), pack="nj").rows] == [
        6,
        2,
        2,
    ]
    assert [row["odds"] for row in settle(EXAMPLE, case(pack="nj"), pack=str(house)).rows] == [6, 2]
    rows = settle(case(**triple), case(**triple, options={"double_on_triple": "loses"}), case(**triple)).rows
    assert [row["odds"] for row in rows] == [4, 0, 4]
    four = {"dice": [3, 3, 3], "wager": "bonus", "streak": 3}
    rows = settle(*[case(**four, options={"after_third": word}) for word in ("cap", "restart", "hold")]).rows
    assert [(row["odds"], row["level"]) for row in rows] == [(1000, 3), (25, 1), (0, 0)]


def test_a_line_that_is_not_utf8_spoils_no_other(tablectl: Tablectl) -> None:
    line = EXAMPLE.encode() + b"\n"
    done = tablectl("wagers", "settle", "--batch", "-", "--json", stdin=line + b"\xff\n" + line)
    assert [row.get("line") or row for row in done.rows] == [PAID, 2, PAID]


def test_half_a_surrogate_pair_is_a_bad_line(settle: Tablectl) -> None:
    done = settle(EXAMPLE[:-1] + r',"pack":"\ud800.json"}', EXAMPLE)
    assert [row.get("line") or row for row in done.rows] == [1, PAID]


# How deep that is hangs on the Python: some have no such depth in this range.
def test_a_case_of_any_depth_is_a_bad_line(settle: Tablectl) -> None:
    lines = [EXAMPLE[:-1] + ',"options":' + "[" * depth + "]" * depth + "}" for depth in range(700, 1100)]
    rows = settle(*lines).rows
    assert [row["line"] for row in rows] == list(range(1, len(lines) + 1))


# One wager


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--dice 3 3 4 --eye 2 --position 3 --wager match --stake 500 --role player --streak 0", PAID),
        ("--dice 3 3 4 --position 5 --stake 500", LOST),
        ("--dice 3 3 4 --eye 2 --wager even --stake 500", {"odds": 1, "profit": 500}),
        ("--dice 3 3 4 --eye 2 --wager double --stake 500", {"odds": 4, "returned": 2500}),
        ("--dice 4 4 4 --wager bonus --role shaker --streak 1 --stake 1", {"odds": 500, "level": 2}),
        ("--dice 4 4 4 --wager bonus --streak 1 --stake 1", {"odds": 50, "level": 2}),
    ],
)
def test_one_wager(tablectl: Tablectl, arguments: str, expected: dict[str, Any]) -> None:
    done = tablectl("wagers", "settle", "--json", *arguments.split())
    assert (done.code, done.err) == (0, "")
    (row,) = done.rows
    assert {key: row[key] for key in expected} == expected


def test_one_wager_in_words(tablectl: Tablectl) -> None:
    won = tablectl("wagers", "settle", "--dice", "3", "3", "4", "--position", "3")
    assert won == (
        0,
        "dice 3 3 4, player position 3\nmatch wins at 2 to 1: profit $2.00, $3.00 returned\n",
        "",
    )
    lost = tablectl("wagers", "settle", "--dice", "3", "3", "4", "--wager", "triple", "--stake", "700")
    assert lost == (0, "dice 3 3 4\ntriple $7.00 loses\n", "")
    # 11.21(f): a bonus is paid, and its stake is not handed back.
    bonus = tablectl("wagers", "settle", "--dice", "3", "3", "3", "--wager", "bonus", "--stake", "700").out
    assert bonus.endswith("bonus wins at 25 to 1: profit $175.00; the stake of $7.00 stays up (bonus level 1)\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "--dice is missing"),
        ("--dice 3 3", "--dice"),
        ("--dice 3 3 x", "'x' is not a valid integer"),
        ("--dice 3 3 7", "dice: a die shows 7; allowed: a whole number from 1 to 6"),
        ("--dice 3 3 4 --eye 3", "eye: 3; allowed: 0, 1 or 2"),
        ("--dice 3 3 4 --position 9", "position: 9; allowed: a whole number from 1 to 7"),
        ("--dice 3 3 4 --stake -1", "stake: -1 on match; allowed: whole cents from 1 to "),
        ("--dice 3 3 4 --stake 1.5", "'1.5' is not a valid integer"),
        ("--dice 3 3 4 --streak -1", "streak: -1; allowed: "),
        ("--dice 3 3 4 --wager Match", 'wager: "Match"; allowed: match, '),
        ("--dice 3 3 4 --role dealer", 'role: "dealer"; allowed: shaker or player'),
        ("--dice 3 3 4 --pack zz", 'there is no rule pack "zz"; allowed: nj, pr, ca'),
        ("--dice 3 3 4 --pack pr", "the rule pack pr has no match wager"),
        ("--batch no/such/file", "no/such/file"),
        ("--batch .", "'.'"),
        ("--colour", "--colour"),
    ],
)
def test_a_bad_argument_ends_with_one_line_and_code_2(tablectl: Tablectl, arguments: str, said: str) -> None:
    plain = tablectl("wagers", "settle", *arguments.split())
    assert (plain.code, plain.out) == (2, "")
    assert plain.err.startswith("tablectl: error: ")
    assert said in plain.err
    assert plain.err.count("\n") == 1
    machine = tablectl("wagers", "settle", "--json", *arguments.split())
    assert (machine.code, machine.err) == (2, "")
    assert [sorted(row) for row in machine.rows] == [["error"]]
    assert said in machine.rows[0]["error"]


@pytest.mark.parametrize("arguments", ["settle", "wager", "wagers pay"])
def test_an_unknown_command_is_named(tablectl: Tablectl, arguments: str) -> None:
    done = tablectl(*arguments.split())
    assert (done.code, done.out) == (2, "")
    assert repr(arguments.split()[-1]) in done.err


# The packs


def test_the_packs_are_listed(tablectl: Tablectl) -> None:
    done = tablectl("packs", "list", "--json")
    assert [row["name"] for row in done.rows] == ["nj", "pr", "ca"]
    assert [line.split()[0] for line in tablectl("packs", "list").out.splitlines()] == ["nj", "pr", "ca"]


@pytest.mark.parametrize("name", packs.NAMES)
def test_a_pack_is_shown_with_the_source_of_each_value(tablectl: Tablectl, name: str) -> None:
    (shown,) = tablectl("packs", "show", name, "--json").rows
    pack = packs.load(name)
    assert shown["name"] == name
    assert {key: tuple(row) for key, row in shown["values"].items()} == {
        key: (pack[key], pack.source(key)) for key in packs.KEYS
    }
    plain = tablectl("packs", "show", name).out
    rows = {line.split()[0]: line for line in plain.splitlines() if line.split()}
    # Long sources go on in the next row.
    assert [key for key in packs.KEYS if pack.source(key)[:40] not in rows[key]] == []


def test_an_operators_pack_is_shown(tablectl: Tablectl, tmp_path: Path) -> None:
    path = tmp_path / "house.json"
    path.write_text(json.dumps({"name": "house", "base": "ca", "values": {"positions": [6, "house choice"]}}))
    (shown,) = tablectl("packs", "show", str(path), "--json").rows
    assert shown["values"]["positions"] == [6, "house choice"]
    # What is shown is a whole pack, which can be kept and used in its place.
    again = tmp_path / "again.json"
    again.write_text(json.dumps(shown))
    assert tablectl("packs", "show", str(again), "--json").rows == [shown]


@pytest.mark.parametrize(
    ("name", "said"),
    [("zz", 'there is no rule pack "zz"; allowed: nj, pr, ca'), ("zz.json", "zz.json: the file cannot")],
)
def test_a_pack_that_is_not_there_is_named(tablectl: Tablectl, name: str, said: str) -> None:
    plain = tablectl("packs", "show", name)
    assert (plain.code, plain.out) == (2, "")
    assert said in plain.err
    machine = tablectl("packs", "show", name, "--json")
    assert machine.code == 2
    assert said in machine.rows[0]["error"]


# Both ways to start it


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("wagers settle --dice 3 3 4 --position 3 --json", 0),
        ("wagers settle --batch - --json", 2),
        ("wagers settle --dice 3 3 9", 2),
        ("packs show nj", 0),
        ("nonsense", 2),
    ],
)
def test_the_module_and_the_console_script_are_the_same(arguments: str, code: int) -> None:
    script = Path(sys.executable).with_name("tablectl")
    if not script.exists():
        pytest.skip("tablectl is not installed beside this Python")
    batch = "\n".join((EXAMPLE, case(wager="mätch"), EXAMPLE)).encode()
    one, other = (
        subprocess.run([*command, *arguments.split()], input=batch, capture_output=True)
        for command in ([sys.executable, "-m", "host_tools"], [str(script)])
    )
    assert (one.returncode, one.stdout, one.stderr) == (other.returncode, other.stdout, other.stderr)
    assert one.returncode == code
    assert b"Traceback" not in one.stderr
    assert one.stdout or one.stderr
