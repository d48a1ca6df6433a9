"""`tablectl ports`, `monitor`, `play` and `virtual`: working with a table on a port."""

from __future__ import annotations

import contextlib
import json
import queue
import random
import re
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.text import Text
from serial.tools import list_ports

from boards.virtual.client import Control, TableError
from boards.virtual.model import default_tags
from dragoneye import protocol
from dragoneye.errors import BadInput
from dragoneye.rules.packs import Pack, load
from dragoneye.text import show
from host_tools import bounded, codes, contested, diceset, faults, provision
from host_tools.cli import call
from host_tools.cli.common import control_of, db_option, on_port, open_store, play_one, port_option
from host_tools.cli.numbers import money
from host_tools.cli.output import console, json_option, print_json, table
from host_tools.cli.packs import pack_option
from host_tools.dealer import Dealer, HumanLid, Lid, VirtualLid, plan_round
from host_tools.device import Device, called
from host_tools.i18n import _, controller, pgettext
from host_tools.link import LinkClosed, Refused, SessionLost
from host_tools.rules import seating
from host_tools.store import Store

Message = dict[str, Any]

# How long a round may take where nobody has to move the lid.
VIRTUAL_S = 60.0


@click.command()
@json_option
def ports(as_json: bool) -> None:
    """The serial ports of this computer; a Pico's serial number is the table's unique id."""
    found = [
        {"port": port.device, "serial": port.serial_number, "usb": _usb_id(port.vid, port.pid), "is": port.description}
        for port in sorted(list_ports.comports())
    ]
    if as_json:
        for port in found:
            print_json(port)
        return
    if not found:
        console().print(_("no serial port is there; `tablectl virtual --dir FOLDER` makes one without hardware"))
        return
    rows = table(_("port"), _("serial number"), _("USB"), _("description"))
    for port in found:
        rows.add_row(*[str(value or "") for value in port.values()])
    console().print(rows)


def _usb_id(vendor: int | None, product: int | None) -> str | None:
    return f"{vendor:04x}:{product:04x}" if vendor is not None and product is not None else None


def describe(kind: str, data: Message) -> str:
    """One line for a live state or a record."""
    if kind == "state":
        words = f"{data['state']} · {controller(codes.STATES.get(data['state'], ''))}"
        if data["state"] == protocol.VOID:
            words += f" · {data['void']}: {controller(codes.VOIDS.get(data['void'], ''))}"
            if data["call"]:
                words += _(" · call a supervisor")
        if data.get("fault"):
            words += f" · {faults.told(data['fault'], data['detail'])}"
        if data.get("test") and data["state"] != protocol.TEST:
            words += _(" · in test mode")
        for code, detail in sorted(data.get("service", {}).items()):
            words += _(" · service: {told}").format(told=faults.told(code, detail))
        if data["round"]:
            words += _(" · round {round}, {who} shakes").format(round=data["round"], who=seating.who(data["shaker"]))
        if data["bets_open"]:
            words += _(" · bets open, the table could owe {sum}").format(sum=money(data["liability"]))
        if data["streak"]["count"]:
            words += _(" · triples in a row: {count}").format(count=data["streak"]["count"])
        if data["lid_open"]:
            words += _(" · lid open")
        return words
    if kind == "fault":
        return faults.told_record(data)
    if kind == "test":
        return _("test mode was entered") if data["set"] else _("test mode was left")
    told = (f"{pgettext('record', key)} {_told(kind, key, data[key])}" for key in sorted(data) if data[key] is not None)
    return f"{pgettext('record', kind)}: {', '.join(told)}"


def _told(kind: str, key: str, value: Any) -> str:
    """A value of a record's data: JSON, and what the controller said itself in the chosen language."""
    if isinstance(value, bool):
        return _("true") if value else _("false")
    if kind == "door" and key == "which":
        value = pgettext("door", value)
    elif kind == "streak" and key == "why":
        value = controller(value)
    return json.dumps(value, ensure_ascii=False)


class Teller:
    """Prints records and live states as they come, each state once."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._last: Message | str = ""

    def __call__(self, kind: str, data: Message) -> None:
        line = describe(kind, data)
        if kind == "state":
            told = data if self._as_json else line
            if told == self._last:
                return
            self._last = told
        if self._as_json:
            print_json({kind: data})
            sys.stdout.flush()
            return
        if kind == "settled":
            call.print_round(console(), {**data, "status": "settled", "result": data}, [])
            return
        console().print(line, style="dim" if kind != "state" else "", markup=False)


class DiceClock:
    """Says when the table's dice set needs care, once each time that this changes."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._told = ""
        self._again_at = 0.0

    def look(self, device: Device) -> None:
        """Look at the dice set that the table's hello told of; call it as often as you like."""
        if time.monotonic() < self._again_at:
            return
        self._again_at = time.monotonic() + 1.0
        dice_set = device.table.get("dice_set")
        now = diceset.utc_now()
        words = diceset.told(dice_set, now)
        if dice_set and words and words != self._told:
            if self._as_json:
                print_json({"dice_set": {**dice_set, "stands": diceset.level(dice_set["issued"], now)}})
                sys.stdout.flush()
            else:
                console().print(words, style="bold", markup=False)
        self._told = words


@click.command()
@port_option
@click.option("--seconds", type=click.FloatRange(0), help="Stop after so long (default: until Ctrl-C).")
@db_option
@json_option
def monitor(port: str, seconds: float | None, db: Path | str | None, as_json: bool) -> None:
    """Show what a table says, live, and keep its record; comes back after a pulled cable."""
    teller = Teller(as_json)
    with on_port(port, open_store(db), teller) as device, contextlib.suppress(KeyboardInterrupt):
        if not as_json:
            console().print(_("Table {uid}").format(uid=called(device.table)), markup=False)
        teller("state", device.state)
        if device.table.get("unprovisioned") and not as_json:
            console().print(_("unprovisioned: this table has no keys yet and is not for play"), style="bold")
        clock = DiceClock(as_json)
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            clock.look(device)
            try:
                device.poll(0.2)
            except (LinkClosed, SessionLost) as error:
                click.echo(_("{error}; waiting for it to come back").format(error=error), err=True)
                teller("state", device.reconnect(3600.0))


def answer_text(name: str, answer: Message) -> Text:
    """What a table answered to a request, for a person: an entry by hand with its dice, else JSON."""
    if name != "manual":
        return Text(json.dumps(answer))
    dice, eye = answer["dice"], answer["eye"]
    text = call.dice_text(dice, eye)
    text.append(_("   total {total}   (the dragon's eye die shows {eye})").format(total=answer["total"], eye=dice[eye]))
    text.append(_("; to enter it: confirm {token} {dice}").format(token=answer["token"], dice=" ".join(map(str, dice))))
    return text


def parse_request(line: str) -> tuple[str, Message]:
    """A request as a dealer types it: its name, then its fields in order or as name=value; wagers as `match 500`.

    A word `name=value` whose name is no field is taken for a slip and not for a part of a reason, unless it is quoted.
    Raises BadInput naming the request and what it takes.

    >>> parse_request("bets 3 match 500 bonus 100")
    ('bets', {'position': 3, 'wagers': {'match': 500, 'bonus': 100}})
    >>> parse_request("manual 3 3 4 reader down")
    ('manual', {'dice': [3, 3, 4], 'reason': 'reader down'})
    """
    try:
        words = shlex.split(line) or [""]
    except ValueError as error:
        raise BadInput(f"{line.strip()}: {error}") from None
    name, words = words[0], words[1:]
    # The words as they were typed, quotes and all.
    typed = _TYPED.findall(line)[1:]
    if name not in protocol.REQUESTS or name == "hello":
        allowed = ", ".join(sorted(set(protocol.REQUESTS) - {"hello"}))
        raise BadInput(_("there is no request {name}; there are {allowed}").format(name=show(name), allowed=allowed))
    fields = protocol.REQUESTS[name][2]
    kinds = {field[0]: field[1] for field in fields}
    given: Message = {}
    plain = []
    for place, word in enumerate(words):
        key, equals, value = word.partition("=")
        if equals and key not in kinds and _NAMED.match(typed[place] if len(typed) == len(words) else word):
            takes = " ".join(kinds) or _("nothing")
            raise BadInput(
                _("{name}: {field} is no field of it; it takes {takes}; a reason's word with = goes in quotes").format(
                    name=name, field=show(key), takes=takes
                )
            )
        if equals and key in kinds:
            given[key] = _field(name, key, kinds[key], [value])
        else:
            plain.append(word)
    for field in fields:
        key, kind = field[0], field[1]
        if key in given or not plain:
            continue
        count = {"dice": 3, "wagers": len(plain), "text": len(plain)}.get(kind, 1)
        given[key] = _field(name, key, kind, plain[:count])
        plain = plain[count:]
    if plain:
        takes = " ".join(field[0] for field in fields) or _("nothing")
        raise BadInput(
            _("{name}: {words} is too much; it takes {takes}").format(
                name=name, words=show(" ".join(plain)), takes=takes
            )
        )
    # The table checks the same; here the mistake is told before anything is sent.
    try:
        protocol.check_request({"q": name, **given})
    except protocol.Problem as problem:
        raise BadInput(controller(problem.why)) from None
    return name, given


# A word on a line with its quotes, as shlex takes it; and one that looks like a field and its value.
_TYPED = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+""", re.DOTALL)
_NAMED = re.compile(r"[A-Za-z_]+=")


def _whole(word: str) -> int:
    """Digits as a person types them; int() also takes 1_000 and digits of other scripts."""
    if not re.fullmatch(r"[-+]?[0-9]{1,12}", word):
        raise ValueError
    return int(word)


def _field(name: str, key: str, kind: str, words: list[str]) -> Any:
    try:
        if kind == "int":
            return _whole(words[0])
        if kind == "flag":
            return {"yes": True, "true": True, "no": False, "false": False}[words[0].lower()]
        if kind == "dice":
            return [_whole(word) for word in (words if len(words) > 1 else words[0].replace(",", " ").split())]
        if kind == "wagers":
            words = words if len(words) > 1 else words[0].split()
            if len(words) % 2 or len(set(words[::2])) < len(words[::2]):
                raise ValueError
            return {wager: _whole(cents) for wager, cents in zip(words[::2], words[1::2], strict=True)}
    except (ValueError, KeyError):
        wanted = {
            "int": _("a whole number"),
            "flag": _("yes or no"),
            "dice": _("three values from 1 to 6"),
            "wagers": _("different wagers and whole cents in turn, for example match 500 odd 100"),
        }[kind]
        raise BadInput(
            _("{name}: {key} is {words}; allowed: {wanted}").format(
                name=name, key=key, words=show(" ".join(words)), wanted=wanted
            )
        ) from None
    return " ".join(words)


@click.command()
@port_option
@click.option("--rounds", type=click.IntRange(1), help="Play so many rounds by itself with likely wagers.")
@click.option("--seed", default=2026, show_default=True, help="Of those wagers.")
@pack_option()
@click.option(
    "--keep-dice", is_flag=True, help="A supervisor keeps a dice set that was issued 24 hours ago or earlier."
)
@db_option
@json_option
def play(
    port: str, rounds: int | None, seed: int, pack: str, keep_dice: bool, db: Path | str | None, as_json: bool
) -> None:
    """Deal at a table: requests from standard input, or --rounds played by itself.

    Each line is a request with its fields: `open 3`, `bets 2 match 500 odd 100`, `close`, `shake`, `unlock`, `finish`,
    `void REASON`, `status` ... Wagers are in cents. Dice by hand (`manual 3 3 4 REASON`) are typed in the order of the
    three dice, die 1 first, as results show them; which one is the dragon's eye die the table's configuration says, and
    the answer shows it as «3» before `confirm`. A refusal says why and the next line is read; the exit code is then
    2. With --rounds a person opens and shuts the lid when told to; on a virtual table that is done too.
    """
    store = open_store(db)
    if rounds is not None:
        chosen = load(pack)
        with on_port(port, store) as device:
            _play_rounds(device, store, chosen, rounds, random.Random(seed), keep_dice, as_json)
        return
    with on_port(port, store, Teller(as_json)) as device:
        try:
            sys.exit(_play_lines(device, store, keep_dice, as_json))
        finally:
            with contextlib.suppress(BadInput):
                device.wait_stored(2.0)


@contextlib.contextmanager
def lid_of(port: str) -> Iterator[Lid]:
    """The lid of the virtual table whose port this is, or a person's hands."""
    with control_of(port) as control:
        if control is not None:
            yield VirtualLid(control)
        else:
            yield HumanLid(lambda words: click.echo(f">>> {words}", err=True))


def _check_dice(device: Device, keep_dice: bool) -> str | None:
    """What is recorded with a round that is opened now: that a supervisor keeps an old dice set.

    Raises BadInput where the set is too old and nobody keeps it. A table of protocol 1.1 takes no note.
    """
    dice_set = device.table.get("dice_set")
    if not keep_dice:
        diceset.check(dice_set, diceset.utc_now())
        return None
    return diceset.kept(dice_set, diceset.utc_now()) if device.table["minor"] >= 2 else None


def _play_rounds(
    device: Device, store: Store, pack: Pack, rounds: int, rng: random.Random, keep_dice: bool, as_json: bool
) -> None:
    if device.table["pack"] != pack.name:
        raise BadInput(
            _("the table plays by the rule pack {theirs}; give --pack {theirs}").format(theirs=device.table["pack"])
        )
    with lid_of(device.port) as lid:
        dealer = Dealer(device, pack, lid, patience=VIRTUAL_S if isinstance(lid, VirtualLid) else 3600.0)
        for _count in range(rounds):
            dealer.note = _check_dice(device, keep_dice)
            plan = plan_round(rng, pack, dealer.surely(device.refresh)["streak"])
            play_one(dealer, store, plan, as_json, with_tiles=False)


def _lines_of_stdin() -> queue.SimpleQueue[bytes | None]:
    """Lines of standard input as they come, None at its end: a thread waits for them, so that the table is heard."""
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin.buffer:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def _check_correction(store: Store, uid: str, fields: Message) -> None:
    try:
        contested.check(store, uid, fields)
    except contested.Contested as error:
        words = _("{error}; `tablectl correct --anyway` corrects it so nevertheless")
        raise BadInput(words.format(error=error)) from None


def _play_lines(device: Device, store: Store, keep_dice: bool, as_json: bool) -> int:
    lines = _lines_of_stdin()
    clock = DiceClock(as_json)
    code = 0
    prompt = sys.stdin.isatty()
    asked = True
    while True:
        if prompt and asked:
            click.echo("> ", nl=False)
        asked = False
        request = ""
        clock.look(device)
        try:
            try:
                raw = lines.get_nowait()
            except queue.Empty:
                device.poll(0.05)
                continue
            if raw is None:
                return code
            asked = True
            if not raw.strip():
                continue
            try:
                line = raw.decode()
            except UnicodeDecodeError:
                raise BadInput(_("this line is not UTF-8 text")) from None
            name, fields = parse_request(line)
            if name == "open":
                note = _check_dice(device, keep_dice)
                if note is not None:
                    fields.setdefault("note", note)
            elif name == "correct":
                _check_correction(store, device.uid, fields)
            request = name
            answer = device.request(name, **fields)
            request = ""
            if as_json:
                print_json({name: answer})
            else:
                console().print(Text.assemble(f"{name}: ", answer_text(name, answer)))
            if name == "shake":
                device.state = {}
                device.wait_for((protocol.LOCKED, protocol.VOID), 60.0)
            device.poll(0.05)
        except (LinkClosed, SessionLost) as error:
            click.echo(_("{error}; waiting for it to come back").format(error=error), err=True)
            state = device.reconnect(3600.0)["state"]
            if request:
                code = 2
                words = _("{request}: it is not known whether it was done; the table is {state} now").format(
                    request=request, state=state
                )
                _complain({"error": words, "request": request, "state": state}, as_json)
        except Refused as refused:
            code = 2
            _complain({"error": str(refused), "code": refused.code, "state": refused.state}, as_json)
        except BadInput as error:
            code = 2
            _complain({"error": str(error)}, as_json)


def _complain(error: Message, as_json: bool) -> None:
    error["error"] = controller(error["error"])
    if as_json:
        print_json(error)
    else:
        click.echo(f"tablectl: {_('error')}: {error['error']}", err=True)


@click.command()
@click.option(
    "--dir", "folder", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder of the table."
)
@click.option("--seed", default=1, show_default=True, help="What its dice depend on.")
@click.option("--do", "what", help='Do one thing to a table that runs there, for example "lid open" or "help".')
@pack_option()
@json_option
def virtual(folder: Path, seed: int, what: str | None, pack: str, as_json: bool) -> None:
    """Run a virtual table in FOLDER until Ctrl-C, or --do something to the one that runs there.

    The table's port is FOLDER/port: `tablectl play --port FOLDER/port`. What lies on it and its flash stay in FOLDER.
    """
    if what is not None:
        _steer(folder, what)
        return
    from boards.virtual.client import Table

    chosen = load(pack)
    _check_flash(folder, chosen)
    try:
        provision.write(folder / "provision", "rpi_pico", chosen, default_tags(), 0, **provision.QUICK)
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror}") from None
    try:
        with Table(folder, seed=seed, provision=folder / "provision") as bench:
            if as_json:
                print_json({"port": bench.port})
                sys.stdout.flush()
            else:
                click.echo(_("virtual table at {port}; Ctrl-C ends it").format(port=bench.port))
            with contextlib.suppress(KeyboardInterrupt):
                while True:
                    time.sleep(1)
    except TableError as error:
        raise BadInput(str(error)) from None


def _check_flash(folder: Path, pack: Pack) -> None:
    """A flash that is there keeps its configuration: another rule pack is refused, not passed over."""
    config = folder / "provision" / "config.json"
    if not (folder / "flash.img").exists() or not config.exists():
        return
    try:
        there = dict(json.loads(bounded.read_text(config, encoding="utf-8"))["pack"])
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(_("{folder}: this is no virtual table's folder; name another").format(folder=folder)) from None
    # What the configuration says of the pack's origin is no rule of it.
    rules = pack.as_dict()
    if {key: there.get(key) for key in rules} != rules:
        raise BadInput(
            _("{folder}: the table there plays by the rule pack {theirs}; give that one, or another folder").format(
                folder=folder, theirs=there.get("name")
            )
        )


def _steer(folder: Path, what: str) -> None:
    try:
        words = shlex.split(what)
    except ValueError as error:
        raise BadInput(f"--do: {what}: {error}") from None
    if not words:
        raise BadInput(_('--do is empty; "help" lists what can be done'))
    arguments: Message = {}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if not equals:
            key, value = "to", word
        try:
            arguments[key] = json.loads(value)
        except (ValueError, RecursionError):
            arguments[key] = value
    try:
        print_json(Control(folder).do(words[0], **arguments))
    except TableError as error:
        raise BadInput(str(error)) from None
