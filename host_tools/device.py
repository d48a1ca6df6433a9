"""One table on a port: hello, requests, its events into a store, its live state, and coming back after a break."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, Protocol

from dragoneye import protocol
from host_tools import faults
from host_tools.i18n import _
from host_tools.keys import RING
from host_tools.link import Link, LinkClosed, LinkError, Message, SerialTransport, SessionLost, Signer, Transport


def called(told: Message) -> str:
    """A table as people know it, by what its hello or its record `boot` tells: its name, if it has one, and its id."""
    uid, name = str(told.get("uid", "")), name_of(told)
    return f"{name} ({uid})" if name else uid


def name_of(told: Message) -> str:
    """A table's name, empty when it has none, without what a terminal would obey."""
    return "".join(letter for letter in str(told.get("name") or "") if letter.isprintable())


class Sink(Protocol):
    """Where events go. See host_tools.store.Store."""

    def last(self, uid: str) -> tuple[int, int]:
        """The highest event id and round number stored for the table."""

    def history(self, uid: str) -> Message:
        """What hello tells of the table's stored history."""

    def link(self, uid: str, record_id: int) -> str | None:
        """The chain hash of one stored record, None when it is not stored."""

    def take(self, uid: str, record: Message, link: str, first_event: int, tag: str = "") -> bool:
        """Make one record durable; False when it does not follow the last one yet."""


class Device:
    """A table that answers on `port`; `open_transport` is how a port is opened, `signer` who signs requests.

    `watch(kind, data)` is told every new record and ("state", view) for every live state.
    """

    def __init__(
        self,
        port: str,
        sink: Sink,
        watch: Callable[[str, Message], None] = lambda kind, data: None,
        open_transport: Callable[[str], Transport] = SerialTransport,
        signer: Signer = RING,
    ) -> None:
        self.port = port
        self.sink = sink
        self.state: Message = {}
        self._watch = watch
        self._open = open_transport
        self._signer = signer
        self._uid = ""
        self._first_event = 1
        self._told = 0
        self._link = self._connect()

    @property
    def table(self) -> Message:
        """What the table's hello said."""
        return self._link.table

    @property
    def uid(self) -> str:
        """The table's unique id."""
        return self._uid

    @property
    def counters(self) -> dict[str, int]:
        """The link's counters of frames, noise, retries and events."""
        return self._link.counters

    def _connect(self) -> Link:
        link = Link(self._open(self.port), self._take, self._see, self._signer)
        try:
            self._greet(link)
        except BaseException:
            link.close()
            raise
        return link

    def _greet(self, link: Link) -> None:
        # Who it is must be known before it can be told what is stored of it: a first hello asks, a second one tells.
        self._uid = ""
        told = link.hello(0, 0)
        uid = told.get("uid")
        if not isinstance(uid, str) or not uid:
            raise LinkError(_("{port}: what answers has no unique id; it is not a table").format(port=self.port))
        history = self.sink.history(uid)
        # Ids that the table has used up since its flash was lost are not used again.
        history["last_event"] = max(history["last_event"], self._check(link, uid, told))
        told = link.hello(keeps=True, **history)
        self._uid = uid
        self._told = history["last_event"]
        self._first_event = int(told.get("first_event", 1))
        self.state = link.request("status")

    def _same(self, uid: str, known: list[Any]) -> bool:
        """Whether the record that the table names by id and hash is the one that is stored here, or none is."""
        return self.sink.link(uid, int(known[0])) in (None, known[1])

    def _check(self, link: Link, uid: str, told: Message) -> int:
        """A table whose record is another than the stored one must not have played since: it goes on after the stored.

        Returns 0 when it is the same, and else an id that neither end has used.
        """
        known, last = told.get("known"), self.sink.last(uid)[0]
        if known and known[0] > last > 0:
            known = link.hello(last, 0).get("known")
        if not known or self._same(uid, known):
            return 0
        # The last record that both have: a table whose flash was lost, or put back, starts another line from there.
        common, other = int(told["first_event"]) - 1, int(known[0])
        while other - common > 1:
            middle = (common + other) // 2
            known = link.hello(middle, 0).get("known")
            if known and known[0] == middle and self._same(uid, known):
                common = middle
            else:
                other = middle
        if told["played"] > common:
            self._refuse(uid, other)
        return int(told["last_event"]) + 1

    def _refuse(self, uid: str, record_id: int) -> None:
        raise LinkError(
            _(
                "table {uid}: its record is not the one that is stored here; they differ from event {id} on. It has "
                "played without this record after its flash was lost, or this is another table's record. Nothing was "
                "stored; keep this database and name a new one with --db"
            ).format(uid=uid, id=record_id)
        )

    def _take(self, record: Message, link: str, tag: str) -> bool:
        if not self._uid:
            return False
        if not self.sink.take(self._uid, record, link, self._first_event, tag):
            return False
        if record["id"] > self._told:
            # One that comes again was told already.
            self._told = record["id"]
            self._watch(str(record["k"]), record["d"])
        return True

    def _see(self, view: Message) -> None:
        self.state = view
        self._watch("state", view)

    def request(self, name: str, as_role: str | None = None, **fields: Any) -> Message:
        """Do one request of protocol.REQUESTS, signed as Link.request says.

        Raises Refused, SessionLost, LinkClosed, LinkError or BadInput.
        """
        return self._link.request(name, as_role, **fields)

    def poll(self, timeout: float = 0.0) -> None:
        """Take in what arrives within `timeout` seconds."""
        self._link.poll(timeout)

    def now(self) -> float:
        """Seconds on the transport's clock."""
        return self._link.transport.now()

    def refresh(self) -> Message:
        """Ask for the live state."""
        self._see(self.request("status"))
        return self.state

    def wait_for(self, states: Collection[str], timeout: float, what: str = "") -> str:
        """Wait until the table is in one of `states`; which one. Asks again when live states were lost.

        Raises LinkError after `timeout` seconds, naming the state it is in.
        """
        end = self.now() + timeout
        ask = self.now() + 1.0
        while self.state.get("state") not in states:
            if self.state.get("state") == protocol.FAULT:
                raise LinkError(faults.in_words(self.state))
            if self.now() >= end:
                raise LinkError(
                    _("the table is still {state} after {seconds:.0f} s; waited for {what}").format(
                        state=self.state.get("state"), seconds=timeout, what=what or ", ".join(states)
                    )
                )
            if self.now() >= ask:
                self.refresh()
                ask = self.now() + 1.0
            else:
                self.poll(0.05)
        return str(self.state["state"])

    def wait_stored(self, timeout: float = 10.0) -> None:
        """Wait until every record that may leave the table is in the store."""
        end = self.now() + timeout
        while True:
            stats = self.request("stats")
            if self.sink.last(self._uid)[0] >= stats["sendable"]:
                return
            if self.now() >= end:
                raise LinkError(_("the table's records do not arrive"))
            self.poll(0.05)

    def reconnect(self, timeout: float = 60.0) -> Message:
        """After SessionLost or LinkClosed: open the port again, as often as it takes, and say hello.

        Returns the live state. What was asked last may or may not have been done: the state tells.
        """
        end = time.monotonic() + timeout
        while True:
            try:
                self._link.close()
                self._link = self._connect()
                return self.state
            except (LinkClosed, SessionLost):
                pass
            except LinkError:
                if time.monotonic() >= end:
                    raise
            if time.monotonic() >= end:
                raise LinkError(_("{port}: the table has not come back").format(port=self.port))
            time.sleep(0.2)

    def close(self) -> None:
        """Give the port back."""
        self._link.close()
