"""`tablectl demo`, `play`, `monitor`, `ports` and `virtual`: their contracts, and one clear line for every mistake."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from boards.virtual.client import REPO, Control, Table, TableError
from boards.virtual.model import default_tags
from dragoneye import protocol
from dragoneye.errors import BadInput
from dragoneye.rules.packs import load
from host_tools import link, provision
from host_tools.cli.tables import answer_text, parse_request
from host_tools.link import SerialTransport
from host_tools.store import Store
from tests.table.played import check_record
from tests.unit import restated_wagers as text
from tests.unit.conftest import Tablectl
from tests.virtual import LONG, instant_table, need_micropython, until

ROUNDS = 3
PLAYER_POSITIONS = 7


# The demo, in processes of its own


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the demo printed: as JSON ("json", "again" with the same seed, "other" with another) and plain ("plain")."""
    need_micropython()
    folder = tmp_path_factory.mktemp("demo")
    processes = {}
    for name, seed, more in (
        ("json", 5, ["--json"]),
        ("again", 5, ["--json"]),
        ("other", 6, ["--json"]),
        ("plain", 5, []),
    ):
        command = [sys.executable, "-m", "host_tools", "demo", "--rounds", str(ROUNDS), "--seed", str(seed), *more]
        environment = {**os.environ, "DRAGONEYE_DB": f"{name}/rounds.db", "LC_ALL": "C.UTF-8"}
        processes[name] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder)
    printed = {name: process.communicate(timeout=LONG)[0] for name, process in processes.items()}
    assert {process.returncode for process in processes.values()} == {0}
    printed["folder"] = str(folder)
    return printed


def rows_of(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines()]


def told_apart(row: dict[str, Any]) -> dict[str, Any]:
    """A round without what differs from run to run."""
    return {key: value for key, value in row.items() if key != "utc"}


def test_the_demo_prints_one_object_a_round_and_a_summary(demos: dict[str, str]) -> None:
    *rounds, last = rows_of(demos["json"])
    assert [row["round"] for row in rounds] == list(range(1, ROUNDS + 1))
    assert list(last) == ["summary"]
    summary = last["summary"]
    assert (summary["rounds"], summary["seed"], summary["pack"]) == (ROUNDS, 5, "nj")
    assert summary["net"] == sum(row["net"] for row in rounds)
    assert {row["table"] for row in rounds} == {summary["table"]}
    assert rounds[2]["voids"] == ["die_missing"]
    store = Store(Path(demos["folder"], summary["db"]))
    check_record(store, summary["table"])
    store.close()


def test_the_same_seed_plays_the_same_demo(demos: dict[str, str]) -> None:
    mine, again, other = ([told_apart(row) for row in rows_of(demos[name])[:-1]] for name in ("json", "again", "other"))
    assert mine == again
    assert [row["dice"] for row in mine] != [row["dice"] for row in other]


def test_every_figure_of_the_demo_follows_from_the_rules(demos: dict[str, str]) -> None:
    streak = 0
    for row in rows_of(demos["json"])[:-1] + rows_of(demos["other"])[:-1]:
        if row["round"] == 1:
            streak = 0
        assert row["total"] == sum(row["dice"])
        # Deal positions are counted from the bank's, which is 1, around the table.
        start = (row["total"] - 1) % PLAYER_POSITIONS + 1
        assert row["start"] == start
        assert row["deal"] == [(start - 1 + step) % PLAYER_POSITIONS + 1 for step in range(PLAYER_POSITIONS)]
        # The action passes on to the next position with a bet; betting position k is deal position k + 1.
        staked = {player["position"] + 1 for player in row["tiles"]["players"]}
        assert row["action"] == [position for position in row["deal"] if position in staked]
        net = 0
        for bet in row["wagers"]:
            role = text.role_of(bet["position"], row["shaker"])
            odds = text.odds_to_one(
                bet["wager"], tuple(row["dice"]), row["eye"], bet["position"], role, streak, text.Options()
            )
            assert (bet["odds"], bet["profit"]) == (odds, text.settled(bet["stake"], odds)["profit"])
            net -= bet["profit"]
        for player in row["tiles"]["players"]:
            commission = player["stake"] // 20 if player["result"] == "win" else 0
            gain = {"win": player["stake"], "lose": -player["stake"], "push": 0}[player["result"]] - commission
            assert (player["net"], player["commission"]) == (gain, commission)
            net -= gain
        assert row["net"] == net
        streak = streak + 1 if len(set(row["dice"])) == 1 else 0
        assert row["streak"]["count"] == streak


def cents(money: str) -> int:
    return round(100 * float(money.replace("$", "").replace(",", "").replace("+", "")))


def test_the_plain_demo_reads_back_as_the_json(demos: dict[str, str]) -> None:
    parts = re.split(r"(?m)^(?=Round )", demos["plain"])
    assert re.match(r"Table \w+: firmware .* on MicroPython .*, rule pack New Jersey\n$", parts[0])
    assert len(parts) == ROUNDS + 1
    *_, summed, more = parts[-1].splitlines()
    assert re.fullmatch(r"3 rounds in .* s; the table's net is (\S+)\.", summed)
    assert "tablectl rounds --db" in more
    rows = rows_of(demos["json"])
    assert cents(summed.rpartition(" ")[2].rstrip(".")) == rows[-1]["summary"]["net"]
    for part, row in zip(parts[1:], rows, strict=False):
        heading = re.match(r"Round (\d+) · (.*) shakes\n", part)
        assert heading
        who = f"player position {row['shaker']}" if row["shaker"] else "the dealer"
        assert heading.groups() == (str(row["round"]), who)
        dice, total, eye = re.findall(r"  dice    (.*)   total (\d+)   \(the dragon's eye die shows (\d)\)", part)[0]
        marked = [f"«{die}»" if index == row["eye"] else str(die) for index, die in enumerate(row["dice"])]
        assert (dice.split(), int(total), int(eye)) == (marked, row["total"], row["dice"][row["eye"]])
        told = r"deal    (.*) first \(deal position (\d)\), by player position: (.*); action: ([\d ]+)\n"
        first, start, deal, action = re.findall(told, part)[0]
        assert int(start) == row["start"]
        assert first == (f"player position {row['start'] - 1}" if row["start"] > 1 else "the bank")
        # Player position k is deal position k + 1, and deal position 1 the bank's.
        dealt = [1 if one == "bank" else int(one) + 1 for one in deal.split()]
        assert (dealt, [int(one) + 1 for one in action.split()]) == (row["deal"], row["action"])
        assert re.findall(r"(?m)^  void    (\w+): ", part) == row["voids"]
        staked = re.findall(r"(\w+) (\$[\d.,]+) (?:pays (\d+) to 1|loses)", part)
        staked = [(name, cents(stake), int(odds or 0)) for name, stake, odds in staked if name in text.WAGERS]
        assert staked == [(bet["wager"], bet["stake"], bet["odds"]) for bet in row["wagers"]]
        hands = re.findall(r"position (\d): high (\S+), low (\S+)  (\S+) (\w+)  (\S+)", part)
        words = {"win": "wins", "lose": "loses", "push": "pushes"}
        assert [
            (int(position), high.split("/"), low.split("/"), cents(stake), result, cents(net))
            for position, high, low, stake, result, net in hands
        ] == [
            (one["position"], one["high"], one["low"], one["stake"], words[one["result"]], one["net"])
            for one in row["tiles"]["players"]
        ]
        assert cents(re.findall(r"(?m)^  net     table (\S+)", part)[0]) == row["net"]


def test_a_demo_into_an_existing_record_goes_on(tablectl: Tablectl, tmp_path: Path) -> None:
    need_micropython()
    db = str(tmp_path / "kept.db")
    assert [tablectl("demo", "--rounds", "1", "--db", db, "--json").rows[0]["round"] for _ in range(2)] == [1, 2]
    assert [row["status"] for row in tablectl("rounds", "--db", db, "--json").rows] == ["settled", "settled"]


# A table to play at


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Table]:
    with instant_table(tmp_path) as table:
        yield table


def test_play_reads_requests_line_by_line(tablectl: Tablectl, bench: Table, tmp_path: Path) -> None:
    bench.do("next", dice=[2, 4, 4])
    lines = "open 3\nbets 2 match 500 odd 100\n\nclose\nshake\nunlock\nstatus\n"
    done = tablectl("play", "--port", bench.port, "--json", stdin=lines.encode())
    assert (done.code, done.err) == (0, "")
    answers = {name: row[name] for row in done.rows for name in row if name != "state"}
    assert answers["open"] == {"round": 1, "bets": []}
    assert answers["bets"]["wagers"] == {"match": 500, "odd": 100}
    assert answers["shake"] == {"shakes": 1, "jolts": 3}
    assert answers["status"]["state"] == protocol.LOCKED
    assert '"dice":' not in done.out
    until(lambda: bench.state()["released"], "the bolt")
    bench.do("lid", to="open")
    plain = tablectl("play", "--port", bench.port, stdin=b"status\n")
    assert "  dice    «2»  4   4    total 10" in plain.out
    assert tablectl("show", "1", "--json").rows[0]["dice"] == [2, 4, 4]


REFUSED = [
    ("dance", 'there is no request "dance"; there are bets, changed, clear, close,'),
    ("hello", 'there is no request "hello"; there are bets,'),
    ("bets 9 match 500", "bets: position is 9; allowed: a whole number from 1 to 7"),
    ("bets 2 match -1", 'bets: wagers is {"match": -1}; allowed: whole cents from 0 to 536870911 by wager'),
    (
        "bets 2 match five",
        'bets: wagers is "match five"; allowed: different wagers and whole cents in turn, for example match 500',
    ),
    ("bets 2 match", 'bets: wagers is "match"; allowed: different wagers and whole cents in turn'),
    ("bets two match 5", 'bets: position is "two"; allowed: a whole number'),
    ("manual 7 1 1 broken", "manual: dice is [7, 1, 1]; allowed: three values from 1 to 6"),
    ('manual 1 2 3 "eye?" eye=1', 'manual: "eye" is no field of it; it takes dice reason; a reason'),
    ("manual 1 2 3 reader foo=1", 'manual: "foo" is no field of it'),
    ("void foo=1", 'void: "foo" is no field of it; it takes reason'),
    ("bets 2 match=500", 'bets: "match" is no field of it; it takes position wagers'),
    ("close now=1", 'close: "now" is no field of it; it takes nothing'),
    ("manual 1 1 1", "manual: reason is missing; allowed: 3 to 80 characters"),
    ("open", "open: shaker is missing; allowed: a whole number from 0 to 7"),
    ("shaker 1 2", 'shaker: "2" is too much; it takes shaker'),
    ("void 'x", "void 'x: No closing quotation"),
    ("changed dice maybe", 'changed: keep is "maybe"; allowed: yes or no'),
    ('""', 'there is no request ""'),
]


@pytest.mark.parametrize(("line", "said"), REFUSED)
def test_a_line_that_is_no_request(line: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_request(line)
    assert said in str(refused.value)


def test_refusals_do_not_end_play_and_change_nothing(tablectl: Tablectl, bench: Table) -> None:
    lines = [
        "open 3",
        *(line for line, _ in REFUSED),
        "shake",
        "bets 7 match 500",
        "open 2",
        "status",
    ]
    done = tablectl("play", "--port", bench.port, "--json", stdin="\n".join(lines).encode())
    assert done.code == 2
    refused = [row for row in done.rows if "error" in row]
    assert len(refused) == len(REFUSED) + 3
    assert [row["code"] for row in refused[-3:]] == ["E_BETS_OPEN", "E_WAGER", "E_STATE"]
    assert {row["state"] for row in refused[-3:]} == {protocol.BETTING}
    status = next(row["status"] for row in done.rows if "status" in row)
    assert (status["state"], status["bets"], status["round"]) == (protocol.BETTING, [], 1)
    plain = tablectl("play", "--port", bench.port, stdin=b"bets 9 match 500\nopen 2\n")
    assert plain.code == 2
    assert plain.err.splitlines() == [
        "tablectl: error: bets: position is 9; allowed: a whole number from 1 to 7",
        "tablectl: error: open: the table is BETTING; allowed in IDLE (E_STATE)",
    ]


def test_a_line_that_is_no_text(tablectl: Tablectl, bench: Table) -> None:
    done = tablectl("play", "--port", bench.port, "--json", stdin=b"open 1\nvoid caf\xe9\nstatus\n")
    assert done.code == 2
    assert [row["status"]["state"] for row in done.rows if "status" in row] == [protocol.BETTING]


def test_play_plays_rounds_by_itself(tablectl: Tablectl, bench: Table) -> None:
    rows = tablectl("play", "--port", bench.port, "--rounds", "2", "--json").rows
    assert [(row["round"], row["status"]) for row in rows] == [(1, "settled"), (2, "settled")]
    assert tablectl("play", "--port", bench.port, "--rounds", "1").out.startswith("Round 3 · ")
    said = "the table plays by the rule pack nj; give --pack nj"
    assert tablectl("play", "--port", bench.port, "--rounds", "1", "--pack", "ca").refusal() == said
    # The lid's hands hang up as they go: a bench serves whoever comes.
    assert Control(bench.folder).do("help")


def test_play_goes_on_after_the_cable_was_pulled_between_rounds(
    tablectl: Tablectl, bench: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    from host_tools.dealer import Dealer

    def play_then_pull(self: Dealer, plan: Any) -> int:
        number = play(self, plan)
        bench.do("cable", to="out")
        bench.do("cable", to="in")
        return number

    play = Dealer.play
    monkeypatch.setattr(Dealer, "play", play_then_pull)
    done = tablectl("play", "--port", bench.port, "--rounds", "2", "--json")
    assert (done.code, [row.get("round") for row in done.rows]) == (0, [1, 2])


def test_monitor_tells_states_and_keeps_the_record(tablectl: Tablectl, bench: Table) -> None:
    tablectl("play", "--port", bench.port, "--rounds", "1")
    rows = tablectl("monitor", "--port", bench.port, "--seconds", "0", "--json").rows
    assert [list(row) for row in rows] == [["state"]]
    assert rows[0]["state"]["state"] == protocol.IDLE
    said = tablectl("monitor", "--port", bench.port, "--seconds", "0").out
    assert said.startswith("IDLE · no round is open · round 1")
    assert f"\nTable {bench.state()['uid'].upper()}\n" in said
    said = "Invalid value for '--seconds': -1.0 is not in the range x>=0."
    assert tablectl("monitor", "--port", bench.port, "--seconds", "-1").refusal() == said


def test_ports(tablectl: Tablectl, monkeypatch: pytest.MonkeyPatch) -> None:
    port = ListPortInfo("/dev/ttyACM3")
    port.vid, port.pid, port.serial_number, port.description = 0x2E8A, 0x0005, "E66118604B2D5A21", "Board in FS mode"
    monkeypatch.setattr(list_ports, "comports", lambda: [port])
    told = {"port": "/dev/ttyACM3", "serial": "E66118604B2D5A21", "usb": "2e8a:0005", "is": "Board in FS mode"}
    assert tablectl("ports", "--json").rows == [told]
    assert tablectl("ports").out.splitlines()[1].split() == [*list(told.values())[:3], "Board", "in", "FS", "mode"]
    monkeypatch.setattr(list_ports, "comports", list)
    assert tablectl("ports", "--json").out == ""
    assert "tablectl virtual --dir FOLDER" in tablectl("ports").out


def test_a_virtual_table_runs_until_it_is_interrupted(tablectl: Tablectl, tmp_path: Path) -> None:
    need_micropython()
    folder = tmp_path / "mine"
    command = [sys.executable, "-m", "host_tools", "virtual", "--dir", str(folder), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        assert json.loads(process.stdout.readline()) == {"port": str(folder / "port")}

        def do(what: str) -> Any:
            return tablectl("virtual", "--dir", str(folder), "--do", what).rows[0]

        assert do("next dice=[2,2,2]") == {"queued": 1}
        assert do("next dice=[2,3,2]") == {"queued": 2}
        assert do("lid open force=true") == {}
        assert do("state")["lid_open"] is True
        for what, said in (
            ("dance", "'dance' is no command; allowed: button, cable,"),
            ("place dice=[7,1,1]", "dice must be three whole numbers from 1 to 6, not [7, 1, 1]"),
            ("lid ajar", "to must be open or shut, not 'ajar'"),
            ("", '--do is empty; "help" lists what can be done'),
        ):
            assert said in tablectl("virtual", "--dir", str(folder), "--do", what).refusal()
            assert said in tablectl("virtual", "--dir", str(folder), "--do", what, "--json").refusal()
        said = tablectl("virtual", "--dir", str(folder)).refusal()
        assert said == f"the bench ended at once: another bench already runs in {folder}"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LONG)
    assert process.returncode == 0
    assert "no bench answers in" in tablectl("virtual", "--dir", str(folder), "--do", "state").refusal()


# What is wrong, in one line


@pytest.fixture(params=[(), ("--json",)], ids=["plain", "json"])
def more(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Without and with --json."""
    given: tuple[str, ...] = request.param
    return given


More = tuple[str, ...]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("dance",), "there is no command 'dance'; there are "),
        (("demo", "--rounds", "0"), "Invalid value for '--rounds': 0 is not in the range 1<=x<=100000."),
        (("demo", "--rounds", "many"), "Invalid value for '--rounds': 'many' is not a valid integer range."),
        (("demo", "--seed", "-1"), "Invalid value for '--seed': -1 is not in the range"),
        (("demo", "--pack", "nv"), 'there is no rule pack "nv"; allowed: nj, pr, ca,'),
        (("play",), "Missing option '--port'."),
        (("monitor",), "Missing option '--port'."),
        (("virtual",), "Missing option '--dir'."),
    ],
)
def test_bad_arguments(tablectl: Tablectl, arguments: tuple[str, ...], said: str, more: More) -> None:
    assert said in tablectl(*arguments, *more).refusal()


@pytest.mark.parametrize("command", [("play",), ("play", "--rounds", "1"), ("monitor", "--seconds", "1")], ids=" ".join)
def test_ports_that_are_none(tablectl: Tablectl, tmp_path: Path, command: tuple[str, ...], more: More) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a port")
    for port, said in (
        (tmp_path / "absent", "there is no such port; `tablectl ports` lists those that exist"),
        (tmp_path, "cannot be opened as a serial port"),
        (plain, "cannot be opened as a serial port"),
    ):
        assert tablectl(*command, "--port", str(port), *more).refusal().startswith(f"{port}: {said}")


@contextmanager
def fake_table(answer: Callable[[int, dict[str, Any]], dict[str, Any]]) -> Iterator[str]:
    """A port at whose other end a thread answers each frame; its path."""
    master, slave = os.openpty()
    tty.setraw(slave)

    def serve() -> None:
        waiting = b""
        while b"\x00" not in waiting:
            *lines, waiting = (waiting + os.read(master, 4096)).split(b"\n")
            for line in lines:
                seq, message = protocol.decode(line)
                os.write(master, protocol.encode(1, {"re": seq, **answer(seq, message)}))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield os.ttyname(slave)
    finally:
        os.write(slave, b"\x00")
        thread.join()
        os.close(slave)
        os.close(master)


def test_another_protocol_version_is_named(tablectl: Tablectl, more: More) -> None:
    hello = {"major": protocol.MAJOR + 1, "minor": 4, "uid": "F4"}
    with fake_table(lambda seq, message: {"ok": hello}) as port:
        said = tablectl("play", "--port", port, *more).refusal()
        assert said == f"the table speaks protocol 2.4, this program {protocol.MAJOR}.{protocol.MINOR}"
    why = "the host speaks protocol 1.0, this table 2.4"
    with fake_table(lambda seq, message: {"err": "E_VERSION", "why": why}) as port:
        assert tablectl("monitor", "--port", port, *more).refusal() == why


def test_a_busy_port_and_one_that_says_nothing(tablectl: Tablectl, monkeypatch: pytest.MonkeyPatch, more: More) -> None:
    monkeypatch.setattr(link, "GIVE_UP_S", 0.2)
    master, slave = os.openpty()
    tty.setraw(slave)
    port = os.ttyname(slave)
    said = tablectl("play", "--port", port, *more).refusal()
    assert said.startswith("the table does not answer hello within")
    held = SerialTransport(port)
    said = tablectl("play", "--port", port, *more).refusal()
    assert said == f"{port}: the port is busy; another program holds it"
    held.close()
    os.close(slave)
    os.close(master)


@pytest.mark.parametrize(
    "command", [("play", "--port", "x"), ("monitor", "--port", "x"), ("demo", "--rounds", "1")], ids=lambda one: one[0]
)
def test_a_record_that_cannot_be_used(tablectl: Tablectl, tmp_path: Path, command: tuple[str, ...], more: More) -> None:
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(os.urandom(5000))
    said = tablectl(*command, "--db", str(damaged), *more).refusal()
    assert said.startswith(f"{damaged}: this is not a sound database")
    beneath = damaged / "deeper.db"
    assert tablectl(*command, "--db", str(beneath), *more).refusal().startswith(f"{beneath}: ")


DAMAGE = """
import os
for name in sorted(os.listdir("/journal")):
    with open("/journal/" + name, "rb") as file:
        lines = file.read().split(b"\\n")
    for at, line in enumerate(lines):
        if b'"k":"settled"' in line.replace(b" ", b""):
            lines[at] = line.replace(b'"net"', b'"nEt"')
    with open("/journal/" + name, "wb") as file:
        file.write(b"\\n".join(lines))
print("damaged")
"""


def test_a_damaged_journal_is_named_and_what_went_before_is_stored(tablectl: Tablectl, tmp_path: Path) -> None:
    whole = str(tmp_path / "whole.db")
    with instant_table(tmp_path / "sound") as bench:
        tablectl("play", "--port", bench.port, "--rounds", "1", "--db", whole)
    firmware = tmp_path / "firmware"
    firmware.mkdir()
    (firmware / "boot.py").write_text("")
    (firmware / "main.py").write_text(DAMAGE)
    with Table(bench.folder, firmware=firmware) as broken:
        port = SerialTransport(broken.port)
        until(lambda: b"damaged" in port.read(1.0), "the damage")
        port.close()
    with Table(bench.folder) as again:
        for given in ((), ("--json",)):
            said = tablectl("play", "--port", again.port, "--rounds", "1", *given).refusal()
            assert re.fullmatch(r"the table has a fault, JOURNAL: segment 1, line \d: the hash differs · .*", said)
        refused = tablectl("play", "--port", again.port, stdin=b"open 1\n")
        assert refused.code == 2
        assert "open: the fault JOURNAL is latched; a supervisor must clear it (E_FAULT)" in refused.err
        watched = tablectl("monitor", "--port", again.port, "--seconds", "0")
        assert watched.out.startswith("FAULT · a fault is latched until a supervisor clears it · JOURNAL: segment 1")
        # What stands before the damage has come to a record that knew nothing of this table.
        [stored] = tablectl("rounds", "--json").rows
        assert (stored["round"], stored["status"]) == (1, "open")
        events = [row["k"] for row in tablectl("show", "1", "--events").rows]
        assert events == ["opened", "closed"]  # the result is kept back: its lid has not been opened
        # A record that has everything lets the damaged one go.
        tablectl("monitor", "--port", again.port, "--seconds", "0", "--db", whole)
        cleared = tablectl("play", "--port", again.port, "--db", whole, stdin=b"clear JOURNAL\n")
        assert (cleared.code, cleared.err) == (0, "")
        assert tablectl("show", "1", "--db", whole, "--json").rows[0]["status"] == "settled"


@pytest.mark.parametrize(
    ("environment", "arguments"),
    [
        ({"MICROPYTHON": "/no/such/program"}, ("demo", "--rounds", "1")),
        ({"DRAGONEYE_DB": "{file}/rounds.db"}, ("demo", "--rounds", "1")),
        ({}, ("virtual", "--dir", "{file}/v")),
        ({}, ("virtual", "--dir", "{tmp}", "--do", "lid 'open")),
    ],
)
def test_mistakes_that_are_not_told_in_a_line(
    tablectl: Tablectl,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    arguments: tuple[str, ...],
    more: More,
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(tmp=tmp_path, file=file))
    assert tablectl(*(one.format(tmp=tmp_path, file=file) for one in arguments), *more).refusal()


def test_no_micropython_is_told(
    tablectl: Tablectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: More
) -> None:
    monkeypatch.setenv("MICROPYTHON", "/no/such/program")
    said = tablectl("virtual", "--dir", str(tmp_path / "v"), *more).refusal()
    assert said == "the bench ended at once: $MICROPYTHON names /no/such/program, which is no program here"


# What a person at the keyboard meets


def test_play_hears_the_table_between_lines_and_tells_each_record_once(bench: Table, tmp_path: Path) -> None:
    bench.do("next", dice=[2, 4, 4])
    command = [
        sys.executable,
        "-m",
        "host_tools",
        "play",
        "--port",
        bench.port,
        "--db",
        str(tmp_path / "r.db"),
        "--json",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPO) as player:
        assert player.stdin
        assert player.stdout
        heard = []
        player.stdin.write("open 3\nclose\nshake\nunlock\n")
        player.stdin.flush()
        for line in player.stdout:
            heard.append(json.loads(line))
            if "unlock" in heard[-1]:
                open_lid(bench)
            if "settled" in heard[-1]:
                # Nothing was typed since: the table was heard all the same.
                player.stdin.close()
    kinds = [next(iter(one)) for one in heard]
    assert [kinds.count(kind) for kind in ("opened", "closed", "locked", "settled")] == [1, 1, 1, 1]
    assert player.returncode == 0


def open_lid(bench: Table) -> None:
    """Open the lid as soon as the lock's pulse has released it."""

    def opened() -> bool:
        with contextlib.suppress(TableError):
            bench.do("lid", to="open")
        return bool(bench.state()["lid_open"])

    until(opened, "the lid")


def test_the_same_wager_twice_is_refused(tablectl: Tablectl) -> None:
    with pytest.raises(BadInput, match="allowed: different wagers and whole cents in turn"):
        parse_request("bets 2 match 500 match 600")
    line = b'{"dice":[3,3,4],"eye":2,"position":3,"wager":"match","stake":500,"stake":600,"role":"player","streak":0}'
    done = tablectl("wagers", "settle", "--batch", "-", "--json", stdin=line)
    assert (done.code, done.rows) == (2, [{"error": '"stake" is there twice', "line": 1}])


def test_an_entry_by_hand_is_told_with_its_dragons_eye_die() -> None:
    echo = {"token": 7, "dice": [1, 2, 3], "total": 6, "eye": 0}
    assert answer_text("manual", echo).plain == (
        "«1»  2   3    total 6   (the dragon's eye die shows 1); to enter it: confirm 7 1 2 3"
    )
    assert answer_text("confirm", {"round": 1, "dice": [1, 2, 3]}).plain == '{"round": 1, "dice": [1, 2, 3]}'


def test_a_word_of_a_reason_that_looks_like_a_field_is_quoted() -> None:
    for line in ("void 'eye=1 was unread'", 'void "eye=1 was unread"', "void reason='eye=1 was unread'"):
        assert parse_request(line) == ("void", {"reason": "eye=1 was unread"})
    assert parse_request("void 'eye=1' unread") == ("void", {"reason": "eye=1 unread"})
    assert parse_request("void 2+2=5 they said") == ("void", {"reason": "2+2=5 they said"})
    assert parse_request(shlex.join(["void", "reason=eye=1"])) == ("void", {"reason": "eye=1"})
    assert parse_request(r"void a\ b 'c=d'") == ("void", {"reason": "a b c=d"})


def test_the_words_of_a_reason_need_no_quotes() -> None:
    assert parse_request("void the wrong bets") == ("void", {"reason": "the wrong bets"})


@pytest.mark.parametrize("word", ["1_000", "５", "1e3", "0x10", ""])
def test_a_number_is_made_of_digits(word: str) -> None:
    with pytest.raises(BadInput):
        parse_request(f"bets 2 even '{word}'")


def test_a_virtual_tables_folder_keeps_its_rule_pack(tablectl: Tablectl, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    provision.write(folder / "provision", "rpi_pico", load("ca"), default_tags(), 0)
    (folder / "flash.img").touch()
    said = f"{folder}: the table there plays by the rule pack ca; give that one, or another folder"
    assert tablectl("virtual", "--dir", str(folder), "--pack", "nj").refusal() == said


def test_a_binary_that_is_not_micropython_is_named(tablectl: Tablectl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MICROPYTHON", "true")
    assert "$MICROPYTHON names true, which is not MicroPython's unix port" in tablectl("demo").refusal()


def test_output_that_cannot_be_written_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "host_tools", "seats", "--total", "9"], stdout=full, stderr=subprocess.PIPE, cwd=REPO
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    plain = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "host_tools", "packs", "show", "nj", "--lang", "es"],
        env=plain,
        capture_output=True,
        cwd=REPO,
    )
    assert (done.returncode, done.stderr) == (0, b"")
