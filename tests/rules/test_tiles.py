"""Pai gow tiles: the known answers, parsing, comparison, splits and settlement."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from dragoneye.errors import BadInput
from dragoneye.rules import packs
from host_tools.rules import make_tile_ranks, tile_names, tile_table, tiles
from host_tools.rules.tiles import Hands, Tile

DECK = tiles.deck()
PAIRS = list(combinations(range(32), 2))


# The sixteen tile types: two of a kind, mixed ones with two faces, and the two tiles of the supreme pair.
TYPE_OF = {tile: index for index, kind in enumerate(make_tile_ranks.KINDS) for tile in Tile if tile.face in kind}
TYPE_OF[Tile.T12] = TYPE_OF[Tile.T24]


def hand(text: str) -> tuple[Tile, Tile]:
    first, second = text.split()
    return tiles.parse(first), tiles.parse(second)


def test_the_table_is_the_one_that_its_script_makes() -> None:
    assert make_tile_ranks.PATH.read_text(encoding="utf-8") == make_tile_ranks.make()


def test_splits_part_the_tiles_in_different_ways_with_the_better_hand_high() -> None:
    for four in {tuple(sorted(four)) for four in combinations(DECK, 4)}:
        found = tiles.splits(four)
        partings = {frozenset((tuple(sorted(one.high)), tuple(sorted(one.low)))) for one in found}
        wanted = {
            frozenset((tuple(sorted((four[0], other))), tuple(sorted(four[n] for n in range(1, 4) if n != place))))
            for place, other in enumerate(four[1:], 1)
        }
        assert partings == wanted
        assert len(found) == len(wanted)
        assert all(tiles.strength(*one.high) >= tiles.strength(*one.low) for one in found)


def test_a_set_is_32_tiles_of_21_faces_and_16_types() -> None:
    assert (len(DECK), len(set(DECK)), len(set(TYPE_OF.values()))) == (32, 21, 16)
    assert set(Counter(TYPE_OF[tile] for tile in DECK).values()) == {2}


def test_two_tile_hands_are_as_many_as_known() -> None:
    hands = [(DECK[one], DECK[two]) for one, two in PAIRS]
    assert len(hands) == 496
    assert len({frozenset(Counter(pair).items()) for pair in hands}) == 221
    assert len({tuple(sorted(TYPE_OF[tile] for tile in pair)) for pair in hands}) == 136
    assert len({tiles.strength(*pair) for pair in hands}) == 106
    assert len({tiles.rank(*pair, "bank_wins").strength for pair in hands}) == 102
    kinds = Counter(tiles.rank(*pair).kind for pair in hands)
    assert (kinds["pair"], kinds["wong"], kinds["gong"]) == (16, 8, 16)
    values = Counter(tiles.rank(*pair).value for pair in hands)
    assert [values[value] for value in range(9, -1, -1)] == [48, 56, 52, 56, 44, 52, 48, 44, 32, 24]


def test_four_tile_hands_are_as_many_as_known() -> None:
    supreme, one_pair, two_pairs, total = 0, 0, 0, 0
    by_type: set[tuple[int, ...]] = set()
    lowest_best = 106
    for four in combinations(DECK, 4):
        total += 1
        by_type.add(tuple(sorted(TYPE_OF[tile] for tile in four)))
        a, b, c, d = four
        pairs = sum(tiles.strength(one, two) > 90 for one, two in ((a, b), (a, c), (a, d), (b, c), (b, d), (c, d)))
        one_pair += pairs > 0
        two_pairs += pairs > 1
        supreme += Tile.T24 in four and Tile.T12 in four
        lowest_best = min(lowest_best, max(high for high, _low in tiles.split_strengths(four)))
    assert (total, len(by_type)) == (35_960, 3_620)
    assert (one_pair, two_pairs, supreme) == (6_840, 120, 435)
    weakest = next(tiles.rank(*pair) for pair in combinations(DECK, 2) if tiles.strength(*pair) == lowest_best)
    assert weakest.value == 3


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        ("2-4 1-4", "1-2 2-3", "copy"),
        ("6-6 4-5", "6-6 3-6", "copy"),
        ("1-1 4-4", "1-1 2-6", "copy"),
        ("1-2 2-4", "6-6 6-6", "first"),
        ("6-6 2-4", "6-6 4-4", "second"),
        ("4-4 2-6", "1-4 2-3", "second"),
        ("6-6 1-1", "4-6 5-6", "first"),
        ("1-1 3-3", "5-6 1-6", "first"),
    ],
)
def test_doubtful_comparisons(first: str, second: str, result: str) -> None:
    assert tiles.compare(hand(first), hand(second)) == result
    mirrored = {"first": "second", "second": "first", "copy": "copy"}[result]
    assert tiles.compare(hand(second), hand(first)) == mirrored


@pytest.mark.parametrize(
    ("text", "kind", "pair_rank", "value", "best"),
    [
        ("2-4 1-4", "value", None, 8, 16),
        ("6-6 2-4", "value", None, 8, 1),
        ("6-6 1-2", "value", None, 8, 1),
        ("1-1 2-4", "value", None, 8, 2),
        ("1-1 1-2", "value", None, 8, 2),
        # The 1-2 as a six, fifteenth, and as a three, seventeenth; the 2-4 likewise.
        ("1-2 1-4", "value", None, 8, 16),
        ("1-2 3-4", "value", None, 3, 14),
        ("2-4 2-5", "value", None, 3, 14),
        ("1-2 4-5", "value", None, 5, 12),
        ("4-4 2-6", "value", None, 6, 3),
        ("6-6 1-1", "value", None, 4, 1),
        ("5-6 1-6", "value", None, 8, 8),
        ("3-6 4-5", "pair", 13, None, None),
        ("1-1 3-6", "wong", 18, None, None),
        ("6-6 3-5", "gong", 19, None, None),
    ],
)
def test_doubtful_ranks(text: str, kind: str, pair_rank: int | None, value: int | None, best: int | None) -> None:
    found = tiles.rank(*hand(text))
    assert (found.kind, found.pair_rank, found.value, found.best) == (kind, pair_rank, value, best)


def test_equal_zeros_leave_no_gap_in_the_strengths() -> None:
    for rule, most in (("high_tile", 106), ("bank_wins", 102)):
        found = {tiles.rank(DECK[one], DECK[two], rule).strength for one, two in PAIRS}
        assert found == set(range(1, most + 1))
        assert tiles.strongest(rule) == most
    # Only the zeros are joined: every other hand is the same but for its number.
    for one, two in PAIRS:
        ranked, joined = (tiles.rank(DECK[one], DECK[two], rule) for rule in tiles.ZERO_RULES)
        if ranked.value == 0:
            assert (joined.strength, joined.name) == (1, "Value 0")
        else:
            assert (joined.strength, joined.name) == (ranked.strength - 4, ranked.name)


def test_zeros_are_copies_only_where_the_bank_wins_them() -> None:
    better, worse = hand("5-5 4-6"), hand("2-2 1-5")
    assert (tiles.rank(*better).value, tiles.rank(*worse).value) == (0, 0)
    assert tiles.compare(better, worse, "high_tile") == "first"
    assert tiles.compare(better, worse, "bank_wins") == "copy"


@pytest.mark.parametrize(
    ("text", "face"),
    [
        *((spelling, "1-3") for spelling in ("1-3", "3-1", "13", "31", " 3 - 1 ", "3/1", "goose", "Gor", "ganso", "é")),
        *((spelling, "6-6") for spelling in ("66", "6-6", "TEEN", "tin", "tiān", "twelve", "doce")),
        *((spelling, "1-1") for spelling in ("11", "dey", "dei", "dì", "two", "dos", "tierra")),
        *((spelling, "4-4") for spelling in ("44", "yun", "high eight", "high-eight", "hombre")),
        ("12", "1-2"),
        ("gee joon six", "2-4"),
    ],
)
def test_tiles_are_typed_as_people_write_them(text: str, face: str) -> None:
    assert tiles.parse(text).face == face


@pytest.mark.parametrize(
    "text", ["", "6", "666", "7-1", "0-0", "6--6", "٦-٦", "6-6 6-6", "dragon", 66, True, None, [], {}]
)
def test_what_is_no_tile_is_refused(text: object) -> None:
    with pytest.raises(BadInput, match="no tile"):
        tiles.parse(text)


@pytest.mark.parametrize(("text", "said"), [("chop gow", "3-6 or 4-5"), ("eight", "4-4 or 2-6 or 3-5")])
def test_a_name_of_several_tiles_asks_which(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        tiles.parse(text)


def test_no_hand_has_more_tiles_than_a_set() -> None:
    with pytest.raises(BadInput, match="4-5 is there 2 times; a set has 1"):
        tiles.parse_pair(["4-5", "5-4"])
    with pytest.raises(BadInput, match="6-6 is there 3 times; a set has 2"):
        tiles.compare(hand("6-6 6-6"), hand("6-6 1-1"))
    with pytest.raises(BadInput, match="hand has 5; needed: a list of 4 tiles"):
        tiles.splits(DECK[:5])
    with pytest.raises(BadInput, match="1-1 is there 3 times"):
        tiles.settle(Hands(hand("11 11"), hand("12 13")), Hands(hand("11 22"), hand("14 23")), 1, packs.load("nj"))


WIN = Hands(hand("6-6 6-6"), hand("5-6 1-3"))
BEATEN = Hands(hand("1-1 3-6"), hand("4-6 2-2"))


def test_a_low_hand_that_is_the_better_one_is_not_settled() -> None:
    fouled = Hands(hand("4-6 5-5"), hand("6-6 6-6"))
    said = "the low hand 6-6 6-6 is better than the high hand 4-6 5-5"
    for player, bank, who in ((fouled, BEATEN, "player"), (BEATEN, fouled, "bank")):
        with pytest.raises(BadInput, match=f"{who}: {said}"):
            tiles.settle(player, bank, 100, packs.load("nj"))
    with pytest.raises(BadInput, match=f"deal position 3: {said}"):
        tile_table.settle([tile_table.Player(3, fouled, 100)], BEATEN, packs.load("nj"), banks=[0])


@pytest.mark.parametrize(
    ("player", "bank", "pack", "expected"),
    [
        (WIN, BEATEN, "nj", ("win", 9_500, 500)),
        (WIN, BEATEN, "ca", ("win", 10_000, 0)),
        (BEATEN, WIN, "nj", ("lose", -10_000, 0)),
        # A copy low hand and a higher high hand: a push. A copy and a lower one: the bank's.
        (Hands(hand("6-6 6-6"), hand("2-4 1-4")), Hands(hand("1-1 3-6"), hand("1-2 2-3")), "nj", ("push", 0, 0)),
        (Hands(hand("1-1 3-6"), hand("2-4 1-4")), Hands(hand("6-6 6-6"), hand("1-2 2-3")), "nj", ("lose", -10_000, 0)),
        # Two zeros: the better tile wins in New Jersey, the bank in a card room.
        (Hands(hand("6-6 6-6"), hand("5-5 4-6")), Hands(hand("1-1 3-6"), hand("2-2 1-5")), "nj", ("win", 9_500, 500)),
        (Hands(hand("6-6 6-6"), hand("5-5 4-6")), Hands(hand("1-1 3-6"), hand("2-2 1-5")), "ca", ("push", 0, 0)),
    ],
)
def test_settlement(player: Hands, bank: Hands, pack: str, expected: tuple[str, int, int]) -> None:
    done = tiles.settle(player, bank, 10_000, packs.load(pack))
    assert (done.result, done.net, done.commission) == expected


@pytest.mark.parametrize(("rounding", "commission"), [("nearest", 51), ("down", 50), ("up", 51)])
def test_commission_is_whole_cents(rounding: str, commission: int) -> None:
    pack = packs.load("nj").with_options({"commission_rounding": rounding})
    done = tiles.settle(WIN, BEATEN, 1_010, pack)
    assert (done.net, done.commission) == (1_010 - commission, commission)


@pytest.mark.parametrize("stake", [0, -1, True, 1.0, "5", 10**30, None])
def test_a_wrong_stake_is_named(stake: object) -> None:
    with pytest.raises(BadInput, match=r"stake is .*; allowed: a whole number from 1 to"):
        tiles.settle(WIN, BEATEN, stake, packs.load("nj"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("face", "names"),
    [
        ("1-6", "qi, gāo jiǎo qī, gaojiaoqi"),
        ("1-5", "liù, dà tóu liù, líng lín liù"),
        ("4-6", "hóng tóu shí, píng fēng, low ten, lowten"),
        ("3-3", "cháng sān, long three"),
        ("2-2", "bǎn dèng, bench"),
        ("5-6", "fǔ tóu, hatchet"),
        ("5-5", "méi, méi huā"),
        ("1-3", "é, hé, ganso"),
        ("1-2", "dīng sān"),
        ("2-4", "èr sì"),
    ],
)
def test_tiles_are_typed_by_their_chinese_names(face: str, names: str) -> None:
    assert {tiles.parse(name).face for name in names.split(", ")} == {face}


def test_no_name_is_listed_under_two_entries() -> None:
    listed = [name.replace(" ", "") for names in tile_names._TYPED.values() for name in names.split(",")]
    assert len(listed) == len(set(listed))
