"""The table's configuration, `config.json`: what the host provisions and the app reads."""

import json
from binascii import hexlify
from hashlib import sha256

from dragoneye.errors import BadInput
from dragoneye.rules import packs, reading

CONFIG_FORMAT = 1


def digest(data):
    """The first 16 hex digits of SHA-256."""
    return hexlify(sha256(data).digest()).decode()[:16]


def read_config(path="/config.json"):
    """(configuration, pack, registry, its hash). Raises ValueError in words when it is missing or not valid."""
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError:
        raise ValueError("%s is missing; provision the table from the host" % path)
    try:
        config = json.loads(raw.decode())
        if config["format"] != CONFIG_FORMAT:
            raise ValueError("%s has format %s; this firmware knows %d" % (path, config["format"], CONFIG_FORMAT))
        given = config["pack"]
        pack = packs.from_dict(given, path) if isinstance(given, dict) else packs.load(given)
        registry = reading.registry_of(config["dice"])
        if config["eye"] not in (0, 1, 2):
            raise ValueError("eye is %r; allowed: 0, 1 or 2" % (config["eye"],))
    except BadInput:
        raise
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("%s is not a table's configuration: %r" % (path, error))
    except ValueError as error:
        raise ValueError("%s: %s" % (path, error))
    return config, pack, registry, digest(raw)
