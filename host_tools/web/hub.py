"""One thread owns the table: it keeps the record, comes back after a pulled cable, and tells others what is there.

Whoever wants something of the table hands over a function; it is called in that thread, between two looks at the port.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from dragoneye.errors import BadInput
from dragoneye.protocol import IDLE, SETTLED
from dragoneye.rules.packs import NAMES, Pack, load
from host_tools.device import Device
from host_tools.drift import Warned, Watch
from host_tools.i18n import _
from host_tools.link import LinkError, SerialTransport, Transport
from host_tools.store import Search, Store, StoreError, utc_now

Message = dict[str, Any]
T = TypeVar("T")

ROLLS = 20
_POLL_S = 0.02
_AGAIN_S = 0.5
# How long a record that somebody has locked may hold up the table's thread.
PATIENCE_S = 1.0
# How long a record that cannot be written is left alone; the table sends what is not acknowledged every second.
_PAUSE_S = 0.5


@dataclass(frozen=True)
class Snapshot:
    """What is known of the table at one moment.

    `linked` is whether it answers, `trouble` why not or what else is wrong, `record_trouble` why its record cannot be
    written; `table` is its hello, `state` its live state, `rounds` the newest stored rounds, oldest first: a void one
    has "down", what each position had down, [[position, {wager: cents}], ...], or None where that is not known.
    `drift` is the warning that the dice on the table drift from fair; `ahead` the record's latest moment (UTC as
    stored) where that was later than this computer's time.
    """

    linked: bool = False
    trouble: str = ""
    record_trouble: str = ""
    table: Message = field(default_factory=dict)
    state: Message = field(default_factory=dict)
    pack: Pack | None = None
    rounds: tuple[Message, ...] = ()
    drift: Warned | None = None
    ahead: str = ""

    def round(self) -> Message | None:
        """The stored round that the live state is of."""
        for one in reversed(self.rounds):
            if one["round"] == self.state.get("round"):
                return one
        return None


class NotLinked(BadInput):
    """Nothing was asked: the table does not answer."""


class Unknown(BadInput):
    """The connection broke: it is not known whether it was done."""


class Recorder:
    """A store that refuses softly: what it cannot write is not acknowledged, and the table sends it again.

    `trouble` says why, until the last record that was refused is stored.
    """

    def __init__(self, store: Store, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._now = now
        self._refused = 0
        self._again = now()
        self.last = store.last
        self.history = store.history
        self.link = store.link
        self.trouble = ""

    def take(self, uid: str, record: Message, link: str, first_event: int, tag: str = "") -> bool:
        """As Store.take; False, and `trouble` says why, where that raises."""
        known = int(record["id"]) if isinstance(record.get("id"), int) else 0
        if self._now() < self._again:
            # A store that does not get on takes its time to say so: not once more for each record of a burst.
            self._refused = max(self._refused, known)
            return False
        try:
            taken = self._store.take(uid, record, link, first_event, tag)
        except StoreError as error:
            self.trouble = str(error)
            self._refused = max(self._refused, known)
            self._again = self._now() + _PAUSE_S
            return False
        if taken and known >= self._refused:
            self._fine()
        return taken

    def greeted(self, uid: str, last_event: int) -> None:
        """The table's last event is `last_event`: one that was refused and that it has no more is not waited for."""
        self._refused = min(self._refused, last_event)
        if self._refused and self.last(uid)[0] >= self._refused:
            self._fine()

    def _fine(self) -> None:
        self.trouble = ""
        self._refused = 0


class Hub:
    """The table on `port`, its record in `store`; `pack` names the rules where the table's own are not built in.

    `tell(snapshot)` is called in the hub's thread whenever something changed.
    """

    def __init__(
        self,
        port: str,
        store: Store,
        pack: Pack | None = None,
        open_transport: Callable[[str], Transport] = SerialTransport,
    ) -> None:
        self.port = port
        self.store = store
        self.tell: Callable[[Snapshot], None] = lambda snapshot: None
        self.snapshot = Snapshot()
        self._given = pack
        self._open = open_transport
        self._recorder = Recorder(store)
        # Why the record could not be read; it is tried again until it can.
        self._unread = ""
        self._look_at = 0.0
        if pack is not None:
            store.know(pack)
        self._device: Device | None = None
        self._jobs: queue.SimpleQueue[tuple[Callable[[Device], Any], Context, Future[Any]] | None] = queue.SimpleQueue()
        self._ending = threading.Event()
        self._again = threading.Event()
        # The dice set on the table that is watched, and the last round of it that was looked at.
        self._set: tuple[str, int] = ("", 0)
        self._watch_of_set = Watch()
        self._watched = 0
        self._corrected: set[int] = set()
        # What each position had down in the last rounds: while bets are open the record does not say it.
        self._down: dict[tuple[str, int], list[Any] | None] = {}
        self._thread = threading.Thread(target=self._run, name="table", daemon=True)

    def start(self) -> None:
        """Connect and begin. Raises LinkError when the table cannot be had, StoreError when the record cannot."""
        self._connect()
        self._thread.start()

    def stop(self) -> None:
        """Give the port back."""
        self._ending.set()
        self._jobs.put(None)
        if self._thread.is_alive():
            self._thread.join()
        if self._device is not None:
            self._device.close()
            self._device = None

    def ask(self, do: Callable[[Device], T]) -> Future[T]:
        """`do(device)` in the hub's thread, in the caller's language.

        The future raises what it raises, NotLinked when the table does not answer, Unknown when it broke off.
        """
        future: Future[T] = Future()
        if self._ending.is_set():
            future.set_exception(NotLinked(_("the server is ending")))
            return future
        self._jobs.put((do, copy_context(), future))
        return future

    def look_again(self) -> None:
        """What was stored beside the rounds has changed."""
        self._again.set()

    # -- in the thread ---------------------------------------------------------------------------------------------

    def _say(self, **changes: Any) -> None:
        snapshot = replace(self.snapshot, record_trouble=self._recorder.trouble or self._unread, **changes)
        if snapshot != self.snapshot:
            self.snapshot = snapshot
            self.tell(snapshot)

    def _newest(self, uid: str) -> Message:
        """What of a snapshot is made of the record."""
        # One more than is shown: the newest may not be over.
        rounds = tuple(self.store.rounds(uid, last=ROLLS + 1))
        rounds = tuple({**one, "down": self._put_down(uid, one)} if one["status"] == "void" else one for one in rounds)
        rolled = [one for one in rounds if one["status"] == "settled"]
        if rolled:
            self._judge(uid, rolled)
        latest = self.store.latest(uid)
        ahead = latest if latest > utc_now() else ""
        return {"rounds": rounds, "drift": self._watch_of_set.warned, "ahead": ahead}

    def _put_down(self, uid: str, one: Message) -> list[Any] | None:
        place = uid, int(one["round"])
        if place not in self._down:
            found = self.store.down(*place)
            self._down[place] = None if found is None else [list(row) for row in sorted(found.items())]
        return self._down[place]

    def _note_down(self, uid: str, state: Message) -> None:
        """Keep in mind what is down in the round that is open."""
        if state["state"] not in (IDLE, SETTLED) and (state["bets_open"] or state["bets"]):
            self._down[uid, int(state["round"])] = list(state["bets"])
            while len(self._down) > 2 * ROLLS:
                del self._down[next(iter(self._down))]

    def _judge(self, uid: str, rolled: list[Message]) -> None:
        """Let the drift watch see the newest rolls, or all of another set, or where some were missed or corrected."""
        dice_set = (uid, rolled[-1]["dice_set"])
        corrected = {one["round"] for one in rolled if one.get("corrected")}
        if dice_set != self._set or rolled[0]["round"] > self._watched or corrected - self._corrected:
            self._corrected |= corrected
            watch, seen = Watch(), 0
            for roll in self.store.rolls(Search(uid=uid, dice_set=dice_set[1])):
                seen = max(seen, roll.number)
                if roll.manual is None:
                    watch.add([int(face) for face in roll.dice.split()], roll.number)
            self._set, self._watch_of_set, self._watched = dice_set, watch, seen
        for one in rolled:
            if one["round"] > self._watched:
                self._watched = one["round"]
                if one["result"]["manual"] is None:
                    self._watch_of_set.add(one["result"]["dice"], one["round"])

    def _watch(self, kind: str, data: Message) -> None:
        if kind == "state":
            if self._device is not None:
                self._note_down(self._device.uid, data)
            self._say(state=dict(data))
        elif self._device is not None:
            self._look(self._device.uid)

    def _look(self, uid: str) -> None:
        try:
            newest = self._newest(uid)
        except StoreError as error:
            self._unread = str(error)
            self._look_at = time.monotonic() + _AGAIN_S
            self._say()
        else:
            self._unread = ""
            self._say(**newest)

    def _connect(self) -> None:
        device = Device(self.port, self._recorder, self._watch, self._open)
        try:
            pack = self._pack_of(str(device.table.get("pack")))
            newest = self._newest(device.uid)
            self._recorder.greeted(device.uid, int(device.table["last_event"]))
        except BaseException:
            device.close()
            raise
        self._device = device
        self._note_down(device.uid, device.state)
        self._unread = ""
        self._say(linked=True, trouble="", table=device.table, state=dict(device.state), pack=pack, **newest)

    def _pack_of(self, name: str) -> Pack:
        if self._given is not None and self._given.name == name:
            return self._given
        if self._given is None and name in NAMES:
            found: Pack = load(name)
            return found
        raise LinkError(_("the table plays by the rule pack {theirs}; give --pack {theirs}").format(theirs=name))

    def _lost(self, error: Exception) -> None:
        device, self._device = self._device, None
        if device is not None:
            device.close()
        if isinstance(error, StoreError):
            self._unread = str(error)
        self._say(linked=False, trouble=str(error))

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                if self._device is None:
                    self._connect()
                    continue
                self._device.poll(_POLL_S)
                if self._again.is_set() or (self._unread and time.monotonic() >= self._look_at):
                    self._again.clear()
                    self._look(self._device.uid)
                self._say()
                self._work(self._device)
            except (LinkError, StoreError) as error:
                self._lost(error)
                self._refuse_for(_AGAIN_S)
            except Exception as error:
                # Nobody else would look after the table: say it, and begin again.
                traceback.print_exc(file=sys.stderr)
                self._lost(error)
                self._refuse_for(_AGAIN_S)
        self._refuse_for(0.0)

    def _work(self, device: Device) -> None:
        """Do what was asked for meanwhile."""
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            if job is None:
                return
            do, context, future = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(context.run(do, device))
            except LinkError as error:
                future.set_exception(Unknown(str(error)))
                raise
            except BadInput as error:
                future.set_exception(error)
            except Exception as error:
                future.set_exception(error)
                raise

    def _refuse_for(self, seconds: float) -> None:
        """Refuse what is asked for while the table does not answer."""
        try:
            job = self._jobs.get(timeout=seconds) if seconds else self._jobs.get_nowait()
        except queue.Empty:
            return
        while job is not None:
            _do, _context, future = job
            if future.set_running_or_notify_cancel():
                future.set_exception(NotLinked(self.snapshot.trouble))
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
