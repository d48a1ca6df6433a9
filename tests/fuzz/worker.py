"""One target in a process of its own: `python -m tests.fuzz.worker TARGET ENGINE SECONDS INPUTS KEEP FOLDER`.

Prints a JSON line of counts every second and one with "done" at the end. The engine's own words go to stderr.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

MEMORY_MAX = 3 << 30
TOLD_S = 1.0


class Ended(BaseException):
    """Time or inputs are used up."""


class Run:
    """Counts what goes through a Watch, tells of it, and ends in time."""

    def __init__(self, watch: Any, seconds: float, inputs: int) -> None:
        self._watch = watch
        # What the engine and the targets print does not come between.
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._inputs = inputs
        self._end = time.monotonic() + seconds
        self._told = 0.0

    def one(self, data: bytes) -> None:
        """Run an input. Raises Ended."""
        found = self._watch.one(data)
        now = time.monotonic()
        if found is not None or now >= self._told + TOLD_S:
            self.tell()
            self._told = now
        if now >= self._end or self._watch.inputs >= self._inputs:
            raise Ended

    def tell(self, **more: Any) -> None:
        watch = self._watch
        findings = [[one.place, one.words] for one in watch.findings.values()]
        told = {"inputs": watch.inputs, "taken": watch.taken, "slowest_s": round(watch.slowest, 3)}
        print(json.dumps({**told, "growth": watch.growth, "findings": findings, **more}), file=self._out, flush=True)


def atheris(run: Run, seeds: list[bytes], folder: Path, mutate: Callable[..., bytes]) -> None:
    """Inputs that libFuzzer chooses by the branches they reach."""
    import atheris

    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for place, seed in enumerate(seeds):
        (corpus / f"seed{place:04d}").write_bytes(seed)

    def one(data: bytes) -> None:
        try:
            run.one(data)
        except Ended:
            run.tell(done=True)
            # libFuzzer does not give control back.
            os._exit(0)

    def change(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.4:
            return bytes(atheris.Mutate(data, most))
        return mutate(data, rng, most)

    options = ["-max_len=16384", "-len_control=0", "-rss_limit_mb=0", "-timeout=100000", "-print_final_stats=0"]
    words = ["fuzz", *options, f"-artifact_prefix={folder}/", str(corpus)]
    atheris.Setup(words, one, custom_mutator=change, internal_libfuzzer=True)
    atheris.Fuzz()


def hypothesis(run: Run, seeds: list[bytes], folder: Path, mutate: Callable[..., bytes]) -> None:
    """Seeds with some of their parts changed, and bytes of any kind; nothing is learnt from what they reach."""
    from hypothesis import HealthCheck, Phase, given, seed, settings

    from tests.fuzz.mutate import inputs_of

    asked = settings(
        max_examples=20_000, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
    )
    try:
        for data in seeds:
            run.one(data)
        for number in range(1, 1_000_000):

            @seed(number)
            @asked
            @given(data=inputs_of(seeds))
            def some(data: bytes) -> None:
                run.one(data)

            some()
    except Ended:
        run.tell(done=True)


ENGINES = {"atheris": atheris, "hypothesis": hypothesis}


def main(words: list[str]) -> None:
    """See the module."""
    name, engine, seconds, inputs, keep, folder = words
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MAX, MEMORY_MAX))
    if engine == "atheris":
        import atheris as found

        watched: Any = found.instrument_imports(include=["dragoneye", "host_tools"])
    else:
        watched = nullcontext()
    with watched:
        from tests.fuzz.mutate import mutate
        from tests.fuzz.targets import TARGETS
        from tests.fuzz.watch import Watch

    target = TARGETS[name]
    watch = Watch(target, Path(keep) / name if keep else None)
    ENGINES[engine](Run(watch, float(seconds), int(inputs)), target.seeds(), Path(folder), mutate)
    watch.close()


if __name__ == "__main__":
    main(sys.argv[1:])
