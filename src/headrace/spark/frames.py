"""Spark's DataFrames on their way into bounded tables and back: Parquet files in between, and types that stay.

Files, because a table job reads its input in slices, epoch after epoch, and runs again from where it failed: what a
DataFrame would compute for each of them again is computed once. Nothing passes through the memory of the driver.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

from headrace.config.configuration import Configuration
from headrace.errors import JobDefinitionError, TypeInferenceError
from headrace.spark.failures import reason_of
from headrace.spark.session import spark_context
from headrace.types import DataType
from headrace.types.arrow import from_arrow_type
from headrace.types.arrow import to_arrow_type as arrow_of

__all__ = ["frame_of_files", "frame_of_rows", "store_frame"]


def store_frame(frame: Any, directory: str) -> list[tuple[str, DataType]]:
    """Compute a DataFrame into Parquet files, and return its columns.

    Args:
        frame: The DataFrame.
        directory: Where to; must not exist.

    Raises:
        JobDefinitionError: If it is no DataFrame of this process, never ends, or cannot be computed.
    """
    if not isinstance(frame, DataFrame) or not hasattr(frame, "_jdf"):
        raise JobDefinitionError(
            f"from_spark() expects a DataFrame of PySpark; got {type(frame).__name__}",
            hint="for pandas use from_pandas(); a DataFrame of Spark Connect belongs to another process",
        )
    if frame.isStreaming:
        raise JobDefinitionError(
            "from_spark() expects a bounded DataFrame; this one is a stream",
            hint="read the stream's source with a table of headrace: CREATE TABLE ... WITH ('connector' = ...)",
        )
    columns = [(field.name, _type_of(field)) for field in frame.schema.fields]
    try:
        frame.write.parquet(directory)
    except PySparkException as error:
        raise JobDefinitionError(
            f"from_spark(): Spark cannot compute the DataFrame: {reason_of(str(error))}"
        ) from error
    return columns


def _type_of(field: Any) -> DataType:
    try:
        return from_arrow_type(to_arrow_type(field.dataType, timezone="UTC"), field.nullable)
    except (TypeInferenceError, PySparkException) as error:
        raise JobDefinitionError(
            f"from_spark(): column {field.name!r} is {field.dataType.simpleString()}, for which tables have no type",
            hint="cast or drop the column first",
        ) from error


def frame_of_files(
    configuration: Configuration, directory: str, columns: list[tuple[str, DataType]]
) -> DataFrame:
    """Return the DataFrame of Parquet files with these columns."""
    schema = from_arrow_schema(_schema(columns))
    return _session(configuration).read.schema(schema).parquet(directory)


def frame_of_rows(
    configuration: Configuration, rows: list[tuple[Any, ...]], columns: list[tuple[str, DataType]]
) -> DataFrame:
    """Return the DataFrame of rows that are here."""
    schema = _schema(columns)
    arrays = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    return _session(configuration).createDataFrame(pa.Table.from_arrays(arrays, schema=schema))


def _schema(columns: list[tuple[str, DataType]]) -> pa.Schema:
    return pa.schema([pa.field(name, arrow_of(kind), nullable=kind.nullable) for name, kind in columns])


def _session(configuration: Configuration) -> SparkSession:
    """Return the program's session, or one on the Spark that jobs use."""
    return SparkSession.getActiveSession() or SparkSession(spark_context(configuration, classes="tables"))
