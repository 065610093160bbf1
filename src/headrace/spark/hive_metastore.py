"""A Hive metastore through the classes that Spark brings along: a server, or an embedded Derby in a directory.

`catalog/hive.py` is the catalog over it. The metastore's own client is used, as Hive and Flink do: the session that
runs epochs needs no Hive support, and Spark is started only if it does not run yet.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from xml.etree import ElementTree

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext

from headrace.catalog.hive import HiveColumn, HiveTable, MetastoreCatalog
from headrace.catalog.objects import CatalogDatabase
from headrace.config.configuration import Configuration
from headrace.errors import CatalogError, ConnectorError
from headrace.planner.dialect.cursor import Cursor
from headrace.planner.dialect.types import parse_type
from headrace.spark.session import spark_context
from headrace.types.logical import DataType

__all__ = ["HiveMetastore", "hive_catalog"]

T = TypeVar("T")

_OPTIONS: Final = ("type", "default-database", "hive-conf-dir", "directory", "metastore.uris")
_URIS, _URL = "hive.metastore.uris", "javax.jdo.option.ConnectionURL"
_WAREHOUSE: Final = "hive.metastore.warehouse.dir"
#: What an embedded metastore needs to make its tables in a new Derby.
_EMBEDDED: Final = {
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    # Spark's distribution has no classes of the default pool.
    "datanucleus.connectionPoolingType": "NONE",
}
_IO: Final = "org.apache.hadoop.hive.ql.io"
#: The classes that read, write and interpret files, by format.
_CLASSES: Final = {
    "parquet": (
        f"{_IO}.parquet.MapredParquetInputFormat",
        f"{_IO}.parquet.MapredParquetOutputFormat",
        f"{_IO}.parquet.serde.ParquetHiveSerDe",
    ),
    "orc": (f"{_IO}.orc.OrcInputFormat", f"{_IO}.orc.OrcOutputFormat", f"{_IO}.orc.OrcSerde"),
    "csv": (
        "org.apache.hadoop.mapred.TextInputFormat",
        f"{_IO}.HiveIgnoreKeyTextOutputFormat",
        "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    ),
}
_MISSING: Final = ("NoSuchObjectException", "UnknownDBException", "UnknownTableException")


class HiveMetastore:
    """Speaks to a metastore. Calls take turns: its client serves one at a time.

    Args:
        java: Java's classes, as Spark's process has them.
        settings: Settings of Hive.
    """

    def __init__(self, java: Any, settings: Mapping[str, str]) -> None:
        self._java = java
        self._api = java.org.apache.hadoop.hive.metastore.api
        self._lock = threading.RLock()
        configuration = java.org.apache.hadoop.hive.conf.HiveConf()
        for key, value in settings.items():
            configuration.set(key, value)
        place = settings.get(_URIS) or settings.get(_URL)
        try:
            self._client = java.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(configuration)
        except Py4JError as error:
            raise ConnectorError(
                f"the Hive metastore cannot be opened ({place}): {_reason(error)}",
                hint="an embedded metastore serves one process at a time; run a metastore server for several",
            ) from error

    # --- databases ------------------------------------------------------------------------------------

    def databases(self) -> list[str]:
        return [str(each) for each in self._ask(self._client.getAllDatabases)]

    def database(self, name: str) -> CatalogDatabase | None:
        found = self._find(lambda: self._client.getDatabase(name))
        if found is None:
            return None
        return CatalogDatabase(dict(found.getParameters() or {}), found.getDescription() or None)

    def put_database(self, name: str, database: CatalogDatabase) -> None:
        made = self._api.Database(name, database.comment or "", None, dict(database.properties))
        existing = self._find(lambda: self._client.getDatabase(name))
        if existing is None:
            self._ask(lambda: self._client.createDatabase(made))
        else:
            made.setLocationUri(existing.getLocationUri())
            self._ask(lambda: self._client.alterDatabase(name, made))

    def drop_database(self, name: str) -> None:
        self._ask(lambda: self._client.dropDatabase(name, True, True, True))

    # --- tables ---------------------------------------------------------------------------------------

    def tables(self, database: str) -> list[str]:
        return [str(each) for each in self._ask(lambda: self._client.getAllTables(database))]

    def views(self, database: str) -> list[str]:
        kind = self._java.org.apache.hadoop.hive.metastore.TableType.VIRTUAL_VIEW
        return [str(each) for each in self._ask(lambda: self._client.getTables(database, "*", kind))]

    def table(self, database: str, name: str) -> HiveTable | None:
        found = self._find(lambda: self._client.getTable(database, name))
        if found is None:
            return None
        storage = found.getSd()
        serde = storage.getSerdeInfo()
        is_view = found.getTableType() == "VIRTUAL_VIEW"
        return HiveTable(
            _columns(storage.getCols()),
            _columns(found.getPartitionKeys()),
            storage.getLocation(),
            storage.getInputFormat(),
            dict((serde.getParameters() if serde is not None else None) or {}),
            dict(found.getParameters() or {}),
            (found.getViewOriginalText(), found.getViewExpandedText()) if is_view else None,
        )

    def put_table(self, database: str, name: str, table: HiveTable) -> None:
        made = self._made(database, name, table)
        existing = self._find(lambda: self._client.getTable(database, name))
        if existing is None:
            self._ask(lambda: self._client.createTable(made))
            return
        if made.getSd().getLocation() is None:
            made.getSd().setLocation(existing.getSd().getLocation())
        made.setCreateTime(existing.getCreateTime())
        self._ask(lambda: self._client.alter_table(database, name, made))

    def drop_table(self, database: str, name: str, *, deletes_files: bool) -> None:
        self._ask(lambda: self._client.dropTable(database, name, deletes_files, True))

    def partition_locations(self, database: str, name: str) -> list[str]:
        found = self._ask(lambda: self._client.listPartitions(database, name, -1))
        return [str(each.getSd().getLocation()) for each in found]

    # --- functions ------------------------------------------------------------------------------------

    def functions(self, database: str) -> list[str]:
        return [str(each) for each in self._ask(lambda: self._client.getFunctions(database, "*"))]

    def function(self, database: str, name: str) -> str | None:
        found = self._find(lambda: self._client.getFunction(database, name))
        return None if found is None else str(found.getClassName())

    def put_function(self, database: str, name: str, class_name: str) -> None:
        kinds = self._api
        owner = kinds.PrincipalType.USER
        made = kinds.Function(name, database, class_name, _user(), owner, 0, kinds.FunctionType.JAVA, [])
        if self.function(database, name) is None:
            self._ask(lambda: self._client.createFunction(made))
        else:
            self._ask(lambda: self._client.alterFunction(database, name, made))

    def drop_function(self, database: str, name: str) -> None:
        self._ask(lambda: self._client.dropFunction(database, name))

    # --- how it is asked ------------------------------------------------------------------------------

    def _made(self, database: str, name: str, table: HiveTable) -> Any:
        made, storage, serde = self._api.Table(), self._api.StorageDescriptor(), self._api.SerDeInfo()
        made.setDbName(database)
        made.setTableName(name)
        made.setOwner(_user())
        made.setParameters(dict(table.parameters))
        is_external = table.parameters.get("EXTERNAL") == "TRUE"
        made.setTableType("EXTERNAL_TABLE" if is_external else "MANAGED_TABLE")
        reads, writes, interprets = _CLASSES[table.format or "csv"]
        storage.setInputFormat(reads)
        storage.setOutputFormat(writes)
        serde.setSerializationLib(interprets)
        serde.setParameters(dict(table.serde_properties))
        storage.setSerdeInfo(serde)
        storage.setCols(self._fields(table.columns))
        if table.location is not None:
            storage.setLocation(table.location)
        made.setSd(storage)
        made.setPartitionKeys(self._fields(table.partition_keys))
        if table.view is not None:
            made.setTableType("VIRTUAL_VIEW")
            made.setViewOriginalText(table.view[0])
            made.setViewExpandedText(table.view[1])
        return made

    def _fields(self, columns: tuple[HiveColumn, ...]) -> list[Any]:
        return [self._api.FieldSchema(each.name, each.type, each.comment) for each in columns]

    def _find(self, look: Callable[[], T]) -> T | None:
        """Return what is looked for, or None if there is no such thing."""
        with self._lock:
            try:
                return look()
            except Py4JJavaError as error:
                if _class_name(error) in _MISSING:
                    return None
                raise _failed(error) from error

    def _ask(self, call: Callable[[], T]) -> T:
        with self._lock:
            try:
                return call()
            except Py4JJavaError as error:
                raise _failed(error) from error


def _columns(fields: Any) -> tuple[HiveColumn, ...]:
    return tuple(HiveColumn(each.getName(), each.getType(), each.getComment()) for each in fields or ())


def _user() -> str:
    return os.environ.get("USER", "headrace")


def _class_name(error: Py4JJavaError) -> str:
    return str(error.java_exception.getClass().getSimpleName())


def _reason(error: Py4JError) -> str:
    """Return the innermost message of what Java says."""
    cause = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    return str(error if cause is None else cause.getMessage())


def _failed(error: Py4JJavaError) -> CatalogError:
    return CatalogError(f"the Hive metastore rejected the request: {_reason(error)}")


def hive_catalog(options: Mapping[str, str], comment: str | None) -> MetastoreCatalog:
    """Make a catalog of type `hive`.

    Raises:
        CatalogError: An option is unknown, or the configuration of Hive cannot be read.
    """
    if unknown := sorted(set(options) - set(_OPTIONS)):
        raise CatalogError(
            f"a hive catalog has no option {unknown[0]!r}", hint=f"available: {', '.join(_OPTIONS[1:])}"
        )
    settings = _settings(options)

    def connect(configuration: Configuration | None) -> HiveMetastore:
        context: Any = SparkContext._active_spark_context or spark_context(
            configuration or Configuration({}), classes="tables"
        )
        return HiveMetastore(context._jvm, settings)

    return MetastoreCatalog(
        connect, _parse_type, options.get("default-database", "default"), options, comment
    )


def _parse_type(text: str) -> DataType:
    return parse_type(Cursor(text))


def _settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return settings of Hive: those of hive-site.xml, or of Derby in a directory, which Spark uses by default, too."""
    given = _hive_site(options["hive-conf-dir"]) if "hive-conf-dir" in options else {}
    if uris := options.get("metastore.uris"):
        given[_URIS] = uris
    if given.get(_URIS) or given.get(_URL):
        return given
    directory = Path(options.get("directory", "."))
    warehouse = directory.absolute() / ("warehouse" if "directory" in options else "spark-warehouse")
    derby = f"jdbc:derby:;databaseName={directory.absolute() / 'metastore_db'};create=true"
    return {**_EMBEDDED, _URIS: "", _URL: derby, _WAREHOUSE: str(warehouse), **given}


def _hive_site(directory: str) -> dict[str, str]:
    path = Path(directory, "hive-site.xml")
    try:
        root = ElementTree.parse(path).getroot()  # noqa: S314 - the user's own configuration
    except (OSError, ElementTree.ParseError) as error:
        raise CatalogError(f"cannot read the configuration of Hive, {path}: {error}") from None
    return {
        (each.findtext("name") or "").strip(): (each.findtext("value") or "").strip()
        for each in root.iter("property")
    }
