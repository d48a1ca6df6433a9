"""The web application over a hub: pages, streams of views, and what guards them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from host_tools.diceset import utc_now
from host_tools.i18n import LANGUAGES, _, language, speaking
from host_tools.web import pages, view
from host_tools.web.channel import Channel
from host_tools.web.hub import Hub, Snapshot

STATIC = Path(__file__).parent / "static"
# Displays and consoles at once; each holds a connection and no more.
WATCHERS_MAX = 500

# Nothing from elsewhere, no script or style that is not a file of ours, and in nobody's frame.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


def language_of(request: Request) -> str:
    """The language that `?lang=` or the browser asks for, or the program's own."""
    named = request.query_params.get("lang", "")
    if named in LANGUAGES:
        return named
    weighed = []
    for place, part in enumerate(request.headers.get("accept-language", "")[:200].split(",")):
        tag, _semicolon, weight = part.partition(";")
        try:
            quality = float(weight.strip().removeprefix("q=") or 1)
        except ValueError:
            quality = 0.0
        weighed.append((-quality, place, tag.strip().lower()[:2]))
    for quality, _place, tag in sorted(weighed):
        if quality and tag in LANGUAGES:
            return tag
    return language()


class Guard:
    """Security headers on every answer, and no answer to a name that is not this server's (DNS rebinding)."""

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if not self._known(Headers(scope=scope).get("host", "")):
            refused = PlainTextResponse(_("this server is not known by that name"), status_code=421)
            await refused(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)

    def _known(self, host: str) -> bool:
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        name = name.strip("[]").lower()
        # An address is never a name that somebody else's server could have pointed here.
        return name in self._names or name.replace(".", "").isdigit() or ":" in name


class Web:
    """The application's parts: `hub` owns the table, `app` is for an ASGI server.

    `names` are the host names that it answers to besides addresses and localhost.
    """

    def __init__(self, hub: Hub, names: frozenset[str] = frozenset()) -> None:
        self.hub = hub
        self.channel = Channel(self._render)
        self.app = Starlette(
            routes=[
                Route("/", self.display),
                Route("/events", self.events),
                Mount("/static", StaticFiles(directory=STATIC)),
            ],
            lifespan=self._lifespan,
            exception_handlers={HTTPException: self._refused},  # type: ignore[dict-item]
        )
        self.app.add_middleware(Guard, names=names | {"localhost"})

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def tell(snapshot: Snapshot) -> None:
            loop.call_soon_threadsafe(self.channel.publish)

        self.hub.tell = tell
        self.channel.publish()
        try:
            yield
        finally:
            self.hub.tell = lambda snapshot: None

    def close(self) -> None:
        """End every stream, so that the server can stop. Called in the event loop's thread."""
        self.channel.close()

    async def _refused(self, request: Request, error: HTTPException) -> Response:
        return JSONResponse({"error": error.detail}, error.status_code)

    def _render(self, key: tuple[str, str]) -> Any:
        _kind, spoken = key
        with speaking(spoken):
            return view.display(self.hub.snapshot, utc_now())

    def stream(self, request: Request, kind: str, still: Callable[[], bool] = lambda: True) -> Response:
        """The views of a kind as server-sent events."""
        spoken = language_of(request)
        if self.channel.watchers >= WATCHERS_MAX:
            with speaking(spoken):
                return JSONResponse({"error": _("too many screens watch this table")}, 503)
        return StreamingResponse(self.channel.stream((kind, spoken), still), media_type="text/event-stream")

    async def display(self, request: Request) -> Response:
        """The table's display."""
        with speaking(language_of(request)):
            return HTMLResponse(pages.display_page())

    async def events(self, request: Request) -> Response:
        """What the display shows, as it changes."""
        return self.stream(request, "display")


Handler = Callable[[Request], Awaitable[Response]]
