"""Prints settlements, nets and liabilities of tables by a generator of its own: settle_tables.py seed tables."""

import sys

from dragoneye.rules import packs, wagers

state = int(sys.argv[1])


def below(limit: int) -> int:
    global state
    state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    return (state >> 8) % limit


nj = packs.load("nj")
variants = [nj.with_options({"after_third": word}) for word in ("cap", "restart", "hold")]
for _ in range(int(sys.argv[2])):
    bets = {}
    for position in range(1, 8):
        names = [wager for wager in packs.WAGERS if below(2) and not (position == 7 and wager == "match")]
        bets[position] = {wager: nj["stake_max"] - below(1000) for wager in names}
    first = 1 + below(6)
    dice = (first, first, first) if below(2) else (first, 1 + below(6), 1 + below(6))
    pack, eye, shaker, streak = variants[below(3)], below(3), below(8), below(5)
    rows = wagers.settle_table(bets, dice, eye, shaker, streak, pack)
    print(dice, eye, shaker, streak, wagers.net_of(rows), wagers.liability(bets, shaker, streak, pack), rows)
