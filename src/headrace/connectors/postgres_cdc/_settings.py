"""The settings of a `PostgresCdcSource`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.connectors.postgres_cdc._database import TablePlace
from headrace.types import DataType

__all__ = ["CdcSettings"]


@dataclass(frozen=True)
class CdcSettings:
    """What is read, and how.

    Args:
        place: Where the table is.
        columns: Names and types of the columns to read.
        metadata: What follows the columns of a row: `table_name`, `schema_name`, `database_name`, `op_ts`, `row_kind`.
        is_upsert: Whether an update is the new row alone.
        startup: `initial` reads the table first; `latest-offset` only changes from now on; `committed-offset` those
            that the slot has kept.
    """

    place: TablePlace
    columns: Sequence[tuple[str, DataType]]
    metadata: Sequence[str] = ()
    is_upsert: bool = False
    startup: str = "initial"
