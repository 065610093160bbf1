"""Records of a batch that say so when a function is about to get one of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.operators import timestamps


class WatchedRecords(list[Any]):
    """A list of records for the operator at the head of a chain.

    Args:
        records: The records.
        before: How many records the subtask got before them.
        notify: Called with the number of a record in the epoch, from 1, and the record.
    """

    def __init__(self, records: Sequence[Any], before: int, notify: Callable[[int, Any], None]) -> None:
        super().__init__(records)
        self._before = before
        self._notify = notify

    def __iter__(self) -> Iterator[Any]:
        plain = super().__iter__()
        asking = sys._getframe(1)
        # Keys and timestamps of a whole batch are found before its first record is processed.
        if asking.f_code.co_name == "keys_of" or asking.f_globals is vars(timestamps):
            return plain
        return _WatchedPass(plain, self._before, self._notify)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(super().__iter__()),)


class _WatchedPass:
    """One pass over the records. Operators ask it how many are left, to name the record that failed."""

    def __init__(self, records: Iterator[Any], before: int, notify: Callable[[int, Any], None]) -> None:
        self._records = records
        self._number = before
        self._notify = notify

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        record = next(self._records)
        self._number += 1
        self._notify(self._number, record)
        return record

    def __length_hint__(self) -> int:
        return self._records.__length_hint__()  # type: ignore[attr-defined, no-any-return]  # a list's iterator
