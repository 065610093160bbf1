"""What workers read of a scan whose rows Spark continues with."""

from __future__ import annotations

from unittest.mock import create_autospec

import pyarrow as pa

from headrace.connectors.base import FilePiece, Slice, SparkSource
from headrace.operators.table.declarations import TableScanDeclaration
from headrace.operators.table.steps import Fragment, Select, StepColumn
from headrace.spark.column_scans import column_scan

COLUMNS = tuple(StepColumn(name, "BIGINT", pa.int64()) for name in ("id", "n", "other"))
ROW = (("`id`", "id"), ("`n`", "n"))


def read_of(fragment: Fragment | None, *behind: Select) -> list[str]:
    source = create_autospec(SparkSource, instance=True)
    source.column_pieces.return_value = [create_autospec(FilePiece, instance=True)]
    scan = TableScanDeclaration(source, schema=COLUMNS, fragment=fragment)
    slices = {0: [create_autospec(Slice, instance=True)]}
    found = column_scan("scan", scan, slices, [behind], needs_time=False, told=list)
    assert found is not None
    return [column.name for column in found.columns]


def test_only_columns_that_steps_name_are_read():
    assert read_of(None, Select(ROW)) == ["id", "n"]


def test_a_column_that_a_later_step_drops_is_read_too():
    fragment = Fragment((Select((*ROW, ("now()", "at"))),), (*COLUMNS[:2],))

    assert read_of(fragment, Select((("`n`", "n"),))) == ["id", "n"]
