"""The pages: a frame in the reader's language, which a script fills with what the server sends."""

from __future__ import annotations

import json
from html import escape

from host_tools.i18n import LANGUAGES, _, language

Texts = dict[str, str]


def display_texts() -> Texts:
    """What the display's script says."""
    return {
        "round": _("Round {n}"),
        "bets_open": _("bets open"),
        "bets_closed": _("bets closed"),
        "lost": _("This screen has lost its connection; it comes back by itself."),
        "eye": _("dragon's eye"),
        "die": _("die {n}: {value}"),
        "eye_die": _("dragon's eye die: {value}"),
        "covered": _("the dice are covered"),
        "total": _("Total"),
        "last_round": _("last round"),
        "manual": _("entered by hand: {reason}"),
        "by_hand": _("by hand"),
        "bank": _("Dealer"),
        "first": _("FIRST"),
        "dealt": _("deal: {n}"),
        "shakes": _("shakes"),
        "no_wagers": _("no wagers"),
        "pays": _("pays"),
        "loses": _("loses"),
        "stays": _("stays up"),
        "streak": _("Triples in a row"),
        "bonus": _("Bonus at stake"),
        "no_bonus": _("no bonus wager"),
        "position": _("position {n}"),
        "rolls": _("Last rolls, newest first"),
        "void": _("void"),
        "no_rolls": _("none yet"),
    }


def _language_links(path: str) -> str:
    names = {"en": "English", "es": "Español"}
    return " ".join(
        f'<a href="{path}?lang={code}" lang="{code}" hreflang="{code}">{names[code]}</a>'
        for code in LANGUAGES
        if code != language()
    )


def page(name: str, title: str, texts: Texts, body: str, **data: str) -> str:
    """One page: its texts and `data` lie in it as JSON, which is no script; `name` is its script's."""
    held = json.dumps({"lang": language(), "texts": texts, **data}).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="{language()}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="/static/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/style.css">
<script type="application/json" id="page">{held}</script>
<script type="module" src="/static/{name}.js"></script>
</head>
<body class="{name}">
{body}
</body>
</html>
"""


def display_page() -> str:
    """The table's display."""
    # Texts inside an f-string would not be found by who collects them.
    heading, table, streak = _("Dragon's eye table"), _("The table"), _("Streak and bonus")
    rolls, script = _("Last rolls, newest first"), _("This page needs JavaScript.")
    body = f"""<header>
<div id="state" role="status" aria-live="polite"></div>
<div id="round"></div>
</header>
<div id="notices" role="alert"></div>
<main>
<h1 class="hidden">{escape(heading)}</h1>
<section id="table" aria-label="{escape(table)}"></section>
<section id="streak" aria-label="{escape(streak)}"></section>
<section id="rolls" aria-label="{escape(rolls)}"></section>
</main>
<footer><span id="uid"></span> {_language_links("/")}</footer>
<noscript>{escape(script)}</noscript>"""
    return page("display", heading, display_texts(), body)
