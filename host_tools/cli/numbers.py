"""Numbers, shares and money as the chosen language and the environment's territory write them (Babel)."""

from __future__ import annotations

import os
from decimal import Decimal
from fractions import Fraction

from babel import Locale, UnknownLocaleError
from babel.numbers import format_currency, format_decimal, format_percent

from host_tools.i18n import language

# Dollars in both: the Spanish text is Puerto Rico's.
_LOCALES = {"en": "en_US", "es": "es_PR"}


def _locale(category: str) -> Locale:
    """The environment's locale for `category`, where it is of the chosen language and names a territory."""
    named = next(filter(None, (os.environ.get(name) for name in ("LC_ALL", category, "LANG"))), "")
    try:
        found = Locale.parse(named.partition(".")[0].partition("@")[0])
    except (ValueError, UnknownLocaleError):
        found = None
    if found is None or found.language != language() or not found.territory:
        found = Locale.parse(_LOCALES[language()])
    return found


def _plain(text: str) -> str:
    """Without the spaces that do not break: plain ones are found again by who searches the output."""
    return text.replace("\xa0", " ").replace("\u202f", " ")


def money(cents: int) -> str:
    """Cents as dollars: 123456 is "$1,234.56"."""
    return _plain(format_currency(Decimal(cents).scaleb(-2), "USD", locale=_locale("LC_MONETARY")))


def number(value: int) -> str:
    """A whole number with its thousands marked."""
    return _plain(format_decimal(value, locale=_locale("LC_NUMERIC")))


def decimal(value: float | Fraction, digits: int = 3) -> str:
    """A number with `digits` decimals."""
    return _plain(format_decimal(float(value), format="#,##0." + "0" * digits, locale=_locale("LC_NUMERIC")))


def percent(share: float | Fraction, digits: int = 3) -> str:
    """A share of 1 as a percentage with `digits` decimals."""
    locale = _locale("LC_NUMERIC")
    pattern = locale.percent_formats[None].pattern
    if digits:
        pattern = pattern.replace("0", "0." + "0" * digits, 1)
    return _plain(format_percent(float(share), format=pattern, locale=locale))
