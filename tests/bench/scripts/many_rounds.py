"""Plays rounds on a controller and its journal with no board and no waits, and prints the heap as it goes.

Arguments: folder of the journal, number of rounds. A line of JSON at the start and after every tenth part.
"""

import gc
import json
import os
import sys
import time

from dragoneye import protocol, round
from dragoneye.controller import Controller
from dragoneye.journal import Journal
from dragoneye.rules import packs, reading

dice = [[f"D{die}F{face}" for face in range(6)] for die in range(3)]
folder, rounds = sys.argv[1], int(sys.argv[2])
controller = Controller(
    Journal(folder, round.fold, round.initial),
    packs.load("nj"),
    reading.registry_of(dice),
    0,
    {"lockout_ms": 0, "settle_ms": 1},
    {"uid": "BE"},
    "bench",
    0,
)
now = 0
seq = 1000
generator = 1


def drain():
    """Take what the controller says and acknowledge its events, as a host does."""
    while True:
        line = controller.next_line(now)
        if line is None:
            return
        _seq, value = protocol.decode(line)
        if "ev" in value:
            controller.receive(protocol.encode(0, {"ack": value["ev"]["id"]}), now)


def ask(name, **fields):
    """One request, answered."""
    global seq, now
    seq += 1
    now += 1
    fields["q"] = name
    controller.receive(protocol.encode(seq, fields), now)
    drain()


def die():
    """A value 1..6 from a small generator of our own."""
    global generator
    generator = (generator * 1103515245 + 12345) & 0x7FFFFFFF
    return (generator >> 16) % 6 + 1


def play():
    """One round, from the opening to the finish."""
    global now
    table = controller.table
    ask("open", shaker=die())
    for position in range(1, 7):
        ask("bets", position=position, wagers={"match": 500, "odd": 200, "double": 100})
    ask("close")
    ask("shake")
    roll = table.take_effects()[0][1][0]
    controller.guard(now, table.shaken, roll, True)
    now += 5
    controller.guard(now, table.tick)
    tags = {dice[index][6 - die()] for index in range(3)}
    for _ in range(2):
        controller.guard(now, table.tags, roll, tags)
    controller.guard(now, table.lid, True)
    ask("finish")
    controller.guard(now, table.lid, False)
    table.take_effects()
    drain()


ask("hello", major=1, minor=0)
play()
began = time.time()
for count in range(rounds + 1):
    if count % max(1, rounds // 10) == 0:
        gc.collect()
        free = gc.mem_free() if hasattr(gc, "mem_free") else 0
        size = sum([os.stat(folder + "/" + name)[6] for name in os.listdir(folder)])
        print(json.dumps({"rounds": count, "free": free, "seconds": time.time() - began, "journal": size}))
    play()
