"""Power cuts of the emulated Pico: the official image's littlefs under the firmware as a board runs it.

What is on the flash changes only by its programs and erases, so a cut at any moment leaves what lies between two of
them, or half of one. Rounds are played once with every operation recorded; each cut's flash is put together from that
and recovered under the unix port, by the same firmware on the same file system, and some are booted on the emulator.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoneye.text import dumps
from host_tools.device import Device
from host_tools.link import LinkError, Refused
from host_tools.store import Store
from tests import power
from tests.power import History, Json, Kept
from tests.unit import tables as unit
from tests.unit.test_store import told

pytestmark = pytest.mark.emulator

pytest.importorskip("rp2040py", reason="emulator: rp2040py is not installed")
from boards.virtual import emulated, flash, model  # noqa: E402
from boards.virtual.unix_port import REPO  # noqa: E402

CAME_UP_MS = 4000


class Keeping(Store):
    """A host's record that notes in `items` what it was told, among what happens on the flash."""

    items: list[Json]

    def take(self, uid: str, record: Json, link: str, first_event: int, tag: str = "") -> bool:
        new = self.last(uid)[0] < record["id"]
        taken = super().take(uid, record, link, first_event, tag)
        if new and taken:
            self.items.append({"kept": [dumps(record), link]})
        return taken


class Desk:
    """A host at an emulated Pico."""

    def __init__(self, pico: emulated.EmulatedPico, store: Store) -> None:
        self.pico = pico
        pico.table.settle_ms = 10
        pico.run_until(lambda: b"\n" in pico.output, CAME_UP_MS)
        self.device = Device("emulated", store, open_transport=lambda port: emulated.EmulatedTransport(pico))

    def ask(self, name: str, **fields: Any) -> Any:
        while True:
            try:
                return self.device.request(name, **fields)
            except Refused as refused:
                if refused.code not in ("E_LID", "E_LOCKOUT"):
                    raise
                self.device.poll(0.02)

    def wait(self, state: str) -> None:
        self.device.wait_for((state,), 10)

    def lid(self, to: str) -> None:
        while True:
            try:
                self.pico.do("lid", to=to)
                break
            except model.Refused:
                # The solenoid has not released it yet.
                self.device.poll(0.02)
        while self.device.refresh()["lid_open"] != (to == "open"):
            self.device.poll(0.02)

    def shake(self, dice: list[int]) -> None:
        self.pico.do("next", dice=[dice])
        self.ask("shake")
        self.wait("LOCKED")

    def reveal(self) -> None:
        self.ask("unlock")
        self.lid("open")
        self.wait("SETTLED")
        self.lid("shut")
        self.ask("finish")

    def triple(self) -> None:
        """A round with a void roll, a triple with a bonus, and bets changed after the lock."""
        self.ask("open", shaker=2)
        self.ask("bets", position=1, wagers={"match": 500, "odd": 100})
        self.ask("bets", position=2, wagers={"bonus": 200})
        self.ask("shake")
        self.pico.do("lid", to="open", force=True)
        self.wait("VOID")
        self.lid("shut")
        self.shake([6, 6, 6])
        self.ask("bets", position=1, wagers={"match": 700})
        self.ask("close")
        self.reveal()

    def more(self) -> None:
        """The streak goes on with a lowered bonus, a supervisor voids a round, and no triple ends it."""
        self.ask("open", shaker=1)
        self.ask("bets", position=2, wagers={"bonus": 100})
        self.shake([3, 3, 3])
        self.ask("leave", position=2)
        self.ask("close")
        self.reveal()
        self.ask("open", shaker=3)
        self.ask("void", reason="wrong bets")
        self.ask("open", shaker=0)
        self.ask("bets", position=6, wagers={"match": 100})
        self.ask("close")
        self.shake([1, 2, 4])
        self.reveal()


def record(folder: Path, more: bool) -> list[Json]:
    """Play on the emulated Pico from its first start on; what happened on its flash and what the host was told."""
    power.configure(folder / "provision")
    image = emulated.firmware_image(folder, provision=folder / "provision")
    (folder / "first.img").write_bytes(image.read_bytes())
    items: list[Json] = [{"image": str(folder / "first.img")}]
    store = Keeping(folder / "trace.db")
    store.items = items
    with emulated.EmulatedPico(image, seed=7) as pico:
        does = pico.device.on_flash

        def on_flash(kind: str, at: int, data: bytes) -> bytes | None:
            if 0 <= at < flash.BLOCK * flash.BLOCKS:
                before = pico.mcu.flash[emulated.FS_START + at : emulated.FS_START + at + len(data)]
                after = bytes(new & old for new, old in zip(data, before, strict=True))
                items.append({"op": kind, "at": at, "data": after.hex() if kind == "program" else ""})
            return does(kind, at, data)

        pico.device.on_flash = on_flash
        desk = Desk(pico, store)
        desk.triple()
        if more:
            desk.more()
        desk.device.wait_stored()
        print(f"{pico.us / 1e6:.1f} emulated seconds")
    store.close()
    return items


def cut_at(items: list[Json], number: int, torn: bool, image: Path) -> list[Kept]:
    """Write to `image` what is left by a cut at this operation (1 is the first); what the host had by then."""
    data = bytearray(Path(items[0]["image"]).read_bytes())
    kept: list[Kept] = []
    for item in items[1:]:
        if "kept" in item:
            kept.append((item["kept"][0], item["kept"][1]))
            continue
        number -= 1
        new = bytes.fromhex(item["data"]) or flash.ERASED
        if number == 0:
            new = new[: len(new) // 2] if torn else b""
        data[item["at"] : item["at"] + len(new)] = new
        if number == 0:
            break
    image.write_bytes(data)
    return kept


def boots(folder: Path, items: list[Json], number: int, torn: bool) -> str:
    """Boot the emulated Pico on a cut's flash with the host as it was; how the round ended."""
    image = folder / "cut.img"
    kept = cut_at(items, number, torn, image)
    (folder / "cut.db").unlink(missing_ok=True)
    store = Store(folder / "cut.db")
    with emulated.EmulatedPico(image, seed=7) as pico:
        uid = pico.device.uid.hex().upper()
        for text, link in kept:
            assert store.take(uid, json.loads(text), link, 1)
        desk = Desk(pico, store)
        view = desk.device.state
        locked = view["state"] == "LOCKED"
        if locked:
            desk.reveal()
        desk.device.wait_stored()
        streak = desk.device.refresh()["streak"]
    events = [{key: value for key, value in event.items() if key != "utc"} for event in store.events(uid)]
    links = [store.link(uid, event["id"]) or "" for event in events]
    store.close()
    every = [(dumps(event), link) for event, link in zip(events, links, strict=True)]
    before, between, after = power.split(every)
    history = History().follow([*before, *between])
    number_open, was_locked = history.open, history.locked
    history.follow(after)
    assert not history.lost + history.twice
    assert (history.open, history.streak, locked) == (None, streak, was_locked)
    return "between" if number_open is None else history.status[number_open]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], tuple[Path, list[Json]]]:
    """play(more): the folder and the recorded operations of rounds on the emulated Pico, played once."""
    played: dict[bool, tuple[Path, list[Json]]] = {}

    def make(more: bool) -> tuple[Path, list[Json]]:
        if more not in played:
            folder = tmp_path_factory.mktemp("emulated")
            played[more] = folder, record(folder, more)
        return played[more]

    return make


def operations(items: list[Json]) -> int:
    return sum("op" in item for item in items)


def recover_all(folder: Path, items: list[Json], say: Callable[[str, object], None]) -> None:
    """Every cut's flash is recovered under the unix port."""
    path = folder / "trace"
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    rows = power.run(folder / "provision" / "config.json", folder / "rows", "trace", path, 1)
    counts, _base, _rows = power.all_of("emulated Pico, power cut at each", rows)
    say("counts", str(counts))
    assert not counts.lost + counts.twice
    assert counts.operations == operations(items)
    assert counts.ends.total() == 2 * counts.operations
    assert min(counts.ends[end] for end in ("finished", "void", "between")) > 5


def boot_some(folder: Path, items: list[Json], some: list[int], say: Callable[[str, object], None]) -> None:
    """Some of the cuts are booted on the emulator itself."""
    ends = []
    for number in some:
        ends.append(boots(folder, items, number, number % 2 == 0))
        print(f"cut {number} of {operations(items)}: {ends[-1]}", flush=True)
    counted = ", ".join(f"{ends.count(end)} {end}" for end in sorted(set(ends)))
    say("counts", f"emulated Pico, booted after {len(ends)} of these cuts: {counted}, 0 lost, 0 twice")


def test_a_round_is_cut_at_every_operation_of_the_emulated_picos_flash(
    play: Callable[[bool], tuple[Path, list[Json]]], record_property: Callable[[str, object], None]
) -> None:
    folder, items = play(False)
    recover_all(folder, items, record_property)
    boot_some(folder, items, [operations(items) * 5 // 8], record_property)


def test_a_damaged_superblock_is_formatted_and_the_table_provisioned_again_goes_on(tmp_path: Path) -> None:
    uid = "E66118604B2D5A21"
    history = unit.Desk(tmp_path)
    history.hello()
    history.play([4, 4, 4], {2: {"bonus": 100}})
    store = Store(tmp_path / "rounds.db")
    power.store_all(store, [(dumps(one), link) for one, link in told(history)], uid)
    last, _round = store.last(uid)
    power.configure(tmp_path / "provision")
    image = emulated.firmware_image(tmp_path, provision=tmp_path / "provision")
    with image.open("r+b") as file:
        file.write(b"\x5a" * 2 * flash.BLOCK)
    with emulated.EmulatedPico(image, uid=uid) as pico:
        # MicroPython has formatted it: nothing is left but the prompt, and both motor pins are as after a reset.
        pico.run_until(lambda: pico.connected, CAME_UP_MS)
        assert pico.state()["motor"] == [0, 0]
        with pytest.raises(LinkError, match="prompt answers, the table's program does not run"):
            Device("emulated", store, open_transport=lambda port: emulated.EmulatedTransport(pico))
    # The technician copies firmware and provisions as to a new board.
    again = tmp_path / "again"
    again.mkdir()
    emulated.write_files(
        image, {**emulated.files_of(REPO / "firmware", again), **emulated.files_of(tmp_path / "provision")}
    )
    with emulated.EmulatedPico(image, uid=uid) as pico:
        desk = Desk(pico, store)
        assert desk.device.state["state"] == "IDLE"
        assert desk.device.state["streak"] == {"count": 1, "parts": [[2, 100]], "gone": []}
        assert desk.ask("open", shaker=1) == {"round": 2, "bets": [[2, {"bonus": 100}]]}
        desk.device.wait_stored()
    events = store.events(uid)
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert [event["id"] for event in events if event["k"] == "restart"] == [last + 1]
    store.close()


@pytest.mark.slow
def test_four_rounds_are_cut_at_every_operation_of_the_emulated_picos_flash(
    play: Callable[[bool], tuple[Path, list[Json]]], record_property: Callable[[str, object], None]
) -> None:
    folder, items = play(True)
    recover_all(folder, items, record_property)
    last = operations(items)
    boot_some(folder, items, [last * part // 20 for part in range(1, 20)], record_property)
