"""Reads fields on the emulated Pico, first ours, then a public driver if there is one; /fields.json says which.

Prints "field NAME" and waits a moment, so that the bench can put the tags there; then the microseconds and what came.
"""

import asyncio
import gc
import json
import time

from dragoneye.drivers import mfrc522
from dragoneye.drivers.readers import Readers

with open("/board.json") as file:
    board = json.load(file)
with open("/fields.json") as file:
    asked = json.load(file)


async def ours():
    for name, readers in asked["ours"]:
        one = Readers(board["pins"], board["spi"], {"readers": readers})
        print("field", name)
        # The bench looks once in a millisecond; the readers wake up meanwhile.
        await asyncio.sleep_ms(10)
        gc.collect()
        start = time.ticks_us()
        tags = await one.scan()
        spent = time.ticks_diff(time.ticks_us(), start)
        tags = sorted(tags) if tags is not None else None
        print("read", json.dumps([spent, tags, await held(one), await first(one.chips[0])]))


async def held(readers):
    """The longest that one pass keeps a task waiting that wants its turn each millisecond."""
    longest = 0
    running = asyncio.create_task(readers.scan())
    last = time.ticks_us()
    while not running.done():
        await asyncio.sleep_ms(1)
        now = time.ticks_us()
        longest = max(longest, time.ticks_diff(now, last))
        last = now
    return longest


async def first(chip):
    """What the first UID takes when the field is on already and nobody asks whether there are more: as others do."""
    # The tags that the last pass has put to sleep forget it while the field is off.
    await asyncio.sleep_ms(10)
    chip._put(mfrc522._FIELD_ON)
    await asyncio.sleep_ms(10)
    start = time.ticks_us()
    if chip._request():
        chip._walk()
    spent = time.ticks_diff(time.ticks_us(), start)
    chip.off()
    return spent


def theirs():
    import public_driver

    for name in asked["theirs"]:
        reader = public_driver.use("driver", count=False)
        print("field", name)
        time.sleep_ms(10)
        if name != "empty":
            reader.look()  # they do not wait until a tag has its power
        gc.collect()
        uid, _count, spent = reader.look()
        print("read", json.dumps([spent, uid]))


time.sleep_ms(30)  # what is printed before USB is up is lost
if asked["theirs"]:
    theirs()
else:
    asyncio.run(ours())
print("done")
