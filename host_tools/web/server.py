"""The web server: uvicorn, with streams that end when it stops."""

from __future__ import annotations

import socket

import uvicorn

from dragoneye.errors import BadInput
from host_tools.i18n import _, system
from host_tools.web.app import Web

# What browsers may still be sent when the server was told to stop.
_GRACE_S = 2


class Server(uvicorn.Server):
    """Serves `web` on sockets that are open already."""

    def __init__(self, web: Web) -> None:
        super().__init__(
            uvicorn.Config(
                web.app,
                log_level="warning",
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=_GRACE_S,
                timeout_keep_alive=30,
            )
        )
        self._web = web

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._web.close()
        await super().shutdown(sockets)


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


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server there."""
    return host in ("localhost", "::1") or host.startswith("127.")
