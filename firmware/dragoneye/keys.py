"""The table's keys, and whether a request is signed by somebody who may ask for it.

A key is 32 random bytes; what it signs is HMAC-SHA-256 (RFC 2104, FIPS 198-1). A privileged request's frame ends with
the member `"a":"<role>:<counter>:<mac>"`, where mac is the first 16 bytes, in hex, of the role's key over four lines
parted by newlines: the table's unique id, the nonce of this boot, everything of the frame before `,"a":`, and
`<role>:<counter>`. So it holds for one table, one start, one sequence number and one request.
"""

import json
from binascii import hexlify, unhexlify
from hashlib import sha256

from dragoneye.errors import BadInput
from dragoneye.protocol import DEALER, REQUESTS, SEQ_MAX, SUPERVISOR, TECHNICIAN, Problem

PATH = "/keys.json"
FORMAT = 1
JOURNAL = "journal"
NAMES = (DEALER, SUPERVISOR, TECHNICIAN, JOURNAL)
# Whose keys are good for a role's requests, the lowest first.
GOOD_FOR = {DEALER: (DEALER, SUPERVISOR), SUPERVISOR: (SUPERVISOR,), TECHNICIAN: (TECHNICIAN,)}
# Whose hello counts as that of the host which keeps the record; anybody's is answered.
KEEPERS = GOOD_FOR[DEALER]

KEY_BYTES = 32
MAC_BYTES = 16
NONCE_BYTES = 16
# SHA-256's block.
_BLOCK = 64
# A host counts by ones; more is lost frames, not a jump to the end.
COUNTER_STEP_MAX = 1000
# So many signatures in a row may be wrong; after each further one no signed request is read for a time that doubles.
FREE_TRIES = 5
FIRST_WAIT_MS = 1000
LAST_WAIT_MS = 60000


class Key:
    """One key of KEY_BYTES bytes; nothing tells what it is."""

    def __init__(self, raw):
        padded = raw + bytes(_BLOCK - len(raw))
        # Made once: a loop over 64 bytes takes the Pico longer than the hash.
        self._inner = bytes([byte ^ 0x36 for byte in padded])
        self._outer = bytes([byte ^ 0x5C for byte in padded])

    def mac(self, *parts):
        """HMAC-SHA-256 of bytes in several parts, as 32 bytes."""
        inner = sha256(self._inner)
        for part in parts:
            inner.update(part)
        return sha256(self._outer + inner.digest()).digest()

    def sign(self, uid, nonce, body, claim):
        """The mac of a frame as 32 hex digits.

        `uid` and `nonce` (hex, as hello tells them) and `claim` ("role:counter") are texts, `body` the bytes of the
        frame before `,"a":`.
        """
        head = "%s\n%s\n" % (uid, nonce)
        return hexlify(self.mac(head.encode(), body, b"\n", claim.encode())[:MAC_BYTES]).decode()

    def seed(self, seed):
        """The secret that takes the place of a challenge's `seed` at a table with keys: hex."""
        return hexlify(self.mac(b"verify\n", seed.encode())).decode()


def name_of(raw):
    """The name of a set of keys, 8 hex digits: from a hash of its journal key `raw`, which it doesn't tell."""
    return hexlify(sha256(b"dragoneye journal key\n" + raw).digest()[:4]).decode()


def same(one, other):
    """Whether two ASCII texts are equal, in a time that doesn't tell where they differ."""
    if len(one) != len(other):
        return False
    differ = 0
    for byte, expected in zip(one.encode(), other.encode()):
        differ |= byte ^ expected
    return differ == 0


def read_keys(path=PATH):
    """(name of the set, {name: Key} of all NAMES), or None for a table that never got keys.

    Raises BadInput in words, which never hold a key, when the file is there and is not whole.
    """
    try:
        with open(path, "rb") as file:
            stored = json.loads(file.read().decode())
        raw = {name: unhexlify(stored[name]) for name in NAMES if stored["format"] == FORMAT}
    except OSError as error:
        if error.errno == 2:
            return None
        raise BadInput("%s cannot be read; write the keys again from the host" % path)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError):
        # RuntimeError: nested deeper than the stack.
        raw = {}
    if len(raw) != len(NAMES) or [name for name in raw if len(raw[name]) != KEY_BYTES]:
        raise BadInput("%s is damaged; write the keys again from the host" % path)
    return name_of(raw[JOURNAL]), {name: Key(raw[name]) for name in raw}


class Gate:
    """Lets requests through at one table, `uid`, from one start to the next; `nonce` is that start's, as bytes.

    `keys` are {name: Key}, or None: a table without keys lets everything through. With `damage`, words, nothing that
    needs a key is let through.
    """

    # See Controller.set_back.
    TIMES = ("_closed_until",)

    def __init__(self, uid, nonce, keys=None, damage=None):
        self.uid = uid
        self.nonce = hexlify(nonce).decode()
        self.keys = keys
        self.damage = damage
        # The highest that was accepted.
        self.counter = 0
        # Refusals since the start by reason, and how many signatures in a row were wrong.
        self.refused = {"unsigned": 0, "role": 0, "counter": 0, "mac": 0, "wait": 0}
        self._wrong = 0
        self._closed_until = 0

    @property
    def unprovisioned(self):
        """True for a table that never got keys."""
        return self.keys is None and self.damage is None

    def deny(self, what, roles=KEEPERS):
        """Raise Problem E_AUTH: `what` is not signed by one of `roles`, or nobody can sign anything."""
        if self.damage is not None:
            raise Problem("E_AUTH", self.damage)
        self.refused["unsigned"] += 1
        raise Problem("E_AUTH", "%s is not signed; it needs a key of: %s" % (what, ", ".join(roles)))

    def seed(self, seed):
        """What a challenge's `seed` becomes at this table: with keys, only who has the technician's can tell it."""
        return seed if self.keys is None else self.keys[TECHNICIAN].seed(seed)

    def check(self, value, body, now):
        """The role that signed the request `value`, whose frame without its CRC is `body`; None where none is needed,
        and for a hello that is not signed.

        Raises Problem E_AUTH when it may not be done; the counter is used up only by one that may.
        """
        name = value["q"]
        if self.unprovisioned or not isinstance(name, str) or name not in REQUESTS:
            return None
        roles = GOOD_FOR.get(REQUESTS[name][0])
        if name == "hello" and "a" in value and self.damage is None:
            roles = KEEPERS
        if roles is None:
            return None
        if self.damage is not None or "a" not in value:
            self.deny(name, roles)
        if now < self._closed_until:
            self.refused["wait"] += 1
            left = self._closed_until - now
            raise Problem("E_AUTH", "%d signatures in a row were wrong; wait %d ms more" % (self._wrong, left))
        role, counter, mac, before = _parts(value["a"], body)
        if role in NAMES and role not in roles:
            self.refused["role"] += 1
            raise Problem(
                "E_AUTH", "%s: this is not for the %s; it needs a key of: %s" % (name, role, ", ".join(roles))
            )
        claim = "%s:%s" % (role, counter)
        if role not in roles or not same(self.keys[role].sign(self.uid, self.nonce, before, claim), mac):
            self.refused["mac"] += 1
            self._wrong += 1
            if self._wrong >= FREE_TRIES:
                self._closed_until = now + min(FIRST_WAIT_MS << min(self._wrong - FREE_TRIES, 10), LAST_WAIT_MS)
            raise Problem("E_AUTH", "the signature is wrong: another key, another table, or from before its last start")
        number = int(counter)
        if not self.counter < number <= min(self.counter + COUNTER_STEP_MAX, SEQ_MAX):
            self.refused["counter"] += 1
            raise Problem("E_AUTH", "the signature's counter is %d; the last one was %d" % (number, self.counter))
        # Not before: what is said again must not make room for more tries.
        self._wrong = 0
        self.counter = number
        return role


def _parts(text, body):
    """(role, counter, mac, what the mac is over) of a frame's last member `a`; no role of one that is malformed."""
    if isinstance(text, str):
        parts = text.split(":")
        # Half of a pair cannot be encoded by CPython, and is in no signature.
        end = ',"a":"%s"}' % "".join([c if c <= "~" else "?" for c in text])
        if len(parts) == 3 and parts[1].isdigit() and len(parts[1]) <= 9 and body.decode().endswith(end):
            return parts[0], parts[1], parts[2], body[: -len(end)]
    return "", "0", "", b""
