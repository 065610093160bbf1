"""Configuration: typed options with Flink's keys, and the layers their values come from.

`option` declares, `options/` lists by subject, `registry` finds by key, `file` reads `headrace.yaml`, and
`configuration` puts file, environment, command line and code on top of each other. Nothing here runs
anything.
"""

from __future__ import annotations

from headrace.config.configuration import Configuration, ExplainedValue, Layer
from headrace.config.memory_size import MemorySize
from headrace.config.option import ConfigOption, option

__all__ = ["ConfigOption", "Configuration", "ExplainedValue", "Layer", "MemorySize", "option"]
