"""A table's TOML file: read, changed in place with its comments and order, and never half written."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.items import AbstractTable, Item

from dragoneye.errors import BadInput
from dragoneye.text import show
from host_tools.board_data import board_data
from host_tools.configuration import TableConfig, is_text, json_schema
from host_tools.i18n import _

# A table's file has some kilobytes; a device or a pipe may have no end.
SIZE_MAX = 1_000_000


def parse(text: str, where: str) -> tomlkit.TOMLDocument:
    """A TOML text. Raises BadInput naming the line and column of a mistake."""
    try:
        document = tomlkit.parse(text)
        # tomlkit finds some mistakes, such as a table that is there twice, only when the values are asked for.
        document.unwrap()
    except ParseError as error:
        words = _("{where}: line {line}, column {column}: this is not TOML ({detail})")
        raise BadInput(
            words.format(where=where, line=error.line, column=error.col, detail=str(error).rpartition(" at line ")[0])
        ) from None
    except (TOMLKitError, ValueError, RecursionError) as error:
        raise BadInput(_("{where}: this is not TOML ({detail})").format(where=where, detail=error)) from None
    return document


def read(path: Path) -> str:
    """The text of a file, without the mark that Windows' editors put first. Raises BadInput when it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_MAX + 1)
        if len(data) > SIZE_MAX:
            words = _("{path}: this is no table file: it is longer than {most} bytes")
            raise BadInput(words.format(path=path, most=SIZE_MAX))
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        words = _("{path}: there is no such file; `tablectl config new` makes one")
        raise BadInput(words.format(path=path)) from None
    except UnicodeDecodeError as error:
        raise BadInput(_("{path}: byte {byte} is not UTF-8 text").format(path=path, byte=error.start)) from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None


def write(path: Path, content: str | bytes) -> None:
    """Put `content` in place of a file in one step: whatever happens, the old or the new one is there.

    Raises BadInput for a file that is marked read-only, or a folder that takes no file.
    """
    target = path.resolve()
    data = content.encode() if isinstance(content, str) else content
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        if not mode & 0o222:
            raise BadInput(_("{path}: the file is read-only; nothing was changed").format(path=path))
        handle, name = tempfile.mkstemp(prefix=target.name + ".", suffix=".new", dir=target.parent)
        beside = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.chmod(mode)
            beside.replace(target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        words = _("{path}: {why}; nothing was changed")
        raise BadInput(words.format(path=path, why=error.strerror)) from None


def value_of(text: str, keys: Sequence[int | str]) -> Any:
    """What a person typed for the entry at `keys`: TOML, or text where the schema wants text.

    >>> value_of("500", ["settings", "settle_ms"]), value_of("7", ["name"]), value_of("Table 7", ["name"])
    (500, '7', 'Table 7')
    """
    try:
        value = tomlkit.value(text).unwrap()
    except (TOMLKitError, ValueError, RecursionError):
        return text
    return text if is_text(keys) and not isinstance(value, str) else value


def lookup(data: Any, keys: Sequence[int | str], where: str) -> Any:
    """The entry at `keys`. Raises BadInput naming those that there are."""
    found = data
    for index, key in enumerate(keys):
        if isinstance(found, Mapping) and str(key) in found:
            found = found[str(key)]
        elif isinstance(found, list) and isinstance(key, int) and key < len(found):
            found = found[key]
        else:
            there = range(len(found)) if isinstance(found, list) else found if isinstance(found, Mapping) else ()
            words = _("{where}: there is no entry {key}; there are {known}")
            known = ", ".join(str(name) for name in there) or _("none")
            raise BadInput(
                words.format(where=where, key=".".join(str(part) for part in keys[: index + 1]), known=known)
            )
    return found


def put(text: str, keys: Sequence[int | str], value: Any, where: str) -> str:
    """The text with the entry at `keys` set, and the tables on the way to it; comments and order stay.

    An entry that stands there as a comment (`# jolts = 3`) takes its place. Raises BadInput when something on the way
    has no entries.
    """
    document = parse(text, where)
    _put(document, keys, value, where)
    wanted = document.unwrap()
    # tomlkit puts what is new behind the comments of the next table: tried here first, and taken if it means the same.
    try:
        tidy = _tidily(text, [str(key) for key in keys], value)
        if parse(tidy, where).unwrap() == wanted:
            return tidy
    except BadInput:
        pass
    return str(document.as_string())


def _put(document: tomlkit.TOMLDocument, keys: Sequence[int | str], value: Any, where: str) -> None:
    at: Any = document
    for key in keys[:-1]:
        if isinstance(at, MutableMapping) and str(key) not in at:
            at[str(key)] = tomlkit.table()
        at = lookup(at, [key], where)
    last = keys[-1]
    if isinstance(at, list):
        lookup(at, [last], where)
        at[int(last)] = value
    elif isinstance(at, MutableMapping):
        item = tomlkit.item(value)
        old = at.get(str(last))
        if isinstance(old, Item) and not isinstance(old, AbstractTable):
            # The comment behind the value belongs to the entry, not to the value.
            item.trivia.indent, item.trivia.comment_ws = old.trivia.indent, old.trivia.comment_ws
            item.trivia.comment, item.trivia.trail = old.trivia.comment, old.trivia.trail
        at[str(last)] = item
    else:
        words = _("{where}: {key} is {value}, which has no entries")
        raise BadInput(words.format(where=where, key=".".join(str(key) for key in keys[:-1]), value=show(at)))


def remove(text: str, keys: Sequence[int | str], where: str) -> str:
    """The text without the entry at `keys`; the rest of it stays. Raises BadInput when it is not there."""
    document = parse(text, where)
    lookup(document, keys, where)
    above = lookup(document, keys[:-1], where)
    if not isinstance(above, MutableMapping):
        words = _("{where}: {key} is one of a list; set the whole list")
        raise BadInput(words.format(where=where, key=".".join(str(key) for key in keys)))
    del above[str(keys[-1])]
    return str(document.as_string())


def _tidily(text: str, keys: list[str], value: Any) -> str:
    """The text with a new entry in the paragraph of its table, or in place of its comment."""
    lines = text.splitlines()
    heads = [index for index, line in enumerate(lines) if re.match(r"\s*\[", line)]
    name = ".".join(keys[:-1])
    start = next((index for index in heads if lines[index].split("#")[0].strip() == f"[{name}]"), -1)
    if name and start < 0:
        return text
    end = next((index for index in heads if index > start), len(lines))
    new = f"{keys[-1]} = {_toml(value)}"
    last = start
    for index in range(start + 1, end):
        found = re.fullmatch(rf"# {re.escape(keys[-1])} =[^#]*(#.*)?", lines[index])
        if found:
            lines[index] = new + (f"  {found[1]}" if found[1] else "")
            return "\n".join(lines) + "\n"
        if lines[index].strip() and not lines[index].lstrip().startswith("#"):
            last = index
    return "\n".join([*lines[: last + 1], new, *lines[last + 1 :]]) + "\n"


def schema_text() -> str:
    """The JSON schema as its committed file has it (boards/examples/table.schema.json)."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def text_of(data: Mapping[str, Any]) -> str:
    """A configuration as a new TOML file: every entry that can be given, those that are not as comments."""
    schema = TableConfig.model_json_schema()
    lines = ["# " + _("One table's configuration; `tablectl config validate --file FILE` checks it."), ""]
    _section(lines, "", schema, schema["$defs"], data, {"pins": board_data(data["board"])["pins"]})
    return "\n".join(lines) + "\n"


def _section(
    lines: list[str],
    prefix: str,
    node: Mapping[str, Any],
    defs: Mapping[str, Any],
    data: Mapping[str, Any],
    usual: Mapping[str, Any],
) -> None:
    """Append the entries of one table, then the tables in it; `usual` are values where the schema has no default."""
    inner = []
    for key, entry in node["properties"].items():
        target = next((one for one in entry.get("anyOf", [entry]) if one.get("type") != "null"), entry)
        below = defs.get(target.get("$ref", "").rpartition("/")[2], target)
        if below.get("type") == "object":
            inner.append((key, below, "anyOf" not in entry))
            continue
        words = entry.get("description") or target.get("description", "")
        default = entry.get("default")
        value = data.get(key, usual.get(key) if default is None else default)
        line = f"{key} ="
        if value is not None:
            line += " " + (_toml(value) if key in data else str(tomlkit.item(value).as_string()))
        lines.append(("" if key in data else "# ") + line + (f"  # {_(words)}" if words else ""))
    for key, below, needed in inner:
        given = data.get(key, {})
        lines += ["", f"# {_(below['description'])}"]
        lines.append(f"[{prefix}{key}]" if given or needed else f"# [{prefix}{key}]")
        lines += [f"{option} = {_toml(value)}" for option, value in given.items() if "properties" not in below]
        _section(lines, f"{prefix}{key}.", {"properties": {}, **below}, defs, given, usual.get(key, {}))


def _toml(value: Any) -> str:
    if isinstance(value, list) and len(value) > 3:
        return "[\n" + "".join(f"    {_toml(one)},\n" for one in value) + "]"
    return str(tomlkit.item(value).as_string())
