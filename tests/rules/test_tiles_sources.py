"""The ranks of the look-up table against the line-by-line implementation and both source texts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from dragoneye.rules.packs import NAMES
from host_tools.rules import clauses, tiles, tiles_text
from host_tools.rules.clauses import Clauses
from host_tools.rules.tiles import Pair, Tile
from tests.rules.conftest import Run

GOLDEN = Path(__file__).parent.parent / "golden"
DECK = tiles.deck()
HANDS = list(combinations(range(32), 2))


def test_both_implementations_name_the_same_pair_value_and_best_tile() -> None:
    for one, two in HANDS:
        pair = DECK[one], DECK[two]
        found = tiles.rank(*pair)
        assert found.pair_rank == tiles_text.permissible_pair(pair)
        if found.pair_rank is None:
            assert (found.value, found.best) == tiles_text.value_and_highest_tile(pair)


@pytest.mark.parametrize("zero_rule", tiles.ZERO_RULES)
def test_both_implementations_agree_on_every_disjoint_comparison(zero_rule: str) -> None:
    # The text's comparison is run once for each pair of hands by face; the 107,880 comparisons are of real tiles.
    outcome = cache(lambda first, second: tiles_text.compare(first, second, zero_rule))
    strengths = tiles.table(zero_rule)
    compared = 0
    for number, (a, b) in enumerate(HANDS):
        first: Pair = (DECK[a], DECK[b])
        for c, d in HANDS[number + 1 :]:
            if a in (c, d) or b in (c, d):
                continue
            compared += 1
            second: Pair = (DECK[c], DECK[d])
            one, two = strengths[first[0]][first[1]], strengths[second[0]][second[1]]
            assert outcome(first, second) == ("copy" if one == two else "first" if one > two else "second")
    assert compared == 107_880


# The scan's errors in the Puerto Rico text, each with what the paper says: a bracket or a dash misread, a page number.
CORRECTIONS = {
    "mixed nines: a bracket read as 1": ("(3-6 y 4-51)", "(3-6 y 4-5)"),
    "mixed eights: a bracket read as 1": ("(3-5 y 2-61)", "(3-5 y 2-6)"),
    "mixed sevens: a dash lost": ("(34 y 2-5)", "(3-4 y 2-5)"),
    "mixed fives: a dash lost": ("(14 y 2-3)", "(1-4 y 2-3)"),
    "gong: a dash lost": ("Ocho (44)", "Ocho (4-4)"),
    "eleventh: m read as rn": ("Undécirno", "Undécimo"),
    "unmatched: the letter O read as zero": ("Pares Mezclados 0 No", "Pares Mezclados O No"),
    "page 91": ("(4-5) 91 Doce", "(4-5) Doce"),
    "page 92": ("rango. 92 F.", "rango. F."),
    "page 93": ("(1-2) 1 93 G.", "(1-2) 1 G."),
}

ORDINALS = {
    "en": """
        First Second Third Fourth Fifth Sixth Seventh Eighth Ninth Tenth Eleventh Twelfth Thirteenth Fourteenth
        Fifteenth Sixteenth Seventeenth Eighteenth Nineteenth Twentieth""",
    "es": """
        Primer Segundo Tercero Cuarto Quinto Sexto Séptimo Octavo Noveno Décimo Undécimo Duodécimo Decimotercero
        Decimocuarto Decimoquinto Decimosexto Decimoséptimo Decimoctavo Decimonoveno Vigésimo""",
}
FACE = re.compile(r"[1-6]-[1-6]")


class Text:
    """What one source text says: pairs of faces -> rank, face -> (ranking, copies), face -> (other total, ranking)."""

    def __init__(self, pairs_text: str, tiles_text: str, apart_text: str, ordinals: list[str]) -> None:
        self.pairs: dict[frozenset[str], int] = {}
        # "Primer" before a noun, "Primero" alone.
        ordinal = re.compile(r"\b(" + "|".join(ordinals) + r")o?\b")
        rank = 0
        for piece in re.split(rf"(?={ordinal.pattern})", pairs_text):
            named = ordinal.match(piece)
            if named:
                rank = ordinals.index(named[1]) + 1
                faces = FACE.findall(piece)
                for one, two in zip(faces[::2], faces[1::2], strict=True):
                    self.pairs[frozenset((one, two))] = rank
        row = re.compile(ordinal.pattern + r"[ |]+\w+ \(([1-6]-[1-6])\)[ |]+([12])")
        self.tiles = {face: (ordinals.index(name) + 1, int(copies)) for name, face, copies in row.findall(tiles_text)}
        self.apart: dict[str, tuple[int, int]] = {}
        three, six = (
            re.search(r"\(1-2\)\D*?\b(6|seis)\b", apart_text),
            re.search(r"\(2-4\)\D*?\b(3|tres)\b", apart_text),
        )
        assert three
        assert six
        rankings = [
            ordinals.index(word.capitalize()) + 1
            for word in re.findall(r"\w+", apart_text)
            if word.capitalize() in ordinals[10:]
        ]
        three_now, three_before, six_now, six_before = rankings
        assert (three_before, six_before) == (self.tiles["1-2"][0], self.tiles["2-4"][0])
        self.apart = {"1-2": (6, three_now), "2-4": (3, six_now)}

    def key(self, first: str, second: str) -> tuple[int, int, int]:
        """Greater for the better hand."""
        rank = self.pairs.get(frozenset((first, second)))
        if rank is not None:
            return 1, -rank, 0
        ways = []
        for face in (first, second):
            spots = sum(map(int, face.split("-")))
            ways.append([(spots, self.tiles[face][0])] + ([self.apart[face]] if face in self.apart else []))
        return max((0, (one[0] + two[0]) % 10, -min(one[1], two[1])) for one in ways[0] for two in ways[1])


def english() -> Text:
    text = (GOLDEN / "nj-13-69F-10.2.txt").read_text(encoding="utf-8")
    pairs = text[text.index("| Supreme Pair |") : text.index("(c) When comparing")]
    single = text[text.index("| Ranking | Tile |") :]
    return Text(
        pairs,
        single,
        text[text.index("(e) Notwithstanding") : text.index("(f) When comparing")],
        ORDINALS["en"].split(),
    )


def spanish() -> Text:
    text = (GOLDEN / "pr-rangos-es.txt").read_text(encoding="utf-8")
    for wrong, right in CORRECTIONS.values():
        text = text.replace(wrong, right)
    pairs = text[text.index("Rango Pares Primer Par Supremo") : text.index("B. Al comparar")]
    single = text[text.index("F. El rango individual") :]
    return Text(
        pairs, single, text[text.index("D. No obstante") : text.index("E. Al comparar")], ORDINALS["es"].split()
    )


@pytest.mark.parametrize("name", CORRECTIONS)
def test_each_named_correction_mends_one_place_of_the_scan(name: str) -> None:
    text = (GOLDEN / "pr-rangos-es.txt").read_text(encoding="utf-8")
    assert text.count(CORRECTIONS[name][0]) == 1


def test_both_source_texts_say_the_same() -> None:
    one, other = english(), spanish()
    assert len(one.pairs) == 26
    assert len(one.tiles) == 21
    assert (one.pairs, one.tiles, one.apart) == (other.pairs, other.tiles, other.apart)
    assert {face: copies for face, (_rank, copies) in one.tiles.items()} == {tile.face: tile.copies for tile in Tile}


@pytest.mark.parametrize("text", [english, spanish])
def test_each_source_text_gives_the_106_ranks_of_the_table(text: Callable[[], Text]) -> None:
    said = text()
    keys = {pair: said.key(DECK[pair[0]].face, DECK[pair[1]].face) for pair in HANDS}
    order = {key: number for number, key in enumerate(sorted(set(keys.values())), 1)}
    assert len(order) == 106
    found = np.array([order[keys[pair]] for pair in HANDS])
    assert found.tolist() == [tiles.strength(DECK[one], DECK[two]) for one, two in HANDS]


# What a clause says, as a piece of each text that stands in no other clause.
SAID = {
    "pairs": ("any permissible pair of tiles", "cualquier par permisible de"),
    "pair_copy": ("of identical permissible pair rank", "de rango idéntico de par permisible"),
    "value": ("do not contain any of the pairs listed", "no contienen ninguno de los pares indicados"),
    "apart": ("the supreme pair are used separately", "un Par Supremo se utilizan por separado"),
    "tie": ("low hands which are of identical value", "las manos menores de valor idéntico"),
    "tile": ("The individual ranking for each tile", "El rango individual de cada"),
    "copy": ("hand shall be considered a copy hand", "se considerará una mano de copia"),
}


@pytest.mark.parametrize(
    ("pack", "file", "letter", "place"),
    [("nj", "nj-13-69F-10.2.txt", r"\([b-h]\)", 0), ("pr", "pr-rangos-es.txt", r"\b[A-G]\. ", 1)],
)
def test_each_clause_has_the_letter_of_its_own_text(pack: str, file: str, letter: str, place: int) -> None:
    text = (GOLDEN / file).read_text(encoding="utf-8")
    text = text[text.index("When comparing" if pack == "nj" else "A. Al comparar") - 4 :]
    letters = clauses.of_pack(pack)
    # The letters that begin a clause come in the order of the alphabet; a letter cited inside a clause does not.
    starts: list[tuple[str, int]] = []
    wanted = "bcdefgh" if pack == "nj" else "ABCDEFG"
    for found in re.finditer(letter, text):
        if len(starts) < len(wanted) and wanted[len(starts)] in found.group():
            starts.append((wanted[len(starts)], found.start()))
    assert "".join(name for name, _place in starts) == wanted
    bounds = [start for _name, start in starts] + [len(text)]
    for field, pieces in SAID.items():
        cited = getattr(letters, field).strip("()")
        number = wanted.index(cited)
        assert pieces[place] in text[bounds[number] : bounds[number + 1]], field


@pytest.mark.parametrize(
    ("pack", "copy", "tile"), [("nj", "(h)", "(g): "), ("pr", "(G)", "(F): "), ("ca", "NJ (h)", "NJ (g): ")]
)
def test_a_pack_cites_the_clauses_of_its_own_text(tablectl: Run, pack: str, copy: str, tile: str) -> None:
    for language in ("en", "es"):
        args = ("--lang", language, "tiles")
        assert tablectl(*args, "compare", "24", "14", "12", "23", "--pack", pack)[1].strip().endswith(f", {copy}")
        assert tablectl(*args, "explain", "24", "14", "--pack", pack)[1].splitlines()[3].startswith(tile)
    first = json.loads(tablectl("tiles", "compare", "24", "14", "12", "23", "--pack", pack, "--json")[1])
    assert first["clause"] == copy


def test_every_pack_that_comes_with_the_program_has_its_clauses() -> None:
    assert {name: clauses.of_pack(name).copy for name in NAMES} == {"nj": "(h)", "pr": "(G)", "ca": "NJ (h)"}


def test_an_operators_pack_cites_the_text_that_it_starts_from(tmp_path: Path, tablectl: Run) -> None:
    mine, under = tmp_path / "mine.json", tmp_path / "under.json"
    mine.write_text(json.dumps({"name": "mine", "base": "pr", "values": {}}))
    under.write_text(json.dumps({"name": "under", "base": "mine.json", "values": {}}))
    for path in (mine, under):
        assert clauses.of_pack(str(path)) == clauses.of_pack("pr")
        assert tablectl("tiles", "compare", "66", "45", "11", "36", "--pack", str(path))[1].strip().endswith(", (A)")
    common = tmp_path / "common-only.json"
    common.write_text(json.dumps({"name": "x", "base": "common", "values": {}}))
    assert clauses.of_pack(str(common)).copy == "NJ (h)"


def test_the_words_of_a_clause_map_are_all_different() -> None:
    fields = [field for field in Clauses.__dataclass_fields__ if field != "title"]
    for name in NAMES:
        assert len({getattr(clauses.of_pack(name), field) for field in fields}) == len(fields)
