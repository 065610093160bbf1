"""`headrace doctor`: whether this machine has what jobs need, and what to do if not."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.errors import ExitCode
from headrace.cli.options import json_option, load_configuration, property_option
from headrace.cli.text import duration_text, print_json, print_table
from headrace.cli.version import java_version
from headrace.util.disk_space import readable_size

if TYPE_CHECKING:
    from headrace.config import Configuration

__all__ = ["doctor"]

_LEAST_JAVA = 17
_LEAST_FREE = 1024**3


@dataclass(frozen=True)
class Finding:
    """What was looked at."""

    what: str
    is_fine: bool
    found: str
    #: What to do about it.
    advice: str = ""
    #: Whether it is worth knowing although nothing has to be fixed.
    is_note: bool = False

    @property
    def status(self) -> str:
        """How it is shown."""
        return "FIX" if not self.is_fine else "note" if self.is_note else "ok"


@click.command(short_help="Check what jobs need: Java, Spark, ports, storage.")
@property_option
@click.option("--master", metavar="URL", help="The Spark master to look for; headrace.spark.master.")
@click.option("--clean", is_flag=True, help="Remove the directories that killed jobs left on this host.")
@json_option
@click.pass_context
def doctor(
    context: click.Context, properties: dict[str, str], master: str | None, clean: bool, as_json: bool
) -> None:
    """Check what jobs need, and say what to fix. The exit code is 1 if something is missing.

    Directories that killed jobs left on this host are listed with their owner, size and age. The next job
    that starts here removes them; so does `--clean`. Directories that a process uses are never removed.
    """
    configuration = load_configuration(properties, master=master)
    findings = [*(_cleaned(configuration) if clean else ()), *examine(configuration)]
    findings = [each if each.status != "ok" else replace(each, advice="") for each in findings]
    if as_json:
        print_json([asdict(each) for each in findings])
    else:
        rows = [[each.status, each.what, each.found, each.advice] for each in findings]
        print_table(("", "WHAT", "FOUND", "WHAT TO DO"), rows, folded=("FOUND", "WHAT TO DO"))
    if not all(finding.is_fine for finding in findings):
        context.exit(ExitCode.FAILED)


def examine(configuration: Configuration) -> Iterator[Finding]:
    """Run every check of `headrace doctor` and yield its findings."""
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        _python,
        _java,
        _spark,
        lambda: _master(configuration),
        lambda: _rest(configuration),
        lambda: _directories(configuration),
        lambda: _scratch(configuration),
        lambda: _leftovers(configuration),
        _host_name,
    )
    for check in checks:
        yield from check()


def _python() -> Iterator[Finding]:
    yield Finding("Python", True, platform.python_version())


def _java() -> Iterator[Finding]:
    version = java_version()
    number = re.match(r"(?:1\.)?(\d+)", version)
    is_fine = number is not None and int(number[1]) >= _LEAST_JAVA
    yield Finding("Java", is_fine, version, f"install Java {_LEAST_JAVA} or later, or set JAVA_HOME to it")


def _spark() -> Iterator[Finding]:
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        yield Finding("PySpark", False, "not installed", "pip install 'pyspark==4.3.*'")
        return
    yield Finding("PySpark", version.startswith("4.3."), version, "pip install 'pyspark==4.3.*'")
    home = os.environ.get("SPARK_HOME")
    if home:
        yield Finding("SPARK_HOME", Path(home).is_dir(), home, "unset it, or point it to Spark 4.3")


def _master(configuration: Configuration) -> Iterator[Finding]:
    from headrace.config.options.spark import MASTER
    from headrace.errors import HeadraceError
    from headrace.spark.masters import ClusterManager, check_master

    master = configuration.get(MASTER)
    try:
        check_master(master)
    except HeadraceError as error:
        yield Finding("Spark master", False, error.message, error.hint or "")
        return
    yield Finding("Spark master", True, f"{master}: {ClusterManager.of(master).value}")


def _rest(configuration: Configuration) -> Iterator[Finding]:
    from headrace.errors import ConfigurationError
    from headrace.rest.settings import RestSettings

    try:
        settings = RestSettings.from_configuration(configuration)
    except ConfigurationError as error:
        yield Finding("REST", False, error.message, error.hint or "")
        return
    for port in settings.ports:
        try:
            with socket.socket(
                socket.AF_INET6 if ":" in settings.bind_address else socket.AF_INET
            ) as listener:
                listener.bind((settings.bind_address, port))
        except OSError:
            continue
        yield Finding("REST", True, f"{settings.bind_address}:{port} is free")
        return
    yield Finding("REST", False, "no port is free", "set rest.bind-port to other ports")


def _directories(configuration: Configuration) -> Iterator[Finding]:
    from headrace.config.options import checkpointing, high_availability, logs
    from headrace.config.options import rest as rest_options

    for option in (
        checkpointing.DIRECTORY,
        checkpointing.SAVEPOINT_DIRECTORY,
        high_availability.STORAGE_DIRECTORY,
        rest_options.ARCHIVE_DIRECTORY,
        logs.DIRECTORY,
    ):
        place = configuration.get(option)
        if place:
            yield _directory(option.key, place)


def _directory(key: str, place: str) -> Finding:
    from uuid import uuid4

    from headrace.errors import HeadraceError
    from headrace.storage.files import delete_files, read_file, write_new_file
    from headrace.storage.paths import join_path

    path = join_path(place, f".headrace-doctor-{uuid4().hex[:8]}")
    try:
        write_new_file(path, b"?")
        read_file(path)
        delete_files([path])
    except (OSError, ValueError, HeadraceError) as error:
        return Finding(key, False, f"{place}: {error}", "use a directory that every host can write to")
    return Finding(key, True, f"{place} can be written")


def _scratch_places(configuration: Configuration) -> list[str]:
    """Return where jobs keep temporary files and copies of state on this host."""
    from headrace.config.options import rocksdb, state
    from headrace.util.host_directories import usual_parents

    named = [configuration.get(state.LOCAL_DIRECTORY), *configuration.get(rocksdb.LOCAL_DIRECTORIES)]
    return list(dict.fromkeys([*usual_parents(), *filter(None, named)]))


def _scratch(configuration: Configuration) -> Iterator[Finding]:
    for place in _scratch_places(configuration):
        if Path(place).is_dir():
            free = shutil.disk_usage(place).free
            yield Finding(
                f"space in {place}",
                free >= _LEAST_FREE,
                f"{free / 1024**3:.1f} GiB free",
                "free at least 1 GiB there",
            )


def _leftovers(configuration: Configuration) -> Iterator[Finding]:
    from headrace.util.host_directories import DirectoryVerdict, find_directories

    advice = {
        DirectoryVerdict.LEFTOVER: "`headrace doctor --clean` removes it, and so does the next job on this host",
        DirectoryVerdict.FOREIGN: "it belongs to another user, who can remove it if no job uses it",
        DirectoryVerdict.UNKNOWN: "an earlier version of headrace may have left it; delete it if no job uses it",
    }
    found = [
        each
        for each in find_directories(_scratch_places(configuration))
        if each.verdict is not DirectoryVerdict.IN_USE
    ]
    if not found:
        yield Finding("leftovers", True, "none")
    for each in found:
        whose = "unknown owner" if each.owner is None else str(each.owner)
        size, age = readable_size(each.size), duration_text(int(each.age_s * 1000))
        text = f"{each.path}: {size}, unused for {age}; user {each.user}, {whose}"
        yield Finding("leftover", True, text, advice[each.verdict], is_note=True)


def _cleaned(configuration: Configuration) -> Iterator[Finding]:
    from headrace.util.host_directories import sweep

    for path in sweep(_scratch_places(configuration)):
        yield Finding("removed", True, path)


def _host_name() -> Iterator[Finding]:
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError as error:
        yield Finding(
            "host name",
            False,
            f"{name}: {error}",
            "add it to /etc/hosts, or set spark.driver.host: 127.0.0.1",
        )
        return
    yield Finding("host name", True, name)
