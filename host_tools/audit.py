"""Everything in a record checked against everything else: ids, hashes, tags, streaks, settlements, rounds, tile hands.

The checker reads a table's events once, in order. It has its own settlement (host_tools.rules.settlement) and its own
view of the streak; what it finds names the event or the round that does not fit what stands before it.

Hashes can be made anew by who rewrites the record; tags cannot without the table's journal key. A tag is over a hash
that covers every event before it, so one that fits proves all of them, tagged or not. Nothing in a record proves that
it was not put back, as a whole, to what it was earlier: for that there are heads that were noted elsewhere, and the
table itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from dragoneye.errors import BadInput
from dragoneye.journal import GENESIS, chain
from dragoneye.keys import Key
from dragoneye.protocol import SEQ_MAX
from dragoneye.rules.packs import Pack
from dragoneye.text import show
from host_tools import contested, corrections, keys
from host_tools.i18n import _
from host_tools.link import Link
from host_tools.rules import seating, settlement, tiles
from host_tools.store import DICE_CHANGED, KEPT_DAYS, Message, Search, Store, StoreError

# The journal keys of tables: by unique id and the key's name, which the table tells.
Keys = Mapping[str, Mapping[str, Key]]
# The name of a key that the table did not tell.
UNKNOWN = "?"

# Seconds within which an event and the row that it began were stored.
_SAME_S = 60.0

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
class Proof:
    """What the tags of a table's events prove.

    `tagged` events have one, `fits` of them one that a key here gives, `proved` is the last of those before anything
    that breaks the chain (0: none): it and all events from `since` on are as the table wrote them. What the first event
    says is not proved where the hash before it is not here: `since` is the one after it then. `missing` counts the tags
    that no key here is for, by the key's name. `head` is where the record ends: "event:hash".
    """

    table: str
    tagged: int = 0
    fits: int = 0
    proved: int = 0
    since: int = 1
    missing: dict[str, int] = field(default_factory=dict)
    keys: int = 0
    head: str = ""

    def as_dict(self) -> Message:
        """The proof as JSON."""
        return asdict(self)


@dataclass
class Audit:
    """What was looked at, what does not fit (`findings`), and what an auditor should know all the same (`notes`)."""

    tables: int = 0
    events: int = 0
    rounds: int = 0
    settlements: int = 0
    tile_hands: int = 0
    corrections: int = 0
    proofs: list[Proof] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)

    def as_dict(self) -> Message:
        """The audit as JSON."""
        data: Message = {
            name: getattr(self, name)
            for name in ("tables", "events", "rounds", "settlements", "tile_hands", "corrections")
        }
        data["proofs"] = [proof.as_dict() for proof in self.proofs]
        data["clean"] = not self.findings
        data["findings"] = [finding.as_dict() for finding in self.findings]
        data["notes"] = [note.as_dict() for note in self.notes]
        return data


def audit(
    store: Store,
    packs: list[Pack],
    uid: str | None = None,
    progress: Callable[[int], None] = lambda events: None,
    held: Keys = MappingProxyType({}),
) -> Audit:
    """Audit one table or all. `packs` are the rule packs that may have been played; `progress` is told event counts,
    `held` are the journal keys that are here.

    Raises BadInput when a table was played by a pack that is none of `packs`, StoreError when the record is damaged.
    """
    done = Audit()
    store.check_sound()
    for what in store.changed_schema():
        words = _("the database's {what} is not as this program makes it: it was added, changed or removed")
        done.findings.append(Finding("", 0, 0, words.format(what=what)))
    unread = set()
    for table, what in store.wrong_types():
        words = _("{what} is a value of a type that this program does not write; nothing more is read of this table")
        done.findings.append(Finding(table or "", 0, 0, words.format(what=what)))
        unread.add(table)
    if None in unread:
        # Not even which tables there are is told.
        return done
    _find_strays(store, done, uid)
    tables = [table for table in store.tables() if uid in (None, table)]
    if not done.findings:
        store.check_table(uid)
    known = {pack.hash(): pack for pack in packs}
    for pack in packs:
        store.know(pack)
    for table in tables:
        if table not in unread:
            _TableAudit(store, known, packs[0], table, done, progress, held.get(table, {})).run()
        done.tables += 1
    return done


def _find_strays(store: Store, done: Audit, uid: str | None) -> None:
    """Find rows of tables that have no events."""
    kinds: dict[str, list[str]] = {}
    for table, kind in store.strays():
        if uid in (None, table):
            kinds.setdefault(table, []).append(kind)
    for table, names in sorted(kinds.items()):
        head = store.head(table)
        words = _("no event of this table is here, and there are rows of it in {names}: all its events were removed, ")
        words = words.format(names=", ".join(names)) + (
            _("or these rows were added")
            if head is None
            else _("of which {head} was acknowledged at {utc}").format(head=head["head"], utc=head["utc"])
        )
        done.findings.append(Finding(table, 0 if head is None else head["event"], 0, words))


def held_keys(store: Store) -> Keys:
    """The journal keys on this computer of the tables in a record. Raises BadInput when they cannot be read."""
    held = keys.Keys()
    try:
        tables = store.tables()
    except StoreError:
        # Which ones there are cannot be told, and is what the audit finds first.
        return {}
    return {table: held.journal_keys(table) for table in tables}


def check_head(store: Store, done: Audit, uid: str | None, event: int, link: str) -> None:
    """Find that the event `event` of a table is not the one whose hash was noted elsewhere, or is not there any more.

    Without a `uid` it is of the only table. Raises BadInput where there are several, and when the event was removed by
    `record prune` and cannot be checked.
    """
    if uid is None:
        there = sorted({*store.tables(), *(table for table, _kind in store.strays())})
        if len(there) > 1:
            raise BadInput(_("--head: name the table with --table: {tables}").format(tables=", ".join(there)))
        uid = there[0] if there else ""
    stored = store.link(uid, event)
    pruned = store.pruned_end(uid)
    if stored is None and pruned is not None and event <= pruned[0]:
        if event < pruned[0]:
            raise BadInput(
                _("event {event} was removed by `record prune`; give a head from {last} on").format(
                    event=event, last=pruned[0]
                )
            )
        stored = pruned[1]
    last = store.last(uid)[0]
    if stored is None and event > last:
        words = _(
            "the head {event}:{hash} was noted elsewhere, and the record ends at event {last}: its end was cut off"
        )
        done.findings.append(Finding(uid, event, 0, words.format(event=event, hash=link, last=last)))
    elif stored is None:
        words = _("the head {event}:{hash} was noted elsewhere, and this event is not in the record: it was removed")
        done.findings.append(Finding(uid, event, 0, words.format(event=event, hash=link)))
    elif stored != link:
        words = _("its hash is {stored}; {hash} was noted elsewhere: it or something before it was changed")
        done.findings.append(Finding(uid, event, 0, words.format(stored=stored, hash=link)))


def compare(store: Store, done: Audit, wire: Link) -> str:
    """Find where the record differs from the journal of the table at the other end of `wire`; its unique id.

    Nothing is fetched from the table. Raises LinkError, and BadInput when nothing of this table is stored.
    """
    told = wire.hello(0, 0)
    uid = str(told["uid"])
    last = store.last(uid)[0]
    if not last:
        raise BadInput(_("nothing of table {uid} is stored in this record").format(uid=uid))

    def find(words: str, **values: int | str) -> None:
        done.findings.append(Finding(uid, last, 0, words.format(last=last, **values)))

    newest, known = int(told["last_event"]), told.get("known")
    if known and known[0] > last:
        # That so much is stored is true; a table that is told of more than it has would begin its journal anew.
        known = wire.hello(last, 0).get("known")
    acked = int(wire.request("stats")["acked"])
    if not known:
        find(_("the table's journal cannot be read: it was not compared"))
    elif known[0] < last:
        if store.link(uid, known[0]) not in (None, known[1]):
            find(_("the table's own event {known} is another one"), known=known[0])
        find(
            _("the table's own journal ends at event {known}: what follows here was added, or its flash was lost"),
            known=known[0],
        )
    elif known[0] == last and store.link(uid, last) != known[1]:
        find(_("the table's own event {last} is another one: this record was changed, or is another table's"))
    elif acked > last:
        find(
            _(
                "the table was told that its events up to {acked} are stored: the end was cut off, or another database "
                "has it"
            ),
            acked=acked,
        )
    elif known[0] != last:
        find(_("the table no longer has this event: it was not compared"))
    elif newest > last:
        words = _("the table has {count} events more, which were not fetched yet").format(count=newest - last)
        done.notes.append(Finding(uid, last, 0, words))
    return uid


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
        keys: Mapping[str, Key],
    ) -> None:
        self.keys = keys
        self.proof = Proof(uid, keys=len(keys))
        # The first event without a tag since the last that has one; whether the last tag did not fit, or could not be
        # checked.
        self.bare = 0
        self.forged = False
        self.unproved = False
        # Whether the chain is broken: later tags fit the hashes that are stored, and prove nothing of what is before.
        self.broken = False
        # What was corrected, by round in order, and what these rounds were settled by.
        self.corrections: dict[int, list[Message]] = {}
        self.settled: dict[int, tuple[int, Message, list[Any], Pack]] = {}
        # Rounds that were settled by a pack that any host knows.
        self.by_known_pack: set[int] = set()
        self.told_hash = ""
        self.notes: list[Finding] = []
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
        # The rule pack of each settled round, and the rounds as the events have them, until their rows have come by.
        self.played_by: dict[int, Pack] = {}
        self.expected: dict[int, Message] = {}
        self.rows: Iterator[Message] = iter(())
        self.set = 1
        self.rolled_with_set = False
        # What events told of each dice set, in order: the rows of the sets are what the last one told.
        self.sets: dict[int, list[Message]] = {}

    def find(self, what: str, number: int = 0) -> None:
        self.done.findings.append(Finding(self.uid, self.event, number, what))

    def note(self, what: str) -> None:
        """What an auditor must know before anything else."""
        self.done.notes.append(Finding(self.uid, self.event, 0, what))

    def remark(self, what: str) -> None:
        """What comes after all such notes."""
        self.notes.append(Finding(self.uid, self.event, 0, what))

    def run(self) -> None:
        first, last, link, tag = 0, 0, GENESIS, None
        pruned = self.store.pruned_end(self.uid)
        if pruned is not None:
            last, link, known = pruned
            try:
                self._go_on(known["state"])
                self._told_pack(known["boot"])
            except BadInput:
                raise
            except (KeyError, TypeError, AttributeError, ValueError):
                what = f"pruning {last}"
                raise StoreError(_("{what} is damaged in the database; restore a copy").format(what=what)) from None
            self._check_prunings()
            self.event = last
            self.note(_("the events up to this one were removed by `record prune`"))
            self._pruned_sets(last)
            self.proof.since = last + 1
        self.done.proofs.append(self.proof)
        for told in self.store.stream_events(self.uid, kinds=("correction",)):
            one = corrections.told_of(told["id"], told["utc"], told["d"])
            self.corrections.setdefault(told["d"]["round"], []).append(one)
        self.rows = self.store.stream_rows(Search(uid=self.uid))
        for row in self.store.stream_events(self.uid, raw=True):
            self.done.events += 1
            if self.done.events % 1000 == 0:
                self.progress(1000)
            self.event = row["id"]
            if row["id"] < 1:
                self.find(_("no table numbers an event so: it was added"))
                continue
            restarted = row["kind"] == "restart"
            if row["id"] != last + 1:
                gap = _("the events {first} to {last} are missing").format(first=last + 1, last=row["id"] - 1)
                if restarted:
                    self.note(gap + _(": the table's journal was begun anew"))
                    if last == 0:
                        self.proof.since = row["id"]
                elif last == 0:
                    words = _(
                        ": the table no longer had them when this record was begun; without them nothing proves what "
                        "this event says"
                    )
                    self.note(gap + words)
                    self.streak = None
                    self.proof.since = row["id"] + 1
                else:
                    self.find(gap)
                    self.streak = None
                    self.broken = True
            follows = row["id"] == last + 1 or restarted
            # What is no text was never stored by this program.
            texts = isinstance(row["body"], str) and isinstance(row["link"], str)
            hangs = texts and chain(GENESIS if restarted else link, row["body"]) == row["link"]
            if not texts or (follows and not hangs):
                self.find(_("its hash does not follow from the event before it: one of the two was changed"))
                self.broken = True
            if restarted:
                self._hangs_on(row, link)
            first = first or row["id"]
            last, link, tag = row["id"], str(row["link"]), row["tag"]
            self._check_tag(row)
            self._one(row)
        self._check_end(last, link, tag)
        self._check_beginning(first)
        self._compare_sets(0 if pruned is None else pruned[0])
        self.event = 0
        self._compare_rows(SEQ_MAX + 1)
        for row in self.rows:
            self._unexpected(row)
        self.done.notes += self.notes

    def _check_beginning(self, first: int) -> None:
        """A record begins where it was begun, or at what the first pruning removed."""
        prunings = self.store.prunings(self.uid)
        if prunings:
            first = prunings[0]["first"]
        self.event = first
        began = self.store.first(self.uid)
        if began is None:
            self.find(_("where the record of this table was begun is not in it: it was removed"))
        elif began[0] != first:
            words = _("the record begins here, and it was begun at {utc} with event {began}: ")
            words += _("its beginning was cut off") if began[0] < first else _("events before that were added")
            self.find(words.format(utc=show(began[1]), began=began[0]))

    def _check_prunings(self) -> None:
        """What `record prune` removes is old enough by its own dates, and each goes on where the one before ended."""
        before = 0
        for told in self.store.prunings(self.uid):
            self.event = told["last"]
            if before and told["first"] != before + 1:
                self.find(_("the row of this pruning begins at event {first}").format(first=told["first"]))
            before = told["last"]
            if not 1 <= told["first"] <= told["last"]:
                words = _("the row of this pruning says that the events {first} to {last} were removed")
                self.find(words.format(first=told["first"], last=told["last"]))
            try:
                kept = datetime.fromisoformat(told["utc"]) - datetime.fromisoformat(told["older_than"])
                old = kept >= timedelta(days=KEPT_DAYS)
            except (TypeError, ValueError):
                old = False
            if not old:
                words = _("the row of this pruning says {utc}, older than {older}: {days} days are to be kept")
                self.find(words.format(utc=show(told["utc"]), older=show(told["older_than"]), days=KEPT_DAYS))

    # -- what the tags prove ---------------------------------------------------------------------------------------

    def _check_tag(self, row: Message) -> None:
        proof, name, tag = self.proof, row["key_id"], row["tag"]
        if tag is None:
            self.bare = self.bare or (row["id"] if proof.tagged else 0)
            return
        proof.tagged += 1
        self.bare = 0
        tried = self.keys.values() if name is None else filter(None, [self.keys.get(name)])
        link = str(row["link"]).encode()
        fits = None
        for key in tried:
            fits = key.mac(link)[:8].hex() == tag
            if fits:
                break
        self.unproved = fits is None
        if fits is None:
            proof.missing[name or UNKNOWN] = proof.missing.get(name or UNKNOWN, 0) + 1
        elif fits:
            proof.fits += 1
            if not self.broken and row["id"] >= proof.since:
                proof.proved = row["id"]
            self.forged = False
        elif not self.forged:
            # All that hang on one that was changed do not fit either.
            self.forged = True
            self.find(
                _(
                    "its tag is not the one that the table's journal key gives: it was not written so by this table; "
                    "the last event that is proved is {proved}"
                ).format(proved=proof.proved or _("none"))
            )

    def _hangs_on(self, row: Message, link: str) -> None:
        """A journal that is begun anew names the hash of the newest event that the host had."""
        try:
            told = json.loads(row["body"])["d"].get("link", "")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return
        if told and told != link:
            self.find(
                _(
                    "the table began its journal anew after the event with the hash {told}, which is not the one "
                    "before it here: events were changed or removed, or another database has them"
                ).format(told=show(told))
            )
            self.broken = True
        elif not told:
            self._bare_end()

    def _bare_end(self) -> None:
        """Nothing that comes any more proves what has no tag."""
        if self.bare:
            event, self.event = self.event, self.bare
            self.find(
                _("from here on no event has a tag, though earlier ones have: tags were removed, or the table's keys")
            )
            self.event = event
        self.bare = 0

    def _check_end(self, last: int, link: str, tag: str | None) -> None:
        proof = self.proof
        if not proof.proved:
            proof.since = 0
        proof.head = f"{last}:{link}"
        self._bare_end()
        if self.keys and not proof.tagged:
            self.find(
                _(
                    "no event has a tag, and a journal key of this table is here: tags were removed, or the table has "
                    "told nothing since it got the key"
                )
            )
        for name, count in sorted(proof.missing.items()):
            # Behind the last that fits, anybody may have written it who says that it was another key.
            tell = self.find if self.keys and self.unproved else self.note
            words = _("{count} tags were not checked: the journal key {key} is not here")
            if name == UNKNOWN:
                words = _("{count} tags were not checked: no journal key of this table is here")
            tell(words.format(count=count, key=name))
        if not proof.tagged:
            self.note(
                _("no event has a tag: the hashes alone are checked, which whoever can write this record can make anew")
            )
        head = self.store.head(self.uid)
        if head is None:
            self.find(_("what was acknowledged to the table last is not in the record: it was removed"))
        elif head["head"] != proof.head or head["tag"] != tag:
            self.find(
                _(
                    "the record ends here, and {head} was acknowledged to the table at {utc}: the end was cut off, "
                    "changed or added to"
                ).format(head=head["head"], utc=head["utc"])
            )
        elif head["utc"] != self.utc:
            words = _("it was acknowledged to the table when it was stored, at {utc}, not at {told}")
            self.find(words.format(utc=show(self.utc), told=show(head["utc"])))

    def _one(self, row: Message) -> None:
        try:
            record = json.loads(row["body"])
            data = record["d"]
            columns = (row["id"], row["kind"], row["boot"], row["ticks"], row["round"])
            if columns != (record["id"], record["k"], record["b"], record["t"], data.get("round")):
                self.find(_("what is stored beside the event differs from the event itself"))
            if record["k"] == "restart":
                # A table whose flash was lost counts its starts anew.
                self.boot = self.ticks = 0
            self._order(record["b"], record["t"], row["utc"])
            check = getattr(self, "_on_" + str(record["k"]), None)
            if check is not None:
                check(data)
        except BadInput:
            # A rule pack that is not known: nothing can be said of what was settled by it.
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
            self.find(_("it is not as an event should be ({error})").format(error=repr(error)))

    def _order(self, boot: int, ticks: int, utc: str) -> None:
        if (boot, ticks) < (self.boot, self.ticks):
            self.find(_("it is older than the event before it by the table's own clock"))
        if utc < self.utc:
            self.remark(_("the computer's clock was put back before it"))
        self.boot, self.ticks, self.utc = boot, ticks, utc

    # -- by kind ---------------------------------------------------------------------------------------------------

    def _on_boot(self, data: Message) -> None:
        if data.get("uid") not in (None, self.uid):
            self.find(_("it is a start of table {uid}: it was taken from there").format(uid=show(data["uid"])))
        self._told_pack(data)
        if data.get("dice_set"):
            self._dice_changed(data["dice_set"])

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
        self.told_hash = told

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
            self._dice_changed(data)
        if self.streak is not None and self.round:
            parts = dict(map(tuple, self.streak["parts"]))
            fits = after["count"] in (0, self.streak["count"]) and all(
                position in parts and stake <= parts[position] for position, stake in after["parts"]
            )
            if not fits:
                self.find(_("the streak it tells of cannot come from the one before it"))
        self.streak = after

    def _on_dice(self, data: Message) -> None:
        self._dice_changed(data)

    def _dice_changed(self, data: Message) -> None:
        """Other dice: another set, once something was rolled with the one before; the same, told again, are none."""
        told = self.sets.get(self.set)
        if "hash" in data and told and told[-1]["tags"] == data["hash"]:
            return
        if not told and not self.rolled_with_set and "hash" not in data:
            return
        self.set += self.rolled_with_set
        self.rolled_with_set = False
        one = {"event": self.event, "since": self.utc, "serial": data.get("serial"), "issued": data.get("issued")}
        self.sets.setdefault(self.set, []).append({**one, "tags": data.get("hash")})

    def _pruned_sets(self, last: int) -> None:
        """The dice sets that were told of up to the event `last`, gone by now: by their rows, which nothing proves."""
        rows = self.store.dice_sets(self.uid, raw=True)
        gone = [row for row in rows if row["event"] <= last]
        for row in gone:
            self.set, self.rolled_with_set = row["dice_set"], True
            self.sets[self.set] = [row]
        if not gone:
            # Of the first set, rolled with or not, nothing was told.
            self.rolled_with_set = not any(row["dice_set"] == 1 for row in rows)

    def _on_correction(self, data: Message) -> None:
        number = data["round"]
        self.done.corrections += 1
        if number > self.round or self.expected.get(number, {"status": ""})["status"] == "open":
            self.find(_("it corrects a round that is not over"), number)
        elif number not in self.settled:
            self.remark(_("it corrects a round that has no result here: nothing follows from it"))
        elif self.settled[number][0] != data["event"]:
            self.find(
                _("it names event {told}; the round was settled by event {settled}").format(
                    told=data["event"], settled=self.settled[number][0]
                ),
                number,
            )
        elif data["what"] == "bets":
            stakes = {wager: stake for wager, stake in data["wagers"].items() if stake}
            try:
                found = contested.refusal(self.store, self.uid, number, data["position"], stakes, self.event)
            except StoreError:
                # What it hangs on is damaged, and found where it stands.
                found = None
            if found is not None:
                code, why = found
                words = _("it gives position {position} in round {number} wagers that the table would have refused: ")
                self.note(words.format(position=data["position"], number=number) + f"{why} ({code})")

    def _corrected(self, number: int) -> Message | None:
        """What the corrections of a round make of it, by the rules of this auditor."""
        told = self.corrections.get(number)
        if told is None or number not in self.settled:
            return None
        _event, result, bets, pack = self.settled[number]
        dice, stakes, void = result["dice"], dict(map(tuple, bets)), False
        for one in told:
            void = one["what"] == "void"
            if one["what"] == "dice":
                dice = one["dice"]
            elif one["what"] == "bets":
                stakes[one["position"]] = one["wagers"]
        if void:
            return {"void": True, "result": dict(result, rows=[], net=0), "told": told}
        rows = settlement.settle(
            sorted(stakes.items()), tuple(dice), result["eye"], result["shaker"], result["before"], pack
        )
        changed = {"dice": dice, "total": sum(dice), "rows": [*map(list, rows)], "net": settlement.net(rows)}
        return {"void": False, "result": dict(result, **changed), "told": told}

    def _on_settled(self, data: Message) -> None:
        number = data["round"]
        if number in self.corrections and number not in self.settled:
            self.settled[number] = (self.event, data, self.bets, self.pack)
            if self.told_hash in corrections.known_packs():
                self.by_known_pack.add(number)
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
        # Its tile hands are by the same rules, whatever the table plays by when their row comes by.
        self.played_by[number] = self.pack
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

    def _compare_sets(self, removed: int) -> None:
        """Compare the rows of the dice sets with the events that told of them; those up to `removed` are gone."""
        rows = {row["dice_set"]: row for row in self.store.dice_sets(self.uid, raw=True)}
        # Only the first one may have no row.
        for number in sorted({*rows, *self.sets, *range(2, self.set + 1)}):
            told, row = self.sets.get(number), rows.get(number)
            if row is None:
                self.event = told[-1]["event"] if told else 0
                self.find(_("dice set {number} has no row in the record").format(number=number))
                continue
            self.event = row["event"]
            if told is None or number < 1 or row["event"] < 1:
                self.find(
                    _("no event tells of dice set {number}, and it has a row in the record").format(number=number)
                )
                continue
            # An earlier version left what was told first, where dice were changed twice without a roll.
            fits = told if all(one["tags"] is None for one in told) else told[-1:]
            keys = ("event", "serial", "issued", "tags")
            if not any(
                [row[key] for key in keys] == [one[key] for key in keys] and _together(row["since"], one["since"])
                for one in fits
            ):
                self.find(_("the row of dice set {number} is not what this event tells").format(number=number))

    def _expect(self, number: int, **known: Any) -> Message:
        """What the row of a round must be, by the events so far."""
        if number not in self.expected:
            self.expected[number] = {"status": "open", "shaker": 0, "voids": 0, "result": None, "manual": None}
            self.expected[number].update(event=self.event, utc=self.utc, dice_set=self.set)
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
        pack = self.played_by.pop(number, self.pack)
        for key in ("dice", "eye", "total", "net"):
            expected[key] = None if result is None else result[key]
        if result is not None:
            expected["dice"] = " ".join(map(str, result["dice"]))
        parsed = ("result", "tiles", "corrected")
        try:
            told = dict(row, **{key: json.loads(row[key]) for key in parsed if row[key] is not None})
            expected["corrected"] = corrected = self._corrected(number)
            if corrected and told["corrected"] and told["corrected"]["result"] is None:
                if not corrected["void"] and number not in self.by_known_pack:
                    # A house's own pack, which was not known where it was stored.
                    corrected["result"] = None
                    self.remark(_("round {number} is corrected, and was not settled anew").format(number=number))
            elif corrected and told["corrected"]:
                told["corrected"]["result"]["rows"].sort()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.find(_("the round's row is damaged"), number)
            return
        if row["utc"] != expected["utc"] and _together(row["utc"], expected["utc"]):
            expected["utc"] = row["utc"]
        for key in expected:
            if not _same(told[key], expected[key]):
                self.find(
                    _("the round's row: {key} is {row}; its events say {events}").format(
                        key=key, row=show(told[key]), events=show(expected[key])
                    ),
                    number,
                )
        if told["tiles"] is not None and result is None:
            self.find(_("the round has tile hands and no result: they are dealt by its total"), number)
        elif told["tiles"] is not None:
            self._check_tiles(told["tiles"], result, number, pack)

    def _check_tiles(self, hands: Message, result: Message | None, number: int, pack: Pack) -> None:
        """Settle the tile hands again, and deal the seats by the recorded total or one that it was corrected to."""
        try:
            self.done.tile_hands += len(hands["players"])
            if result is not None:
                total: Any = hands.get("total", result["total"])
                corrected = [sum(one["dice"]) for one in self.corrections.get(number, ()) if one["what"] == "dice"]
                if total not in (result["total"], *corrected):
                    self.find(
                        _("the tile hands were dealt by the total {total}, which the dice never had").format(
                            total=show(total)
                        ),
                        number,
                    )
                    return
                order = seating.order_of_pack(total, pack)
                action = seating.hands_in_play(order, [player["position"] + 1 for player in hands["players"]]).action
                # Older records name the positions without a bet in the action too.
                actions = ([*action], [*order.action])
                if (hands["start"], hands["deal"]) != (order.start, [*order.deal]) or hands["action"] not in actions:
                    self.find(_("the deal is not the one that the dice total gives"), number)
            if not hands["players"]:
                return
            bank = _hands(hands["bank"], pack)
            for player in hands["players"]:
                settled = tiles.settle(_hands(player, pack), bank, player["stake"], pack)
                ours = {"result": settled.result, "net": settled.net, "commission": settled.commission}
                if not _same({key: player[key] for key in ours}, ours):
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


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same as JSON: 0, 0.0 and false are not."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _together(one: str, other: str) -> bool:
    """Whether two times are of the same moment: earlier versions gave a round its own, read after its event's."""
    try:
        return abs((datetime.fromisoformat(one) - datetime.fromisoformat(other)).total_seconds()) < _SAME_S
    except (ValueError, TypeError):
        return False


def _put_back(row: Message, rows: Iterator[Message]) -> Iterator[Message]:
    yield row
    yield from rows


def _hands(told: Message, pack: Pack) -> tiles.Hands:
    return tiles.parse_hands({"high": told["high"], "low": told["low"]}, "", pack["zero_rule"])
