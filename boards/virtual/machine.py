"""`machine` for MicroPython's unix port: what the firmware uses of the rp2 port's module, on the virtual table.

Names, constants and refusals are the rp2 port's (MicroPython 1.28, ports/rp2). Where the real port lets a mistake pass
in silence (two PWM frequencies on one slice, a switch without its pull-up) this one shows it. `start.py` puts it in the
place of the unix port's own `machine`.

Nothing here can interrupt running code, as the unix port has no asynchronous interrupts: pin interrupts and timers are
served whenever the program calls into this module, sleeps, or lets asyncio wait.
"""

import sys

import micropython

from boards.virtual import wiring

PWRON_RESET = 1
WDT_RESET = 3

_CLOCK_HZ = 125000000
_PINS = 30  # RP2040: GPIO0..29

_host = None
_pins = {}
_slices = {}  # PWM slice -> frequency
_pwms = {}
_timers = []
_masked = 0
_open = 0  # how many calls inside a hard handler have unlocked the heap
_hard = False  # inside a hard interrupt handler: the heap is locked


def attach(host):
    """Join this module to the bench: `host` has wiring, clock(), pump(), touch(), send(dict), uid and cause."""
    global _host
    _host = host


def _pump():
    if not _hard:
        _host.pump()


def _begin():
    """What follows, up to `_end`, may allocate even where the caller, a hard handler, may not: the real port is C."""
    global _open
    if _hard:
        if not _open:
            micropython.heap_unlock()
        _open += 1


def _end():
    global _open
    if _hard:
        _open -= 1
        if not _open:
            micropython.heap_lock()


def _output(pin, duty, freq=0):
    """Drive a pin of the model."""
    _begin()
    try:
        _host.wiring.output(pin, duty, freq)
        _host.touch()
    finally:
        _end()


class _Irq:
    """What `Pin.irq` returns."""

    def __init__(self, handler, trigger, hard):
        self._handler = handler
        self._trigger = trigger
        self._hard = hard
        self._flags = 0

    def flags(self):
        return self._flags

    def trigger(self, trigger=None):
        before = self._trigger
        if trigger is not None:
            self._trigger = trigger
        return before


class Pin:
    IN = 0
    OUT = 1
    OPEN_DRAIN = 2
    ALT = 3
    PULL_UP = 1
    PULL_DOWN = 2
    IRQ_FALLING = 4
    IRQ_RISING = 8

    # One object for each GPIO, as on the Pico: Pin(5) is Pin(5).
    def __new__(cls, id, mode=-1, pull=-1, value=None, alt=-1):
        number = _number_of(id)
        if number not in _pins:
            self = object.__new__(cls)
            self._id = number
            self._mode = Pin.IN
            self._pull = None
            self._out = 0
            self._function = "none"
            self._irq = None
            self._last = 0
            _pins[number] = self
        return _pins[number]

    def __init__(self, id, mode=-1, pull=-1, value=None, alt=-1):
        if mode != -1 or pull != -1 or value is not None:
            self.init(mode, pull, value=value, alt=alt)

    def init(self, mode=-1, pull=-1, value=None, alt=-1):
        _pump()
        if value is not None:
            self._out = 1 if value else 0
        if mode != -1:
            if not Pin.IN <= mode <= Pin.ALT:
                raise ValueError("invalid pin mode: %r" % (mode,))
            self._mode = mode
            self._function = "alt" if mode == Pin.ALT else "gpio"  # this drops a PWM from the pin
        if pull != -1:
            if pull not in (None, Pin.PULL_UP, Pin.PULL_DOWN, Pin.PULL_UP | Pin.PULL_DOWN):
                raise ValueError("invalid pull: %r" % (pull,))
            self._pull = pull
        elif mode != -1:
            self._pull = None
        self._apply()

    def _apply(self):
        if self._function == "gpio":
            if self._mode == Pin.OUT or (self._mode == Pin.OPEN_DRAIN and not self._out):
                _output(self._id, 65535 if self._out else 0)
            else:
                _host.wiring.undriven(self._id)
                _host.touch()

    def _level(self):
        if self._function == "gpio" and (self._mode == Pin.OUT or (self._mode == Pin.OPEN_DRAIN and not self._out)):
            return self._out
        level = _host.wiring.level(self._id)
        if level is not None:
            return level
        # An open switch needs the pin's own pull-up. Without one the pin floats; here it then reads low, so that a
        # forgotten pull-up shows in every test and not only now and then.
        return 1 if self._pull is not None and self._pull & Pin.PULL_UP else 0

    def value(self, x=None):
        _pump()
        if x is None:
            return self._level()
        self._out = 1 if x else 0
        self._apply()
        return None

    __call__ = value

    def on(self):
        self.value(1)

    def off(self):
        self.value(0)

    high = on
    low = off

    def toggle(self):
        self.value(not self._out)

    def mode(self, mode=None):
        if mode is None:
            return self._mode
        self.init(mode)
        return None

    def pull(self, pull=-1):
        if pull != -1:
            self._pull = pull
        return self._pull

    def irq(self, handler=None, trigger=IRQ_FALLING | IRQ_RISING, hard=False):
        """An interrupt on edges. With `hard` the handler runs with the heap locked, as it does on the Pico."""
        _pump()
        if handler is not None and not callable(handler):
            raise ValueError("handler must be None or callable")
        self._irq = _Irq(handler, trigger, hard)
        self._last = self._level()
        return self._irq

    def _serve(self):
        level = self._level()
        if level == self._last:
            return
        self._last = level
        irq = self._irq
        edge = Pin.IRQ_RISING if level else Pin.IRQ_FALLING
        if irq._handler is not None and irq._trigger & edge:
            irq._flags = edge
            _call(irq, self)

    def __repr__(self):
        return "Pin(GPIO%d, mode=%s)" % (self._id, ("IN", "OUT", "OPEN_DRAIN", "ALT")[self._mode])


def _number_of(id):
    if isinstance(id, Pin):
        return id._id
    if id == "LED":
        return 25
    if isinstance(id, str) and id[:2] == "GP" and id[2:].isdigit():
        id = int(id[2:])
    if not isinstance(id, int) or not 0 <= id < _PINS:
        raise ValueError("unknown pin: %r" % (id,))
    return id


def _call(owner, argument):
    """Run an interrupt handler; an exception in it is printed and ends the handler, not the program."""
    global _hard
    if owner._hard:
        micropython.heap_lock()
        _hard = True
    error = None
    try:
        owner._handler(argument)
    except Exception as caught:
        error = caught
    finally:
        if owner._hard:
            _hard = False
            micropython.heap_unlock()
    if error is not None:
        print("Uncaught exception in IRQ callback handler")
        sys.print_exception(error)
        owner._handler = None


def serve(now):
    """Run the interrupt handlers and timers that are due."""
    if _masked or _hard:
        return
    for pin in list(_pins.values()):
        if pin._irq is not None:
            pin._serve()
    # In order of their time, however late this is.
    for timer in sorted(_timers, key=lambda timer: timer._due):
        timer._serve(now)


def due():
    """When a timer is due next, in microseconds, or None."""
    return min([timer._due for timer in _timers]) if _timers else None


def disable_irq():
    global _masked
    before = _masked
    _masked = 1
    return before


def enable_irq(state=0):
    global _masked
    _masked = state
    _pump()


class PWM:
    """Hardware PWM: GPIO n is channel n % 2 of slice n // 2 % 8, and a slice has one frequency (RP2040 4.5.2)."""

    def __new__(cls, pin, freq=None, duty_u16=None, duty_ns=None, invert=None):
        number = _number_of(pin)
        if number not in _pwms:
            self = object.__new__(cls)
            self._pin = Pin(number)
            self._slice = number // 2 % 8
            self._duty = None
            self._ns = None
            self._invert = False
            _pwms[number] = self
        return _pwms[number]

    def __init__(self, pin, freq=None, duty_u16=None, duty_ns=None, invert=None):
        self._pin._function = "pwm"
        self.init(freq, duty_u16, duty_ns, invert)

    def init(self, freq=None, duty_u16=None, duty_ns=None, invert=None):
        _pump()
        if duty_u16 is not None and duty_ns is not None:
            raise ValueError("only one of duty_u16 and duty_ns may be given")
        if invert is not None:
            self._invert = bool(invert)
        if freq is not None:
            self._set_freq(freq)
        if duty_u16 is not None:
            self._duty, self._ns = min(65535, max(0, duty_u16)), None
        if duty_ns is not None:
            self._set_ns(duty_ns)
        self._apply()

    def _set_freq(self, freq):
        if freq < 8:
            raise ValueError("freq too small")
        if freq > _CLOCK_HZ // 2:
            raise ValueError("freq too large")
        for other in _pwms.values():
            if other is self or other._slice != self._slice or other._duty is None:
                continue
            if _slices.get(self._slice) not in (None, freq):
                # The rp2 port changes the other channel's frequency without a word.
                running = (self._slice, _slices[self._slice], other._pin)
                raise ValueError("PWM slice %d already runs at %d Hz for %r" % running)
        _slices[self._slice] = freq
        if self._ns is not None:
            self._set_ns(self._ns)

    def _set_ns(self, ns):
        freq = _slices.get(self._slice)
        if not freq:
            raise ValueError("PWM freq must be set first")
        self._ns = ns
        self._duty = min(65535, max(0, ns * freq * 65535 // 1000000000))

    def _apply(self):
        freq = _slices.get(self._slice)
        if self._pin._function == "pwm" and freq and self._duty is not None:
            _output(self._pin._id, 65535 - self._duty if self._invert else self._duty, freq)

    def freq(self, freq=None):
        _pump()
        if freq is None:
            return _slices.get(self._slice, 0)
        self._set_freq(freq)
        self._apply()
        return None

    def duty_u16(self, duty=None):
        _pump()
        if duty is None:
            return self._duty or 0
        self._duty = min(65535, max(0, duty))
        self._ns = None
        self._apply()
        return None

    def duty_ns(self, ns=None):
        _pump()
        if ns is None:
            freq = _slices.get(self._slice)
            return (self._duty or 0) * 1000000000 // (65535 * freq) if freq else 0
        self._set_ns(ns)
        self._apply()
        return None

    def deinit(self):
        """Stops the slice where it is: both its pins keep the level of that moment. Shown as the worse one, high."""
        _pump()
        _begin()
        try:
            for other in _pwms.values():
                if other._slice == self._slice:
                    other._freeze()
        finally:
            _end()

    def _freeze(self):
        if self._pin._function == "pwm" and self._duty is not None:
            _output(self._pin._id, 65535 if self._duty else 0)
        self._duty = self._ns = None


def _check_pins(what, table, given):
    for name, pin in given:
        if pin is not None and _number_of(pin) not in table[name]:
            raise ValueError("bad %s pin: GPIO%d is not one of %s" % (name.upper(), _number_of(pin), what))


# RP2040 data sheet, table 2: function F1 (SPI) and F3 (I2C) of each GPIO.
_SPI_PINS = (
    {"sck": (2, 6, 18, 22), "mosi": (3, 7, 19, 23), "miso": (0, 4, 16, 20)},
    {"sck": (10, 14, 26), "mosi": (11, 15, 27), "miso": (8, 12, 24, 28)},
)


class SPI:
    MSB = 1
    LSB = 0

    def __init__(
        self, id, baudrate=1000000, *, polarity=0, phase=0, bits=8, firstbit=1, sck=None, mosi=None, miso=None
    ):
        if id not in (0, 1):
            raise ValueError("SPI(%r) doesn't exist" % (id,))
        self._id = id
        defaults = {"sck": (18, 10), "mosi": (19, 11), "miso": (16, 8)}
        given = (("sck", sck), ("mosi", mosi), ("miso", miso))
        _check_pins("SPI%d" % id, _SPI_PINS[id], given)
        for name, pin in given:
            Pin(defaults[name][id] if pin is None else pin)._function = "spi"
        self.init(baudrate, polarity=polarity, phase=phase, bits=bits, firstbit=firstbit)

    def init(self, baudrate=1000000, *, polarity=0, phase=0, bits=8, firstbit=1):
        if firstbit != SPI.MSB:
            raise NotImplementedError("LSB")
        if bits != 8 or polarity or phase:
            raise ValueError("nothing on this table's bus speaks mode %d or %d bits" % (2 * polarity + phase, bits))
        self.baudrate = baudrate

    def deinit(self):
        pass

    def _transfer(self, byte):
        return _host.wiring.transfer(self._id, byte)

    def write(self, buf):
        _pump()
        for byte in buf:
            self._transfer(byte)

    def readinto(self, buf, write=0):
        _pump()
        for i in range(len(buf)):
            buf[i] = self._transfer(write)

    def read(self, n, write=0):
        buf = bytearray(n)
        self.readinto(buf, write)
        return bytes(buf)

    def write_readinto(self, out, into):
        _pump()
        if len(out) != len(into):
            raise ValueError("buffers must be the same length")
        for i in range(len(out)):
            into[i] = self._transfer(out[i])


class I2C:
    """Devices are attached through the wiring's `i2c`; none answers: OSError 5 (EIO), as on the rp2 port."""

    def __init__(self, id, *, scl=None, sda=None, freq=400000, timeout=50000):
        if id not in (0, 1):
            raise ValueError("I2C(%r) doesn't exist" % (id,))
        table = {"sda": tuple(range(2 * id, _PINS, 4)), "scl": tuple(range(2 * id + 1, _PINS, 4))}
        _check_pins("I2C%d" % id, table, (("scl", scl), ("sda", sda)))

    def _device(self, addr):
        _pump()
        device = _host.wiring.i2c.get(addr)
        if device is None:
            raise OSError(5)
        return device

    def scan(self):
        return sorted(_host.wiring.i2c)

    def writeto(self, addr, buf, stop=True):
        self._device(addr).write(bytes(buf))
        return len(buf)

    def readfrom(self, addr, n, stop=True):
        return self._device(addr).read(n)

    def readfrom_into(self, addr, buf, stop=True):
        buf[:] = self.readfrom(addr, len(buf))

    def _register(self, memaddr, addrsize):
        return memaddr.to_bytes(addrsize // 8, "big")

    def writeto_mem(self, addr, memaddr, buf, *, addrsize=8):
        self._device(addr).write(self._register(memaddr, addrsize) + bytes(buf))

    def readfrom_mem(self, addr, memaddr, n, *, addrsize=8):
        device = self._device(addr)
        device.write(self._register(memaddr, addrsize))
        return device.read(n)

    def readfrom_mem_into(self, addr, memaddr, buf, *, addrsize=8):
        buf[:] = self.readfrom_mem(addr, memaddr, len(buf), addrsize=addrsize)


class ADC:
    def __init__(self, pin):
        if isinstance(pin, int) and 0 <= pin <= 4:
            self._pin = None if pin == 4 else 26 + pin
        else:
            self._pin = _number_of(pin)
            if not 26 <= self._pin <= 29:
                raise ValueError("Pin(%d) doesn't have ADC capabilities" % self._pin)
            Pin(self._pin)._function = "adc"

    def read_u16(self):
        _pump()
        # 876: 27 degrees, 0.706 V of 3.3 V (RP2040 4.9.5)
        raw = 876 if self._pin is None else _host.wiring.analog(self._pin)
        return raw << 4 | raw >> 8  # 12 bits spread over 16, as the rp2 port does


class _Registers:
    """`mem32` of the RP2040, as far as a program may want to look at the watchdog, and to stop it."""

    WATCHDOG_CTRL = 0x40058000
    CLEAR = 0x3000  # the alias that clears bits (RP2040 2.1.2)
    ENABLE = 1 << 30

    def __init__(self):
        self.armed = False

    def __getitem__(self, address):
        if address != self.WATCHDOG_CTRL:
            raise ValueError("mem32[0x%08x] is not part of the virtual table" % address)
        return self.ENABLE if self.armed else 0

    def __setitem__(self, address, value):
        if address != self.WATCHDOG_CTRL + self.CLEAR or value != self.ENABLE:
            raise ValueError("mem32[0x%08x] = 0x%08x is not part of the virtual table" % (address, value))
        self.armed = False
        _host.send({"wdt": None})


mem32 = _Registers()


class WDT:
    """The watchdog sits in the bench: it resets this process when no feed comes in time, and nothing stops it."""

    def __init__(self, id=0, timeout=5000):
        if id != 0:
            raise ValueError("WDT(%r) doesn't exist" % (id,))
        if not 1 <= timeout <= 8388:  # 24 bits of half microseconds (RP2040-E1)
            raise ValueError("timeout exceeds 8388" if timeout > 8388 else "timeout must be at least 1")
        self._every = timeout * 1000 // 8
        mem32.armed = True
        self._sent = _host.clock()
        _host.send({"wdt": timeout})

    def feed(self):
        # A feed tells the bench only now and then; it allows for that in its own reckoning.
        now = _host.clock()
        if now - self._sent >= self._every:
            self._sent = now
            _host.send({"feed": 1})
        _pump()


class Timer:
    ONE_SHOT = 0
    PERIODIC = 1

    def __init__(self, id=-1, **args):
        if id != -1:
            raise ValueError("Timer(%r) doesn't exist; the rp2 port has only -1" % (id,))
        self._handler = None
        self._hard = False
        self._due = self._period = 0
        if args:
            self.init(**args)

    def init(self, *, mode=1, period=-1, freq=-1, callback=None, hard=False):
        self.deinit()
        if freq != -1:
            self._period = max(1, int(1000000 / freq))
        elif period != -1:
            self._period = max(1, int(period * 1000))
        else:
            raise ValueError("period or freq must be given")
        self._mode = mode
        self._handler = callback
        self._hard = hard
        self._due = _host.clock() + self._period
        _timers.append(self)

    def deinit(self):
        if self in _timers:
            _timers.remove(self)

    def _serve(self, now):
        if self not in _timers or now < self._due:
            return
        if self._mode == Timer.ONE_SHOT:
            _timers.remove(self)
        else:
            # Late calls are not made up for one by one: the real timer's interrupts merge as well.
            self._due += self._period * ((now - self._due) // self._period + 1)
        if self._handler is not None:
            _call(self, self)


class UART:
    """The debug UART: what is written goes nowhere, nothing ever comes."""

    def __init__(self, id, baudrate=115200, **args):
        if id not in (0, 1):
            raise ValueError("UART(%r) doesn't exist" % (id,))

    def write(self, buf):
        return len(buf)

    def any(self):
        return 0

    def read(self, n=-1):
        return None


def unique_id():
    return _host.uid


def reset_cause():
    """The rp2 port knows two: power-on (also the RUN pin), and the watchdog (also `machine.reset`, which uses it)."""
    return _host.cause


def reset():
    _host.reset()


def soft_reset():
    _host.soft_reset()


def lightsleep(time_ms=0):
    _host.sleep_us(time_ms * 1000)


def idle():
    _host.sleep_us(1000)


def freq(hz=None):
    global _CLOCK_HZ
    if hz is None:
        return _CLOCK_HZ
    _CLOCK_HZ = hz
    return None


def bitstream(pin, encoding, timing, data):
    """The WS2812 way of sending; encoding 0 (high and low times for 0 and 1) is the only one there is."""
    if encoding != 0:
        raise ValueError("encoding must be 0")
    if len(timing) != 4:
        raise ValueError("timing must be four times in nanoseconds")
    _pump()
    if pin._mode != Pin.OUT or pin._function != "gpio":
        raise ValueError("the pin must be an output")
    _host.wiring.pixels(pin._id, data, wiring.pixel_bit(timing[0]) != 0 or wiring.pixel_bit(timing[2]) != 1)


def outputs():
    """The level of each driven pin, for the next start: a soft reset leaves GPIO outputs as they are.

    PWM slices are stopped by it wherever they are (ports/rp2 main.c, machine_pwm_deinit_all); shown as high if any
    duty was set, which is the worse of the two.
    """
    levels = {}
    for number, pin in _pins.items():
        if pin._function == "pwm":
            pwm = _pwms[number]
            levels[str(number)] = 1 if pwm._duty else 0
        elif pin._function == "gpio" and pin._mode == Pin.OUT:
            levels[str(number)] = pin._out
    return levels


def restore(levels):
    """Take over the levels that `outputs` gave before a soft reset."""
    for number, level in levels.items():
        pin = Pin(int(number))
        pin._mode = Pin.OUT
        pin._function = "gpio"
        pin._out = level
        pin._apply()
