"""CREATE CATALOG with 'type' = 'hive': tables of a Hive metastore.

The metastore keeps two kinds of tables, as with Flink:

- tables of Hive ('connector' = 'hive'): files that Hive and Spark read, too. They are read and written as files.
- tables of other connectors, which the metastore only keeps: their columns and options are properties with the names
  that Flink gives them.

What speaks to the metastore is a `Metastore`; `spark/hive_metastore.py` has the one that goes through Spark's classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from headrace.catalog.catalog import StoredFunction, StoredTable
from headrace.catalog.functions import CatalogFunction
from headrace.catalog.hive_properties import from_properties, to_properties
from headrace.catalog.hive_types import from_hive_type, to_hive_type
from headrace.catalog.objects import CatalogDatabase, CatalogTable, CatalogView, PhysicalColumn
from headrace.config.configuration import Configuration
from headrace.errors import CatalogError
from headrace.types.logical import DataType

__all__ = ["MetastoreCatalog", "HiveColumn", "HiveTable", "Metastore"]

HIVE: Final = "hive"
_GENERIC: Final = "is_generic"
_FLINK: Final = "flink."
_PYTHON: Final = "flink:python:"
_NO_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
#: Formats of files, by a word in the class that reads them.
_FORMATS: Final = {"parquet": "parquet", "orc": "orc", "textinputformat": "csv"}
#: How text files of Hive look unless they say otherwise.
_TEXT: Final = {"csv.null-literal": "\\N", "csv.disable-quote-character": "true"}
_FIELD_DELIMITER: Final = "field.delim"


@dataclass(frozen=True)
class HiveColumn:
    """A column, with its type as Hive writes it."""

    name: str
    type: str
    comment: str | None = None


@dataclass(frozen=True)
class HiveTable:
    """What the metastore knows about a table or view."""

    columns: tuple[HiveColumn, ...] = ()
    partition_keys: tuple[HiveColumn, ...] = ()
    #: None: where the metastore keeps the tables of the database.
    location: str | None = None
    #: `parquet`, `orc` or `csv` for a new table; of one that exists, the class that reads its files.
    format: str | None = None
    serde_properties: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    #: Of a view: the query as it was written, and with full names.
    view: tuple[str, str] | None = None


class Metastore(Protocol):
    """What is asked of a metastore. Names are in lower case."""

    def databases(self) -> list[str]: ...
    def database(self, name: str) -> CatalogDatabase | None: ...
    def put_database(self, name: str, database: CatalogDatabase) -> None: ...
    def drop_database(self, name: str) -> None: ...
    def tables(self, database: str) -> list[str]: ...
    def views(self, database: str) -> list[str]: ...
    def table(self, database: str, name: str) -> HiveTable | None: ...
    def put_table(self, database: str, name: str, table: HiveTable) -> None: ...
    def drop_table(self, database: str, name: str, *, deletes_files: bool) -> None: ...
    def partition_locations(self, database: str, name: str) -> list[str]: ...
    def functions(self, database: str) -> list[str]: ...
    def function(self, database: str, name: str) -> str | None: ...
    def put_function(self, database: str, name: str, class_name: str) -> None: ...
    def drop_function(self, database: str, name: str) -> None: ...


class MetastoreCatalog:
    """Databases, tables, views and functions of a metastore, looked up on every request.

    Args:
        connect: Returns the metastore; called when it is needed first, because it may have to start Spark.
        parse_type: Reads a type of SQL.
        default_database: The database that USE CATALOG selects.
        properties: What the catalog was created with.
        comment: The comment on it, if there is one.
    """

    def __init__(
        self,
        connect: Callable[[Configuration | None], Metastore],
        parse_type: Callable[[str], DataType],
        default_database: str = "default",
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> None:
        self.default_database = default_database
        self.properties: Mapping[str, str] = properties or {"type": HIVE}
        self.comment = comment
        self._connect = connect
        self._parse_type = parse_type
        self._configuration: Configuration | None = None
        self._metastore: Metastore | None = None

    def configure(self, configuration: Configuration) -> None:
        """Say how Spark is started, if it does not run yet."""
        self._configuration = configuration

    @property
    def _store(self) -> Metastore:
        if self._metastore is None:
            self._metastore = self._connect(self._configuration)
        return self._metastore

    # --- databases ------------------------------------------------------------------------------------

    def databases(self) -> list[str]:
        """Names of the databases."""
        return sorted(self._store.databases())

    def database(self, name: str) -> CatalogDatabase | None:
        """A database's description, or None."""
        return self._store.database(name.lower())

    def put_database(self, name: str, database: CatalogDatabase) -> None:
        """Create a database, or replace its description."""
        self._store.put_database(name.lower(), database)

    def drop_database(self, name: str) -> None:
        """Drop a database and what is in it."""
        self._store.drop_database(name.lower())

    # --- tables ---------------------------------------------------------------------------------------

    def tables(self, database: str) -> list[str]:
        """Names of tables and views of a database."""
        return sorted(self._store.tables(database.lower()))

    def views(self, database: str) -> list[str]:
        """Those names of `tables` that are views."""
        return sorted(self._store.views(database.lower()))

    def table(self, database: str, name: str) -> StoredTable | None:
        """A table or view, or None.

        Raises:
            CatalogError: Its files, or the type of a column, cannot be read here.
        """
        database, name = database.lower(), name.lower()
        found = self._store.table(database, name)
        if found is None:
            return None
        if found.view is not None:
            columns = _columns(found.columns)
            return CatalogView(*found.view, columns, found.parameters.get("comment"))
        if found.parameters.get(_GENERIC) == "true":
            kept = {
                key.removeprefix(_FLINK): value
                for key, value in found.parameters.items()
                if key.startswith(_FLINK)
            }
            return from_properties(kept, self._parse_type)
        return self._files(f"{database}.{name}", found, self._store.partition_locations(database, name))

    def put_table(self, database: str, name: str, table: StoredTable) -> None:
        """Create or replace a table or view.

        Raises:
            CatalogError: Hive cannot keep it: a type, or a column that is not stored.
        """
        self._store.put_table(database.lower(), name.lower(), _hive_table(name, table))

    def drop_table(self, database: str, name: str) -> None:
        """Drop a table or view. Files that the metastore has placed itself are deleted, as Hive does."""
        database, name = database.lower(), name.lower()
        found = self._store.table(database, name)
        is_managed = found is not None and found.parameters.get("EXTERNAL") != "TRUE"
        self._store.drop_table(database, name, deletes_files=is_managed)

    def _files(self, name: str, found: HiveTable, partitions: Sequence[str]) -> CatalogTable:
        if found.parameters.get("transactional", "").lower() == "true":
            raise CatalogError(f"table {name!r} is transactional: its files are readable by Hive only")
        reader = (found.format or "").lower()
        kind = next((kind for word, kind in _FORMATS.items() if word in reader), None)
        if kind is None:
            raise CatalogError(
                f"table {name!r}: files that {found.format} reads are not supported",
                hint="supported are Parquet, ORC and text files",
            )
        location = _path(found.location or "")
        if elsewhere := [each for each in partitions if not _path(each).startswith(f"{location}/")]:
            raise CatalogError(
                f"table {name!r} has a partition outside of its own directory: {elsewhere[0]}",
                hint=f"move it below {location}",
            )
        options = {"connector": HIVE, "path": location, "format": kind}
        options["partition.default-name"] = _NO_PARTITION
        if kind == "csv":
            delimiter = found.serde_properties.get(_FIELD_DELIMITER, "\x01")
            options |= {**_TEXT, "csv.field-delimiter": delimiter}
        options |= {
            key.removeprefix(_FLINK): value
            for key, value in found.parameters.items()
            if key.startswith(_FLINK)
        }
        return CatalogTable(
            _columns((*found.columns, *found.partition_keys)),
            options,
            partition_keys=tuple(each.name for each in found.partition_keys),
            comment=found.parameters.get("comment"),
        )

    # --- functions ------------------------------------------------------------------------------------

    def functions(self, database: str) -> list[str]:
        """Names of the functions of a database."""
        return sorted(self._store.functions(database.lower()))

    def function(self, database: str, name: str) -> StoredFunction | None:
        """A function, or None."""
        found = self._store.function(database.lower(), name.lower())
        if found is None:
            return None
        if found.startswith(_PYTHON):
            return CatalogFunction(found.removeprefix(_PYTHON), "PYTHON")
        return CatalogFunction(found, "JAVA")

    def put_function(self, database: str, name: str, function: StoredFunction) -> None:
        """Create or replace a function.

        Raises:
            CatalogError: It is an object of this program, which the metastore cannot keep.
        """
        if not isinstance(function, CatalogFunction):
            raise CatalogError(
                f"function {name!r}: a Hive catalog stores the names of Python functions, not the functions",
                hint="use CREATE FUNCTION ... AS 'module.attribute' LANGUAGE PYTHON, or create a temporary function",
            )
        start = _PYTHON if function.language == "PYTHON" else ""
        self._store.put_function(database.lower(), name.lower(), start + function.class_name)

    def drop_function(self, database: str, name: str) -> None:
        """Remove a function, which must exist."""
        self._store.drop_function(database.lower(), name.lower())


def _columns(columns: Sequence[HiveColumn]) -> tuple[PhysicalColumn, ...]:
    return tuple(
        PhysicalColumn(each.name, from_hive_type(each.name, each.type), comment=each.comment)
        for each in columns
    )


def _hive_columns(columns: Sequence[PhysicalColumn]) -> tuple[HiveColumn, ...]:
    return tuple(
        HiveColumn(each.name.lower(), to_hive_type(each.name, each.type), each.comment) for each in columns
    )


def _hive_table(name: str, table: StoredTable) -> HiveTable:
    said = {} if table.comment is None else {"comment": table.comment}
    if isinstance(table, CatalogView):
        view = table.original_query, table.expanded_query
        return HiveTable(_hive_columns(table.columns), parameters=said, view=view)
    if table.materialization is not None:
        raise CatalogError(f"a Hive catalog cannot store materialized tables:  {name!r}")
    if table.options.get("connector") != HIVE:
        kept = {f"{_FLINK}{key}": value for key, value in to_properties(table).items()}
        # EXTERNAL: what the connector stores is not Hive's to delete.
        return HiveTable(parameters={**said, **kept, _GENERIC: "true", "EXTERNAL": "TRUE"})
    return _table_of_files(name, table, said)


def _table_of_files(name: str, table: CatalogTable, said: dict[str, str]) -> HiveTable:
    if len(table.physical_columns) < len(table.columns) or table.watermark or table.primary_key:
        raise CatalogError(
            f"table {name!r}: a Hive table can only have physical columns",
            hint="computed and metadata columns, watermarks and primary keys belong to a view, or to a table with "
            "'connector' = 'filesystem'",
        )
    options = dict(table.options)
    kind, location = options.pop("format", "parquet"), options.pop("path", None)
    if kind not in _FORMATS.values():
        raise CatalogError(
            f"table {name!r}: 'format' = {kind!r} is not one of Hive's", hint="use parquet, orc or csv"
        )
    for key in ("connector", "partition.default-name", *(_TEXT if kind == "csv" else ())):
        options.pop(key, None)
    delimiter = {_FIELD_DELIMITER: options.pop("csv.field-delimiter", "\x01")} if kind == "csv" else {}
    stored = [each for each in table.physical_columns if each.name not in table.partition_keys]
    keys = [each for each in table.physical_columns if each.name in table.partition_keys]
    external = {} if location is None else {"EXTERNAL": "TRUE"}
    return HiveTable(
        _hive_columns(stored),
        _hive_columns(keys),
        location,
        kind,
        delimiter,
        {**said, **external, **{f"{_FLINK}{key}": value for key, value in options.items()}},
    )


def _path(location: str) -> str:
    """Return a location as the rest of headrace names it: a local path has no scheme."""
    if location.startswith("file:"):
        return "/" + location.removeprefix("file:").lstrip("/").rstrip("/")
    return location.rstrip("/")
