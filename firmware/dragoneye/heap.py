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

# The program, what is large besides, the modules: the last is looked at first, and the rest waits meanwhile.
# Nothing of it may be a global of its own: it would have its turn with the globals.
_order = [None, None, None]  # type: list


def mark_modules_first(app):
    """From now on look at those modules first that are imported, then at what `collect` is given, then at the module
    `app`, and so at all that runs."""
    first = ()  # type: object
    for name in reversed(MODULES):
        module = sys.modules.get("dragoneye." + name)
        if module is not None:
            first = (first, module)
    _order[0] = app
    _order[2] = first


def collect(*large):
    """Collect now. `large` are things with much in them that refer to nothing but each other and the modules."""
    _order[1] = large
    gc.collect()
    _order[1] = None
