"""What one completed checkpoint or savepoint is, and the file it is written to.

    file:   magic  format version  checksum of both | body length  checksum of the body | body
            the same in every version                 version 2                           msgpack of the structs

State is named by operator, not by vertex: a program may chain its operators differently when it comes back. The body
is a map by field name, so a field with a default can be added without a new version; a new version is for what an
older headrace must not read.

What needs classes of users or connectors is pickled, and is plain bytes here: committables, splits, elements of
operator state, accumulators. Only a job that restores them may unpickle them.

Files below the metadata's own directory are named relative to it, so a savepoint can be moved as a whole; all others by
their absolute path.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from headrace.errors import StateError
from headrace.runtime.epoch.in_flight import InFlight, all_files
from headrace.state.handles import StateFile
from headrace.state.key_secret import KeySecret
from headrace.storage.paths import absolute_path, is_absolute, join_path

#: The format this module writes, and the only one it reads. Version 1 had parts as pickles; no release wrote it.
FORMAT_VERSION = 2

_MAGIC = b"HRCKPT\r\n"
_PREFIX = struct.Struct(">8sI")
_CHECKSUM = struct.Struct(">I")
_BODY_HEADER = struct.Struct(">QI")
_BODY_AT = _PREFIX.size + _CHECKSUM.size + _BODY_HEADER.size

Kind = Literal["checkpoint", "savepoint"]


class FileRef(msgspec.Struct, frozen=True, omit_defaults=True):
    """One state file; the fields are those of `StateFile`."""

    path: str
    size: int
    from_version: int
    to_version: int
    is_base: bool = False
    groups: tuple[int, int] | None = None

    @classmethod
    def of(cls, file: StateFile) -> FileRef:
        return cls(file.path, file.size, file.from_version, file.to_version, file.is_base, file.groups)

    def to_state_file(self) -> StateFile:
        return StateFile(self.path, self.from_version, self.to_version, self.size, self.is_base, self.groups)


class KeyedPart(msgspec.Struct, frozen=True):
    """Keyed state of one subtask: the chain of files that rebuilds it, the base first."""

    subtask: int
    files: tuple[FileRef, ...]


class SourceSnapshot(msgspec.Struct, frozen=True):
    """What a source's coordinator knows: splits, positions, assignment."""

    data: bytes


class PendingCommittable(msgspec.Struct, frozen=True):
    """Staged output that may not have been published when the checkpoint was written: publish it on recovery."""

    subtask: int
    epoch: int
    payload: bytes


class OperatorSnapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """All state of one operator."""

    operator_id: str
    #: What the program calls it; None if it left that open.
    uid: str | None
    name: str
    parallelism: int
    #: The number of key groups: it must not change while there is keyed state.
    max_parallelism: int
    keyed: tuple[KeyedPart, ...] = ()
    #: By subtask.
    operator_state: dict[int, bytes] = msgspec.field(default_factory=dict)
    source: SourceSnapshot | None = None
    #: The committer's own state.
    committer: bytes | None = None
    committables: tuple[PendingCommittable, ...] = ()
    #: Subtasks that had read all their input.
    ended: tuple[int, ...] = ()
    #: Records on their way to a subtask, by subtask: of the head of a vertex, in an unaligned checkpoint.
    in_flight: dict[int, InFlight] = msgspec.field(default_factory=dict)

    @property
    def state_size(self) -> int:
        """Bytes that a recovery reads for this operator."""
        inline = [*self.operator_state.values(), *(each.payload for each in self.committables)]
        inline += [part for part in (self.source and self.source.data, self.committer) if part]
        return sum(map(len, inline)) + sum(file.size for file in self.files())

    def files(self) -> Iterator[FileRef]:
        """All state files it names; one may come several times."""
        for part in self.keyed:
            yield from part.files
        for file in all_files(self.in_flight.values()):
            yield FileRef(file.path, file.size, file.epoch - 1, file.epoch)


class CheckpointMetadata(msgspec.Struct, frozen=True):
    """A completed checkpoint or savepoint."""

    kind: Kind
    checkpoint_id: int
    job_id: str
    job_name: str
    #: The last epoch it covers.
    epoch: int
    #: When it was triggered, ms since the Unix epoch.
    timestamp_ms: int
    operators: tuple[OperatorSnapshot, ...] = ()
    #: The shape of the job that wrote it; under the same one, subtasks continue exactly as they were.
    shape: str = ""
    #: The fencing token of the master that wrote it, 0 without high availability.
    leader: int = 0
    #: What accumulators had come to.
    accumulators: bytes = b""
    #: What goes into the keys of SQL state; None if they were hashed without a secret, as in early builds.
    key_secret: KeySecret | None = None

    @property
    def is_savepoint(self) -> bool:
        return self.kind == "savepoint"

    @property
    def state_size(self) -> int:
        """Bytes that a recovery reads."""
        return sum(operator.state_size for operator in self.operators)

    def files(self) -> Iterator[FileRef]:
        """All state files it names; one may come several times."""
        for operator in self.operators:
            yield from operator.files()

    def with_paths(self, rename: Callable[[str], str]) -> CheckpointMetadata:
        """Return the same with every file's path put through a function."""
        return msgspec.structs.replace(
            self,
            operators=tuple(
                msgspec.structs.replace(
                    operator,
                    keyed=tuple(
                        KeyedPart(
                            part.subtask,
                            tuple(msgspec.structs.replace(f, path=rename(f.path)) for f in part.files),
                        )
                        for part in operator.keyed
                    ),
                    in_flight={subtask: part.renamed(rename) for subtask, part in operator.in_flight.items()},
                )
                for operator in self.operators
            ),
        )


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(CheckpointMetadata)


def encode_metadata(metadata: CheckpointMetadata, directory: str) -> bytes:
    """Return the content of the file that is to stand in ``directory``."""
    home = absolute_path(directory)
    body = _encoder.encode(metadata.with_paths(lambda path: _relative_to(home, path)))
    prefix = _PREFIX.pack(_MAGIC, FORMAT_VERSION)
    return b"".join(
        (
            prefix,
            _CHECKSUM.pack(zlib.crc32(prefix)),
            _BODY_HEADER.pack(len(body), zlib.crc32(body, len(body) & 0xFFFFFFFF)),
            body,
        )
    )


def decode_metadata(data: bytes, directory: str, *, path: str = "") -> CheckpointMetadata:
    """Read what `encode_metadata` wrote; ``directory`` is where the file stands now.

    Args:
        data: The file's content.
        directory: Paths below the metadata's directory are resolved against this one.
        path: How messages call the file; by default, by its directory.

    Raises:
        StateError: If it was cut short, was damaged, is of another version, or is something else. It says which.
    """
    metadata = _decode(data, path or directory)
    home = absolute_path(directory)
    return metadata.with_paths(lambda path: path if is_absolute(path) else join_path(home, path))


def _decode(data: bytes, name: str) -> CheckpointMetadata:
    if not data:
        raise _damaged(name, "is empty")
    if data[: len(_MAGIC)] != _MAGIC[: len(data)]:
        raise StateError(
            f"{name} is not checkpoint metadata: it starts with other bytes",
            hint="pass the directory of a checkpoint or savepoint, or the _metadata file in it",
            retryable=False,
        )
    if len(data) < _BODY_AT:
        raise _damaged(name, f"is truncated: it has {len(data)} bytes, and its header alone has {_BODY_AT}")
    prefix = data[: _PREFIX.size]
    if _CHECKSUM.unpack_from(data, _PREFIX.size)[0] != zlib.crc32(prefix):
        raise _damaged(name, "is damaged: the checksum of its header does not match")
    version = _PREFIX.unpack(prefix)[1]
    if version != FORMAT_VERSION:
        raise _other_version(name, version)
    length, checksum = _BODY_HEADER.unpack_from(data, _PREFIX.size + _CHECKSUM.size)
    body = data[_BODY_AT:]
    if len(body) < length:
        raise _damaged(name, f"is truncated: it has {len(body)} of {length} bytes")
    if len(body) > length:
        raise _damaged(name, f"is damaged: {len(body) - length} bytes follow its end")
    # The length goes into the checksum, so that it cannot change unseen.
    if zlib.crc32(body, length & 0xFFFFFFFF) != checksum:
        raise _damaged(name, "is damaged: its checksum does not match")
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise _damaged(name, f"is complete, but does not describe a checkpoint: {error}") from error


def _damaged(name: str, what: str) -> StateError:
    return StateError(f"{name} {what}", hint="start from another checkpoint or savepoint", retryable=False)


def _other_version(name: str, version: int) -> StateError:
    is_newer = version > FORMAT_VERSION
    error = StateError(
        f"{name} is in format {version}; this version of headrace reads format {FORMAT_VERSION}",
        hint="use the version of headrace that wrote it, or a newer one"
        if is_newer
        else "use the version of headrace that wrote it, or start the job without this checkpoint",
        retryable=False,
    )
    # It is not damaged: whoever runs an older headrace has to act.
    error.domain = "user"
    return error


def _relative_to(home: str, path: str) -> str:
    full = absolute_path(path)
    below = home.rstrip("/") + "/"
    inner = full.removeprefix(below)
    return full if inner == full or not inner or is_absolute(inner) else inner
