"""Options that several commands share, and the configuration they make."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from headrace.config import Configuration

__all__ = [
    "configuration_options",
    "json_option",
    "load_configuration",
    "property_option",
    "python_options",
    "python_properties",
    "recovery_options",
    "recovery_properties",
]

F = TypeVar("F", bound=Callable[..., Any])


def _split_properties(
    _context: click.Context, _parameter: click.Parameter, given: Sequence[str]
) -> dict[str, str]:
    properties = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"expected key=value; got {text!r}")
        properties[key.strip()] = value.strip()
    return properties


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
property_option = click.option(
    "-D",
    "properties",
    metavar="KEY=VALUE",
    multiple=True,
    callback=_split_properties,
    help="Set a configuration option; may be repeated. `headrace config --defaults` lists them all. In VALUE, "
    "${env:NAME} and ${file:PATH} stand for a variable and the content of a file: use them for secrets.",
)


def configuration_options(command: F) -> F:
    """Add -D, -p and --master to a command."""
    parallelism = click.option(
        "-p", "--parallelism", type=int, metavar="N", help="Subtasks per operator; parallelism.default."
    )
    master = click.option("--master", metavar="URL", help="The Spark master; headrace.spark.master.")
    return property_option(parallelism(master(command)))


def python_options(command: F) -> F:
    """Add what travels with a program to a command: -pyfs, -pyreq, -pyarch, -pyexec."""
    files = click.option(
        "-pyfs", "--pyFiles", "python_files", metavar="FILES", help="python.files, separated by commas."
    )
    requirements = click.option(
        "-pyreq",
        "--pyRequirements",
        "requirements",
        metavar="FILE[#DIR]",
        help="python.requirements; DIR has the packages, for workers without access to a package index.",
    )
    archives = click.option(
        "-pyarch",
        "--pyArchives",
        "archives",
        metavar="FILES",
        help="python.archives, separated by commas: FILE or FILE#DIR.",
    )
    executable = click.option(
        "-pyexec", "--pyExecutable", "executable", metavar="PATH", help="python.executable."
    )
    return files(requirements(archives(executable(command))))


def python_properties(
    files: str | None, requirements: str | None, archives: str | None, executable: str | None
) -> dict[str, str]:
    """Return the configuration that these options make."""
    from headrace.config.options import python

    named = {
        python.FILES.key: files,
        python.REQUIREMENTS.key: requirements,
        python.ARCHIVES.key: archives,
        python.EXECUTABLE.key: executable,
    }
    return {key: value for key, value in named.items() if value is not None}


def recovery_options(command: F) -> F:
    """Add what a program starts from to a command: -s, -n, --claim-mode."""
    savepoint = click.option(
        "-s",
        "--from-savepoint",
        "--fromSavepoint",
        "savepoint",
        metavar="PATH",
        help="Start from this savepoint or checkpoint; execution.state-recovery.path.",
    )
    leaves_state = click.option(
        "-n",
        "--allow-non-restored-state",
        "--allowNonRestoredState",
        "leaves_state",
        is_flag=True,
        help="Discard state of operators that the program no longer has.",
    )
    claim_mode = click.option(
        "--claim-mode",
        "-rm",
        "--claimMode",
        type=click.Choice(["NO_CLAIM", "CLAIM"], case_sensitive=False),
        help="Whether the job takes ownership of the savepoint and deletes it when it is no longer needed.",
    )
    return savepoint(leaves_state(claim_mode(command)))


def recovery_properties(
    savepoint: str | None, claim_mode: str | None, *, leaves_state: bool
) -> dict[str, str]:
    """Return the configuration that these options make."""
    from headrace.config.options import checkpointing

    if savepoint is None and (leaves_state or claim_mode):
        raise click.UsageError("--allow-non-restored-state and --claim-mode need --from-savepoint")
    named = {
        checkpointing.RECOVERY_PATH.key: savepoint,
        checkpointing.RECOVERY_IGNORE_UNCLAIMED_STATE.key: "true" if leaves_state else None,
        checkpointing.RECOVERY_CLAIM_MODE.key: claim_mode,
    }
    return {key: value for key, value in named.items() if value is not None}


def load_configuration(
    properties: dict[str, str], parallelism: int | None = None, master: str | None = None
) -> Configuration:
    """Collect file, environment and command line; what is odd about them is said on the standard error.

    Raises:
        ConfigurationError: If a key is unknown or a value is wrong.
    """
    from headrace.config import Configuration
    from headrace.config.options.execution import PARALLELISM
    from headrace.config.options.spark import MASTER

    named = {PARALLELISM.key: parallelism, MASTER.key: master}
    values = properties | {key: value for key, value in named.items() if value is not None}
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        configuration = Configuration.load(command_line=values)
    for warning in noticed:
        click.echo(f"warning: {warning.message}", err=True)
    _warn_of_secrets(properties, configuration)
    _warn_of_keys_without_effect(configuration)
    return configuration


def _warn_of_keys_without_effect(configuration: Configuration) -> None:
    """Say it with the reason for what was just typed, and in one line for a file, which may come from Flink."""
    from headrace.config.configuration import Layer
    from headrace.config.notices import was_said

    ignored = configuration.ignored()
    elsewhere: dict[str, list[str]] = {}
    for entry in configuration.entries():
        if entry.key not in ignored:
            continue
        if entry.layer is Layer.CLI:
            click.echo(f"warning: {entry.key} has no effect: {ignored[entry.key]}", err=True)
        else:
            elsewhere.setdefault(entry.place, []).append(entry.key)
    for place, keys in elsewhere.items():
        click.echo(
            f"warning: no effect, set in {place}: {', '.join(keys)} (`headrace config` says why)", err=True
        )
    was_said(set(ignored))


def _warn_of_secrets(properties: dict[str, str], configuration: Configuration) -> None:
    from headrace.config.references import has_reference

    for key, value in properties.items():
        if configuration.is_secret(key) and not has_reference(value):
            click.echo(
                f"warning: every user of this machine can see {key} in the list of processes; write "
                f"-D '{key}=${{file:PATH}}' or -D '{key}=${{env:NAME}}'",
                err=True,
            )
