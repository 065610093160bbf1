"""A process beyond its limit gets an error that says what to do."""

from __future__ import annotations

import subprocess
import sys

from headrace.runtime.task.memory_limit import explain_memory_error

PROGRAM = """
import pyarrow as pa
from headrace.runtime.task.memory_limit import apply_memory_limit, explain_memory_error

apply_memory_limit(300 << 20)
for allocate in (lambda: bytearray(400 << 20), lambda: pa.allocate_buffer(400 << 20)):
    try:
        allocate()
    except MemoryError as error:
        try:
            raise RuntimeError("no room") from error
        except RuntimeError as wrapped:
            print(explain_memory_error(wrapped).split(":")[0])
apply_memory_limit(None)
print(len(bytearray(400 << 20)))
"""


def test_allocations_beyond_the_limit_fail_until_it_is_lifted():
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    said = "this Python worker may allocate 300 MB"
    assert done.stdout.splitlines() == [said, said, str(400 << 20)]


def test_other_errors_have_nothing_to_do_with_it():
    assert explain_memory_error(ValueError("no")) is None
