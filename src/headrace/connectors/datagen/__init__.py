"""Generated records: by a function of an index, or field by field with the keys of Flink's `datagen`."""

from headrace.connectors.datagen.rows import datagen_source
from headrace.connectors.datagen.source import DataGeneratorSource

__all__ = ["DataGeneratorSource", "datagen_source"]
