"""One table on a port: hello, requests, its events into a store, its live state, and coming back after a break."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, Protocol

from dragoneye import protocol
from host_tools import faults
from host_tools.i18n import _
from host_tools.link import Link, LinkClosed, LinkError, Message, SerialTransport, SessionLost, Transport


class Sink(Protocol):
    """Where events go. See host_tools.store.Store."""

    def last(self, uid: str) -> tuple[int, int]:
        """The highest event id and round number stored for the table."""

    def take(self, uid: str, record: Message, link: str, first_event: int) -> bool:
        """Make one record durable; False when it does not follow the last one yet."""


class Device:
    """A table that answers on `port`; `open_transport` is how a port is opened.

    `watch(kind, data)` is told every new record and ("state", view) for every live state.
    """

    def __init__(
        self,
        port: str,
        sink: Sink,
        watch: Callable[[str, Message], None] = lambda kind, data: None,
        open_transport: Callable[[str], Transport] = SerialTransport,
    ) -> None:
        self.port = port
        self.sink = sink
        self.state: Message = {}
        self._watch = watch
        self._open = open_transport
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
        link = Link(self._open(self.port), self._take, self._see)
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
        last_event, last_round = self.sink.last(uid)
        told = link.hello(last_event, last_round)
        self._uid = uid
        self._told = last_event
        self._first_event = int(told.get("first_event", 1))
        self.state = link.request("status")

    def _take(self, record: Message, link: str) -> bool:
        if not self._uid:
            return False
        if not self.sink.take(self._uid, record, link, self._first_event):
            return False
        if record["id"] > self._told:
            # One that comes again was told already.
            self._told = record["id"]
            self._watch(str(record["k"]), record["d"])
        return True

    def _see(self, view: Message) -> None:
        self.state = view
        self._watch("state", view)

    def request(self, name: str, **fields: Any) -> Message:
        """Do one request of protocol.REQUESTS. Raises Refused, SessionLost, LinkClosed or LinkError."""
        return self._link.request(name, **fields)

    def enter_maintenance(self, timeout: float = 15.0) -> None:
        """Let the table restart into MicroPython's prompt and wait until it has gone there.

        Raises Refused (only between rounds), LinkError.
        """
        self.request("maintenance")
        end = self.now() + timeout
        try:
            while not self._link.in_maintenance:
                if self.now() >= end:
                    raise LinkError(_("the table does not restart for maintenance"))
                self.poll(0.05)
        except LinkClosed:
            # A Pico's own USB goes with the reset, and comes back.
            pass

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
