"""The link: one suite for each transport, then what only a wire in memory or only a pseudo-terminal can do."""

from __future__ import annotations

import os
import random
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boards.virtual.client import Table
from dragoneye import installed, protocol
from dragoneye.errors import BadInput
from dragoneye.keys import name_of
from host_tools import flash_verify, keys, link
from host_tools.dealer import Dealer, Lid, Plan, VirtualLid
from host_tools.device import Device
from host_tools.link import LinkClosed, LinkError, Refused, SerialTransport, SessionLost, Transport
from host_tools.store import Store
from tests.lossy import Board, Lossy, MemoryLid, MemoryWire, Rates, Way
from tests.unit import tables
from tests.virtual import instant_table

PACK = tables.pack_named("nj")
PLAN = Plan(1, {2: {"match": 500, "odd": 100}}, {}, [])
HARD = Rates(drop=0.2, repeat=0.1, corrupt=0.05, delay=0.1)
ROUNDS = 1000


class Rig:
    """A table behind some transport, with a store, and what a person could do to it."""

    rounds: int
    lid: Lid
    # A fifth of all lines is lost; what is delayed comes after its question was asked again.
    hard = HARD

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.store = Store(folder / "rounds.db")
        self.to_host = Way(random.Random(seed), Rates())
        self.to_table = Way(random.Random(seed + 1), Rates())

    def plain(self) -> Transport:
        """Open the port."""
        raise NotImplementedError

    def device(self) -> Device:
        """Open the port, say hello; lines suffer from the rates of the two ways."""
        return Device("rig", self.store, open_transport=lambda port: Lossy(self.plain(), self.to_host, self.to_table))

    def suffer(self, rates: Rates) -> None:
        self.to_host.rates = self.to_table.rates = rates

    def inject(self, data: bytes) -> None:
        """Another program writes to the same port."""
        raise NotImplementedError

    def restart(self) -> None:
        """The board loses its power and gets it back."""
        raise NotImplementedError

    def pull(self) -> None:
        raise NotImplementedError

    def plug(self) -> None:
        raise NotImplementedError

    def rolled(self) -> list[list[int]] | None:
        """What the dice showed at every roll, where that is known."""
        return None

    def close(self) -> None:
        self.store.close()


class Memory(Rig):
    rounds = 40

    def __init__(self, folder: Path, seed: int = 1) -> None:
        super().__init__(folder, seed)
        (folder / "journal").mkdir()
        self.board = Board(folder / "journal", random.Random(seed + 2))
        self.lid = MemoryLid(self.board)

    def plain(self) -> Transport:
        return MemoryWire(self.board)

    def inject(self, data: bytes) -> None:
        self.board.feed(data)

    def restart(self) -> None:
        self.board.start()

    def pull(self) -> None:
        self.board.cable = False
        self.board.controller.disconnected()

    def plug(self) -> None:
        self.board.cable = True

    def rolled(self) -> list[list[int]]:
        return self.board.rolled


class Keyed(Memory):
    """The same with keys, which the host holds."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        super().__init__(folder, seed)
        raw = keys.made()
        self.board = Board(folder / "journal", random.Random(seed + 2), raw=raw)
        self.lid = MemoryLid(self.board)
        self.keys = keys.Keys(folder / "keys.json")
        self.keys.add("U1", name_of(raw["journal"]), raw)

    def device(self) -> Device:
        return Device(
            "rig",
            self.store,
            open_transport=lambda port: Lossy(self.plain(), self.to_host, self.to_table),
            signer=keys.Ring(self.keys),
        )


class Pty(Rig):
    rounds = 2
    hard = replace(HARD, longest=0.2)

    def __init__(self, folder: Path, table: Table) -> None:
        super().__init__(folder)
        self.table = table
        self.lid = VirtualLid(table)
        # Known dice: the bench tells of no roll that is over.
        self.queued = [[die, 7 - die, 1 + die % 6] for die in range(1, 7)]
        table.do("next", dice=self.queued)

    def plain(self) -> Transport:
        return SerialTransport(self.table.port)

    def inject(self, data: bytes) -> None:
        port = os.open(self.table.port, os.O_WRONLY | os.O_NOCTTY)
        os.write(port, data)
        os.close(port)

    def restart(self) -> None:
        self.table.do("power", to="off")
        self.table.do("power", to="on")

    def pull(self) -> None:
        self.table.do("cable", to="out")

    def plug(self) -> None:
        self.table.do("cable", to="in")

    def rolled(self) -> list[list[int]]:
        return self.queued[: self.table.state()["shakes"]]


@pytest.fixture(params=["memory", "keyed", "pty"])
def rig(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    with ExitStack() as stack:
        made: Rig
        if request.param == "memory":
            made = Memory(tmp_path)
        elif request.param == "keyed":
            made = Keyed(tmp_path)
        else:
            # A second is a second here: ask again sooner.
            monkeypatch.setattr(link, "RETRY_S", 0.1)
            made = Pty(tmp_path, stack.enter_context(instant_table(tmp_path)))
        stack.callback(made.close)
        yield made


def play(device: Device, lid: Lid, rounds: int) -> None:
    dealer = Dealer(device, PACK, lid, patience=1000.0)
    for _ in range(rounds):
        dealer.play(PLAN)
    device.wait_stored(1000.0)


def check_record(rig: Rig, rounds: int) -> None:
    """Every round is there once, in order, with the dice that fell, and no event is missing or twice."""
    uid = rig.store.tables()[0]
    stored = rig.store.rounds(uid, last=100_000)
    assert [one["round"] for one in stored] == list(range(1, rounds + 1))
    assert {one["status"] for one in stored} == {"settled"}
    assert [one["result"]["dice"] for one in stored] == rig.rolled()
    events = rig.store.events(uid)
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert [event["d"]["round"] for event in events if event["k"] == "settled"] == list(range(1, rounds + 1))


# One suite, each transport


def test_rounds_arrive_once_and_in_order(rig: Rig) -> None:
    device = rig.device()
    play(device, rig.lid, rig.rounds)
    check_record(rig, rig.rounds)
    # At most the end of a line that was under way when the port was opened.
    assert device.counters["noise"] <= 1
    # A busy computer may ask again before the answer comes: then one of the two is stray.
    assert device.counters["stray"] <= device.counters["retries"]
    device.close()


def test_rounds_arrive_once_over_a_bad_wire(rig: Rig) -> None:
    device = rig.device()
    rig.suffer(rig.hard)
    play(device, rig.lid, rig.rounds)
    rig.suffer(Rates())
    check_record(rig, rig.rounds)
    assert device.counters["retries"] > 0
    assert rig.to_host.counts["drop"] > 0
    device.close()


def test_a_refusal_names_code_and_state(rig: Rig) -> None:
    device = rig.device()
    with pytest.raises(Refused, match=r"finish: the table is IDLE; allowed in SETTLED \(E_STATE\)") as refused:
        device.request("finish")
    assert (refused.value.code, refused.value.state) == ("E_STATE", "IDLE")
    with pytest.raises(Refused, match="E_UNKNOWN"):
        device.request("dance")
    with pytest.raises(Refused, match=r"bets: position is 9; allowed: a whole number from 1 to 7 \(E_ARGS\)"):
        device.request("bets", position=9, wagers={})
    with pytest.raises(Refused, match="E_ARGS"):
        device.request("bets", position=1, wagers={"match": -1})
    device.close()


def test_a_repeated_request_is_done_once(rig: Rig) -> None:
    device = rig.device()
    rig.suffer(Rates(repeat=1.0))
    first = device.request("open", shaker=1)["round"]
    assert device.request("void", reason="once only")["round"] == first
    assert device.request("open", shaker=1)["round"] == first + 1
    device.close()


def test_noise_is_counted_and_harms_nothing(rig: Rig) -> None:
    device = rig.device()
    rig.inject(b"rubbish\n1 {} 00000000\n\x80\xff\x00\n" + protocol.encode(1, {"q": "void"})[:-3] + b"\n")
    assert device.request("open", shaker=2)["round"] == 1
    assert device.request("stats")["noise"] >= 4
    device.close()


def test_a_restart_loses_the_session(rig: Rig) -> None:
    device = rig.device()
    number = device.request("open", shaker=1)["round"]
    boot = device.table["boot"]
    rig.restart()
    with pytest.raises((SessionLost, LinkClosed)):
        device.request("status")
    assert device.reconnect()["state"] == protocol.IDLE
    assert device.table["boot"] == boot + 1
    device.wait_stored()
    assert rig.store.round(number)["status"] == "void"
    device.close()


def test_another_host_takes_the_session(rig: Rig) -> None:
    device = rig.device()
    hello = {"q": "hello", "major": protocol.MAJOR, "minor": protocol.MINOR, "last_event": 0, "last_round": 0}
    rig.inject(protocol.encode(7, hello))

    def ask_until_refused() -> None:
        # What the other program wrote may arrive after the first of our requests.
        for _ in range(1000):
            device.request("status")

    with pytest.raises(SessionLost, match="the table has restarted or was spoken to by another host"):
        ask_until_refused()
    device.reconnect()
    assert device.request("open", shaker=1)["round"] == 1
    device.close()


def test_a_pulled_cable_is_told_and_survived(rig: Rig) -> None:
    device = rig.device()
    number = device.request("open", shaker=1)["round"]
    rig.pull()
    with pytest.raises(LinkClosed, match="the port has gone"):
        device.request("status")
    with pytest.raises(LinkError):
        device.reconnect(timeout=0.0)
    rig.plug()
    assert device.reconnect()["state"] == protocol.BETTING
    assert device.state["round"] == number
    play(device, rig.lid, 1)
    check_record(rig, 1)
    device.close()


# With keys


def test_what_is_asked_is_signed_by_the_lowest_role_that_may(tmp_path: Path) -> None:
    rig = Keyed(tmp_path)
    device = rig.device()
    device.request("open", shaker=1)
    device.request("void", reason="by its own role")
    device.request("open", "supervisor", shaker=1)
    device.request("void", "dealer", reason="a dealer may not")
    device.wait_stored()
    by = [event["d"]["by"] for event in rig.store.events("U1") if event["k"] in ("opened", "void")]
    assert by == ["dealer", "supervisor", "supervisor", "supervisor"]
    rig.close()


@pytest.mark.parametrize(
    ("held", "name", "fields", "by"),
    [
        (("dealer", "technician"), "open", {"shaker": 1}, "dealer"),
        (("supervisor", "technician"), "open", {"shaker": 1}, "supervisor"),
        (("technician", "journal"), "open", {"shaker": 1}, "dealer or supervisor"),
        (("dealer", "technician"), "end", {}, "supervisor"),
        (("dealer", "supervisor", "journal"), "test", {"on": True}, "technician"),
    ],
)
def test_a_computer_may_hold_some_keys_only(
    tmp_path: Path, held: tuple[str, ...], name: str, fields: dict[str, Any], by: str
) -> None:
    rig = Keyed(tmp_path)
    [(uid, key_id, *_)] = rig.keys.held()
    whole = rig.keys.find(uid, key_id)
    assert whole is not None
    rig.keys.forget(uid)
    rig.keys.add(uid, key_id, {one: whole.raw[one] for one in held})
    device = rig.device()
    before = device.table["last_event"]
    if by in held:
        device.request(name, **fields)
        device.wait_stored()
        assert rig.store.events("U1")[-1]["d"]["by"] == by
    else:
        with pytest.raises(BadInput, match=f"needs the key of its {by}, which .* tablectl keys import FILE"):
            device.request(name, **fields)
        assert device.request("stats")["journal"]["records"] == before
    # One that is imported meanwhile counts at once.
    rig.keys.add(uid, key_id, whole.raw)
    device.request("status" if by in held else name, **({} if by in held else fields))
    rig.close()


def test_keys_of_an_older_set_are_told(tmp_path: Path) -> None:
    rig = Keyed(tmp_path)
    [(uid, key_id, *_)] = rig.keys.held()
    old = keys.made()
    rig.keys.forget(uid)
    rig.keys.add(uid, name_of(old["journal"]), old)
    with pytest.raises(BadInput, match=rf"of the set {key_id}; .* another set \({name_of(old['journal'])}\)"):
        rig.device().request("open", shaker=1)
    rig.close()


def test_a_table_that_has_lost_its_keys_is_not_played_on(tmp_path: Path) -> None:
    rig = Keyed(tmp_path)
    rig.board._raw = None
    rig.restart()
    device = rig.device()
    assert device.table["unprovisioned"]
    with pytest.raises(BadInput, match="table U1 had keys, and now says that it has none"):
        device.request("open", shaker=1)
    # What a technician needs to put it right goes.
    device.request("test", on=True)
    rig.keys.forget("U1")
    device.reconnect()
    device.request("test", on=False)
    device.request("open", shaker=1)
    rig.close()


def test_a_keyed_challenge_finds_what_is_not_as_it_should_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Keyed(tmp_path)
    flash = tmp_path / "flash"
    files = {"/boot.py": b"b", "/a/dragoneye/x.mpy": bytes(3000), "/config.json": b"{}"}
    for name, data in files.items():
        (flash / name.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (flash / name.lstrip("/")).write_bytes(data)
    seeds = []

    def survey(seed: str) -> Any:
        seeds.append(seed)
        done = installed.Survey(seed, f"{flash}/")
        while done.running:
            done.step()
        return done

    controller = rig.board.controller
    controller.start_survey = survey
    wire = link.Link(rig.plain(), lambda record, chain, tag: True, signer=keys.Ring(rig.keys))
    wire.hello(0, 0)

    def is_expected() -> bool:
        return flash_verify.is_expected(flash_verify.ask(wire), files)

    assert is_expected()
    # What was sent over the wire is not what it was hashed under.
    assert len(seeds[0]) == 64
    assert flash_verify.total_of(seeds[0], []) != flash_verify.total_of(wire.challenge(seeds[0]), [])
    (flash / "config.json").write_bytes(b"[]")
    assert not is_expected()
    (flash / "config.json").write_bytes(b"{}")
    (flash / "lib").mkdir()
    (flash / "lib" / "json.py").write_bytes(b"")
    assert not is_expected()
    (flash / "lib" / "json.py").unlink()
    assert is_expected()
    # An answer from before, and one that knows the files and the seed but not the key.
    stale = controller.survey
    controller.start_survey = lambda seed: stale
    assert not is_expected()
    controller.start_survey = lambda seed: survey(sent[-1])
    sent: list[str] = []
    request = wire.request

    def overheard(name: str, as_role: str | None = None, **fields: Any) -> link.Message:
        sent.append(fields.get("seed", ""))
        return request(name, as_role, **fields)

    monkeypatch.setattr(wire, "request", overheard)
    assert not is_expected()
    assert len(sent[-1]) == 32
    controller.start_survey = survey
    assert is_expected()
    rig.close()


# In memory only: a thousand rounds, and a wire that is worse than any cable


def test_a_thousand_rounds_over_a_lossy_wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What a disk takes to be sure is not what is tested here.
    monkeypatch.setattr("host_tools.store._pragmas", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
    rig = Memory(tmp_path, seed=20)
    device = rig.device()
    rig.suffer(HARD)
    _play_by_requests(device, rig, ROUNDS)
    rig.suffer(Rates())
    device.wait_stored()
    check_record(rig, ROUNDS)
    host, table = device.counters, device.request("stats")
    assert host["retries"] > ROUNDS
    assert min(host["noise"], host["stray"], table["noise"], table["repeats"], table["resent"]) > 0
    assert rig.to_host.counts["drop"] / rig.to_host.counts["lines"] == pytest.approx(0.2, abs=0.02)
    print(f"{ROUNDS} rounds: {host['retries']} retries, {host['noise'] + table['noise']} lines of noise")
    rig.close()


def _play_by_requests(device: Device, rig: Memory, rounds: int) -> None:
    """Quicker than a Dealer, who looks at the state before each step; one finishes what a lost session interrupts."""
    dealer = Dealer(device, PACK, rig.lid, patience=1000.0)
    while rig.board.controller.table.round < rounds:
        try:
            device.request("open", shaker=1)
            device.request("bets", position=2, wagers={"match": 500})
            device.request("close")
            device.request("shake")
            device.request("unlock")
            rig.lid.open(device)
            device.request("finish")
            rig.lid.shut(device)
        except SessionLost:
            device.reconnect()
            if device.state["state"] != protocol.IDLE:
                dealer.play(PLAN)


def test_restarts_on_a_lossy_wire(tmp_path: Path) -> None:
    rig = Memory(tmp_path, seed=30)
    device = rig.device()
    rig.suffer(HARD)
    dealer = Dealer(device, PACK, rig.lid, patience=1000.0)
    rng = random.Random(31)
    feed = rig.board.feed

    def feed_or_fail(data: bytes) -> None:
        feed(data)
        if rng.random() < 0.02:
            rig.restart()

    rig.board.feed = feed_or_fail  # type: ignore[method-assign]
    for _ in range(40):
        dealer.play(PLAN)
    rig.board.feed = feed  # type: ignore[method-assign]
    rig.suffer(Rates())
    device.reconnect()
    # A hello of an earlier session may still be under way, and end this one.
    dealer.surely(device.wait_stored)
    stored = rig.store.rounds(last=1000)
    assert [one["round"] for one in stored] == list(range(1, len(stored) + 1))
    assert {one["status"] for one in stored} == {"settled", "void"}
    settled = [one["result"]["dice"] for one in stored if one["status"] == "settled"]
    assert len(settled) == len(rig.board.rolled)
    assert settled == rig.board.rolled
    rig.close()


def test_a_late_answer_is_never_taken_for_another_requests(tmp_path: Path) -> None:
    rig = Memory(tmp_path)
    device = rig.device()
    # Every answer takes longer than the host's patience: it arrives while the next question waits.
    held: list[bytes] = []
    way = rig.to_host
    put = way.put
    way.put = lambda data, now: held.append(data)  # type: ignore[method-assign]
    with pytest.raises(LinkError, match="the table does not answer open within 12 s"):
        device.request("open", shaker=3)
    way.put = put  # type: ignore[method-assign]
    late = b"".join(held)
    assert b'"round":1' in late.replace(b" ", b"")
    way.put(late, 0.0)
    with pytest.raises(Refused, match=r"open: the table is BETTING; allowed in IDLE \(E_STATE\)"):
        device.request("open", shaker=3)
    assert device.counters["stray"] > 0
    rig.close()


def test_a_delayed_hello_costs_a_session_and_no_more(tmp_path: Path) -> None:
    rig = Memory(tmp_path)
    device = rig.device()
    device.request("open", shaker=1)
    old = protocol.encode(3, {"q": "hello", "major": 1, "minor": 0, "last_event": 0, "last_round": 0})
    rig.inject(old)
    with pytest.raises(SessionLost):
        device.request("close")
    assert device.reconnect()["state"] == protocol.BETTING
    rig.close()


class Script:
    """A transport whose other end is a function from each object the host sends to lines that come back."""

    def __init__(self, answer: Callable[[int, dict[str, Any]], list[bytes]]) -> None:
        self._answer = answer
        self._ready: list[bytes] = []
        self._seconds = 0.0

    def read(self, timeout: float) -> bytes:
        if self._ready:
            return self._ready.pop(0)
        self._seconds += max(timeout, 0.001)
        return b""

    def write(self, data: bytes) -> None:
        self._ready += self._answer(*protocol.decode(data))

    def now(self) -> float:
        return self._seconds

    def close(self) -> None:
        pass


def fake_table(**hello: Any) -> Callable[[int, dict[str, Any]], list[bytes]]:
    """A table of another version, or one that lies."""
    told = {"major": protocol.MAJOR, "minor": protocol.MINOR, "uid": "F4", "first_event": 1, "last_event": 0, **hello}

    def answer(seq: int, message: dict[str, Any]) -> list[bytes]:
        if "q" not in message:
            return []
        ok = told if message["q"] == "hello" else {"state": "IDLE", "round": 0}
        return [protocol.encode(1, {"re": seq, "ok": ok})]

    return answer


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "rounds.db")
    yield made
    made.close()


def test_another_major_version_is_named(store: Store) -> None:
    with pytest.raises(LinkError, match=rf"the table speaks protocol 2\.5, this program 1\.{protocol.MINOR}"):
        Device("fake", store, open_transport=lambda port: Script(fake_table(major=2, minor=5)))


def test_a_table_that_refuses_our_version_is_named(store: Store) -> None:
    why = "the host speaks protocol 1.0, this table 2.0"

    def answer(seq: int, message: dict[str, Any]) -> list[bytes]:
        return [protocol.encode(1, {"re": seq, "err": "E_VERSION", "why": why, "state": "IDLE"})]

    with pytest.raises(LinkError, match=why):
        Device("fake", store, open_transport=lambda port: Script(answer))


def test_the_tables_own_version_rule(tmp_path: Path) -> None:
    rig = Memory(tmp_path)
    wire = link.Link(rig.plain(), lambda record, chain, tag: True)
    wire.hello(0, 0)
    for major, minor in ((2, 5), (0, 0)):
        with pytest.raises(Refused, match=f"protocol {major}.{minor}, this table 1.{protocol.MINOR}") as refused:
            wire.request("hello", major=major, minor=minor)
        assert refused.value.code == "E_VERSION"
    assert wire.request("hello", major=1, minor=999)["minor"] == protocol.MINOR
    rig.close()


def test_a_newer_minor_version_is_tolerated(store: Store) -> None:
    fake = fake_table(minor=9, nonsense=[1, {"deep": None}])
    device = Device("fake", store, open_transport=lambda port: Script(fake))
    assert device.table["minor"] == 9
    assert device.uid == "F4"


@pytest.mark.parametrize("uid", [None, "", 7, ["U"]])
def test_what_has_no_unique_id_is_no_table(store: Store, uid: object) -> None:
    with pytest.raises(LinkError, match="fake: what answers has no unique id; it is not a table"):
        Device("fake", store, open_transport=lambda port: Script(fake_table(uid=uid)))


def test_an_overlong_line_is_noise(store: Store) -> None:
    chatter = [b"x" * 20_000, b"y" * 20_000 + b"\n"]
    fake = fake_table()
    device = Device(
        "fake", store, open_transport=lambda port: Script(lambda seq, message: [*chatter, *fake(seq, message)])
    )
    assert device.counters["noise"] >= 3
    with pytest.raises(BadInput, match="the request void is too long for the table") as caught:
        device.request("void", reason="r" * protocol.REQUEST_MAX)
    # Nothing was sent: the table is as it was, and is asked on.
    assert not isinstance(caught.value, LinkError)
    assert device.request("status")


@pytest.mark.parametrize(
    "message",
    [
        {"ev": 5, "h": "0" * 32},
        {"ev": {"id": 1}, "h": None},
        {"ev": {}, "h": "0"},
        {"ev": {"id": 1}, "h": "0" * 32, "m": 5},
        {"ev": {"id": 1}, "h": "0" * 32, "m": "0" * 17},
        {"st": 3},
        {"re": [1], "ok": {}},
        {"re": None},
        {"what": "ever"},
    ],
)
def test_frames_of_the_wrong_shape_harm_nothing(message: dict[str, Any]) -> None:
    fake = fake_table()
    wire = link.Link(
        Script(lambda seq, sent: [protocol.encode(1, message), *fake(seq, sent)]),
        lambda record, chain, tag: "id" in record,
    )
    assert wire.hello(0, 0)["uid"] == "F4"
    assert wire.request("status")["state"] == "IDLE"


# A pseudo-terminal with something else at its other end


@contextmanager
def other_end(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """A port at whose other end a thread answers what it reads; its path."""
    master, slave = os.openpty()
    tty.setraw(slave)
    path = os.ttyname(slave)

    def serve() -> None:
        while True:
            try:
                data = os.read(master, 4096)
            except OSError:
                return
            if data == b"\x00end":
                return
            reply = answer(data)
            if reply:
                os.write(master, reply)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield path
    finally:
        os.write(slave, b"\x00end")
        thread.join()
        os.close(slave)
        os.close(master)


PROMPT = b'Traceback (most recent call last):\r\n  File "<stdin>", line 1\r\nSyntaxError: invalid syntax\r\n>>> '


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("the table does not answer hello within", lambda data: b""),
        ("the table does not answer hello within", lambda data: data),
        ("MicroPython's prompt answers", lambda data: data + PROMPT),
    ],
    ids=["silent", "echo", "prompt"],
)
def test_what_is_no_table_is_given_up(
    said: str, answer: Callable[[bytes], bytes], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "GIVE_UP_S", 0.5)
    monkeypatch.setattr(link, "RETRY_S", 0.1)
    with other_end(answer) as port, pytest.raises(LinkError, match=said):
        Device(port, store)


def test_a_port_is_held_by_one_host(store: Store) -> None:
    with other_end(lambda data: b"") as port:
        first = SerialTransport(port)
        with pytest.raises(LinkError, match="the port is busy; another program holds it"):
            SerialTransport(port)
        first.close()
        SerialTransport(port).close()


def test_a_port_that_is_none(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a port")
    for path, said in (
        (tmp_path / "absent", "there is no such port; `tablectl ports` lists those that exist"),
        (tmp_path, "cannot be opened as a serial port"),
        (plain, "cannot be opened as a serial port"),
    ):
        with pytest.raises(LinkError, match=said) as error:
            SerialTransport(str(path))
        assert str(error.value).startswith(f"{path}: ")
    assert plain.read_text() == "not a port"
