"""Artifacts on their way to the executors: Spark fetches each file once per executor.

Workers that serve a job with artifacts serve no other: modules that were imported, and the working directory, belong to
the process. Spark keeps workers apart by the environment and the interpreter they are asked for with, so a job with
artifacts asks for an environment of its own.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

from pyspark import SparkContext, SparkFiles

from headrace.errors import ConfigurationError
from headrace.runtime.artifacts import Artifact, ArtifactKind, ShippedArtifact, stage
from headrace.spark.masters import ClusterManager
from headrace.util.host_directories import HeldDirectory, make_temporary

_lock = threading.Lock()
#: Guards what a context is told about workers while stages are built.
_build_lock = threading.RLock()
#: Names of files that Spark has; a context never releases one.
_added: dict[str, set[str]] = {}


@dataclass(frozen=True)
class WorkerKind:
    """Which workers a job wants."""

    #: Part of their environment.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Their interpreter; None for that of the context.
    executable: str | None = None

    @contextmanager
    def asked_for(self, context: SparkContext) -> Iterator[None]:
        """Have stages that are built meanwhile run in such workers."""
        with _build_lock:
            environment, executable = dict(context.environment), context.pythonExec
            context.environment.update(self.environment)
            context.pythonExec = self.executable or executable
            try:
                yield
            finally:
                context.environment.clear()
                context.environment.update(environment)
                context.pythonExec = executable


def ship(
    context: SparkContext, artifacts: Sequence[Artifact], executable: str | None
) -> tuple[tuple[ShippedArtifact, ...], WorkerKind]:
    """Give a job's artifacts to Spark; returns what workers are told of them, and which workers it takes.

    Args:
        context: Spark.
        artifacts: What the job brings along.
        executable: The interpreter that is asked for; it may be in an archive.

    Raises:
        ConfigurationError: If a file cannot be read.
    """
    shipped = []
    staged: dict[str, Path] = {}
    for artifact in artifacts:
        sent, path = stage(artifact, Path(_staging().path))
        shipped.append(sent)
        staged[sent.file] = path
    inside = _archive_of(executable, shipped)
    with _lock:
        added = _added.setdefault(context.applicationId, set())
        for sent in shipped:
            if sent.file not in added:
                added.add(sent.file)
                context.addFile(str(staged[sent.file]))
        if inside is not None and f"env-{inside.file}" not in added:
            # Spark unpacks it before the first worker starts, which we could not.
            added.add(f"env-{inside.file}")
            context.addArchive(f"{staged[inside.file]}#env-{inside.file}")
    digest = hashlib.sha256("\0".join(sorted(f"{each}" for each in shipped)).encode()).hexdigest()[:16]
    environment = {"HEADRACE_ARTIFACTS": digest} if shipped else {}
    return tuple(shipped), WorkerKind(environment, _interpreter(context, executable, inside))


def _archive_of(executable: str | None, shipped: Sequence[ShippedArtifact]) -> ShippedArtifact | None:
    """Return the archive that an interpreter is in, such as `env.zip/bin/python` in `env.zip`."""
    if executable is None or "/" not in executable.removeprefix("./") or os.path.isabs(executable):
        return None
    first = PurePosixPath(executable).parts[0]
    for each in shipped:
        if each.kind is ArtifactKind.ARCHIVE and each.name == first:
            return each
    archives = ", ".join(each.name for each in shipped if each.kind is ArtifactKind.ARCHIVE) or "none"
    raise ConfigurationError(
        f"python.executable: {executable!r} is not in any archive of the job; its archives are {archives}",
        hint="use an absolute path, a command, or ARCHIVE/path/to/python",
    )


def _interpreter(context: SparkContext, executable: str | None, inside: ShippedArtifact | None) -> str | None:
    if inside is None or executable is None:
        return executable
    within = PurePosixPath(executable).relative_to(inside.name)
    # Executors of a cluster have it in their working directory; a local one is this process.
    is_local = ClusterManager.of(context.master or "local") is ClusterManager.LOCAL
    folder = SparkFiles.getRootDirectory() if is_local else "."
    return f"{folder}/env-{inside.file}/{within}"


@cache
def _staging() -> HeldDirectory:
    """Return where files lie that Spark fetches, as long as it lives."""
    atexit.register(clear_staging)
    return make_temporary("artifacts")


def clear_staging() -> None:
    """Delete the files, now that no Spark wants them any more."""
    if _staging.cache_info().currsize:
        _staging().remove()
        _staging.cache_clear()
