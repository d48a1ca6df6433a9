"""Statistics of rolls against published values, whole enumerations and simulation."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from host_tools import statistics
from host_tools.drift import Watch
from host_tools.statistics import Faces


def rolls(n: int, seed: int = 1, weights: list[float] | None = None) -> Faces:
    """So many rolls of three dice, of which the second has these weights."""
    rng = np.random.default_rng(seed)
    thrown = rng.integers(1, 7, (n, 3), dtype=np.int8)
    if weights is not None:
        thrown[:, 1] = rng.choice(np.arange(1, 7), n, p=weights)
    return thrown


def bias(points: float) -> list[float]:
    return [1 / 6 - points / 5] * 5 + [1 / 6 + points]


# Published critical values of chi-square, and the rolls that a bias needs, reckoned beforehand.


@pytest.mark.parametrize(
    ("alpha", "df", "value"),
    [(0.01, 5, 15.086), (0.01, 15, 30.578), (0.01, 215, 266.16), (0.001, 5, 20.515), (0.05, 5, 11.070)],
)
def test_critical_values(alpha: float, df: int, value: float) -> None:
    assert statistics.critical(alpha, df) == pytest.approx(value, abs=0.005)


@pytest.mark.parametrize(("points", "needed"), [(0.005, 122_400), (0.01, 30_600), (0.02, 7_700)])
def test_rolls_that_a_bias_needs(points: float, needed: int) -> None:
    assert statistics.rolls_needed(points) == pytest.approx(needed, rel=0.007)
    assert statistics.smallest_bias(statistics.rolls_needed(points)) == pytest.approx(points, rel=0.001)


@pytest.mark.parametrize("points", [0, 0.9, -0.2])
def test_a_bias_that_no_die_can_have(points: float) -> None:
    with pytest.raises(ValueError, match=str(points)):
        statistics.rolls_needed(points)


def test_too_few_rolls_show_nothing() -> None:
    assert statistics.smallest_bias(0) is None
    assert statistics.smallest_bias(3) is None
    assert statistics.smallest_bias(10) is not None


# Exact, against every possibility


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6])
def test_few_rolls_are_counted_exactly(n: int) -> None:
    squares = Counter(sum(roll.count(face) ** 2 for face in range(1, 7)) for roll in product(range(1, 7), repeat=n))
    for roll in ([1] * n, [1 + place % 6 for place in range(n)]):
        counts = [roll.count(face) for face in range(1, 7)]
        as_bad = sum(ways for value, ways in squares.items() if value >= sum(count**2 for count in counts))
        found = statistics.uniform(counts)
        assert (found.p, found.exact) == (float(Fraction(as_bad, 6**n)), True)


def test_exact_and_limit_agree_where_they_meet() -> None:
    counts = [3, 4, 5, 6, 5, 6]
    exact = statistics.uniform(counts)
    limit = statistics.uniform([*counts[:5], 7])
    assert exact.exact
    assert (limit.df, limit.exact) == (5, False)
    assert exact.p == pytest.approx(1 - 0.0608, abs=0.02)
    assert statistics.uniform([0] * 6).p == 1.0


@pytest.mark.parametrize(("one", "other"), [(1, 1), (3, 4), (5, 5), (2, 6)])
def test_runs_against_every_order(one: int, other: int) -> None:
    orders = [order for order in product((True, False), repeat=one + other) if sum(order) == one]
    found = Counter(1 + sum(a != b for a, b in pairwise(order)) for order in orders)
    for order in orders:
        runs = 1 + sum(a != b for a, b in pairwise(order))
        below = sum(ways for count, ways in found.items() if count <= runs)
        above = sum(ways for count, ways in found.items() if count >= runs)
        result = statistics.runs(np.array(order))
        assert result is not None
        assert (result.statistic, result.exact) == (runs, True)
        assert result.p == float(min(Fraction(1), Fraction(2 * min(below, above), len(orders))))


def test_runs_limit_agrees_with_the_exact_count() -> None:
    high = np.array([True, True, False, True, False, False] * 15)
    exact = statistics.runs(high)
    limit = statistics.runs(np.concatenate([high] * 12))
    assert exact is not None
    assert limit is not None
    assert exact.exact
    assert not limit.exact
    # 60 runs of 90 where 46 are usual, and 720 of 1,080 where 541 are.
    assert exact.p == pytest.approx(2 * 0.5 * math.erfc((60 - 0.5 - 46) / math.sqrt(2 * 22.25)), abs=0.001)
    assert limit.p < 1e-20


def test_nothing_to_say() -> None:
    none = np.zeros((0, 3), dtype=np.int8)
    assert statistics.runs(np.array([True] * 9)) is None
    assert statistics.repeats(none[:, 0]) is None
    assert statistics.totals(none) is None
    assert statistics.outcomes(none) is None
    assert statistics.drift(none).warned_at is None


@pytest.mark.parametrize(
    ("count", "n", "low", "high"), [(10, 100, 0.0490, 0.1762), (0, 20, 0.0, 0.1684), (5, 5, 0.4782, 1.0)]
)
def test_clopper_pearson(count: int, n: int, low: float, high: float) -> None:
    found = statistics.clopper_pearson(count, n, 0.95)
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.0001)


# Totals


def test_the_ways_of_the_totals() -> None:
    assert statistics.WAYS == (1, 3, 6, 10, 15, 21, 25, 27, 27, 25, 21, 15, 10, 6, 3, 1)


@pytest.mark.parametrize("n", [10, 30, 100, 215, 1079, 1080, 50_000])
def test_pooled_cells_cover_all_totals_and_are_expected_often_enough(n: int) -> None:
    cells = statistics.pooled_totals(n)
    assert [total for first, last, _ways in cells for total in range(first, last + 1)] == list(range(3, 19))
    assert sum(ways for _first, _last, ways in cells) == 216
    if n >= 40:
        assert all(ways * n >= 5 * 216 for _first, _last, ways in cells)
    assert (len(cells) == 16) == (n >= 1080)


def test_every_roll_once_is_as_fair_as_can_be() -> None:
    whole = np.array(list(product(range(1, 7), repeat=3)) * 5, dtype=np.int8)
    for result, df in ((statistics.totals(whole), 15), (statistics.outcomes(whole), 215)):
        assert result is not None
        assert (result.statistic, result.df, result.p) == (0.0, df, 1.0)


def test_loaded_totals_and_pairs_are_seen() -> None:
    loaded = rolls(3000)
    loaded[:, 2] = loaded[:, 0]
    for result in (statistics.totals(loaded), statistics.outcomes(loaded)):
        assert result is not None
        assert result.p < 1e-6
    # Each die by itself is fair all the same.
    assert all(statistics.uniform(statistics.face_counts(loaded[:, die])).p > 0.001 for die in range(3))


def test_a_die_that_is_not_shaken_repeats() -> None:
    faces = np.repeat(rolls(300)[:, 0], 2)
    result = statistics.repeats(faces)
    assert result is not None
    assert result.p < 1e-6


# The drift watch


def test_evidence_by_hand() -> None:
    thrown = np.array([[1, 1, 1], [1, 2, 1], [2, 3, 1]], dtype=np.int8)
    paths = np.exp(statistics.drift_paths(thrown, prior=1))
    # Chances of the faces seen, one after the other, with a count of one for each face before.
    assert paths[:, 0] == pytest.approx([1, 6 * 2 / 7, 6 * 2 / 7 * 6 * 1 / 8])
    assert paths[:, 2] == pytest.approx([1, 6 * 2 / 7, 6 * 2 / 7 * 6 * 3 / 8])


def test_evidence_of_all_faces_together_is_one() -> None:
    """Under a fair die it is a martingale: over all 216 sequences of three rolls its mean is 1."""
    whole = np.array(list(product(range(1, 7), repeat=3)), dtype=np.int8)
    last = [math.exp(statistics.drift_paths(sequence[:, None], prior=2)[-1, 0]) for sequence in whole]
    assert sum(last) / 216 == pytest.approx(1)


def test_a_loaded_die_is_warned_of_and_named() -> None:
    thrown = rolls(20_000, seed=3, weights=bias(0.03))
    found = statistics.drift(thrown)
    assert found.die == 2
    assert found.warned_at is not None
    assert statistics.drift(thrown[: found.warned_at - 1]).warned_at is None
    assert statistics.drift(thrown[: found.warned_at]).warned_at == found.warned_at


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("points", [0.0, 0.03])
def test_a_watch_that_goes_on_says_what_all_rolls_at_once_say(seed: int, points: float) -> None:
    thrown = rolls(8_000, seed=seed, weights=bias(points))
    watch = Watch()
    for number, dice in enumerate(thrown.tolist(), 1001):
        watch.add(dice, number)
    found = statistics.drift(thrown)
    assert watch.rolls == 8_000
    assert (watch.warned is None, found.warned_at is None) == (points == 0, points == 0)
    if watch.warned is not None:
        assert (watch.warned.roll, watch.warned.die) == (found.warned_at, found.die)
        assert watch.warned.round == 1000 + watch.warned.roll


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_said() -> None:
    """Of 3,000 fair sets watched for 20,000 rolls each, at most 1 % with three standard errors are warned of."""
    warned = sum(statistics.drift(rolls(20_000, seed=seed)).warned_at is not None for seed in range(3000))
    assert 0 < warned <= 3000 * 0.01 + 3 * math.sqrt(3000 * 0.01 * 0.99)


@pytest.mark.slow
def test_power_is_as_said() -> None:
    """Nine of ten loaded dice are seen by chi-square at 1 % with the rolls that rolls_needed asks for."""
    needed, limit = statistics.rolls_needed(0.02), statistics.critical(0.01, 5)
    seen = sum(
        statistics.uniform(statistics.face_counts(rolls(needed, seed, bias(0.02))[:, 1])).statistic > limit
        for seed in range(1000)
    )
    assert seen / 1000 == pytest.approx(0.9, abs=3 * math.sqrt(0.9 * 0.1 / 1000))


@pytest.mark.slow
def test_p_values_of_fair_dice_are_spread_evenly() -> None:
    """Each test says "below 5 %" of fair dice about one time in twenty; the discrete ones rather more rarely."""
    below: Counter[str] = Counter()
    sets = 1500
    for seed in range(sets):
        thrown = rolls(1500, seed)
        found = {
            "faces": statistics.uniform(statistics.face_counts(thrown[:, 0])),
            "runs": statistics.runs(statistics.high(thrown[:, 0])),
            "repeats": statistics.repeats(thrown[:, 0]),
            "totals": statistics.totals(thrown),
            "outcomes": statistics.outcomes(thrown),
        }
        below.update(name for name, result in found.items() if result is not None and result.p < 0.05)
    spread = 4 * math.sqrt(0.05 * 0.95 / sets)
    assert all(0.02 < below[name] / sets < 0.05 + spread for name in ("faces", "runs", "repeats", "totals", "outcomes"))
