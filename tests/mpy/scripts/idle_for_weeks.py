"""The app's clock and meters over many wraps of the tick counters, on time that the script makes; prints what is wrong.

Runs under MicroPython with the virtual table's `machine`: the app imports the drivers.
"""

import sys

sys.path.append(__file__.rsplit("/", 4)[0])

from boards.virtual import machine

sys.modules["machine"] = machine

from dragoneye import app  # noqa: E402

PERIOD = 1 << 30
DAY_MS = 24 * 3600 * 1000


class Time:
    """The rp2 port's ticks, from a time in microseconds that does not wrap."""

    now_us = (PERIOD - 5) * 1000

    def ticks_ms(self) -> int:
        return self.now_us // 1000 % PERIOD

    def ticks_us(self) -> int:
        return self.now_us % PERIOD

    def ticks_diff(self, end: int, start: int) -> int:
        return ((end - start + PERIOD // 2) & (PERIOD - 1)) - PERIOD // 2


made = Time()
app.time = made  # type: ignore
clock = app.Clock()
start = made.now_us
last = 0
# A table that does nothing still asks at every tick of its task; six days is the most that the clock bears.
for step_ms in [5] * 1000 + [1, 250, 3600 * 1000, DAY_MS, 6 * DAY_MS] * 30:
    made.now_us += step_ms * 1000
    now = clock.now()
    if now != (made.now_us - start) // 1000 or now < last:
        print("clock", now, made.now_us - start)
    last = now
print("weeks", last // (7 * DAY_MS))

meter = app.Meter(lambda: 0)
for _ in range(2000):
    meter.begin(5)
    made.now_us += 400 * 1000000
    meter.end()
    made.now_us += 5000
runs, longest, mean, late = meter.row()
print("meter", runs, longest, mean, late)
