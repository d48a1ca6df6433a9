"""`python -m tests.dependencies`: known vulnerabilities of everything installed here, by pip-audit.

Exit code 0 when every package was looked up and nothing is known, 1 when something is, 2 when some could not be looked
up: pip-audit itself counts those as fine. Further words go to pip-audit, such as `--service osv`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

OURS = "dragoneye-table"


def judge(told: str, errors: str) -> tuple[int, list[str]]:
    """Exit code and lines for what pip-audit printed: its JSON report, or why there is none."""
    try:
        packages: list[dict[str, Any]] = json.loads(told)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = errors.strip().splitlines() or ["it said nothing"]
        return 2, [
            f"pip-audit has reported nothing ({last[-1]}): whether a dependency is vulnerable is not known",
        ]
    lines = []
    vulnerable = unknown = 0
    for package in packages:
        name = package["name"]
        if name == OURS:
            continue
        if "skip_reason" in package:
            unknown += 1
        for one in package.get("vulns", ()):
            vulnerable += 1
            fixed = ", ".join(one.get("fix_versions", ())) or "no release yet"
            lines.append(f"{name} {package['version']}: {one['id']}, mended in {fixed}")
    count = len([package for package in packages if package["name"] != OURS])
    if unknown:
        lines.append(
            f"{unknown} of {count} packages could not be looked up: the advisories were not to be had from here, so "
            "whether these are vulnerable is not known. Run it where PyPI's JSON API (or OSV: --service osv) is reached"
        )
    if vulnerable:
        lines.append(f"{vulnerable} known vulnerabilities in {count} packages")
        return 1, lines
    if unknown or not count:
        return 2, lines or ["no packages were found"]
    return 0, [f"{count} packages were looked up; no vulnerability of them is known"]


def main(words: list[str]) -> int:
    """Run pip-audit over this environment and say what it means."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    code, lines = judge(done.stdout, done.stderr)
    for line in lines:
        print(line, file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
