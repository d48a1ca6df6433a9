"""What the app does at a flash that refuses: to forget the starts with the service key, to end its firmware's trial.

Runs under MicroPython with the virtual table's `machine`: the app imports the drivers.
"""

import sys

sys.path.append(__file__.rsplit("/", 4)[0])

from boards.virtual import machine

sys.modules["machine"] = machine

from dragoneye import app  # noqa: E402


class Flash:
    """In the place of os and of installed; `refusals` are still to come."""

    refusals = 0

    def stat(self, path: str) -> object:
        return (0,) * 6 + (3,)

    def refuse(self, *path: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise OSError(5)
        print("done", *path)

    remove = prove = refuse


class Table:
    """What of an App the two look at."""

    greeted = True
    active = False

    def __init__(self) -> None:
        self.controller = self.clock = self.board = self.lock = self
        self.ms = 1000
        self._prove_at = 1000

    def now(self) -> int:
        return self.ms

    def still(self) -> None:
        pass

    def note_service(self, times: int, now: int) -> bool:
        print("recorded", times)
        return True

    def _died(self, name: str, error: Exception) -> None:
        print("fault", name, repr(error))


flash = app.os = app.installed = Flash()  # type: ignore
table = Table()
for flash.refusals in (1, 0):
    app.App._note_service_key(table)  # type: ignore
flash.refusals = 2
while table._prove_at is not None:
    before = flash.refusals
    app.App._prove(table)  # type: ignore
    if flash.refusals < before or table._prove_at is None:
        print("at", table.ms)
    table.ms += 250
