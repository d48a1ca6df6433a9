"""The audit's own settlement against the firmware's, and against the regulation said again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoneye.rules import wagers
from dragoneye.rules.packs import WAGERS, load
from host_tools.rules import settlement
from tests.unit import restated_wagers as restated

FACES = range(1, 7)


@pytest.mark.parametrize("options", restated.EVERY_OPTION, ids=lambda options: "-".join(options))
def test_every_roll_as_the_regulation_says(options: Any) -> None:
    pack = load("nj").with_options(options._asdict())
    for roll in restated.ROLLS:
        for eye in restated.EYES:
            for before in range(6) if len(set(roll)) == 1 else (0,):
                for position in restated.POSITIONS:
                    stakes = dict.fromkeys(WAGERS, 100)
                    for shaker in (position, 0):
                        role = "shaker" if shaker else "player"
                        rows = settlement.settle([(position, stakes)], roll, eye, shaker, before, pack)
                        assert {wager: odds for _position, wager, _stake, odds in rows} == {
                            wager: odds
                            for wager in WAGERS
                            if (odds := restated.odds_to_one(wager, roll, eye, position, role, before, options))
                            is not None
                        }


tables = st.dictionaries(
    st.integers(1, 7), st.dictionaries(st.sampled_from(WAGERS), st.integers(1, 100_000), min_size=1), max_size=7
)


@given(
    tables,
    st.tuples(*[st.integers(1, 6)] * 3) | st.integers(1, 6).map(lambda face: (face,) * 3),
    st.integers(0, 2),
    st.integers(0, 7),
    st.integers(0, 10),
    st.sampled_from(("nj", "pr")),
    st.sampled_from(("cap", "restart", "hold")),
    st.integers(1, 500),
)
def test_whole_tables_as_the_firmware_settles(
    bets: dict[int, dict[str, int]], roll: Any, eye: int, shaker: int, before: int, name: str, after: str, triple: int
) -> None:
    pack = load(name).with_options({"after_third": after, "pays_triple": triple})
    theirs = [tuple(row) for row in wagers.settle_table(bets, roll, eye, shaker, before, pack)]
    ours = settlement.settle(bets.items(), roll, eye, shaker, before, pack)
    assert ours == sorted(theirs)
    assert settlement.net(ours) == wagers.net_of(theirs)
    level = wagers.bonus_level(before, pack)
    assert settlement.rung(before, after) == (level - 1 if level else None)
