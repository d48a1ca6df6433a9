"""Banks and the whole table: the 40 % rule, coverage in order, who banks next, dead hands, dealer signals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoneye.errors import BadInput
from dragoneye.rules import packs
from host_tools.cli.numbers import money
from host_tools.rules import banking, clauses, houseway, seating, tile_table, tiles
from host_tools.rules.tiles import Hands
from tests.rules.conftest import Run, rows

CA, NJ = packs.load("ca"), packs.load("nj")


@pytest.mark.parametrize(
    ("front", "action", "who"),
    [
        (100_000, 250_000, "front"),
        (100_000, 250_001, "second"),
        (100_000, 249_999, "front"),
        (0, 1, "second"),
        (1, 2, "front"),
        (1, 3, "second"),
        (10**12, 10**12, "front"),
    ],
)
def test_the_front_bank_decides_from_40_percent(front: int, action: int, who: str) -> None:
    found = banking.decides(front, action, CA)
    assert found.decides == who
    assert banking.decides(found.needed, action, CA).decides == "front"
    if found.needed:
        assert banking.decides(found.needed - 1, action, CA).decides == "second"


@pytest.mark.parametrize(("front", "action"), [(-1, 1), (True, 1), (1, 0), (1.5, 2), (1, 10**13), ("1", 2)])
def test_wrong_amounts_are_refused(front: object, action: object) -> None:
    with pytest.raises(BadInput, match="allowed: a whole number from"):
        banking.decides(front, action, CA)  # type: ignore[arg-type]


@given(
    st.lists(st.integers(1, 10_000), min_size=1, max_size=7),
    st.lists(st.integers(0, 20_000), min_size=1, max_size=3),
)
def test_coverage_neither_makes_nor_loses_a_cent(bets: list[int], banks: list[int]) -> None:
    found = banking.cover(list(enumerate(bets, 2)), banks)
    assert [one.covered + one.returned for one in found] == bets
    used = [sum(one.by_bank[number] for one in found) for number in range(len(banks))]
    assert all(part <= bank for part, bank in zip(used, banks, strict=True))
    assert sum(used) == min(sum(bets), sum(banks))
    # In order: once something is returned, nothing after it is covered.
    short = next((number for number, one in enumerate(found) if one.returned), len(found))
    assert all(one.covered == 0 for one in found[short + 1 :])
    # The second bank covers nothing before the front bank is used up.
    assert all(used[n] == banks[n] for n in range(len(banks) - 1) if any(used[n + 1 :]))


@pytest.mark.parametrize(
    ("last", "accepts", "played", "again", "expected"),
    [
        (1, {4}, None, 0, banking.Offer((2, 3, 4), 4)),
        (4, {4}, None, 0, banking.Offer((5, 6, 7, 2, 3, 4), 4)),
        (4, {4, 6}, None, 1, banking.Offer((4,), 4)),
        (6, set(), {2, 3}, 0, banking.Offer((2, 3), 1)),
        (6, {7}, {2, 3}, 0, banking.Offer((2, 3), 1)),
    ],
)
def test_the_offer_of_the_bank_goes_round(
    last: int, accepts: set[int], played: set[int] | None, again: int, expected: banking.Offer
) -> None:
    assert banking.offer(last, 7, accepts, played, again) == expected


def test_the_dead_hand_is_counted_and_dealt_but_never_plays() -> None:
    order = seating.order_of_pack(9, CA)
    everyone = seating.hands_in_play(order)
    assert (everyone.action, everyone.collected) == (order.action, ())
    found = seating.hands_in_play(order, {8, 3, 2}, dead=5)
    assert order.deal == tuple(range(1, 9))
    assert (found.action, found.collected) == ((2, 3, 8), (4, 5, 6, 7))
    with pytest.raises(BadInput, match="position 5 is the dead hand"):
        seating.hands_in_play(order, {5}, dead=5)


def test_the_action_passes_on_to_the_next_position_with_a_bet() -> None:
    order = seating.order_of_pack(12, CA)
    assert order.start == 4
    assert seating.hands_in_play(order, {2, 7}).action == (7, 2)


def test_the_count_starts_at_the_bank_wherever_it_sits() -> None:
    order = seating.order_of_pack(9, CA)
    assert seating.seats(order, 1) == order.deal
    assert seating.seats(order, 3)[0] == 3
    assert sorted(seating.seats(order, 3)) == list(range(1, 9))


def hands(text: str) -> Hands:
    a, b, c, d = (tiles.parse(one) for one in text.split())
    return Hands((a, b), (c, d))


BANK = hands("11 36 46 22")
WINS, LOSES, PUSHES = hands("66 66 56 13"), hands("22 14 56 11"), hands("12 24 55 46")


def table_of(*players: tuple[Hands, int]) -> list[tile_table.Player]:
    return [tile_table.Player(position, one, stake) for position, (one, stake) in enumerate(players, 2)]


def test_each_player_of_a_table_is_settled_as_alone() -> None:
    bank = houseway.load("foxwoods").set(tiles.deck()[4:8])
    way = houseway.load("max_low")
    stacks = [tiles.deck()[n : n + 4] for n in range(0, 32, 4) if n != 4]
    players = [tile_table.Player(n, way.set(stack), 1_000 + n) for n, stack in enumerate(stacks[:6], 2)]
    done = tile_table.settle(players, bank, NJ)
    for player, result in zip(players, done.players, strict=True):
        alone = tiles.settle(player.hands, bank, player.stake, NJ)
        assert (result.result, result.net, result.commission) == (alone.result, alone.net, alone.commission)
    assert sum(one.net + one.commission for one in done.players) + sum(done.bank_nets) == 0


def test_signals_of_the_dealer() -> None:
    done = tile_table.settle(table_of((WINS, 1_000), (LOSES, 2_000), (PUSHES, 3_000)), BANK, CA)
    assert [(one.result, one.net, one.signal) for one in done.players] == [
        ("win", 1_000, "tiles_in_T"),
        ("lose", -2_000, "bet_forward_one_tile_on_three"),
        ("push", 0, "tiles_to_tray"),
    ]
    assert (done.bank_nets, done.commission) == ((1_000,), 0)


def test_what_the_banks_do_not_cover_is_returned() -> None:
    done = tile_table.settle(table_of((WINS, 1_000), (LOSES, 2_000), (PUSHES, 3_000)), BANK, NJ, [600, 900])
    assert [(one.result, one.covered, one.returned, one.net) for one in done.players] == [
        ("win", 1_000, 0, 950),
        ("lose", 500, 1_500, -500),
        ("no_action", 0, 3_000, 0),
    ]
    # The front bank's 600 went to the winner; the second bank lost 400 to it and won 500.
    assert done.bank_nets == (-600, 100)


def test_a_banking_player_pays_commission_on_the_rounds_net() -> None:
    players = table_of((WINS, 1_000), (LOSES, 4_000))
    done = tile_table.settle(players, BANK, NJ, player_banks=True)
    assert (done.bank_nets, done.bank_commissions, done.commission) == ((2_850,), (150,), 200)
    assert tile_table.settle(players, BANK, NJ).bank_nets == (3_000,)


@pytest.mark.parametrize(
    ("players", "said"),
    [
        (table_of((WINS, 1), (hands("66 13 15 15"), 1)), "6-6 is there 3 times"),
        ([tile_table.Player(2, WINS, 1), tile_table.Player(2, LOSES, 1)], "position 2 is there twice"),
        ([tile_table.Player(9, WINS, 1)], "position is 9"),
        ([tile_table.Player(2, WINS, 0)], "stake is 0"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(players: list[tile_table.Player], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        tile_table.settle(players, BANK, CA)


def test_bank_commands(tablectl: Run) -> None:
    case = ("bank", "decides", "--front", "100000", "--action")
    assert json.loads(tablectl(*case, "250000", "--json")[1])["decides"] == "front"
    assert json.loads(tablectl(*case, "250001", "--json")[1])["decides"] == "second"
    code, out, _err = tablectl("bank", "decides", "--batch", "-", stdin='{"front":1,"action":2}\n{"front":true}\n')
    assert code == 2
    assert [row.get("decides", row.get("line")) for row in rows(out)] == ["front", 2]
    args = ("--bank", "600", "--bank", "300", "--bet", "2:500", "--bet", "3:500", "--json")
    covers = json.loads(tablectl("bank", "covers", *args)[1])["covers"]
    assert [one["returned"] for one in covers] == [0, 100]
    assert tablectl("bank", "covers", "--bank", "600", "--bet", "2=500")[0] == 2
    assert json.loads(tablectl("bank", "next", "--last", "3", "--accepts", "2", "--json")[1])["bank"] == 2


def test_seats_with_bets_and_a_dead_hand(tablectl: Run) -> None:
    args = ("--total", "9", "--pack", "ca", "--bet", "4", "--bet", "2", "--dead", "8", "--bank-seat", "3", "--json")
    result = json.loads(tablectl("seats", *args)[1])
    assert (result["action"], result["collected"]) == ([2, 4], [3, 5, 6, 7, 8])
    assert result["seats"] == [3, 4, 5, 6, 7, 8, 1, 2]


def test_a_table_on_the_command_line(tablectl: Run) -> None:
    case = {
        "bank": BANK.as_dict(),
        "players": [
            {"position": 2, "hands": WINS.as_dict(), "stake": 1_000},
            {"position": 3, "hands": ["22", "14", "56", "11"], "stake": 2_000},
        ],
        "banks": [500],
    }
    code, out, _err = tablectl("tiles", "table", json.dumps(case), "--json")
    result = json.loads(out)
    assert code == 0
    assert [(one["result"], one["returned"]) for one in result["players"]] == [("win", 500), ("no_action", 2_000)]
    assert result["players"][1]["rule"] == "best-low"
    code, out, _err = tablectl("tiles", "table", json.dumps(case))
    assert code == 0
    # The signals are the card room's; no other pack's text has them.
    assert "in a T" not in out
    assert [one["signal"] for one in result["players"]] == [None, None]
    assert "tiles two by two in a T" in tablectl("tiles", "table", json.dumps(case), "--pack", "ca")[1]
    for wrong in ("[]", '{"bank":1,"players":[]}', '{"bank":1,"players":[1]}', json.dumps({**case, "banks": [True]})):
        assert tablectl("tiles", "table", wrong)[0] == 2


def test_a_net_has_the_commission_of_its_owner_in_it(tablectl: Run) -> None:
    case = {
        "bank": BANK.as_dict(),
        "players": [
            {"position": 2, "hands": WINS.as_dict(), "stake": 1_000},
            {"position": 3, "hands": ["22", "14", "56", "11"], "stake": 2_000},
        ],
    }

    def told(**more: object) -> tuple[dict[str, Any], list[str]]:
        words = json.dumps({**case, **more})
        found: dict[str, Any] = json.loads(tablectl("tiles", "table", words, "--json")[1])
        return found, tablectl("tiles", "table", words)[1].splitlines()[-2:]

    house, said = told()
    players = sum(one["net"] for one in house["players"])
    assert house["house_net"] == -players == house["bank_nets"][0] + house["commission"]
    assert said == [
        f"bank net: {money(house['bank_nets'][0])}; the bank is the house and pays no commission",
        f"house net: {money(-players)}, the bank's and the commission of $0.50",
    ]
    others, said = told(player_banks=True)
    assert others["house_net"] == others["commission"] == others["bank_commissions"][0] + 50
    assert players + sum(others["bank_nets"]) + others["house_net"] == 0
    assert said[0].endswith(f", after its commission of {money(others['bank_commissions'][0])}")
    covered, _said = told(banks=[100_000])
    assert covered["house_net"] == covered["commission"] == 50


def test_a_pack_that_starts_from_no_other_has_no_dealer_signals(tmp_path: Path) -> None:
    whole = {**packs.load("ca").as_dict(), "name": "mine"}
    for base, signals in ((None, ""), ("nj", ""), ("ca", "card room sheet, rules 9 and 10")):
        path = tmp_path / "mine.json"
        path.write_text(json.dumps({**whole, "base": base}))
        assert clauses.of_pack(str(path)).signals == signals
