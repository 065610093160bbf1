"""The workplace of a job's functions in an executor: its artifacts, unpacked and installed once for all workers.

    <the executor's directory>/headrace-artifacts/
        3f2a…-orders.py/orders.py          a python file: its directory is on the import path
        9c41…-data.zip/                    an archive, unpacked
        packages-77aa…/                    requirements, installed
        work-51c0…/data -> ../9c41…        the working directory of the job

What takes long happens under a lock and gets its name when it is complete; who comes later finds it done.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from headrace.errors import JobDefinitionError
from headrace.runtime.artifacts import ArtifactKind, ShippedArtifact
from headrace.util.disk_space import is_full, watching_space

_FOLDER = "headrace-artifacts"
#: What to do where there is no space for it.
_ELSEWHERE = "set spark.local.dir, or the work directory of Spark's workers, to a larger disk"
#: Python files that are directories in one file.
_UNPACKED = (".zip", ".egg", ".whl")
_ZIPPED = (*_UNPACKED, ".jar")
#: Of what pip says, the end has the reason.
_PIP_LINES = 12


@dataclass(frozen=True)
class Workplace:
    """What a job's functions find in a worker."""

    #: To be put on the import path, the first first.
    import_paths: tuple[str, ...] = ()
    #: The working directory; None to leave it as it is.
    directory: str | None = None
    #: Cached files by name.
    cached_files: Mapping[str, str] = field(default_factory=dict)

    def enter(self) -> None:
        """Make it this process's."""
        sys.path[:0] = [path for path in self.import_paths if path not in sys.path]
        if self.directory is not None:
            os.chdir(self.directory)


def prepare(artifacts: Sequence[ShippedArtifact], root: str, find: Callable[[str], str]) -> Workplace:
    """Unpack and install what a job brings along, unless another worker of the executor has done it.

    Args:
        artifacts: What was shipped.
        root: The executor's directory.
        find: Returns the path of a shipped file in this executor.

    Raises:
        JobDefinitionError: If an archive cannot be unpacked, or requirements cannot be installed.
        DiskFullError: If there is no space for it.
    """
    if not artifacts:
        return Workplace()
    folder = Path(root).resolve() / _FOLDER
    with watching_space(str(folder), "what the job brings along", _ELSEWHERE):
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            return _Preparation(folder, find).run(artifacts)


class _Preparation:
    def __init__(self, folder: Path, find: Callable[[str], str]) -> None:
        self._folder = folder
        self._find = find

    def run(self, artifacts: Sequence[ShippedArtifact]) -> Workplace:
        by_kind: dict[ArtifactKind, list[ShippedArtifact]] = {kind: [] for kind in ArtifactKind}
        for artifact in artifacts:
            by_kind[artifact.kind].append(artifact)
        paths = [self._importable(each) for each in by_kind[ArtifactKind.PYTHON_FILE]]
        packages = self._install(by_kind[ArtifactKind.REQUIREMENTS], by_kind[ArtifactKind.PACKAGES])
        return Workplace(
            import_paths=tuple(map(str, [*paths, *packages])),
            directory=self._working_directory(by_kind[ArtifactKind.ARCHIVE]),
            cached_files={each.name: str(self._cached(each)) for each in by_kind[ArtifactKind.CACHED_FILE]},
        )

    def _importable(self, artifact: ShippedArtifact) -> Path:
        if artifact.is_directory or artifact.file.endswith(_UNPACKED):
            return self._unpacked(artifact)
        return self._copied(artifact).parent

    def _cached(self, artifact: ShippedArtifact) -> Path:
        if artifact.is_directory:
            return self._unpacked(artifact)
        path = self._copied(artifact)
        if artifact.is_executable:
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def _working_directory(self, archives: Sequence[ShippedArtifact]) -> str | None:
        if not archives:
            return None
        unpacked = {each.name: self._unpacked(each) for each in archives}
        digest = _digest_of(*(f"{name}={path.name}" for name, path in sorted(unpacked.items())))

        def link(directory: Path) -> None:
            for name, path in unpacked.items():
                (directory / name).symlink_to(path, target_is_directory=True)

        return str(self._once(f"work-{digest}", link))

    def _install(
        self, requirements: Sequence[ShippedArtifact], packages: Sequence[ShippedArtifact]
    ) -> list[Path]:
        if not requirements:
            return []
        sources = [self._unpacked(each) for each in packages]
        file = self._find(requirements[0].file)
        digest = _digest_of(*(each.file for each in (*requirements, *packages)), sys.version)
        return [self._once(f"packages-{digest}", lambda target: _pip_install(file, sources, target))]

    def _unpacked(self, artifact: ShippedArtifact) -> Path:
        source = Path(self._find(artifact.file))
        return self._once(artifact.file, lambda target: unpack(source, artifact.name, target))

    def _copied(self, artifact: ShippedArtifact) -> Path:
        # The digest stays in the name of the directory: workers import the file by its own name.
        name = artifact.file.partition("-")[2]
        source = self._find(artifact.file)
        return self._once(artifact.file, lambda target: shutil.copyfile(source, target / name)) / name

    def _once(self, name: str, make: Callable[[Path], object]) -> Path:
        """Return a directory that is made by whoever needs it first."""
        path = self._folder / name
        if not path.exists():
            partial = self._folder / f"{uuid4().hex}.part"
            partial.mkdir()
            try:
                make(partial)
                partial.rename(path)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
        return path


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep the other workers of the executor waiting; a process that dies lets go."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def unpack(source: Path, name: str, target: Path) -> None:
    """Unpack an archive, and write nothing outside of its directory.

    Args:
        source: A zip or tar file.
        name: What the user calls it, for the message.
        target: An empty directory.

    Raises:
        JobDefinitionError: If it is not valid, is damaged, or leads out of its directory.
    """
    try:
        if source.name.endswith(_ZIPPED):
            with zipfile.ZipFile(source) as archive:
                for entry in archive.infolist():
                    _unpack_entry(archive, entry, target)
        elif tarfile.is_tarfile(source):
            with tarfile.open(source) as archive:
                # Links may lead anywhere, as those of virtual environments do, but nothing is written through them.
                archive.extractall(target, filter="tar")
        else:
            raise JobDefinitionError(
                f"archive {name!r} is neither a zip nor a tar file",
                hint="zip, jar, tar, tar.gz, tgz, tar.bz2, tar.xz",
            )
    except (zipfile.BadZipFile, tarfile.TarError, OSError, EOFError) as error:
        if is_full(error):
            raise
        raise JobDefinitionError(f"archive {name!r} cannot be unpacked: {error}") from error


def _unpack_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    path = target / entry.filename
    root = target.resolve()
    if os.path.isabs(entry.filename) or not path.parent.resolve().is_relative_to(root) or ".." in path.parts:
        raise zipfile.BadZipFile(f"its entry {entry.filename!r} points outside the archive")
    mode = entry.external_attr >> 16
    if entry.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(mode):
        path.symlink_to(archive.read(entry).decode())
        return
    if path.is_symlink():
        raise zipfile.BadZipFile(f"its entry {entry.filename!r} points outside the archive")
    with archive.open(entry) as content, path.open("wb") as file:
        shutil.copyfileobj(content, file)
    if mode & 0o111:
        path.chmod(0o755)


def _pip_install(requirements: str, sources: Sequence[Path], target: Path) -> None:
    offline = ["--no-index", *(word for source in sources for word in ("--find-links", str(source)))]
    command = [
        *(sys.executable, "-m", "pip", "install", "--requirement", requirements, "--target", str(target)),
        *("--no-input", "--disable-pip-version-check", "--no-warn-conflicts", "--progress-bar", "off"),
        *(offline if sources else []),
    ]
    # What the worker's own path holds must not be taken for what pip installs.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(  # noqa: S603 - the worker's own interpreter
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        said = "\n".join(done.stdout.strip().splitlines()[-_PIP_LINES:])
        raise JobDefinitionError(
            f"the requirements cannot be installed with {sys.executable}; pip says:\n{said}",
            hint="run pip by hand on the worker's host; if it cannot reach a package index, add a directory with the "
            "packages: requirements.txt#packages",
        )


def _digest_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
