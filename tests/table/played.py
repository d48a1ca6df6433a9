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
from host_tools.link import LinkError, SerialTransport
from host_tools.store import Store
from tests.virtual import LONG, until

PLAN = Plan(1, {2: {"match": 500, "odd": 100}, 3: {"even": 200}}, {}, [])
NO_WAGERS = Plan(1, {}, {}, [])


class Tap(SerialTransport):
    """A serial port that also keeps every byte that came from the table, over all its openings."""

    def __init__(self, port: str, heard: bytearray) -> None:
        super().__init__(port)
        self._heard = heard

    def read(self, timeout: float) -> bytes:
        data = super().read(timeout)
        self._heard += data
        return data


class Played:
    """A running table with its host. `bench` is what steers what lies on it."""

    def __init__(self, bench: Table, folder: Path, pack: str) -> None:
        self.bench = bench
        self.pack = load(pack)
        self.store = Store(folder / "rounds.db")
        self.heard = bytearray()
        self.lid = VirtualLid(bench)
        self.device = Device(bench.port, self.store, open_transport=lambda port: Tap(port, self.heard))
        self.dealer = Dealer(self.device, self.pack, self.lid, patience=LONG)

    def close(self) -> None:
        self.device.close()
        self.store.close()

    def do(self, name: str, /, **args: Any) -> dict[str, Any]:
        return self.bench.do(name, **args)

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
        if rolls:
            self.do("next", dice=list(rolls))
        plan = plan or (PLAN if self.pack["wagers"] else NO_WAGERS)
        numbers = [self.dealer.play(plan) for _ in rolls or [0]]
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

    def shake(self, *states: str) -> str:
        self.ask("shake")
        return self.wait(*(states or (protocol.LOCKED,)))

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
        return [event["d"] for event in self.store.events(self.device.uid) if event["k"] in kinds]

    def motor_is_off(self) -> bool:
        """Whether the last that both motor pins did was to go low."""
        levels = {edge["pin"]: edge["duty"] for edge in self.bench.state()["edges"]}
        return not any(levels.values())

    def restart(self) -> None:
        """Power off and on; the host says hello again."""
        self.do("power", to="off")
        self.do("power", to="on")
        self.device.reconnect(LONG)

    def write_raw(self, data: bytes) -> None:
        """Another program writes to the port."""
        port = os.open(self.bench.port, os.O_WRONLY | os.O_NOCTTY)
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
        return check_record(self.store, self.device.uid)


def check_record(store: Store, uid: str) -> list[dict[str, Any]]:
    """What must be true of any record of a table whose journal was never damaged; the rounds."""
    events = store.events(uid)
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    rounds = store.rounds(uid, last=1_000_000)
    numbers = [one["round"] for one in rounds]
    assert numbers == list(range(1, len(rounds) + 1))
    assert [event["d"]["round"] for event in events if event["k"] == "opened"] == numbers
    assert {one["status"] for one in rounds[:-1]} <= {"settled", "void"}
    for kind, status in (("settled", "settled"), ("locked", "settled")):
        of_kind = [event["d"]["round"] for event in events if event["k"] == kind]
        over = [one["round"] for one in rounds if one["status"] == status]
        # The last round may be locked and still wait for its lid.
        assert of_kind in (over, [*over, len(rounds)] if kind == "locked" and rounds[-1]["status"] == "open" else over)
    by_round = {event["d"]["round"]: event["d"]["dice"] for event in events if event["k"] == "locked"}
    assert all(by_round[one["round"]] == one["result"]["dice"] for one in rounds if one["status"] == "settled")
    return rounds
