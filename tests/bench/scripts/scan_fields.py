"""Reads fields on the emulated Pico, first ours, then a public driver if there is one; /fields.json says which.

Prints "field NAME" and waits a moment, so that the bench can put the tags there; then the microseconds and what came.
"""

import asyncio
import gc
import json
import time

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
        print("read", json.dumps([spent, sorted(tags) if tags is not None else None]))


def theirs():
    import public_driver

    for name in asked["theirs"]:
        reader = public_driver.use("driver")
        print("field", name)
        time.sleep_ms(10)
        if name != "empty":
            reader.look()  # they do not wait until a tag has its power
        gc.collect()
        uid, transactions, spent = reader.look()
        print("read", json.dumps([spent, uid, transactions]))


time.sleep_ms(30)  # what is printed before USB is up is lost
if asked["theirs"]:
    theirs()
else:
    asyncio.run(ours())
print("done")
