from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.config import Configuration
from headrace.datastream.execution_context import ExecutionContext
from tests.unit.runtime.fakes import published


@pytest.fixture(autouse=True)
def _nothing_from_outside() -> Iterator[None]:
    with ExecutionContext(Configuration()).entered():
        yield
    published.clear()
