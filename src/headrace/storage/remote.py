"""Files on storage that pyarrow reaches: object stores (S3, GCS, Azure), and file systems of others (HDFS).

Closing pyarrow's stream to an object completes the upload, also after an error. So a file that has to be whole is
gathered here before the first byte is sent.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit
from uuid import uuid4

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from headrace.config.secrets import mask_uri
from headrace.storage.paths import PathError
from headrace.storage.store import Entry, EntryKind, FileStore, Purpose
from headrace.util.disk_space import watching_space

if TYPE_CHECKING:
    from pyarrow import NativeFile

#: File systems of pyarrow on which an object appears whole, when it was written to its end.
_OBJECT_STORES = frozenset({"s3", "gcs", "abfs"})
#: Up to this size a file is fetched in one piece, also if parts of it are wanted: remote storage is slow to answer.
_FETCHED_WHOLE = 16 << 20
#: Up to this size an object is gathered in memory before it is sent, a larger one in a temporary file.
_HELD_IN_MEMORY = 16 << 20
#: Bytes that are sent at a time.
_PIECE = 1 << 20
#: How often a request to S3 is sent, with growing pauses in between. A store that does not answer is reported after
#: about 25 s; clients that pyarrow makes from a URI ask 30 times, which takes up to 100 s.
_S3_ATTEMPTS = 5
#: A URI of S3 that pyarrow would accept; it explains what is wrong with others.
_S3_URI = re.compile(r"s3://[!-.0-~][!-~]*")
_KINDS = {
    FileType.File: EntryKind.FILE,
    FileType.Directory: EntryKind.DIRECTORY,
    FileType.NotFound: EntryKind.MISSING,
}


def connect(uri: str) -> tuple[RemoteFiles, str]:
    """Return the store that a URI leads to, and what the store calls it.

    Raises:
        PathError: If the URI is not one, or nothing is known for its scheme.
        OSError: If the store's client cannot be loaded or set up.
    """
    try:
        file_system, path = _file_system(uri)
    except ValueError as error:
        raise PathError(f"cannot use path {mask_uri(uri)}: {mask_uri(str(error))}") from _without_keys(error)
    except OSError as error:
        raise OSError(
            f"cannot reach the file system of {mask_uri(uri)}: {_first_line(mask_uri(str(error)))}"
        ) from _without_keys(error)
    return RemoteFiles(file_system), path


def _file_system(uri: str) -> tuple[FileSystem, str]:
    """Return pyarrow's file system of a URI, and the path there.

    All threads of a process share one client of a bucket on S3: pyarrow sets up another one only while no request is
    under way, and one that gets no answer is under way for minutes.
    """
    if not _S3_URI.fullmatch(uri):
        return cast("tuple[FileSystem, str]", FileSystem.from_uri(uri))
    parts = urlsplit(uri)
    bucket = _s3_bucket(urlunsplit(parts._replace(path="", fragment="")), os.getpid())
    return bucket, f"{parts.netloc.rpartition('@')[2]}{unquote(parts.path)}".rstrip("/")


@lru_cache(maxsize=64)
def _s3_bucket(uri: str, process: int) -> FileSystem:
    """Return a client of a bucket. A child process has none of its parent's threads and connections."""
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    client = FileSystem.from_uri(uri)[0]
    # What a pickled client is made from; without credentials if it finds them, and renews them, by itself.
    options: dict[str, object] = client.__reduce__()[1][0]
    if not parse_qs(urlsplit(uri).query).keys() <= options.keys():
        return client  # some options only a URI can have
    return S3FileSystem(**options, retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_S3_ATTEMPTS))


def _without_keys(error: Exception) -> Exception | None:
    """Return a cause that may be shown; none if it quotes a URI with keys."""
    return error if mask_uri(str(error)) == str(error) else None


def _first_line(text: str) -> str:
    """Cut what libraries add: for HDFS, every path at which Java is not installed."""
    return text.partition("\n")[0]


class RemoteFiles(FileStore):
    """Files that pyarrow reaches."""

    is_local = False

    def __init__(self, file_system: FileSystem) -> None:
        self._files = file_system
        self._has_objects = file_system.type_name in _OBJECT_STORES

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteFiles) and bool(self._files.equals(other._files))

    def __hash__(self) -> int:
        return hash(self._files.type_name)

    # -- reading -----------------------------------------------------------------------------------------------

    def open(self, path: str) -> IO[bytes]:
        stream = self.open_arrow(path)
        if stream.size() > _FETCHED_WHOLE:
            return cast("IO[bytes]", stream)
        with stream:
            return io.BytesIO(stream.read())

    def open_arrow(self, path: str) -> NativeFile:
        return self._files.open_input_file(path)

    def look_up(self, paths: Sequence[str]) -> list[Entry]:
        return [_entry(info) for info in self._files.get_file_info(list(paths))]

    def names(self, directory: str) -> list[str]:
        return sorted(entry.name for entry in self.entries(directory))

    def entries(self, directory: str, *, recursive: bool = False) -> list[Entry]:
        selector = FileSelector(directory, allow_not_found=True, recursive=recursive)
        return [_entry(info) for info in self._files.get_file_info(selector)]

    # -- writing -----------------------------------------------------------------------------------------------

    @contextmanager
    def new_file(self, path: str, purpose: Purpose, *, synced: bool = False) -> Iterator[IO[bytes]]:
        if self._has_objects:
            with tempfile.SpooledTemporaryFile(_HELD_IN_MEMORY) as content:
                with watching_space(tempfile.gettempdir(), purpose.what, "set TMPDIR to a larger disk"):
                    yield content
                self._upload(path, content)
            return
        with self._partial(path) as partial:
            with self._files.open_output_stream(partial) as stream:
                yield stream
            self._files.move(partial, path)

    def receive(self, path: str, content: IO[bytes], purpose: Purpose) -> None:
        if self._has_objects:
            self._upload(path, content)
            return
        with self.new_file(path, purpose) as stream:
            shutil.copyfileobj(content, stream, _PIECE)

    def copy(self, source: str, target: str, purpose: Purpose) -> None:
        try:
            if self._has_objects:
                self._files.copy_file(source, target)  # within the store, where an object appears whole
                return
            with self._partial(target) as partial:
                self._files.copy_file(source, partial)
                self._files.move(partial, target)
        except OSError as error:
            if self.look_up([source])[0].kind is EntryKind.MISSING:  # S3 only says so in words
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source) from error
            raise

    def publish(self, path: str, data: bytes, purpose: Purpose) -> None:
        if self.look_up([path])[0].kind is EntryKind.FILE:
            raise FileExistsError(path)
        with self.new_file(path, purpose) as stream:
            stream.write(data)

    def claim(self, path: str, data: bytes, purpose: Purpose) -> None:
        raise NotImplementedError(
            f"{path}: pyarrow cannot create a file only if it is new on {self._files.type_name}"
        )

    def open_output(self, path: str) -> IO[bytes]:
        self._make_parent(path)
        return cast("IO[bytes]", self._files.open_output_stream(path))

    def finish_output(self, stream: IO[bytes]) -> None:
        stream.close()

    def move(self, source: str, target: str) -> None:
        self._make_parent(target)
        self._files.move(source, target)

    def _upload(self, path: str, content: IO[bytes]) -> None:
        size = content.seek(0, io.SEEK_END)
        content.seek(0)
        try:
            with self._files.open_output_stream(path) as stream:
                shutil.copyfileobj(content, stream, _PIECE)
        except BaseException:
            with suppress(OSError):
                if self.look_up([path])[0].size not in (
                    None,
                    size,
                ):  # some stores keep the part that was sent
                    self._files.delete_file(path)
            raise

    @contextmanager
    def _partial(self, path: str) -> Iterator[str]:
        """Yield a temporary name next to a file; if writing fails, the file of that name is removed."""
        self._make_parent(path)
        partial = f"{path}.{uuid4().hex[:8]}.part"
        try:
            yield partial
        except BaseException:
            with suppress(OSError):  # an orphan does no harm
                self._files.delete_file(partial)
            raise

    def _make_parent(self, path: str) -> None:
        self._files.create_dir(path.rpartition("/")[0], recursive=True)

    # -- deleting ----------------------------------------------------------------------------------------------

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._files.delete_file(path)

    def delete_directory(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._files.delete_dir(path)

    # -- what only local disks need ----------------------------------------------------------------------------

    def delete_if_empty(self, directory: str) -> None:
        pass

    def make_directory(self, path: str) -> None:
        pass

    def secure_directory(self, path: str) -> None:
        pass

    def sync_files(self, paths: Iterable[str]) -> None:
        pass

    def sync_names(self, directory: str) -> None:
        pass


def _entry(info: FileInfo) -> Entry:
    kind = _KINDS.get(info.type, EntryKind.OTHER)
    return Entry(info.path, kind, *((info.size, _seconds(info)) if info.is_file else ()))


def _seconds(info: FileInfo) -> float | None:
    return None if info.mtime_ns is None else info.mtime_ns / 1e9
