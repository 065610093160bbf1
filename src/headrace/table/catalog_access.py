"""`Catalog`: a catalog as PyFlink's programs use it, over whatever the catalog manager asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from headrace.catalog import CatalogManager, objects
from headrace.catalog.catalog import Catalog as StoredCatalog
from headrace.catalog.catalog import InMemoryCatalog, StoredTable, TableDetails
from headrace.catalog.functions import CatalogFunction as StoredFunction
from headrace.catalog.types import create_catalog
from headrace.errors import CatalogError, UnsupportedFeatureError
from headrace.planner import bind, parse_statement
from headrace.planner.statements import CreateTable, CreateView
from headrace.table._functions import load_function
from headrace.table._paths import create_sql
from headrace.table.catalog_columns import ObjectPath
from headrace.table.catalog_objects import (
    CatalogBaseTable,
    CatalogColumnStatistics,
    CatalogDatabase,
    CatalogFunction,
    CatalogPartition,
    CatalogPartitionSpec,
    CatalogTableStatistics,
)
from headrace.table.table_descriptor import TableDescriptor
from headrace.types.logical import quote_name

__all__ = ["Catalog", "HiveCatalog", "JdbcCatalog"]

# A table is bound in a catalog manager of its own, in which the catalog has this name.
_HERE = "catalog"
_NO_PARTITION = CatalogPartitionSpec({})


class Catalog:
    """Databases, tables, views, functions, partitions and statistics of a catalog.

    `TableEnvironment.get_catalog` returns one. What you change is changed for all who use the catalog.

    Example:
        >>> from headrace.table import EnvironmentSettings, TableEnvironment
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> t_env.get_catalog("default_catalog").list_databases()
        ['default_database']
    """

    def __init__(self, catalog: StoredCatalog) -> None:
        self._catalog = catalog

    def get_default_database(self) -> str:
        """Return the database that USE CATALOG selects."""
        return self._catalog.default_database

    # --- databases ------------------------------------------------------------------------------------

    def list_databases(self) -> list[str]:
        """Return the names of the databases."""
        return self._catalog.databases()

    def get_database(self, database_name: str) -> CatalogDatabase:
        """Return the description of a database.

        Raises:
            CatalogError: If it does not exist.
        """
        found = self._catalog.database(database_name)
        if found is None:
            raise CatalogError(f"database {database_name!r} does not exist")
        return CatalogDatabase(found.properties, found.comment)

    def database_exists(self, database_name: str) -> bool:
        """Return whether a database exists."""
        return self._catalog.database(database_name) is not None

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        """Create a database.

        Raises:
            CatalogError: There is one with this name.
        """
        if self.database_exists(name):
            _unless(ignore_if_exists, f"database {name!r} already exists")
        else:
            self._catalog.put_database(name, objects.CatalogDatabase(database.properties, database.comment))

    def drop_database(self, name: str, ignore_if_exists: bool) -> None:
        """Drop an empty database.

        Raises:
            CatalogError: If it does not exist, or is not empty.
        """
        if not self.database_exists(name):
            _unless(ignore_if_exists, f"database {name!r} does not exist")
            return
        if self._catalog.tables(name) or self._catalog.functions(name):
            raise CatalogError(f"database {name!r} is not empty")
        self._catalog.drop_database(name)

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool) -> None:
        """Replace the description of a database.

        Raises:
            CatalogError: If it does not exist.
        """
        if self.database_exists(name):
            described = objects.CatalogDatabase(new_database.properties, new_database.comment)
            self._catalog.put_database(name, described)
        else:
            _unless(ignore_if_not_exists, f"database {name!r} does not exist")

    # --- tables and views -----------------------------------------------------------------------------

    def list_tables(self, database_name: str) -> list[str]:
        """Return the names of the tables and views of a database."""
        self.get_database(database_name)
        return self._catalog.tables(database_name)

    def list_views(self, database_name: str) -> list[str]:
        """Return the names of the views of a database."""
        self.get_database(database_name)
        return self._catalog.views(database_name)

    def list_materialized_tables(self, database_name: str) -> list[str]:
        """Return the names of the materialized tables of a database."""
        return [
            name
            for name in self.list_tables(database_name)
            if objects.is_materialized(self._catalog.table(database_name, name))
        ]

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        """Return a table or view.

        Raises:
            CatalogError: If it does not exist.
        """
        return CatalogBaseTable._of(self._stored(table_path))

    def table_exists(self, table_path: ObjectPath) -> bool:
        """Return whether a table or view exists."""
        return self._catalog.table(table_path.database_name, table_path.object_name) is not None

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Drop a table or view.

        Raises:
            CatalogError: If it does not exist.
        """
        if self.table_exists(table_path):
            self._catalog.drop_table(table_path.database_name, table_path.object_name)
        else:
            _unless(ignore_if_not_exists, _no_table(table_path))

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        """Give a table or view another name in its database.

        Raises:
            CatalogError: If it does not exist, or the new name is taken.
        """
        if not self.table_exists(table_path):
            _unless(ignore_if_not_exists, _no_table(table_path))
            return
        database, table = table_path.database_name, self._stored(table_path)
        if self._catalog.table(database, new_table_name) is not None:
            raise CatalogError(f"table or view {new_table_name!r} already exists in database {database!r}")
        self._catalog.put_table(database, new_table_name, table)
        self._catalog.drop_table(database, table_path.object_name)

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        """Create a table or view.

        Raises:
            CatalogError: There is one with this name, or the catalog is read-only.
        """
        self.get_database(table_path.database_name)
        if self.table_exists(table_path):
            _unless(ignore_if_exists, f"table or view {table_path.get_full_name()!r} already exists")
        else:
            self._put(table_path, table)

    def alter_table(
        self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool
    ) -> None:
        """Replace a table or view.

        Raises:
            CatalogError: If it does not exist.
        """
        if self.table_exists(table_path):
            self._put(table_path, new_table)
        else:
            _unless(ignore_if_not_exists, _no_table(table_path))

    def _stored(self, path: ObjectPath) -> StoredTable:
        found = self._catalog.table(path.database_name, path.object_name)
        if found is None:
            raise CatalogError(_no_table(path))
        return found

    def _put(self, path: ObjectPath, table: CatalogBaseTable) -> None:
        """Store a table; its expressions and types are checked as those of CREATE TABLE are."""
        name = ".".join(map(quote_name, (_HERE, path.database_name, path.object_name)))
        if table.queries is not None:
            statement = f"CREATE VIEW {name} AS {table.queries[1]}"
        else:
            descriptor = TableDescriptor(table.schema, table.options, table.partition_keys, table.comment)
            statement = create_sql(name, descriptor, is_temporary=False, if_not_exists=False)
        manager = CatalogManager()
        manager.register_catalog(_HERE, self._catalog)
        bound = bind(parse_statement(statement), manager, load_function)
        assert isinstance(bound, CreateTable | CreateView)
        made = bound.table if isinstance(bound, CreateTable) else bound.view
        self._catalog.put_table(path.database_name, path.object_name, made)

    # --- functions ------------------------------------------------------------------------------------

    def list_functions(self, database_name: str) -> list[str]:
        """Return the names of the functions of a database."""
        self.get_database(database_name)
        return self._catalog.functions(database_name)

    def list_procedures(self, database_name: str) -> list[str]:
        """Return an empty list: headrace has no procedures."""
        self.get_database(database_name)
        return []

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        """Return where the code of a function is.

        Raises:
            CatalogError: If it does not exist.
        """
        found = self._catalog.function(function_path.database_name, function_path.object_name)
        if not isinstance(found, StoredFunction):
            raise CatalogError(f"function {function_path.get_full_name()!r} does not exist")
        return CatalogFunction(found.class_name, found.language)

    def function_exists(self, function_path: ObjectPath) -> bool:
        """Return whether a function exists."""
        return self._catalog.function(function_path.database_name, function_path.object_name) is not None

    def create_function(
        self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool
    ) -> None:
        """Create a function.

        Raises:
            CatalogError: There is one with this name.
        """
        self.get_database(function_path.database_name)
        if self.function_exists(function_path):
            _unless(ignore_if_exists, f"function {function_path.get_full_name()!r} already exists")
        else:
            self._catalog.put_function(*_parts(function_path), function._stored())

    def alter_function(
        self, function_path: ObjectPath, new_function: CatalogFunction, ignore_if_not_exists: bool
    ) -> None:
        """Replace a function.

        Raises:
            CatalogError: If it does not exist.
        """
        if self.function_exists(function_path):
            self._catalog.put_function(*_parts(function_path), new_function._stored())
        else:
            _unless(ignore_if_not_exists, f"function {function_path.get_full_name()!r} does not exist")

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Drop a function.

        Raises:
            CatalogError: If it does not exist.
        """
        if self.function_exists(function_path):
            self._catalog.drop_function(*_parts(function_path))
        else:
            _unless(ignore_if_not_exists, f"function {function_path.get_full_name()!r} does not exist")

    # --- partitions -----------------------------------------------------------------------------------

    def list_partitions(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec | None = None
    ) -> list[CatalogPartitionSpec]:
        """Return the partitions of a table, or those that have the values of a specification."""
        wanted = (partition_spec or _NO_PARTITION).partition_spec.items()
        return [
            each for each in self._details(table_path).partitions if wanted <= each.partition_spec.items()
        ]

    def get_partition(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> CatalogPartition:
        """Return the description of a partition.

        Raises:
            CatalogError: If it does not exist.
        """
        found: CatalogPartition | None = self._details(table_path).partitions.get(partition_spec)
        if found is None:
            raise CatalogError(_no_partition(table_path, partition_spec))
        return found

    def partition_exists(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> bool:
        """Say whether a table has a partition."""
        return self.table_exists(table_path) and partition_spec in self._details(table_path).partitions

    def create_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition: CatalogPartition,
        ignore_if_exists: bool,
    ) -> None:
        """Add a partition to a partitioned table.

        Raises:
            CatalogError: There is one, or the values are not those of the table's partition columns.
        """
        keys = getattr(self._stored(table_path), "partition_keys", ())
        if set(partition_spec.partition_spec) != set(keys) or not keys:
            raise CatalogError(
                f"{partition_spec} does not have the partition columns of table {table_path.get_full_name()!r}: "
                f"{', '.join(keys) or 'it is not partitioned'}"
            )
        if self.partition_exists(table_path, partition_spec):
            _unless(ignore_if_exists, f"{partition_spec} already exists in {table_path.get_full_name()!r}")
        else:
            self._details(table_path).partitions[partition_spec] = partition

    def drop_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, ignore_if_not_exists: bool
    ) -> None:
        """Remove a partition from a table.

        Raises:
            CatalogError: If it does not exist.
        """
        if self.partition_exists(table_path, partition_spec):
            details = self._details(table_path)
            del details.partitions[partition_spec]
            details.statistics.pop(partition_spec, None)
            details.column_statistics.pop(partition_spec, None)
        else:
            _unless(ignore_if_not_exists, _no_partition(table_path, partition_spec))

    def alter_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        new_partition: CatalogPartition,
        ignore_if_not_exists: bool,
    ) -> None:
        """Replace the description of a partition.

        Raises:
            CatalogError: If it does not exist.
        """
        if self.partition_exists(table_path, partition_spec):
            self._details(table_path).partitions[partition_spec] = new_partition
        else:
            _unless(ignore_if_not_exists, _no_partition(table_path, partition_spec))

    # --- statistics -----------------------------------------------------------------------------------

    def get_table_statistics(self, table_path: ObjectPath) -> CatalogTableStatistics:
        """Return the statistics of a table; all unknown unless they have been set."""
        return self._statistics(table_path, _NO_PARTITION)

    def get_table_column_statistics(self, table_path: ObjectPath) -> CatalogColumnStatistics:
        """Return the statistics of a table's columns; empty unless they have been set."""
        return self._column_statistics(table_path, _NO_PARTITION)

    def get_partition_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogTableStatistics:
        """Return the statistics of a partition."""
        self.get_partition(table_path, partition_spec)
        return self._statistics(table_path, partition_spec)

    def bulk_get_partition_statistics(
        self, table_path: ObjectPath, partition_specs: Iterable[CatalogPartitionSpec]
    ) -> list[CatalogTableStatistics]:
        """Return the statistics of several partitions."""
        return [self.get_partition_statistics(table_path, each) for each in partition_specs]

    def get_partition_column_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogColumnStatistics:
        """Return the statistics of a partition's columns."""
        self.get_partition(table_path, partition_spec)
        return self._column_statistics(table_path, partition_spec)

    def bulk_get_partition_column_statistics(
        self, table_path: ObjectPath, partition_specs: Iterable[CatalogPartitionSpec]
    ) -> list[CatalogColumnStatistics]:
        """Return the statistics of several partitions' columns."""
        return [self.get_partition_column_statistics(table_path, each) for each in partition_specs]

    def alter_table_statistics(
        self, table_path: ObjectPath, table_statistics: CatalogTableStatistics, ignore_if_not_exists: bool
    ) -> None:
        """Set the statistics of a table."""
        if self._is_there(table_path, ignore_if_not_exists):
            self._details(table_path).statistics[_NO_PARTITION] = table_statistics

    def alter_table_column_statistics(
        self, table_path: ObjectPath, column_statistics: CatalogColumnStatistics, ignore_if_not_exists: bool
    ) -> None:
        """Set the statistics of a table's columns."""
        if self._is_there(table_path, ignore_if_not_exists):
            self._details(table_path).column_statistics[_NO_PARTITION] = column_statistics

    def alter_partition_statistics(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition_statistics: CatalogTableStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        """Set the statistics of a partition."""
        if self._has_partition(table_path, partition_spec, ignore_if_not_exists):
            self._details(table_path).statistics[partition_spec] = partition_statistics

    def alter_partition_column_statistics(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        column_statistics: CatalogColumnStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        """Set the statistics of a partition's columns."""
        if self._has_partition(table_path, partition_spec, ignore_if_not_exists):
            self._details(table_path).column_statistics[partition_spec] = column_statistics

    def _statistics(self, path: ObjectPath, spec: CatalogPartitionSpec) -> CatalogTableStatistics:
        found: CatalogTableStatistics | None = self._details(path).statistics.get(spec)
        return found or CatalogTableStatistics()

    def _column_statistics(self, path: ObjectPath, spec: CatalogPartitionSpec) -> CatalogColumnStatistics:
        found: CatalogColumnStatistics | None = self._details(path).column_statistics.get(spec)
        return found or CatalogColumnStatistics()

    def _is_there(self, path: ObjectPath, may_be_missing: bool) -> bool:
        if not self.table_exists(path):
            _unless(may_be_missing, _no_table(path))
            return False
        return True

    def _has_partition(self, path: ObjectPath, spec: CatalogPartitionSpec, may_be_missing: bool) -> bool:
        if not self.partition_exists(path, spec):
            _unless(may_be_missing, _no_partition(path, spec))
            return False
        return True

    def _details(self, path: ObjectPath) -> TableDetails:
        self._stored(path)
        if not isinstance(self._catalog, InMemoryCatalog):
            raise UnsupportedFeatureError(
                f"a catalog of type {self._catalog.properties.get('type')!r} keeps no partitions and statistics",
                feature="partitions and statistics of a catalog",
            )
        return self._catalog.details(path.database_name, path.object_name)

    # --- models and procedures ------------------------------------------------------------------------

    def list_models(self, database_name: str) -> list[str]:
        """Return an empty list: headrace has no models."""
        self.get_database(database_name)
        return []

    def get_procedure(self, procedure_path: ObjectPath) -> NoReturn:
        """Refused: headrace has no procedures."""
        raise UnsupportedFeatureError.not_yet("Catalog.get_procedure()")

    def get_model(self, model_path: ObjectPath) -> NoReturn:
        """Refused: headrace has no models."""
        raise UnsupportedFeatureError.not_yet("Catalog.get_model()")

    def model_exists(self, model_path: ObjectPath) -> bool:
        """Return False: catalogs have no models."""
        return False

    def create_model(self, model_path: ObjectPath, model: Any, ignore_if_exists: bool) -> None:
        """Refused: headrace has no models."""
        raise UnsupportedFeatureError.not_yet("Catalog.create_model()")

    def alter_model(self, model_path: ObjectPath, new_model: Any, ignore_if_not_exists: bool) -> None:
        """Refused: headrace has no models."""
        raise UnsupportedFeatureError.not_yet("Catalog.alter_model()")

    def rename_model(self, model_path: ObjectPath, new_model_name: str, ignore_if_not_exists: bool) -> None:
        """Refused: headrace has no models."""
        raise UnsupportedFeatureError.not_yet("Catalog.rename_model()")

    def drop_model(self, model_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Refused: headrace has no models."""
        raise UnsupportedFeatureError.not_yet("Catalog.drop_model()")


class JdbcCatalog(Catalog):
    """The tables of a PostgreSQL, MySQL or MariaDB server, for `TableEnvironment.register_catalog`.

    Args:
        catalog_name: Its name.
        default_database: The database that USE CATALOG selects.
        username: Who connects.
        pwd: With which password.
        base_url: The server, such as ``jdbc:postgresql://localhost:5432``.
    """

    def __init__(
        self, catalog_name: str, default_database: str, username: str, pwd: str, base_url: str
    ) -> None:
        options: Mapping[str, str] = {
            "type": "jdbc",
            "base-url": base_url,
            "default-database": default_database,
            "username": username,
            "password": pwd,
        }
        super().__init__(create_catalog(options))


class HiveCatalog(Catalog):
    """The tables of a Hive metastore, for `TableEnvironment.register_catalog`.

    Args:
        catalog_name: Its name.
        default_database: The database that USE CATALOG selects; `default` if None.
        hive_conf_dir: Where hive-site.xml is; without it the metastore is a Derby in the working directory.
        hadoop_conf_dir: Refused: Spark knows Hadoop's configuration.
        hive_version: Refused: the classes are those of Spark's Hive.

    Raises:
        UnsupportedFeatureError: One of the last two is given.
    """

    def __init__(
        self,
        catalog_name: str,
        default_database: str | None = None,
        hive_conf_dir: str | None = None,
        hadoop_conf_dir: str | None = None,
        hive_version: str | None = None,
    ) -> None:
        for name, given in (("hadoop_conf_dir", hadoop_conf_dir), ("hive_version", hive_version)):
            if given is not None:
                raise UnsupportedFeatureError.not_yet(
                    f"{name} of HiveCatalog({catalog_name!r})",
                    "leave it out: Spark's Hive and Hadoop are used",
                )
        options = {"type": "hive", "default-database": default_database, "hive-conf-dir": hive_conf_dir}
        super().__init__(create_catalog({key: value for key, value in options.items() if value is not None}))


def _unless(is_fine: bool, message: str) -> None:
    if not is_fine:
        raise CatalogError(message)


def _parts(path: ObjectPath) -> tuple[str, str]:
    return path.database_name, path.object_name


def _no_table(path: ObjectPath) -> str:
    return f"table or view {path.get_full_name()!r} does not exist"


def _no_partition(path: ObjectPath, spec: CatalogPartitionSpec) -> str:
    return f"{spec} does not exist in table {path.get_full_name()!r}"
