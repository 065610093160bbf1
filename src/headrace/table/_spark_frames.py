"""`from_spark` and `to_spark`: bounded tables from Spark's DataFrames, and DataFrames from bounded tables.

Spark itself is above this package: what knows it is found by name, as executors are.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, Final, Protocol
from uuid import uuid4

from headrace.config.configuration import Configuration
from headrace.config.options.checkpointing import DIRECTORY
from headrace.errors import JobDefinitionError
from headrace.planner.logical import LogicalNode
from headrace.storage.paths import absolute_path, join_path
from headrace.table._elements import materialized
from headrace.table._jobs import TableJobs, endless_source
from headrace.table.schema import Schema
from headrace.table.table_descriptor import TableDescriptor
from headrace.types import DataType
from headrace.util.host_directories import HeldDirectory, make_temporary

__all__ = ["SparkFrameCalls"]

_MODULE: Final = "headrace.spark.frames"
#: Directories of this process; they go when it ends.
_held: list[HeldDirectory] = []


class DataFrameFiles(Protocol):
    """The functions of `headrace.spark.frames` that tables use."""

    def store_frame(self, frame: Any, directory: str) -> list[tuple[str, DataType]]:
        """Compute a DataFrame into files, and return its columns."""

    def frame_of_files(
        self, configuration: Configuration, directory: str, columns: list[tuple[str, DataType]]
    ) -> Any:
        """Return the DataFrame of files."""

    def frame_of_rows(
        self,
        configuration: Configuration,
        rows: list[tuple[Any, ...]],
        columns: list[tuple[str, DataType]],
    ) -> Any:
        """Return the DataFrame of rows."""


class SparkFrameCalls:
    """The part of a table environment that knows DataFrames."""

    _jobs: TableJobs
    _numbers: Iterator[int]

    def from_spark(self, df: Any) -> Any:
        """Return a bounded `Table` of the rows of a DataFrame of PySpark, with its names and types.

        The DataFrame is computed once, into files. It must belong to the Spark of this process.

        Args:
            df: The DataFrame; not one of a stream.

        Raises:
            JobDefinitionError: If it is not valid, is a stream, or has a column that tables have no type for.
        """
        directory = _directory(self._jobs.configuration)
        columns = _frames().store_frame(df, directory)
        t_env: Any = self
        name = f"Spark_{next(self._numbers)}"
        t_env.create_temporary_table(name, _files(directory, columns))
        return t_env.from_path(name)

    def _to_spark(self, plan: LogicalNode) -> Any:
        jobs = self._jobs
        columns = [(field.name, field.type) for field in plan.schema]
        planned = jobs.plan_query(plan)
        endless = endless_source(jobs.job_graph(planned, "to_spark"))
        if endless is not None:
            raise JobDefinitionError(
                f"to_spark() returns when the query has ended, and its source {endless!r} never ends",
                hint="bound the source, or write the table to files or Kafka and read those with Spark",
            )
        if not jobs.is_batch and not planned.changelogs[planned.sinks[0].inputs[0]].is_insert_only:
            with jobs.run_query(plan).rows as rows:
                return _frames().frame_of_rows(jobs.configuration, materialized(rows), columns)
        directory = _directory(jobs.configuration)
        t_env: Any = self
        name = f"Spark_{next(self._numbers)}"
        t_env.create_temporary_table(name, _files(directory, columns))
        try:
            t_env._table(plan).execute_insert(name).wait()
        finally:
            t_env.drop_temporary_table(name)
        return _frames().frame_of_files(jobs.configuration, directory, columns)


def _frames() -> DataFrameFiles:
    module: Any = importlib.import_module(_MODULE)
    return module  # type: ignore[no-any-return]


def _directory(configuration: Configuration) -> str:
    """Return a new place that all of Spark sees: below the checkpoints, if there is such a directory."""
    shared = configuration.get(DIRECTORY)
    if shared is not None:
        return join_path(absolute_path(shared), "dataframes", uuid4().hex)
    held = make_temporary("dataframe")
    _held.append(held)
    return join_path(held.path, "rows")


def _files(directory: str, columns: list[tuple[str, DataType]]) -> TableDescriptor:
    schema = Schema.new_builder().from_fields([name for name, _ in columns], [kind for _, kind in columns])
    described = TableDescriptor.for_connector("filesystem").schema(schema.build())
    return described.option("path", directory).option("format", "parquet").build()
