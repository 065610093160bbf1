"""The declaration of a window operator, which the API makes and the job carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headrace.operators.base import Operator
from headrace.operators.window.operator import WindowProcessor
from headrace.operators.window.slices import SlicedWindowProcessor, can_share_slices
from headrace.operators.window.spec import WindowComputation, WindowSpec

__all__ = ["WindowComputation", "WindowDeclaration"]


@dataclass(frozen=True)
class WindowDeclaration(WindowSpec):
    """Puts records into windows and computes each window when its trigger fires."""

    inputs: ClassVar[int] = 1
    is_keyed: ClassVar[bool] = True
    #: What may hold fields of the user's.
    function_fields: ClassVar[tuple[str, ...]] = ("computation", "assigner", "trigger", "evictor")

    def build(self) -> Operator:
        if can_share_slices(self):
            return SlicedWindowProcessor(self)
        return WindowProcessor(self)
