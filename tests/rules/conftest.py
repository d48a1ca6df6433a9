"""What the tests of the rules share."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from host_tools import i18n
from host_tools.__main__ import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the language and the territory of who runs the tests."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.fixture
def tablectl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run `tablectl ARGS` in this process, `stdin` as its input; returns (exit code, output, errors)."""

    def run(*args: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["tablectl", *args])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8")), encoding="utf-8"))
        capsys.readouterr()
        code: int | str | None = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return int(code or 0), out, err

    yield run
    i18n.set_language("en")


def rows(out: str) -> list[Any]:
    """The JSON objects of an output, one a line."""
    return [json.loads(line) for line in out.splitlines()]
