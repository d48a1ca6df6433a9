"""The pages: a frame in the reader's language, which a script fills with what the server sends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from host_tools.i18n import LANGUAGES, _, language
from host_tools.web.access import ROLES, role_name
from host_tools.web.console import tile_set

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
        "corrected": _("corrected"),
        "bank": _("Dealer"),
        "first": _("FIRST"),
        "dealt": _("deal: {n}"),
        "shakes": _("shakes"),
        "no_wagers": _("no wagers"),
        "pays": _("pays"),
        "loses": _("loses"),
        "stays": _("stays up"),
        "back": _("goes back"),
        "streak": _("Triples in a row"),
        "bonus": _("Bonus at stake"),
        "no_bonus": _("no bonus wager"),
        "position": _("position {n}"),
        "rolls": _("Last rolls, newest first"),
        "void": _("void"),
        "no_rolls": _("no rolls yet"),
    }


def _language_links(path: str) -> str:
    names = {"en": "English", "es": "Español"}
    return " ".join(
        f'<a href="{path}?lang={code}" lang="{code}" hreflang="{code}">{names[code]}</a>'
        for code in LANGUAGES
        if code != language()
    )


def page(name: str, title: str, texts: Texts, body: str, **data: Any) -> str:
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


def _named(heading: str, name: str) -> str:
    """A page's heading, with the table's name first if it has one."""
    return f"{name} · {heading}" if name else heading


def display_page(name: str) -> str:
    """The display of the table with this name."""
    # Texts inside an f-string would not be found by who collects them.
    heading, table, streak = _named(_("Dragon's eye table"), name), _("The table"), _("Streak and bonus")
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


def login_page(roles: Sequence[str]) -> str:
    """Where somebody gives a PIN; `roles` are those that have one."""
    heading, script = _("Dealer's console"), _("This page needs JavaScript.")
    texts = {
        "role": _("Role"),
        "pin": _("PIN"),
        "log_in": _("Log in"),
        "lost_server": _("the server does not answer; try again"),
        "no_pins": _("No PIN is set yet. On the server: tablectl serve --set-pin dealer"),
        **{role: role_name(role) for role in ROLES},
    }
    body = f"""<main>
<h1>{escape(heading)}</h1>
<div id="login"></div>
</main>
<footer><a href="/">{escape(_to_display())}</a> {_language_links("/dealer")}</footer>
<noscript>{escape(script)}</noscript>"""
    return page("login", heading, texts, body, roles=list(roles))


def _to_display() -> str:
    return _("to the display")


def dealer_texts() -> Texts:
    """What the console's script says besides the display's texts."""
    return {
        "lost_server": _("the server does not answer; it is not known whether this was done"),
        "next": _("Next step"),
        "who_shakes": _("who shakes"),
        "dealer_shakes": _("the dealer"),
        "open": _("Open a round"),
        "keep_dice": _("keep this dice set (supervisor)"),
        "close": _("Close bets"),
        "shake": _("Shake"),
        "reshake": _("Shake again"),
        "unlock": _("Unlock the lid"),
        "finish": _("Finish the round"),
        "wait": _("wait: the table is busy"),
        "open_lid": _("the lid is unlocked by this; open it, and the result shows"),
        "shut_lid": _("shut the lid first"),
        "call": _("too many void rolls: a supervisor goes on, enters a result, or voids the round"),
        "wagers": _("Wagers"),
        "set_wagers": _("Set wagers"),
        "set_done": _("wagers of position {n} are set"),
        "unset": _("not set yet: {wagers}. The table has {stands}."),
        "not_set": _("not set"),
        "close_unset": _("This was typed and never set: {wagers}. Close bets without it?"),
        "closed_unset": _("bets are closed; this was typed and never set, so it does not count: {wagers}"),
        "yes": _("Yes"),
        "leave": _("The player at position {n} leaves"),
        "leave_part": _("Position {n} leaves: its part in the streak is forfeited for good. Down there: {wagers}."),
        "leave_wagers": _("Position {n} leaves: its wagers come off ({wagers})."),
        "owed": _("the table could owe {sum}"),
        "bad_money": _("{text}: allowed are dollars such as 5 or 12.50"),
        "too_much": _("{text}: allowed are {most} at most"),
        "over": _("Last rounds"),
        "void_back": _("void: wagers go back"),
        "void_unknown": _("void: wagers go back; what was down was not recorded before its bets closed"),
        "table_net": _("table {net}"),
        "change_shaker": _("Change who shakes"),
        "tiles": _("Tile hands"),
        "tiles_of": _("tile hands of round {n}"),
        "hand": _("Hand"),
        "high": _("high"),
        "low": _("low"),
        "stake": _("bet in dollars"),
        "bet": _("bet"),
        "set_by_house": _("set by the house way"),
        "free": _("empty"),
        "take_back": _("take back {tile}"),
        "settle": _("Settle"),
        "keep_hands": _("Keep these hands"),
        "kept": _("kept"),
        "settled_hands": _("How the hands settle"),
        "result": _("result"),
        "net": _("net"),
        "signal": _("dealer's signal"),
        "commission": _("commission"),
        "win": _("wins"),
        "lose": _("loses"),
        "push": _("pushes"),
        "supervisor": _("Supervisor"),
        "reason": _("reason (3 to 80 characters)"),
        "void_round": _("Void the round"),
        "resume": _("Go on shaking"),
        "enter_manual": _("Enter a result by hand"),
        "die_n": _("die {n}"),
        "enter": _("Enter"),
        "echo": _("Entered: {dice}, total {total}; the dragon's eye die is die {eye}. Type the dice again to confirm."),
        "confirm": _("Confirm"),
        "cancel": _("Cancel"),
        "bad_dice": _("three dice, each from 1 to 6"),
        "correct_round": _("Correct a round that is over"),
        "round_number": _("round"),
        "wrong": _("what was wrong"),
        "wrong_dice": _("the dice were these"),
        "wrong_bets": _("the wagers of a position were these"),
        "wrong_void": _("the round should have been void"),
        "stands": _("as it stands: {dice}, total {total}"),
        "stands_unknown": _("its rule pack is not known here"),
        "all_wagers": _("These will be ALL the wagers of position {n}: what is not here is off."),
        "bad_round": _("round: {text}: allowed are whole numbers from 1"),
        "correct": _("Show what changes"),
        "correct_yes": _("Correct"),
        "before": _("as it stands"),
        "after": _("as corrected"),
        "wagers_of": _("all wagers of position {n}"),
        "net_of": _("net of position {n}"),
        "nets_table": _("table's net on dice wagers"),
        "change": _("The table's net changes by {sum}."),
        "change_unknown": _("What changes cannot be said: its rule pack is not known here."),
        "correct_anyway": _("Correct it so nevertheless"),
        "correct_done": _("round {n} is corrected by a further record; what was recorded stays"),
        "clear": _("Clear the fault {code}"),
        "changed_dice": _("Dice were changed"),
        "changed_shaker": _("Shaker was changed"),
        "keep_streak": _("the streak goes on"),
        "streak_ends": _("The streak of {count} ends for good, and the bonus of: {parts}."),
        "streak_kept": _("The streak of {count} goes on with the other unit; at stake the bonus of: {parts}."),
        "end": _("Close the table (the streak ends)"),
        "technician": _("Technician"),
        "test_on": _("Enter test mode"),
        "test_off": _("Leave test mode"),
        "selftest": _("Run the self-test"),
        "sensors": _("Look at the sensors"),
        "virtual": _("Virtual table"),
        "virtual_open": _("Open the lid"),
        "virtual_shut": _("Shut the lid"),
        "log_out": _("Log out ({role})"),
    }


def dealer_page(name: str, role: str, csrf: str, actions: Sequence[str], has_lid: bool) -> str:
    """The dealer's console of the table with this name for a session of `role`, which may do `actions`; `has_lid`: a
    virtual table's lid."""
    heading, script, message = _named(_("Dealer's console"), name), _("This page needs JavaScript."), _("Messages")
    dice = _("Are the dice fair?")
    body = f"""<header>
<div id="state" role="status" aria-live="polite"></div>
<div id="round"></div>
</header>
<div id="notices" role="alert"></div>
<main>
<h1 class="hidden">{escape(heading)}</h1>
<div id="message" role="status" aria-live="assertive" aria-label="{escape(message)}"></div>
<div id="console"></div>
</main>
<footer><a href="/" target="_blank" rel="noopener">{escape(_to_display())}</a>
<a href="/dealer/fairness?lang={language()}" target="_blank" rel="noopener">{escape(dice)}</a>
{_language_links("/dealer")} <span id="logout"></span></footer>
<noscript>{escape(script)}</noscript>"""
    texts = {**display_texts(), **dealer_texts(), "role_name": role_name(role)}
    return page(
        "dealer",
        heading,
        texts,
        body,
        role=role,
        csrf=csrf,
        actions=list(actions),
        has_lid=has_lid,
        tiles=tile_set(),
    )
