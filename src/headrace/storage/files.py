"""Files, local or on any storage that pyarrow knows. Every write goes to a new name; nothing is overwritten."""

from __future__ import annotations

import errno
import io
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from headrace.errors import StateError
from headrace.storage.durable import make_directories, sync_ancestors, sync_directory, sync_file
from headrace.util.disk_space import watching_space

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

#: What file systems without links answer: some that are mounted from object stores, or from other systems.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
#: File systems of pyarrow on which an object appears whole, when it was written to its end.
_OBJECT_STORES = frozenset({"s3", "gcs", "abfs"})
#: What to do where there is no space for them; who writes other files says so.
_FILES_ELSEWHERE = "set execution.checkpointing.dir to a larger disk"
#: Up to this size a file is fetched in one piece, also if parts of it are wanted: remote storage is slow to answer.
_FETCHED_WHOLE = 16 << 20
#: Up to this size an object is gathered in memory before it is sent, a larger one in a temporary file.
_HELD_IN_MEMORY = 16 << 20
#: Bytes that are sent at a time.
_PIECE = 1 << 20


def write_new_file(path: str, data: bytes) -> None:
    """Write a file that no reader can see half of."""
    with new_file(path) as stream:
        stream.write(data)


@contextmanager
def new_file(path: str) -> Iterator[IO[bytes]]:
    """Open a file to write piece by piece; no reader sees it before the `with` has ended well."""
    filesystem, path = _resolve(path)
    if filesystem is not None:
        with _new_remote_file(filesystem, path) as stream:
            yield stream
        return
    partial = f"{path}.{uuid4().hex[:8]}.part"
    try:
        with watching_space(path, "a state file", _FILES_ELSEWHERE):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(partial, "wb") as stream:
                yield stream
            os.replace(partial, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.remove(partial)
        raise


def publish_file(path: str, data: bytes) -> None:
    """Write a file that is there as a whole or not at all, and that outlives a loss of power once this returns.

    Raises:
        FileExistsError: If there is one already. Two writers that race on a local or network file system cannot both
            succeed. On an object store the second may replace the first: names that several processes may write carry
            the fencing token of their writer.
    """
    filesystem, inner = _resolve(path)
    if filesystem is None:
        with watching_space(inner, "a file", _FILES_ELSEWHERE, needed=len(data)):
            _publish_local(inner, data)
        return
    if _size(filesystem, inner) is not None:
        raise FileExistsError(path)
    with _new_remote_file(filesystem, inner) as stream:
        stream.write(data)


@contextmanager
def _new_remote_file(filesystem: FileSystem, path: str) -> Iterator[IO[bytes]]:
    """Open a file elsewhere: it gets its name when everything is there, and not if anything fails before."""
    if filesystem.type_name in _OBJECT_STORES:
        # Closing pyarrow's stream completes the upload, also after an error. So nothing is sent before all is there.
        with tempfile.SpooledTemporaryFile(_HELD_IN_MEMORY) as content:
            yield content
            _upload(filesystem, path, content)
        return
    filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    partial = f"{path}.{uuid4().hex[:8]}.part"
    try:
        with filesystem.open_output_stream(partial) as stream:
            yield stream
        filesystem.move(partial, path)
    except BaseException:
        with suppress(OSError):  # it is no more than litter
            filesystem.delete_file(partial)
        raise


def _upload(filesystem: FileSystem, path: str, content: IO[bytes]) -> None:
    size = content.seek(0, io.SEEK_END)
    content.seek(0)
    try:
        with filesystem.open_output_stream(path) as stream:
            shutil.copyfileobj(content, stream, _PIECE)
    except BaseException:
        with suppress(OSError):
            if _size(filesystem, path) not in (None, size):  # some stores keep the part that was sent
                filesystem.delete_file(path)
        raise


def _publish_local(path: str, data: bytes) -> None:
    directory = os.path.dirname(path)
    make_directories(directory)
    partial = f"{path}.{uuid4().hex[:8]}.part"
    try:
        with open(partial, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        _link_new(partial, path)
    finally:
        with suppress(OSError):  # it is no more than litter
            os.remove(partial)
    sync_directory(directory)


def _link_new(partial: str, path: str) -> None:
    """Give a written file its name. Unlike a rename, a link never replaces what is there."""
    try:
        os.link(partial, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.exists(path):
            raise FileExistsError(path) from None
        os.rename(partial, path)


def sync_files(paths: Iterable[str]) -> None:
    """Make files that any process of this host wrote survive a power loss; files elsewhere are left to their store.

    Raises:
        FileNotFoundError: If one is missing.
    """
    directories = set()
    for path in paths:
        if is_local(path):
            inner = _resolve(path)[1]
            sync_file(inner)
            directories.add(os.path.dirname(inner))
    for directory in directories:
        sync_directory(directory)


def sync_names(path: str) -> None:
    """Make all that was created, renamed or deleted in a local directory survive a power loss, if it is still there."""
    if is_local(path):
        with suppress(FileNotFoundError):
            sync_directory(_resolve(path)[1])


def make_directory(path: str) -> None:
    """Create a local directory that survives a power loss; object stores have none."""
    if is_local(path):
        make_directories(_resolve(path)[1])


def secure_directory(path: str) -> None:
    """Make a local directory survive a power loss, also if another process created it and was lost."""
    if is_local(path):
        sync_ancestors(_resolve(path)[1])


def copy_file(source: str, target: str) -> None:
    """Copy a file to a new name, from any storage to any."""
    (from_system, from_path), (to_system, to_path) = _resolve(source), _resolve(target)
    if to_system is None:
        with watching_space(to_path, "a file", _FILES_ELSEWHERE):
            os.makedirs(os.path.dirname(to_path), exist_ok=True)
            if from_system is None:
                shutil.copyfile(from_path, to_path)
            else:
                _copy_between(from_system, from_path, None, to_path)
        return
    if to_system.type_name not in _OBJECT_STORES:
        to_system.create_dir(to_path.rpartition("/")[0], recursive=True)
    _copy_between(from_system, from_path, to_system, to_path)


def _copy_between(
    from_system: FileSystem | None, from_path: str, to_system: FileSystem | None, to_path: str
) -> None:
    from pyarrow.fs import LocalFileSystem, copy_files

    local = LocalFileSystem()
    copy_files(
        from_path, to_path, source_filesystem=from_system or local, destination_filesystem=to_system or local
    )


def list_directory(path: str) -> list[str]:
    """Return the names in a directory, sorted; none if it does not exist."""
    filesystem, inner = _resolve(path)
    if filesystem is None:
        try:
            return sorted(os.listdir(inner))
        except FileNotFoundError:
            return []
    from pyarrow.fs import FileSelector

    found = filesystem.get_file_info(FileSelector(inner, allow_not_found=True))
    return sorted(info.base_name for info in found)


def file_sizes(paths: Iterable[str]) -> dict[str, int | None]:
    """Return the sizes of files, None for those that are missing."""
    sizes: dict[str, int | None] = {}
    remote: dict[str, list[str]] = defaultdict(list)
    for path in dict.fromkeys(paths):
        if is_local(path):
            sizes[path] = _size(None, _resolve(path)[1])
        else:
            parts = urlsplit(path)
            remote[f"{parts.scheme}://{parts.netloc}"].append(path)
    for group in remote.values():
        # One request, or as few as the store allows, instead of one a file.
        filesystem, _ = _resolve(group[0])
        assert filesystem is not None
        infos = filesystem.get_file_info([_resolve(path)[1] for path in group])
        sizes.update({path: _size_of(info) for path, info in zip(group, infos, strict=True)})
    return sizes


def _size(filesystem: FileSystem | None, inner: str) -> int | None:
    if filesystem is not None:
        return _size_of(filesystem.get_file_info(inner))
    try:
        return os.stat(inner).st_size if os.path.isfile(inner) else None
    except FileNotFoundError:
        return None


def _size_of(info: FileInfo) -> int | None:
    return info.size if info.is_file else None


def read_file(path: str) -> bytes:
    """Read a whole file; a missing one is a StateError that names it."""
    with open_file(path) as stream:
        return bytes(stream.read())


def open_file(path: str) -> IO[bytes]:
    """Open a file to read anywhere in it; a missing one is a StateError that names it."""
    try:
        filesystem, inner = _resolve(path)
        if filesystem is None:
            return open(inner, "rb")
        stream: IO[bytes] = filesystem.open_input_file(inner)
        if stream.size() > _FETCHED_WHOLE:  # type: ignore[attr-defined]  # of pyarrow's files
            return stream
        with stream:
            return io.BytesIO(stream.read())
    except FileNotFoundError as error:
        raise _missing(path) from error


def _missing(path: str) -> StateError:
    return StateError(
        f"state file {path} is missing",
        hint="it must be on storage that every host can reach: set execution.checkpointing.dir",
    )


def delete_files(paths: list[str]) -> None:
    """Delete files that nothing names any more; one that is gone already is fine."""
    for path in paths:
        with suppress(FileNotFoundError):
            filesystem, inner = _resolve(path)
            if filesystem is not None:
                filesystem.delete_file(inner)
            else:
                os.remove(inner)


def delete_for_good(paths: Iterable[str]) -> None:
    """Delete files so that none of them is there again after a power loss; one that is gone already is fine."""
    paths = list(paths)
    delete_files(paths)
    for directory in {path.rpartition("/")[0] for path in paths}:
        sync_names(directory)


def delete_directory(path: str) -> None:
    """Delete a directory and all that is in it; one that is gone already is fine."""
    filesystem, inner = _resolve(path)
    if filesystem is None:
        shutil.rmtree(inner, ignore_errors=True)
    else:
        with suppress(FileNotFoundError):
            filesystem.delete_dir(inner)


def join_path(directory: str, *names: str) -> str:
    """Join names to a directory path or URI."""
    return "/".join((directory.rstrip("/"), *names))


def is_local(path: str) -> bool:
    """Whether a path or URI is on a file system that this host has mounted."""
    return path.startswith("file:") or "://" not in path


def is_absolute(path: str) -> bool:
    """Whether a path or URI says by itself where it is."""
    return path.startswith(("/", "file:")) or "://" in path


def absolute_path(path: str) -> str:
    """Return the one spelling of a path: an absolute path if it is local, else the URI without a trailing slash.

    Example:
        >>> absolute_path("file:///data/a%20b/"), absolute_path("s3://bucket/a/")
        ('/data/a b', 's3://bucket/a')
    """
    return os.path.abspath(_resolve(path)[1]) if is_local(path) else path.rstrip("/")


def _resolve(path: str) -> tuple[FileSystem | None, str]:
    """Return the file system a path or URI is on, None for this host's, and what it is called there."""
    if path.startswith("file:"):
        return None, unquote(urlsplit(path).path)
    if is_local(path):
        return None, path
    from pyarrow.fs import FileSystem  # heavy, and local paths do not need it

    filesystem, inner = FileSystem.from_uri(path)
    return filesystem, inner
