"""The ranking of pai gow tile hands line by line from NJ 13:69F-10.2 (b) to (h), with no look-up table.

It is slow and shares nothing with the table of tiles.py: a test compares the two on every hand and every comparison.
"""

from __future__ import annotations

from host_tools.i18n import _
from host_tools.rules import clauses, tile_names
from host_tools.rules.tiles import Pair, Tile, parse

# (b): "The permissible pairs of tiles in pai gow and their rank", row by row in the text's order.
_PERMISSIBLE_PAIRS = """
First        2-4 1-2
Second       6-6 6-6
Third        1-1 1-1
Fourth       4-4 4-4
Fifth        1-3 1-3
Sixth        5-5 5-5
Seventh      3-3 3-3
Eighth       2-2 2-2
Ninth        5-6 5-6
Tenth        4-6 4-6
Eleventh     1-6 1-6
Twelfth      1-5 1-5
Thirteenth   3-6 4-5
Fourteenth   3-5 2-6
Fifteenth    3-4 2-5
Sixteenth    1-4 2-3
Seventeenth  6-6 4-5
Seventeenth  6-6 3-6
Eighteenth   1-1 4-5
Eighteenth   1-1 3-6
Nineteenth   6-6 2-6
Nineteenth   6-6 3-5
Nineteenth   6-6 4-4
Twentieth    1-1 2-6
Twentieth    1-1 3-5
Twentieth    1-1 4-4
"""

# (g): "The individual ranking for each tile".
_INDIVIDUAL_RANKING = """
First        6-6
Second       1-1
Third        4-4
Fourth       1-3
Fifth        5-5
Sixth        3-3
Seventh      2-2
Eighth       5-6
Ninth        4-6
Tenth        1-6
Eleventh     1-5
Twelfth      3-6
Twelfth      4-5
Thirteenth   2-6
Thirteenth   3-5
Fourteenth   2-5
Fourteenth   3-4
Fifteenth    2-4
Sixteenth    1-4
Sixteenth    2-3
Seventeenth  1-2
"""

_ORDINALS = """
First Second Third Fourth Fifth Sixth Seventh Eighth Ninth Tenth Eleventh Twelfth Thirteenth Fourteenth Fifteenth
Sixteenth Seventeenth Eighteenth Nineteenth Twentieth
"""


def _rows(text: str) -> list[tuple[int, tuple[Tile, ...]]]:
    ordinals = _ORDINALS.split()
    return [
        (ordinals.index(row.split()[0]) + 1, tuple(map(parse, row.split()[1:]))) for row in text.strip().split("\n")
    ]


_PAIR_ROWS = _rows(_PERMISSIBLE_PAIRS)
_TILE_ROWS = _rows(_INDIVIDUAL_RANKING)


def permissible_pair(hand: Pair) -> int | None:
    """(b): the rank of the permissible pair that the hand is, 1 (supreme) to 20, or None.

    >>> permissible_pair((Tile.T12, Tile.T24)), permissible_pair((Tile.T44, Tile.T26))
    (1, None)
    """
    for rank, (one, other) in _PAIR_ROWS:
        if hand in ((one, other), (other, one)):
            return rank
    return None


def value(totals: tuple[int, int]) -> int:
    """(d): the value of a hand from the spots of its two tiles; of a two-digit number the left digit is discarded.

    >>> value((2, 6)), value((11, 7))
    (8, 8)
    """
    return int(str(totals[0] + totals[1])[-1])


def individual_ranking(tile: Tile) -> int:
    """(g): 1 for the highest ranking tile to 17 for the lowest.

    >>> individual_ranking(Tile.T66), individual_ranking(Tile.T12)
    (1, 17)
    """
    for rank, (ranked,) in _TILE_ROWS:
        if tile == ranked:
            return rank
    raise AssertionError(tile)


def countings(tile: Tile) -> list[tuple[int, int]]:
    """(d), (e): the (numeric total, individual ranking) that a tile may count as when no permissible pair is made.

    (e): used apart, the three (1-2) may count as a 6 and is then fifteenth, and the six (2-4) as a 3, seventeenth.

    >>> countings(Tile.T12), countings(Tile.T66)
    ([(3, 17), (6, 15)], [(12, 1)])
    """
    as_it_is = (tile.spots, individual_ranking(tile))
    if tile is Tile.T12:
        return [as_it_is, (6, 15)]
    if tile is Tile.T24:
        return [as_it_is, (3, 17)]
    return [as_it_is]


def value_and_highest_tile(hand: Pair) -> tuple[int, int]:
    """(d) to (g): the value of a hand that is no permissible pair, and the ranking of its highest ranking tile.

    Of several countings the one that makes the better hand: the higher value, then the higher ranking tile.

    >>> value_and_highest_tile((Tile.T24, Tile.T14)), value_and_highest_tile((Tile.T12, Tile.T23))
    ((8, 16), (8, 16))
    """
    best: tuple[int, int] | None = None
    for one_total, one_ranking in countings(hand[0]):
        for other_total, other_ranking in countings(hand[1]):
            found = value((one_total, other_total)), min(one_ranking, other_ranking)
            if best is None or found[0] > best[0] or (found[0] == best[0] and found[1] < best[1]):
                best = found
    assert best is not None
    return best


def reasons(hand: Pair, zero_rule: str = "high_tile", text: clauses.Clauses = clauses.NJ) -> list[str]:
    """Why a hand ranks as it does, clause by clause as `text` calls them, in the chosen language ((b), (d) to (g)).

    For a value of 0 it also says what `zero_rule` makes of it; under bank_wins no tile counts.

    >>> reasons((Tile.T66, Tile.T45))
    ['(b): rank 17 of the 20 permissible pairs, Wong with a twelve (6-6)']
    >>> reasons((Tile.T24, Tile.T14))
    ['(e): six (2-4) counts as 3', '(d): 3 + 5 = 8, value 8', '(g): best tile five (1-4, 2-3), ranking 16 of 17']
    >>> reasons((Tile.T55, Tile.T46), "bank_wins", clauses.of_pack("ca"))
    ['NJ (d): 10 + 10 = 20, value 0', 'zero_rule bank_wins: every hand of value 0 is a copy of every other']
    """
    pair = permissible_pair(hand)
    if pair is not None:
        return [
            _("{clause}: rank {rank} of the 20 permissible pairs, {name}").format(
                clause=text.pairs, rank=pair, name=tile_names.pair_name(pair)
            )
        ]
    best, highest = value_and_highest_tile(hand)
    totals = next(
        (one, other)
        for one, one_ranking in countings(hand[0])
        for other, other_ranking in countings(hand[1])
        if (value((one, other)), min(one_ranking, other_ranking)) == (best, highest)
    )
    said = [
        _("{clause}: {tile} counts as {total}").format(
            clause=text.apart, tile=tile_names.tile_name(tile.face), total=total
        )
        for tile, total in zip(hand, totals, strict=True)
        if total != tile.spots
    ]
    said.append(
        _("{clause}: {one} + {other} = {sum}, value {value}").format(
            clause=text.value, one=totals[0], other=totals[1], sum=sum(totals), value=best
        )
    )
    if best == 0 and zero_rule == "bank_wins":
        said.append(_("zero_rule bank_wins: every hand of value 0 is a copy of every other"))
        return said
    said.append(
        _("{clause}: best tile {tile}, ranking {ranking} of 17").format(
            clause=text.tile, tile=tile_names.place_name(highest), ranking=highest
        )
    )
    if best == 0:
        said.append(_("zero_rule high_tile: hands of value 0 are ranked by their best tile like any others"))
    return said


def compare(first: Pair, second: Pair, zero_rule: str = "high_tile") -> str:
    """ "first" or "second", whichever hand ranks higher, or "copy" ((c), (h)); the texts then let the bank win.

    >>> compare((Tile.T24, Tile.T14), (Tile.T12, Tile.T23)), compare((Tile.T66, Tile.T45), (Tile.T66, Tile.T36))
    ('copy', 'copy')
    """
    first_pair, second_pair = permissible_pair(first), permissible_pair(second)
    # (b): a hand with any permissible pair ranks higher than one without; then the rank of the pair decides.
    if first_pair is not None and second_pair is not None:
        if first_pair == second_pair:
            return "copy"  # (c)
        return "first" if first_pair < second_pair else "second"
    if first_pair is not None:
        return "first"
    if second_pair is not None:
        return "second"
    # (d), (e): the value decides.
    first_value, first_tile = value_and_highest_tile(first)
    second_value, second_tile = value_and_highest_tile(second)
    if first_value != second_value:
        return "first" if first_value > second_value else "second"
    # The option of a rule pack; the texts make no exception for a value of 0.
    if first_value == 0 and zero_rule == "bank_wins":
        return "copy"
    # (f), (g): the highest ranking individual tile decides, and (h): if it is the same, the hand is a copy.
    if first_tile == second_tile:
        return "copy"
    return "first" if first_tile < second_tile else "second"
