"""The frame and the table of messages: what goes through, what is noise, and that the table fits the code."""

from __future__ import annotations

import ast
import binascii
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoneye import protocol
from dragoneye.protocol import REQUESTS, Noise, Problem
from dragoneye.text import dumps
from host_tools.codes import ERRORS, EVENTS, FAULTS, LATCHED, SERVICE, STATES, VOIDS
from host_tools.codes import REQUESTS as WORDS

FIRMWARE = Path(__file__).parents[2] / "firmware"

# Any text that can stand in a str, lone surrogates among it.
texts = st.text(st.characters(exclude_categories=()))
scalars = st.one_of(st.none(), st.booleans(), st.integers(), texts)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)
objects = st.dictionaries(texts, json_values, max_size=5)
numbers = st.integers(0, protocol.SEQ_MAX)


def framed(body: bytes) -> bytes:
    """A line whose CRC fits, whatever it says."""
    return body + b" %08x" % binascii.crc32(body)


# -- the frame -------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(numbers, objects)
@example(0, {"why": "\N{DRAGON FACE} \ud83d \x00\x03\x7f\u2028", "": {"": [[], {}]}})
def test_a_frame_comes_back_as_it_was(seq: int, value: dict[str, Any]) -> None:
    line = protocol.encode(seq, value)
    if len(line) <= protocol.LINE_MAX:
        assert protocol.decode(line) == (seq, value)
        assert protocol.decode(line.rstrip(b"\n")) == (seq, value)
        assert protocol.decode(line[:-1] + b"\r\n") == (seq, value)


@settings(max_examples=50)
@given(numbers, objects)
def test_a_frame_is_one_line_of_printable_ascii(seq: int, value: dict[str, Any]) -> None:
    line = protocol.encode(seq, value)
    assert line[-1:] == b"\n"
    assert all(0x20 <= byte <= 0x7E for byte in line[:-1])


@settings(max_examples=50)
@given(json_values)
def test_json_is_what_the_standard_library_writes_in_ascii(value: Any) -> None:
    expected = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    assert dumps(value) == expected.replace("\x7f", "\\u007f")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_noise(line: bytes) -> None:
    with pytest.raises(Noise):
        protocol.decode(line)


@settings(max_examples=50)
@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))))
@example(b"1 " + b"[" * 3000)
@example(b'1 {"a":' + b"9" * 5000 + b"}")
@example(b'1 {"a":1e999}')
@example(b"1")
@example(b"one {}")
@example(b"-1 {}")
@example(b"536870912 {}")
@example(b"1 []")
@example(b"1 null")
@example(b"1 {} ")
@example(b"1 {} {}")
@example(b'1 {"a":1')
@example(b"1 \xff")
def test_a_right_crc_over_anything_is_an_object_or_noise(body: bytes) -> None:
    try:
        seq, value = protocol.decode(framed(body))
    except Noise:
        return
    assert isinstance(value, dict)
    assert 0 <= seq <= protocol.SEQ_MAX


@settings(max_examples=25)
@given(numbers, objects, st.integers(1, 255))
def test_a_changed_byte_is_noise(seq: int, value: dict[str, Any], mask: int) -> None:
    line = protocol.encode(seq, value)[:-1]
    for place in range(len(line) - 8):
        changed = line[:place] + bytes([line[place] ^ mask]) + line[place + 1 :]
        with pytest.raises(Noise):
            protocol.decode(changed)


def test_a_lost_or_doubled_byte_and_two_lines_run_together_are_noise() -> None:
    line = protocol.encode(7, {"q": "status"})[:-1]
    for place in range(len(line)):
        with pytest.raises(Noise):
            protocol.decode(line[:place] + line[place + 1 :])
        with pytest.raises(Noise):
            protocol.decode(line[: place + 1] + line[place:])
        with pytest.raises(Noise):
            protocol.decode(line[place:] + line)
        with pytest.raises(Noise):
            protocol.decode(line + line[: place + 1])


def test_noise_says_why() -> None:
    for line, words in (
        (b"", "no CRC"),
        (b"MicroPython v1.28.0 on 2026-01-01", "no CRC"),
        (b">>> 00000000 00000000", "the CRC differs"),
        (framed(b"x {}"), "not a number and JSON"),
        (framed(b"3 [1]"), "not an object"),
        (b"9" * (protocol.LINE_MAX + 1), f"longer than {protocol.LINE_MAX} bytes"),
    ):
        with pytest.raises(Noise, match=words):
            protocol.decode(line)


def test_the_longest_line_is_taken() -> None:
    empty = len(protocol.encode(1, {"a": ""})) - 1
    value = {"a": "x" * (protocol.LINE_MAX - empty)}
    line = protocol.encode(1, value)
    assert len(line) == protocol.LINE_MAX + 1
    assert protocol.decode(line) == (1, value)


# -- the table -------------------------------------------------------------------------------------------------------

ROLES = {protocol.ANYONE, protocol.DEALER, protocol.SUPERVISOR, protocol.TECHNICIAN}
KINDS = {"int", "word", "text", "flag", "dice", "wagers", "streak"}


def fields_of(name: str) -> tuple[tuple[Any, ...], ...]:
    """The rows (field, kind, low or words, high, default) of a request."""
    return REQUESTS[name][2]


def good_value(kind: str, low: Any, high: Any, *, longest: bool = False) -> Any:
    """A value that fits, the one that takes the most room if asked for."""
    if kind == "word":
        return max(low, key=len) if longest else low[0]
    if kind == "text":
        return "x" * (high if longest else low)
    full = {"match": 100000000, "even": 100000000, "odd": 100000000, "double": 100000000, "triple": 100000000}
    return {
        "int": high if longest else low,
        "flag": False,
        "dice": [6, 6, 6],
        "wagers": {**full, "bonus": 100000000} if longest else {},
        "streak": {"count": 9999, "parts": [[p, 100000000] for p in range(1, 8)], "gone": []} if longest else None,
    }[kind]


def good_request(name: str, *, longest: bool = False) -> dict[str, Any]:
    fields = {field: good_value(kind, low, high, longest=longest) for field, kind, low, high, _ in fields_of(name)}
    return {"q": name, **fields}


def test_every_request_has_its_words() -> None:
    assert list(WORDS) == list(REQUESTS)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_row_of_the_table_is_well_formed(name: str) -> None:
    role, since, _fields = REQUESTS[name]
    assert role in ROLES
    major, minor = (int(part) for part in since.split("."))
    assert (major, minor) <= (protocol.MAJOR, protocol.MINOR)
    assert len(WORDS[name]) > 5
    assert len({row[0] for row in fields_of(name)}) == len(fields_of(name))
    for field, kind, low, high, default in fields_of(name):
        assert field != "q"
        assert kind in KINDS
        if kind == "int":
            assert low <= high
        if kind == "word":
            assert low
            assert all(isinstance(word, str) for word in low)
        if default != protocol.REQUIRED:
            # A default is a value that could have been sent.
            assert protocol.check_request({**good_request(name), field: default})[1][field] == default


@pytest.mark.parametrize("name", REQUESTS)
def test_the_longest_sensible_request_fits_the_input_ring(name: str) -> None:
    line = protocol.encode(protocol.SEQ_MAX, good_request(name, longest=True))
    assert len(line) <= protocol.REQUEST_MAX


@pytest.mark.parametrize("name", REQUESTS)
def test_a_good_request_passes_with_its_defaults(name: str) -> None:
    for longest in (False, True):
        value = good_request(name, longest=longest)
        found, fields = protocol.check_request(value)
        assert found == name
        assert {"q": name, **fields} == value
    required = {
        key: value for key, value in good_request(name).items() if key == "q" or default_of(name, key) == "required"
    }
    assert set(protocol.check_request(required)[1]) == {row[0] for row in fields_of(name)}


def default_of(name: str, field: str) -> Any:
    return next(row[4] for row in fields_of(name) if row[0] == field)


WRONG: dict[str, list[Any]] = {
    "int": [None, True, "1", 1.0, [], {}, math.nan],
    "word": [None, "", "x", 1, ["dice"], True],
    "text": [None, 1, ["abc"], "a\tbc", "a\nbc", "a\x00bc", "a\x7fbc", "ab\ud83d", "ab\udc09", "\ud83d\ud83d\udc09"],
    "flag": [None, 0, 1, "true", []],
    "dice": [None, [], [1, 2], [1, 2, 3, 4], [0, 1, 2], [1, 2, 7], [1, 2, True], [1, 2, 3.0], "123", {"1": 1}],
    "wagers": [None, [], "even", {"even": -1}, {"even": True}, {"even": 1.5}, {"even": None}, {"even": 2**29}],
    "streak": [
        0,
        {},
        [],
        *(
            {"count": count, "parts": parts, "gone": gone}
            for count, parts, gone in (
                (-1, [], []),
                (True, [], []),
                (0, [[1, 5]], []),
                (0, [], [1]),
                (1, {}, []),
                (1, [[1]], []),
                (1, [[1, 0]], []),
                (1, [[8, 5]], []),
                (1, [[1, 5], [1, 6]], []),
                (1, [[1, 5]], [1]),
                (1, [], [0]),
                (1, [], 2),
                (1, [], ["2"]),
                (1, [["x", 1]], [[]]),
            )
        ),
        {"count": 1, "parts": [], "gone": [], "more": 1},
    ],
}


@pytest.mark.parametrize("name", [name for name in REQUESTS if fields_of(name)])
def test_a_field_that_is_wrong_or_missing_is_named_with_what_is_allowed(name: str) -> None:
    for field, kind, low, high, default in fields_of(name):
        wrong = list(WRONG[kind])
        if kind == "int":
            wrong += [low - 1, high + 1]
        if kind == "text":
            wrong += ["x" * (high + 1), *(["x" * (low - 1)] if low else [])]
        if default is None:
            # As if it were left out.
            wrong = [value for value in wrong if value is not None]
        for value in wrong:
            with pytest.raises(Problem) as raised:
                protocol.check_request({**good_request(name), field: value})
            assert raised.value.code == "E_ARGS"
            assert f"{name}: {field} is " in raised.value.why
            assert "allowed: " in raised.value.why
        if default == protocol.REQUIRED:
            missing = good_request(name)
            del missing[field]
            with pytest.raises(Problem, match=f"{name}: {field} is missing; allowed: "):
                protocol.check_request(missing)


def test_an_unknown_field_is_refused_except_in_hello() -> None:
    for name in REQUESTS:
        value = {**good_request(name), "colour": "red"}
        if name == "hello":
            assert "colour" not in protocol.check_request(value)[1]
            continue
        with pytest.raises(Problem, match='there is no field "colour"'):
            protocol.check_request(value)


def test_an_unknown_request_is_told_what_there_is() -> None:
    for name in ("", "Open", "E_STATE", None, 5, ["open"], {"open": 1}):
        with pytest.raises(Problem) as raised:
            protocol.check_request({"q": name})
        assert raised.value.code == "E_UNKNOWN"
        assert all(known in raised.value.why for known in REQUESTS)
    with pytest.raises(Problem):
        protocol.check_request({})


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.one_of(texts, st.sampled_from(["q", "position", "wagers", "dice", "reason", "shaker", "token"])),
        st.one_of(json_values, st.floats(), st.sampled_from(sorted(REQUESTS))),
        max_size=5,
    ),
    st.sampled_from(sorted(REQUESTS)),
)
def test_any_object_is_a_request_or_a_problem(value: dict[str, Any], name: str) -> None:
    for asked in (value, {**value, "q": name}):
        try:
            found, fields = protocol.check_request(asked)
        except Problem as problem:
            said = (problem.code, problem.why)
        else:
            assert set(fields) == {row[0] for row in fields_of(found)}
            continue
        assert said[0] in ERRORS
        assert said[1]


def literals(function: str) -> dict[str, set[str]]:
    """String constants E_... in firmware, by file; `function` narrows to the first argument of its calls."""
    found: dict[str, set[str]] = {}
    for path in sorted(FIRMWARE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            constants: list[ast.expr] = []
            if function and isinstance(node, ast.Call) and getattr(node.func, "id", "") == function:
                constants = node.args[:1]
            elif not function and isinstance(node, ast.Constant):
                constants = [node]
            names = {
                constant.value
                for constant in constants
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
            }
            found.setdefault(path.name, set()).update(name for name in names if name.startswith("E_"))
    return found


def test_every_code_that_is_raised_is_in_the_table_and_every_code_of_the_table_is_raised() -> None:
    raised = set().union(*literals("Problem").values())
    assert len(raised) > 10
    assert raised <= set(ERRORS)
    elsewhere = set().union(*(codes for name, codes in literals("").items() if name != "protocol.py"))
    used = raised | elsewhere
    assert used == set(ERRORS)


def test_every_record_void_and_fault_that_the_firmware_writes_is_in_the_table() -> None:
    calls: dict[str, set[str]] = {
        "_record": set(),
        "_happened": set(),
        "record": set(),
        "_void": set(),
        "_void_data": set(),
        "set_fault": set(),
        "set_service": set(),
    }
    for path in sorted(FIRMWARE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            if name in calls and isinstance(first, ast.Constant):
                calls[name].add(str(first.value))
            if name in ("report", "guard") and getattr(first, "attr", "") == "set_fault":
                calls["set_fault"].update(str(arg.value) for arg in node.args[1:2] if isinstance(arg, ast.Constant))
    assert calls["_record"] | calls["_happened"] | calls["record"] == set(EVENTS)
    assert calls["_void"] | calls["_void_data"] <= set(VOIDS)
    for name, severity in (("set_fault", LATCHED), ("set_service", SERVICE)):
        assert {FAULTS[code][1] for code in calls[name]} == {severity}
    assert calls["set_service"] == {code for code in FAULTS if FAULTS[code][1] == SERVICE}
    assert calls["set_service"] == set(protocol.SERVICE_FAULTS)


def test_every_code_has_words_that_a_person_can_read() -> None:
    faults = {code: row[0] for code, row in FAULTS.items()}
    for table in (STATES, ERRORS, EVENTS, VOIDS, faults):
        assert all(len(words) > 8 and words[0].islower() | words[0].isdigit() for words in table.values())
    assert all(code.startswith("E_") for code in ERRORS)
    assert all(severity in (LATCHED, SERVICE) and clears for _what, severity, clears in FAULTS.values())


def test_a_problem_without_words_of_its_own_leaves_them_to_the_host() -> None:
    assert Problem("E_STATE").why == ""
    assert Problem("E_STATE", "not now").why == "not now"
