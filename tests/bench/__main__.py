"""Measure everything, or the modules that are named: `python -m tests.bench [rules ...]`."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from tests import bench


def main(names: list[str]) -> int:
    """Print the table of every module in `names`, all if there are none, as Markdown."""
    there = sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if module.name != "__main__")
    unknown = [name for name in names if name not in there]
    if unknown:
        print(f"bench: there is no {', '.join(unknown)}; there are {', '.join(there)}", file=sys.stderr)
        return 2
    for name in names or there:
        module = importlib.import_module(f"tests.bench.{name}")
        print(f"\n### {name}: {(module.__doc__ or '').splitlines()[0]}\n")
        print("| what | measured | ratio | goal |\n|---|---|---|---|")
        for row in module.run():
            print(f"| {row.what} | {row.value} | {row.ratio} | {row.goal} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
