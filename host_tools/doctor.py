"""What stands between this computer and a table: ports, permissions, rules, clock, space, versions, each with a remedy.

Everything about the computer comes from a `Computer`, so that a test can put another in its place.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from serial.tools import list_ports

from boards.virtual.unix_port import NoMicroPython, find_micropython
from dragoneye import protocol
from host_tools import diceset, faults, keys
from host_tools.device import called
from host_tools.flash import VENDOR
from host_tools.i18n import _, controller
from host_tools.link import Link, LinkError, Message, Prompt, SerialTransport
from host_tools.provision import build_hash
from host_tools.store import default_path

OK, WARN, FAIL = "ok", "warn", "fail"
DISTRIBUTION = "dragoneye-table"
RULES = Path(__file__).parent / "udev" / "70-dragoneye.rules"
RULE_FOLDERS = ("etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d")
BOOT_LOADERS = {"0003": "RP2040", "000f": "RP2350"}  # products of that vendor: the ROM's USB drive
# Before this program was written; a clock that stands there was never set.
EARLIEST = datetime(2026, 1, 1, tzinfo=timezone.utc)
FREE_FAIL_MB, FREE_WARN_MB = 50, 500


@dataclass(frozen=True)
class Finding:
    """One thing looked at: `status` is OK, WARN or FAIL, `says` what was found, `remedy` what to do about it."""

    check: str
    status: str
    says: str
    remedy: str = ""


def _groups_of(path: str) -> tuple[str, bool]:
    """The group of a device, and whether this process is in it."""
    try:
        import grp

        number = os.stat(path).st_gid
        return grp.getgrgid(number).gr_name, number in os.getgroups()
    except (ImportError, KeyError, OSError):
        return "dialout", False


@dataclass
class Computer:
    """This computer, as far as it is looked at."""

    root: Path = Path("/")
    platform: str = sys.platform
    python: tuple[int, int] = sys.version_info[:2]
    record: Path = field(default_factory=default_path)
    ports: Callable[[], Iterable[Any]] = list_ports.comports
    now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    free_mb: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free // 1_000_000
    may: Callable[[str, int], bool] = os.access
    group_of: Callable[[str], tuple[str, bool]] = _groups_of
    open_port: Callable[[str], SerialTransport] = SerialTransport
    version_of: Callable[[str], str] = metadata.version
    requires: Callable[[str], list[str] | None] = metadata.requires
    image: Callable[[], Path | None] | None = None


def examine(computer: Computer, port: str | None = None) -> Iterator[Finding]:
    """Everything, in the order in which it would be put right; `port` is looked at, or else every Pico's port."""
    yield from python_and_packages(computer)
    yield from clock(computer)
    yield from record(computer)
    yield from virtual_tables(computer)
    if computer.platform == "linux":
        yield from udev_rule(computer)
    found = sorted(one.device for one in computer.ports() if one.vid == VENDOR)
    yield from board_there(computer, found, port)
    for name in [port] if port is not None else found:
        yield from port_and_table(computer, name)


# --- the computer ------------------------------------------------------------------------------------------------


def _pinned(computer: Computer) -> dict[str, tuple[set[str], bool]]:
    """Package -> (versions that are pinned for some machine, whether every machine needs it)."""
    found: dict[str, tuple[set[str], bool]] = {}
    for line in computer.requires(DISTRIBUTION) or []:
        match = re.fullmatch(r"\s*([A-Za-z0-9._-]+)\s*==\s*([^\s;]+)\s*(?:;\s*(.*))?", line)
        if match and "extra" not in (match[3] or ""):
            versions, always = found.get(match[1], (set(), False))
            found[match[1]] = (versions | {match[2]}, always or not match[3])
    return found


def python_and_packages(computer: Computer) -> Iterator[Finding]:
    """Python's version, and the packages against what is pinned."""
    version = ".".join(str(part) for part in computer.python)
    if (3, 10) <= computer.python < (3, 14):
        yield Finding("python", OK, _("Python {version}").format(version=version))
    else:
        says = _("Python {version}; 3.10 to 3.13 is needed").format(version=version)
        yield Finding("python", FAIL, says, _("make PYTHON=python3.12 setup"))
    try:
        pinned = _pinned(computer)
    except metadata.PackageNotFoundError:
        says = _("this program is not installed as a package; its versions are not known")
        yield Finding("packages", WARN, says, _("run `make setup` in its folder"))
        return
    right = 0
    for name, (versions, always) in pinned.items():
        try:
            there = computer.version_of(name)
        except metadata.PackageNotFoundError:
            if always:
                says = _("{name} is not installed").format(name=name)
                yield Finding("packages", FAIL, says, _("run `make setup` in its folder"))
            continue
        if there in versions:
            right += 1
            continue
        says = _("{name} is {there}, tested was {versions}")
        says = says.format(name=name, there=there, versions=", ".join(sorted(versions)))
        yield Finding("packages", WARN, says, _("run `make setup` in its folder"))
    yield Finding("packages", OK, _("{count} packages are as tested").format(count=right))


def clock(computer: Computer) -> Iterator[Finding]:
    """The computer's clock stamps every record: it must not be unset or have gone back."""
    now = computer.now()
    remedy = _("set the clock, best by the network: timedatectl set-ntp true")
    shown = now.strftime("%Y-%m-%d %H:%M:%S UTC")
    if now < EARLIEST:
        yield Finding("clock", FAIL, _("the clock says {now}; it was never set").format(now=shown), remedy)
        return
    try:
        written = datetime.fromtimestamp(computer.record.stat().st_mtime, timezone.utc)
    except OSError:
        written = now
    if written > now + timedelta(minutes=5):
        says = _("the clock says {now}, but the record was written to at {then}")
        then = written.strftime("%Y-%m-%d %H:%M:%S UTC")
        yield Finding("clock", FAIL, says.format(now=shown, then=then), remedy)
        return
    yield Finding("clock", OK, shown)


def record(computer: Computer) -> Iterator[Finding]:
    """Room for the record, and the right to write it."""
    folder = computer.record.absolute().parent
    while not folder.is_dir():
        folder = folder.parent
    if not computer.may(str(folder), os.W_OK) or (
        computer.record.exists() and not computer.may(str(computer.record), os.W_OK)
    ):
        says = _("{path} may not be written").format(path=computer.record)
        yield Finding("record", FAIL, says, _("give yourself the right, or name another file in $DRAGONEYE_DB"))
        return
    free = computer.free_mb(folder)
    says = _("{free} MB are free for the record in {folder}").format(free=free, folder=folder)
    status = FAIL if free < FREE_FAIL_MB else WARN if free < FREE_WARN_MB else OK
    yield Finding("record", status, says, "" if status == OK else _("make room, or name another file in $DRAGONEYE_DB"))


def _image() -> Path | None:
    from boards.virtual.emulated import find_image

    return find_image()


def virtual_tables(computer: Computer) -> Iterator[Finding]:
    """What the virtual table needs: MicroPython's unix port, and for the emulated Pico an image."""
    try:
        find_micropython()
        yield Finding("virtual", OK, _("the virtual table can run"))
    except NoMicroPython as error:
        remedy = _("only the virtual table needs it: build MicroPython's unix port and name it in $MICROPYTHON")
        yield Finding("virtual", WARN, str(error), remedy)
    if computer.image is None and importlib.util.find_spec("rp2040py") is None:
        yield Finding("image", OK, _("the emulator is not installed; only tests use it"))
        return
    image = (computer.image or _image)()
    if image is not None and image.is_file():
        yield Finding("image", OK, _("the emulated Pico has its image, {path}").format(path=image))
    else:
        says = _("the emulated Pico has no image; its tests are skipped")
        yield Finding("image", WARN, says, _("run `make image`, or name an RPI_PICO .uf2 in $PICO_UF2"))


def udev_rule(computer: Computer) -> Iterator[Finding]:
    """The rule that keeps ModemManager off the table's port (Linux)."""
    manager = any(
        _text(path).strip() == "ModemManager" for path in sorted((computer.root / "proc").glob("[0-9]*/comm"))
    )
    installed = [path for path in (computer.root / folder / RULES.name for folder in RULE_FOLDERS) if path.is_file()]
    remedy = f"sudo cp {RULES} /etc/udev/rules.d/ && sudo udevadm control --reload && sudo udevadm trigger"
    if not installed:
        says = _("the udev rule is not installed")
        if manager:
            says = _("the udev rule is not installed, and ModemManager runs: it types at a table when it is plugged in")
        yield Finding("udev", WARN, says, remedy)
    elif _text(installed[0]) != _text(RULES):
        says = _("{path} is not this program's udev rule").format(path=installed[0])
        yield Finding("udev", WARN, says, remedy)
    else:
        yield Finding("udev", OK, _("the udev rule is installed"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


# --- the board and its port --------------------------------------------------------------------------------------


def board_there(computer: Computer, found: list[str], port: str | None) -> Iterator[Finding]:
    """Whether a Pico is on USB at all, and as what."""
    for place in sorted((computer.root / "sys/bus/usb/devices").glob("*")):
        if _text(place / "idVendor").strip() == f"{VENDOR:04x}":
            chip = BOOT_LOADERS.get(_text(place / "idProduct").strip())
            if chip:
                says = _("a board with the {chip} is in its boot loader, as a USB drive").format(chip=chip)
                remedy = _("copy MicroPython's .uf2 for this board to the drive; it then starts with a serial port")
                yield Finding("board", WARN, says, remedy)
    if found:
        yield Finding("board", OK, _("ports of Raspberry Pi boards: {ports}").format(ports=", ".join(found)))
    elif port is None:
        remedy = _(
            "plug the board in. If nothing appears: the cable may only charge, take one that carries data; another"
            " socket, no hub. Without hardware: tablectl virtual --dir FOLDER"
        )
        yield Finding("board", WARN, _("no Raspberry Pi board has a serial port here"), remedy)


def holders(computer: Computer, port: str) -> list[tuple[int, str]]:
    """(process id, its name) of each other program that has the port open, as far as this user may see (Linux)."""
    wanted = os.path.realpath(port)
    found = []
    for place in sorted((computer.root / "proc").glob("[0-9]*")):
        try:
            links = [os.readlink(link) for link in (place / "fd").iterdir()]
        except OSError:
            continue
        if wanted in links and int(place.name) != os.getpid():
            found.append((int(place.name), _text(place / "comm").strip()))
    return found


def port_and_table(computer: Computer, port: str) -> Iterator[Finding]:
    """May it be opened, who has it, and what answers."""
    if not os.path.exists(port):
        remedy = _("`tablectl ports` lists those that exist; a cable that only charges brings none")
        yield Finding("port", FAIL, _("{port}: there is no such port").format(port=port), remedy)
        return
    if not computer.may(port, os.R_OK | os.W_OK):
        group, member = computer.group_of(port)
        says = _("{port}: you may not open it; it belongs to the group {group}").format(port=port, group=group)
        remedy = f"sudo usermod -aG {group} $USER"
        remedy += _(" and log in anew") if not member else _("; you are in it already: log in anew")
        yield Finding("port", FAIL, says, remedy)
        return
    held = holders(computer, port)
    if held:
        who = ", ".join(f"{name} ({number})" for number, name in held)
        says = _("{port}: another program has it open: {who}").format(port=port, who=who)
        yield Finding("port", FAIL, says, _("end that program; one at a time holds a table's port"))
        return
    try:
        transport = computer.open_port(port)
    except LinkError as error:
        remedy = _("end the program that has it open, also one of another user: sudo lsof {port}").format(port=port)
        yield Finding("port", FAIL, str(error), remedy)
        return
    try:
        yield Finding("port", OK, _("{port} can be opened").format(port=port))
        dtr = transport.dtr()
        if dtr is None:
            yield Finding("dtr", OK, _("{port} has no control lines; it is no USB port").format(port=port))
        elif dtr:
            yield Finding("dtr", OK, _("DTR is set: the board sees that somebody listens"))
        else:
            says = _("DTR is not set: the board takes nobody to be listening, and says nothing")
            yield Finding("dtr", FAIL, says, _("pull the cable and plug it in again; try another socket"))
        yield from table(Link(transport), port)
    finally:
        transport.close()


def table(link: Link, port: str) -> Iterator[Finding]:
    """What answers hello, its versions, and whether it has a fault."""
    try:
        told = link.hello(0, 0)
        state = link.request("status")
    except Prompt as error:
        remedy = _(
            "turn the service key off and press reset; if the prompt comes again, no firmware is there, or none that "
            "starts: tablectl flash --port {port}"
        )
        yield Finding("table", FAIL, str(error), remedy.format(port=port))
        return
    except LinkError as error:
        remedy = _(
            "press the board's reset or plug it in again; if no firmware of this program's version runs there: "
            "tablectl flash --port {port}"
        )
        yield Finding("table", FAIL, str(error), remedy.format(port=port))
        return
    says = _("table {uid}: firmware {fw} ({build}), protocol {major}.{minor}, MicroPython {micropython}, {board}")
    yield Finding("table", OK, says.format(**{**{key: told.get(key) for key in _HELLO}, "uid": called(told)}))
    yield _keys(told, port)
    if told.get("key_id") is not None:
        yield _held(str(told.get("uid")), str(told["key_id"]))
    ours = build_hash()
    if told.get("build") != ours:
        says = _("the table runs build {theirs}, this program's firmware is {ours}")
        remedy = _("nothing need be done if you meant it; else: tablectl flash --port {port}").format(port=port)
        yield Finding("build", WARN, says.format(theirs=told.get("build"), ours=ours), remedy)
    else:
        yield Finding("build", OK, _("the table runs this program's firmware"))
    if state.get("state") == protocol.FAULT:
        code = str(state.get("fault"))
        remedy = _("put its cause right, then a supervisor clears it: tablectl play --port {port}, then clear {code}")
        remedy = remedy.format(port=port, code=code)
        yield Finding("fault", FAIL, faults.in_words(state), remedy)
    for code, detail in sorted(state.get("service", {}).items()):
        yield Finding("service", WARN, f"{code}: {controller(detail)}", faults.remedy(code))
    aged = diceset.told(told.get("dice_set"), diceset.utc_now())
    if aged:
        yield Finding(
            "dice",
            WARN,
            aged,
            _("after the inspection or the change: tablectl dice install FILE --port {port}").format(port=port),
        )


def _keys(told: Message, port: str) -> Finding:
    """Whether the table has keys, and whether anybody but who has its service key can get at them."""
    if told.get("unprovisioned", True):
        says = _("unprovisioned: this table has no keys yet and is not for play")
        return Finding("keys", WARN, says, f"tablectl keys provision --port {port}")
    if told.get("key_id") is None:
        says = _("the table's keys are damaged")
        remedy = _("turn the service key on and press reset; then: tablectl keys rotate --port {port}")
        return Finding("keys", FAIL, says, remedy.format(port=port))
    if not told.get("locked"):
        says = _("the table has the keys {key_id}, and is not locked: whoever has its cable can read them")
        remedy = f"tablectl config set locked true --port {port}"
        return Finding("keys", WARN, says.format(key_id=told["key_id"]), remedy)
    return Finding("keys", OK, _("the table has the keys {key_id}, and is locked").format(key_id=told["key_id"]))


def _held(uid: str, key_id: str) -> Finding:
    """Which of the table's keys this computer has."""
    try:
        held = keys.Keys().held(uid, key_id)
    except keys.KeysError as error:
        return Finding("held", FAIL, str(error), _("or name another file in $DRAGONEYE_KEYS"))
    if not held:
        says = _("this computer holds none of the table's keys {key_id}: it can look on, and ask for nothing")
        return Finding("held", WARN, says.format(key_id=key_id), "tablectl keys import FILE")
    names = ", ".join(keys.in_words(name) for name in held[0].names)
    return Finding("held", OK, _("this computer holds the keys of: {names}").format(names=names))


_HELLO = ("uid", "fw", "build", "major", "minor", "micropython", "board")
