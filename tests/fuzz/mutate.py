"""Changes inputs where they matter: values in JSON, lines, words; bytes are left to the engine."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

# What has broken parsers before.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 7, 8, 255, 256, 2**29, 2**31, 2**63, 2**64, 10**40, 0.5, -0.0, 1e308),
    *(float("inf"), float("nan"), "", " ", "\ud800", "\udfff\ud800", "\x00", "\x7f", "\x03", "é", "𝟙", "１", "٣", "̈"),
    *("a" * 300, "<b>", "%s", "{0}", "{}", "../..", "/dev/null", "nj", "dice", "6-6", "AS", "\u2028", "\u202e"),
    *([], {}, [[]], [0], {"": 0}, [1, 2, 3], [6, 6, 6], {"match": 100}, {"count": 1, "parts": [[1, 100]], "gone": []}),
)
_BYTES = (b"\x00", b"\x03", b"\x7f", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\n", b"\n\n", b"[" * 3000)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        found += _places(part, (*path, key))
    return found


def _with(value: Any, path: tuple[Any, ...], change: Any) -> Any:
    """`value` with `change(part)` at `path`; change gives None to take the part away."""
    if not path:
        done = change(value)
        return done[0] if done else None
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    kept = []
    for key, part in items:
        if key == path[0]:
            if len(path) > 1:
                kept.append((key, _with(part, path[1:], change)))
            else:
                kept += [(key, one) for one in change(part) or []]
        else:
            kept.append((key, part))
    return dict(kept) if isinstance(value, dict) else [part for _key, part in kept]


def _changed(part: Any, rng: random.Random, others: list[Any]) -> list[Any]:
    """What stands in the place of a part: as a list of one, two or none."""
    way = rng.randrange(9)
    if way == 0:
        return []
    if way == 1:
        return [part, part]
    if way == 2 and others:
        return [rng.choice(others)]
    if way == 3:
        return [[part]]
    if way == 4 and isinstance(part, int):
        return [part + rng.choice((-1, 1, 256, -part, 2**31))]
    if way == 5 and isinstance(part, str):
        at = rng.randrange(len(part) + 1)
        return [part[:at] + str(rng.choice(ODD))[:20] + part[at + rng.randrange(2) :]]
    if way == 6 and isinstance(part, (list, str)):
        return [part * rng.choice((2, 3, 50))]
    if way == 7 and isinstance(part, dict):
        return [{**part, rng.choice(("x", "id", "q", "", "\ud800", *part)): rng.choice(ODD)}]
    return [rng.choice(ODD)]


def mutate_json(text: bytes, rng: random.Random) -> bytes:
    """A JSON text with some parts changed; what is none comes back as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for _again in range(rng.choice((1, 1, 1, 2, 4))):
        places = _places(value)
        if len(places) > 2000:
            break
        path = rng.choice(places)
        others = [_at(value, other) for other in rng.sample(places, min(3, len(places)))]
        value = _with(value, path, lambda part, others=others: _changed(part, rng, others))
    return json.dumps(value, ensure_ascii=rng.random() < 0.8, allow_nan=True).encode("utf-8", "surrogatepass")


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def mutate(data: bytes, rng: random.Random, most: int = 1 << 14) -> bytes:
    """An input that is like `data`: one of its lines changed, moved, doubled or dropped, or some bytes."""
    lines = data.split(b"\n")
    for _again in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(lines))
        line = lines[at]
        way = rng.randrange(8)
        if way <= 3:
            # A target's input may have bytes before its JSON that choose what is done with it.
            begins = [place for place in (line.find(b"{"), line.find(b"[")) if place >= 0]
            head = min(begins) if begins else 0
            lines[at] = line[:head] + mutate_json(line[head:], rng)
        elif way == 4 and len(lines) > 1:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif way == 5:
            lines[at : at + 1] = rng.choice(([line, line], []))
            if not lines:
                lines = [b""]
        else:
            cut = rng.randrange(len(line) + 1)
            end = min(len(line), cut + rng.choice((0, 1, 1, 2, 8)))
            put = rng.choice((*_BYTES, bytes([rng.randrange(256)]), bytes([rng.randrange(256)]), b""))
            lines[at] = line[:cut] + put + line[end:]
    return b"\n".join(lines)[:most]


def inputs_of(seeds: Sequence[bytes]) -> SearchStrategy[bytes]:
    """Bytes of any kind, and seeds with some of their parts changed."""
    # Not needed, and not imported, where atheris makes the input.
    from hypothesis import strategies as st

    return st.binary(max_size=64) | st.builds(
        lambda first, number: mutate(first, random.Random(number)), st.sampled_from(seeds), st.integers(0, 2**64)
    )
