"""A locked table with keys on the emulated Pico: MicroPython's own image, its own USB, its own Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boards.virtual.model import default_tags
from dragoneye.keys import name_of
from dragoneye.rules import packs
from host_tools import keys, provision
from host_tools.device import Device
from host_tools.link import Refused
from host_tools.store import Store

pytest.importorskip("rp2040py")
from boards.virtual import emulated
from tests.table.test_keys import PROMPT

pytestmark = pytest.mark.emulator

FLOOD = b"\x03\x03\r\n\x01\x03\x04import machine\r\n"
# More often, and MicroPython does nothing but hear it.
EVERY_MS = 20
HELLO_MS = 3000


def pico(tmp_path: Path, raw: dict[str, keys.Secret] | None, **more: Any) -> Any:
    provisions = tmp_path / "provisions"
    provision.write(provisions, "rpi_pico", packs.load("nj"), default_tags(), 0, **{**provision.INSTANT, **more})
    if raw is not None:
        (provisions / "keys.json").write_bytes(keys.file_of(raw))
    return emulated.EmulatedPico(emulated.firmware_image(tmp_path, provision=provisions), seed=7)


def flood(pico: Any, until: bytes, most_ms: int) -> bytes:
    """Ctrl-C and more, from before USB is up until the board has said this; all that it said."""
    for _ in range(0, most_ms, EVERY_MS):
        pico.write(FLOOD)
        pico.run_ms(EVERY_MS)
        if until in pico.output:
            return bytes(pico.output)
    raise AssertionError(bytes(pico.output[-400:]))


def test_a_flood_of_ctrl_c_gets_a_prompt_where_nothing_is_locked(tmp_path: Path) -> None:
    with pico(tmp_path, None) as board:
        flood(board, b">>>", 500)


def test_a_locked_table_starts_and_plays_under_it_and_does_what_is_signed_only(tmp_path: Path) -> None:
    raw = keys.made()
    with pico(tmp_path, raw, locked=True) as board:
        said = flood(board, b'{"hello"', HELLO_MS)
        # While it runs as well.
        for _ in range(5):
            board.write(FLOOD)
            board.run_ms(EVERY_MS)
        said += bytes(board.output)
        assert not PROMPT.search(said)
        store = Store(tmp_path / "store.db")
        held = keys.Keys(tmp_path / "held.json")
        device = Device(
            "emulated",
            store,
            open_transport=lambda port: emulated.EmulatedTransport(board),
            signer=keys.Ring(held),
        )
        told = device.table
        assert (told["locked"], told["unprovisioned"], told["key_id"]) == (True, False, name_of(raw["journal"]))
        with pytest.raises(keys.KeysError, match="this needs the key of its dealer or supervisor"):
            device.request("open", shaker=1)
        held.add(device.uid, told["key_id"], raw)
        device.request("open", shaker=1)
        with pytest.raises(Refused, match="E_LOCKED"):
            device.request("maintenance")
        device.wait_stored()
        assert [event["d"]["by"] for event in store.events(device.uid) if event["k"] == "opened"] == ["dealer"]
        stats = device.request("stats")
        print("tasks [runs, longest us, mean us, late]:", stats["tasks"], "free", stats["free"])
        assert sum(stats["unsigned"].values()) == 0
        store.close()
