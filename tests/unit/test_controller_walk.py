"""Random walks over the controller and its journal: cables pulled, power lost, a flash that refuses for a while.

Whatever happens, the host ends with every record exactly once, as one chain, and each round has one end.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from dragoneye import controller, journal
from dragoneye.protocol import FAULT, LOCKED, SETTLED
from dragoneye.text import dumps
from host_tools import codes
from tests.unit.tables import Desk, Json, Refused, pack_named
from tests.unit.test_round_walk import check_rounds
from tests.unit.walk import Walk


def refuse(path: str, mode: str = "r") -> Any:
    if mode != "rb":
        raise OSError(28, "no space left")
    return open(path, mode)


class AnyTable(Walk):
    """A desk whose host keeps what it is told and tells, at each hello, what it has."""

    @initialize(pack=st.sampled_from(["nj", "house"]))
    def begin(self, pack: str) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(journal, "SEGMENT_RECORDS", 6)
        self.folder = tempfile.TemporaryDirectory()
        self.desk = Desk(Path(self.folder.name), pack_named(pack))
        self.refusing = False
        self.last: tuple[int, Json] | None = None

    @property
    def at(self) -> Desk:
        return self.desk

    @property
    def rounds(self) -> int:
        return max([event["d"]["round"] for event in self.desk.events if event["k"] == "opened"], default=0)

    def attempt(self, name: str, fields: Json) -> Json | None:
        self.last = (self.desk.seq + 1, {"q": name, **fields})
        try:
            answer: Json = self.desk.ask(name, **fields)
        except Refused as refused:
            if refused.code == "E_HELLO":
                self.desk.hello(self.desk.known, self.rounds)
            return None
        return answer

    @rule()
    def repeat_the_last_request(self) -> None:
        if self.last is None or self.last[0] != self.desk.seq:
            return
        before = (self.desk.journal.last_id, self.desk.view())
        self.desk.send(self.last[1], self.last[0])
        for value in self.desk.drain():
            self.desk.keep(value)
        assert (self.desk.journal.last_id, self.desk.view()) == before or self.desk.state == FAULT

    @rule(line=st.binary(max_size=30))
    def hear_noise(self, line: bytes) -> None:
        self.desk.controller.receive(line.replace(b"\n", b""), self.desk.now)

    @rule()
    def fetch(self) -> None:
        self.desk.fetch()

    @rule()
    def take_what_comes_without_saying_so(self) -> None:
        for value in self.desk.drain():
            self.desk.keep(value)
        self.desk.now += controller.RESEND_MS

    @rule()
    def lose_what_comes(self) -> None:
        self.desk.drain()
        self.desk.now += controller.RESEND_MS

    @rule()
    def pull_the_cable(self) -> None:
        self.desk.controller.disconnected()

    @rule()
    def say_hello(self) -> None:
        self.desk.hello(self.desk.known, self.rounds)

    @rule()
    def lose_power(self) -> None:
        self.refuse_no_more()
        self.desk.boot()

    @rule()
    def refuse_to_write(self) -> None:
        self.patch.setattr(journal, "open", refuse, raising=False)
        self.refusing = True

    def refuse_no_more(self) -> None:
        if self.refusing:
            self.patch.delattr(journal, "open")
            self.refusing = False

    @invariant()
    def the_host_has_a_chain_without_gaps(self) -> None:
        if not hasattr(self, "desk"):
            return
        assert [event["id"] for event in self.desk.events] == list(range(1, len(self.desk.events) + 1))

    @invariant()
    def nothing_from_the_locked_record_on_has_left(self) -> None:
        if not hasattr(self, "desk"):
            return
        locked = self.desk.table.locked
        if locked is not None:
            assert self.desk.known < locked["id"]
        for value in self.desk.other:
            # The echo of an entry by hand is for the one who made it.
            assert '"dice"' not in json.dumps(value) or "re" in value or value["st"]["state"] == SETTLED
        self.desk.other = []

    def teardown(self) -> None:
        if not hasattr(self, "desk"):
            return
        desk = self.desk
        self.refuse_no_more()
        desk.boot()
        desk.hello(desk.known, self.rounds)
        while desk.state == FAULT:
            desk.ask("clear", code=desk.view()["fault"])
        if desk.state == LOCKED:
            desk.open_lid()
        desk.fetch()
        assert desk.known == desk.journal.last_id
        previous = journal.GENESIS
        for event, stored in zip(desk.events, desk.hashes, strict=True):
            assert journal.chain(previous, dumps(event)) == stored
            previous = stored
        check_rounds(desk.events)
        assert {event["k"] for event in desk.events} <= set(codes.EVENTS)
        self.patch.undo()
        self.folder.cleanup()


TestAnyTable = AnyTable.TestCase
TestAnyTable.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
