"""The drift watch of one dice set, roll by roll in constant memory: what a server looks at while a table plays.

host_tools.statistics.drift says the same of many rolls at once, with the mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

DICE = 3
# As if each face had been seen so often before. See `host_tools.statistics.drift`.
PRIOR = 100.0
# The chance that fair dice ever cause a warning.
FALSE_ALARMS = 0.01


@dataclass(frozen=True)
class Warned:
    """The first warning: of which die (1..3), at which roll of the set (1..) and in which round."""

    die: int
    roll: int
    round: int


class Watch:
    """The evidence against each of three dice; `warned` is the first warning, which stands for the set."""

    def __init__(self, false_alarms: float = FALSE_ALARMS) -> None:
        self.rolls = 0
        self.warned: Warned | None = None
        self._limit = math.log(DICE / false_alarms)
        self._seen = [[0] * 6 for _die in range(DICE)]
        self._evidence = [0.0] * DICE

    def add(self, dice: Sequence[int], number: int) -> None:
        """Take in the faces (1..6) of round `number`, which nobody entered by hand."""
        for die, face in enumerate(dice):
            seen = self._seen[die]
            self._evidence[die] += math.log(6 * (PRIOR + seen[face - 1])) - math.log(6 * PRIOR + self.rolls)
            seen[face - 1] += 1
        self.rolls += 1
        strongest = max(range(DICE), key=self._evidence.__getitem__)
        if self.warned is None and self._evidence[strongest] >= self._limit:
            self.warned = Warned(strongest + 1, self.rolls, number)
