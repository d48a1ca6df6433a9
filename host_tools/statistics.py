"""Is it fair? Statistics of recorded rolls: pure, over arrays of faces 1..6; nothing here touches play.

An array of rolls has a row for each roll and a column for each of the three dice. Every p-value is of one test by
itself; `false_alarms` and the reports say how many tests stand side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.optimize import brentq

from host_tools.drift import FALSE_ALARMS, PRIOR

Faces = npt.NDArray[np.int8]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FACES = range(1, 7)
TOTALS = range(3, 19)
# How many of the 216 rolls have the totals 3 to 18.
WAYS = tuple(sum(1 for roll in product(FACES, repeat=3) if sum(roll) == total) for total in TOTALS)

# A chi-square's p-value holds when every cell is expected this often (Cochran's rule); below it is counted exactly.
EXPECTED_LEAST = 5


@dataclass(frozen=True)
class Result:
    """A test's statistic with its degrees of freedom (None: it is no chi-square), and its p-value.

    `exact` when the p-value was counted, not taken from a limit distribution.
    """

    statistic: float
    df: int | None
    p: float
    exact: bool = False


@dataclass(frozen=True)
class Interval:
    """How often something came among `n`, and the exact bounds of its probability."""

    count: int
    n: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """count / n."""
        return self.count / self.n


def critical(alpha: float, df: int) -> float:
    """The chi-square that a fair die exceeds with probability `alpha`.

    >>> round(critical(0.01, 5), 3), round(critical(0.01, 15), 3), round(critical(0.01, 215), 2)
    (15.086, 30.578, 266.16)
    """
    return float(stats.chi2.isf(alpha, df))


def clopper_pearson(count: int, n: int, confidence: float = 0.99) -> Interval:
    """The exact confidence interval of a probability (Clopper and Pearson 1934).

    >>> found = clopper_pearson(0, 10, 0.95)
    >>> found.low, round(found.high, 4)
    (0.0, 0.3085)
    """
    bounds = stats.binomtest(count, n).proportion_ci(confidence, method="exact")
    return Interval(count, n, float(bounds.low), float(bounds.high))


def face_counts(faces: Faces) -> Counts:
    """How often each face 1..6 came."""
    return np.bincount(faces, minlength=7)[1:7].astype(np.int64)


def uniform(counts: Sequence[int] | Counts) -> Result:
    """Are six faces equally likely? Chi-square with 5 degrees of freedom, or counted exactly for fewer than 30 rolls.

    >>> uniform([0, 0, 0, 0, 0, 3]).p == 6 / 6**3
    True
    """
    observed = np.asarray(counts, dtype=np.int64)
    n = int(observed.sum())
    if n >= EXPECTED_LEAST * 6:
        found = stats.chisquare(observed)
        return Result(float(found.statistic), 5, float(found.pvalue))
    if n == 0:
        return Result(0.0, None, 1.0, True)
    return _uniform_exactly(observed, n)


def _uniform_exactly(observed: Counts, n: int) -> Result:
    """Add up all results of n rolls that are no likelier by their chi-square: sum of squares at least the observed."""
    squares = int((observed**2).sum())
    ways = 0
    # Sorted counts only; each stands for all of its orders.
    for split in _partitions(n, 6, n):
        if sum(k * k for k in split) >= squares:
            orders = math.factorial(6)
            for k in set(split):
                orders //= math.factorial(split.count(k))
            rolls = math.factorial(n)
            for k in split:
                rolls //= math.factorial(k)
            ways += orders * rolls
    return Result(6 * squares / n - n, None, float(Fraction(ways, 6**n)), True)


def _partitions(n: int, parts: int, most: int) -> list[tuple[int, ...]]:
    if parts == 1:
        return [(n,)] if n <= most else []
    return [
        (first, *rest)
        for first in range(min(n, most), -(-n // parts) - 1, -1)
        for rest in _partitions(n - first, parts - 1, first)
    ]


def pooled_totals(n: int) -> list[tuple[int, int, int]]:
    """The totals 3 to 18 as cells (first, last, ways): tails are pooled until each is expected 5 times in `n` rolls.

    >>> pooled_totals(1080)[:2], len(pooled_totals(1080)), pooled_totals(100)[0]
    ([(3, 3, 1), (4, 4, 3)], 16, (3, 6, 20))
    """
    cells = [(total, total, ways) for total, ways in zip(TOTALS, WAYS, strict=True)]
    while len(cells) > 1 and cells[0][2] * n < EXPECTED_LEAST * 216:
        cells[:2] = [(cells[0][0], cells[1][1], cells[0][2] + cells[1][2])]
    while len(cells) > 1 and cells[-1][2] * n < EXPECTED_LEAST * 216:
        cells[-2:] = [(cells[-2][0], cells[-1][1], cells[-2][2] + cells[-1][2])]
    return cells


def totals(rolls: Faces) -> Result | None:
    """Do totals come as often as the 216 rolls have them? None below 40 rolls: then no total is expected 5 times."""
    n = len(rolls)
    cells = pooled_totals(n)
    if len(cells) < 2 or any(ways * n < EXPECTED_LEAST * 216 for _first, _last, ways in cells):
        return None
    by_total = np.bincount(rolls.sum(axis=1, dtype=np.int64), minlength=19)
    observed = [int(by_total[first : last + 1].sum()) for first, last, _ways in cells]
    found = stats.chisquare(observed, [n * ways / 216 for _first, _last, ways in cells])
    return Result(float(found.statistic), len(cells) - 1, float(found.pvalue))


def outcomes(rolls: Faces) -> Result | None:
    """Are all 216 rolls equally likely, the dice together? None below 1,080 rolls, 5 for each."""
    n = len(rolls)
    if n < EXPECTED_LEAST * 216:
        return None
    index = (rolls[:, 0] - 1) * np.int64(36) + (rolls[:, 1] - 1) * np.int64(6) + (rolls[:, 2] - 1)
    found = stats.chisquare(np.bincount(index, minlength=216))
    return Result(float(found.statistic), 215, float(found.pvalue))


def runs(high: npt.NDArray[np.bool_]) -> Result | None:
    """Wald and Wolfowitz's runs test: too few or too many changes between low and high, whatever their numbers.

    The statistic is the number of runs. Exact below 50 of either kind, else by the normal limit with a correction for
    continuity; None when there is one kind only.

    >>> runs(np.array([True, False] * 5)).statistic
    10.0
    """
    n, one = len(high), int(high.sum())
    other = n - one
    if not one or not other:
        return None
    found = 1 + int((high[1:] != high[:-1]).sum())
    if min(one, other) < 50 and n < 1000:
        below = sum(_runs_probability(count, one, other) for count in range(2, found + 1))
        above = sum(_runs_probability(count, one, other) for count in range(found, n + 1))
        return Result(float(found), None, float(min(Fraction(1), 2 * min(below, above))), True)
    mean = 2 * one * other / n + 1
    variance = (mean - 1) * (mean - 2) / (n - 1)
    distance = max(0.0, abs(found - mean) - 0.5) / math.sqrt(variance)
    return Result(float(found), None, float(2 * stats.norm.sf(distance)))


def _runs_probability(count: int, one: int, other: int) -> Fraction:
    """How likely `count` runs are in a random order of `one` and `other` things (Wald and Wolfowitz 1940)."""
    half, odd = divmod(count, 2)
    if odd:
        ways = math.comb(one - 1, half) * math.comb(other - 1, half - 1)
        ways += math.comb(one - 1, half - 1) * math.comb(other - 1, half)
    else:
        ways = 2 * math.comb(one - 1, half - 1) * math.comb(other - 1, half - 1)
    return Fraction(ways, math.comb(one + other, one))


def high(faces: Faces) -> npt.NDArray[np.bool_]:
    """Faces 4, 5 and 6."""
    return faces > 3


def repeats(faces: Faces) -> Result | None:
    """How often a die shows what it showed the roll before: one in six if it is shaken well. Exact binomial test."""
    n = len(faces) - 1
    if n < 1:
        return None
    same = int((faces[1:] == faces[:-1]).sum())
    return Result(float(same), None, float(stats.binomtest(same, n, 1 / 6).pvalue), True)


def rolls_needed(bias: float, alpha: float = 0.01, power: float = 0.9) -> int:
    """How many rolls until the chi-square of one die shows a bias with probability `power`.

    One face is `bias` likelier than 1/6 and the five others share the loss; `alpha` is the chance of a false alarm.
    By the non-central chi-square: n = lambda / (7.2 bias^2), where lambda gives the power with 5 degrees of freedom.
    Raises ValueError for a bias that no die can have.

    >>> [round(rolls_needed(bias), -2) for bias in (0.005, 0.01, 0.02)]
    [122400, 30600, 7600]
    """
    if not -1 / 6 <= bias <= 5 / 6 or bias == 0:
        raise ValueError(bias)
    limit = critical(alpha, 5)
    most = 1.0
    while stats.ncx2.sf(limit, 5, most) < power:
        most *= 2
    noncentrality = brentq(lambda value: stats.ncx2.sf(limit, 5, value) - power, 1e-9, most)
    # Sum over faces of (p - 1/6)^2 / (1/6): 6 bias^2 (1 + 1/5).
    return math.ceil(float(noncentrality) / (7.2 * bias**2))


def power_of(bias: float, rolls: int, alpha: float = 0.01) -> float:
    """How likely so many rolls show the bias; see rolls_needed.

    >>> round(power_of(0.01, 30_594), 3)
    0.9
    """
    return float(stats.ncx2.sf(critical(alpha, 5), 5, rolls * 7.2 * bias**2))


def smallest_bias(rolls: int, alpha: float = 0.01, power: float = 0.9) -> float | None:
    """The bias of one face that so many rolls show with probability `power`; None when even 5/6 is not shown.

    >>> round(smallest_bias(30_594), 4)
    0.01
    """
    if rolls < 1 or power_of(5 / 6, rolls, alpha) < power:
        return None
    return float(brentq(lambda bias: power_of(bias, rolls, alpha) - power, 1e-9, 5 / 6))


@dataclass(frozen=True)
class Drift:
    """The drift watch of one dice set: the largest evidence so far, and the roll of the first warning (1.., or None).

    `evidence` is of the die `die` (1..3), as odds against fair dice; a warning comes at `limit`. `drift.Watch` is the
    same while a table plays.
    """

    evidence: float
    die: int
    limit: float
    warned_at: int | None


def drift_paths(rolls: Faces, prior: float = PRIOR) -> Floats:
    """The logarithm of the evidence against each die after each roll, a column a die.

    Evidence is the likelihood of the faces seen, averaged over all dice (a Dirichlet prior of `prior` for each face),
    over that of a fair die. Under a fair die it is a martingale that starts at 1.
    """
    n = len(rolls)
    steps = np.empty(rolls.shape)
    place = np.arange(n)
    for die in range(rolls.shape[1]):
        seen = rolls[:, die].astype(np.int64) - 1
        once = np.zeros((n, 6))
        once[place, seen] = 1.0
        # How often this face had been seen before this roll.
        before = np.cumsum(once, axis=0)[place, seen] - 1
        steps[:, die] = np.log(6 * (prior + before)) - np.log(6 * prior + place)
    return np.cumsum(steps, axis=0)


def drift(rolls: Faces, false_alarms: float = FALSE_ALARMS) -> Drift:
    """Watch a dice set for a bias, roll by roll from its first one.

    The chance that fair dice ever cause a warning, however often one looks and however long they are used, is at most
    `false_alarms` (Ville's inequality), the three dice together (Bonferroni).
    """
    limit = rolls.shape[1] / false_alarms
    if not len(rolls):
        return Drift(1.0, 1, limit, None)
    paths = drift_paths(rolls)
    highest = paths.max(axis=0)
    die = int(highest.argmax())
    over = (paths >= math.log(limit)).any(axis=1)
    warned_at = int(over.argmax()) + 1 if over.any() else None
    return Drift(math.exp(min(float(highest[die]), 700.0)), die + 1, limit, warned_at)
