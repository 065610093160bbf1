"""State: where keyed state lives between epochs."""

from __future__ import annotations

from headrace.config.option import option

BACKEND = (
    option("state.backend.type", str)
    .default("hashmap")
    .describe("The local store: `hashmap` keeps state in memory of the host, `rocksdb` on its disk.")
    .deprecates("state.backend")
    .one_of("hashmap", "rocksdb")
)
LOCAL_DIRECTORY = (
    option("headrace.state.local-dir", str)
    .no_default("a memory file system for hashmap, the temporary directory for rocksdb")
    .describe("Where a host keeps its copy of state. If it is lost, it is rebuilt from checkpoints.")
)
CACHE_ENTRIES = (
    option("headrace.state.cache-entries", int)
    .default(1_000_000)
    .describe("How many decoded objects a worker keeps between epochs. 0 keeps none.")
    .at_least(0)
)
COMPACTION_MAX_CHANGES = (
    option("headrace.state.compaction.max-changes", int)
    .default(16)
    .describe("How many change files may follow a base snapshot before a new base is written.")
    .at_least(1)
)
CHANGELOG = (
    option("state.changelog.enabled", bool)
    .default(False)
    .describe("Whether changes of state are written continuously.")
    .deprecates("state.backend.changelog.enabled")
    .without_effect("every epoch writes its changes, and only them")
)
