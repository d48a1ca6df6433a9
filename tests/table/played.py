"""A whole table for tests: a bench or a board, the host's device on its port, and the steps of a round."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from boards.virtual.client import Table, TableError
from dragoneye import protocol
from dragoneye.rules.packs import load
from host_tools.dealer import Dealer, Plan, VirtualLid
from host_tools.device import Device
from host_tools.hil.rigged import Rigged
from host_tools.link import LinkError, Refused, SerialTransport
from host_tools.store import Store
from tests.virtual import LONG, until

PLAN = Plan(1, {2: {"match": 500, "odd": 100}, 3: {"even": 200}}, {}, [])
NO_WAGERS = Plan(1, {}, {}, [])

# What the firmware makes of a processor that others keep from it for long in the midst of a roll: a jolt that nobody
# attends to is stopped, a reading takes too long. A dealer shakes again.
STALLED = ("no_shake", "shake_timeout", "read_timeout")


class Tap(SerialTransport):
    """A serial port that also keeps every byte that came from the table, over all its openings."""

    def __init__(self, port: str, heard: bytearray) -> None:
        super().__init__(port)
        self._heard = heard

    def read(self, timeout: float) -> bytes:
        data = super().read(timeout)
        self._heard += data
        return data


class RigLid(VirtualLid):
    """A lid that a bench or a person moves: asked for again only when the table has not seen it move for a while."""

    SEEN_S = 3.0

    def open(self, device: Device) -> None:
        super().open(device)
        self._seen(device, True)

    def shut(self, device: Device) -> None:
        super().shut(device)
        self._seen(device, False)

    def _seen(self, device: Device, is_open: bool) -> None:
        end = device.now() + self.SEEN_S
        while device.refresh()["lid_open"] != is_open and device.now() < end:
            device.poll(0.05)


class Played:
    """A running table with its host. `bench` is what steers what lies on it: a virtual table, or a bench's rig.

    `record` is where its rounds are stored; what was stored before is none of the test's. `pack` is the rule pack that
    it plays by (None: what it says).
    """

    def __init__(
        self, bench: Table | Rigged, record: Path | str, pack: str | None = None, patience: float = LONG
    ) -> None:
        self._bench = bench
        self.store = Store(record)
        self.heard = bytearray()
        self.lid = RigLid(bench) if isinstance(bench, Rigged) else VirtualLid(bench)
        self.device = Device(bench.port, self.store, open_transport=lambda port: Tap(port, self.heard))
        self.pack = load(pack or self.device.table["pack"])
        self.dealer = Dealer(self.device, self.pack, self.lid, patience=patience)
        self._since = (0, 0)

    @property
    def bench(self) -> Table:
        """The virtual table, for tests that look into one; they skip where there is none."""
        if isinstance(self._bench, Rigged):
            self._bench.state()
        assert isinstance(self._bench, Table)
        return self._bench

    @property
    def port(self) -> str:
        return self._bench.port

    @property
    def is_virtual(self) -> bool:
        """Whether the inside of the table can be looked at."""
        return isinstance(self._bench, Table)

    def make_ready(self) -> None:
        """A table that others have played on: between rounds, lid shut, no fault, no streak; the test begins here."""
        until(self._idle, "the table to be between rounds, with its lid shut")
        if self.device.state["streak"]["count"]:
            self.ask("end")
        self.device.wait_stored(LONG)
        self._since = self.store.last(self.device.uid)

    def _idle(self) -> bool:
        view = self.device.refresh()
        state = view["state"]
        if state == protocol.IDLE and not view["lid_open"]:
            return not view.get("lockout_ms")
        with suppress(Refused, TableError):
            if state == protocol.FAULT:
                self.ask("clear", code=view["fault"])
            elif state == protocol.TEST:
                self.ask("test", on=False)
            elif state == protocol.LOCKED and not view["lid_open"]:
                self.ask("unlock")
                self.lid.open(self.device)
            elif view["lid_open"] and state != protocol.LOCKED:
                self.lid.shut(self.device)
            elif state == protocol.SETTLED:
                self.ask("finish")
            elif state in (protocol.BETTING, protocol.CLOSED, protocol.VOID):
                self.ask("void", reason="a test begins")
        return False

    def close(self) -> None:
        self.device.close()
        self.store.close()

    def do(self, name: str, /, **args: Any) -> dict[str, Any]:
        return self._bench.do(name, **args)

    def ask(self, name: str, /, **fields: Any) -> dict[str, Any]:
        return self.device.request(name, **fields)

    @property
    def state(self) -> str:
        return str(self.device.refresh()["state"])

    def wait(self, *states: str) -> str:
        """Wait for one of these states."""
        return str(until(lambda: (state := self.state) in states and state, f"{', '.join(states)}"))

    def play(self, *rolls: list[int], plan: Plan | None = None) -> list[dict[str, Any]]:
        """Play a round for each roll (or one); the stored rounds."""
        plan = plan or (PLAN if self.pack["wagers"] else NO_WAGERS)
        numbers = []
        for roll in rolls or [None]:
            if roll is not None:
                self.do("next", dice=roll)
            numbers.append(self.dealer.play(plan))
        self.device.wait_stored(LONG)
        return [self.store.round(number, self.device.uid) for number in numbers]

    def begin(self, dice: list[int] | None = None) -> int:
        """Open a round up to where the shaker may run; its number."""
        if dice:
            self.do("next", dice=dice)
        number = int(self.ask("open", shaker=PLAN.shaker)["round"])
        if self.pack["wagers"]:
            for position, wagers in PLAN.wagers.items():
                self.ask("bets", position=position, wagers=wagers)
        if self.pack["bets_close"] == "shake":
            self.ask("close")
        return number

    def may_shake(self) -> None:
        """Wait until the lock-out from the last shake is over."""
        until(lambda: not self.device.refresh().get("lockout_ms"), "the end of the lock-out")

    def shake(self, *states: str) -> str:
        """Shake until one of these states, or a locked result."""
        wanted = states or (protocol.LOCKED,)
        while True:
            self.may_shake()
            self.ask("shake")
            state = self.wait(*wanted, protocol.VOID, protocol.FAULT)
            if state in wanted:
                return state
            view = self.device.state
            assert view.get("void") in STALLED, view
            assert not view["call"], view

    def shake_to_void(self, reason: str) -> None:
        """Shake until the roll is void for this reason; a roll that a busy computer made void is shaken again."""
        while self.shake(protocol.LOCKED, protocol.VOID) == protocol.VOID and self.device.state["void"] in STALLED:
            pass
        assert (self.device.state["state"], self.device.state["void"]) == (protocol.VOID, reason)

    def finish(self) -> dict[str, Any]:
        """From where the table is to the end of the round; the stored round."""
        view = self.device.refresh()
        number = view["round"]
        if view["state"] == protocol.SETTLED:
            self.lid.shut(self.device)
            self.ask("finish")
        else:
            assert self.dealer.play(PLAN) == number
        self.device.wait_stored(LONG)
        return self.store.round(number, self.device.uid)

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        """The data of the stored records of these kinds."""
        self.device.wait_stored(LONG)
        events = self.store.events(self.device.uid)
        return [event["d"] for event in events if event["id"] > self._since[0] and event["k"] in kinds]

    def roll(self) -> None:
        """Shake, and wait until the motor is seen to run."""
        self.may_shake()
        self.ask("shake")
        until(self.motor_turns, "the motor")

    def motor_turns(self) -> bool:
        """Whether the motor runs."""
        if isinstance(self._bench, Rigged):
            return self._bench.look("motor") == "on"
        return bool(self.bench.state()["turning"])

    def motor_is_off(self) -> bool:
        """Whether the last that both motor pins did was to go low."""
        if isinstance(self._bench, Rigged):
            return self._bench.look("motor") == "off"
        levels = {edge["pin"]: edge["duty"] for edge in self.bench.state()["edges"]}
        return not any(levels.values())

    def unlock(self) -> None:
        """Let the lid go: the bolt is free a moment later."""
        self.ask("unlock")
        if self.is_virtual:
            until(lambda: self.bench.state()["released"], "the bolt")

    def reveal(self) -> None:
        """Unlock, open the lid, and wait until the round is settled."""
        self.unlock()
        until(self._opens, "the lid")

    def _opens(self) -> bool:
        self.lid.open(self.device)
        return self.state == protocol.SETTLED

    def restart(self) -> None:
        """Power off and on; the host says hello again."""
        self.do("power", to="off")
        self.do("power", to="on")
        self.device.reconnect(LONG)

    def write_raw(self, data: bytes) -> None:
        """Another program writes to the port."""
        port = os.open(self.port, os.O_WRONLY | os.O_NOCTTY)
        try:
            while data:
                data = data[os.write(port, data) :]
        finally:
            os.close(port)

    def reconnects(self) -> bool:
        """Whether the table answers again."""
        with suppress(LinkError, TableError):
            self.device.reconnect(0.0)
            return True
        return False

    def check_record(self) -> list[dict[str, Any]]:
        """Every event once and in order, every round once; each but the last is over. Returns the rounds."""
        self.device.wait_stored(LONG)
        return check_record(self.store, self.device.uid, *self._since)


def check_record(store: Store, uid: str, since_event: int = 0, since_round: int = 0) -> list[dict[str, Any]]:
    """What must be true of any record of a table whose journal was never damaged; the rounds.

    Of a record that is older than the test, what came after that event and that round.
    """
    events = [event for event in store.events(uid) if event["id"] > since_event]
    assert [event["id"] for event in events] == list(range(since_event + 1, since_event + len(events) + 1))
    rounds = [one for one in store.rounds(uid, last=1_000_000) if one["round"] > since_round]
    numbers = [one["round"] for one in rounds]
    assert numbers == list(range(since_round + 1, since_round + len(rounds) + 1))
    assert [event["d"]["round"] for event in events if event["k"] == "opened"] == numbers
    assert {one["status"] for one in rounds[:-1]} <= {"settled", "void"}
    for kind, status in (("settled", "settled"), ("locked", "settled")):
        of_kind = [event["d"]["round"] for event in events if event["k"] == kind]
        over = [one["round"] for one in rounds if one["status"] == status]
        # The last round may be locked and still wait for its lid.
        assert of_kind in (over, [*over, numbers[-1]] if kind == "locked" and rounds[-1]["status"] == "open" else over)
    by_round = {event["d"]["round"]: event["d"]["dice"] for event in events if event["k"] == "locked"}
    assert all(by_round[one["round"]] == one["result"]["dice"] for one in rounds if one["status"] == "settled")
    return rounds
