"""Calling user functions: opening them, collecting what they return, and saying which record made one fail."""

from __future__ import annotations

import copy
import operator
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import repeat
from types import BuiltinFunctionType, CodeType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any, ClassVar

from headrace.elements import Batch
from headrace.errors import HeadraceError, UserFunctionError, describe_function, shorten
from headrace.operators.base import EpochPlace, KeyOf, Operator, Output
from headrace.operators.checkpointed import (
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    as_checkpointed,
)
from headrace.operators.context import OperatorContext, RuntimeContext
from headrace.operators.fields import FunctionFields
from headrace.operators.located import located
from headrace.state.isolation import ATOMS, is_all_atoms, is_immutable, isolated

#: Operator state that says that a function has taken a snapshot, be it of nothing.
_HAS_SNAPSHOT = "has-snapshot"
#: Operator state with the fields of a function, by its number among those of the operator.
_FIELDS = "fields-"
#: Fields beyond this size are worth a warning.
_MANY_BYTES = 1024**2


def is_rich(function: Any) -> bool:
    """Whether a function has a life cycle (an instance of one of the function classes), not just a call."""
    return hasattr(function, "open") and hasattr(function, "close")


def method_of(function: Any, name: str) -> Any:
    """Return what to call: the method of a function object, or the plain callable itself."""
    return getattr(function, name) if hasattr(function, name) else function


def key_getter(selector: Any) -> KeyOf:
    """Return the call that takes a record and gives its key."""
    return method_of(selector, "get_key")  # type: ignore[no-any-return]


def layers(function: Any) -> Iterator[Any]:
    """Yield a function and, if it stands around another one (`wraps`), that one, and so on."""
    yield function
    while getattr(function, "wraps", False):
        function = function.function
        yield function


def with_own_function(declaration: Any) -> Any:
    """Give an operator a function of its own, as if it had been unpickled for it alone.

    A worker has one object for all operators and subtasks that were given it; none must see another's fields.
    Declarations whose functions are elsewhere say where, in `function_fields`.
    """
    names = getattr(declaration, "function_fields", ("function",))
    given = {name: getattr(declaration, name, None) for name in names}
    own = {name: _own(value) for name, value in given.items() if value is not None}
    return replace(declaration, **own) if own else declaration


def _own(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - it holds what only the job's pickler can copy, such as a module
        own = copy.copy(value)
    if is_dataclass(value) and not isinstance(value, type):  # several functions that belong together
        return replace(own, **{each.name: _own(getattr(value, each.name)) for each in fields(value)})
    if getattr(value, "wraps", False):
        own.function = _own(value.function)
    return own


def may_keep_results(function: Any) -> bool:
    """Whether a function has a place for what it returned, and could change it afterwards.

    A plain function has none, unless it holds something in its closure, its defaults or a global name.
    """
    return _may_keep(function, set())


def _may_keep(function: Any, seen: set[int]) -> bool:
    if isinstance(function, type | MethodDescriptorType) or id(function) in seen:
        return False
    if isinstance(function, BuiltinFunctionType):
        return not isinstance(function.__self__, ModuleType | type | None)
    if not isinstance(function, FunctionType):
        return True
    if (function.__module__ or "").partition(".")[0] in sys.stdlib_module_names:
        return False
    seen.add(id(function))
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    if not all(map(is_immutable, defaults)):
        return True
    names = _names(function.__code__)
    held = [value for name, value in function.__globals__.items() if name in names]
    try:
        held += [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # a cell that is empty so far
        return True
    # None, too, is often a place that is filled later.
    return any(
        each is None or not (isinstance(each, ModuleType) or is_immutable(each) or not _may_keep(each, seen))
        for each in held
    )


def _names(code: CodeType) -> set[str]:
    inner = [_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    return {*code.co_names, *(name for names in inner for name in names)}


@dataclass(frozen=True)
class FunctionDeclaration:
    """Declares an operator with one input that calls a user's function."""

    function: Any
    inputs: ClassVar[int] = 1
    is_keyed: ClassVar[bool] = False


@dataclass(frozen=True)
class KeyedFunctionDeclaration(FunctionDeclaration):
    """Declares one whose function may use state of the record's key."""

    key_selector: Any
    is_keyed: ClassVar[bool] = True


class FunctionOperator(Operator):
    """An operator around one user function.

    Args:
        function: What the operator is for; None if there is none of the user's.
        others: More functions of the user's that share its life.
    """

    def __init__(self, function: Any, *others: Any) -> None:
        self.function = function
        self._checkpointed = as_checkpointed(function)
        self._rich = [each for each in (function, *others) if is_rich(each)]
        self._listeners = [
            each
            for outer in (function, *others)
            for each in layers(outer)
            if isinstance(each, CheckpointListener)
        ]
        #: Functions, those within others included, each with its own fields as `open` left them.
        self._fields: list[tuple[Any, FunctionFields]] = []
        self._is_lasting = False

    def open(self, context: OperatorContext) -> None:
        self.context = context
        inner = [each for function in self._rich for each in layers(function) if is_rich(each)]
        self._fields = [(each, FunctionFields(each, apart_from=inner)) for each in inner]
        for function in self._rich:
            try:
                self.completed(function.open(RuntimeContext(context)))
            except Exception as error:
                raise self.located(error, None, "open()") from error
        for _, own_fields in self._fields:
            own_fields.opened()

    def begin_epoch(self, place: EpochPlace) -> None:
        self._epoch = place.epoch
        self._is_lasting = place.is_lasting
        if place.is_continued:
            return
        if self._checkpointed is not None and not is_rich(self.function):
            self._initialize()
        for index, (function, own_fields) in enumerate(self._fields):
            is_checkpointed = function is self.function and self._checkpointed is not None
            unreadable = own_fields.begin(
                self.context.operator_state.of_subtask(f"{_FIELDS}{index}"),
                self._initialize if is_checkpointed else None,
            )
            for name in unreadable:
                self.context.warn(
                    f"{self._who(function)}: field {name} cannot be restored and starts as open() sets it: the "
                    "class of its value is not the one that was stored"
                )

    def end_epoch(self) -> Sequence[Any]:
        if self._checkpointed is not None:
            try:
                self._checkpointed.snapshot_state(FunctionSnapshotContext(self._epoch))
            except Exception as error:
                raise self.located(error, None, "snapshot_state()") from error
            self.context.operator_state.put(_HAS_SNAPSHOT, True)
        for index, (function, own_fields) in enumerate(self._fields):
            stored, lost, only_here = own_fields.end()
            self.context.operator_state.put_of_subtask(f"{_FIELDS}{index}", stored)
            if self._is_lasting:
                lost = only_here = []  # they are there until the run ends
            if lost or only_here or (stored is not None and len(stored) > _MANY_BYTES):
                self._warn_about_fields(function, stored or b"", lost, only_here)
        return ()

    def notify_checkpoint(self, checkpoint_id: int, *, is_complete: bool) -> None:
        name = "notify_checkpoint_complete" if is_complete else "notify_checkpoint_aborted"
        for listener in self._listeners:
            try:
                getattr(listener, name)(checkpoint_id)
            except Exception as error:
                raise self.located(error, None, f"{name}()") from error

    def _initialize(self) -> None:
        assert self._checkpointed is not None
        context = FunctionInitializationContext(self.context, is_restored=self._has_snapshot())
        try:
            self._checkpointed.initialize_state(context)
        except Exception as error:
            raise self.located(error, None, "initialize_state()") from error

    def _warn_about_fields(
        self, function: Any, stored: bytes, lost: Sequence[str], only_here: Sequence[str]
    ) -> None:
        who = self._who(function)
        for name in lost:
            self.context.warn(
                f"{who} changed its own field {name}, which cannot be pickled and does not survive from one epoch to "
                "the next: keep the value in state"
            )
        for name in only_here:
            self.context.warn(
                f"{who} modified its field {name}, which exists on this worker only; use that only as a "
                "cache and keep everything else in state"
            )
        if len(stored) > _MANY_BYTES:
            self.context.warn(
                f"{who} has more than {_MANY_BYTES // 1024**2} MB in its own fields, which are written with every "
                "epoch: keep such values in state"
            )

    def _who(self, function: Any) -> str:
        return f"operator '{self.context.place.operator_name}': {type(function).__name__}"

    def _has_snapshot(self) -> bool:
        return (
            bool(self.context.operator_state.get(_HAS_SNAPSHOT)) or self.context.operator_state.has_restored
        )

    def close(self) -> None:
        with ExitStack() as closing:  # each of them, whatever the others do
            for function in reversed(self._rich):
                closing.callback(self._close, function)

    def completed(self, result: Any) -> None:
        """Take what ``open`` or ``close`` of the function returned: nothing, but of asynchronous ones."""

    def _close(self, function: Any) -> None:
        try:
            self.completed(function.close())
        except Exception as error:
            raise self.located(error, None, "close()") from error

    def failed(self, error: Exception, rest: Iterator[Any], values: Sequence[Any]) -> HeadraceError:
        """Return the error to raise: located, with the record at which iteration over ``values`` stopped.

        An error of ours is raised here and now, as it is: it would become its own cause.
        """
        index = len(values) - operator.length_hint(rest) - 1
        return self.located(error, values[index] if 0 <= index < len(values) else None)

    def located(self, error: Exception, record: Any, what: str | None = None) -> HeadraceError:
        if isinstance(error, UserFunctionError) and not error.user_traceback and error.function is None:
            error.function = describe_function(self.function)
        return located(error, self.context, record, what)


class Emission:
    """What user functions have returned for the records of one batch, on its way to the output.

    A function may return None, or an iterable (it may be a generator) of results; a result is a record, or a pair of an
    output tag and a record. Unless objects are reused, what can still be changed is copied here and now.
    """

    def __init__(self, output: Output, *, object_reuse: bool) -> None:
        self._output = output
        self._object_reuse = object_reuse
        #: Records of the main output so far; loops without timestamps append to it themselves.
        self.values: list[Any] = []
        self._timestamps: list[int | None] | None = None
        self._sides: dict[str, Batch] = {}
        #: The types of what the last record was a pair of. It cannot be changed, and the next ones are likely the same:
        #: comparing two types takes half as long as looking them up.
        self.pair: tuple[type, type] = (int, int)

    def start(self, batch: Batch) -> None:
        """Get ready for the results of a batch's records."""
        self.values = []
        self._timestamps = None if batch.timestamps is None else []

    def add(self, results: Iterable[Any], timestamp: int | None = None) -> None:
        """Take the results of one call; they get the timestamp of the record that caused them."""
        append = self.values.append
        try:
            each_result = iter(results)
        except TypeError:
            raise UserFunctionError(
                f"the function returned {type(results).__name__}: {shorten(results)}; expected an iterable of results",
                hint="return a list, or yield each result; map() is for functions with one result for each record",
            ) from None
        for result in each_result:
            kind = type(result)
            if kind in ATOMS or (kind is tuple and is_all_atoms(map(type, result))):
                append(result)
            else:
                self.add_other(result, timestamp)
        if self._timestamps is not None:
            self._timestamps.extend(repeat(timestamp, len(self.values) - len(self._timestamps)))

    def add_one(self, result: Any, timestamp: int | None = None) -> None:
        """Take one result that cannot be for a side output."""
        self.values.append(result if self._object_reuse else isolated(result))
        if self._timestamps is not None:
            self._timestamps.append(timestamp)

    def add_other(self, result: Any, timestamp: int | None = None) -> None:
        """Take a result that is for a side output, or can still be changed."""
        if type(result) is tuple and len(result) == 2 and hasattr(result[0], "tag_id"):
            tag_id, value = result[0].tag_id, result[1]
            side = self._sides.get(tag_id)
            if side is None:
                has_time = self._timestamps is not None
                side = self._sides[tag_id] = Batch([], [] if has_time else None)
            side.values.append(value if self._object_reuse else isolated(value))
            if side.timestamps is not None:
                side.timestamps.append(timestamp)
        else:
            self.values.append(result if self._object_reuse else isolated(result))

    def flush(self) -> None:
        """Pass the buffered records to the next operator."""
        if self.values:
            values, timestamps = self.values, self._timestamps
            self._learn(values[-1])
            self.values = []
            self._timestamps = None
            self._output.emit(Batch(values, timestamps))
        if self._sides:
            sides, self._sides = self._sides, {}
            for tag_id, batch in sides.items():
                self._output.emit_side(tag_id, batch)

    def _learn(self, record: Any) -> None:
        if type(record) is tuple and len(record) == 2:
            first, second = map(type, record)
            if first in ATOMS and second in ATOMS:
                self.pair = (first, second)
