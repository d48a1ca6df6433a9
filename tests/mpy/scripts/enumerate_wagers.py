"""Prints how many cases there are and a digest of every answer: enumerate_wagers.py after_third double_on_triple."""

import binascii
import hashlib
import sys

from dragoneye.rules import packs, wagers

pack = packs.load("nj").with_options({"after_third": sys.argv[1], "double_on_triple": sys.argv[2]})
digest = hashlib.sha256()
count = 0
faces = range(1, 7)
for dice in [(a, b, c) for a in faces for b in faces for c in faces]:
    for eye in range(3):
        for position in range(1, 8):
            answers = [
                wagers.odds(wager, dice, eye, position, role, streak, pack)
                for wager in packs.WAGERS
                for role in wagers.ROLES
                for streak in range(6)
            ]
            count += len(answers)
            digest.update(repr(answers).encode())
        # The rest follows from the odds; once for each wager is enough.
        settled = [wagers.settle_one(wager, 250, dice, eye, 6, "shaker", 2, pack) for wager in packs.WAGERS]
        digest.update(repr([sorted(one.items()) for one in settled]).encode())
print(count, binascii.hexlify(digest.digest()).decode())
