"""The app: tasks that join the controller to the board. Started by main.py; outputs are safe on every way out."""

import asyncio
import gc
import os
import sys
import time

from dragoneye import __version__, heap, installed, keys, round, service
from dragoneye.controller import Controller
from dragoneye.journal import Journal
from dragoneye.protocol import READING, ROLLING, SHAKING, TEST
from dragoneye.rules import packs, reading

# Each import leaves 2 kB of garbage behind, the file's buffers: the rest shall lie there, not above it.
heap.mark_modules_first(None)
heap.collect()

from dragoneye import selftest  # noqa: E402
from dragoneye.config import (  # noqa: E402
    WATCHDOG_MS,
    check_readers,
    dice_set_of,
    read_board,
    read_config,
    read_dice,
    write_dice,
)
from dragoneye.drivers import board as parts  # noqa: E402
from dragoneye.drivers.console import Console  # noqa: E402
from dragoneye.drivers.mfrc522 import ReaderFault  # noqa: E402
from dragoneye.signals import Signals  # noqa: E402

TICK_MS = 5
# A task that comes back later than this has been held up (design: no task holds the loop longer).
LATE_MS = 20
# Collect while nothing moves: a collection stops everything for some milliseconds. Often, so that the heap is never
# full of garbage with what lives long scattered in it.
COLLECT_MS = 250
# While the journal is read.
COLLECT_LINES = 16
# The watchdog is fed only while every task has run within this time.
STALLED_MS = 3000
# The answer to a request for maintenance, and its record, have this long to reach the host.
GOODBYE_MS = 1500
# A host that has read nothing for so long is gone; what it did not take is sent again to the next one.
DEAF_MS = 5000
# The motor coasts for this long; current after that while it is off means that it is stuck on.
COAST_MS = 500
# Ring and buzzer: the shortest tone is 30 ms.
SIGNAL_MS = 25
# Of a table's name, and of its languages, in `hello`: characters.
NAME_MAX = 40
# A new firmware on trial has proved itself when a host has said hello, or after so long.
PROVED_MS = 20000
# The clock is set back when it gets there, and counts what a meter has seen in units of this: MicroPython keeps numbers
# from 2**30 on in the heap, and every sum would be garbage.
SMALL = 1 << 29
# Between two looks at the readers while nothing rolls.
READERS_MS = 1000

JOURNAL = "/journal"
# A byte for each start with the service key (main.py).
SERVICE = "/service"
TASKS = ("input", "output", "table", "memory", "signals")


class Clock:
    """Milliseconds that only `set_back` sets back, past the wrap of ticks_ms after 12.4 days."""

    def __init__(self):
        self._last = time.ticks_ms()
        self._total = 0

    def now(self):
        """Milliseconds since the clock was made or set back; call it at least once in six days."""
        ticks = time.ticks_ms()
        self._total += time.ticks_diff(ticks, self._last)
        self._last = ticks
        return self._total

    def set_back(self):
        """From now on it tells SMALL less."""
        self._total -= SMALL


class Meter:
    """Count, longest and mean run of a task, and how often it came too late.

    `written()` is how many microseconds went into journal writes so far, modulo SMALL: those have a line of their own
    and are left out of the runs.
    """

    def __init__(self, written):
        # Both count to SMALL and then again.
        self.count = 0
        self.us = 0
        self._counts = 0
        self._sums = 0
        self.max_us = 0
        self.late = 0
        self._written = written
        self._before = 0
        self.began = time.ticks_us()
        self._ended = self.began

    def begin(self, expected_ms):
        """The task runs again; it had asked to sleep for `expected_ms`."""
        self.began = time.ticks_us()
        self._before = self._written()
        if self.count and time.ticks_diff(self.began, self._ended) > (expected_ms + LATE_MS) * 1000:
            self.late += 1

    def end(self):
        """The task goes to sleep."""
        self._ended = time.ticks_us()
        self.add(time.ticks_diff(self._ended, self.began) - ((self._written() - self._before) & (SMALL - 1)))

    def add(self, spent):
        """A run of so many microseconds."""
        self.count += 1
        if self.count == SMALL:
            self.count = 0
            self._counts += 1
        self.us += spent
        if self.us >= SMALL:
            self.us -= SMALL
            self._sums += 1
        if spent > self.max_us:
            self.max_us = spent

    def row(self):
        """[runs, longest in microseconds, mean in microseconds, late]."""
        count = self._counts * SMALL + self.count
        return [count, self.max_us, (self._sums * SMALL + self.us) // count if count else 0, self.late]


class MeteredJournal(Journal):
    """A journal that says how long its writes take, from the record's making to the last page, and its erases."""

    def __init__(self, folder, fold, initial, key, superseded):
        super().__init__(folder, fold, initial, key, superseded)
        self.meter = Meter(lambda: 0)

    def _take(self, line, number, first):
        super()._take(line, number, first)
        # Else the heap would fill up, at a place from where a collection takes twice as long.
        if not number % COLLECT_LINES:
            heap.collect()

    def append(self, kind, data, boot, ticks):
        began = time.ticks_us()
        try:
            return super().append(kind, data, boot, ticks)
        finally:
            self.meter.add(time.ticks_diff(time.ticks_us(), began))

    def prepare(self):
        began = time.ticks_us()
        try:
            super().prepare()
        finally:
            self.meter.add(time.ticks_diff(time.ticks_us(), began))


class App:
    """One running table."""

    # See Controller.set_back.
    TIMES = ("_heard_at", "_moved_at", "_readers_at", "_prove_at")

    def __init__(self):
        self.clock = Clock()
        data, words = read_board()
        try:
            config, pack, registry, config_hash = read_config()
            check_readers(config, data["pins"])
            self._dice_over = dice_set_of(config)["hash"]
            registered = read_dice(self._dice_over)
            if registered is not None:
                config.update(registered)
                registry = reading.registry_of(config["dice"])
            dice_set = dice_set_of(config)
        except ValueError as error:
            if words is None:
                words = str(error)
            elif "/board.json" not in str(error):
                words = "%s; %s" % (words, error)
            config, pack, registry, config_hash = {"eye": 0}, packs.load("nj"), {}, ""
            dice_set = None
            self._dice_over = ""
        key_id = locks = damage = None
        try:
            key_id, locks = keys.read_keys() or (None, None)
        except ValueError as error:
            damage = str(error)
            words = damage if words is None else "%s; %s" % (words, damage)
        # What the imports and the configuration left; what the table and the journal take shall lie low.
        heap.mark_modules_first(sys.modules[__name__])
        heap.collect(pack, registry)
        self._data = data
        cause = parts.reset_cause(data["pins"])
        self.board = parts.Board(data, config)
        # From here on a hang is a reset. What fails before leaves the prompt, for a technician to look at.
        self.board.watch(config.get("watchdog_ms", WATCHDOG_MS))
        self.console = Console()
        key = None if locks is None else locks[keys.JOURNAL]
        journal = MeteredJournal(JOURNAL, round.fold, round.initial, key, round.SUPERSEDED)
        self.meters = {name: Meter(lambda: journal.meter.us) for name in TASKS}
        self.journal_meter = journal.meter
        self.signals = Signals(self.board.ring.pixels)
        # Since the start; what a part is good for is counted in these.
        self.cycles = {"shakes": 0, "lid": 0, "lock": 0}
        # Passes of the readers for `sensors`, and what the last one saw.
        self._passes = 0
        self._seen = []
        # The task that has the readers in test mode: the self-test or a pass for `sensors`.
        self._service_task = None
        identity = {
            "fw": __version__,
            "build": installed.build(),
            "board": data["name"],
            "uid": parts.unique_id(),
            "micropython": "%d.%d.%d" % sys.implementation[1][:3],
            "pack_hash": pack.hash(),
            "config_hash": config_hash,
            "key_id": key_id,
            "locked": config.get("locked", False),
            "name": config.get("name", "")[:NAME_MAX],
            "languages": " ".join(config.get("languages", ()))[:NAME_MAX],
        }
        self.controller = Controller(
            journal,
            pack,
            registry,
            config["eye"],
            config.get("settings", {}),
            identity,
            cause,
            self.clock.now(),
            None if words is None else ("CONFIG", words),
            len(self.board.reader.gains),
            dice_set,
            keys.Gate(identity["uid"], os.urandom(keys.NONCE_BYTES), locks, damage),
        )
        # The journal was read, which took the longest of all.
        self.board.feed()
        self.controller.more_stats = self._stats
        self.controller.more_sensors = self._sensors
        self.controller.start_survey = self._survey
        # When the firmware on trial shall be told that it is good; None for one that is not on trial, or not any more.
        self._prove_at = self.clock.now() if installed.on_trial() else None
        self.controller.table.save_dice = self._save_dice
        self.controller.table.stop_now = self.board.still
        self._heard_at = self.clock.now()
        self._shake_task = None
        # What was told while the lock's pulse lasted.
        self._held = []
        self._moved_at = self.clock.now()
        # The readers need a moment after their reset.
        self._readers_at = self.clock.now() - READERS_MS + TICK_MS
        self.report(self.controller.table.lid, not self.board.lid.active)
        self.report(self.controller.table.tamper, not self.board.tamper.active)
        self._note_service_key()

    def _note_service_key(self):
        """Record the starts with the service key, which main.py has counted, since the last one that was recorded."""
        try:
            times = os.stat(SERVICE)[6]
        except OSError:
            return
        if self.controller.note_service(times, self.clock.now()):
            try:
                os.remove(SERVICE)
            except OSError:
                # The next start records them once more: rather twice than no start at all.
                pass

    def _stats(self):
        return {
            "free": gc.mem_free(),
            "overlong": self.console.overlong,
            "tasks": {name: self.meters[name].row() for name in self.meters},
            "writes": self.journal_meter.row()[:3],
        }

    def _sensors(self):
        board = self.board
        table = self.controller.table
        readers = None
        if table.beneath == TEST:
            readers = [dict(one, tags=self._named(one["tags"])) for one in self._seen]
        return {
            "pass": self._passes,
            "readers": readers,
            "motor_ma": board.shaker.milliamps(),
            "supply_mv": board.supply_mv(),
            "lid": "shut" if board.lid.active else "open",
            "tamper": "shut" if board.tamper.active else "open",
            "button": "pressed" if board.button.active else "up",
            "service": "on" if board.service.active else "off",
            "cycles": dict(self.cycles),
        }

    def _save_dice(self, stored):
        self.board.still()
        return write_dice(stored, self._dice_over)

    def _named(self, tags):
        """Tags as [UID, die 1..3 or 0 for none of ours, value that the die shows]."""
        if tags is None:
            return None
        named = []
        for uid in tags:
            die, face = self.controller.table.registry.get(uid, (-1, 7))
            named.append([uid, die + 1, 7 - face])
        return named

    def report(self, action, *args):
        """Tell the table something: now, or when the lock's pulse is over, as a record would cut the pulse short."""
        if self.board.lock.active:
            self._held.append((action, args))
        else:
            self.controller.guard(self.clock.now(), action, *args)

    def collect(self):
        """Collect garbage, which holds everything up."""
        table = self.controller.table
        heap.collect(table.pack, table.registry, table.result)

    async def run(self):
        """Run until something ends it; never returns by itself."""
        tasks = [
            asyncio.create_task(self._keep("input", self._input)),
            asyncio.create_task(self._keep("output", self._output)),
            asyncio.create_task(self._keep("signals", self._signal)),
            asyncio.create_task(self._keep("memory", self._memory)),
        ]
        # Starting leaves a heap full of garbage; the first collection shall not come in the midst of a task.
        self.collect()
        try:
            await self._keep("table", self._table)
        finally:
            self.board.safe()
            for task in tasks:
                task.cancel()

    async def _keep(self, name, job):
        """Run `job` again when it dies: the motor stops and a fault is latched, but the table goes on talking."""
        while True:
            try:
                await job()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                self._died(name, error)
            await asyncio.sleep_ms(200)

    def _died(self, name, error):
        self.board.safe()
        self.report(self.controller.table.set_fault, "TASK", "%s: %r" % (name, error))

    async def _input(self):
        meter = self.meters["input"]
        while True:
            meter.begin(TICK_MS)
            # A request may write to flash, and that would lengthen the lock's pulse: it waits until that is over.
            line = None if self.board.lock.active else self.console.read_line()
            meter.end()
            if line is not None:
                # What it asks for is a run of its own.
                await asyncio.sleep_ms(0)
                meter.begin(0)
                self.controller.receive(line, self.clock.now())
                meter.end()
            await asyncio.sleep_ms(0 if line is not None else TICK_MS)

    async def _output(self):
        meter = self.meters["output"]
        while True:
            meter.begin(TICK_MS)
            if self.console.idle:
                # Finding the next line is a run of its own.
                line = self.controller.next_line(self.clock.now())
                if line is not None:
                    self.console.put(line)
                    self._heard_at = self.clock.now()
            elif self.console.write_some():
                self._heard_at = self.clock.now()
            elif self.clock.now() - self._heard_at > DEAF_MS:
                self.console.drop()
                self.controller.disconnected()
            meter.end()
            await asyncio.sleep_ms(TICK_MS if self.console.idle else 1)

    async def _signal(self):
        meter = self.meters["signals"]
        table = self.controller.table
        while True:
            meter.begin(SIGNAL_MS)
            now = self.clock.now()
            self.signals.show(table.state, table.call, now)
            self.board.ring.show(*self.signals.ring(now))
            self.board.buzzer.sound(self.signals.hertz(now))
            meter.end()
            await asyncio.sleep_ms(SIGNAL_MS)

    async def _table(self):
        meter = self.meters["table"]
        table = self.controller.table
        tick = table.tick
        while True:
            meter.begin(TICK_MS)
            if not self.board.lock.active:
                while self._held:
                    action, args = self._held.pop(0)
                    self.report(action, *args)
                self._inputs()
                self.controller.guard(self.clock.now(), tick)
            if table.effects:
                self._effects()
            if self._all_run():
                self.board.feed()
            meter.end()
            await asyncio.sleep_ms(TICK_MS)

    def _all_run(self):
        now = time.ticks_us()
        for name in TASKS:  # noqa: SIM110 - a generator is garbage
            if time.ticks_diff(now, self.meters[name].began) > STALLED_MS * 1000:
                return False
        return True

    async def _memory(self):
        while True:
            await asyncio.sleep_ms(COLLECT_MS)
            self._collect(COLLECT_MS)
            if self.clock.now() >= SMALL and self.controller.table.may_stop and not self.controller.table.leaving:
                self.clock.set_back()
                self.controller.set_back(SMALL, self, self.signals)
            if self._prove_at is not None and self.controller.table.may_stop:
                self._prove()

    def _prove(self):
        """This firmware stays, when it has proved itself."""
        now = self.clock.now()
        if now >= self._prove_at and (self.controller.greeted or now > PROVED_MS) and not self.board.lock.active:
            self.board.still()
            try:
                installed.prove()
                self._prove_at = None
            except OSError as error:
                # Else a later start would take the firmware before this one, and nobody know why.
                self._prove_at = now + PROVED_MS
                self._died("trial", error)

    def _survey(self, seed):
        survey = installed.Survey(seed)
        asyncio.create_task(self._guarded("verify", self._go_over(survey)))
        return survey

    async def _go_over(self, survey):
        while survey.running:
            if survey is not self.controller.survey:
                # A later one has taken its place.
                return
            if not self.controller.table.may_stop:
                survey.stop("a round was opened")
                return
            survey.step()
            await asyncio.sleep_ms(1)

    def _collect(self, waited_ms):
        """Collect, unless the dice roll."""
        meter = self.meters["memory"]
        meter.begin(waited_ms)
        moving = self.controller.table.state in ROLLING or self.board.shaker.running
        if not moving or not waited_ms:
            self.collect()
        meter.end()

    def _inputs(self):
        board = self.board
        table = self.controller.table
        now = self.clock.now()
        # An edge while the dice roll voids the roll, even when it was too short to change the debounced state.
        edge = board.lid.take_edge()
        if board.lid.poll():
            if not board.lid.active:
                self.cycles["lid"] += 1
            self.report(table.lid, not board.lid.active)
        elif edge:
            self.report(table.lid_moved)
        edge = board.tamper.take_edge()
        if board.tamper.poll():
            self.report(table.tamper, not board.tamper.active)
        elif edge:
            self.report(table.tamper_moved)
        if board.service.poll():
            self.report(table.service, board.service.active)
        if board.button.poll() and board.button.active:
            self.report(table.button)
        self.report(table.supply, board.supply_low())
        if table.state == SHAKING or board.shaker.running:
            self._moved_at = now
        elif now - self._moved_at > COAST_MS:
            stuck = board.motor_stuck()
            table.standing["MOTOR_STUCK"] = "the motor still draws current" if stuck else None
            if stuck:
                self.report(table.set_fault, "MOTOR_STUCK", "%d mA while off" % board.shaker.milliamps())
        if table.state not in ROLLING and now - self._readers_at > READERS_MS and not board.reader.busy:
            self._readers_at = now
            self._reader_trouble(board.reader.trouble())

    def _reader_trouble(self, words):
        """A reader does not answer as it should, as `words` say, or (None) all do again."""
        table = self.controller.table
        table.standing["READER"] = words
        if words:
            self.report(table.set_fault, "READER", words)

    def _effects(self):
        for effect, value in self.controller.table.take_effects():
            if effect == service.STOP:
                if self._shake_task is not None:
                    self._shake_task.cancel()
                    self._shake_task = None
                if self._service_task is not None:
                    self._service_task.cancel()
                    self._service_task = None
                self.board.shaker.off()
            elif effect == round.SHAKE:
                self.cycles["shakes"] += 1
                self._shake_task = asyncio.create_task(self._guarded("shaker", self._shake(*value)))
            elif effect == round.READ:
                asyncio.create_task(self._guarded("reader", self._read(*value)))
            elif effect == round.UNLOCK:
                self.cycles["lock"] += 1
                self.board.lock.pulse()
            elif effect == round.REFUSED:
                self.signals.refused(self.clock.now())
            elif effect == service.SELFTEST:
                if self._service_task is not None:
                    self._service_task.cancel()
                self._service_task = asyncio.create_task(self._serve("selftest", self._selftest()))
            elif effect == service.SURVEY and self._service_task is None:
                self._service_task = asyncio.create_task(self._serve("survey", self._look(value)))
            elif effect == service.MAINTENANCE:
                asyncio.create_task(self._guarded("maintenance", self._maintain()))

    async def _serve(self, name, job):
        await self._guarded(name, job)
        # Not when it was cancelled: another may have taken its place.
        self._service_task = None

    async def _selftest(self):
        table = self.controller.table
        rows = await selftest.run(
            self.board,
            self._data,
            self.controller.identity,
            table.registry,
            table.fault is None,
            asyncio.sleep_ms,
            asyncio.create_task,
        )
        self.report(table.tested, rows)

    async def _look(self, step):
        self._seen = await self.board.reader.survey(step)
        self._passes += 1

    async def _guarded(self, name, job):
        try:
            await job
        except asyncio.CancelledError:
            raise
        except ReaderFault as error:
            self._reader_trouble(str(error))
        except Exception as error:
            self._died(name, error)

    async def _shake(self, roll, jolts):
        # The last moment at which nothing moves: the shake shall not need a collection of its own.
        self._collect(0)
        await asyncio.sleep_ms(0)
        moved = not self._lid_moved() and await self.board.shaker.run(jolts, roll)
        self._shake_task = None
        if moved or not self._lid_moved():
            self.report(self.controller.table.shaken, roll, moved)

    def _lid_moved(self):
        """Tell the table when the lid is not shut: its interrupt stops the motor before the state is debounced."""
        if self.board.lid.moved:
            self.report(self.controller.table.lid_moved)
            return True
        return False

    async def _maintain(self):
        self.controller.stopped("maintenance", self.clock.now())
        until = self.clock.now() + GOODBYE_MS
        while self.clock.now() < until and not (self.controller.delivered and self.console.idle):
            await asyncio.sleep_ms(TICK_MS)
        # What the console has given away is still on its way to the host.
        await asyncio.sleep_ms(100)
        self.board.safe()
        try:
            parts.restart_for_maintenance()
        finally:
            self.controller.table.leaving = False

    async def _motor_rests(self):
        """Wait until the motor draws no current any more. False: the reading is over before that.

        One that never stops is found by `_inputs`, or the time for the reading runs out.
        """
        while self.board.motor_draws():
            await asyncio.sleep_ms(TICK_MS)
            if self.controller.table.state != READING:
                return False
        return True

    async def _read(self, roll, step):
        table = self.controller.table
        while True:
            if not await self._motor_rests():
                return
            tags = await self.board.reader.scan(step)
            # Also after the pass: nothing is locked that was read while the motor was driven.
            if not await self._motor_rests():
                return
            self.report(table.tags, roll, tags)
            # The next pass shall not wait for the table's next turn.
            if not table.effects or table.effects[0][0] != round.READ:
                return
            roll, step = table.effects.pop(0)[1]


def start():
    """Run the table until something ends it; the motor is off afterwards, whatever happened, and the record says why.

    The armed watchdog then brings the table back, unless a reset comes first. Ctrl-C ends it as well, but for a locked
    table (main.py): otherwise mpremote could not get in, and a byte of noise costs the table no more than this.
    """
    app = App()
    why = "returned"
    try:
        asyncio.run(app.run())
    except KeyboardInterrupt:
        why = "interrupted"
        raise
    except BaseException as error:
        why = repr(error)
        raise
    finally:
        app.board.safe()
        app.controller.stopped(why, app.clock.now())
