"""Measure everything, or the modules that are named: `python -m tests.bench [rules ...]`."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from collections.abc import Sequence
from dataclasses import asdict

from tests import bench


def main(words: Sequence[str] | None = None) -> int:
    """Print the table of every module that is named, all if there are none: as Markdown, or a JSON object a row."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="module")
    parser.add_argument("--json", action="store_true", help="a JSON object a row")
    asked = parser.parse_args(words)
    names: list[str] = asked.names
    there = sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if module.name != "__main__")
    unknown = [name for name in names if name not in there]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(there)}")
    for name in names or there:
        module = importlib.import_module(f"tests.bench.{name}")
        if asked.json:
            for row in module.run():
                print(json.dumps({"module": name, **asdict(row)}), flush=True)
            continue
        print(f"\n### {name}: {(module.__doc__ or '').splitlines()[0]}\n")
        print("| what | measured | ratio | goal |\n|---|---|---|---|")
        for row in module.run():
            print(f"| {row.what} | {row.value} | {row.ratio} | {row.goal} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
