"""Rows in packets: which subtask gets them, how groups of several tasks become one, and what is not packed."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from headrace.common.types import RowKind
from headrace.operators.table.arrow_expression import NotComputedError
from headrace.operators.table.base import (
    HASHES,
    ROW_HASHES,
    SESSION,
    WITH_SEQUENCE,
    InputSpec,
    SessionWindows,
    hashes_of,
)
from headrace.operators.table.declarations import TableWatermarkDeclaration, TableWatermarkSpec
from headrace.operators.table.key_numbers import KeyNumbers
from headrace.operators.table.packed_input import PackedInput, merged_inputs, rows_of
from headrace.operators.table.row_steps import arguments_of, column_of
from headrace.operators.table.steps import (
    KIND,
    Explode,
    PythonCall,
    PythonCalls,
    Select,
    StepColumn,
    Where,
)
from headrace.operators.table.timed_way import TimedWay
from headrace.state.key_secret import KeySecret

SECRET = KeySecret(b"0123456789abcdef")
N, V, S = (
    StepColumn("n", "BIGINT", pa.int64()),
    StepColumn("v", "BIGINT", pa.int64()),
    StepColumn("s", "STRING", pa.string()),
)
ROWS = pa.table(
    {
        "n": pa.array([*range(50), None, 7], pa.int64()),
        "v": pa.array([*range(52)], pa.int64()),
        "s": pa.array([*(f"s{number % 5}" for number in range(51)), None], pa.string()),
    }
)


def packed(*specs: InputSpec, steps: tuple[object, ...] = ()) -> PackedInput:
    return PackedInput(
        source=(("n", pa.int64()), ("v", pa.int64()), ("s", pa.string())),
        steps=steps,  # type: ignore[arg-type]
        schema=(N, V, S),
        specs=specs,
        is_utc=True,
        parallelism=3,
        max_parallelism=16,
        secret=SECRET,
    )


def received(each: PackedInput, *tasks: pa.Table) -> list[dict[int, pa.Table]]:
    """Return the inputs of every subtask."""
    found: list[dict[int, list[pa.Table]]] = [{} for _ in range(each.parallelism)]
    for number, rows in enumerate(tasks):
        for packet in each.packets([rows], number):
            found[packet.subtask].setdefault(packet.side, []).append(rows_of(packet.data))
    return [merged_inputs(packets, each.merges) for packets in found]


def test_rows_go_to_the_subtask_that_has_their_key_group():
    each = pickle.loads(pickle.dumps(packed(InputSpec(0, 0, ("n",), items=(WITH_SEQUENCE,)))))
    parts = received(each, ROWS)
    for subtask, inputs in enumerate(parts):
        groups = hashes_of(inputs[0])[:, 0] % 16
        assert (groups * 3 // 16 == subtask).all()
    rows = [row for inputs in parts for row in inputs[0].select(["n", "v", "s"]).to_pylist()]
    assert sorted(rows, key=lambda row: row["v"]) == ROWS.to_pylist()


def test_the_order_in_which_rows_arrived_is_shown():
    each = packed(InputSpec(0, 0, (), items=(WITH_SEQUENCE,)))
    (inputs, *_) = received(each, ROWS.slice(0, 2), ROWS.slice(2, 2))
    assert inputs[0].column("__sequence").to_pylist() == [0, 1, 1 << 33, (1 << 33) + 1]


def test_steps_and_filters_are_applied():
    steps = (
        Where("`n` > 10L"),
        Select((("`n` - 1L", "n"), ("`v`", "v"), ("`s`", "s"))),
    )
    each = packed(InputSpec(0, 0, ("n",), where="`v` < 20L"), steps=steps)
    rows = [row for inputs in received(each, ROWS) if 0 in inputs for row in inputs[0].to_pylist()]
    assert sorted((row["n"], row["v"]) for row in rows) == [(number - 1, number) for number in range(11, 20)]


def test_rows_without_any_column_are_counted():
    steps = (Where("`n` > 10L"), Select((("1L", "one"),)), Select(()))
    counts = InputSpec(0, 0, (), group_by=(), items=(("count(1)", "rows"),))
    each = replace(packed(counts, steps=steps), schema=())
    assert each.is_understood
    (rows,) = [inputs[0].column("rows").to_pylist() for inputs in received(each, ROWS) if inputs]
    assert rows == [39]


def test_groups_of_several_tasks_become_one():
    groups = InputSpec(
        0, 0, ("s",), group_by=("s",), items=(("count(1)", "rows"), ("CAST(sum(`v`) AS BIGINT)", "a0"))
    )
    values = InputSpec(
        1,
        0,
        ("s",),
        group_by=("s", "n"),
        items=(("count(1)", "c"),),
        where="`n` IS NOT NULL",
        row_keys=("s", "n"),
    )
    parts = received(packed(groups, values), ROWS.slice(0, 30), ROWS.slice(30))
    counted = [row for inputs in parts if 0 in inputs for row in inputs[0].to_pylist()]
    expected = ROWS.group_by("s").aggregate([("v", "sum"), ("v", "count")]).to_pylist()
    assert sorted((str(row["s"]), row["rows"], row["a0"]) for row in counted) == sorted(
        (str(row["s"]), row["v_count"], row["v_sum"]) for row in expected
    )
    numbers = KeyNumbers(SECRET)
    for inputs in parts:
        if 1 in inputs:
            own = inputs[1]
            columns = [own.column("n").combine_chunks()]
            assert (hashes_of(own, ROW_HASHES) == numbers.within(hashes_of(own, HASHES), columns)).all()
            assert len(np.unique(hashes_of(own, ROW_HASHES), axis=0)) == own.num_rows
    assert sum(inputs[1].num_rows for inputs in parts if 1 in inputs) == 51


@pytest.mark.parametrize(
    ("key", "column"), [("n", [1, None, 1, None, 1]), ("s", ["a", None, "a", None, "a"])]
)
def test_rows_of_a_task_are_put_into_sessions(key, column):
    rows = pa.table(
        {name: pa.array([None] * 5, kind) for name, kind in (("n", pa.int64()), ("s", pa.string()))}
    )
    place = rows.column_names.index(key)
    rows = rows.set_column(place, key, pa.array(column, rows.schema.field(key).type))
    rows = rows.append_column("v", pa.array([21, 5, 10, 6, 0]))
    spec = InputSpec(
        0, 0, (key,), group_by=(key,), items=(("count(1)", "rows"),), session=SessionWindows("v", 10)
    )
    each = packed(spec)
    found = [row for inputs in received(each, rows) if 0 in inputs for row in inputs[0].to_pylist()]
    epoch = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    times = [
        [(row[SESSION][end] - epoch) // timedelta(milliseconds=1) for end in ("start", "end")]
        for row in found
    ]
    counted = [(row[key], row["rows"], *ends) for row, ends in zip(found, times, strict=True)]
    assert sorted(counted, key=str) == sorted(
        [(column[0], 1, 21, 31), (column[0], 2, 0, 20), (None, 2, 5, 16)], key=str
    )


ENTRY = "named_struct('v', named_struct('f0', `v`), 'w', CAST(1L AS TINYINT))"


@pytest.mark.parametrize("condition", ["true", "`v` % 2L = 0L"])
@pytest.mark.parametrize("is_in_row", [False, True])
def test_the_values_of_a_group_become_one_list(condition, is_in_row):
    item = f"collect_list({ENTRY}) FILTER (WHERE {condition})"
    if is_in_row:
        item = f"named_struct('a', CAST(NULL AS BINARY), 'r', {item})"
    each = packed(InputSpec(0, 0, ("s",), group_by=("s",), items=((item, "a0"),)))
    parts = received(each, ROWS.slice(0, 20), ROWS.slice(20, 3), ROWS.slice(23))
    made = [row for inputs in parts if inputs for row in inputs[0].to_pylist()]
    expected: dict[str | None, list[object]] = {row["s"]: [] for row in ROWS.to_pylist()}
    for row in ROWS.to_pylist():
        if condition == "true" or row["v"] % 2 == 0:
            expected[row["s"]].append({"v": {"f0": row["v"]}, "w": 1})
    found = {row["s"]: row["a0"]["r"] if is_in_row else row["a0"] for row in made}
    assert len(made) == len(found)
    assert found == expected


def test_rows_are_done_with_before_their_time_is_read_off_them():
    declaration = TableWatermarkDeclaration(output=(N, V, S), watermark=TableWatermarkSpec("`v` + 1L"))
    each = TimedWay(packed(steps=(Where("`v` < 40L"),)), declaration, "vertex")
    highest: list[int] = []
    rows = list(each.rows([ROWS, ROWS.slice(45), ROWS.slice(0, 3)], highest, None))
    assert [table.num_rows for table in rows] == [40, 0, 3]
    assert highest == [40, 3]


def test_a_time_that_only_spark_can_compute_is_none_of_ours():
    declaration = TableWatermarkDeclaration(output=(N, V, S), watermark=TableWatermarkSpec("hash(`v`)"))
    assert TimedWay(packed(), declaration, "vertex").time is None


@pytest.mark.parametrize(
    "spec",
    [
        InputSpec(0, 0, ("n",), items=(("uuid()", "id"),)),
        InputSpec(0, 0, ("n",), where="upper(`s`) = 'A'"),
        InputSpec(0, 0, ("n",), group_by=("n",), items=(("collect_set(`v`)", "a0"),)),
        InputSpec(0, 0, ("n",), group_by=("n",), session=SessionWindows("s", 1000)),
        InputSpec(0, 0, ("n",), group_by=("n", "s"), items=(("count(1)", "rows"),)),
    ],
)
def test_what_workers_cannot_compute_is_not_packed(spec):
    assert not packed(spec).is_understood


def call(function, argument, kind, *, name="made", spark_type="BIGINT", **options) -> PythonCall:
    return PythonCall(function, (argument,), StepColumn(name, spark_type, kind), **options)


def called(each: PythonCall, columns, rows: int) -> pa.Array:
    """Call a function as workers do."""
    values = zip(*(arguments_of(columns[name]) for name in each.arguments), strict=True)
    return column_of([each.function(*given) for given in values], each.result.arrow)


def test_functions_of_users_are_called_in_between():
    steps = (
        PythonCalls((call(lambda n: None if n is None else n % 2, "n", pa.int64()),)),
        Where("`made` = 1"),
        Select((("`made`", "n"), ("`v`", "v"), ("`s`", "s"))),
    )
    each = packed(steps=steps)
    assert each.is_understood
    assert each.calls_functions
    (packet,) = each.packets([ROWS], 0, called)
    rows = rows_of(packet.data)
    assert rows.column("n").to_pylist() == [1] * 26
    assert rows.column("v").to_pylist() == [*range(1, 50, 2), 51]


@pytest.mark.parametrize("is_outer", [False, True])
def test_rows_of_a_table_function_become_rows(is_outer):
    def words(row):
        return [(word, len(word)) for word in (row.line or "").split()]

    words.gives_rows = True  # type: ignore[attr-defined]
    fields = pa.struct([("word", pa.string()), ("size", pa.int32())])
    steps = (
        Select((("CAST(named_struct('EXPR$0', `s`) AS struct<`line`:string>)", "row"), ("`n`", "n"))),
        PythonCalls((call(words, "row", pa.list_(fields), name="rows", spark_type="ARRAY<STRUCT>"),)),
        Explode("explode(`rows`)", ("each",), is_outer=is_outer),
        Select((("`n`", "n"), ("CAST(`each`.`size` AS BIGINT)", "v"), ("`each`.`word`", "s"))),
    )
    each = packed(steps=steps)
    assert each.is_understood
    table = pa.table({"n": pa.array([1, 2, 3, 4]), "v": [0] * 4, "s": ["to be", "", None, "or"]})
    (packet,) = each.packets([table], 0, called)
    rows = [tuple(row.values()) for row in rows_of(packet.data).to_pylist()]
    found = [(1, 2, "to"), (1, 2, "be"), (4, 2, "or")]
    assert rows == ([*found[:2], (2, None, None), (3, None, None), found[2]] if is_outer else found)


def test_a_result_that_does_not_fit_is_left_to_spark():
    steps = (PythonCalls((call(lambda n: 1 << 40, "n", pa.int32(), name="made"),)),)
    with pytest.raises(NotComputedError):
        list(packed(steps=steps).packets([ROWS], 0, called))


class Batches:
    takes_batches = gives_rows = True

    def __call__(self, rows):
        return rows


@pytest.mark.parametrize(
    "each",
    [
        call(lambda n: n, "n", pa.int64(), is_pandas=True),
        call(Batches(), "n", pa.list_(pa.struct([("f0", pa.int64())]))),
        call(lambda n: n, "n", pa.timestamp("us")),
        call(lambda n: n, "n", pa.decimal128(10, 2)),
        call(lambda n: [n], "n", pa.list_(pa.int64())),
        call(lambda n: n, "unknown", pa.int64()),
    ],
)
def test_functions_that_spark_calls_otherwise_are_left_to_it(each):
    assert not packed(steps=(PythonCalls((each,)),)).is_understood


@pytest.mark.parametrize(
    "steps",
    [
        (Explode("explode(split(`s`, ' '))", ("each",)),),
        (Explode("posexplode(`s`)", ("at", "each")),),
        (Select((("named_struct(`s`, `n`)", "row"), ("`n`", "n"), ("`v`", "v"), ("`s`", "s"))),),
        (Select((("CAST(named_struct('a', `n`) AS struct<`b`:string>)", "n"), ("`v`", "v"), ("`s`", "s"))),),
        (Select((("`s`.`a`", "s"), ("`n`", "n"), ("`v`", "v"))),),
    ],
)
def test_rows_in_values_that_only_spark_makes(steps):
    assert not packed(steps=steps).is_understood


def test_columns_that_spark_would_give_otherwise_are_not_packed():
    each = packed(InputSpec(0, 0, ("n",)))
    times = (("t", pa.time64("ns")),)
    assert not replace(each, source=(*each.source, *times)).is_understood


def test_the_secret_is_not_shown():
    assert "0123456789abcdef" not in repr(packed(InputSpec(0, 0, ("n",))))


def test_a_sink_gets_rows_as_they_are():
    each = replace(packed(), parallelism=1)
    rows = pa.concat_tables(rows_of(packet.data) for packet in each.packets([ROWS], 0))
    assert rows.equals(ROWS)


def test_a_keyed_sink_gets_a_delete_for_a_replaced_row():
    kinds = [kind.value for kind in RowKind]
    rows = ROWS.slice(0, len(kinds)).append_column(KIND, pa.array(kinds, pa.int8()))
    each = replace(packed(), source=(*packed().source, (KIND, pa.int8())), goes_by_keys=True)
    (packet,) = each.packets([rows], 0)
    gone = RowKind.DELETE.value
    expected = [gone if kind == RowKind.UPDATE_BEFORE.value else kind for kind in kinds]
    assert rows_of(packet.data).column(KIND).to_pylist() == expected
