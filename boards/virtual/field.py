"""Tags in the field of readers, by ISO/IEC 14443-3 type A: states, anticollision, superposed answers.

A frame is (bytes, number of bits), the first bit sent is bit 0 of the first byte. An answer is (value, bits, skip,
good): the bits as a whole number with the first one lowest, how many bits of the answer's first byte the reader has
sent itself (a split byte, 6.5.3), and False when a parity bit is wrong.

A tag lies in the field of some readers; for each of them it has the receiver gain in dB from which on the reader hears
it. It takes its power from the field, so it hears a reader that does not hear it.
"""

from boards.virtual import prng

REQA = 0x26
WUPA = 0x52
SELECT = (0x93, 0x95, 0x97)  # cascade levels 1 to 3 (table 7)
CASCADE_TAG = 0x88
HALT = b"\x50\x00"
GUARD_US = 5000  # a tag answers this long after the field came (6.2.1)
FORGET_US = 5000  # a field that was off for less may leave a tag in its state: the worst that the standard allows
LOUD_DB = 18  # heard at the lowest gain of an MFRC522 (data sheet, RFCfgReg)
READERS = 3

# States (6.3): without power, waiting for a request, in anticollision, selected, halted.
OFF, IDLE, READY, ACTIVE, HALTED = range(5)


def crc_a(data, crc=0x6363):
    """CRC_A of ISO/IEC 14443-3, annex B: preset 6363, sent low byte first. It is 0 over data and its CRC."""
    for byte in data:
        byte = (byte ^ crc) & 0xFF
        byte = (byte ^ byte << 4) & 0xFF
        crc = crc >> 8 ^ byte << 8 ^ byte << 3 ^ byte >> 4
    return crc


def with_crc(data):
    """Data followed by its CRC_A."""
    crc = crc_a(data)
    return bytes(data) + bytes((crc & 0xFF, crc >> 8))


def levels_of(uid):
    """The 5 bytes of each cascade level: UID CLn and its check byte (6.5.4)."""
    levels = []
    while len(uid) > 4:
        levels.append(bytes((CASCADE_TAG,)) + uid[:3])
        uid = uid[3:]
    levels.append(uid)
    return [level + bytes((level[0] ^ level[1] ^ level[2] ^ level[3],)) for level in levels]


class Tag:
    """One tag by its UID of 4 (as MIFARE Classic), 7 (NTAG21x) or 10 bytes. Raises ValueError for other lengths."""

    def __init__(self, uid):
        if len(uid) not in (4, 7, 10):
            raise ValueError("a UID has 4, 7 or 10 bytes, not %d" % len(uid))
        self.uid = bytes(uid)
        self.levels = levels_of(self.uid)
        # ATQA b7 b8: number of cascade levels (table 3); NTAG21x and MIFARE Classic have bit 3 set (AN10833).
        self.atqa = 0x04 | (len(self.levels) - 1) << 6
        self.sak = 0x08 if len(uid) == 4 else 0x00
        self.state = OFF
        self.since = -FORGET_US  # when its power came or went
        self._kept = IDLE
        self._level = 0
        self._woken = False  # by WUPA out of HALTED: READY* and ACTIVE* go back there (6.3)

    def power(self, now):
        """A field has come."""
        if self.state == OFF:
            kept = now - self.since < FORGET_US
            self.state = self._kept if kept else IDLE
            self._woken = kept and self._woken
            self.since = now

    def unpower(self, now):
        """The field is gone: everything will be forgotten, HALTED too."""
        self._kept = self.state
        self.state = OFF
        self.since = now

    def _back(self):
        self.state = HALTED if self._woken else IDLE
        return ()

    def hear(self, data, bits, now):
        """Take a frame; the answers to it (none, or one)."""
        if self.state == OFF or now - self.since < GUARD_US:
            return ()
        if bits == 7:
            return self._request(data[0] & 0x7F)
        if self.state == READY:
            return self._anticollision(data, bits)
        if self.state == ACTIVE:
            return self._active(data, bits)
        return ()

    def spoiled(self):
        """Something that is no frame was on the air."""
        if self.state in (READY, ACTIVE):
            self._back()

    def _request(self, code):
        if self.state == IDLE and code in (REQA, WUPA):
            self._woken = False
        elif self.state == HALTED and code == WUPA:
            self._woken = True
        elif self.state == HALTED or self.state == IDLE:
            return ()
        else:
            return self._back()
        self.state = READY
        self._level = 0
        return ((self.atqa, 16, 0, True),)

    def _anticollision(self, data, bits):
        if bits < 16 or data[0] != SELECT[self._level]:
            return self._back()
        level = self.levels[self._level]
        known = 8 * (data[1] >> 4) + (data[1] & 7) - 16
        if data[1] == 0x70:
            if bits != 72 or crc_a(data[:7]) != data[7] | data[8] << 8 or data[2:7] != level:
                return self._back()
            self._level += 1
            more = self._level < len(self.levels)
            if not more:
                self.state = ACTIVE
            sak = with_crc(bytes((0x04 if more else self.sak,)))
            return ((int.from_bytes(sak, "little"), 24, 0, True),)
        if not 0 <= known < 40 or data[1] & 0x08 or bits != 16 + known:
            return self._back()
        value = int.from_bytes(level, "little")
        asked = int.from_bytes(data[2:], "little")
        if (value ^ asked) & (1 << known) - 1:
            return ()  # another tag is meant; this one stays READY
        return ((value >> known, 40 - known, known % 8, True),)

    def _active(self, data, bits):
        size = len(data)
        if bits % 8 or size < 3 or crc_a(data[:-2]) != data[-2] | data[-1] << 8:
            return self._back()
        if data[:-2] == HALT:
            self.state = HALTED
            return ()
        if data[0] == 0x30 and size == 4 and len(self.uid) == 7 and data[1] < 45:
            return ((int.from_bytes(with_crc(self._pages(data[1])), "little"), 144, 0, True),)
        self._back()
        return ((0x0, 4, 0, True),)  # NAK: invalid argument (NTAG21x, table 23)

    def _pages(self, first):
        # NTAG213: 45 pages of 4 bytes, READ gives four and rolls over (10.2); only the serial number is modelled.
        one, two = self.levels
        memory = one[1:4] + one[4:5] + two[:4] + two[4:5] + b"\x48\x00\x00\xe1\x10\x12\x00" + bytes(164)
        memory += memory[:12]
        return memory[4 * first : 4 * first + 16]


class Jammer:
    """A broken tag (or whatever it is) that answers every anticollision frame with other bits each time.

    It answers as two tags would, so that every look at it is a collision somewhere, and never to a SELECT.
    """

    def __init__(self, seed):
        self._seed = seed
        self._answers = 0
        self._on = False
        self._since = 0

    def power(self, now):
        """A field has come."""
        if not self._on:
            self._on = True
            self._since = now

    def unpower(self, now):
        """The field is gone."""
        self._on = False

    def hear(self, data, bits, now):
        """Take a frame; the answers to it."""
        if not self._on or now - self._since < GUARD_US:
            return ()
        if bits == 7:
            return ((0x44, 16, 0, True),)
        known = bits - 16
        if data[0] not in SELECT or not 0 <= known < 40:
            return ()
        self._answers += 1
        stream = prng.Stream(self._seed, self._answers, "jam")
        answers = []
        for _ in range(2):
            value = 0
            for _ in range(5):
                value = value << 8 | stream.byte()
            answers.append((value >> known, 40 - known, known % 8, True))
        return answers

    def spoiled(self):
        """Nothing to forget."""


def superpose(answers):
    """What a receiver gets of answers at the same time: (value, bits, skip, good, collision).

    Manchester code: where two differ both halves of the bit carry the subcarrier, which is no bit (ISO/IEC 14443-2,
    8.2.5). `collision` is the index of the first such bit or None; the value has 1 there and the bits' OR behind it.
    """
    value, bits, skip, good = answers[0]
    differing = 0
    for other, more, _skip, fine in answers[1:]:
        differing |= (value ^ other) & (1 << min(bits, more)) - 1
        value |= other
        bits = max(bits, more)
        good = good and fine
    if not differing:
        return value, bits, skip, good, None
    first = 0
    while not differing >> first & 1:
        first += 1
    return value, bits, skip, good, first


class Field:
    """The air over all readers of a table.

    `world` has tags_at(us), a list of (tag, gains) with the gain in dB for each reader from which it hears the tag, or
    None where it is out of that reader's field; and asked(us, woken), told of each REQA (False) and WUPA (True) before
    it is heard, and left(us) when a reader's field goes off.
    """

    def __init__(self, world):
        self._world = world
        self._on = [False] * READERS
        self._powered = []
        self._chips = []

    def attach(self, chip):
        """Know a reader: before anything happens on the air its earlier doings are caught up with (`catch_up(us)`)."""
        self._chips.append(chip)

    def _settle(self, number, now):
        for chip in self._chips:
            if chip.number != number:
                chip.catch_up(now)

    def is_on(self, number):
        """Whether reader `number` (from 0) has its field on."""
        return self._on[number]

    def switch(self, number, on, now):
        """Reader `number`'s antenna driver goes on or off."""
        if self._on[number] == on:
            return
        self._settle(number, now)
        self._on[number] = on
        if not on:
            self._world.left(now)
        self._refresh(now)

    def _refresh(self, now):
        """Give power to what lies in a field that is on, take it from what no longer does; all that is there."""
        present = self._world.tags_at(now)
        powered = []
        for tag, gains in present:
            for number in range(READERS):
                if self._on[number] and gains[number] is not None:
                    tag.power(now)
                    powered.append(tag)
                    break
        for tag in self._powered:
            if tag not in powered:
                tag.unpower(now)
        self._powered = powered
        return present

    def _hearing(self, number, now):
        """The tags that hear reader `number`, with the gain each needs: two carriers at once are only noise."""
        hearing = []
        for tag, gains in self._refresh(now):
            if gains[number] is None:
                continue
            fields = 0
            for other in range(READERS):
                if self._on[other] and gains[other] is not None:
                    fields += 1
            if fields == 1:
                hearing.append((tag, gains[number]))
        return hearing

    def transmit(self, number, data, bits, gain, now):
        """Reader `number` has sent a frame that ended at `now`; what it hears with `gain` dB: as superpose, or None."""
        self._settle(number, now)
        if not self._on[number]:
            return None
        if bits == 7 and data[0] & 0x7F in (REQA, WUPA):
            self._world.asked(now, data[0] & 0x7F == WUPA)
        heard = []
        for tag, needed in self._hearing(number, now):
            answers = tag.hear(data, bits, now)
            if needed <= gain:
                heard.extend(answers)
        return superpose(heard) if heard else None

    def spoil(self, number, now):
        """Reader `number` sent something that no tag takes for a frame."""
        self._settle(number, now)
        if self._on[number]:
            for tag, _needed in self._hearing(number, now):
                tag.spoiled()
