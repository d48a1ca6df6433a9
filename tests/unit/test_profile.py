"""The shake profile: what is allowed, and the same shake for the same seed and roll."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from boards.virtual.model import Model, default_tags
from dragoneye import profile
from dragoneye.config import WATCHDOG_MS, check_watchdog, read_config
from dragoneye.errors import BadInput
from dragoneye.rules import packs
from host_tools import provision
from host_tools.board_data import BOARDS


def test_defaults_fill_what_is_not_given() -> None:
    assert profile.check({}) == {name: row[0] for name, row in profile.FIELDS.items()}
    assert profile.check({"jolt_ms": 900, "seed": 7})["jolt_ms"] == 900
    # The ramp that nobody asked for gives way to a short jolt.
    assert profile.check({"jolt_ms": 12})["ramp_ms"] == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "profile: []; allowed: an object with duty_percent, jitter_percent, jolt_ms, ramp_ms, rest_ms, seed"),
        ({"speed": 3}, 'profile: there is no field "speed"; there are duty_percent, jitter_percent,'),
        ({"jolt_ms": 4}, "profile: jolt_ms is 4; allowed: a whole number from 5 to 6000"),
        ({"rest_ms": -1}, "profile: rest_ms is -1; allowed: a whole number from 0 to 5000"),
        ({"duty_percent": 101}, "profile: duty_percent is 101; allowed: a whole number from 50 to 100"),
        ({"duty_percent": True}, "profile: duty_percent is true; allowed:"),
        ({"jitter_percent": 10.5}, "profile: jitter_percent is 10.5; allowed:"),
        ({"seed": "x"}, 'profile: seed is "x"; allowed: a whole number from 0 to 65535'),
        ({"jolt_ms": 100, "ramp_ms": 23}, "profile: ramp_ms is 23; allowed: up to 22, a quarter of the shortest jolt"),
    ],
)
def test_what_cannot_be_is_named(given: Any, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        profile.check(given)
    assert said in str(caught.value)


def test_jitter_is_the_same_for_the_same_roll_and_stays_within_its_bounds() -> None:
    given = profile.check({"jolt_ms": 600, "rest_ms": 300, "jitter_percent": 10, "seed": 5})
    rolls = [profile.plan(given, 12, roll) for roll in range(1, 200)]
    assert rolls == [profile.plan(given, 12, roll) for roll in range(1, 200)]
    assert len({tuple(steps) for steps in rolls}) == len(rolls)
    assert profile.plan({**given, "seed": 6}, 12, 1) != rolls[0]
    jolts = [jolt for steps in rolls for jolt, _rest in steps]
    rests = [rest for steps in rolls for _jolt, rest in steps]
    # Every value between the bounds occurs, and none outside.
    assert (min(jolts), max(jolts), len(set(jolts))) == (540, 660, 121)
    assert (min(rests), max(rests), len(set(rests))) == (270, 330, 61)
    none = profile.check({"jitter_percent": 0})
    assert profile.plan(none, 3, 1) == [(600, 300)] * 3


def test_the_amplitude_ramps_up_holds_and_ramps_down() -> None:
    given = profile.check({"jolt_ms": 400, "ramp_ms": 40, "duty_percent": 80, "jitter_percent": 0})
    full = 80 * 65535 // 100
    duties = [profile.duty(given, ms, 400) for ms in range(401)]
    assert duties[0] == duties[400] == 0
    assert duties[40:361] == [full] * 321
    assert duties[:41] == sorted(duties[:41])
    assert duties == duties[::-1]
    without = profile.check({"jolt_ms": 12, "ramp_ms": 0})
    assert {profile.duty(without, ms, 12) for ms in range(-5, 20)} == {full}


def test_a_motor_that_jams_is_told_from_one_that_turns_at_every_duty_that_is_allowed() -> None:
    motor = json.loads((BOARDS / "rpi_pico" / "board.json").read_text())["motor"]
    _default, least_duty, most_duty = profile.FIELDS["duty_percent"]
    for percent in range(least_duty, most_duty + 1):
        least, most = profile.current_limits(motor, percent)
        full = percent * 65535 // 100
        table = Model()
        table.drive(0, full, 0)
        # Past the inrush; a full supply and one that is nearly low (the stall current falls with it).
        turning = [table.motor_ma(us) for us in range(30_000, 130_000, 250)]
        table.command(130_000, "fault", {"name": "motor_jammed", "rolls": None})
        table.drive(130_000, 0, 0)
        table.drive(140_000, full, 0)
        stalled = [table.motor_ma(us) for us in range(150_000, 250_000, 250)]
        assert least <= min(turning)
        assert max(turning) <= most * 95 // 100
        assert min(stalled) * 10_500 // 12_000 > most


@pytest.mark.parametrize("given", [2000, 2001, WATCHDOG_MS, 8388])
def test_a_watchdog_that_can_be(given: int) -> None:
    assert check_watchdog(given) == given


@pytest.mark.parametrize("given", [-1, 0, 1, 1999, 8389, True, None, "8000", 1000.5])
def test_a_watchdog_that_cannot_be_is_named(given: Any) -> None:
    with pytest.raises(BadInput, match=r"watchdog_ms is .* allowed: a whole number from 2000 to 8388"):
        check_watchdog(given)


@pytest.mark.parametrize(
    ("entry", "value", "said"),
    [
        ("profile", {"duty_percent": 49}, "profile: duty_percent is 49; allowed: a whole number from 50 to 100"),
        ("watchdog_ms", 9000, "watchdog_ms is 9000; allowed: a whole number from 2000 to 8388"),
    ],
)
def test_the_firmware_refuses_them_in_a_configuration_too(tmp_path: Path, entry: str, value: Any, said: str) -> None:
    provision.write(tmp_path, "rpi_pico", packs.load("nj"), default_tags(), 0)
    path = tmp_path / "config.json"
    read_config(str(path), str(tmp_path / "board.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), entry: value}))
    with pytest.raises(ValueError, match="allowed") as caught:
        read_config(str(path), str(tmp_path / "board.json"))
    assert said in str(caught.value)
