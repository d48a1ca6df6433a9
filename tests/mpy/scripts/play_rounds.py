"""Prints every line that a controller says over a scripted game with power cuts: play_rounds.py folder."""

import sys

from dragoneye import journal, protocol, round
from dragoneye.controller import Controller
from dragoneye.journal import Journal
from dragoneye.rules import packs, reading

journal.SEGMENT_RECORDS = 8
DICE = [["04E00000000" + str(die) + "0" + str(face) for face in range(1, 7)] for die in (1, 2, 3)]
PACK = packs.load("nj")
now = 1000
seq = 0
acked = 0


def start() -> Controller:
    store = Journal(sys.argv[1], round.fold, round.initial)
    return Controller(store, PACK, reading.registry_of(DICE), 1, {}, {"uid": "U1"}, "power", now)


table = start()


def listen() -> None:
    """Print what is said; acknowledge every third event only, so that some come again."""
    global now, acked
    while True:
        line = table.next_line(now)
        if line is None:
            return
        print(line.decode().strip())
        value = protocol.decode(line)[1]
        if "ev" in value and value["ev"]["id"] % 3 == 0:
            acked = value["ev"]["id"]
            table.receive(protocol.encode(0, {"ack": acked}), now)


def ask(name: str, repeat: bool = False, **fields: object) -> None:
    global seq, now
    seq += 1
    now += 10
    line = protocol.encode(seq, dict(fields, q=name))
    table.receive(line, now)
    if repeat:
        table.receive(line, now)
    listen()


def tell(action: str, *args: object) -> None:
    global now
    now += 10
    table.guard(now, getattr(table.table, action), *args)
    listen()


def hello() -> None:
    global seq
    seq += 100
    ask("hello", major=1, minor=0, last_event=acked)


def roll(dice: list[int]) -> None:
    global now
    now += 6000
    ask("shake")
    number = table.table._roll
    now += 2000
    tell("shaken", number, True)
    now += 400
    tell("tick")
    for _ in range(2):
        tell("tags", number, {DICE[die][6 - value] for die, value in enumerate(dice)})


ask("status")
hello()
for number, dice in enumerate(([1, 2, 3], [4, 4, 4], [5, 5, 5], [6, 6, 6], [6, 6, 1])):
    ask("open", repeat=True, shaker=number % 3)
    ask("bets", position=2, wagers={"match": 500, "double": 100} if number > 1 else {"bonus": 100, "even": 50})
    ask("bets", position=3, wagers={"bonus": 2500})
    ask("bets", position=7, wagers={"match": 100})
    ask("close", repeat=True)
    ask("void", reason="x")
    roll(dice)
    if number == 2:
        # The power fails over a locked result; the clock begins anew.
        now = 5
        table = start()
        hello()
    ask("unlock")
    tell("lid", True)
    tell("lid", False)
    ask("finish")
table.receive(b"\x03garbage", now)
ask("dance", colour="\u00e9\n")
ask("open", shaker=1)
tell("set_fault", "READER", "no answer")
ask("clear", code="x")
ask("clear", code="READER")
ask("manual", dice=[1, 2, 3], reason="by hand")
ask("close")
ask("manual", dice=[1, 2, 3], reason="by hand")
ask("confirm", token=1, dice=[1, 2, 3])
now = 5
table = start()
hello()
tell("lid", True)
ask("end")
now += 5000
listen()
