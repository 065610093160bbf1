"""`headrace checkpoints` and `headrace savepoint` on disk: list, inspect and delete them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.job_commands import checkpoints, savepoint
from headrace.cli.options import json_option
from headrace.cli.text import print_json, print_table, size_text
from headrace.errors import HeadraceError, StateError

if TYPE_CHECKING:
    from headrace.state_processor import OperatorReader, Savepoint, StateRow

__all__ = ["checkpoints", "savepoint"]

_VALID = "valid"


# -- checkpoints list --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Listed:
    """One line of the list; numbers are None where the metadata cannot be read."""

    path: str
    state: str
    kind: str | None = None
    id: int | None = None
    job: str | None = None
    epoch: int | None = None
    time: str | None = None
    size: int | None = None

    @classmethod
    def at(cls, path: str) -> _Listed:
        from headrace.state_processor import Savepoint

        try:
            found = Savepoint.load(path)
        except HeadraceError as error:
            return cls(path, error.message)
        try:
            found.verify()
            state = _VALID
        except HeadraceError as error:
            state = error.message
        metadata = found.metadata
        return cls(
            path,
            state,
            metadata.kind,
            metadata.checkpoint_id,
            metadata.job_name,
            metadata.epoch,
            _time_text(metadata.timestamp_ms),
            found.size,
        )


@checkpoints.command("list", short_help="List the checkpoints and savepoints in a directory.")
@click.argument("directory")
@json_option
def list_checkpoints(directory: str, as_json: bool) -> None:
    """List the checkpoints and savepoints in DIRECTORY.

    DIRECTORY is a job's directory, one with the directories of several jobs (execution.checkpointing.dir), or one
    with savepoints. Each one is checked: whether its metadata is whole, and all files it names are there.
    """
    from headrace.runtime.checkpoint.listing import find_snapshots

    found = [_Listed.at(path) for path in find_snapshots(directory)]
    if as_json:
        print_json([{**vars(each), "valid": each.state == _VALID} for each in found])
        return
    if not found:
        raise StateError(
            f"there are no checkpoints or savepoints in {directory}",
            hint="give a job's directory, the checkpoint directory, or the directory of savepoints",
        )
    rows = [
        [
            *map(_text, (each.id, each.kind, each.job, each.epoch, each.time)),
            "-" if each.size is None else size_text(each.size),
            each.state,
            each.path,
        ]
        for each in found
    ]
    print_table(("ID", "KIND", "JOB", "EPOCH", "TIME", "SIZE", "STATE", "PATH"), rows)


# -- checkpoints show --------------------------------------------------------------------------------------------------


@checkpoints.command("show", short_help="Show operators, states and sizes.")
@click.argument("path")
@json_option
def show(path: str, as_json: bool) -> None:
    """Show what the checkpoint or savepoint at PATH has: operators, their uids, states and sizes."""
    from headrace.state_processor import Savepoint

    found = Savepoint.load(path)
    found.verify()
    described = _described(found)
    if as_json:
        click.echo(json.dumps(described, indent=2, default=repr))
        return
    metadata = found.metadata
    click.echo(
        f"{metadata.kind} {metadata.checkpoint_id} of job '{metadata.job_name}', epoch {metadata.epoch}, "
        f"{_time_text(metadata.timestamp_ms)}, {size_text(found.size)}"
    )
    for operator in described["operators"]:
        uid = f"uid {operator['uid']}" if operator["uid"] else "no uid"
        click.echo(
            f"\n{operator['name']}  ({uid}, {operator['id']}), parallelism {operator['parallelism']}, "
            f"{size_text(operator['size'])}"
        )
        for state in operator["states"]:
            click.echo(
                f"  {state['name']}: {state['type']}, {state['entries']:,} entries, {size_text(state['size'])}"
            )
        for split in operator["splits"]:
            click.echo(f"  split {split['split']}: {split['position']}")
        if operator["pending_commits"]:
            click.echo(f"  staged output, to be published: {operator['pending_commits']}")


def _described(found: Savepoint) -> dict[str, Any]:
    metadata = found.metadata
    return {
        "path": found.path,
        "kind": metadata.kind,
        "id": metadata.checkpoint_id,
        "job_id": metadata.job_id,
        "job": metadata.job_name,
        "epoch": metadata.epoch,
        "time": _time_text(metadata.timestamp_ms),
        "size": found.size,
        "operators": [_described_operator(each) for each in found.operators],
    }


def _described_operator(operator: OperatorReader) -> dict[str, Any]:
    return {
        "uid": operator.uid,
        "id": operator.operator_id,
        "name": operator.name,
        "parallelism": operator.parallelism,
        "max_parallelism": operator.max_parallelism,
        "size": operator.size,
        "states": [
            {
                "name": state.name,
                "kind": state.kind,
                "type": state.describe(),
                "entries": state.entries,
                "size": state.size,
            }
            for state in operator.states()
        ],
        "splits": [
            {
                "split": split.split_id,
                "position": "finished" if split.is_finished else repr(split.position),
                "subtask": split.subtask,
            }
            for split in operator.source_positions()
        ],
        "pending_commits": operator.pending_commits,
    }


# -- savepoint ---------------------------------------------------------------------------------------------------------


@savepoint.command("inspect", short_help="Print the rows of a savepoint's state.")
@click.argument("path")
@click.option("--operator", metavar="UID", help="Only this operator: its uid, id or name.")
@click.option("--state", metavar="NAME", help="Only this state.")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", default=100, help="The maximum number of rows; 100."
)
@click.option("--all", "no_limit", is_flag=True, help="All rows.")
@click.option(
    "--allow-pickle",
    is_flag=True,
    help="Load pickled values of any class. This can run code that is in the savepoint: use it only if you trust "
    "whoever wrote it.",
)
@json_option
def inspect(
    path: str,
    operator: str | None,
    state: str | None,
    limit: int,
    no_limit: bool,
    allow_pickle: bool,
    as_json: bool,
) -> None:
    """Print the rows of the state in the savepoint or checkpoint at PATH.

    Plain values are always shown. Values that were pickled with classes of the program are shown with --allow-pickle,
    where these classes can be imported: run it in the directory of the program. With --json every line is a row.
    """
    from headrace.state_processor import Savepoint

    found = Savepoint.load(path, allow_pickle=allow_pickle)
    operators = found.operators if operator is None else (found.operator(operator),)
    rows = ((each, row) for each in operators for row in each.rows(state))
    shown = rows if no_limit else islice(rows, limit)
    if as_json:
        for each, row in shown:
            click.echo(json.dumps(_row_object(each, row), default=repr))
        return
    _print_rows(shown)
    if not no_limit and next(rows, None) is not None:
        click.echo(f"more than {limit} rows; --limit and --all show more", err=True)


def _row_object(operator: OperatorReader, row: StateRow) -> dict[str, Any]:
    return {
        "operator": operator.uid or operator.operator_id,
        "state": row.state,
        "kind": row.kind,
        "key": row.key,
        "namespace": row.namespace,
        "map_key": row.map_key,
        "value": row.value,
        "time_ms": row.time_ms,
        "subtask": row.subtask,
        "key_group": row.key_group,
    }


def _print_rows(rows: Iterator[tuple[OperatorReader, StateRow]]) -> None:
    header = None
    for operator, row in rows:
        title = f"{operator.uid or operator.name} / {row.state} ({row.kind})"
        if title != header:
            click.echo(title if header is None else f"\n{title}")
            header = title
        parts = [f"{row.key!r}" if row.key_group is not None else f"subtask {row.subtask}"]
        if row.namespace is not None:
            parts.append(f"{row.namespace!r}")
        if row.map_key is not None:
            parts.append(f"[{row.map_key!r}]")
        if row.time_ms is not None:
            parts.append(f"at {_time_text(row.time_ms)}")
        shown = "" if row.kind == "timers" else f": {row.value!r}"
        click.echo("  " + " ".join(parts) + shown)


@savepoint.command("dispose", short_help="Delete a savepoint.")
@click.argument("path")
def dispose(path: str) -> None:
    """Delete the savepoint at PATH with all its files.

    Checkpoints are not deleted: others may share their files.
    """
    from headrace.runtime.checkpoint.savepoints import delete_savepoint

    delete_savepoint(path)
    click.echo(f"deleted {path}", err=True)


# -- text --------------------------------------------------------------------------------------------------------------


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def _time_text(timestamp_ms: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
