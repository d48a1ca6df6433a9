"""The buzzer: a passive sounder on a PWM pin whose slice nothing else uses (the motor's would change its frequency)."""

from machine import PWM, Pin


class Buzzer:
    """The buzzer on `pin`. `sound` sets a tone and returns at once; whoever calls it ends the tone."""

    def __init__(self, pin):
        self._number = pin
        self._pwm = None
        self._hertz = 0
        Pin(pin, Pin.OUT, value=0)

    def sound(self, hertz):
        """Sound at `hertz` from now on; 0 is silence. The same again does nothing."""
        if hertz == self._hertz:
            return
        if not hertz:
            self.off()
            return
        self._hertz = hertz
        if self._pwm is None:
            self._pwm = PWM(Pin(self._number), freq=hertz, duty_u16=32768)
        else:
            self._pwm.freq(hertz)

    def off(self):
        """Silence, and the pin low: a slice that runs on would outlive a soft reset."""
        self._hertz = 0
        if self._pwm is not None:
            self._pwm.duty_u16(0)
            self._pwm.deinit()
            self._pwm = None
        Pin(self._number, Pin.OUT, value=0)
