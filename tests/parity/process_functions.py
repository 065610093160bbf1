"""The functions of `java/ProcessFunctions.java` in Python."""

from typing import Annotated, Any

from headrace.common.changelog import ChangelogMode
from headrace.common.types import Row, RowKind
from headrace.table.data_view import ListView, MapView
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

_ROWS, _SETS = ArgumentTrait.ROW_SEMANTIC_TABLE, ArgumentTrait.SET_SEMANTIC_TABLE
Rows = Annotated[Row, ArgumentHint(_ROWS)]
Sets = Annotated[Row, ArgumentHint(_SETS)]


@ptf(result_type="STRING")
class Greeting(ProcessTableFunction):
    def eval(self, input: Rows, least: Annotated[int, ArgumentHint(type="INT")]):
        if input.v is not None and input.v >= least:
            yield f"Hello {'null' if input.k is None else input.k}"


@ptf(result_type="ROW<twice BIGINT>")
class PassedRows(ProcessTableFunction):
    def eval(self, input: Annotated[Row, ArgumentHint(_ROWS, ArgumentTrait.PASS_COLUMNS_THROUGH)]):
        yield Row(None if input.v is None else input.v * 2)


class Count:
    def __init__(self) -> None:
        self.n = 0
        self.last: int | None = None


@ptf(result_type="ROW<k STRING, n BIGINT>")
class PassedSets(ProcessTableFunction):
    def eval(
        self,
        count: Annotated[Count, StateHint()],
        input: Annotated[Row, ArgumentHint(_SETS, ArgumentTrait.PASS_COLUMNS_THROUGH)],
    ):
        count.n += 1
        yield "key", count.n


@ptf(result_type="ROW<n BIGINT, last BIGINT>")
class Counting(ProcessTableFunction):
    def eval(
        self,
        ctx: Context,
        memory: Annotated[Count, StateHint()],
        input: Annotated[Row, ArgumentHint(_SETS, ArgumentTrait.OPTIONAL_PARTITION_BY)],
    ):
        memory.n += 1
        yield memory.n, memory.last
        memory.last = input.v
        if memory.n == 4:
            ctx.clear_all_state()


@ptf(result_type="ROW<elements STRING, counts STRING>")
class Viewing(ProcessTableFunction):
    def eval(
        self,
        ctx: Context,
        seen: Annotated[ListView[int], StateHint()],
        counts: Annotated[MapView[str, int], StateHint()],
        input: Sets,
    ):
        seen.add(input.id)
        word = f"v{'null' if input.v is None else input.v}"
        counts[word] = counts[word] + 1 if word in counts else 1
        elements = list(seen)
        sums = sorted(counts.items())
        yield ";".join(map(str, elements)), ";".join(f"{key}={value}" for key, value in sums)
        if len(elements) == 5:
            ctx.clear_state("seen")


@ptf(result_type="ROW<what STRING, n BIGINT, `time` BIGINT, `watermark` BIGINT>")
class Timers(ProcessTableFunction):
    def eval(
        self,
        ctx: Context,
        memory: Annotated[Count, StateHint()],
        input: Annotated[Row, ArgumentHint(_SETS, ArgumentTrait.REQUIRE_ON_TIME)],
    ):
        memory.n += 1
        time = ctx.time_context(int)
        yield "row", memory.n, time.time(), time.current_watermark()
        time.register_on_time("ping", time.time() + 3000)
        time.register_on_time(time.time() + 1000)
        if input.v == 3:
            time.clear_timer("ping")
        if input.v == 0:
            ctx.clear_all()

    def on_timer(self, ctx: OnTimerContext, memory: Count):
        time = ctx.time_context(int)
        name = ctx.current_timer()
        yield f"timer {name or 'null'}", memory.n, time.time(), time.current_watermark()
        if name == "ping":
            time.register_on_time("again", time.time() - 500)


@ptf(result_type="ROW<text STRING>")
class Pairing(ProcessTableFunction):
    def eval(
        self,
        last: Annotated[Row, StateHint("ROW<item BIGINT>")],
        visit: Sets,
        purchase: Sets,
    ):
        if purchase is not None:
            last.item = purchase.id
        else:
            yield f"visit {visit.id} after {'null' if last.item is None else last.item}"


class _OfKinds(ProcessTableFunction):
    def get_result_type(self) -> Any:
        return "ROW<flag STRING, was BIGINT>"


@ptf
class Kinds(_OfKinds):
    def eval(self, input: Annotated[Row, ArgumentHint(_SETS, ArgumentTrait.SUPPORT_UPDATES)]):
        yield input.get_row_kind().name, input.v


@ptf
class AllKinds(_OfKinds):
    def eval(
        self,
        input: Annotated[
            Row,
            ArgumentHint(_SETS, ArgumentTrait.SUPPORT_UPDATES, ArgumentTrait.REQUIRE_UPDATE_BEFORE),
        ],
    ):
        yield input.get_row_kind().name, input.v


@ptf
class RowKinds(_OfKinds):
    def eval(self, input: Annotated[Row, ArgumentHint(_ROWS, ArgumentTrait.SUPPORT_UPDATES)]):
        yield input.get_row_kind().name, input.v


class Total:
    def __init__(self) -> None:
        self.total = 0


@ptf(result_type="ROW<total BIGINT>")
class Totals(ProcessTableFunction, ChangelogFunction):
    def get_changelog_mode(self, changelog_context):
        return ChangelogMode.all()

    def eval(self, memory: Annotated[Total, StateHint()], input: Sets):
        if input.v is None:
            return
        if memory.total > 0:
            before = RowKind.DELETE if input.v == 0 else RowKind.UPDATE_BEFORE
            yield Row.of_kind(before, memory.total)
        if input.v == 0:
            memory.total = 0
            return
        kind = RowKind.UPDATE_AFTER if memory.total > 0 else RowKind.INSERT
        memory.total += input.v
        yield Row.of_kind(kind, memory.total)


class Text:
    def __init__(self) -> None:
        self.ids = ""


@ptf(result_type="ROW<ids STRING>")
class Ordered(ProcessTableFunction):
    def eval(self, memory: Annotated[Text, StateHint()], input: Sets):
        memory.ids += f"{input.id};"
        yield (memory.ids,)
