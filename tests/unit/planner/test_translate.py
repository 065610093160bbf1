"""The physical plan as nodes of a table job: what lies on the edges, what is in the vertices."""

from __future__ import annotations

import pytest

from headrace.errors import SqlValidationError
from headrace.graph.table_job import TableNode, build_table_job
from headrace.operators.table import declarations as d
from headrace.operators.table.steps import Explode, PythonCalls, StepColumn
from headrace.planner.fragments import millis
from headrace.table import DataTypes, EnvironmentSettings, ExplainDetail, TableEnvironment
from headrace.table.udf import udf


@udf(result_type=DataTypes.BIGINT())
def double(n):
    return n * 2


@udf(result_type=DataTypes.BIGINT(), func_type="pandas")
def plus_one(numbers):
    return numbers + 1


@pytest.fixture
def t_env() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set_local_timezone("UTC")
    environment.execute_sql("""
        CREATE TABLE bids (
          id BIGINT, name STRING, price BIGINT, ts TIMESTAMP(3), twice AS price * 2,
          WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
        ) WITH ('connector' = 'datagen', 'number-of-rows' = '9')
    """)
    environment.execute_sql("CREATE TABLE people (id BIGINT, city STRING) WITH ('connector' = 'datagen')")
    environment.create_temporary_system_function("double", double)
    environment.create_temporary_system_function("plus_one", plus_one)
    return environment


def nodes(t_env: TableEnvironment, query: str) -> list[TableNode]:
    made = t_env._jobs.nodes(t_env._jobs.plan_query(t_env.sql_query(query)._plan))
    build_table_job(made, job_id="0" * 32, name="job", parallelism=1)
    return made


def kinds(made: list[TableNode]) -> list[str]:
    return [node.declaration.node_kind for node in made]


def steps(node: TableNode) -> list[str]:
    return [type(step).__name__ for each in node.inputs for step in each.fragment.steps]


def test_a_projection_and_a_filter_lie_on_the_way_to_the_sink(t_env):
    made = nodes(t_env, "SELECT id, city FROM people WHERE id > 3")

    assert kinds(made) == ["TableScan", "TableSink"]
    assert steps(made[1]) == ["Where"]
    assert [column.name for column in made[1].declaration.schema] == ["id", "city"]


def test_event_time_and_computed_columns_belong_to_the_scan(t_env):
    scan = nodes(t_env, "SELECT twice FROM bids")[0].declaration

    assert [column.name for column in scan.schema] == ["id", "name", "price", "ts"]
    assert [column.name for column in scan.output] == ["id", "name", "price", "ts", "twice"]
    assert scan.watermark.time == "`ts`"
    assert scan.watermark.ms.startswith("unix_millis(CAST(({}")
    assert scan.watermark.idle_ms is None


def test_python_functions_are_called_before_the_expressions_around_them(t_env):
    sink = nodes(t_env, "SELECT double(plus_one(price)) + 1 AS x FROM bids WHERE double(id) > 4")[1]

    assert steps(sink) == [
        "Select",
        "PythonCalls",
        "Where",
        "Select",
        "PythonCalls",
        "Select",
        "PythonCalls",
        "Select",
    ]
    calls = [
        call for step in sink.inputs[0].fragment.steps if isinstance(step, PythonCalls) for call in step.calls
    ]
    assert [call.is_pandas for call in calls] == [False, True, False]
    assert [column.name for column in sink.inputs[0].fragment.schema] == ["x"]


def test_an_aggregation_gets_its_keys_arguments_and_conditions_as_columns(t_env):
    made = nodes(
        t_env,
        "SELECT name, SUM(price * 2), COUNT(DISTINCT id) FILTER (WHERE price > 3) FROM bids GROUP BY name",
    )
    aggregate = made[1].declaration

    assert len(aggregate.keys) == 1
    assert [(call.function, call.distinct, call.filter is not None) for call in aggregate.calls] == [
        ("SUM", False, False),
        ("COUNT", True, True),
    ]
    given = {column.name for column in made[1].inputs[0].fragment.schema}
    assert {name for call in aggregate.calls for name in call.arguments} <= given
    assert aggregate.calls[1].filter in given
    assert aggregate.emits_update_before
    assert not aggregate.is_insert_only


def test_a_window_aggregation_gets_its_time_in_milliseconds(t_env):
    made = nodes(
        t_env,
        "SELECT window_end, name, MAX(price) FROM "
        "CUMULATE(TABLE bids, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND) "
        "GROUP BY window_start, window_end, name",
    )
    aggregate = made[1].declaration

    assert aggregate.window == d.TableWindowSpec(d.WindowKind.CUMULATE, "__time", 10_000, 2_000)
    assert aggregate.properties == ("window_start", "window_end")
    assert made[1].inputs[0].fragment.schema[-1] == StepColumn("__time", "bigint", aggregate.output[1].arrow)
    assert aggregate.is_insert_only


def test_a_window_function_without_aggregation_gives_each_row_once_per_window(t_env):
    (_, sink) = nodes(
        t_env,
        "SELECT id, window_start FROM HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
    )

    generators = [step.generator for step in sink.inputs[0].fragment.steps if isinstance(step, Explode)]
    assert generators == [
        "explode(sequence(`__time` - pmod(`__time` - 0L, 5000L) + 10000L, `__time` + 1L, -5000L))"
    ]


def test_both_sides_of_a_join_with_the_same_names_stay_apart(t_env):
    made = nodes(t_env, "SELECT a.id, b.id, b.city FROM people a LEFT JOIN people b ON a.id = b.id")
    join = made[1].declaration

    assert kinds(made) == ["TableScan", "Join", "TableSink"]
    assert (join.left_keys, join.right_keys) == (("id",), ("id",))
    assert [column.name for column in join.output] == ["id", "id_0", "city"]
    assert [each.target_input for each in made[1].inputs] == [0, 1]


def test_a_condition_of_a_join_names_columns_by_side_and_place(t_env):
    join = nodes(t_env, "SELECT a.id FROM people a JOIN bids b ON a.id = b.id AND a.city < b.name")[
        2
    ].declaration

    assert join.condition is not None
    assert "l1" in join.condition
    assert "r1" in join.condition


@pytest.mark.parametrize(
    ("kind", "renews", "inputs"),
    [
        ("LEFT", (True, False), [0, 1]),
        ("RIGHT", (False, True), [0, 1]),
        ("FULL", (True, True), [0, 1, 2]),
    ],
)
def test_an_outer_join_with_another_condition_is_two_nodes(t_env, kind, renews, inputs):
    made = nodes(
        t_env, f"SELECT a.id, b.name FROM people a {kind} JOIN bids b ON a.id = b.id AND a.city < b.name"
    )
    join, associations = made[2].declaration, made[3].declaration

    assert kinds(made) == ["TableScan", "TableScan", "Join", "JoinAssociations", "TableSink"]
    assert (join.kind, join.renews, join.is_insert_only) == (d.JoinKind.INNER, renews, True)
    assert associations.kind is d.JoinKind[kind]
    assert [each.target_input for each in made[3].inputs] == inputs
    assert [column.name for column in associations.output] == ["id", "city", "id_0", "name"]
    assert not associations.is_insert_only


@pytest.mark.parametrize("condition", ["", " AND a.city < b.name"])
def test_a_hint_is_for_its_side_of_a_join_alone(t_env, condition):
    t_env.get_config().set("table.exec.state.ttl", "5 s")
    made = nodes(
        t_env,
        "SELECT /*+ STATE_TTL('a' = '1 s') */ a.id FROM people a LEFT JOIN bids b ON a.id = b.id" + condition,
    )

    assert (made[2].declaration.ttl_ms, made[2].declaration.right_ttl_ms) == (1_000, 5_000)
    if condition:
        assert [side.ttl_ms for side in made[3].declaration.sides] == [1_000]


def test_a_semi_join_with_another_condition_emits_its_left_side(t_env):
    made = nodes(
        t_env,
        "SELECT city FROM people a WHERE EXISTS (SELECT 1 FROM bids b WHERE b.id = a.id AND b.name > a.city)",
    )
    associations = made[3].declaration

    assert associations.kind is d.JoinKind.SEMI
    assert associations.is_insert_only
    assert len(associations.sides) == 1
    assert len(associations.output) == len(associations.pair_columns) == 2


def test_a_window_join_carries_the_windows_of_both_sides(t_env):
    window = "TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
    bounds = "window_start, window_end"
    side = f"(SELECT name, COUNT(*) AS n, {bounds} FROM {window} GROUP BY name, {bounds})"
    made = nodes(
        t_env,
        f"SELECT a.name, b.n FROM {side} a JOIN {side} b ON a.name = b.name "
        "AND a.window_start = b.window_start AND a.window_end = b.window_end",
    )
    join = made[-2].declaration

    assert isinstance(join, d.WindowJoinDeclaration)
    assert (join.left_start, join.right_end) == ("__start", "__end")
    assert len(join.output) == len(join.left) + len(join.right)


def test_an_outer_window_join_with_another_condition_is_two_nodes(t_env):
    window = "TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
    bounds = "window_start, window_end"
    side = f"(SELECT name, COUNT(*) AS n, {bounds} FROM {window} GROUP BY name, {bounds})"
    made = nodes(
        t_env,
        f"SELECT a.name, b.n FROM {side} a LEFT JOIN {side} b ON a.name = b.name AND a.n < b.n "
        "AND a.window_start = b.window_start AND a.window_end = b.window_end",
    )
    join, associations = made[-3].declaration, made[-2].declaration

    assert (join.kind, join.is_insert_only) == (d.JoinKind.INNER, True)
    assert isinstance(join, d.WindowJoinDeclaration)
    assert associations.goes_by_watermark
    assert associations.is_insert_only
    assert associations.sides[0].window_end == join.left_end == "__left_end"
    assert [each.target_input for each in made[-2].inputs] == [0, 1]
    assert len(associations.output) == len(associations.pair_columns)


def test_rows_are_sorted_by_time_as_windows_that_end_with_it(t_env):
    made = nodes(t_env, "SELECT name, ts FROM bids ORDER BY ts, name DESC")
    sort = made[1].declaration

    assert isinstance(sort, d.RankDeclaration)
    assert (sort.partition, sort.last, sort.window_end) == ((), None, "__over")
    assert [(order.column, order.ascending) for order in sort.order] == [("ts", True), ("name", False)]
    assert sort.goes_by_watermark
    assert sort.is_insert_only
    text = t_env.explain_sql("SELECT name, ts FROM bids ORDER BY ts, name DESC", ExplainDetail.CHANGELOG_MODE)
    assert "TemporalSort(orderBy=[ts ASC, name DESC], changelogMode=[I])" in text


def test_rows_come_in_the_order_of_processing_time_anyway(t_env):
    made = nodes(t_env, "SELECT id, PROCTIME() AS pt FROM people ORDER BY pt")

    assert kinds(made) == ["TableScan", "TableSink"]


def test_further_keys_sort_the_rows_of_an_epoch(t_env):
    made = nodes(t_env, "SELECT id, PROCTIME() AS pt FROM people ORDER BY pt, id DESC")

    assert kinds(made) == ["TableScan", "EpochSort", "TableSink"]
    sort = made[1].declaration
    assert isinstance(sort, d.EpochSortDeclaration)
    assert [(order.column, order.ascending) for order in sort.order] == [("id", False)]
    assert sort.is_insert_only


@pytest.mark.parametrize(
    ("order", "problem"),
    [
        ("ts DESC", "is not possible in streaming mode"),
        ("name, ts", "is not possible in streaming mode"),
        ("name", "is not possible in streaming mode"),
    ],
)
def test_other_orders_have_no_end(t_env, order, problem):
    with pytest.raises(SqlValidationError, match=problem):
        nodes(t_env, f"SELECT name, ts FROM bids ORDER BY {order}")


@pytest.mark.parametrize(("order", "keep_last"), [("ts", False), ("ts DESC", True)])
def test_the_first_row_of_a_window_by_time_is_a_deduplication(t_env, order, keep_last):
    number = f"ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY {order})"
    rows = "TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"

    made = nodes(t_env, f"SELECT name FROM (SELECT *, {number} AS n FROM {rows}) WHERE n = 1")

    # Of rows of the same time the last one that came counts.
    (node,) = [each.declaration for each in made if isinstance(each.declaration, d.DeduplicateDeclaration)]
    assert node.keep_last is keep_last
    assert node.window_end is not None


def test_the_first_row_by_event_time_can_feed_what_takes_insert_only_rows(t_env):
    number = "ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts{})"
    first = f"(SELECT id, price, ts FROM (SELECT *, {number.format('')} AS n FROM bids) WHERE n = 1)"
    last = f"(SELECT id, price, ts FROM (SELECT *, {number.format(' DESC')} AS n FROM bids) WHERE n = 1)"
    joined = (
        "SELECT l.id FROM {} l JOIN bids r ON l.id = r.id AND l.ts BETWEEN r.ts - INTERVAL '1' HOUR AND r.ts"
    )

    (node,) = of_kind(t_env, joined.format(first))

    assert node.declaration.waits
    assert node.declaration.goes_by_watermark
    with pytest.raises(SqlValidationError, match="IntervalJoin does not support update and delete changes"):
        of_kind(t_env, joined.format(last))
    again = f"SELECT * FROM (SELECT *, {number.format('')} AS n FROM {first}) WHERE n = 1"
    assert [each.declaration.waits for each in of_kind(t_env, again)] == [True, True]


def test_with_mini_batches_the_first_row_by_event_time_may_change(t_env):
    t_env.get_config().set("table.exec.mini-batch.enabled", "true")
    query = "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts) AS n FROM bids) WHERE n = 1"

    (node,) = of_kind(t_env, query)

    assert not node.declaration.waits
    assert not node.declaration.is_insert_only


def test_a_union_is_several_inputs_of_one_node(t_env):
    made = nodes(t_env, "SELECT id FROM people UNION ALL SELECT price FROM bids")

    assert len(made[-1].inputs) == 2
    assert {each.target_input for each in made[-1].inputs} == {0}


def test_grouping_sets_give_each_row_once_per_set(t_env):
    made = nodes(t_env, "SELECT name, COUNT(*) FROM bids GROUP BY ROLLUP(name)")

    assert "Explode" in steps(made[1])
    assert len(made[1].declaration.keys) == 2


def test_the_clock_on_the_wall_needs_no_zone_at_utc_only():
    assert millis("t", DataTypes.TIMESTAMP(3), is_utc=True) == "unix_millis(CAST(t AS TIMESTAMP))"
    assert millis("t", DataTypes.TIMESTAMP_LTZ(3), is_utc=True) == "unix_millis(t)"
    assert "TIMESTAMP_NTZ" in millis("t", DataTypes.TIMESTAMP_LTZ(3), is_utc=False)
    assert "unix_millis" not in millis("t", DataTypes.TIMESTAMP(3), is_utc=False)


def test_a_temporal_join_gets_every_version_that_an_epoch_made(t_env):
    t_env.execute_sql("""
        CREATE VIEW versions AS SELECT id, name, ts FROM (
          SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS rn FROM bids
        ) WHERE rn = 1
    """)
    join = "SELECT b.id, v.name FROM bids AS b JOIN versions FOR SYSTEM_TIME AS OF b.ts AS v ON b.id = v.id"

    assert [node.declaration.row_by_row for node in of_kind(t_env, join)] == [True]
    assert [node.declaration.row_by_row for node in of_kind(t_env, "SELECT * FROM versions")] == [False]


def of_kind(t_env: TableEnvironment, query: str) -> list[TableNode]:
    return [node for node in nodes(t_env, query) if isinstance(node.declaration, d.DeduplicateDeclaration)]


@pytest.mark.parametrize(
    ("comparison", "kind", "condition"),
    [
        ("> ALL", "anti", "price <= price"),
        (">= SOME", "semi", "price >= price"),
        ("= ALL", "anti", "price <> price"),
        ("<> ANY", "semi", "price <> price"),
    ],
)
def test_a_comparison_with_some_or_all_rows_of_a_query_is_a_semi_or_an_anti_join(
    t_env, comparison, kind, condition
):
    plan = t_env.explain_sql(
        f"SELECT id FROM bids WHERE price {comparison} (SELECT price FROM bids WHERE id < 3)"
    )

    assert f"joinType=[{kind}]" in plan
    assert condition in plan


@pytest.mark.parametrize("quantifier", ["SOME", "ANY", "ALL"])
def test_a_comparison_with_a_list_is_several(t_env, quantifier):
    plan = t_env.explain_sql(f"SELECT id FROM bids WHERE price < {quantifier} (CAST(3 AS BIGINT), price)")

    negated = "NOT(((price >= 3" if quantifier == "ALL" else "((price < 3"
    assert negated in plan.replace("CAST(3 AS BIGINT)", "3")


def test_a_session_takes_a_query_with_its_partitions(t_env):
    session = "SESSION({} PARTITION BY name, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"
    rows = "SELECT window_start, window_end FROM {}"

    of_query = kinds(nodes(t_env, rows.format(session.format("(SELECT * FROM bids)"))))

    assert of_query == kinds(nodes(t_env, rows.format(session.format("TABLE bids"))))


def test_rows_lie_in_hopping_windows_of_any_size_but_are_aggregated_in_whole_numbers_of_slides(t_env):
    odd = "HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '10' SECOND)"

    (explode,) = [
        step
        for node in nodes(t_env, f"SELECT id, window_end FROM {odd}")
        for each in node.inputs
        for step in each.fragment.steps
        if isinstance(step, Explode)
    ]

    assert "pmod(`__time` - 0L, 3000L) + 10000L" in explode.generator
    with pytest.raises(SqlValidationError, match="size must be a multiple of the slide"):
        nodes(t_env, f"SELECT window_end, COUNT(*) FROM {odd} GROUP BY window_start, window_end")
    with pytest.raises(SqlValidationError, match="size must be a multiple of the slide"):
        sets = "window_start, window_end, GROUPING SETS ((name), ())"
        nodes(t_env, f"SELECT window_end, COUNT(*) FROM {odd} GROUP BY {sets}")
