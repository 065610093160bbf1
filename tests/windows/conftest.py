from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest

#: Where Linux keeps files in memory.
IN_MEMORY = "/dev/shm"


@pytest.fixture(scope="module", autouse=True)
def _state_in_memory() -> Iterator[None]:
    """Let harnesses keep their files in memory: thousands of them come and go."""
    before = tempfile.tempdir
    if os.access(IN_MEMORY, os.W_OK):
        tempfile.tempdir = IN_MEMORY
    yield
    tempfile.tempdir = before
