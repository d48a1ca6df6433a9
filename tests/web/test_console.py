"""The dealer's console over HTTP: who gets in, what they may do, and that it is done once."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoneye import protocol
from dragoneye.rules.packs import load
from host_tools import audit, corrections, fairness
from host_tools.store import Search, StoreError
from host_tools.web import access
from host_tools.web.access import IDLE_S, Limiter, PinError, Pins, Sessions
from host_tools.web.console import actions, role_of, watched
from host_tools.web.hub import Snapshot
from tests.synthetic import biased, fill, history
from tests.unit.conftest import Tablectl, tablectl  # noqa: F401 - a fixture
from tests.virtual import LONG, until
from tests.web.conftest import BANK, BETS, PINS, PLAYERS, Client, Served, serving, sessions_of


def dealer(served: Served) -> Client:
    return Client(served, "dealer")


def settled_round(served: Served) -> int:
    """The number of the newest round, which is settled; it is played if there is none."""
    if not served.hub.snapshot.rounds:
        served.play([1, 2, 4])
    newest = until(
        lambda: (rounds := served.hub.snapshot.rounds) and rounds[-1]["status"] == "settled" and rounds[-1], "the round"
    )
    return int(newest["round"])


# -- a round -------------------------------------------------------------------------------------------------------


def test_a_whole_round(served: Served) -> None:
    desk, display = dealer(served), served.watch()
    served.bench.do("next", dice=[2, 5, 2])
    assert desk.done("open", shaker=2)["round"] == 1
    for position, wagers in BETS.items():
        desk.done("bets", position=position, wagers=wagers)
    assert desk.done("close")["liability"] > 0
    desk.done("shake")
    served.wait("LOCKED")
    desk.done("unlock")
    desk.done("lid", to="open")
    assert display.until_state("SETTLED")["dice"]["values"] == [2, 5, 2]
    desk.done("lid", to="shut")
    desk.done("finish")
    served.all_stored()
    assert served.store.round(1)["status"] == "settled"


def test_the_console_says_what_may_be_done(served: Served) -> None:
    desk = dealer(served)
    assert desk.stream.view["can"] == ["open", "leave", "unlock"]
    desk.done("open", shaker=0)
    view = desk.stream.until_state("BETTING")
    assert view["can"] == ["shaker", "bets", "leave", "close", "unlock"]
    assert [name for name, _words in view["wagers"]] == ["match", "even", "odd", "double", "triple", "bonus"]


def test_every_request_that_is_not_for_another_program_is_at_the_console() -> None:
    elsewhere = {"hello", "status", "stats", "dice", "maintenance", "verify"}
    found = {name for role in access.ROLES for name in actions(role)}
    assert found == set(protocol.REQUESTS) - elsewhere | {"tiles"}
    for name in found & set(protocol.REQUESTS):
        assert role_of(name) == protocol.REQUESTS[name][0]


# -- once ----------------------------------------------------------------------------------------------------------


def test_the_same_action_sent_twice_is_done_once(served: Served) -> None:
    desk = dealer(served)
    answers: list[Any] = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(desk.do("open", key="the-same-key", step="0.IDLE.0.0.False.False.", shaker=1))
        )
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert {(answer.status, answer.body) for answer in answers} == {(200, answers[0].body)}
    served.all_stored()
    assert len(served.store.rounds()) == 1
    served.wait("BETTING")
    assert desk.do("open", key="the-same-key", shaker=1).json() == answers[0].json()


def test_a_press_on_a_page_that_is_out_of_date_does_nothing(served: Served) -> None:
    desk = dealer(served)
    step = desk.stream.view["step"]
    desk.done("open", shaker=1)
    desk.done("close")
    answer = desk.do("shake", step=step)
    assert (answer.status, answer.json()["code"]) == (409, "STALE")
    assert served.hub.snapshot.state["state"] == "CLOSED"


def test_a_restarted_server_does_not_do_it_again(served: Served) -> None:
    desk = dealer(served)
    step = desk.stream.view["step"]
    asked = {"key": "before-the-end", "do": "open", "step": step, "fields": {"shaker": 1}}
    assert desk.post("/dealer/do", asked).status == 200
    served.stop()
    served.start()
    # The session goes on, and what was sent before is not done a second time.
    answer = desk.post("/dealer/do", asked)
    assert (answer.status, answer.json()["code"]) == (409, "STALE")
    served.all_stored()
    assert len(served.store.rounds()) == 1


def test_whoever_goes_before_the_answer_leaves_nothing_half_done(served: Served) -> None:
    desk = dealer(served)
    body = json.dumps({"key": "gone-before", "do": "open", "step": desk.stream.view["step"], "fields": {"shaker": 3}})
    head = (
        f"POST /dealer/do HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncookie: {desk.cookie}\r\n"
        f"x-csrf: {desk.page['csrf']}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall((head + body).encode())
    served.wait("BETTING")
    assert served.hub.snapshot.state["shaker"] == 3
    assert desk.do("open", key="gone-before", shaker=3).status == 200
    served.all_stored()
    assert len(served.store.rounds()) == 1


def test_a_pulled_cable_is_told_and_the_action_can_be_repeated(served: Served) -> None:
    desk = dealer(served)
    served.bench.do("cable", to="out")
    desk.stream.until_state("OFFLINE")
    assert desk.stream.view["can"] == []
    answer = desk.do("open", key="no-cable-yet", shaker=1)
    assert answer.status == 503
    assert "does not answer" in answer.json()["error"]
    served.bench.do("cable", to="in")
    desk.stream.until_state("IDLE")
    assert desk.do("open", key="no-cable-yet", shaker=1).status == 200


# -- who -----------------------------------------------------------------------------------------------------------


def test_roles(served: Served) -> None:
    desk, floor, bench = (Client(served, role) for role in access.ROLES)
    desk.done("open", shaker=1)
    answer = desk.do("void", reason="wrong bets")
    assert (answer.status, answer.json()["role"]) == (403, "supervisor")
    assert bench.do("close").status == 403
    assert floor.do("test", on=True).status == 403
    assert desk.do("hello", major=1, minor=1).status == 400
    floor.done("void", reason="wrong bets")
    served.all_stored()
    assert served.store.round(1)["status"] == "void"
    assert bench.done("test", on=True)["on"] is True
    assert bench.done("test", on=False)["state"] == "IDLE"


def test_nobody_gets_in_without_a_pin(shared: Served) -> None:
    desk = dealer(shared)
    forged = desk.cookie[:-1] + ("1" if desk.cookie.endswith("0") else "0")
    for cookie in ("", "dragoneye=", "dragoneye=dealer.x.1.y", forged, "dragoneye=" + "." * 3000):
        assert shared.get("/dealer/events", cookie=cookie).status == 401
        assert desk.post("/dealer/do", {"do": "open"}, cookie=cookie).status == 401
        assert b'id="login"' in shared.get("/dealer", cookie=cookie).body
    assert shared.hub.snapshot.state["state"] == "IDLE"


def test_only_the_consoles_own_page_may_ask(served: Served) -> None:
    desk = dealer(served)
    asked = {"key": "12345678", "do": "open", "step": desk.stream.view["step"], "fields": {"shaker": 1}}
    for headers, status in (
        ({"x_csrf": ""}, 403),
        ({"x_csrf": "ñ"}, 403),
        ({"x_csrf": Client(served, "dealer").page["csrf"]}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"content_type": "text/plain"}, 415),
    ):
        assert desk.post("/dealer/do", asked, **headers).status == status
    assert desk.post("/dealer/do", asked, origin=served.url).status == 200


def test_the_cookie_is_for_this_server_only(shared: Served) -> None:
    body = json.dumps({"role": "dealer", "pin": PINS["dealer"]}).encode()
    answer = shared.send("POST", "/dealer/login", body, content_type="application/json")
    parts = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert parts == {"httponly", "path=/dealer", "samesite=strict"}


def test_wrong_pins_have_to_wait(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_hash", lambda pin, salt: b"quick")

    def log_in(pin: Any) -> Any:
        body = json.dumps({"role": "supervisor", "pin": pin}).encode()
        return served.send("POST", "/dealer/login", body, content_type="application/json")

    for pin in ("0000", "", None, 1357, "1" * 5000):
        assert log_in(pin).status == 403
    answer = log_in("0000")
    assert answer.status == 429
    assert int(answer.headers["retry-after"]) > 0


def test_the_wait_doubles_and_ends() -> None:
    now = [1000.0]
    limiter = Limiter(lambda: now[0])
    for _ in range(access.FREE_TRIES - 1):
        limiter.wrong("10.0.0.1")
    assert limiter.wait("10.0.0.1") == 0
    limiter.wrong("10.0.0.1")
    assert (limiter.wait("10.0.0.1"), limiter.wait("10.0.0.2")) == (30, 0)
    now[0] += 30
    assert limiter.wait("10.0.0.1") == 0
    limiter.wrong("10.0.0.1")
    assert limiter.wait("10.0.0.1") == 60
    for number in range(2000):
        limiter.wrong(f"10.1.{number // 250}.{number % 250}")
    # So many addresses at once are one attacker: everybody waits.
    assert limiter.wait("10.9.9.9") == access.LAST_WAIT_S
    assert len(limiter._known) <= 1000
    now[0] += 2 * access.LAST_WAIT_S + 1
    assert limiter.wait("10.9.9.9") == 0


def test_sessions_end(tmp_path: Path) -> None:
    pins, now, sessions = sessions_of(tmp_path)
    for role in access.ROLES:
        cookie = sessions.begin(role)
        session = sessions.find(cookie)
        assert session is not None
        now[0] += IDLE_S[role] - 1
        assert sessions.find(cookie) is not None
        sessions.renew(session)
        now[0] += IDLE_S[role] - 1
        assert sessions.find(cookie) is not None
        now[0] += 2
        assert sessions.find(cookie) is None
    cookie = sessions.begin("dealer")
    session = sessions.find(cookie)
    assert session is not None
    sessions.end(session)
    assert sessions.find(cookie) is None
    # Another PIN ends what the old one began; another program with the same file goes on.
    cookie, other = sessions.begin("dealer"), sessions.begin("supervisor")
    assert Sessions(Pins(pins.path), lambda: now[0]).find(cookie) is not None
    pins.set("dealer", "8642")
    assert sessions.find(cookie) is None
    assert sessions.find(other) is not None


def test_what_another_program_does_to_the_pins_counts_at_once(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "pins.json")
    pins.set("dealer", "2468")
    pins.set("supervisor", "1357")
    sessions = Sessions(pins)
    dealers, supervisors = sessions.begin("dealer"), sessions.begin("supervisor")
    Pins(pins.path).set("dealer", "8642")
    assert (pins.check("dealer", "2468"), pins.check("dealer", "8642")) == (False, True)
    assert sessions.find(dealers) is None
    assert sessions.find(supervisors) is not None
    # One's own change keeps the other's.
    pins.set("supervisor", "7531")
    assert Pins(pins.path).check("dealer", "8642")
    dealers = sessions.begin("dealer")
    pins.path.chmod(0o644)
    assert (pins.roles, sessions.find(dealers), pins.check("dealer", "8642")) == ((), None, False)
    pins.path.chmod(0o600)
    assert sessions.find(dealers) is not None
    pins.path.unlink()
    assert (pins.roles, sessions.find(dealers), pins.check("dealer", "8642")) == ((), None, False)


def test_a_log_out_ends_the_session(shared: Served) -> None:
    desk = dealer(shared)
    assert desk.post("/dealer/logout", {}).status == 200
    assert desk.do("open", shaker=1).status == 401


def test_the_file_of_pins_is_its_owners(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "deep" / "pins.json")
    pins.set("dealer", "2468")
    assert stat.S_IMODE(os.stat(pins.path).st_mode) == 0o600
    assert "2468" not in pins.path.read_text()
    again = Pins(pins.path)
    assert again.check("dealer", "2468")
    assert not again.check("dealer", "2469")
    assert not again.check("supervisor", "2468")
    for bad in ("123", "1" * 65, " 1234", "12\n34"):
        with pytest.raises(PinError):
            pins.set("dealer", bad)
    with pytest.raises(PinError, match="another role"):
        pins.set("supervisor", "2468")
    pins.path.chmod(0o644)
    with pytest.raises(PinError, match="others may read it"):
        Pins(pins.path)
    pins.path.chmod(0o600)
    pins.path.write_text('{"roles": []}')
    with pytest.raises(PinError, match="no file of PINs"):
        Pins(pins.path)


def test_a_pin_is_set_by_the_command(tablectl: Tablectl, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "own.json"
    done = tablectl("serve", "--pins", str(file), "--set-pin", "dealer", stdin=b"4711\n")
    assert (done.code, done.err) == (0, "")
    assert Pins(file).check("dealer", "4711")
    done = tablectl("serve", "--pins", str(file), "--set-pin", "supervisor", "--json", stdin=b"4712\n")
    assert done.rows == [{"role": "supervisor", "file": str(file)}]
    assert "4 to 64" in tablectl("serve", "--pins", str(file), "--set-pin", "dealer", stdin=b"1\n").refusal()
    assert "judge" in tablectl("serve", "--set-pin", "judge").refusal()
    assert "directory" in tablectl("serve", "--pins", str(tmp_path), "--set-pin", "dealer", stdin=b"4711\n").refusal()


# -- what goes wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"\xff\xfe", 400),
        (b"[" * 60_000, 400),
        (b'{"key": "12345678"}', 400),
        (b'{"key": "12345678", "do": "open", "fields": []}', 400),
        (b'{"key": 7, "do": "open", "fields": {}}', 400),
        (b'{"key": "12345678", "do": "open", "fields": {"shaker": "<script>"}}', 400),
        (b'{"key": "12345678", "do": "lid", "fields": {"to": "moon"}}', 400),
        (b'{"key": "12345678", "do": "<script>alert(1)</script>", "fields": {}}', 400),
        (b" " * 70_000, 413),
    ],
)
def test_what_is_no_action_is_refused_in_words(shared: Served, body: bytes, status: int) -> None:
    answer = dealer(shared).post("/dealer/do", body)
    assert (answer.status, list(answer.json())) == (status, ["error"])


def test_what_is_too_long_for_the_table_does_not_cost_the_connection(served: Served) -> None:
    """Letters that take six bytes each: the reason is not longer than allowed, and its request is."""
    chief = Client(served, "supervisor")
    chief.done("open", shaker=1)
    linked: list[bool] = []
    tell = served.hub.tell

    def told(snapshot: Snapshot) -> None:
        linked.append(snapshot.linked)
        tell(snapshot)

    served.hub.tell = told
    answer = chief.do("void", reason="誤" * 80)
    assert (answer.status, answer.json()) == (400, {"error": "the request void is too long for the table"})
    chief.done("void", reason="誤記入")
    assert linked
    assert all(linked)


def test_what_the_table_refuses_is_told_in_the_readers_language(served: Served) -> None:
    desk = dealer(served)
    desk.done("open", shaker=1)
    asked = {"do": "bets", "step": "", "fields": {"position": 7, "wagers": {"match": 500}}}
    english = desk.post("/dealer/do?lang=en", {"key": "in-english", **asked}).json()
    spanish = desk.post("/dealer/do?lang=es", {"key": "en-español", **asked}).json()
    assert english["code"] == spanish["code"] == "E_WAGER"
    assert "7 cannot make a match wager" in english["error"]
    assert "7" in spanish["error"]
    assert spanish["error"] != english["error"]


def test_no_round_is_opened_while_the_record_cannot_be_written(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = dealer(served)
    desk.done("open", shaker=1)

    def full(*_arguments: Any) -> bool:
        raise StoreError("rounds.db: the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(served.store, "take", full)
        desk.done("close")
        until(lambda: served.hub.snapshot.record_trouble, "the trouble")
        answer = desk.do("shake")
        assert answer.status == 400
        assert "the disk is full" in answer.json()["error"]
    until(lambda: not served.hub.snapshot.record_trouble, "the end of the trouble")
    served.bench.do("next", dice=[1, 2, 3])
    desk.done("shake")
    served.wait("LOCKED")
    assert [event["k"] for event in served.store.events(served.hub.snapshot.table["uid"])].count("closed") == 1


def test_a_database_that_is_locked_is_told(served: Served) -> None:
    desk = dealer(served)
    with closing(sqlite3.connect(served.folder / "rounds.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        desk.done("open", shaker=1)
        until(lambda: "locked" in served.hub.snapshot.record_trouble, "the trouble")
        other.rollback()
    until(lambda: not served.hub.snapshot.record_trouble, "the end of the trouble")
    served.all_stored()
    assert len(served.store.rounds()) == 1


def test_what_is_typed_is_never_a_script(served: Served) -> None:
    hostile = "</script><script>alert('&amp;')</script>"
    floor = Client(served, "supervisor")
    floor.done("open", shaker=1)
    floor.done("close")
    token = floor.done("manual", dice=[1, 2, 3], reason=hostile)["token"]
    floor.done("confirm", token=token, dice=[1, 2, 3])
    served.reveal()
    display = served.watch()
    while not display.next().get("dice", {}).get("manual"):
        pass
    # As it was typed, and only in the stream, which is JSON that a script puts into text.
    assert display.view["dice"]["manual"] == hostile
    assert hostile.encode() not in served.get("/").body
    assert hostile.encode() not in served.get("/dealer", cookie=floor.cookie).body


# -- by hand -------------------------------------------------------------------------------------------------------


def test_a_result_by_hand_needs_two_confirmations(served: Served) -> None:
    floor, display = Client(served, "supervisor"), served.watch()
    floor.done("open", shaker=1)
    floor.done("close")
    display.until_state("CLOSED")
    display.heard.clear()
    told = floor.done("manual", dice=[6, 5, 4], reason="reader down")
    assert (told["dice"], told["total"], told["eye"]) == ([6, 5, 4], 15, 0)
    answer = floor.do("confirm", token=told["token"], dice=[6, 5, 5])
    assert (answer.status, answer.json()["code"]) == (409, "E_TOKEN")
    floor.done("confirm", token=told["token"], dice=[6, 5, 4])
    display.until_state("LOCKED")
    # Nothing of it is on the display before the lid opens.
    assert b'"dice":' not in bytes(display.heard)
    served.reveal()
    view = display.until_state("SETTLED")
    while "dice" not in view or view["dice"]["manual"] is None:
        view = display.next()
    assert view["dice"]["values"] == [6, 5, 4]


def test_corrections_add_records_and_change_none(served: Served) -> None:
    floor = Client(served, "supervisor")
    served.play([2, 2, 2])
    uid = served.hub.snapshot.table["uid"]
    served.all_stored()
    before = served.store.events(uid)
    floor.done("changed", unit="dice", keep=True)
    floor.done("leave", position=3)
    floor.done("end")
    served.all_stored()
    after = served.store.events(uid)
    assert after[: len(before)] == before
    assert [event["d"]["why"] for event in after[len(before) :]] == [
        "dice changed, streak kept",
        "player left",
        "table closed",
    ]


def test_a_correction_is_a_further_record_and_the_pages_show_what_counts(served: Served) -> None:
    floor, display = Client(served, "supervisor"), served.watch()
    served.play([2, 2, 5], {2: {"match": 500}})
    served.all_stored()
    uid = served.hub.snapshot.table["uid"]
    before = served.store.events(uid)
    assert dealer(served).do("correct", round=1, what="void", reason="bets late").status == 403
    told = floor.done("correct", round=1, what="dice", dice=[2, 5, 5], reason="die 2 misread")
    assert (told["round"], told["what"]) == (1, "dice")
    served.all_stored()
    stored = served.store.round(1)
    assert (stored["result"]["dice"], stored["corrected"]["result"]["dice"]) == ([2, 2, 5], [2, 5, 5])
    while not display.view.get("rolls") or not display.view["rolls"][-1]["corrected"]:
        display.next()
    assert (display.view["rolls"][-1]["total"], display.view["dice"]["values"]) == (12, [2, 5, 5])
    floor.done("correct", round=1, what="bets", position=2, wagers={"match": 1000}, reason="two chips")
    floor.done("correct", round=1, what="void", reason="lid was ajar")
    served.all_stored()
    after = served.store.events(uid)
    assert after[: len(before)] == before
    assert [event["k"] for event in after[len(before) :]] == ["correction"] * 3
    while display.view["rolls"][-1]["status"] != "void":
        display.next()
    assert "dice" not in display.view
    assert audit.audit(served.store, [load("nj")]).findings == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"round": 99, "what": "void", "reason": "never played"}, "99"),
        ({"round": "<b>", "what": "void", "reason": "no number"}, "<b>"),
        ({"round": True, "what": "void", "reason": "no number"}, "true"),
        ({"round": 1, "what": "dice", "dice": [7, 1, 1], "reason": "no such face"}, "dice"),
        ({"round": 1, "what": "dice", "reason": "none given"}, "dice"),
        ({"round": 1, "what": "void", "reason": "x"}, "reason"),
        ({"round": 1, "what": "luck", "reason": "bad luck"}, "luck"),
    ],
)
def test_a_correction_that_cannot_be_is_refused(shared: Served, fields: dict[str, Any], words: str) -> None:
    settled_round(shared)
    shared.all_stored()
    before = shared.store.last(shared.hub.snapshot.table["uid"])
    answer = Client(shared, "supervisor").do("correct", **fields)
    assert answer.status in (400, 409)
    assert words in answer.json()["error"]
    shared.all_stored()
    assert shared.store.last(shared.hub.snapshot.table["uid"]) == before


# -- tile hands ----------------------------------------------------------------------------------------------------


def test_tile_hands_are_settled_then_kept_once(tmp_path: Path) -> None:
    with serving(tmp_path, "ca", signals=True) as served:
        desk = dealer(served)
        served.bench.do("next", dice=[3, 2, 4])
        assert desk.do("tiles", round=1, bank=BANK, players=PLAYERS).json()["code"] == "STALE"
        desk.done("open", shaker=0)
        desk.done("shake")
        served.wait("LOCKED")
        desk.done("close")
        served.reveal()
        served.all_stored()
        desk.stream.until_state("SETTLED")
        while "tiles" not in desk.stream.view["can"]:
            desk.stream.next()
        told = desk.done("tiles", round=1, bank=BANK, players=PLAYERS)
        assert (told["start"], told["action"], told["kept"]) == (1, [3], False)
        # The bank has 6-6/4-5 and 1-1/3-3, which beats both hands of the player.
        assert [(one["result"], one["net"]) for one in told["players"]] == [("lose", -5000)]
        assert told["signals"] == ["bet forward, one tile on three"]
        assert "tiles" not in served.store.round(1)
        assert desk.done("tiles", round=1, bank=BANK, players=PLAYERS, keep=True)["kept"]
        kept = served.store.round(1)["tiles"]
        assert kept["players"][0]["high"] == ["5-5", "3-6"]
        answer = desk.do("tiles", round=1, bank=BANK, players=PLAYERS, keep=True)
        assert answer.status == 409
        while desk.stream.view["hands"] is None:
            desk.stream.next()
        assert "tiles" not in desk.stream.view["can"]
        done = audit.audit(served.store, [load("ca")])
        assert (done.tile_hands, done.findings) == (1, [])


def test_a_correction_that_the_table_would_have_refused_needs_a_second_confirmation(served: Served) -> None:
    served.play([5, 5, 5])
    served.play([6, 6, 6], {})
    served.all_stored()
    boss = Client(served, "supervisor")
    late: dict[str, Any] = {"round": 2, "what": "bets", "position": 1, "wagers": {"bonus": 100}, "reason": "he had one"}
    answer = boss.do("correct", **late)
    assert (answer.status, answer.json()["code"], answer.json()["anyway"]) == (409, "E_BONUS_LATE", True)
    assert "wait until the streak ends" in answer.json()["error"]
    assert "corrected" not in served.store.round(2)
    # Only its own confirmation is one.
    assert boss.do("correct", anyway="no", **late).status == 409
    assert boss.done("correct", anyway=True, **late)["what"] == "bets"
    served.all_stored()
    assert [1, "bonus", 100, 50] in served.store.round(2)["corrected"]["result"]["rows"]


@pytest.mark.parametrize(
    ("bank", "players", "words"),
    [
        (BANK, [], "not empty"),
        ({"high": ["6-6", "6-6"], "low": ["6-6", "1-1"]}, PLAYERS, "6-6"),
        (BANK, [dict(PLAYERS[0], position=7)], "position"),
        (BANK, [PLAYERS[0], PLAYERS[0]], "twice"),
        (BANK, [dict(PLAYERS[0], stake=0)], "stake"),
        (BANK, [dict(PLAYERS[0], hands={"high": ["2-2", "1-5"], "low": ["5-5", "3-6"]})], "better"),
        (["6-6", "4-5", "<b>", "3-3"], PLAYERS, "<b>"),
        ({"high": ["6-6"], "low": []}, PLAYERS, "2"),
    ],
)
def test_hands_that_cannot_be_are_refused(shared: Served, bank: Any, players: Any, words: str) -> None:
    desk, number = dealer(shared), settled_round(shared)
    answer = desk.do("tiles", round=number, bank=bank, players=players, keep=True)
    assert answer.status == 400
    assert words in answer.json()["error"]
    assert "tiles" not in shared.store.round(number)


def test_four_tiles_are_set_by_the_house_way(shared: Served) -> None:
    desk, number = dealer(shared), settled_round(shared)
    told = desk.done("tiles", round=number, bank=["6-6", "6-6", "4-5", "4-4"], players=PLAYERS)
    assert told["bank"]["rule"]
    assert sorted([*told["bank"]["high"], *told["bank"]["low"]]) == ["4-4", "4-5", "6-6", "6-6"]


def test_tile_hands_are_dealt_by_the_dice_that_count(served: Served) -> None:
    number = settled_round(served)
    served.play([6, 6, 5])
    desk, boss = dealer(served), Client(served, "supervisor")
    served.all_stored()
    assert boss.done("correct", round=number + 1, what="void", reason="dealt twice")["said"] == ""
    served.all_stored()
    until(lambda: corrections.rolled(served.hub.snapshot.rounds[-1]) is None, "the correction")
    assert "tiles" not in watched(served.hub.snapshot, "dealer")["can"]
    answer = desk.do("tiles", round=number + 1, bank=BANK, players=PLAYERS, keep=True)
    assert answer.status == 409
    assert "it should have been void; it takes no tile hands" in answer.json()["error"]
    boss.done("correct", round=number + 1, what="dice", dice=[1, 1, 2], reason="camera 4")
    served.all_stored()
    told = desk.done("tiles", round=number + 1, bank=BANK, players=PLAYERS, keep=True)
    assert (told["total"], told["start"]) == (4, 4)
    # New Jersey's text has no signals.
    assert "signals" not in told
    assert "signal" not in told["players"][0]
    said = boss.done("correct", round=number + 1, what="dice", dice=[1, 1, 3], reason="camera 5")["said"]
    assert "were dealt by the total 4, before the dice were corrected to 5" in said


def test_tile_hands_are_settled_by_the_pack_of_their_round(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    number = settled_round(served)
    monkeypatch.setattr(served.store, "_packs", {})
    answer = dealer(served).do("tiles", round=number, bank=BANK, players=PLAYERS, keep=True)
    assert answer.status == 409
    assert "not known here" in answer.json()["error"]
    assert "tiles" not in served.store.round(number)


def test_tile_hands_are_kept_by_the_command_as_well(served: Served, tablectl: Tablectl) -> None:  # noqa: F811
    number = settled_round(served)
    case = json.dumps({"bank": BANK, "players": PLAYERS})
    db = str(served.folder / "rounds.db")
    done = tablectl("record", "tiles", str(number), case, "--db", db, "--json")
    assert done.rows[0]["tiles"]["players"][0]["result"] == "lose"
    assert served.store.round(number)["tiles"]["players"][0]["net"] == -5000
    assert "already" in tablectl("record", "tiles", str(number), case, "--db", db).refusal()
    assert "not JSON" in tablectl("record", "tiles", str(number), "{", "--db", db).refusal()
    assert "no round 99" in tablectl("record", "tiles", "99", case, "--db", db).refusal()


# -- fair dice -----------------------------------------------------------------------------------------------------


def test_the_dice_are_judged_behind_the_login(served: Served) -> None:
    answer = served.get("/dealer/fairness")
    assert (answer.status, answer.headers["location"]) == (303, "/dealer")
    desk = dealer(served)

    def page(language: str) -> str:
        answer = served.get(f"/dealer/fairness?lang={language}", cookie=desk.cookie)
        assert answer.status == 200
        assert "script" not in answer.headers["content-security-policy"]
        return answer.body.decode()

    assert "no rolls are recorded" in page("en")
    for dice in ([1, 2, 4], [6, 6, 6]):
        served.play(dice)
    served.all_stored()
    english, spanish = page("en"), page("es")
    assert english.count("<svg") == spanish.count("<svg") == 3
    assert "2 rolls from" in english
    assert "no warning" in english
    # A die's test and the intervals of its faces.
    assert '<td class="left">die 1 faces</td>' in english
    assert '<td class="left">dado 1 caras</td>' in spanish
    assert "<script" not in english + spanish


def test_a_record_that_cannot_be_read_is_told_in_place_of_the_dice(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: Any) -> Any:
        raise StoreError("rounds.db: disk I/O error")

    desk = dealer(served)
    monkeypatch.setattr(served.store, "rolls", broken)
    answer = served.get("/dealer/fairness", cookie=desk.cookie)
    assert (answer.status, answer.body) == (503, b"rounds.db: disk I/O error")


def test_dice_that_drift_are_told_to_who_deals_and_hold_up_nothing(tmp_path: Path) -> None:
    uid = "D1CE000000000001"
    fill(tmp_path / "rounds.db", uid, history(1500, roller=biased(1, 6, 0.08)))
    with serving(tmp_path, uid=uid) as served:
        [dice_set] = fairness.gather(served.store, Search(uid=uid))
        round_ = fairness.analyse(dice_set)["drift"]["warned_at_round"]
        words = f"die 2 drifts from fair since round {round_}"
        desk, display = dealer(served), served.watch()
        assert any(notice["text"].startswith(words) for notice in desk.stream.view["notices"])
        served.play([1, 2, 4])
        served.all_stored()
        assert served.hub.snapshot.drift is not None
        assert not any("drifts" in notice["text"] for notice in display.next()["notices"])
        # Other dice begin anew.
        served.ask("changed", unit="dice", keep=False)
        served.play([1, 2, 4])
        served.all_stored()
        assert served.hub.snapshot.drift is None
