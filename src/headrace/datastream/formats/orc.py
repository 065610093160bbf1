"""ORC files, under PyFlink's names: `pyflink.datastream.formats.orc`. Reading them goes beyond PyFlink."""

from __future__ import annotations

from headrace.connectors.file.orc import OrcBulkWriters, OrcColumnarRowInputFormat

__all__ = ["OrcBulkWriters", "OrcColumnarRowInputFormat"]
