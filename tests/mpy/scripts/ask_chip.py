"""Prints what the MFRC522 model answers to a fixed course of register accesses, and when, over tags of every length."""

import sys

sys.path.insert(0, __file__.rsplit("/", 4)[0])

from boards.virtual import prng
from boards.virtual.field import LOUD_DB, Field, Jammer, Tag, levels_of, with_crc
from boards.virtual.mfrc522 import Mfrc522


class World:
    def __init__(self, tags: list[object]) -> None:
        self.tags: list[object] = [(tag, (LOUD_DB, None, None)) for tag in tags]

    def tags_at(self, now: int) -> list[object]:
        return self.tags

    def asked(self, now: int, woken: bool) -> None:
        print("asked", now, woken)

    def left(self, now: int) -> None:
        print("left", now)


class Bus:
    def __init__(self, tags: list[object]) -> None:
        self.now = 0
        self.chip = Mfrc522(Field(World(tags)), 0, lambda: self.now)
        self.now = 1000
        for register, value in ((0x2A, 0x80), (0x2B, 0xA9), (0x2D, 40), (0x15, 0x40), (0x11, 0x3D), (0x26, 0x40)):
            self.write(register, value)
        self.write(0x14, 0x83)
        self.now += 5000

    def write(self, register: int, *values: int) -> None:
        self.chip.select()
        self.chip.transfer(register << 1)
        for value in values:
            self.chip.transfer(value)
        self.chip.deselect()

    def read(self, *registers: int) -> list[int]:
        self.chip.select()
        addresses = [register << 1 | 0x80 for register in registers] + [0]
        self.chip.transfer(addresses[0])
        values = [self.chip.transfer(address) for address in addresses[1:]]
        self.chip.deselect()
        return values

    def ask(self, data: bytes, bits: int = 0) -> None:
        self.write(0x01, 0x00)
        self.write(0x02, 0xA1)
        self.write(0x04, 0x7F)
        self.write(0x0A, 0x80)
        self.write(0x09, *data)
        self.write(0x0E, 0x00)
        self.write(0x01, 0x0C)
        self.write(0x0D, 0x80 | bits << 4 & 0x70 | bits)
        while not self.read(0x04)[0] & 0x21:
            self.now = self.chip.due()
        status = self.read(0x04, 0x06, 0x0A, 0x0C, 0x0E, 0x2F, 0x08)
        print(self.now, self.chip.irq_pin(), status, self.read(*[0x09] * status[2]) if status[2] else [])


def main() -> None:
    stream = prng.Stream(5, 0, "uids")
    tags = [Tag(bytes([1] + [stream.byte() for _ in range(size - 1)])) for size in (4, 4, 7, 7, 10)]
    one = Bus(tags + [Jammer(3)])  # noqa: RUF005 - MicroPython takes no star there
    print(one.read(*range(64)))
    for tag in tags:
        level = levels_of(tag.uid)
        one.ask(b"\x26", 7)
        one.ask(b"\x93\x20")
        one.ask(b"\x93\x25" + level[0][:1], 5)
        one.ask(b"\x52", 7)
        for sel, part in zip((0x93, 0x95, 0x97), level):  # noqa: B905 - MicroPython's zip takes no strict
            one.ask(with_crc(bytes((sel, 0x70)) + part))
        one.ask(with_crc(b"\x30\x02"))
        one.ask(with_crc(b"\x50\x00"))
    one.write(0x01, 0x02)
    one.write(0x01, 0x01)
    print(one.read(0x0A, *[0x09] * 25))
    one.write(0x01, 0x0F)
    print(one.read(0x01))


main()
