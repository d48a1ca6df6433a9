"""`tablectl fairness` and `report`: what is said of fair and of loaded dice, drawn, and as HTML and PDF."""

from __future__ import annotations

import csv
import hashlib
import re
import sqlite3
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from host_tools.fairness import analyse, gather
from host_tools.store import Search, Store
from tests.synthetic import biased, fill, history
from tests.unit.conftest import Tablectl

FAIR, LOADED = "E660000000000001", "E660000000000002"
ROUNDS = 1200


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with fair dice in two sets, and one whose second die likes the six."""
    path = tmp_path_factory.mktemp("made") / "rounds.db"
    fill(path, FAIR, history(ROUNDS, seed=1, set_rounds=1000))
    fill(path, LOADED, history(ROUNDS, seed=2, roller=biased(1, 6, 0.12)))
    connection = sqlite3.connect(path)
    connection.execute("UPDATE rounds SET manual = 'reader <down> & out' WHERE uid = ? AND number = 7", (LOADED,))
    connection.execute(
        "UPDATE rounds SET result = replace(result, '\"manual\":null', '\"manual\":\"reader <down> & out\"')"
        " WHERE uid = ? AND number = 7", (LOADED,),
    )  # fmt: skip
    connection.commit()
    connection.close()
    return path


@pytest.fixture(autouse=True)
def place(made: Path, tmp_path: Path) -> None:
    (tmp_path / "rounds.db").write_bytes(made.read_bytes())


def test_figures_are_those_of_the_rolls(made: Path) -> None:
    store = Store(made)
    sets = gather(store, Search())
    assert [(one.table, one.number, len(one.rolls) + one.manual) for one in sets] == [
        (FAIR, 1, 999), (FAIR, 2, 201), (LOADED, 1, 1200),
    ]  # fmt: skip
    rounds = [one for one in store.stream(Search(uid=LOADED)) if one["result"]["manual"] is None]
    found = analyse(sets[2])
    for die in range(3):
        values = [one["result"]["dice"][die] for one in rounds]
        assert found["dice"][die]["counts"] == [values.count(face) for face in range(1, 7)]
    assert found["by_total"] == [sum(one["result"]["total"] == total for one in rounds) for total in range(3, 19)]
    assert found["rolls"] == len(rounds)
    assert found["manual"] == ROUNDS - len(rounds) >= 1
    voids = [record["d"]["reason"] for record in store.stream_events(LOADED, ["void"])]
    assert found["voids"] == {reason: voids.count(reason) for reason in sorted(set(voids))}
    store.close()


def test_loaded_dice_are_called_suspicious_and_fair_ones_are_not(tablectl: Tablectl) -> None:
    first, second, loaded = tablectl("fairness", "--json").rows
    assert (first["suspicious"], second["suspicious"]) == ([], [])
    assert (first["drift"]["warned_at_roll"], second["drift"]["warned_at_roll"]) == (None, None)
    assert "die 2, faces" in loaded["suspicious"]
    assert loaded["drift"]["die"] == 2
    assert 1 <= loaded["drift"]["warned_at_roll"] <= loaded["drift"]["warned_at_round"] <= ROUNDS
    six = loaded["dice"][1]["faces"][5]
    assert six["low"] > 1 / 6
    out = tablectl("fairness", "--table", LOADED).out
    assert "SUSPICIOUS: die 2 faces" in out
    assert "drift: WARNING since round " in out
    out = tablectl("--lang", "es", "fairness", "--table", FAIR, "--dice-set", "2").out
    assert "nada habla contra dados justos: ninguna de 10 pruebas" in out


def test_dead_tags_show(tablectl: Tablectl, tmp_path: Path) -> None:
    """Where a tag is dead its die is not read one time in six, and the opposite face never comes."""
    path = tmp_path / "dead.db"
    fill(
        path, FAIR, history(400, roller=lambda rng: [rng.randint(1, 6), rng.choice((1, 2, 4, 5, 6)), rng.randint(1, 6)])
    )
    connection = sqlite3.connect(path)
    connection.execute(
        "INSERT INTO events (uid, id, kind, boot, ticks, round, utc, body, link)"
        " SELECT uid, id + 100000, 'void', boot, ticks, round, utc,"
        ' \'{"d":{"round":\' || round || \',"reason":"die_missing","missing":[2]}}\', link FROM events'
        " WHERE kind = 'opened' AND round % 5 = 0"
    )
    connection.commit()
    connection.close()
    [found] = tablectl("fairness", "--json", "--db", str(path)).rows
    assert found["reading"]["dead_tag_possible"] is True
    assert [(one["die"], one["face"]) for one in found["reading"]["never"]] == [(2, 3)]
    assert found["reading"]["missing"] == [0, 80, 0]
    assert "; die 2: 80" in tablectl("fairness", "--db", str(path)).out
    assert "die 2 never showed 3" in tablectl("fairness", "--db", str(path)).out
    assert tablectl("fairness", "--json", "--table", FAIR).rows[0]["reading"]["dead_tag_possible"] is False


def test_power(tablectl: Tablectl) -> None:
    assert tablectl("fairness", "power", "--bias", "0.01", "--json").rows[0]["rolls"] == pytest.approx(
        30_600, rel=0.001
    )
    assert tablectl("fairness", "power", "--bias", "0.01").out.startswith(
        "30,594 rolls show a face that is 1.00 points"
    )
    assert tablectl("fairness", "power", "--rolls", "30600", "--json").rows[0]["bias"] == pytest.approx(0.01, rel=0.001)
    assert "no bias at all" in tablectl("fairness", "power", "--rolls", "3").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fairness", "power"), "give either --bias or --rolls"),
        (("fairness", "power", "--bias", "0.9"), "Invalid value for '--bias'"),
        (("fairness", "--alpha", "0"), "Invalid value for '--alpha'"),
        (("fairness", "--table", "NOPE"), 'there is no table "NOPE"'),
        (("fairness", "--plot", "/dev/null/x"), "/dev/null/x: "),
        (("report", "x.doc"), "x.doc: allowed: a file ending in .html or .pdf, or -"),
        (("report", "-", "--from", "2026-02-30"), "Invalid value for '--from'"),
        (("report", "/no/such/x.html"), "/no/such/x.html cannot be written: "),
    ],
)
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["plain", "json"])
def test_bad_arguments(tablectl: Tablectl, arguments: tuple[str, ...], said: str, more: tuple[str, ...]) -> None:
    # With --json a report prints its figures before its file.
    if arguments[0] == "report" and "/no" in arguments[1] and more:
        return
    assert said in tablectl(*arguments, *more).refusal()


def test_plots(tablectl: Tablectl, tmp_path: Path) -> None:
    [told] = tablectl("fairness", "--table", LOADED, "--plot", str(tmp_path / "plots"), "--json").rows
    assert [Path(path).name for path in told["plots"]] == [
        f"{LOADED}-1-{name}.svg" for name in ("faces", "totals", "drift")
    ]
    for path in told["plots"]:
        root = ElementTree.parse(path).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "currentColor" in Path(path).read_text()
    words = "".join(ElementTree.parse(told["plots"][0]).getroot().itertext())
    assert "die 2 · dragon's eye" in words
    tablectl("fairness", "--table", LOADED, "--plot", str(tmp_path / "png"), "--png")
    assert [path.read_bytes()[:4] for path in (tmp_path / "png").iterdir()] == [b"\x89PNG"] * 3


class Page(HTMLParser):
    """Tags that are open, ids, texts, and whatever would be asked of another place."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.asks: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.asks += [
            value or "" for name, value in attrs if name in ("src", "href") and not (value or "").startswith("#")
        ]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + " "


@pytest.mark.parametrize("lang", ["en", "es"])
def test_a_lab_report_is_one_whole_page(tablectl: Tablectl, tmp_path: Path, lang: str) -> None:
    rolls, path = tmp_path / "rolls.csv", tmp_path / "lab.html"
    arguments = ("--lab", "--rolls", str(rolls), "--last", "500")
    assert tablectl("--lang", lang, "report", str(path), *arguments).code == 0
    text = path.read_text()
    page = Page(text)
    assert page.open == []
    assert page.asks == []
    assert len(page.ids) == len(set(page.ids))
    assert f'<html lang="{lang}">' in text
    assert "prefers" not in text
    assert "color-scheme: light dark" in text
    assert text.count("<svg ") == 9
    assert text.count('role="img" aria-label="') == 9
    # A supervisor's words are words.
    assert "<down>" not in text
    assert "reader <down> & out" in page.text
    assert len(list(csv.DictReader(rolls.open()))) == 500
    assert hashlib.sha256(rolls.read_bytes()).hexdigest() in page.text
    words = {"en": "WARNING since round", "es": "AVISO desde la ronda"}[lang]
    assert re.search(words, page.text)
    # The row that was changed for this test, in its result and in the column beside it.
    assert {"en": "2 do not fit", "es": "2 no encajan"}[lang] in page.text


def test_a_shift_has_its_own_rounds_only(tablectl: Tablectl, tmp_path: Path) -> None:
    hour = ("--from", "2026-01-05T13:00", "--until", "2026-01-05T14:00", "--table", FAIR)
    [told] = tablectl("report", str(tmp_path / "shift.html"), *hour, "--json").rows
    [figures] = told["tables"]
    assert figures["rounds"] == {"settled": 30}
    store = Store(tmp_path / "rounds.db")
    rounds = list(store.stream(Search(FAIR, "2026-01-05T13:00:00.000+00:00", "2026-01-05T14:00:00.000+00:00")))
    store.close()
    assert (figures["first"]["round"], figures["last"]["round"]) == (rounds[0]["round"], rounds[-1]["round"])
    assert figures["dice_net"] == -sum(one["result"]["net"] for one in rounds)
    rows = [row for one in rounds for row in one["result"]["rows"]]
    for wager, found in figures["wagers"].items():
        ours = [(stake, odds) for _position, name, stake, odds in rows if name == wager]
        assert found["made"] == len(ours)
        assert found["stakes"] == sum(stake for stake, _odds in ours)
        assert found["net"] == -sum(stake * odds if odds else -stake for stake, odds in ours)
    assert sum(found["net"] for found in figures["wagers"].values()) == figures["dice_net"]
    # The drift of the dice is watched from the set's first roll on.
    assert figures["dice_sets"][0]["rolls"] > 30
    page = Page((tmp_path / "shift.html").read_text())
    assert "2026-01-05 13:00 to 2026-01-05 14:00 UTC" in page.text
    assert "Share of each face with its exact interval" in page.text
    assert (tmp_path / "shift.html").read_text().count("<svg") == 1


def test_pdf(tablectl: Tablectl, tmp_path: Path) -> None:
    for path, more in ((tmp_path / "shift.pdf", ()), (tmp_path / "lab.pdf", ("--lab",))):
        assert tablectl("--lang", "es", "report", str(path), "--table", LOADED, *more).code == 0
        content = path.read_bytes()
        assert content.startswith(b"%PDF-")
        assert content.rstrip().endswith(b"%%EOF")
        # The letters are in the file; the lab's has three drawings.
        assert b"/FontFile2" in content
        assert content.count(b"/Subtype /Image") >= (3 if more else 0)


def test_an_empty_record(tablectl: Tablectl, tmp_path: Path) -> None:
    db = ("--db", str(tmp_path / "empty.db"))
    Store(tmp_path / "empty.db").close()
    assert tablectl("fairness", *db).out == "no rolls are recorded\n"
    assert "no rounds are recorded" in tablectl("report", "-", *db).out
    assert tablectl("audit", *db).code == 0
    assert "\n" in tablectl("export", "-", *db).out
