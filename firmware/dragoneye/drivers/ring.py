"""The ring of WS2812 pixels: 24 bits a pixel in the order green, red, blue, 30 us a pixel (WS2812B data sheet)."""

from machine import Pin, bitstream

# T0H, T0L, T1H, T1L in nanoseconds (WS2812B data sheet, "data transfer time", within its 150 ns).
TIMING = (400, 850, 800, 450)


class Ring:
    """The ring on `pin`; `data` is the board's: pixels (8..24) and brightness_percent, the most that a channel gets.

    Both have been checked (dragoneye.config.read_board).

    A write stops interrupts for 30 us a pixel, 0.72 ms at most, so only a change is written.
    """

    def __init__(self, pin, data):
        self.pixels = data["pixels"]
        self._percent = data["brightness_percent"]
        self._pin = Pin(pin, Pin.OUT, value=0)
        self._buffer = bytearray(3 * self.pixels)
        self._shown = None
        self.show((0, 0, 0), 0)

    def show(self, colour, lit):
        """Light the pixels whose bits are set in `lit` in `colour` (red, green, blue; 0..255 each), the others not."""
        if self._shown == (colour, lit):
            return
        self._shown = (colour, lit)
        red, green, blue = [channel * self._percent // 100 for channel in colour]
        buffer = self._buffer
        for index in range(self.pixels):
            on = lit >> index & 1
            buffer[3 * index] = green if on else 0
            buffer[3 * index + 1] = red if on else 0
            buffer[3 * index + 2] = blue if on else 0
        bitstream(self._pin, 0, TIMING, buffer)

    def off(self):
        """Dark."""
        self.show((0, 0, 0), 0)
