from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.config import Configuration
from headrace.datastream.stream_execution_environment import set_default_configuration
from tests.unit.runtime.fakes import published


@pytest.fixture(autouse=True)
def _nothing_from_outside() -> Iterator[None]:
    set_default_configuration(Configuration())
    yield
    set_default_configuration(None)
    published.clear()
