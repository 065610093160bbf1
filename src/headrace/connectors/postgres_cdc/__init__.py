"""'connector' = 'postgres-cdc': a table of PostgreSQL with all its changes, by logical decoding."""

from headrace.connectors.postgres_cdc.source import PostgresCdcSource

__all__ = ["PostgresCdcSource"]
