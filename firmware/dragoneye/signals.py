"""What ring and buzzer show of the table's state: pure, time is an argument in milliseconds.

Each state has a pattern of its own (which pixels are lit, and how they change), so that it is told without colours, and
a colour that helps from afar. What is shown follows from the state's name and the call for a supervisor alone, so that
nothing of a result can be in it. A pattern is a function (step, pixels) -> lit pixels as bits; a step is STEP_MS.
Whole rings blink at most twice a second (WCAG 2.3.1: no more than three flashes a second).
"""

from dragoneye.protocol import (
    BETTING,
    CLOSED,
    FAULT,
    IDLE,
    LOCKED,
    READING,
    REVEALED,
    SETTLED,
    SETTLING,
    SHAKING,
    TEST,
    VOID,
)

STEP_MS = 125
# VOID when too many rolls were void: a supervisor has to come.
CALL = "CALL"

WHITE = (255, 255, 255)
GREEN = (0, 255, 0)
YELLOW = (255, 160, 0)
BLUE = (0, 60, 255)
RED = (255, 0, 0)
VIOLET = (180, 0, 255)


def _all(pixels):
    return (1 << pixels) - 1


def _half(pixels, second):
    first = _all(pixels // 2)
    return _all(pixels) ^ first if second else first


def _spread(pixels, count):
    """`count` single pixels, evenly around the ring."""
    lit = 0
    for index in range(count):
        lit |= 1 << index * pixels // count
    return lit


def _quarters(step, pixels):
    return _spread(pixels, 4)


def _full(step, pixels):
    return _all(pixels)


def _half_ring(step, pixels):
    return _half(pixels, False)


def _chase(step, pixels):
    """An arc of a quarter of the ring that runs around it."""
    lit = 0
    for index in range(pixels // 4):
        lit |= 1 << (step + index) % pixels
    return lit


def _drain(step, pixels):
    return _all(pixels - step % pixels)


def _fill(step, pixels):
    return _all(1 + step % pixels)


def _alternate(step, pixels):
    """Every other pixel, and the others after half a second."""
    lit = 0
    for index in range(step // 4 % 2, pixels, 2):
        lit |= 1 << index
    return lit


def _thirds(step, pixels):
    """Three pixels for three dice."""
    return _spread(pixels, 3)


def _thirds_blinking(step, pixels):
    return _spread(pixels, 3) if step // 4 % 2 == 0 else 0


def _slow(step, pixels):
    return _all(pixels) if step // 4 % 2 == 0 else 0


def _double(step, pixels):
    """Two flashes, then a pause."""
    return _all(pixels) if step % 16 in (0, 1, 4, 5) else 0


def _fast(step, pixels):
    return _all(pixels) if step // 2 % 2 == 0 else 0


def _halves(step, pixels):
    """One half, then the other."""
    return _half(pixels, step // 4 % 2 == 1)


# State -> (colour, pattern, tone, milliseconds after which the tone comes again; 0: once). A tone is (hertz,
# milliseconds) pairs, 0 hertz is silence.
SIGNALS = {
    IDLE: (WHITE, _quarters, (), 0),
    BETTING: (GREEN, _full, (), 0),
    CLOSED: (YELLOW, _half_ring, ((1200, 60),), 0),
    SHAKING: (BLUE, _chase, (), 0),
    SETTLING: (BLUE, _drain, (), 0),
    READING: (BLUE, _fill, (), 0),
    LOCKED: (WHITE, _alternate, ((1600, 60), (0, 60), (1600, 60)), 0),
    REVEALED: (GREEN, _thirds_blinking, (), 0),
    SETTLED: (GREEN, _thirds, (), 0),
    VOID: (YELLOW, _slow, ((900, 150), (0, 50), (600, 250)), 0),
    CALL: (YELLOW, _double, ((900, 150), (0, 50), (900, 150)), 5000),
    FAULT: (RED, _fast, ((2200, 200), (0, 100), (2200, 200), (0, 100), (2200, 200)), 3000),
    TEST: (VIOLET, _halves, ((1000, 30),), 4000),
}

REFUSED = ((300, 120),)


def key_of(state, call):
    """Which row of SIGNALS shows the live state: its `state`, and its `call` for a supervisor."""
    return CALL if state == VOID and call else state


def tone_at(tone, elapsed_ms):
    """Hertz of `tone` so long after it began; 0 is silence, None when it is over."""
    for hertz, length_ms in tone:
        if elapsed_ms < length_ms:
            return hertz
        elapsed_ms -= length_ms
    return None


class Signals:
    """What ring and buzzer show from moment to moment; `pixels` is the ring's number of pixels."""

    # See Controller.set_back.
    TIMES = ("_since", "_refused_at")

    def __init__(self, pixels):
        self._pixels = pixels
        self._key = None
        self._since = 0
        self._refused_at = None

    def show(self, state, call, now):
        """The table is in this state. The same again changes nothing."""
        key = key_of(state, call)
        if key != self._key:
            self._key = key
            self._since = now

    def refused(self, now):
        """A press of the button was refused: a short low sound, whatever else sounds."""
        self._refused_at = now

    def ring(self, now):
        """((red, green, blue), lit pixels as bits) to show now, or None before the first `show`."""
        if self._key is None:
            return None
        colour, pattern = SIGNALS[self._key][:2]
        return colour, pattern((now - self._since) // STEP_MS, self._pixels)

    def hertz(self, now):
        """The tone to sound now; 0 is silence."""
        if self._refused_at is not None:
            hertz = tone_at(REFUSED, now - self._refused_at)
            if hertz is not None:
                return hertz
            self._refused_at = None
        if self._key is None:
            return 0
        tone, again_ms = SIGNALS[self._key][2:]
        elapsed = now - self._since
        return tone_at(tone, elapsed % again_ms if again_ms else elapsed) or 0
