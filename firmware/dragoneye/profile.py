"""The shake profile: what one shake does, as data that the configuration gives and the shaker's driver runs.

A jolt ramps up to its amplitude, holds it and ramps down again; a rest follows. Jitter varies the length of every jolt
and rest, the same way each time for the same seed and roll: a shake can be repeated exactly, and no two rolls in a row
have the same rhythm.
"""

from dragoneye.errors import BadInput
from dragoneye.text import check_whole, show

# name -> (default, least, most). `duty_percent` is the amplitude: the share of the motor's supply voltage. With less
# than the least of it, a motor that is stuck draws hardly more than one that turns: a jam would not be seen.
FIELDS = {
    "jolt_ms": (600, 5, 6000),
    "rest_ms": (300, 0, 5000),
    "duty_percent": (80, 50, 100),
    "ramp_ms": (60, 0, 1000),
    "jitter_percent": (10, 0, 50),
    "seed": (0, 0, 65535),
}

# The multiplicative generator 75 x mod 65537 (a prime, 75 a primitive root): small integers only, on any Python.
_PRIME = 65537
_FACTOR = 75


def check(given):
    """The whole profile, with defaults for what `given` does not name. Raises BadInput."""
    if not isinstance(given, dict):
        raise BadInput("profile: %s; allowed: an object with %s" % (show(given), ", ".join(sorted(FIELDS))))
    profile = {name: FIELDS[name][0] for name in FIELDS}
    for name in given:
        if name not in FIELDS:
            raise BadInput("profile: there is no field %s; there are %s" % (show(name), ", ".join(sorted(FIELDS))))
        _default, least, most = FIELDS[name]
        profile[name] = check_whole("profile: " + name, given[name], least, most)
    # The shortest jolt still keeps its amplitude for half its time.
    most = profile["jolt_ms"] * (100 - profile["jitter_percent"]) // 100 // 4
    if "ramp_ms" not in given:
        profile["ramp_ms"] = min(profile["ramp_ms"], most)
    if profile["ramp_ms"] > most:
        raise BadInput(
            "profile: ramp_ms is %d; allowed: up to %d, a quarter of the shortest jolt" % (profile["ramp_ms"], most)
        )
    return profile


def current_limits(motor, duty_percent):
    """[least, most] in milliamperes that a motor draws which turns at this amplitude; `motor` is the board's data.

    A motor that is stuck is a resistor: what it draws, and so the limit, falls with the voltage that it gets. The
    board's `stalled_min_ma` holds at full voltage.
    """
    return [motor["moving_min_ma"], motor["stalled_min_ma"] * duty_percent // 100 - 1]


def plan(profile, jolts, roll):
    """[(milliseconds of the jolt, of the rest after it)] of the shake number `roll`."""
    value = (profile["seed"] + roll) % (_PRIME - 1) + 1
    steps = []
    for _jolt in range(jolts):
        pair = []
        for length in (profile["jolt_ms"], profile["rest_ms"]):
            value = value * _FACTOR % _PRIME
            most = length * profile["jitter_percent"] // 100
            pair.append(length - most + value % (2 * most + 1))
        steps.append((pair[0], pair[1]))
    return steps


def duty(profile, gone_ms, length_ms):
    """The duty (0..65535) at `gone_ms` milliseconds of a jolt that lasts `length_ms`."""
    full = profile["duty_percent"] * 65535 // 100
    ramp = profile["ramp_ms"]
    edge = min(gone_ms, length_ms - gone_ms)
    return full if not ramp or edge >= ramp else full * max(edge, 0) // ramp
