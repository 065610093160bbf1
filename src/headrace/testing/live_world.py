"""A live job in one thread: driver, subtasks, channels and control connections as a simulation that a seed decides.

    world.step()    one of: a subtask takes a turn, a buffer or a message arrives, sources are fed, something fails

The job master, the logic of the control channel, the source feeder and the loops of subtasks are the real ones. Whoever
would wait in the real system has the world go on instead; sockets are queues, and time is a number. So a seed always
goes the same way, and a job that is disturbed ten times takes some tens of milliseconds.
"""

from __future__ import annotations

import copy
import pickle
import random
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from headrace.errors import HeadraceError, InvariantViolation, JobExecutionError, TaskLostError
from headrace.graph.regions import part_of_job
from headrace.runtime.control.connection import Numbering
from headrace.runtime.control.messages import Goodbye, Message, decode, encode
from headrace.runtime.epoch.layout import Layout
from headrace.runtime.epoch.messages import EpochPlan, SubtaskId, SubtaskReport
from headrace.runtime.job import steps
from headrace.runtime.run import live_control, live_run
from headrace.runtime.run.live_control import LiveControl, RegionAttempt, _Peer
from headrace.runtime.run.source_feeder import SourceFeeder
from headrace.runtime.run.state_registry import Compaction
from headrace.runtime.task import live_subtask, live_task, outbox
from headrace.runtime.task.level import JobCode
from headrace.runtime.task.live_settings import LiveSettings
from headrace.runtime.task.outbox import Sent
from headrace.state.compaction import compact
from headrace.testing.eager_tasks import EagerSubtask
from headrace.testing.live_faults import LiveFaults
from headrace.testing.stepped_subtask import SteppedSubtask
from headrace.util import clock

__all__ = ["SimulatedCluster", "World", "simulated"]

#: Buffers that wait between two subtasks; few, so that somebody is always held back.
_ROOM = 3
#: More steps than any wait takes: then nobody does anything any more.
_STUCK = 200_000


class _Line:
    """One direction of a control connection: messages as bytes, numbered, in order, some late or twice."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._numbering = Numbering()
        self._waiting: deque[tuple[int, bytes]] = deque()
        self.held_until = 0
        self.is_cut = False
        self.repeats_next = False

    def put(self, message: Message) -> None:
        if self.is_cut:
            raise OSError("injected: the connection is gone")
        sent = self._numbering.next(), encode(message)
        self._waiting.append(sent)
        if self.repeats_next:
            self.repeats_next = False
            self._waiting.append(sent)

    @property
    def can_deliver(self) -> bool:
        return bool(self._waiting) and self._world.now_ms >= self.held_until

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def take(self) -> Message | None:
        number, data = self._waiting.popleft()
        return decode(data) if self._numbering.takes(number) else None

    def cut(self, kept: int) -> None:
        """Let the first few that are under way arrive, and nothing more."""
        self.is_cut = True
        while len(self._waiting) > kept:
            self._waiting.pop()


class _Actor:
    """One subtask, and its place in the world."""

    def __init__(
        self, world: World, attempt: RegionAttempt, subtask_id: SubtaskId, level: int, partition: int
    ) -> None:
        self.world = world
        #: The attempt at its region.
        self.attempt = attempt
        self.subtask_id = subtask_id
        self.level, self.partition = level, partition
        self.incoming: deque[bytes] = deque()
        self.to_driver = _Line(world)
        self.to_subtask = _Line(world)
        self.subtask: SteppedSubtask
        self._turn: Iterator[Sent] | None = None
        self._blocked: Sent | None = None
        self.has_begun = self.is_dead = self.has_ended = self.is_frozen = self.is_closed = False
        self.stalls_until = 0

    @property
    def is_alive(self) -> bool:
        return not self.is_dead and not self.has_ended

    def act(self) -> None:
        """Do a little: begin, go on sending, take what has come, or take a turn."""
        if not self.is_alive or self.is_frozen or self.world.now_ms < self.stalls_until:
            return
        try:
            self._act()
        except Exception as error:  # noqa: BLE001 - whatever it is, the subtask fails with it
            self.world.failed(self, error)

    def _act(self) -> None:
        if not self.has_begun:
            self.has_begun = True
            self.subtask.begin()
            return
        mailbox = self.subtask._mailbox
        # Whoever reads does so beside the loop, which may be waiting for the next level.
        if self.incoming and self.world.rng.random() < 0.7 and (mailbox.count < _ROOM or mailbox.reads_ahead):
            self.subtask.put(self.incoming.popleft())
        if self._turn is None:
            if self.world.slowness:
                self.subtask.most_buffers = int(self.world.rng.random() > self.world.slowness)
            self._turn = self.subtask.turn()
        is_over = self._go_on()
        if is_over and self.subtask.is_stopping and self._has_read_all():
            self.has_ended = True
            self.close()
            self.to_driver.put(Goodbye())

    def _go_on(self) -> bool:
        """Send until the turn is over, or the next level cannot follow; return whether it is over."""
        assert self._turn is not None
        while True:
            if self._blocked is not None:
                if not self.world.send(self.attempt.region, self.level + 1, self._blocked):
                    return False
                self._blocked = None
            self._blocked = next(self._turn, None)
            if self._blocked is None:
                self._turn = None
                return True

    def _has_read_all(self) -> bool:
        if self.level == 0:
            return True
        before = self.world.regions[self.attempt.region][self.level - 1]
        return all(each.has_ended for each in before) and not self.incoming and self.subtask._mailbox.is_empty

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            if self.has_begun:
                self.subtask.end()


class World:
    """All subtasks of one run.

    Args:
        rng: Decides who is next.
        faults: What fails.
        tick: Lets a millisecond pass, and returns the time. It may raise, if the driver is gone.
    """

    def __init__(
        self,
        rng: random.Random,
        faults: LiveFaults,
        tick: Callable[[], int],
    ) -> None:
        self.rng = rng
        self.faults = faults
        self._tick = tick
        self.now_ms = tick()
        #: The subtasks of each level of each region.
        self.regions: dict[int, list[list[_Actor]]] = {}
        self.control: SimulatedControl | None = None
        self.feeder: SimulatedFeeder | None = None
        #: What the driver is told later: when, and by whom.
        self._later: list[tuple[int, Callable[[], None]]] = []
        self.is_over = False
        #: How often a subtask has a turn, and processes nothing of what waits.
        self.slowness = 0.0

    @property
    def actors(self) -> list[_Actor]:
        """The subtasks of all regions."""
        return [actor for levels in self.regions.values() for level in levels for actor in level]

    # -- steps -----------------------------------------------------------------------------------------

    def step(self) -> None:
        """Let one thing happen."""
        self.now_ms = self._tick()
        for actor in self.actors:
            peer = None if self.control is None else self.control._peers.get(actor.subtask_id)
            if peer is not None and not actor.is_frozen and not actor.is_dead:
                peer.seen = self.now_ms / 1000
        for due, call in [each for each in self._later if each[0] <= self.now_ms]:
            self._later.remove((due, call))
            call()
        kind = self.faults.due()
        if kind is not None:
            self._fail(kind)
        self.rng.choice(self._possible())()

    def _possible(self) -> list[Callable[[], None]]:
        found: list[Callable[[], None]] = []
        for actor in self.actors:
            if actor.is_alive:
                found.append(actor.act)
            if actor.to_driver.can_deliver:
                found += [partial(self._hear, actor)] * 2
            if actor.to_subtask.can_deliver and actor.is_alive:
                found += [partial(self._tell, actor)] * 2
        if self.feeder is not None:
            found.append(self.feeder.feed)
        return found or [lambda: None]

    def _hear(self, actor: _Actor) -> None:
        message = actor.to_driver.take()
        if message is None or self.control is None:
            return
        try:
            self.control._take(actor.subtask_id, self.control._peers[actor.subtask_id], message)
        except Exception as error:  # noqa: BLE001 - as the thread of the connection does
            actor.attempt.fail(error)

    def _tell(self, actor: _Actor) -> None:
        message = actor.to_subtask.take()
        if message is not None:
            actor.subtask.put_message(message)

    def send(self, region: int, level: int, sent: Sent) -> bool:
        """Put a buffer before a subtask of the next level; return whether there was room."""
        partition, buffer = sent
        target = self.regions[region][level][partition]
        if len(target.incoming) >= _ROOM and not target.is_dead:
            return False
        target.incoming.append(buffer)
        return True

    def run_until(self, is_done: Callable[[], bool], steps: int = _STUCK) -> bool:
        """Continue until something is so; return whether it is."""
        for _ in range(steps):
            if is_done():
                return True
            self.step()
        return is_done()

    # -- faults ----------------------------------------------------------------------------------------

    def _fail(self, kind: str) -> None:
        alive = [actor for actor in self.actors if actor.is_alive]
        if not alive or self.is_over:
            self.faults.budget += 1
            return
        self.faults.done[kind] += 1
        victim = self.rng.choice(alive)
        line = self.rng.choice([victim.to_driver, victim.to_subtask])
        match kind:
            case "kill":
                self._lose(victim)
            case "cut":
                for each in (victim.to_driver, victim.to_subtask):
                    each.cut(self.rng.randrange(3))
                victim.subtask._mailbox.disconnect()
                self._report_lost(victim)
            case "late":
                line.held_until = self.now_ms + self.rng.randrange(1, 300)
            case "twice":
                line.repeats_next = True
            case "frozen":
                victim.is_frozen = True
            case "stall":
                victim.stalls_until = self.now_ms + self.rng.randrange(1, 300)
            case "broken channel":
                self.failed(victim, OSError("injected: connection closed before termination"))

    def _lose(self, victim: _Actor) -> None:
        """A process is gone: what it had is, too, and others may notice first."""
        victim.is_dead = True
        victim.to_driver.cut(self.rng.randrange(3))
        levels = self.regions[victim.attempt.region]
        behind = [] if victim.level + 1 == len(levels) else levels[victim.level + 1]
        witnesses = [actor for actor in behind if actor.is_alive]
        if witnesses and self.rng.random() < 0.3:
            error = OSError("injected: connection closed before termination")
            self.failed(self.rng.choice(witnesses), error)
        self._report_lost(victim)

    def failed(self, actor: _Actor, error: Exception) -> None:
        """A subtask has failed; the driver hears of it sooner or later."""
        actor.is_dead = True
        carried = error if isinstance(error, HeadraceError) else JobExecutionError(f"{error}")
        self.later(lambda: actor.attempt.fail(carried))

    def _report_lost(self, actor: _Actor) -> None:
        self.later(lambda: actor.attempt.fail(TaskLostError(f"{actor.subtask_id} was lost")))

    def later(self, call: Callable[[], None]) -> None:
        """Do something in a while."""
        self._later.append((self.now_ms + self.rng.randrange(1, 200), call))

    def end(self) -> None:
        """Nothing happens any more."""
        self.is_over = True
        self.end_region(*self.regions)

    def end_region(self, *regions: int) -> None:
        """Nothing happens any more in some regions."""
        for actor in [each for each in self.actors if each.attempt.region in regions]:
            actor.is_dead = True
            with suppress(Exception):
                actor.close()


# -- the driver's side ---------------------------------------------------------------------------------


class _NoServer:
    port = 0

    def __init__(self, *_: Any) -> None:
        pass

    def close(self) -> None:
        pass


class _Sending:
    """What the driver has of a connection."""

    def __init__(self, line: _Line) -> None:
        self._line = line

    def send(self, message: Message) -> None:
        self._line.put(message)

    def close(self) -> None:
        self._line.is_cut = True


class SimulatedControl(LiveControl):
    """The driver's end of the control channel; it waits by having the world go on."""

    world: World | None = None
    on_trigger: Callable[[int], None] | None = None

    def trigger(self, epoch: int, subtasks: Any, **named: Any) -> None:
        assert self.on_trigger is not None
        self.on_trigger(epoch)
        super().trigger(epoch, subtasks, **named)

    def attach(self, world: World, attempt: RegionAttempt) -> None:
        """Have the subtasks of an attempt introduce themselves."""
        self.world = world
        world.control = self
        for actor in world.actors:
            if actor.attempt == attempt:
                sending: Any = _Sending(actor.to_subtask)
                peer = _Peer(sending, "host", 1, world.now_ms / 1000, attempt.number)
                self._peers[actor.subtask_id] = peer

    def _wait(self, is_done: Callable[[], bool], until: float | None = None) -> bool:
        assert self.world is not None

        def has_news() -> bool:
            self._check_heartbeats()
            is_late = until is not None and self.now_s() >= until
            return self.error is not None or is_late or is_done()

        assert self.world.run_until(has_news), "nobody does anything any more"
        if self.error is not None:
            raise self.error
        return is_done()


class SimulatedFeeder(SourceFeeder):
    """Feeds sources when it is its turn, and after every second barrier at the latest.

    If a barrier takes longer than the interval between two, the next one begins at once. The thread of a real feeder
    wakes up in between; here there may be no step, and the job would never go on.
    """

    world: World
    #: Whether it had a turn since sources were released last.
    _had_turn = True

    def start(self) -> None:
        self.world.feeder = self

    def close(self) -> None:
        self._is_closed = True
        if self.world.feeder is self:
            self.world.feeder = None

    def release(self, vertices: Collection[str] | None = None) -> None:
        super().release(vertices)
        if not self._had_turn:
            self.feed()
        self._had_turn = False

    def feed(self) -> None:
        self._had_turn = self._had_turn or not self._held
        if not self._is_closed:
            try:
                self._feed()
            except Exception as error:  # noqa: BLE001 - the run fails with it
                self._fail(error)


@dataclass(frozen=True)
class SimulatedDeployment:
    """The subtasks of one attempt at a region."""

    world: World
    attempt: RegionAttempt

    def finish(self, timeout_s: float) -> bool:
        world, control = self.world, self.world.control
        until_ms = world.now_ms + timeout_s * 1_000

        def is_over() -> bool:
            has_failed = control is not None and control.error is not None
            return not self._is_alive() or has_failed or world.now_ms >= until_ms

        if not world.is_over:
            world.run_until(is_over, 20_000)
        return not self._is_alive()

    def _is_alive(self) -> bool:
        return any(actor.is_alive for actor in self.world.actors if actor.attempt == self.attempt)

    def cancel(self) -> None:
        if any(actor.attempt == self.attempt for actor in self.world.actors):
            self.world.end_region(self.attempt.region)


class SimulatedCluster:
    """Runs the subtasks of one live run in a world of their own: a `LiveRunner`.

    Args:
        code: The job, as workers get it.
        directory: For the copies of state.
        world: Where the subtasks live.
        on_trigger: Told of every barrier.
        ship: Copies the job for each subtask; deep copies if None.
        has_eager_watermarks: Whether generators are asked after each batch of input, as in epochs.
    """

    control_host = "simulated"

    def __init__(
        self,
        code: JobCode,
        directory: str,
        world: World,
        on_trigger: Callable[[int], None] = lambda epoch: None,
        *,
        ship: Callable[[JobCode], JobCode] | None = None,
        has_eager_watermarks: bool = False,
    ) -> None:
        self._ship = ship or copy.deepcopy
        self._subtask_class = EagerSubtask if has_eager_watermarks else SteppedSubtask
        self._code = replace(code, settings=replace(code.settings, scratch_parent=directory))
        self._world = world
        self._on_trigger = on_trigger
        #: Faults of tasks are the world's.
        self.injected: list[Any] = []

    def deploy(
        self, vertices: frozenset[str], plan: EpochPlan, settings: LiveSettings, attempt: RegionAttempt
    ) -> SimulatedDeployment:
        """Make the subtasks of a region."""
        control = attempt.control
        assert isinstance(control, SimulatedControl)
        world, job = self._world, part_of_job(self._code.job, vertices)
        layout = Layout(job)
        shipped: EpochPlan = pickle.loads(pickle.dumps(plan, protocol=5))
        levels = world.regions[attempt.region] = []
        for level, subtasks in enumerate(layout.levels):
            levels.append([])
            for partition, subtask_id in enumerate(subtasks):
                actor = _Actor(world, attempt, subtask_id, level, partition)
                code = self._ship(replace(self._code, job=job))
                actor.subtask = self._subtask_class(
                    code, layout, level, partition, shipped, settings, tell=actor.to_driver.put
                )
                levels[-1].append(actor)
        control.attach(world, attempt)
        if control.on_trigger is None:
            control.on_trigger = self._on_trigger
        return SimulatedDeployment(world, attempt)

    def cancel(self) -> None:
        """Have all subtasks end."""
        if self._world.control is not None:
            self._world.control.fail(TaskLostError("the run was cancelled"))
        self._world.end()

    def close(self) -> None:
        """Have all subtasks end."""
        self._world.end()

    def run(self, plan: EpochPlan) -> Sequence[SubtaskReport]:
        """Refuse: a live job has no epochs that could be run one by one."""
        raise InvariantViolation("an epoch was requested of a live job")

    def compact(self, work: Sequence[Compaction]) -> Future[list[int]]:
        """Merge state files now; the future is done already."""
        done: Future[list[int]] = Future()
        try:
            done.set_result([compact(item.files, item.path) for item in work])
        except Exception as error:  # noqa: BLE001 - whoever waits for it gets it
            done.set_exception(error)
        return done


class _Waking(threading.Event):
    """Waits by having the world go on."""

    world: Callable[[], World | None]
    pass_ms: Callable[[int], None]

    def wait(self, timeout: float | None = None) -> bool:
        world, left_ms = type(self).world(), int((timeout or 0) * 1000)
        if world is None or world.is_over:
            type(self).pass_ms(left_ms)
        else:
            world.run_until(self.is_set, max(1, min(left_ms, 50)))
        return self.is_set()


@contextmanager
def simulated(
    world: Callable[[], World | None], now_ms: Callable[[], int], pass_ms: Callable[[int], None]
) -> Iterator[None]:
    """Have live runs be simulated: no threads, no sockets, and the time of the simulation."""

    class Shim:
        """A module with some names of its own."""

        def __init__(self, real: Any, **names: Any) -> None:
            self._real = real
            self.__dict__.update(names)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

    def current() -> World:
        found = world()
        assert found is not None
        return found

    class Feeder(SimulatedFeeder):
        world = property(lambda self: current())

    class Waking(_Waking):
        pass

    Waking.world, Waking.pass_ms = staticmethod(world), staticmethod(pass_ms)
    timed = Shim(__import__("time"), monotonic=lambda: now_ms() / 1000)
    replaced: list[tuple[Any, str, Any]] = [
        (live_run, "LiveControl", SimulatedControl),
        (live_run, "SourceFeeder", Feeder),
        (live_control, "ControlServer", _NoServer),
        (steps, "threading", Shim(threading, Event=Waking)),
        (clock, "now_ms", now_ms),
        *((module, "time", timed) for module in (live_subtask, live_task, live_control, outbox)),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    for module, name, value in replaced:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
