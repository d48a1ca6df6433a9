"""Reading dice on a whole table: the ladder of gains, one to three readers, and readers that fail."""

from __future__ import annotations

from typing import Any

import pytest

from dragoneye.protocol import FAULT, LOCKED
from host_tools.link import Refused
from tests.table.conftest import OpenTable
from tests.table.played import Played
from tests.virtual import until


def reading(table: Played) -> dict[str, Any]:
    told: dict[str, Any] = table.ask("stats")["reading"]
    return told


@pytest.mark.parametrize(("readers", "layout"), [(1, "shared"), (2, "shared"), (3, "shared"), (3, "apart")])
@pytest.mark.parametrize("reader_irq", [False, True])
def test_one_to_three_readers_are_one_set(open_table: OpenTable, readers: int, layout: str, reader_irq: bool) -> None:
    table = open_table(more={"readers": readers, "reader_irq": reader_irq})
    table.do("layout", to=layout)
    [stored] = table.play([6, 1, 4])
    assert (stored["result"]["dice"], stored["voids"]) == ([6, 1, 4], 0)


def test_a_die_that_the_readers_do_not_cover_is_missing(open_table: OpenTable) -> None:
    table = open_table(more={"readers": 2})
    table.do("layout", to="apart")
    table.begin([6, 1, 4])
    table.shake_to_void("die_missing")
    assert reading(table)["missing"] == [0, 0, 1]


def test_a_face_that_leans_over_the_reader_is_lost_at_less_gain(table: Played) -> None:
    table.do("fault", name="two_faces", die=1)
    [stored] = table.play([3, 1, 5])
    assert (stored["result"]["dice"], stored["voids"]) == ([3, 1, 5], 0)
    assert table.ask("stats")["void_reasons"] == {}


def test_a_dead_tag_below_is_void_even_when_a_leaning_neighbour_is_heard_alone(table: Played) -> None:
    table.do("fault", name="dead_tag", die=0, face=4, rolls=None)
    table.do("fault", name="two_faces", die=0, rolls=None)
    table.begin([3, 2, 4])
    table.shake_to_void("die_missing")


def test_what_stats_tell_of_the_dice_waits_for_the_lid(table: Played) -> None:
    table.begin([3, 1, 5])
    before = reading(table)
    table.shake(LOCKED)
    assert reading(table) == before
    table.finish()
    assert reading(table)["faces"] == [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 0]]


def test_a_ladder_of_one_step_cannot_lose_it(open_table: OpenTable) -> None:
    table = open_table(more={"gain_db": [33]})
    table.begin([3, 1, 5])
    table.do("fault", name="two_faces", die=1, rolls=None)
    table.shake_to_void("cocked")
    assert table.ask("stats")["void_reasons"]["cocked"] == 1


def test_a_gain_below_which_nothing_leans_needs_no_ladder(open_table: OpenTable) -> None:
    table = open_table(more={"gain_db": [18]})
    table.do("fault", name="two_faces", die=1)
    assert table.play([3, 1, 5])[0]["voids"] == 0


@pytest.mark.parametrize("value", [0x00, 0xFF])
@pytest.mark.parametrize("reader", [1, 3])
def test_a_reader_that_dies_is_a_fault_until_it_answers_again(open_table: OpenTable, reader: int, value: int) -> None:
    table = open_table(more={"readers": 3})
    number = table.begin([2, 4, 6])
    table.do("fault", name="dead_reader", reader=reader, value=value, rolls=None)
    table.wait(FAULT)
    state = table.device.state
    assert (state["fault"], state["detail"]) == (
        "READER",
        f"reader {reader}: VersionReg is 0x{value:02x}; allowed: 0x91 or 0x92",
    )
    with pytest.raises(Refused, match="E_STANDS"):
        table.ask("clear", code="READER")
    table.do("clear", name="dead_reader")
    until(lambda: cleared(table), "the reader")
    table.shake()
    stored = table.finish()
    assert (stored["round"], stored["result"]["dice"]) == (number, [2, 4, 6])


def cleared(table: Played) -> bool:
    try:
        table.ask("clear", code="READER")
    except Refused as refused:
        if refused.code != "E_STANDS":
            raise
        return False
    return True


def test_a_reader_that_dies_while_the_dice_roll_voids_the_roll(open_table: OpenTable) -> None:
    table = open_table(more={"profile": {"jolt_ms": 150, "rest_ms": 50, "duty_percent": 80}})
    number = table.begin([2, 4, 6])
    table.ask("shake")
    table.do("fault", name="dead_reader", rolls=None)
    table.wait(FAULT)
    assert table.records("void") == [{"round": number, "reason": "fault", "shakes": 1, "over": False}]
    assert table.device.state["fault"] == "READER"
    assert table.motor_is_off()


def test_a_reader_that_is_not_there_at_the_start_is_a_fault(table: Played) -> None:
    table.do("fault", name="dead_reader", rolls=None)
    table.do("power", to="off")
    table.do("power", to="on")
    table.device.reconnect(60.0)
    table.wait(FAULT)
    assert table.device.state["fault"] == "READER"


def test_every_face_that_is_read_is_counted(table: Played) -> None:
    table.play([3, 1, 5], [3, 6, 5])
    told = reading(table)
    assert told["faces"] == [[0, 0, 0, 2, 0, 0], [1, 0, 0, 0, 0, 1], [0, 2, 0, 0, 0, 0]]
    assert (told["missing"], told["dead_tags"]) == ([0, 0, 0], [])
    table.begin([3, 1, 5])
    table.do("fault", name="dead_tag", die=0, face=4, rolls=None)
    table.shake_to_void("die_missing")
    assert reading(table)["missing"] == [1, 0, 0]
