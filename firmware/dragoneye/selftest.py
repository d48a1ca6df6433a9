"""The self-test: each part looked at in turn, as rows [item, ok, value, allowed] in plain values.

`allowed` is a number that is the least, a list [least, most], a text that the value must be, or null where any is.
"""

import gc
import os

from dragoneye.rules import reading

# A round needs less; what is below points to a leak or to a foreign program.
MEMORY_MIN = 40000
# The journal's bound is 24 segments of 64 records of about 300 bytes.
FLASH_MIN = 500000
SAMPLE_MS = 5
# The motor coasts out before its current at rest is looked at.
COAST_MS = 500


def free_memory():
    """Bytes of the heap that are free after a collection."""
    gc.collect()
    return gc.mem_free()


def free_flash():
    """Bytes of the file system that are free."""
    status = os.statvfs("/")
    return status[0] * status[3]


async def reader_rows(reader, registry):
    """Rows of the readers, of each one's field, and of the three dice in all fields together."""
    rows = []
    dead = False
    for one in await reader.survey():
        rows.append(["reader %d" % one["reader"], one["ok"], "0x%02x" % one["version"], "0x91, 0x92"])
        if not one["ok"]:
            dead = True
        elif one["tags"] is None:
            rows.append(["field %d" % one["reader"], False, "unresolved", None])
        else:
            rows.append(["field %d" % one["reader"], True, len(one["tags"]), None])
    values, reason = None, "not run: a reader is dead"
    step = 0
    while values is None and not dead and step < len(reader.gains):
        # As a roll is read: two faces of one die at the usual gain may be one at the next.
        values, reason = reading.judge(await reader.scan(step), registry)
        step += 1
    rows.append(["dice", values is not None, list(values) if values else reason, "three dice"])
    return rows


async def jolt(board, sleep_ms, create_task):
    """One jolt of the shaker: (seen to move, the median of its current in milliamperes, past the inrush)."""
    samples = [0]
    task = create_task(board.shaker.run(1, 0))
    try:
        while not task.done():
            if board.shaker.running:
                samples.append(board.shaker.milliamps())
            await sleep_ms(SAMPLE_MS)
        return await task, sorted(samples)[len(samples) // 2]
    finally:
        # The test is stopped: the shaker's own way out switches the motor off.
        task.cancel()


async def run(board, data, identity, registry, may_move, sleep_ms, create_task):
    """Test everything; the rows.

    `board` holds the parts, `data` is the board's, `identity` the firmware's; the motor is moved only when `may_move`
    and the lid is shut. `sleep_ms` and `create_task` are asyncio's.
    """
    motor = data["motor"]
    shut = board.lid.active
    rows = await reader_rows(board.reader, registry)
    rows.append(["lid", shut, "shut" if shut else "open", "shut"])
    rows.append(["tamper", board.tamper.active, "shut" if board.tamper.active else "open", "shut"])
    rows.append(["button", not board.button.active, "pressed" if board.button.active else "up", "up"])
    rows.append(["service key", True, "on" if board.service.active else "off", None])
    low = data["supply"]["low_mv"]
    volts = board.supply_mv()
    rows.append(["supply", volts >= low, volts, low])
    current = board.shaker.milliamps()
    rows.append(["motor at rest", current <= motor["off_max_ma"], current, [0, motor["off_max_ma"]]])
    limits = board.shaker.limits_ma
    if not may_move:
        rows.append(["motor", False, "not run: a fault is latched", limits])
    elif not shut:
        rows.append(["motor", False, "not run: the lid is open", limits])
    elif volts < low:
        rows.append(["motor", False, "not run: the supply is low", limits])
    else:
        moved, current = await jolt(board, sleep_ms, create_task)
        if board.lid.moved:
            # Its interrupt stopped the motor, which says nothing about the motor.
            rows.append(["motor", False, "stopped: the lid was opened", limits])
        else:
            rows.append(["motor", moved and limits[0] <= current <= limits[1], current, limits])
        await sleep_ms(COAST_MS)
        current = board.shaker.milliamps()
        rows.append(["motor after it", current <= motor["off_max_ma"], current, [0, motor["off_max_ma"]]])
    memory = free_memory()
    rows.append(["memory", memory >= MEMORY_MIN, memory, MEMORY_MIN])
    flash = free_flash()
    rows.append(["flash", flash >= FLASH_MIN, flash, FLASH_MIN])
    rows.append(["program", identity["build"] != "unknown", identity["fw"] + " " + identity["build"], None])
    return rows
