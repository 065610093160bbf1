from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest

from headrace.config import Configuration
from headrace.datastream.stream_execution_environment import set_default_configuration
from tests.unit.runtime.fakes import published

#: Where Linux keeps files in memory.
IN_MEMORY = "/dev/shm"


@pytest.fixture(scope="module", autouse=True)
def _state_in_memory() -> Iterator[None]:
    """Let jobs keep their files in memory: many of them come and go."""
    before = tempfile.tempdir
    if os.access(IN_MEMORY, os.W_OK):
        tempfile.tempdir = IN_MEMORY
    yield
    tempfile.tempdir = before


@pytest.fixture(autouse=True)
def _nothing_from_outside() -> Iterator[None]:
    set_default_configuration(Configuration())
    yield
    set_default_configuration(None)
    published.clear()
