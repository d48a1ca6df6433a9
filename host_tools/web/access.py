"""Who may do what at the console: a PIN per role, sessions in a signed cookie, and a wait after wrong PINs."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoneye.errors import BadInput
from dragoneye.protocol import ANYONE, DEALER, SUPERVISOR, TECHNICIAN
from host_tools import private
from host_tools.i18n import _

ROLES = (DEALER, SUPERVISOR, TECHNICIAN)
# Whose requests (protocol.REQUESTS) each role may do.
MAY = {
    DEALER: (ANYONE, DEALER),
    SUPERVISOR: (ANYONE, DEALER, SUPERVISOR),
    TECHNICIAN: (ANYONE, TECHNICIAN),
}
# Seconds without an action after which a session is over, and after which it is over anyhow.
IDLE_S = {DEALER: 12 * 3600.0, SUPERVISOR: 15 * 60.0, TECHNICIAN: 15 * 60.0}
LIFE_S = {DEALER: 24 * 3600.0, SUPERVISOR: 12 * 3600.0, TECHNICIAN: 12 * 3600.0}

PIN_MIN, PIN_MAX = 4, 64
# scrypt's cost: about 50 ms and 16 MiB for each look at a PIN.
_N, _R, _P = 1 << 14, 8, 1
# Wrong PINs of one address before it has to wait, and of all together; the wait doubles from FIRST to LAST.
FREE_TRIES, FREE_TRIES_ALL = 5, 50
FIRST_WAIT_S, LAST_WAIT_S = 30.0, 900.0
_ADDRESSES_MAX = 1000
# Actions of a session at once, and a second from then on: more than any hand can do.
BURST, PACE = 60, 10.0
_ENDED_MAX = 10_000


class PinError(BadInput):
    """The file of PINs cannot be used, or a PIN cannot be set."""


def _hash(pin: str, salt: bytes) -> bytes:
    return hashlib.scrypt(pin.encode(), salt=salt, n=_N, r=_R, p=_P, maxmem=64 << 20)


def role_name(role: str) -> str:
    """What a role is called."""
    return {DEALER: _("dealer"), SUPERVISOR: _("supervisor"), TECHNICIAN: _("technician")}[role]


Stamp = tuple[int, int, int] | None


def _stamp(path: Path) -> Stamp:
    """What changes when a file is written anew; None where there is none."""
    try:
        told = path.stat()
    except OSError:
        return None
    return told.st_ino, told.st_mtime_ns, told.st_mode


class Pins:
    """The PINs' hashes and the secret that signs sessions, in a file that only its owner may read.

    What another program writes there counts at once. Raises PinError when the file is there and is none of ours, or
    others may read it; where that comes later, nobody is let in.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read(_stamp(path))

    def _read(self, stamp: Stamp) -> None:
        path = self.path
        self._stamp = stamp
        self._roles: dict[str, dict[str, str]] = {}
        self._secret = secrets.token_bytes(32)
        try:
            if private.others_may_read(path):
                mode = path.stat().st_mode & 0o777
                words = _("{path}: others may read it (mode {mode:04o}); nothing is taken from it: chmod 600 {path}")
                raise PinError(words.format(path=path, mode=mode))
            data = json.loads(path.read_text(encoding="utf-8"))
            secret = bytes.fromhex(data["secret"])
            roles = {role: dict(data["roles"][role]) for role in ROLES if role in data["roles"]}
            for one in roles.values():
                bytes.fromhex(one["salt"]), bytes.fromhex(one["hash"])
        except FileNotFoundError:
            return
        except PinError:
            raise
        except OSError as error:
            raise PinError(f"{path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise PinError(
                _("{path}: this is no file of PINs; move it away and set them anew").format(path=path)
            ) from None
        self._secret, self._roles = secret, roles

    def _look(self) -> None:
        """Read the file again where it is another one, or gone."""
        stamp = _stamp(self.path)
        if stamp != self._stamp:
            with suppress(PinError):
                self._read(stamp)

    @property
    def secret(self) -> bytes:
        """What sessions are signed with."""
        self._look()
        return self._secret

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that have a PIN."""
        self._look()
        return tuple(role for role in ROLES if role in self._roles)

    def set(self, role: str, pin: str) -> None:
        """Give a role a PIN and write the file. Raises PinError."""
        if not PIN_MIN <= len(pin) <= PIN_MAX or not pin.isprintable() or pin != pin.strip():
            raise PinError(
                _("a PIN has {least} to {most} characters, without spaces at its ends").format(
                    least=PIN_MIN, most=PIN_MAX
                )
            )
        for other in self.roles:
            if other != role and self.check(other, pin):
                raise PinError(_("another role has this PIN already; choose a different one"))
        salt = secrets.token_bytes(16)
        self._roles[role] = {"salt": salt.hex(), "hash": _hash(pin, salt).hex()}
        text = json.dumps({"secret": self._secret.hex(), "roles": self._roles}, indent=1) + "\n"
        try:
            private.write(self.path, text)
        except OSError as error:
            raise PinError(f"{self.path}: {error.strerror}") from None
        self._stamp = _stamp(self.path)

    def check(self, role: str, pin: str) -> bool:
        """Whether it is the role's PIN; takes as long for a role without one."""
        self._look()
        known = self._roles.get(role)
        salt = bytes.fromhex(known["salt"]) if known else b"none"
        found = _hash(pin[: PIN_MAX + 1], salt)
        return known is not None and hmac.compare_digest(found, bytes.fromhex(known["hash"]))

    def mark(self, role: str) -> str:
        """What changes when a role's PIN does."""
        self._look()
        return self._roles.get(role, {}).get("hash", "")


class Limiter:
    """How long an address must wait before its next PIN is looked at."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        # address -> (wrong PINs, no PIN before this time); "" is all together.
        self._known: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Seconds to wait; 0 when a PIN may be tried."""
        now = self._now()
        return max(0.0, *(self._known.get(name, (0, 0.0))[1] - now for name in ("", address)))

    def wrong(self, address: str) -> None:
        """A wrong PIN came from there."""
        now = self._now()
        for name, free in (("", FREE_TRIES_ALL), (address, FREE_TRIES)):
            count, until = self._known.pop(name, (0, 0.0))
            if until and now > until + LAST_WAIT_S:
                count = 0
            count += 1
            wait = min(FIRST_WAIT_S * 2.0 ** min(count - free, 10), LAST_WAIT_S) if count >= free else 0.0
            self._known[name] = (count, now + wait)
        while len(self._known) > _ADDRESSES_MAX:
            self._known.popitem(last=False)

    def right(self, address: str) -> None:
        """The right PIN came from there."""
        self._known.pop(address, None)


class Pace:
    """How many actions a session may do: BURST at once, then PACE a second."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        # session -> (actions that it has left, as of this time)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, sid: str) -> bool:
        """Whether the session may do one more now; then that is counted."""
        now = self._now()
        left, since = self._left.pop(sid, (float(BURST), now))
        left = min(float(BURST), left + (now - since) * PACE)
        may = left >= 1.0
        self._left[sid] = (left - 1.0 if may else left, now)
        while len(self._left) > _ADDRESSES_MAX:
            self._left.popitem(last=False)
        return may


@dataclass(frozen=True)
class Session:
    """Somebody who gave a role's PIN at `begun` (whole seconds of the world's clock).

    `csrf` must come back with everything that is asked for.
    """

    sid: str
    role: str
    begun: int
    csrf: str


class Sessions:
    """Sessions in cookies that this server signed; they outlive it. `now` is seconds of the world's clock.

    Raises PinError when the list of those that were ended is there and is none.
    """

    def __init__(self, pins: Pins, now: Callable[[], float] = time.time) -> None:
        self._pins = pins
        self._now = now
        self._seen: OrderedDict[str, float] = OrderedDict()
        # Those that were ended, and when their cookies are over anyhow; kept for the next start of the server.
        self._path = pins.path.with_name(pins.path.name + ".ended")
        self._ended: dict[str, float] = {}
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
            self._ended = {str(sid): float(until) for sid, until in known.items()}
        except FileNotFoundError:
            pass
        except OSError as error:
            raise PinError(f"{self._path}: {error.strerror}") from None
        except (ValueError, TypeError, AttributeError, RecursionError):
            words = _("{path}: this is no list of ended sessions; remove it and set the PINs anew")
            raise PinError(words.format(path=self._path)) from None

    def _sign(self, *parts: str) -> str:
        return hmac.new(self._pins.secret, "\0".join(parts).encode(), hashlib.sha256).hexdigest()

    def _cookie(self, sid: str, role: str, begun: int) -> str:
        parts = (role, sid, str(begun), str(int(self._now())))
        return ".".join((*parts, self._sign("session", *parts, self._pins.mark(role))))

    def begin(self, role: str) -> str:
        """The cookie of a new session."""
        return self._cookie(secrets.token_urlsafe(16), role, int(self._now()))

    def renew(self, session: Session) -> str:
        """The cookie again, after an action."""
        self._note(session.sid)
        return self._cookie(session.sid, session.role, session.begun)

    def _note(self, sid: str) -> None:
        self._seen[sid] = self._now()
        self._seen.move_to_end(sid)
        while len(self._seen) > _ENDED_MAX:
            self._seen.popitem(last=False)

    def find(self, cookie: str) -> Session | None:
        """The session of a cookie; None when it is none of ours, over, or the role's PIN has changed."""
        parts = cookie.split(".")
        if len(parts) != 5 or parts[0] not in self._pins.roles:
            return None
        role, sid, begun, seen, signature = parts
        wanted = self._sign("session", role, sid, begun, seen, self._pins.mark(role))
        # As bytes: a text with other letters than ASCII is refused with an exception.
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), wanted.encode()):
            return None
        last, now = max(float(seen), self._seen.get(sid, 0.0)), self._now()
        if sid in self._ended or not (0 <= now - last < IDLE_S[role] and now - int(begun) < LIFE_S[role]):
            return None
        return Session(sid, role, int(begun), self._sign("csrf", sid))

    def end(self, session: Session) -> None:
        """The session is over, also for a server that is started later."""
        now = self._now()
        ended = {sid: until for sid, until in self._ended.items() if until > now}
        ended[session.sid] = session.begun + LIFE_S[session.role]
        while len(ended) > _ENDED_MAX:
            ended.pop(next(iter(ended)))
        self._ended = ended
        self._seen.pop(session.sid, None)
        # Where it cannot be written it is over here all the same.
        with suppress(OSError):
            private.write(self._path, json.dumps(ended) + "\n")


def checked_pin(value: Any) -> str:
    """A PIN as it came from a browser, or an empty text."""
    return value if isinstance(value, str) and value.isprintable() else ""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server there, or who asks from there is on this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
