"""What the display shows, as JSON made of a snapshot: pure, in the language that is spoken.

Nothing of a result is in it before the lid has opened, because nothing of it is in the live state or the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from dragoneye import protocol
from dragoneye.rules import wagers
from dragoneye.rules.packs import WAGERS, Pack
from host_tools import codes, corrections, diceset, faults
from host_tools.device import called
from host_tools.i18n import _, controller
from host_tools.rules import seating
from host_tools.store import utc_text
from host_tools.web.hub import ROLLS, Snapshot

Message = dict[str, Any]

ROLLING = (protocol.SHAKING, protocol.SETTLING, protocol.READING)
SHOWN = (protocol.REVEALED, protocol.SETTLED)
OFFLINE = "OFFLINE"


def title(state: str) -> str:
    """What a state is called at the table."""
    return {
        protocol.IDLE: _("Between rounds"),
        protocol.BETTING: _("Bets are open"),
        protocol.CLOSED: _("No more bets"),
        protocol.SHAKING: _("Shaking"),
        protocol.SETTLING: _("Dice come to rest"),
        protocol.READING: _("Reading the dice"),
        protocol.LOCKED: _("Ready: open the lid"),
        protocol.REVEALED: _("Result"),
        protocol.SETTLED: _("Result"),
        protocol.VOID: _("No result"),
        protocol.FAULT: _("Out of play"),
        protocol.TEST: _("Test mode"),
        OFFLINE: _("No connection to the table"),
    }.get(state, state)


def _hint(snapshot: Snapshot, state: str) -> str:
    view = snapshot.state
    if state == OFFLINE:
        return snapshot.trouble
    if state == protocol.VOID:
        reason = controller(str(codes.VOIDS.get(view["void"], view["void"])))
        after = _("a supervisor is called") if view["call"] else _("the dice are shaken again")
        return f"{reason}: {after}"
    if state == protocol.FAULT:
        return _("wait for a supervisor")
    if state == protocol.TEST:
        return _("nothing that is shown here is a result")
    if state in SHOWN:
        return _("{who} shook").format(who=seating.who(view["shaker"]))
    if view.get("round") and state != protocol.IDLE:
        return _("{who} shakes").format(who=seating.who(view["shaker"]))
    return ""


def _notices(snapshot: Snapshot, now: datetime) -> Iterator[Message]:
    """Lines that stand above everything else; `kind` is what they are about."""
    view = snapshot.state
    if snapshot.record_trouble:
        yield {"kind": "record", "text": _("the record cannot be written: {why}").format(why=snapshot.record_trouble)}
    if void := _void(snapshot):
        words = _("round {number} is void: wagers go back")
        if void["down"] is None:
            words = _("round {number} is void: wagers go back; what was down was not recorded before its bets closed")
        yield {"kind": "void", "text": words.format(number=void["round"])}
    if snapshot.ahead > utc_text(now):
        words = _("this computer's clock is behind its record, which goes to {utc} UTC: it was put back; set it right")
        yield {"kind": "clock", "text": words.format(utc=snapshot.ahead[:16].replace("T", " "))}
    if not snapshot.linked:
        return
    if view.get("fault"):
        yield {"kind": "fault", "text": faults.told(view["fault"], view["detail"])}
    if view.get("test"):
        yield {"kind": "test", "text": _("test mode: nothing that is shown here is a result")}
    for code, detail in sorted(view.get("service", {}).items()):
        yield {"kind": "service", "text": faults.told(code, detail)}
    words = diceset.told(snapshot.table.get("dice_set"), now)
    if words:
        yield {"kind": "dice", "text": words}
    if snapshot.table.get("unprovisioned"):
        yield {"kind": "unprovisioned", "text": _("unprovisioned: this table has no keys yet and is not for play")}


def _void(snapshot: Snapshot) -> Message | None:
    """The round that was void just now: the newest one, before the next is opened."""
    newest = snapshot.rounds[-1] if snapshot.rounds else None
    is_over = newest is not None and newest["status"] == "void" and snapshot.state.get("state") == protocol.IDLE
    return newest if is_over else None


def _result(snapshot: Snapshot, state: str) -> tuple[Message | None, bool]:
    """The result to be shown, and whether it is the last round's."""
    if state in SHOWN and "dice" in snapshot.state:
        stored = snapshot.round()
        if stored is not None and "result" in stored:
            return corrections.standing(stored), False
        # The record of it is on its way.
        return {"dice": snapshot.state["dice"], "eye": snapshot.state["eye"], "rows": [], "manual": None}, False
    if state == protocol.IDLE and _void(snapshot) is None:
        for stored in reversed(snapshot.rounds):
            if stored["status"] == "settled" and not _corrected_void(stored):
                return corrections.standing(stored), True
    return None, False


def _corrected_void(stored: Message) -> bool:
    return bool((stored.get("corrected") or {}).get("void"))


def pays(wager: str, position: int, shaker: int, streak: int, pack: Pack) -> str:
    """What a wager pays if it wins: "30 to 1"; a bonus by the triples in a row before this roll."""
    if wager == "match":
        return _("{odds} to 1 for each die").format(odds=pack["pays_match"])
    if wager == "bonus":
        odds = bonus_odds(position, shaker, streak, pack)
        return _("{odds} to 1").format(odds=odds) if odds else _("stays up")
    return _("{odds} to 1").format(odds=pack["pays_" + wager])


def bonus_odds(position: int, shaker: int, streak: int, pack: Pack) -> int:
    """The odds of a bonus if the coming roll is a triple; 0 when it only stays up."""
    level = wagers.bonus_level(streak, pack)
    ladder = pack["pays_bonus_shaker"] if position == shaker else pack["pays_bonus_other"]
    return int(ladder[level - 1]) if level else 0


def _wager(wager: str, stake: int, terms: str, odds: int | None, is_over: bool) -> Message:
    outcome = None
    profit = 0
    if is_over:
        outcome = "stays" if odds is None else "pays" if odds else "loses"
        profit = stake * odds if odds else 0 if odds is None else -stake
    return {
        "wager": wager,
        "name": _(wager),
        "stake": stake,
        "terms": terms,
        "outcome": outcome,
        "profit": profit,
    }


def _seats_void(snapshot: Snapshot, pack: Pack, void: Message) -> list[Message]:
    """The seats when a round was void: what each takes back."""
    down = {seat["position"]: seat["wagers"] for seat in outcome(void)["seats"]}
    empty: Message = {"shakes": False, "net": None, "deal": None}
    positions = range(1, pack["player_positions"] + 1)
    return [{"position": one, "wagers": down.get(one, []), **empty} for one in positions]


def _seats(snapshot: Snapshot, pack: Pack, result: Message | None, order: seating.Order | None) -> list[Message]:
    view = snapshot.state
    paid = {(row[0], row[1]): (row[2], row[3]) for row in result["rows"]} if result else {}
    streak = int(result.get("before", 0)) if result else int(view["streak"]["count"])
    shaker = int(result["shaker"]) if result and "shaker" in result else int(view["shaker"])
    bets = {position: dict(stakes) for position, stakes in view["bets"]}
    for (position, wager), (stake, _odds) in paid.items():
        bets.setdefault(position, {})[wager] = stake
    seats = []
    for position in range(1, pack["player_positions"] + 1):
        rows = []
        for wager in WAGERS:
            stake = bets.get(position, {}).get(wager)
            if stake is not None:
                odds = paid.get((position, wager), (0, None))[1]
                terms = pays(wager, position, shaker, streak, pack)
                rows.append(_wager(wager, stake, terms, odds, bool(paid)))
        deal = order.deal.index(position + 1) + 1 if order and position + 1 in order.deal else None
        seats.append(
            {
                "position": position,
                "shakes": view["state"] != protocol.IDLE and position == shaker,
                "wagers": rows,
                "net": sum(row["profit"] for row in rows) if paid and rows else None,
                "deal": deal,
            }
        )
    return seats


def _streak(view: Message, pack: Pack, is_over: bool) -> Message:
    """The streak, and what the bonuses would bring if the next roll is a triple."""
    count = view["streak"]["count"]
    held = dict(view["streak"]["parts"])
    if not is_over:
        held.update({position: stakes["bonus"] for position, stakes in view["bets"] if "bonus" in stakes})
    rows = [
        {
            "position": position,
            "stake": stake,
            "pays": stake * bonus_odds(position, view["shaker"], count, pack),
        }
        for position, stake in sorted(held.items())
    ]
    return {"count": count, "rows": rows, "pays": sum(row["pays"] for row in rows)}


def outcome(stored: Message) -> Message:
    """A round that is over, for the console: {"round", "status", "corrected", "dice"..., "net", "seats", "tiles"}.

    "seats" are rows of {"position", "wagers", "net"} as the display has them; "net" is the table's on dice wagers.
    "tiles" is as Store.add_tiles has it, or None.
    """
    told: Message = {**_roll(stored), "seats": [], "net": 0, "tiles": stored.get("tiles"), "known": True}
    by_position: dict[int, list[Message]] = {}
    result = corrections.standing(stored)
    if told["status"] == "void":
        told["known"] = stored.get("down", []) is not None
        for position, stakes in stored.get("down") or ():
            by_position[position] = [_gone_back(wager, stake) for wager, stake in stakes.items()]
    elif result:
        told["net"] = -result["net"]
        for position, wager, stake, odds in result["rows"]:
            by_position.setdefault(position, []).append(_wager(wager, stake, "", odds, True))
        for position, stake in result.get("streak", {}).get("parts", []):
            rows = by_position.setdefault(position, [])
            if all(row["wager"] != "bonus" for row in rows):
                rows.append(_wager("bonus", stake, "", None, True))
    told["seats"] = [
        {"position": position, "wagers": rows, "net": sum(row["profit"] for row in rows)}
        for position, rows in sorted(by_position.items())
    ]
    return told


def _gone_back(wager: str, stake: int) -> Message:
    return {**_wager(wager, stake, "", None, True), "outcome": "back"}


def _roll(stored: Message) -> Message:
    result = corrections.standing(stored)
    roll: Message = {"round": stored["round"], "status": stored["status"], "corrected": bool(stored.get("corrected"))}
    if _corrected_void(stored):
        roll["status"] = "void"
    elif result:
        roll.update({"dice": result["dice"], "eye": result["eye"], "total": sum(result["dice"])})
        roll["manual"] = result["manual"] is not None
    return roll


def display(snapshot: Snapshot, now: datetime) -> Message:
    """What the display shows."""
    view, pack = snapshot.state, snapshot.pack
    state = view.get("state", OFFLINE) if snapshot.linked else OFFLINE
    shown: Message = {
        "state": state,
        "title": title(state),
        "hint": _hint(snapshot, state),
        "notices": list(_notices(snapshot, now)),
        "table": snapshot.table.get("uid", ""),
        "called": called(snapshot.table),
        "rolls": [_roll(stored) for stored in snapshot.rounds if stored["status"] != "open"][-ROLLS:],
    }
    if pack is None or not view:
        return shown
    result, past = _result(snapshot, state)
    order = seating.order_of_pack(sum(result["dice"]), pack) if result else None
    over = result is not None and not past
    void = _void(snapshot)
    shown.update(
        {
            "round": view["round"],
            "shaker": view["shaker"],
            "bets_open": view["bets_open"],
            "lid_open": view["lid_open"],
            "seats": _seats_void(snapshot, pack, void)
            if void
            else _seats(snapshot, pack, None if past else result, None if past else order),
            "streak": _streak(view, pack, over),
            "has_bonus": "bonus" in pack["wagers"],
            "mirrored": pack["count_direction"] != seating.DIRECTIONS[0],
        }
    )
    if result and order:
        shown["dice"] = {
            "values": result["dice"],
            "eye": result["eye"],
            "total": sum(result["dice"]),
            "past": past,
            "manual": result["manual"],
            "corrected": over and bool((snapshot.round() or {}).get("corrected")),
        }
        shown["deal"] = {
            "start": order.start,
            "bank": order.deal.index(1) + 1,
            "clockwise": pack["deal_direction"] != seating.DIRECTIONS[0],
            "text": _first(order.start, pack),
        }
    return shown


def _first(start: int, pack: Pack) -> str:
    direction = _("clockwise") if pack["deal_direction"] != seating.DIRECTIONS[0] else _("counter-clockwise")
    words = _("{first} is dealt first, then {direction}")
    return words.format(first=seating.whose(start), direction=direction)
