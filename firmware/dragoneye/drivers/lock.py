"""The solenoid of the lid's lock: pulsed, never held."""

from machine import Pin, Timer


class Lock:
    """The lock on `pin`; a pulse lasts `pulse_ms`, whatever the event loop does meanwhile.

    A hardware timer ends it. Only a flash write could hold that up, as it stops interrupts: whoever is about to write
    calls `release` first.
    """

    def __init__(self, pin, pulse_ms):
        self._pin = Pin(pin, Pin.OUT, value=0)
        self._pulse_ms = pulse_ms
        # Kept as long as the lock, or it would be collected with its callback (MicroPython #10099).
        self._timer = Timer(-1)
        self._over = self._ended
        self.active = False

    def _ended(self, _timer):
        self._pin(0)
        self.active = False

    def pulse(self):
        """Release the lid; does nothing while a pulse is under way."""
        if not self.active:
            self.active = True
            self._pin(1)
            self._timer.init(mode=Timer.ONE_SHOT, period=self._pulse_ms, callback=self._over, hard=True)

    def release(self):
        """End a pulse now."""
        if self.active:
            self._timer.deinit()
        self._pin(0)
        self.active = False
