"""Prints what each input of a JSON list on stdin is told: [["case", {...}], ["options", {...}], ["pack", "zz"]...]."""

import json
import sys

from dragoneye.errors import BadInput
from dragoneye.rules import packs, wagers

nj = packs.load("nj")
for kind, given in json.loads(sys.stdin.read()):
    try:
        if kind == "case":
            wagers.settle_case(given, nj)
        elif kind == "options":
            nj.with_options(given)
        elif kind == "file":
            packs.from_dict(given)
        else:
            packs.load(given)
        print("taken")
    except BadInput as error:
        print(error)
