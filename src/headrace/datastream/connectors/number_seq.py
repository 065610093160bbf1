"""A source of numbers, under PyFlink's name: `pyflink.datastream.connectors.number_seq`."""

from __future__ import annotations

from headrace.connectors.sequence import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
