"""The events of the Nexmark benchmark, an online auction: a source of streams, and 'connector' = 'nexmark'."""

from headrace.connectors.nexmark.events import NexmarkEvents
from headrace.connectors.nexmark.source import nexmark_source

__all__ = ["NexmarkEvents", "nexmark_source"]
