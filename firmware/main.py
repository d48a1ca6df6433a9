"""Runs the firmware, unless the service key is held or maintenance was asked for: then this leaves the prompt.

The firmware lies in one of two slots, /a and /b, or (copied by hand) in the root. /slot names the one to run. A new one
is on trial there, with a number of tries: "b 3". Each start takes one; a firmware that proves itself strikes the number
out (dragoneye.installed), and when none is left, the other slot runs again. A slot counts only when all files of its
manifest are there. This file and boot.py serve every firmware, so they change rarely, and each is replaced by a rename.

Held at the start, the service key always leaves the prompt at once, with no watchdog armed; the table's next start
records that. A restart for maintenance (the request `maintenance`) waits for a technician's Ctrl-C, with which mpremote
begins, and then leaves the prompt for as long as it takes: a reset in the middle of a copy would leave half a firmware.
Whoever asked and did not come finds the table running again. Nothing of this imports the package: it must work when the
package does not.

A table whose configuration says `locked` has no other way in than that key: Ctrl-C is switched off before anything
else, and whatever ends the program is a reset, never the prompt.
"""

import micropython

# MicroPython switches Ctrl-C on for each file that it runs (shared/runtime/pyexec.c).
micropython.kbd_intr(-1)

import json  # noqa: E402
import os  # noqa: E402
import select  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

import machine  # noqa: E402
from machine import Pin  # noqa: E402

CTRL_C = 3
CONFIG = "/config.json"
# A byte for each start with the service key that no table has recorded yet.
SERVICE = "/service"
# The key's contact is shut for so many milliseconds: a spike shall not open a locked table.
HELD_MS = 10
MAINTENANCE = "/maintenance"
MAINTENANCE_S = 600
SLOT = "/slot"
OTHER = {"a": "b", "b": "a"}
# The most that the RP2040's watchdog takes (RP2040-E1).
TRIAL_MS = 8388


def is_locked():
    """True when the configuration says `locked`, also one that is damaged elsewhere or cannot be read."""
    try:
        with open(CONFIG, "rb") as file:
            return b'"locked":true' in b"".join(file.read().split())
    except OSError as error:
        # A table that was never configured is open.
        return error.errno != 2
    except Exception:
        return True


def service_key_held():
    """True while the service key's switch is closed (low)."""
    try:
        with open("/board.json") as file:
            number = json.load(file)["pins"]["service"]
        pin = Pin(number, Pin.IN, Pin.PULL_UP)
    except Exception:
        # No board data, or none that can be used: the reference design's pin.
        pin = Pin(20, Pin.IN, Pin.PULL_UP)
    for _ in range(HELD_MS):
        if pin.value():
            return False
        time.sleep_ms(1)
    return True


def note_service_key():
    """Remember for the table's record that the key was used."""
    try:
        with open(SERVICE, "a") as file:
            file.write("+")
    except OSError:
        pass


def maintenance_was_asked_for():
    """True once: the file that says so is removed."""
    try:
        os.remove(MAINTENANCE)
    except OSError:
        return False
    return True


def technician_came():
    """Wait for Ctrl-C, at most MAINTENANCE_S seconds.

    What else comes is read and forgotten: a port whose buffer is full would not take the Ctrl-C either.
    """
    unread = select.poll()
    unread.register(sys.stdin, select.POLLIN)
    try:
        for left in range(MAINTENANCE_S, 0, -1):
            print("maintenance: Ctrl-C or mpremote for the prompt; the table starts in", left, "s")
            time.sleep(1)
            # Seldom: what mpremote sends right after its Ctrl-C is for the prompt.
            while unread.poll(0):
                sys.stdin.buffer.read(1)
    except KeyboardInterrupt:
        return True
    return False


def is_whole(slot):
    """True when every file of the slot's manifest is there and as long as it should be."""
    try:
        with open("/" + slot + "/manifest.json") as file:
            for name, size, _hash in json.load(file)["files"]:
                if os.stat("/" + slot + "/" + name)[6] != size:
                    return False
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return True


def name_slot(words):
    """Write /slot, all or nothing. A flash that refuses leaves the old one."""
    try:
        with open(SLOT + ".new", "w") as file:
            file.write(words)
        os.rename(SLOT + ".new", SLOT)
    except OSError:
        pass


def choose_slot():
    """(the slot to run, "" for the root; how many tries it has left, None when it is not on trial)."""
    try:
        with open(SLOT) as file:
            slot, _, tries = file.read().strip().partition(" ")
    except (OSError, ValueError):
        return "", None
    if slot not in OTHER:
        return "", None
    if tries:
        left = int(tries) - 1 if tries.isdigit() else -1
        if left >= 0 and is_whole(slot):
            name_slot("%s %d" % (slot, left))
            return slot, left
        slot = OTHER[slot] if is_whole(OTHER[slot]) else ""
        name_slot(slot or "root")
        return slot, None
    for one in (slot, OTHER[slot]):
        if is_whole(one):
            return one, None
    return "", None


def run():
    """The table, until something ends it."""
    from dragoneye import app

    app.start()


def run_on_trial(left):
    """The same for a firmware that has not proved itself: whatever ends it is a reset, and so is a hang."""
    machine.WDT(timeout=TRIAL_MS)
    try:
        run()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        sys.print_exception(error)
    print("trial: the new firmware has ended;", left, "more tries")
    time.sleep(1)
    machine.reset()


def start(locked):
    """Run the firmware of the chosen slot, or wait for the technician who was announced."""
    if maintenance_was_asked_for() and not locked:
        if technician_came():
            print("maintenance: the next reset starts the table")
            return
        machine.reset()
    slot, left = choose_slot()
    if slot:
        sys.path.insert(0, "/" + slot)
    if left is None:
        run()
    else:
        run_on_trial(left)


def main():
    """Start, and leave the prompt to whoever may have it: with the service key, or at a table that is not locked.

    At another one whatever ends the program is a reset, a Ctrl-C among it that came before the first line.
    """
    held, locked = False, True
    try:
        held = service_key_held()
        locked = is_locked()
        if held:
            note_service_key()
        if held or not locked:
            micropython.kbd_intr(CTRL_C)
        if held:
            print("service key held: the table does not start")
        else:
            start(locked)
    except BaseException as error:
        if held or not locked:
            raise
        sys.print_exception(error)
    if locked and not held:
        try:
            # Not at once, again and again.
            time.sleep(1)
        finally:
            machine.reset()


if __name__ == "__main__":
    main()
