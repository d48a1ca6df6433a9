"""`python -m tests.bench`: what is measured, as ratios where two things are compared in one run.

Every module of this package has a `run()` that returns its rows.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, its value with unit, and the ratio with what it is compared to."""

    what: str
    value: str
    ratio: str = ""
    goal: str = ""


def seconds(call: Callable[[], object], times: int = 1, repeat: int = 7) -> float:
    """The least seconds that one of `times` calls took, over some repeats: the machine's other work only adds."""
    best = float("inf")
    for _round in range(repeat):
        begin = time.perf_counter()
        for _call in range(times):
            call()
        best = min(best, (time.perf_counter() - begin) / times)
    return best


def rate(each: float, of: str) -> str:
    """ "12.3 million hands/s" for the seconds that each takes."""
    per_second = 1 / each
    for size, word in ((1e9, " billion"), (1e6, " million"), (1e3, " thousand")):
        if per_second >= size:
            return f"{per_second / size:.3g}{word} {of}/s"
    return f"{per_second:.3g} {of}/s"


def memory_mb(pid: int) -> float:
    """The resident memory of a process (Linux)."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) / 1024
