"""What names mean at a place of a query: the relations of FROM, and the query around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from headrace.catalog.manager import nearest
from headrace.planner.binder.context import Context
from headrace.planner.dialect.syntax import Identifier, Name
from headrace.planner.dialect.tokens import Span
from headrace.planner.expressions import Call, Expression, InputRef, Literal
from headrace.planner.logical import Schema, TimeKind
from headrace.types import CharType, DataType, RowType

__all__ = ["Relation", "Scope", "check_rowtime", "field_at", "field_of"]


@dataclass(frozen=True)
class Relation:
    """A table of FROM under its name."""

    #: The alias, or the names of the table; the last one is enough. Empty: a query without a name.
    path: tuple[str, ...]
    #: Where its columns start in the row.
    start: int
    fields: Schema

    def answers_to(self, path: tuple[str, ...]) -> bool:
        """Whether a qualifier means this relation."""
        return bool(path) and len(path) <= len(self.path) and self.path[-len(path) :] == path


@dataclass(frozen=True)
class Scope:
    """The relations whose columns are in reach."""

    context: Context
    relations: tuple[Relation, ...]
    #: Columns that USING or NATURAL made one of two.
    merged: dict[str, Expression] = field(default_factory=dict)
    #: The query around this one, whose columns a subquery may name.
    outer: Scope | None = None
    #: Names that SELECT gives what it computes, later than WHERE and GROUP BY look for columns.
    later: frozenset[str] = frozenset()

    @property
    def width(self) -> int:
        """The number of columns in the row."""
        return sum(len(relation.fields) for relation in self.relations)

    def shifted(self, by: int) -> tuple[Relation, ...]:
        """The relations in a row that has more columns in front."""
        return tuple(Relation(one.path, one.start + by, one.fields) for one in self.relations)

    # --- columns ----------------------------------------------------------------------------------

    def time_of(self, expression: Expression) -> TimeKind | None:
        """What makes a column a time attribute; None for others."""
        if not isinstance(expression, InputRef):
            return None
        fields = {one.start + at: each for one in self.relations for at, each in enumerate(one.fields)}
        found = fields.get(expression.index)
        return None if found is None else found.time

    def resolve(self, name: Name) -> Expression:
        """The column, or field of a column, that a name means.

        Raises:
            SqlValidationError: There is no such column, or more than one.
        """
        found = self._find(name)
        if found is not None:
            return found
        if self.outer is not None:
            outside = self.outer._find(name)
            if outside is not None:
                return _outer(outside)
        self._refuse(name)

    def has(self, name: Name) -> bool:
        """Whether there is a column that a name means."""
        return self._find(name) is not None

    def _find(self, name: Name) -> Expression | None:
        # The longest name of a relation first; `r.f` is field f of column r only if there is no relation r.
        for qualifier in (*range(min(len(name.parts) - 1, 3), 0, -1), 0):
            prefix = name.path[:qualifier]
            column, fields = name.parts[qualifier], name.parts[qualifier + 1 :]
            if not prefix and column.name in self.merged:
                return self._fields(self.merged[column.name], fields)
            hits = [
                InputRef(relation.start + place, one.type)
                for relation in self.relations
                if not prefix or relation.answers_to(prefix)
                for place, one in enumerate(relation.fields)
                if one.name == column.name
            ]
            if len(hits) > 1:
                raise self.context.error(
                    f"column {column.name!r} is ambiguous: more than one table has it",
                    name.span,
                    hint=f"write the table before it: {self._qualified(column.name)}",
                )
            if hits:
                return self._fields(hits[0], fields)
        return None

    def _fields(self, expression: Expression, fields: tuple[Identifier, ...]) -> Expression:
        for one in fields:
            expression = field_of(self.context, expression, one)
        return expression

    def _qualified(self, column: str) -> str:
        owners = [
            one.path[-1]
            for one in self.relations
            if one.path and any(each.name == column for each in one.fields)
        ]
        return " or ".join(f"{owner}.{column}" for owner in owners)

    def _refuse(self, name: Name) -> NoReturn:
        qualifier, column = name.path[:-1], name.path[-1]
        relations = [one for one in self.relations if one.answers_to(qualifier)] if qualifier else []
        if qualifier and not relations:
            known = [one.path[-1] for one in self.relations if one.path]
            columns = [each.name for one in self.relations for each in one.fields]
            raise self.context.error(
                f"table {'.'.join(qualifier)!r} is not part of this query",
                name.span,
                hint=_near_table(qualifier[0], known, columns),
            )
        known = [each.name for one in (relations or self.relations) for each in one.fields]
        hint = nearest(column, known)
        if column in self.later:
            hint = f"SELECT computes {column!r} later: repeat its expression here, or move the SELECT into a subquery"
        raise self.context.error(f"column {column!r} not found", name.parts[-1].span, hint=hint)

    # --- stars ------------------------------------------------------------------------------------

    def star(self) -> Iterator[tuple[str, Expression]]:
        """All columns: those of USING first and once, then the others."""
        yield from self.merged.items()
        for relation in self.relations:
            for place, one in enumerate(relation.fields):
                if one.name not in self.merged:
                    yield one.name, InputRef(relation.start + place, one.type)

    def star_of(self, qualifier: Name) -> Iterator[tuple[str, Expression]]:
        """All columns of a relation, or all fields of a row."""
        for relation in self.relations:
            if relation.answers_to(qualifier.path):
                for place, one in enumerate(relation.fields):
                    yield one.name, InputRef(relation.start + place, one.type)
                return
        row = self._find(qualifier)
        if row is None or not isinstance(row.type, RowType):
            known = [one.path[-1] for one in self.relations if one.path]
            raise self.context.error(
                f"table {qualifier.dotted()!r} is not part of this query",
                qualifier.span,
                hint=nearest(qualifier.path[0], known),
            )
        for part in row.type.field_names():
            yield part, field_of(self.context, row, Identifier(part, qualifier.span))


def _near_table(name: str, tables: list[str], columns: list[str]) -> str | None:
    """Which table was meant, or which column: a field of one is written alike."""
    near = nearest(name, [*tables, *columns])
    return near if near is not None and near.startswith("did you mean") else nearest(name, tables)


def check_rowtime(context: Context, scope: Scope, argument: Expression, span: Span) -> None:
    """Refuse CURRENT_WATERMARK of what is not a rowtime attribute, as Flink does."""
    if scope.time_of(argument) is not TimeKind.ROWTIME or context.batch:
        raise context.error(
            f"the argument of CURRENT_WATERMARK must be a rowtime attribute, but is {argument.type.summary()}",
            span,
            hint="name a column with WATERMARK FOR ... AS ..., in streaming mode",
        )


def field_at(context: Context, row: Expression, place: object, span: Span) -> Expression:
    """A field of a row, by its number from 1, or its name."""
    assert isinstance(row.type, RowType)
    if isinstance(place, int):
        if not 1 <= place <= len(row.type):
            raise context.error(f"the row has {len(row.type)} fields; the first is 1", span)
        place = row.type.field_names()[place - 1]
    if not isinstance(place, str):
        raise context.error("fields of a row are read by a constant number or name", span)
    return field_of(context, row, Identifier(place, span))


def field_of(context: Context, row: Expression, name: Identifier) -> Expression:
    """A field of a row."""
    if not isinstance(row.type, RowType):
        raise context.error(f"{row.type.summary_without_null()} has no fields", name.span)
    if name.name not in row.type.field_names():
        raise context.error(
            f"field {name.name!r} not found", name.span, hint=nearest(name.name, row.type.field_names())
        )
    found: DataType = row.type[name.name].data_type
    nullable = found.is_nullable or row.type.is_nullable
    return Call(
        "FIELD", (row, Literal(name.name, CharType(len(name.name), False))), found.with_nullability(nullable)
    )


def _outer(expression: Expression) -> Expression:
    """Mark a column of the query around, until the join that it becomes a condition of is made."""
    if isinstance(expression, InputRef):
        return Call("OUTER", (Literal(expression.index, CharType(1, False)),), expression.type)
    assert isinstance(expression, Call)
    return Call(expression.function, tuple(map(_outer_part, expression.operands)), expression.type)


def _outer_part(expression: Expression) -> Expression:
    return expression if isinstance(expression, Literal) else _outer(expression)
