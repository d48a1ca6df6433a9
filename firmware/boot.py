"""First of all: both motor inputs low, whatever ran before (a PWM slice outlives a soft reset)."""

import json

from machine import Pin

try:
    with open("/board.json") as file:
        pins = json.load(file)["pins"]
except (OSError, ValueError, KeyError):
    # No board data yet: the reference design's pins.
    pins = {"motor_in1": 14, "motor_in2": 15}
for name in ("motor_in1", "motor_in2"):
    Pin(pins[name], Pin.OUT, value=0)
