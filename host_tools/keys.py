"""A table's keys on this computer: in the system's keyring, or else in a file that only its owner may read.

Keys come in sets of four, one for each of dragoneye.keys.NAMES, made together and named by their `key_id`, which a
table's hello tells. So a set that was made but never got to the table does no harm, and the journal key of an old set
goes on telling what the table recorded then. An index file says which sets are held and where; where there is no
keyring the keys themselves are in it.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dragoneye.errors import BadInput
from dragoneye.keys import FORMAT, JOURNAL, KEY_BYTES, NAMES, Key, name_of
from dragoneye.protocol import DEALER, SUPERVISOR, TECHNICIAN
from host_tools import bounded, private
from host_tools.i18n import _

SERVICE = "dragoneye-table"
ENVIRONMENT = "DRAGONEYE_KEYS"
_INDEX_FORMAT = 1
_HEX = frozenset("0123456789abcdef")


class Secret(bytes):
    """A key's bytes, which show nothing in a traceback or a log."""

    def __repr__(self) -> str:
        return "<key>"

    __str__ = __repr__


class KeysError(BadInput):
    """Keys cannot be had or kept; the text says why and what to do, and holds no key."""


@dataclass(frozen=True)
class KeySet:
    """Keys of one table, made together: those of NAMES that this computer holds, and since when."""

    uid: str
    key_id: str
    stored: str
    raw: Mapping[str, Secret] = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Which keys are held."""
        return tuple(name for name in NAMES if name in self.raw)

    def key(self, name: str) -> Key | None:
        """The key of a role, or the journal's; None when it is not held."""
        return Key(self.raw[name]) if name in self.raw else None


class Held(NamedTuple):
    """Which keys of a set are held, since when, and whether in the system's keyring; the keys are not in it."""

    uid: str
    key_id: str
    since: str
    names: tuple[str, ...]
    in_keyring: bool

    def as_dict(self) -> dict[str, Any]:
        """The set as JSON."""
        return {
            "table": self.uid,
            "key_id": self.key_id,
            "since": self.since,
            "keys": list(self.names),
            "in": "keyring" if self.in_keyring else "file",
        }


def in_words(name: str) -> str:
    """Whose key one of NAMES is."""
    words = {DEALER: _("dealer"), SUPERVISOR: _("supervisor"), TECHNICIAN: _("technician"), JOURNAL: _("journal")}
    return words[name]


def made() -> dict[str, Secret]:
    """New random keys, one for each of NAMES."""
    return {name: Secret(secrets.token_bytes(KEY_BYTES)) for name in NAMES}


def file_of(raw: Mapping[str, bytes]) -> bytes:
    """The content of the table's /keys.json, of the 32 bytes of each key of NAMES."""
    stored = {name: raw[name].hex() for name in NAMES}
    return json.dumps({"format": FORMAT, **stored}, separators=(",", ":")).encode()


def signed(body: bytes, role: str, counter: int, key: Key, uid: str, nonce: str) -> bytes:
    """`body`, the bytes of a request's frame without its CRC, with its signature as the last member."""
    claim = f"{role}:{counter}"
    before = body[:-1]
    return before + f',"a":"{claim}:{key.sign(uid, nonce, before, claim)}"}}'.encode()


def default_path() -> Path:
    """$DRAGONEYE_KEYS, or keys.json in the user's data folder."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "dragoneye" / "keys.json"


def _system_ring() -> Any:
    """The system's keyring as the `keyring` package finds it; None where there is none, or a file is named."""
    if os.environ.get(ENVIRONMENT):
        return None
    import keyring

    found = keyring.get_keyring()
    # Zero and less: one that only refuses, or forgets.
    return found if found.priority > 0 else None


class Keys:
    """The sets of keys on this computer; `path` is the index (default: default_path()).

    Every method raises KeysError in words when keys cannot be read or kept.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()

    # -- the index -------------------------------------------------------------------------------------------------

    def _rows(self) -> list[dict[str, Any]]:
        try:
            if private.others_may_read(self.path):
                mode = self.path.stat().st_mode & 0o777
                words = _("{path}: others may read it (mode {mode:04o}); nothing is taken from it: chmod 600 {path}")
                raise KeysError(words.format(path=self.path, mode=mode))
            data = json.loads(bounded.read_text(self.path, encoding="utf-8"))
            if data["format"] != _INDEX_FORMAT:
                raise ValueError
            return [_checked(row) for row in data["sets"]]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise KeysError(f"{self.path}: {error.strerror}") from None
        except KeysError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            words = _("{path}: this is no file of keys; move it away, then import or provision the keys again")
            raise KeysError(words.format(path=self.path)) from None

    def _write(self, rows: list[dict[str, Any]]) -> None:
        try:
            private.write(self.path, json.dumps({"format": _INDEX_FORMAT, "sets": rows}, indent=1) + "\n")
        except OSError as error:
            raise KeysError(f"{self.path}: {error.strerror}") from None

    def _load(self, row: Mapping[str, Any]) -> KeySet:
        stored = row.get("keys")
        if stored is None:
            text = _asked(lambda ring: ring.get_password(SERVICE, _entry(row)))
            try:
                stored = json.loads(text or "")
                if sorted(stored) != sorted(row["names"]):
                    raise ValueError
            except (ValueError, TypeError):
                words = _("the keys of table {uid} are not in the system's keyring any more; import them again")
                raise KeysError(words.format(uid=row["uid"])) from None
        return KeySet(row["uid"], row["key_id"], row["stored"], _raw_of(stored))

    def _keep(self, found: KeySet) -> None:
        """Put a set in the place of the one of its name."""
        row: dict[str, Any] = {"uid": found.uid, "key_id": found.key_id, "stored": found.stored}
        row["names"] = list(found.names)
        stored = {name: found.raw[name].hex() for name in found.names}
        if _system_ring() is None:
            row["keys"] = stored
        else:
            _asked(lambda ring: ring.set_password(SERVICE, _entry(row), json.dumps(stored)))
        rows = self._rows()
        places = [place for place, one in enumerate(rows) if _entry(one) == _entry(row)]
        at = places[0] if places else len(rows)
        self._write([*rows[:at], row, *rows[at + 1 :]])

    # -- what is held ----------------------------------------------------------------------------------------------

    def held(self, uid: str | None = None, key_id: str | None = None) -> list[Held]:
        """Which sets are held, oldest first: all, or those of a table, or that one; no key is read."""
        return [
            Held(row["uid"], row["key_id"], row["stored"], tuple(row["names"]), "keys" not in row)
            for row in self._rows()
            if uid in (None, row["uid"]) and key_id in (None, row["key_id"])
        ]

    def knows(self, uid: str) -> bool:
        """Whether any key of a role at this table is held."""
        return any(row["uid"] == uid and row["names"] != [JOURNAL] for row in self._rows())

    def find(self, uid: str, key_id: str) -> KeySet | None:
        """The set of this name, None when it is not held."""
        for row in self._rows():
            if (row["uid"], row["key_id"]) == (uid, key_id):
                return self._load(row)
        return None

    def journal_keys(self, uid: str) -> dict[str, Key]:
        """The journal keys of a table that are held, old ones among them, by the key_id of their set."""
        rows = [row for row in self._rows() if row["uid"] == uid and JOURNAL in row["names"]]
        return {row["key_id"]: Key(self._load(row).raw[JOURNAL]) for row in rows}

    # -- changes ---------------------------------------------------------------------------------------------------

    def add(self, uid: str, key_id: str, raw: Mapping[str, bytes]) -> KeySet:
        """Keep keys of a table's set, beside those of the same set that are held already."""
        before = self.find(uid, key_id)
        all_of_it = {**(before.raw if before else {}), **{name: Secret(raw[name]) for name in raw}}
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        found = KeySet(uid, key_id, before.stored if before else now, all_of_it)
        self._keep(found)
        return found

    def retire(self, uid: str, present: str) -> None:
        """The table has the set `present` now: of its older ones only the journal keys are kept."""
        for row in self._rows():
            if row["uid"] == uid and row["key_id"] != present and row["names"] != [JOURNAL]:
                if JOURNAL in row["names"]:
                    old = self._load(row)
                    self._keep(KeySet(uid, old.key_id, old.stored, {JOURNAL: old.raw[JOURNAL]}))
                else:
                    self.forget(uid, row["key_id"])

    def forget(self, uid: str, key_id: str | None = None) -> int:
        """Remove a set of a table, or all of them; how many."""
        kept: list[dict[str, Any]] = []
        gone: list[dict[str, Any]] = []
        for row in self._rows():
            (gone if row["uid"] == uid and key_id in (None, row["key_id"]) else kept).append(row)
        for entry in [_entry(row) for row in gone if "keys" not in row]:
            _asked(partial(_delete, entry))
        if gone:
            self._write(kept)
        return len(gone)


def _entry(row: Mapping[str, Any]) -> str:
    return f"{row['uid']}/{row['key_id']}"


def _delete(entry: str, ring: Any) -> None:
    # One that is not there any more is gone.
    if ring.get_password(SERVICE, entry) is not None:
        ring.delete_password(SERVICE, entry)


def _asked(ask: Any) -> Any:
    """What the system's keyring answers."""
    from keyring.errors import KeyringError

    ring = _system_ring()
    if ring is None:
        words = _("there is no system keyring here, where the keys were kept; unset ${name}, or import the keys again")
        raise KeysError(words.format(name=ENVIRONMENT))
    try:
        return ask(ring)
    except (KeyringError, OSError, RuntimeError) as error:
        words = _("the system's keyring refuses ({why}); unlock it, or name a file for the keys in ${name}")
        raise KeysError(words.format(why=type(error).__name__, name=ENVIRONMENT)) from None


def _checked(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the index. Raises ValueError or the like when it is none."""
    if not all(isinstance(row[name], str) for name in ("uid", "key_id", "stored")):
        raise ValueError
    if not row["names"] or any(name not in NAMES for name in row["names"]):
        raise ValueError
    if "keys" in row:
        if sorted(row["keys"]) != sorted(row["names"]):
            raise ValueError
        _raw_of(row["keys"])
    return row


def _raw_of(stored: Mapping[str, str]) -> dict[str, Secret]:
    """The keys of their hex digits. Raises ValueError, which holds no key."""
    raw = {}
    for name, digits in stored.items():
        if name not in NAMES or len(digits) != 2 * KEY_BYTES or not _HEX.issuperset(digits):
            raise ValueError(name)
        raw[name] = Secret(bytes.fromhex(digits))
    return raw


# -- from one computer to another ----------------------------------------------------------------------------------


def export_file(found: KeySet, names: Sequence[str], path: Path) -> None:
    """Write some keys of a set to a new file that only its owner may read."""
    missing = [name for name in names if name not in found.raw]
    if missing:
        words = _("table {uid}: this computer does not hold the key: {names}; it holds: {held}")
        raise KeysError(words.format(uid=found.uid, names=", ".join(missing), held=", ".join(found.names)))
    stored = {name: found.raw[name].hex() for name in names}
    data = {"format": _INDEX_FORMAT, "uid": found.uid, "key_id": found.key_id, "keys": stored}
    try:
        private.write(path, json.dumps(data, indent=1) + "\n", new=True)
    except FileExistsError:
        raise KeysError(_("{path}: there is such a file already; nothing was written").format(path=path)) from None
    except OSError as error:
        raise KeysError(f"{path}: {error.strerror}") from None


def import_file(path: Path) -> tuple[str, str, dict[str, Secret]]:
    """(unique id, key_id, keys) of a file that `export_file` wrote."""
    try:
        data = json.loads(bounded.read_text(path, encoding="utf-8"))
        uid, key_id, raw = data["uid"], data["key_id"], _raw_of(data["keys"])
        if data["format"] != _INDEX_FORMAT or not raw or not isinstance(uid, str) or not isinstance(key_id, str):
            raise ValueError
        if JOURNAL in raw and name_of(raw[JOURNAL]) != key_id:
            raise ValueError
    except OSError as error:
        raise KeysError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        words = _("{path}: this is no file of `tablectl keys export`, or it is damaged; nothing was taken from it")
        raise KeysError(words.format(path=path)) from None
    return uid, key_id, raw


# -- for the link --------------------------------------------------------------------------------------------------


class Ring:
    """What a link signs with: looked up when it is needed, and kept while the program runs."""

    def __init__(self, keys: Keys | None = None) -> None:
        self._keys = keys
        self._found: dict[tuple[str, str], KeySet] = {}

    def _store(self) -> Keys:
        # Not before: what is named in the environment counts when it is needed.
        return self._keys or Keys()

    def key(self, uid: str, key_id: str, roles: Sequence[str]) -> tuple[str, Key]:
        """(role, key) of the first of `roles` whose key is held. Raises KeysError that says which are needed."""
        for again in (False, True):
            found = None if again else self._found.get((uid, key_id))
            found = found or self._store().find(uid, key_id)
            if found is None:
                break
            self._found[uid, key_id] = found
            for role in roles:
                key = found.key(role)
                if key is not None:
                    return role, key
        raise KeysError(self._missing(uid, key_id, roles))

    def _missing(self, uid: str, key_id: str, roles: Sequence[str]) -> str:
        needed = _(" or ").join(in_words(role) for role in roles)
        others = [one.key_id for one in self._store().held(uid) if one.key_id != key_id]
        if others and (uid, key_id) not in self._found:
            words = _(
                "table {uid}: this needs the key of its {needed}, of the set {key_id}; this computer has keys of an "
                "older or another set ({others}): tablectl keys import FILE, with a file from where they were made"
            )
            return words.format(uid=uid, needed=needed, key_id=key_id, others=", ".join(others))
        words = _(
            "table {uid}: this needs the key of its {needed}, which this computer does not hold: tablectl keys import "
            "FILE, with a file of `tablectl keys export` from a computer that holds it"
        )
        return words.format(uid=uid, needed=needed)

    def knows(self, uid: str) -> bool:
        """Whether this computer holds keys of a table."""
        return self._store().knows(uid)


RING = Ring()
