"""The dealer's console: what each role may ask for now, and asking it once however often it is sent."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from dragoneye import protocol
from dragoneye.errors import BadInput
from dragoneye.protocol import BETTING, CLOSED, FAULT, IDLE, LOCKED, SETTLED, TEST, VOID
from dragoneye.text import show
from host_tools import contested, corrections, diceset, tile_round
from host_tools.contested import Contested
from host_tools.device import Device
from host_tools.diceset import utc_now
from host_tools.i18n import _, controller
from host_tools.link import Refused
from host_tools.rules import houseway, tile_table, tiles
from host_tools.rules.tile_names import tile_name
from host_tools.store import StoreError
from host_tools.web import view
from host_tools.web.access import MAY, Session, role_name
from host_tools.web.hub import Hub, NotLinked, Snapshot, Unknown

Message = dict[str, Any]

# The requests of protocol.REQUESTS that are at the console; the others are commands' (`dice`, `verify`, ...).
REQUESTS = (
    *("open", "shaker", "bets", "leave", "close", "shake", "unlock", "finish"),
    *("void", "resume", "manual", "confirm", "correct", "clear", "changed", "end"),
    *("test", "selftest", "sensors"),
)
# Done twice they do what they do once. The others are refused when the table has moved on since the page was seen.
_ANY_TIME = ("bets", "leave", "shaker", "sensors", "selftest")
_KEPT = 200
# Of so many rounds the console shows what came of them.
OUTCOMES = 5


class Stale(BadInput):
    """The table has moved on since the page was looked at; nothing was done."""


def step(snapshot: Snapshot) -> str:
    """What of the table's progress an action must have seen: another step, another answer to the same press."""
    state = snapshot.state
    names = ("round", "state", "shakes", "voids", "bets_open", "lid_open", "fault")
    return ".".join(str(state.get(name, "")) for name in names) if snapshot.linked else ""


def _can(snapshot: Snapshot, name: str) -> bool:
    """Whether the table would take a request now, as far as can be said here; the table itself decides."""
    state = snapshot.state
    if not snapshot.linked or snapshot.pack is None:
        return False
    now = state["state"]
    early = snapshot.pack["bets_close"] == "reveal"
    rolling = now in view.ROLLING
    states: dict[str, bool] = {
        "open": now == IDLE and not snapshot.record_trouble,
        "shaker": now in (BETTING, CLOSED, VOID),
        "bets": state["bets_open"] and now != FAULT,
        "leave": not rolling and (state["bets_open"] or now in (IDLE, SETTLED)),
        "close": state["bets_open"] and not rolling and now != FAULT,
        "shake": (now in (CLOSED, VOID) or (early and now == BETTING))
        and not state["lid_open"]
        and not state.get("call")
        and not snapshot.record_trouble,
        "unlock": not rolling and not (now == LOCKED and state["bets_open"]),
        "finish": now == SETTLED,
        "void": now in (BETTING, CLOSED, VOID),
        "resume": now == VOID,
        "manual": now in (CLOSED, VOID) and not state["bets_open"],
        "confirm": now in (CLOSED, VOID) and not state["bets_open"],
        "correct": now in (IDLE, SETTLED) and any(one["status"] == "settled" for one in snapshot.rounds),
        "clear": now == FAULT,
        "changed": not rolling,
        "end": now in (IDLE, SETTLED),
        "test": now in (IDLE, SETTLED, TEST),
        "selftest": now == TEST,
        "sensors": True,
        "tiles": _tiled(snapshot) is not None,
    }
    return states[name]


def _tiled(snapshot: Snapshot) -> Message | None:
    """The newest round, if dice of it count and its tile hands are not there yet."""
    newest = snapshot.rounds[-1] if snapshot.rounds else None
    return newest if newest and "tiles" not in newest and corrections.rolled(newest) is not None else None


def role_of(name: str) -> str:
    """Whose request it is, one of protocol's roles. Raises BadInput for one that is not at the console."""
    if name in ("tiles", "lid"):
        return protocol.DEALER
    if name not in REQUESTS:
        raise BadInput(_("there is no action {name}").format(name=show(name)))
    return str(protocol.REQUESTS[name][0])


def actions(role: str) -> list[str]:
    """What a role may do at the console."""
    return [name for name in (*REQUESTS, "tiles") if role_of(name) in MAY[role]]


def watched(snapshot: Snapshot, role: str) -> Message:
    """What the console shows: the display's view and what the role may do now."""
    shown = view.display(snapshot, utc_now())
    newest = _tiled(snapshot)
    if snapshot.drift is not None:
        words = _("die {die} drifts from fair since round {round}; play goes on, a supervisor looks at the dice")
        words = words.format(die=snapshot.drift.die, round=snapshot.drift.round)
        shown["notices"].append({"kind": "drift", "text": words})
    shown.update(
        {
            "step": step(snapshot),
            "can": [name for name in actions(role) if _can(snapshot, name)],
            "liability": snapshot.state.get("liability", 0),
            "call": bool(snapshot.state.get("call")),
            "lockout_ms": snapshot.state.get("lockout_ms", 0),
            "fault": snapshot.state.get("fault", ""),
            "test": bool(snapshot.state.get("test")),
            "dice_alarm": _dice_alarm(snapshot),
            "bets": {str(position): stakes for position, stakes in snapshot.state.get("bets", [])},
            "wagers": [[wager, _(wager)] for wager in snapshot.pack["wagers"]] if snapshot.pack else [],
            "positions": snapshot.pack["player_positions"] if snapshot.pack else 0,
            "most": _most(snapshot),
            "parts": [position for position, _stake in snapshot.state.get("streak", {}).get("parts", [])],
            "over": [view.outcome(one) for one in snapshot.rounds if one["status"] != "open"][-OUTCOMES:],
            "tile_positions": snapshot.pack["positions"] - 1 if snapshot.pack else 0,
            "tiles_round": newest["round"] if newest else None,
            "hands": _kept_hands(snapshot),
        }
    )
    return shown


def _most(snapshot: Snapshot) -> dict[str, int]:
    """The highest stake of each wager in cents; "" is of all."""
    pack = snapshot.pack
    if pack is None:
        return {}
    bonus = pack["bonus_stake_max"]
    return {"": pack["stake_max"], **({} if bonus is None else {"bonus": min(bonus, pack["stake_max"])})}


def _dice_alarm(snapshot: Snapshot) -> bool:
    dice_set = snapshot.table.get("dice_set")
    return dice_set is not None and diceset.level(dice_set["issued"], utc_now()) == diceset.ALARM


def _kept_hands(snapshot: Snapshot) -> Message | None:
    """The tile hands of the newest round, once they are kept."""
    newest = snapshot.rounds[-1] if snapshot.rounds else None
    return dict(newest["tiles"], round=newest["round"]) if newest and "tiles" in newest else None


class Console:
    """Does what sessions ask for at the hub's table. `lid` moves a virtual table's lid, None at a real one.

    `signals` is whether the text of a house's own rule pack has the dealer's signals; `house_way` sets four tiles that
    are not set.
    """

    def __init__(
        self,
        hub: Hub,
        lid: Callable[[str], None] | None = None,
        signals: bool = False,
        house_way: str = houseway.OF_TABLE,
    ) -> None:
        self.hub = hub
        self.lid = lid
        self.signals = signals
        self.house_way = house_way
        self._done: OrderedDict[tuple[str, str], asyncio.Task[tuple[int, Message]]] = OrderedDict()

    async def act(self, session: Session, asked: Message) -> tuple[int, Message]:
        """Do `asked` ({"key", "do", "step", "fields"}); HTTP status and answer.

        The same key again has the same answer and no second effect. It is done to its end, also when nobody waits.
        """
        key, name, fields = asked.get("key"), asked.get("do"), asked.get("fields", {})
        try:
            if not isinstance(key, str) or not 8 <= len(key) <= 64:
                raise BadInput(_("the key of an action is 8 to 64 characters"))
            if not isinstance(name, str) or not isinstance(fields, dict):
                raise BadInput(_("an action has a name and fields"))
            role = role_of(name)
        except BadInput as error:
            return 400, {"error": str(error)}
        if role not in MAY[session.role] or (fields.get("keep_dice") and protocol.SUPERVISOR not in MAY[session.role]):
            role = protocol.SUPERVISOR if role in MAY[session.role] else role
            return 403, {"error": _("only a {role} may do this").format(role=role_name(role)), "role": role}
        place = (session.sid, key)
        task = self._done.get(place)
        if task is None:
            task = asyncio.get_running_loop().create_task(
                self._act(name, str(asked.get("step", "")), fields, session.role)
            )
            self._done[place] = task
            while len(self._done) > _KEPT:
                self._done.popitem(last=False)
        status, answer = await asyncio.shield(task)
        if status == 503:
            # Nothing was done: the same may be tried again.
            self._done.pop(place, None)
        return status, answer

    async def _act(self, name: str, seen: str, fields: Message, as_role: str) -> tuple[int, Message]:
        try:
            if name == "lid":
                return 200, {"ok": await asyncio.to_thread(self._move_lid, fields)}
            if name == "tiles":
                return 200, {"ok": await asyncio.to_thread(self._tiles, fields)}
            keep = fields.pop("keep_dice", False) if name == "open" else False
            # The second confirmation of a correction that was refused without it.
            anyway = name == "correct" and fields.pop("anyway", False) is True
            preview = fields.get("preview") is True if name == "correct" else False
            if name == "correct":
                fields = {key: value for key, value in fields.items() if key != "preview"}
                fields = {**fields, "event": await asyncio.to_thread(self._settling, fields.get("round"))}
            try:
                protocol.check_request({"q": name, **fields})
            except protocol.Problem as problem:
                raise BadInput(controller(problem.why)) from None
            if preview:
                return 200, {"ok": await asyncio.to_thread(self._preview, fields)}
            if name == "correct" and not anyway:
                await asyncio.to_thread(self._check, fields)
            snapshot = self.hub.snapshot
            if name == "open":
                self._check_dice(snapshot, keep is True)
            if snapshot.record_trouble and name in ("open", "shake"):
                raise BadInput(_("the record cannot be written: {why}").format(why=snapshot.record_trouble))

            def do(device: Device) -> Message:
                # Looked at in the hub's thread: nothing comes between the look and the request.
                if name not in _ANY_TIME and seen != step(self.hub.snapshot):
                    raise Stale(_("the table has moved on; look, and press again"))
                answer = device.request(name, as_role, **fields)
                device.refresh()
                return answer

            done = await asyncio.wrap_future(self.hub.ask(do))
            if name == "correct":
                done = {**done, "said": await asyncio.to_thread(self._said, fields)}
            return 200, {"ok": done}
        except NotLinked as error:
            return 503, {"error": _("the table does not answer: {why}").format(why=error)}
        except Unknown as error:
            words = _("it is not known whether this was done; look at the table's state ({why})").format(why=error)
            return 504, {"error": words, "unknown": True}
        except Refused as refused:
            return 409, {"error": controller(refused.why), "code": refused.code, "state": refused.state}
        except Contested as error:
            return 409, {"error": str(error), "code": error.code, "anyway": True}
        except Stale as error:
            return 409, {"error": str(error), "code": "STALE"}
        except StoreError as error:
            return 409, {"error": str(error)}
        except BadInput as error:
            return 400, {"error": controller(str(error))}

    def _check_dice(self, snapshot: Snapshot, keep: bool) -> None:
        if _dice_alarm(snapshot) and not keep:
            raise BadInput(diceset.told(snapshot.table["dice_set"], utc_now()))

    def _settling(self, number: Any) -> int:
        """The id of the event that settled a round, by which a correction names it; 1 for what is no round's number."""
        if type(number) is not int or not 0 < number <= protocol.SEQ_MAX:
            return 1
        return self.hub.store.settled_event(str(self.hub.snapshot.table.get("uid", "")), number)

    def _check(self, fields: Message) -> None:
        contested.check(self.hub.store, str(self.hub.snapshot.table.get("uid", "")), fields)

    def _said(self, fields: Message) -> str:
        """What a supervisor should know of a round that has been corrected just now, beside what the pages show."""
        try:
            stored = self.hub.store.round(fields["round"], str(self.hub.snapshot.table.get("uid", "")))
        except StoreError:
            # It is done all the same.
            return ""
        # Its record may still be on its way here.
        told = [*(stored.get("corrected") or {"told": []})["told"], fields]
        return tile_round.dealt_before({**stored, "corrected": {"told": told}})

    def standing(self, number: int) -> Message:
        """How the round `number` stands, for who would correct it: see _stands. Raises StoreError."""
        uid = str(self.hub.snapshot.table.get("uid", ""))
        return _stands(self.hub.store.as_corrected(uid, number))

    def _preview(self, fields: Message) -> Message:
        """{"before", "after", "change", "doubt"}: what a correction would make of a round.

        `change` is that of the table's net, in cents; `doubt` is why it needs `anyway`, or empty.
        """
        uid, number = str(self.hub.snapshot.table.get("uid", "")), fields["round"]
        more = dict(fields)
        if "wagers" in more:
            more["wagers"] = {wager: stake for wager, stake in more["wagers"].items() if stake}
        before = _stands(self.hub.store.as_corrected(uid, number))
        after = _stands(self.hub.store.as_corrected(uid, number, more))
        known = before["net"] is not None and after["net"] is not None
        try:
            self._check(fields)
            doubt = ""
        except Contested as error:
            doubt = str(error)
        change = after["net"] - before["net"] if known else None
        return {"before": before, "after": after, "change": change, "doubt": doubt}

    def _move_lid(self, fields: Message) -> Message:
        to = fields.get("to")
        if self.lid is None or to not in ("open", "shut"):
            raise BadInput(_("only a virtual table's lid is moved from here: open or shut"))
        self.lid(to)
        return {"lid": to}

    def _tiles(self, fields: Message) -> Message:
        """Settle tile hands; with `keep` they are kept beside the round as well."""
        snapshot = self.hub.snapshot
        number = fields.get("round")
        newest = snapshot.rounds[-1] if snapshot.rounds else None
        if snapshot.pack is None or newest is None or newest["round"] != number:
            raise Stale(_("the table has moved on; look, and press again"))
        case = {name: fields[name] for name in ("bank", "players") if name in fields}
        uid = str(snapshot.table["uid"])
        settled = tile_round.settle(
            self.hub.store, uid, newest["round"], case, None, self.house_way, own_signals=self.signals
        )
        if fields.get("keep") is True:
            self.hub.store.add_tiles(uid, newest["round"], settled)
            self.hub.look_again()
        told = dict(settled, kept=fields.get("keep") is True)
        if all("signal" in player for player in settled["players"]):
            told["signals"] = [tile_table.signal_words(player["signal"]) for player in settled["players"]]
        return told


def _stands(corrected: Message) -> Message:
    """{"void", "dice", "total", "bets", "nets", "net"} of Store.as_corrected; nets are the players', net the table's.

    Dice, nets and net are None where the round's rule pack is not known.
    """
    result = corrected["result"]
    nets: dict[str, int] = {}
    for position, _wager, stake, odds in result["rows"] if result else ():
        nets[str(position)] = nets.get(str(position), 0) + (stake * odds if odds else -stake)
    return {
        "void": corrected["void"],
        "dice": result and result["dice"],
        "total": result and sum(result["dice"]),
        "bets": {str(position): stakes for position, stakes in sorted(corrected["bets"].items()) if stakes},
        "nets": nets if result else None,
        "net": -result["net"] if result else None,
    }


def tile_set() -> list[list[Any]]:
    """The faces of the 32 tiles with their names and how many there are of each."""
    return [[tile.face, tile_name(tile.face), tile.copies] for tile in tiles.Tile]
