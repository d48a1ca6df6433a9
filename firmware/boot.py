"""First of all: both motor inputs low, whatever ran before (a PWM slice outlives a soft reset).

And no Ctrl-C: an exception here would leave the prompt, and main.py never run. It decides who may stop it.
"""

import micropython

micropython.kbd_intr(-1)

import json  # noqa: E402

from machine import Pin  # noqa: E402

try:
    with open("/board.json") as file:
        pins = json.load(file)["pins"]
    for number in (pins["motor_in1"], pins["motor_in2"]):
        Pin(number, Pin.OUT, value=0)
except BaseException:
    # No board data, or none that can be used, whatever is wrong with it: the reference design's pins.
    for number in (14, 15):
        Pin(number, Pin.OUT, value=0)
