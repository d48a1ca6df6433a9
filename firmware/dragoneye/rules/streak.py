"""The bonus streak (NJ 13:69F-11.21(f)): consecutive triples, and who takes part with how much.

A small state machine without time. `count` is the number of triples in a row so far; while it is above zero, `parts`
maps each player position that held a bonus wager before the first triple to the smallest stake it has held since.
"""

# Why a bonus wager is refused; the protocol's error table gives the words.
LATE = "E_BONUS_LATE"
RAISED = "E_BONUS_RAISE"
FORFEIT = "E_BONUS_FORFEIT"


class Streak:
    """`Streak()` is a table with no streak; `as_dict` and `from_dict` keep it in the journal."""

    def __init__(self):
        self.count = 0
        self.parts = {}
        self.gone = []

    def as_dict(self):
        """The whole state as JSON: {"count", "parts": [[position, stake]...], "gone": [position...]}."""
        return {
            "count": self.count,
            "parts": [[position, self.parts[position]] for position in sorted(self.parts)],
            "gone": sorted(self.gone),
        }

    @staticmethod
    def from_dict(data):
        """The state that as_dict gave."""
        streak = Streak()
        streak.count = data["count"]
        for position, stake in data["parts"]:
            streak.parts[position] = stake
        streak.gone = list(data["gone"])
        return streak

    @property
    def running(self):
        """True after a triple, until a roll that is none."""
        return self.count > 0

    def refusal(self, position, stake):
        """Why `position` may not hold a bonus of `stake` cents now (0: take it off), or None.

        LATE: no bonus was down before the first triple; FORFEIT: it was taken off or the player left; RAISED: more
        than the smallest amount held since the streak began.
        """
        if not self.running or stake == 0:
            return None
        if position in self.gone:
            return FORFEIT
        if position not in self.parts:
            return LATE
        if stake > self.parts[position]:
            return RAISED
        return None

    def hold(self, position, stake):
        """Note that `position` now holds `stake` cents of bonus (0: taken off). True if that changed a running streak.

        The caller has asked `refusal` first.
        """
        if not self.running or position not in self.parts or stake == self.parts[position]:
            return False
        if stake == 0:
            self.leave(position)
        else:
            self.parts[position] = min(stake, self.parts[position])
        return True

    def leave(self, position):
        """The player at `position` left or moved: the part is forfeited. True if there was one."""
        if position not in self.parts:
            return False
        del self.parts[position]
        self.gone.append(position)
        return True

    def stakes(self):
        """The bonus wagers that stay up for the next roll: {position: cents}, empty without a streak."""
        return dict(self.parts)

    def roll(self, triple, bonuses):
        """A roll counted. `bonuses` maps each position with a bonus wager down to its stake in cents.

        Returns the streak before the roll, by which the bonus is paid. A void roll is no roll and never comes here.
        """
        before = self.count
        if not triple:
            self.end()
            return before
        if not self.running:
            self.parts = dict(bonuses)
            self.gone = []
        else:
            # The power may have failed between the record of a lowered wager and the one of its part.
            for position in list(self.parts):
                self.hold(position, bonuses.get(position, 0))
        self.count += 1
        return before

    def end(self):
        """The streak is over: a roll was no triple, the table closed, or dice or shaker changed without a say-so."""
        self.count = 0
        self.parts = {}
        self.gone = []
