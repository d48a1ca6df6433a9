"""The official image on the emulated Pico: flashed from nothing, verified, and the real mpremote at its port."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from boards.virtual.client import Table
from boards.virtual.model import default_tags
from dragoneye.installed import CHUNK
from dragoneye.rules.packs import load
from host_tools import flash_verify, link, provision
from host_tools.board_files import DISARM
from host_tools.flash_build import make
from tests.table.test_flash_cuts import on_image
from tests.unit.conftest import Tablectl
from tests.unit.conftest import tablectl as tablectl  # a fixture
from tests.virtual import be_patient, until

pytestmark = pytest.mark.emulator

pytest.importorskip("rp2040py", reason="emulator: rp2040py is not installed")
from boards.virtual import emulated  # noqa: E402

HELLO_MS = 4000
START_S = 900.0


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch, START_S)


def provisioned(folder: Path) -> Path:
    provision.write(folder, "rpi_pico", load("nj"), default_tags(), 0, **provision.INSTANT)
    (folder / "build.txt").unlink()
    return folder


def test_a_watchdog_that_a_program_has_armed_is_stopped(tmp_path: Path) -> None:
    image = emulated.image_of(tmp_path, {"/main.py": "import machine\nmachine.WDT(timeout=500)\nraise RuntimeError\n"})
    for disarm, boots in (("", 2), (DISARM, 1)):
        with emulated.EmulatedPico(image, seed=7) as pico:
            pico.run_until(lambda: pico.connected)
            # Ctrl-A and Ctrl-D: the raw prompt, which runs what came before the Ctrl-D.
            pico.write(f"\x01{disarm}print(6 * 7)\x04")
            pico.run_until(lambda: b"42" in pico.output)
            pico.run_ms(600)
            assert pico.boots == boots


STEPS = """
import gc, time
from dragoneye.installed import Survey
survey = Survey("0123456789abcdef")
took = []
gc.collect()
while survey.running:
    start = time.ticks_us()
    survey.step()
    took.append(time.ticks_diff(time.ticks_us(), start))
print("took", len(took), max(took), sum(took), len(survey.rows), survey.why)
"""


def test_no_step_of_verifying_holds_the_loop(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """As much as the budget of a task allows, in emulated time."""
    scratch = tmp_path / "compiled"
    scratch.mkdir()
    files: dict[str, str | Path] = {**emulated.files_of(provision.FIRMWARE, scratch)}
    files["/main.py"] = "import time\ntime.sleep_ms(30)\n" + STEPS
    with emulated.EmulatedPico(emulated.image_of(tmp_path, files), seed=7) as pico:
        pico.run_until(lambda: b"None\r\n" in pico.output, 10_000)
        steps, longest, whole, rows = map(int, bytes(pico.output).split(b"took ")[1].split()[:4])
    assert rows == len(files)
    assert steps > rows
    assert longest < 20_000
    record_property(
        "counts",
        f"verifying {rows} files: {steps} steps, {whole / 1000:.0f} ms in all, the longest {longest / 1000} ms",
    )


@pytest.mark.slow
def test_a_bare_board_is_flashed_starts_and_is_verified(
    tablectl: Tablectl, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    (tmp_path / "nothing").mkdir()
    configuration = provisioned(tmp_path / "provision")
    with Table(
        tmp_path / "table", target="emulator", seed=7, firmware=tmp_path / "nothing", provision=configuration
    ) as table:
        until(lambda: Path(table.port).exists(), "the port")
        done = tablectl("flash", "--port", table.port, "--json")
        assert done.code == 0, done
        [row] = done.rows
    build = make()
    assert (row["build"], row["slot"], row["board"]) == (build.name, "a", "rpi_pico")
    image = tmp_path / "table" / "flash.img"
    with emulated.EmulatedPico(image, seed=7) as pico:
        # In emulated time, which repeats exactly.
        start_us = pico.run_until(lambda: b'{"hello"' in pico.output, HELLO_MS)
        transport = emulated.EmulatedTransport(pico)
        host = link.Link(transport)
        assert host.hello(0, 0)["build"] == build.name
        began = pico.us
        survey = flash_verify.ask(host)
        took_ms = (pico.us - began) // 1000
        configured = {path.name: path.read_bytes() for path in configuration.iterdir()}
        assert flash_verify.is_expected(survey, flash_verify.expected(build, survey.root, configured))
        stats = host.request("stats")
        size = sum(len(data) for data in flash_verify.expected(build, "/a/", configured).values())
        record_property(
            "counts",
            f"emulated: hello {start_us / 1e6:.2f} s after power-on, from a slot; {survey.files} files, {size} bytes"
            f" verified in {took_ms} ms by steps of {CHUNK} bytes; tasks {json.dumps(stats['tasks'])}",
        )
        pico.run_ms(600)
    assert on_image(image).words == "a"


@pytest.mark.slow
def test_the_real_mpremote_and_then_the_table_comes_up(tmp_path: Path) -> None:
    def mpremote(*arguments: str) -> str:
        command = [sys.executable, "-m", "mpremote", "connect", table.port, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_S)
        assert done.returncode == 0, done
        return done.stdout

    package = tmp_path / "package"
    package.mkdir()
    (package / "part.py").write_text("def answer():\n    return 6 * 7\n")
    (package / "package.json").write_text(json.dumps({"version": "1", "urls": [["part.py", "part.py"]]}))
    (tmp_path / "show.py").write_text("import part\nprint(part.answer())\n")
    with Table(
        tmp_path / "table", target="emulator", seed=7, provision=provisioned(tmp_path / "provision"), powered=False
    ) as table:
        table.do("service", to="on")
        table.do("power", to="on")
        until(lambda: Path(table.port).exists(), "the port")
        listed = mpremote("ls")
        assert {"boot.py", "main.py", "dragoneye/", "config.json"} <= set(listed.split())
        mpremote("mip", "install", str(package / "package.json"))
        assert mpremote("run", str(tmp_path / "show.py")).strip() == "42"
        mpremote("cp", str(tmp_path / "show.py"), ":note.txt")
        assert "note.txt" in mpremote("ls")
        table.do("service", to="off")
        mpremote("reset")
        # By itself: nobody asks.
        heard = bytearray()
        end = time.monotonic() + START_S
        while b'{"hello"' not in heard:
            assert time.monotonic() < end, bytes(heard[-300:])
            try:
                port = link.SerialTransport(table.port)
            except link.LinkError:
                time.sleep(0.2)
                continue
            try:
                heard += port.read(5.0)
            except link.LinkClosed:
                pass
            finally:
                port.close()
        assert table.state()["motor"] == [0, 0]
