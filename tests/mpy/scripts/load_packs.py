"""Prints every value of a rule pack with its source, or as its own file: load_packs.py rows|file name."""

import json
import sys

from dragoneye.rules import packs

pack = packs.load(sys.argv[2])
if sys.argv[1] == "file":
    print(json.dumps(pack.as_dict()))
else:
    print(pack.name, pack.title)
    for key in sorted(pack.values):
        print(key, json.dumps(pack[key]), pack.source(key))
