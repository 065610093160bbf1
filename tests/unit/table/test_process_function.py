"""What the signature of a process table function declares, and what is refused."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

import pytest

from headrace.catalog.process_functions import ArgumentTrait, StateKind
from headrace.common.types import Row
from headrace.errors import JobDefinitionError
from headrace.table import DataTypes, ListView, MapView
from headrace.table.process_function import (
    ArgumentHint,
    ChangelogFunction,
    Context,
    OnTimerContext,
    ProcessTableFunction,
    StateHint,
    ptf,
)

_SET, _ROW = ArgumentTrait.SET_SEMANTIC_TABLE, ArgumentTrait.ROW_SEMANTIC_TABLE
Sets = Annotated[Row, ArgumentHint(_SET)]


@dataclass
class Cart:
    items: dict = field(default_factory=dict)


def test_the_signature_of_eval_and_on_timer_says_what_a_function_takes():
    @ptf(result_type="ROW<n BIGINT>")
    class Shop(ProcessTableFunction):
        def eval(
            self,
            ctx: Context,
            cart: Annotated[Cart, StateHint(ttl="1 h")],
            seen: Annotated[ListView[int], StateHint(ttl=timedelta(seconds=5))],
            names: Annotated[MapView[str, int], StateHint],
            event: Annotated[Row, ArgumentHint(_SET, ArgumentTrait.REQUIRE_ON_TIME, name="events")],
            pause: timedelta,
            least: int = 3,
        ):
            yield 1

        def on_timer(self, ctx: OnTimerContext, cart, seen, names):
            yield 1

    signature = Shop._process.signature
    assert signature.has_context
    assert signature.has_timer
    assert signature.timer_has_context
    assert [(each.name, each.kind, each.ttl_ms) for each in signature.states] == [
        ("cart", StateKind.VALUE, 3_600_000),
        ("seen", StateKind.LIST, 5_000),
        ("names", StateKind.MAP, None),
    ]
    assert [each.name for each in signature.arguments] == ["events", "pause", "least"]
    assert signature.arguments[0].traits == {_SET, ArgumentTrait.REQUIRE_ON_TIME}
    assert signature.arguments[2].data_type == DataTypes.BIGINT()
    assert (signature.arguments[2].is_optional, signature.arguments[2].default) == (True, 3)


def test_hints_can_be_given_next_to_the_signature():
    class Bare(ProcessTableFunction):
        def eval(self, ctx, memory, table, least):
            yield 1

    made = ptf(
        Bare(),
        result_type=DataTypes.BIGINT(),
        state={"memory": StateHint("ROW<n BIGINT>")},
        arguments={"table": ArgumentHint(_SET), "least": ArgumentHint(type="INT")},
        name="counter",
    )
    signature = made._process.signature
    assert signature.has_context
    assert [each.name for each in signature.states] == ["memory"]
    assert signature.arguments[1].data_type == DataTypes.INT()
    assert repr(made) == "<ProcessTableFunctionWrapper counter>"


def refused(message, eval_=None, on_timer=None, base=(ProcessTableFunction,), **options):
    methods = {"eval": eval_ or (lambda self, input: None)}
    if on_timer is not None:
        methods["on_timer"] = on_timer
    made = type("Wrong", base, methods)
    with pytest.raises(JobDefinitionError, match=message):
        ptf(made(), result_type="BIGINT", **options)


def test_signatures_that_are_not_valid_are_refused():
    rows, sets = Annotated[Row, ArgumentHint(_ROW)], Sets

    def varied(self, *rows):
        yield 1

    def stateless_type(self, n: Annotated[int, StateHint()], input: sets):
        yield 1

    def late_state(self, input: sets, memory: Annotated[Cart, StateHint()]):
        yield 1

    def untyped(self, input: sets, least):
        yield 1

    def reserved(self, input: sets, uid: str):
        yield 1

    def two_rows(self, one: rows, other: rows):
        yield 1

    def state_of_rows(self, memory: Annotated[Cart, StateHint()], input: rows):
        yield 1

    def no_table(self, n: int):
        yield 1

    def row_state(self, memory: Annotated[Row, StateHint()], input: sets):
        yield 1

    def odd_trait(self, input: sets, n: Annotated[int, ArgumentHint(ArgumentTrait.REQUIRE_ON_TIME)]):
        yield 1

    def half_updates(self, input: Annotated[Row, ArgumentHint(_SET, ArgumentTrait.REQUIRE_UPDATE_BEFORE)]):
        yield 1

    def passing(self, input: Annotated[Row, ArgumentHint(_SET, ArgumentTrait.PASS_COLUMNS_THROUGH)]):
        yield 1

    refused("takes any number of arguments", varied)
    refused("state 'n' is int, which cannot be changed in place", stateless_type)
    refused("state 'memory' comes after an argument", late_state)
    refused("parameter 'least' has no type that is known", untyped)
    refused("all calls have on_time and uid", reserved)
    refused("several tables need ArgumentTrait.SET_SEMANTIC_TABLE", two_rows)
    refused("state needs a table with SET_SEMANTIC_TABLE", state_of_rows)
    refused("a function needs a table argument", no_table)
    refused("its columns are not known", row_state)
    refused("but is not a table", odd_trait)
    refused("need SUPPORT_UPDATES", half_updates)
    refused("timers and columns that pass through exclude each other", passing, lambda self: None)
    refused("on_timer\\(\\) takes 3 parameters", passing, lambda self, a, b, c: None)
    refused("no parameter 'nope'", passing, state={"nope": StateHint()})


def test_a_function_without_a_result_type_is_refused():
    class Untyped(ProcessTableFunction):
        def eval(self, input: Sets):
            yield 1

    with pytest.raises(JobDefinitionError, match="declares no result_type"):
        ptf(Untyped)


def test_a_class_that_is_not_a_process_table_function_is_refused():
    with pytest.raises(JobDefinitionError, match="expected a ProcessTableFunction"):
        ptf(Cart, result_type="BIGINT")


def test_a_process_table_function_is_not_called_with_columns():
    @ptf(result_type="BIGINT")
    class Counter(ProcessTableFunction):
        def eval(self, input: Sets):
            yield 1

    with pytest.raises(JobDefinitionError, match="belongs in FROM"):
        Counter(1)


def test_a_function_with_updates_needs_keys():
    class Updating(ProcessTableFunction, ChangelogFunction):
        def get_changelog_mode(self, changelog_context):
            raise NotImplementedError

        def eval(self, input: Annotated[Row, ArgumentHint(_ROW)]):
            yield 1

    with pytest.raises(JobDefinitionError, match="updates are emitted for keys"):
        ptf(Updating, result_type="BIGINT")
