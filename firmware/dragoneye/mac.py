"""HMAC-SHA-256 (RFC 2104) by the hashlib that both Pythons have: MicroPython has no hmac of its own."""

import hashlib


class Mac:
    """HMAC-SHA-256 under `key`, 64 bytes or fewer."""

    def __init__(self, key):
        key = key + bytes(64 - len(key))
        self._inner = bytes([byte ^ 0x36 for byte in key])
        self._outer = bytes([byte ^ 0x5C for byte in key])

    def digest(self, message):
        """The 32 bytes for a message of bytes."""
        inner = hashlib.sha256(self._inner)
        inner.update(message)
        outer = hashlib.sha256(self._outer)
        outer.update(inner.digest())
        return outer.digest()
