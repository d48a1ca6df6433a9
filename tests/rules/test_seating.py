"""Deal and action order: the known answers of the sources."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from dragoneye.errors import BadInput
from dragoneye.rules import packs
from host_tools.rules import seating

CCW, CW = "counter-clockwise", "clockwise"


@pytest.mark.parametrize(
    ("positions", "ways"),
    [(8, [28, 28, 28, 28, 27, 25, 25, 27]), (7, [31, 31, 31, 31, 31, 31, 30]), (6, [36] * 6)],
)
def test_ways_of_each_start(positions: int, ways: list[int]) -> None:
    starts = Counter(seating.start(sum(dice), positions) for dice in product(range(1, 7), repeat=3))
    assert [starts[position] for position in range(1, positions + 1)] == ways


@pytest.mark.parametrize(("pack", "firsts"), [("ca", [9, 17]), ("nj", [8, 15]), ("pr", [8, 15])])
def test_the_totals_that_start_at_the_dealer(pack: str, firsts: list[int]) -> None:
    found = [total for total in range(3, 19) if seating.order_of_pack(total, packs.load(pack)).start == 1]
    assert found == firsts


def test_the_card_room_starts_the_action_at_the_player_dealers_right() -> None:
    order = seating.order_of_pack(17, packs.load("ca"))
    assert (order.start, order.deal[0], order.action[0]) == (1, 1, 2)


def test_asia_pokers_example_14_is_the_sixth_betting_position() -> None:
    assert seating.start(14, 7) == 6 + 1


@pytest.mark.parametrize("directions", [(CCW, CCW), (CW, CW), (CCW, CW), (CW, CCW)])
@pytest.mark.parametrize("positions", [6, 7, 8])
def test_every_position_is_dealt_once_and_the_dealer_never_acts(positions: int, directions: tuple[str, str]) -> None:
    for total in range(3, 19):
        order = seating.order(total, positions, *directions)
        assert sorted(order.deal) == list(range(1, positions + 1))
        assert order.deal[0] == order.start
        step = 1 if directions[0] == directions[1] else positions - 1
        assert all((two - one) % positions == step for one, two in zip(order.deal, order.deal[1:], strict=False))
        assert list(order.action) == [position for position in order.deal if position != 1]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((2, 8, CCW, CCW), "total is 2; allowed: a whole number from 3 to 18"),
        ((19, 8, CCW, CCW), "total is 19"),
        ((True, 8, CCW, CCW), "total is true"),
        ((9, 9, CCW, CCW), "positions is 9; allowed: a whole number from 6 to 8"),
        ((9, 8, "left", CCW), "count_direction is 'left'; allowed: counter-clockwise, clockwise"),
        ((9, 8, CCW, None), "deal_direction is null"),
    ],
)
def test_what_is_wrong_is_named(args: tuple[int, int, str, str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        seating.order(*args)
