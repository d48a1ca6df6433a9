"""Everything in a record checked against everything else: ids, hashes, streaks, settlements, rounds, tile hands.

The checker reads a table's events once, in order. It has its own settlement (host_tools.rules.settlement) and its own
view of the streak; what it finds names the event or the round that does not fit what stands before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoneye.config import digest
from dragoneye.errors import BadInput
from dragoneye.journal import GENESIS, chain
from dragoneye.protocol import SEQ_MAX
from dragoneye.rules.packs import Pack
from dragoneye.text import dumps, show
from host_tools.i18n import _
from host_tools.rules import seating, settlement, tiles
from host_tools.store import DICE_CHANGED, Message, Search, Store

_NO_STREAK: Message = {"count": 0, "parts": [], "gone": []}


@dataclass(frozen=True)
class Finding:
    """Something that does not fit: of a table's event or round (0 where there is none), in words."""

    table: str
    event: int
    round: int
    what: str

    def as_dict(self) -> Message:
        """The finding as JSON."""
        return {"table": self.table, "event": self.event, "round": self.round, "what": self.what}


@dataclass
class Audit:
    """What was looked at, what does not fit (`findings`), and what an auditor should know all the same (`notes`)."""

    tables: int = 0
    events: int = 0
    rounds: int = 0
    settlements: int = 0
    tile_hands: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)

    def as_dict(self) -> Message:
        """The audit as JSON."""
        data: Message = {
            name: getattr(self, name) for name in ("tables", "events", "rounds", "settlements", "tile_hands")
        }
        data["clean"] = not self.findings
        data["findings"] = [finding.as_dict() for finding in self.findings]
        data["notes"] = [note.as_dict() for note in self.notes]
        return data


def pack_hash(pack: Pack) -> str:
    """What a table tells of its rule pack when it starts (`boot`, field pack_hash)."""
    return str(digest(dumps([[key, pack[key]] for key in sorted(pack.values)]).encode()))


def audit(
    store: Store,
    packs: list[Pack],
    uid: str | None = None,
    progress: Callable[[int], None] = lambda events: None,
) -> Audit:
    """Audit one table or all. `packs` are the rule packs that may have been played; `progress` is told event counts.

    Raises BadInput when a table was played by a pack that is none of `packs`, StoreError when the record is damaged.
    """
    done = Audit()
    store.check_table(uid)
    for table in store.tables() if uid is None else [uid]:
        _TableAudit(store, {pack_hash(pack): pack for pack in packs}, packs[0], table, done, progress).run()
        done.tables += 1
    return done


class _TableAudit:
    """One table's events, in order."""

    def __init__(
        self,
        store: Store,
        packs: Mapping[str, Pack],
        default: Pack,
        uid: str,
        done: Audit,
        progress: Callable[[int], None],
    ) -> None:
        self.store = store
        self.packs = packs
        self.uid = uid
        self.done = done
        self.progress = progress
        self.pack = default
        self.streak: Message | None = _NO_STREAK
        self.bets: list[Any] = []
        self.locked: Message | None = None
        self.round = 0
        self.boot = 0
        self.ticks = 0
        self.utc = ""
        self.event = 0
        # The rounds as the events have them, until their rows have come by.
        self.expected: dict[int, Message] = {}
        self.rows: Iterator[Message] = iter(())
        self.set = 1
        self.rolled_with_set = False
        self.set_tags: str | None = None

    def find(self, what: str, number: int = 0) -> None:
        self.done.findings.append(Finding(self.uid, self.event, number, what))

    def note(self, what: str) -> None:
        self.done.notes.append(Finding(self.uid, self.event, 0, what))

    def run(self) -> None:
        last, link = 0, GENESIS
        pruned = self.store.pruned_end(self.uid)
        if pruned is not None:
            last, link, known = pruned
            self._go_on(known["state"])
            self._told_pack(known["boot"])
            self.event = last
            self.note(_("the events up to this one were removed by `record prune`"))
            for told in self.store.dice_sets(self.uid):
                if told["event"] <= last:
                    self.set, self.set_tags, self.rolled_with_set = told["dice_set"], told["tags"], True
        self.rows = self.store.stream_rows(Search(uid=self.uid))
        for row in self.store.stream_events(self.uid, raw=True):
            self.done.events += 1
            if self.done.events % 1000 == 0:
                self.progress(1000)
            self.event = row["id"]
            restarted = row["kind"] == "restart"
            if row["id"] != last + 1:
                gap = _("the events {first} to {last} are missing").format(first=last + 1, last=row["id"] - 1)
                if restarted:
                    self.note(gap + _(": the table's journal was begun anew"))
                elif last == 0:
                    self.note(gap + _(": the table no longer had them when this record was begun"))
                    self.streak = None
                else:
                    self.find(gap)
                    self.streak = None
            follows = row["id"] == last + 1 or restarted
            if follows and chain(GENESIS if restarted else link, row["body"]) != row["link"]:
                self.find(_("its hash does not follow from the event before it: one of the two was changed"))
            last, link = row["id"], row["link"]
            self._one(row)
        self.event = 0
        self._compare_rows(SEQ_MAX + 1)
        for row in self.rows:
            self._unexpected(row)

    def _one(self, row: Message) -> None:
        try:
            record = json.loads(row["body"])
            data = record["d"]
            columns = (row["id"], row["kind"], row["boot"], row["ticks"], row["round"])
            if columns != (record["id"], record["k"], record["b"], record["t"], data.get("round")):
                self.find(_("what is stored beside the event differs from the event itself"))
            self._order(record["b"], record["t"], row["utc"])
            check = getattr(self, "_on_" + str(record["k"]), None)
            if check is not None:
                check(data)
        except BadInput:
            # A rule pack that is not known: nothing can be said of what was settled by it.
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            self.find(_("it is not as an event should be ({error})").format(error=repr(error)))

    def _order(self, boot: int, ticks: int, utc: str) -> None:
        if (boot, ticks) < (self.boot, self.ticks):
            self.find(_("it is older than the event before it by the table's own clock"))
        if utc < self.utc:
            self.note(_("the computer's clock was put back before it"))
        self.boot, self.ticks, self.utc = boot, ticks, utc

    # -- by kind ---------------------------------------------------------------------------------------------------

    def _on_boot(self, data: Message) -> None:
        self._told_pack(data)
        if data.get("dice_set"):
            self._on_dice(data["dice_set"])

    def _told_pack(self, data: Message) -> None:
        told = data.get("pack_hash")
        if told is None:
            return
        if told not in self.packs:
            raise BadInput(
                _(
                    "table {uid} played by a rule pack that is not known here (hash {hash}); give its file with --pack"
                ).format(uid=self.uid, hash=show(told))
            )
        self.pack = self.packs[told]

    def _on_restart(self, data: Message) -> None:
        state = data["state"]
        going_on = state["round"] if state["phase"] != "IDLE" else 0
        for number, expected in self.expected.items():
            if expected["status"] == "open" and number != going_on:
                expected["status"] = "void"
        self._go_on(state)

    def _go_on(self, state: Message) -> None:
        self.streak = state["streak"]
        self.bets = state["bets"]
        self.round = state["round"]
        self.locked = state["locked"]
        if self.locked is not None:
            self.locked = dict(self.locked, shaker=state["shaker"])

    def _on_opened(self, data: Message) -> None:
        number = data["round"]
        if number <= self.round:
            self.find(_("it opens a round that is not after round {last}").format(last=self.round), number)
        self._compare_rows(number)
        self.round = number
        self.bets, self.locked = [], None
        self._expect(number, status="open", shaker=data["shaker"], voids=0)

    def _on_closed(self, data: Message) -> None:
        self.bets = data["bets"]
        self._check_bonuses(data["round"])

    def _on_bets(self, data: Message) -> None:
        self.bets = data["bets"]

    def _on_locked(self, data: Message) -> None:
        if self.locked is not None:
            self.find(_("it is the second result of this round"), data["round"])
        if not all(type(die) is int and 1 <= die <= 6 for die in data["dice"]) or data["eye"] not in (0, 1, 2):
            self.find(_("no dice show {dice}").format(dice=show(data["dice"])), data["round"])
        self.bets = data["bets"]
        self.locked = data

    def _on_void(self, data: Message) -> None:
        expected = self._expect(data["round"])
        expected["voids"] += 1
        if data["over"]:
            expected["status"] = "void"
            self.bets, self.locked = [], None

    def _on_streak(self, data: Message) -> None:
        after = data["streak"]
        if data["why"].startswith(DICE_CHANGED):
            self._dice_changed(None)
        if self.streak is not None and self.round:
            parts = dict(map(tuple, self.streak["parts"]))
            fits = after["count"] in (0, self.streak["count"]) and all(
                position in parts and stake <= parts[position] for position, stake in after["parts"]
            )
            if not fits:
                self.find(_("the streak it tells of cannot come from the one before it"))
        self.streak = after

    def _on_dice(self, data: Message) -> None:
        if data.get("hash") != self.set_tags or self.set_tags is None:
            self._dice_changed(data.get("hash"))

    def _dice_changed(self, tags: str | None) -> None:
        if self.rolled_with_set:
            self.set += 1
            self.rolled_with_set = False
        self.set_tags = tags

    def _on_settled(self, data: Message) -> None:
        number = data["round"]
        self.done.settlements += 1
        if self.locked is None:
            self.find(_("it settles a round that has no locked result"), number)
        else:
            for key in ("dice", "eye", "shaker", "shakes", "manual"):
                if data[key] != self.locked[key]:
                    self.find(
                        _("{key} is {told}; the locked result has {locked}").format(
                            key=key, told=show(data[key]), locked=show(self.locked[key])
                        ),
                        number,
                    )
        self._check_bonuses(number)
        roll = tuple(data["dice"])
        rows = settlement.settle(self.bets, roll, data["eye"], data["shaker"], data["before"], self.pack)
        for what, told, ours in (
            (_("the wagers"), sorted(tuple(row) for row in data["rows"]), rows),
            (_("the players' net"), data["net"], settlement.net(rows)),
            (_("the total"), data["total"], sum(roll)),
        ):
            if told != ours:
                self.find(
                    _("{what}: {told} is recorded, {ours} is right").format(
                        what=what, told=show(told), ours=show(ours)
                    ),
                    number,
                )
        self._check_streak(data, roll, number)
        expected = self._expect(number)
        expected.update(status="settled", shaker=data["shaker"], dice_set=self.set, result=data)
        expected["manual"] = data["manual"]
        self.rolled_with_set = True
        self.bets, self.locked = [], None

    # -- the streak ------------------------------------------------------------------------------------------------

    def _check_bonuses(self, number: int) -> None:
        """(f): while a streak runs, only who has a part may have a bonus down, and as much as the part."""
        if self.streak is None or not self.streak["count"]:
            return
        held = [[position, stakes["bonus"]] for position, stakes in self.bets if "bonus" in stakes]
        if sorted(held) != sorted(self.streak["parts"]):
            self.find(_("the bonus wagers are not those of the running streak"), number)

    def _check_streak(self, data: Message, roll: Any, number: int) -> None:
        triple = roll in settlement.TRIPLES
        place = settlement.rung(data["before"], self.pack["after_third"]) if triple else None
        level = 0 if place is None else place + 1
        before = self.streak
        if before is not None and data["before"] != before["count"]:
            self.find(
                _("it counts {told} triples before it; there were {ours}").format(
                    told=data["before"], ours=before["count"]
                ),
                number,
            )
        if data["level"] != level:
            self.find(
                _("bonus level {told} is recorded, {ours} is right").format(told=data["level"], ours=level), number
            )
        if not triple:
            after: Message | None = _NO_STREAK
        elif data["before"] == 0:
            parts = [[position, stakes["bonus"]] for position, stakes in self.bets if "bonus" in stakes]
            after = {"count": 1, "parts": parts, "gone": []}
        else:
            after = None if before is None else dict(before, count=before["count"] + 1)
        if after is not None and data["streak"] != after:
            self.find(_("the streak after it does not follow from the roll"), number)
        self.streak = data["streak"]

    # -- the rows of the rounds ------------------------------------------------------------------------------------

    def _expect(self, number: int, **known: Any) -> Message:
        """What the row of a round must be, by the events so far."""
        if number not in self.expected:
            self.expected[number] = {"status": "open", "shaker": 0, "voids": 0, "result": None, "manual": None}
        self.expected[number].update(known)
        return self.expected[number]

    def _compare_rows(self, before: int) -> None:
        """Compare the rows of all rounds whose number is below `before` with what the events say."""
        for number in sorted(one for one in self.expected if one < before):
            expected = self.expected.pop(number)
            row: Message | None
            while (row := next(self.rows, None)) is not None and row["number"] < number:
                self._unexpected(row)
            if row is None or row["number"] != number:
                self.find(_("the round has no row in the record"), number)
                if row is not None:
                    self.rows = _put_back(row, self.rows)
                continue
            self.done.rounds += 1
            if expected["status"] == "open" and row["status"] == "void":
                # A round that was left open is void once the table's journal is begun anew.
                expected["status"] = "void"
            self._compare(row, expected, number)

    def _unexpected(self, row: Message) -> None:
        self.find(_("the round has a row in the record and no event"), row["number"])

    def _compare(self, row: Message, expected: Message, number: int) -> None:
        result = expected["result"]
        for key in ("dice", "eye", "total", "net"):
            expected[key] = None if result is None else result[key]
        if result is not None:
            expected["dice"] = " ".join(map(str, result["dice"]))
        try:
            told = dict(row, **{key: json.loads(row[key]) for key in ("result", "tiles") if row[key] is not None})
        except ValueError:
            self.find(_("the round's row is damaged"), number)
            return
        for key in expected:
            if told[key] != expected[key]:
                self.find(
                    _("the round's row: {key} is {row}; its events say {events}").format(
                        key=key, row=show(told[key]), events=show(expected[key])
                    ),
                    number,
                )
        if told["tiles"] is not None:
            self._check_tiles(told["tiles"], result, number)

    def _check_tiles(self, hands: Message, result: Message | None, number: int) -> None:
        """Settle the tile hands again, and deal the seats by the total."""
        try:
            self.done.tile_hands += len(hands["players"])
            if result is not None:
                order = seating.order_of_pack(result["total"], self.pack)
                action = seating.hands_in_play(order, [player["position"] + 1 for player in hands["players"]]).action
                # Older records name the positions without a bet in the action too.
                actions = ([*action], [*order.action])
                if (hands["start"], hands["deal"]) != (order.start, [*order.deal]) or hands["action"] not in actions:
                    self.find(_("the deal is not the one that the dice total gives"), number)
            if not hands["players"]:
                return
            bank = _hands(hands["bank"], self.pack)
            for player in hands["players"]:
                settled = tiles.settle(_hands(player, self.pack), bank, player["stake"], self.pack)
                ours = {"result": settled.result, "net": settled.net, "commission": settled.commission}
                if any(player[key] != ours[key] for key in ours):
                    self.find(
                        _("the tile hand of position {position}: {told} is recorded, {ours} is right").format(
                            position=player["position"],
                            told=show({key: player[key] for key in ours}),
                            ours=show(ours),
                        ),
                        number,
                    )
        except (BadInput, KeyError, TypeError, ValueError) as error:
            self.find(_("its tile hands cannot be settled ({error})").format(error=error), number)


def _put_back(row: Message, rows: Iterator[Message]) -> Iterator[Message]:
    yield row
    yield from rows


def _hands(told: Message, pack: Pack) -> tiles.Hands:
    return tiles.parse_hands({"high": told["high"], "low": told["low"]}, "", pack["zero_rule"])
