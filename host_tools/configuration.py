"""A table's configuration: one TOML file, its schema, and what becomes of it on the device.

The file is what a person writes; `board.json` and `config.json` are what the device reads (see dragoneye.config). Both
ways go through here: `device_files` makes the device's files, `document_of` reads them back.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError, create_model

from dragoneye import profile
from dragoneye.config import (
    CONFIG_FORMAT,
    GAIN_DB,
    GAINS_DB,
    GPIO_MAX,
    PIXELS_MAX,
    PIXELS_MIN,
    READERS_MAX,
    WATCHDOG_LEAST_MS,
    WATCHDOG_MOST_MS,
    WATCHDOG_MS,
)
from dragoneye.config import SETTINGS as SETTINGS_ALLOWED
from dragoneye.errors import BadInput
from dragoneye.round import SETTINGS
from dragoneye.rules import packs
from dragoneye.rules.reading import UID_DIGITS
from dragoneye.text import digest, show
from host_tools.board_data import board_data, boards, parts_data
from host_tools.i18n import LANGUAGES, _, controller
from host_tools.pins import check_pins

FORMAT = 1
BOARD_FILE = "board.json"
CONFIG_FILE = "config.json"
# What a rule option says in a file where a pack says null: TOML has no null.
NONE = "none"

PRINTABLE = "^[^\\x00-\\x1f\\x7f]*$"
UTC = "^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$"
UID = "^(" + "|".join(f"[0-9A-Fa-f]{{{digits}}}" for digits in UID_DIGITS) + ")$"
Uid = Annotated[str, StringConstraints(pattern=UID), Field(description="a tag's UID: 8 or 14 hex digits")]
Faces = Annotated[list[Uid], Field(min_length=6, max_length=6)]
Pin = Annotated[int, Field(ge=0, le=GPIO_MAX)]


def _one_of(words: Sequence[str]) -> dict[str, JsonValue]:
    return {"enum": [*words]}


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Rules(_Section):
    """The rule pack, and values that this table changes."""

    pack: str = Field(default="nj", min_length=1, max_length=200, description="nj, pr, ca, or the path of a .json file")
    options: dict[str, Any] = Field(
        default_factory=dict,
        description='values in place of the pack\'s; "none" is no limit',
        json_schema_extra={"propertyNames": _one_of(packs.KEYS)},
    )


class Dice(_Section):
    """The three dice: the UIDs of their tags by the face that carries them, 1 to 6."""

    eye: int = Field(default=1, ge=1, le=3, description="which of the three is the dragon's eye die")
    serial: str | None = Field(default=None, min_length=1, max_length=24, pattern=PRINTABLE, description="of the set")
    issued: Annotated[str, Field(min_length=20, max_length=20, pattern=UTC)] | None = Field(
        default=None, description="when the set was issued, in UTC, such as 2026-01-31T18:00:00Z"
    )
    die1: Faces
    die2: Faces
    die3: Faces


_SETTINGS = {
    "jolts": "jolts of a shake, if the pack asks for no more",
    "settle_ms": "the dice come to rest",
    "shake_timeout_ms": "a shake ends before this",
    "read_timeout_ms": "reading the dice ends before this",
    "read_tries": "passes until two in a row agree",
    "lockout_ms": "from one shake to the next",
}
_PROFILE = {
    "jolt_ms": "the motor runs",
    "rest_ms": "the motor coasts",
    "duty_percent": "the amplitude, of the motor's full voltage",
    "ramp_ms": "up to the amplitude, and down again; at most a quarter of a jolt",
    "jitter_percent": "by which jolts and rests vary",
    "seed": "of the jitter, which is the same again for the same seed",
}


def _model(name: str, words: str, rows: Mapping[str, tuple[int, int, int]], described: Mapping[str, str]) -> Any:
    """A section with an entry for every row (default, least, most) of a table of the firmware's."""
    fields: dict[str, Any] = {}
    for key, (default, least, most) in rows.items():
        fields[key] = (int, Field(default=default, ge=least, le=most, description=described[key]))
    return create_model(name, __base__=_Section, __doc__=words, **fields)


Settings = _model(
    "Settings",
    "Times and counts of a round.",
    {name: (default, *SETTINGS_ALLOWED[name]) for name, default in SETTINGS.items()},
    _SETTINGS,
)
Profile = _model("Profile", "The shake: what one jolt is.", profile.FIELDS, _PROFILE)


class Ring(_Section):
    """The ring of WS2812 pixels."""

    pixels: int = Field(default=12, ge=PIXELS_MIN, le=PIXELS_MAX, description="how many the ring has")
    brightness_percent: int = Field(default=15, ge=1, le=100, description="the most that a channel gets")


def _pins_model() -> Any:
    """One optional entry for every role that a pin can have."""
    fields: dict[str, Any] = {}
    usual = board_data("rpi_pico")["pins"]
    for role, row in parts_data()["roles"].items():
        kind: Any = Pin
        if isinstance(usual[role], list):
            # Interrupt lines are optional; a reader without a select line is none.
            kind = Annotated[list[Pin], Field(min_length=0 if role == "reader_irq" else 1, max_length=READERS_MAX)]
        fields[role] = (kind, Field(None, description=row["terminal"].format(n="1, 2, 3")))
    return create_model("Pins", __base__=_Section, __doc__="Pins that differ from the board's.", **fields)


Pins = _pins_model()


class TableConfig(_Section):
    """One table."""

    format: Literal[1] = Field(description="the version of this file's format")
    name: str = Field(min_length=1, max_length=40, pattern=PRINTABLE, description="the table's name")
    board: str = Field(json_schema_extra=_one_of(boards()), description="the kind of controller")
    languages: list[Literal[LANGUAGES]] = Field(  # type: ignore[valid-type]
        ["en"], min_length=1, max_length=len(LANGUAGES), description="in the order of preference"
    )
    watchdog_ms: int = Field(
        default=WATCHDOG_MS,
        ge=WATCHDOG_LEAST_MS,
        le=WATCHDOG_MOST_MS,
        description="a controller that hangs so long is reset",
    )
    readers: int = Field(default=1, ge=1, le=READERS_MAX, description="readers under the dice")
    gain_db: list[Literal[GAINS_DB]] = Field(  # type: ignore[valid-type]
        [*GAIN_DB],
        min_length=1,
        max_length=len(GAINS_DB),
        description="a pass that sees two faces of one die is done again with the next lower gain",
    )
    reader_irq: bool = Field(default=False, description="the readers' IRQ pins are wired")
    locked: bool = Field(default=False, description="no way to the prompt but the service key held at the start")
    rules: Rules = Rules()
    dice: Dice | None = Field(default=None)
    settings: Settings = Settings()  # type: ignore[valid-type]
    profile: Profile = Profile()  # type: ignore[valid-type]
    ring: Ring = Ring()
    pins: Pins = Pins()  # type: ignore[valid-type]


# Entries that go to the device under the same name.
SAME = ("name", "languages", "watchdog_ms", "readers", "gain_db", "reader_irq", "locked", "settings", "profile")


def json_schema() -> dict[str, Any]:
    """The JSON schema of a table's file, for editors."""
    schema = TableConfig.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "A dragon's eye table"}


# --- what is wrong -----------------------------------------------------------------------------------------------


class Problem(NamedTuple):
    """One thing that is wrong: the entry's dotted key, its value (None: it is missing), and the words for a person."""

    key: str
    value: Any
    why: str


class ConfigError(BadInput):
    """A configuration that cannot be used; `problems` holds everything that is wrong, the text a line for each."""

    def __init__(self, where: str, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(f"{where}: {problem.why}" for problem in problems))
        self.problems = list(problems)


def _node(schema: Mapping[str, Any], keys: Sequence[int | str]) -> Mapping[str, Any]:
    """The part of the schema that the entry at `keys` is held to."""
    root = schema
    for key in (*keys, None):
        while "$ref" in schema or "anyOf" in schema:
            if "anyOf" in schema:
                # An entry that may be left out: the other of the two says what it is.
                schema = {**next(one for one in schema["anyOf"] if one.get("type") != "null"), **_described(schema)}
            else:
                schema = {**root["$defs"][schema["$ref"].rpartition("/")[2]], **_described(schema)}
        if key is None:
            break
        inner = schema.get("items", {}) if isinstance(key, int) else schema.get("properties", {}).get(key, {})
        schema = inner
    return schema


def _described(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": schema["description"]} if "description" in schema else {}


def allowed_words(node: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    """What a part of the schema allows, for a person."""
    kind = node.get("type")
    if "const" in node:
        return str(node["const"])
    if "enum" in node:
        return controller("one of {}".format(", ".join(str(word) for word in node["enum"])))
    if kind == "boolean":
        return controller("true or false")
    if kind == "integer":
        return controller(f"a whole number from {node['minimum']} to {node['maximum']}")
    if kind == "string" and node.get("pattern") == UID:
        return _("a tag's UID: 8 or 14 hex digits")
    if kind == "string" and node.get("pattern") == UTC:
        return _("a time in UTC, such as 2026-01-31T18:00:00Z")
    if kind == "string":
        words = _("text of {low} to {high} printable characters")
        return words.format(low=node["minLength"], high=node["maxLength"])
    if kind == "array":
        low, high = node["minItems"], node["maxItems"]
        count = str(low) if low == high else f"{low}-{high}"
        items = allowed_words(_node({**node["items"], "$defs": whole.get("$defs", {})}, ()), whole)
        return _("a list of {count}, each {what}").format(count=count, what=items)
    return _("a table of entries")


def _nearest(name: str, known: Sequence[str]) -> str:
    """Words for a name that is not known: the nearest one that is, and all."""
    near = difflib.get_close_matches(name, known, 1, 0.6)
    words = _("did you mean {near}? There are {known}") if near else _("there are {known}")
    return words.format(near=near[0] if near else "", known=", ".join(known))


def schema_problems(data: Mapping[str, Any], model: type[BaseModel]) -> list[tuple[tuple[int | str, ...], Problem]]:
    """What a model's schema refuses of a file, each under its keys."""
    try:
        model.model_validate(data)
    except ValidationError as error:
        schema = model.model_json_schema()
        found = []
        for row in error.errors(include_url=False, include_context=False):
            keys = row["loc"]
            key = ".".join(str(part) for part in keys)
            node = _node(schema, keys)
            if row["type"] == "missing":
                why = _("{key} is missing; allowed: {allowed}").format(key=key, allowed=allowed_words(node, schema))
                found.append((keys, Problem(key, None, why)))
            elif row["type"] == "extra_forbidden":
                known = sorted(_node(schema, keys[:-1]).get("properties", {}))
                words = _nearest(str(keys[-1]), known)
                why = _("there is no entry {key}; {words}").format(key=key, words=words)
                found.append((keys, Problem(key, row["input"], why)))
            else:
                found.append((keys, _not_allowed(key, row["input"], allowed_words(node, schema))))
        return found
    return []


def _not_allowed(key: str, value: Any, allowed: str) -> Problem:
    why = _("{key} is {value}; allowed: {allowed}").format(key=key, value=show(value), allowed=allowed)
    return Problem(key, value, why)


def _board_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    board = data["board"]
    if board not in boards():
        yield _not_allowed("board", board, controller("one of {}".format(", ".join(boards()))))
        return
    for problem in check_pins(board, data.get("pins", {})):
        key = f"pins.{problem.key}"
        yield Problem(
            key, problem.gpio, _("{key} is {value}; {why}").format(key=key, value=problem.gpio, why=problem.why)
        )


def _dice_problems(dice: Mapping[str, Any]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for die in ("die1", "die2", "die3"):
        for index, uid in enumerate(dice[die]):
            key = f"dice.{die}.{index}"
            if uid.upper() in seen:
                words = _("{key} is {value}; that tag is {other} already")
                yield Problem(key, uid, words.format(key=key, value=show(uid), other=seen[uid.upper()]))
            seen.setdefault(uid.upper(), key)


def _option(value: Any) -> Any:
    return None if value == NONE else value


def _pack_problems(rules: Mapping[str, Any], folder: Path, held: packs.Pack | None) -> Iterator[Problem]:
    options = rules.get("options", {})
    for key, value in options.items():
        name = f"rules.options.{key}"
        if key not in packs.KEYS:
            words = _nearest(key, packs.KEYS)
            yield Problem(name, value, _("there is no entry {key}; {words}").format(key=name, words=words))
            continue
        try:
            packs.check_value(key, _option(value))
        except BadInput as error:
            _said, mark, allowed = str(error).partition("; allowed: ")
            assert mark
            yield _not_allowed(name, value, controller(allowed.replace("null", NONE)))
    if held is None:
        try:
            packs.load(_pack_path(rules, folder))
        except BadInput as error:
            yield Problem("rules.pack", rules.get("pack"), f"rules.pack: {controller(str(error))}")


def _pack_path(rules: Mapping[str, Any], folder: Path) -> str:
    name = str(rules.get("pack", Rules().pack))
    return str(folder / name) if name.endswith(".json") else name


def problems_of(data: Mapping[str, Any], folder: Path = Path(), held: packs.Pack | None = None) -> list[Problem]:
    """Everything that is wrong with a table's configuration, `data` as in its file.

    `folder` is where the file lies, for a rule pack beside it; `held` is a pack that needs no file, as a device has it.
    """
    version = data.get("format")
    if isinstance(version, int) and version > FORMAT:
        why = _("format {theirs} is newer than this program, which knows {ours}; update the program")
        return [Problem("format", version, why.format(theirs=version, ours=FORMAT))]
    refused = schema_problems(data, TableConfig)
    problems = [problem for _keys, problem in refused]
    bad = {keys[0] for keys, _problem in refused}
    if not bad & {"board", "pins"}:
        problems += _board_problems(data)
    if not bad & {"board", "pins", "readers"} and data["board"] in boards():
        places = len({**board_data(data["board"])["pins"], **data.get("pins", {})}["reader_cs"])
        if data.get("readers", 1) > places:
            why = _("{key} is {value}; the board has pins for {places}")
            problems.append(
                Problem("readers", data["readers"], why.format(key="readers", value=data["readers"], places=places))
            )
    gains = data.get("gain_db", GAIN_DB)
    if "gain_db" not in bad and list(gains) != sorted(set(gains), reverse=True):
        problems.append(_not_allowed("gain_db", gains, _("gains that fall from one to the next")))
    if "profile" not in bad:
        try:
            profile.check(data.get("profile", {}))
        except BadInput as error:
            problems.append(Problem("profile", data["profile"], controller(str(error))))
    if "dice" not in bad and data.get("dice"):
        problems += _dice_problems(data["dice"])
    if "rules" not in bad:
        problems += _pack_problems(data.get("rules", {}), folder, held)
    return problems


# --- to and from the device --------------------------------------------------------------------------------------


def check(
    data: Mapping[str, Any], where: str, folder: Path = Path(), held: packs.Pack | None = None
) -> tuple[TableConfig, packs.Pack]:
    """The configuration and its rule pack with the options in place. Raises ConfigError with all that is wrong."""
    problems = problems_of(data, folder, held)
    if problems:
        raise ConfigError(where, problems)
    config = TableConfig.model_validate(data)
    pack = held or packs.load(_pack_path(data.get("rules", {}), folder))
    try:
        pack = pack.with_options({key: _option(value) for key, value in config.rules.options.items()})
    except BadInput as error:
        raise ConfigError(where, [Problem("rules.options", config.rules.options, controller(str(error)))]) from None
    return config, pack


def hints(data: Mapping[str, Any], pack: packs.Pack, where: str) -> list[str]:
    """What a right configuration lacks, or what is allowed and hardly meant: in words."""
    found = []
    if not data.get("dice"):
        words = _("{where}: the dice are still missing; a table without them plays no round, but can learn them")
        found.append(words.format(where=where))
    settings = {**SETTINGS, **data.get("settings", {})}
    shake = profile.check(data.get("profile", {}))
    jolts = max(settings["jolts"], pack["jolts_min"])
    longest = jolts * (shake["jolt_ms"] + shake["rest_ms"]) * (100 + shake["jitter_percent"]) // 100
    if settings["shake_timeout_ms"] <= longest:
        words = _("{where}: settings.shake_timeout_ms is {given}, and {jolts} jolts can take {longest} ms: void rolls")
        given = settings["shake_timeout_ms"]
        found.append(words.format(where=where, given=given, jolts=jolts, longest=longest))
    return found


def device_files(config: TableConfig, pack: packs.Pack) -> dict[str, bytes]:
    """The files that a device with this configuration has in its root: name -> content."""
    given = config.model_dump(exclude_unset=True, exclude_none=True)
    # Without dice the table has the fault CONFIG; a technician can still let it learn them.
    dice = config.dice
    board = board_data(config.board)
    for part in ("pins", "ring"):
        board[part] = {**board[part], **given.get(part, {})}
    board_file = json.dumps(board).encode()
    rules = {**pack.as_dict(), "from": config.rules.pack, "options": config.rules.options}
    data = {
        "format": CONFIG_FORMAT,
        "board_hash": digest(board_file),
        **{key: given[key] for key in SAME if key in given},
        "pack": rules,
        **{key: given["dice"][key] for key in ("serial", "issued") if key in given.get("dice", {})},
        "dice": [dice.die1, dice.die2, dice.die3] if dice else [],
        "eye": dice.eye - 1 if dice else 0,
    }
    return {BOARD_FILE: board_file, CONFIG_FILE: json.dumps(data).encode()}


def document_of(files: Mapping[str, bytes], where: str) -> tuple[dict[str, Any], packs.Pack]:
    """A device's files as a table's configuration, and the rule pack that the device holds. Raises BadInput."""
    for name in (BOARD_FILE, CONFIG_FILE):
        if name not in files:
            words = _(
                "{where}: no table's configuration is there, {file} is missing; write one: tablectl config set --file "
                "FILE --port {where}"
            )
            raise BadInput(words.format(where=where, file=name))
    try:
        board = json.loads(files[BOARD_FILE])
        config = json.loads(files[CONFIG_FILE])
        version = config["format"]
        if version != CONFIG_FORMAT:
            why = _("{where}: {file} has format {theirs}; this program knows {ours}")
            raise BadInput(why.format(where=where, file=CONFIG_FILE, theirs=show(version), ours=CONFIG_FORMAT))
        pack = packs.from_dict(config["pack"], where)
        rules: dict[str, Any] = {"pack": config["pack"].get("from", pack.name)}
        if config["pack"].get("options"):
            rules["options"] = config["pack"]["options"]
        usual = board_data(board["name"])
        changed = {
            part: {key: value for key, value in board[part].items() if usual[part].get(key) != value}
            for part in ("pins", "ring")
        }
        data = {"format": FORMAT, "name": config.get("name", board["title"]), "board": board["name"]}
        data.update({key: config[key] for key in SAME if key in config})
        data["rules"] = rules
        if config["dice"]:
            dice = {key: config[key] for key in ("serial", "issued") if key in config}
            dice.update({f"die{number}": faces for number, faces in enumerate(config["dice"], 1)})
            data["dice"] = {"eye": config["eye"] + 1, **dice}
        data.update({part: entries for part, entries in changed.items() if entries})
    except BadInput:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(
            _("{where}: no table's configuration is there ({error!r})").format(where=where, error=error)
        ) from None
    return data, pack


def flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every entry under its dotted key; lists are whole.

    >>> flat({"a": {"b": 1, "c": [2]}, "d": {}})
    {'a.b': 1, 'a.c': [2]}
    """
    found: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            found.update(flat(value, f"{prefix}{key}."))
        else:
            found[prefix + key] = value
    return found


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(key, value in `old`, value in `new`) of each entry that differs; None where there is none."""
    before, after = flat(old), flat(new)
    keys = [*before, *(key for key in after if key not in before)]
    return [(key, before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)]


def is_text(keys: Sequence[int | str]) -> bool:
    """Whether the schema wants a string at these keys."""
    return _node(json_schema(), keys).get("type") == "string"


def keys_of(dotted: str) -> list[int | str]:
    """The parts of a dotted key; digits are the index in a list.

    >>> keys_of("dice.die1.0")
    ['dice', 'die1', 0]
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", dotted):
        raise BadInput(
            _("{key} is not a key; allowed: names joined by dots, such as settings.settle_ms").format(key=show(dotted))
        )
    return [int(part) if part.isdigit() else part for part in dotted.split(".")]
