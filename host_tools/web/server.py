"""The web server: uvicorn, with streams that end when it stops, patience that ends, and TLS where it is asked for."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dragoneye.errors import BadInput
from host_tools import bounded
from host_tools.i18n import _, system
from host_tools.web.access import is_loopback
from host_tools.web.app import Web

# What browsers may still be sent when the server was told to stop.
_GRACE_S = 2
# Seconds until a request must be whole, and until a browser must have taken what it was sent.
REQUEST_S = 15.0
STALLED_S = 60.0
# Connections at once, of all and of one address; from this computer they are only counted among all.
CONNECTIONS_MAX = 700
CONNECTIONS_PER_ADDRESS = 64


class Impatient(H11Protocol):
    """HTTP/1.1 that cuts who holds a connection without using it: too slow in asking or in reading, or one too many."""

    _late: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        held = [one for one in self.connections if isinstance(one, H11Protocol) and one.client]
        too_many = sum(one.client[0] == address for one in held if one.client) > CONNECTIONS_PER_ADDRESS
        if len(self.connections) > CONNECTIONS_MAX or (too_many and not is_loopback(address)):
            transport.abort()
        else:
            self._late = self.loop.call_later(REQUEST_S, transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._late is None:
            self._late = self.loop.call_later(REQUEST_S, self.transport.abort)
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._late.cancel()
            self._late = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._late, self._stalled):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)


class Server(uvicorn.Server):
    """Serves `web` on sockets that are open already; with `tls` nothing goes over them in the clear."""

    def __init__(self, web: Web, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                web.app,
                http=Impatient,
                ws="none",
                log_level="warning",
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=_GRACE_S,
                timeout_keep_alive=30,
                ssl_context_factory=None if tls is None else lambda config, usual: tls,
            )
        )
        self._web = web

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._web.close()
        await super().shutdown(sockets)


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.2 or later with a certificate (those above it may follow) and its key, both PEM.

    Raises BadInput naming the file.
    """
    for path, begin, words in (
        (certificate, "-----BEGIN CERTIFICATE-----", _("{path}: no certificate is there; needed: PEM")),
        (key, "PRIVATE KEY-----", _("{path}: no private key is there; needed: PEM")),
    ):
        try:
            text = bounded.read_text(path, encoding="ascii")
        except OSError as error:
            raise BadInput(f"{path}: {system(error.strerror or str(error))}") from None
        except UnicodeDecodeError:
            text = ""
        if begin not in text:
            raise BadInput(words.format(path=path))
    if "ENCRYPTED" in text:
        raise BadInput(_("{path}: the key is encrypted; needed: one without a passphrase").format(path=path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            words = _("{key}: this is not the key of {certificate}")
        else:
            words = _("{certificate} and {key}: certificate or key is damaged ({reason})")
        raise BadInput(words.format(certificate=certificate, key=key, reason=error.reason or error)) from None
    return context


def listen(host: str, port: int) -> socket.socket:
    """A listening socket on an address or a name of this machine. Raises BadInput naming it."""
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(256)
        except OSError:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:
        why = system(getattr(error, "strerror", None) or str(error))
        raise BadInput(_("{host}:{port}: cannot listen there ({why})").format(host=host, port=port, why=why)) from None
    listener.setblocking(False)
    return listener
