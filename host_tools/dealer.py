"""A dealer who plays whole rounds by requests alone, whatever breaks in between, and the plan of what is played.

Each step follows from the table's state, so a round goes on where it stands after a pulled cable, a restarted host or a
power cut: nothing is asked twice, nothing is taken for done.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from boards.virtual.client import TableError
from dragoneye import protocol
from dragoneye.rules.packs import Pack
from host_tools import contested, faults
from host_tools.device import Device
from host_tools.i18n import _
from host_tools.link import LinkClosed, LinkError, Refused, SessionLost
from host_tools.rules import houseway, seating, tiles
from host_tools.store import Store, StoreError

Message = dict[str, Any]

# The lock is a solenoid's pulse: somebody who did not open in time gets another one, not a stream of them.
PULSE_AGAIN_S = 10.0
T = TypeVar("T")


class Lid(Protocol):
    """Whoever opens and shuts the lid."""

    def open(self, device: Device) -> None:
        """Open it after the lock was released."""

    def shut(self, device: Device) -> None:
        """Shut it before the next shake."""


class Steered(Protocol):
    """Something that things can be done to by name: a virtual table, or a real one on a bench."""

    def do(self, name: str, /, **args: Any) -> Message:
        """Do it; raises TableError when it fails."""


class VirtualLid:
    """A lid that is moved by a command, as the virtual table's is over its control channel."""

    def __init__(self, control: Steered) -> None:
        self._control = control

    def open(self, device: Device) -> None:
        try:
            self._control.do("lid", to="open")
        except TableError:
            # Still latched: the lock's pulse takes its time.
            device.poll(0.02)

    def shut(self, device: Device) -> None:
        try:
            self._control.do("lid", to="shut")
        except TableError:
            # The board has just lost its power.
            device.poll(0.02)


class HumanLid:
    """A person at the table, who is told what to do once each time."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._told = ""

    def _tell(self, device: Device, words: str) -> None:
        if self._told != words:
            self._told = words
            self._say(words)
        device.poll(0.2)

    def open(self, device: Device) -> None:
        self._tell(device, _("open the lid"))

    def shut(self, device: Device) -> None:
        self._tell(device, _("shut the lid"))


@dataclass(frozen=True)
class Plan:
    """What is played in one round: who shakes (0 is the dealer), the dice wagers and the tile bets by player position.

    `tiles` is the order in which the 32 tiles are stacked; money is in cents.
    """

    shaker: int
    wagers: dict[int, dict[str, int]]
    tile_bets: dict[int, int]
    tiles: list[tiles.Tile]


def plan_round(rng: random.Random, pack: Pack, streak: Message) -> Plan:
    """A likely round: some seats taken, some wagers each, in whole dollars.

    `streak` is the table's: no bonus is planned that it would refuse.
    """
    seats = range(1, min(6, pack["positions"] - 1) + 1)
    seated = sorted(rng.sample(seats, rng.randint(3, len(seats))))
    shaker = rng.choice([0, *seated])
    wagers: dict[int, dict[str, int]] = {}
    for position in seated:
        chosen = [wager for wager in pack["wagers"] if rng.random() < 0.45]
        if streak["count"] and "bonus" in chosen:
            chosen.remove("bonus")
        if chosen:
            wagers[position] = {wager: 100 * rng.choice((1, 2, 5, 10, 25)) for wager in chosen}
    tile_bets = {position: 100 * rng.choice((10, 15, 25, 50, 100)) for position in seated}
    deck = tiles.deck()
    rng.shuffle(deck)
    return Plan(shaker, wagers, tile_bets, deck)


class Dealer:
    """Plays rounds on `device`; `lid` is who moves the lid."""

    def __init__(self, device: Device, pack: Pack, lid: Lid, patience: float = 60.0) -> None:
        self.device = device
        self.pack = pack
        self.lid = lid
        self.patience = patience
        # Recorded with each round that is opened.
        self.note: str | None = None
        self._pulse_after = 0.0

    def play(self, plan: Plan) -> int:
        """Play one round to its end, settled or void, and return its number.

        Raises LinkError when the table has a fault, or does not get on for `patience` seconds.
        """
        number: int | None = None
        placed: set[int] = set()
        end = self.device.now() + self.patience
        while True:
            if self.device.now() > end:
                raise LinkError(
                    _("round {number} does not get on: the table is {state}").format(
                        number=number, state=self.device.state.get("state")
                    )
                )
            try:
                view = self.device.refresh()
                if number is None and view["state"] not in (protocol.IDLE, protocol.SETTLED):
                    number = view["round"]
                if view["state"] == protocol.IDLE and number is not None:
                    return number
                started = self._step(view, plan, placed)
                if started is not None:
                    number = started
            except Refused as refused:
                if refused.code not in ("E_STATE", "E_LOCKOUT", "E_LID"):
                    raise
                # The table has moved on, or needs a moment: look again.
                self.device.poll(0.05)
            except (LinkClosed, SessionLost):
                self.device.reconnect()
                placed.clear()

    def surely(self, ask: Callable[[], T]) -> T:
        """`ask()`, again after each lost cable or session."""
        while True:
            try:
                return ask()
            except (LinkClosed, SessionLost):
                self.device.reconnect()

    def _step(self, view: Message, plan: Plan, placed: set[int]) -> int | None:
        """Do what the state asks for; the round's number when it was opened just now."""
        device = self.device
        state = view["state"]
        if state != protocol.LOCKED:
            self._pulse_after = 0.0
        if state == protocol.IDLE:
            note = {} if self.note is None else {"note": self.note}
            return int(device.request("open", shaker=plan.shaker, **note)["round"])
        if state == protocol.BETTING:
            for position, wagers in plan.wagers.items():
                if position not in placed:
                    device.request("bets", position=position, wagers=wagers)
                    placed.add(position)
            if self.pack["bets_close"] == "shake":
                device.request("close")
            else:
                self._shake(view)
        elif state == protocol.CLOSED:
            self._shake(view)
        elif state == protocol.VOID:
            if view["call"]:
                device.request("void", reason="too many void rolls")
            else:
                self._shake(view)
        elif state == protocol.LOCKED:
            if view["bets_open"]:
                device.request("close")
            if not view["lid_open"]:
                if device.now() >= self._pulse_after:
                    device.request("unlock")
                    self._pulse_after = device.now() + PULSE_AGAIN_S
                self.lid.open(device)
        elif state == protocol.SETTLED:
            if view["lid_open"]:
                self.lid.shut(device)
                device.poll(0.02)
            else:
                device.request("finish")
        elif state == protocol.FAULT:
            raise LinkError(faults.in_words(view))
        elif state == protocol.TEST:
            raise LinkError(_("the table is in test mode; a technician must leave it first"))
        else:
            device.poll(0.05)
        return None

    def _shake(self, view: Message) -> None:
        if view["lid_open"]:
            self.lid.shut(self.device)
            self.device.poll(0.02)
        elif view.get("lockout_ms"):
            self.device.poll(min(view["lockout_ms"] / 1000, 0.2))
        else:
            self.device.request("shake")


def correct(
    device: Device,
    store: Store,
    number: int,
    reason: str,
    dice: list[int] | None = None,
    position: int | None = None,
    wagers: dict[str, int] | None = None,
    anyway: bool = False,
) -> Message:
    """A supervisor corrects round `number`: its dice, all wagers of one position, or, with neither, it should be void.

    The correction is a record of the table's own; the round as it is stored then (see host_tools.corrections). Wagers
    that the table would have refused when the round was played are refused, unless they shall be so `anyway`. Raises
    contested.Contested for these, StoreError for a round without a result, and when what the table records cannot be
    stored now; Refused and LinkError as `Device.request`.
    """
    told = {"dice": dice, "position": position, "wagers": wagers}
    what = "dice" if dice is not None else "void" if position is None and wagers is None else "bets"
    event = store.settled_event(device.uid, number)
    given: Message = {name: value for name, value in told.items() if value is not None}
    if not anyway:
        contested.check(store, device.uid, {"round": number, **given})
    try:
        device.request("correct", round=number, what=what, event=event, reason=reason, **given)
        device.wait_stored()
    except StoreError as error:
        # Who tried again at once would correct it twice.
        words = _("the table was told; what it has recorded is stored at the next connection, look then ({why})")
        raise StoreError(words.format(why=error)) from None
    return store.round(number, device.uid)


def deal_tiles(
    plan: Plan, total: int, pack: Pack, player_way: str = "max_low", bank_way: str = houseway.OF_TABLE
) -> Message:
    """Deal and settle the tile hands of a round: every seat is dealt, those without a bet are collected.

    The action passes on to the next position with a bet. Deal position 1 is the bank; player position k is deal
    position k + 1, so a tile bet needs k below the number of deal positions. Hands are set by house ways. Returns
    {"start", "deal", "action", "bank": {"high", "low", "rule"}, "players": [{"position", "high", "low", "rule",
    "stake", "result", "net", "commission"}]} with faces as text and money in cents.
    """
    order = seating.order_of_pack(total, pack)
    action = seating.hands_in_play(order, [position + 1 for position in plan.tile_bets]).action
    # A table of eight gets all 32 tiles; with fewer positions the last stacks stay.
    hands = {position: plan.tiles[4 * index : 4 * index + 4] for index, position in enumerate(order.deal)}
    bank = houseway.load(bank_way).set(hands[1], pack["zero_rule"])
    ways = houseway.load(player_way)
    players = []
    for deal_position in action:
        position = deal_position - 1
        mine = ways.set(hands[deal_position], pack["zero_rule"])
        stake = plan.tile_bets[position]
        settled = tiles.settle(mine, bank, stake, pack)
        players.append(
            {
                "position": position,
                **mine.as_dict(),
                "rule": mine.rule,
                "stake": stake,
                "result": settled.result,
                "net": settled.net,
                "commission": settled.commission,
            }
        )
    return {
        "start": order.start,
        "deal": list(order.deal),
        "action": list(action),
        "bank": {**bank.as_dict(), "rule": bank.rule},
        "players": players,
    }
