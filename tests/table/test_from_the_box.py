"""What a technician does with a bare board, command by command as docs/flashing.md tells, up to a round."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boards.virtual.client import Table
from host_tools import provision
from host_tools.board_data import BOARDS
from tests.unit.conftest import Tablectl
from tests.unit.conftest import tablectl as tablectl  # a fixture
from tests.virtual import be_patient, need_micropython, until

EXAMPLE = str(BOARDS / "examples" / "nj.toml")  # its dice are the virtual table's
PATIENCE_S = 900.0


@pytest.mark.parametrize(
    "kind", ["sim", pytest.param("emulator", marks=[pytest.mark.emulator, pytest.mark.slow], id="emulator")]
)
def test_from_a_bare_board_to_a_round(
    kind: str,
    tablectl: Tablectl,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    need_micropython()
    (tmp_path / "nothing").mkdir()
    if kind == "emulator":
        be_patient(monkeypatch, PATIENCE_S)
        monkeypatch.setattr("tests.virtual.PATIENCE", PATIENCE_S)
    with Table(tmp_path / "table", target=kind, seed=7, firmware=tmp_path / "nothing") as table:
        until(lambda: Path(table.port).exists(), "the port")
        took: list[str] = []

        def rows(*command: str, stdin: bytes = b"") -> list[Any]:
            """What a command prints; it must succeed."""
            began, before = time.monotonic(), table.state()["up_ms"]
            done = tablectl(*command, "--port", table.port, "--json", stdin=stdin)
            assert done.code == 0, done
            # A board on the unix port counts from its last reset.
            emulated = f" ({(table.state()['up_ms'] - before) / 1000:.1f} emulated)" if kind == "emulator" else ""
            took.append(f"{' '.join(command[:2])} {time.monotonic() - began:.0f} s{emulated}")
            return done.rows

        [flashed] = rows("flash", "--board", "rpi_pico")
        assert (flashed["build"], flashed["slot"], flashed["unchanged"]) == (provision.build_hash(), "a", 0)
        [configured] = rows("config", "set", "--file", EXAMPLE)
        # A table that has never had one was in a fault, which a supervisor ends.
        assert [one["clear"] for one in rows("play", stdin=b"clear CONFIG\n") if "clear" in one]
        [verified] = rows("verify", "--file", EXAMPLE)
        assert verified["same"]
        assert verified["runs"] == flashed["build"]
        assert verified["config_hash"] == configured["config_hash"]
        assert {one["is"] for one in verified["files"]} == {"same"}
        [tested] = rows("selftest")
        assert (tested["ok"], tested["same_program"]) == (True, True)
        assert {"reader 1", "motor", "lid", "program"} <= {item["item"] for item in tested["items"]}
        [played] = rows("play", "--rounds", "1")
        assert played["status"] == "settled"
        assert sum(played["dice"]) == played["total"]
        assert tablectl("show", str(played["round"]), "--json").rows == [played]
        assert table.state()["motor"] == [0, 0]
        record_property("counts", f"from a bare board ({kind}): {', '.join(took)}")
