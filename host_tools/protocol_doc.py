"""The protocol's reference from protocol.py; `python -m host_tools.protocol_doc` brings docs/protocol.md up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoneye import keys, protocol
from dragoneye.protocol import encode
from host_tools import codes
from host_tools.board_data import BOARDS
from host_tools.keys import signed

PAGE = BOARDS.parent / "docs" / "protocol.md"

_INTRODUCTION = """\
# The protocol

Between the table and the computer, over the table's USB serial port. Generated from `firmware/dragoneye/protocol.py`,
which both ends import, by `python -m host_tools.protocol_doc`. This is version {major}.{minor}: another major version
is refused, a newer minor one is tolerated.
"""

_EXAMPLE = """\
For example, a host's greeting, a request, and the acknowledgement of an event:

{frames}

A request is at most {request} bytes long, what the table sends at most {line}. Sequence numbers go up to {seq}.
"""


_SIGNED = """\
For example, with a key of 32 bytes 0x01, at the table `{uid}` with the nonce `{nonce}`:

{frame}

A dealer's requests may be signed with the dealer's or the supervisor's key, a supervisor's with the supervisor's, a
technician's with the technician's. A record that a signed request made has that role as `by`, beside its data; one of a
person at the table (lid, button, service key) has none.
"""

_FAULT_COLUMNS = ("code", "what is wrong", "how it holds", "what clears it")


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|")


def _table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _words(title: str, text: str, headings: Sequence[str], table: Mapping[str, Any]) -> str:
    """A chapter of codes: each has words, or several columns of them."""
    rows = [(f"`{name}`", *([words] if isinstance(words, str) else words)) for name, words in table.items()]
    return f"## {title}\n\n{text}\n\n{_table(headings[: len(rows[0])], rows)}"


def _field(row: Sequence[Any]) -> str:
    name, kind, low, high, default = row
    needed = "" if default == protocol.REQUIRED else f"; {str(default).lower()} if not given"
    return f"`{name}`: {protocol._allowed(kind, low, high)}{needed}"


def _frames() -> str:
    hello = {"q": "hello", "major": protocol.MAJOR, "minor": protocol.MINOR, "last_event": 41, "last_round": 7}
    frames = (encode(1001, hello), encode(1002, {"q": "open", "shaker": 3}), encode(0, {"ack": 42}))
    return "\n".join("    " + frame.decode().rstrip("\n") for frame in frames)


def _signed() -> str:
    """The chapter on signatures: the firmware's words, and an example that both ends would make."""
    words = (keys.__doc__ or "").partition("\n\n")[2].rstrip("\n")
    uid, nonce = "E6614C311B4F5B2F", "00112233445566778899aabbccddeeff"
    body = protocol.body_of(1002, '{"q":"open","shaker":3}')
    frame = protocol.seal(signed(body, protocol.DEALER, 1, keys.Key(bytes([1]) * 32), uid, nonce))
    example = _SIGNED.format(uid=uid, nonce=nonce, frame="    " + frame.decode().rstrip("\n"))
    return f"## Signatures\n\n{words}\n\n{example}"


def page() -> str:
    """The reference as it should be."""
    introduction = _INTRODUCTION.format(major=protocol.MAJOR, minor=protocol.MINOR)
    frame = (protocol.__doc__ or "").partition("\n\n")[2].rstrip("\n").replace(":\n    ", ":\n\n    ")
    example = _EXAMPLE.format(
        frames=_frames(), request=protocol.REQUEST_MAX, line=protocol.LINE_MAX, seq=protocol.SEQ_MAX
    )
    requests = [
        (f"`{name}`", role, since, "<br>".join(_field(row) for row in fields) or "none", codes.REQUESTS[name])
        for name, (role, since, fields) in protocol.REQUESTS.items()
    ]
    parts = [
        introduction + "\n## Frames\n\n" + frame + "\n\n" + example,
        _signed(),
        "## Requests\n\n" + _table(("request", "role", "since", "fields", "what it does"), requests),
        _words("Errors", "The codes of `err`.", ("code", "when"), codes.ERRORS),
        _words(
            "Events",
            "Records of the journal: running `id`, kind `k`, boot `b`, milliseconds since that boot `t`, data `d`.",
            ("kind", "what happened, and its data"),
            codes.EVENTS,
        ),
        _words("States", "Of the live state, and of an error's `state`.", ("state", "what it is"), codes.STATES),
        _words("Why a roll is void", "The `reason` of the event `void`.", ("reason", "why"), codes.VOIDS),
        _words("Faults", "The `code` of the event `fault`.", _FAULT_COLUMNS, codes.FAULTS),
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
