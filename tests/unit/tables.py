"""A table for tests: the round with a clock of its own and records in memory, or a whole controller with a journal.

`Rig` drives dragoneye.round.Table, `Desk` a Controller as a host would. Both play real steps only: `reach` and `roll`
use requests and inputs, never an attribute.
"""

from __future__ import annotations

import copy
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoneye import config, protocol, round
from dragoneye.controller import Controller
from dragoneye.journal import Journal
from dragoneye.keys import Gate, Key
from dragoneye.protocol import (
    BETTING,
    CLOSED,
    FAULT,
    IDLE,
    LOCKED,
    READING,
    SETTLED,
    SETTLING,
    SHAKING,
    TEST,
    VOID,
    Problem,
)
from dragoneye.rules import packs, reading
from host_tools import codes

Json = dict[str, Any]

DICE = [[f"04E000{die}{face}" for face in range(1, 7)] for die in (1, 2, 3)]
REGISTRY = reading.registry_of(DICE)
EYE = 1
FOREIGN = "BADC0DE"
SHAKE_MS = 2000

WAGERS = {"match": 500, "even": 200, "odd": 300, "double": 100, "triple": 100, "bonus": 100}

# Each state that outlasts a step; REVEALED is passed within the one that opens the lid.
LASTING = (IDLE, BETTING, CLOSED, SHAKING, SETTLING, READING, LOCKED, SETTLED, VOID, FAULT, TEST)


def pack_named(name: str, **options: object) -> Any:
    """nj, pr, ca, or "house": bets stay open until the reveal, as in ca, and there are dice wagers, as in nj."""
    if name == "house":
        options = {"wagers": list(packs.WAGERS), **options}
        name = "ca"
    return packs.load(name).with_options(options)


def tags_of(dice: list[int]) -> set[str]:
    """The tags that the reader sees when the dice show this: those of the faces below."""
    return {DICE[die][6 - value] for die, value in enumerate(dice)}


class PowerCut(BaseException):
    """The power fails here: nothing of the table lives on but its records."""


class Steps:
    """The steps of a round over `table`, for both kinds of test table."""

    table: Any
    now: int

    def ask(self, name: str, **fields: Any) -> Any:
        raise NotImplementedError

    def tell(self, action: str, *arguments: Any) -> None:
        raise NotImplementedError

    def wait(self, milliseconds: int) -> None:
        """Let time pass; the table is told at its end."""
        self.now += milliseconds
        self.tell("tick")

    def wait_out(self) -> None:
        """Wait until the shaker may run again."""
        self.wait(self.table.view(self.now).get("lockout_ms", 0))

    @property
    def state(self) -> str:
        return str(self.table.state)

    def view(self) -> Json:
        view: Json = self.table.view(self.now)
        return view

    def effects(self, kind: str) -> list[Any]:
        """The values of the effects of this kind since the last call of any; all others are dropped."""
        return [value for effect, value in self.table.take_effects() if effect == kind]

    def shake(self, jolts: int = 0) -> int:
        """Ask for a shake and return the roll's number."""
        self.table.take_effects()
        self.ask("shake", jolts=jolts)
        [(roll, _jolts)] = self.effects(round.SHAKE)
        return int(roll)

    def settle(self, roll: int) -> None:
        """From the shake on until the reader has been asked."""
        self.now += SHAKE_MS
        self.tell("shaken", roll, True)
        self.wait(self.table.settings["settle_ms"])

    def show(self, roll: int, dice: list[int]) -> None:
        """Two passes that agree."""
        self.tell("tags", roll, tags_of(dice))
        self.tell("tags", roll, tags_of(dice))

    def roll(self, dice: list[int]) -> int:
        """Shake, settle and read."""
        self.wait_out()
        roll = self.shake()
        self.settle(roll)
        self.show(roll, dice)
        return roll

    def open_lid(self) -> None:
        self.tell("lid", True)

    def play(self, dice: list[int], bets: dict[int, dict[str, int]] | None = None, shaker: int = 1) -> None:
        """A whole round, from IDLE to IDLE."""
        self.ask("open", shaker=shaker)
        for position, stakes in (bets or {}).items():
            self.ask("bets", position=position, wagers=stakes)
        if self.table.pack["bets_close"] == "shake":
            self.ask("close")
        self.roll(dice)
        self.open_lid()
        self.tell("lid", False)
        self.ask("finish")

    def reach(self, state: str, dice: list[int] | None = None) -> Any:
        """From IDLE to this state by real steps. Returns the roll's number where one is under way."""
        dice = dice or [2, 3, 5]
        if state == FAULT:
            self.tell("set_fault", "READER", "no answer")
        if state == TEST:
            self.ask("test", on=True)
        if state in (IDLE, FAULT, TEST):
            return None
        self.ask("open", shaker=1)
        if self.table.pack["wagers"]:
            self.ask("bets", position=1, wagers={"match": 500, "bonus": 100})
        if state == BETTING:
            return None
        if self.table.pack["bets_close"] == "shake" or state == CLOSED:
            self.ask("close")
        if state == CLOSED:
            return None
        self.wait_out()
        roll = self.shake()
        if state == SHAKING:
            return roll
        if state == VOID:
            self.now += SHAKE_MS
            self.tell("shaken", roll, False)
            self.wait_out()
            return roll
        if state == SETTLING:
            self.now += SHAKE_MS
            self.tell("shaken", roll, True)
            return roll
        self.settle(roll)
        if state == READING:
            return roll
        self.show(roll, dice)
        if state == LOCKED:
            return roll
        self.open_lid()
        assert state == SETTLED
        return roll


class Rig(Steps):
    """A Table, its records and its clock.

    `cut` counts down the records until the power fails: 0 before the next one is written, 1 right after it, and so on.
    """

    def __init__(self, pack: str | Any = "nj", now: int = 1000, settings: Json | None = None) -> None:
        self.pack = pack_named(pack) if isinstance(pack, str) else pack
        self.settings = settings or {}
        self.now = now
        self.records: list[Json] = []
        self.durable: Json = round.initial()
        self.boots = 0
        # What lies in the table's flash, beside the records: a restart finds it there.
        self.dice_set: Json = config.dice_set_of({"dice": DICE, "eye": EYE})
        self.cut: int | None = None
        self.watch: Callable[[str], None] = lambda kind: None
        self.restart()

    def restart(self) -> None:
        """The power comes back: a new table from what the records say. Its clock starts again."""
        self.cut = None
        self.boots += 1
        self._record("boot", {})
        self.table = round.Table(
            self.pack, REGISTRY, EYE, self.settings, self.durable, self._record, self.now, dice_set=self.dice_set
        )
        self.table.save_dice = self._save_dice

    def _save_dice(self, stored: Json) -> Json:
        self.dice_set = config.dice_set_of(stored)
        return self.dice_set

    def _record(self, kind: str, data: Json) -> int:
        if self.cut == 0:
            raise PowerCut
        # What is stored is JSON: later changes to the table's own lists and dicts do not reach it.
        text = json.dumps({"id": len(self.records) + 1, "k": kind, "b": self.boots, "t": self.now, "d": data})
        record = json.loads(text)
        self.records.append(record)
        self.durable = json.loads(json.dumps(round.fold(self.durable, record)))
        if hasattr(self, "table"):
            self.watch(kind)
        if self.cut is not None:
            self.cut -= 1
            if self.cut == 0:
                raise PowerCut
        return len(self.records)

    def ask(self, name: str, **fields: Any) -> Any:
        """Do a request as the wire would bring it. Raises Problem; then nothing has changed, which is checked."""
        before = self.snapshot()
        try:
            return self.table.request(*protocol.check_request({"q": name, **fields}), self.now)
        except Problem as problem:
            if problem.code not in codes.ERRORS or self.snapshot() != before:
                raise AssertionError(f"{name} was refused with {problem.code} and changed something") from problem
            raise

    def refusal(self, name: str, **fields: Any) -> tuple[str, str]:
        """(code, words) of a request that must be refused."""
        try:
            answer = self.ask(name, **fields)
        except Problem as problem:
            return problem.code, problem.why
        raise AssertionError(f"{name} {fields} was done in {self.state}: {answer}")

    def code(self, name: str, **fields: Any) -> str:
        return self.refusal(name, **fields)[0]

    def tell(self, action: str, *arguments: Any) -> None:
        getattr(self.table, action)(*arguments, self.now)

    def snapshot(self) -> Json:
        """Everything that the table is, and how many records there are."""
        apart = ("pack", "registry", "_record", "save_dice")
        inner = {key: value for key, value in vars(self.table).items() if key not in apart}
        inner["streak"] = self.table.streak.as_dict()
        inner["tally"] = self.table.tally.as_dict()
        if self.table._reader is not None:
            inner["_reader"] = {key: str(value) for key, value in vars(self.table._reader).items()}
        return {"records": len(self.records), "view": self.view(), "table": copy.deepcopy(inner)}

    def kinds(self, first: int = 0) -> list[str]:
        """What was recorded, without the boots."""
        return [record["k"] for record in self.records[first:] if record["k"] != "boot"]

    def last(self, kind: str) -> Json:
        """The data of the last record of this kind."""
        data: Json = next(record["d"] for record in reversed(self.records) if record["k"] == kind)
        return data


class Refused(Exception):
    """The controller refused a request: `reply` is its answer."""

    def __init__(self, reply: Json) -> None:
        super().__init__(reply)
        self.reply = reply
        self.code: str = reply["err"]


IDENTITY = {"firmware": "0.0", "build": "test", "board": "none", "uid": "U1"}


def tag_of(link: str, key: bytes) -> str:
    """A record's tag, from its hash."""
    return hmac.new(key, link.encode(), "sha256").hexdigest()[:16]


class Desk(Steps):
    """A Controller with its journal in `folder`, and the host's end of a line that loses nothing."""

    def __init__(
        self,
        folder: Path,
        pack: str | Any = "nj",
        now: int = 1000,
        trouble: Any = None,
        key: bytes | None = None,
        **identity: Any,
    ) -> None:
        self.folder = folder
        # The journal key.
        self.key = key
        self.identity = dict(IDENTITY, **identity)
        self.pack = pack_named(pack) if isinstance(pack, str) else pack
        self.now = now
        self.seq = 0
        self.events: list[Json] = []
        self.hashes: list[str] = []
        self.tags: list[str] = []
        self.other: list[Json] = []
        self._fetched = 0
        self.boot(trouble)

    def boot(self, trouble: Any = None) -> None:
        """Start (again) from what lies in the folder."""
        key = self.key and Key(self.key)
        self.journal = Journal(str(self.folder), round.fold, round.initial, key, round.SUPERSEDED)
        self.controller = Controller(
            self.journal,
            self.pack,
            REGISTRY,
            EYE,
            {},
            self.identity,
            "power",
            self.now,
            trouble=trouble,
            gate=self.gate(),
        )
        self.table = self.controller.table

    def gate(self) -> Gate | None:
        """Who may ask for what; None is a table without keys."""
        return None

    def send(self, value: Json, seq: int | None = None) -> int:
        """Give the controller one frame; returns its sequence number."""
        if seq is None:
            self.seq += 1
            seq = self.seq
        self.controller.receive(protocol.encode(seq, value), self.now)
        return seq

    def next(self) -> Json | None:
        """The next line that the controller gives, decoded."""
        line = self.controller.next_line(self.now)
        if line is None:
            return None
        assert line.endswith(b"\n")
        assert all(0x20 <= byte <= 0x7E for byte in line[:-1])
        value: Json = protocol.decode(line)[1]
        return value

    def drain(self) -> list[Json]:
        """Every line that the controller gives now; nothing is acknowledged."""
        lines = []
        while (value := self.next()) is not None:
            lines.append(value)
            assert len(lines) < 10000
        return lines

    def reply(self, seq: int) -> Json:
        """The answer to this number; events on the way are kept but not acknowledged."""
        for value in self.drain():
            if value.get("re") == seq:
                found = value
            else:
                self.keep(value)
        return found

    def keep(self, value: Json) -> None:
        """As a host's store does: an event counts once, and only when it is the next one or begins a new history."""
        if "ev" not in value:
            self.other.append(value)
        elif not self.events or value["ev"]["id"] > self.events[-1]["id"]:
            self.events.append(value["ev"])
            self.hashes.append(value["h"])
            self.tags.append(value.get("m", ""))

    def ask(self, name: str, **fields: Any) -> Any:
        """Request and answer. Raises Refused."""
        reply = self.reply(self.send({"q": name, **fields}))
        if "err" in reply:
            assert reply["err"] in codes.ERRORS
            raise Refused(reply)
        return reply["ok"]

    def code(self, name: str, **fields: Any) -> str:
        try:
            answer = self.ask(name, **fields)
        except Refused as refused:
            return refused.code
        raise AssertionError(f"{name} {fields} was done in {self.state}: {answer}")

    def hello(self, last_event: int = 0, last_round: int = 0, **more: Any) -> Json:
        """Start a session."""
        answer: Json = self.ask("hello", major=1, minor=0, last_event=last_event, last_round=last_round, **more)
        return answer

    def ack(self, event: Any) -> None:
        self.send({"ack": event}, self.seq)

    @property
    def known(self) -> int:
        """The last event that the host has stored."""
        return int(self.events[-1]["id"]) if self.events else 0

    def fetch(self) -> list[Json]:
        """Take and acknowledge events until there are no more; returns those since the last call."""
        while True:
            if self.events:
                self.ack(self.known)
            before = self.known
            for value in self.drain():
                self.keep(value)
            if self.known == before:
                break
        new = self.events[self._fetched :]
        self._fetched = len(self.events)
        return new

    def tell(self, action: str, *arguments: Any) -> None:
        self.controller.guard(self.now, getattr(self.table, action), *arguments)
