"""The options of a table, WITH ('key' = 'value', ...), read by its connector; options that no code reads are refused.

`${env:NAME}` and `${file:PATH}` stand for what a variable or a file holds. They are looked up here, when a statement
uses the table: the catalog keeps them as they are written.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeVar

from headrace.config.memory_size import MemorySize
from headrace.config.parsing import form_of
from headrace.config.references import resolve
from headrace.errors import HeadraceError, SqlValidationError, UnsupportedFeatureError

__all__ = ["TableOptions"]

T = TypeVar("T")

#: Options of Flink that every connector has.
_PARALLELISM: Final = ("scan.parallelism", "sink.parallelism")


class TableOptions:
    """Options by key. Every one that is read is known; `check` refuses the others.

    Args:
        table: The table's name, for messages.
        values: What WITH says.

    Example:
        >>> options = TableOptions("t", {"connector": "datagen", "rows": "5"})
        >>> options.text("connector"), options.integer("number-of-rows")
        ('datagen', None)
        >>> options.check()
        Traceback (most recent call last):
        headrace.errors.SqlValidationError: table 't': connector 'datagen' has no option 'rows'
        hint: did you mean 'number-of-rows'?
    """

    def __init__(self, table: str, values: Mapping[str, str]) -> None:
        self.table = table
        self._values = dict(values)
        #: Keys that somebody has read, or that all tables have.
        self._known = {"connector"}
        self._prefix = ""

    def below(self, prefix: str) -> TableOptions:
        """Return the options that begin with a prefix, under the rest of their keys: those of a format.

        Example:
            >>> TableOptions("t", {"json.charset": "UTF-8"}).below("json.").text("charset")
            'UTF-8'
        """
        part = copy.copy(self)  # which options are known is shared
        part._prefix = self._prefix + prefix
        return part

    def text(self, key: str, default: str | None = None) -> str | None:
        """Return an option as it is written, with references resolved.

        Raises:
            ConfigurationError: If a variable or file that it names is not there.
        """
        key = self._prefix + key
        self._known.add(key)
        value = self._values.get(key)
        return default if value is None else self._resolved(key, value)

    def _resolved(self, key: str, value: str) -> str:
        return resolve(value, f"table {self.table!r}, option {key!r}")

    def required(self, key: str) -> str:
        """Return an option that must be set.

        Raises:
            SqlValidationError: If it is not.
        """
        value = self.text(key)
        if value is None:
            unread = [given for given in self._values if given not in self._known]
            near = difflib.get_close_matches(self._prefix + key, unread, 1)
            raise self.error(
                f"connector {self._values.get('connector')!r} requires the option {self._prefix + key!r}",
                f"did you mean {self._prefix + key!r} instead of {near[0]!r}?" if near else None,
            )
        return value

    def prefixed(self, prefix: str) -> dict[str, str]:
        """Return the options that begin alike, without what they begin with."""
        prefix = self._prefix + prefix
        found = [key for key in self._values if key.startswith(prefix)]
        self._known.update(found)
        return {key.removeprefix(prefix): self._resolved(key, self._values[key]) for key in found}

    def choice(self, key: str, values: Sequence[str], default: str) -> str:
        """Return an option that is one of some words, in the case in which they are listed; any case is accepted.

        Example:
            >>> TableOptions("t", {"mode": "Latest"}).choice("mode", ("earliest", "latest"), "earliest")
            'latest'
        """
        given = (self.text(key, default) or "").strip()
        for value in values:
            if value.lower() == given.lower():
                return value
        raise self.wrong(key, f"one of {', '.join(values)}", values)

    def integer(self, key: str) -> int | None:
        """Return an option that is a whole number."""
        value = self.text(key)
        return None if value is None else self._read(key, value, int)

    def number(self, key: str) -> float | None:
        """Return an option that is a number."""
        value = self.text(key)
        return None if value is None else self._read(key, value, float)

    def boolean(self, key: str, *, default: bool) -> bool:
        """Return an option that is true or false."""
        value = self.text(key)
        return default if value is None else self._read(key, value, bool)

    def duration(self, key: str) -> timedelta | None:
        """Return an option that is a length of time."""
        value = self.text(key)
        return None if value is None else self._read(key, value, timedelta)

    def memory(self, key: str) -> MemorySize | None:
        """Return an option that is a number of bytes."""
        value = self.text(key)
        return None if value is None else self._read(key, value, MemorySize)

    def _read(self, key: str, value: str, kind: type[T]) -> T:
        form = form_of(kind)
        try:
            result: T = form.read(value)
        except ValueError:
            raise self.unreadable(key, form.expected, form.example) from None
        return result

    def unreadable(self, key: str, expected: str, example: str) -> HeadraceError:
        """Make the error for an option whose value is of another type."""
        return self.wrong(key, f"{expected} such as '{example}'")

    def wrong(self, key: str, expected: str, known: Sequence[str] = ()) -> HeadraceError:
        """Make the error for an option with a wrong value; the nearest of the known ones is suggested."""
        key = self._prefix + key
        given = self._values.get(key)
        near = difflib.get_close_matches(given or "", known, 1)
        hint = f"did you mean {near[0]!r}?" if near else None
        return self.error(f"option {key!r} must be {expected}; got {given!r}", hint)

    def misplaced(self, key: str, where: str) -> HeadraceError:
        """Make the error for an option that only works together with others."""
        return self.error(f"option {self._prefix + key!r} is only allowed {where}")

    def refuse(self, key: str, reason: str, hint: str) -> None:
        """Refuse an option of Flink that cannot be honoured; nothing happens if it is not set.

        Raises:
            UnsupportedFeatureError: It is set.
        """
        if self.text(key) is not None:
            full = self._prefix + key
            raise UnsupportedFeatureError(
                f"table {self.table!r}: option {full!r} cannot be honoured: {reason}", feature=full, hint=hint
            )

    def unknown(self, key: str, hint: str) -> HeadraceError:
        """Make the error for an option that there is not."""
        return self.error(f"connector {self._values.get('connector')!r} has no option {key!r}", hint)

    def error(self, message: str, hint: str | None = None) -> HeadraceError:
        """Make the error for options that do not fit the table or each other."""
        return SqlValidationError(f"table {self.table!r}: {message}", hint=hint)

    def check(self) -> None:
        """Refuse options that were not read by any code.

        Raises:
            SqlValidationError: If there is one.
            UnsupportedFeatureError: One of them sets a parallelism of its own.
        """
        for key in self._values:
            if key in _PARALLELISM:
                raise UnsupportedFeatureError(
                    f"table {self.table!r}: option {key!r} cannot be honoured: all operators of a table job have one "
                    "parallelism",
                    feature=key,
                    hint="set 'table.exec.resource.default-parallelism' for the job",
                )
            if key not in self._known:
                near = difflib.get_close_matches(key, self._known, 1, 0.4)
                known = ", ".join(sorted(self._known - {"connector"}))
                raise self.unknown(key, f"did you mean {near[0]!r}?" if near else f"available: {known}")
