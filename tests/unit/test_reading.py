"""The reading of the dice: exactly the three values, or a void with a reason; never a wrong value."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoneye.config import GAIN_DB, check_readers
from dragoneye.rules import reading
from dragoneye.rules.reading import COCKED, DIE_MISSING, FOREIGN_TAG, NOT_SETTLED, TWO_FACES, UNRESOLVED, Reader, judge

# Some share a prefix, as tags of one batch do. TAGS[die][face - 1] is the tag on that face.
TAGS = [[f"04A1{die}{face}80" for face in range(1, 7)] for die in range(3)]
REGISTRY = reading.registry_of(TAGS)
FOREIGN = ("04A10", "04A10180FF", "04a10180x", "")
Values = tuple[int, int, int]


def lying_on(*faces: int) -> set[str]:
    """The tags seen when the dice lie on these faces."""
    return {TAGS[die][face - 1] for die, face in enumerate(faces)}


# A field as a few tags of each die and perhaps some that are no die's.
some_tags = st.sets(st.sampled_from([*TAGS[0], *TAGS[1], *TAGS[2], *FOREIGN]), max_size=6)
good_tags = st.tuples(*[st.integers(1, 6)] * 3).map(lambda faces: lying_on(*faces))
fields = st.none() | good_tags | some_tags | st.tuples(good_tags, some_tags).map(lambda both: both[0] | both[1])


def true_of(tags: Collection[str] | None) -> tuple[Values | None, set[str]]:
    """The values that these tags stand for, or every reason why there are none."""
    if tags is None:
        return None, {UNRESOLVED}
    tops = [[6 - TAGS[die].index(tag) for tag in tags if tag in TAGS[die]] for die in range(3)]
    reasons = {
        FOREIGN_TAG: any(all(tag not in faces for faces in TAGS) for tag in tags),
        TWO_FACES: any(len(seen) > 1 for seen in tops),
        DIE_MISSING: any(not seen for seen in tops),
    }
    if any(reasons.values()):
        return None, {reason for reason, holds in reasons.items() if holds}
    return (tops[0][0], tops[1][0], tops[2][0]), set()


def test_every_way_three_dice_can_lie_is_read_right() -> None:
    for faces in product(range(1, 7), repeat=3):
        assert judge(lying_on(*faces), REGISTRY) == (tuple(7 - face for face in faces), None)


@given(fields)
def test_any_tags_give_the_three_values_or_a_void_with_a_true_reason(tags: set[str] | None) -> None:
    values, reason = judge(tags, REGISTRY)
    true_values, true_reasons = true_of(tags)
    assert values == true_values
    assert reason is None if values is not None else reason in true_reasons


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        (None, UNRESOLVED),
        (set(), DIE_MISSING),
        (lying_on(1, 2), DIE_MISSING),
        (lying_on(1, 2, 3) | {TAGS[1][5]}, TWO_FACES),
        (lying_on(1, 2) | {TAGS[1][5]}, TWO_FACES),
        (lying_on(1, 2, 3) | {TAGS[1][4]}, TWO_FACES),
        (lying_on(1, 2, 3) | {TAGS[1][0], TAGS[1][5]}, TWO_FACES),
        (lying_on(1, 2, 3) | {TAGS[0][1], TAGS[1][4]}, TWO_FACES),
        (lying_on(1, 2, 3) | {"04A10"}, FOREIGN_TAG),
        (lying_on(1, 2) | {"04A10"}, FOREIGN_TAG),
    ],
)
def test_what_is_no_result_says_why(tags: set[str] | None, reason: str) -> None:
    assert judge(tags, REGISTRY) == (None, reason)
    # The reader says the same when it has used up its passes.
    reader = Reader(REGISTRY, 2)
    verdicts = [reader.add(tags) for _ in range(1 if reason == FOREIGN_TAG else 2)]
    # Two faces that share an edge are a cocked die; opposite ones, or more, are none.
    assert verdicts[-1] == (None, COCKED if cocked(tags) else reason)


def faces_of(tags: Collection[str] | None, die: int) -> list[int]:
    """The faces of a die that were read."""
    return [face for face in range(1, 7) if TAGS[die][face - 1] in (tags or ())]


def cocked(tags: Collection[str] | None) -> bool:
    """Whether some die shows two faces, and every one that does shows two adjacent ones."""
    many = [faces for die in range(3) if len(faces := faces_of(tags, die)) > 1]
    return bool(many) and all(len(faces) == 2 and sum(faces) != 7 for faces in many)


def test_the_reason_does_not_hang_on_the_order_of_the_tags() -> None:
    tags = ["04A10", *TAGS[0][:2]]
    assert judge(tags, REGISTRY) == judge(tags[::-1], REGISTRY)


def outcome(passes: list[set[str] | None], tries: int) -> tuple[int, tuple[Values | None, str | None] | None]:
    """How many passes a reader took, and what it said."""
    reader = Reader(REGISTRY, tries)
    for taken, tags in enumerate(passes, 1):
        said = reader.add(tags)
        if said is not None:
            return taken, said
    return len(passes), None


# Few ways to lie, so that passes often agree.
few_fields = st.sampled_from(
    [
        None,
        set(),
        *(lying_on(*faces) for faces in ((1, 1, 1), (1, 1, 2))),
        lying_on(1, 1),
        lying_on(1, 1, 1) | {"04A10"},
    ]
)


@given(st.lists(few_fields | fields, min_size=6, max_size=6), st.integers(1, 6))
def test_a_result_needs_two_agreeing_passes_in_a_row(passes: list[set[str] | None], tries: int) -> None:
    true = [true_of(tags) for tags in passes]
    taken, said = outcome(passes, tries)
    assert said is not None
    assert taken <= tries
    values, reason = said
    agreed = [n for n in range(1, taken) if true[n][0] is not None and true[n][0] == true[n - 1][0]]
    if values is not None:
        assert (values, reason, agreed) == (true[taken - 1][0], None, [taken - 1])
        return
    # Never given up with a result in hand, nor early but for a tag of somebody else's.
    assert agreed == []
    assert taken == tries or FOREIGN_TAG in true[taken - 1][1]
    if reason == COCKED:
        assert any(cocked(tags) for tags in passes[:taken])
        reason = TWO_FACES
    seen = [reasons for _, reasons in true[:taken] if reasons]
    if reason != FOREIGN_TAG and any(TWO_FACES in reasons for reasons in seen):
        # Once seen, two faces of one die are not unsaid by a pass that sees less.
        assert reason == TWO_FACES
        return
    assert reason in (seen[-1] if true[taken - 1][1] else set().union({NOT_SETTLED}, *seen))
    assert (reason == NOT_SETTLED) if not seen else True


@pytest.mark.parametrize(
    ("passes", "tries", "said"),
    [
        ([(1, 2, 3), (1, 2, 3)], 2, (2, ((6, 5, 4), None))),
        ([(1, 2, 3)], 2, (1, None)),
        ([(1, 2, 3)], 1, (1, (None, NOT_SETTLED))),
        ([(1, 2, 3), (1, 2, 4)], 2, (2, (None, NOT_SETTLED))),
        ([(1, 2, 3), (1, 2, 4), (1, 2, 3)], 3, (3, (None, NOT_SETTLED))),
        ([(1, 2, 3), (1, 2, 4), (1, 2, 4)], 3, (3, ((6, 5, 3), None))),
        ([(1, 2, 3), (1, 2), (1, 2, 3)], 3, (3, (None, DIE_MISSING))),
        ([(1, 2, 3), (1, 2), (1, 2, 3), (1, 2, 3)], 4, (4, ((6, 5, 4), None))),
        ([(1, 2), (1, 2)], 2, (2, (None, DIE_MISSING))),
        ([(1, 2), (1, 2, 3)], 2, (2, (None, DIE_MISSING))),
        ([(1, 2), (1, 2, 3), (1, 2, 4)], 3, (3, (None, NOT_SETTLED))),
    ],
)
def test_passes_by_example(passes: list[tuple[int, ...]], tries: int, said: object) -> None:
    assert outcome([lying_on(*faces) for faces in passes], tries) == said


@given(st.lists(st.lists(few_fields | fields, min_size=4, max_size=4), min_size=1, max_size=3), st.integers(1, 4))
def test_a_result_is_confirmed_at_the_lowest_gain(worlds: list[list[set[str] | None]], tries: int) -> None:
    """`worlds` are what the passes at each step of the ladder see, over and over."""
    lowest = len(worlds) - 1
    reader = Reader(REGISTRY, tries, len(worlds))
    taken: list[tuple[int, set[str] | None]] = []
    said = None
    while said is None:
        step = reader.step
        here = [tags for at, tags in taken if at == step]
        tags = worlds[step][len(here) % 4]
        taken.append((step, tags))
        assert len(here) < tries
        said = reader.add(tags)
        values, true = true_of(tags)
        if reader.step != step:
            assert said is None
            assert step < lowest
            assert (values is not None and reader.step == lowest) or (TWO_FACES in true and reader.step == step + 1)
        elif FOREIGN_TAG not in true:
            assert step == lowest or (values is None and TWO_FACES not in true)
        if tags is not None and FOREIGN_TAG not in true:
            assert reader.absent == [die for die in range(3) if not faces_of(tags, die)]
    values, reason = said
    if values is not None:
        # Two passes in a row, each with exactly one face of each die; the last at the lowest gain.
        assert [true_of(tags) for _, tags in taken[-2:]] == [(values, set())] * 2
        assert taken[-1][0] == lowest
    elif reason in (TWO_FACES, COCKED):
        assert taken[-1][0] == lowest


LADDER = (33, 23, 18)
# From which gain in dB on a tag is heard; None when it is dead or too far away.
gains = st.sampled_from([None, 18, 20, 23, 28, 33, 38])


@st.composite
def couplings(draw: st.DrawFn) -> tuple[list[int], list[dict[str, int]], list[bool]]:
    """The faces that the dice lie on, for each die the gain from which each tag is heard, and whose tag below is dead.

    The tag below couples better than the others of its die. Where it is dead the others are not heard at the lowest
    gain: they stand on edge or face away.
    """
    down = [draw(st.integers(1, 6)) for _ in range(3)]
    dead = [draw(st.integers(0, 3)) == 0 for _ in range(3)]
    heard: list[dict[str, int]] = []
    for die in range(3):
        below = draw(gains)
        one: dict[str, int] = {}
        for face in range(1, 7):
            gain = draw(gains)
            if face == down[die]:
                if not dead[die] and below is not None:
                    one[TAGS[die][face - 1]] = below
            elif gain is not None and gain > LADDER[-1] and (dead[die] or (below is not None and gain > below)):
                one[TAGS[die][face - 1]] = gain
        heard.append(one)
    return down, heard, dead


@given(couplings(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_whatever_couples_the_result_is_right_or_void(
    coupled: tuple[list[int], list[dict[str, int]], list[bool]], tries: int, chance: Any
) -> None:
    down, heard, dead = coupled
    reader = Reader(REGISTRY, tries, len(LADDER))
    said = None
    while said is None:
        gain = LADDER[reader.step]
        # Now and then a pass loses a tag, or does not tell all apart.
        tags = {uid for one in heard for uid, least in one.items() if least <= gain and chance.random() < 0.95}
        said = reader.add(None if chance.random() < 0.05 else tags)
    values, _reason = said
    if values is not None:
        assert values == tuple(7 - face for face in down)
        assert not any(dead)


def test_a_dead_tag_below_and_a_neighbour_that_leans_are_void_not_the_neighbours_value() -> None:
    # Die 1 lies on its face 4, whose tag is dead; face 5 is heard at the highest gain alone.
    reader = Reader(REGISTRY, 4, 3)
    assert reader.add(lying_on(5, 5, 3)) is None
    assert reader.step == 2
    said = None
    while said is None:
        said = reader.add(lying_on(5, 5, 3) - lying_on(5))
    assert said == (None, DIE_MISSING)
    assert reader.absent == [0]


@pytest.mark.parametrize(
    ("passes", "step", "said"),
    [
        # A result is confirmed with less gain; it counts there as the first of two passes.
        ([(1, 2, 3)], 1, None),
        ([(1, 2, 3), (1, 2, 3)], 1, ((6, 5, 4), None)),
        ([(1, 2, 3), (1, 2, 4), (1, 2, 4)], 1, ((6, 5, 3), None)),
        ([(1, 2, 3), (1, 2), (1, 2), (1, 2)], 1, (None, DIE_MISSING)),
        ([(1, 2), (1, 2, 3)], 1, None),
        ([{0: (1, 2), 1: (2,), 2: (3,)}], 1, None),
        # Less gain, and only the face that lies on the reader answers.
        ([{0: (1, 2), 1: (2,), 2: (3,)}, (1, 2, 3), (1, 2, 3)], 1, ((6, 5, 4), None)),
        # Less gain, and another die is lost: no result is put together from two passes.
        ([{0: (1, 2), 1: (2,), 2: (3,)}, (1, 2), (1, 2), (1, 2)], 1, (None, DIE_MISSING)),
        ([{0: (1, 2), 1: (2,), 2: (3,)}] * 4, 1, (None, COCKED)),
        ([{0: (1, 6), 1: (2,), 2: (3,)}] * 4, 1, (None, TWO_FACES)),
        # What was read before does not count with what is read with less gain.
        ([(1, 2, 3), {0: (1, 2), 1: (2,), 2: (3,)}, (1, 2, 3)], 1, None),
    ],
)
def test_ladders_by_example(passes: list[Any], step: int, said: object) -> None:
    reader = Reader(REGISTRY, 3, 2)
    last = None
    for faces in passes:
        assert last is None
        if isinstance(faces, dict):
            last = reader.add({TAGS[die][face - 1] for die, seen in faces.items() for face in seen})
        else:
            last = reader.add(lying_on(*faces))
    assert (reader.step, last) == (step, said)


def test_a_dead_tag_is_suspected_when_chance_no_longer_explains_it() -> None:
    assert (5 / 6) ** reading.SUSPECT_AFTER < 1e-6 < (5 / 6) ** (reading.SUSPECT_AFTER - 1)
    tally = reading.Tally()
    # Die 2 never lies on its face 4: a 3 is never read.
    values = [value for value in (1, 2, 4, 5, 6) for _ in range(15)]
    for count, value in enumerate(values):
        tally.result((count % 6 + 1, value, 6 - count % 6))
    tally.result((1, 1, 1))
    assert tally.dead() == []  # its rolls would have been void
    tally.void([0, 1])  # two dice at once are no tag's fault
    assert tally.dead() == []
    tally.void([1])
    assert tally.as_dict()["dead_tags"] == [[2, 4]]
    assert tally.missing == [0, 1, 0]
    assert [sum(faces) for faces in tally.faces] == [76] * 3
    tally.result((1, 3, 1))
    assert tally.dead() == []


@pytest.mark.parametrize(
    ("dice", "said"),
    [
        ([], "there are 0 dice; three are needed"),
        (TAGS[:2], "there are 2 dice"),
        ([*TAGS, TAGS[0]], "there are 4 dice"),
        ([TAGS[0], TAGS[1][:5], TAGS[2]], "die 2 has 5 tags; six are needed"),
        ([TAGS[0], TAGS[1], TAGS[1]], f"tag {TAGS[1][0]} is there twice"),
        ([[*TAGS[0][:5], TAGS[0][0]], TAGS[1], TAGS[2]], f"tag {TAGS[0][0]} is there twice"),
    ],
)
def test_a_registry_of_anything_but_three_times_six_tags_is_refused(dice: list[list[str]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        reading.registry_of(dice)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"readers": 0}, "readers is 0; allowed: a whole number from 1 to 2"),
        ({"readers": 3}, "readers is 3; allowed: a whole number from 1 to 2"),
        ({"readers": True}, "readers is true"),
        ({"gain_db": [33, 20]}, r"gain_db is \[33, 20\]; allowed: one or more of 18, 23, 33, 38, 43, 48, each lower"),
        ({"gain_db": [18, 23]}, "gain_db is"),
        ({"gain_db": [23, 23]}, "gain_db is"),
        ({"gain_db": []}, "gain_db is"),
        ({"gain_db": 33}, "gain_db is"),
        ({"reader_irq": 1}, "reader_irq is 1; allowed: true or false"),
    ],
)
def test_readers_that_a_board_cannot_have_are_refused(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_readers(config, {"reader_cs": [5, 6], "reader_irq": [9, 10]})


def test_readers_that_a_board_can_have() -> None:
    for config in ({}, {"readers": 2, "gain_db": [48, 33, 18], "reader_irq": True}, {"gain_db": [*GAIN_DB]}):
        check_readers(config, {"reader_cs": [5, 6], "reader_irq": [9, 10]})
