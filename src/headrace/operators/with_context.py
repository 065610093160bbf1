"""Operators without a key of their own whose functions get a context with each record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.elements import Batch
from headrace.operators.context import OperatorContext
from headrace.operators.functions import Emission, FunctionOperator
from headrace.operators.process_context import ProcessContext

#: Takes a record and its context, and returns the results.
ContextCall = Callable[[Any, Any], Iterable[Any] | None]


class ContextOperator(FunctionOperator):
    """Calls a function with each record of a batch and a context."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._emission = Emission(self.output, object_reuse=context.object_reuse)

    def call_each(self, batch: Batch, call: ContextCall, context: ProcessContext) -> None:
        """Call with each record in turn, and emit what the calls return."""
        rest = iter(batch.values)
        emission = self._emission
        emission.start(batch)
        try:
            for value, timestamp in zip(rest, context.times_of(batch), strict=False):
                context.now_at = timestamp
                results = call(value, context)
                if results is not None:
                    emission.add(results, timestamp)
        except Exception as error:
            raise self.failed(error, rest, batch.values) from error
        emission.flush()
