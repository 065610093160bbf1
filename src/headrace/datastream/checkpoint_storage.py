"""Checkpoint storage as a program declares it: `execution.checkpointing.dir` and related options."""

from __future__ import annotations

from typing import ClassVar

from headrace.config.options import checkpointing
from headrace.errors import JobDefinitionError, UnsupportedFeatureError

__all__ = [
    "CheckpointStorage",
    "CustomCheckpointStorage",
    "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage",
]


def java_path(path: str) -> str:
    """Return a path as Java shows it.

    Example:
        >>> java_path("file:///var/checkpoints"), java_path("s3://bucket/checkpoints")
        ('file:/var/checkpoints', 's3://bucket/checkpoints')
    """
    return "file:/" + path.removeprefix("file:///") if path.startswith("file:///") else path


class CheckpointStorage:
    """Where checkpoints are kept."""

    def to_dict(self) -> dict[str, str]:
        """Return the choice as keys and values of the configuration."""
        raise NotImplementedError


class JobManagerCheckpointStorage(CheckpointStorage):
    """Keeps checkpoints in the driver. Use it only for experiments: they are lost with the driver.

    Args:
        checkpoint_path: Where checkpoints that outlive the job are written, if anywhere.
        max_state_size: Most bytes of state of a task; kept and shown.
    """

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._path = checkpoint_path
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size
        if self._max_state_size <= 0:
            raise JobDefinitionError(f"max_state_size: expected more than 0 bytes; got {max_state_size}")

    def get_checkpoint_path(self) -> str | None:
        """Return where checkpoints that outlive the job are written."""
        return self._path

    def get_max_state_size(self) -> int:
        """Return the most bytes of state of a task."""
        return self._max_state_size

    def get_savepoint_path(self) -> str | None:
        """Return None: the configuration says where savepoints go."""
        return None

    def to_dict(self) -> dict[str, str]:
        """Return the choice as keys and values of the configuration."""
        values = {checkpointing.STORAGE.key: "jobmanager"}
        if self._path is not None:
            values[checkpointing.DIRECTORY.key] = self._path
        return values


class FileSystemCheckpointStorage(CheckpointStorage):
    """Keeps checkpoints as files.

    Args:
        checkpoint_path: A directory, or a URI such as `s3://bucket/path`.
        file_state_size_threshold: State smaller than this is kept in the metadata file; kept and shown.
        write_buffer_size: Bytes of a write buffer, -1 for the usual; kept and shown.

    Raises:
        JobDefinitionError: If the path is missing, or a size is not valid.

    Example:
        >>> FileSystemCheckpointStorage("file:///tmp/checkpoints").to_dict()["execution.checkpointing.dir"]
        'file:///tmp/checkpoints'
    """

    #: The largest value of `file_state_size_threshold`.
    MAX_FILE_STATE_THRESHOLD: ClassVar[int] = 1024 * 1024
    _DEFAULT_THRESHOLD: ClassVar[int] = 20 * 1024
    _DEFAULT_BUFFER: ClassVar[int] = 4096

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        if not checkpoint_path:
            raise JobDefinitionError("FileSystemCheckpointStorage: expected a checkpoint_path; got none")
        threshold = (
            self._DEFAULT_THRESHOLD if file_state_size_threshold is None else file_state_size_threshold
        )
        if not 0 <= threshold <= self.MAX_FILE_STATE_THRESHOLD:
            raise JobDefinitionError(
                f"file_state_size_threshold: expected 0 to {self.MAX_FILE_STATE_THRESHOLD}; got {threshold}"
            )
        self._path = checkpoint_path
        self._threshold = threshold
        self._buffer = self._DEFAULT_BUFFER if write_buffer_size == -1 else write_buffer_size

    def get_checkpoint_path(self) -> str:
        """Return where checkpoints are written."""
        return java_path(self._path)

    def get_savepoint_path(self) -> str | None:
        """Return None: the configuration says where savepoints go."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """Return below which size state is kept in the metadata file."""
        return self._threshold

    def get_write_buffer_size(self) -> int:
        """Return the size of a write buffer."""
        return self._buffer

    def to_dict(self) -> dict[str, str]:
        """Return the choice as keys and values of the configuration."""
        return {checkpointing.STORAGE.key: "filesystem", checkpointing.DIRECTORY.key: self._path}


class CustomCheckpointStorage(CheckpointStorage):
    """PyFlink's way to a storage written in Java, which headrace does not have.

    Raises:
        UnsupportedFeatureError: Always.
    """

    def __init__(self, storage: object) -> None:
        raise UnsupportedFeatureError.not_yet("CustomCheckpointStorage", "use FileSystemCheckpointStorage")
