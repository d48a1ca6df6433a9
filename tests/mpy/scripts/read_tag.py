"""Lets the reader driver single out tags with the heap locked, on a bus that plays back what a chip would say."""

import micropython  # type: ignore[import-not-found]

from dragoneye.drivers.mfrc522 import MFRC522, crc_a


class Bus:
    """Answers each frame with the next of `answers`; allocates nothing."""

    def __init__(self, answers: list[bytes]) -> None:
        self.answers = answers
        self.at = 0
        self.frames = 0

    def write(self, data: bytes) -> None:
        if data[0] == 0x1A and data[1] & 0x80:
            self.frames += 1

    def write_readinto(self, out: bytes, into: bytearray) -> None:
        answer = self.answers[self.at]
        if out[0] == 0x88:
            into[1] = 0x20
            into[2] = 0x08 if len(answer) == 6 else 0x00
            into[3] = 5 if len(answer) == 6 else len(answer)
            into[4] = 0
            into[5] = answer[5] if len(answer) == 6 else 0x20
        else:
            for i in range(len(into) - 1):
                into[1 + i] = answer[i]
            self.at += 1


def level(*data: int) -> bytes:
    return bytes(data) + bytes((data[0] ^ data[1] ^ data[2] ^ data[3],))


def sak(value: int) -> bytes:
    crc = crc_a((value,), 0, 1)
    return bytes((value, crc & 0xFF, crc >> 8))


# A collision at the first level's 12th bit (a sixth byte is CollReg), then the tag with a 1 there.
bus = Bus(
    [
        b"\x44\x00",
        bytes((0x88, 0x04, 0, 0, 0, 12)),
        bytes((0x08, 0xA1, 0xB2, 0x88 ^ 0x0C ^ 0xA1 ^ 0xB2)),
        sak(0x04),
        level(0x11, 0x22, 0x33, 0x44),
        sak(0x00),
    ]
)


def main() -> None:
    chip = MFRC522(bus, lambda level: None, 1)
    micropython.heap_lock()
    there = chip._request()
    size = chip._walk()
    micropython.heap_unlock()
    print(there, size, bytes(chip._uid[:size]).hex(), bus.frames)


main()
