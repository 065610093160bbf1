"""Statements that change the catalog: CREATE, ALTER, DROP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.catalog.functions import CatalogFunction
from headrace.catalog.manager import nearest
from headrace.catalog.objects import (
    CatalogDatabase,
    CatalogTable,
    CatalogView,
    Column,
    ComputedColumn,
    MetadataColumn,
    PhysicalColumn,
    PrimaryKey,
    WatermarkSpec,
)
from headrace.errors import CatalogError, HeadraceError
from headrace.planner.binder.alterations import altered
from headrace.planner.binder.context import Context
from headrace.planner.binder.expressions import ExpressionBinder
from headrace.planner.binder.names import NameBinder
from headrace.planner.binder.qualified import expanded_query
from headrace.planner.binder.scope import Relation, Scope
from headrace.planner.binder.tables import QueryBinding, renamed
from headrace.planner.dialect import statement_syntax as syntax
from headrace.planner.dialect.syntax import Identifier, Query
from headrace.planner.dialect.tokens import Span
from headrace.planner.expressions import SOURCE_WATERMARK, Call
from headrace.planner.logical import Field
from headrace.planner.statements import (
    AlterDatabase,
    AlterTable,
    AlterView,
    CatalogStatement,
    CreateCatalog,
    CreateDatabase,
    CreateFunction,
    CreateTable,
    CreateView,
    DropCatalog,
    DropDatabase,
    DropFunction,
    DropTable,
    DropView,
    RenameTable,
)
from headrace.types import LocalZonedTimestampType, TimestampType

__all__ = ["DefinitionBinder"]

#: Digits of a second that event time may have.
_ROWTIME_PRECISION = 3


class DefinitionBinder(NameBinder):
    """Binds CREATE, ALTER and DROP statements."""

    def __init__(self, context: Context, bind_query: QueryBinding) -> None:
        super().__init__(context)
        self._bind_query = bind_query

    def bind(self, node: syntax.StatementSyntax) -> CatalogStatement:
        match node:
            case syntax.CreateTableSyntax():
                return self.create_table(node)
            case syntax.CreateViewSyntax():
                return self._create_view(node)
            case syntax.CreateFunctionSyntax():
                return self._create_function(node)
            case syntax.CreateDatabaseSyntax():
                return self._create_database(node)
            case syntax.DropSyntax():
                return self._drop(node)
            case syntax.AlterTableSyntax() | syntax.AlterViewSyntax() | syntax.AlterDatabaseSyntax():
                return self._alter(node)
            case _:
                raise AssertionError(node)

    # --- tables -----------------------------------------------------------------------------------

    def create_table(
        self, node: syntax.CreateTableSyntax, columns_of_query: Sequence[PhysicalColumn] | None = None
    ) -> CreateTable:
        """CREATE TABLE; a query gives the columns of CREATE TABLE AS."""
        base = self._base(node.like) if node.like is not None else None
        table = self.table(
            node.columns or (),
            node.watermarks,
            node.keys,
            node.partitioned_by,
            node.options,
            node.comment,
            node.span,
            base=base,
            given=columns_of_query,
        )
        if not table.columns:
            raise self.context.error("a table must have at least one column", node.name.span)
        return CreateTable(self.qualify(node.name), table, node.temporary, node.if_not_exists)

    def table(
        self,
        columns: Sequence[syntax.ColumnSyntax],
        watermarks: Sequence[syntax.WatermarkSyntax],
        keys: Sequence[syntax.KeySyntax],
        partitioned_by: Sequence[Identifier],
        options: Sequence[syntax.OptionSyntax],
        comment: str | None,
        span: Span,
        *,
        base: CatalogTable | None = None,
        given: Sequence[PhysicalColumn] | None = None,
    ) -> CatalogTable:
        """The table that columns, watermark, keys and options make, over what LIKE took from another."""
        found: list[Column] = [*(base.columns if base else ()), *(given or ())]
        declared: list[Column] = [self._plain_column(one) for one in columns]
        self._no_column_twice(columns, found, span)
        keys = [*keys, *(syntax.KeySyntax(None, (one.name,), one.span) for one in columns if one.is_key)]
        key = self._key(keys, [*found, *declared], base)
        everything = [*found, *declared]
        if key is not None:
            everything = [_key_column(one, key) for one in everything]
        everything = self._computed(columns, everything, len(found))
        watermark = self._watermark(watermarks, everything) or (base.watermark if base else None)
        partition_keys = self._partition_keys(partitioned_by, everything)
        try:
            return CatalogTable(
                tuple(everything),
                {**(base.options if base else {}), **self.options(options)},
                watermark,
                key,
                partition_keys or (base.partition_keys if base else ()),
                comment or (base.comment if base else None),
            )
        except CatalogError as wrong:
            raise self.context.catalog_error(wrong.message, span) from wrong

    def _no_column_twice(
        self, columns: Sequence[syntax.ColumnSyntax], found: Sequence[Column], span: Span
    ) -> None:
        taken = {column.name for column in found}
        for one in columns:
            if one.name.name in taken:
                raise self.context.error(f"column {one.name.name!r} already exists", one.name.span)
            taken.add(one.name.name)

    def _plain_column(self, one: syntax.ColumnSyntax) -> Column:
        name = one.name.name
        if one.type is not None:
            try:
                one.type.spark_name()
            except HeadraceError as wrong:
                raise self.context.error(wrong.message, one.span, hint=wrong.hint) from wrong
        if one.kind == "physical":
            assert one.type is not None
            return PhysicalColumn(name, one.type, comment=one.comment)
        if one.kind == "metadata":
            assert one.type is not None
            return MetadataColumn(name, one.type, one.metadata_key, one.virtual, comment=one.comment)
        # The type of a computed column is known once all others are.
        return ComputedColumn(name, TimestampType(3), one.expression_text or "", comment=one.comment)

    def _computed(
        self, columns: Sequence[syntax.ColumnSyntax], found: list[Column], first: int
    ) -> list[Column]:
        fields = tuple(Field(one.name, one.type) for one in found if not isinstance(one, ComputedColumn))
        scope = Scope(self.context, (Relation((), 0, fields),))
        binder = ExpressionBinder(self.context, scope, None, "a computed column")
        made = list(found)
        for place, one in enumerate(columns):
            if one.expression is None:
                continue
            bound = binder.typed(one.expression)
            column = made[first + place]
            assert isinstance(column, ComputedColumn)
            made[first + place] = replace(column, type=bound.type)
        return made

    def _key(
        self, keys: Sequence[syntax.KeySyntax], columns: Sequence[Column], base: CatalogTable | None
    ) -> PrimaryKey | None:
        inherited = base.primary_key if base else None
        if not keys:
            return inherited
        if len(keys) > 1 or inherited is not None:
            raise self.context.error("a table can have only one primary key", keys[-1].span)
        known = {one.name for one in columns if isinstance(one, PhysicalColumn)}
        for column in keys[0].columns:
            if column.name not in known:
                raise self.context.error(
                    f"primary key column {column.name!r} is not a physical column of the table",
                    column.span,
                    hint=nearest(column.name, known),
                )
        names = tuple(column.name for column in keys[0].columns)
        return PrimaryKey(keys[0].name or f"PK_{'_'.join(names)}", names)

    def _watermark(
        self, watermarks: Sequence[syntax.WatermarkSyntax], columns: Sequence[Column]
    ) -> WatermarkSpec | None:
        if not watermarks:
            return None
        if len(watermarks) > 1:
            raise self.context.error("a table can have only one watermark", watermarks[1].span)
        one = watermarks[0]
        if len(one.column.path) > 1:
            raise self.context.unsupported(
                "a watermark on a field of a row", one.column.span, hint="make it a computed column"
            )
        name = one.column.path[0]
        fields = tuple(Field(column.name, column.type) for column in columns)
        found = next((each for each in fields if each.name == name), None)
        if found is None:
            raise self.context.error(
                f"column {name!r} not found",
                one.column.span,
                hint=nearest(name, [each.name for each in fields]),
            )
        kind = found.type
        if (
            not isinstance(kind, TimestampType | LocalZonedTimestampType)
            or kind.precision > _ROWTIME_PRECISION
        ):
            raise self.context.error(
                "a watermark needs a TIMESTAMP or TIMESTAMP_LTZ column with at most 3 fractional digits, "
                f"not {kind.summary()}",
                one.column.span,
                hint="declare it TIMESTAMP(3), or compute a column with TO_TIMESTAMP or TO_TIMESTAMP_LTZ",
            )
        scope = Scope(self.context, (Relation((), 0, fields),))
        bound = ExpressionBinder(self.context, scope, None, "a watermark").typed(one.expression)
        is_streams = isinstance(bound, Call) and bound.function == SOURCE_WATERMARK
        if type(bound.type) is not type(kind) and not is_streams:
            raise self.context.error(
                f"the watermark expression must have the type of its column, {kind.summary_without_null()}, "
                f"not {bound.type.summary()}",
                one.expression.span,
            )
        return WatermarkSpec(name, one.expression_text)

    def _partition_keys(
        self, partitioned_by: Sequence[Identifier], columns: Sequence[Column]
    ) -> tuple[str, ...]:
        known = [one.name for one in columns if isinstance(one, PhysicalColumn)]
        names = []
        for column in partitioned_by:
            name, span = column.name, column.span
            if name not in known:
                raise self.context.error(
                    f"partition column {name!r} is not a physical column of the table",
                    span,
                    hint=nearest(name, known),
                )
            names.append(name)
        return tuple(names)

    def _base(self, like: syntax.LikeSyntax) -> CatalogTable:
        """What LIKE takes from its table."""
        identifier = self.qualify(like.base)
        table = self.context.manager.table(identifier)
        if not isinstance(table, CatalogTable):
            raise self.missing("table", identifier, like.base.span)
        chosen = dict.fromkeys(
            ("CONSTRAINTS", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS"), "INCLUDING"
        )
        for how, what, span in like.options:
            if what == "DISTRIBUTION":
                raise self.context.unsupported("DISTRIBUTION", span)
            if how == "OVERWRITING" and what in {"CONSTRAINTS", "PARTITIONS", "ALL"}:
                raise self.context.error(f"{what} cannot be OVERWRITING", span)
            if what == "ALL":
                chosen = dict.fromkeys(chosen, how)
            else:
                chosen[what] = how
        taken = {what for what, how in chosen.items() if how != "EXCLUDING"}
        kept = [
            one
            for one in table.columns
            if isinstance(one, PhysicalColumn)
            or (isinstance(one, ComputedColumn) and "GENERATED" in taken)
            or (isinstance(one, MetadataColumn) and "METADATA" in taken)
        ]
        names = {one.name for one in kept}
        watermark = table.watermark if "WATERMARKS" in taken else None
        return CatalogTable(
            tuple(kept),
            table.options if "OPTIONS" in taken else {},
            watermark if watermark and watermark.column in names else None,
            table.primary_key if "CONSTRAINTS" in taken else None,
            table.partition_keys if "PARTITIONS" in taken else (),
        )

    # --- views and functions ----------------------------------------------------------------------

    def _view(
        self, query: Query, text: str, columns: Sequence[Identifier], comment: str | None
    ) -> CatalogView:
        plan = self._bind_query(self.context, query, None)
        names = [one.name for one in plan.schema]
        if columns:
            if len(columns) != len(names):
                raise self.context.error(
                    f"the view declares {len(columns)} column names, but its query returns {len(names)} columns",
                    query.span,
                )
            names = [column.name for column in columns]
            plan = renamed(plan, tuple(names))
        fields = tuple(PhysicalColumn(name, one.type) for name, one in zip(names, plan.schema, strict=True))
        return CatalogView(text, expanded_query(self.context, query), fields, comment)

    def _create_view(self, node: syntax.CreateViewSyntax) -> CreateView:
        view = self._view(node.query, node.query_text, node.columns, node.comment)
        return CreateView(self.qualify(node.name), view, node.temporary, node.if_not_exists)

    def _create_function(self, node: syntax.CreateFunctionSyntax) -> CreateFunction:
        return CreateFunction(
            self.qualify(node.name),
            CatalogFunction(node.class_name, node.language),
            node.temporary,
            node.system,
            node.if_not_exists,
        )

    # --- databases and catalogs -------------------------------------------------------------------

    def _create_database(self, node: syntax.CreateDatabaseSyntax) -> CatalogStatement:
        options = self.options(node.options)
        if node.kind == "CATALOG":
            return CreateCatalog(
                self.one_name(node.name, "catalog"), options, node.if_not_exists, node.comment
            )
        catalog, name = self.database(node.name)
        return CreateDatabase(catalog, name, CatalogDatabase(options, node.comment), node.if_not_exists)

    def _drop(self, node: syntax.DropSyntax) -> CatalogStatement:
        match node.kind:
            case "TABLE":
                return DropTable(self.qualify(node.name), node.temporary, node.if_exists)
            case "VIEW":
                return DropView(self.qualify(node.name), node.temporary, node.if_exists)
            case "FUNCTION":
                return DropFunction(self.qualify(node.name), node.temporary, node.system, node.if_exists)
            case "CATALOG":
                return DropCatalog(self.one_name(node.name, "catalog"), node.if_exists)
            case "DATABASE":
                catalog, name = self.database(node.name)
                return DropDatabase(catalog, name, node.if_exists, node.cascade)

    # --- ALTER ------------------------------------------------------------------------------------

    def _alter(
        self, node: syntax.AlterTableSyntax | syntax.AlterViewSyntax | syntax.AlterDatabaseSyntax
    ) -> CatalogStatement:
        if isinstance(node, syntax.AlterDatabaseSyntax):
            return AlterDatabase(*self.database(node.name), self.options(node.options))
        identifier = self.qualify(node.name)
        found = self.context.manager.table(identifier)
        wanted = CatalogTable if isinstance(node, syntax.AlterTableSyntax) else CatalogView
        if not isinstance(found, wanted):
            what = "table" if wanted is CatalogTable else "view"
            raise self.missing(what, identifier, node.name.span)
        if isinstance(node, syntax.AlterViewSyntax):
            if node.new_name is not None:
                return RenameTable(identifier, self.qualify(node.new_name), is_view=True)
            assert node.query is not None
            return AlterView(identifier, self._view(node.query, node.query_text, (), found.comment))
        if node.action == "RENAME TO":
            assert node.new_name is not None
            return RenameTable(identifier, self.qualify(node.new_name))
        assert isinstance(found, CatalogTable)
        return AlterTable(identifier, altered(self, found, node))


def _key_column(column: Column, key: PrimaryKey) -> Column:
    """A column of the primary key is never NULL."""
    if column.name in key.columns and isinstance(column, PhysicalColumn):
        return replace(column, type=column.type.not_null())
    return column
