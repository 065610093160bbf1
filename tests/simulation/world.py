"""A world in which several drivers run at once, step by step, and one seed decides everything.

    driver 0   step  step  -------- paused ---------------------  step: wakes, its lease is over
    driver 1        (looks at the lease)  step  step  step  CRASH
    clock      +1 ms +1 ms +2 ms ... +3000 ms                          every driver has its own, and they differ

A driver is a thread, but only one of them runs at any time: at a step it may have to hand over. Steps are calls of the
operating system by `storage/local.py`, tasks of the simulated executors, and commits. Before a step the driver may
crash, be stopped for longer than its lease, or fail to write; or power is lost, and all drivers with what was not
synced. What a driver's other threads are to write may be written in the middle of any of its steps. After every step
the invariants are looked at.
"""

from __future__ import annotations

import errno
import hashlib
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.disk import Disk
from tests.chaos.faults import Crash, LateFuture

#: How likely a driver is to hand over at a step.
_HAND_OVER = 0.08
#: How likely it is that another thread of the driver writes before a step what it was given.
_WRITES = 0.15
#: Steps of one world, at most: then it goes round in circles.
_MOST_STEPS = 60_000
_NEEDS_ROOM = frozenset({"write", "makedirs", "mkdir", "link", "copyfile", "create"})


class Violation(AssertionError):
    """An invariant does not hold."""


@dataclass
class Chances:
    """How likely each fault is, per step."""

    crash: float = 0.0
    power: float = 0.0
    error: float = 0.0
    full: float = 0.0
    pause: float = 0.0
    clock: float = 0.0


class Driver:
    """A process that leads, or wants to; `main` is what it does."""

    def __init__(self, world: World, number: int, main: Callable[[Driver], None]) -> None:
        self.world = world
        self.number = number
        self.lease: Any = None
        #: Told when a renewal finds that another leads.
        self.on_lost: Callable[[Exception], object] | None = None
        self.is_dead = False
        self.is_over = False
        self.error: BaseException | None = None
        #: Not to be run before this time.
        self.paused_until = 0.0
        self._next_renewal = 0.0
        self._is_renewing = False
        #: What its other threads have to write, and whether they do.
        self.to_write: list[LateFuture] = []
        self._is_writing = False
        #: Its clocks: how fast they run, and how far the wall clock is off.
        self._rate = world.rng.uniform(0.97, 1.03)
        self.wall_offset_ms = world.rng.randrange(-5_000, 5_000)
        self._go = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(main,), name=f"driver-{number}", daemon=True)
        self._thread.start()

    def boot_clock(self) -> float:
        """Seconds that only go forward, a little faster or slower than others'."""
        return self.world.now_s * self._rate

    def wall_clock_ms(self) -> int:
        """Milliseconds that may jump, in both directions."""
        return int(self.world.now_s * 1000) + self.wall_offset_ms

    def leads(self) -> bool:
        """Whether it thinks that its lease lasts."""
        lease = self.lease
        return lease is not None and lease._token is not None and self.boot_clock() < lease._valid_until

    def _run(self, main: Callable[[Driver], None]) -> None:
        self._go.acquire()
        try:
            if not self.is_dead:
                main(self)
        except Crash:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.is_over = True
            self.world._back.release()

    def resume(self) -> None:
        """Run until it hands over, or is over."""
        self._go.release()
        self.world._back.acquire()

    def hand_over(self) -> None:
        """Let the world decide who continues."""
        self.world._back.release()
        self._go.acquire()
        if self.is_dead:
            raise Crash("gone")

    def renew_if_due(self) -> None:
        """Do what the keeper of the lease does in a thread of its own."""
        if self.lease is None or self._is_renewing or not self.leads():
            return
        if self.world.now_s < self._next_renewal:
            return
        self._is_renewing = True
        self._next_renewal = self.world.now_s + self.lease.renewal_interval_s
        try:
            self.lease.renew()
        except OSError:
            pass
        except Exception as error:
            if self.on_lost is not None and self.lease._token is None:
                self.on_lost(error)
        finally:
            self._is_renewing = False

    def write_something(self) -> None:
        """Do what another thread does meanwhile. It waits while a renewal has the lock of the lease."""
        if self._is_renewing or self._is_writing:
            return
        self.to_write = [each for each in self.to_write if not (Future.done(each) or each.running())]
        if self.to_write and self.world.rng.random() < _WRITES:
            self._is_writing = True
            try:
                self.to_write.pop(0).finish()
            finally:
                self._is_writing = False


@dataclass
class World:
    """Everything that a seed decides."""

    rng: random.Random
    chances: Chances
    disk: Disk
    #: How many faults are left; without a limit nothing would come to an end.
    budget: int
    now_s: float = 1_000.0
    drivers: list[Driver] = field(default_factory=list)
    #: What failed, and before which step.
    done: list[tuple[str, str]] = field(default_factory=list)
    steps: int = 0
    #: Stops the simulation at the step where something does not hold.
    check: Callable[[str], None] = lambda what: None
    has_lost_power: bool = False
    _full_for: int = 0
    _undisturbed: bool = False
    _trace: Any = field(default_factory=hashlib.blake2b)
    _back: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    violation: BaseException | None = None

    @property
    def current(self) -> Driver | None:
        """The driver whose step it is; None outside of all drivers."""
        thread = threading.current_thread()
        return next((each for each in self.drivers if each._thread is thread), None)

    @property
    def fingerprint(self) -> str:
        """The same for the same steps in the same order."""
        return str(self._trace.hexdigest()[:16])

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Look at files without that being a step."""
        before, self._undisturbed = self._undisturbed, True
        try:
            yield
        finally:
            self._undisturbed = before

    # -- steps: the interface of `tests.chaos.faults.Faults` ---------------------------------------------

    def step(self, what: str, *, can_be_short: bool = False) -> bool:
        """Let a step pass, or fail; return whether a write is to stop half way."""
        driver = self.current
        if driver is None or self._undisturbed:
            return False
        if driver.is_dead:
            raise Crash(what)
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise self._violated(Violation(f"{_MOST_STEPS} steps, and no end"))
        self._trace.update(f"{driver.number}{what};".encode())
        self.now_s += self.rng.choice((0.001, 0.001, 0.002, 0.005))
        try:
            self.check(what)
        except Exception as error:
            raise self._violated(error) from None
        kind = self._draw(driver, what)
        driver.renew_if_due()
        if kind is None and self.rng.random() < _HAND_OVER:
            driver.hand_over()
        driver.write_something()
        return self._fail(driver, kind, what, can_be_short=can_be_short)

    def _violated(self, error: BaseException) -> BaseException:
        """Note what does not hold: drivers catch errors, the world does not."""
        self.violation = self.violation or error
        for each in self.drivers:
            each.is_dead = True
        return Crash(str(error))

    def violated(self, message: str) -> None:
        """Stop everything: an invariant does not hold.

        Raises:
            Crash: Always.
        """
        raise self._violated(Violation(message))

    def _draw(self, driver: Driver, what: str) -> str | None:
        if self._full_for and what.split()[0] in _NEEDS_ROOM:
            self._full_for -= 1
            return "full"
        if self.budget <= 0:
            return None
        chance = self.rng.random()
        for kind, base in vars(self.chances).items():
            rate = self._rate(kind, base, what)
            if chance < rate:
                self.budget -= 1
                self.done.append((kind, what))
                if kind == "full":  # for some time, until somebody makes room
                    self._full_for = self.rng.randrange(1, 10)
                return str(kind)
            chance -= rate
        return None

    @staticmethod
    def _rate(kind: str, base: float, what: str) -> float:
        """Return how likely a fault is before a step: where nothing is written, nothing fails to be written."""
        if kind in {"error", "full"} and what in {"task", "sleep"}:
            return 0.0
        # What a former leader does late is what fences are for.
        is_decisive = kind in {"pause", "crash"} and what.endswith((" metadata", " sink", " fence", " drop"))
        return base * 10 if is_decisive else base

    def _fail(self, driver: Driver, kind: str | None, what: str, *, can_be_short: bool) -> bool:
        if kind == "crash":
            driver.is_dead = True
            raise Crash(what)
        if kind == "power":
            self.has_lost_power = True
            for each in self.drivers:
                each.is_dead = True
            raise Crash(what)
        if kind == "pause":
            driver.paused_until = self.now_s + self.rng.choice((0.5, 2.0, 5.0))
            driver.hand_over()
        elif kind == "clock":
            driver.wall_offset_ms += self.rng.choice((-3_600_000, -5_000, -1, 1_000, 7_200_000))
        elif kind == "full":
            raise OSError(errno.ENOSPC, f"injected: no space left for {what}")
        elif kind == "error":
            if can_be_short and self.rng.random() < 0.5:
                return True
            raise OSError(errno.EIO, f"injected before {what}")
        return False

    def submitted(self, future: LateFuture) -> None:
        """Note what a thread of the current driver is to do."""
        if self.current is not None:
            self.current.to_write.append(future)

    def after_short_write(self, what: str) -> None:
        """A part was written."""
        raise OSError(errno.ENOSPC, f"injected in the middle of {what}")

    def sleep(self, seconds: float) -> None:
        """Have the driver wait."""
        driver = self.current
        assert driver is not None
        driver.paused_until = self.now_s + seconds
        self.step("sleep")
        driver.hand_over()

    # -- the drivers' lives ------------------------------------------------------------------------------

    def start(self, number: int, main: Callable[[Driver], None]) -> Driver:
        """Add a driver; it runs when it is its turn."""
        driver = Driver(self, number, main)
        self.drivers.append(driver)
        return driver

    def run(self, on_end: Callable[[Driver], None]) -> None:
        """Run drivers until all are over; ``on_end`` may start others.

        Raises:
            Violation: If an invariant did not hold.
        """
        while True:
            alive = [each for each in self.drivers if not each.is_over]
            if not alive:
                break
            ready = [each for each in alive if each.is_dead or each.paused_until <= self.now_s]
            if not ready:
                self.now_s = min(each.paused_until for each in alive)
                continue
            chosen = self.rng.choice(ready)
            chosen.resume()
            if chosen.is_over:
                self._ended(chosen, on_end)
        if self.violation is not None:
            raise self.violation

    def _ended(self, driver: Driver, on_end: Callable[[Driver], None]) -> None:
        self.drivers.remove(driver)
        if driver.error is not None and self.violation is None:
            self._violated(driver.error)
        if self.violation is not None:
            return
        if self.has_lost_power:
            if self.drivers:
                return  # the others are gone, too
            self.has_lost_power, self._full_for = False, 0
            with self.undisturbed():
                self.disk.lose_power(self.rng)
        on_end(driver)
