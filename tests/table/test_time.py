"""Time on the table: the tick counter wraps in the middle of every phase, and its clock's year is never believed.

REVEALED is no phase that time passes in: one call of the table enters and leaves it (Table._reveal).
"""

from __future__ import annotations

from typing import Any

import pytest

from dragoneye.protocol import BETTING, CLOSED, IDLE, LOCKED, READING, SETTLED, SETTLING, SHAKING, VOID
from host_tools.link import Refused
from host_tools.provision import INSTANT
from host_tools.store import utc_now
from tests.table.conftest import OpenTable
from tests.table.played import PLAN, Played
from tests.virtual import LONG, until

WRAP = 2**30
# Where the counter wraps, in milliseconds after the start: a slow machine needs a later one to get there in time.
WRAPS_AFTER = (2500, 5000, 10_000, 20_000, 40_000)
LASTS_MS = 1500
LOCKOUT = "lock-out"
RESEND = "resending"
MORE: dict[str, Any] = {
    SHAKING: {"profile": {"jolt_ms": LASTS_MS // 3 - 10, "rest_ms": 10, "duty_percent": 80}},
    SETTLING: {"settings": {**INSTANT["settings"], "settle_ms": LASTS_MS}},
    READING: {"settings": {**INSTANT["settings"], "read_tries": 1_000_000, "read_timeout_ms": 60_000}},
    LOCKOUT: {"settings": {**INSTANT["settings"], "lockout_ms": LASTS_MS}},
}
TIMED = (SHAKING, SETTLING, LOCKOUT)


def up(table: Played) -> int:
    """Milliseconds since the board started, which is where its counter is less where it began."""
    return int(table.bench.state()["up_ms"])


def reach(table: Played, phase: str, wraps: int) -> None:
    """By real steps into the phase; into one that ends by itself so late that the wrap comes in the middle."""
    if phase in (IDLE, RESEND):
        return
    table.ask("open", shaker=PLAN.shaker)
    for position, wagers in PLAN.wagers.items():
        table.ask("bets", position=position, wagers=wagers)
    if phase == BETTING:
        return
    table.ask("close")
    if phase == CLOSED:
        return
    if phase in (VOID, LOCKOUT):
        table.do("fault", name="missing", die=1)
    if phase == READING:
        table.do("fault", name="unsettled", rolls=None)
    if phase in TIMED:
        until(lambda: up(table) > wraps - LASTS_MS // 2, "the time to begin")
    table.ask("shake")
    if phase == SETTLED:
        table.wait(LOCKED)
        table.ask("unlock")
        until(lambda: opens(table), "the lid")
    table.wait(VOID if phase == LOCKOUT else phase)


def opens(table: Played) -> bool:
    table.lid.open(table.device)
    return table.state == SETTLED


def state_of(table: Played, phase: str) -> str:
    """The phase that the table is in, as the test names it."""
    view = table.device.refresh()
    if phase == LOCKOUT and view.get("lockout_ms"):
        assert 0 < view["lockout_ms"] <= LASTS_MS
        try:
            table.ask("shake")
        except Refused as refused:
            if refused.code != "E_LOCKOUT":
                raise
            return LOCKOUT
        # It ended between the two requests: what is asked then is done.
        return SHAKING
    return str(view["state"])


def crosses(table: Played, phase: str, wraps: int) -> bool:
    """Be in the phase from before the wrap to after it; False when the machine was too slow for that."""
    reach(table, phase, wraps)
    if phase == RESEND:
        return resends(table, wraps)
    if state_of(table, phase) != phase or up(table) >= wraps:
        return False
    if phase in TIMED:
        until(lambda: state_of(table, phase) != phase, "the end of the phase")
        return up(table) > wraps
    until(lambda: up(table) > wraps + 50, "the wrap")
    assert table.state == phase
    return True


def resends(table: Played, wraps: int) -> bool:
    """A host that stores nothing for a while around the wrap is sent everything again after it."""
    link = table.device._link
    stores = link._on_event
    until(lambda: up(table) > wraps - 500, "the time to begin")
    link._on_event = lambda record, hash, tag: False
    table.ask("open", shaker=1)
    table.ask("void", reason="for the test")
    before = table.ask("stats")["resent"]
    in_time = up(table) < wraps
    until(lambda: table.ask("stats")["resent"] > before, "the events again")
    assert up(table) > wraps or not in_time
    link._on_event = stores
    table.device.wait_stored(LONG)
    return in_time


@pytest.mark.parametrize(
    "phase", [IDLE, BETTING, CLOSED, SHAKING, SETTLING, READING, LOCKED, SETTLED, VOID, LOCKOUT, RESEND]
)
def test_the_tick_counter_wraps_in_the_middle_of_a_phase(open_table: OpenTable, phase: str) -> None:
    table = open_table(more=MORE.get(phase))
    for wraps in WRAPS_AFTER:
        table.do("ticks", ms=WRAP - wraps)
        table.restart()
        crossed = crosses(table, phase, wraps)
        if phase == READING:
            table.do("clear", name="unsettled")
        table.do("next", dice=[[2, 4, 5]])
        [stored] = table.play() if table.state == IDLE else [table.finish()]
        assert stored["status"] == "settled"
        if crossed:
            break
    else:
        pytest.fail(f"this machine did not reach {phase} within {WRAPS_AFTER[-1]} ms")
    table.check_record()
    boot = table.ask("stats")["uptime_ms"]
    assert wraps < boot < wraps + 1000 * LONG
    events = table.store.events(table.device.uid)
    ticks = [event["t"] for event in events if event["b"] == events[-1]["b"]]
    assert ticks == sorted(ticks)
    assert 0 <= ticks[0] <= ticks[-1] <= boot


def test_the_host_stamps_utc_whatever_year_the_table_lives_in(open_table: OpenTable) -> None:
    # The table sends its first records as soon as it is there.
    before = utc_now()
    table = open_table()
    # The virtual Pico's clock begins in 2021, as the real one's does.
    table.play([1, 2, 3])
    table.restart()
    table.play([1, 2, 3])
    stamps = [event["utc"] for event in table.store.events(table.device.uid)]
    stamps += [one["utc"] for one in table.store.rounds(table.device.uid)]
    assert before <= min(stamps) <= max(stamps) <= utc_now()
