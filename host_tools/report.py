"""What a report is made of: a shift's or a lab's figures from the record. Reads only."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from dragoneye.rules.packs import WAGERS
from host_tools import corrections, fairness
from host_tools.store import Message, Search, Store, damaged, event_name

# How a record of changed dice or of a changed shaker ends where no streak was ended by it (dragoneye.betting).
KEPT = ", streak kept"
# Records that a person asks about, beside the rounds.
NOTED = ("boot", "fault", "door", "service", "streak", "test", "dice", "restart", "correction")


def of_table(store: Store, search: Search) -> Message:
    """One table's figures: {"table", "rounds", "wagers", "voids", "manual", "triples", "longest_streak", "events"...}.

    `search` names the table and the time. Money in cents; `net` is the table's. A round that was corrected counts as
    the corrections leave it, but for what was rolled, which is as recorded: "manual", "triples_rolled" and
    "longest_streak". "corrections" are those that were made in this time, of whatever round; "outside" are the rounds
    that the time misses because this computer's clock was put back.
    """
    assert search.uid is not None
    rounds: Counter[str] = Counter()
    wagers: dict[str, dict[str, int]] = {}
    manual: list[Message] = []
    figures: Message = {
        "table": search.uid,
        "first": None,
        "last": None,
        "dice_net": 0,
        "tiles_net": 0,
        "tile_stakes": 0,
    }
    triples, rolled, longest, corrected_rounds = 0, 0, 0, 0
    corrected: Counter[str] = Counter({"void": 0, "not settled": 0})
    for one in store.stream(search):
        rounds[one["status"]] += 1
        figures["first"] = figures["first"] or _place(one)
        figures["last"] = _place(one)
        result = corrections.standing(one)
        if one.get("tiles"):
            figures["tiles_net"] -= sum(player["net"] for player in one["tiles"]["players"])
            figures["tile_stakes"] += sum(player["stake"] for player in one["tiles"]["players"])
        if not result:
            continue
        figures["dice_net"] -= result["net"]
        recorded = one["result"]
        left = corrections.rolled(one)
        if recorded["manual"] is not None:
            entry = {**_place(one), "dice": recorded["dice"], "reason": recorded["manual"]}
            # What was entered stands first; `counts` is what counts of it where that is something else, null for void.
            manual.append({**entry, "counts": left} if left != recorded["dice"] else entry)
        if len(set(recorded["dice"])) == 1:
            rolled += 1
            longest = max(longest, recorded["streak"]["count"])
        corrected_rounds += bool(one.get("corrected"))
        # Also of one that is not settled anew, its rule pack not being known.
        triples += left is not None and len(set(left)) == 1
        if one.get("corrected"):
            corrected["void"] += one["corrected"]["void"]
            corrected["not settled"] += one["corrected"]["result"] is None
            if one["corrected"]["void"]:
                continue
        for _position, wager, stake, odds in result["rows"]:
            row = wagers.setdefault(wager, {"made": 0, "won": 0, "stakes": 0, "paid": 0, "net": 0})
            row["made"] += 1
            row["won"] += odds > 0
            row["stakes"] += stake
            row["paid"] += stake * odds
            row["net"] += -stake * odds if odds else stake
    voids = Counter(str(data["reason"]) for _uid, _set, data in store.voids(search))
    return {
        **figures,
        "rounds": dict(rounds),
        "outside": store.outside(search),
        "wagers": {wager: wagers[wager] for wager in WAGERS if wager in wagers},
        "manual": manual,
        "voids": dict(sorted(voids.items())),
        "corrected": dict(corrected),
        "corrected_rounds": corrected_rounds,
        "triples": triples,
        "triples_rolled": rolled,
        "longest_streak": longest,
        **_events(store, search),
    }


def _place(one: Message) -> Message:
    return {"round": one["round"], "utc": one["utc"]}


def _events(store: Store, search: Search) -> Message:
    """Faults with how long they stood, starts, doors, changes of dice, and who the table said that it was."""
    faults: list[Message] = []
    starts: list[Message] = []
    identities: list[Message] = []
    changes: list[Message] = []
    corrected: list[Message] = []
    doors: Counter[str] = Counter()
    standing: dict[str, Message] = {}
    assert search.uid is not None

    def note(record: Message) -> None:
        data: dict[str, Any] = record["d"]
        kind, utc = record["k"], record["utc"]
        if kind == "fault" and data["set"]:
            fault = {"code": data["code"], "detail": data["detail"], "set": utc, "cleared": None}
            faults.append(fault)
            standing[data["code"]] = fault
        elif kind == "fault" and data["code"] in standing:
            standing.pop(data["code"])["cleared"] = utc
        elif kind == "boot":
            starts.append({"utc": utc, "boot": record["b"], "cause": data.get("cause")})
            identity = {key: value for key, value in data.items() if key != "cause"}
            if not identities or identities[-1] != identity:
                identities.append(identity)
        elif kind == "door" and data["open"]:
            doors[data["which"]] += 1
        elif kind == "service":
            doors["service at start"] += data["times"]
        elif kind == "restart" or (kind == "streak" and not data["position"]):
            changes.append({"utc": utc, "what": _change(data)})
        elif kind == "correction":
            # As wherever corrections are told: `event` is its own.
            corrected.append({"utc": utc, "by": None, **data, "event": record["id"], "corrects": data["event"]})
        elif kind == "dice":
            changes.append({"utc": utc, "what": f"dice set {data['serial']}"})

    for record in store.stream_events(search.uid, NOTED, search.since, search.until):
        try:
            note(record)
        except (KeyError, TypeError, ValueError):
            raise damaged(event_name(record["id"], search.uid)) from None
    keyless = _without_keys(store, search)
    return {
        "faults": faults,
        "starts": starts,
        "unprovisioned": bool(keyless),
        "keyless": keyless,
        "identities": identities,
        "changes": changes,
        "corrections": corrected,
        "doors": dict(sorted(doors.items())),
    }


def _without_keys(store: Store, search: Search) -> list[Message]:
    """{"since", "until"} of each while that the table ran without keys: anybody could ask for anything.

    `since` is None where it had none when the time began, `until` where it had none at its end.
    """
    assert search.uid is not None
    # The last start before: the table ran on from there.
    before = deque(store.stream_events(search.uid, ("boot",), None, search.since), 1) if search.since else ()
    found: list[Message] = []
    for record in (*before, *store.stream_events(search.uid, ("boot",), search.since, search.until)):
        is_open = bool(found) and found[-1]["until"] is None
        utc = None if search.since is not None and record["utc"] < search.since else record["utc"]
        if not record["d"].get("key_id") and not is_open:
            found.append({"since": utc, "until": None})
        elif record["d"].get("key_id") and is_open:
            found[-1]["until"] = utc
    return found


def _change(data: Message) -> str:
    """What a record says that ended a streak or changed a unit; none can be kept where none ran."""
    why = str(data["why"])
    ran = data.get("streak", {}).get("count", 0) > 0
    return why if ran or not why.endswith(KEPT) else why.removesuffix(KEPT) + ", no streak ran"


def sets_of(store: Store, search: Search, alpha: float = 0.01) -> list[tuple[fairness.DiceSet, Message]]:
    """The dice sets that were rolled in this time, each with its whole life up to its end: a drift is a long story."""
    rolled = {(one.table, one.number) for one in fairness.gather(store, search)}
    whole = fairness.gather(store, Search(uid=search.uid, until=search.until, dice_set=search.dice_set))
    return [(one, fairness.analyse(one, alpha)) for one in whole if (one.table, one.number) in rolled]
