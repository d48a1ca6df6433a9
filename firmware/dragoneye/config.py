"""What the host provisions and the app reads: the board's data, `board.json`, the table's `config.json`, its dice set.

The dice set that a technician registers (`dice.json`) takes the place of the configuration's, until that has other dice
than then.
"""

import json
import os

from dragoneye import profile
from dragoneye.errors import BadInput
from dragoneye.rules import packs, reading
from dragoneye.text import check_whole, digest, dumps, load_json, show

CONFIG_FORMAT = 1
DICE_FORMAT = 1
DICE_PATH = "/dice.json"

# The watchdog is always armed; 8388 ms is the most that the RP2040's counter takes (RP2040-E1). The least covers
# what is done without a feed: to read a full segment of the journal at the start (0.7 s), or to erase some sectors of
# flash (up to 400 ms each, W25Q16JV data sheet, 9.6).
WATCHDOG_MS = 8000
WATCHDOG_LEAST_MS = 2000
WATCHDOG_MOST_MS = 8388
READERS_MAX = 3
# What the reader chip's receiver can be set to (MFRC522, 9.3.3.6), and the usual ladder: from there a pass that saw two
# faces of one die is done again with less.
GAINS_DB = (18, 23, 33, 38, 43, 48)
GAIN_DB = (33, 23, 18)
# Pixels of the ring; each holds interrupts up for 30 us while all are written.
PIXELS_MIN = 8
PIXELS_MAX = 24
# GPIOs of the RP2040 and of the RP2350A; the last four can measure a voltage.
GPIO_MAX = 29
ADC_MIN = 26

# Settings of a round (dragoneye.round.SETTINGS): name -> (least, most).
SETTINGS = {
    "jolts": (1, 12),
    "settle_ms": (1, 60000),
    "shake_timeout_ms": (1, 600000),
    "read_timeout_ms": (1, 600000),
    "read_tries": (2, 1000000),
    "lockout_ms": (0, 600000),
}
# What a configuration may name besides; `board_hash` is digest's of board.json.
_ENTRIES = (
    "format",
    "board_hash",
    "name",
    "languages",
    "pack",
    "serial",
    "issued",
    "dice",
    "eye",
    "settings",
    "profile",
    "watchdog_ms",
    "readers",
    "gain_db",
    "reader_irq",
    "locked",
)
# A board's parts: name -> (least, most), all of them needed.
_PARTS = {
    "spi": {"id": (0, 1), "baudrate": (10000, 10000000)},
    "motor": {
        "pwm_hz": (1000, 200000),
        "full_scale_ma": (1, 100000),
        "moving_min_ma": (1, 100000),
        "stalled_min_ma": (1, 100000),
        "off_max_ma": (1, 100000),
    },
    "supply": {"full_scale_mv": (1, 100000), "low_mv": (1, 100000)},
    "lock": {"pulse_ms": (10, 500)},
    "ring": {"pixels": (PIXELS_MIN, PIXELS_MAX), "brightness_percent": (1, 100)},
}
# Pins of which a board has several: name -> least.
_SEVERAL = {"reader_cs": 1, "reader_irq": 0}
_MEASURED = ("motor_current", "supply")
# What remains of the number of a GPIO over four when it carries this signal; its eight say which of the two buses
# (RP2040 datasheet 2.19.2, RP2350 datasheet 9.4).
_SPI_SIGNALS = {"spi_miso": 0, "spi_sck": 2, "spi_mosi": 3}


# The reference design: what a board without data is taken for, so that its motor and its lock are held safe.
REFERENCE = __file__.replace("\\", "/").rsplit("/", 1)[0] + "/drivers/rpi_pico.json"


def read_board(path="/board.json"):
    """(the board's data, None), or (what can be used of it, words about what is wrong).

    A part that is wrong is the reference design's: right pins go on being held safe when something else is wrong.
    """
    board = load_json(REFERENCE)
    wrong = []
    try:
        data = _check_object("", load_json(path))
        missing = [name for name in board if name != "title" and name not in data]
        if missing:
            wrong.append("has no " + ", ".join(sorted(missing)))
        for name in [name for name in board if name in data]:
            try:
                _check_part(name, data[name], board["pins"])
                board[name] = data[name]
            except BadInput as error:
                wrong.append(": " + str(error))
        try:
            _check_bus(board)
        except BadInput as error:
            wrong.append(": " + str(error))
            known = load_json(REFERENCE)
            board["pins"], board["spi"] = known["pins"], known["spi"]
    except OSError:
        wrong = ["is missing"]
    except (ValueError, TypeError, AttributeError, RuntimeError):
        # RuntimeError: nested deeper than the stack.
        board, wrong = load_json(REFERENCE), ["is not a board's data"]
    if not wrong:
        return board, None
    return board, "%s%s%s; provision the table from the host" % (path, "" if wrong[0][0] == ":" else " ", wrong[0])


def _check_object(name, given):
    if not isinstance(given, dict):
        raise BadInput("%s is %s; allowed: an object" % (name, show(given)))
    return given


def _check_text(name, given):
    if not isinstance(given, str):
        raise BadInput("%s is %s; allowed: a text" % (name, show(given)))


def _check_part(name, given, roles):
    """Raise BadInput unless `given` can be the entry `name` of a board; `roles` are the pins that it must have."""
    if name == "pins":
        _check_pins(_check_object(name, given), roles)
    elif name in _PARTS:
        _check_object(name, given)
        for key in sorted(_PARTS[name]):
            least, most = _PARTS[name][key]
            check_whole("%s.%s" % (name, key), given.get(key), least, most)
        if name == "motor" and not given["off_max_ma"] <= given["moving_min_ma"] < given["stalled_min_ma"]:
            raise BadInput(
                "motor.moving_min_ma is %d; allowed: from off_max_ma up to below stalled_min_ma"
                % given["moving_min_ma"]
            )
    else:
        _check_text(name, given)


def _check_pins(pins, roles):
    users = {}
    for role in sorted(roles):
        if role not in pins:
            raise BadInput("pins.%s is missing" % role)
        numbers = pins[role]
        if role not in _SEVERAL:
            numbers = [numbers]
        elif not isinstance(numbers, list) or not _SEVERAL[role] <= len(numbers) <= READERS_MAX:
            raise BadInput(
                "pins.%s is %s; allowed: a list of %d to %d pins" % (role, show(numbers), _SEVERAL[role], READERS_MAX)
            )
        for number in numbers:
            check_whole("pins." + role, number, ADC_MIN if role in _MEASURED else 0, GPIO_MAX)
            if number in users:
                raise BadInput("pins.%s is %d; that is %s already" % (role, number, users[number]))
            users[number] = role


def _check_bus(board):
    """Raise BadInput unless the pins can carry the signals of the board's SPI."""
    for role in sorted(_SPI_SIGNALS):
        number = board["pins"][role]
        if number % 4 != _SPI_SIGNALS[role] or number // 8 % 2 != board["spi"]["id"]:
            raise BadInput("pins.%s is %d; SPI%d has no such signal there" % (role, number, board["spi"]["id"]))


def check_watchdog(given):
    """The watchdog's time-out in milliseconds. Raises BadInput."""
    return check_whole("watchdog_ms", given, WATCHDOG_LEAST_MS, WATCHDOG_MOST_MS)


def check_settings(given):
    """Raise BadInput unless `given` names settings of a round and each has a value that is allowed."""
    _check_object("settings", given)
    for name in sorted(given):
        if name not in SETTINGS:
            raise BadInput("settings: there is no %s; there are %s" % (show(name), ", ".join(sorted(SETTINGS))))
        least, most = SETTINGS[name]
        check_whole("settings." + name, given[name], least, most)


def check_readers(config, pins=None):
    """Raise ValueError unless `readers`, `gain_db` and `reader_irq` of a configuration, if given, are usable.

    `pins` are the board's: a reader needs a select line, and an interrupt line where those are used.
    """
    places = READERS_MAX
    if pins is not None:
        places = len(pins["reader_cs"])
        if config.get("reader_irq"):
            places = min(places, len(pins["reader_irq"]))
    if places < 1:
        raise ValueError("reader_irq is true; the board has no pins for it")
    check_whole("readers", config.get("readers", 1), 1, places)
    gains = config.get("gain_db", GAIN_DB)
    falling = isinstance(gains, (list, tuple)) and 1 <= len(gains) <= len(GAINS_DB)
    if falling:
        for place, gain in enumerate(gains):
            if not isinstance(gain, int) or gain not in GAINS_DB or (place and gain >= gains[place - 1]):
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
        for name in sorted(config):
            if name not in _ENTRIES:
                raise BadInput("there is no entry %s; there are %s" % (show(name), ", ".join(sorted(_ENTRIES))))
        given = config["pack"]
        pack = packs.whole(packs.from_dict(given, path)) if isinstance(given, dict) else packs.load(given)
        registry = reading.registry_of(config["dice"])
        check_whole("eye", config["eye"], 0, 2)
        expected = config.get("board_hash")
        if expected is not None and digest(_content(board)) != expected:
            raise ValueError("%s was not written together with it; write the configuration again" % board)
        for name in ("name", "serial", "issued"):
            _check_text(name, config.get(name, ""))
        for language in config.get("languages", []):
            _check_text("languages", language)
        check_settings(config.get("settings", {}))
        profile.check(config.get("profile", {}))
        check_watchdog(config.get("watchdog_ms", WATCHDOG_MS))
        check_readers(config)
        if not isinstance(config.get("locked", False), bool):
            raise BadInput("locked is %s; allowed: true or false" % show(config["locked"]))
    except BadInput:
        raise
    except KeyError as error:
        raise ValueError("%s: %s is missing" % (path, error.args[0]))
    except (TypeError, AttributeError, RuntimeError) as error:
        # RuntimeError: nested deeper than the stack.
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
        check_whole("eye", stored["eye"], 0, 2)
        for name in ("serial", "issued"):
            _check_text(name, stored[name])
        if stored["over"] != over:
            return None
        return {key: stored[key] for key in ("dice", "eye", "serial", "issued")}
    except KeyError as error:
        raise ValueError("%s: %s is missing" % (path, error.args[0]))
    except (TypeError, AttributeError, RuntimeError) as error:
        raise ValueError("%s is not a dice set: %r" % (path, error))
    except ValueError as error:
        raise ValueError("%s: %s" % (path, error))


def write_dice(stored, over, path=DICE_PATH):
    """Keep a dice set, all or nothing, in place of the one before; `over` as for `read_dice`. Returns `dice_set_of`."""
    with open(path + ".new", "w") as file:
        file.write(dumps(dict(stored, format=DICE_FORMAT, over=over)))
    os.rename(path + ".new", path)
    return dice_set_of(stored)
