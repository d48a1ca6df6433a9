"""The command line, run in this process."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from host_tools.__main__ import main


class Done(NamedTuple):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    def refusal(self) -> str:
        """The one line that says what was wrong; nothing else was printed, and the exit code is 2."""
        assert self.code == 2
        if self.err:
            assert not self.out
            assert self.err.count("\n") == 1
            return self.err.removeprefix("tablectl: error: ").strip()
        [row] = self.rows
        assert list(row) == ["error"]
        return str(row["error"])


Tablectl = Callable[..., Done]


@pytest.fixture
def tablectl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Tablectl:
    """tablectl("argument"..., stdin=b"") runs the command line; its record is in `tmp_path` unless --db says other."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("DRAGONEYE_DB", str(tmp_path / "rounds.db"))

    def run(*arguments: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "argv", ["tablectl", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run
