"""Faults, drawn from a seed, for everything that the driver and its workers ask of the operating system.

    with injected(faults, disk):       every call is a step; before it, a driver may be lost, or power; or it may fail

A step is one call of the operating system by `storage/local.py`, or one batch that a sink publishes.
So a crash may come between any two pieces of a write: a change file, the log of epochs, metadata and its parts, the
copies of a savepoint, the commit of the first and of the second sink, and all steps of a recovery.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headrace.runtime.checkpoint import checkpointing, storage
from headrace.storage import local
from tests.chaos.disk import Disk

#: Steps between two faults, at most; a small job takes some hundreds.
_FAR, _NEAR = 250, 30
#: For how many steps a full disk stays full, at most.
_FULL_STEPS = 12
KINDS = ("crash", "crash", "power", "power", "error", "full", "short")


class Crash(BaseException):
    """The driver is gone: no handler of ours may do anything that lasts."""


@dataclass
class Faults:
    """Decides at every step whether it fails, and how."""

    rng: random.Random
    #: How many are left.
    budget: int
    kinds: Sequence[str] = KINDS
    #: Instead of by chance: the driver is lost before this step, when it comes for the n-th time.
    at: tuple[str, int] | None = None
    is_dead: bool = False
    #: Whether not only the driver is gone, but all that was not on the disk.
    has_lost_power: bool = False
    is_armed: bool = False
    #: What failed, and before which step.
    done: list[tuple[str, str]] = field(default_factory=list)
    _until_next: int = 0
    _full_for: int = 0

    def __post_init__(self) -> None:
        self._draw()

    def _draw(self) -> None:
        near = self.rng.random() < 0.35
        self._until_next = self.rng.randrange(1, _NEAR if near else _FAR)

    def step(self, what: str, *, can_be_short: bool = False) -> bool:
        """Let a step pass, or fail; return whether a write is to stop half way."""
        if not self.is_armed:
            return False
        if self.is_dead:
            raise Crash(what)
        if self.at is not None:
            self._lose_at(what, *self.at)
            return False
        self._check_space(what)
        self._until_next -= 1
        if self.budget == 0 or self._until_next > 0:
            return False
        self.budget -= 1
        self._draw()
        kind = self.rng.choice(self.kinds)
        if kind == "short" and not can_be_short:
            kind = "error"
        self.done.append((kind, what))
        if kind in {"crash", "power"}:
            self.die(what, power=kind == "power")
        if kind == "error":
            raise OSError(self.rng.choice([errno.EIO, errno.ENOSPC]), f"injected before {what}")
        if kind == "full":
            self._full_for = self.rng.randrange(1, _FULL_STEPS)
            self._check_space(what)
        return kind == "short"

    def _check_space(self, what: str) -> None:
        """A full disk fails everything that needs room, until somebody makes some."""
        if self._full_for and what.split()[0] in {"write", "makedirs", "mkdir", "link", "copyfile", "create"}:
            self._full_for -= 1
            raise OSError(errno.ENOSPC, f"injected: no space left for {what}")

    def die(self, what: str, *, power: bool = False) -> None:
        """Lose the driver, and with it everything that it was about to do."""
        self.is_dead = True
        self.has_lost_power = power
        self._full_for = 0
        raise Crash(what)

    def _lose_at(self, what: str, place: str, times: int) -> None:
        if what == place and not self.done:
            self.at = (place, times - 1)
            if times == 1:
                self.done.append((self.kinds[0], what))
                self.die(what, power=self.kinds[0] == "power")

    def submitted(self, future: LateFuture) -> None:
        """Another thread got something to do: it is done when somebody waits for it, or asks."""

    def after_short_write(self, what: str) -> None:
        """A part was written: the disk is full, or the driver is gone."""
        if self.rng.random() < 0.5:
            self.die(what, power=self.rng.random() < 0.5)
        raise OSError(errno.ENOSPC, f"injected in the middle of {what}")


class _FaultyStream(io.FileIO):
    """A file whose writes may stop half way."""

    def __init__(self, path: Any, mode: str, faults: Faults) -> None:
        super().__init__(path, mode)
        self._faults = faults
        self._what = f"write {kind_of(path)}"

    def write(self, data: Any) -> int:
        if self._faults.step(self._what, can_be_short=True):
            super().write(memoryview(data)[: len(data) // 2])
            self._faults.after_short_write(self._what)
        return super().write(data) or 0


class _FaultyModule:
    """Stands for `os` or `shutil` in a module under test."""

    def __init__(self, real: Any, faults: Faults, disk: Disk, names: Sequence[str]) -> None:
        self._real = real
        self._faults = faults
        self._disk = disk
        self._names = frozenset(names)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name not in self._names:
            return found
        if name == "fsync":
            return self._fsync

        def call(*args: Any, **kwargs: Any) -> Any:
            path = args[1] if name in {"replace", "rename", "link", "copyfile"} else args[0]
            try:
                self._faults.step(f"{name} {kind_of(path)}")
            except OSError:
                if kwargs.get("ignore_errors"):
                    return None
                raise
            after = self._disk.watch(name, args)
            result = found(*args, **kwargs)
            after()
            return result

        return call

    def _fsync(self, descriptor: int) -> None:
        """Sync a file of the simulated disk; the real one need not spin for it."""
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        try:
            self._faults.step(f"fsync {kind_of(path)}")
        except OSError:
            self._disk.sync(path, failed=True)
            raise
        self._disk.sync(path)


def kind_of(path: Any) -> str:
    """Say what sort of file it is, so that many crashes can be counted by where they came."""
    text = str(path)
    for part, kind in (
        ("_metadata", "metadata"),
        (".json", "end"),
        ("dropped-", "drop"),
        ("fence-", "fence"),
        ("savepoint-", "savepoint"),
        ("epochs-", "epochs"),
        ("reserved-", "reserved"),
        (".change", "change"),
        (".merged", "base"),
        ("chk-", "checkpoint"),
        (".staging", "staged"),
        ("part-", "part"),
        ("shared", "shared"),
        ("token-", "token"),
        ("/jobs/", "job"),
    ):
        if part in text:
            return kind
    return "directory"


_OS = (
    *("makedirs", "mkdir", "replace", "remove", "link", "rename", "listdir", "stat", "unlink", "rmdir"),
    *("open", "fsync"),
)


@contextmanager
def injected(faults: Faults, disk: Disk) -> Iterator[None]:
    """Have every call of the operating system by the storage layer pass the faults.

    Args:
        faults: What fails.
        disk: Learns what was done.
    """

    def faulty_open(path: Any, mode: str = "r", **options: Any) -> Any:
        faults.step(f"open {kind_of(path)}")
        if "w" not in mode and "x" not in mode:
            return builtins.open(path, mode, **options)
        if not os.path.exists(path):
            faults.step(f"create {kind_of(path)}")
        stream = _FaultyStream(path, mode, faults)
        disk.created(str(path))
        return stream

    faulty_os = _FaultyModule(os, faults, disk, _OS)
    replaced: list[tuple[Any, str, Any]] = [
        (local, "os", faulty_os),
        (local, "open", faulty_open),
        (local, "shutil", _FaultyModule(shutil, faults, disk, ("rmtree", "copyfile"))),
        (checkpointing, "ThreadPoolExecutor", lambda *_, **__: _Late(faults)),
        (checkpointing, "wait", _finish_all),
        (storage, "ThreadPoolExecutor", _Inline),
    ]
    before = [(module, name, module.__dict__.get(name)) for module, name, _ in replaced]
    for module, name, value in replaced:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            if value is None:
                delattr(module, name)
            else:
                setattr(module, name, value)


class _Inline(Executor):
    """Does at once what it is given."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def map(self, fn: Callable[..., Any], *iterables: Any, **kwargs: Any) -> Iterator[Any]:
        return iter([fn(*args) for args in zip(*iterables, strict=True)])


class _Late(Executor):
    """Does what it is given some time after: when somebody waits for it, or asks often enough."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = LateFuture(lambda: fn(*args, **kwargs), self._faults.rng)
        self._faults.submitted(future)
        return future


class LateFuture(Future[Any]):
    """Work of another thread that has not been done yet."""

    def __init__(self, work: Callable[[], Any], rng: random.Random) -> None:
        super().__init__()
        self._work = work
        self._rng = rng

    def finish(self) -> None:
        """Do it now."""
        if self.running():
            raise Crash("in the middle of what was being written")
        if not super().done() and self.set_running_or_notify_cancel():
            try:
                self.set_result(self._work())
            except Exception as error:
                self.set_exception(error)

    def done(self) -> bool:
        if not super().done() and self._rng.random() < 0.6:
            self.finish()
        return super().done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.finish()
        return super().exception(timeout)


def _finish_all(futures: Sequence[LateFuture], **_: Any) -> None:
    for future in futures:
        future.finish()
