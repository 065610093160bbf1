from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.config import Configuration
from headrace.config.options import rocksdb, state
from headrace.config.options.rocksdb import CompactionStyle
from headrace.config.registry import subjects
from headrace.errors import ConfigurationError, UnsupportedFeatureError
from headrace.state.handles import StateChain
from headrace.state.stores.factory import make_store
from headrace.state.stores.lmdb import LmdbStore
from headrace.state.stores.rocksdb import RocksDBStore
from headrace.state.stores.settings import RocksDBSettings, StoreSettings, store_settings
from tests.unit.state.chains import ChainWriter

A = b"\x00\x01a"
MB = 1 << 20


def rocksdb_settings(**values: str) -> RocksDBSettings:
    """Keys are given without their prefix, with _ for . and -."""
    keys = {
        option.key.removeprefix("state.backend.rocksdb.").replace(".", "_").replace("-", "_"): option.key
        for option in subjects()["rocksdb"]
    }
    named = {keys[name]: value for name, value in values.items()}
    settings = store_settings(Configuration({"state.backend.type": "rocksdb", **named})).rocksdb
    assert settings is not None
    return settings


def test_hashmap_is_the_default(tmp_path: Path) -> None:
    settings = store_settings(Configuration({}))
    assert settings == StoreSettings()
    assert settings.prefers_memory
    store = make_store(settings, str(tmp_path / "copy"))
    assert isinstance(store, LmdbStore)
    store.close()


def test_rocksdb_has_the_defaults_that_its_options_name(tmp_path: Path) -> None:
    settings = store_settings(Configuration({"state.backend.type": "rocksdb"}))
    assert settings == StoreSettings(rocksdb=RocksDBSettings())
    assert not settings.prefers_memory
    assert isinstance(make_store(settings, str(tmp_path / "copy")), RocksDBStore)


def test_options_become_settings() -> None:
    assert rocksdb_settings(
        memory_managed="false",
        memory_write_buffer_ratio="0.25",
        memory_partitioned_index_filters="true",
        block_cache_size="16 mb",
        block_blocksize="8 kb",
        block_metadata_blocksize="2 kb",
        writebuffer_size="32 mb",
        writebuffer_count="5",
        writebuffer_number_to_merge="3",
        write_batch_size="1 mb",
        use_bloom_filter="true",
        bloom_filter_bits_per_key="12.0",
        bloom_filter_block_based_mode="true",
        compaction_style="UNIVERSAL",
        compaction_level_use_dynamic_size="true",
        compaction_level_target_file_size_base="1 mb",
        compaction_level_max_size_level_base="10 mb",
        compression_per_level="NO_COMPRESSION;LZ4_COMPRESSION",
        thread_num="3",
        files_open="100",
        log_dir="/logs",
        log_max_file_size="1 mb",
        log_file_num="2",
    ) == RocksDBSettings(
        shared_memory=None,
        write_buffer_ratio=0.25,
        has_partitioned_filters=True,
        block_cache_size=16 * MB,
        block_size=8 << 10,
        metadata_block_size=2 << 10,
        write_buffer_size=32 * MB,
        write_buffers=5,
        write_buffers_to_merge=3,
        write_batch_size=MB,
        bloom_bits=12,
        is_bloom_per_block=True,
        compaction=CompactionStyle.UNIVERSAL,
        has_dynamic_levels=True,
        target_file_size=MB,
        level_base_size=10 * MB,
        compression=("none", "lz4"),
        threads=3,
        open_files=100,
        log_directory="/logs",
        log_max_file_size=MB,
        log_files=2,
    )


def test_fixed_memory_counts_before_managed() -> None:
    assert rocksdb_settings().shared_memory == 128 * MB
    assert rocksdb_settings(memory_fixed_per_slot="7 mb").shared_memory == 7 * MB
    assert rocksdb_settings(memory_fixed_per_slot="7 mb", memory_managed="false").shared_memory == 7 * MB
    assert rocksdb_settings(memory_managed="false").shared_memory is None


def test_options_count_before_predefined_ones() -> None:
    bundle = "SPINNING_DISK_OPTIMIZED_HIGH_MEM"
    high = rocksdb_settings(predefined_options=bundle)
    assert (high.threads, high.write_buffers, high.block_size) == (4, 4, 128 << 10)
    assert rocksdb_settings(predefined_options=bundle, thread_num="1") == replace(high, threads=1)
    assert rocksdb_settings(predefined_options="DEFAULT") == RocksDBSettings()


def test_directories_of_rocksdb_count_before_those_of_any_store() -> None:
    both = {"headrace.state.local-dir": "/any", "state.backend.rocksdb.localdir": "/a,/b"}
    assert store_settings(Configuration(both)).directories == ("/any",)
    assert store_settings(Configuration({**both, "state.backend.type": "rocksdb"})).directories == (
        "/a",
        "/b",
    )


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("memory.fixed-per-tm", "1 gb", "processes cannot share a cache"),
        ("memory.high-prio-pool-ratio", "0.1", "rocksdict cannot set it"),
        ("options-factory", "org.example.Factory", "it names a Java class"),
        ("log.level", "DEBUG_LEVEL", "rocksdict cannot set it"),
        ("compaction.style", "FIFO", "deletes the oldest files"),
        ("timer-service.factory", "HEAP", "timers are stored with the rest"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(key: str, value: str, why: str) -> None:
    key = f"state.backend.rocksdb.{key}"
    with pytest.raises(UnsupportedFeatureError, match=rf"{key}: .*{why}"):
        store_settings(Configuration({"state.backend.type": "rocksdb", key: value}))
    store_settings(Configuration({key: value}))  # it is nothing to hashmap


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"compression_per_level": "XPRESS_COMPRESSION"},
            "expected one of NO_COMPRESSION, .* got 'XPRESS_COMPRESSION'",
        ),
        ({"writebuffer_number_to_merge": "2"}, "must be less than .*writebuffer.count, 2; got 2"),
        ({"memory_fixed_per_slot": "0"}, "more than 0 bytes"),
        ({"bloom_filter_bits_per_key": "9.5"}, "a whole number from 1 on"),
    ],
)
def test_senseless_values_are_refused(values: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        rocksdb_settings(**values)


def test_an_unknown_key_of_rocksdb_is_an_error_with_the_nearest_one() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Configuration({"state.backend.rocksdb.write-buffer.size": "1 mb"})
    assert raised.value.hint == "did you mean 'state.backend.rocksdb.writebuffer.size'?"


@pytest.mark.parametrize(
    "values",
    [
        {"memory_managed": "false"},
        {"memory_managed": "false", "memory_partitioned_index_filters": "true"},
        {"memory_partitioned_index_filters": "true", "use_bloom_filter": "false"},
        {"memory_write_buffer_ratio": "0"},
        {"memory_write_buffer_ratio": "1"},
        {"predefined_options": "SPINNING_DISK_OPTIMIZED"},
        {"predefined_options": "SPINNING_DISK_OPTIMIZED_HIGH_MEM"},
        {"predefined_options": "FLASH_SSD_OPTIMIZED"},
        {"compaction_style": "UNIVERSAL"},
        {"compaction_style": "NONE"},
        {"compaction_level_use_dynamic_size": "true"},
        {"compression_per_level": "NO_COMPRESSION;LZ4_COMPRESSION;ZSTD_COMPRESSION"},
        {"compression_per_level": "ZLIB_COMPRESSION;BZLIB2_COMPRESSION;LZ4HC_COMPRESSION;SNAPPY_COMPRESSION"},
        {"files_open": "10", "thread_num": "1", "writebuffer_count": "1"},
        {"bloom_filter_block_based_mode": "true"},
        {"log_max_file_size": "0"},
    ],
)
def test_rocksdb_works_with_all_settings(values: dict[str, str], tmp_path: Path) -> None:
    writer = ChainWriter(tmp_path / "state")
    store = RocksDBStore(str(tmp_path / "copy"), rocksdb_settings(**values))
    chain = StateChain("line")
    for version in range(1, 12):
        chain = writer.change(version, s={A + b"%d" % n: b"%d" % version for n in range(version, 50)})
        store.catch_up(chain, range(128))
        store.release()
    store.catch_up(chain, range(128))
    expected: dict[bytes, Any] = {A + b"%d" % n: b"%d" % min(n, 11) for n in range(1, 50)}
    assert dict(store.scan("s")) == expected
    store.close()


def test_settings_count_for_a_copy_that_is_there_already(tmp_path: Path) -> None:
    writer = ChainWriter(tmp_path / "state")
    for size, expected in (("1 mb", MB), ("3 mb", 3 * MB)):
        settings = rocksdb_settings(memory_managed="false", block_cache_size=size)
        store = RocksDBStore(str(tmp_path / "copy"), settings)
        store.catch_up(writer.change(expected, s={A: b"1"}), range(128))
        assert store._opened().property_int_value("rocksdb.block-cache-capacity") == expected
        store.close()


def test_copies_of_a_process_share_their_memory(tmp_path: Path) -> None:
    settings = rocksdb_settings(memory_fixed_per_slot="6 mb")
    stores = [RocksDBStore(str(tmp_path / name), settings) for name in "ab"]
    writer = ChainWriter(tmp_path / "state")
    chain = writer.change(1, s={A + b"%d" % n: b"x" * 100 for n in range(1000)})
    usages = []
    for store in stores:
        store.catch_up(chain, range(128))
        dict(store.scan("s"))
    for store in stores:
        database = store._opened()
        assert (
            database.property_int_value("rocksdb.block-cache-capacity") == 5 * MB
        )  # write buffers are in it
        usages.append(database.property_int_value("rocksdb.block-cache-usage"))
        store.close()
    assert usages[0] == usages[1] != 0


def test_what_a_process_has_read_is_in_memory_in_the_next_epoch(tmp_path: Path) -> None:
    store = RocksDBStore(str(tmp_path / "copy"), rocksdb_settings(memory_fixed_per_slot="9 mb"))
    chain = ChainWriter(tmp_path / "state").change(1, s={A + b"%d" % n: bytes(1000) for n in range(2000)})
    used = []
    for _ in range(3):
        store.catch_up(chain, range(128))
        assert len(dict(store.scan("s"))) == 2000
        used.append(store._opened().property_int_value("rocksdb.block-cache-usage") or 0)
        store.release()
    # Blocks under other names would be there as often as the copy was opened.
    assert used[2] < used[0] * 1.2


def test_what_rocksdb_does_is_written_where_it_should_be(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    store = RocksDBStore(str(tmp_path / "copy"), rocksdb_settings(log_dir=str(tmp_path / "logs")))
    store.catch_up(StateChain("line"), range(128))
    store.close()
    assert list((tmp_path / "logs").iterdir())


def test_every_option_of_rocksdb_says_where_it_stands() -> None:
    """One that is neither read into settings nor refused nor said to be without effect would be a lie."""
    source = Path(store_settings.__code__.co_filename).read_text(encoding="utf-8")
    for name, option in vars(rocksdb).items():
        if name.isupper() and not name.startswith("_") and not option.no_effect:
            assert f"rocksdb.{name}" in source, option.key
    assert state.BACKEND.allowed == ("hashmap", "rocksdb")
