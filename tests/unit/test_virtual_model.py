"""The table model: dice that depend on nothing but the seed and the count of shakes; faults; refusals."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from boards.virtual import model, prng
from boards.virtual.mfrc522 import VERSION
from boards.virtual.model import Model, Refused
from boards.virtual.unix_port import REPO, find_micropython
from boards.virtual.wiring import Wiring, pixel_bit
from tests.unit.test_mfrc522_model import Bench, inventory

S = 1_000_000
FULL = 65535


class Shaker:
    """Shakes a table and looks at it, in time that a test makes up."""

    def __init__(self, seed: int = 7, **more: Any) -> None:
        self.table = Model(seed, **more)
        self.bench = Bench(readers=3, world=self.table, health=self.table.health)

    @property
    def now(self) -> int:
        return self.bench.now

    @now.setter
    def now(self, us: int) -> None:
        self.bench.now = us

    def shake(self, run_us: int = S, wait_us: int = S) -> None:
        self.table.drive(self.now, FULL, 0)
        self.now += run_us
        self.table.drive(self.now, 0, 0)
        self.now += wait_us

    def read(self, reader: int = 1, gain: int = 7) -> set[str] | None:
        """One pass of a reader with a gain code: the UIDs, or None when they could not be told apart."""
        self.bench.chip = self.bench.chips[reader - 1]
        self.bench.start(gain=gain)
        try:
            return inventory(self.bench, 40)
        except OverflowError:
            return None
        finally:
            self.bench.stop()

    def values(self, reader: int = 1, gain: int = 7) -> list[list[int]]:
        """For each die the values that its answering tags stand for."""
        uids = self.read(reader, gain)
        assert uids is not None
        return [[7 - face for face in range(1, 7) if die[face - 1] in uids] for die in self.table.tags]

    def do(self, name: str, /, **args: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.table.command(self.now, name, args)
        return result


def test_the_same_seed_gives_the_same_dice_in_both_pythons(tmp_path: Path) -> None:
    script = tmp_path / "dice.py"
    script.write_text(
        f"import sys, json\nsys.path.insert(0, {str(REPO)!r})\nfrom boards.virtual import prng\n"
        "print(json.dumps([[prng.dice(seed, n) for n in range(1, 40)] for seed in (0, 1, 7, 1073741823)]))\n"
        "print(json.dumps([prng.Stream(3, 4, 'x').below(n) for n in (1, 2, 6, 1000, 65536)]))\n"
    )
    run = subprocess.run([*find_micropython(), str(script)], capture_output=True, text=True, check=True)
    dice, numbers = (json.loads(line) for line in run.stdout.splitlines())
    assert dice == [[prng.dice(seed, n) for n in range(1, 40)] for seed in (0, 1, 7, 1073741823)]
    assert numbers == [prng.Stream(3, 4, "x").below(n) for n in (1, 2, 6, 1000, 65536)]
    assert prng.dice(7, 1) == [5, 6, 4]  # and they stay what they are


def test_every_value_is_equally_likely() -> None:
    counts = [0] * 6
    for shake in range(4000):
        for pips in prng.dice(1, shake):
            counts[pips - 1] += 1
    assert all(abs(count - 2000) < 200 for count in counts)  # 4.9 standard deviations


def test_what_a_shake_brings_does_not_depend_on_its_timing() -> None:
    fast, slow = Shaker(), Shaker()
    for _ in range(20):
        fast.shake(run_us=50_000, wait_us=400_000)
        slow.shake(run_us=3 * S, wait_us=9 * S)
        assert fast.values() == slow.values()
    assert fast.table.shakes == slow.table.shakes == 20


def test_jolts_with_short_rests_are_one_shake() -> None:
    one = Shaker()
    for _ in range(4):
        one.shake(run_us=200_000, wait_us=150_000)
    assert one.table.moving(one.now)
    one.now += S
    assert (one.table.shakes, one.values()) == (1, [[5], [6], [4]])


def test_only_a_shake_that_moves_the_dice_counts() -> None:
    one = Shaker()
    before = one.values()
    one.do("fault", name="motor_dead", rolls=2)
    for _ in range(2):
        one.shake(wait_us=3 * S)
    assert (one.table.shakes, one.table.attempts, one.values()) == (0, 2, before)
    one.table.drive(one.now, 5000, 0)  # too weak
    assert not one.table.moving(one.now)
    one.table.drive(one.now, FULL, FULL)  # brake
    assert not one.table.moving(one.now)
    one.shake(wait_us=3 * S)
    assert (one.table.shakes, one.values()) == (1, [[5], [6], [4]])


def test_dice_come_to_rest_after_the_motor_stops_and_show_no_steady_picture_before() -> None:
    one = Shaker()
    one.table.drive(one.now, FULL, 0)
    seen = []
    for _ in range(40):
        one.now += 1000
        seen.append(one.read())
    whole = [uids is not None and len(uids) == 3 for uids in seen]
    assert not [at for at in range(39) if whole[at] and seen[at] == seen[at + 1]]
    assert len({str(uids and sorted(uids)) for uids in seen}) > 10
    one.table.drive(one.now, 0, 0)
    stopped = one.now
    while one.table.moving(one.now):
        one.now += 1000
    assert 200_000 <= one.now - stopped <= 401_000
    assert one.values() == one.values() == [[5], [6], [4]]


def test_queued_values_come_before_the_generator_and_do_not_shift_it() -> None:
    one, other = Shaker(), Shaker()
    assert one.do("next", dice=[1, 1, 1]) == {"queued": 1}
    assert one.do("next", dice=[[2, 2, 2], [3, 4, 5]]) == {"queued": 3}
    got = []
    for _ in range(4):
        one.shake()
        other.shake()
        got.append([values[0] for values in one.values()])
        other.values()
    assert got == [[1, 1, 1], [2, 2, 2], [3, 4, 5], other.table.dice]


def test_placing_dice_needs_them_at_rest() -> None:
    one = Shaker()
    one.do("place", dice=[6, 6, 6])
    assert one.values() == [[6], [6], [6]]
    one.table.drive(one.now, FULL, 0)
    with pytest.raises(Refused, match="the dice are moving"):
        one.do("place", dice=[1, 2, 3])


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ({"name": "missing", "die": 1}, [[5], [], [4]]),
        ({"name": "two_faces", "die": 0}, [[4, 5], [6], [4]]),
        ({"name": "cocked", "die": 2}, [[5], [6], []]),
        ({"name": "cocked", "die": 2, "faces": 2}, [[5], [6], [2, 4]]),
        ({"name": "stacked", "die": 0}, [[], [6], [4]]),
        ({"name": "dead_tag", "die": 0, "face": 2}, [[], [6], [4]]),
        ({"name": "dead_tag", "die": 0, "face": 3}, [[5], [6], [4]]),
    ],
)
def test_faults_of_the_dice_last_the_rolls_they_are_given(fault: dict[str, Any], seen: list[list[int]]) -> None:
    one = Shaker()
    one.do("fault", **fault, rolls=1)
    one.shake()
    assert [sorted(values) for values in one.values()] == seen
    one.shake()
    assert one.values() == [[2], [2], [6]]
    assert one.table.faults == []


def test_what_else_may_lie_in_the_field() -> None:
    one = Shaker()
    dice = one.read()
    assert dice
    one.do("fault", name="foreign")
    assert one.read() == dice | {"04f0f0f0f0f0f0"}
    one.do("clear")
    one.do("fault", name="foreign", uid="01020304", rolls=None)
    assert one.read() == dice | {"01020304"}
    one.do("clear", name="foreign")
    one.do("fault", name="collision")
    assert one.read() is None
    assert one.do("clear") == {"cleared": 1}
    one.do("fault", name="unsettled")
    first, second, third = one.read(), one.read(), one.read()
    assert first == third != second
    assert second
    assert len(second) == 3


def test_a_leaning_face_is_lost_at_less_gain_unless_it_is_strong() -> None:
    one = Shaker()
    one.do("fault", name="two_faces", die=1, rolls=None)
    assert [len(values) for values in one.values(gain=4)] == [1, 2, 1]
    assert [len(values) for values in one.values(gain=3)] == [1, 1, 1]
    one.do("clear")
    one.do("fault", name="two_faces", die=1, strong=True, rolls=None)
    assert [len(values) for values in one.values(gain=0)] == [1, 2, 1]
    one.do("clear")
    one.do("fault", name="cocked", die=2, faces=2, rolls=None)
    assert [len(values) for values in one.values(gain=0)] == [1, 1, 2]


def test_which_dice_each_reader_covers() -> None:
    one = Shaker()
    one.do("place", dice=[1, 2, 3])
    assert [one.values(reader) for reader in (1, 2, 3)] == [[[1], [2], [3]], [[], [2], []], [[], [], [3]]]
    one.do("layout", to="apart")
    assert [one.values(reader) for reader in (1, 2, 3)] == [[[1], [], []], [[], [2], []], [[], [], [3]]]
    again = Shaker(saved=json.loads(json.dumps(one.table.saved())))
    assert again.values() == [[1], [], []]


def test_faults_of_the_readers() -> None:
    one = Shaker()

    def versions(looks: int = 6) -> list[set[int]]:
        read = []
        for chip in one.bench.chips:
            one.bench.chip = chip
            read.append({one.bench.read(VERSION) for _ in range(looks)})
        return read

    assert versions() == [{0x92}] * 3
    one.do("fault", name="dead_reader")
    assert versions() == [{0x00}] * 3
    one.do("clear")
    one.do("fault", name="dead_reader", reader=2, value=255)
    assert versions() == [{0x92}, {0xFF}, {0x92}]
    one.do("clear")
    one.do("fault", name="weak_supply", reader=3)
    good, also, bad = versions()
    assert good == also == {0x92} < bad


def test_motor_current_tells_what_the_motor_does() -> None:
    board = json.loads((REPO / "boards/rpi_pico/board.json").read_text())["motor"]
    one = Shaker()
    table, now = one.table, one.now
    assert table.motor_ma(now) < board["off_max_ma"]
    table.drive(now, 30000, 0)
    assert table.motor_ma(now) > table.motor_ma(now + 5000) > table.motor_ma(now + 50_000)  # it starts
    moving = table.motor_ma(now + 50_000)
    assert moving > board["moving_min_ma"]
    one.do("fault", name="motor_jammed")
    assert table.motor_ma(now) > moving
    assert not table.state(now)["turning"]
    one.do("clear")
    one.do("fault", name="motor_dead")
    assert table.motor_ma(now) < board["off_max_ma"]
    one.do("clear")
    table.drive(now, 0, 0)
    one.do("fault", name="motor_stuck")
    assert table.motor_ma(now) > board["moving_min_ma"]
    assert table.moving(now)
    one.do("lid", to="open", force=True)  # the lid switch cuts the motor's supply
    assert table.motor_ma(now) < board["off_max_ma"]
    one.do("clear")
    one.do("lid", to="shut")
    one.do("supply", mv=5000)
    table.drive(now, FULL, 0)
    assert table.motor_ma(now) < board["off_max_ma"]


def test_the_lid_is_latched_until_the_lock_is_pulsed() -> None:
    one = Shaker()
    with pytest.raises(Refused, match="the lid is latched; allowed: after a pulse of the lock, or with force"):
        one.do("lid", to="open")
    one.table.lock(one.now, 1)
    one.now += 5_000
    one.table.lock(one.now, 0)  # too short
    with pytest.raises(Refused):
        one.do("lid", to="open")
    one.table.lock(one.now, 1)
    one.now += 80_000
    one.table.lock(one.now, 0)
    one.do("lid", to="open")
    assert not one.table.switch_closed("lid")
    one.do("lid", to="shut")
    with pytest.raises(Refused):
        one.do("lid", to="open")
    assert one.table.state(one.now)["lock_pulses"] == 2
    assert one.table.lock_longest_us == 80_000


def test_opening_the_lid_in_a_shake_stops_the_motor_and_ends_the_shake() -> None:
    one = Shaker()
    one.table.drive(0, FULL, 0)
    one.now += 100_000
    one.do("lid", to="open", force=True)
    assert not one.table.state(one.now)["turning"]
    one.table.drive(one.now, 0, 0)
    one.do("lid", to="shut")
    one.shake()
    assert one.table.shakes == 2


def test_a_button_comes_up_again_by_itself_or_is_held() -> None:
    one = Shaker()
    one.do("button", to="press", ms=50)
    assert one.table.switch_closed("button")
    assert one.table.due() == one.now + 50_000
    one.now += 50_000
    one.table.advance(one.now)
    assert not one.table.switch_closed("button")
    one.do("button", to="hold")
    one.now += 60 * S
    one.table.advance(one.now)
    assert one.table.switch_closed("button")
    one.do("button", to="release")
    assert not one.table.switch_closed("button")


def test_what_lies_on_the_table_survives_a_power_cut() -> None:
    one = Shaker()
    one.do("fault", name="dead_tag", die=1, face=5, rolls=None)
    one.do("next", dice=[1, 2, 6])
    one.do("tamper", to="open")
    one.table.drive(one.now, FULL, 0)
    saved = json.loads(json.dumps(one.table.saved()))
    two = Shaker(saved=saved)
    assert two.table.moving(0)  # the motor runs out, the dice fall as they would have
    two.now = S
    assert two.values() == [[1], [], [6]]
    assert not two.table.switch_closed("tamper")
    two.shake()
    assert two.table.shakes == 2
    assert two.table.dice == prng.dice(7, 2)


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("dance", {}, "'dance' is no command; allowed: button, clear, fault, "),
        ("place", {"dice": [1, 2, 7]}, r"three whole numbers from 1 to 6, not \[1, 2, 7\]"),
        ("place", {"dice": [1, 2]}, "three whole numbers"),
        ("place", {"dice": [1, 2, True]}, "three whole numbers"),
        ("place", {}, "three whole numbers from 1 to 6, not None"),
        ("place", {"dice": [1, 2, 3], "die": 1}, "place takes no 'die'; allowed: dice"),
        ("next", {"dice": [[1, 2, 3], [0, 1, 1]]}, "three whole numbers"),
        ("lid", {"to": "up"}, "to must be open or shut, not 'up'"),
        ("button", {"ms": -1}, "ms must be a whole number from 1 to 600000, not -1"),
        ("supply", {"mv": 99999}, "mv must be a whole number from 0 to 19800, not 99999"),
        ("fault", {"name": "gremlin"}, "'gremlin' is no fault; allowed: cocked, collision, "),
        ("fault", {"name": "missing", "die": 3}, "die must be a whole number from 0 to 2, not 3"),
        ("fault", {"name": "missing", "face": 3}, "the fault missing takes no face; allowed: rolls, die"),
        ("fault", {"name": "cocked", "faces": 1}, "faces must be 0 .* or 2"),
        ("fault", {"name": "foreign", "uid": "zz"}, "uid must be 4 or 7 bytes as hex"),
        ("fault", {"name": "missing", "rolls": -1}, "rolls must be a whole number from 0"),
        ("fault", {"name": "two_faces", "strong": 1}, "strong must be true or false, not 1"),
        ("fault", {"name": "dead_reader", "reader": 4}, "reader must be a whole number from 1 to 3, not 4"),
        ("fault", {"name": "dead_reader", "value": 1}, "value must be 0 or 255"),
        ("layout", {"to": "round"}, "to must be shared or apart, not 'round'"),
        ("clear", {"name": "gremlin"}, "is no fault"),
    ],
)
def test_a_wrong_command_is_refused_by_name_and_changes_nothing(name: str, args: dict[str, Any], said: str) -> None:
    one = Shaker()
    before = one.table.saved()
    with pytest.raises(Refused, match=said):
        one.do(name, **args)
    assert one.table.saved() == before


def test_every_tag_has_its_own_uid() -> None:
    assert len({uid for die in model.default_tags() for uid in die}) == 18


def wired() -> tuple[Shaker, Wiring]:
    one = Shaker()
    board = json.loads((REPO / "boards/rpi_pico/board.json").read_text())
    return one, Wiring(board, one.table, lambda: one.now)


def test_the_readers_pins_are_wired() -> None:
    one, wiring = wired()

    def version(select: int) -> int:
        wiring.output(select, 0)
        wiring.transfer(0, VERSION << 1 | 0x80)
        value: int = wiring.transfer(0, 0)
        wiring.output(select, 65535)
        return value

    assert [version(select) for select in (5, 6, 7)] == [0, 0, 0]  # they wake up
    one.now += 300
    assert [version(select) for select in (5, 6, 7)] == [0x92] * 3
    assert wiring.transfer(0, 0xFF) == wiring.transfer(1, 0xFF) == 0  # none is selected; another bus
    wiring.output(8, 0)
    assert version(5) == 0
    wiring.undriven(8)  # a pull-up
    one.now += 300
    assert version(5) == 0x92
    assert [wiring.level(irq) for irq in (9, 10, 11)] == [None] * 3
    wiring.output(6, 0)
    for byte in (0x02 << 1, 0x90):  # ComIEnReg: IdleIEn, and IdleIRq is set after the reset
        wiring.transfer(0, byte)
    wiring.output(6, 65535)
    assert [wiring.level(irq) for irq in (9, 10, 11)] == [None, 0, None]
    assert [reader["transactions"] for reader in wiring.readers_state()] == [4, 3, 2]


def test_ws2812_pulses_are_bits_within_their_tolerance() -> None:
    bits = {ns: pixel_bit(ns) for ns in (200, 250, 400, 550, 600, 650, 800, 950, 1000)}
    assert bits == {200: None, 250: 0, 400: 0, 550: 0, 600: None, 650: 1, 800: 1, 950: 1, 1000: None}
    one, wiring = wired()
    wiring.pixels(21, bytes([1, 2, 3, 4, 5, 6, 7]))  # the third pixel has not got its 24 bits
    assert one.table.state(one.now)["ring"] == [[2, 1, 3], [5, 4, 6]]
    wiring.pixels(21, bytes([9, 9, 9]))  # the second one keeps what it had
    assert one.table.state(one.now)["ring"] == [[9, 9, 9], [5, 4, 6]]
    wiring.pixels(21, bytes(6), True)
    wiring.pixels(22, bytes(6))
    assert one.table.state(one.now)["ring"] == [[9, 9, 9], [5, 4, 6]]
    assert [entry[1:] for entry in wiring.log] == [["ring", 2], ["ring", 1], ["ring_spoiled", 2]]
