"""What each rule pack's own text calls the clauses of the tile ranking, as data: data/ranking_texts.json.

The Puerto Rico text says the same as NJ 13:69F-10.2 with its letters shifted by one; the card room's sheet has no
ranking.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

_TEXTS = json.loads((Path(__file__).parent / "data" / "ranking_texts.json").read_text(encoding="utf-8"))
# For a pack that starts from none of those that come with the program.
_CLOSEST = "ca"


@dataclass(frozen=True)
class Clauses:
    """The clauses of one ranking text (`title`), each as it is cited: "(b)", "(A)", "NJ (b)".

    `pairs` lists the permissible pairs (NJ (b)), `pair_copy` makes equal ones a copy (c), `value` counts the spots (d),
    `apart` is for the supreme pair's tiles used apart (e), `tie` lets the best tile decide between equal values (f),
    `tile` ranks the single tiles (g), and `copy` makes equal best tiles a copy (h). `signals` is where it
    tells what the dealer does with the tiles and the bet, or empty.
    """

    title: str
    pairs: str
    pair_copy: str
    value: str
    apart: str
    tie: str
    tile: str
    copy: str
    signals: str


def of_pack(pack: str) -> Clauses:
    """The clauses that a rule pack's text has: a pack's name, or the path of an operator's file, as `--pack` takes it.

    An operator's pack has those of the pack it starts from. The pack is one that `packs.load` has read without error.

    >>> of_pack("nj").copy, of_pack("pr").copy, of_pack("ca").copy
    ('(h)', '(G)', 'NJ (h)')
    """
    name: str | None = pack
    folder = Path()
    while name is not None and name.endswith(".json"):
        # A base without a folder lies beside the file that names it, as in packs.load.
        path = folder / name if "/" not in name else Path(name)
        name = json.loads(path.read_text(encoding="utf-8")).get("base")
        folder = path.parent
    return Clauses(**_TEXTS.get(name, {**_TEXTS[_CLOSEST], "signals": ""}))


NJ = of_pack("nj")
