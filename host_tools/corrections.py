"""Corrections of rounds that are over: further records of the table (kind "correction"); here, what follows from them.

Nothing that was recorded is changed. What a round came to is settled anew from what it was played by, with each
correction in its turn taking the place of what it names: the dice, or all wagers of one position, or the round itself
(void). So of two corrections of the same thing the last one counts, and one of dice or wagers after `void` brings the
round back. The streak and the tile hands stay as they were played.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from dragoneye.rules import wagers
from dragoneye.rules.packs import NAMES, Pack, load

Message = dict[str, Any]
Bets = dict[int, dict[str, int]]
_TOLD = ("what", "why", "by", "dice", "position", "wagers")


def told_of(event: int, utc: str, data: Message) -> Message:
    """What is told of a correction: its event's id and moment, and what of its record's data is not said by these."""
    return {"event": event, "utc": utc, **{name: data[name] for name in _TOLD if name in data}}


@cache
def known_packs() -> dict[str, Pack]:
    """The rule packs of this program by their hash."""
    return {pack.hash(): pack for pack in (load(name) for name in NAMES)}


def is_shipped(pack: Pack) -> bool:
    """Whether these are the rules of one of the packs that come with the program, under its name."""
    shipped = known_packs().get(pack.hash())
    return shipped is not None and shipped.name == pack.name


def as_corrected(dice: list[int], bets: Bets, told: Iterable[Message]) -> tuple[list[int], Bets] | None:
    """Dice and wagers of a round as the corrections `told` (their records' data, in order) leave them; None: void."""
    stands = True
    bets = dict(bets)
    for one in told:
        stands = one["what"] != "void"
        if one["what"] == "dice":
            dice = one["dice"]
        elif one["what"] == "bets":
            bets[one["position"]] = one["wagers"]
    return (dice, bets) if stands else None


def settle(result: Message, bets: Bets, told: list[Message], pack: Pack | None) -> Message:
    """What counts of a settled round: {"void", "result"}.

    `result` is its record's data, `bets` the wagers that it was settled by, `pack` the rules, None where they are not
    known: then "result" is None. Else it is as `result`, with other dice, total, rows and net; those of a void round
    are no rows and 0 cents.
    """
    left = as_corrected(result["dice"], bets, told)
    if left is None:
        return {"void": True, "result": dict(result, rows=[], net=0)}
    if pack is None:
        return {"void": False, "result": None}
    dice, bets = left
    rows = wagers.settle_table(bets, dice, result["eye"], result["shaker"], result["before"], pack)
    changed = {"dice": dice, "total": sum(dice), "rows": rows, "net": wagers.net_of(rows)}
    return {"void": False, "result": dict(result, **changed)}


def rolled(stored: Message) -> list[int] | None:
    """The dice that count of a stored round, whether or not its rule pack is known; None where none do.

    That is an open round, a void one, and one that was corrected to void.
    """
    result = stored.get("result")
    if result is None:
        return None
    told = (stored.get("corrected") or {"told": []})["told"]
    left = as_corrected(result["dice"], {}, [{"position": 0, "wagers": {}, **one} for one in told])
    return None if left is None else list(left[0])


def dealt_by(stored: Message) -> int | None:
    """The dice total that a stored round's tile hands were dealt by; None without hands.

    Hands that were kept before the dice were corrected stay as they are. Those that do not say it were dealt by the
    recorded dice.
    """
    tiles = stored.get("tiles")
    return None if tiles is None else int(tiles.get("total", stored["result"]["total"]))


def standing(stored: Message) -> Message | None:
    """The result of a stored round (store.Round.as_dict) that counts: the corrected one where there is one."""
    corrected = stored.get("corrected")
    if corrected is not None and corrected["result"] is not None:
        return dict(corrected["result"])
    return stored.get("result")


def kinds(stored: Message) -> str:
    """What was corrected of a stored round, in order, each once: "dice bets"; empty for one that was not."""
    return " ".join(dict.fromkeys(one["what"] for one in (stored.get("corrected") or {"told": []})["told"]))
