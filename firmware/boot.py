"""First of all: both motor inputs low, whatever ran before (a PWM slice outlives a soft reset)."""

import json

from machine import Pin

try:
    with open("/board.json") as file:
        pins = json.load(file)["pins"]
    numbers = [pins["motor_in1"], pins["motor_in2"]]
except (OSError, ValueError, KeyError, TypeError):
    # No board data, or none that can be read: the reference design's pins.
    numbers = [14, 15]
for number in numbers:
    Pin(number, Pin.OUT, value=0)
