"""The shaker: an eccentric gearmotor on a DRV8871 (TI SLVSCY9: IN1 by PWM with IN2 low drives, both low coasts)."""

import asyncio
import time

from machine import ADC, PWM, Pin, Timer, disable_irq, enable_irq

from dragoneye.profile import current_limits, duty, plan

# The ramp's steps, and a sample of the current at each; most of those at full amplitude must show that the motor turns.
SAMPLE_MS = 10
# A hardware timer looks so often whether the jolt is still attended to, and stops the motor when it is not: long before
# the watchdog, when something holds the event loop for ever.
ATTENDED_MS = 100


class Shaker:
    """`pins` and `motor` are the board's data (see boards/), `profile` is a checked shake profile.

    `interlock` is the lid's pin: while it is high (open) nothing is driven.
    """

    def __init__(self, pins, motor, profile):
        self._in1 = Pin(pins["motor_in1"], Pin.OUT, value=0)
        self._in2 = Pin(pins["motor_in2"], Pin.OUT, value=0)
        self._motor = motor
        self._profile = profile
        # Milliamperes that a motor draws which turns, at the profile's full amplitude: [least, most].
        self.limits_ma = current_limits(motor, profile["duty_percent"])
        # The rp2 port has one PWM object for each pin, so making it again in `_drive` allocates nothing. With no duty
        # yet the pin stays low; `off` then takes the pin back.
        self._pwm = PWM(self._in1, freq=motor["pwm_hz"], duty_u16=0)
        self._current = ADC(Pin(pins["motor_current"]))
        self.interlock = None
        # Kept as long as the shaker, or it would be collected with its callback (MicroPython #10099).
        self._timer = Timer(-1)
        self._look = self._check_attended
        self._attended = False
        self.running = True
        self._stopped = False
        self.off()

    def off(self):
        """Both inputs low, and the present shake is over. Safe at any time, also in a hard interrupt: no allocation."""
        self._stopped = True
        self._coast()

    def _coast(self):
        # The pins go first, as plain outputs: stopping a slice leaves its pins at the level of that moment, possibly
        # high (pico-sdk #488, MicroPython #9007). Then the slice, since one that runs on would survive a soft reset.
        self._in1.init(Pin.OUT, value=0)
        self._in2.init(Pin.OUT, value=0)
        if self.running:
            self.running = False
            self._pwm.duty_u16(0)
            self._pwm.deinit()

    def _check_attended(self, _timer):
        if self.running and not self._attended:
            self.off()
        self._attended = False

    def milliamps(self):
        """The motor's current now."""
        return self._current.read_u16() * self._motor["full_scale_ma"] // 65535

    def _drive(self, level):
        """Drive with a duty of 0..65535, unless something has stopped this shake. False: it is stopped."""
        self._attended = True
        # No interrupt between the look and the deed: else what an edge of the lid does there would be undone.
        state = disable_irq()
        try:
            if self._stopped or (self.interlock is not None and self.interlock.value()):
                return False
            if self.running:
                self._pwm.duty_u16(level)
            else:
                self.running = True
                self._pwm = PWM(self._in1, freq=self._motor["pwm_hz"], duty_u16=level)
        finally:
            enable_irq(state)
        return True

    async def run(self, jolts, roll):
        """Run the profile of shake number `roll`. True when every one of the jolts was seen to move the motor.

        False also when something stopped it. The motor is off when this ends, however it ends.
        """
        moved = True
        try:
            steps = plan(self._profile, jolts, roll)
            self._stopped = False
            self._timer.init(mode=Timer.PERIODIC, period=ATTENDED_MS, callback=self._look, hard=True)
            for length_ms, rest_ms in steps:
                if not await self._jolt(length_ms):
                    moved = False
                    if self._stopped:
                        break
                self._coast()
                await asyncio.sleep_ms(rest_ms)
        finally:
            # The timer goes last: it is there for when this is cut short.
            self.off()
            self._timer.deinit()
        return moved

    async def _jolt(self, length_ms):
        """One jolt; True when most samples at full amplitude show that the motor turns."""
        profile = self._profile
        full = duty(profile, profile["ramp_ms"], 2 * profile["ramp_ms"])
        least, most = self.limits_ma
        samples = 0
        moving = 0
        start = time.ticks_ms()
        gone = 0
        while gone < length_ms:
            level = duty(profile, gone + SAMPLE_MS // 2, length_ms)
            if not self._drive(level):
                self._stopped = True
                return False
            await asyncio.sleep_ms(min(SAMPLE_MS, length_ms - gone))
            if self._stopped:
                return False
            if level == full:
                samples += 1
                # A motor that is stuck draws more than one that turns.
                if least <= self.milliamps() <= most:
                    moving += 1
            gone = time.ticks_diff(time.ticks_ms(), start)
        return moving * 2 > samples
