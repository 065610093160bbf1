"""The syntax tree of queries and expressions: what was written, before anything is looked up.

Every node knows its place in the text. `statement_syntax` has the nodes of whole statements.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal as OneOf

from headrace.planner.dialect.tokens import Span
from headrace.types.logical import DataType

# --- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Identifier:
    name: str
    span: Span


@dataclass(frozen=True)
class Name:
    """Names with dots between them: a column, or a table."""

    parts: tuple[Identifier, ...]
    span: Span

    @property
    def path(self) -> tuple[str, ...]:
        """The names as text."""
        return tuple(part.name for part in self.parts)

    def dotted(self) -> str:
        """The name as messages show it."""
        return ".".join(self.path)


@dataclass(frozen=True)
class Star:
    qualifier: Name | None
    span: Span


@dataclass(frozen=True)
class Constant:
    """A literal; `kind` says how it was written."""

    kind: OneOf[
        "integer", "decimal", "double", "string", "bytes", "boolean", "null", "date", "time", "timestamp"
    ]
    value: int | Decimal | float | str | bytes | bool | None
    span: Span


@dataclass(frozen=True)
class Interval:
    """INTERVAL '...' unit [TO unit]."""

    text: str
    negative: bool
    unit: str
    to_unit: str | None
    precision: int | None
    fraction: int | None
    span: Span


@dataclass(frozen=True)
class Symbol:
    """A keyword in place of an argument: the unit of EXTRACT, the side of TRIM."""

    name: str
    span: Span


@dataclass(frozen=True)
class OperatorSyntax:
    """An operator, under the name of its function: PLUS, EQUALS, AND, IS_NULL."""

    function: str
    operands: tuple[Node, ...]
    span: Span


@dataclass(frozen=True)
class OrderItem:
    expression: Node
    ascending: bool
    nulls_first: bool | None
    span: Span


@dataclass(frozen=True)
class FrameBound:
    """An end of a window frame."""

    kind: OneOf["UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING"]
    amount: Node | None
    span: Span


@dataclass(frozen=True)
class FrameSyntax:
    """ROWS or RANGE of a window."""

    unit: OneOf["ROWS", "RANGE"]
    start: FrameBound
    end: FrameBound | None
    span: Span


@dataclass(frozen=True)
class WindowSyntax:
    """The parentheses after OVER, or a named window."""

    base: Identifier | None
    partition_by: tuple[Node, ...]
    order_by: tuple[OrderItem, ...]
    frame: FrameSyntax | None
    span: Span


@dataclass(frozen=True)
class FunctionCall:
    """A call; operators with a syntax of their own (EXTRACT, TRIM) come as calls too."""

    name: Name
    arguments: tuple[Node, ...]
    span: Span
    distinct: bool = False
    #: COUNT(*).
    star: bool = False
    filter: Node | None = None
    over: WindowSyntax | Identifier | None = None
    order_by: tuple[OrderItem, ...] = ()
    #: IGNORE NULLS or RESPECT NULLS.
    nulls: str | None = None
    #: Names of arguments given as `name => value`, by place.
    argument_names: tuple[str | None, ...] = ()
    #: Written without parentheses: CURRENT_DATE.
    bare: bool = False
    #: Written with words of its own, which the grammar has made arguments of.
    is_form: bool = False


@dataclass(frozen=True)
class Cast:
    operand: Node
    type: DataType
    is_try: bool
    span: Span


@dataclass(frozen=True)
class Case:
    operand: Node | None
    branches: tuple[tuple[Node, Node], ...]
    default: Node | None
    span: Span


@dataclass(frozen=True)
class In:
    """IN with a list or a query, or another comparison with some value of it."""

    operand: Node
    choices: tuple[Node, ...]
    query: Query | None
    negated: bool
    span: Span
    #: What the operand is compared by; EQUALS for IN.
    comparison: str = "EQUALS"


@dataclass(frozen=True)
class Exists:
    query: Query
    span: Span


@dataclass(frozen=True)
class Subquery:
    """A query in place of a value."""

    query: Query
    span: Span


@dataclass(frozen=True)
class Access:
    collection: Node
    key: Node
    span: Span


@dataclass(frozen=True)
class FieldAccess:
    row: Node
    field: Identifier
    span: Span


@dataclass(frozen=True)
class TableArgument:
    """TABLE t [PARTITION BY ...] as an argument of a table function."""

    source: Name | Query
    partition_by: tuple[Node, ...]
    order_by: tuple[OrderItem, ...]
    span: Span


@dataclass(frozen=True)
class Descriptor:
    columns: tuple[Identifier, ...]
    span: Span


Node = (
    Name
    | Star
    | Constant
    | Interval
    | Symbol
    | OperatorSyntax
    | FunctionCall
    | Cast
    | Case
    | In
    | Exists
    | Subquery
    | Access
    | FieldAccess
    | TableArgument
    | Descriptor
)

# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hint:
    """A hint: OPTIONS('k' = 'v'), STATE_TTL('t' = '1d'), LOOKUP(...)."""

    name: str
    options: tuple[tuple[str, str], ...]
    span: Span


@dataclass(frozen=True)
class Alias:
    name: Identifier
    columns: tuple[Identifier, ...]


@dataclass(frozen=True)
class TableName:
    """A table or view in FROM."""

    name: Name
    hints: tuple[Hint, ...]
    alias: Alias | None
    #: FOR SYSTEM_TIME AS OF.
    as_of: Node | None
    span: Span


@dataclass(frozen=True)
class DerivedTable:
    """A query in FROM."""

    query: Query
    alias: Alias | None
    lateral: bool
    span: Span


@dataclass(frozen=True)
class TableFunctionSyntax:
    """TABLE(f(...)) or f(...) in FROM."""

    call: FunctionCall
    alias: Alias | None
    lateral: bool
    span: Span


@dataclass(frozen=True)
class UnnestTable:
    collection: Node
    with_ordinality: bool
    alias: Alias | None
    span: Span


@dataclass(frozen=True)
class JoinTable:
    """A join in FROM."""

    left: TableExpression
    right: TableExpression
    kind: OneOf["INNER", "LEFT", "RIGHT", "FULL", "CROSS"]
    natural: bool
    on: Node | None
    using: tuple[Identifier, ...]
    span: Span


@dataclass(frozen=True)
class PatternItem:
    """A variable of PATTERN with its quantifier; `most` is None if there is no limit."""

    name: Identifier
    least: int
    most: int | None
    is_greedy: bool
    span: Span


@dataclass(frozen=True)
class SkipSyntax:
    """AFTER MATCH SKIP: how, and for TO FIRST and TO LAST the variable."""

    kind: OneOf["PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST"]
    variable: Identifier | None


@dataclass(frozen=True)
class MatchTable:
    """MATCH_RECOGNIZE after a table."""

    input: TableExpression
    partition_by: tuple[Node, ...]
    order_by: tuple[OrderItem, ...]
    measures: tuple[tuple[Node, Identifier], ...]
    skip: SkipSyntax
    pattern: tuple[PatternItem, ...]
    within: Node | None
    #: SUBSET name = (variable, ...).
    subsets: tuple[tuple[Identifier, tuple[Identifier, ...]], ...]
    define: tuple[tuple[Identifier, Node], ...]
    alias: Alias | None
    #: The word MATCH_RECOGNIZE.
    keyword: Span
    span: Span


TableExpression = TableName | DerivedTable | TableFunctionSyntax | UnnestTable | JoinTable | MatchTable


@dataclass(frozen=True)
class SelectItem:
    """An expression of SELECT, with its name."""

    expression: Node
    alias: Identifier | None
    #: The text as it was written.
    text: str


@dataclass(frozen=True)
class GroupItem:
    """An expression of GROUP BY, or a way to make grouping sets of expressions."""

    kind: OneOf["SIMPLE", "ROLLUP", "CUBE", "GROUPING SETS"]
    #: For SIMPLE the one expression; otherwise lists, one for each element.
    sets: tuple[tuple[Node, ...], ...]
    #: Nested items of GROUPING SETS.
    nested: tuple[GroupItem, ...]
    span: Span


@dataclass(frozen=True)
class SelectSyntax:
    items: tuple[SelectItem, ...]
    span: Span
    distinct: bool = False
    hints: tuple[Hint, ...] = ()
    source: TableExpression | None = None
    where: Node | None = None
    group_by: tuple[GroupItem, ...] | None = None
    having: Node | None = None
    windows: tuple[tuple[Identifier, WindowSyntax], ...] = ()
    qualify: Node | None = None


@dataclass(frozen=True)
class ValuesRows:
    rows: tuple[tuple[Node, ...], ...]
    span: Span


@dataclass(frozen=True)
class SetQuery:
    kind: OneOf["UNION", "INTERSECT", "EXCEPT"]
    all: bool
    left: QueryBody
    right: QueryBody
    span: Span


@dataclass(frozen=True)
class CommonTable:
    """A query of WITH."""

    name: Identifier
    columns: tuple[Identifier, ...]
    query: Query


@dataclass(frozen=True)
class Query:
    """A whole query: WITH, a body, ORDER BY, LIMIT."""

    body: QueryBody
    span: Span
    with_: tuple[CommonTable, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    offset: int = 0
    fetch: int | None = None


QueryBody = SelectSyntax | ValuesRows | SetQuery | Query
