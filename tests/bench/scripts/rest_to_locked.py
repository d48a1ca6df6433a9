"""The whole firmware on the emulated Pico, with marks where a roll's reading begins, each pass ends, and it is locked.

Prints {"begin": us, "passes": [[us, us], ...], "lock": [us, us], "tasks": {...}} when the first roll is locked.
"""

import asyncio
import json
import time

from dragoneye import app, round
from dragoneye.protocol import check_request

table_app = app.App()
table = table_app.controller.table
reader = table_app.board.reader
marks = {"passes": []}
scan = reader.scan
lock = table._lock
tick = table.tick


async def marked_scan(step=0):
    begun = time.ticks_us()
    tags = await scan(step)
    marks["passes"].append([begun, time.ticks_us()])
    return tags


def marked_lock(dice, manual):
    begun = time.ticks_us()
    lock(dice, manual)
    marks["lock"] = [begun, time.ticks_us()]


def marked_tick(now):
    begun = time.ticks_us()
    before = table.state
    tick(now)
    if before == round.SETTLING and table.state == round.READING:
        marks["begin"] = begun


reader.scan = marked_scan
table._lock = marked_lock
table.tick = marked_tick


async def main():
    running = asyncio.create_task(table_app.run())
    await asyncio.sleep_ms(100)
    for name, fields in (("open", {"shaker": 1}), ("close", {}), ("shake", {"jolts": 0})):
        name, checked = check_request(dict(fields, q=name))
        table.request(name, checked, table_app.clock.now())
        await asyncio.sleep_ms(20)
    while "lock" not in marks:
        await asyncio.sleep_ms(5)
    await asyncio.sleep_ms(50)
    marks["tasks"] = table_app.controller.stats()["tasks"]
    print("MARKS", json.dumps(marks))
    running.cancel()


asyncio.run(main())
