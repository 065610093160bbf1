"""One source after the other, under PyFlink's names: `pyflink.datastream.connectors.hybrid_source`."""

from __future__ import annotations

from headrace.connectors.hybrid import HybridSource, HybridSourceBuilder

__all__ = ["HybridSource", "HybridSourceBuilder"]
