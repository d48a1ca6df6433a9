"""`tablectl dice`: learn the tags of a dice set, look at it, and register it at a table."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import click

from boards.virtual.client import Control
from dragoneye.errors import BadInput
from dragoneye.rules import reading
from dragoneye.text import show as shown
from host_tools import diceset
from host_tools.cli.common import control_of, db_option, on_port, open_store, port_option
from host_tools.cli.output import console, json_option, print_json, table
from host_tools.cli.service import new_pass, test_mode
from host_tools.device import Device
from host_tools.diceset import DiceSet
from host_tools.i18n import _

Message = dict[str, Any]
PART_FORMAT = 1
STEP_MAX = 7
FACES = 18


@click.group()
def dice() -> None:
    """Dice sets: learn one at a table's reader, show it, register it at a table."""


class Learner:
    """Collects the tags of 18 faces, one after the other; a tag counts when two passes in a row see it alone.

    `faces[die][face - 1]` is a UID or None. A die that shows a value has the face 7 less the value below.
    """

    def __init__(self, faces: list[list[str | None]]) -> None:
        self.faces = faces
        # Down the readers' gains: a die alone may answer with two faces at the usual one.
        self.step = 0
        self._candidate = ""

    @property
    def count(self) -> int:
        """How many faces are known."""
        return sum(uid is not None for die in self.faces for uid in die)

    @property
    def next(self) -> tuple[int, int] | None:
        """(die 0..2, value that it must show), or None when all are known. Values come in the order 1 to 6."""
        for die, faces in enumerate(self.faces):
            for value in range(1, 7):
                if faces[6 - value] is None:
                    return die, value
        return None

    def take(self, tags: list[str] | None) -> str | None:
        """Take one pass of all readers: the UIDs, or None when they were not told apart.

        Returns None when the face is known now, else what is in the way; "" while nothing is to be said.
        """
        before, self._candidate = self._candidate, ""
        if tags is None:
            return _("the tags under the reader are not told apart; only one die may lie there")
        if not tags:
            self.step = 0
            return _("no tag is read; put the die right under the reader")
        if len(tags) > 1:
            self.step = min(self.step + 1, STEP_MAX)
            return _("{count} tags are read; only one die may lie under the reader, flat").format(count=len(tags))
        [uid] = tags
        try:
            reading.check_uid(uid)
        except ValueError:
            return _("tag {uid} has not 4 or 7 bytes; it cannot be one of a die").format(uid=uid)
        if len(uid) == 8 and uid.startswith("08"):
            # ISO 14443-3: a single-size UID that begins with 08 is a random number.
            return _("tag {uid} changes its number each time; it cannot be one of a die").format(uid=uid)
        todo = self.next
        if todo is None:
            return ""
        for die, faces in enumerate(self.faces):
            if uid not in faces:
                continue
            value = 6 - faces.index(uid)
            if die != todo[0]:
                return _("this is die {known}, which is known already; take die {die}").format(
                    known=die + 1, die=todo[0] + 1
                )
            return _("it was read with {known} up; turn it so that {value} is up").format(known=value, value=todo[1])
        if uid != before:
            self._candidate = uid
            return ""
        self.faces[todo[0]][6 - todo[1]] = uid
        self.step = 0
        return None


class Hand(Protocol):
    """Whoever turns the dice."""

    def turn(self, die: int, value: int) -> None:
        """Put this die (0..2) alone under the reader, so that it shows the value."""

    def done(self) -> None:
        """All are known."""


class PersonsHand:
    """A person, who reads the prompts."""

    def turn(self, die: int, value: int) -> None:
        pass

    def done(self) -> None:
        pass


class VirtualHand:
    """The virtual table's dice: the other two are taken away."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._alone: int | None = None

    def turn(self, die: int, value: int) -> None:
        if self._alone != die:
            self._control.do("clear", name="missing")
            for other in range(3):
                if other != die:
                    self._control.do("fault", name="missing", die=other, rolls=None)
            self._alone = die
        self._control.do("place", dice=[value] * 3)

    def done(self) -> None:
        self._control.do("clear", name="missing")


@contextlib.contextmanager
def _hand(port: str, auto: bool) -> Iterator[Hand]:
    if not auto:
        yield PersonsHand()
        return
    with control_of(port) as control:
        if control is None:
            raise BadInput(_("--auto needs a virtual table; none answers at {port}").format(port=port))
        yield VirtualHand(control)


def _begun(part: Path, wanted: Message) -> list[list[str | None]]:
    """The faces that an earlier, unfinished run knew. Raises BadInput when the file is of another set."""
    if not part.exists():
        return [[None] * 6 for _die in range(3)]
    found = diceset.read_json(part)
    for key in ("format", "serial", "eye"):
        if found.get(key) != wanted[key]:
            raise BadInput(
                _("{path} was begun with {key} {theirs}, not {ours}; give the same, or remove the file").format(
                    path=part, key=key, theirs=shown(found.get(key)), ours=shown(wanted[key])
                )
            )
    faces: Any = found.get("dice")
    sound = isinstance(faces, list) and [len(die) if isinstance(die, list) else 0 for die in faces] == [6, 6, 6]
    if not sound or not all(uid is None or isinstance(uid, str) for die in faces for uid in die):
        raise BadInput(_("{path} is no dice set: {error}").format(path=part, error=shown(faces)))
    return [list(die) for die in faces]


def learn_faces(
    device: Device,
    learner: Learner,
    hand: Hand,
    say: Callable[[str], None],
    save: Callable[[], None],
    patience: float,
) -> None:
    """Learn all faces that are not known yet. Raises BadInput when one is not read within `patience` seconds."""
    last = int(device.request("sensors")["pass"])
    while (todo := learner.next) is not None:
        die, value = todo
        say(
            _("{count} of {all}: put die {die} alone under the reader so that it shows {value}").format(
                count=learner.count + 1, all=FACES, die=die + 1, value=value
            )
        )
        hand.turn(die, value)
        # The pass that is under way now may have seen the die before.
        last = int(new_pass(device, last, learner.step)["pass"])
        end = time.monotonic() + patience
        told = ""
        while True:
            seen = new_pass(device, last, learner.step)
            last = int(seen["pass"])
            words = learner.take(_tags(seen["readers"]))
            if words is None:
                break
            if words and words != told:
                say(f"  {words}")
            told = words or told
            if time.monotonic() >= end:
                raise BadInput(
                    _("die {die} with {value} up was not read within {seconds:.0f} s").format(
                        die=die + 1, value=value, seconds=patience
                    )
                )
        save()


def _tags(readers: list[Message]) -> list[str] | None:
    """The UIDs that all readers see together; None when one could not tell them apart."""
    dead = [one["reader"] for one in readers if not one["ok"]]
    if dead:
        raise BadInput(_("reader {number} does not answer; run `tablectl selftest`").format(number=dead[0]))
    if any(one["tags"] is None for one in readers):
        return None
    return sorted({tag[0] for one in readers for tag in one["tags"]})


@dice.command()
@port_option
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="File for the dice set.")
@click.option("--serial", required=True, help="Serial of the set, up to 24 characters.")
@click.option("--name", default="", help="A name for people.")
@click.option("--eye", default=1, show_default=True, type=click.IntRange(1, 3), help="Which is the dragon's eye die.")
@click.option("--patience", default=600.0, show_default=True, type=click.FloatRange(1), help="Seconds for each face.")
@click.option("--auto", is_flag=True, help="On a virtual table: turn the dice by itself.")
@db_option
@json_option
def learn(
    port: str,
    out: Path,
    serial: str,
    name: str,
    eye: int,
    patience: float,
    auto: bool,
    db: Path | str | None,
    as_json: bool,
) -> None:
    """Learn the tags of three dice: each die, each face up, one after the other alone under the reader.

    What is known is kept in FILE.part after every face: stop with Ctrl-C, and the same command goes on from there.
    Nothing changes at the table; `tablectl dice install FILE` registers the set there.
    """
    diceset.check_serial(serial)
    if out.exists():
        raise BadInput(_("{path} is there already; name another file, or remove it").format(path=out))
    part = out.with_name(out.name + ".part")
    about = {"format": PART_FORMAT, "serial": serial, "name": name, "eye": eye}
    learner = Learner(_begun(part, about))

    def say(words: str) -> None:
        click.echo(words, err=True)

    def save() -> None:
        diceset.write_json(part, {**about, "dice": learner.faces})

    if learner.count:
        say(_("{count} of {all} faces are known from before").format(count=learner.count, all=FACES))
    with on_port(port, open_store(db)) as device, test_mode(device), _hand(port, auto) as hand:
        try:
            learn_faces(device, learner, hand, say, save, patience)
        except BaseException:
            if part.exists():
                say(_("{count} of {all} faces are kept in {path}").format(count=learner.count, all=FACES, path=part))
            raise
        hand.done()
    issued = diceset.utc_now().strftime(diceset.UTC_FORMAT)
    learnt = DiceSet(serial, name, issued, eye, [[str(uid) for uid in die] for die in learner.faces])
    learnt.save(out)
    with contextlib.suppress(OSError):
        part.unlink()
    _print(learnt, as_json)


def _print(dice_set: DiceSet, as_json: bool) -> None:
    stands = diceset.level(dice_set.issued, diceset.utc_now())
    if as_json:
        data = {key: getattr(dice_set, key) for key in ("serial", "name", "issued", "eye", "dice", "hash")}
        print_json({**data, "stands": stands})
        return
    rows = table(_("die"), *[str(face) for face in range(1, 7)])
    for number, faces in enumerate(dice_set.dice, 1):
        rows.add_row(f"«{number}»" if number == dice_set.eye else f" {number} ", *faces)
    named = f" · {dice_set.name}" if dice_set.name else ""
    console().print(
        _("Dice set {serial}{name} · issued {issued} · hash {hash}").format(
            serial=dice_set.serial, name=named, issued=dice_set.issued, hash=dice_set.hash
        )
    )
    console().print(rows)
    words = diceset.told({"serial": dice_set.serial, "issued": dice_set.issued}, diceset.utc_now())
    if words:
        console().print(words)


_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@dice.command()
@_file
@json_option
def show(file: Path, as_json: bool) -> None:
    """Show the dice set in FILE: the tags by die and face, when it was issued, and whether it must be changed."""
    _print(DiceSet.load(file), as_json)


@dice.command()
@_file
@port_option
@click.option("--issued", help="Time of issue as UTC, such as 2026-11-30T08:00:00Z (default: now).")
@db_option
@json_option
def install(file: Path, port: str, issued: str | None, db: Path | str | None, as_json: bool) -> None:
    """Register the dice set in FILE at a table, as issued or inspected now.

    Other tags than before end a running streak; the same set inspected and issued again does not. The table records it.
    """
    loaded = DiceSet.load(file)
    if issued is not None:
        diceset.parse_utc(issued)
    stamp = issued or diceset.utc_now().strftime(diceset.UTC_FORMAT)
    dice_set = DiceSet(loaded.serial, loaded.name, stamp, loaded.eye, loaded.dice)
    with on_port(port, open_store(db)) as device, test_mode(device):
        answer = device.request("dice", **dice_set.request())
    if answer["hash"] != dice_set.hash:
        raise BadInput(
            _("the table has taken another set: its hash is {theirs}, not {ours}").format(
                theirs=shown(answer["hash"]), ours=shown(dice_set.hash)
            )
        )
    dice_set.save(file)
    _print(dice_set, as_json)
