"""Corrections of wagers that the table would have refused when the round was played: 11.21(f), and the liability limit.

The streak is worked out from the record as it was before the round: by what was rolled, by who left, and by the wagers
of each round as its own corrections leave them. So a bonus that was forgotten before a first triple can be corrected
there, and then in the rounds after it, in their order.
"""

from __future__ import annotations

from typing import Any

from dragoneye.errors import BadInput
from dragoneye.rules import wagers
from dragoneye.rules.streak import Streak
from host_tools import codes
from host_tools.corrections import Bets, Message
from host_tools.i18n import _, controller
from host_tools.store import Store, StoreError

LIABILITY = "E_LIABILITY"
# How a record says that a part was forfeited because its player went (dragoneye.betting, request `leave`).
LEFT = "player left"
_KINDS = ("opened", "closed", "locked", "bets", "settled", "void", "streak", "restart", "correction")


class Contested(BadInput):
    """A correction that the table would have refused as a request: `code` is one of protocol's, `why` its words."""

    def __init__(self, number: int, position: int, code: str, why: str) -> None:
        words = _("round {number}, position {position}: {why} ({code}); the table would have refused this")
        super().__init__(words.format(number=number, position=position, why=why, code=code))
        self.code = code
        self.why = why


class _Replay:
    """A table's streak from record to record; `told` are the corrections of wagers that count, by round."""

    def __init__(self, streak: Streak, told: dict[int, list[Message]]) -> None:
        self.streak = streak
        self.told = told
        self.bets: Bets = {}
        # Bonuses that were lowered or taken off in the round that is open: its wagers say so too, once it is settled.
        self._lowered: list[tuple[int, int]] = []

    def bets_of(self, number: int) -> Bets:
        """The wagers that count of a round whose recorded ones were last."""
        bets = dict(self.bets)
        for one in self.told.get(number, ()):
            bets[one["position"]] = one["wagers"]
        return bets

    def take(self, kind: str, data: Message) -> None:
        """One more record."""
        if kind == "opened" or (kind == "void" and data["over"]):
            for position, stake in self._lowered:
                self.streak.hold(position, stake)
            self._lowered = []
        if kind == "opened":
            self.bets = {}
        elif kind in ("closed", "locked", "bets"):
            self.bets = dict(data["bets"])
        elif kind == "settled":
            held = {position: stakes.get("bonus", 0) for position, stakes in self.bets_of(data["round"]).items()}
            self._lowered = []
            self.streak.roll(wagers.is_triple(data["dice"]), {place: stake for place, stake in held.items() if stake})
        elif kind == "streak":
            self._streak(data)
        elif kind == "restart" and data["state"]["streak"]["count"] != self.streak.count:
            self.streak = Streak.from_dict(data["state"]["streak"])

    def _streak(self, data: Message) -> None:
        if not data["streak"]["count"]:
            self.streak.end()
        elif data["position"] and data["why"] == LEFT:
            self.streak.leave(data["position"])
        elif data["position"]:
            self._lowered.append((data["position"], dict(map(tuple, data["streak"]["parts"])).get(data["position"], 0)))


def before_round(store: Store, uid: str, number: int, until: int | None = None) -> tuple[Streak, Bets, Message]:
    """(streak before the roll, wagers, settled record's data) of a settled round, as all corrections leave them.

    Only corrections before the event `until` count. Raises StoreError for a round without a result.
    """
    settled = store.settled_event(uid, number)
    start, state = store.streak_start(uid, settled)
    told: dict[int, list[Message]] = {}
    for record in store.stream_events(uid, ("correction",), first=start + 1, last=until and until - 1):
        if record["d"]["what"] == "bets":
            told.setdefault(record["d"]["round"], []).append(record["d"])
    replay = _Replay(Streak.from_dict(state), told)
    for record in store.stream_events(uid, _KINDS, first=start + 1, last=settled):
        if record["id"] == settled:
            return replay.streak, replay.bets_of(number), dict(record["d"])
        replay.take(record["k"], record["d"])
    raise StoreError(_("round {number} has no result that could be corrected").format(number=number))


def refusal(
    store: Store, uid: str, number: int, position: int, stakes: dict[str, int], until: int | None = None
) -> tuple[str, str] | None:
    """(code, words) why the table would not have taken `stakes` as all wagers of `position` in a settled round.

    None where it would have. `stakes` are cents by wager; only corrections before the event `until` count. Raises
    StoreError.
    """
    streak, bets, result = before_round(store, uid, number, until)
    bonus = stakes.get("bonus", 0)
    code = streak.refusal(position, bonus)
    if code is not None:
        return code, controller(codes.ERRORS[code])
    try:
        pack = store.pack_of(uid, number)
    except StoreError:
        # It is not settled anew either, where the rules are not known.
        return None
    most = pack["liability_max"]
    if most is not None:
        after = {**bets, position: {wager: stake for wager, stake in stakes.items() if stake}}
        known = all(wager in pack["wagers"] for wager in after[position])
        owed, owed_before = (
            wagers.liability(one, result["shaker"], result["before"], pack) if known else 0 for one in (after, bets)
        )
        if owed > most and owed > owed_before:
            return LIABILITY, controller(f"the table could owe {owed} cents; the limit is {most}")
    return None


def check(store: Store, uid: str, correction: dict[str, Any]) -> None:
    """Raise Contested for a correction (the fields of a request `correct`) that the table would have refused."""
    position, stakes = correction.get("position"), correction.get("wagers")
    if correction.get("what", "bets") != "bets" or position is None or stakes is None:
        return
    found = refusal(store, uid, correction["round"], position, stakes)
    if found is not None:
        raise Contested(correction["round"], position, *found)
