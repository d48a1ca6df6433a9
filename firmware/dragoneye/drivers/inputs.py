"""Switches, low when active (pull-ups only: RP2350 erratum E9), debounced; and the lid, whose edges all count."""

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


class Lid(Switch):
    """The lid switch, active when shut. Every edge stops the motor at once and is kept in `edge`.

    `stop` is the shaker's off: the interrupt does not wait for a task.
    """

    def __init__(self, pin, stop):
        self.edge = False
        self._stop = stop
        super().__init__(pin)
        self.pin.irq(self._edge, Pin.IRQ_RISING | Pin.IRQ_FALLING)

    def _edge(self, _pin):
        self._stop()
        self.edge = True

    def take_edge(self):
        """True when there was an edge since the last call."""
        seen = self.edge
        self.edge = False
        return seen
