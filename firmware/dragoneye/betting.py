"""What lies on the table and who may change it: wagers, the shaker's place, the streak. Part of the round's table."""

from dragoneye.errors import BadInput
from dragoneye.protocol import (
    BETTING,
    BETWEEN,
    CLOSED,
    IDLE,
    LOCKED,
    REVEALED,
    ROLLING,
    SETTLED,
    VOID,
    Problem,
)
from dragoneye.rules import wagers
from dragoneye.rules.streak import Streak


class Betting:
    """The wagers of one table; `pack`, `state` and `record` as for `round.Table`, of which this is the first part."""

    def __init__(self, pack, state, record):
        self.pack = pack
        self._record = record
        # (kind, data) of what has happened and is still to be recorded.
        self.unwritten = []
        self.changed = True
        self.state = IDLE
        self.fault = state["fault"]
        self._after_fault = IDLE
        self.round = state["round"]
        self.shaker = state["shaker"]
        self.bets = {}
        self.bets_open = False
        self.streak = Streak.from_dict(state["streak"])
        self._owed = 0

    @property
    def beneath(self):
        """The state, or the one that a latched fault will end in."""
        return self.state if self.fault is None else self._after_fault

    def _need(self, *states):
        if self.state not in states:
            raise Problem("E_STATE", "the table is %s; allowed in %s" % (self.state, ", ".join(states)))

    def _happened(self, kind, data):
        """Record what cannot be undone or refused any more: what is not written now is kept until it can be."""
        if not self.unwritten:
            try:
                if self._record(kind, data):
                    return
            except OSError:
                pass
        self.unwritten.append((kind, data))

    def write_unwritten(self):
        """The journal can be written again: record in order what has happened meanwhile. Raises OSError."""
        while self.unwritten:
            self._record(*self.unwritten[0])
            self.unwritten.pop(0)

    def _bets_list(self):
        return [[position, self.bets[position]] for position in sorted(self.bets)]

    def _put_bets(self, rows):
        self.bets = {}
        for position, stakes in rows:
            self.bets[position] = stakes

    def _liability(self, bets):
        return wagers.liability(bets, self.shaker, self.streak.count, self.pack)

    def _bonuses(self):
        return {position: self.bets[position]["bonus"] for position in self.bets if "bonus" in self.bets[position]}

    def _need_open_bets(self):
        if not self.bets_open:
            if self.state in BETWEEN:
                self._need(BETTING)
            raise Problem("E_BETS_CLOSED")

    def _check_shaker(self, shaker):
        most = self.pack["player_positions"]
        if shaker > most:
            raise Problem(
                "E_ARGS", "shaker: %d; allowed: 0 for the dealer, or a position from 1 to %d" % (shaker, most)
            )

    def _do_shaker(self, fields, now):
        self._need(BETTING, CLOSED, VOID)
        self._check_shaker(fields["shaker"])
        before = self.shaker
        self.shaker = fields["shaker"]
        try:
            self._owed = self._within_limit(self.bets)
        except Problem:
            self.shaker = before
            raise
        return {"shaker": self.shaker, "liability": self._owed}

    def _within_limit(self, bets):
        owed = self._liability(bets)
        most = self.pack["liability_max"]
        # What lowers the debt is never refused: a streak may have carried it over the limit.
        if most is not None and owed > most and owed > self._owed:
            raise Problem("E_LIABILITY", "the table could owe %d cents; the limit is %d" % (owed, most))
        return owed

    def _do_bets(self, fields, now):
        self._need_open_bets()
        position = fields["position"]
        stakes = self._stakes(position, fields["wagers"])
        held = self.bets.get(position, {}).get("bonus", 0)
        if self.streak.running and held and "bonus" not in fields["wagers"]:
            stakes["bonus"] = held
        refusal = self.streak.refusal(position, stakes.get("bonus", 0))
        if refusal is not None:
            raise Problem(refusal)
        bets = dict(self.bets)
        if stakes:
            bets[position] = stakes
        elif position in bets:
            del bets[position]
        owed = self._within_limit(bets)
        if self.streak.running:
            self._need_no_motion()
        after = self._streak_copy()
        held = after.hold(position, stakes.get("bonus", 0))
        why = "bonus lowered" if "bonus" in stakes else "bonus taken off"
        self._change_bets(bets, position, after if held else None, why, owed)
        return {"position": position, "wagers": stakes, "liability": owed}

    def _stakes(self, position, told):
        """The wagers `told` for a position without those of 0 cents. Raises Problem for what the rules do not allow."""
        try:
            wagers.check_position(position, self.pack)
            stakes = {}
            for wager in told:
                wagers.check_wager(wager, position, self.pack)
                if told[wager]:
                    stakes[wager] = wagers.check_stake(told[wager], wager, self.pack)
            return stakes
        except BadInput as error:
            raise Problem("E_WAGER", str(error))

    def _change_bets(self, bets, position, after, why, owed=None):
        """Put `bets` in the place of the table's, and the streak `after` that in the place of its own unless None.

        `owed` is the liability of `bets`, where it is known: to find it takes the Pico some milliseconds.
        """
        if self.beneath == LOCKED and bets != self.bets:
            rows = [[place, bets[place]] for place in sorted(bets)]
            self._record("bets", {"round": self.round, "bets": rows})
            self._take_bets(bets, owed)
        if after is not None:
            self._change_streak(after, why, position)
        self._take_bets(bets, owed)

    def _take_bets(self, bets, owed):
        self.bets = bets
        self._owed = self._liability(bets) if owed is None else owed

    def _need_no_motion(self):
        # A flash write stops interrupts, the lid's among them: never while anything moves.
        if self.state in ROLLING:
            raise Problem("E_STATE", "the table is %s; allowed before the shake or after it" % self.state)

    def _do_leave(self, fields, now):
        position = fields["position"]
        if not self.bets_open and self.beneath not in BETWEEN:
            raise Problem("E_BETS_CLOSED", "the wagers of this roll stand; a player can leave after it")
        self._need_no_motion()
        bets = dict(self.bets)
        bets.pop(position, None)
        after = self._streak_copy()
        self._change_bets(bets, position, after if after.leave(position) else None, "player left")
        return {"position": position, "streak": self.streak.as_dict()}

    def _streak_copy(self):
        return Streak.from_dict(self.streak.as_dict())

    def _change_streak(self, after, why, position=0, record=None):
        """Record the streak as it is `after` something, by `record` or as usual; then it is so."""
        record = record or self._record
        record("streak", {"why": why, "position": position, "streak": after.as_dict()})
        self.streak = after
        self._owed = self._liability(self.bets)

    def resume_streak(self, streak):
        """The host holds more rolls than this table does: the streak (see Streak.as_dict) is the one after them."""
        self.streak = Streak.from_dict(streak)
        self.unwritten = [row for row in self.unwritten if row[0] != "streak"]
        self._owed = self._liability(self.bets)
        self.changed = True

    def _do_close(self, fields, now):
        if not self.bets_open:
            if self.state in (IDLE, SETTLED, REVEALED):
                self._need(BETTING)
            raise Problem("E_BETS_CLOSED", "bets are closed already")
        self._need_no_motion()
        self._close_bets()
        return {"round": self.round, "liability": self._owed}

    def _close_bets(self, record=None):
        record = record or self._record
        record(
            "closed",
            {
                "round": self.round,
                "shaker": self.shaker,
                "bets": self._bets_list(),
                "liability": self._owed,
            },
        )
        self.bets_open = False
        if self.state == BETTING:
            self.state = CLOSED

    def _end_betting(self):
        """Whoever moves the lid ends the betting: nobody may bet on what can be seen, whatever the flash does."""
        if self.beneath == LOCKED and self.bets_open:
            self.changed = True
            self._close_bets(self._happened)

    def _do_changed(self, fields, now):
        if self.beneath in ROLLING or self.beneath in (LOCKED, REVEALED):
            raise Problem("E_STATE", "the table is %s; change units between rolls" % self.beneath)
        if self.streak.running and not fields["keep"]:
            self._change_streak(Streak(), fields["unit"] + " changed")
        else:
            self._change_streak(self.streak, fields["unit"] + " changed, streak kept")
        return {"streak": self.streak.as_dict()}

    def _do_end(self, fields, now):
        if self.fault is None:
            self._need(IDLE, SETTLED)
        elif self._after_fault not in BETWEEN:
            raise Problem("E_STATE", "a round is open; clear the fault and finish or void it first")
        self._change_streak(Streak(), "table closed")
        return {"streak": self.streak.as_dict()}
