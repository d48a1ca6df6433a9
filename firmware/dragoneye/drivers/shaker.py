"""The shaker: an eccentric gearmotor on a DRV8871 (TI SLVSCY9: IN1 by PWM with IN2 low drives, both low coasts)."""

import asyncio
import time

from machine import ADC, PWM, Pin

# A sample of the current every so often while a jolt runs; most of them must show that the motor turns.
SAMPLE_MS = 10


class Shaker:
    """`pins` and `motor` are the board's data (see boards/), `profile` is the configuration's shake profile."""

    def __init__(self, pins, motor, profile):
        self._numbers = (pins["motor_in1"], pins["motor_in2"])
        self._motor = motor
        self._profile = profile
        self._pwm = None
        self._current = ADC(Pin(pins["motor_current"]))
        self.off()

    def off(self):
        """Both inputs low: coast. Safe to call at any time, also from the lid's interrupt.

        The PWM is taken off the pin as well: a slice that runs on would survive a soft reset.
        """
        if self._pwm is not None:
            self._pwm.duty_u16(0)
            self._pwm.deinit()
            self._pwm = None
        for number in self._numbers:
            Pin(number, Pin.OUT, value=0)

    @property
    def running(self):
        """True while the motor is driven."""
        return self._pwm is not None

    def milliamps(self):
        """The motor's current now."""
        return self._current.read_u16() * self._motor["full_scale_ma"] // 65535

    async def run(self, jolts):
        """Run the profile: `jolts` jolts with a rest after each. True when every one was seen to move the motor.

        The motor is off when this ends, however it ends.
        """
        profile = self._profile
        moved = True
        try:
            for _jolt in range(jolts):
                if not await self._jolt(profile["jolt_ms"], profile["duty_percent"] * 65535 // 100):
                    moved = False
                self.off()
                await asyncio.sleep_ms(profile["rest_ms"])
        finally:
            self.off()
        return moved

    async def _jolt(self, length_ms, duty):
        self._pwm = PWM(Pin(self._numbers[0]), freq=self._motor["pwm_hz"], duty_u16=duty)
        samples = 0
        moving = 0
        start = time.ticks_ms()
        while time.ticks_diff(time.ticks_ms(), start) < length_ms:
            await asyncio.sleep_ms(min(SAMPLE_MS, length_ms))
            if not self.running:
                # The lid's interrupt has switched it off.
                return False
            samples += 1
            # A motor that is stuck draws more than one that turns.
            if self._motor["moving_min_ma"] <= self.milliamps() < self._motor["stalled_min_ma"]:
                moving += 1
        return samples > 0 and moving * 2 > samples
