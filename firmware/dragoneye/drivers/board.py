"""The parts of one board, made from its data (`board.json`) and the table's configuration (`config.json`)."""

from binascii import hexlify

import machine
from machine import ADC, Pin

from dragoneye import profile
from dragoneye.drivers.buzzer import Buzzer
from dragoneye.drivers.inputs import Guard, Lid, Switch
from dragoneye.drivers.lock import Lock
from dragoneye.drivers.readers import Readers
from dragoneye.drivers.ring import Ring
from dragoneye.drivers.shaker import Shaker

# main.py looks for this file, removes it and leaves the prompt to a technician.
MAINTENANCE = "/maintenance"

# Samples in a row, one every table tick, before the motor counts as stuck on or the supply as low.
STUCK_SAMPLES = 20
LOW_SAMPLES = 3

_CAUSES = {}
for _name in ("PWRON_RESET", "WDT_RESET", "HARD_RESET", "SOFT_RESET"):
    if hasattr(machine, _name):
        _CAUSES[getattr(machine, _name)] = _name[:-6].lower()


def unique_id():
    """The board's unique id as upper-case hex."""
    return hexlify(machine.unique_id()).decode().upper()


def reset_cause(pins):
    """Why the board started: "pwron", "wdt", "soft", ... or the number that MicroPython gives.

    `pins` are the board's; call it before the parts are made. A soft reset, of which the rp2 port knows nothing, leaves
    the pins as they were, and so the ring's, which is nothing else's, an output. Any reset of the chip makes it none
    (RP2040 datasheet 2.19.6.1, GPIO21_CTRL: FUNCSEL is 0x1f, NULL).
    """
    if "OUT" in repr(Pin(pins["ring"])):
        return "soft"
    cause = machine.reset_cause()
    return _CAUSES.get(cause, str(cause))


def restart_for_maintenance():
    """A hard reset, which disarms the watchdog, into a start without the app. Raises OSError when flash refuses.

    A file tells it to the next start, which removes it before anything else: so it works on any board, lasts over a
    power cut and cannot stick.
    """
    with open(MAINTENANCE, "w"):
        pass
    machine.reset()


class Board:
    """Every part of the table that the app talks to."""

    def __init__(self, data, config):
        pins = data["pins"]
        self._data = data
        self.shaker = Shaker(pins, data["motor"], profile.check(config.get("profile", {})))
        self.lock = Lock(pins["lock"], data["lock"]["pulse_ms"])
        self.lid = Lid(pins["lid"], self.shaker.off)
        self.shaker.interlock = self.lid.pin
        self.tamper = Guard(pins["tamper"])
        self.button = Switch(pins["button"])
        self.service = Switch(pins["service"])
        self._supply = ADC(Pin(pins["supply"]))
        self.ring = Ring(pins["ring"], data["ring"])
        self.buzzer = Buzzer(pins["buzzer"])
        self.reader = Readers(pins, data["spi"], config)
        self._stuck = 0
        self._low = 0
        self._watchdog = None

    def watch(self, ms):
        """Arm the watchdog: without a `feed` for so long the board resets. It cannot be stopped."""
        self._watchdog = machine.WDT(timeout=ms)

    def feed(self):
        """The app is well."""
        if self._watchdog is not None:
            self._watchdog.feed()

    def safe(self):
        """Motor coasting, lid lock not driven, no sound, the ring dark: on every way out."""
        self.still()
        self.buzzer.off()
        self.ring.off()

    def still(self):
        """Motor coasting, lid lock not driven: before a flash write, which stops interrupts."""
        self.shaker.off()
        self.lock.release()

    def supply_mv(self):
        """The 12 V supply now, in millivolts."""
        return self._supply.read_u16() * self._data["supply"]["full_scale_mv"] // 65535

    def supply_low(self):
        """True when the 12 V supply has been below its limit for some samples."""
        low = self.supply_mv() < self._data["supply"]["low_mv"]
        self._low = self._low + 1 if low else 0
        return self._low >= LOW_SAMPLES

    def motor_draws(self):
        """True while the motor draws more current than one that is off."""
        return self.shaker.milliamps() > self._data["motor"]["off_max_ma"]

    def motor_stuck(self):
        """True when the motor has drawn current for some samples; call only while it should be off."""
        self._stuck = self._stuck + 1 if self.motor_draws() else 0
        return self._stuck >= STUCK_SAMPLES
