"""Operators without a key: map, flat map, filter and process."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

from headrace.elements import Batch, ColumnBatch
from headrace.operators.base import Operator
from headrace.operators.context import OperatorContext
from headrace.operators.functions import (
    Emission,
    FunctionDeclaration,
    FunctionOperator,
    may_keep_results,
    method_of,
)
from headrace.operators.process_context import ProcessContext
from headrace.operators.with_context import ContextOperator
from headrace.state.isolation import isolated


@dataclass(frozen=True)
class MapDeclaration(FunctionDeclaration):
    """One record in, one record out."""

    def build(self) -> Operator:
        return Mapper(self.function)


@dataclass(frozen=True)
class ProjectDeclaration(FunctionDeclaration):
    """Keeps some fields of rows and tuples; the function has the ``indexes``, and a ``map`` for one record."""

    def build(self) -> Operator:
        return Projector(self.function)


@dataclass(frozen=True)
class FlatMapDeclaration(FunctionDeclaration):
    """One record in, any number out."""

    def build(self) -> Operator:
        return FlatMapper(self.function)


@dataclass(frozen=True)
class FilterDeclaration(FunctionDeclaration):
    """Keeps the records for which the function says so."""

    def build(self) -> Operator:
        return Filterer(self.function)


@dataclass(frozen=True)
class ProcessDeclaration(FunctionDeclaration):
    """A ProcessFunction: records with their context, side outputs."""

    def build(self) -> Operator:
        return Processor(self.function)


class Mapper(FunctionOperator):
    """Runs a map function over whole batches."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._isolates = not context.object_reuse and may_keep_results(self.function)

    def process(self, batch: Batch) -> None:
        rest = iter(batch.values)
        results = map(method_of(self.function, "map"), rest)
        try:
            # A result that the next call may change is copied before that call.
            values = list(map(isolated, results) if self._isolates else results)
        except Exception as error:
            raise self.failed(error, rest, batch.values) from error
        self.output.emit(Batch(values, batch.timestamps))


class Projector(Mapper):
    """Keeps some fields; of rows that are still columns, it keeps the columns."""

    def process(self, batch: Batch) -> None:
        if isinstance(batch, ColumnBatch) and batch.is_untouched:
            try:
                kept = batch.columns.select(self.function.indexes)
            except IndexError as error:
                raise self.located(error, batch.values[0]) from error
            self.output.emit(ColumnBatch(kept))
        else:
            super().process(batch)


class Filterer(FunctionOperator):
    """Runs a filter function over whole batches."""

    def process(self, batch: Batch) -> None:
        rest = iter(batch.values)
        timestamps = batch.timestamps
        try:
            if timestamps is None:
                values = list(filter(method_of(self.function, "filter"), rest))
            else:
                keep = list(map(method_of(self.function, "filter"), rest))
                values = list(compress(batch.values, keep))
                timestamps = list(compress(timestamps, keep))
        except Exception as error:
            raise self.failed(error, rest, batch.values) from error
        if values:
            self.output.emit(Batch(values, timestamps))


class FlatMapper(FunctionOperator):
    """Runs a flat map function; it may return any iterable, be a generator, or return nothing."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._emission = Emission(self.output, object_reuse=context.object_reuse)

    def process(self, batch: Batch) -> None:
        rest = iter(batch.values)
        call = method_of(self.function, "flat_map")
        emission = self._emission
        emission.start(batch)
        add = emission.add
        try:
            if batch.timestamps is None:
                for value in rest:
                    results = call(value)
                    if results is not None:
                        add(results)
            else:
                for value, timestamp in zip(rest, batch.timestamps, strict=True):
                    results = call(value)
                    if results is not None:
                        add(results, timestamp)
        except Exception as error:
            raise self.failed(error, rest, batch.values) from error
        emission.flush()


class Processor(ContextOperator):
    def open(self, context: OperatorContext) -> None:
        self._process_context = ProcessContext(context)
        super().open(context)

    def process(self, batch: Batch) -> None:
        self.call_each(batch, method_of(self.function, "process_element"), self._process_context)
