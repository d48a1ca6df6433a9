"""`neopixel` for MicroPython's unix port, which has none: the rp2 image's frozen module's interface, over bitstream."""

from machine import bitstream


class NeoPixel:
    ORDER = (1, 0, 2, 3)  # the wire wants green, red, blue (and white)

    def __init__(self, pin, n, bpp=3, timing=1):
        self.pin = pin
        self.n = n
        self.bpp = bpp
        self.buf = bytearray(n * bpp)
        # WS2812B data sheet: T0H, T0L, T1H, T1L in nanoseconds, for 800 or 400 kHz.
        self.timing = (
            ((400, 850, 800, 450) if timing else (800, 1700, 1600, 900)) if isinstance(timing, int) else timing
        )
        pin.init(pin.OUT)

    def __len__(self):
        return self.n

    def __setitem__(self, i, color):
        for channel in range(self.bpp):
            self.buf[i * self.bpp + self.ORDER[channel]] = color[channel]

    def __getitem__(self, i):
        return tuple(self.buf[i * self.bpp + self.ORDER[channel]] for channel in range(self.bpp))

    def fill(self, color):
        for i in range(self.n):
            self[i] = color

    def write(self):
        bitstream(self.pin, 0, self.timing, self.buf)
