"""Pai gow tiles: the set, the rank of two tiles by look-up, comparison, the three splits of four, settlement.

The table in data/tile_ranks.json is made by make_tile_ranks.py; tiles_text.py says the same line by line from the text.
Clauses are those of NJ 13:69F-10.2; what other packs' texts call them is data (clauses.py).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import product
from pathlib import Path
from typing import Any

from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack
from host_tools.i18n import _
from host_tools.rules import clauses, tile_names
from host_tools.rules.check import fields, listed, shown, whole, word
from host_tools.rules.money import share

ZERO_RULES = ("high_tile", "bank_wins")


class Tile(IntEnum):
    """The 21 faces, best single tile first ((g)); two tiles of one face cannot be told apart.

    >>> Tile.T45.face, str(Tile.T11), Tile.T13.spots, Tile.T45.copies
    ('4-5', '1-1', 4, 1)
    """

    T66 = 0
    T11 = 1
    T44 = 2
    T13 = 3
    T55 = 4
    T33 = 5
    T22 = 6
    T56 = 7
    T46 = 8
    T16 = 9
    T15 = 10
    T36 = 11
    T45 = 12
    T26 = 13
    T35 = 14
    T25 = 15
    T34 = 16
    T24 = 17
    T14 = 18
    T23 = 19
    T12 = 20

    @property
    def face(self) -> str:
        """The tile as the text writes it ((g)), the smaller number first.

        >>> Tile.T13.face
        '1-3'
        """
        return f"{self.name[1]}-{self.name[2]}"

    @property
    def spots(self) -> int:
        """The spots on the tile, 2 to 12 ((d)).

        >>> Tile.T66.spots, Tile.T11.spots
        (12, 2)
        """
        return int(self.name[1]) + int(self.name[2])

    @property
    def copies(self) -> int:
        """How many of it are in the set: 2 for the first eleven, else 1 ((g)).

        >>> Tile.T15.copies, Tile.T36.copies
        (2, 1)
        """
        return 2 if self <= Tile.T15 else 1

    def __str__(self) -> str:
        return self.face

    def __repr__(self) -> str:
        return self.face

    def __format__(self, spec: str) -> str:
        return format(self.face, spec)


Pair = tuple[Tile, Tile]


@dataclass(frozen=True)
class Rank:
    """What two tiles are. A greater `strength` (1 to `strongest(zero_rule)`) is the better hand, an equal one a copy.

    `kind` is "pair", "wong", "gong" or "value"; `pair_rank` 1 to 20 ((b)) for the first three, else None; for a value
    hand `value` is 0 to 9 ((d), (e)) and `best` the individual ranking of its best tile, 1 to 16 ((g)), or None for a
    value of 0 under `zero_rule = bank_wins`, where no tile counts.
    """

    strength: int
    kind: str
    pair_rank: int | None
    value: int | None
    best: int | None

    @property
    def name(self) -> str:
        """The hand's name in the chosen language: its pair's ((b)), or its value and best tile ((d) to (g)).

        >>> Rank(106, "pair", 1, None, None).name, Rank(1, "value", None, 0, None).name
        ('Supreme pair (2-4, 1-2)', 'Value 0')
        """
        if self.pair_rank is not None:
            return tile_names.pair_name(self.pair_rank)
        assert self.value is not None
        return tile_names.value_name(self.value, self.best)


@dataclass(frozen=True)
class Hands:
    """Four tiles set as two hands, the better one `high`; `rule` is the house way's rule that decided, if one did."""

    high: Pair
    low: Pair
    rule: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The faces of both hands, for JSON.

        >>> Hands((Tile.T66, Tile.T45), (Tile.T11, Tile.T33)).as_dict()
        {'high': ['6-6', '4-5'], 'low': ['1-1', '3-3']}
        """
        return {"high": [tile.face for tile in self.high], "low": [tile.face for tile in self.low]}


@dataclass(frozen=True)
class Settlement:
    """One player against the bank, in cents: `net` is what the player is up or down after `commission`.

    `high` and `low` say how the player's hand compares: "higher", "lower" or "copy".
    """

    result: str
    net: int
    commission: int
    high: str
    low: str


def _read_table() -> tuple[dict[str, tuple[tuple[int, ...], ...]], dict[str, dict[int, Rank]]]:
    data = json.loads((Path(__file__).parent / "data" / "tile_ranks.json").read_text(encoding="utf-8"))
    assert data["faces"] == [tile.face for tile in Tile]
    ranks = {number: Rank(number, *row) for number, row in enumerate(data["ranks"], 1)}
    by_high_tile = tuple(tuple(row) for row in data["strength"])
    # The hands of value 0 are the lowest: as one strength they leave a gap, which the others move down to fill.
    gap = sum(rank.value == 0 for rank in ranks.values()) - 1
    by_bank_wins = tuple(tuple(max(number - gap, 1) if number else 0 for number in row) for row in by_high_tile)
    equal_zeros = {1: Rank(1, "value", None, 0, None)}
    equal_zeros.update(
        (number - gap, replace(rank, strength=number - gap)) for number, rank in ranks.items() if rank.value != 0
    )
    return {"high_tile": by_high_tile, "bank_wins": by_bank_wins}, {"high_tile": ranks, "bank_wins": equal_zeros}


_STRENGTH, _RANKS = _read_table()
_BY_HIGH_TILE = _STRENGTH["high_tile"]


def table(zero_rule: str = "high_tile") -> tuple[tuple[int, ...], ...]:
    """The strengths as a 21 × 21 table by face, symmetric; 0 where one set cannot hold both tiles. Raises BadInput.

    By (b) for the permissible pairs, else by (d) to (h).

    >>> table()[Tile.T24][Tile.T12], table()[Tile.T12][Tile.T12]
    (106, 0)
    """
    return _STRENGTH[word(zero_rule, ZERO_RULES, "zero_rule")]


def strongest(zero_rule: str = "high_tile") -> int:
    """How many strengths there are, which is the best hand's: 106 by (b) to (h), or 102 where all zeros are equal.

    Raises BadInput.

    >>> strongest(), strongest("bank_wins")
    (106, 102)
    """
    return len(_RANKS[word(zero_rule, ZERO_RULES, "zero_rule")])


def deck() -> list[Tile]:
    """The 32 tiles of one set, best single tile first ((a), (g)).

    >>> len(deck()), len(set(deck())), deck()[:3]
    (32, 21, [6-6, 6-6, 1-1])
    """
    return [tile for tile in Tile for _copy in range(tile.copies)]


def parse(text: Any) -> Tile:
    """The tile that a person wrote: "6-6", "66", "3-1", or a name in English, Spanish or pinyin ("teen", "ganso").

    The faces are those of (g). Raises BadInput for anything else, and for a name that two faces share.

    >>> parse("3-1"), parse("66"), parse("Teen"), parse("doce")
    (1-3, 6-6, 6-6, 6-6)
    >>> parse("7-1")
    Traceback (most recent call last):
    dragoneye.errors.BadInput: there is no tile '7-1'; allowed: 6-6, 66, 1-3 or 3-1, or a name such as teen
    """
    found = _readings(text)
    if len(found) > 1:
        raise BadInput(
            _("{name} can be {faces}; write the one that is meant").format(
                name=shown(text), faces=_(" or ").join(tile.face for tile in found)
            )
        )
    return found[0]


def _readings(text: Any) -> list[Tile]:
    """Every tile that a text can mean, one at least."""
    if not isinstance(text, str):
        raise BadInput(_("{value} is no tile; a tile is a text such as '6-6'").format(value=shown(text)))
    faces = tile_names.faces(text)
    if not faces:
        raise BadInput(
            _("there is no tile {text}; allowed: 6-6, 66, 1-3 or 3-1, or a name such as teen").format(text=shown(text))
        )
    return [Tile["T" + face.replace("-", "")] for face in faces]


def _fits_one_set(tiles: Iterable[Tile]) -> bool:
    return all(count <= tile.copies for tile, count in Counter(tiles).items())


def one_set(tiles: Iterable[Tile]) -> None:
    """Raise BadInput unless one set of 32 tiles holds them all at once ((a), (g)).

    >>> one_set([Tile.T45, Tile.T45])
    Traceback (most recent call last):
    dragoneye.errors.BadInput: 4-5 is there 2 times; a set has 1
    """
    for tile, count in Counter(tiles).items():
        if count > tile.copies:
            raise BadInput(
                _("{tile} is there {count} times; a set has {copies}").format(
                    tile=tile, count=count, copies=tile.copies
                )
            )


def parse_tiles(values: Any, length: int, what: str) -> tuple[Tile, ...]:
    """`length` tiles out of a list of texts, all from one set ((a)); `what` names the list in errors. Raises BadInput.

    >>> parse_tiles(["66", "4-5"], 2, "hand")
    (6-6, 4-5)
    """
    tiles = tuple(parse(text) for text in listed(values, length, what, _("tiles")))
    one_set(tiles)
    return tiles


def parse_pair(values: Any, what: str = "") -> Pair:
    """Two tiles out of a list of two texts, from one set ((a)). Raises BadInput naming `what`.

    >>> parse_pair(["1-2", "4-2"])
    (1-2, 2-4)
    """
    first, second = parse_tiles(values, 2, what or _("hand"))
    return first, second


def parse_pairs(hands: Sequence[tuple[Any, str]], zero_rule: str = "high_tile") -> list[Pair]:
    """Hands of two tiles out of (list of two texts, what names it in errors), all from one set ((a)).

    A name that several faces share is taken where every reading of the hand has the same rank ((b) to (h)); the first
    reading that one set allows stands for all. Raises BadInput.

    >>> parse_pairs([(["twelve", "nine"], "first"), (["two", "nine"], "second")])
    [(6-6, 3-6), (1-1, 4-5)]
    >>> parse_pairs([(["ten", "ten"], "hand")])
    Traceback (most recent call last):
    dragoneye.errors.BadInput: 'ten' can be 5-5 or 4-6; write the one that is meant
    """
    strengths = table(zero_rule)
    choices = []
    for values, what in hands:
        texts = listed(values, 2, what, _("tiles"))
        first, second = (_readings(text) for text in texts)
        pairs = [(one, two) for one in first for two in second if strengths[one][two]]
        if len({strengths[one][two] for one, two in pairs}) > 1:
            # Names the first one that is not clear.
            pairs = [(parse(texts[0]), parse(texts[1]))]
        choices.append(pairs or [(first[0], second[0])])
    fitting = [pairs for pairs in product(*choices) if _fits_one_set([tile for pair in pairs for tile in pair])]
    if not fitting:
        one_set(tile for pairs in choices for tile in pairs[0])
    return list(fitting[0])


def parse_hands(value: Any, what: str, zero_rule: str = "high_tile") -> Hands:
    """A setting `{"high": [2 tiles], "low": [2 tiles]}`; `what` names it. Raises BadInput.

    The better hand is the high hand (trade practice), of two copies under `zero_rule` either one.

    >>> parse_hands({"high": ["6-6", "4-5"], "low": ["12", "24"]}, "player").high
    Traceback (most recent call last):
    dragoneye.errors.BadInput: player: the low hand 1-2 2-4 is better than the high hand 6-6 4-5
    """
    parts = fields(value, ("high", "low"), ("rule", "house_way", "version"), what)
    hands = Hands(parse_pair(parts["high"], f"{what} high"), parse_pair(parts["low"], f"{what} low"))
    one_set([*hands.high, *hands.low])
    check_setting(hands, what, zero_rule)
    return hands


def check_setting(hands: Hands, what: str, zero_rule: str = "high_tile") -> None:
    """Raise BadInput where the low hand is the better one (trade practice); `what` names the setting.

    >>> check_setting(Hands((Tile.T12, Tile.T24), (Tile.T66, Tile.T45)), "player")
    >>> check_setting(Hands((Tile.T66, Tile.T45), (Tile.T12, Tile.T24)), "player")
    Traceback (most recent call last):
    dragoneye.errors.BadInput: player: the low hand 1-2 2-4 is better than the high hand 6-6 4-5
    """
    if rank(*hands.high, zero_rule).strength < rank(*hands.low, zero_rule).strength:
        raise BadInput(
            _("{what}: the low hand {low} is better than the high hand {high}").format(
                what=what, low=_faces(hands.low), high=_faces(hands.high)
            )
        )


def _faces(tiles: Sequence[Tile]) -> str:
    return " ".join(tile.face for tile in tiles)


def strength(first: Tile, second: Tile) -> int:
    """The strength of two tiles by (b) to (h), `zero_rule = high_tile`: one look-up, 1 to 106; 0 if no set has both.

    >>> strength(Tile.T24, Tile.T12), strength(Tile.T24, Tile.T14) == strength(Tile.T12, Tile.T23)
    (106, True)
    """
    return _BY_HIGH_TILE[first][second]


def rank(first: Tile, second: Tile, zero_rule: str = "high_tile") -> Rank:
    """What two tiles are ((b), (d), (e), (g)). `zero_rule = bank_wins` makes all hands of value 0 equal.

    Raises BadInput if no set has both tiles.

    >>> rank(Tile.T66, Tile.T45).kind, rank(Tile.T66, Tile.T24).value, rank(Tile.T55, Tile.T46).strength
    ('wong', 8, 4)
    >>> rank(Tile.T55, Tile.T46).name
    'Value 0, best tile ten (5-5)'
    """
    found = table(zero_rule)[first][second]
    if not found:
        one_set((first, second))
    return _RANKS[zero_rule][found]


def compare(first: Pair, second: Pair, zero_rule: str = "high_tile") -> str:
    """ "first" or "second", whichever is the better hand, or "copy" ((b) to (h)); who wins a copy is for settlement.

    Raises BadInput if the four tiles are not from one set.

    >>> compare((Tile.T24, Tile.T14), (Tile.T12, Tile.T23)), compare((Tile.T66, Tile.T45), (Tile.T11, Tile.T36))
    ('copy', 'first')
    """
    one_set((*first, *second))
    strengths = table(zero_rule)
    one, two = strengths[first[0]][first[1]], strengths[second[0]][second[1]]
    return "copy" if one == two else "first" if one > two else "second"


def deciding_clause(first: Pair, second: Pair, zero_rule: str = "high_tile", text: clauses.Clauses = clauses.NJ) -> str:
    """The clause by which `compare` decides, as `text` calls it: of NJ (b), (c), (d), (f) or (h); or "zero_rule".

    Raises BadInput if no set has both tiles of a hand.

    >>> deciding_clause((Tile.T24, Tile.T14), (Tile.T12, Tile.T23))
    '(h)'
    >>> deciding_clause((Tile.T24, Tile.T14), (Tile.T12, Tile.T23), text=clauses.of_pack("pr"))
    '(G)'
    """
    one, two = rank(*first), rank(*second)
    if one.pair_rank is not None or two.pair_rank is not None:
        return text.pair_copy if one.pair_rank == two.pair_rank else text.pairs
    if one.value != two.value:
        return text.value
    if one.value == 0 and zero_rule == "bank_wins":
        return "zero_rule"
    return text.copy if one.best == two.best else text.tie


def split_strengths(four: Sequence[Tile]) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """(high, low) strengths of the three splits of four tiles: 0 1 / 2 3, then 0 2 / 1 3, then 0 3 / 1 2.

    Made for speed: the tiles are not checked. Zeros are ranked by their best tile ((f), (g)).

    >>> split_strengths((Tile.T66, Tile.T66, Tile.T45, Tile.T44))
    ((105, 66), (90, 88), (90, 88))
    """
    a, b, c, d = four
    row_a, row_b = _BY_HIGH_TILE[a], _BY_HIGH_TILE[b]
    ab, cd, ac, bd, ad, bc = row_a[b], _BY_HIGH_TILE[c][d], row_a[c], row_b[d], row_a[d], row_b[c]
    return (
        (ab, cd) if ab > cd else (cd, ab),
        (ac, bd) if ac > bd else (bd, ac),
        (ad, bc) if ad > bc else (bc, ad),
    )


def splits(four: Sequence[Tile]) -> list[Hands]:
    """The different ways to set four tiles as two hands, at most three; the better hand is the high hand.

    Splits that show the same faces are given once. Two hands are set of the four (card room sheet, rule 6). Raises
    BadInput if the tiles are not four from one set.

    >>> [(hands.high, hands.low) for hands in splits((Tile.T66, Tile.T66, Tile.T45, Tile.T44))]
    [((6-6, 6-6), (4-4, 4-5)), ((6-6, 4-5), (6-6, 4-4))]
    """
    tiles = sorted(listed(four, 4, _("hand"), _("tiles")))
    one_set(tiles)
    a, b, c, d = tiles
    found = []
    for one, two in (((a, b), (c, d)), ((a, c), (b, d)), ((a, d), (b, c))):
        # Of two copies the one with the better tile is the high hand, so that one split is not told in two ways.
        if (strength(*two), one) > (strength(*one), two):
            one, two = two, one
        hands = Hands(one, two)
        if hands not in found:
            found.append(hands)
    return found


def settle(player: Hands, bank: Hands, stake: int, pack: Pack) -> Settlement:
    """A player's two hands against the bank's, for `stake` cents: both higher wins, neither higher loses, else a push.

    A copy is not higher, so it goes to the bank ((c), (h)). The winner pays the pack's commission. Raises BadInput when
    the eight tiles are not from one set, a low hand is better than its high hand, or the stake is not from 1 to the
    pack's stake_max.

    >>> from dragoneye.rules import packs
    >>> one = Hands((Tile.T66, Tile.T66), (Tile.T56, Tile.T13))
    >>> two = Hands((Tile.T11, Tile.T36), (Tile.T46, Tile.T22))
    >>> settle(one, two, 10_000, packs.load("nj"))
    Settlement(result='win', net=9500, commission=500, high='higher', low='higher')
    """
    whole(stake, 1, pack["stake_max"], "stake")
    one_set((*player.high, *player.low, *bank.high, *bank.low))
    check_setting(player, _("player"), pack["zero_rule"])
    check_setting(bank, _("bank"), pack["zero_rule"])
    strengths = table(pack["zero_rule"])
    outcomes = []
    for mine, theirs in ((player.high, bank.high), (player.low, bank.low)):
        difference = strengths[mine[0]][mine[1]] - strengths[theirs[0]][theirs[1]]
        outcomes.append("higher" if difference > 0 else "lower" if difference else "copy")
    higher = outcomes.count("higher")
    result = ("lose", "push", "win")[higher]
    commission = share(stake, pack["commission_bp"], pack["commission_rounding"]) if result == "win" else 0
    net = {"win": stake - commission, "push": 0, "lose": -stake}[result]
    return Settlement(result, net, commission, outcomes[0], outcomes[1])
