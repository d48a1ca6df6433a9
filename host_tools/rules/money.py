"""Money as integer cents: shares and commission without a fraction ever being lost."""

from __future__ import annotations

from host_tools.rules.check import whole, word

ROUNDINGS = ("nearest", "down", "up")


def share(cents: int, basis_points: int, rounding: str = "nearest") -> int:
    """`basis_points`/10,000 of `cents` (both not negative), in whole cents; "nearest" rounds half a cent up.

    Raises BadInput. Pai gow tiles take a commission of 500 basis points (trade practice; no clause of the texts).

    >>> share(10_000, 500), share(1010, 500), share(1010, 500, "down"), share(1001, 500, "up")
    (500, 51, 50, 51)
    """
    whole(cents, 0, 10**15, "cents")
    whole(basis_points, 0, 10_000, "basis points")
    added = {"nearest": 5_000, "down": 0, "up": 9_999}[word(rounding, ROUNDINGS, "rounding")]
    return (cents * basis_points + added) // 10_000
