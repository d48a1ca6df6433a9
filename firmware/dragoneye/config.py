"""What the host provisions and the app reads: the board's data, `board.json`, the table's `config.json`, its dice set.

The dice set that a technician registers (`dice.json`) takes the place of the configuration's, until that has other dice
than then.
"""

import json
import os
from binascii import hexlify
from hashlib import sha256

from dragoneye import profile
from dragoneye.errors import BadInput
from dragoneye.rules import packs, reading
from dragoneye.text import dumps, show

CONFIG_FORMAT = 1
DICE_FORMAT = 1
DICE_PATH = "/dice.json"

# The watchdog is always armed; 8388 ms is the most that the RP2040's counter takes (RP2040-E1).
WATCHDOG_MS = 8000
WATCHDOG_LEAST_MS = 500
WATCHDOG_MOST_MS = 8388
READERS_MAX = 3
# What the reader chip's receiver can be set to (MFRC522, 9.3.3.6), and the usual ladder: from there a pass that saw two
# faces of one die is done again with less.
GAINS_DB = (18, 23, 33, 38, 43, 48)
GAIN_DB = (33, 23, 18)
# Pixels of the ring; each holds interrupts up for 30 us while all are written.
PIXELS_MIN = 8
PIXELS_MAX = 24


def digest(data):
    """The first 16 hex digits of SHA-256."""
    return hexlify(sha256(data).digest()).decode()[:16]


# The reference design: what a board without data is taken for, so that its motor and its lock are held safe.
REFERENCE = __file__.replace("\\", "/").rsplit("/", 1)[0] + "/drivers/rpi_pico.json"


def read_board(path="/board.json"):
    """(the board's data, None), or (the reference design's, words about what is wrong with what is there)."""
    try:
        data = _read(path)
        known = _read(REFERENCE)
        missing = [name for name in known if name != "title" and name not in data]
        missing += [name for name in known["pins"] if name not in data.get("pins", {})]
        if not missing:
            words = _ring_trouble(data["ring"])
            if words is None:
                return data, None
            # What is driven is known all the same: only the ring is taken to be the reference design's.
            return dict(data, ring=known["ring"]), "%s: %s; provision the table from the host" % (path, words)
        words = "has no " + ", ".join(sorted(missing))
    except OSError:
        words = "is missing"
    except (ValueError, TypeError, AttributeError):
        words = "is not a board's data"
    return _read(REFERENCE), "%s %s; provision the table from the host" % (path, words)


def _ring_trouble(ring):
    """What is wrong with a board's `ring`, or None."""
    for key, low, high in (("pixels", PIXELS_MIN, PIXELS_MAX), ("brightness_percent", 1, 100)):
        if not packs.is_int(ring.get(key)) or not low <= ring[key] <= high:
            return "ring.%s is %s; allowed: %d to %d" % (key, show(ring.get(key)), low, high)
    return None


def _read(path):
    with open(path) as file:
        return json.load(file)


def check_watchdog(given):
    """The watchdog's time-out in milliseconds. Raises BadInput."""
    if packs.is_int(given) and WATCHDOG_LEAST_MS <= given <= WATCHDOG_MOST_MS:
        return given
    raise BadInput(
        "watchdog_ms: %s; allowed: a whole number from %d to %d" % (show(given), WATCHDOG_LEAST_MS, WATCHDOG_MOST_MS)
    )


def check_readers(config, places=READERS_MAX):
    """Raise ValueError unless `readers`, `gain_db` and `reader_irq` of a configuration, if given, are usable.

    `places` is how many readers the board has a select line for.
    """
    count = config.get("readers", 1)
    if not packs.is_int(count) or not 1 <= count <= places:
        raise ValueError("readers is %r; allowed: 1 to %d" % (count, places))
    gains = config.get("gain_db", GAIN_DB)
    falling = isinstance(gains, (list, tuple)) and 1 <= len(gains) <= len(GAINS_DB)
    if falling:
        for place, gain in enumerate(gains):
            if not packs.is_int(gain) or gain not in GAINS_DB or (place and gain >= gains[place - 1]):
                falling = False
    if not falling:
        allowed = ", ".join([str(gain) for gain in GAINS_DB])
        raise ValueError("gain_db is %r; allowed: one or more of %s, each lower than the one before" % (gains, allowed))
    if not isinstance(config.get("reader_irq", False), bool):
        raise ValueError("reader_irq is %r; allowed: true or false" % (config["reader_irq"],))


def _content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        raise ValueError("%s is missing; provision the table from the host" % path)


def read_config(path="/config.json", board="/board.json"):
    """(configuration, pack, registry, its hash). Raises ValueError in words when it is missing or not valid.

    A configuration that names the hash of its board data is not taken with another: the two are written together.
    """
    raw = _content(path)
    try:
        config = json.loads(raw.decode())
        if config["format"] != CONFIG_FORMAT:
            raise ValueError("%s has format %s; this firmware knows %d" % (path, config["format"], CONFIG_FORMAT))
        given = config["pack"]
        pack = packs.from_dict(given, path) if isinstance(given, dict) else packs.load(given)
        registry = reading.registry_of(config["dice"])
        expected = config.get("board_hash")
        if expected is not None and digest(_content(board)) != expected:
            raise ValueError("%s was not written together with it; write the configuration again" % board)
        if config["eye"] not in (0, 1, 2):
            raise ValueError("eye is %r; allowed: 0, 1 or 2" % (config["eye"],))
        profile.check(config.get("profile", {}))
        check_watchdog(config.get("watchdog_ms", WATCHDOG_MS))
        check_readers(config)
    except BadInput:
        raise
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("%s is not a table's configuration: %r" % (path, error))
    except ValueError as error:
        raise ValueError("%s: %s" % (path, error))
    return config, pack, registry, digest(raw)


def dice_set_of(config):
    """{"serial", "issued", "hash"} of a configuration or a dice set: the hash is over its tags and the eye alone."""
    tags = [[uid.upper() for uid in faces] for faces in config["dice"]]
    return {
        "serial": config.get("serial", ""),
        "issued": config.get("issued", ""),
        "hash": digest(dumps([tags, config["eye"]]).encode()),
    }


def read_dice(over, path=DICE_PATH):
    """The dice set that was registered last: {"dice", "eye", "serial", "issued"}, or None when there is none.

    `over` is the hash of the configuration's own dice: a set that was registered over other ones holds no more. Raises
    ValueError in words when the file is not valid.
    """
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError:
        return None
    try:
        stored = json.loads(raw.decode())
        if stored["format"] != DICE_FORMAT:
            raise ValueError("%s has format %s; this firmware knows %d" % (path, stored["format"], DICE_FORMAT))
        reading.registry_of(stored["dice"])
        if stored["eye"] not in (0, 1, 2):
            raise ValueError("eye is %r; allowed: 0, 1 or 2" % (stored["eye"],))
        if stored["over"] != over:
            return None
        return {key: stored[key] for key in ("dice", "eye", "serial", "issued")}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("%s is not a dice set: %r" % (path, error))
    except ValueError as error:
        raise ValueError("%s: %s" % (path, error))


def write_dice(stored, over, path=DICE_PATH):
    """Keep a dice set, all or nothing, in place of the one before; `over` as for `read_dice`. Returns `dice_set_of`."""
    with open(path + ".new", "w") as file:
        file.write(dumps(dict(stored, format=DICE_FORMAT, over=over)))
    os.rename(path + ".new", path)
    return dice_set_of(stored)
