"""How input is shown in errors, by literals: other tests take `show` at its word."""

from __future__ import annotations

import pytest

from dragoneye.text import dumps, show


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (-7, "-7"),
        (5.0, "5.0"),
        ("Match", '"Match"'),
        ("mätch 骰", '"mätch 骰"'),
        ('a"b\n', r'"a\"b\n"'),
        ([1, [True, "x"]], '[1, [true, "x"]]'),
        ((3, 3, 4, 4), "[3, 3, 4, 4]"),
        ({"b": 1}, '{"b": 1}'),
        ({1, 2}, "{1, 2}"),
        (b"match", "b'match'"),
        ("\ud800", r'"\ud800"'),
        (10**79, "1" + "0" * 79),
        (10**80, "1" + "0" * 79 + "..."),
        ("a" * 78, '"' + "a" * 78 + '"'),
        ("a" * 79, '"' + "a" * 79 + "..."),
    ],
)
def test_input_is_shown_as_json_and_cut(value: object, shown: str) -> None:
    assert show(value) == shown


def test_text_for_the_wire_is_compact_and_printable_ascii() -> None:
    assert dumps({"a": [1, None, "mätch\x7f"]}) == r'{"a":[1,null,"m\u00e4tch\u007f"]}'
