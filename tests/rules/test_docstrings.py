"""Every public function of the rules says what it does, by which clause, and shows it by an example that is run."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from doctest import DocTestParser
from functools import cached_property

import pytest

from host_tools import rules

# A clause of a source text, or the words that there is none.
CLAUSE = re.compile(r"\([a-h]\)|\brules? \d+|11\.21|13:69F|trade practice|Pa\. Code")
# Input checks have no clause, and a house way's is the `source` of its own file.
WITHOUT_CLAUSE = ("check", "houseway")


def documented(module: object, name: str) -> Iterator[tuple[str, str]]:
    """(name, docstring) of every public function, method and property that a module defines itself."""
    for key, value in vars(module).items():
        if key.startswith("_"):
            continue
        # lru_cache and property wrap the function.
        function = inspect.unwrap(value) if callable(value) else value
        if isinstance(value, property):
            function = value.fget
        elif isinstance(value, cached_property):
            function = value.func
        elif isinstance(value, (classmethod, staticmethod)):
            function = value.__func__
        if inspect.isclass(value):
            if value.__module__ == name:
                yield from ((f"{key}.{inner}", text) for inner, text in documented(value, name))
        elif inspect.isfunction(function) and function.__module__ == name:
            yield key, function.__doc__ or ""


MODULES = sorted(module.name for module in pkgutil.iter_modules(rules.__path__))
FUNCTIONS = [
    (module, key, text)
    for module in MODULES
    for key, text in documented(importlib.import_module(f"{rules.__name__}.{module}"), f"{rules.__name__}.{module}")
]


def test_the_walk_finds_functions_methods_and_properties() -> None:
    found = {(module, key) for module, key, _text in FUNCTIONS}
    assert {
        ("tiles", "settle"), ("tiles", "Tile.face"), ("tiles", "Hands.as_dict"), ("tile_odds", "bank_hands"),
        ("tile_odds", "BankHands.count"), ("houseway", "HandCondition.hands"), ("cards_text", "flush"),
    } <= found  # fmt: skip
    assert {module for module, _key in found} == set(MODULES)


@pytest.mark.parametrize(("module", "key", "text"), FUNCTIONS, ids=[f"{one}.{two}" for one, two, _text in FUNCTIONS])
def test_every_public_function_has_a_docstring_with_an_example_and_its_clause(module: str, key: str, text: str) -> None:
    assert text.strip(), "no docstring"
    assert DocTestParser().get_examples(text), "no example in the docstring"
    # A method belongs to its class, whose docstring or module has the clause.
    if module not in WITHOUT_CLAUSE and "." not in key:
        assert CLAUSE.search(text), "no source clause in the docstring"
