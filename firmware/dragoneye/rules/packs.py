"""Rule packs: every doubtful point of the rules as a named value that says where it comes from.

A pack is one JSON file: `{"name", "title", "base", "values": {key: [value, source]}}`. It starts from `base` (another
pack, or nothing) and changes values. `common` holds what the packs share and is a base only.
"""

from dragoneye.errors import BadInput
from dragoneye.text import digest, dumps, is_text, is_whole, load_json, show

WAGERS = ("match", "even", "odd", "double", "triple", "bonus")
NAMES = ("nj", "pr", "ca")

_FOLDER = __file__.replace("\\", "/").rsplit("/", 1)[0] + "/data/"
_DIRECTIONS = ("counter-clockwise", "clockwise")

# key -> what is allowed: a tuple of words, a (low, high) range of integers, with None where "no limit" is a value.
_WORDS = {
    "bets_close": ("shake", "reveal"),
    "count_direction": _DIRECTIONS,
    "deal_direction": _DIRECTIONS,
    "zero_rule": ("high_tile", "bank_wins"),
    "commission_rounding": ("nearest", "down", "up"),
    "double_on_triple": ("wins", "loses"),
    "after_third": ("cap", "restart", "hold"),
}
_NUMBERS = {
    "positions": (6, 8, False),
    "player_positions": (1, 7, False),
    "commission_bp": (0, 10000, False),
    "jolts_min": (1, 20, False),
    "shakes_max": (1, 99, True),
    "void_limit": (1, 20, False),
    "pays_match": (1, 100, False),
    "pays_even": (1, 100, False),
    "pays_odd": (1, 100, False),
    "pays_double": (1, 1000, False),
    "pays_triple": (1, 10000, False),
    "stake_max": (1, 1000000000, False),
    "bonus_stake_max": (1, 1000000000, True),
    "liability_max": (1, 1000000000000, True),
    "bank_share_percent": (1, 100, True),
}
_LADDERS = ("pays_bonus_shaker", "pays_bonus_other")
KEYS = tuple(sorted(list(_WORDS) + list(_NUMBERS) + list(_LADDERS) + ["wagers"]))


def check_value(key, value):
    """Return `value` if it is allowed for `key`.

    Raises BadInput naming the key, the value and what is allowed.
    """
    if key in _WORDS:
        if value in _WORDS[key]:
            return value
        allowed = "one of " + ", ".join(_WORDS[key])
    elif key in _NUMBERS:
        low, high, none_too = _NUMBERS[key]
        if (none_too and value is None) or is_whole(value, low, high):
            return value
        allowed = "a whole number from %d to %d%s" % (low, high, ", or null for none" if none_too else "")
    elif key in _LADDERS:
        if isinstance(value, (list, tuple)) and len(value) == 3 and all(is_whole(v, 1, 100000) for v in value):
            return list(value)
        allowed = "three whole numbers from 1 to 100000, for one, two and three triples in a row"
    elif key == "wagers":
        if isinstance(value, (list, tuple)) and all(v in WAGERS for v in value) and len(set(value)) == len(value):
            return [w for w in WAGERS if w in value]
        allowed = "a list of different wagers out of " + ", ".join(WAGERS)
    else:
        raise BadInput("rule pack: no value is named %s; there are %s" % (show(key), ", ".join(KEYS)))
    raise BadInput("rule pack: %s is %s; allowed: %s" % (key, show(value), allowed))


class Pack:
    """A resolved rule pack: `pack["positions"]` is the value, `pack.source("positions")` where it comes from."""

    def __init__(self, name, title, values, sources):
        self.name = name
        self.title = title
        self.values = values
        self.sources = sources

    def __getitem__(self, key):
        return self.values[key]

    def source(self, key):
        """Where the value of `key` comes from: a clause, a page of a sheet, trade practice, or an operator's choice."""
        return self.sources.get(key, "")

    def hash(self):
        """By what a table names its rules when it starts (`boot`, field pack_hash): over all values."""
        return digest(dumps([[key, self.values[key]] for key in sorted(self.values)]).encode())

    def with_options(self, options):
        """A pack with some values changed, each checked. Raises BadInput."""
        if not isinstance(options, dict):
            raise BadInput("options: %s is not an object of rule pack values" % show(options))
        if not options:
            return self
        values = dict(self.values)
        sources = dict(self.sources)
        for key in sorted(options):
            values[key] = check_value(key, options[key])
            sources[key] = "given as an option"
        return whole(Pack(self.name, self.title, values, sources))

    def as_dict(self):
        """The pack as its own file with no base: what a device is provisioned with."""
        rows = {}
        for key in sorted(self.values):
            rows[key] = [self.values[key], self.source(key)]
        return {"name": self.name, "title": self.title, "base": None, "values": rows}


def whole(pack):
    """The pack, if every key has a value. Raises BadInput naming those that have none."""
    missing = [key for key in KEYS if key not in pack.values]
    if missing:
        raise BadInput("rule pack %s: no value for %s; give it or name a base" % (pack.name, ", ".join(missing)))
    return pack


def from_dict(data, where="rule pack", _depth=0):
    """Build a Pack from a parsed file. Raises BadInput naming `where`."""
    if not isinstance(data, dict) or not isinstance(data.get("values"), dict) or not isinstance(data.get("name"), str):
        raise BadInput('%s: not a rule pack; it needs "name", "values" and, to start from another, "base"' % where)
    values = {}
    sources = {}
    base = data.get("base")
    if base is not None:
        if _depth > 8:
            raise BadInput("%s: the bases go round in a circle" % where)
        parent = _resolve(base, where, _depth + 1)
        values.update(parent.values)
        sources.update(parent.sources)
    for key in sorted(data["values"]):
        row = data["values"][key]
        if not isinstance(row, list) or len(row) != 2 or not isinstance(row[1], str):
            raise BadInput('%s: %s must be [value, "source"]' % (where, key))
        if not row[1].strip():
            raise BadInput("%s: %s has an empty source; needed: where its value comes from" % (where, key))
        values[key] = check_value(key, row[0])
        sources[key] = row[1]
    return Pack(data["name"], data.get("title", data["name"]), values, sources)


def _resolve(name, where, depth):
    if not isinstance(name, str):
        raise BadInput("%s: base is %s; allowed: the name of a pack or a path ending in .json" % (where, show(name)))
    if name in NAMES or name == "common":
        path = _FOLDER + name + ".json"
    elif name.endswith(".json"):
        path = name
        if "/" not in name and "/" in where:
            path = where.rsplit("/", 1)[0] + "/" + name
    else:
        raise BadInput(
            "there is no rule pack %s; allowed: %s, or the path of a file ending in .json"
            % (show(name), ", ".join(NAMES))
        )
    try:
        data = load_json(path)
    except OSError:
        raise BadInput("rule pack %s: the file cannot be read" % path)
    except BadInput as error:
        raise BadInput("rule pack %s: %s" % (path, error))
    except (ValueError, RuntimeError):
        # RuntimeError: nested deeper than the stack.
        raise BadInput("rule pack %s: the file is not JSON" % path)
    pack = from_dict(data, path, depth)
    _check_file(data, path)
    return pack


def _check_file(data, where):
    """What a person may have got wrong in a file; a board is not given it, and a look at each character takes time."""
    for key in data:
        if key not in ("name", "title", "base", "values"):
            raise BadInput("%s: there is no %s; allowed: name, title, base, values" % (where, show(key)))
    texts = {"name": data["name"], "title": data.get("title", data["name"])}
    texts.update(("the source of " + key, row[1]) for key, row in data["values"].items())
    for what in sorted(texts):
        given = texts[what]
        if not isinstance(given, str) or not given.strip() or not is_text(given):
            raise BadInput("%s: %s is %s; allowed: a text without control characters" % (where, what, show(given)))


def load(name):
    """The rule pack `name`: "nj", "pr", "ca", or the path of an operator's own .json file.

    Raises BadInput when there is none, it is not JSON, or a value is not allowed.
    """
    return whole(_resolve(name, "rule pack", 0))
