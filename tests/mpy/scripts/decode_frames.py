"""Prints what becomes of each line on stdin, given as hex: noise, a problem's code, or the request with its fields."""

import binascii
import sys

from dragoneye import protocol
from dragoneye.text import dumps

for given in sys.stdin:
    try:
        seq, value = protocol.decode(binascii.unhexlify(given.strip()))
        name, fields = protocol.check_request(value)
    except protocol.Noise:
        print("noise")
    except protocol.Problem as problem:
        print("refused", problem.code)
    else:
        print("taken", seq, name, dumps([[key, fields[key]] for key in sorted(fields)]))
