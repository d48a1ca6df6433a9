"""What runs inside MicroPython's unix port and makes it a Pico on the virtual table; started by the bench.

    micropython -X heapsize=480k start.py IN OUT

IN and OUT are the numbers of two open pipes to and from the bench, one JSON object a line; the first line in says what
kind of start this is. Standard input and output are the Pico's USB serial port.

The program's world is the Pico's: `/` is a littlefs on a flash image, `machine` and `neopixel` are the virtual table's,
ticks wrap at 2**30, sys.path is the rp2 port's. The computer's own files are under /pc.
"""

import asyncio
import gc
import io
import json
import os
import select
import sys
import time

import micropython
import vfs

REPO = __file__.rsplit("/", 3)[0]
sys.path[:] = [REPO, ".frozen"]

from boards.virtual import flash, machine, model, wiring  # noqa: E402

sys.modules["machine"] = machine

from boards.virtual import neopixel  # noqa: E402

TICKS_MASK = 0x3FFFFFFF  # rp2: MICROPY_PY_TIME_TICKS_PERIOD is 2**30; the 64-bit unix port's is 2**62
TICKS_HALF = 0x20000000
YEAR_2021 = 1609459200  # where the Pico's clock stands after power-on

ticks_us = time.ticks_us
sleep_us = time.sleep_us


class Host:
    """The board's side of the bench: control pipe, table model, and the pump that serves both."""

    def __init__(self, receive, send):
        self._in = receive
        self._out = send
        self._poll = select.poll()
        self._poll.register(receive, select.POLLIN)
        self._busy = False
        self._interrupted = False
        # The board's own, which the bench hears of later; the rp2 port has no USB before main.py.
        self.interrupt_char = -1
        self._seen = 0
        self.started_us = ticks_us()
        self.boot = json.loads(self._in.readline())
        self.uid = bytes.fromhex(self.boot["uid"])
        self.cause = self.boot["cause"]
        self.table = model.Model(self.boot["seed"], self.boot["table"], self.boot["tags"], ticks_us())
        self.wiring = wiring.Wiring(self.boot["board"], self.table, ticks_us)
        self.wiring.on_log = self._log
        self.flash = None

    def clock(self):
        return ticks_us()

    def send(self, message):
        self._out.write(json.dumps(message) + "\n")

    def _log(self, entry):
        self.send({"log": entry})

    def touch(self):
        """Tell the bench what now lies on the table, if that changed: it keeps this over a power cut."""
        if self._seen != self.table.changed:
            self._seen = self.table.changed
            self.send({"table": self.table.saved()})

    def glance(self):
        """The pump after a flash operation: no KeyboardInterrupt may leave the middle of littlefs."""
        self.pump(0, False)

    def pump(self, wait_ms=0, interrupt=True):
        """Serve the bench, the model, interrupts and timers; waits that long at most for the bench to say something."""
        if self._busy:
            return
        self._busy = True
        try:
            while self._poll.poll(wait_ms):
                line = self._in.readline()
                if not line:  # the bench is gone, and with it the power
                    self.die()
                self._handle(json.loads(line))
                wait_ms = 0
            now = ticks_us()
            self.wiring.advance(now)
            machine.serve(now)
            self.touch()
        finally:
            self._busy = False
        if self._interrupted and interrupt:
            self._interrupted = False
            raise KeyboardInterrupt

    def _handle(self, message):
        if "interrupt" in message:
            self._interrupted = self.interrupt_char >= 0
            self.send({"interrupted": 1})
            return
        answer = {"reply": message["id"]}
        name = message["do"]
        args = message["args"]
        try:
            if name == "state":
                answer["result"] = self.state()
            elif name == "cut":
                self.flash.arm(args["at"], args["torn"], args["only"])
                answer["result"] = {}
            else:
                for _ in range(args.pop("bounce", 0)):  # a bouncing contact: there and back again, each an edge
                    self.table.command(ticks_us(), name, args)
                    machine.serve(ticks_us())
                    self.table.command(ticks_us(), name, wiring.BACK[name])
                    machine.serve(ticks_us())
                answer["result"] = self.table.command(ticks_us(), name, args)
                if name in wiring.SWITCHES:
                    self.wiring.note(name, args.get("to", "press"))
        except model.Refused as error:
            answer["error"] = str(error)
        # Before the answer: whoever has it may cut the power at once.
        self.touch()
        self.send(answer)

    def state(self):
        state = self.table.state(ticks_us())
        state["flash"] = {"programs": self.flash.programs, "erases": self.flash.erases}
        state["memory"] = {"free": gc.mem_free(), "used": gc.mem_alloc()}
        state["readers"] = self.wiring.readers_state()
        state["up_ms"] = (ticks_us() - self.started_us) // 1000
        return state

    def sleep_us(self, us):
        """Sleep as the Pico would: interrupts and timers go on."""
        end = ticks_us() + us
        self.pump()
        while True:
            left = end - ticks_us()
            if left <= 0:
                return
            wait = min(left, 20000)
            for due in (self.wiring.due(), machine.due()):
                if due is not None:
                    wait = min(wait, max(0, due - ticks_us()))
            if wait >= 1000 and not self._busy:
                self.pump(wait // 1000)
            else:
                sleep_us(max(1, wait))
                self.pump()

    def idle_ms(self):
        """How long a wait may last before a timer or the model is due."""
        wait = 20
        for due in (self.wiring.due(), machine.due()):
            if due is not None:
                wait = min(wait, max(0, (due - ticks_us()) // 1000))
        return wait

    # --- ways to end ---------------------------------------------------------------------------------------------

    def stop_here(self):
        """Do nothing until the bench ends this process."""
        while True:
            try:
                sleep_us(1000000)
            except BaseException:
                pass

    def reset(self):
        self.send({"reset": machine.WDT_RESET})
        self.stop_here()

    def soft_reset(self):
        raise SystemExit

    def cut(self, kind):
        self.send({"cut": kind})
        self.stop_here()

    def die(self):
        # There is no os.kill here; the shell's parent is this process.
        while True:
            os.system("kill -9 $PPID")


class Module:
    """A stand-in for a built-in module, whose own attributes cannot be changed."""

    def __init__(self, real):
        for name in dir(real):
            if name[:2] != "__":
                setattr(self, name, getattr(real, name))
        self.__name__ = real.__name__


def make_time(host, offset_ms):
    """`time` as on the Pico: ticks wrap at 2**30 (from `offset_ms` on), sleeping serves interrupts, no clock chip."""
    shim = Module(time)
    offset_us = offset_ms * 1000 - host.started_us
    start_time = time.time()
    offset_ms = offset_us // 1000
    ticks_ms = time.ticks_ms

    # No star arguments and no floats here: these are called in hard interrupt handlers, where nothing may be allocated.
    def wrapped_us():
        return (ticks_us() + offset_us) & TICKS_MASK

    def wrapped_ms():
        return (ticks_ms() + offset_ms) & TICKS_MASK

    def ticks_diff(end, start):
        return ((end - start + TICKS_HALF) & TICKS_MASK) - TICKS_HALF

    def ticks_add(ticks, delta):
        if not -TICKS_HALF < delta < TICKS_HALF:
            raise OverflowError("ticks interval overflow")
        return (ticks + delta) & TICKS_MASK

    shim.ticks_us = shim.ticks_cpu = wrapped_us
    shim.ticks_ms = wrapped_ms
    shim.ticks_diff = ticks_diff
    shim.ticks_add = ticks_add
    shim.sleep = lambda seconds: host.sleep_us(int(seconds * 1000000))
    shim.sleep_ms = lambda ms: host.sleep_us(int(ms * 1000))
    shim.sleep_us = lambda us: host.sleep_us(int(us))
    shim.time = lambda: int(time.time() - start_time) + YEAR_2021
    shim.time_ns = lambda: shim.time() * 1000000000
    return shim


def make_micropython(host):
    """`micropython` whose kbd_intr tells the bench which byte interrupts (the unix port's would change a signal)."""
    shim = Module(micropython)

    def kbd_intr(char):
        host.interrupt_char = char
        host.send({"kbd_intr": char})

    shim.kbd_intr = kbd_intr
    return shim


def make_os():
    shim = Module(os)
    uname = ("rp2", "rp2", "1.29.0", "MicroPython on the virtual table", "Raspberry Pi Pico with RP2040")
    shim.uname = lambda: uname
    shim.sync = lambda: None
    del shim.system  # the Pico has no shell

    def hide(names, path):  # the computer's files are no part of the Pico's root
        at_root = path == "/" or (path in ("", ".") and os.getcwd() == "/")
        return [name for name in names if not (at_root and (name == "pc" or name[0] == "pc"))]

    shim.listdir = lambda path="": hide(os.listdir(path), path)
    shim.ilistdir = lambda path="": iter(hide(os.ilistdir(path), path))
    return shim


def install_pump(host):
    """Keep the pump going in every asyncio loop the program runs.

    MicroPython keeps tasks that were made before `asyncio.run`; an exception that ends the loop (Ctrl-C) may end a pump
    task as well, and new_event_loop forgets them all, so they are checked at every start of a loop.
    """
    core = asyncio.core
    alive = {}

    def start(name, function):
        async def run():
            try:
                await function()
            finally:
                alive[name] = False

        if not alive.get(name):
            alive[name] = True
            core.create_task(run())

    async def listen():  # wakes the loop as soon as the bench says something
        while True:
            yield core._io_queue.queue_read(host._in)
            host.pump()

    async def tick():
        while True:
            host.pump()
            await core.sleep_ms(host.idle_ms())

    run_until_complete = core.run_until_complete
    new_event_loop = core.new_event_loop

    def run_with_pump(main_task=None):
        start("listen", listen)
        start("tick", tick)
        return run_until_complete(main_task)

    def fresh_event_loop():
        alive.clear()
        return new_event_loop()

    core.run_until_complete = run_with_pump
    core.new_event_loop = asyncio.new_event_loop = fresh_event_loop


def mount(host):
    """The computer's files to /pc, the flash image to /, as the Pico's own _boot.py does it (and as harshly)."""
    image = open(host.boot["image"], "r+b")  # noqa: SIM115 - open as long as the board runs
    host.flash = flash.FileFlash(image, host.cut, host.glance)
    if host.boot["cut"]:
        host.flash.arm(host.boot["cut"]["at"], host.boot["cut"]["torn"], host.boot["cut"]["only"])
    vfs.umount("/")
    vfs.mount(vfs.VfsPosix("/"), "/pc")
    try:
        root = vfs.VfsLfs2(host.flash, progsize=256)
    except OSError:  # whatever the error: the flash is formatted anew (ports/rp2/modules/_boot.py)
        vfs.VfsLfs2.mkfs(host.flash, progsize=256)
        root = vfs.VfsLfs2(host.flash, progsize=256)
    vfs.mount(root, "/")
    os.chdir("/")


def provision(source, target):
    """Copy a folder's files to the root of a new flash, as a technician does by cable."""
    for name, kind, *_ in os.ilistdir(source):
        if kind & 0x4000:
            try:
                os.mkdir(target + name)
            except OSError:
                pass
            provision(source + "/" + name, target + name + "/")
        elif not is_file(target + name):
            with open(source + "/" + name, "rb") as one, open(target + name, "wb") as other:
                while True:
                    data = one.read(1024)
                    if not data:
                        break
                    other.write(data)


def is_file(path):
    try:
        return bool(os.stat(path)[0] & 0x8000)
    except OSError:
        return False


def run_file(name, firmware, names):
    """Run boot.py or main.py from the flash, or else from the firmware's sources. True: it ended without an error.

    The rp2 port runs both in one namespace, prints what ends them, takes SystemExit as a soft reset, and switches
    Ctrl-C on for each (shared/runtime/pyexec.c), but there is no USB yet for the first.
    """
    path = "/" + name if is_file("/" + name) else firmware + "/" + name
    if not is_file(path):
        return True
    sys.modules["micropython"].kbd_intr(-1 if name == "boot.py" else 3)
    try:
        execfile(path, names)  # noqa: F821 - a builtin of the unix port
        return True
    except SystemExit:
        raise
    except BaseException as error:
        sys.print_exception(error)
        return False


class Repl:
    """A tiny stand-in for the prompt: one line at a time, Ctrl-A for the raw mode that mpremote uses, Ctrl-D resets."""

    BANNER = (
        'MicroPython on the virtual table; Raspberry Pi Pico with RP2040\r\nType "help()" for more information.\r\n'
    )

    RAW = "raw REPL; CTRL-B to exit\r\n>"

    def __init__(self, host, names):
        self.raw = False
        self._host = host
        self._names = names
        self._poll = select.poll()
        self._poll.register(sys.stdin, select.POLLIN)
        self._poll.register(host._in, select.POLLIN)

    def _byte(self):
        while True:
            self._host.pump()
            for stream, _ in self._poll.poll(self._host.idle_ms()):
                if stream is sys.stdin:
                    byte = sys.stdin.buffer.read(1)
                    if not byte:
                        self._host.die()
                    return byte[0]

    def _say(self, text):
        sys.stdout.write(text)

    def _execute(self, source, mode):
        exec(compile(source, "<stdin>", mode), self._names)

    def run(self, raw):
        self._say(self.RAW if raw else self.BANNER + ">>> ")
        self.raw = raw
        sys.modules["micropython"].kbd_intr(3)
        line = bytearray()
        while True:
            try:
                byte = self._byte()
                raw = self.raw
                if byte == 1:
                    self.raw = True
                    self._say(self.RAW)
                elif byte == 2:
                    self.raw = False
                    self._say("\r\n" + self.BANNER + ">>> ")
                elif byte == 4 and raw and line:
                    self._raw(bytes(line))
                elif byte == 4:
                    self._say("OK\r\n" if raw else "\r\n")
                    raise SystemExit
                elif raw and byte == 5:
                    self._paste_refused(line)
                    continue
                elif raw:
                    line.append(byte)
                    continue
                elif byte in (10, 13):
                    self._line(str(line, "utf-8"))
                elif byte >= 32:
                    line.append(byte)
                    self._say(chr(byte))
                    continue
            except KeyboardInterrupt:
                self._say("" if self.raw else "\r\nKeyboardInterrupt\r\n>>> ")
            line = bytearray()

    def _paste_refused(self, line):
        # mpremote asks for the raw-paste mode with 05 'A' 01; 'R' 00 says that there is none.
        if self._byte() == 65 and self._byte() == 1:
            self._say("R\x00")

    def _raw(self, source):
        self._say("OK")
        error = None
        try:
            self._execute(source, "exec")
        except SystemExit:
            raise
        except BaseException as caught:
            error = caught
        self._say("\x04")
        if error is not None:
            text = io.StringIO()
            sys.print_exception(error, text)
            self._say(text.getvalue())
        self._say("\x04>")

    def _line(self, source):
        self._say("\r\n")
        try:
            if source.strip():
                self._execute(source, "single")
        except SystemExit:
            raise
        except BaseException as error:
            sys.print_exception(error)
        self._say(">>> ")


def main():
    host = Host(open(int(sys.argv[1]), "rb"), open(int(sys.argv[2]), "wb"))  # noqa: SIM115
    machine.attach(host)
    machine.restore(host.boot["pins"])
    machine.mem32.armed = host.boot["wdt"]
    if host.boot["soft"]:
        sys.stdout.write("MPY: soft reboot\r\n")
    host.send({"up": 1})
    mount(host)
    if host.boot["provision"]:
        provision("/pc" + host.boot["provision"], "/")
    if host.boot["new"]:
        host.send({"provisioned": 1})
    firmware = "/pc" + host.boot["firmware"]
    sys.modules["neopixel"] = neopixel
    sys.modules["time"] = make_time(host, host.boot["ticks_ms"])
    sys.modules["micropython"] = make_micropython(host)
    sys.modules["os"] = make_os()
    for name in list(sys.modules):
        if name.startswith("boards"):
            del sys.modules[name]  # the program shall not find what the Pico has not
    sys.path[:] = ["", ".frozen", "/lib", firmware]
    sys.argv[:] = []
    install_pump(host)
    gc.collect()
    host.send({"heap": [gc.mem_free(), gc.mem_alloc()]})
    names = {"__name__": "__main__"}
    repl = Repl(host, names)
    raw = host.boot["soft"] == "raw"
    try:
        # After a soft reset in the raw prompt there is no main.py (ports/rp2/main.c: only in the friendly mode).
        if run_file("boot.py", firmware, names) and not raw:
            run_file("main.py", firmware, names)
        repl.run(raw)
    except SystemExit:
        pass
    host.touch()
    host.send({"soft": machine.outputs(), "kind": "raw" if repl.raw else "friendly"})
    host.stop_here()


main()
