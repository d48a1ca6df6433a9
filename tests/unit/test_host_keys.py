"""Keys on the computer: in the system's keyring or in a file, never shown, and told clearly when they cannot be had."""

from __future__ import annotations

import json
import os
import stat
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keyring import backend, errors

from dragoneye.keys import NAMES, Key, name_of
from host_tools import keys, private
from host_tools.keys import Keys, KeysError, made
from tests.unit.conftest import Tablectl

RAW = made()
KEY_ID = name_of(RAW["journal"])


class MemoryRing(backend.KeyringBackend):
    """A system's keyring."""

    priority = 5

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def _open(self) -> None:
        if self.locked:
            raise errors.KeyringLocked("secret words of " + str(self.kept))

    def get_password(self, service: str, username: str) -> str | None:
        self._open()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._open()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._open()
        del self.kept[service, username]


@pytest.fixture(params=["file", "keyring"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MemoryRing | None]:
    path = tmp_path / "data" / "keys.json"
    if request.param == "file":
        monkeypatch.setenv("DRAGONEYE_KEYS", str(path))
        yield None
        return
    ring = MemoryRing()
    monkeypatch.delenv("DRAGONEYE_KEYS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("keyring.get_keyring", lambda: ring)
    yield ring


def texts(path: Path) -> str:
    return "".join(file.read_text() for file in path.rglob("*") if file.is_file())


def test_keys_are_kept_and_found_again(place: MemoryRing | None, tmp_path: Path) -> None:
    assert Keys().find("U1", KEY_ID) is None
    assert not Keys().knows("U1")
    Keys().add("U1", KEY_ID, RAW)
    found = Keys().find("U1", KEY_ID)
    assert found is not None
    assert {name: bytes(found.raw[name]) for name in NAMES} == {name: bytes(RAW[name]) for name in NAMES}
    assert Keys().find("U2", KEY_ID) is None
    assert Keys().knows("U1")
    [(uid, key_id, _since, names, in_ring)] = Keys().held()
    assert (uid, key_id, names, in_ring) == ("U1", KEY_ID, NAMES, place is not None)
    mode = stat.S_IMODE(keys.default_path().stat().st_mode)
    assert mode == 0o600
    if place is not None:
        assert not any(raw.hex() in texts(tmp_path) for raw in RAW.values())


def test_more_keys_of_a_set_come_beside_those_that_are_held(place: MemoryRing | None) -> None:
    for name in reversed(NAMES):
        Keys().add("U1", KEY_ID, {name: RAW[name]})
    [(_uid, _key_id, _since, names, _in_ring)] = Keys().held()
    assert names == NAMES


def test_of_an_old_set_only_the_journal_key_is_kept(place: MemoryRing | None) -> None:
    old, other = made(), made()
    Keys().add("U1", name_of(old["journal"]), old)
    Keys().add("U1", name_of(other["journal"]), {"dealer": other["dealer"]})
    Keys().add("U2", name_of(other["journal"]), other)
    Keys().add("U1", KEY_ID, RAW)
    Keys().retire("U1", KEY_ID)
    held = {(uid, key_id): names for uid, key_id, _since, names, _in_ring in Keys().held()}
    assert held == {
        ("U1", name_of(old["journal"])): ("journal",),
        ("U2", name_of(other["journal"])): NAMES,
        ("U1", KEY_ID): NAMES,
    }
    journal = Keys().journal_keys("U1")
    assert sorted(journal) == sorted([KEY_ID, name_of(old["journal"])])
    assert journal[name_of(old["journal"])].mac(b"head") == Key(old["journal"]).mac(b"head")
    if place is not None:
        assert not any(old["dealer"].hex() in text for text in place.kept.values())


def test_what_is_forgotten_is_gone(place: MemoryRing | None, tmp_path: Path) -> None:
    Keys().add("U1", KEY_ID, RAW)
    Keys().add("U2", KEY_ID, RAW)
    assert Keys().forget("U1") == 1
    assert Keys().forget("U1") == 0
    assert Keys().find("U1", KEY_ID) is None
    assert Keys().find("U2", KEY_ID) is not None
    assert Keys().forget("U2", KEY_ID) == 1
    assert not any(raw.hex() in texts(tmp_path) for raw in RAW.values())
    if place is not None:
        assert place.kept == {}


def test_nothing_shows_a_key(place: MemoryRing | None, tmp_path: Path) -> None:
    found = Keys().add("U1", KEY_ID, RAW)
    shown = repr(found) + str(found) + repr(found.raw) + str(found.raw["dealer"]) + repr(found.key("dealer"))
    shown += f"{found.raw['journal']}" + repr(vars(found))
    for raw in RAW.values():
        assert raw.hex() not in shown
        assert bytes.__repr__(raw) not in shown


def test_a_keyring_that_refuses_is_told_without_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = MemoryRing()
    monkeypatch.delenv("DRAGONEYE_KEYS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("keyring.get_keyring", lambda: ring)
    Keys().add("U1", KEY_ID, RAW)
    ring.locked = True
    with pytest.raises(KeysError, match=r"the system's keyring refuses \(KeyringLocked\); unlock it") as raised:
        Keys().find("U1", KEY_ID)
    told = "".join(traceback.format_exception(raised.value))
    assert not any(raw.hex() in told for raw in RAW.values())
    ring.locked = False
    ring.kept.clear()
    with pytest.raises(KeysError, match="the keys of table U1 are not in the system's keyring any more"):
        Keys().find("U1", KEY_ID)
    monkeypatch.setattr("keyring.get_keyring", lambda: _NoRing())
    with pytest.raises(KeysError, match="there is no system keyring here, where the keys were kept"):
        Keys().find("U1", KEY_ID)


class _NoRing:
    priority = 0


def test_without_a_keyring_the_file_is_the_fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAGONEYE_KEYS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("keyring.get_keyring", lambda: _NoRing())
    Keys().add("U1", KEY_ID, RAW)
    [(*_, in_ring)] = Keys().held()
    assert not in_ring
    assert RAW["dealer"].hex() in (tmp_path / "dragoneye" / "keys.json").read_text()


# -- the file --------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "keys.json"
    monkeypatch.setenv("DRAGONEYE_KEYS", str(path))
    return path


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601, 0o777])
def test_a_file_that_others_may_use_is_not_taken(path: Path, mode: int) -> None:
    Keys().add("U1", KEY_ID, RAW)
    path.chmod(mode)
    with pytest.raises(KeysError, match=rf"others may read it \(mode {mode:04o}\).* chmod 600"):
        Keys().find("U1", KEY_ID)
    with pytest.raises(KeysError):
        Keys().add("U1", KEY_ID, RAW)
    path.chmod(0o600)
    assert Keys().find("U1", KEY_ID)


def damaged() -> dict[str, Any]:
    row = {"uid": "U1", "key_id": KEY_ID, "stored": "2026", "names": ["dealer"], "keys": {"dealer": "00" * 32}}
    return {
        "nothing": None,
        "a list": [],
        "another format": {"format": 2, "sets": []},
        "no uid": {"format": 1, "sets": [{**row, "uid": 5}]},
        "an unknown name": {"format": 1, "sets": [{**row, "names": ["boss"], "keys": {"boss": "00" * 32}}]},
        "names that differ": {"format": 1, "sets": [{**row, "names": ["dealer", "journal"]}]},
        "a key too short": {"format": 1, "sets": [{**row, "keys": {"dealer": "00" * 31}}]},
        "a key that is no hex": {"format": 1, "sets": [{**row, "keys": {"dealer": "0g" * 32}}]},
        "a key that is a number": {"format": 1, "sets": [{**row, "keys": {"dealer": 7}}]},
    }


@pytest.mark.parametrize("what", damaged())
def test_a_damaged_file_is_told(path: Path, what: str) -> None:
    path.write_text("" if damaged()[what] is None else json.dumps(damaged()[what]))
    path.chmod(0o600)
    for use in (lambda: Keys().find("U1", KEY_ID), Keys().held, lambda: Keys().add("U1", KEY_ID, RAW)):
        with pytest.raises(KeysError, match="this is no file of keys; move it away"):
            use()


def test_a_place_that_cannot_be_written_is_told(path: Path) -> None:
    path.mkdir()
    path.chmod(0o700)
    with pytest.raises(KeysError, match=f"{path}: "):
        Keys().add("U1", KEY_ID, RAW)


# -- from one computer to another --------------------------------------------------------------------------------


def test_some_keys_go_to_another_computer(path: Path, tmp_path: Path) -> None:
    found = Keys().add("U1", KEY_ID, RAW)
    carried = tmp_path / "dealer.keys"
    keys.export_file(found, ("dealer",), carried)
    assert stat.S_IMODE(carried.stat().st_mode) == 0o600
    assert not any(RAW[name].hex() in carried.read_text() for name in NAMES if name != "dealer")
    uid, key_id, raw = keys.import_file(carried)
    assert (uid, key_id, list(raw), bytes(raw["dealer"])) == ("U1", KEY_ID, ["dealer"], bytes(RAW["dealer"]))
    with pytest.raises(KeysError, match="there is such a file already; nothing was written"):
        keys.export_file(found, NAMES, carried)


def test_a_key_that_is_not_held_cannot_be_exported(path: Path, tmp_path: Path) -> None:
    found = Keys().add("U1", KEY_ID, {"dealer": RAW["dealer"]})
    with pytest.raises(KeysError, match="does not hold the key: supervisor; it holds: dealer"):
        keys.export_file(found, ("dealer", "supervisor"), tmp_path / "keys")
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"uid": None},
        {"key_id": "00000000"},
        {"keys": {}},
        {"keys": {"boss": "00" * 32}},
        {"keys": {"dealer": "00"}},
        {"keys": None},
    ],
)
def test_a_damaged_export_is_told(path: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    found = Keys().add("U1", KEY_ID, RAW)
    carried = tmp_path / "all.keys"
    keys.export_file(found, NAMES, carried)
    carried.write_text(json.dumps({**json.loads(carried.read_text()), **change}))
    with pytest.raises(KeysError, match="or it is damaged; nothing was taken from it"):
        keys.import_file(carried)
    with pytest.raises(KeysError, match="No such file"):
        keys.import_file(tmp_path / "nothing")


def test_a_full_disk_leaves_no_half_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for new in (True, False):
        with pytest.raises(OSError, match="No space"):
            private.write(tmp_path / "file", "text", new=new)
        assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    private.write(tmp_path / "file", "text", new=True)
    with pytest.raises(FileExistsError):
        private.write(tmp_path / "file", "other", new=True)
    assert (tmp_path / "file").read_text() == "text"


# -- the command -----------------------------------------------------------------------------------------------------


def test_the_command_lists_exports_imports_and_forgets(path: Path, tmp_path: Path, tablectl: Tablectl) -> None:
    assert "this computer holds no keys" in tablectl("keys", "list").out
    Keys().add("U1", KEY_ID, RAW)
    [row] = tablectl("keys", "list", "--json").rows
    assert (row["table"], row["key_id"], row["keys"], row["in"]) == ("U1", KEY_ID, list(NAMES), "file")
    carried = str(tmp_path / "some.keys")
    done = tablectl("keys", "export", "--table", "U1", "--role", "dealer", "--role", "journal", carried)
    assert (done.code, done.err) == (0, "")
    assert tablectl("keys", "forget", "U1", "--yes", "--json").rows == [{"table": "U1", "forgotten": 1}]
    [row] = tablectl("keys", "import", carried, "--json").rows
    assert row == {"table": "U1", "key_id": KEY_ID, "keys": ["dealer", "journal"], "others_may_read": False}
    shown = done.out + tablectl("keys", "list").out + tablectl("keys", "import", carried).out
    assert not any(raw.hex() in shown for raw in RAW.values())
    Path(carried).chmod(0o644)
    warned = tablectl("keys", "import", carried).err
    assert warned == f"warning: others may read {carried} (mode 0644): rotate keys that somebody else may have\n"
    assert tablectl("keys", "import", carried, "--json").rows[0]["others_may_read"] is True


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "--table", "U2", "--role", "dealer", "x"), "no such keys of table U2; it holds keys of: U1"),
        (("export", "--table", "U1", "--role", "boss", "x"), "'boss' is not one of 'dealer'"),
        (("import", "nothing"), "nothing: No such file or directory"),
        (("forget", "U2"), "no such keys of table U2; it holds keys of: U1"),
        (("forget", "U1"), "say --yes if it shall be"),
        (("provision", "--port", "/nothing"), "/nothing: there is no such port"),
        (("rotate", "--port", "/nothing"), "/nothing: there is no such port"),
    ],
)
def test_a_mistake_is_one_clear_line(
    path: Path, tablectl: Tablectl, arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    Keys().add("U1", KEY_ID, RAW)
    assert said in tablectl("keys", *arguments).refusal()
    assert said in tablectl("keys", *arguments, "--json").refusal()
    assert Keys().find("U1", KEY_ID)
