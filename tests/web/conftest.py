"""A virtual table that is served: the web server in a thread of this process, and a plain HTTP client."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from boards.virtual.client import Table, TableError
from host_tools import private
from host_tools.cli.serve import fairness_of
from host_tools.link import SerialTransport, Transport
from host_tools.store import Store
from host_tools.web import console
from host_tools.web.access import Pins, Sessions
from host_tools.web.app import Web
from host_tools.web.console import Console
from host_tools.web.hub import PATIENCE_S, Hub
from host_tools.web.server import Server, listen
from tests.virtual import LONG, instant_table, until

PINS = {"dealer": "2468", "supervisor": "1357-S", "technician": "9876-T"}
BETS: dict[int, dict[str, int]] = {2: {"match": 500, "odd": 1000}, 3: {"bonus": 100}}
# Tile hands of the bank and a player.
BANK = {"high": ["6-6", "4-5"], "low": ["1-1", "3-3"]}
PLAYERS = [{"position": 2, "stake": 5000, "hands": {"high": ["5-5", "3-6"], "low": ["2-2", "1-5"]}}]


def pins_of(folder: Path) -> Pins:
    """PINS, in a file in this folder."""
    pins = Pins(folder / "pins.json")
    for role, pin in PINS.items():
        pins.set(role, pin)
    return pins


def sessions_of(folder: Path) -> tuple[Pins, list[float], Sessions]:
    """PINS in a folder, a clock that stands (its only item), and sessions by both."""
    pins, now = pins_of(folder), [1_000_000.0]
    return pins, now, Sessions(pins, lambda: now[0])


class Answer(NamedTuple):
    """What a request was answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Stream:
    """Server-sent events, every byte of them kept."""

    def __init__(self, port: int, path: str, headers: dict[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
        self._connection.request("GET", path, headers=headers)
        self._response = self._connection.getresponse()
        self.status = self._response.status
        self.heard = bytearray()
        self.view: dict[str, Any] = {}

    def next(self) -> dict[str, Any]:
        """The next view."""
        while True:
            line = self._response.readline()
            assert line, "the stream has ended"
            self.heard += line
            if line.startswith(b"data: "):
                self.view = json.loads(line[6:])
                return self.view

    def until_state(self, *states: str) -> dict[str, Any]:
        """The first view in one of these states, the present one counted."""
        while self.view.get("state") not in states:
            self.next()
        return self.view

    def close(self) -> None:
        self._connection.close()


class Served:
    """A table, its record and the server in front of them."""

    def __init__(
        self,
        bench: Table,
        folder: Path,
        names: frozenset[str] = frozenset(),
        signals: bool = False,
        tls: ssl.SSLContext | None = None,
        open_transport: Callable[[str], Transport] = SerialTransport,
    ) -> None:
        self.tls = tls
        self.open_transport = open_transport
        self.bench = bench
        self.folder = folder
        self.signals = signals
        self.names = names
        private.write(folder / "pins.json", _pins_file())
        self.port = 0
        self._streams: list[Stream] = []
        self.start()

    def start(self) -> None:
        self.store = Store(self.folder / "rounds.db", patience_s=PATIENCE_S)
        self.hub = Hub(self.bench.port, self.store, open_transport=self.open_transport)
        self.hub.start()
        listener = listen("127.0.0.1", self.port)
        self.port = listener.getsockname()[1]
        desk = Console(self.hub, lambda to: self.lid(to), self.signals)
        self.web = Web(self.hub, Pins(self.folder / "pins.json"), desk, fairness_of(self.store), self.names)
        self._server = Server(self.web, self.tls)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()
        until(lambda: self._server.started, "the server")

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(LONG)
        assert not self._thread.is_alive()
        self.hub.stop()
        self.store.close()

    def close(self) -> None:
        for stream in self._streams:
            stream.close()
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, None, **headers)

    def send(self, method: str, path: str, body: bytes | None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def watch(self, path: str = "/events", **headers: str) -> Stream:
        stream = Stream(self.port, path, headers)
        self._streams.append(stream)
        return stream

    # -- the table, dealt at without the console

    def ask(self, name: str, /, **fields: Any) -> Any:
        return self.hub.ask(lambda device: device.request(name, **fields)).result(LONG)

    def all_stored(self) -> None:
        """Wait until every record that may leave the table is stored."""
        self.hub.ask(lambda device: device.wait_stored(LONG)).result(LONG)

    def wait(self, *states: str) -> None:
        until(lambda: self.hub.snapshot.state.get("state") in states, f"{states}")

    def wait_linked(self, is_linked: bool) -> None:
        until(lambda: self.hub.snapshot.linked == is_linked, "the table's answer" if is_linked else "the table's end")

    def lid(self, to: str) -> None:
        def moved() -> bool:
            with suppress(TableError):
                self.bench.do("lid", to=to)
                return True
            return False

        until(moved, f"the lid {to}")
        until(lambda: self.hub.snapshot.state.get("lid_open") == (to == "open"), f"the lid {to}")

    def lock(self, dice: list[int], bets: dict[int, dict[str, int]] | None = None, shaker: int = 2) -> None:
        """A round up to its locked result."""
        self.bench.do("next", dice=dice)
        self.ask("open", shaker=shaker)
        for position, wagers in (BETS if bets is None else bets).items():
            self.ask("bets", position=position, wagers=wagers)
        self.ask("close")
        self.ask("shake")
        self.wait("LOCKED")

    def reveal(self) -> None:
        self.ask("unlock")
        self.lid("open")
        self.wait("SETTLED")

    def finish(self) -> None:
        self.lid("shut")
        self.ask("finish")
        self.wait("IDLE")

    def play(self, dice: list[int], bets: dict[int, dict[str, int]] | None = None) -> None:
        """A whole round."""
        self.lock(dice, bets)
        self.reveal()
        self.finish()


class Client:
    """Somebody at the console with a session."""

    def __init__(self, served: Served, role: str) -> None:
        self.served = served
        body = json.dumps({"role": role, "pin": PINS[role]}).encode()
        answer = served.send("POST", "/dealer/login", body, content_type="application/json")
        assert answer.status == 200, answer
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        page = served.get("/dealer", cookie=self.cookie).body.decode()
        found = re.search(r'<script type="application/json" id="page">(.*?)</script>', page)
        assert found
        self.page = json.loads(found[1])
        self.stream = served.watch("/dealer/events", cookie=self.cookie)
        self.stream.next()
        self._keys = 0

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"content_type": "application/json", "cookie": self.cookie, "x_csrf": self.page["csrf"], **headers}
        return self.served.send("POST", path, data, **sent)

    def do(self, name: str, key: str = "", step: str | None = None, **fields: Any) -> Answer:
        """Press a button; the step is the table's present one unless it is given."""
        self._keys += 1
        seen = console.step(self.served.hub.snapshot) if step is None else step
        return self.post(
            "/dealer/do", {"key": key or f"key-{self._keys:08d}", "do": name, "step": seen, "fields": fields}
        )

    def done(self, name: str, **fields: Any) -> Any:
        """Press a button that must work; the answer."""
        answer = self.do(name, **fields)
        assert answer.status == 200, answer
        return answer.json()["ok"]


@cache
def _pins_file() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return pins_of(Path(folder)).path.read_text()


@contextmanager
def serving(
    folder: Path, pack: str = "nj", more: Any = None, uid: str | None = None, **options: Any
) -> Iterator[Served]:
    """A served virtual table; `uid` is its unique id where it matters, `options` are those of Served."""
    with instant_table(folder, pack, more=more, uid=uid) as bench:
        served = Served(bench, folder, **options)
        try:
            yield served
        finally:
            served.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A table under the New Jersey rules."""
    with serving(tmp_path) as served:
        yield served


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same for a module's tests that leave the table between rounds."""
    with serving(tmp_path_factory.mktemp("shared")) as served:
        yield served
