"""A disk that loses power: of a directory tree, what a power loss may leave behind, drawn from a seed.

    write a, rename a b, fsync b's directory, write c, POWER LOSS     ->  b with any content, c or no c

The tree itself is a real one, and shows what the page cache has. Beside it stands what is certain to be on the disk:

- the content of a file, as of its last fsync. What was written since may be there, or be torn: cut short, or with
  blocks that are old or zero;
- the names in a directory, as of its last fsync. Each name that was created, renamed or removed since may have made
  it to the disk or not, whatever became of the others. A rename is atomic, as on every journaling file system;
- a directory that was made is a name in its parent, so syncing what is in it does not keep it.

After an fsync that failed, the file's pages count as clean though they were never written: later ones succeed and do
nothing (as on Linux).
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Changes of names that have not reached the disk, at most.
_MOST_PENDING = 1000


@dataclass(eq=False)
class _File:
    #: What is certain to be on the disk.
    synced: bytes = b""
    #: What it held when its last name was removed; a removal may be undone.
    last: bytes = b""
    #: An fsync has failed: the pages are gone, and nobody will say so again.
    is_doubtful: bool = False


@dataclass(eq=False)
class _Directory:
    names: dict[str, _Node] = field(default_factory=dict)
    #: What is certain to be on the disk.
    synced: dict[str, _Node] = field(default_factory=dict)


_Node = _File | _Directory


@dataclass(frozen=True)
class _Change:
    """Names that change at once, None for those that go."""

    names: tuple[tuple[_Directory, str, _Node | None], ...]

    def apply(self) -> None:
        for directory, name, node in self.names:
            if node is None:
                directory.synced.pop(name, None)
            else:
                directory.synced[name] = node

    def places(self) -> set[tuple[int, str]]:
        return {(id(directory), name) for directory, name, _ in self.names}


class Disk:
    """Follows what is done to a directory tree, and makes of it what a power loss would.

    Args:
        root: The tree; what is there now is on the disk.
    """

    def __init__(self, root: Path) -> None:
        self._path = str(root)
        self._root = _read_tree(self._path)
        self._pending: list[_Change] = []
        #: How often something was synced.
        self.syncs = 0

    # -- what is done ----------------------------------------------------------------------------------

    def watch(self, call: str, args: tuple[Any, ...]) -> Callable[[], None]:
        """Note a call of the operating system that is about to be made; what is returned is to be called after it."""
        watcher = getattr(self, f"_{call}", None)
        after: Callable[[], None] | None = watcher(*map(os.fspath, args[:2])) if watcher else None
        return after or (lambda: None)

    def created(self, path: str) -> None:
        """A file was opened to write. One that is there is emptied, and stays the same file."""
        parent, name = self._parent(path)
        if parent is not None and name not in parent.names:
            self._change((parent, name, _File()))

    def sync(self, path: str, *, failed: bool = False) -> None:
        """A file or directory is synced, or was to be."""
        self.syncs += 1
        node = self._find(path)
        if isinstance(node, _File):
            node.is_doubtful |= failed
            if not node.is_doubtful:
                node.synced = Path(path).read_bytes()
        elif node is not None and not failed:
            self._sync_names(node)

    def _makedirs(self, path: str, *_: Any) -> Callable[[], None]:
        def after() -> None:
            directory = self._root
            for name in self._parts(path) or ():
                if name not in directory.names:
                    self._change((directory, name, _Directory()))
                below = directory.names[name]
                assert isinstance(below, _Directory)
                directory = below

        return after

    _mkdir = _makedirs

    def _link(self, source: str, target: str) -> Callable[[], None]:
        def after() -> None:
            parent, name = self._parent(target)
            if parent is not None:
                self._change((parent, name, self._find(source)))

        return after

    def _replace(self, source: str, target: str) -> Callable[[], None]:
        self._keep_content(target)

        def after() -> None:
            (old_parent, old), (parent, name) = self._parent(source), self._parent(target)
            if old_parent is not None and parent is not None:
                self._change((old_parent, old, None), (parent, name, old_parent.names[old]))

        return after

    _rename = _replace

    def _unlink(self, path: str, *_: Any) -> Callable[[], None]:
        self._keep_content(path)

        def after() -> None:
            parent, name = self._parent(path)
            if parent is not None:
                self._change((parent, name, None))

        return after

    _remove = _unlink
    _rmdir = _unlink

    def _rmtree(self, path: str, *_: Any) -> Callable[[], None]:
        inside = [*_below(path), path] if os.path.isdir(path) else []
        afters = [self._unlink(each) for each in inside]

        def after() -> None:
            for each in afters:
                each()

        return after

    def _copyfile(self, _: str, target: str) -> Callable[[], None]:
        return lambda: self.created(target)

    # -- the loss --------------------------------------------------------------------------------------

    def lose_power(self, rng: random.Random) -> None:
        """Make of the tree what the next start may find."""
        self.check()
        contents = {node: Path(path).read_bytes() for path, node in self._files(self._path, self._root)}
        part = rng.choice([0.0, 0.2, 0.5, 0.8, 1.0])
        for change in self._pending:
            if rng.random() < part:
                change.apply()
        self._pending.clear()
        block = rng.choice([8, 64, 512, 4096])
        shutil.rmtree(self._path)
        self._write_tree(
            self._path,
            self._root,
            lambda node: torn(rng, node.synced, contents.get(node, node.last), block),
        )
        self._root = _read_tree(self._path)

    def check(self) -> None:
        """Make sure that nobody has changed the tree behind our back."""
        known = sorted(path for path, _ in self._files(self._path, self._root))
        there = sorted(path for path in _below(self._path) if not os.path.isdir(path))
        assert known == there

    def _write_tree(self, path: str, directory: _Directory, content_of: Callable[[_File], bytes]) -> None:
        os.mkdir(path)
        written: dict[_File, str] = {}
        for name, node in directory.synced.items():
            below = f"{path}/{name}"
            if isinstance(node, _Directory):
                self._write_tree(below, node, content_of)
            elif node in written:
                os.link(written[node], below)
            else:
                written[node] = below
                Path(below).write_bytes(content_of(node))

    # -- names -----------------------------------------------------------------------------------------

    def _change(self, *names: tuple[_Directory, str, _Node | None]) -> None:
        for directory, name, node in names:
            if node is None:
                directory.names.pop(name, None)
            else:
                directory.names[name] = node
        self._pending.append(_Change(names))
        if len(self._pending) > _MOST_PENDING:
            self._pending.pop(0).apply()  # in the end the kernel writes everything

    def _sync_names(self, directory: _Directory) -> None:
        due, left, places = [], [], set[tuple[int, str]]()
        for change in reversed(self._pending):
            # What happened to the same name before comes first.
            if any(each is directory for each, _, _ in change.names) or places & change.places():
                places |= change.places()
                due.append(change)
            else:
                left.append(change)
        for change in reversed(due):
            change.apply()
        self._pending = left[::-1]

    def _keep_content(self, path: str) -> None:
        node = self._find(path)
        if isinstance(node, _File) and os.path.exists(path):
            node.last = Path(path).read_bytes()

    def _parts(self, path: str) -> list[str] | None:
        """Return the names on the way to a path; None if it is not in the tree."""
        path = os.path.abspath(path)
        if path == self._path:
            return []
        if not path.startswith(self._path + "/"):
            return None
        return path.removeprefix(self._path + "/").split("/")

    def _find(self, path: str) -> _Node | None:
        parts = self._parts(path)
        node: _Node | None = None if parts is None else self._root
        for name in parts or ():
            node = node.names.get(name) if isinstance(node, _Directory) else None
        return node

    def _parent(self, path: str) -> tuple[_Directory | None, str]:
        directory, name = os.path.split(os.path.abspath(path))
        node = self._find(directory)
        return (node if isinstance(node, _Directory) else None), name

    def _files(self, path: str, directory: _Directory) -> Iterator[tuple[str, _File]]:
        for name, node in directory.names.items():
            if isinstance(node, _Directory):
                yield from self._files(f"{path}/{name}", node)
            else:
                yield f"{path}/{name}", node


def torn(rng: random.Random, before: bytes, after: bytes, block: int) -> bytes:
    """Return what a power loss may leave of a file that was ``before`` at its last fsync."""
    fate = rng.random()
    if before == after or fate < 0.3:
        return after
    if fate < 0.5:
        return before
    length = rng.choice([len(before), len(after), rng.randint(0, len(after))])
    if fate < 0.7:
        return after[:length]
    pieces = []
    for at in range(0, length, block):
        source = rng.choice([before, after, b""])
        pieces.append(source[at : at + block].ljust(min(block, length - at), b"\0")[: length - at])
    return b"".join(pieces)


def _read_tree(path: str) -> _Directory:
    """Read a tree that is on the disk as it is."""
    directory = _Directory()
    for entry in sorted(os.scandir(path), key=lambda each: each.name):
        below = _read_tree(entry.path) if entry.is_dir() else _File(Path(entry.path).read_bytes())
        directory.names[entry.name] = below
    directory.synced = dict(directory.names)
    return directory


def _below(path: str) -> list[str]:
    """Return what is below a directory, the innermost first."""
    return [
        os.path.join(parent, name)
        for parent, directories, files in os.walk(path, topdown=False)
        for name in (*files, *directories)
    ]
