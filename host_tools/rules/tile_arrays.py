"""Pai gow tile hands by the thousand, with numpy: ranks of many hands at once, and every four-tile hand set one way.

Tiles are the numbers of `Tile`, 0 to 20. Hands of the whole game are of 32 *different* tiles, numbered as in `deck()`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dragoneye.errors import BadInput
from host_tools.i18n import _
from host_tools.rules import tiles
from host_tools.rules.check import word
from host_tools.rules.houseway import HandCondition, HouseWay, SplitCondition
from host_tools.rules.tiles import Tile

Ints = npt.NDArray[np.int64]
Tiles = npt.NDArray[np.integer]
Strengths = npt.NDArray[np.int16]

TABLES = {rule: np.array(tiles.table(rule), dtype=np.int16) for rule in tiles.ZERO_RULES}

# The three ways to part four tiles in two and two.
PARTINGS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))


def strengths(hands: Tiles, zero_rule: str = "high_tile") -> Strengths:
    """The strengths of n two-tile hands: an (n, 2) array of tile numbers in, (n,) of 1 to 106 out; 0 if not of one set.

    By NJ 13:69F-10.2(b) to (h). Raises BadInput if the shape is another or a number is no tile.

    >>> strengths(np.array([[Tile.T66, Tile.T45], [Tile.T24, Tile.T12], [Tile.T12, Tile.T12]])).tolist()
    [90, 106, 0]
    """
    _check_shape(hands, 2)
    if hands.dtype.itemsize > 1:
        _check_numbers(hands)
    # The two bytes of a hand read as one number; the table is symmetric, so the order of bytes does not matter.
    codes = np.ascontiguousarray(hands, dtype=np.uint8).view(np.uint16).ravel()
    found = _by_bytes(zero_rule).take(codes)
    if hands.dtype.itemsize == 1 and found.size and found.min() < 0:
        _check_numbers(hands)
    return found


@lru_cache(maxsize=2)
def _by_bytes(zero_rule: str) -> Strengths:
    table = np.full((256, 256), -1, dtype=np.int16)
    table[: len(Tile), : len(Tile)] = TABLES[word(zero_rule, tiles.ZERO_RULES, "zero_rule")]
    return table.ravel()


def split_strengths(hands: Tiles) -> tuple[Strengths, Strengths]:
    """(high, low) strengths of the three splits of n four-tile hands: an (n, 4) array in, two of (n, 3) out.

    The splits are 0 1 / 2 3, then 0 2 / 1 3, then 0 3 / 1 2, ranked with zeros by their best tile (NJ 13:69F-10.2(f),
    (g)). Raises BadInput.

    >>> high, low = split_strengths(np.array([[Tile.T66, Tile.T66, Tile.T45, Tile.T44]]))
    >>> high.tolist(), low.tolist()
    ([[105, 90, 90]], [[66, 88, 88]])
    """
    _check_shape(hands, 4)
    _check_numbers(hands)
    table = TABLES["high_tile"]
    one = np.stack([table[hands[:, a], hands[:, b]] for a, b, _c, _d in PARTINGS], axis=1)
    two = np.stack([table[hands[:, c], hands[:, d]] for _a, _b, c, d in PARTINGS], axis=1)
    return np.maximum(one, two), np.minimum(one, two)


def _check_shape(hands: Tiles, width: int) -> None:
    if hands.ndim != 2 or hands.shape[1] != width or not np.issubdtype(hands.dtype, np.integer):
        raise BadInput(
            _("hands have shape {shape}; needed: whole numbers of shape (n, {width})").format(
                shape=hands.shape, width=width
            )
        )


def _check_numbers(hands: Tiles) -> None:
    if hands.size and (hands.min() < 0 or hands.max() >= len(Tile)):
        raise BadInput(_("a tile's number is outside 0 to {last}").format(last=len(Tile) - 1))


@lru_cache(maxsize=1)
def all_hands() -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """All 35,960 four-tile hands: (35960, 4) places in `deck()`, ascending, and the tile numbers at these places.

    One set is of 32 tiles (NJ 13:69F-10.2(a)).

    >>> all_hands()[0].shape, all_hands()[1][0].tolist()
    ((35960, 4), [0, 0, 1, 1])
    """
    places = np.array(list(combinations(range(32), 4)), dtype=np.int8)
    return places, np.array(tiles.deck(), dtype=np.int8)[places]


@lru_cache(maxsize=16)
def set_all(way: HouseWay, zero_rule: str = "high_tile") -> tuple[Strengths, Strengths]:
    """The (high, low) strengths of every hand of `all_hands()` set by a house way: two arrays of (35960,).

    In one stack tiles are set the house way (card room sheet, rule 6).

    >>> from host_tools.rules import houseway
    >>> [int(strength[0]) for strength in set_all(houseway.load("max_low"))]
    [105, 104]
    """
    _places, faces = all_hands()
    codes = faces.astype(np.int64) @ np.array([21**3, 21**2, 21, 1])
    _codes, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    four = faces[first].astype(np.intp)
    # Each of the three splits as two numbers of 21 x 21: its high and its low hand, of two copies as in tiles.splits.
    one = np.stack([four[:, a] * len(Tile) + four[:, b] for a, b, _c, _d in PARTINGS], axis=1)
    two = np.stack([four[:, c] * len(Tile) + four[:, d] for _a, _b, c, d in PARTINGS], axis=1)
    ranked = TABLES["high_tile"].ravel()
    swapped = (ranked[two] > ranked[one]) | ((ranked[two] == ranked[one]) & (one > two))
    high, low = np.where(swapped, two, one), np.where(swapped, one, two)
    strength = TABLES[word(zero_rule, tiles.ZERO_RULES, "zero_rule")].ravel()
    by_name = {"high": strength[high].astype(np.int64), "low": strength[low].astype(np.int64)}
    chosen: npt.NDArray[np.intp] = np.full(len(four), -1)
    for rule in way.rules:
        played = _holds(rule.play, high, low)
        applies = (chosen < 0) & _holds(rule.if_, high, low).any(axis=1) & played.any(axis=1)
        if rule.unless is not None:
            applies &= ~_holds(rule.unless, high, low).any(axis=1)
        worth = np.zeros_like(by_name["high"])
        for which in rule.prefer:
            worth = worth * 128 + by_name[which]
        chosen = np.where(applies, np.where(played, worth, -1).argmax(axis=1), chosen)
    every = np.arange(len(four))
    by_faces = [by_name[which][every, chosen].astype(np.int16) for which in ("high", "low")]
    return by_faces[0][inverse], by_faces[1][inverse]


def _holds(asked: SplitCondition, high: Ints, low: Ints) -> npt.NDArray[np.bool_]:
    """Where the splits, by the numbers of their hands, are what is asked for: as SplitCondition.holds, for many."""
    one, other = _wanted(asked.one), _wanted(asked.other)
    either = (one[high] & other[low]) | (one[low] & other[high])
    found: npt.NDArray[np.bool_] = _wanted(asked.high)[high] & _wanted(asked.low)[low] & either
    return found


@lru_cache(maxsize=256)
def _wanted(asked: HandCondition) -> npt.NDArray[np.bool_]:
    """The 21 x 21 hands by number: True for those that are asked for."""
    wanted = np.zeros(len(Tile) ** 2, dtype=np.bool_)
    wanted[[first * len(Tile) + second for first, second in asked.hands]] = True
    return wanted
