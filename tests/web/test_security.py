"""Who holds connections, floods, guesses, listens in or points a name here: what the server does about it."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from host_tools.cli import serve
from host_tools.web import access, app, server
from host_tools.web.access import LIFE_S, Pace, PinError, Pins, Sessions, is_loopback
from host_tools.web.server import tls_context
from tests.unit.conftest import Tablectl, tablectl  # noqa: F401 - a fixture
from tests.virtual import LONG, until
from tests.web.conftest import PINS, Client, Served, serving, sessions_of

HEAD = b"POST /dealer/login HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


@contextmanager
def connected(served: Served, sent: bytes = b"") -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", served.port), LONG) as connection:
        connection.sendall(sent)
        yield connection


def ends(connection: socket.socket) -> bool:
    """Whether the other end closes it; what comes before that is dropped."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def connections(served: Served) -> int:
    return len(served._server.server_state.connections)


# -- connections ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nhost: loc", HEAD + b"content-length: 50\r\n\r\n{"])
def test_a_request_that_never_ends_is_cut(shared: Served, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_S", 0.3)
    with connected(shared, sent) as connection:
        assert ends(connection)


def test_a_second_request_that_never_ends_is_cut_and_a_stream_is_not(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REQUEST_S", 0.3)
    stream = served.watch()
    stream.until_state("IDLE")
    with connected(served, b"GET /dealer/session HTTP/1.1\r\nhost: localhost\r\n\r\n") as connection:
        assert connection.recv(12) == b"HTTP/1.1 401"
        connection.sendall(b"GET /dealer/session HTTP/1.1\r\nhost: loc")
        assert ends(connection)
    served.ask("open", shaker=1)
    assert stream.until_state("BETTING")["round"] == 1


def test_who_does_not_read_is_cut(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    until(lambda: connections(shared) == 0, "the end of earlier ones")
    full = threading.Event()
    stalled = server.Impatient.pause_writing

    def pause_writing(self: server.Impatient) -> None:
        full.set()
        stalled(self)

    monkeypatch.setattr(server.Impatient, "pause_writing", pause_writing)
    monkeypatch.setattr(server, "STALLED_S", 0.3)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(LONG)
        connection.connect(("127.0.0.1", shared.port))
        connection.sendall(b"GET /static/dealer.js HTTP/1.1\r\nhost: localhost\r\n\r\n" * 500)
        assert full.wait(LONG)
        until(lambda: connections(shared) == 0, "the connection's end")


def test_one_connection_too_many_is_cut(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    until(lambda: connections(shared) == 0, "the end of earlier ones")
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 3)
    with connected(shared), connected(shared), connected(shared):
        until(lambda: connections(shared) == 3, "three connections")
        with connected(shared) as connection:
            assert ends(connection)


def test_an_address_may_have_so_many_connections_and_screens(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    until(lambda: connections(shared) == 0, "the end of earlier ones")
    for module in (server, app):
        monkeypatch.setattr(module, "is_loopback", lambda host: False)
    monkeypatch.setattr(app, "WATCHERS_PER_ADDRESS", 1)
    first = shared.watch()
    first.next()
    assert shared.get("/events").status == 503
    first.close()
    until(lambda: not shared.web._watching, "the end of the stream")
    shared.watch().next()
    monkeypatch.setattr(server, "CONNECTIONS_PER_ADDRESS", 1)
    with connected(shared) as connection:
        assert ends(connection)


def test_this_computer_is_no_single_address() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("", "10.0.0.1", "127.0.0.1.example", "0.0.0.0", "::", "localhost.example")))


@pytest.mark.parametrize("length", [b"content-length: 9000000\r\n", b"transfer-encoding: chunked\r\n"])
def test_a_body_that_does_not_end_is_refused_early(shared: Served, length: bytes) -> None:
    with connected(shared, HEAD + length + b"\r\n") as connection:
        part = b"8000\r\n" + b"[" * 0x8000 + b"\r\n" if b"chunked" in length else b"[" * 0x8000
        for _again in range(4):
            connection.sendall(part)
        assert connection.recv(12) == b"HTTP/1.1 413"


def test_no_upgrade_to_a_web_socket(shared: Served) -> None:
    answer = shared.get("/events", upgrade="websocket", connection="Upgrade", sec_websocket_version="13", host="evil")
    assert answer.status == 421


# -- rates ---------------------------------------------------------------------------------------------------------


def test_a_session_may_do_so_much_at_once() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    assert [pace.take("one") for _again in range(access.BURST + 1)] == [True] * access.BURST + [False]
    assert pace.take("two")
    now[0] += 1.0 / access.PACE
    assert [pace.take("one"), pace.take("one")] == [True, False]
    now[0] += 1e6
    assert [pace.take("one") for _again in range(access.BURST + 1)].count(True) == access.BURST
    for number in range(3000):
        pace.take(str(number))
    assert len(pace._left) <= 1000


def test_actions_without_end_are_refused_and_do_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Client(served, "dealer")
    served.web._pace = Pace(lambda: 0.0)
    monkeypatch.setattr(access, "BURST", 2)
    assert [desk.do("finish").status for _again in range(2)] == [409, 409]
    answer = desk.do("open", shaker=1)
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
    assert served.hub.snapshot.state["state"] == "IDLE"


def test_pins_do_not_queue_without_end(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "LOOKS_MAX", 2)
    held = threading.Event()
    monkeypatch.setattr(access, "_hash", lambda pin, salt: (held.wait(LONG), b"quick")[1])
    body = json.dumps({"role": "dealer", "pin": "0000"}).encode()
    answers: list[int] = []

    def log_in() -> None:
        answers.append(shared.send("POST", "/dealer/login", body, content_type="application/json").status)

    threads = [threading.Thread(target=log_in) for _again in range(5)]
    for thread in threads:
        thread.start()
    until(lambda: len(answers) == 3, "those that are refused")
    assert answers == [429] * 3
    held.set()
    for thread in threads:
        thread.join(LONG)
    assert sorted(answers) == [403, 403, 429, 429, 429]
    shared.web._limiter.right("127.0.0.1")


# -- sessions ------------------------------------------------------------------------------------------------------


def test_a_session_ends_however_much_is_done(tmp_path: Path) -> None:
    _pins, now, sessions = sessions_of(tmp_path)
    for role in access.ROLES:
        cookie, begun = sessions.begin(role), now[0]
        while (session := sessions.find(cookie)) is not None:
            cookie = sessions.renew(session)
            now[0] += 600
            # Another life is not had by another beginning.
            parts = cookie.split(".")
            assert sessions.find(".".join([*parts[:2], str(int(now[0])), *parts[3:]])) is None
        assert now[0] - begun == LIFE_S[role]


def test_a_log_in_is_a_new_session_and_ends_the_one_before(shared: Served) -> None:
    first = Client(shared, "dealer")
    body = json.dumps({"role": "supervisor", "pin": PINS["supervisor"]}).encode()
    answer = shared.send("POST", "/dealer/login", body, content_type="application/json", cookie=first.cookie)
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert cookie.split(".")[1] != first.cookie.split(".")[1]
    assert shared.get("/dealer/session", cookie=cookie).json() == {"role": "supervisor"}
    assert shared.get("/dealer/session", cookie=first.cookie).status == 401


def test_a_session_that_was_ended_stays_so_over_a_restart(tmp_path: Path) -> None:
    pins, now, _sessions = sessions_of(tmp_path)

    def started() -> Sessions:
        return Sessions(Pins(pins.path), lambda: now[0])

    first = started()
    stolen, other = first.begin("dealer"), first.begin("dealer")
    session = first.find(stolen)
    assert session is not None
    first.end(session)
    assert started().find(stolen) is None
    assert started().find(other) is not None
    kept = tmp_path / "pins.json.ended"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stolen not in kept.read_text()
    # The list does not grow for ever: what is over anyhow leaves it.
    now[0] += LIFE_S["dealer"] + 1
    late = started()
    session = late.find(late.begin("technician"))
    assert session is not None
    late.end(session)
    assert list(json.loads(kept.read_text())) == [session.sid]
    for damage in ("[", "[1]", '{"a": []}', "[" * 5000):
        kept.write_text(damage)
        with pytest.raises(PinError, match="no list of ended sessions"):
            started()


@pytest.mark.parametrize("cookie", ["dealer.\xb2.\xb2.\xb2.\xb2", "supervisor.x.1.1.\xe9", "dealer.x.-1.1.0"])
def test_a_cookie_of_strange_letters_is_none(shared: Served, cookie: str) -> None:
    assert shared.get("/dealer/session", cookie="dragoneye=" + cookie).status == 401


# -- every answer --------------------------------------------------------------------------------------------------


def test_every_answer_of_every_route_is_guarded_and_kept_nowhere(shared: Served) -> None:
    desk = Client(shared, "dealer")
    seen = set()
    for route in shared.web.app.routes:
        path = route.path if isinstance(route, Route) else "/static/dealer.js"
        if path.endswith("/events"):
            continue
        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
            for headers in ({}, {"host": "evil.example"}, {"cookie": desk.cookie}):
                if path == "/dealer/logout" and "cookie" in headers:
                    continue
                answer = shared.send(method, path, None, **headers)
                seen.add(answer.status)
                expected = dict(app.HEADERS)
                if path == "/dealer/fairness" and answer.status == 200:
                    # Drawings with their style in them, and no script at all.
                    expected["content-security-policy"] = app._DRAWINGS_POLICY
                for name, value in expected.items():
                    assert answer.headers[name] == value, (method, path, headers)
                assert not re.search("script-src (?!'self';)", answer.headers["content-security-policy"])
                assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
                assert not {"server", "date", "access-control-allow-origin"} & set(answer.headers)
                assert "strict-transport-security" not in answer.headers
    assert {200, 401, 405, 415, 421} <= seen
    assert shared.get("/dealer/events", cookie="").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "evil.example",
            "evil.example:8080",
            "evil.example:80:80",
            "[evil.example]",
            "[::1]x",
            "127.0.0.1.evil.example",
        ),
        *("2130706433", "0x7f.1", "127.1", "\xb2", "localhost.", "localhost:x", "[::1", "", ":80", "localhost evil"),
    ],
)
def test_a_name_that_is_pointed_here_gets_no_answer(shared: Served, name: str) -> None:
    """DNS rebinding: a page from elsewhere whose name was made to lead here."""
    assert shared.get("/", host=name).status == 421
    assert shared.get("/dealer/session", host=name).status == 421


# -- TLS -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for 127.0.0.1, its key, another key, and the key encrypted."""
    folder = tmp_path_factory.mktemp("pem")
    made = ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    curve = ["-pkeyopt", "ec_paramgen_curve:P-256"]
    try:
        for words in (
            ["req", "-x509", "-newkey", "ec", *curve, "-keyout", "key.pem", "-out", "cert.pem", *made],
            ["genpkey", "-algorithm", "EC", *curve, "-out", "other.pem"],
            ["pkey", "-in", "key.pem", "-aes256", "-passout", "pass:secret", "-out", "encrypted.pem"],
        ):
            subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl to make a certificate with")
    (folder / "text.pem").write_text("-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n")
    (folder / "binary.pem").write_bytes(b"\x30\x82\xff\x00")
    return folder


@pytest.mark.parametrize(
    ("certificate", "key", "words"),
    [
        ("none.pem", "key.pem", "none.pem: No such file"),
        ("cert.pem", "none.pem", "none.pem: No such file"),
        ("key.pem", "key.pem", "key.pem: no certificate is there; needed: PEM"),
        ("binary.pem", "key.pem", "binary.pem: no certificate is there"),
        ("cert.pem", "cert.pem", "cert.pem: no private key is there; needed: PEM"),
        ("cert.pem", "other.pem", "other.pem: this is not the key of"),
        ("cert.pem", "encrypted.pem", "encrypted.pem: the key is encrypted; needed: one without a passphrase"),
        ("text.pem", "key.pem", "certificate or key is damaged"),
        (".", "key.pem", "Is a directory"),
    ],
)
def test_what_is_no_certificate_or_key_is_told(
    tablectl: Tablectl,  # noqa: F811
    pem: Path,
    certificate: str,
    key: str,
    words: str,
) -> None:
    given = ("--tls-cert", str(pem / certificate), "--tls-key", str(pem / key))
    assert words in tablectl("serve", "--port", "/dev/nothing", *given).refusal()


@pytest.mark.parametrize("option", ["--tls-cert", "--tls-key"])
def test_certificate_and_key_are_given_together(tablectl: Tablectl, option: str, pem: Path) -> None:  # noqa: F811
    done = tablectl("serve", "--port", "/dev/nothing", option, str(pem / "cert.pem"))
    assert done.refusal() == "give --tls-cert and --tls-key together"


def test_with_tls_nothing_is_in_the_clear(tmp_path: Path, pem: Path) -> None:
    with serving(tmp_path, tls=tls_context(pem / "cert.pem", pem / "key.pem")) as served:
        trusting = ssl.create_default_context(cafile=str(pem / "cert.pem"))

        def ask(method: str, path: str, body: Any = None, **headers: str) -> http.client.HTTPResponse:
            connection = http.client.HTTPSConnection("127.0.0.1", served.port, timeout=LONG, context=trusting)
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, json.dumps(body) if body else None, named)
            with closing(connection):
                answer = connection.getresponse()
                answer.read()
            return answer

        page = ask("GET", "/")
        assert page.status == 200
        assert page.headers["strict-transport-security"].startswith("max-age=")
        told = {"role": "dealer", "pin": PINS["dealer"]}
        origin = f"https://127.0.0.1:{served.port}"
        logged = ask("POST", "/dealer/login", told, content_type="application/json", origin=origin)
        assert logged.status == 200
        assert "Secure" in logged.headers["set-cookie"]
        with connected(served, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n") as connection:
            assert b"HTTP" not in (connection.recv(100) or b"")
        assert served.tls is not None
        assert served.tls.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("host", "encrypted", "warned", "scheme"),
    [
        ("127.0.0.1", False, "", "http"),
        ("0.0.0.0", False, "warning: 0.0.0.0 can be reached from other machines, and nothing is encrypted", "http"),
        ("0.0.0.0", True, "warning: 0.0.0.0 can be reached from other machines", "https"),
    ],
)
def test_who_can_reach_it_is_told(
    tmp_path: Path, host: str, encrypted: bool, warned: str, scheme: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pins = Pins(tmp_path / "pins.json")
    with closing(server.listen(host, 0)) as listener:
        serve.tell(host, listener, pins, {}, encrypted, False)
        pins.set("dealer", "2468")
        serve.tell(host, listener, pins, {}, encrypted, False)
        number = listener.getsockname()[1]
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if "no PIN is set" not in line]
    assert lines == [warned, warned] if warned else lines == []
    assert err.count("no PIN is set") == 1
    assert f"console: {scheme}://{host}:{number}/dealer" in out.splitlines()


def test_only_this_computer_reaches_it_unless_it_is_told_otherwise() -> None:
    [host] = [option for option in serve.serve.params if option.name == "host"]
    assert host.default == "127.0.0.1"
