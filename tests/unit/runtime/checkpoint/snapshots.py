"""Checkpoints for tests: small ones, and Hypothesis strategies for any."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from headrace.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    FileRef,
    KeyedPart,
    OperatorSnapshot,
    PendingCommittable,
    SourceSnapshot,
)
from headrace.state.key_secret import KeySecret


def checkpoint(
    checkpoint_id: int = 1, *paths: str, job_id: str = "a" * 32, size: int = 3
) -> CheckpointMetadata:
    """A checkpoint of one operator whose only subtask has these files."""
    files = tuple(FileRef(path, size, version, version + 1) for version, path in enumerate(paths))
    operator = OperatorSnapshot("b" * 32, None, "count", 1, 128, keyed=(KeyedPart(0, files),))
    return CheckpointMetadata("checkpoint", checkpoint_id, job_id, "visits", 10, 1_000, (operator,))


def written(directory: Path, *names: str, content: bytes = b"abc") -> list[str]:
    """Write state files and return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_bytes(content)
    return [str(directory / name) for name in names]


_counts = st.integers(0, 2**40)
_files = st.builds(
    FileRef, st.sampled_from(["/d/chk-1/x", "/d/shared/y", "s3://b/z"]), _counts, _counts, _counts
)
_operators = st.builds(
    OperatorSnapshot,
    operator_id=st.text("0123456789abcdef", min_size=32, max_size=32),
    uid=st.none() | st.text(),
    name=st.text(),
    parallelism=st.integers(1, 100),
    max_parallelism=st.integers(1, 2**15),
    keyed=st.lists(st.builds(KeyedPart, st.integers(0, 99), st.lists(_files, max_size=3).map(tuple))).map(
        tuple
    ),
    operator_state=st.dictionaries(st.integers(0, 99), st.binary()),
    source=st.none() | st.builds(SourceSnapshot, st.binary()),
    committer=st.none() | st.binary(),
    committables=st.lists(st.builds(PendingCommittable, _counts, _counts, st.binary()), max_size=3).map(
        tuple
    ),
    ended=st.lists(st.integers(0, 99)).map(tuple),
)
any_metadata = st.builds(
    CheckpointMetadata,
    kind=st.sampled_from(["checkpoint", "savepoint"]),
    checkpoint_id=_counts,
    job_id=st.text(),
    job_name=st.text(),
    epoch=_counts,
    timestamp_ms=_counts,
    operators=st.lists(_operators, max_size=3).map(tuple),
    key_secret=st.none() | st.builds(KeySecret, st.binary()),
)
