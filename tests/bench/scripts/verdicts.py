"""The whole firmware on the emulated Pico shakes again and again; the bench puts a fault on the table before each.

Prints "shake" and waits a moment; then the verdict: the reason of a void roll, or the state.
"""

import asyncio

from dragoneye import app
from dragoneye.protocol import CLOSED, FAULT, LOCKED, VOID, check_request

table_app = app.App()
table = table_app.controller.table


def ask(name, **fields):
    name, checked = check_request(dict(fields, q=name))
    table.request(name, checked, table_app.clock.now())


async def main():
    running = asyncio.create_task(table_app.run())
    await asyncio.sleep_ms(100)
    ask("open", shaker=1)
    ask("close")
    while table.state in (CLOSED, VOID):
        print("shake")
        await asyncio.sleep_ms(10)
        if table.state == VOID:
            ask("resume")
        ask("shake", jolts=0)
        while table.state not in (VOID, FAULT, LOCKED):
            await asyncio.sleep_ms(5)
        print("VERDICT", table.void_reason if table.state == VOID else table.state)
    running.cancel()


asyncio.run(main())
