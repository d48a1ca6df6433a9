"""Signed requests at a table with keys: what is let through, and every way in which one is not."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoneye import keys, protocol
from dragoneye.controller import ANSWERS_KEPT
from dragoneye.errors import BadInput
from dragoneye.protocol import BETTING, DEALER, IDLE, REQUESTS, SUPERVISOR, TECHNICIAN
from dragoneye.text import dumps
from host_tools.keys import file_of, signed
from tests.unit.tables import IDENTITY, Desk, Json, Refused

RAW = {name: bytes([place]) * keys.KEY_BYTES for place, name in enumerate(keys.NAMES, start=1)}
OTHER = {name: bytes([place]) * keys.KEY_BYTES for place, name in enumerate(keys.NAMES, start=101)}
PRIVILEGED = [name for name in REQUESTS if REQUESTS[name][0] in keys.GOOD_FOR]


def keyring(raw: dict[str, bytes] = RAW) -> dict[str, Any]:
    return {name: keys.Key(raw[name]) for name in raw}


class Keyed(Desk):
    """A table with keys, and a host that signs as `role` with the counter's next number."""

    uid = IDENTITY["uid"]
    damage: str | None = None
    starts = 0
    role: str | None = DEALER
    counter = 0

    def gate(self) -> Any:
        self.starts += 1
        nonce = bytes([self.starts]) * keys.NONCE_BYTES
        self._gate = keys.Gate(self.uid, nonce, None if self.damage else keyring(), self.damage)
        return self._gate

    def frame(self, value: Json, seq: int, **change: Any) -> bytes:
        """A frame signed as it should be, but for what `change` says."""
        body = protocol.body_of(seq, dumps(value))
        signer = {
            "role": self.role,
            "counter": self.counter + 1,
            "key": keys.Key(RAW[self.role or DEALER]),
            "uid": self.uid,
            "nonce": self._gate.nonce,
            **change,
        }
        return bytes(protocol.seal(signed(body, **signer)))

    def send(self, value: Json, seq: int | None = None, **change: Any) -> int:
        if value.get("q") not in PRIVILEGED or self.role is None:
            return super().send(value, seq)
        if seq is None:
            self.seq += 1
            seq = self.seq
        line = self.frame(value, seq, **change)
        self.counter += 1
        self.controller.receive(line, self.now)
        return seq

    def why(self, value: Json, **change: Any) -> str:
        """What the table says against a request that it refuses for its signature."""
        reply = self.reply(self.send(value, **change))
        assert reply["err"] == "E_AUTH", reply
        return str(reply["why"])

    def refused(self) -> Json:
        found: Json = self.ask("stats")["unsigned"]
        return {reason: count for reason, count in found.items() if count}


@pytest.fixture
def desk(tmp_path: Path) -> Keyed:
    desk = Keyed(tmp_path)
    desk.hello()
    desk.fetch()
    return desk


def seen(desk: Keyed) -> Json:
    """What the table is and has recorded."""
    return {"view": desk.view(), "last": desk.journal.last_id, "effects": list(desk.table.effects)}


OPEN: Json = {"q": "open", "shaker": 1}


# -- what a key makes ------------------------------------------------------------------------------------------------


@given(st.binary(min_size=32, max_size=32), st.lists(st.binary(max_size=200), max_size=4))
def test_a_mac_is_hmac_sha_256(raw: bytes, parts: list[bytes]) -> None:
    assert keys.Key(raw).mac(*parts) == hmac.new(raw, b"".join(parts), hashlib.sha256).digest()


def test_a_signature_is_over_table_start_frame_and_claim() -> None:
    body = b'7 {"q":"open","shaker":1}'
    found = signed(body, DEALER, 12, keys.Key(RAW[DEALER]), "U1", "ab" * 16)
    said = b"U1\n" + b"ab" * 16 + b'\n7 {"q":"open","shaker":1\ndealer:12'
    mac = hmac.new(RAW[DEALER], said, hashlib.sha256).hexdigest()[:32]
    assert found == body[:-1] + b',"a":"dealer:12:%s"}' % mac.encode()


@given(st.text("0123456789abcdef", max_size=6), st.text("0123456789abcdef", max_size=6))
def test_texts_are_the_same_or_not(one: str, other: str) -> None:
    assert keys.same(one, other) == (one == other)


def test_a_key_does_not_tell_itself() -> None:
    key = keys.Key(RAW[DEALER])
    assert RAW[DEALER].hex() not in repr(key) + str(key) + repr(keyring())
    assert keys.name_of(RAW["journal"]) not in RAW["journal"].hex()


# -- the file --------------------------------------------------------------------------------------------------------


def test_keys_come_back_from_their_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    assert keys.read_keys(str(path)) is None
    path.write_bytes(file_of(RAW))
    name, found = keys.read_keys(str(path))
    assert name == keys.name_of(RAW["journal"])
    assert {one: found[one].mac(b"x") for one in found} == {one: keys.Key(RAW[one]).mac(b"x") for one in RAW}


def damaged() -> dict[str, bytes]:
    whole = json.loads(file_of(RAW))
    found: dict[str, Any] = {"nothing": b"", "cut": file_of(RAW)[:-9], "no text": b"\xff\xfe", "a list": b"[]"}
    found["another format"] = dict(whole, format=2)
    for name in keys.NAMES:
        found[f"no {name}"] = {key: value for key, value in whole.items() if key != name}
        found[f"{name} too short"] = dict(whole, **{name: whole[name][:-2]})
        found[f"{name} too long"] = dict(whole, **{name: whole[name] + "00"})
        found[f"{name} no hex"] = dict(whole, **{name: "x" * 64})
        found[f"{name} a number"] = dict(whole, **{name: 5})
    return {name: value if isinstance(value, bytes) else json.dumps(value).encode() for name, value in found.items()}


@pytest.mark.parametrize("what", damaged())
def test_a_damaged_file_is_told_without_a_key(tmp_path: Path, what: str) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(damaged()[what])
    with pytest.raises(BadInput) as raised:
        keys.read_keys(str(path))
    assert str(raised.value) == f"{path} is damaged; write the keys again from the host"


def test_a_file_that_cannot_be_read_is_not_a_table_without_keys(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        keys.read_keys(str(tmp_path))


# -- let through -----------------------------------------------------------------------------------------------------


def test_hello_tells_what_a_signature_needs(desk: Keyed) -> None:
    told = desk.hello()
    assert (told["unprovisioned"], told["nonce"], told["counter"]) == (False, "01" * 16, 0)
    desk.ask("open", shaker=1)
    assert desk.hello()["counter"] == 1
    assert not any(raw.hex() in json.dumps(told) for raw in RAW.values())


def test_a_round_is_played_by_signed_requests_and_says_by_whom(desk: Keyed) -> None:
    desk.ask("open", shaker=1)
    desk.ask("close")
    desk.role = SUPERVISOR
    desk.ask("void", reason="the dealer was taken ill")
    desk.role = TECHNICIAN
    desk.ask("test", on=True)
    desk.ask("test", on=False)
    by = [(event["k"], event["d"].get("by")) for event in desk.fetch()]
    assert by == [
        ("opened", DEALER),
        ("closed", DEALER),
        ("void", SUPERVISOR),
        ("test", TECHNICIAN),
        ("test", TECHNICIAN),
    ]


def test_what_nobody_asked_for_is_by_nobody(desk: Keyed) -> None:
    desk.ask("open", shaker=1)
    desk.tell("lid", True)
    door = desk.fetch()[-1]
    assert door["k"] == "door"
    assert "by" not in door["d"]


def test_the_supervisors_key_is_good_for_a_dealers_requests(desk: Keyed) -> None:
    desk.role = SUPERVISOR
    desk.ask("open", shaker=1)
    assert desk.fetch()[-1]["d"]["by"] == SUPERVISOR


def test_what_anyone_may_ask_is_not_signed(desk: Keyed) -> None:
    desk.role = None
    desk.ask("status")
    desk.ask("stats")
    assert desk.refused() == {}


def test_a_repeated_number_gets_its_answer_without_another_effect(desk: Keyed) -> None:
    line = desk.frame(OPEN, 50)
    desk.controller.receive(line, desk.now)
    first = desk.reply(50)
    desk.controller.receive(line, desk.now)
    assert desk.reply(50) == first
    desk.seq = 50
    assert desk.refused() == {}
    assert [event["k"] for event in desk.fetch()] == ["opened"]


def test_a_table_without_keys_reads_no_signature(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello()
    body = protocol.body_of(2, dumps(OPEN))
    desk.controller.receive(protocol.seal(signed(body, DEALER, 1, keys.Key(RAW[DEALER]), "U1", "")), desk.now)
    assert desk.reply(2)["ok"]["round"] == 1


# -- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRIVILEGED)
def test_an_unsigned_request_is_refused(desk: Keyed, name: str) -> None:
    desk.role = None
    before = seen(desk)
    assert desk.why({"q": name}).startswith(f"{name} is not signed; it needs a key of: ")
    assert seen(desk) == before
    assert desk.refused() == {"unsigned": 1}


@pytest.mark.parametrize("name", PRIVILEGED)
@pytest.mark.parametrize("role", keys.NAMES)
def test_the_key_of_another_role_is_refused(desk: Keyed, name: str, role: str) -> None:
    good = keys.GOOD_FOR[REQUESTS[name][0]]
    if role in good:
        return
    desk.role = role
    before = seen(desk)
    assert desk.why({"q": name}) == f"{name}: this is not for the {role}; it needs a key of: {', '.join(good)}"
    assert seen(desk) == before
    assert desk.refused() == {"role": 1}


WRONG: dict[str, Json] = {
    "another key": {"key": keys.Key(OTHER[DEALER])},
    "the key of a higher role under a lower name": {"key": keys.Key(RAW[TECHNICIAN])},
    "another table's message": {"uid": "U2"},
    "another boot's message": {"nonce": "ff" * 16},
    "a role that there is not": {"role": "boss"},
    "no role": {"role": ""},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_signature_is_refused(desk: Keyed, what: str) -> None:
    before = seen(desk)
    assert desk.why(OPEN, **WRONG[what]).startswith("the signature is wrong")
    assert seen(desk) == before
    assert desk.refused() == {"mac": 1}
    assert desk._gate.counter == 0


def test_a_message_of_the_last_boot_is_refused(desk: Keyed) -> None:
    old = desk.frame(OPEN, 900)
    desk.boot()
    desk.hello()
    desk.seq = 850
    desk.controller.receive(desk.frame({"q": "status"}, 850), desk.now)
    desk.controller.receive(old, desk.now)
    assert desk.reply(900)["err"] == "E_AUTH"
    assert desk.state == IDLE


@pytest.mark.parametrize("digits", range(32))
def test_a_mac_that_is_cut_short_is_refused(desk: Keyed, digits: int) -> None:
    whole = desk.frame(OPEN, 2)[:-10]
    cut = whole[: len(whole) - 34 + digits] + b'"}'
    desk.controller.receive(protocol.seal(cut), desk.now)
    assert desk.reply(2)["err"] == "E_AUTH"
    assert desk.state == IDLE


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_changed_byte_gets_through(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    desk = Keyed(tmp_path_factory.mktemp("desk"))
    desk.hello()
    body = bytearray(desk.frame({"q": "bets", "position": 1, "wagers": {"match": 500}}, 2)[:-10])
    place = data.draw(st.integers(2, len(body) - 1))
    body[place] = data.draw(st.integers(0x20, 0x7E).filter(lambda byte: byte != body[place]))
    desk.controller.receive(protocol.seal(bytes(body)), desk.now)
    replies = [value for value in desk.drain() if "re" in value]
    assert all(reply["err"] in ("E_AUTH", "E_UNKNOWN", "E_ARGS") for reply in replies)
    assert desk._gate.counter == 0


def test_members_after_the_signature_or_a_second_one_are_refused(desk: Keyed) -> None:
    body = desk.frame(OPEN, 2)[:-10]
    late = body[:-1] + b',"shaker":2}'
    twice = body[:-1] + b',"a":"dealer:1:%s"}' % (b"0" * 32)
    nested = b'4 {"q":"open","shaker":1,"b":{' + body.partition(b',"shaker":1,')[2] + b"}"
    for seq, changed in ((2, late), (3, twice.replace(b"2 ", b"3 ", 1)), (4, nested)):
        desk.controller.receive(protocol.seal(changed), desk.now)
        assert desk.reply(seq)["err"] == "E_AUTH"
    assert desk.state == IDLE


@pytest.mark.parametrize(
    "said",
    [
        5,
        None,
        [],
        "",
        "dealer",
        "dealer:1",
        "dealer:x:0",
        "dealer:-1:0",
        "a:b:c:d",
        ":::",
        "\ud800:1:0",
        "dealer:1:\u00e9",
    ],
)
def test_a_malformed_signature_is_refused(desk: Keyed, said: Any) -> None:
    desk.controller.receive(protocol.encode(2, {**OPEN, "a": said}), desk.now)
    assert desk.reply(2)["err"] == "E_AUTH"
    desk.seq = 2
    assert desk.refused() == {"mac": 1}


# -- the counter -----------------------------------------------------------------------------------------------------


def test_what_was_said_once_is_refused_under_another_number(desk: Keyed) -> None:
    desk.ask("open", shaker=1)
    desk.ask("close")
    # The same frame, when its answer is forgotten; and its signature with the next number of the session.
    desk.seq += 1
    body = desk.frame(OPEN, desk.seq, counter=1)
    desk.controller.receive(body, desk.now)
    reply = desk.reply(desk.seq)
    assert (reply["err"], reply["why"]) == ("E_AUTH", "the signature's counter is 1; the last one was 2")
    assert desk.refused() == {"counter": 1}


def test_a_recorded_frame_cannot_be_said_again(desk: Keyed) -> None:
    line = desk.frame({"q": "unlock"}, 2)
    desk.controller.receive(line, desk.now)
    assert "ok" in desk.reply(2)
    desk.seq = 2
    for _ in range(ANSWERS_KEPT):
        desk.ask("status")
    desk.controller.receive(line, desk.now)
    assert desk.reply(2)["err"] == "E_HELLO"
    # A new session forgets its sequence numbers, the boot its counter never.
    desk.hello()
    desk.seq = 1
    desk.controller.receive(protocol.encode(1, {"q": "hello", "major": 1, "minor": 3}), desk.now)
    desk.controller.receive(line, desk.now)
    replies = [value for value in desk.drain() if value.get("re") == 2]
    assert [reply["err"] for reply in replies] == ["E_AUTH"]


def test_frames_out_of_order_are_done_in_the_order_of_their_counter_or_not_at_all(desk: Keyed) -> None:
    first = desk.frame(OPEN, 2, counter=1)
    second = desk.frame({"q": "close"}, 3, counter=2)
    desk.controller.receive(second, desk.now)
    assert desk.reply(3)["err"] == "E_STATE"
    desk.controller.receive(first, desk.now)
    assert desk.reply(2)["err"] == "E_HELLO"
    desk.controller.receive(desk.frame(OPEN, 4, counter=1), desk.now)
    assert desk.reply(4)["err"] == "E_AUTH"
    assert desk.state == IDLE


@pytest.mark.parametrize("counter", [0, keys.COUNTER_STEP_MAX + 1, protocol.SEQ_MAX, 999_999_999, 10**9, 10**30])
def test_a_counter_that_jumps_is_refused(desk: Keyed, counter: int) -> None:
    reply = desk.reply(desk.send(OPEN, counter=counter))
    assert reply["err"] == "E_AUTH"
    assert desk._gate.counter == 0


def test_a_counter_may_skip_what_was_lost(desk: Keyed) -> None:
    desk.reply(desk.send(OPEN, counter=keys.COUNTER_STEP_MAX))
    assert (desk.state, desk._gate.counter) == (BETTING, keys.COUNTER_STEP_MAX)


def test_a_counter_at_its_end_needs_a_restart(desk: Keyed) -> None:
    desk._gate.counter = protocol.SEQ_MAX - 1
    desk.counter = protocol.SEQ_MAX - 1
    desk.ask("open", shaker=1)
    assert "the last one was 536870911" in desk.why({"q": "close"})
    desk.boot()
    desk.counter = 0
    desk.hello()
    desk.ask("open", shaker=1)


def test_a_refused_request_has_used_its_counter_up(desk: Keyed) -> None:
    assert desk.code("close") == "E_STATE"
    assert desk._gate.counter == 1
    desk.counter = 0
    assert desk.code("open", shaker=1) == "E_AUTH"


# -- tries -----------------------------------------------------------------------------------------------------------


def guess(desk: Keyed) -> str:
    return desk.why(OPEN, key=keys.Key(OTHER[DEALER]))


def test_wrong_signatures_close_the_table_for_a_time_that_grows(desk: Keyed) -> None:
    waits = []
    for number in range(1, 14):
        assert guess(desk).startswith("the signature is wrong")
        if number < keys.FREE_TRIES:
            continue
        waits.append(desk._gate._closed_until - desk.now)
        assert guess(desk) == f"{number} signatures in a row were wrong; wait {waits[-1]} ms more"
        desk.now += waits[-1] - 1
        assert guess(desk) == f"{number} signatures in a row were wrong; wait 1 ms more"
        desk.now += 1
    assert waits == [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000]
    assert desk.refused() == {"mac": 13, "wait": 18}
    desk.counter = 0
    desk.ask("open", shaker=1)
    # Right once: begins anew.
    for _ in range(keys.FREE_TRIES - 1):
        assert guess(desk).startswith("the signature is wrong")
    desk.counter = desk._gate.counter
    desk.ask("close")


def test_while_closed_a_right_signature_waits_and_the_table_goes_on(desk: Keyed) -> None:
    desk.ask("open", shaker=1)
    desk.ask("close")
    desk.ask("shake")
    for _ in range(keys.FREE_TRIES):
        guess(desk)
    desk.counter = desk._gate.counter
    assert "wait 1000 ms more" in desk.why({"q": "unlock"})
    # The lid stops a shake whoever asks for what.
    desk.tell("lid", True)
    assert desk.fetch()[-2]["d"]["reason"] == "lid_opened"
    desk.ask("status")


def test_saying_again_what_was_heard_makes_no_room_for_tries(desk: Keyed) -> None:
    heard = desk.frame(OPEN, 2)
    desk.controller.receive(heard, desk.now)
    desk.reply(2)
    desk.seq = 2
    for _ in range(keys.FREE_TRIES - 1):
        guess(desk)
    assert "counter is 1" in desk.why({"q": "close"}, counter=1)
    guess(desk)
    assert "wait 1000 ms more" in guess(desk)


# -- damaged ---------------------------------------------------------------------------------------------------------


def test_damaged_keys_let_nothing_through_and_are_a_fault(tmp_path: Path) -> None:
    class Damaged(Keyed):
        damage = "/keys.json is damaged; write the keys again from the host"

    desk = Damaged(tmp_path, trouble=("CONFIG", Damaged.damage))
    told = desk.hello()
    assert told["unprovisioned"] is False
    assert told["state"] == "FAULT"
    for name in PRIVILEGED:
        assert desk.why({"q": name}) == Damaged.damage
    desk.role = None
    assert desk.why({"q": "clear", "code": "CONFIG"}) == Damaged.damage


# -- locked ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("locked", [True, False])
def test_a_locked_table_does_not_restart_for_maintenance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    monkeypatch.setitem(IDENTITY, "locked", locked)
    desk = Keyed(tmp_path)
    assert desk.hello()["locked"] is locked
    desk.role = TECHNICIAN
    if locked:
        with pytest.raises(Refused) as raised:
            desk.ask("maintenance")
        assert raised.value.code == "E_LOCKED"
    else:
        desk.ask("maintenance")
    assert desk.table.leaving is not locked


# -- a hello that tells of more than the table has -------------------------------------------------------------------


def claim(desk: Keyed, **more: Any) -> Json:
    """The hello of a host whose record goes on after the table's: a round that is over, and a streak in it."""
    streak = {"count": 2, "parts": [[1, 500]], "gone": []}
    last = desk.journal.last_id + 1000
    told = {"last_event": last, "last_round": 1, "last_over": 1, "streak": streak, "last_hash": "ab" * 16}
    return {"q": "hello", "major": 1, "minor": 3, **told, **more}


def files(desk: Keyed) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in desk.folder.iterdir()}


def say(desk: Keyed, value: Json, role: str = DEALER, **change: Any) -> Json:
    """The answer to a signed hello."""
    desk.seq += 1
    desk.counter = desk._gate.counter
    desk.role = role
    desk.controller.receive(desk.frame(value, desk.seq, **change), desk.now)
    desk.counter = desk._gate.counter
    return desk.reply(desk.seq)


BEYOND = [{}, {"last_event": 0, "last_round": 500_000}, {"streak": None, "last_hash": "", "last_round": 0}]


@pytest.mark.parametrize("more", BEYOND)
def test_an_unsigned_hello_changes_nothing_whatever_it_claims(desk: Keyed, more: Json) -> None:
    desk.reach("LOCKED", [4, 4, 4])
    desk.fetch()
    kept, before, view = files(desk), seen(desk), desk.table.locked
    for again in range(2):
        desk.seq += 1
        desk.controller.receive(protocol.encode(desk.seq, claim(desk, **more)), desk.now)
        reply = desk.reply(desk.seq)
        assert reply["why"] == (
            "a hello beyond the table's own record is not signed; it needs a key of: dealer, supervisor"
        )
        assert reply["err"] == "E_AUTH"
        assert (files(desk), seen(desk), desk.table.locked) == (kept, before, view)
        # The session that there was goes on.
        assert desk.refused() == {"unsigned": again + 1}
    desk.open_lid()
    assert desk.fetch()[-1]["d"]["dice"] == [4, 4, 4]


@pytest.mark.parametrize("role", [TECHNICIAN, "journal"])
def test_a_history_is_not_for_every_role(desk: Keyed, role: str) -> None:
    before = files(desk)
    reply = say(desk, claim(desk), role)
    assert reply["why"] == f"hello: this is not for the {role}; it needs a key of: dealer, supervisor"
    assert say(desk, claim(desk), DEALER, key=keys.Key(OTHER[DEALER]))["err"] == "E_AUTH"
    assert files(desk) == before
    assert desk.refused() == {"role": 1, "mac": 1}


@pytest.mark.parametrize("role", keys.KEEPERS)
def test_who_serves_the_table_gives_it_its_history_back(desk: Keyed, role: str) -> None:
    last = desk.journal.last_id
    answer = say(desk, claim(desk), role)["ok"]
    assert (answer["first_event"], answer["counter"]) == (last + 1001, desk._gate.counter)
    [restart] = desk.fetch()
    assert (restart["k"], restart["d"]["by"], restart["d"]["link"]) == ("restart", role, "ab" * 16)
    assert desk.view()["streak"] == {"count": 2, "parts": [[1, 500]], "gone": []}
    assert sorted(files(desk)) == ["j000000001.bad", f"j{last + 1001:09}.log"]
    # Said again by somebody who heard it: not under another number, not in another start.
    heard = desk.frame(claim(desk), 900, counter=desk._gate.counter)
    desk.controller.receive(heard, desk.now)
    assert desk.reply(900)["err"] == "E_AUTH"
    desk.boot()
    desk.controller.receive(heard, desk.now)
    assert desk.reply(900)["err"] == "E_AUTH"


def test_a_hello_never_removes_what_lies_aside(desk: Keyed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoneye.journal.ASIDE_MAX", 2)
    for _ in range(2):
        assert "ok" in say(desk, claim(desk))
    kept = {name: data for name, data in files(desk).items() if name.endswith(".bad")}
    assert len(kept) == 2
    desk.reach("LOCKED", [4, 4, 4])
    locked = dict(desk.table.locked)
    answer = say(desk, claim(desk, last_round=9, last_over=9))["ok"]
    assert (answer["state"], desk.table.locked) == ("FAULT", locked)
    assert desk.table.standing["JOURNAL"] == "cannot be written: 2 segments lie aside already"
    assert {name: data for name, data in files(desk).items() if name.endswith(".bad")} == kept
    # A supervisor says that the oldest may go.
    desk.role = SUPERVISOR
    desk.ask("clear", code="JOURNAL")
    assert desk.state == IDLE
    left = sorted(name for name in files(desk) if name.endswith(".bad"))
    assert left[0] == sorted(kept)[1]
    assert len(left) == 2
    assert [event["d"]["by"] for event in desk.fetch() if event["k"] == "restart"][-1] == SUPERVISOR


def test_records_go_only_when_a_host_that_may_say_so_has_them(tmp_path: Path) -> None:
    desk = Keyed(tmp_path)
    desk.hello()
    desk.fetch()
    for number in range(200):
        desk.tell("service", bool(number % 2))
    desk.fetch()
    assert desk.known == desk.journal.last_id > 200
    # One that looks on is sent all of it, and frees nothing.
    assert (desk.journal.acked, desk.journal.first_id) == (0, 1)
    desk.hello(desk.known)
    assert desk.journal.acked == 0
    assert "ok" in say(desk, {"q": "hello", "major": 1, "minor": 3, "last_event": desk.known})
    assert desk.journal.acked == desk.known
    desk.tell("set_fault", "READER", "no answer")
    desk.fetch()
    assert desk.journal.acked == desk.known


def test_with_damaged_keys_no_history_is_taken(tmp_path: Path) -> None:
    class Damaged(Keyed):
        damage = "/keys.json is damaged; write the keys again from the host"

    desk = Damaged(tmp_path, trouble=("CONFIG", Damaged.damage))
    desk.hello()
    before = files(desk)
    reply = say(desk, claim(desk))
    assert (reply["err"], reply["why"]) == ("E_AUTH", Damaged.damage)
    desk.seq += 1
    desk.controller.receive(protocol.encode(desk.seq, claim(desk)), desk.now)
    assert desk.reply(desk.seq)["why"] == Damaged.damage
    assert files(desk) == before
    # Looking on needs no key, whatever is in the place of a signature.
    assert "ok" in say(desk, {"q": "hello", "major": 1, "minor": 3})
    assert desk.journal.acked == 0


def test_a_table_without_keys_takes_everybodys_history(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.hello(last_event=1000, last_round=3)
    assert desk.fetch()[0]["k"] == "restart"
