"""Two hundred displays on one table: how soon they see what happens, and what the server takes for them.

WEB_DISPLAYS and WEB_ROUNDS are other numbers of screens and rounds; the server is a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from host_tools.web.access import Pins
from tests.bench import Row, memory_mb
from tests.virtual import instant_table, until

DISPLAYS = int(os.environ.get("WEB_DISPLAYS", "200"))
ROUNDS = int(os.environ.get("WEB_ROUNDS", "100"))
STEPS = ("open", "close", "shake", "lid", "finish")


def processor_s(pid: int) -> float:
    """The processor time of a process (Linux)."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Screens:
    """Connections that read the display's stream; `seen` has when each saw a state of a round first."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.seen: dict[tuple[int, str], list[float]] = {}
        self.bytes = 0

    async def watch(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
        writer.write(b"GET /events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        known = None
        try:
            while line := await reader.readline():
                self.bytes += len(line)
                found = re.match(rb'data: \{"state":"(\w+)".*?"round":(\d+),"shaker"', line)
                if found and found.groups() != known:
                    known = found.groups()
                    self.seen.setdefault((int(known[1]), known[0].decode()), []).append(time.monotonic())
        finally:
            writer.close()

    async def all_saw(self, number: int, state: str) -> list[float]:
        """When each of them saw it."""
        while len(self.seen.get((number, state), [])) < DISPLAYS:
            await asyncio.sleep(0.001)
        return self.seen.pop((number, state))


class Desk:
    """A dealer's session over one connection after another."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._cookie = ""
        self._csrf = ""
        self._count = 0
        self.view: dict[str, Any] = {}

    async def send(self, method: str, path: str, body: Any = None) -> tuple[str, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        data = json.dumps(body).encode() if body is not None else b""
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\n"
        head += f"cookie: {self._cookie}\r\nx-csrf: {self._csrf}\r\ncontent-length: {len(data)}\r\n\r\n"
        writer.write(head.encode() + data)
        told, _blank, answer = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        return told.decode(), answer

    async def begin(self, pin: str) -> None:
        told, _body = await self.send("POST", "/dealer/login", {"role": "dealer", "pin": pin})
        found = re.search(r"set-cookie: (dragoneye=[^;]+)", told)
        assert found, told
        self._cookie = found[1]
        _told, page = await self.send("GET", "/dealer")
        self._csrf = json.loads(page.partition(b'id="page">')[2].partition(b"</script>")[0])["csrf"]

    async def look(self) -> None:
        """Keep `view` at what the console is sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
        writer.write(f"GET /dealer/events HTTP/1.1\r\nhost: 127.0.0.1\r\ncookie: {self._cookie}\r\n\r\n".encode())
        while line := await reader.readline():
            if line.startswith(b"data: "):
                self.view = json.loads(line[6:])

    async def until(self, **wanted: Any) -> None:
        while any(self.view.get(name) != value for name, value in wanted.items()):
            await asyncio.sleep(0.002)

    async def do(self, name: str, **fields: Any) -> None:
        """An action, again when the table has moved on under it."""
        while True:
            self._count += 1
            asked = {"key": f"bench-{self._count:08d}", "do": name, "step": self.view["step"], "fields": fields}
            told, answer = await self.send("POST", "/dealer/do", asked)
            if " 200 " in told.partition("\r\n")[0]:
                return
            code = json.loads(answer).get("code")
            assert code in ("STALE", "E_LID", "E_LOCKOUT"), answer
            await asyncio.sleep(0.01)


async def play(desk: Desk, screens: Screens, number: int, delays: list[float]) -> None:
    """A round; notes how long after an action each display saw what came of it."""
    await desk.until(state="IDLE", lid_open=False)
    began = time.monotonic()
    await desk.do("open", shaker=0)
    delays += [at - began for at in await screens.all_saw(number, "BETTING")]
    await desk.do("bets", position=2, wagers={"match": 500, "odd": 100})
    await desk.until(state="BETTING")
    began = time.monotonic()
    await desk.do("close")
    delays += [at - began for at in await screens.all_saw(number, "CLOSED")]
    while desk.view["state"] != "LOCKED":
        # On a machine that has much else to do a roll may be void: it is shaken again.
        if desk.view["state"] in ("CLOSED", "VOID"):
            await desk.do("shake")
        await asyncio.sleep(0.01)
    await desk.do("unlock")
    await desk.do("lid", to="open")
    await screens.all_saw(number, "SETTLED")
    await desk.do("lid", to="shut")
    await desk.until(lid_open=False)
    await desk.do("finish")


async def measure(port: int, pid: int) -> list[Row]:
    """The figures of a server that runs."""
    screens, desk = Screens(port), Desk(port)
    alone = memory_mb(pid)
    await desk.begin("2468")
    tasks = [asyncio.create_task(desk.look())]
    tasks += [asyncio.create_task(screens.watch()) for _ in range(DISPLAYS)]
    while not desk.view:
        await asyncio.sleep(0.01)
    delays: list[float] = []
    for number in range(1, 11):
        await play(desk, screens, number, [])
    early, used, sent, began = memory_mb(pid), processor_s(pid), screens.bytes, time.monotonic()
    half = early
    for number in range(11, ROUNDS + 11):
        await play(desk, screens, number, delays)
        if number == ROUNDS // 2 + 10:
            half = memory_mb(pid)
    took = time.monotonic() - began
    rows = [
        Row(
            f"{DISPLAYS} displays: from a press to all of them, median / 99 %",
            f"{statistics.median(delays) * 1e3:.0f} / {sorted(delays)[len(delays) * 99 // 100] * 1e3:.0f} ms",
        ),
        Row(
            "memory: alone, with them, after half of the rounds, after all",
            f"{alone:.1f}, {early:.1f}, {half:.1f}, {memory_mb(pid):.1f} MB",
        ),
        Row(
            f"{ROUNDS} rounds: processor and bytes a round",
            f"{(processor_s(pid) - used) / ROUNDS * 1e3:.0f} ms of {took / ROUNDS:.2f} s, "
            f"{(screens.bytes - sent) / ROUNDS / 1e3:.0f} kB to all",
        ),
    ]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return rows


def run() -> Iterator[Row]:
    """A virtual table, a server, its displays, and a dealer who plays."""
    with tempfile.TemporaryDirectory() as name, instant_table(Path(name)) as bench:
        folder = Path(name)
        pins = Pins(folder / "pins.json")
        pins.set("dealer", "2468")
        command = [sys.executable, "-m", "host_tools", "serve", "--port", bench.port, "--http", "0"]
        command += ["--pins", str(pins.path), "--db", str(folder / "rounds.db")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout
            found = re.search(r":(\d+)/", process.stdout.readline())
            assert found
            port = int(found[1])
            until(lambda: bench.state()["connected"], "the server")
            yield from asyncio.run(measure(port, process.pid))
        finally:
            process.terminate()
            process.wait()
