"""A table's keys on this computer."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dragoneye.keys import FORMAT, NAMES, Key


def file_of(raw: Mapping[str, bytes]) -> bytes:
    """The content of the table's /keys.json, of the 32 bytes of each key of NAMES."""
    stored = {name: raw[name].hex() for name in NAMES}
    return json.dumps({"format": FORMAT, **stored}, separators=(",", ":")).encode()


def signed(body: bytes, role: str, counter: int, key: Key, uid: str, nonce: str) -> bytes:
    """`body`, the bytes of a request's frame without its CRC, with its signature as the last member."""
    claim = f"{role}:{counter}"
    before = body[:-1]
    return before + f',"a":"{claim}:{key.sign(uid, nonce, before, claim)}"}}'.encode()
