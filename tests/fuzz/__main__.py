"""`python -m tests.fuzz [TARGET ...]`: made-up input by the million, bounded in time.

Exit code 1 when something broke. With atheris (`pip install -e .[fuzz]`) new input is chosen by the code it reaches;
without it hypothesis makes it. What breaks something is kept in tests/fuzz/corpus, and replayed by `make test`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.fuzz.targets import TARGETS
from tests.fuzz.watch import CORPUS, ROOT

NO_ATHERIS = (
    "fuzz: atheris is not installed (`pip install -e .[fuzz]`; it has wheels for Linux on x86-64 only): hypothesis "
    "makes the input, which is not guided by the code that it reaches"
)
# A target that says nothing for so long is taken for hung: an input may not take a tenth of it.
SILENT_S = 120.0
# And at the start, when everything is imported with a look at every branch, on a machine that may have much else to do.
START_S = 900.0


def fuzz(name: str, engine: str, seconds: float, inputs: int, keep: str, tell: bool) -> dict[str, Any]:
    """Run one target in a process; its counts and findings."""
    last: dict[str, Any] = {"inputs": 0, "taken": 0, "findings": []}
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, open(Path(folder) / "log", "w+") as log:
        words = [name, engine, str(seconds), str(inputs), keep, folder]
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.worker", *words], stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT
        )
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        assert child.stdout

        def read(stream: Any = child.stdout) -> None:
            for line in stream:
                lines.put(line)
            lines.put("")

        threading.Thread(target=read, daemon=True).start()
        began = time.monotonic()
        try:
            while line := lines.get(timeout=SILENT_S if last["inputs"] else START_S):
                last = json.loads(line)
                if tell:
                    words_ = f"{last['inputs']:>9,} inputs, {last['taken']:,} taken, {len(last['findings'])} findings"
                    print(f"\r{name:14} {time.monotonic() - began:5.0f} s  {words_}", end="", file=sys.stderr)
        except queue.Empty:
            child.kill()
            last["findings"].append(["hung", "nothing was heard any more"])
        except KeyboardInterrupt:
            child.terminate()
            raise
        child.wait()
        if tell:
            print(file=sys.stderr)
        if not last.pop("done", False) and not (last["findings"] and last["findings"][-1][0] == "hung"):
            log.seek(0)
            last["findings"].append(["ended", f"exit code {child.returncode}: {log.read()[-2000:]}"])
    return {"target": name, "engine": engine, **last}


def main(words: list[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Made-up input for everything that takes input.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: all of {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together (default 60)")
    parser.add_argument("--inputs", type=int, default=10**9, help="of each target at most")
    parser.add_argument("--engine", choices=("auto", "atheris", "hypothesis"), default="auto")
    parser.add_argument("--keep", default=str(CORPUS), help="folder for what breaks something")
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    asked = parser.parse_args(words)
    for name in asked.targets:
        if name not in TARGETS:
            parser.error(f"there is no target {name}; there are {', '.join(TARGETS)}")
    if not asked.seconds > 0 or asked.inputs < 1:
        parser.error("--seconds and --inputs are more than 0")
    there = importlib.util.find_spec("atheris") is not None
    if asked.engine == "atheris" and not there:
        parser.error(NO_ATHERIS.removeprefix("fuzz: "))
    engine = asked.engine if asked.engine != "auto" else "atheris" if there else "hypothesis"
    if not there and asked.engine == "auto":
        print(NO_ATHERIS, file=sys.stderr)
    names = asked.targets or list(TARGETS)
    done = []
    try:
        for name in names:
            told = not asked.json or sys.stderr.isatty()
            done.append(fuzz(name, engine, asked.seconds / len(names), asked.inputs, asked.keep, told))
    except KeyboardInterrupt:
        print(file=sys.stderr)
    found = sum(len(one["findings"]) for one in done)
    total = sum(one["inputs"] for one in done)
    if asked.json:
        print(json.dumps({"inputs": total, "findings": found, "targets": done}))
    else:
        for one in done:
            for place, words_ in one["findings"]:
                print(f"\n{one['target']}: {place}\n{words_}")
        print(f"{total:,} inputs to {len(done)} targets: {found} findings")
    return 1 if found or len(done) < len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
