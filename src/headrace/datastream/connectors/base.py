"""What all connectors have in common, under PyFlink's names: `pyflink.datastream.connectors.base`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from headrace.connectors.base import DeliveryGuarantee, Sink, Source

__all__ = ["DeliveryGuarantee", "Sink", "Source", "StreamTransformer", "SupportsPreprocessing"]


class StreamTransformer(ABC):
    """Changes a stream before it reaches a sink."""

    @abstractmethod
    def apply(self, ds: Any) -> Any:
        """Take the stream that was given to `sink_to`, return the one the sink gets."""


class SupportsPreprocessing(ABC):
    """A sink that wants its input changed first."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """Return what changes the stream; None leaves it as it is."""
