"""Artifacts: files that travel with a job. What the options name, and the form in which they leave the driver.

    python.files, python.archives, ...   --find_artifacts-->  Artifact      where it is, what workers call it
                                         --stage----------->  Shipped       one plain file with a name of its own

A directory is packed to a zip file. The name of a shipped file begins with the digest of its content, so that jobs
which share a Spark never get each other's files, and the same file travels once. The other end is
`runtime/task/workplace.py`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from uuid import uuid4

from headrace.config.configuration import Configuration
from headrace.config.options import python
from headrace.config.parsing import parse_map
from headrace.errors import ConfigurationError, DiskFullError
from headrace.storage.files import copy_file, write_new_file
from headrace.storage.paths import PathError, is_local, join_path, local_path
from headrace.util.disk_space import watching_space
from headrace.util.host_directories import temporary_directory

#: What to do where there is no space for copies.
_ELSEWHERE = "set TMPDIR to a directory on a larger disk"
#: Ends the name of a file that was a directory.
_PACKED = ".directory.zip"
_DIGEST_CHARACTERS = 16
_NAME = re.compile(r"[\w][\w.+-]*")
#: What `bundle` calls a file.
_BUNDLED = re.compile(r"[0-9a-f]{16}/[A-Za-z0-9_+-][A-Za-z0-9._+-]*")


class ArtifactKind(Enum):
    """What happens to an artifact in a worker."""

    #: On the import path; archives and directories are unpacked before.
    PYTHON_FILE = "python file"
    #: Unpacked into the working directory.
    ARCHIVE = "archive"
    #: Packages that are installed ...
    REQUIREMENTS = "requirements file"
    #: ... from these files, instead of an index.
    PACKAGES = "packages"
    #: A file that functions ask for by name.
    CACHED_FILE = "cached file"


@dataclass(frozen=True)
class Artifact:
    """A file or directory that the driver can read."""

    kind: ArtifactKind
    #: A path, or the URI of a file on a storage that pyarrow knows.
    path: str
    #: What workers call it: a directory of theirs, or the name of a cached file.
    name: str
    is_executable: bool = False

    @property
    def is_directory(self) -> bool:
        """Whether it is one, or was one before it was packed."""
        return self.path.endswith(_PACKED) or (is_local(self.path) and os.path.isdir(local_path(self.path)))


@dataclass(frozen=True)
class ShippedArtifact:
    """An artifact on its way: one file."""

    kind: ArtifactKind
    #: As `Artifact.name`.
    name: str
    #: The file's name on the way, different for different content.
    file: str
    is_directory: bool = False
    is_executable: bool = False


def find_artifacts(configuration: Configuration) -> tuple[Artifact, ...]:
    """Return what the options name.

    Raises:
        ConfigurationError: If a file is not there, or two would be in each other's place.
    """
    found = _named(configuration)
    _check(found)
    return tuple(found)


def _named(configuration: Configuration) -> list[Artifact]:
    found = [
        Artifact(ArtifactKind.PYTHON_FILE, path, _base_name(path)) for path in configuration.get(python.FILES)
    ]
    for text in configuration.get(python.ARCHIVES):
        path, _, target = text.partition("#")
        found.append(Artifact(ArtifactKind.ARCHIVE, path, target or _base_name(path)))
    requirements = configuration.get(python.REQUIREMENTS)
    if requirements:
        path, _, packages = requirements.partition("#")
        found.append(Artifact(ArtifactKind.REQUIREMENTS, path, _base_name(path)))
        if packages:
            found.append(Artifact(ArtifactKind.PACKAGES, packages, _base_name(packages)))
    cached = configuration.get(python.CACHED_FILES)
    return [*found, *(_cached_file(text) for text in cached.split(";") if text.strip())]


def cached_file_option(name: str, path: str, *, is_executable: bool) -> str:
    """Write an entry of `pipeline.cached-files`, as Flink does.

    Example:
        >>> cached_file_option("model", "/models/a.bin", is_executable=False)
        'name:model,path:/models/a.bin,executable:false'
    """
    return f"name:{name},path:{path},executable:{str(is_executable).lower()}"


def stage(artifact: Artifact, directory: Path) -> tuple[ShippedArtifact, Path]:
    """Copy an artifact to a directory, under the name it travels by; nothing is copied twice.

    Raises:
        ConfigurationError: If it cannot be read.
        DiskFullError: If there is no space for the copy.
    """
    partial = directory / f"{uuid4().hex}.part"
    try:
        with watching_space(str(partial), f"a copy of {artifact.path!r}", _ELSEWHERE):
            _copy(artifact, partial)
        digest = _digest(partial)
    except (OSError, DiskFullError) as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, DiskFullError):
            raise
        raise ConfigurationError(
            f"the {artifact.kind.value} {artifact.path!r} cannot be read: {error.strerror or error}"
        ) from error
    file = f"{digest}-{re.sub(r'[^A-Za-z0-9._+-]', '_', _base_name(artifact.path))}"
    if artifact.is_directory and not file.endswith(_PACKED):
        file += _PACKED
    os.replace(partial, directory / file)
    shipped = ShippedArtifact(
        artifact.kind, artifact.name, file, artifact.is_directory, artifact.is_executable
    )
    return shipped, directory / file


def _copy(artifact: Artifact, target: Path) -> None:
    if artifact.is_directory and not artifact.path.endswith(_PACKED):
        _pack(Path(local_path(artifact.path)), target)
    elif is_local(artifact.path):
        shutil.copyfile(local_path(artifact.path), target)
    else:
        copy_file(artifact.path, str(target))


def _options_naming(artifacts: Sequence[Artifact], paths: Mapping[str, str]) -> dict[str, str]:
    """Write the options that name artifacts, which have other paths now; workers go on calling them as before."""
    texts: dict[ArtifactKind, list[str]] = {kind: [] for kind in ArtifactKind}
    for each in artifacts:
        path = paths.get(each.path)
        if path is None:
            raise ConfigurationError(f"the {each.kind.value} {each.path!r} was not sent with the job")
        if each.kind is ArtifactKind.ARCHIVE:
            path = f"{path}#{each.name}"
        elif each.kind is ArtifactKind.CACHED_FILE:
            path = cached_file_option(each.name, path, is_executable=each.is_executable)
        texts[each.kind].append(path)
    options = {
        python.FILES.key: ";".join(texts[ArtifactKind.PYTHON_FILE]),
        python.ARCHIVES.key: ";".join(texts[ArtifactKind.ARCHIVE]),
        python.REQUIREMENTS.key: "#".join([*texts[ArtifactKind.REQUIREMENTS], *texts[ArtifactKind.PACKAGES]]),
        python.CACHED_FILES.key: ";".join(texts[ArtifactKind.CACHED_FILE]),
    }
    return {key: value for key, value in options.items() if value}


def bundle(configuration: Configuration) -> tuple[dict[str, str], dict[str, bytes]]:
    """Take artifacts along to another driver: the options with names in the place of paths, and content by name.

    Raises:
        ConfigurationError: If an artifact cannot be read.
    """
    artifacts = find_artifacts(configuration)
    names: dict[str, str] = {}
    content: dict[str, bytes] = {}
    with temporary_directory("bundle") as directory:
        for artifact in artifacts:
            shipped, path = stage(artifact, Path(directory))
            # Digest and name are apart, because a Python file is imported by its own name.
            name = shipped.file.replace("-", "/", 1)
            names[artifact.path] = name
            content[name] = path.read_bytes()
    return _options_naming(artifacts, names), content


def unbundle(
    configuration: Mapping[str, str], content: Mapping[str, bytes], directory: str
) -> dict[str, str]:
    """Write what `bundle` took along to a directory; returns the options with its paths.

    Raises:
        ConfigurationError: If a name is not one that `bundle` makes.
    """
    paths = {}
    for name, data in content.items():
        if not _BUNDLED.fullmatch(name):
            raise ConfigurationError(f"{name[:100]!r} is not a valid artifact name")
        paths[name] = join_path(directory, *name.split("/"))
        write_new_file(paths[name], data)
    return {**configuration, **_options_naming(_named(Configuration(configuration)), paths)}


def _cached_file(text: str) -> Artifact:
    try:
        fields = parse_map(text)
        name, path = fields["name"], fields["path"]
    except (ValueError, KeyError):
        raise ConfigurationError(
            f"{python.CACHED_FILES.key}: expected entries such as 'name:model,path:/models/a.bin'; got {text!r}"
        ) from None
    is_executable = fields.get("executable", "false").lower() == "true"
    return Artifact(ArtifactKind.CACHED_FILE, path, name, is_executable)


def _check(artifacts: Sequence[Artifact]) -> None:
    taken: dict[tuple[ArtifactKind, str], str] = {}
    for artifact in artifacts:
        what = f"the {artifact.kind.value} {artifact.path!r}"
        try:
            is_missing = is_local(artifact.path) and not os.path.exists(local_path(artifact.path))
        except PathError as error:
            raise ConfigurationError(f"the {artifact.kind.value}: {error.message}", hint=error.hint) from None
        if is_missing:
            raise ConfigurationError(
                f"{what} does not exist", hint="paths refer to the machine where the program is submitted"
            )
        if artifact.kind is ArtifactKind.REQUIREMENTS and artifact.is_directory:
            raise ConfigurationError(f"{what} is a directory; give the path of a requirements file")
        if artifact.kind not in (ArtifactKind.ARCHIVE, ArtifactKind.CACHED_FILE):
            continue
        if artifact.kind is ArtifactKind.ARCHIVE and not _NAME.fullmatch(artifact.name):
            raise ConfigurationError(
                f"{what} cannot be unpacked into {artifact.name!r}",
                hint="write the name of a directory, without slashes, after the #",
            )
        other = taken.setdefault((artifact.kind, artifact.name), artifact.path)
        if other != artifact.path:
            raise ConfigurationError(f"{what} conflicts with {other!r}: both are named {artifact.name!r}")


def _base_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].removesuffix(_PACKED) or "file"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGEST_CHARACTERS]


def _pack(directory: Path, target: Path) -> None:
    """Write a directory to a zip file, the same one for the same content."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(directory.rglob("*")):
            if path.is_dir() or "__pycache__" in path.parts:
                continue
            entry = zipfile.ZipInfo(path.relative_to(directory).as_posix())
            entry.external_attr = (path.stat().st_mode & 0xFFFF) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
