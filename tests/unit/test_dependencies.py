"""What an audit of the dependencies means: known to be fine, known not to be, or not known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dependencies import OURS, judge

FINE = {"name": "click", "version": "8.5.1", "vulns": []}
WRONG = {"name": "click", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1", "1.2"]}]}
SKIPPED = {"name": "rich", "skip_reason": "Dependency not found on PyPI and could not be audited: rich (15.0.0)"}
OWN = {"name": OURS, "skip_reason": "distribution marked as editable"}


@pytest.mark.parametrize(
    ("packages", "code", "said"),
    [
        ([FINE, OWN], 0, "1 packages were looked up; no vulnerability of them is known"),
        ([FINE, WRONG, OWN], 1, "click 1.0: PYSEC-1, mended in 1.1, 1.2"),
        # pip-audit ends with 0 here.
        ([FINE, SKIPPED, OWN], 2, "1 of 2 packages could not be looked up"),
        ([WRONG, SKIPPED], 1, "1 of 2 packages could not be looked up"),
        ([OWN], 2, "no packages were found"),
    ],
)
def test_what_was_not_looked_up_is_not_fine(packages: list[Any], code: int, said: str) -> None:
    found, lines = judge(json.dumps({"dependencies": packages, "fixes": []}), "")
    assert found == code
    assert any(said in line for line in lines)


@pytest.mark.parametrize("told", ["", "null", "[]", "{}", "No known vulnerabilities found"])
def test_no_report_is_not_fine(told: str) -> None:
    code, [line] = judge(told, "ERROR: connection refused\n")
    assert code == 2
    assert "connection refused" in line
