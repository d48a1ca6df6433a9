"""Switches, low when active (pull-ups only: RP2350 erratum E9), debounced; lid and tamper contact: all edges count."""

import time

from machine import Pin

DEBOUNCE_MS = 20


class Switch:
    """A switch to ground on `pin`. `active` is its debounced state: low for DEBOUNCE_MS."""

    def __init__(self, pin):
        self.pin = Pin(pin, Pin.IN, Pin.PULL_UP)
        self.active = self.pin.value() == 0
        self._candidate = self.active
        self._since = time.ticks_ms()

    def poll(self):
        """Sample the pin. True when the debounced state has changed."""
        level = self.pin.value() == 0
        now = time.ticks_ms()
        if level != self._candidate:
            self._candidate = level
            self._since = now
        elif level != self.active and time.ticks_diff(now, self._since) >= DEBOUNCE_MS:
            self.active = level
            return True
        return False


class Guard(Switch):
    """A switch that guards the dice, active when shut: every edge is counted, however short.

    A hard interrupt does it, which waits neither for a task nor for a collection, and which must allocate nothing.
    """

    def __init__(self, pin):
        super().__init__(pin)
        self._edges = 0
        self._polled = 0
        self._taken = 0
        self.pin.irq(self._edge, Pin.IRQ_RISING | Pin.IRQ_FALLING, hard=True)

    def _edge(self, _pin):
        self._edges = (self._edges + 1) & 0xFFFF

    def poll(self):
        """As a switch's, but a level between two samples counts too: a lid that flutters is not known."""
        if self._polled != self._edges:
            self._polled = self._edges
            self._since = time.ticks_ms()
        return super().poll()

    @property
    def moved(self):
        """True while there is an edge that was not taken, or it is open now."""
        return self._edges != self._taken or self.pin.value() == 1

    def take_edge(self):
        """True when there was an edge since the last call."""
        edges = self._edges
        seen = edges != self._taken
        self._taken = edges
        return seen


class Lid(Guard):
    """The lid switch. Every edge stops the motor at once as well: `stop` is the shaker's off."""

    def __init__(self, pin, stop):
        self._stop = stop
        super().__init__(pin)

    def _edge(self, _pin):
        self._stop()
        self._edges = (self._edges + 1) & 0xFFFF
