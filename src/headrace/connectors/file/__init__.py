"""Files as source and sink, on every file system that `pyarrow.fs` reaches.

    source:  source (files, splits, planning)  ->  _line_reader (text), _bulk (blocks of records)
    sink:    sink (declaration)  ->  _writer (stages segments)  ->  _committer (publishes parts)
             with _buckets (directories), _policies (names, rolling), _parts (what is full), staged_files (files)
    formats: _formats (what a format is, text)  ->  parquet, orc (with _damaged_files), avro, csv

The names here are PyFlink's, of `pyflink.datastream.connectors.file_system`.
"""

from __future__ import annotations

from headrace.connectors.file._buckets import BucketAssigner
from headrace.connectors.file._bulk import BulkFormat
from headrace.connectors.file._formats import StreamFormat
from headrace.connectors.file._policies import (
    DefaultRollingPolicy,
    FileCompactor,
    FileCompactStrategy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from headrace.connectors.file.sink import FileSink, StreamingFileSink
from headrace.connectors.file.source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)

__all__ = [
    "BucketAssigner",
    "BulkFormat",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]
