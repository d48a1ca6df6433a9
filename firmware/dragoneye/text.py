"""JSON as text that is the same under CPython and MicroPython, and what values are told by."""

import json
import sys
from binascii import hexlify
from hashlib import sha256

from dragoneye.errors import BadInput

SHOWN_MAX = 80
_CPYTHON = sys.implementation.name == "cpython"
# MicroPython passes what is not ASCII through, and has no such option.
_RAW = {"ensure_ascii": False} if _CPYTHON else {}
# Some editors begin a file with a byte order mark.
_UTF8 = "utf-8-sig" if _CPYTHON else "utf-8"


def dumps(value):
    """Compact JSON in printable ASCII only.

    MicroPython's own json.dumps passes what is not ASCII through. Control characters other than newline, return and
    tab come out differently there: texts that are hashed never hold one.
    """
    text = json.dumps(value, separators=(",", ":"))
    # As long in bytes as in characters: ASCII. A look at each character takes the Pico 40 us.
    if len(text.encode()) == len(text) and "\x7f" not in text:
        return text
    return "".join([c if " " <= c <= "~" else _escape(ord(c)) for c in text])


def _escape(code):
    if code < 0x10000:
        return "\\u%04x" % code
    code -= 0x10000
    return "\\u%04x\\u%04x" % (0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF))


def is_whole(value, low, high):
    """Whether it is a whole number from `low` to `high`; JSON's `true` is not a number of anything."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def check_whole(name, value, low, high):
    """`value`, a whole number in a range. Raises BadInput that names it."""
    if is_whole(value, low, high):
        return value
    raise BadInput("%s is %s; allowed: a whole number from %d to %d" % (name, show(value), low, high))


def digest(data):
    """The first 16 hex digits of SHA-256 over bytes."""
    return hexlify(sha256(data).digest()).decode()[:16]


def is_text(value):
    """Whether a text can be kept: no control character, and no half of a surrogate pair, which JSON lets one write.

    MicroPython leaves a pair as its two halves.
    """
    half = False
    for c in value:
        if c < " " or c == "\x7f" or ("\udc00" <= c <= "\udfff") != half:
            return False
        half = "\ud800" <= c < "\udc00"
    return not half


def _once(pairs):
    """An object whose members each have a name of their own; MicroPython cannot tell."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        raise BadInput("%s is there twice" % show(next(name for name in names if names.count(name) > 1)))
    return found


_ONCE = {"object_pairs_hook": _once} if _CPYTHON else {}


def load_json(path):
    """The JSON in a file. Raises OSError and ValueError, BadInput among them for what is there twice.

    A frozen firmware has no files: its data is what /manifest.py has made of them, by path from the package on.
    """
    try:
        file = open(path, encoding=_UTF8)  # noqa: SIM115
    except OSError:
        try:
            # Made when an image is built, so no module here has that name.
            frozen = __import__("dragoneye.frozen_data", None, None, ["FILES"]).FILES
        except ImportError:
            frozen = {}
        name = path.lstrip("/")
        if name not in frozen:
            raise
        return json.loads(frozen[name])
    with file:
        return json.load(file, **_ONCE)


def show(value):
    """`value` as a person is shown it in an error: JSON, cut after SHOWN_MAX characters."""
    try:
        text = json.dumps(value, **_RAW)
    except (TypeError, ValueError):
        text = repr(value)
    except RuntimeError:
        return "something nested too deep"
    if _CPYTHON:
        text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."
