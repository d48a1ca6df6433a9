"""The language of what a person reads: `_("text")` looks it up in the chosen gettext catalogue.

A process has one language; `speaking` is another one for a while, for one of several people who are answered at once.
"""

from __future__ import annotations

import gettext as _gettext
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

LANGUAGES = ("en", "es")
_FOLDER = Path(__file__).parent / "locale"
# What the operating system says about a file that cannot be used.
SYSTEM = (
    "No such file or directory",
    "Permission denied",
    "Is a directory",
    "Not a directory",
    "File name too long",
    "No space left on device",
)
_FILLED = re.compile("%[sd]")

_chosen = "en"
_spoken: ContextVar[str | None] = ContextVar("language", default=None)


@lru_cache(maxsize=len(LANGUAGES))
def _catalogue_of(language: str) -> _gettext.NullTranslations:
    if language == "en":
        return _gettext.NullTranslations()
    return _gettext.translation("tablectl", _FOLDER, [language], fallback=True)


def set_language(language: str) -> None:
    """Choose one of LANGUAGES for everything `_` returns from now on."""
    global _chosen
    _chosen = language
    # What click prints itself goes through the standard library's default domain.
    os.environ["LANGUAGE"] = language
    _gettext.bindtextdomain("tablectl", str(_FOLDER))
    _gettext.textdomain("tablectl")


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """One of LANGUAGES within the block, in this thread or task only."""
    before = _spoken.set(language)
    try:
        yield
    finally:
        _spoken.reset(before)


def language() -> str:
    """The chosen language, one of LANGUAGES."""
    return _spoken.get() or _chosen


@lru_cache(maxsize=len(LANGUAGES))
def _patterns(language: str) -> list[tuple[re.Pattern[str], str]]:
    """The controller's messages that have something filled in: what they look like, and their translation."""
    entries: dict[Any, str] = getattr(_catalogue_of(language), "_catalog", {})
    filled = [text for text in entries if isinstance(text, str) and _FILLED.search(text)]
    # Those that begin with words of their own first, then by how many they have: "%s: %s is %s" fits nearly anything.
    filled.sort(key=lambda text: (not text.startswith("%"), len(_FILLED.sub("", text))), reverse=True)
    # A number is digits: else "%d to %d characters" would fit a sentence that ends so.
    return [
        (
            re.compile(re.escape(text).replace("%d", r"(-?\d+)").replace("%s", "(.*)"), re.DOTALL),
            _FILLED.sub("%s", entries[text]),
        )
        for text in filled
    ]


def controller(text: str) -> str:
    """A message that the controller made, in English as it does all, in the chosen language."""
    translated = _(text)
    if translated != text or language() == "en":
        return translated
    for pattern, words in _patterns(language()):
        found = pattern.fullmatch(text)
        if found:
            # One word alone is a name for machines, such as a field's.
            return words % tuple(controller(part) if " " in part else part for part in found.groups())
    return text


def system(text: str) -> str:
    """A message in which the operating system says in English why it refuses, with that part in the chosen language."""
    for words in SYSTEM:
        text = text.replace(words, _(words))
    return text


def _(text: str) -> str:
    """`text` in the chosen language; English is the text itself."""
    # The entry of the empty text is the catalogue's header.
    return _catalogue_of(language()).gettext(text) if text else ""


def pgettext(context: str, text: str) -> str:
    """`text` in the chosen language where one English text has several translations: `context` says which is meant."""
    return _catalogue_of(language()).pgettext(context, text)


def ngettext(one: str, more: str, count: int) -> str:
    """`one` or `more` in the chosen language, by `count`."""
    return _catalogue_of(language()).ngettext(one, more, count)
