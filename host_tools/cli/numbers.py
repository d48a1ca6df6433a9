"""Numbers, shares and money as the chosen language writes them (Babel)."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from babel.numbers import format_currency, format_decimal, format_percent

from host_tools.i18n import language

# Dollars in both: the Spanish text is Puerto Rico's.
_LOCALES = {"en": "en_US", "es": "es_PR"}


def money(cents: int) -> str:
    """Cents as dollars: 123456 is "$1,234.56"."""
    return format_currency(Decimal(cents).scaleb(-2), "USD", locale=_LOCALES[language()])


def number(value: int) -> str:
    """A whole number with its thousands marked."""
    return format_decimal(value, locale=_LOCALES[language()])


def percent(share: float | Fraction, digits: int = 3) -> str:
    """A share of 1 as a percentage with `digits` decimals."""
    pattern = "#,##0." + "0" * digits + "%"
    return format_percent(float(share), format=pattern, locale=_LOCALES[language()])
