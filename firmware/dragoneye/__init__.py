"""The dragon's eye table controller.

Everything outside `drivers/` and `app.py` is pure Python that runs unchanged under MicroPython and CPython; the host
tool imports the same files, so that both ends of the wire and both users of a rule share one text.
"""

__version__ = "0.1.0"
