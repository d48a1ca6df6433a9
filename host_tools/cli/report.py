"""`tablectl report`: a shift's figures, or a test lab's, as a page of HTML or as PDF."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from dragoneye.errors import BadInput
from dragoneye.rules.packs import NAMES, load
from host_tools import export as exports
from host_tools.cli import fairness as telling
from host_tools.cli.call import correction_text, signed
from host_tools.cli.common import db_option, open_store
from host_tools.cli.document import Block, Document, Drawing, Heading, Paragraph, Rows, to_html, to_pdf
from host_tools.cli.numbers import decimal, money, number, percent
from host_tools.cli.output import json_option, print_json
from host_tools.cli.record import Asked, Moment, format_of, heads_of, progress, search_for, set_name, table_option
from host_tools.codes import FAULTS, VOIDS
from host_tools.device import called
from host_tools.i18n import _, controller, pgettext
from host_tools.store import Search, Store

Figures = dict[str, Any]
# What a lab usually asks for.
LAB_ROLLS = 10_000
# So many rows of a list are in a report; the record has them all.
_ROWS = 50


@click.command()
@click.argument("file")
@click.option("--from", "since", type=Moment(), help="From this moment on (UTC); default: all there is.")
@click.option("--until", type=Moment(ends=True), help="Up to this moment (UTC); of a date, the whole day.")
@click.option(
    "--lab", is_flag=True, help="For a test lab: the dice's statistics, the firmware, the audit of the record."
)
@click.option("--rolls", "rolls_file", help="Also write the newest raw rolls to this file: CSV, JSON Lines or Parquet.")
@click.option(
    "--last", default=LAB_ROLLS, show_default=True, type=click.IntRange(1), help="With --rolls: how many, the newest."
)
@click.option("--pack", "packs", multiple=True, help="For the audit: a rule pack's file that was played.")
@table_option
@db_option
@json_option
def report(
    file: str,
    since: str | None,
    until: str | None,
    lab: bool,
    rolls_file: str | None,
    last: int,
    packs: tuple[str, ...],
    uid: str | None,
    db: Path | str | None,
    as_json: bool,
) -> None:
    """Write a report of a shift, or for a test lab, to FILE: .html, .pdf, or - for HTML on stdout."""
    from host_tools import report as reports

    suffix = Path(file).suffix.lower()
    if file != "-" and suffix not in (".html", ".pdf"):
        raise BadInput(_("{path}: allowed: a file ending in .html or .pdf, or -").format(path=file))
    store = open_store(db, must_exist=True)
    search = search_for(store, Asked(uid, since, until))
    told = []
    for table in store.tables() if uid is None else [uid]:
        of_table = Search(table, search.since, search.until)
        told.append((reports.of_table(store, of_table), reports.sets_of(store, of_table)))
    rolls = _write_rolls(store, search, rolls_file, last) if rolls_file else None
    audited = _audit(store, packs, uid) if lab else None
    if as_json:
        data: Figures = {
            "tables": [{**figures, "dice_sets": [one for _set, one in sets]} for figures, sets in told],
            "audit": audited,
            "rolls": rolls,
            "heads": heads_of(store, uid),
        }
        print_json(data)
    document = _document(told, since, until, lab, audited, rolls, heads_of(store, uid))
    if file == "-":
        if not as_json:
            sys.stdout.buffer.write(to_html(document).encode())
        return
    with exports.target(file) as out:
        out.write(to_pdf(document) if suffix == ".pdf" else to_html(document).encode())
    if not as_json:
        click.echo(_("{file}: {bytes} bytes").format(file=file, bytes=number(out.bytes)))


def fairness_page(store: Store, uid: str, dice_set: int, back: tuple[str, str]) -> str:
    """The statistics of one dice set of a table as a page of HTML; `back` links to where it is from."""
    from host_tools import fairness

    made = datetime.now(timezone.utc)
    title = _("Are the dice fair?")
    document = Document(title, _("made {made} UTC").format(made=f"{made:%Y-%m-%d %H:%M}"), made)
    document.blocks.append(Heading(_("Table {uid}").format(uid=uid)))
    for one in fairness.gather(store, Search(uid=uid, dice_set=dice_set)):
        document.blocks += _lab_set(one, fairness.analyse(one))
    if len(document.blocks) == 1:
        document.blocks.append(Paragraph(_("no rolls are recorded")))
    document.blocks += _method()
    return to_html(document, back)


def _write_rolls(store: Store, search: Search, path: str, last: int) -> Figures:
    kind = format_of(path)
    with exports.target(path) as out, progress(_("export"), last) as advance:
        rows = exports.roll_rows(store, store.rolls(search, last))
        exports.write(rows, exports.ROLL_COLUMNS, kind, out, advance)
    return {"file": path, "rows": out.rows, "sha256": out.sha256}


def _audit(store: Store, packs: tuple[str, ...], uid: str | None) -> Figures:
    from host_tools import audit as auditing

    with progress(_("audit"), None) as advance:
        return auditing.audit(
            store, [load(name) for name in (*packs, *NAMES)], uid, advance, auditing.held_keys(store)
        ).as_dict()


def _time(utc: str | None) -> str:
    return utc[:16].replace("T", " ") if utc else ""


def _document(
    told: list[Any],
    since: str | None,
    until: str | None,
    lab: bool,
    audited: Figures | None,
    rolls: Figures | None,
    heads: list[Figures],
) -> Document:
    made = datetime.now(timezone.utc)
    if since or until:
        span = _("{since} to {until} UTC").format(
            since=_time(since) or _("the beginning"), until=_time(until) or _("now")
        )
    else:
        span = _("everything in the record")
    title = _("Report for a test lab") if lab else _("Report of a shift")
    document = Document(title, f"{span} · " + _("made {made} UTC").format(made=f"{made:%Y-%m-%d %H:%M}"), made)
    for figures, sets in told:
        # Under the name that it had last.
        known = figures["identities"][-1] if figures["identities"] else {}
        name = Heading(_("Table {uid}").format(uid=called({**known, "uid": figures["table"]})))
        document.blocks.append(name)
        if figures["unprovisioned"]:
            words = _("Unprovisioned: without keys, whoever held the table's cable could ask for anything: {times}.")
            document.blocks.append(Paragraph(words.format(times=_keyless(figures["keyless"]))))
        document.blocks += _outside(figures["outside"])
        document.blocks += _rounds(figures)
        if not lab:
            document.blocks += _wagers(figures)
        document.blocks += _noted(figures)
        if lab:
            document.blocks += _identity(figures)
            for dice_set, analysis in sets:
                document.blocks += _lab_set(dice_set, analysis)
        else:
            document.blocks += _shift_sets(sets)
    if not told:
        document.blocks.append(Paragraph(_("no rounds are recorded")))
    if lab:
        document.blocks += _method()
    if audited is not None:
        document.blocks += _audited(audited)
    if rolls is not None:
        document.blocks += [
            Heading(_("Raw rolls")),
            Paragraph(
                _("{file}: the newest {rows} rolls, SHA-256 {sha256}").format(
                    file=rolls["file"], rows=number(rolls["rows"]), sha256=rolls["sha256"]
                )
            ),
        ]
    document.blocks += [
        *_list(
            _("Where the record ends"),
            [(head["table"], head["head"], _time(head["utc"])) for head in heads],
            (_("table"), _("event and hash"), _("UTC")),
            frozenset((0, 1, 2)),
        ),
        Paragraph(_("Note these elsewhere: `tablectl audit --head` tells by one whether the record was put back.")),
    ]
    return document


def _keyless(times: list[Figures]) -> str:
    return ", ".join(
        _("{since} to {until} UTC").format(
            since=_time(one["since"]) or _("the beginning"), until=_time(one["until"]) or _("the end")
        )
        for one in times
    )


def _start_cause(cause: str | None) -> str:
    words = {
        "pwron": _("pwron: the power, or the reset button"),
        "wdt": _("wdt: the watchdog, or a restart that the host asked for (keys, maintenance, the end of test mode)"),
        "soft": _("soft: Ctrl-D at the prompt"),
    }
    return words.get(cause or "", cause or "")


def _outside(rounds: list[Figures]) -> list[Block]:
    if not rounds:
        return []
    words = _(
        "The computer's clock was put back: of the rounds that were played in between, {count} lie outside this time "
        "by their UTC and are not in this report ({rounds}); nor are what happened then and its figures."
    )
    named = ", ".join(f"{one['round']}: {_time(one['utc'])}" for one in rounds[:_ROWS])
    more = "" if len(rounds) <= _ROWS else " ..."
    return [Paragraph(words.format(count=number(len(rounds)), rounds=named + more), strong=True)]


def _rounds(figures: Figures) -> list[Block]:
    rounds = figures["rounds"]
    net = figures["dice_net"] + figures["tiles_net"]
    rows = [
        (_("rounds settled"), number(rounds.get("settled", 0))),
        (_("rounds void"), number(rounds.get("void", 0))),
        (_("rounds still open"), number(rounds.get("open", 0))),
        (_("results entered by hand"), number(len(figures["manual"]))),
        (_("triples as they were rolled"), number(figures["triples_rolled"])),
        (_("most triples in a row as they were rolled"), number(figures["longest_streak"])),
        *([(_("triples as corrected"), number(figures["triples"]))] if figures["corrected_rounds"] else []),
        (_("table's net on dice wagers"), signed(figures["dice_net"])),
        (_("table's net on tile bets"), signed(figures["tiles_net"])),
        (_("table's net"), signed(net)),
    ]
    if figures["first"]:
        rows.insert(0, (_("first round"), f"{number(figures['first']['round'])} · {_time(figures['first']['utc'])}"))
        rows.insert(1, (_("last round"), f"{number(figures['last']['round'])} · {_time(figures['last']['utc'])}"))
    blocks: list[Block] = [Rows((_("what"), _("figure")), rows)]
    if figures["corrected_rounds"]:
        words = _(
            "Corrected rounds: {count}. Wagers and money are as the corrections leave them; what was rolled or entered "
            "by hand, and the streaks, are as they were played."
        )
        blocks.append(Paragraph(words.format(count=number(figures["corrected_rounds"]))))
    return blocks


def _entered(one: Figures) -> str:
    """The dice that were entered by hand, and what counts in their place."""
    entered = " ".join(map(str, one["dice"]))
    if "counts" not in one:
        return entered
    if one["counts"] is None:
        return _("{dice}, corrected to void").format(dice=entered)
    return _("{dice}, corrected to {counts}").format(dice=entered, counts=" ".join(map(str, one["counts"])))


def _wagers(figures: Figures) -> list[Block]:
    if not figures["wagers"]:
        return []
    rows = [
        (
            _(wager),
            number(row["made"]),
            number(row["won"]),
            money(row["stakes"]),
            money(row["paid"]),
            signed(row["net"]),
            percent(row["net"] / row["stakes"], 1),
        )
        for wager, row in figures["wagers"].items()
    ]
    return [
        Heading(_("Dice wagers"), 3),
        Rows(
            (_("wager"), _("made"), _("won"), _("stakes"), _("winnings paid"), _("table's net"), _("of the stakes")),
            rows,
        ),
    ]


def _list(title: str, rows: Sequence[tuple[str, ...]], headings: tuple[str, ...], left: frozenset[int]) -> list[Block]:
    if not rows:
        return []
    blocks: list[Block] = [Heading(title, 3), Rows(headings, rows[:_ROWS], left)]
    if len(rows) > _ROWS:
        blocks.append(Paragraph(_("and {count} more in the record").format(count=number(len(rows) - _ROWS))))
    return blocks


def _fault_words(code: str) -> str:
    words = FAULTS.get(code, "")
    return controller(words if isinstance(words, str) else words[0])


def _noted(figures: Figures) -> list[Block]:
    voids = [
        (reason, controller(VOIDS.get(reason, reason)), number(count)) for reason, count in figures["voids"].items()
    ]
    faults = [
        (
            _time(one["set"]),
            _time(one["cleared"]) or _("still stands"),
            one["code"],
            _fault_words(one["code"]),
            controller(one["detail"]),
        )
        for one in figures["faults"]
    ]
    manual = [(_time(one["utc"]), number(one["round"]), _entered(one), one["reason"]) for one in figures["manual"]]
    changes = [(_time(one["utc"]), controller(one["what"])) for one in figures["changes"]]
    corrected = [(_time(one["utc"]), number(one["round"]), _correction(one)) for one in figures["corrections"]]
    starts = [(_time(one["utc"]), number(one["boot"]), _start_cause(one["cause"])) for one in figures["starts"]]
    doors = [(pgettext("door", which), number(count)) for which, count in figures["doors"].items()]
    return [
        *_list(_("Void rolls"), voids, (_("reason"), _("what it means"), _("times")), frozenset((0, 1))),
        *_list(_("Results entered by hand"), manual, (_("UTC"), _("round"), _("dice"), _("why")), frozenset((0, 3))),
        *_list(
            _("Faults"),
            faults,
            (_("set (UTC)"), _("cleared (UTC)"), _("code"), _("what it means"), _("detail")),
            frozenset(range(5)),
        ),
        *_list(_("Streak ended or dice changed"), changes, (_("UTC"), _("what")), frozenset((0, 1))),
        *_list(_("Corrections"), corrected, (_("UTC"), _("round"), _("what")), frozenset((0, 2))),
        *_list(_("Starts of the controller"), starts, (_("UTC"), _("start"), _("cause")), frozenset((0, 2))),
        *_list(_("Openings"), doors, (_("which"), _("times")), frozenset((0,))),
    ]


def _correction(one: Figures) -> str:
    return correction_text({key: value for key, value in one.items() if value is not None})


def _identity(figures: Figures) -> list[Block]:
    blocks: list[Block] = []
    for identity in figures["identities"]:
        rows = [(key, str(value)) for key, value in sorted(identity.items())]
        blocks += [Heading(_("The controller, as it tells"), 3), Rows((_("what"), _("value")), rows, frozenset((0, 1)))]
    return blocks


def _shift_sets(sets: list[Any]) -> list[Block]:
    blocks: list[Block] = []
    for _of_table, analysis in sets:
        blocks += [
            Heading(_("Dice set {set}").format(set=set_name(analysis)), 3),
            Paragraph(
                _("{rolls} rolls since {since} UTC").format(
                    rolls=number(analysis["rolls"]), since=_time(analysis["first"])
                )
            ),
            Paragraph(telling.drift_text(analysis), strong=analysis["drift"]["warned_at_roll"] is not None),
            Paragraph(telling.verdict(analysis), strong=bool(analysis["suspicious"])),
        ]
        if analysis["rolls"]:
            blocks.append(_faces_drawn(analysis))
    return blocks


def _faces_drawn(analysis: Figures) -> Drawing:
    from host_tools.cli import plots

    words = _("Share of each face with its exact interval; the broken line is a fair die's 1/6")
    return Drawing(plots.faces(analysis), words)


def _lab_set(dice_set: Any, analysis: Figures) -> list[Block]:
    from host_tools.cli import plots

    blocks: list[Block] = [
        Heading(_("Dice set {set}").format(set=set_name(analysis)), 3),
        Paragraph(
            _("{rolls} rolls from {since} to {until} UTC, without results entered by hand ({manual})").format(
                rolls=number(analysis["rolls"]),
                since=_time(analysis["first"]),
                until=_time(analysis["last"]),
                manual=number(analysis["manual"]),
            )
        ),
        Paragraph(telling.verdict(analysis), strong=bool(analysis["suspicious"])),
        Paragraph(
            _("Drift watch: ") + telling.drift_text(analysis), strong=analysis["drift"]["warned_at_roll"] is not None
        ),
    ]
    if not analysis["rolls"]:
        return blocks
    rows = []
    for die in analysis["dice"]:
        name = f"{die['die']} " + _("(dragon's eye)") if die["eye"] else str(die["die"])
        rows += [
            (name, number(face["face"]), number(face["count"]), percent(face["share"], 2), telling.interval_text(face))
            for face in die["faces"]
        ]
    interval = _("{confidence} interval").format(confidence=percent(analysis["confidence"], 0))
    tests = [
        (
            telling.test_name(f"die {die['die']}, {name}"),
            *_test(die[key]),
        )
        for die in analysis["dice"]
        for name, key in (("faces", "chi_square"), ("runs", "runs"), ("repeats", "repeats"))
    ]
    tests += [(telling.test_name(name), *_test(analysis[name])) for name in ("totals", "outcomes")]
    blocks += [
        Rows((_("test"), _("statistic"), _("by"), "p"), tests, frozenset((0, 2))),
        _faces_drawn(analysis),
        Drawing(plots.totals(analysis), _("Totals as they came, and as fair dice have them")),
        Drawing(
            plots.drift(dice_set.rolls, analysis["drift"]["limit"]),
            _("Evidence against each die, roll by roll; a warning is given at the upper line"),
        ),
        Rows((_("die"), _("face"), _("times"), _("share"), interval), rows),
    ]
    if analysis["smallest_bias"]:
        blocks.append(Paragraph(telling.bias_text(analysis["smallest_bias"])))
    if analysis["reading"]:
        blocks.append(Paragraph(telling.reading_text(analysis["reading"])))
    return blocks


def _test(result: Figures | None) -> tuple[str, str, str]:
    """A test's statistic, how its p-value was found, and the p-value."""
    if result is None:
        return "", "", telling.p_text(None)
    how = _("exact") if result["exact"] else _("normal")
    if result["df"] is not None:
        how = _("chi-square, {df} degrees of freedom").format(df=result["df"])
    return decimal(result["statistic"], 2), how, telling.p_text(result)


def _method() -> list[Block]:
    from host_tools import statistics

    needed = [(decimal(bias * 100, 1), number(statistics.rolls_needed(bias))) for bias in (0.005, 0.01, 0.02, 0.05)]
    return [
        Heading(_("How it was reckoned")),
        Paragraph(
            _(
                "Faces: chi-square with 5 degrees of freedom, counted exactly below 30 rolls. Totals: chi-square "
                "against the 216 rolls, tails pooled until each cell is expected five times. All three dice: "
                "chi-square over the 216 rolls, from 1,080 rolls on. Runs: Wald and Wolfowitz on faces above three. "
                "Repeats: exact binomial test of 1/6. Intervals: Clopper and Pearson, each by itself."
            )
        ),
        Paragraph(
            _(
                "A set is called suspicious when any of its tests has p below 1 % divided by the number of tests; "
                "fair dice are so called at most once in a hundred sets. The drift watch compares the likelihood of "
                "all rolls since the set was new with fair dice; whenever and however often one looks, fair dice "
                "ever cause a warning at most once in a hundred sets (Ville's inequality)."
            )
        ),
        Paragraph(_("Rolls needed to see one face that is too frequent (false alarms 1 %, power 90 %):")),
        Rows((_("points too frequent"), _("rolls")), needed),
    ]


def _audited(audited: Figures) -> list[Block]:
    blocks: list[Block] = [
        Heading(_("Audit of the record")),
        Paragraph(
            _("{events} events, {rounds} rounds and {settlements} settlements were checked; {count} do not fit").format(
                events=number(audited["events"]),
                rounds=number(audited["rounds"]),
                settlements=number(audited["settlements"]),
                count=number(len(audited["findings"])),
            ),
            strong=not audited["clean"],
        ),
    ]
    rows = [
        (one["table"], number(one["event"]), number(one["round"]), one["what"])
        for one in (*audited["findings"], *audited["notes"])
    ]
    headings = (_("table"), _("event"), _("round"), _("what"))
    return blocks + _list(_("Findings and notes"), rows, headings, frozenset((0, 3)))
