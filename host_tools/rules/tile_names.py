"""What tiles and two-tile hands are called: typed in any language, shown in the chosen one."""

from __future__ import annotations

import re
import unicodedata

from host_tools.i18n import _

# face(s) -> the names people type, lower case, without accents; spaces do not matter. The text's own in English and
# Spanish, the picture on the tile, the Chinese name in pinyin, and its usual spellings at card tables. A name
# under several faces is refused where it matters which is meant.
_TYPED: dict[tuple[str, ...], str] = {
    ("6-6",): "twelve,high twelve,heaven,teen,tin,tien,tian,tian pai,doce,cielo",
    ("1-1",): "two,earth,dey,dei,day,di,di pai,dos,tierra",
    ("4-4",): "high eight,man,yun,yan,ren,ren pai,ocho alto,hombre",
    ("1-3",): "high four,goose,harmony,gor,ngo,go,he,he pai,e,e pai,cuatro alto,ganso",
    ("5-5",): "high ten,plum,plum flower,mooy,mui,mei,mei hua,mei pai,diez alto,ciruelo",
    ("3-3",): "high six,long,long three,chong,cheong,cheung,cheung sam,chang,chang san,seis alto,largo",
    ("2-2",): "low four,bench,board,bon,ban,ban dang,ban deng,cuatro bajo,banco",
    ("5-6",): "eleven,hatchet,axe,tiger head,foo,foo tau,fu,fu tau,fu tou,hu tou,once,hacha",
    ("4-6",): "low ten,partition,screen,ping,ping fung,ping feng,hung tau sap,hong tou,hong tou shi,diez bajo,biombo",
    ("1-6",): "high seven,long leg seven,tit,tsat,gou geuk chat,qi,gao jiao,gao jiao qi,siete alto",
    ("1-5",): "low six,big head six,look,luk,ling lam luk,liu,ling lin,ling lin liu,da tou,da tou liu,seis bajo",
    ("1-2",): "three,gee joon three,ji san,ding san,tres",
    ("2-4",): "gee joon six,er si",
    ("3-6", "4-5"): "nine,mixed nine,chop gow,gow,gau,jiu,za jiu,nueve",
    ("2-6", "3-5"): "low eight,mixed eight,chop bot,bot,baat,ba,za ba,ocho bajo",
    ("2-5", "3-4"): "low seven,mixed seven,chop chit,chit,za qi,siete bajo",
    ("1-4", "2-3"): "five,mixed five,chop ng,ng,wu,za wu,cinco",
    ("4-4", "2-6", "3-5"): "eight,ocho",
    ("1-3", "2-2"): "four,cuatro",
    ("5-5", "4-6"): "ten,diez",
    ("3-3", "1-5", "2-4"): "six,seis",
    ("1-6", "2-5", "3-4"): "seven,siete",
    ("1-2", "2-4"): "gee joon,supreme,zhi zun,supremo",
}
_DOTS = re.compile(r"\s*([1-6])\s*[-–/:.]?\s*([1-6])\s*")
_BY_NAME = {name.replace(" ", ""): found for found, names in _TYPED.items() for name in names.split(",")}


def faces(text: str) -> tuple[str, ...]:
    """The faces that `text` can mean, each with its smaller number first (NJ 13:69F-10.2(g)); empty if none.

    >>> faces("3-1"), faces(" 64 "), faces("Téen"), faces("chop gow"), faces("7-7"), faces("gāo jiǎo qī")
    (('1-3',), ('4-6',), ('6-6',), ('3-6', '4-5'), (), ('1-6',))
    """
    dots = _DOTS.fullmatch(text)
    if dots:
        return ("-".join(sorted(dots.groups())),)
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))
    return _BY_NAME.get("".join(plain.replace("-", " ").replace("_", " ").split()), ())


def tile_name(face: str) -> str:
    """The name of one tile in the chosen language, as NJ 13:69F-10.2(g) has it: "twelve (6-6)".

    >>> tile_name("6-6"), tile_name("2-4")
    ('twelve (6-6)', 'six (2-4)')
    """
    spots = int(face[0]) + int(face[2])
    return f"{_number(spots)} ({face})"


def _number(spots: int) -> str:
    return {
        2: _("two"),
        3: _("three"),
        4: _("four"),
        5: _("five"),
        6: _("six"),
        7: _("seven"),
        8: _("eight"),
        9: _("nine"),
        10: _("ten"),
        11: _("eleven"),
        12: _("twelve"),
    }[spots]


def pair_name(pair_rank: int) -> str:
    """The name of the pair, wong or gong of rank 1 to 20 (NJ 13:69F-10.2(b)) in the chosen language.

    >>> pair_name(1), pair_name(17)
    ('Supreme pair (2-4, 1-2)', 'Wong with a twelve (6-6)')
    """
    return {
        1: _("Supreme pair (2-4, 1-2)"),
        2: _("Pair of twelves (6-6)"),
        3: _("Pair of twos (1-1)"),
        4: _("Pair of eights (4-4)"),
        5: _("Pair of fours (1-3)"),
        6: _("Pair of tens (5-5)"),
        7: _("Pair of sixes (3-3)"),
        8: _("Pair of fours (2-2)"),
        9: _("Pair of elevens (5-6)"),
        10: _("Pair of tens (4-6)"),
        11: _("Pair of sevens (1-6)"),
        12: _("Pair of sixes (1-5)"),
        13: _("Mixed nines (3-6, 4-5)"),
        14: _("Mixed eights (3-5, 2-6)"),
        15: _("Mixed sevens (3-4, 2-5)"),
        16: _("Mixed fives (1-4, 2-3)"),
        17: _("Wong with a twelve (6-6)"),
        18: _("Wong with a two (1-1)"),
        19: _("Gong with a twelve (6-6)"),
        20: _("Gong with a two (1-1)"),
    }[pair_rank]


# The faces of each individual ranking of (g), 1 to 17.
_PLACES = (
    "6-6", "1-1", "4-4", "1-3", "5-5", "3-3", "2-2", "5-6", "4-6", "1-6", "1-5",
    "3-6, 4-5", "2-6, 3-5", "2-5, 3-4", "2-4", "1-4, 2-3", "1-2",
)  # fmt: skip


def place_name(place: int) -> str:
    """The tile of individual ranking 1 to 17 (NJ 13:69F-10.2(g)) in the chosen language.

    >>> place_name(1), place_name(16)
    ('twelve (6-6)', 'five (1-4, 2-3)')
    """
    faces_of = _PLACES[place - 1]
    return f"{_number(int(faces_of[0]) + int(faces_of[2]))} ({faces_of})"


def value_name(value: int, best: int | None) -> str:
    """The name of a hand of `value` 0 to 9 with a best tile of individual ranking `best` (NJ 13:69F-10.2(d) to (g)).

    A supreme-pair tile that counts as the other one has the other one's ranking, so the name says the ranking's tile.
    Without `best` no tile counts.

    >>> value_name(8, 16), value_name(0, None)
    ('Value 8, best tile five (1-4, 2-3)', 'Value 0')
    """
    if best is None:
        return _("Value {value}").format(value=value)
    return _("Value {value}, best tile {tile}").format(value=value, tile=place_name(best))
