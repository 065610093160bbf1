"""State that is ten times larger than the memory it may take: written, read, scanned and compacted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.state.changes import KEY_GROUP_PREFIX, write_sections

GROUPS = 128
VALUE_BYTES = 1_000
#: Beside RocksDB's caches: a key group as it is read, batches, and what the allocator keeps.
SLACK = 32 << 20

#: Takes a base, the limit and where to work; prints what it found and how much memory it took beyond its start.
PROGRAM = """
import json, os, random, sys
from headrace.state.changes import write_change, column_of, KEY_GROUP_PREFIX
from headrace.state.compaction import compact
from headrace.state.handles import StateChain, StateFile
from headrace.state.stores.factory import make_store
from headrace.state.stores.settings import RocksDBSettings, StoreSettings

def memory(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(field))

base, size, limit, directory = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
per_group = int(sys.argv[5])
chain = StateChain("line", (StateFile(base, 0, 1, size, is_base=True),))
store = make_store(StoreSettings(rocksdb=RocksDBSettings(shared_memory=limit)), directory + "/copy")
started = memory("VmRSS")
store.catch_up(chain, range(128))
chance = random.Random(1)
found = 0
for epoch in range(2, 5):
    read = store.reader("s")
    changed = {}
    for _ in range(2_000):
        key = KEY_GROUP_PREFIX[chance.randrange(128)] + chance.randrange(per_group).to_bytes(4, "big")
        found += read(key) is not None
        changed[key] = os.urandom(1_000)
    store.release()
    path = f"{directory}/{epoch}.change"
    size = write_change(path, {"s": column_of(list(changed), list(changed.values()))})
    chain = chain.append(StateFile(path, epoch - 1, epoch, size))
    store.catch_up(chain, range(128))
scanned = sum(1 for _ in store.scan("s"))
store.close()
compact(chain.files, directory + "/new.base")
print(json.dumps({"found": found, "scanned": scanned, "taken": memory("VmHWM") - started}))
"""


@pytest.mark.parametrize(
    ("state_bytes", "limit"),
    [
        pytest.param(48 << 20, 4 << 20, id="48 MiB in 4"),
        pytest.param(640 << 20, 64 << 20, id="640 MiB in 64", marks=pytest.mark.slow),
    ],
)
@pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="measured by Linux's account of a process"
)
def test_memory_is_bounded_by_options_and_not_by_state(state_bytes: int, limit: int, tmp_path: Path) -> None:
    per_group = state_bytes // GROUPS // VALUE_BYTES
    base = str(tmp_path / "1.base")
    size = write_sections(
        base,
        (
            (
                group,
                {"s": ([prefix + n.to_bytes(4, "big") for n in range(per_group)], random_values(per_group))},
            )
            for group, prefix in enumerate(KEY_GROUP_PREFIX[:GROUPS])
        ),
    )
    arguments = [base, str(size), str(limit), str(tmp_path), str(per_group)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["found"] == 6_000
    assert report["scanned"] == GROUPS * per_group
    assert report["taken"] < limit + SLACK, f"{report['taken'] >> 20} MiB for a limit of {limit >> 20} MiB"


def random_values(count: int) -> list[bytes | None]:
    """Values that do not compress, so that the state is as large on disk as it is said to be."""
    return [os.urandom(VALUE_BYTES) for _ in range(count)]
