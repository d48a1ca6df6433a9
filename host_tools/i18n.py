"""The language of what a person reads: `_("text")` looks it up in the chosen gettext catalogue."""

from __future__ import annotations

import gettext as _gettext
import os
from pathlib import Path

LANGUAGES = ("en", "es")
_FOLDER = Path(__file__).parent / "locale"

_chosen = "en"
_catalogue: _gettext.NullTranslations = _gettext.NullTranslations()


def set_language(language: str) -> None:
    """Choose one of LANGUAGES for everything `_` returns from now on."""
    global _chosen, _catalogue
    _chosen = language
    _catalogue = _gettext.translation("tablectl", _FOLDER, [language], fallback=True)
    # What click prints itself goes through the standard library's default domain.
    os.environ["LANGUAGE"] = language
    _gettext.bindtextdomain("tablectl", str(_FOLDER))
    _gettext.textdomain("tablectl")


def language() -> str:
    """The chosen language, one of LANGUAGES."""
    return _chosen


def _(text: str) -> str:
    """`text` in the chosen language; English is the text itself."""
    return _catalogue.gettext(text)
