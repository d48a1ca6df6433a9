"""The rules on the command line: contracts, one error a line in its place, exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click
import pytest

from host_tools.__main__ import cli
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
        (("seats", "--dice", "1", "2", "--pack", "ca"), "--dice has 2 values; needed: 3"),
        (("tiles", "settle", "--player", "66", "66", "45", "--bank", "11", "24", "13", "22", "--stake", "1"),
         "--player has 3 values; needed: 4"),
        (("tiles", "settle", "--bank", "11", "24", "13", "22", "33"), "--bank has 5 values; needed: 4"),
        (("tiles", "explain", "66"), "the case has 1 tiles; needed: 2 or 4"),
        (("tiles", "compare", *["66", "45"] * 3), "there are 6 tiles; needed: 4, two of the first hand"),
        (("tiles", "rank", "ten", "ten"), "'ten' can be 5-5 or 4-6; write the one that is meant"),
        (("tiles", "set", "66", "nine", "11", "33"), "'nine' can be 3-6 or 4-5; write the one that is meant"),
        (("tiles", "rank", "d\u00fa\x1b", "66"), "there is no tile 'd\u00fa\\x1b'"),
        (("odds", "wagers", "--option", "wagers", "[]"), "nj has no dice wagers; needed: some in its wagers"),
        (("odds", "wagers", "--plot", "x.txt"), "x.txt: allowed: a file ending in .svg, .png"),
        (("odds", "wagers", "--plot", "x.svg", "--batch", "-"), "give either --plot or --batch, not both"),
        (("bank", "decides", "--front", "1", "--action", "2", "--option", "bank_share_percent", "null"),
         "bank_share_percent of the rule pack ca is null"),
        (("bank", "next", "--accepts", "3"), "bank next needs --last, or --batch"),
        (("wagers", "settle", "--dice", "3", "3", "4", "--wager", "odd"), "--eye is missing; odd hangs on which die"),
        (("wagers", "settle", "--dice", "3", "3", "--eye", "1"), "--dice has 2 values; needed: 3"),
        (("seats", "--total", "9", "--dice", "1", "2", "3"), "either a total or three dice"),
        (("seats", "--total", "9", "--bet", "3", "--bet", "2", "--bet", "3"), "deal position 3 is there twice"),
        (("bank", "next", "--last", "3", "--accepts", "2", "--accepts", "2"), "seat 2 is there twice"),
        (("bank", "next", "--last", "3", "--played", "9"), "a seat that played is 9"),
        (("bank", "covers", "--bank", "1", "--bet", "2:1", "--bet", "2:1"), "deal position 2 is there twice"),
        (("tiles", "rank", "66"), "hand has 1; needed: a list of 2 tiles"),
        (("tiles", "rank", "66", "45", "--option", "zero_rule", "x"), 'zero_rule is "x"; allowed: one of '),
        (("tiles", "table", "[]"), "the case is a list; needed: an object with bank, players"),
        (("tiles", "table", "{}"), "the case has no bank; needed: bank, players"),
        (("tiles", "table", ""), "CASE is not JSON: see column 1"),
        (("tiles", "table"), "give a case"),
        (("tiles", "table", "{]"), "CASE is not JSON: see column 2"),
        (("odds", "seats", "--option", "positions", "[" * 5000), "rule pack: positions is "),
        (("cards", "rank", *["AS"] * 5, "--decks", "1"), "allowed: once for each deck, and decks is 1"),
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


BATCHES = {
    ("tiles", "rank"): '["6-6","4-5"]',
    ("tiles", "compare"): '{"first":["6-6","4-5"],"second":["1-1","1-1"]}',
    ("tiles", "set"): '["6-6","6-6","4-5","4-4"]',
    ("tiles", "explain"): '["6-6","4-5"]',
    ("tiles", "advise"): '["6-6","6-6","4-5","4-4"]',
    ("tiles", "advisor"): '["6-6","6-6","4-5","4-4"]',
    (
        "tiles",
        "settle",
    ): '{"player":{"high":["66","66"],"low":["56","13"]},"bank":{"high":["11","36"],"low":["46","22"]},"stake":1}',
    (
        "tiles",
        "table",
    ): '{"bank":["11","36","46","22"],"players":[{"position":2,"hands":["66","66","56","13"],"stake":1}]}',
    ("seats",): '{"total":9}',
    ("bank", "decides"): '{"front":1,"action":2}',
    ("bank", "covers"): '{"banks":[60],"bets":[[2,50]]}',
    ("bank", "next"): '{"last":3,"accepts":[5]}',
    ("odds", "tiles"): "{}",
    ("odds", "wagers"): '{"options":{"after_third":"hold"}}',
    ("odds", "seats"): '{"pack":"ca"}',
    ("cards", "rank"): '["AS","AS","AS","AS","AS"]',
    ("cards", "compare"): '{"first":["AS","AS","AS","AS","AS"],"second":["KS","KS","KS","KS","KS"]}',
    ("cards", "order"): '[["AS","AS","AS","AS","AS"]]',
    ("wagers", "settle"): '{"dice":[3,3,4],"eye":0,"position":3,"wager":"match","stake":1,"role":"player","streak":0}',
}


def batch_commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every command that takes --batch."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from batch_commands(command, (*path, name))
        elif command is not None and any("--batch" in parameter.opts for parameter in command.params):
            yield (*path, name)


def test_every_batch_command_is_tried_below() -> None:
    assert set(batch_commands(cli)) == set(BATCHES)


@pytest.mark.parametrize("command", BATCHES, ids=" ".join)
@pytest.mark.parametrize("language", ["en", "es"])
def test_each_line_of_a_batch_has_its_answer_even_an_empty_one(
    tablectl: Run, command: tuple[str, ...], language: str
) -> None:
    good = BATCHES[command]
    lines = [good, "", "{", " \t", '"' + good, "9" * 5000, "[" * 100_000, good]
    code, out, err = tablectl("--lang", language, *command, "--batch", "-", stdin="\n".join(lines) + "\n")
    answers = rows(out)
    assert (code, err, len(answers)) == (2, "", len(lines))
    assert "error" not in answers[0]
    assert answers[0] == answers[-1]
    assert [answer["line"] for answer in answers[1:-1]] == list(range(2, len(lines)))
    said = [answer["error"] for answer in answers[1:-1]]
    empty = {
        "en": "this line is empty; needed: one JSON case",
        "es": "esta línea está vacía; se necesita: un caso JSON",
    }
    wrong = {"en": "this line is not JSON: ", "es": "esta línea no es JSON: "}
    column, deep, long = {
        "en": ("see column ", "nested too deep", "a number is too long"),
        "es": ("vea la columna ", "anidamiento demasiado hondo", "un número es demasiado largo"),
    }[language]
    assert (said[0], said[2]) == (empty[language], empty[language])
    assert said[1] == f"{wrong[language]}{column}2"
    assert said[3].startswith(wrong[language] + column)
    assert said[4:] == [wrong[language] + long, wrong[language] + deep]


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
    code, out, err = tablectl("tiles", command, "--batch", "-", "--json", stdin=f"{good}\n{line}\n{good}\n")
    assert (code, err) == (2, "")
    first, wrong, last = rows(out)
    assert "error" not in first
    assert first == last
    assert wrong["line"] == 2
    assert len(wrong["error"]) < 200


def test_a_line_that_is_no_object_is_told_which_fields_there_are(tablectl: Run) -> None:
    (answer,) = rows(tablectl("seats", "--batch", "-", stdin="9")[1])
    assert answer["error"].startswith("the case is 9; needed: an object with some of total, dice, bets")
    (answer,) = rows(tablectl("bank", "decides", "--batch", "-", stdin="9")[1])
    assert answer["error"] == "the case is 9; needed: an object with front, action"


@pytest.mark.parametrize(
    ("args", "changed"),
    [
        (("tiles", "rank", "55", "46"), {"strength": 1}),
        (("tiles", "compare", "55", "46", "22", "15"), {"result": "copy", "clause": "zero_rule"}),
        (("tiles", "set", "55", "46", "44", "56"), {}),
        (("tiles", "explain", "55", "46"), {"strength": 1}),
    ],
)
def test_option_changes_a_value_of_the_pack(tablectl: Run, args: tuple[str, ...], changed: dict[str, object]) -> None:
    plain = json.loads(tablectl(*args, "--json")[1])
    found = json.loads(tablectl(*args, "--option", "zero_rule", "bank_wins", "--json")[1])
    assert {key: found[key] for key in changed} == changed
    assert (found == plain) is not bool(changed)


def test_option_is_taken_by_every_command_that_depends_on_the_pack(tablectl: Run) -> None:
    def with_option(*args: str) -> dict[str, Any]:
        code, out, err = tablectl(*args, "--json")
        assert (code, err) == (0, "")
        found: dict[str, Any] = json.loads(out)
        return found

    hands = ("--player", "66", "66", "56", "13", "--bank", "11", "36", "46", "22", "--stake", "1000")
    assert with_option("tiles", "settle", *hands, "--option", "commission_bp", "1000")["commission"] == 100
    case = '{"bank":["11","36","46","22"],"players":[{"position":2,"hands":["66","66","56","13"],"stake":1000}]}'
    assert with_option("tiles", "table", case, "--option", "commission_bp", "0")["commission"] == 0
    assert with_option("tiles", "advise", "66", "66", "56", "13", "--option", "commission_bp", "0")["splits"]
    roll = ("wagers", "settle", "--dice", "3", "3", "3", "--eye", "0", "--wager", "double")
    assert with_option(*roll)["won"] is True
    assert with_option(*roll, "--option", "double_on_triple", "loses")["won"] is False
    assert with_option("seats", "--total", "9", "--option", "positions", "8")["start"] == 1
    share = ("bank", "decides", "--front", "40", "--action", "100", "--option", "bank_share_percent")
    assert (with_option(*share, "40")["decides"], with_option(*share, "41")["decides"]) == ("front", "second")
    assert with_option("bank", "covers", "--bank", "5", "--bet", "8:5", "--option", "positions", "8")["covers"]
    assert with_option("bank", "next", "--last", "6", "--accepts", "2", "--option", "positions", "6")["offered"] == [2]
    assert with_option("odds", "seats", "--option", "positions", "6")["positions"] == 6
    assert with_option("odds", "wagers", "--option", "pays_triple", "35")["wagers"]


def test_explain_under_the_card_rooms_rule_says_what_becomes_of_a_zero(tablectl: Run) -> None:
    def explained(pack: str) -> list[str]:
        return tablectl("tiles", "explain", "55", "46", "--pack", pack)[1].splitlines()

    ranked, joined = explained("nj"), explained("ca")
    assert ranked[0] == "Value 0, best tile ten (5-5): strength 4 of 106"
    assert ranked[3] == "zero_rule high_tile: hands of value 0 are ranked by their best tile like any others"
    assert joined[0] == "Value 0: strength 1 of 102"
    assert joined[2] == "zero_rule bank_wins: every hand of value 0 is a copy of every other"
    assert tablectl("tiles", "rank", "24", "12", "--pack", "ca")[1] == "Supreme pair (2-4, 1-2): strength 102 of 102\n"


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


ZERO = ("3-3", "2-2", "4-6", "5-5")


def test_two_hands_of_value_0_are_set_either_way_round_where_all_zeros_are_equal(tablectl: Run) -> None:
    bank = ("6-6", "4-5", "1-1", "2-4")
    line = ("tiles", "settle", "--player", *ZERO, "--bank", *bank, "--stake", "100", "--json")
    done = json.loads(tablectl(*line, "--pack", "ca")[1])
    assert (done["result"], done["net"], done["names"]["player"]) == (
        "lose",
        -100,
        {"high": "Value 0", "low": "Value 0"},
    )
    # Where the best tile ranks them, this is the wrong way round.
    code, out, _err = tablectl("tiles", "settle", "--player", "5-5", "4-6", "3-3", "2-2", *line[7:], "--pack", "nj")
    assert (code, json.loads(out)["result"]) == (0, "lose")
    hands = {"high": list(ZERO[:2]), "low": list(ZERO[2:])}
    turned = {"high": list(ZERO[2:]), "low": list(ZERO[:2])}
    for mine in (hands, turned):
        case = {"player": mine, "bank": {"high": bank[:2], "low": bank[2:]}, "stake": 100}
        (found,) = rows(tablectl("tiles", "settle", "--pack", "ca", "--batch", "-", stdin=json.dumps(case))[1])
        assert (found["result"], found["high"], found["low"]) == ("lose", "lower", "lower")
        # And as the bank's hands, on a whole table: zeros against zeros are copies, which the bank wins.
        players = [{"position": 2, "hands": {"high": bank[:2], "low": bank[2:]}, "stake": 100}]
        code, out, _err = tablectl(
            "tiles", "table", json.dumps({"bank": mine, "players": players}), "--pack", "ca", "--json"
        )
        assert (code, json.loads(out)["players"][0]["result"]) == (0, "win")
    refused = [
        tablectl("tiles", "settle", "--pack", pack, "--batch", "-", stdin=json.dumps({
            "player": one, "bank": {"high": bank[:2], "low": bank[2:]}, "stake": 100}))[0]
        for pack in ("nj", "pr")
        for one in (hands, turned)
    ]  # fmt: skip
    assert sorted(refused) == [0, 0, 2, 2]


@pytest.mark.parametrize(
    ("typed", "same", "read_as"),
    [
        (("twelve", "nine"), ("66", "45"), [["6-6", "3-6"]]),
        (("nine", "nine"), ("36", "45"), [["3-6", "4-5"]]),
        (("twelve", "four"), ("66", "13"), [["6-6", "1-3"]]),
    ],
)
def test_a_name_that_faces_share_is_taken_where_every_reading_has_the_same_rank(
    tablectl: Run, typed: tuple[str, str], same: tuple[str, str], read_as: list[list[str]]
) -> None:
    found = json.loads(tablectl("tiles", "rank", *typed, "--json")[1])
    assert found.pop("read_as") == read_as
    assert found == json.loads(tablectl("tiles", "rank", *same, "--json")[1])
    assert "every reading of the names has the same rank" in tablectl("tiles", "rank", *typed)[1]
    assert "every reading" not in tablectl("tiles", "rank", *same)[1]


def test_the_same_name_in_two_hands_is_read_as_two_tiles(tablectl: Run) -> None:
    found = json.loads(tablectl("tiles", "compare", "twelve", "nine", "two", "nine", "--json")[1])
    assert (found["result"], found["read_as"]) == ("first", [["6-6", "3-6"], ["1-1", "4-5"]])
    code, _out, err = tablectl("tiles", "compare", "nine", "nine", "two", "nine")
    assert (code, "is there 2 times; a set has 1" in err) == (2, True)


def test_the_answer_of_a_wager_says_what_decided_it(tablectl: Run) -> None:
    def told(*args: str) -> list[str]:
        code, out, err = tablectl("wagers", "settle", "--dice", *args)
        assert (code, err) == (0, "")
        return out.splitlines()

    assert told("3", "3", "4", "--wager", "even", "--eye", "2")[0] == "dice 3 3 «4», « » is the dragon's eye die"
    assert told("3", "3", "4")[0] == "dice 3 3 4, player position 1"
    bonus = told("3", "3", "3", "--wager", "bonus", "--role", "shaker", "--streak", "1")
    assert bonus[0] == "dice 3 3 3, the shaker, triples in a row before this roll: 1"
    assert bonus[1].endswith("500 to 1: profit $500.00; the stake of $1.00 stays up (bonus level 2)")
    held = told("3", "3", "3", "--wager", "bonus", "--streak", "3", "--option", "after_third", "hold")
    assert held[1] == "bonus $1.00 stays up: no bonus until the streak ends"
    assert told("3", "3", "4", "--wager", "bonus")[1] == "bonus $1.00 loses"


def test_the_answer_of_the_banks_names_the_pack(tablectl: Run) -> None:
    assert "(rule pack ca)" in tablectl("bank", "decides", "--front", "1", "--action", "2")[1]
    assert "rule pack ca, 8 deal positions" in tablectl("bank", "covers", "--bank", "5", "--bet", "8:5")[1]


def test_the_last_bank_is_asked_last_or_first_if_it_may_go_on(tablectl: Run) -> None:
    def offered(*args: str) -> Any:
        return json.loads(tablectl("bank", "next", "--last", "3", "--accepts", "3", *args, "--json")[1])["offered"]

    assert (offered(), offered("--again"), offered("--positions", "6")) == ([4, 5, 6, 7, 8, 2, 3], [3], [4, 5, 6, 2, 3])
    lines = ['{"last":3,"accepts":[3],"again":true}', '{"last":3,"accepts":3}', '{"last":3,"again":1}', "{}"]
    first, *wrong = rows(tablectl("bank", "next", "--batch", "-", stdin="\n".join(lines))[1])
    assert first["offered"] == [3]
    assert [one["error"] for one in wrong] == [
        "accepts is 3; needed: a list of seats",
        "again is 1; allowed: true or false",
        "the case has no last; needed: last",
    ]


def test_odds_in_batch_take_a_pack_and_options_of_their_own(tablectl: Run) -> None:
    lines = '{"options":{"double_on_triple":"loses"}}\n{}\n{"pack":"ca"}\n{"pack":1}\n'
    lost, plain, none, wrong = rows(tablectl("odds", "wagers", "--batch", "-", stdin=lines)[1])
    edges = [next(one for one in found["wagers"] if one["wager"] == "double") for found in (lost, plain)]
    assert [one["house_edge"] for one in edges] == ["11/36", "1/6"]
    assert "ca has no dice wagers" in none["error"]
    assert wrong["error"] == "pack: 1; allowed: the name of a rule pack"
    lines = '{"bank_way":"max_high"}\n{"bank_way":1}\n'
    found, wrong = rows(tablectl("odds", "tiles", "--batch", "-", stdin=lines)[1])
    assert found == json.loads(tablectl("odds", "tiles", "--bank-way", "max_high", "--json")[1])
    assert wrong["error"] == "bank_way is 1; needed: a house way"


def test_lists_are_one_object_a_line(tablectl: Run) -> None:
    for command in (("packs", "list"), ("tiles", "ways")):
        assert all(isinstance(one, dict) and one["name"] for one in rows(tablectl(*command, "--json")[1]))
