"""The web application over a hub: pages, streams of views, and what guards them."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoneye.protocol import SEQ_MAX
from host_tools.device import name_of
from host_tools.diceset import utc_now
from host_tools.i18n import LANGUAGES, _, language, speaking
from host_tools.store import StoreError
from host_tools.web import pages, view
from host_tools.web.access import ROLES, Limiter, Pace, Pins, Session, Sessions, checked_pin, is_loopback
from host_tools.web.channel import Channel
from host_tools.web.console import Console, actions, watched
from host_tools.web.hub import Hub, Snapshot

STATIC = Path(__file__).parent / "static"
# Displays and consoles at once; each holds a connection and no more.
WATCHERS_MAX = 500
# Of one address that is not this computer's, which may be a proxy before many.
WATCHERS_PER_ADDRESS = 32
# PINs that wait to be looked at, one after the other.
LOOKS_MAX = 8
# Bytes of what a page sends at most.
BODY_MAX = 64 << 10
COOKIE = "dragoneye"
DISPLAY = "display"

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
# Of a page whose drawings bring their style with them; nothing in it runs.
_DRAWINGS_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Where it came over TLS: from now on for a year nothing else.
HSTS = "max-age=31536000"


def language_of(request: Request, table: Message) -> str:
    """The language that `?lang=` or the browser asks for, else the first of the table's that we have (`table` as its
    hello tells it), else the program's own."""
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
    return next((tag for tag in str(table.get("languages", "")).split() if tag in LANGUAGES), language())


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
                if scope.get("scheme") == "https":
                    headers.setdefault("strict-transport-security", HSTS)
            await send(message)

        if not self._known(Headers(scope=scope).get("host", "")):
            refused = PlainTextResponse(_("this server is not known by that name"), status_code=421)
            await refused(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)

    def _known(self, host: str) -> bool:
        if host.startswith("["):
            name, end, port = host[1:].partition("]")
            port = port.removeprefix(":") if end else "no end"
        else:
            name, _colon, port = host.partition(":")
        if port and not (port.isascii() and port.isdigit()):
            return False
        if name.lower() in self._names:
            return True
        try:
            # An address is never a name that somebody else's server could have pointed here.
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


class Web:
    """The application's parts: `hub` owns the table, `app` is for an ASGI server.

    `pins` and `console` are for the dealer's console; without PINs nobody gets in. `names` are the host names that it
    answers to besides addresses and localhost. `fairness(uid, dice_set)` makes the page about a dice set of a table.
    """

    def __init__(
        self,
        hub: Hub,
        pins: Pins,
        console: Console,
        fairness: Callable[[str, int], str],
        names: frozenset[str] = frozenset(),
    ) -> None:
        self.hub = hub
        self._make_fairness = fairness
        # One page at a time, and each once only: reckoning and drawing take a second or two.
        self._reckoning = asyncio.Lock()
        self._reckoned: tuple[Any, str] = (None, "")
        self._pins = pins
        self._console = console
        self._sessions = Sessions(pins)
        self._limiter = Limiter()
        self._pace = Pace()
        # One PIN at a time: each look at one takes memory and time.
        self._looking = asyncio.Lock()
        self._looks = 0
        self._watching: Counter[str] = Counter()
        self.channel = Channel(self._render)
        self.app = Starlette(
            routes=[
                Route("/", self.display),
                Route("/events", self.events),
                Route("/dealer", self.dealer),
                Route("/dealer/events", self.dealer_events),
                Route("/dealer/session", self.session),
                Route("/dealer/login", self.login, methods=["POST"]),
                Route("/dealer/logout", self.logout, methods=["POST"]),
                Route("/dealer/do", self.do, methods=["POST"]),
                Route("/dealer/round/{number:int}", self.round),
                Route("/dealer/fairness", self.fairness),
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
        kind, spoken = key
        with speaking(spoken):
            if kind == DISPLAY:
                return view.display(self.hub.snapshot, utc_now())
            return watched(self.hub.snapshot, kind)

    def stream(self, request: Request, kind: str, still: Callable[[], bool] = lambda: True) -> Response:
        """The views of a kind, DISPLAY or a role, as server-sent events."""
        spoken, address = self._language(request), _address(request)
        too_many = self._watching[address] >= WATCHERS_PER_ADDRESS and not is_loopback(address)
        if too_many or self.channel.watchers >= WATCHERS_MAX:
            with speaking(spoken):
                return JSONResponse({"error": _("too many screens watch this table")}, 503)

        async def counted() -> AsyncIterator[bytes]:
            self._watching[address] += 1
            try:
                async with aclosing(self.channel.stream((kind, spoken), still)) as frames:
                    async for frame in frames:
                        yield frame
            finally:
                self._watching[address] -= 1
                if not self._watching[address]:
                    del self._watching[address]

        return StreamingResponse(counted(), media_type="text/event-stream")

    def _language(self, request: Request) -> str:
        return language_of(request, self.hub.snapshot.table)

    @property
    def _name(self) -> str:
        return name_of(self.hub.snapshot.table)

    async def display(self, request: Request) -> Response:
        """The table's display."""
        with speaking(self._language(request)):
            return HTMLResponse(pages.display_page(self._name))

    async def events(self, request: Request) -> Response:
        """What the display shows, as it changes."""
        return self.stream(request, DISPLAY)

    # -- the console -----------------------------------------------------------------------------------------------

    def _session(self, request: Request) -> Session | None:
        return self._sessions.find(request.cookies.get(COOKIE, ""))

    def _with_cookie(self, request: Request, response: Response, cookie: str) -> Response:
        # Not by the address: what stands after its question mark may be no text.
        secure = request.scope["scheme"] == "https"
        response.set_cookie(COOKIE, cookie, path="/dealer", httponly=True, samesite="strict", secure=secure)
        return response

    async def dealer(self, request: Request) -> Response:
        """The dealer's console, or the place to log in."""
        session = self._session(request)
        with speaking(self._language(request)):
            if session is None:
                return HTMLResponse(pages.login_page(self._pins.roles))
            page = pages.dealer_page(
                self._name, session.role, session.csrf, actions(session.role), self._console.lid is not None
            )
            return self._with_cookie(request, HTMLResponse(page), self._sessions.renew(session))

    async def dealer_events(self, request: Request) -> Response:
        """What the console shows, as it changes."""
        session = self._session(request)
        with speaking(self._language(request)):
            if session is None:
                return JSONResponse({"error": _("log in first")}, 401)
            cookie = request.cookies[COOKIE]
            return self.stream(request, session.role, lambda: self._sessions.find(cookie) is not None)

    async def session(self, request: Request) -> Response:
        """Whether the session stands."""
        session = self._session(request)
        return JSONResponse({"role": session.role if session else None}, 200 if session else 401)

    async def login(self, request: Request) -> Response:
        """{"role", "pin"}: begin a session."""
        with speaking(self._language(request)):
            asked = await _posted(request)
            role, pin = asked.get("role"), checked_pin(asked.get("pin"))
            if role not in ROLES:
                return JSONResponse({"error": _("there is no such role")}, 400)
            address = _address(request)
            if self._looks >= LOOKS_MAX:
                return JSONResponse({"error": _("too many log in at once; try again")}, 429, {"retry-after": "1"})
            self._looks += 1
            try:
                async with self._looking:
                    wait = self._limiter.wait(address)
                    if wait:
                        words = _("too many wrong PINs; wait {seconds} s").format(seconds=math.ceil(wait))
                        return JSONResponse({"error": words}, 429, {"retry-after": str(math.ceil(wait))})
                    if not await asyncio.to_thread(self._pins.check, role, pin):
                        self._limiter.wrong(address)
                        return JSONResponse({"error": _("wrong PIN")}, 403)
                    self._limiter.right(address)
            finally:
                self._looks -= 1
            before = self._session(request)
            if before is not None:
                self._sessions.end(before)
            return self._with_cookie(request, JSONResponse({"ok": True}), self._sessions.begin(role))

    async def logout(self, request: Request) -> Response:
        """End the session."""
        with speaking(self._language(request)):
            session, _asked = await self._asked(request)
            self._sessions.end(session)
            response = JSONResponse({"ok": True})
            response.delete_cookie(COOKIE, path="/dealer", httponly=True, samesite="strict")
            return response

    async def do(self, request: Request) -> Response:
        """{"key", "do", "step", "fields"}: do something at the table, see Console.act."""
        with speaking(self._language(request)):
            session, asked = await self._asked(request)
            if not self._pace.take(session.sid):
                return JSONResponse({"error": _("too many actions at once; wait a second")}, 429, {"retry-after": "1"})
            status, answer = await self._console.act(session, asked)
            return self._with_cookie(request, JSONResponse(answer, status), self._sessions.renew(session))

    async def round(self, request: Request) -> Response:
        """How a round that is over stands, see Console.standing."""
        with speaking(self._language(request)):
            if self._session(request) is None:
                return JSONResponse({"error": _("log in first")}, 401)
            number = int(request.path_params["number"])
            try:
                if not 0 < number <= SEQ_MAX:
                    raise StoreError(_("round {number} has no result that could be corrected").format(number=number))
                return JSONResponse(await asyncio.to_thread(self._console.standing, number))
            except StoreError as error:
                return JSONResponse({"error": str(error)}, 404)

    async def fairness(self, request: Request) -> Response:
        """What the table's rolls say of the dice that are on it."""
        if self._session(request) is None:
            return RedirectResponse("/dealer", 303)
        snapshot = self.hub.snapshot
        newest = snapshot.rounds[-1] if snapshot.rounds else {"table": snapshot.table.get("uid", ""), "dice_set": 1}
        with speaking(self._language(request)):
            async with self._reckoning:
                known = (language(), newest)
                if self._reckoned[0] != known:
                    try:
                        page = await asyncio.to_thread(self._make_fairness, newest["table"], newest["dice_set"])
                    except StoreError as error:
                        return PlainTextResponse(str(error), 503)
                    self._reckoned = (known, page)
                page = self._reckoned[1]
        return HTMLResponse(page, headers={"content-security-policy": _DRAWINGS_POLICY})

    async def _asked(self, request: Request) -> tuple[Session, dict[str, Any]]:
        """Whose request it is and what was sent with it. Raises HTTPException."""
        session = self._session(request)
        if session is None:
            raise HTTPException(401, _("log in first"))
        asked = await _posted(request)
        if not hmac.compare_digest(request.headers.get("x-csrf", "").encode(), session.csrf.encode()):
            raise HTTPException(403, _("this does not come from the console's own page; load it again"))
        return session, asked


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


async def _posted(request: Request) -> dict[str, Any]:
    """The JSON object that one of our own pages sent. Raises HTTPException."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "same-origin")
    if site != "same-origin" or (origin is not None and origin.partition("://")[2] != request.headers.get("host")):
        raise HTTPException(403, _("this does not come from the console's own page; load it again"))
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, _("what is sent must be JSON"))
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_MAX:
            raise HTTPException(413, _("what was sent is too long"))
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        raise HTTPException(400, _("what was sent is not a JSON object"))
    return asked
