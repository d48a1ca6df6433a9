"""The reader driver on the chip model: exactly the tags in the field, or unresolved; never a UID that is not there."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boards.virtual import field
from boards.virtual.model import default_tags
from tests.unit.chips import Rig, uids

DICE = [uid.upper() for die in default_tags() for uid in die]
AIR_FLOOR_US = {0: 5100, 1: 5100 + 4470, 3: 22_800}  # hardware.md's, by tags on one reader


@given(st.integers(0, 2**32), st.integers(0, 6))
@settings(deadline=None, max_examples=150)
def test_up_to_six_tags_with_shared_prefixes_are_read_as_the_exact_set(seed: int, count: int) -> None:
    tags = uids(random.Random(seed), count)
    rig = Rig(tags)
    assert rig.scan() == set(tags)
    assert rig.clock.longest < 20_000  # the longest run that any task may have
    assert rig.scan() == set(tags)


@pytest.mark.parametrize(
    "tags",
    [
        *[[uid[:-1] + end for end in "01F7"] for uid in ("04A1B2C3", "04A1B2C3D4E5F0", "04A1B2C3D4E5F6A7B8C0")],
        ["00000000", "80000000", "00000080", "00000001"],  # the first bit and the last of a level
        ["04D15EA0000010", "04D15EA0000090"],  # the 32nd bit of the second level
        ["0488880088888800888A", "04888800888888008888"],
        ["11223344", "11223344556677", "11223344556677889900"],
        DICE[:6],
    ],
)
def test_tags_that_differ_little(tags: list[str]) -> None:
    for count in range(1, len(tags) + 1):
        for some in combinations(tags, count):
            assert Rig(some).scan() == set(some)


@pytest.mark.parametrize("irq", [False, True])
def test_reserved_bits_of_the_registers_stay_as_they_are(irq: bool) -> None:
    rig = Rig(DICE[:2], irq=irq)
    for gain in rig.driver.GAIN_BITS:
        assert rig.scan(gain) == set(DICE[:2])
    assert rig.chip.cleared == []
    rig.bus.select(0)
    rig.bus.write(bytes([0x26 << 1, 0x40]))
    rig.bus.select(1)
    assert rig.chip.cleared == [(0x26, 0x40)]


def test_every_two_faces_of_the_dice_are_told_apart() -> None:
    for two in combinations(DICE, 2):
        assert Rig(two).scan() == set(two)


@given(st.integers(0, 2**32), st.integers(0, 4), st.floats(0.001, 0.2))
@settings(deadline=None, max_examples=150)
def test_what_is_read_wrong_is_never_a_wrong_uid(seed: int, count: int, chance: float) -> None:
    """Bits flip on the way from the chip: the set is that of the tags or less, or there is none."""
    rng = random.Random(seed)
    tags = uids(rng, count)
    rig = Rig(tags)

    def spoil(out: bytes, into: bytearray) -> None:
        # The answers in the FIFO alone: any flip of one bit is caught by BCC or CRC_A.
        if out[0] == 0x92 and rng.random() < chance:
            at = rng.randrange(1, len(into))
            into[at] ^= 1 << rng.randrange(8)

    rig.bus.spoil = spoil
    for _ in range(3):
        found = rig.scan()
        assert found is None or found <= set(tags)


@given(st.integers(0, 2**32), st.integers(1, 5))
@settings(deadline=None, max_examples=80)
def test_tags_that_come_and_go_are_never_read_as_others(seed: int, count: int) -> None:
    rng = random.Random(seed)
    tags = uids(rng, count)
    rig = Rig(tags)
    moments = {bytes.fromhex(uid): sorted(rng.randrange(60_000) for _ in range(6)) for uid in tags}
    rig.world.present = lambda uid, us: sum(moment <= us for moment in moments[uid]) % 2 == 0
    found = rig.scan()
    assert found is None or found <= set(tags)


def test_a_tag_that_jams_the_air_is_unresolved_within_bounds() -> None:
    for seed in range(20):
        rig = Rig(["04D15EA0000010"])
        rig.world.others = [(field.Jammer(seed), (18, None, None))]
        assert rig.scan() is None
        assert rig.clock.longest < 20_000
        assert rig.clock.us < 150_000


def test_more_tags_than_any_table_has_are_unresolved() -> None:
    tags = uids(random.Random(5), 9)
    assert Rig(tags[:8]).scan() == set(tags[:8])
    assert Rig(tags).scan() is None


@pytest.mark.parametrize("gain", [18, 23, 33, 38, 43, 48])
def test_a_gain_hears_the_tags_that_it_reaches(gain: int) -> None:
    needs = dict(zip(DICE, (18, 23, 33, 38, 43, 48), strict=False))
    assert Rig(needs).scan(gain) == {uid for uid, needed in needs.items() if needed <= gain}


@pytest.mark.parametrize("irq", [False, True])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_a_pass_costs_beyond_its_air_time(irq: bool, count: int) -> None:
    rig = Rig(DICE[::6][:count], irq=irq)
    rig.clock.us += 10_000
    begun = rig.clock.us
    assert rig.scan() == set(DICE[::6][:count])
    assert rig.clock.us - begun < 1.5 * AIR_FLOOR_US[count] + 1400
    assert not rig.chip._air.is_on(0)
    if irq:
        # The bus rests while a frame is on the air. Nobody waits for what a tag says to its HLTA.
        assert rig.looks > len(rig.bus.transactions)
        polls = [out for out in rig.bus.transactions if out[0] == 0x88]
        frames = [out for out in rig.bus.transactions if out[0] == 0x1A and out[1] & 0x80]
        assert len(polls) == len(frames) - count


def test_an_empty_field_is_asked_once() -> None:
    rig = Rig()
    assert rig.scan() == set()
    assert len(rig.world.requests) == 1


def test_the_field_rests_between_two_passes_and_guards_each() -> None:
    rig = Rig(["04D15EA0000010"])
    ons: list[tuple[bool, int]] = []
    switch = rig.chip._air.switch

    def watched(number: int, on: bool, now: int) -> None:
        ons.append((on, now))
        switch(number, on, now)

    rig.chip._air.switch = watched
    rig.scan()
    rig.scan()
    edges = [edge for last, edge in zip([(False, 0), *ons], ons, strict=False) if edge[0] != last[0]]
    assert [on for on, _ in edges] == [True, False, True, False]
    assert edges[2][1] - edges[1][1] >= 5000
    assert rig.world.requests[0] - edges[0][1] >= 5100


@pytest.mark.parametrize("version", [0x91, 0x92])
def test_a_chip_of_either_version_is_taken(version: int) -> None:
    Rig(version=version).reader.check()


@pytest.mark.parametrize("version", [0x00, 0xFF, 0x12, 0x88, 0x90, 0x93, 0xB2])
def test_any_other_chip_is_a_fault_that_names_reader_and_value(version: int) -> None:
    rig = Rig(version=version)
    with pytest.raises(rig.driver.ReaderFault, match=f"reader 1: VersionReg is 0x{version:02x}; allowed: 0x91 or 0x92"):
        rig.scan()


@pytest.mark.parametrize("dead", [0x00, 0xFF, 0x20, 0x21, 0x5A])
@pytest.mark.parametrize("after", [3, 20, 30, 45, 60, 100])
def test_a_chip_that_dies_in_the_middle_of_a_pass_gives_no_tag(dead: int, after: int) -> None:
    """It is a fault, or unresolved, or what was read before; and the next pass is a fault."""
    rig = Rig(["04D15EA0000010", "11223344"])
    rig.chip._health = lambda number: dead if rig.chip.transactions > after else None
    with suppress(rig.driver.ReaderFault):
        found = rig.scan()
        assert found is None or found <= {"04D15EA0000010", "11223344"}
    assert rig.clock.longest < 20_000
    with pytest.raises(rig.driver.ReaderFault):
        rig.scan()
    rig.chip._health = lambda number: None
    assert rig.scan() == {"04D15EA0000010", "11223344"}


def test_a_chip_that_lost_its_power_is_set_up_again_by_each_pass() -> None:
    rig = Rig(["04D15EA0000010"])
    assert rig.scan() == {"04D15EA0000010"}
    rig.chip.reset_pin(0)
    rig.clock.us += 1000
    rig.chip.reset_pin(1)
    rig.clock.us += 1000
    assert rig.scan() == {"04D15EA0000010"}


def test_ticks_that_wrap_in_the_middle_of_a_pass() -> None:
    for before in (200, 5000, 20_000):
        assert Rig(["04D15EA0000010"], us=2**30 - 10_000 - before).scan() == {"04D15EA0000010"}


def test_a_frame_is_five_transactions_and_the_answer_two() -> None:
    """What goes over the bus for a REQA with an answer, byte by byte, from the data sheet."""
    rig = Rig(["11223344"])
    rig.scan()
    start = rig.bus.transactions.index(bytes((0x12, 0x26)))
    frame = rig.bus.transactions[start - 3 : start + 2]
    assert frame == [
        bytes((0x1A, 0x07)),  # BitFramingReg: seven bits
        bytes((0x02, 0x00, 0x0C)),  # CommandReg: Idle, Transceive
        bytes((0x08, 0x7F)),  # ComIrqReg: clear all
        bytes((0x12, 0x26)),  # FIFODataReg: REQA
        bytes((0x1A, 0x87)),  # StartSend
    ]
    after = rig.bus.transactions[start + 2 :]
    looks = bytes((0x88, 0x8C, 0x94, 0x98, 0x9C, 0))  # ComIrq, Error, FIFOLevel, Control, Coll
    answer = next(i for i, out in enumerate(after) if out != looks)
    assert answer >= 1
    assert after[answer] == bytes((0x92, 0x92, 0))
    halt = bytes((0x12, 0x50, 0x00, 0x57, 0xCD))
    assert halt in after


@given(st.binary(min_size=1, max_size=16))
def test_the_crc_is_the_standards(data: bytes) -> None:
    driver: Any = Rig().driver
    assert driver.crc_a(data, 0, len(data)) == field.crc_a(data)


def test_the_crc_by_the_standards_examples() -> None:
    driver: Any = Rig().driver
    # ISO/IEC 14443-3, annex B: 00 00 -> A0 1E, 12 34 -> 26 CF.
    assert driver.crc_a(b"\x00\x00", 0, 2) == 0x1EA0
    assert driver.crc_a(b"\x12\x34", 0, 2) == 0xCF26
