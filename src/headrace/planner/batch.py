"""BATCH mode: a query over bounded input is one statement of Spark SQL, written from its typed tree.

Every node is a SELECT whose columns are c0, c1, ... It is the tree as it was bound: what runs here shares no rule
and no operator with the streaming plan, and so each checks the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from headrace.catalog.functions import UserFunction
from headrace.connectors.base import Source, SparkSource
from headrace.errors import InvariantViolation, UnsupportedFeatureError
from headrace.graph.table_job import TableInput, TableNode
from headrace.operators.table import declarations as d
from headrace.operators.table import steps
from headrace.operators.table.bridge import TableToStream
from headrace.operators.table.opened_functions import AggregateOfRows
from headrace.planner import expressions as e
from headrace.planner import logical as n
from headrace.planner.batch_match import match_sql
from headrace.planner.batch_over import frame_of, over_result
from headrace.planner.emit import emit
from headrace.planner.explain import explain_logical
from headrace.planner.fragments import (
    Stream,
    as_collection,
    column,
    columns_of,
    filtered,
    from_millis,
    millis,
)
from headrace.planner.gathering import Gathering, gather
from headrace.planner.logical_match import MatchRecognize
from headrace.planner.optimize import Plan, SinkRequest
from headrace.planner.physical import Sink, StreamTarget, Values
from headrace.planner.rules.plain import with_a_column
from headrace.planner.strategies import JoinStrategy
from headrace.planner.stream_borders import RECORD_TIME, StreamInput, time_of_records
from headrace.planner.translate import Connectors, TranslationSettings
from headrace.planner.translate.context import columns_by_name
from headrace.planner.user_functions import aggregate_of, callable_of, is_pandas
from headrace.planner.windows import (
    WindowFunctionSpec,
    WindowKind,
    WindowProperty,
    window_ends_sql,
    window_start_sql,
)
from headrace.types import logical as t
from headrace.types.arrow import to_arrow_type

__all__ = ["BatchQuery", "translate_batch"]

_SPARK_HINTS = {
    JoinStrategy.BROADCAST: "BROADCAST",
    JoinStrategy.SHUFFLE_HASH: "SHUFFLE_HASH",
    JoinStrategy.SHUFFLE_MERGE: "MERGE",
    JoinStrategy.NEST_LOOP: "SHUFFLE_REPLICATE_NL",
}
_RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LAG", "LEAD")


def translate_batch(plan: Plan, connectors: Connectors, settings: TranslationSettings) -> list[TableNode]:
    """Return the nodes of a job in BATCH mode: scans, a query for each sink, sinks.

    Raises:
        UnsupportedFeatureError: If Spark SQL has no way to say something of a query.
    """
    return _BatchTranslation(connectors, settings).run(plan.requests)


class _BatchTranslation:
    def __init__(self, connectors: Connectors, settings: TranslationSettings) -> None:
        self._connectors = connectors
        self._settings = settings
        self._nodes: list[TableNode] = []
        self._places: dict[n.LogicalNode, int] = {}

    def run(self, requests: Iterable[SinkRequest]) -> list[TableNode]:
        for request in requests:
            self._add(request)
        return self._nodes

    def _add(self, request: SinkRequest) -> None:
        """Add the nodes of a query, and of the tables that it reads and others have not."""
        query = BatchQuery(is_utc=self._settings.is_utc)
        sql = query.of(request.query)
        scans = [Stream(self._place(scan), (), columns_of(scan.schema)) for scan in query.inputs]
        is_gathered = not all(_is_read_at_once(self._nodes[scan.node]) for scan in scans)
        if is_gathered:
            gathering = gather(scans)
            sql = sql.format(*gathering.tables)
            scans = [self._gathered(gathering)]
        stored = columns_of(request.schema)
        output = [
            (f"CAST(c{at} AS {each.spark_type}) AS {t.quote_name(each.name)}", each)
            for at, each in enumerate(stored)
        ]
        target = request.target
        if isinstance(target, StreamTarget):
            output = self._record(target, output, request.query.schema)
        made = tuple(each for _, each in output)
        items = ", ".join(item for item, _ in output)
        position = len(self._nodes)
        self._nodes.append(
            TableNode(
                d.SparkQueryDeclaration(f"SELECT {items} FROM ({sql})", made, query.functions, is_gathered),
                f"SparkQuery[{position + 1}]",
                tuple(TableInput(scan.node, scan.fragment, side) for side, scan in enumerate(scans)),
                description=explain_logical(request.query),
            )
        )
        if isinstance(target, StreamTarget):
            self._nodes.append(self._to_stream(target, request, Stream(position, (), made)))
        else:
            self._nodes.append(_sink(request, self._connectors, stored, position))

    # --- tables -------------------------------------------------------------------------------------

    def _place(self, scan: n.Scan | n.Values) -> int:
        """Return the node that reads a table."""
        if scan not in self._places:
            self._places[scan] = position = len(self._nodes)
            columns = columns_of(scan.schema)
            if isinstance(scan, n.Values):
                source: Source | StreamInput = self._connectors.values_source(scan.rows, scan.schema)
            else:
                source = self._source(scan, columns)
            if isinstance(source, StreamInput):
                rows = source.rows(columns, is_insert_only=True)
                node = TableNode(rows, f"StreamToTable[{position + 1}]", stream=source.step)
            else:
                name = scan.identifier.name if isinstance(scan, n.Scan) else "Values"
                node = TableNode(
                    d.TableScanDeclaration(source, schema=columns), f"Source: {name}[{position + 1}]"
                )
            self._nodes.append(node)
        return self._places[scan]

    def _source(self, scan: n.Scan, columns: steps.Schema) -> Source | StreamInput:
        if not self._connectors.mode_of(scan).is_insert_only:
            raise UnsupportedFeatureError(
                f"table {scan.identifier.dotted()!r} is a changelog, but the query runs in BATCH mode",
                feature="a changelog in BATCH mode",
                hint="as in Flink: use STREAMING mode",
            )
        return self._connectors.source_of(scan)

    def _gathered(self, gathering: Gathering) -> Stream:
        position = len(self._nodes)
        inputs = tuple(TableInput(each.node, each.fragment) for each in gathering.inputs)
        self._nodes.append(TableNode(gathering.declaration, f"Gather[{position + 1}]", inputs))
        return Stream(position, (), tuple(gathering.declaration.output))

    # --- streams ------------------------------------------------------------------------------------

    def _record(
        self, target: StreamTarget, items: Sequence[tuple[str, steps.StepColumn]], schema: n.Schema
    ) -> list[tuple[str, steps.StepColumn]]:
        """Return the fields of records, and their time."""
        time = time_of_records(target, schema)
        fields = [item for at, item in enumerate(items) if at != target.rowtime]
        if time is None:
            return fields
        ms = millis(f"c{time}", schema[time].type, is_utc=self._settings.is_utc)
        return [*fields, (f"{ms} AS {RECORD_TIME.name}", RECORD_TIME)]

    def _to_stream(self, target: StreamTarget, request: SinkRequest, rows: Stream) -> TableNode:
        time = time_of_records(target, request.query.schema)
        names = tuple(field.name for at, field in enumerate(request.query.schema) if at != target.rowtime)
        declaration = TableToStream(
            rows.columns,
            names,
            None if time is None else RECORD_TIME.name,
            None if time is None else self._settings.zone_of(request.query.schema[time].type),
        )
        name = f"TableToStream[{len(self._nodes) + 1}]"
        return TableNode(declaration, name, (TableInput(rows.node, rows.fragment),))


def _is_read_at_once(node: TableNode) -> bool:
    """Whether an epoch has all rows of a table: Spark reads it by itself, and its rows do not come over time."""
    if not isinstance(node.declaration, d.TableScanDeclaration):
        return False
    source = node.declaration.source
    return isinstance(source, SparkSource) and not source.is_paced


def _sink(request: SinkRequest, connectors: Connectors, output: steps.Schema, position: int) -> TableNode:
    target = Sink(
        schema=request.schema,
        input=Values(schema=request.schema, rows=()),
        name=request.name,
        target=request.target,
        accepts=request.accepts,
        keys=request.keys,
    )
    choice = connectors.sink_of(target)
    keys = tuple(output[key].name for key in request.keys)
    return TableNode(
        d.TableSinkDeclaration(
            choice.sink,
            schema=output,
            mode=choice.mode,
            keys=keys,
            shuffle_by=columns_by_name(request.schema, output, choice.shuffle_by),
        ),
        f"Sink: {request.name}",
        (TableInput(position, steps.Fragment((), output)),),
    )


class BatchQuery:
    """Writes a tree as Spark SQL.

    Args:
        is_utc: Whether Spark's session is at UTC.
    """

    def __init__(self, *, is_utc: bool) -> None:
        self._is_utc = is_utc
        #: The Python functions that the statement calls, each with the name it is registered by.
        self._functions: dict[UserFunction, str] = {}
        self._results: dict[UserFunction, t.DataType] = {}
        self._aggregates: list[steps.PythonCall] = []
        #: The tables that the statement reads; ``{0}`` in it is the first.
        self.inputs: list[n.Scan | n.Values] = []

    def of(self, node: n.LogicalNode) -> str:
        match node:
            case n.Scan():
                return self._input(node)
            case n.Values():
                return self._input(with_a_column(node))
            case n.Watermark():
                return self.of(node.input)
            case n.Project():
                return f"SELECT {self._items(node.expressions, node.input)} FROM ({self.of(node.input)})"
            case n.Filter():
                return f"SELECT * FROM ({self.of(node.input)}) WHERE {self._sql(node.condition, node.input)}"
            case n.WindowTable():
                return self._windowed(
                    node.input, node.window, node.time_index, node.partition_by, node.schema
                )
            case n.Aggregate():
                return self._aggregate(node)
            case n.GroupWindowAggregate():
                return self._group_window(node)
            case n.Join():
                return self._join(node)
            case n.Over():
                return self._over(node)
            case n.Union():
                return " UNION ALL ".join(f"(SELECT * FROM ({self.of(each)}))" for each in node.branches)
            case n.SetOperation():
                every = " ALL" if node.all else ""
                return (
                    f"(SELECT * FROM ({self.of(node.left)})) {node.kind.value}{every} ({self.of(node.right)})"
                )
            case n.Distinct():
                return f"SELECT DISTINCT * FROM ({self.of(node.input)})"
            case n.Sort():
                return f"SELECT * FROM ({self.of(node.input)}) ORDER BY {self._order(node.keys, node.input)}"
            case n.Limit():
                return self._limit(node)
            case n.Unnest():
                return self._unnest(node)
            case MatchRecognize():
                return self._match(node)
            case _:
                raise InvariantViolation(f"no Spark SQL is known for {type(node).__name__}")

    def _input(self, node: n.Scan | n.Values) -> str:
        if node not in self.inputs:
            self.inputs.append(node)
        names = [t.quote_name(each.name) for each in columns_of(node.schema)]
        items = ", ".join(f"{name} AS c{at}" for at, name in enumerate(names))
        return f"SELECT {items} FROM {{{self.inputs.index(node)}}}"

    # --- windows --------------------------------------------------------------------------------------

    def _windowed(
        self,
        below: n.LogicalNode,
        window: WindowFunctionSpec,
        time_index: int,
        partition: Sequence[int],
        schema: n.Schema,
    ) -> str:
        """Each row once per window it is in; start, end and time come last."""
        width = len(below.schema)
        time = millis(f"c{time_index}", below.schema[time_index].type, is_utc=self._is_utc)
        columns = ", ".join(f"c{at}" for at in range(width))
        if window.kind is WindowKind.SESSION:
            source = self._sessions(below, time, window, partition)
        else:
            ends = window_ends_sql(window, "t")
            start = window_start_sql(window, "t", "w1")
            source = (
                f"SELECT *, {start} AS w0, w1 FROM (SELECT *, explode({ends}) AS w1 FROM "
                f"(SELECT *, {time} AS t FROM ({self.of(below)})))"
            )
        last = from_millis("w1 - 1")
        if isinstance(schema[-1].type, t.LocalZonedTimestampType):
            last = f"CAST({last} AS TIMESTAMP)"
        bounds = (from_millis("w0"), from_millis("w1"), last)
        added = ", ".join(f"{sql} AS c{width + at}" for at, sql in enumerate(bounds))
        return f"SELECT {columns}, {added} FROM ({source})"

    def _sessions(
        self, below: n.LogicalNode, time: str, window: WindowFunctionSpec, partition: Sequence[int]
    ) -> str:
        by = f"PARTITION BY {', '.join(f'c{at}' for at in partition)}" if partition else ""
        # A row within the gap of the one before continues with its session; windows that touch are one.
        begins = f"coalesce(t - lag(t) OVER ({by} ORDER BY t) > {window.size_ms}L, true)"
        numbered = (
            f"SELECT *, sum(CASE WHEN b THEN 1 ELSE 0 END) OVER ({by} ORDER BY t "
            f"RANGE UNBOUNDED PRECEDING) AS s FROM (SELECT *, {begins} AS b FROM "
            f"(SELECT *, {time} AS t FROM ({self.of(below)})))"
        )
        each = f"{by}, s" if by else "PARTITION BY s"
        return f"SELECT *, min(t) OVER ({each}) AS w0, max(t) OVER ({each}) + {window.size_ms}L AS w1 FROM ({numbered})"

    def _group_window(self, node: n.GroupWindowAggregate) -> str:
        if node.window.counts_rows:
            raise UnsupportedFeatureError(
                "a window over a number of rows in BATCH mode, in which rows have no order",
                feature="a window of rows in BATCH mode",
                hint="use a time window, or STREAMING mode",
            )
        below = node.input
        width = len(below.schema)
        time = below.schema[node.time_index]
        schema = (*below.schema, time, time, n.Field("w", time.type))
        windowed = self._windowed(below, node.window, node.time_index, node.group_keys, schema)
        place = {
            WindowProperty.START: f"c{width}",
            WindowProperty.END: f"c{width + 1}",
            WindowProperty.ROWTIME: f"c{width + 2}",
            WindowProperty.PROCTIME: f"c{width + 2}",
        }
        results = [
            *(f"c{key}" for key in node.group_keys),
            *(self._aggregated(call, below) for call in node.calls),
            *(place[each] for each in node.properties),
        ]
        items = ", ".join(f"{sql} AS c{at}" for at, sql in enumerate(results))
        groups = ", ".join([*(f"c{key}" for key in node.group_keys), *(f"c{width + at}" for at in range(3))])
        return f"SELECT {items} FROM ({windowed}) GROUP BY {groups}"

    # --- everything else ------------------------------------------------------------------------------

    def _aggregate(self, node: n.Aggregate) -> str:
        below = node.input
        keys = [f"c{key}" for key in node.group_keys]
        results = [*keys, *(self._aggregated(call, below) for call in node.calls)]
        items = ", ".join(f"{sql} AS r{at}" for at, sql in enumerate(results))
        if node.grouping_sets is not None:
            sets = ", ".join("(" + ", ".join(f"c{key}" for key in one) + ")" for one in node.grouping_sets)
            groups = f" GROUP BY GROUPING SETS ({sets})"
        else:
            groups = f" GROUP BY {', '.join(keys)}" if keys else ""
        names = ", ".join(f"r{at} AS c{at}" for at in range(len(results)))
        return f"SELECT {names} FROM (SELECT {items} FROM ({self.of(below)}){groups})"

    def _join(self, node: n.Join) -> str:
        if node.as_of is not None:
            raise UnsupportedFeatureError(
                "FOR SYSTEM_TIME AS OF event time in BATCH mode: Flink has it in streaming mode only",
                feature="a temporal join in BATCH mode",
                hint="use STREAMING mode, or join the version by a condition on its times",
            )
        left, right = len(node.left.schema), len(node.right.schema)
        columns = [*(f"l.c{at}" for at in range(left)), *(f"r.c{at}" for at in range(right))]
        condition = self._checked(node.condition, columns)
        is_half = node.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI)
        kind = f"LEFT {node.kind.value}" if is_half else node.kind.value
        kept = columns[:left] if is_half else columns
        items = ", ".join(f"{sql} AS c{at}" for at, sql in enumerate(kept))
        hint = ""
        if node.strategy is not None:
            strategy, is_left = node.strategy
            hint = f"/*+ {_SPARK_HINTS[strategy]}({'l' if is_left else 'r'}) */ "
        rows = f"({self.of(node.left)}) l {kind} JOIN ({self.of(node.right)}) r"
        return f"SELECT {hint}{items} FROM {rows} ON {condition}"

    def _over(self, node: n.Over) -> str:
        width = len(node.input.schema)
        added = ", ".join(
            f"{self._over_sql(call, node.input)} AS c{width + at}" for at, call in enumerate(node.calls)
        )
        return f"SELECT *, {added} FROM ({self.of(node.input)})"

    def _limit(self, node: n.Limit) -> str:
        fetch = "" if node.fetch is None else f" LIMIT {node.fetch}"
        offset = f" OFFSET {node.offset}" if node.offset else ""
        if isinstance(node.input, n.Sort):
            return self.of(node.input) + fetch + offset
        return f"SELECT * FROM ({self.of(node.input)}){fetch}{offset}"

    def _unnest(self, node: n.Unnest) -> str:
        width = len(node.input.schema)
        collection, kind = as_collection(self._sql(node.collection, node.input), node.collection.type)
        if node.condition is not None:
            collection = filtered(collection, kind, node.condition, [f"c{at}" for at in range(width)])
        is_map = isinstance(kind, t.MapType)
        items = ["u1", "u2"] if is_map else ["u1"]
        made = list(items)
        if isinstance(kind, t.ArrayType) and isinstance(kind.element_type, t.RowType):
            items = [f"u1.{t.quote_name(name)}" for name in kind.element_type.field_names()]
        function = "explode"
        if node.with_ordinality:
            # Spark's number comes first and counts from 0.
            function, made = "posexplode", ["u0", *made]
            items.append("CAST(u0 + 1 AS INT)")
        outer = "OUTER " if node.kind is n.JoinKind.LEFT else ""
        added = ", ".join(f"{sql} AS c{width + at}" for at, sql in enumerate(items))
        columns = ", ".join(f"c{at}" for at in range(width))
        return (
            f"SELECT {columns}, {added} FROM ({self.of(node.input)}) "
            f"LATERAL VIEW {outer}{function}({collection}) u AS {', '.join(made)}"
        )

    def _match(self, node: MatchRecognize) -> str:
        name = f"headrace_match_{len(self._aggregates)}"
        sql, call = match_sql(node, self.of(node.input), self._checked, name=name, is_utc=self._is_utc)
        self._aggregates.append(call)
        return sql

    @property
    def functions(self) -> tuple[steps.PythonCall, ...]:
        """The Python functions that the statement calls; the result's name is the one it calls them by."""
        return tuple(
            steps.PythonCall(
                callable_of(function),
                (),
                column(name, self._results[function]),
                is_pandas(function),
                function.is_deterministic,
            )
            for function, name in self._functions.items()
        ) + tuple(self._aggregates)

    # --- expressions ---------------------------------------------------------------------------------

    def _sql(self, expression: e.Expression, below: n.LogicalNode) -> str:
        return self._checked(expression, [f"c{at}" for at in range(len(below.schema))])

    def _checked(self, expression: e.Expression, columns: Sequence[str]) -> str:
        """Write an expression; Python functions are called by the names they are registered with."""
        known = list(columns)
        while calls := [part for part in e.walk(expression) if isinstance(part, e.UserCall)]:
            # The innermost call stands last: nothing below it calls another.
            call = calls[-1]
            name = self._functions.setdefault(call.function, f"headrace_udf_{len(self._functions)}")
            self._results[call.function] = call.type
            written = e.InputRef(len(known), call.type)
            known.append(f"{name}({', '.join(emit(each, known) for each in call.operands)})")

            def result(
                part: e.Expression, call: e.UserCall = call, written: e.InputRef = written
            ) -> e.Expression | None:
                return written if part == call else None

            expression = e.rewrite(expression, result)
        # Braces stand for inputs; those of texts are written by their number.
        return emit(expression, known).replace("{", "\\u007B").replace("}", "\\u007D")

    def _items(self, expressions: Iterable[e.Expression], below: n.LogicalNode) -> str:
        return ", ".join(f"{self._sql(each, below)} AS c{at}" for at, each in enumerate(expressions))

    def _order(self, keys: Iterable[e.SortKey], below: n.LogicalNode) -> str:
        return ", ".join(
            f"{self._sql(key.expression, below)} {'ASC' if key.ascending else 'DESC'} "
            f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
            for key in keys
        )

    def _aggregated(self, call: e.AggregateCall, below: n.LogicalNode) -> str:
        """Write an aggregation with Flink's result: SUM and AVG keep the type of what they are given."""
        if call.order_by:
            raise UnsupportedFeatureError.not_yet(f"ORDER BY in {call.function}", "leave it out")
        condition = "" if call.filter is None else f" FILTER (WHERE {self._sql(call.filter, below)})"
        if call.user_function is not None:
            return self._of_rows(call, call.user_function, below, condition)
        arguments = ", ".join(self._sql(each, below) for each in call.arguments)
        distinct = "DISTINCT " if call.distinct else ""

        def made(function: str, given: str = arguments) -> str:
            return f"{function}({distinct}{given}){condition}"

        match call.function:
            case "COUNT":
                return made("count", arguments or "1")
            case "AVG" if isinstance(call.type, t.IntegralType):
                return f"CAST({made('sum')} DIV {made('count')} AS {call.type.spark_name()})"
            case "SUM" | "AVG" | "STDDEV_POP" | "STDDEV_SAMP" | "VAR_POP" | "VAR_SAMP":
                return f"CAST({made(call.function.lower())} AS {call.type.spark_name()})"
            case "SUM0":
                return f"coalesce(CAST({made('sum')} AS {call.type.spark_name()}), 0)"
            case "MIN" | "MAX":
                return made(call.function.lower())
            case "FIRST_VALUE" | "LAST_VALUE":
                return f"{call.function.lower()}({arguments}, true){condition}"
            case "LISTAGG":
                separator = "" if len(call.arguments) > 1 else ", ','"
                return f"listagg({distinct}{arguments}{separator}){condition}"
            case "GROUPING" | "GROUPING_ID":
                return f"CAST({'grouping' if len(call.arguments) == 1 else 'grouping_id'}({arguments}) AS BIGINT)"
            case "ARRAY_AGG":
                # A structure around each value, since Spark leaves NULLs out.
                entries = made("collect_list", f"named_struct('v', {arguments})")
                values = f"transform({entries}, e -> e.v)"
                return f"CASE WHEN count(1){condition} > 0 THEN {values} END"
            case "COLLECT":
                bag = made("collect_list")
                counts = f"v -> named_struct('k', v, 'n', size(filter({bag}, e -> e = v)))"
                return f"map_from_entries(transform(array_distinct({bag}), {counts}))"
            case _:
                raise UnsupportedFeatureError.not_yet(f"{call.function} in BATCH mode", "use STREAMING mode")

    def _of_rows(
        self,
        call: e.AggregateCall | e.WindowCall,
        function: UserFunction,
        below: n.LogicalNode,
        behind: str,
    ) -> str:
        """Write the call of a user's aggregate function, with all rows of its group in a list."""
        types = [each.type for each in call.arguments]
        kind = pa.struct([(f"f{at}", to_arrow_type(each)) for at, each in enumerate(types)])
        name = f"headrace_udf_{len(self._functions)}_{len(self._aggregates)}"
        called = AggregateOfRows(aggregate_of(function), kind)
        self._aggregates.append(
            steps.PythonCall(called, (), column(name, call.type), is_deterministic=function.is_deterministic)
        )
        pairs = [f"'f{at}', {self._sql(each, below)}" for at, each in enumerate(call.arguments)]
        row = f"named_struct({', '.join(pairs)})" if pairs else "named_struct('f0', 0)"
        distinct = "DISTINCT " if call.distinct else ""
        return f"{name}(collect_list({distinct}{row}){behind})"

    def _over_sql(self, call: e.WindowCall, below: n.LogicalNode) -> str:
        values = [self._sql(each, below) for each in call.arguments]
        window = f"({self._window_sql(call, below)})"
        if call.user_function is not None:
            return self._of_rows(call, call.user_function, below, f" OVER {window}")
        if call.function in _RANKS:
            return f"CAST({call.function.lower()}({', '.join(values)}) OVER {window} AS {call.type.spark_name()})"
        return f"CAST({over_result(call, values, f' OVER {window}')} AS {call.type.spark_name()})"

    def _window_sql(self, call: e.WindowCall, below: n.LogicalNode) -> str:
        """Write what stands in the parentheses after OVER."""
        parts = []
        if call.partition_by:
            parts.append("PARTITION BY " + ", ".join(self._sql(each, below) for each in call.partition_by))
        frame = call.frame
        if call.order_by:
            parts.append("ORDER BY " + self._order(call.order_by, below))
        elif frame is None:
            parts.append("ORDER BY 1")  # as rows come: Spark wants an order
        else:
            return " ".join(parts)  # without an order every frame has all rows, as in Flink
        if frame is not None:
            parts.append(frame_of(frame))
        return " ".join(parts)
