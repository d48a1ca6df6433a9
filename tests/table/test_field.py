"""What may go wrong in the readers' field and on their supply, on a whole table."""

from __future__ import annotations

from typing import Any

import pytest

from dragoneye.protocol import FAULT, VOID
from tests.table.conftest import OpenTable
from tests.table.played import Played


def test_a_reader_on_a_marginal_supply_is_a_fault(table: Played) -> None:
    table.do("fault", name="weak_supply", rolls=None)
    table.wait(FAULT)
    assert table.device.state["fault"] == "READER"
    assert "VersionReg is 0x" in table.device.state["detail"]


@pytest.mark.parametrize("uid", ["01020304", "04f0f0f0f0f0f1"])
def test_a_foreign_tag_of_either_length_is_named(table: Played, uid: str) -> None:
    table.begin([3, 1, 5])
    table.do("fault", name="foreign", uid=uid)
    assert table.shake(VOID, FAULT) == FAULT
    assert uid.upper() in table.device.state["detail"]
    assert table.records("void")[-1]["reason"] == "foreign_tag"


@pytest.mark.parametrize("layout", ["shared", "apart"])
@pytest.mark.parametrize(
    ("name", "fault"), [("collision", {}), ("two_faces", {"die": 2, "strong": True}), ("unsettled", {})]
)
def test_nothing_that_cannot_be_told_apart_becomes_a_result(
    open_table: OpenTable, layout: str, name: str, fault: dict[str, Any]
) -> None:
    table = open_table(more={"readers": 3})
    table.do("layout", to=layout)
    table.begin([3, 1, 5])
    table.do("fault", name=name, **fault)
    assert table.shake(VOID, FAULT) == VOID
    table.do("next", dice=[2, 4, 6])
    table.shake()
    assert table.finish()["result"]["dice"] == [2, 4, 6]


def test_only_one_field_is_ever_on_and_none_after_a_reading(open_table: OpenTable) -> None:
    table = open_table(more={"readers": 3})
    table.play([3, 1, 5])
    readers = table.bench.state()["readers"]
    assert [reader["field"] for reader in readers] == [False] * 3
    assert min(reader["transactions"] for reader in readers) > 0
