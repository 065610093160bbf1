"""Rows from and into databases. The sink has PyFlink's names: `pyflink.datastream.connectors.jdbc`."""

from __future__ import annotations

from headrace.connectors import jdbc
from headrace.connectors.jdbc import *  # noqa: F403 - PyFlink's place for all of it
from headrace.connectors.lookup import LookupCacheOptions

__all__ = ["LookupCacheOptions"]
__all__ += jdbc.__all__
