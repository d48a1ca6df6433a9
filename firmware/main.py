"""The app, unless the service key is held or maintenance was asked for: then this leaves the prompt.

Held at the start, the service key always leaves the prompt at once, with no watchdog armed. A restart for maintenance
(the request `maintenance`) waits for a technician's Ctrl-C, with which mpremote begins, and then leaves the prompt for
as long as it takes: a reset in the middle of a copy would leave half a firmware. Whoever asked and did not come finds
the table running again. Nothing of this imports the package: it must work when the package does not.
"""

import json
import os
import time

import machine
from machine import Pin

MAINTENANCE = "/maintenance"
MAINTENANCE_S = 600


def service_key_held():
    """True while the service key's switch is closed (low)."""
    try:
        with open("/board.json") as file:
            number = json.load(file)["pins"]["service"]
    except (OSError, ValueError, KeyError, TypeError):
        number = 20
    return Pin(number, Pin.IN, Pin.PULL_UP).value() == 0


def maintenance_was_asked_for():
    """True once: the file that says so is removed."""
    try:
        os.remove(MAINTENANCE)
    except OSError:
        return False
    return True


def technician_came():
    """Wait for Ctrl-C, at most MAINTENANCE_S seconds."""
    try:
        for left in range(MAINTENANCE_S, 0, -1):
            print("maintenance: Ctrl-C or mpremote for the prompt; the table starts in", left, "s")
            time.sleep(1)
    except KeyboardInterrupt:
        return True
    return False


if service_key_held():
    print("service key held: the table does not start")
elif maintenance_was_asked_for():
    if technician_came():
        print("maintenance: the next reset starts the table")
    else:
        machine.reset()
else:
    from dragoneye import app

    app.start()
