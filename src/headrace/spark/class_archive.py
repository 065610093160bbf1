"""An archive of the classes that Spark loads when it starts: Java maps it into memory and does not read the jars.

Loading classes is half of what Spark's Java process does in the first seconds. So the first program on a machine has
Java write an archive, after the program itself has ended, and later ones start with it. (In a container, or where tests
are run for every change, it is the second one: where every program has a new home, an archive would be written every
time and never used.) There is one archive for programs with streams only and one for those with tables, for each Java
and each installation of Spark. Java checks that an archive fits, and goes without it if not.

    classes-<digest>-streams.seen            a program has run in a container
    classes-<digest>-streams.<pid>.partial   written when the Java process of this driver ends; then it is left alone
    classes-<digest>-streams.jsa             in use
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from headrace.spark.installation import spark_home
from headrace.util.cache_home import cache_home

__all__ = ["archive_options"]

#: Options of a user who arranges this otherwise.
_OTHERS: Final = (
    "-XX:SharedArchiveFile",
    "-XX:ArchiveClassesAtExit",
    "-Xshare",
    "-XX:+AutoCreateSharedArchive",
)
#: Variables of systems that run programs in places made for them, and files that are in containers.
_PASSING: Final = ("CI", "KUBERNETES_SERVICE_HOST", "container")
_IN_CONTAINERS: Final = ("/.dockerenv", "/run/.containerenv")
#: Java writes an archive in one go, within a second or two; one that is older than this, in s, is complete.
_WRITTEN_S: Final = 20.0
#: Archives that were not used for so long, in s, are of another Java or an older Spark.
_UNUSED_S: Final = 90 * 86400.0


def archive_options(kind: str, given: str, environment: Mapping[str, str]) -> str:
    """Return options for Java: to start with the archive, to write it if there is none, or nothing.

    Args:
        kind: ``streams`` or ``tables``.
        given: The options that Java gets anyway.
        environment: Variables of the process.
    """
    if any(option in f"{given} {environment.get('SPARK_SUBMIT_OPTS', '')}" for option in _OTHERS):
        return ""
    java = _java(environment)
    directory = cache_home()
    if java is None or directory is None:
        return ""
    archive = directory / f"classes-{_digest(java)}-{kind}.jsa"
    # What Java has to say about classes and archives is nothing to a program's user.
    quiet = "-Xlog:cds*=off -Xlog:class*=off"
    if _adopt(archive, time.time()):
        return f'"-XX:SharedArchiveFile={archive}" {quiet}'
    if any(archive.parent.glob(f"{archive.stem}.*.partial")):
        return ""
    if _is_passing(environment) and not _is_seen(archive.with_suffix(".seen")):
        return ""
    _remove_unused(directory, time.time())
    partial = archive.with_suffix(f".{os.getpid()}.partial")
    return f'"-XX:ArchiveClassesAtExit={partial}" {quiet}'


def _java(environment: Mapping[str, str]) -> Path | None:
    home = environment.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java", path=environment.get("PATH"))
    return Path(found).resolve() if found else None


def _digest(java: Path) -> str:
    """Name what an archive depends on: Java, and where which Spark is installed."""
    changed = java.stat().st_mtime_ns
    parts = f"{java}\n{changed}\n{version('pyspark')}\n{spark_home()}"
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def _adopt(archive: Path, now: float) -> bool:
    """Whether there is an archive, perhaps one that an earlier process has written completely since."""
    for partial in archive.parent.glob(f"{archive.stem}.*.partial"):
        with suppress(OSError):
            # Programs that ended at the same time have each written one: the last stays.
            if now - partial.stat().st_mtime > _WRITTEN_S:
                partial.replace(archive)
    with suppress(OSError):
        os.utime(archive)
        return True
    return False


def _is_passing(environment: Mapping[str, str]) -> bool:
    """Whether the home directory may be gone after this program, as in containers and where changes are tested."""
    is_told = any(environment.get(name) for name in _PASSING)
    return is_told or any(os.path.exists(path) for path in _IN_CONTAINERS)


def _is_seen(mark: Path) -> bool:
    """Whether an earlier program has left its mark; leave it if not."""
    with suppress(FileExistsError):
        mark.touch(exist_ok=False)
        return False
    return True


def _remove_unused(directory: Path, now: float) -> None:
    for each in directory.glob("classes-*"):
        with suppress(OSError):
            if now - each.stat().st_mtime > _UNUSED_S:
                each.unlink()
