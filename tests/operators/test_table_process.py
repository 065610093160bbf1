"""Process table functions without Spark: state, timers, several tables, order, changelogs, rescaling."""

from typing import Annotated

import pytest

from headrace.common.changelog import ALL, INSERT_ONLY, UPSERT, ChangelogMode
from headrace.common.types import Row, RowKind
from headrace.elements import MAX_WATERMARK, MIN_WATERMARK
from headrace.errors import UserFunctionError
from headrace.operators.table.declarations import Order
from headrace.operators.table.process_declarations import ProcessedTable, ProcessTableDeclaration
from headrace.planner import fragments as f
from headrace.table import DataTypes, ListView, MapView
from headrace.table.process_function import (
    ArgumentHint,
    ArgumentTrait,
    ChangelogFunction,
    Context,
    OnTimerContext,
    ProcessTableFunction,
    StateHint,
    ptf,
)
from tests.operators.table_harness import Harness

Sets = Annotated[Row, ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE)]
TABLE, KEY, ID, V, TIME = (
    f.column("__table", DataTypes.INT()),
    f.column("__k0", DataTypes.STRING()),
    f.column("id", DataTypes.BIGINT()),
    f.column("v", DataTypes.BIGINT()),
    f.column("__time", DataTypes.BIGINT()),
)
SCHEMA = (TABLE, KEY, ID, V, TIME)


def harness(
    directory,
    function,
    results,
    *,
    has_time=False,
    order=None,
    tables=("input",),
    mode=INSERT_ONLY,
    retracts=False,
    zone=None,
    ttl_ms=0,
    passes=False,
    **options,
):
    """Run a function over rows (table, key, id, v, time); the output is the key of each table, results, rowtime."""
    front = [f.column(f"key{at}", DataTypes.STRING()) for at in range(len(tables))]
    if passes:
        front = [KEY, ID, V]
    rowtime = [f.column("rowtime", DataTypes.BIGINT())] if has_time else []
    result = [f.column(f"r{at}", each) for at, each in enumerate(results)]
    declaration = ProcessTableDeclaration(
        (*front, *result, *rowtime),
        (KEY.name,),
        function._process,
        tuple(
            ProcessedTable(name, ("k", "id", "v"), (KEY.name, "id", "v"), (0,), order, None, passes)
            for name in tables
        ),
        time=TIME.name if has_time or order is not None else None,
        has_time=has_time,
        result_width=len(results),
        is_single=len(results) == 1,
        zone=zone,
        mode=mode,
        is_insert_only=mode.is_insert_only,
        ttl_ms=ttl_ms,
    )
    return Harness(declaration, [SCHEMA], [retracts], directory, **options)


def rows(*given, table=0):
    return [("+I", table, *each) for each in given]


class Memory:
    def __init__(self):
        self.count = 0


@ptf(result_type="STRING")
class Greeting(ProcessTableFunction):
    def eval(self, memory: Annotated[Memory, StateHint()], input: Sets):
        memory.count += 1
        yield f"{input.k} {memory.count}"


@pytest.mark.parametrize("forgets", [False, True])
def test_a_value_in_state_belongs_to_a_key_and_outlives_epochs(tmp_path, forgets):
    made = harness(tmp_path, Greeting, [DataTypes.STRING()], forgets=forgets)
    first = made.run(rows(("ann", 1, 1, 0), ("bob", 2, 1, 0), ("ann", 3, 1, 0)))
    assert first == [("+I", "ann", "ann 1"), ("+I", "bob", "bob 1"), ("+I", "ann", "ann 2")]
    assert made.run(rows(("bob", 4, 1, 0))) == [("+I", "bob", "bob 2")]


def test_state_moves_with_its_key_when_the_parallelism_changes(tmp_path):
    names = [f"n{at}" for at in range(20)]
    made = harness(tmp_path, Greeting, [DataTypes.STRING()], parallelism=2)
    made.run(rows(*((name, 1, 1, 0) for name in names)))
    made.rescale(3)
    made.compact()
    found = made.run(rows(*((name, 1, 1, 0) for name in names)))
    assert sorted(found) == sorted(("+I", name, f"{name} 2") for name in names)


def test_a_value_that_is_as_new_takes_no_state(tmp_path):
    @ptf(result_type="BIGINT")
    class Idle(ProcessTableFunction):
        def eval(self, memory: Annotated[Memory, StateHint()], input: Sets):
            yield memory.count

    made = harness(tmp_path, Idle, [DataTypes.BIGINT()])
    assert made.run(rows(("ann", 1, 1, 0))) == [("+I", "ann", 0)]
    assert made.state_rows == 0


def test_state_of_the_types_row_dict_and_list_is_changed_in_place(tmp_path):
    @ptf(result_type="STRING")
    class Several(ProcessTableFunction):
        def eval(
            self,
            row: Annotated[Row, StateHint("ROW<n BIGINT, last STRING>")],
            counts: Annotated[dict, StateHint()],
            seen: Annotated[list, StateHint()],
            input: Sets,
        ):
            row.n = (row.n or 0) + 1
            counts[input.v] = counts.get(input.v, 0) + 1
            seen.append(input.id)
            yield f"{row.n} {row.last} {counts} {seen}"

    made = harness(tmp_path, Several, [DataTypes.STRING()])
    assert made.run(rows(("a", 1, 7, 0))) == [("+I", "a", "1 None {7: 1} [1]")]
    assert made.run(rows(("a", 2, 7, 0))) == [("+I", "a", "2 None {7: 2} [1, 2]")]


@ptf(result_type="STRING")
class Viewing(ProcessTableFunction):
    def eval(
        self,
        ctx: Context,
        seen: Annotated[ListView, StateHint()],
        counts: Annotated[MapView, StateHint()],
        input: Sets,
    ):
        if input.v == 0:
            ctx.clear_all_state()
            return
        if input.v < 0:
            del counts[-input.v]
        else:
            counts[input.v] = counts[input.v] + 1 if input.v in counts else 1
        seen.add(input.id)
        yield f"{list(seen)} {sorted(counts.items())} {counts.is_empty()}"


def test_lists_and_maps_in_state_are_kept_entry_by_entry(tmp_path):
    made = harness(tmp_path, Viewing, [DataTypes.STRING()], forgets=True)
    made.run(rows(("a", 1, 5, 0), ("a", 2, 6, 0)))
    assert made.state_rows == 4
    made.run(rows(("a", 3, 5, 0)))
    assert made.changed_rows == 2  # an element, and an entry; the others are not touched
    assert made.run(rows(("a", 4, -6, 0))) == [("+I", "a", "[1, 2, 3, 4] [(5, 2)] False")]
    assert made.run(rows(("a", 5, 0, 0), ("a", 6, 5, 0))) == [("+I", "a", "[6] [(5, 1)] False")]
    assert made.state_rows == 2


@ptf(result_type="BIGINT")
class Looking(ProcessTableFunction):
    def eval(self, counts: Annotated[MapView[int, int], StateHint()], input: Sets):
        yield counts[input.v]


def test_an_unknown_key_of_a_map_is_a_key_error(tmp_path):
    made = harness(tmp_path, Looking, [DataTypes.BIGINT()])
    with pytest.raises(UserFunctionError, match="KeyError: 3"):
        made.run(rows(("a", 1, 3, 0)))


@ptf(result_type="STRING")
class Expiring(ProcessTableFunction):
    def eval(
        self,
        short: Annotated[Memory, StateHint(ttl="10 s")],
        long: Annotated[Memory, StateHint()],
        input: Sets,
    ):
        short.count += 1
        long.count += 1
        yield f"{short.count} {long.count}"


def test_an_entry_has_a_time_to_live_of_its_own(tmp_path):
    made = harness(tmp_path, Expiring, [DataTypes.STRING()], ttl_ms=100_000)
    assert made.run(rows(("a", 1, 1, 0)), now_ms=1_000) == [("+I", "a", "1 1")]
    assert made.run(rows(("a", 1, 1, 0)), now_ms=9_000) == [("+I", "a", "2 2")]
    assert made.run(rows(("a", 1, 1, 0)), now_ms=20_000) == [("+I", "a", "1 3")]
    made.run(now_ms=500_000)
    assert made.state_rows == 0


@ptf(result_type="ROW<what STRING, n BIGINT, w BIGINT>")
class Timing(ProcessTableFunction):
    def eval(self, ctx: Context, memory: Annotated[Memory, StateHint()], input: Sets):
        memory.count += 1
        time = ctx.time_context(int)
        if input.v == 0:
            ctx.clear_all()
        elif input.v == 1:
            time.register_on_time("ping", time.time() + 10)
        elif input.v == 2:
            time.register_on_time(time.time() + 5)
        elif input.v == 3:
            time.clear_timer("ping")
        elif input.v == 4:
            time.clear_timer(time.time() + 5)
        yield "row", memory.count, time.current_watermark()

    def on_timer(self, ctx: OnTimerContext, memory: Memory):
        time = ctx.time_context(int)
        yield f"timer {ctx.current_timer()} at {time.time()}", memory.count, time.current_watermark()
        if ctx.current_timer() == "ping":
            time.register_on_time("again", time.time() - 3)


_TIMED = [DataTypes.STRING(), DataTypes.BIGINT(), DataTypes.BIGINT()]


def timing(tmp_path, **options):
    return harness(tmp_path, Timing, _TIMED, has_time=True, **options)


def test_timers_fire_in_order_when_the_watermark_has_passed_them(tmp_path):
    made = timing(tmp_path, forgets=True)
    first = made.run(rows(("a", 1, 1, 100), ("a", 2, 2, 103)), before=MIN_WATERMARK, after=95)
    assert first == [("+I", "a", "row", 1, None, 100), ("+I", "a", "row", 2, None, 103)]
    assert made.run(before=95, after=107) == []
    assert made.run(before=107, after=110) == [
        ("+I", "a", "timer None at 108", 2, 110, 108),
        ("+I", "a", "timer ping at 110", 2, 110, 110),
        ("+I", "a", "timer again at 107", 2, 110, 107),
    ]
    assert made.run(before=110, after=MAX_WATERMARK, is_final=True) == []


def test_a_timer_with_a_name_replaces_the_one_before(tmp_path):
    made = timing(tmp_path)
    made.run(rows(("a", 1, 1, 100)), after=90)
    made.run(rows(("a", 2, 1, 120)), before=90, after=115)
    assert made.run(before=115, after=130) == [
        ("+I", "a", "timer ping at 130", 2, 130, 130),
        ("+I", "a", "timer again at 127", 2, 130, 127),
    ]


def test_timers_can_be_cleared_by_name_by_time_and_all_at_once(tmp_path):
    made = timing(tmp_path)
    made.run(rows(("a", 1, 1, 100), ("a", 2, 2, 100), ("b", 3, 1, 100), ("b", 4, 2, 100)), after=90)
    made.run(rows(("a", 5, 3, 100), ("a", 6, 4, 100), ("b", 7, 0, 100)), before=90, after=91)
    assert made.run(before=91, after=1000) == []
    assert made.state_rows == 1  # the count of a


def test_a_late_row_is_processed_and_its_timer_fires_with_the_next_watermark(tmp_path):
    made = timing(tmp_path)
    found = made.run(rows(("a", 1, 2, 50)), before=200, after=200)
    assert found == [("+I", "a", "row", 1, 200, 50)]
    assert made.run(before=200, after=201) == [("+I", "a", "timer None at 55", 1, 201, 55)]


def test_timers_move_with_their_key_when_the_parallelism_changes(tmp_path):
    names = [f"n{at}" for at in range(10)]
    made = timing(tmp_path, parallelism=1)
    made.run(rows(*((name, 1, 2, 100) for name in names)), after=90)
    made.rescale(4)
    found = made.run(before=90, after=105)
    assert sorted(found) == sorted(("+I", name, "timer None at 105", 1, 105, 105) for name in names)


def test_times_of_a_zone_are_given_as_moments(tmp_path):
    made = timing(tmp_path, zone="Europe/Berlin")
    hour = 3_600_000
    found = made.run(rows(("a", 1, 2, hour)), after=hour + 5)
    # One o'clock in Berlin is midnight in UTC; rowtime is the table's own.
    assert found[1] == ("+I", "a", "timer None at 5", 1, 5, hour + 5)


def test_timers_without_on_time_are_refused(tmp_path):
    made = harness(tmp_path, Timing, _TIMED)
    with pytest.raises(UserFunctionError, match="timers need event time"):
        made.run(rows(("a", 1, 3, 100)))


@ptf(result_type="STRING")
class Pairing(ProcessTableFunction):
    def eval(self, last: Annotated[Row, StateHint("ROW<id BIGINT>")], visit: Sets, buy: Sets):
        if buy is not None:
            last.id = buy.id
        else:
            yield f"{visit.id} after {last.id}"


def test_rows_of_several_tables_share_the_state_of_a_key(tmp_path):
    made = harness(tmp_path, Pairing, [DataTypes.STRING()], tables=("visit", "buy"))
    made.run(rows(("a", 7, 1, 0), table=1))
    found = made.run([*rows(("a", 1, 1, 0), ("b", 2, 1, 0)), *rows(("b", 8, 1, 0), table=1)])
    assert found == [("+I", "a", "a", "1 after 7"), ("+I", "b", "b", "2 after None")]


@ptf(result_type="BIGINT")
class Ids(ProcessTableFunction):
    def eval(self, input: Sets):
        yield input.id


def test_sorted_rows_wait_for_the_watermark_and_late_ones_are_dropped(tmp_path):
    order = (Order("__time"), Order("v", ascending=False, nulls_first=False))
    made = harness(tmp_path, Ids, [DataTypes.BIGINT()], order=order, forgets=True)
    given = rows(("a", 1, 5, 30), ("a", 2, 1, 10), ("a", 3, 9, 10), ("a", 4, None, 10))
    assert made.run(given, after=5) == []
    assert made.run(rows(("a", 5, 1, 5), ("b", 6, 1, 20)), before=5, after=20) == [
        ("+I", "a", 3),
        ("+I", "a", 2),
        ("+I", "a", 4),
        ("+I", "b", 6),
    ]
    assert made.late == 1
    assert made.run(before=20, after=30) == [("+I", "a", 1)]


@ptf(result_type="STRING")
class Kinds(ProcessTableFunction):
    def eval(
        self,
        input: Annotated[Row, ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE, ArgumentTrait.SUPPORT_UPDATES)],
    ):
        yield input.get_row_kind().name


def test_the_kind_of_a_row_says_what_it_does(tmp_path):
    made = harness(tmp_path, Kinds, [DataTypes.STRING()], retracts=True)
    given = [(mark, 0, "a", 1, 1, 0) for mark in ("+I", "-U", "+U", "-D")]
    found = [row[-1] for row in made.run(given)]
    assert found == ["INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"]


@ptf(result_type="BIGINT")
class Totals(ProcessTableFunction, ChangelogFunction):
    def get_changelog_mode(self, changelog_context):
        return ChangelogMode.all()

    def eval(self, memory: Annotated[Memory, StateHint()], input: Sets):
        if memory.count:
            yield Row.of_kind(RowKind.UPDATE_BEFORE, memory.count)
        kind = RowKind.UPDATE_AFTER if memory.count else RowKind.INSERT
        memory.count += input.v
        yield Row.of_kind(kind, memory.count)


def test_a_function_emits_updates(tmp_path):
    made = harness(tmp_path, Totals, [DataTypes.BIGINT()], mode=ALL)
    found = made.run(rows(("a", 1, 5, 0), ("a", 2, 6, 0)))
    assert found == [("+I", "a", 5), ("-U", "a", 5), ("+U", "a", 11)]


def test_a_kind_that_the_function_does_not_declare_is_refused(tmp_path):
    made = harness(tmp_path, Totals, [DataTypes.BIGINT()], mode=UPSERT)
    with pytest.raises(UserFunctionError, match="of the kind UPDATE_BEFORE, but declares"):
        made.run(rows(("a", 1, 5, 0), ("a", 2, 6, 0)))


@ptf(result_type="BIGINT")
class Doubled(ProcessTableFunction):
    def eval(
        self,
        input: Annotated[
            Row, ArgumentHint(ArgumentTrait.SET_SEMANTIC_TABLE, ArgumentTrait.PASS_COLUMNS_THROUGH)
        ],
    ):
        yield None if input.v is None else input.v * 2


def test_columns_of_the_table_pass_through(tmp_path):
    made = harness(tmp_path, Doubled, [DataTypes.BIGINT()], passes=True)
    found = made.run(rows(("a", 1, 5, 0), ("b", 2, None, 0)))
    assert found == [("+I", "a", 1, 5, 10), ("+I", "b", 2, None, None)]


@ptf(result_type="ROW<a BIGINT, b BIGINT>")
class Wrong(ProcessTableFunction):
    def eval(self, ctx: Context, input: Sets):
        if input.v == 1:
            yield (1,)
        elif input.v == 2:
            yield "x", 2
        elif input.v == 3:
            ctx.clear_state("nope")
        elif input.v == 4:
            ctx.table_semantics_for("nope")
        elif input.v == 5:
            ctx.time_context(str)
        else:
            raise ValueError("broken")


@pytest.mark.parametrize(
    ("v", "message"),
    [
        (1, "1 column, but declares 2"),
        (2, "returned 'x', which is not BIGINT"),
        (3, "has no state 'nope'"),
        (4, "has no table argument 'nope'"),
        (5, "takes datetime or int"),
        (6, "broken"),
    ],
)
def test_errors_of_a_function_name_it(tmp_path, v, message):
    made = harness(tmp_path, Wrong, [DataTypes.BIGINT(), DataTypes.BIGINT()])
    with pytest.raises(UserFunctionError, match=message):
        made.run(rows(("a", 1, v, 0)))
