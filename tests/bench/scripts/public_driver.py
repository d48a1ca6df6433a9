"""Lets a public MicroPython MFRC522 driver, unmodified, look for one tag: once with it there, then with an empty field.

`use(module name, pace in us, count)` makes a reader of the driver on the board's first chip select; its `look()` gives
(UID as hex or None, SPI transactions, microseconds). The drivers' differences stay here: which platforms they know,
whether they want pins or a bus, whether they go beyond the first cascade level.

Counting costs some microseconds a transaction: with `count=False` the driver has the bare pin, and the count is 0.
`pace` makes each transaction take so much longer: MicroPython on a PC is faster than the chip wakes up, which these
drivers do not wait for.
"""

import os
import sys
import time
from binascii import hexlify

import machine

SCK, MOSI, MISO, RESET, SELECT = 2, 3, 4, 8, 5
PLATFORMS = ("rp2", "esp8266")


class Select:
    """The chip-select pin; counts how often it goes low."""

    def __init__(self, pin, pace=0):
        self.pin = pin
        self._pace = pace
        self.count = 0

    def value(self, level):
        if not level:
            self.count += 1
            if self._pace:
                time.sleep_us(self._pace)
        self.pin.value(level)

    __call__ = value


class Pins:
    """In the place of `machine.Pin`."""

    IN = machine.Pin.IN
    OUT = machine.Pin.OUT

    def __init__(self, pace, count):
        self.counter = Select(machine.Pin(SELECT, machine.Pin.OUT, value=1), pace)
        self.select = self.counter if count or pace else self.counter.pin

    def __call__(self, id, *args):
        return self.select if id == SELECT else machine.Pin(id, *args)


def bus(id=0, baudrate=1000000, sck=None, mosi=None, miso=None, polarity=0, phase=0):
    """In the place of `machine.SPI`: drivers for other platforms give no number, and some start it again."""
    return Bus(machine.SPI(id, baudrate=baudrate, sck=machine.Pin(SCK), mosi=machine.Pin(MOSI), miso=machine.Pin(MISO)))


class Bus:
    def __init__(self, spi):
        self.write = spi.write
        self.read = spi.read
        self.readinto = spi.readinto
        self.write_readinto = spi.write_readinto

    def init(self, *args):
        pass


class Shim:
    """A stand-in for a module."""


class Reader:
    def __init__(self, driver, pins):
        self._driver = driver
        self._pins = pins

    def look(self):
        driver = self._driver
        self._pins.counter.count = 0
        start = time.ticks_us()
        uid = None
        if driver.request(0x26)[0] == driver.OK:
            if hasattr(driver, "SelectTagSN"):
                status, found = driver.SelectTagSN()
            else:
                status, found = driver.anticoll()
                found = found[:4]
            if status == driver.OK:
                uid = hexlify(bytes(found)).decode()
        return uid, self._pins.counter.count, time.ticks_diff(time.ticks_us(), start)


def use(name, pace=0, count=True):
    pins = Pins(pace, count)
    hardware = Shim()
    hardware.Pin = pins
    hardware.SPI = hardware.SoftSPI = bus
    system = Shim()
    kept = sys.modules.get("os"), sys.modules.get("machine")
    for platform in PLATFORMS:
        system.uname = lambda platform=platform: (platform,)
        sys.modules["os"] = system
        sys.modules["machine"] = hardware
        try:
            made = __import__(name).MFRC522
            try:
                driver = made(SCK, MOSI, MISO, RESET, SELECT)
            except TypeError:
                driver = made(bus(), pins.select)
        except RuntimeError:  # "Unsupported platform"
            del sys.modules[name]
            continue
        finally:
            sys.modules["os"], sys.modules["machine"] = kept[0] or os, kept[1] or machine
        time.sleep_ms(10)  # the field is on; tags need 5 ms
        return Reader(driver, pins)
    raise RuntimeError(name + " knows none of the platforms " + ", ".join(PLATFORMS))
