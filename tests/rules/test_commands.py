"""The rules on the command line: contracts, one error a line in its place, exit codes."""

from __future__ import annotations

import json

import pytest

from tests.rules.conftest import Run, rows


def test_seats_keeps_its_contract(tablectl: Run) -> None:
    code, out, _err = tablectl("seats", "--total", "9", "--positions", "8", "--pack", "ca", "--json")
    result = json.loads(out)
    assert code == 0
    assert (result["start"], result["deal"], result["action"]) == (1, list(range(1, 9)), list(range(2, 9)))
    assert json.loads(tablectl("seats", "--dice", "3", "2", "4", "--pack", "ca", "--json")[1]) == result


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("seats", "--dice", "7", "1", "1"), "a die is 7; allowed: a whole number from 1 to 6"),
        (("seats", "--total", "9", "--positions", "9"), "positions is 9"),
        (("seats",), "give a case"),
        (("seats", "--total", "9", "--dice", "1", "2", "3"), "either a total or three dice"),
        (("tiles", "rank", "7-7", "6-6"), "there is no tile '7-7'"),
        (("tiles", "set", "66", "66", "66", "45"), "6-6 is there 3 times"),
        (("tiles", "set", "66", "66", "11", "45", "--house-way", "mine"), "there is no house way 'mine'; allowed: "),
        (("tiles", "settle", "--stake", "5"), "settle needs --player, --bank and --stake"),
        (("tiles", "settle", "--player", "66", "66", "11", "11", "--bank", "13", "13", "12", "24", "--stake", "-1"),
         "the low hand 1-2 2-4 is better than the high hand 1-3 1-3"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line_and_exit_code_2(tablectl: Run, args: tuple[str, ...], said: str) -> None:
    code, out, err = tablectl(*args)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
    code, out, err = tablectl(*args, "--json")
    assert (code, err) == (2, "")
    assert said in json.loads(out)["error"]


def test_rank_in_batch(tablectl: Run) -> None:
    code, out, _err = tablectl("tiles", "rank", "--batch", "-", "--json", stdin='["6-6","4-5"]\n["24","14"]\n')
    assert code == 0
    wong, eight = rows(out)
    assert set(wong) == {"strength", "kind", "pair_rank", "value", "name"}
    assert (wong["kind"], wong["pair_rank"], wong["value"]) == ("wong", 17, None)
    assert (eight["kind"], eight["pair_rank"], eight["value"]) == ("value", None, 8)
    assert wong["strength"] > eight["strength"]


def test_compare_set_and_settle_in_batch(tablectl: Run) -> None:
    case = '{"first":["2-4","1-4"],"second":["1-2","2-3"]}\n'
    assert rows(tablectl("tiles", "compare", "--batch", "-", stdin=case)[1])[0]["result"] == "copy"
    four = '["6-6","6-6","4-5","4-4"]\n'
    (low,) = rows(tablectl("tiles", "set", "--batch", "-", "--house-way", "max_low", stdin=four)[1])
    assert (low["high"], low["low"], low["rule"]) == (["6-6", "4-5"], ["6-6", "4-4"], "best-low")
    (high,) = rows(tablectl("tiles", "set", "--batch", "-", "--house-way", "max_high", stdin=four)[1])
    assert (high["high"], high["low"]) == (["6-6", "6-6"], ["4-4", "4-5"])
    player, bank = {"high": ["66", "66"], "low": ["56", "13"]}, {"high": ["11", "36"], "low": ["46", "22"]}
    line = json.dumps({"player": player, "bank": bank, "stake": 10_000})
    (done,) = rows(tablectl("tiles", "settle", "--batch", "-", "--json", stdin=line)[1])
    assert (done["result"], done["net"], done["commission"]) == ("win", 9_500, 500)


BAD = [
    ("rank", '["6-6",66]'), ("rank", '["6-6"]'), ("rank", '["6-6","6-6","6-6"]'), ("rank", '[["6-6"],"6-6"]'),
    ("rank", "{}"), ("rank", "true"), ("rank", "1e999"), ("rank", "NaN"), ("rank", '["\\ud800","6-6"]'),
    ("rank", "["), ("rank", "9" * 5000), ("rank", "[" * 5000), ("rank", '["4-5","4-5"]'),
    ("compare", '["6-6","6-6"]'), ("compare", '{"first":["6-6","6-6"]}'),
    ("compare", '{"first":["6-6","6-6"],"second":["6-6","1-1"]}'),
    ("compare", '{"first":["6-6","6-6"],"second":["1-1","1-1"],"third":1}'),
    ("set", '["6-6","6-6","1-1"]'), ("set", '["6-6","6-6","6-6","1-1"]'), ("set", json.dumps(["6-6"] * 33)),
    ("settle", "[]"), ("settle", '{"player":1,"bank":2,"stake":3}'),
    ("settle", '{"player":{"high":["66","66"],"low":["56","13"]},"bank":{"high":["11","36"],"low":["46","22"]},'
               '"stake":true}'),
    ("settle", '{"player":{"high":["66","66"],"low":["56","13"]},"bank":{"high":["11","36"],"low":["46","66"]},'
               '"stake":1}'),
]  # fmt: skip


@pytest.mark.parametrize(("command", "line"), BAD)
def test_a_bad_line_has_its_error_in_its_place(tablectl: Run, command: str, line: str) -> None:
    good = {
        "rank": '["6-6","4-5"]',
        "compare": '{"first":["6-6","4-5"],"second":["1-1","1-1"]}',
        "set": '["6-6","6-6","4-5","4-4"]',
        "settle": '{"player":{"high":["66","66"],"low":["56","13"]},"bank":{"high":["11","36"],"low":["46","22"]},'
        '"stake":1}',
    }[command]
    code, out, err = tablectl("tiles", command, "--batch", "-", "--json", stdin=f"{good}\n\n{line}\n{good}\n")
    assert (code, err) == (2, "")
    first, wrong, last = rows(out)
    assert "error" not in first
    assert first == last
    assert wrong["line"] == 3
    assert len(wrong["error"]) < 200


def test_explain_says_why_two_tiles_rank_as_they_do(tablectl: Run) -> None:
    result = json.loads(tablectl("tiles", "explain", "24", "14", "--json")[1])
    assert result["strength"] == json.loads(tablectl("tiles", "rank", "24", "14", "--json")[1])["strength"]
    assert result["because"] == [
        "(e): six (2-4) counts as 3",
        "(d): 3 + 5 = 8, value 8",
        "(g): best tile five (1-4, 2-3), ranking 16 of 17",
    ]
    assert "(b): rank 1 of the 20 permissible pairs" in tablectl("tiles", "explain", "24", "12")[1]
    assert tablectl("tiles", "explain", "24", "12", "11")[0] == 2
