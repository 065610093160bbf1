"""Reads records with a format, and handles those that cannot be read.

    message --parse--> record                       the usual way
       |
       +-- error: dead-letter tag set  -> side output: the bytes, the position, the reason
                  errors are ignored   -> what is left of the record, or nothing
                  neither              -> the job fails, and the error says which record it was

Whatever is done with them, bad records are counted as `numRecordsInErrors`, Flink's name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.common.serialization import DeserializationSchema
from headrace.elements import Batch
from headrace.errors import ConnectorError, FormatError
from headrace.formats.base import FormatDeserializationSchema
from headrace.metrics.metricbase import Counter

#: The metric under which bad records are counted.
ERRORS_METRIC = "numRecordsInErrors"


@dataclass(frozen=True)
class DeadLetter:
    """A record that could not be read: what the side output of a source carries."""

    #: The bytes as they were found.
    data: bytes
    #: Where: topic, partition and offset, or file and line.
    position: str
    #: What was wrong with them.
    reason: str


class RecordDecoder:
    """Turns a source's messages into a batch of records.

    Args:
        schema: The format.
        errors: Counts bad records; None if they are not counted.
        emit_dead_letter: Takes bad records; None if there is no side output for them.
        data_of: Returns the bytes of a message, for schemas that read more than bytes.

    Example:
        >>> from headrace.common.serialization import SimpleStringSchema
        >>> letters = []
        >>> decoder = RecordDecoder(SimpleStringSchema(), emit_dead_letter=letters.append)
        >>> decoder.decode([b"to", bytes([255]), b"be"], position_of="line {}".format)
        Batch(['to', 'be'], None)
        >>> letters[0].position
        'line 1'
    """

    def __init__(
        self,
        schema: DeserializationSchema,
        *,
        errors: Counter | None = None,
        emit_dead_letter: Callable[[DeadLetter], None] | None = None,
        data_of: Callable[[Any], bytes] = bytes,
    ) -> None:
        self._schema = schema
        self._errors = errors
        self._emit_dead_letter = emit_dead_letter
        self._data_of = data_of
        if isinstance(schema, FormatDeserializationSchema):
            self._parse: Callable[[bytes], Any] = schema.parse
            self._yields_many = schema.yields_many
        else:
            self._parse, self._yields_many = schema.deserialize, False
        # A format raises FormatError. What a user's own schema raises is his bug, unless he wants to see the data.
        self._caught = Exception if emit_dead_letter is not None else FormatError

    def decode(
        self,
        messages: Sequence[Any],
        timestamps: Sequence[int | None] | None = None,
        *,
        position_of: Callable[[int], str],
    ) -> Batch:
        """Return the records of some messages; those that are None, tombstones, have none.

        Args:
            messages: The messages, in order.
            timestamps: The time of each, if they have one.
            position_of: Says where the message of an index was found.

        Raises:
            FormatError: A message cannot be read, and nothing was said about such ones.
        """
        values: list[Any] = []
        #: For each value, which message it is of.
        origins: list[int] = []
        parse, caught = self._parse, self._caught
        for index, message in enumerate(messages):
            if message is None:
                continue
            try:
                found = parse(message)
            except caught as error:
                if isinstance(error, ConnectorError) and not isinstance(error, FormatError):
                    raise  # a schema registry that is away: the record may be all right
                found = self._handle(message, position_of(index), error)
            if found is None:
                continue
            if self._yields_many:
                values += found
                origins += [index] * len(found)
            else:
                values.append(found)
                origins.append(index)
        if timestamps is None:
            return Batch(values)
        if len(origins) == len(messages) and not self._yields_many:
            return Batch(values, list(timestamps))
        return Batch(values, [timestamps[index] for index in origins])

    def _handle(self, message: Any, position: str, error: Exception) -> Any:
        """Deal with a message that cannot be read, and return what is left of it."""
        if self._errors is not None:
            self._errors.inc()
        reason = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
        if self._emit_dead_letter is not None:
            self._emit_dead_letter(DeadLetter(self._data_of(message), position, str(reason)))
            return None
        if isinstance(self._schema, FormatDeserializationSchema) and self._schema.ignores_parse_errors:
            return self._schema.parse_leniently(message)
        raise FormatError(
            f"{position}: {reason}",
            example=message,
            hint="correct the data or the format, make the format ignore parse errors, or set a dead-letter tag on the "
            "source to send such records to a side output",
        ) from error
