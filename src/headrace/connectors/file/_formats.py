"""How records become the bytes of a part file.

A format says whether two of its files, one behind the other, are a file again. Rows are; columnar formats,
which end a file with an index, are not: of those every segment will be a part of its own.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.errors import UserFunctionError

if TYPE_CHECKING:
    from headrace.common.serialization import Encoder


@dataclass(frozen=True)
class RowFormat:
    """One record behind the other."""

    encoder: Encoder
    can_append: ClassVar[bool] = True

    def encode(self, values: Sequence[Any]) -> bytes:
        """Return the bytes of the records.

        Raises:
            UserFunctionError: The encoder refused one; the error has the record.
        """
        encode = self.encoder.encode
        buffer = io.BytesIO()
        value = None
        try:
            for value in values:
                encode(value, buffer)
        except Exception as error:
            raise UserFunctionError.from_exception(error, record=value) from error
        return buffer.getvalue()
