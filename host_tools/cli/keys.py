"""`tablectl keys`: who may ask a table for what, and whose record it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoneye.errors import BadInput
from dragoneye.keys import JOURNAL, NAMES, PATH, name_of
from host_tools import keys as work
from host_tools import private
from host_tools.cli.common import port_option
from host_tools.cli.output import console, json_option, print_json, table
from host_tools.i18n import _, ngettext
from host_tools.link import LinkError, Message

if TYPE_CHECKING:
    from host_tools.board_files import Started

# What reads as a table's unique id.
_LOOK = """
import machine, os
from binascii import hexlify
try:
    there = os.stat({path!r})[6] >= 0
except OSError:
    there = False
print(hexlify(machine.unique_id()).decode().upper(), int(there))
"""


@click.group()
def keys() -> None:
    """A table's keys: with them only signed requests are done, and its record is tagged.

    There are four: the dealer's, the supervisor's, the technician's and the journal's. They are made here, copied to
    the table over the cable, kept in this computer's keyring (or in a private file), and never shown; no table gives
    them out.
    """


@keys.command()
@port_option
@json_option
def provision(port: str, as_json: bool) -> None:
    """Give a table its first keys; between rounds."""
    _renew(port, False, as_json)


@keys.command()
@port_option
@json_option
def rotate(port: str, as_json: bool) -> None:
    """Give a table new keys in place of its old ones; between rounds.

    The old roles' keys are forgotten here; the old journal key is kept, for what the table recorded under it. Where
    the technician's key is lost, turn the table's service key on and press reset first.
    """
    _renew(port, True, as_json)


def _renew(port: str, again: bool, as_json: bool) -> None:
    from host_tools.board_files import BoardFiles

    store = work.Keys()
    # Before the table is stopped: what cannot be kept here shall not be there either.
    store.held()
    with BoardFiles(port) as files:
        uid, there = files.run(_LOOK.format(path=PATH)).decode().split()
        if int(there) and not again:
            words = _("{port}: table {uid} has keys already; `tablectl keys rotate` gives it new ones")
            raise BadInput(words.format(port=port, uid=uid))
        if again and not int(there):
            words = _("{port}: table {uid} has no keys yet; `tablectl keys provision` gives it some")
            raise BadInput(words.format(port=port, uid=uid))
        raw = work.made()
        key_id = name_of(raw[JOURNAL])
        # First here: whatever happens then, the table has no keys that nobody holds.
        found = store.add(uid, key_id, raw)
        files.write({PATH.lstrip("/"): work.file_of(raw)})
        try:
            started = files.start()
        except LinkError as error:
            words = _("{port}: table {uid} has its new keys {key_id}, but has not started with them: {why}")
            raise BadInput(words.format(port=port, uid=uid, key_id=key_id, why=error)) from None
    if started.told is not None:
        _check(started.told, port, uid, key_id)
    # Also where no table runs yet: the new keys are on its flash, read back.
    store.retire(uid, key_id)
    _tell(found, started, port, as_json)


def _check(told: Message, port: str, uid: str, key_id: str) -> None:
    """Raise BadInput unless the table runs with these keys."""
    if told.get("key_id") != key_id:
        words = _("{port}: table {uid} does not use its new keys; its firmware may be too old for keys: tablectl flash")
        raise BadInput(words.format(port=port, uid=uid))


def _tell(found: work.KeySet, started: Started, port: str, as_json: bool) -> None:
    [held] = work.Keys().held(found.uid, found.key_id)
    if as_json:
        print_json(
            {
                "table": found.uid,
                "port": port,
                "key_id": found.key_id,
                "in": held.as_dict()["in"],
                "runs": started.told is not None,
            }
        )
        return
    out = console()
    place = _("this computer's keyring") if held.in_keyring else str(work.default_path())
    words = _("table {uid} has the keys {key_id}; they are in {place}")
    out.print(words.format(uid=found.uid, key_id=found.key_id, place=place), markup=False)
    out.print(
        _("for another computer: tablectl keys export --table {uid} --role ROLE FILE").format(uid=found.uid),
        markup=False,
    )
    if started.key_is_on:
        out.print(_("{port}: turn the service key off and press reset, and the table starts").format(port=port))
    elif started.told is None:
        out.print(_("{port}: no table answers there yet; its firmware: tablectl flash --port {port}").format(port=port))
    elif not started.told.get("locked"):
        words = _(
            "the table is not locked: whoever has its cable can read its keys. `locked = true` in its configuration"
        )
        out.print(words, markup=False)


@keys.command(name="list")
@json_option
def list_keys(as_json: bool) -> None:
    """Which keys this computer holds."""
    held = work.Keys().held()
    if as_json:
        for one in held:
            print_json(one.as_dict())
        return
    if not held:
        console().print(_("this computer holds no keys; `tablectl keys provision` or `import` gets some"))
        return
    rows = table(_("table"), _("set"), _("since"), _("keys"), _("kept in"))
    for one in held:
        names = ", ".join(work.in_words(name) for name in one.names)
        rows.add_row(one.uid, one.key_id, one.since, names, _("keyring") if one.in_keyring else _("file"))
    console().print(rows)


def _one_set(uid: str, key_id: str | None) -> work.KeySet:
    """The table's set of this name, or its newest that has a role's key."""
    held = work.Keys().held(uid, key_id)
    held = [one for one in held if one.names != (JOURNAL,)] or held
    found = work.Keys().find(uid, held[-1].key_id) if held else None
    if found is None:
        known = sorted({one.uid for one in work.Keys().held()})
        words = _("this computer holds no such keys of table {uid}; it holds keys of: {known}")
        raise BadInput(words.format(uid=uid, known=", ".join(known) or _("none")))
    return found


@keys.command()
@click.option("--table", "uid", required=True, help="The table's unique id.")
@click.option(
    "--role",
    "names",
    type=click.Choice(NAMES),
    multiple=True,
    required=True,
    help="Whose key goes into the file; as often as needed.",
)
@click.option("--set", "key_id", help="The set's name (default: the newest).")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def export(uid: str, names: tuple[str, ...], key_id: str | None, file: Path, as_json: bool) -> None:
    """Write keys to a new private FILE, for `import` on another computer; delete it there and here afterwards.

    A dealer's station needs no more than the dealer's key.
    """
    found = _one_set(uid, key_id)
    work.export_file(found, names, file)
    if as_json:
        print_json({"table": uid, "key_id": found.key_id, "keys": list(names), "file": str(file)})
        return
    words = _(
        "{path}: keys of table {uid}: {names}. Whoever has this file can sign with them: delete it when it is imported"
    )
    told = ", ".join(work.in_words(name) for name in names)
    console().print(words.format(path=file, uid=uid, names=told), markup=False)


@keys.command(name="import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def import_keys(file: Path, as_json: bool) -> None:
    """Take in the keys of a FILE that `export` wrote."""
    uid, key_id, raw = work.import_file(file)
    exposed = private.others_may_read(file)
    found = work.Keys().add(uid, key_id, raw)
    if as_json:
        print_json({"table": uid, "key_id": key_id, "keys": list(found.names), "others_may_read": exposed})
        return
    if exposed:
        words = _("warning: others may read {path} (mode {mode:04o}): rotate keys that somebody else may have")
        click.echo(words.format(path=file, mode=file.stat().st_mode & 0o777), err=True)
    words = _("table {uid}: this computer holds the keys {key_id} of: {names}. Delete {path} now")
    told = ", ".join(work.in_words(name) for name in found.names)
    console().print(words.format(uid=uid, key_id=key_id, names=told, path=file), markup=False)


@keys.command()
@click.argument("uid")
@click.option("--set", "key_id", help="One set of keys only (default: all of the table's).")
@click.option("--yes", is_flag=True, help="Also journal keys, without which tags of the record are checked no more.")
@json_option
def forget(uid: str, key_id: str | None, yes: bool, as_json: bool) -> None:
    """Remove a table's keys from this computer; the table keeps them."""
    store = work.Keys()
    held = store.held(uid, key_id)
    if not held:
        _one_set(uid, key_id)
    if not yes and any(JOURNAL in one.names for one in held):
        words = _(
            "table {uid}: its journal key would be lost, by which its record is checked; say --yes if it shall be"
        )
        raise BadInput(words.format(uid=uid))
    count = store.forget(uid, key_id)
    if as_json:
        print_json({"table": uid, "forgotten": count})
        return
    console().print(
        ngettext(
            "table {uid}: {count} set of keys was forgotten", "table {uid}: {count} sets of keys were forgotten", count
        ).format(uid=uid, count=count)
    )
