"""The heap, collected in one pass over it.

MicroPython's collector marks depth first, and goes over the whole heap once more when more than 64 blocks waited to be
looked at (py/gc.c: gc_mark_subtree, gc_deal_with_stack_overflow): 10 ms more of the Pico's time. It begins with the
globals of the function that calls it, here this module's. They name what to look at in such an order that little waits:
each thing after what it refers to.
"""

import gc
import sys

# The package's modules, each after those that it imports. Those are left out that import asyncio: it refers to every
# task, and so to all that there is.
MODULES = (
    "errors",
    "text",
    "protocol",
    "keys",
    "profile",
    "rules.packs",
    "rules.wagers",
    "rules.streak",
    "rules.reading",
    "betting",
    "service",
    "round",
    "journal",
    "config",
    "signals",
    "selftest",
    "installed",
    "controller",
    "drivers.inputs",
    "drivers.lock",
    "drivers.buzzer",
    "drivers.ring",
    "drivers.console",
)

# What is large besides and refers to little but the modules: looked at right after them.
_large = []
_first = _large  # type: object


def mark_modules_first(app):
    """From now on look at the modules first, then at what `collect` is given, then at the module `app`, and so at all
    that runs."""
    global _first
    # The last of a tuple is looked at first, and the rest is all that waits meanwhile.
    _first = (app, _large)
    for name in reversed(MODULES):
        _first = (_first, sys.modules["dragoneye." + name])


def collect(*large):
    """Collect now. `large` are things with much in them that refer to nothing but each other and the modules."""
    _large[:] = large
    gc.collect()
    _large[:] = ()
