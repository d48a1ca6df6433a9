"""The table's configuration, `config.json`: what the host provisions and the app reads."""

import json
from binascii import hexlify
from hashlib import sha256

from dragoneye.errors import BadInput
from dragoneye.rules import packs, reading

CONFIG_FORMAT = 1

READERS_MAX = 3
# What the reader chip's receiver can be set to (MFRC522, 9.3.3.6), and the usual ladder: from there a pass that saw two
# faces of one die is done again with less.
GAINS_DB = (18, 23, 33, 38, 43, 48)
GAIN_DB = (33, 23, 18)


def digest(data):
    """The first 16 hex digits of SHA-256."""
    return hexlify(sha256(data).digest()).decode()[:16]


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
        check_readers(config)
    except BadInput:
        raise
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("%s is not a table's configuration: %r" % (path, error))
    except ValueError as error:
        raise ValueError("%s: %s" % (path, error))
    return config, pack, registry, digest(raw)
