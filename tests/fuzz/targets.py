"""What is fed with made-up input, and what must hold whatever it is.

A target's `run(data)` raises when something is wrong and returns whether the input was taken as right. What it may
refuse with is caught here, and nothing else. `make(folder)` gives `run` a folder of its own; what is done outside is an
unasked effect (see tests.fuzz.watch). Every run begins anew, so an input alone shows again what it has shown.
"""

from __future__ import annotations

import asyncio
import copy
import io
import json
import re
import sys
from binascii import crc32
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from starlette.types import Message as AsgiMessage

from boards.virtual.model import default_tags
from dragoneye import config, journal, keys, protocol, round
from dragoneye.errors import BadInput
from dragoneye.protocol import DEALER, SUPERVISOR, TECHNICIAN, TEST
from dragoneye.rules import packs
from dragoneye.text import dumps
from host_tools import configuration, private, table_file
from host_tools.__main__ import cli
from host_tools.board_data import board_data
from host_tools.cli.tables import parse_request
from host_tools.diceset import DiceSet
from host_tools.hil import rig
from host_tools.keys import file_of, import_file, signed
from host_tools.link import Link, LinkClosed, Refused
from host_tools.rules import houseway
from host_tools.store import Store
from host_tools.web import access, app
from host_tools.web.access import Pins, Sessions
from host_tools.web.console import Console
from host_tools.web.hub import Snapshot
from tests.unit.tables import LASTING, Desk, Rig
from tests.unit.test_keys import Keyed
from tests.unit.test_round_walk import check_rounds

ROOT = Path(__file__).parents[2]
Run = Callable[[bytes], bool]


class Target(NamedTuple):
    """One place where input from outside comes in. `seeds()` are inputs that it takes."""

    what: str
    make: Callable[[Path], Run]
    seeds: Callable[[], list[bytes]]


def framed(body: bytes) -> bytes:
    """A line with a right CRC, whatever stands in it."""
    return body + b" %08x" % (crc32(body) & 0xFFFFFFFF)


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _emptied(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


# -- the wire ------------------------------------------------------------------------------------------------------

REASON = {"reason": "a reason"}
REQUESTS: list[dict[str, Any]] = [
    {"q": "hello", "major": 1, "minor": 2, "last_event": 3, "last_round": 1, "last_over": 1},
    {"q": "hello", "major": 1, "minor": 2, "streak": {"count": 2, "parts": [[1, 100]], "gone": [3]}},
    {"q": "status"},
    {"q": "stats"},
    {"q": "open", "shaker": 0, "note": "a note"},
    {"q": "shaker", "shaker": 3},
    {"q": "bets", "position": 1, "wagers": {"match": 500, "bonus": 100, "even": 0}},
    {"q": "leave", "position": 1},
    {"q": "close"},
    {"q": "shake", "jolts": 3},
    {"q": "unlock"},
    {"q": "finish"},
    {"q": "void", **REASON},
    {"q": "resume"},
    {"q": "manual", "dice": [3, 3, 4], **REASON},
    {"q": "confirm", "token": 1, "dice": [3, 3, 4]},
    {"q": "clear", "code": "READER"},
    {"q": "changed", "unit": "dice", "keep": True},
    {"q": "end"},
    {"q": "test", "on": True},
    {"q": "selftest", "start": True},
    {"q": "sensors", "step": 0},
    {
        "q": "dice",
        "serial": "A-1",
        "issued": "2026-01-31T18:00:00Z",
        "eye": 1,
        "tags": " ".join(uid for faces in default_tags() for uid in faces),
    },
    {"q": "verify", "seed": "abc", "first": 0},
    {"q": "maintenance"},
]


def make_frame(folder: Path) -> Run:
    """The frame and the fields: a line is noise or is read, and then written as it was, in printable ASCII."""

    def run(data: bytes) -> bool:
        line = data[1:] if data[:1] == b"!" else framed(data)
        try:
            seq, value = protocol.decode(line)
        except protocol.Noise:
            return False
        again = protocol.encode(seq, value)
        assert again.endswith(b"\n")
        assert all(0x20 <= byte <= 0x7E for byte in again[:-1])
        if len(again) <= protocol.LINE_MAX:
            number, same = protocol.decode(again)
            assert (number, dumps(same)) == (seq, dumps(value))
        try:
            name, fields = protocol.check_request(value)
        except protocol.Problem as problem:
            assert problem.code
            assert len(problem.why) < 1000
            return False
        assert set(fields) == {field[0] for field in protocol.REQUESTS[name][2]}
        return True

    return run


def frame_seeds() -> list[bytes]:
    return [b"7 " + compact(one) for one in REQUESTS] + [b"!" + framed(b'1 {"ack":3}'), b"!3 {}", b"!\x03>>>"]


class Rogue:
    """A transport on which `data` arrives, at once or in pieces; the clock goes on with every look."""

    def __init__(self, data: bytes) -> None:
        self.left = data
        self.sent = b""
        self._now = 0.0

    def read(self, timeout: float) -> bytes:
        self._now += max(timeout, 0.05)
        if not self.left:
            raise LinkClosed("the end")
        # An odd count, so that lines are cut anywhere.
        piece, self.left = self.left[:97], self.left[97:]
        return piece

    def write(self, data: bytes) -> None:
        self.sent += data

    def now(self) -> float:
        return self._now

    def close(self) -> None:
        pass


def make_link(folder: Path) -> Run:
    """What a table sends, right or wrong, to the host's link and its record: refused in words, or stored as it is.

    Lines without a CRC get one, and an event without a hash the one that follows. `!` lines stay as they are.
    """
    store = Store(folder / "rogue.db")
    # Each run is a table of its own: an own database for each would take longer than all else.
    number = 0

    def run(data: bytes) -> bool:
        nonlocal number
        number += 1
        uid, head, took = f"U{number}", journal.GENESIS, 0
        lines = []
        for line in data.split(b"\n"):
            if line[:1] == b"!":
                lines.append(line[1:])
                continue
            body = line
            try:
                value = json.loads(line)
                if isinstance(value, dict) and isinstance(value.get("ev"), dict) and "h" not in value:
                    head = journal.chain(head, dumps(value["ev"]))
                    body = dumps({**value, "h": head}).encode()
            except (ValueError, RecursionError):
                pass
            lines.append(framed(b"5 " + body))

        def on_event(record: dict[str, Any], link: str, tag: str) -> bool:
            nonlocal took
            taken = store.take(uid, record, link, 1, tag)
            took += taken
            return taken

        link = Link(Rogue(b"\n".join(lines) + b"\n"), on_event)
        while True:
            try:
                link.poll(0.0)
            except LinkClosed:
                break
            except BadInput as error:
                assert str(error)
            assert len(link._buffer) <= protocol.LINE_MAX
        stored = store.events(uid)
        assert [event["id"] for event in stored] == list(range(1, len(stored) + 1)) or not took
        # Whatever was stored can be told.
        for one in store.rounds(uid):
            json.dumps(one, ensure_ascii=False).encode()
        return took > 0

    return run


def _played(pack: str) -> list[dict[str, Any]]:
    """The records of a round, a void one and a fault."""
    rig = Rig(pack)
    rig.play([3, 3, 3], {1: {"match": 500, "bonus": 100}} if rig.pack["wagers"] else None)
    rig.reach("VOID")
    rig.ask("void", **REASON)
    rig.tell("set_fault", "READER", "no answer")
    rig.ask("clear", code="READER")
    return rig.records


def link_seeds() -> list[bytes]:
    lines = [compact({"ev": record}) for record in _played("nj")]
    state = compact({"st": Rig().view()})
    hello = compact({"re": 1, "ok": {"major": 1, "minor": 2, "uid": "U", "known": [1, "x"], "first_event": 1}})
    return [b"\n".join(lines), b"\n".join(lines[:4]), state, hello, b"!\x00\xff" * 40, b'{"re":6,"err":"E_ARGS"}']


# -- the table -----------------------------------------------------------------------------------------------------


def make_requests(folder: Path) -> Run:
    """Lines to a controller in any state: each request is answered once, and one that is refused changes nothing.

    The first byte chooses state and pack. A line that begins with ! comes as it is, others get number and CRC.
    """

    def run(data: bytes) -> bool:
        _emptied(folder)
        choice = data[0] if data else 0
        desk = Desk(folder, ("nj", "ca", "pr", "house")[choice // 16 % 4])
        desk.hello()
        desk.reach(LASTING[choice % 16 % len(LASTING)])
        desk.fetch()
        done = 0
        for line in data[1:].split(b"\n"):
            desk.drain()
            before = (desk.journal.last_id, desk.view())
            if line[:1] == b"!":
                desk.controller.receive(line[1:], desk.now)
                answers = [value for value in desk.drain() if "re" in value]
                assert len(answers) <= 1
                continue
            desk.seq += 1
            sent = framed(b"%d " % desk.seq + line)
            desk.controller.receive(sent, desk.now)
            answers = [value for value in desk.drain() if value.get("re") == desk.seq]
            assert len(answers) <= 1
            if not answers:
                # Noise, or an acknowledgement.
                assert (desk.journal.last_id, desk.view()) == before
                continue
            after = (desk.journal.last_id, desk.view())
            if "err" in answers[0]:
                assert after == before, "a refused request changed something"
                if answers[0]["err"] == "E_HELLO":
                    desk.hello(desk.journal.last_id)
                continue
            done += 1
            desk.controller.receive(sent, desk.now)
            again = [value for value in desk.drain() if value.get("re") == desk.seq]
            assert again in (answers, []) or b"hello" in line
            assert desk.journal.last_id == after[0] or b"hello" in line, "a repeated request was done again"
        desk.fetch()
        # To the end of what is under way, as after a power cut.
        desk.boot()
        desk.hello(desk.known)
        while desk.state == "FAULT":
            desk.ask("clear", code=desk.view()["fault"])
        if desk.state == "LOCKED":
            desk.open_lid()
        desk.fetch()
        # A host that claims more history than there is makes the table go on after it.
        if b"hello" not in data:
            check_rounds(desk.events)
        return done > 0

    return run


def request_seeds() -> list[bytes]:
    lines = [compact(one) for one in REQUESTS]
    singles = [bytes([state]) + line for line in lines for state in range(len(LASTING))]
    pairs = [bytes([16 * pack]) + b"\n".join(lines[4:12]) for pack in range(4)]
    return [*singles, *pairs, b"\x00!\x03\n!" + framed(b'9 {"q":"status"}'), b'\x00{"ack":3}']


def make_signed(folder: Path) -> Run:
    """The same at a table with keys: only what a key that is good for it has signed is done, and that once.

    A line that begins with d, s or t is signed by the dealer, supervisor or technician as they would; others come as
    they are.
    """
    signers = {b"d": DEALER, b"s": SUPERVISOR, b"t": TECHNICIAN}

    def run(data: bytes) -> bool:
        _emptied(folder)
        desk = Keyed(folder)
        desk.role = SUPERVISOR
        desk.hello()
        states = [state for state in LASTING if state != TEST]
        desk.reach(states[(data[0] if data else 0) % len(states)])
        desk.fetch()
        done = 0
        for line in data[1:].split(b"\n"):
            desk.drain()
            before = (desk.journal.last_id, desk.view(), desk._gate.counter)
            desk.seq += 1
            role = signers.get(line[:1])
            body = b"%d " % desk.seq + (line[1:] if role else line)
            if role:
                desk.counter = max(desk.counter, desk._gate.counter) + 1
                key = desk._gate.keys[role]
                body = signed(body, role, desk.counter, key, desk.uid, desk._gate.nonce)
            desk.controller.receive(framed(body), desk.now)
            answers = [value for value in desk.drain() if value.get("re") == desk.seq]
            if not answers or "err" in answers[0]:
                after = (desk.journal.last_id, desk.view(), desk._gate.counter)
                assert after[:2] == before[:2], "what was refused changed something"
                if answers and answers[0]["err"] == "E_HELLO":
                    desk.hello(desk.journal.last_id)
                continue
            name = json.loads(body.partition(b" ")[2])["q"]
            needs = keys.GOOD_FOR.get(protocol.REQUESTS[name][0])
            assert needs is None or role in needs, "done without a key that is good for it"
            done += needs is not None
            recorded = desk.journal.last_id
            # The same signature under another number, as who has heard it can try.
            desk.seq += 1
            again = framed(b"%d " % desk.seq + body.partition(b" ")[2])
            desk.controller.receive(again, desk.now)
            assert needs is None or desk.journal.last_id == recorded, "done again"
        return done > 0

    return run


def signed_seeds() -> list[bytes]:
    found = [b"\x00s" + compact(one) for one in REQUESTS] + [b"\x00" + compact(one) for one in REQUESTS]
    played = [compact(one) for one in REQUESTS[4:12]]
    found += [bytes([state]) + role + line for state in range(9) for role in (b"d", b"t") for line in played]
    claims = [b"dealer:5:" + b"0" * 32, b"\\ud800:1:x", b"dealer:1:1", b"journal:1:0", b"\xc2\xb2:\xc2\xb2:1"]
    forged = [b'{"q":"open","shaker":1,"a":"' + claim + b'"}' for claim in claims]
    return [*found, *(b"\x00" + line for line in forged), *(b"\x00d" + line for line in forged)]


def make_journal(folder: Path) -> Run:
    """A journal's newest segment, forged: damage is told and put aside, or the records are taken and go on.

    A line that begins with ! comes as it is; the others get the hash that follows, as who reads the code can make it.
    The state in a head whose hash is right is believed, so here it differs from a new table's in its numbers only.
    """

    def believed(line: bytes) -> bool:
        try:
            state = json.loads(line)["state"]
            return all(
                type(state[key]) is type(value) and (isinstance(value, (int, str)) or state[key] == value)
                for key, value in round.initial().items()
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            return True

    def run(data: bytes) -> bool:
        _emptied(folder)
        if not believed(data.split(b"\n")[0]):
            return False
        lines, head = [], journal.GENESIS
        for number, line in enumerate(data.split(b"\n")):
            if line[:1] == b"!":
                lines.append(line[1:])
                continue
            if number == 0:
                with suppress(ValueError, KeyError, TypeError, RecursionError):
                    head = str(json.loads(line)["prev"]).encode("utf-8", "replace").decode()
            text = line.decode("utf-8", "replace")
            link = journal.chain(head, text.encode("utf-8", "replace").decode())
            lines.append(text.encode() + b" " + link.encode())
            head = head if number == 0 else link
        (folder / "j000000001.log").write_bytes(b"\n".join(lines) + b"\n")
        kept = journal.Journal(str(folder), round.fold, round.initial, None, round.SUPERSEDED)
        try:
            kept.load()
            whole = True
        except journal.Damaged as damage:
            assert str(damage)
            kept.restart(kept.last_id)
            whole = False
        for number in range(max(1, kept.first_id - 1), min(kept.last_id, 80) + 2):
            try:
                kept.line(number)
            except journal.Damaged:
                whole = False
        record = kept.append("stopped", {"why": "test"}, 1, 0)
        again = journal.Journal(str(folder), round.fold, round.initial, None, round.SUPERSEDED)
        try:
            again.load()
        except journal.Damaged as damage:
            raise AssertionError(f"what was put aside came back: {damage}") from None
        assert (again.last_id, again.head) == (record["id"], kept.head)
        return whole and kept.last_id > 1

    return run


def journal_seeds() -> list[bytes]:
    found = []
    for pack in ("nj", "ca"):
        records = _played(pack)
        head = {"first": 1, "prev": journal.GENESIS, "acked": 0, "state": round.initial()}
        found.append(b"\n".join(compact(one) for one in [head, *records]))
    return found


def _device_files() -> dict[str, bytes]:
    data = table_file.parse((ROOT / "boards/examples/nj.toml").read_text(encoding="utf-8"), "nj").unwrap()
    return configuration.device_files(*configuration.check(data, "nj"))


def make_device_config(folder: Path) -> Run:
    """The files on the table's flash: each is read or refused in words; what is read is a whole table's."""
    board, conf, dice = (folder / name for name in ("board.json", "config.json", "dice.json"))

    def run(data: bytes) -> bool:
        kind, rest = data[:1], data[1:]
        path = {b"b": board, b"d": dice}.get(kind, conf)
        path.write_bytes(rest)
        if path is board:
            found, words = config.read_board(str(board))
            assert set(board_data("rpi_pico")) <= set(found)
            assert words is None or words
            return words is None
        try:
            if kind == b"k":
                return keys.read_keys(str(conf)) is not None
            if path is dice:
                return config.read_dice("over", str(dice)) is not None
            _data, pack, registry, _hash = config.read_config(str(conf), str(folder / "none"))
        except ValueError as error:
            assert str(error)
            return False
        assert len(registry) == 18
        assert all(key in pack.values for key in packs.KEYS)
        round.Table(pack, registry, 0, _data.get("settings", {}), round.initial(), lambda kind, data: 1, 0)
        return True

    return run


def device_config_seeds() -> list[bytes]:
    files = _device_files()
    conf = json.loads(files["config.json"])
    del conf["board_hash"]
    dice = {"format": 1, "dice": default_tags(), "eye": 0, "serial": "A", "issued": "", "over": "over"}
    raw = {name: bytes([place]) * keys.KEY_BYTES for place, name in enumerate(keys.NAMES)}
    return [b"k" + file_of(raw), b"b" + files["board.json"], b"c" + compact(conf), b"d" + compact(dice)]


# -- files on the host ---------------------------------------------------------------------------------------------


def make_document(folder: Path) -> Run:
    """A device's files as the host reads them back."""

    def run(data: bytes) -> bool:
        first, _line, second = data.partition(b"\n")
        try:
            found, held = configuration.document_of({"board.json": first, "config.json": second}, "here")
            configuration.check(found, "here", held=held)
        except BadInput as error:
            assert str(error)
            return False
        return True

    return run


def document_seeds() -> list[bytes]:
    files = _device_files()
    return [files["board.json"].replace(b"\n", b" ") + b"\n" + files["config.json"].replace(b"\n", b" ")]


def make_table_file(folder: Path) -> Run:
    """A table's TOML file: what the host takes the device takes as well, with the same pack and dice."""

    def run(data: bytes) -> bool:
        path = folder / "table.toml"
        path.write_bytes(data)
        try:
            text = table_file.read(path)
            document = table_file.parse(text, "here").unwrap()
            problems = configuration.problems_of(document, folder)
            assert all(problem.why for problem in problems)
            model, pack = configuration.check(document, "here", folder)
        except BadInput as error:
            assert str(error)
            return False
        for name, content in configuration.device_files(model, pack).items():
            (folder / name).write_bytes(content)
        _board, words = config.read_board(str(folder / "board.json"))
        assert words is None, words
        if model.dice is not None:
            read, same, _registry, _hash = config.read_config(str(folder / "config.json"), str(folder / "board.json"))
            assert same.values == pack.values
            assert read["eye"] == model.dice.eye - 1
        if len(data) <= 1000:
            # To write an entry takes a few passes over the file.
            changed = table_file.parse(table_file.put(text, ["settings", "jolts"], 4, "here"), "here").unwrap()
            assert changed == {**document, "settings": {**document.get("settings", {}), "jolts": 4}}
        return True

    return run


def table_file_seeds() -> list[bytes]:
    whole = (ROOT / "boards/examples/nj.toml").read_bytes()
    short = b'format = 1\nname = "T"\nboard = "rpi_pico"\n[rules]\npack = "nj"\n'
    return [whole, short, short + b"[settings]\njolts = 3\n[profile]\nduty_percent = 70\n"]


def make_rig(folder: Path) -> Run:
    """A bench's rig file; none of its commands is run by reading it."""

    def run(data: bytes) -> bool:
        path = folder / "rig.toml"
        path.write_bytes(data)
        try:
            found = rig.load(path)
        except BadInput as error:
            assert str(error)
            return False
        assert found.name
        assert found.lacks("lid", False) is None or found.lacks("lid", False)
        return True

    return run


def rig_seeds() -> list[bytes]:
    return [(ROOT / "tests/table/rig.example.toml").read_bytes(), b"format = 1\n[lid]\nopen = 'x {port}'\nshut = 'y'\n"]


def make_json_file(folder: Path) -> Run:
    """JSON files of a person: a rule pack, a house way, a dice set, keys, the file of PINs. The first byte chooses."""

    def run(data: bytes) -> bool:
        path = folder / "one.json"
        path.write_bytes(data[1:])
        readers: dict[bytes, Callable[[], Any]] = {
            b"p": lambda: packs.load(str(path)),
            b"h": lambda: houseway.load(str(path)),
            b"d": lambda: DiceSet.load(path),
            b"k": lambda: import_file(path),
        }
        try:
            readers.get(data[:1], lambda: Pins(path).roles)()
        except BadInput as error:
            assert str(error)
            return False
        return True

    return run


def json_file_seeds() -> list[bytes]:
    pack = compact(packs.load("nj").as_dict())
    ways = [b"h" + path.read_bytes() for path in sorted((ROOT / "host_tools/rules").rglob("*foxwoods*.json"))]
    dice = {"format": 1, "serial": "A", "name": "A", "issued": "2026-01-31T18:00:00Z", "eye": 1, "dice": default_tags()}
    salted = {"salt": "00" * 16, "hash": "11" * 32}
    pins = {"secret": "ab" * 32, "roles": {"dealer": salted, "supervisor": salted}}
    based = b'p{"name":"x","base":"nj","values":{"positions":[7,"house"]}}'
    told = {"format": 1, "uid": "E660", "key_id": "0011aabb", "keys": {"dealer": "ab" * 32, "journal": "cd" * 32}}
    return [b"k" + compact(told), b"p" + pack, based, *ways, b"d" + compact(dice), b"s" + compact(pins)]


# -- typed ---------------------------------------------------------------------------------------------------------

TILES = {"player": {"high": ["66", "66"], "low": ["56", "13"]}, "bank": {"high": ["11", "36"], "low": ["46", "22"]}}
# A good case of every batch command.
CASES: list[tuple[tuple[str, ...], Any]] = [
    (("tiles", "rank"), ["6-6", "4-5"]),
    (("tiles", "compare"), {"first": ["6-6", "4-5"], "second": ["1-1", "1-1"]}),
    (("tiles", "set"), ["6-6", "6-6", "4-5", "4-4"]),
    (("tiles", "explain"), ["teen", "66", "4-5", "4-4"]),
    (("tiles", "settle"), {**TILES, "stake": 100}),
    (
        ("tiles", "table"),
        {
            "bank": TILES["bank"],
            "players": [{"position": 2, "hands": TILES["player"], "stake": 100}],
            "banks": [50, 10],
            "player_banks": True,
        },
    ),
    (("seats",), {"total": 9, "positions": 8, "count_direction": "clockwise", "bets": [2], "dead": 3, "bank_seat": 4}),
    (("bank", "decides"), {"front": 100, "action": 250}),
    (("bank", "covers"), {"banks": [60, 30], "bets": [[2, 50], [3, 50]]}),
    (("bank", "next"), {"last": 3, "accepts": [5], "played": [2, 3], "again": True, "positions": 7}),
    (("cards", "rank"), ["AS", "10h", "T♥", "2c", "3d"]),
    (("cards", "compare"), {"first": ["AS"] * 5, "second": ["KS"] * 5}),
    (("cards", "order"), [["AS"] * 5, ["KS"] * 5]),
    (("wagers", "settle"), {"dice": [3, 3, 4], "eye": 1, "position": 3, "wager": "match", "stake": 500, "streak": 1}),
    (("odds", "wagers"), {"options": {"after_third": "restart"}}),
    (("odds", "seats"), {"pack": "ca", "options": {"positions": 7}}),
]


def make_batch(folder: Path) -> Run:
    """Batches of the commands: each line has an answer in its place; a wrong one says why. The first byte chooses."""

    # click keeps every stream that it has printed to.
    out, err = io.StringIO(), io.StringIO()

    def run(data: bytes) -> bool:
        for stream in (out, err):
            stream.seek(0)
            stream.truncate()
        command, _case = CASES[data[0] % len(CASES) if data else 0]
        stdin = sys.stdin
        sys.stdin = io.TextIOWrapper(io.BytesIO(data[1:]), encoding="utf-8")
        code: Any = 0
        try:
            with redirect_stdout(out), redirect_stderr(err):
                cli.main([*command, "--batch", "-"], prog_name="tablectl", standalone_mode=False)
        except SystemExit as stop:
            code = stop.code
        finally:
            sys.stdin = stdin
        answers = [json.loads(line) for line in out.getvalue().splitlines()]
        wrong = [answer for answer in answers if "error" in answer]
        assert err.getvalue() == ""
        assert len(answers) == len(io.BytesIO(data[1:]).readlines())
        assert (code or 0) == (2 if wrong else 0)
        assert all(answer["error"] for answer in wrong)
        return len(wrong) < len(answers)

    return run


def batch_seeds() -> list[bytes]:
    return [bytes([place]) + json.dumps(case).encode() for place, (_command, case) in enumerate(CASES)]


def make_words(folder: Path) -> Run:
    """A request as a dealer types it, and a value and a key of a table's file as a technician does."""

    def run(data: bytes) -> bool:
        text = text_of(data[1:])
        try:
            if data[:1] == b"k":
                name, _space, value = text.partition(" ")
                keys = configuration.keys_of(name)
                table_file.value_of(value, keys)
                return True
            name, fields = parse_request(text or "?")
            try:
                protocol.check_request({"q": name, **fields})
            except protocol.Problem:
                return False
        except BadInput as error:
            assert str(error)
            return False
        return True

    return run


def words_seeds() -> list[bytes]:
    typed = ["bets 3 match 500 bonus 100", "manual 3 3 4 reader down", "open 3 note=hello", "test on", "clear READER"]
    typed += ["close", "changed dice keep=yes", "shake 3", "confirm 1 3 3 4", "sensors step=2", "open shaker=2"]
    keys = ["settings.settle_ms 500", "dice.die1.0 04AA", "name Table 7", "rules.options.x none", "a [1, 2]"]
    return [*(b"w" + one.encode() for one in typed), *(b"k" + one.encode() for one in keys)]


# -- the web -------------------------------------------------------------------------------------------------------

_SECRET = "a PIN that nobody guesses"
_ROUTES = (
    "/dealer/do",
    "/dealer/login",
    "/dealer/logout",
    "/dealer",
    "/dealer/session",
    "/",
    "/events",
    "/static/x.js",
)
_STATUSES = {200, 303, 400, 401, 403, 404, 405, 409, 413, 415, 421, 429, 503, 504}
HEADERS = ("content-security-policy", "x-content-type-options", "x-frame-options", "referrer-policy", "cache-control")


class Board:
    """In the place of a hub: a table in memory that answers at once; `begun` is what it was at the start."""

    _KNOWN: ClassVar[dict[str, Rig]] = {}

    def __init__(self, state: str, store: Store) -> None:
        if state not in self._KNOWN:
            known = self._KNOWN[state] = Rig("nj")
            known.play([2, 5, 2], {2: {"match": 500}})
            known.reach(state)
        first = self._KNOWN[state]
        # Pack and registry are never written to.
        self.rig = copy.deepcopy(first, {id(one): one for one in (first.pack, first.table.registry)})
        self.begun = self.rig.snapshot()
        self.store = store
        self.tell = lambda snapshot: None
        result = self.rig.last("settled")
        rounds = ({"round": result["round"], "status": "settled", "result": {**result, "total": 9, "manual": None}},)
        self.snapshot = Snapshot(True, "", "", {"uid": "U1", "pack": "nj"}, self.rig.view(), self.rig.pack, rounds)

    def request(self, name: str, as_role: str | None = None, **fields: Any) -> Any:
        """As a device does; this table has no keys, and so nothing is signed."""
        try:
            return self.rig.ask(name, **fields)
        except protocol.Problem as problem:
            raise Refused(name, problem.code, problem.why, self.rig.state) from None

    def refresh(self) -> None:
        pass

    def ask(self, do: Callable[[Any], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(do(self))
        except Exception as error:
            future.set_exception(error)
        return future

    def look_again(self) -> None:
        pass


def make_web(folder: Path) -> Run:
    """One HTTP request: no answer is a failure of the server, and only a session's own page changes anything.

    Three bytes choose the route, who asks, and the table's state; the rest is the body.
    """
    loop = asyncio.new_event_loop()
    cost, access._N = access._N, 2
    pins = Pins(folder / "pins.json")
    for role in access.ROLES:
        pins.set(role, f"{_SECRET} {role}")
    access._N = cost
    store = Store(folder / "web.db")

    async def called(web: app.Web, scope: dict[str, Any], body: bytes) -> list[AsgiMessage]:
        answers: list[AsgiMessage] = []
        asked = [{"type": "http.request", "body": body[:9000], "more_body": len(body) > 9000}]
        if len(body) > 9000:
            asked.append({"type": "http.request", "body": body[9000:], "more_body": False})

        async def receive() -> AsgiMessage:
            return asked.pop(0) if asked else {"type": "http.disconnect"}

        async def send(message: AsgiMessage) -> None:
            answers.append(message)

        await web.app(scope, receive, send)
        return answers

    def run(data: bytes) -> bool:
        route, who, state = (data[:3] + bytes(3))[:3]
        body = data[3:]
        board = Board(LASTING[state % len(LASTING)], store)
        cost, access._N = access._N, 2
        try:
            web = app.Web(board, pins, Console(board), lambda *_: "")  # type: ignore[arg-type]
            role = (None, *access.ROLES)[who % 4]
            right = not who & 4
            path = _ROUTES[route % len(_ROUTES)]
            headers = [(b"host", b"localhost" if who < 240 else body[:40])]
            headers.append((b"content-type", b"application/json" if not who & 8 else b"text/plain"))
            if who & 16:
                headers.append((b"origin", b"http://localhost" if not who & 32 else b"https://elsewhere.example"))
            if role:
                cookie = web._sessions.begin(role)
                session = web._sessions.find(cookie)
                assert session
                headers.append((b"cookie", b"dragoneye=" + cookie.encode()))
                headers.append((b"x-csrf", session.csrf.encode() if right else body[:64]))
            else:
                headers.append((b"cookie", b"dragoneye=" + body[:200]))
                headers.append((b"accept-language", body[:64]))
            scope = {
                "type": "http",
                "asgi": {"version": "3.0"},
                "http_version": "1.1",
                "method": "POST" if route % len(_ROUTES) < 3 else "GET",
                "scheme": "http",
                "path": path,
                "raw_path": path.encode(),
                "query_string": b"lang=es" if who & 64 else body[:30],
                "root_path": "",
                "headers": headers,
                "client": ("127.0.0.1", 1),
                "server": ("127.0.0.1", 80),
                "state": {},
            }
            answers = loop.run_until_complete(called(web, scope, body))
        finally:
            access._N = cost
        start = answers[0]
        status = start["status"]
        told = {name.decode(): value.decode() for name, value in start["headers"]}
        assert status in _STATUSES, status
        assert all(name in told for name in HEADERS)
        content = b"".join(message.get("body", b"") for message in answers[1:])
        if told.get("content-type", "").startswith("application/json"):
            json.loads(content)
        if told.get("content-type", "").startswith("text/html"):
            assert len(re.findall(rb"<script", content)) <= 2
        trusted = role is not None and right and not who & 8 and not (who & 16 and who & 32) and who < 240
        if status != 200 or path != "/dealer/do" or not trusted:
            assert board.rig.snapshot() == board.begun, "changed by what was refused"
        if "set-cookie" in told and role is None:
            raise AssertionError("a session without a PIN")
        return status == 200 and path == "/dealer/do"

    return run


def web_seeds() -> list[bytes]:
    found = []
    for one in REQUESTS:
        fields = {key: value for key, value in one.items() if key != "q"}
        body = {"key": "key-00000001", "do": one["q"], "step": "", "fields": fields}
        for place, state in enumerate(LASTING):
            rig = Rig("nj")
            rig.play([2, 5, 2], {2: {"match": 500}})
            rig.reach(state)
            names = ("round", "state", "shakes", "voids", "bets_open", "lid_open", "fault")
            body["step"] = ".".join(str(rig.view().get(name, "")) for name in names)
            found.append(bytes([0, 2, place]) + compact(body))
    hands = {"bank": {"high": ["66", "45"], "low": ["11", "33"]}, "players": [], "round": 1, "keep": True}
    hands["players"] = [{"position": 2, "stake": 5000, "hands": {"high": ["55", "36"], "low": ["22", "15"]}}]
    found.append(bytes([0, 1, 7]) + compact({"key": "key-00000002", "do": "tiles", "step": "", "fields": hands}))
    found.append(bytes([1, 0, 0]) + compact({"role": "dealer", "pin": "1234"}))
    found += [
        bytes([route, who, 0]) + b"{}" for route in range(len(_ROUTES)) for who in (0, 1, 2, 3, 5, 9, 49, 64, 240)
    ]
    return found


def make_cookie(folder: Path) -> Run:
    """A cookie: none but the one that the server made is a session."""
    secret = folder / "pins.json"
    salted = {"salt": "00" * 16, "hash": "11" * 32}
    private.write(secret, json.dumps({"secret": "ab" * 32, "roles": {"dealer": salted, "supervisor": salted}}))
    pins = Pins(secret)
    # Of another server's secret: never ours.
    others = folder / "other.json"
    private.write(others, json.dumps({"secret": "cd" * 32, "roles": {"dealer": salted, "supervisor": salted}}))
    other = Sessions(Pins(others), lambda: 1000.0)

    def run(data: bytes) -> bool:
        sessions = Sessions(pins, lambda: 1000.0)
        good = sessions.begin("dealer")
        text = data.decode("latin-1")
        for cookie in (text, other.begin("supervisor"), good[: len(text) % len(good)], good.replace("dealer", text)):
            found = sessions.find(cookie)
            assert found is None or cookie == good
        forged = good.split(".")
        for place in range(len(forged)):
            parts = [*forged[:place], text, *forged[place + 1 :]]
            assert sessions.find(".".join(parts)) is None or parts == forged
        found = sessions.find(good)
        assert found is not None
        return found.role == "dealer"

    return run


def cookie_seeds() -> list[bytes]:
    return [b"supervisor", b"dealer.x.1000.1000.00", b"2000", b"\xb2", b"1000.0", b"....", b"dealer"]


TARGETS: dict[str, Target] = {
    "frame": Target("the frame and every message's fields", make_frame, frame_seeds),
    "link": Target("what a table sends, into the record", make_link, link_seeds),
    "requests": Target("requests to a table in any state", make_requests, request_seeds),
    "signed": Target("requests to a table with keys", make_signed, signed_seeds),
    "journal": Target("the journal's reader", make_journal, journal_seeds),
    "device_config": Target("the files on the table's flash", make_device_config, device_config_seeds),
    "document": Target("a table's files, read back by the host", make_document, document_seeds),
    "table_file": Target("a table's TOML file", make_table_file, table_file_seeds),
    "rig": Target("a bench's rig file", make_rig, rig_seeds),
    "json_file": Target("rule packs, house ways, dice sets, PINs, keys", make_json_file, json_file_seeds),
    "batch": Target("batches of tiles, cards, seats, banks, wagers, odds", make_batch, batch_seeds),
    "words": Target("what is typed at the table and for its file", make_words, words_seeds),
    "web": Target("the web's forms and JSON", make_web, web_seeds),
    "cookie": Target("the web's sessions", make_cookie, cookie_seeds),
}
