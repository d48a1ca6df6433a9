"""The record as files for other programs: rounds or raw rolls as CSV, JSON Lines or Parquet, in constant memory."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from dragoneye.errors import BadInput
from host_tools import corrections
from host_tools.i18n import _
from host_tools.store import Message, Roll, Search, Store

FORMATS = ("csv", "jsonl", "parquet")
_BATCH = 500
_ROW_GROUP = 10_000

# Columns with their kinds: "int" and "text" may be empty, "flag" is 0 or 1 in CSV.
ROUND_COLUMNS = {
    "table": "text",
    "round": "int",
    "utc": "text",
    "status": "text",
    "dice_set": "int",
    "serial": "text",
    "shaker": "int",
    "voids": "text",
    "die_1": "int",
    "die_2": "int",
    "die_3": "int",
    "eye_die": "int",
    "total": "int",
    "triples_before": "int",
    "level": "int",
    "manual": "text",
    "wagered": "int",
    "dice_net": "int",
    "tiles_net": "int",
    "corrected": "text",
    "corrected_dice": "text",
}
ROLL_COLUMNS = {
    "table": "text",
    "round": "int",
    "utc": "text",
    "dice_set": "int",
    "serial": "text",
    "die_1": "int",
    "die_2": "int",
    "die_3": "int",
    "eye_die": "int",
    "manual": "flag",
}


class Target:
    """Where an export goes: bytes are counted and hashed on their way."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.bytes = 0
        self.rows = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        """Write bytes."""
        self._hash.update(data)
        self.bytes += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Nothing is held back here."""

    def tell(self) -> int:
        """How many bytes were written."""
        return self.bytes

    @property
    def sha256(self) -> str:
        """Of all bytes, in hex."""
        return self._hash.hexdigest()


@contextmanager
def target(path: str) -> Iterator[Target]:
    """A file that is there whole or not at all; "-" is standard output.

    Raises BadInput when it is there already or cannot be written.
    """
    if path == "-":
        yield Target(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    place = Path(path)
    if place.exists():
        raise BadInput(_("{path}: is there already; name another file").format(path=path))
    unfinished = place.with_name(place.name + ".part")
    try:
        with open(unfinished, "wb") as file:
            yield Target(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, place)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise BadInput(_("{path} cannot be written: {why}").format(path=path, why=error.strerror or error)) from None
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


class Serials:
    """The serials of the dice sets, looked up once for each table."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, dict[int, str | None]] = {}

    def of(self, uid: str, dice_set: int) -> str | None:
        """The serial of a dice set, where the table told one."""
        if uid not in self._known:
            self._known[uid] = {row["dice_set"]: row["serial"] for row in self._store.dice_sets(uid)}
        return self._known[uid].get(dice_set)


def with_void_reasons(store: Store, rounds: Iterable[Message]) -> Iterator[tuple[Message, list[str]]]:
    """Each round with the reasons of its void rolls, in as few questions to the database as batches."""
    stream = iter(rounds)
    while batch := list(islice(stream, _BATCH)):
        reasons: dict[tuple[str, int], list[str]] = {}
        for uid in {one["table"] for one in batch}:
            numbers = [one["round"] for one in batch if one["table"] == uid and one["voids"]]
            reasons.update(((uid, number), why) for number, why in store.void_reasons(uid, numbers).items())
        for one in batch:
            yield one, reasons.get((one["table"], one["round"]), [])


def round_rows(store: Store, search: Search) -> Iterator[Message]:
    """The rounds as rows of ROUND_COLUMNS; money in cents, nets are the table's.

    Dice and total are those that were recorded, `corrected_dice` those that count; so do `wagered` and the nets.
    """
    serials = Serials(store)
    for one, voids in with_void_reasons(store, store.stream(search)):
        row: Message = dict.fromkeys(ROUND_COLUMNS)
        for key in ("table", "round", "utc", "status", "dice_set", "shaker"):
            row[key] = one[key]
        row["serial"] = serials.of(one["table"], one["dice_set"])
        row["voids"] = " ".join(voids)
        result = one.get("result")
        if result:
            row["die_1"], row["die_2"], row["die_3"] = result["dice"]
            row["eye_die"] = result["eye"] + 1
            row["triples_before"] = result["before"]
            for key in ("total", "level", "manual"):
                row[key] = result[key]
            counts = corrections.standing(one) or result
            row["wagered"] = sum(wager[2] for wager in counts["rows"])
            row["dice_net"] = -counts["net"]
            if one.get("corrected"):
                row["corrected"] = corrections.kinds(one)
                row["corrected_dice"] = " ".join(map(str, counts["dice"]))
        if one.get("tiles"):
            row["tiles_net"] = -sum(player["net"] for player in one["tiles"]["players"])
        yield row


def roll_rows(store: Store, rolls: Iterable[Roll]) -> Iterator[Message]:
    """Raw rolls as rows of ROLL_COLUMNS, for a test lab."""
    serials = Serials(store)
    for roll in rolls:
        first, second, third = map(int, roll.dice.split())
        yield {
            "table": roll.uid,
            "round": roll.number,
            "utc": roll.utc,
            "dice_set": roll.dice_set,
            "serial": serials.of(roll.uid, roll.dice_set),
            "die_1": first,
            "die_2": second,
            "die_3": third,
            "eye_die": roll.eye + 1,
            "manual": roll.manual is not None,
        }


def write(
    rows: Iterable[Message],
    columns: dict[str, str],
    kind: str,
    out: Target,
    progress: Callable[[int], None] = lambda rows: None,
) -> None:
    """Write rows as `kind`, one of FORMATS. Raises BadInput when Parquet's package is not there."""
    batches = {"csv": _csv, "jsonl": _json_lines, "parquet": _parquet}[kind](columns, out)
    next(batches)
    stream = iter(rows)
    while batch := list(islice(stream, _ROW_GROUP if kind == "parquet" else _BATCH)):
        batches.send(batch)
        out.rows += len(batch)
        progress(len(batch))
    batches.close()


Batches = Any


def _csv(columns: dict[str, str], out: Target) -> Batches:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    while True:
        out.write(text.getvalue().encode())
        text.seek(0)
        text.truncate()
        for row in (yield):
            writer.writerow([_cell(row[name], kind) for name, kind in columns.items()])


def _cell(value: Any, kind: str) -> Any:
    if value is None:
        return ""
    if kind == "flag":
        return int(value)
    if kind == "text" and value[:1] in ("=", "+", "-", "@", "\t"):
        # A spreadsheet would take it for a formula.
        return "'" + value
    return value


def _json_lines(columns: dict[str, str], out: Target) -> Batches:
    while True:
        rows = yield
        out.write("".join(json.dumps(row) + "\n" for row in rows).encode())


def _parquet(columns: dict[str, str], out: Target) -> Batches:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise BadInput(
            _("Parquet needs one more package; install it with: pip install 'dragoneye-table[parquet]'")
        ) from None
    kinds = {"int": pyarrow.int64(), "text": pyarrow.string(), "flag": pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with parquet.ParquetWriter(out, schema) as writer:
        while True:
            rows = yield
            writer.write_table(pyarrow.Table.from_pylist(rows, schema))
