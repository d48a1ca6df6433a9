"""The table model: dice that depend on nothing but the seed and the count of shakes; faults; refusals."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from boards.virtual import model, prng
from boards.virtual.model import Model, Refused
from boards.virtual.sensor import TagSensor
from boards.virtual.unix_port import REPO, find_micropython

S = 1_000_000
FULL = 65535


class Shaker:
    """Shakes a table and looks at it, in time that a test makes up."""

    def __init__(self, seed: int = 7, **more: Any) -> None:
        self.now = 0
        self.table = Model(seed, **more)
        self.sensor = TagSensor(self.table, lambda: self.now)

    def shake(self, run_us: int = S, wait_us: int = S) -> None:
        self.table.drive(self.now, FULL, 0)
        self.now += run_us
        self.table.drive(self.now, 0, 0)
        self.now += wait_us

    def read(self) -> tuple[int, list[str]]:
        self.sensor.select()
        self.sensor.transfer(0x52)
        status, count = self.sensor.transfer(0), self.sensor.transfer(0)
        records = [bytes(self.sensor.transfer(0) for _ in range(8)) for _ in range(count)]
        self.sensor.deselect()
        return status, [record[1 : 1 + record[0]].hex() for record in records]

    def values(self) -> list[list[int]]:
        """For each die the values that its answering tags stand for."""
        status, uids = self.read()
        assert status == 0xA5
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
    one.table.drive(0, FULL, 0)
    seen = set()
    for _ in range(40):
        one.now += 25_000
        seen.add(str(one.read()))
    assert len(seen) > 10
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


def test_faults_of_the_readers() -> None:
    one = Shaker()
    one.do("fault", name="foreign")
    assert "04f0f0f0f0f0f0" in one.read()[1]
    assert len(one.read()[1]) == 4
    one.do("clear")
    one.do("fault", name="foreign", uid="01020304", rolls=None)
    assert "01020304" in one.read()[1]
    one.do("clear", name="foreign")
    one.do("fault", name="collision")
    assert one.read() == (0x5A, [])
    one.do("fault", name="dead_reader")
    assert one.read() == (0, [])
    assert one.do("clear") == {"cleared": 2}
    one.do("fault", name="unsettled")
    assert one.read() != one.read()


def test_motor_current_tells_what_the_motor_does() -> None:
    board = json.loads((REPO / "boards/rpi_pico/board.json").read_text())["motor"]
    one = Shaker()
    table = one.table
    assert table.motor_ma(0) < board["off_max_ma"]
    table.drive(0, 30000, 0)
    moving = table.motor_ma(0)
    assert moving > board["moving_min_ma"]
    one.do("fault", name="motor_jammed")
    assert table.motor_ma(0) > moving
    assert not table.state(0)["turning"]
    one.do("clear")
    one.do("fault", name="motor_dead")
    assert table.motor_ma(0) < board["off_max_ma"]
    one.do("clear")
    table.drive(0, 0, 0)
    one.do("fault", name="motor_stuck")
    assert table.motor_ma(0) > board["moving_min_ma"]
    assert table.moving(0)
    one.do("lid", to="open", force=True)  # the lid switch cuts the motor's supply
    assert table.motor_ma(0) < board["off_max_ma"]
    one.do("clear")
    one.do("lid", to="shut")
    one.do("supply", mv=5000)
    table.drive(0, FULL, 0)
    assert table.motor_ma(0) < board["off_max_ma"]


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
    assert one.table.due() == 50_000
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
        ("clear", {"name": "gremlin"}, "is no fault"),
    ],
)
def test_a_wrong_command_is_refused_by_name_and_changes_nothing(name: str, args: dict[str, Any], said: str) -> None:
    one = Shaker()
    before = one.table.saved()
    with pytest.raises(Refused, match=said):
        one.do(name, **args)
    assert one.table.saved() == before


def test_the_sensor_speaks_only_when_selected_and_asked() -> None:
    one = Shaker()
    assert [one.sensor.transfer(0x52) for _ in range(3)] == [0, 0, 0]
    one.sensor.select()
    assert [one.sensor.transfer(0x51) for _ in range(3)] == [0, 0, 0]
    assert one.sensor.transfer(0x52) == 0
    assert (one.sensor.transfer(0), one.sensor.transfer(0)) == (0xA5, 3)
    assert len({uid for die in model.default_tags() for uid in die}) == 18
