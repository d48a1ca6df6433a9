"""The journal on littlefs on a flash in memory, and what a failing power supply or a failing flash leaves of it.

    micropython power.py CONFIG OUT MODE [ARGUMENT...]

Writes one JSON object a line to OUT: what was done, what the host had been told by then, what it is told afterwards.
Nothing here says what is right; tests/table/power.py does.

    cuts OFFSET        the power fails at every program and erase of the rounds in `play`, clean and torn in turn;
                       OFFSET records stand in the newest segment before them (a rollover and a removal lie within)
    twice OFFSET STEP  the same at every STEP-th, and again at every program and erase of the boot that follows
    refuses OFFSET     instead the flash refuses from then on; the power fails when the rounds are over
    trace FILE STEP    the power fails at every STEP-th of the operations that another program has recorded
    full OFFSET BLOCKS so many blocks are left of the file system when the rounds begin
    wear IMAGE ROUNDS  erases of each block of this flash image over so many rounds
"""

import gc
import io
import json
import os
import sys

import vfs

from boards.virtual import flash
from dragoneye import journal, protocol, round
from dragoneye.config import read_config
from dragoneye.controller import Controller
from dragoneye.journal import Journal
from dragoneye.keys import Key
from dragoneye.text import dumps

ROOT = "/flash"
# A table with keys: its lines are the longer ones.
JOURNAL_KEY = Key(bytes(range(32)))


class PowerCut(Exception):
    """The power has failed: what runs has no more effect."""


class Flash(flash.FileFlash):
    """The Pico's flash in memory; counts the erases of each block."""

    def __init__(self, image):
        super().__init__(io.BytesIO(image), self._dies)
        self.cut_kind = None
        self.loses_power = True
        self.worn = None

    def _dies(self, kind):
        self.refuses = True
        if self.loses_power:
            self.cut_kind = kind

    def ioctl(self, op, arg):
        if op == 6 and self.worn is not None:
            self.worn[arg] += 1
        return super().ioctl(op, arg)

    def image(self):
        """Everything on it."""
        self._file.seek(0)
        return self._file.read()

    def write(self, at, data):
        """Put bytes there, as an operation of the flash would."""
        self._file.seek(at)
        self._file.write(data)

    def put(self, image):
        """The same as a new one, without new memory."""
        self._file.seek(0)
        self._file.write(image)
        self._left = None
        self.refuses = False
        self.cut_kind = None
        self.programs = self.erases = 0


class Host:
    """A host as simple as can be: it keeps each event once, in order, and is given as `known` what it starts with."""

    def __init__(self, known=None):
        self.kept = list(known.kept) if known else []
        self.last_event = known.last_event if known else 0
        self.last_round = known.last_round if known else 0
        self.streak = known.streak if known else None
        self.seq = 0
        # The answer to the last request, and the request while it has none.
        self.told = None
        self.asked = None
        # Results that the live state has shown.
        self.shown = []
        self.view = None
        self.journal = None

    def promised(self):
        """The last record that the journal has promised to keep, and its hash; [0, ""] when it was not even read."""
        return [self.journal.last_id, self.journal.head] if self.journal else [0, ""]

    def keep(self, text, link):
        record = json.loads(text)
        if record["id"] <= self.last_event:
            return
        self.last_event = record["id"]
        if record["k"] == "opened":
            self.last_round = record["d"]["round"]
        self.kept.append([text, link])


class Desk:
    """A controller on a mounted flash with a host at it. `alive` raises PowerCut when the power has failed."""

    def __init__(self, device, host, config):
        self.device = device
        self.host = host
        self.now = 0
        self.mounted = False
        # Whether requests may be refused.
        self.full = False
        self.config, self.pack, self.registry, _hash = config
        self.faces = {}
        for uid in self.registry:
            self.faces[self.registry[uid]] = uid
        try:
            root = vfs.VfsLfs2(device, progsize=256)
            vfs.mount(root, ROOT)
            self.mounted = True
            self.journal = host.journal = Journal(
                ROOT + "/journal", round.fold, round.initial, JOURNAL_KEY, round.SUPERSEDED
            )
            self.controller = Controller(
                self.journal, self.pack, self.registry, self.config["eye"], {"lockout_ms": 0}, {"uid": "U1"}, "power", 0
            )
            self.table = self.controller.table
            self.alive()
        except BaseException:
            self.off()
            raise

    def off(self):
        if self.mounted:
            vfs.umount(ROOT)
            self.mounted = False

    def alive(self):
        if self.device.cut_kind is not None:
            raise PowerCut

    def drain(self):
        """Take and acknowledge what the controller says."""
        while True:
            line = self.controller.next_line(self.now)
            # There is no board.
            self.table.take_effects()
            self.alive()
            if line is None:
                return
            _seq, value = protocol.decode(line)
            if "re" in value:
                self.host.told = value
            if "dice" in value.get("st", {}):
                self.host.shown.append([value["st"]["round"], value["st"]["dice"]])
            if "ev" in value:
                # As it was hashed: MicroPython keeps no order of keys.
                text = line.decode()
                self.host.keep(text[text.index('{"ev":') + 6 : text.rindex(',"h":')], value["h"])
                self.controller.receive(protocol.encode(0, {"ack": value["ev"]["id"]}), self.now)

    def ask(self, name, **fields):
        """A request and its answer. A refusal is an error of this script, unless the flash refuses as well."""
        self.host.seq += 1
        self.now += 10
        self.host.asked = [name, fields]
        self.host.told = None
        self.controller.receive(protocol.encode(self.host.seq, dict(fields, q=name)), self.now)
        self.drain()
        answer = self.host.told
        if answer is None or answer["re"] != self.host.seq:
            raise ValueError(name + " was not answered")
        self.host.asked = None
        if "ok" not in answer and not self.device.refuses and not self.full:
            raise ValueError(f"{name} {fields}: {answer}")
        return answer.get("ok")

    def hello(self):
        self.host.seq += 1000
        return self.ask("hello", major=1, minor=0, last_event=self.host.last_event, last_round=self.host.last_round)

    def tell(self, action, *args):
        self.now += 10
        self.controller.guard(self.now, getattr(self.table, action), *args)
        self.alive()
        self.drain()

    def lid(self, is_open):
        self.tell("lid", is_open)
        self.now += 100

    def shake(self):
        self.ask("shake")
        return self.table._roll

    def roll(self, dice):
        number = self.shake()
        self.now += 2000
        self.tell("shaken", number, True)
        self.now += 1000
        self.tell("tick")
        for _ in range(2):
            self.tell("tags", number, {self.faces[(die, 7 - value)] for die, value in enumerate(dice)})

    def reveal(self):
        self.ask("unlock")
        self.lid(True)
        self.lid(False)
        self.ask("finish")


def whole(desk, dice, bets, shaker=1):
    """A round from IDLE to IDLE."""
    desk.ask("open", shaker=shaker)
    for position in sorted(bets):
        desk.ask("bets", position=position, wagers=bets[position])
    desk.ask("close")
    desk.roll(dice)
    desk.reveal()


def play(desk):
    """What the power is cut in. A streak of one runs with the bonus of positions 2 and 3.

    A bonus is lowered; a roll is void; a triple is locked while bets are open; bets are changed and a player leaves
    after that; reveal; a round that a supervisor voids; one that the lid ends while bets are open, and no triple.
    """
    desk.ask("open", shaker=2)
    desk.ask("bets", position=1, wagers={"match": 500, "odd": 100})
    desk.ask("bets", position=5, wagers={"match": 300, "double": 100})
    desk.ask("bets", position=3, wagers={"bonus": 150})
    desk.shake()
    desk.lid(True)
    desk.lid(False)
    desk.roll([6, 6, 6])
    desk.ask("bets", position=1, wagers={"match": 700, "even": 200})
    desk.ask("leave", position=5)
    desk.ask("bets", position=2, wagers={"bonus": 50})
    desk.ask("close")
    desk.tell("service", True)
    desk.reveal()
    desk.tell("service", False)
    desk.ask("open", shaker=3)
    desk.ask("bets", position=4, wagers={"triple": 100})
    desk.ask("void", reason="wrong bets")
    desk.ask("open", shaker=0)
    desk.ask("bets", position=6, wagers={"match": 100})
    desk.roll([1, 2, 4])
    desk.ask("bets", position=6, wagers={"match": 200})
    desk.lid(True)
    desk.lid(False)
    desk.ask("finish")


def recover(device, host, config, said):
    """The power comes back: what the table says, the end of what was open, and one more round; all noted in `said`."""
    device.cut_kind = None
    device.refuses = False
    said["had"] = len(host.kept)
    desk = Desk(device, host, config)
    try:
        said["boot"] = desk.table.view(desk.now)
        desk.hello()
        if desk.table.state == protocol.FAULT:
            said["fault"] = desk.table.fault
            desk.ask("clear", code=desk.table.fault["code"])
        if desk.table.state == protocol.LOCKED:
            desk.reveal()
        said["between"] = desk.table.view(desk.now)
        whole(desk, [2, 2, 2], {6: {"match": 100}})
        said["end"] = desk.table.view(desk.now)
    finally:
        desk.off()


def configured(config_path):
    return read_config(config_path, config_path.rsplit("/", 1)[0] + "/board.json")


def prepare(config_path, offset):
    """(image, host) of a table that has played until `offset` records stand in the 24th segment."""
    device = Flash(b"\xff" * flash.BLOCK * flash.BLOCKS)
    vfs.VfsLfs2.mkfs(device, progsize=256)
    config = configured(config_path)
    host = Host()
    desk = Desk(device, host, config)
    desk.hello()
    most = journal.SEGMENTS_MAX * journal.SEGMENT_RECORDS - journal.SEGMENT_RECORDS + offset
    count = 0
    while desk.journal.last_id < most - 20:
        whole(desk, [4, 4, 4] if count % 7 < 2 else [1, 2, 3], {2: {"bonus": 200}, 3: {"bonus": 200}})
        count += 1
    whole(desk, [1, 2, 3], {})
    whole(desk, [4, 4, 4], {2: {"bonus": 200}, 3: {"bonus": 200}})
    held = False
    while desk.journal.last_id < most:
        held = not held
        desk.tell("service", held)
    desk.off()
    return device.image(), host, config


def begin(device, host, config, at, torn):
    """Play until the flash is asked for its `at`-th operation. False when the rounds were over before that."""
    desk = Desk(device, host, config)
    try:
        desk.hello()
        device.arm(at, torn)
        try:
            play(desk)
        except PowerCut:
            pass
        host.view = desk.table.view(desk.now)
        return device.refuses
    finally:
        desk.off()


def every(out, config_path, offset, step=1, loses_power=True):
    """(device, host, row) after each failure of the rounds in `play`; the rows before it go to `out`."""
    image, known, config = prepare(config_path, offset)
    out({"base": known.kept})
    device = Flash(image)
    device.loses_power = loses_power
    at = 1
    while True:
        for torn in (False, True):
            gc.collect()
            device.put(image)
            host = Host(known)
            if not begin(device, host, config, at, torn):
                out({"operations": at - 1})
                return
            asked, host.asked = host.asked, None
            yield device, host, config, {"at": at, "torn": torn, "asked": asked, "promised": host.promised()}
        at += step


def told(out, known, host, row):
    row["kept"] = host.kept[known:]
    out(row)


def cuts(out, config_path, offset):
    for device, host, config, row in every(out, config_path, offset):
        recover(device, host, config, row)
        told(out, out.base, host, row)


def twice(out, config_path, offset, step):
    for device, host, config, row in every(out, config_path, offset, step):
        image = device.image()
        at = 0
        over = False
        while not over:
            at += 1
            for torn in (False, True):
                device.put(image)
                again = Host(host)
                more = dict(row, again=at, torn_again=torn)
                device.arm(at, torn)
                try:
                    recover(device, again, config, more)
                except PowerCut:
                    pass
                # The boot is over, and the round that was open: what comes then is a round like any other.
                over = "between" in more
                if over:
                    break
                more["promised"] = max(more["promised"], again.promised())
                recover(device, again, config, more)
                told(out, out.base, again, more)
        gc.collect()


def refuses(out, config_path, offset):
    for device, host, config, row in every(out, config_path, offset, loses_power=False):
        row["shown"] = host.shown
        row["refused"] = host.view
        recover(device, host, config, row)
        told(out, out.base, host, row)


def trace(out, config_path, path, step):
    """The lines of `path`: {"image": path}, then {"op", "at", "data" in hex} and {"kept": [text, hash]} in order."""
    config = configured(config_path)
    known = Host()
    device = None
    count = 0
    out({"base": []})
    with open(path) as file:
        for line in file:
            item = json.loads(line)
            if "image" in item:
                with open(item["image"], "rb") as image:
                    device = Flash(image.read())
            elif "kept" in item:
                known.keep(*item["kept"])
            else:
                data = bytes.fromhex(item["data"]) if item["data"] else flash.ERASED
                image = device.image()
                count += 1
                for torn in (False, True) if count % step == 0 else ():
                    if torn:
                        device.write(item["at"], data[: len(data) // 2])
                    host = Host(known)
                    row = {"at": count, "torn": torn, "asked": None, "promised": [0, ""]}
                    recover(device, host, config, row)
                    told(out, 0, host, row)
                    device.put(image)
                device.write(item["at"], data)
                gc.collect()
    out({"operations": count})


def full(out, config_path, offset, blocks):
    image, known, config = prepare(config_path, offset)
    out({"base": known.kept})
    device = Flash(image)
    host = Host(known)
    desk = Desk(device, host, config)
    desk.hello()
    filled = 0
    try:
        while True:
            with open(f"{ROOT}/fill{filled}", "wb") as file:
                filled += 1
                file.write(bytes(flash.BLOCK))
    except OSError:
        pass
    for number in range(max(0, filled - 1 - blocks), filled):
        os.remove(f"{ROOT}/fill{number}")
    free = os.statvfs(ROOT)
    desk.full = True
    play(desk)
    row = {"blocks": blocks, "free": free[3], "fault": desk.table.fault, "shown": host.shown, "had": len(host.kept)}
    row["promised"] = host.promised()
    for number in range(max(0, filled - 1 - blocks)):
        os.remove(f"{ROOT}/fill{number}")
    desk.full = False
    if desk.table.fault is not None:
        desk.ask("clear", code="JOURNAL")
    row["cleared"] = desk.table.view(desk.now)
    told(out, out.base, host, row)
    desk.off()


def wear(out, config_path, path, rounds):
    with open(path, "rb") as image:
        device = Flash(image.read())
    config = configured(config_path)
    host = Host()
    desk = Desk(device, host, config)
    desk.hello()
    device.worn = [0] * flash.BLOCKS
    device.programs = 0
    first = desk.journal.last_id
    for count in range(rounds):
        dice = [count % 6 + 1, count // 6 % 6 + 1, count // 36 % 6 + 1]
        whole(desk, dice, {1: {"match": 500, "odd": 100}, 2: {"even": 200}, 6: {"bonus": 100}}, count % 6 + 1)
        host.kept = []
    free = os.statvfs(ROOT)
    desk.off()
    out(
        {
            "rounds": rounds,
            "records": desk.journal.last_id - first,
            "programs": device.programs,
            "erases": device.worn,
            "free": free[3],
        }
    )


class Writer:
    """Writes rows; `base` is how many records the host knows at the start."""

    def __init__(self, path):
        self._file = open(path, "w")  # noqa: SIM115 - until the end
        self.base = 0

    def __call__(self, value):
        if "base" in value:
            self.base = len(value["base"])
        self._file.write(dumps(value) + "\n")


def main():
    config, path, mode = sys.argv[1:4]
    arguments = [int(word) if word.isdigit() else word for word in sys.argv[4:]]
    modes = {"cuts": cuts, "twice": twice, "refuses": refuses, "trace": trace, "full": full, "wear": wear}
    modes[mode](Writer(path), config, *arguments)


main()
