"""'connector' = 'postgres-cdc': tables of PostgreSQL with their changes, with the options of Flink CDC."""

from __future__ import annotations

from typing import Final

from headrace.common.changelog import ALL, UPSERT, ChangelogMode
from headrace.config.table_options import TableOptions
from headrace.connectors.base import Source
from headrace.connectors.postgres_cdc._database import TablePlace
from headrace.connectors.postgres_cdc._values import can_read
from headrace.connectors.postgres_cdc.source import PostgresCdcSource
from headrace.connectors.tables import TableRequest
from headrace.errors import ConnectorError, SqlValidationError, UnsupportedFeatureError
from headrace.types import DataType, DataTypes

__all__ = ["PostgresCdcFactory"]

_METADATA: Final = {
    "table_name": DataTypes.STRING(),
    "schema_name": DataTypes.STRING(),
    "database_name": DataTypes.STRING(),
    "op_ts": DataTypes.TIMESTAMP_LTZ(3),
    "row_kind": DataTypes.STRING(),
}
_STARTUP: Final = ("initial", "latest-offset", "committed-offset")
_DEFAULT_PUBLICATION: Final = "dbz_publication"
#: Options of Flink CDC that mean nothing here, with the reason.
_REFUSED: Final = {
    "heartbeat.interval.ms": "the position advances with the log even if only other tables change",
    "scan.incremental.snapshot.chunk.size": "the snapshot is read in portions of one epoch each",
    "scan.incremental.snapshot.chunk.key-column": "the snapshot is read in the order of the primary key",
    "scan.snapshot.fetch.size": "the snapshot is read in portions of one epoch each",
    "chunk-meta.group.size": "the snapshot has no chunks",
    "connection.pool.size": "every request opens its own connection",
    "connect.max-retries": "the restart strategy of the job decides how often to try again",
    "scan.startup.specific-offset.lsn": "a slot keeps no changes from before its confirmed position",
    "scan.startup.timestamp-millis": "the log cannot be searched by time",
}


class PostgresCdcFactory:
    """Reads tables and their changes."""

    def mode(self, request: TableRequest) -> ChangelogMode:
        return UPSERT if _is_upsert(request) else ALL

    def source(self, request: TableRequest) -> Source:
        options = request.options
        _driver()
        _refuse(options)
        startup = options.text("scan.startup.mode", "initial") or ""
        if startup not in _STARTUP:
            raise options.wrong("scan.startup.mode", f"one of {', '.join(_STARTUP)}")
        columns = [(column.name, column.type) for column in request.table.physical_columns]
        for name, kind in columns:
            if not can_read(kind):
                raise SqlValidationError(
                    f"table {request.name!r}: column {name!r} of type {kind.summary_without_null()} cannot be read "
                    "from PostgreSQL's log",
                    hint="declare it as STRING to get its text",
                )
        return PostgresCdcSource(
            _place(options),
            columns,
            [_metadata_key(request, each.metadata_key, each.type) for each in request.table.metadata_columns],
            is_upsert=_is_upsert(request),
            startup=startup,
        )


def _driver() -> None:
    try:
        import psycopg  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise ConnectorError(
            "postgres-cdc: psycopg is not installed",
            hint="run pip install 'headrace[jdbc]' where the program runs and on every worker",
            retryable=False,
        ) from error


def _is_upsert(request: TableRequest) -> bool:
    options = request.options
    mode = options.text("changelog-mode", "all")
    if mode not in ("all", "upsert"):
        raise options.wrong("changelog-mode", "all or upsert")
    if mode == "upsert" and request.table.primary_key is None:
        raise SqlValidationError(
            f"table {request.name!r}: 'changelog-mode' = 'upsert' needs a primary key",
            hint="declare it: PRIMARY KEY (column) NOT ENFORCED",
        )
    return mode == "upsert"


def _place(options: TableOptions) -> TablePlace:
    slot = options.required("slot.name")
    if not slot or len(slot) > 63 or not set(slot) <= set("abcdefghijklmnopqrstuvwxyz0123456789_"):
        raise options.wrong("slot.name", "a name of lower-case letters, digits and underscores")
    timeout = options.duration("connect.timeout")
    return TablePlace(
        host=options.required("hostname"),
        port=options.integer("port") or 5432,
        user=options.required("username"),
        password=options.required("password"),
        database=options.required("database-name"),
        schema=options.required("schema-name"),
        table=options.required("table-name"),
        slot=slot,
        publication=options.text("debezium.publication.name", _DEFAULT_PUBLICATION) or _DEFAULT_PUBLICATION,
        connect_timeout_s=30 if timeout is None else max(1, int(timeout.total_seconds())),
    )


def _refuse(options: TableOptions) -> None:
    """Refuse options that cannot be honoured."""
    plugin = options.text("decoding.plugin.name", "pgoutput")
    if plugin != "pgoutput":
        raise UnsupportedFeatureError(
            f"table {options.table!r}: 'decoding.plugin.name' = {plugin!r} is not supported",
            feature=f"the decoding plugin {plugin!r}",
            hint="use 'pgoutput', which every PostgreSQL has",
        )
    if options.boolean("scan.incremental.snapshot.enabled", default=False):
        raise UnsupportedFeatureError(
            f"table {options.table!r}: 'scan.incremental.snapshot.enabled' cannot be honoured: one subtask reads the "
            "snapshot",
            feature="scan.incremental.snapshot.enabled",
            hint="leave it out; checkpoints are possible while the snapshot is read",
        )
    for key, reason in _REFUSED.items():
        if options.text(key) is not None:
            raise UnsupportedFeatureError(
                f"table {options.table!r}: option {key!r} cannot be honoured: {reason}",
                feature=key,
                hint="leave it out",
            )


def _metadata_key(request: TableRequest, key: str, declared: DataType) -> str:
    kind = _METADATA.get(key)
    if kind is None:
        raise SqlValidationError(
            f"table {request.name!r}: connector 'postgres-cdc' has no metadata {key!r}",
            hint=f"available: {', '.join(_METADATA)}",
        )
    if declared.nullable() != kind.nullable():
        raise SqlValidationError(
            f"table {request.name!r}: metadata {key!r} is {kind.summary_without_null()}, and declared as "
            f"{declared.summary_without_null()}"
        )
    return key
