"""The Arrow types that columns have when their rows come out of Spark.

Apart from the operators, so that a driver that only plans a job does not import them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from headrace.operators.table.steps import Schema, StepColumn


def as_spark_gives(schema: Sequence[StepColumn]) -> Schema:
    """Return a schema with the Arrow types that come out of Spark: timestamps have microseconds, for example."""
    return tuple(replace(column, arrow=spark_arrow_type(column.arrow)) for column in schema)


def spark_arrow_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type that Spark has for a type.

    >>> spark_arrow_type(pa.list_(pa.timestamp("ms")))
    ListType(list<item: timestamp[us]>)
    """
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_time(kind):
        return pa.time64("ns")
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(spark_arrow_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(spark_arrow_type(kind.key_type), spark_arrow_type(kind.item_type))
    if pa.types.is_struct(kind):
        # Where the whole is NULL its fields are, too, whatever may be in them otherwise.
        return pa.struct([pa.field(field.name, spark_arrow_type(field.type)) for field in kind])
    return kind
