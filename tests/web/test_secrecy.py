"""Nothing tells a locked result before the lid opens: everything that leaves table and server, read and compared.

Two rounds on two tables that are alike in everything but the dice; what may differ between any two runs (time, the
secrets of a session, hashes of the record) is blanked, and all else must be the same.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from dragoneye import protocol
from dragoneye.protocol import LOCKED
from host_tools.link import SerialTransport
from host_tools.web import access
from host_tools.web.console import actions
from tests.virtual import instant_table, until
from tests.web.conftest import BETS, Client, Served

Heard = dict[str, Any]

# What time and chance make of two runs: names of fields, and secrets in pages and headers.
CHANCE = {"t", "h", "m", "lockout_ms", "motor_ma", "supply_mv"}
SECRETS = (
    (re.compile(rb'"csrf": ?"[0-9a-f]{64}"'), b'"csrf":""'),
    (re.compile(rb"dragoneye=[^;]*"), b"dragoneye="),
    # The minute in which the page about the dice was made.
    (re.compile(rb"made \d{4}-\d\d-\d\d \d\d:\d\d UTC"), b"made UTC"),
)
# Fields for every action of the console, right where there is something to be right about.
FIELDS: dict[str, dict[str, Any]] = {
    "open": {"shaker": 1},
    "shaker": {"shaker": 1},
    "bets": {"position": 1, "wagers": {"match": 100}},
    "leave": {"position": 3},
    "void": {"reason": "a reason"},
    "manual": {"dice": [1, 2, 3], "reason": "a reason"},
    "confirm": {"token": 1, "dice": [1, 2, 3]},
    "clear": {"code": "READER"},
    "changed": {"unit": "dice"},
    "test": {"on": True},
    "tiles": {"round": 1, "bank": ["6-6", "6-6", "4-5", "4-4"], "players": []},
}


class Tap(SerialTransport):
    """The port, with everything that the table sends kept."""

    heard = b""

    def read(self, timeout: float) -> bytes:
        data = super().read(timeout)
        self.heard += data
        return data


def blanked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: 0 if key in CHANCE else blanked(inner) for key, inner in value.items()}
    return [blanked(inner) for inner in value] if isinstance(value, list) else value


def without_secrets(data: bytes) -> bytes:
    for pattern, blank in SECRETS:
        data = pattern.sub(blank, data)
    return data


def frames(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.split(b"\n"):
        try:
            yield protocol.decode(line)[1]
        except protocol.Noise:
            assert not line.startswith(b"{")


def counted(stats: dict[str, Any]) -> dict[str, Any]:
    """The counters of what was rolled, read and recorded; times and memory are chance."""
    return {key: stats[key] for key in ("rolls", "voids", "void_reasons", "reading", "journal", "sendable", "acked")}


def names(value: Any) -> Iterator[str]:
    """Every name of a field in it."""
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from names(inner)


def said(message: dict[str, Any]) -> str:
    """A message of the table without what chance makes of it; an answer without the number of its question."""
    return json.dumps(blanked({key: inner for key, inner in message.items() if key != "re"}), sort_keys=True)


def wire(data: bytes) -> Iterator[str]:
    """What the table sent: which of the states on the way were seen is chance, and no field of any has a result."""
    states = set()
    for message in frames(data):
        assert not {"dice", "eye", "total", "result", "rows", "net"} & set(names(message)), message
        view = message.get("st", message.get("ok", {}))
        states.add(view.get("state"))
        if "uptime_ms" in view:
            yield said(counted(view))
        elif "hello" not in message and view.get("state", LOCKED) == LOCKED:
            yield said(message)
    assert {"BETTING", LOCKED} <= states


def before_the_reveal(folder: Path, dice: list[int], caplog: Any, capfd: Any) -> Heard:
    """Everything that was sent, answered, stored, logged and printed with these dice under the shut lid."""
    taps: list[Tap] = []

    def tapped(port: str) -> Tap:
        taps.append(Tap(port))
        return taps[-1]

    caplog.clear()
    capfd.readouterr()
    with (
        instant_table(folder, uid="5EC2E75EC2E75EC2") as bench,
        closing(Served(bench, folder, open_transport=tapped)) as served,
    ):
        clients = {role: Client(served, role) for role in access.ROLES}
        streams = {lang: served.watch(f"/events?lang={lang}") for lang in ("en", "es")}
        streams.update({role: client.stream for role, client in clients.items()})
        for stream in streams.values():
            stream.until_state("IDLE")
        served.bench.do("next", dice=dice)
        desk = clients["dealer"]
        heard: Heard = {"done": [desk.done("open", shaker=2)]}
        heard["done"] += [desk.done("bets", position=position, wagers=BETS[position]) for position in BETS]
        heard["done"] += [desk.done("close"), desk.done("shake")]
        served.wait(LOCKED)
        for stream in streams.values():
            stream.until_state(LOCKED)
        for role, client in clients.items():
            for name in actions(role):
                if name != "unlock":
                    answer = client.do(name, **FIELDS.get(name, {}))
                    heard[f"{role} {name}"] = (answer.status, blanked(answer.json()))
        heard["status"] = blanked(served.ask("status"))
        heard["stats"] = counted(served.ask("stats"))
        heard["unlock"] = desk.done("unlock")
        for route in served.web.app.routes:
            paths = [route.path] if isinstance(route, Route) else ["/static/display.js", "/static/nothing"]
            for path in paths:
                if path.endswith("/events"):
                    continue
                for who in (None, *access.ROLES):
                    cookie = {} if who is None else {"cookie": clients[who].cookie}
                    for method in ("GET", "HEAD", "POST", "OPTIONS"):
                        if path == "/dealer/logout" and method == "POST":
                            continue
                        answer = served.send(method, path, b"{}" if method == "POST" else None, **cookie)
                        told = (answer.status, answer.body, json.dumps(sorted(answer.headers.items())).encode())
                        heard[f"{who} {method} {path}"] = [without_secrets(one) for one in map(_bytes, told)]
        for name, stream in streams.items():
            views = [json.loads(line[6:]) for line in bytes(stream.heard).split(b"\n") if line.startswith(b"data: ")]
            assert not any({"dice", "deal"} & set(view) for view in views)
            # How far the record is while the states go by is chance; the last view is not.
            heard[f"stream {name}"] = blanked(views[-1])
        heard["wire"] = set(wire(taps[0].heard))
        with closing(sqlite3.connect(served.folder / "rounds.db")) as stored:
            tables = [row[0] for row in stored.execute("select name from sqlite_master where type = 'table'")]
            heard["record"] = {}
            for table in tables:
                rows = stored.execute(f"select * from {table}")
                names = [column[0] for column in rows.description]
                kept = [dict(zip(names, row, strict=True)) for row in rows]
                for row in kept:
                    row.update({key: 0 for key in ("utc", "ticks", "link", "tag") if key in row})
                    if "body" in row:
                        row["body"] = said(json.loads(row["body"]))
                heard["record"][table] = kept
        heard["logged"] = [(one.name, one.getMessage()) for one in caplog.records if not one.name.startswith("alembic")]
        heard["printed"] = capfd.readouterr()
        assert len(taps) == 1
        # And then it is told, to the ones that were listening.
        served.lid("open")
        for stream in streams.values():
            assert stream.until_state("SETTLED")["dice"]["values"] == dice
        until(lambda: served.store.rounds() and served.store.round(1)["status"] == "settled", "the record")
    return heard


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def test_nothing_that_leaves_table_or_server_tells_a_locked_result(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    first = before_the_reveal(tmp_path / "first", [1, 1, 2], caplog, capfd)
    second = before_the_reveal(tmp_path / "second", [6, 5, 6], caplog, capfd)
    assert first.keys() == second.keys()
    for name in first:
        assert first[name] == second[name], name
    # Not because nothing was heard.
    assert all(first[name]["state"] == LOCKED for name in ("stream en", "stream es", "stream technician"))
    assert any('"k": "closed"' in one for one in first["wire"])
    assert not any('"k": "locked"' in one for one in first["wire"])
    assert [row["kind"] for row in first["record"]["events"]][-1] == "closed"
