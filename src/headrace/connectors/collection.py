"""A source over elements that the program holds: `env.from_collection`.

The elements are pickled once, in chunks, when the source is declared. What cannot be shipped is found
there, and a reader unpickles only the chunks its slice touches.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from headrace.connectors import base
from headrace.elements import Batch
from headrace.errors import JobDefinitionError, shorten

if TYPE_CHECKING:
    from headrace.common.typeinfo import TypeInformation

_SPLIT = base.SourceSplit("collection")


class CollectionSource(base.Source):
    """Reads the elements of a collection, in order and once.

    There is one split, so one subtask reads everything. The elements are copied: what happens to them after
    the declaration does not matter.

    Args:
        elements: What to read. Every element must pickle.
        type_info: The type of the elements, for those who build the stream.

    Raises:
        JobDefinitionError: An element does not pickle; the message names its index.

    Example:
        >>> source = CollectionSource(["to", "be"])
        >>> len(source)
        2
    """

    plans_anywhere = True

    def __init__(self, elements: Sequence[Any], type_info: TypeInformation | None = None) -> None:
        elements = list(elements)
        self.type_info = type_info
        self._count = len(elements)
        self._chunks = tuple(_pack(elements, start) for start in range(0, len(elements), base.BATCH_RECORDS))

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"CollectionSource({self._count} elements)"

    @property
    def boundedness(self) -> base.Boundedness:
        return base.Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> base.SplitEnumerator:
        """Make the driver's half; there is one split whatever the parallelism."""
        return _CollectionEnumerator(self._count)

    def create_reader(self) -> base.SourceReader:
        """Make the worker's half."""
        return _CollectionReader(self._chunks, self._count)


def _pack(elements: list[Any], start: int) -> bytes | list[Any]:
    """Pickle a chunk, or leave it to what ships the job if a class of the script itself is in it.

    Such a class is known by reference to `__main__`, and a worker has another `__main__`. The job's own
    pickler writes it by value.
    """
    chunk = elements[start : start + base.BATCH_RECORDS]
    try:
        data = pickle.dumps(chunk, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # an element's own __reduce__ may raise anything
        index = _first_that_fails(chunk)
        raise JobDefinitionError(
            f"CollectionSource: element {start + index} cannot be pickled: {shorten(chunk[index])}: {error}",
            hint="elements are sent to other processes: use plain data, or classes defined at module level",
        ) from error
    return chunk if b"__main__" in data else data


def _first_that_fails(chunk: list[Any]) -> int:
    for index, element in enumerate(chunk):
        try:
            pickle.dumps(element, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception:  # noqa: BLE001
            return index
    return 0


class _CollectionEnumerator(base.KnownSplits):
    def __init__(self, count: int) -> None:
        self._count = count
        super().__init__([_SPLIT] if count else [])

    def plan(self, split: base.SourceSplit, position: int, max_records: int) -> base.Slice:
        return base.Slice(split, position, min(position + max_records, self._count))


class _CollectionReader(base.SourceReader):
    def __init__(self, chunks: Sequence[bytes | list[Any]], count: int) -> None:
        self._chunks = chunks
        self._count = count
        self._position = 0

    def read(self, piece: base.Slice) -> Iterator[Batch]:
        self._position = piece.start
        end = self._count if piece.end is None else piece.end
        while self._position < end:
            number, offset = divmod(self._position, base.BATCH_RECORDS)
            packed = self._chunks[number]
            part = slice(offset, offset + end - self._position)
            # A copy either way: what is done to an element must not show when it is read again.
            values = pickle.loads(packed)[part] if isinstance(packed, bytes) else deepcopy(packed[part])
            self._position += len(values)
            yield Batch(values)

    def progress(self) -> base.SplitProgress:
        return base.SplitProgress(self._position, self._position >= self._count)
