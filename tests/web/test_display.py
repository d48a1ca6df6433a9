"""The display: what it is sent, and what it is not sent before the lid opens."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.requests import Request

from dragoneye.rules.packs import load
from host_tools.device import called
from host_tools.diceset import utc_now
from host_tools.i18n import speaking
from host_tools.link import LinkError
from host_tools.store import Store, StoreError
from host_tools.web import app, pages, view
from host_tools.web.app import language_of
from host_tools.web.channel import Channel
from host_tools.web.hub import Hub, Snapshot
from tests.unit.conftest import Done, Tablectl, tablectl  # noqa: F401 - a fixture
from tests.virtual import LONG, instant_table, until
from tests.web.conftest import BETS, Served, serving

# -- the view ------------------------------------------------------------------------------------------------------


def state(**changes: Any) -> dict[str, Any]:
    """A live state as the table sends it."""
    return {
        "state": "BETTING",
        "round": 7,
        "shaker": 2,
        "bets_open": True,
        "bets": [],
        "streak": {"count": 0, "parts": [], "gone": []},
        "liability": 0,
        "voids": 0,
        "shakes": 0,
        "lid_open": False,
        **changes,
    }


def shown(pack: str = "nj", rounds: tuple[Any, ...] = (), table: Any = None, **changes: Any) -> dict[str, Any]:
    snapshot = Snapshot(linked=True, table=table or {}, state=state(**changes), pack=load(pack), rounds=rounds)
    return view.display(snapshot, utc_now())


def test_each_wager_says_what_it_pays() -> None:
    bets = [[2, dict.fromkeys(("match", "even", "odd", "double", "triple", "bonus"), 100)], [3, {"bonus": 100}]]
    seats = shown(bets=bets)["seats"]
    assert [row["terms"] for row in seats[1]["wagers"]] == [
        "1 to 1 for each die",
        "1 to 1",
        "1 to 1",
        "4 to 1",
        "30 to 1",
        "30 to 1",
    ]
    # Position 2 shakes, so its bonus pays the shaker's odds and the other one a player's (NJ 13:69F-11.21(f)).
    assert [row["terms"] for row in seats[2]["wagers"]] == ["25 to 1"]
    assert [seat["shakes"] for seat in seats] == [False, True, False, False, False, False, False]


def test_the_bonus_at_stake_follows_the_streak() -> None:
    streak = {"count": 2, "parts": [[2, 100], [3, 50]], "gone": []}
    bets = [[2, {"bonus": 100}], [3, {"bonus": 50}]]
    told = shown(bets=bets, streak=streak)["streak"]
    assert told == {
        "count": 2,
        "rows": [
            {"position": 2, "stake": 100, "pays": 1_000_000},
            {"position": 3, "stake": 50, "pays": 50_000},
        ],
        "pays": 1_050_000,
    }


@pytest.mark.parametrize(
    ("pack", "dice", "start", "deal"),
    [
        # The card room sheet, rule 3: a total of 9 starts at the bank; player position k is deal position k + 1.
        ("ca", [3, 2, 4], 1, [2, 3, 4, 5, 6, 7, 8]),
        ("nj", [6, 6, 2], 7, [3, 4, 5, 6, 7, 1, None]),
    ],
)
def test_the_deal_is_shown_by_position(pack: str, dice: list[int], start: int, deal: list[Any]) -> None:
    result = {"dice": dice, "eye": 0, "rows": [], "manual": None, "before": 0, "shaker": 0}
    stored = {"round": 7, "status": "settled", "result": result}
    told = shown(pack, (stored,), state="SETTLED", dice=dice, eye=0)
    assert told["deal"]["start"] == start
    assert [seat["deal"] for seat in told["seats"]] == deal
    assert sorted(filter(None, [told["deal"]["bank"], *deal])) == list(range(1, load(pack)["positions"] + 1))


def test_a_bonus_that_only_stays_up_is_told_as_that() -> None:
    rows = [[3, "match", 100, 3]]
    result = {"dice": [3, 3, 3], "eye": 0, "rows": rows, "manual": None, "before": 3, "shaker": 2}
    stored = {"round": 7, "status": "settled", "result": result}
    told = shown(rounds=(stored,), state="SETTLED", dice=[3, 3, 3], eye=0, bets=[[3, {"match": 100, "bonus": 100}]])
    assert [(row["wager"], row["outcome"], row["profit"]) for row in told["seats"][2]["wagers"]] == [
        ("match", "pays", 300),
        ("bonus", "stays", 0),
    ]


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"state": "FAULT", "fault": "TAMPER", "detail": "foreign tag 04AB"}, "fault", "foreign tag 04AB"),
        ({"state": "TEST", "test": True}, "test", "nothing that is shown here is a result"),
        ({"service": {"SUPPLY": "the 12 V supply stays low"}}, "service", "12 V"),
    ],
)
def test_what_is_wrong_is_told(changes: dict[str, Any], kind: str, words: str) -> None:
    [notice] = shown(**changes)["notices"]
    assert notice["kind"] == kind
    assert words in notice["text"]


def test_a_table_that_is_unprovisioned_or_does_not_answer_says_so() -> None:
    [notice] = shown(table={"unprovisioned": True})["notices"]
    assert notice["kind"] == "unprovisioned"
    told = view.display(Snapshot(trouble="the cable"), utc_now())
    assert (told["state"], told["hint"]) == ("OFFLINE", "the cable")


def test_a_void_roll_says_why_and_what_comes() -> None:
    assert shown(state="VOID", void="cocked", call=False)["hint"].endswith("the dice are shaken again")
    assert shown(state="VOID", void="cocked", call=True)["hint"].endswith("a supervisor is called")


# -- over the wire -------------------------------------------------------------------------------------------------


def test_nothing_of_a_result_is_sent_before_the_lid_opens(served: Served) -> None:
    streams = [served.watch("/events?lang=en"), served.watch("/events?lang=es")]
    for stream in streams:
        stream.until_state("IDLE")
    # Two rounds that are alike in everything but their dice: to the letter the same is sent before the reveal.
    heard: list[Any] = []
    for dice in ([1, 1, 2], [6, 5, 6]):
        for stream in streams:
            stream.heard.clear()
        served.lock(dice)
        sent = []
        for stream in streams:
            stream.until_state("LOCKED")
            views = [json.loads(line[6:]) for line in bytes(stream.heard).split(b"\n") if line.startswith(b"data: ")]
            # Between rounds the last result is shown still.
            views = [told for told in views if told["state"] != "IDLE"]
            for told in views:
                assert "dice" not in told
                assert "deal" not in told
                told["rolls"] = len(told["rolls"]) - len(heard)
                told["round"] -= len(heard)
            sent.append({told["state"]: told for told in views})
        page = served.get("/").body
        heard.append((sent[0]["LOCKED"], sent[1]["LOCKED"], page))
        served.reveal()
        for stream in streams:
            assert stream.until_state("SETTLED")["dice"]["values"] == dice
        served.finish()
        served.all_stored()
        for stream in streams:
            stream.until_state("IDLE")
    assert heard[0] == heard[1]


def test_a_round_as_the_display_sees_it(served: Served) -> None:
    stream = served.watch()
    served.lock([2, 5, 2])
    told = stream.until_state("LOCKED")
    assert [row["terms"] for row in told["seats"][1]["wagers"]] == ["1 to 1 for each die", "1 to 1"]
    served.reveal()
    told = stream.until_state("SETTLED")
    while told["seats"][1]["net"] is None:
        told = stream.next()
    assert told["dice"] == {
        "values": [2, 5, 2],
        "eye": 0,
        "total": 9,
        "past": False,
        "manual": None,
        "corrected": False,
    }
    # A total of 9 at a table of 7: deal position 2, which is player position 1.
    assert told["deal"]["start"] == 2
    assert [(row["wager"], row["outcome"], row["profit"]) for row in told["seats"][1]["wagers"]] == [
        ("match", "pays", 1000),
        ("odd", "loses", -1000),
    ]
    assert told["rolls"][-1] == {
        "round": 1,
        "status": "settled",
        "dice": [2, 5, 2],
        "eye": 0,
        "total": 9,
        "manual": False,
        "corrected": False,
    }
    assert BETS[2] == {row["wager"]: row["stake"] for row in told["seats"][1]["wagers"]}


def test_a_pulled_cable_is_told_and_the_table_comes_back(served: Served) -> None:
    stream = served.watch()
    served.lock([2, 3, 4])
    stream.until_state("LOCKED")
    served.bench.do("cable", to="out")
    assert "dice" not in stream.until_state("OFFLINE")
    served.bench.do("cable", to="in")
    stream.until_state("LOCKED")
    served.reveal()
    assert stream.until_state("SETTLED")["dice"]["values"] == [2, 3, 4]


def test_a_record_that_cannot_be_written_is_told_and_lost_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = served.watch()
    stream.until_state("IDLE")
    refused: list[str] = []

    def full(uid: str, record: Any, *_more: Any) -> bool:
        refused.append(record["k"])
        raise StoreError("rounds.db: the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(served.store, "take", full)
        served.ask("open", shaker=1)
        until(lambda: "opened" in refused, "the record")
        # A screen is sent the newest only, so it must have seen this before it is over.
        while not any(notice["kind"] == "record" for notice in stream.view["notices"]):
            stream.next()
    while any(notice["kind"] == "record" for notice in stream.view["notices"]):
        stream.next()
    assert served.store.round(1)["status"] == "open"


def test_the_page_speaks_the_readers_language(shared: Served) -> None:
    for path, header, language in (
        ("/", "", "en"),
        ("/?lang=es", "", "es"),
        ("/", "es-PR,es;q=0.9,en;q=0.5", "es"),
        ("/", "fr,en;q=0.8,es;q=0.9", "es"),
        ("/?lang=en", "es", "en"),
        ("/?lang=%3Cscript%3E", "xx;q=zzz,,;", "en"),
    ):
        answer = shared.get(path, accept_language=header)
        assert (answer.status, f'<html lang="{language}">' in answer.body.decode()) == (200, True)


@pytest.mark.parametrize(
    ("asked", "languages", "spoken"),
    [("fr", "es en", "es"), ("en", "es en", "en"), ("fr", "xx es", "es"), ("fr", "xx", "en"), ("", "", "en")],
)
def test_where_the_browser_asks_for_none_of_ours_the_table_says_what_is_spoken(
    asked: str, languages: str, spoken: str
) -> None:
    headers = [(b"accept-language", asked.encode())]
    request = Request({"type": "http", "query_string": b"", "headers": headers})
    assert language_of(request, {"languages": languages}) == spoken


def test_pages_and_display_name_the_table() -> None:
    for page in (pages.display_page("<7>"), pages.dealer_page("<7>", "dealer", "", (), False)):
        assert "<title>&lt;7&gt; · D" in page
        assert '<h1 class="hidden">&lt;7&gt; · D' in page
        assert "<7>" not in page
    assert "<title>Dragon&#x27;s eye table</title>" in pages.display_page("")
    assert called({"uid": "U1", "name": "Table \x1b[31m7"}) == "Table [31m7 (U1)"
    assert called({"uid": "U1", "name": ""}) == called({"uid": "U1"}) == "U1"


def test_every_answer_is_guarded(shared: Served) -> None:
    for path in ("/", "/static/display.js", "/static/style.css", "/nothing"):
        headers = shared.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
    page = shared.get("/").body.decode()
    assert not re.search(r"<script(?![^>]*(src=|application/json))", page)
    assert not re.search(r"\son\w+=|style=", page)


def test_a_name_that_is_not_the_servers_gets_no_answer(shared: Served) -> None:
    assert shared.get("/", host="evil.example").status == 421
    for name in ("localhost", "127.0.0.1:8080", "[::1]:8080", "192.168.7.20"):
        assert shared.get("/", host=name).status == 200


def test_too_many_screens_are_told(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "WATCHERS_MAX", 1)
    shared.watch().next()
    answer = shared.get("/events")
    assert (answer.status, answer.json()) == (503, {"error": "too many screens watch this table"})


def test_a_screen_that_does_not_read_gets_the_newest_only() -> None:
    async def check() -> None:
        seen = [0]
        channel = Channel(lambda key: {"n": seen[0], "key": key})
        stream = channel.stream("a")
        assert await anext(stream) == b"retry: 1000\n\n"
        await anext(stream)
        for seen[0] in range(1, 1000):
            channel.publish()
        assert b'"n":999' in await anext(stream)
        assert len(channel._frames) == 1
        channel.close()
        assert [frame async for frame in stream] == []
        assert channel.watchers == 0

    asyncio.run(check())


def test_a_language_is_one_readers_only() -> None:
    with speaking("es"):
        assert view.title("BETTING") != "Bets are open"
    assert view.title("BETTING") == "Bets are open"


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--virtual"),
        (("--port", "/dev/nothing", "--virtual"), "--virtual"),
        (("--port", "/dev/nothing", "--http", "0"), "there is no such port"),
        (("--virtual", "--http", "70000"), "70000"),
        (("--port", "/dev/nothing", "--host", "256.1.1.1"), "256.1.1.1"),
        (("--virtual", "--pack", "tx"), "tx"),
        (("--virtual", "--house-way", "mine"), "mine"),
    ],
)
def test_a_mistake_is_told_in_one_line(tablectl: Tablectl, arguments: tuple[str, ...], words: str) -> None:  # noqa: F811
    done: Done = tablectl("serve", *arguments)
    assert words in done.refusal()


def test_a_table_that_another_program_serves_is_refused(shared: Served, tablectl: Tablectl) -> None:  # noqa: F811
    refusal = tablectl("serve", "--port", shared.bench.port, "--http", "0").refusal()
    assert "another program holds it" in refusal


def test_an_address_that_is_taken_is_refused(shared: Served, tablectl: Tablectl) -> None:  # noqa: F811
    refusal = tablectl("serve", "--port", "/dev/nothing", "--http", str(shared.port)).refusal()
    assert f"127.0.0.1:{shared.port}" in refusal


def test_a_table_of_an_unknown_rule_pack_is_refused(tmp_path: Path) -> None:
    with instant_table(tmp_path, "ca") as bench:
        store = Store(tmp_path / "rounds.db")
        hub = Hub(bench.port, store, load("nj"))
        with pytest.raises(LinkError, match="--pack ca"):
            hub.start()
        hub.stop()
        store.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_serve_runs_until_it_is_told_to_end(tmp_path: Path, number: int, code: int) -> None:
    with serving(tmp_path) as other:
        other.stop()
        command = [sys.executable, "-m", "host_tools", "serve", "--port", other.bench.port, "--http", "0", "--json"]
        command += ["--pins", str(tmp_path / "none.json")]
        environment = {**os.environ, "DRAGONEYE_DB": str(tmp_path / "own.db"), "LC_ALL": "C.UTF-8"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout
        told = json.loads(process.stdout.readline())
        assert (told["console"], told["pins"]) == (None, {})
        other.port = urlsplit(told["display"]).port or 0
        stream = other.watch()
        assert stream.until_state("IDLE")
        process.send_signal(number)
        assert process.wait(LONG) == code
        other.port = 0
        other.start()
