"""Small declarations of the DataStream API: tags, slot groups, backends, storage."""

from __future__ import annotations

import pickle

import pytest

from headrace.common import Types
from headrace.config import Configuration
from headrace.config.options import checkpointing, rocksdb, state
from headrace.datastream.checkpoint_storage import (
    CheckpointStorage,
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from headrace.datastream.output_tag import OutputTag
from headrace.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from headrace.datastream.state_backend import (
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StateBackend,
)
from headrace.errors import JobDefinitionError, UnsupportedFeatureError


def test_tags_with_the_same_id_are_the_same_output():
    assert OutputTag("late", Types.STRING()) == OutputTag("late")
    assert OutputTag("late") != OutputTag("early")
    assert OutputTag("late") != "late"
    assert len({OutputTag("late"), OutputTag("late", Types.INT())}) == 1
    assert repr(OutputTag("late", Types.STRING())) == "OutputTag('late', STRING)"


def test_a_tag_knows_its_type():
    assert OutputTag("a").type_info == Types.PICKLED_BYTE_ARRAY()
    assert OutputTag("a", [Types.INT()]).type_info == Types.ROW([Types.INT()])
    copy = pickle.loads(pickle.dumps(OutputTag("a", Types.INT())))
    assert (copy.tag_id, copy.type_info) == ("a", Types.INT())


@pytest.mark.parametrize("tag_id", ["", None, 5])
def test_a_tag_needs_a_name(tag_id):
    with pytest.raises(JobDefinitionError, match="a name that is not empty"):
        OutputTag(tag_id)


def test_a_tag_needs_type_information():
    with pytest.raises(JobDefinitionError, match="OutputTag 'a': expected type information; got 'STRING'"):
        OutputTag("a", "STRING")


def test_a_slot_group_keeps_what_it_asks_for():
    group = (
        SlotSharingGroup.builder("g")
        .set_cpu_cores(1)
        .set_task_heap_memory(MemorySize.of_mebi_bytes(100))
        .set_task_off_heap_memory_mb(10)
        .set_managed_memory_mb(20)
        .set_external_resource("gpu", 1)
        .build()
    )
    assert group.get_name() == "g"
    assert group.get_cpu_cores() == 1.0
    assert group.get_task_heap_memory() == MemorySize.parse("100 mb")
    assert group.get_task_off_heap_memory() == MemorySize.parse("10 mb")
    assert group.get_managed_memory() == MemorySize.parse("20 mb")
    assert group.get_external_resources() == {"gpu": 1.0}
    assert pickle.loads(pickle.dumps(group)) == group
    assert group != SlotSharingGroup.builder("g").build()
    assert len({group, group}) == 1


def test_a_slot_group_may_ask_for_nothing_or_for_cores_and_heap():
    assert SlotSharingGroup.builder("g").build().get_cpu_cores() is None
    with pytest.raises(JobDefinitionError, match="must ask for cores and heap memory"):
        SlotSharingGroup.builder("g").set_managed_memory_mb(5).build()
    with pytest.raises(JobDefinitionError, match="more than 0 cores; got 0"):
        SlotSharingGroup.builder("g").set_cpu_cores(0)


def test_backends_become_configuration():
    assert Configuration(HashMapStateBackend().to_dict()).get(state.BACKEND) == "hashmap"
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths("/ssd/a", "/ssd/b")
    config = Configuration(backend.to_dict())
    assert config.get(state.BACKEND) == "rocksdb"
    assert config.get(rocksdb.LOCAL_DIRECTORIES) == ["/ssd/a", "/ssd/b"]


def test_rocksdb_keeps_what_programs_set():
    backend = EmbeddedRocksDBStateBackend(False)
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    backend.set_number_of_transfer_threads(2)
    assert not backend.is_incremental_checkpoints_enabled()
    assert not EmbeddedRocksDBStateBackend().is_incremental_checkpoints_enabled()
    assert backend.get_predefined_options() is PredefinedOptions.FLASH_SSD_OPTIMIZED
    assert backend.get_number_of_transfer_threads() == 2
    assert backend.get_db_storage_paths() == []
    assert backend.get_options() is None
    with pytest.raises(JobDefinitionError, match="at least 1; got 0"):
        backend.set_number_of_transfer_threads(0)


def test_storages_become_configuration():
    config = Configuration(FileSystemCheckpointStorage("s3://b/c").to_dict())
    assert config.get(checkpointing.DIRECTORY) == "s3://b/c"
    assert Configuration(JobManagerCheckpointStorage().to_dict()).get(checkpointing.STORAGE) == "jobmanager"
    assert JobManagerCheckpointStorage("/c").to_dict()["execution.checkpointing.dir"] == "/c"


def test_storages_keep_what_programs_set():
    files = FileSystemCheckpointStorage("/c", 100, 200)
    assert (files.get_checkpoint_path(), files.get_savepoint_path()) == ("/c", None)
    assert (files.get_min_file_size_threshold(), files.get_write_buffer_size()) == (100, 200)
    memory = JobManagerCheckpointStorage()
    assert memory.get_max_state_size() == JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE
    assert (memory.get_checkpoint_path(), memory.get_savepoint_path()) == (None, None)


def test_senseless_storages_are_refused():
    with pytest.raises(JobDefinitionError, match="expected a checkpoint_path"):
        FileSystemCheckpointStorage()
    with pytest.raises(JobDefinitionError, match="file_state_size_threshold: expected 0 to 1048576"):
        FileSystemCheckpointStorage("/c", 2**30)
    with pytest.raises(JobDefinitionError, match="max_state_size"):
        JobManagerCheckpointStorage(max_state_size=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CustomStateBackend(None),
        lambda: CustomCheckpointStorage(None),
        lambda: EmbeddedRocksDBStateBackend().set_options("org.example.Options"),
        lambda: OutputTag("a").get_java_output_tag(),
        lambda: SlotSharingGroup.builder("a").build().get_java_slot_sharing_group(),
        lambda: MemorySize(1).get_java_memory_size(),
    ],
)
def test_what_needs_java_is_not_there(make):
    with pytest.raises(UnsupportedFeatureError):
        make()


def test_backends_and_storages_of_ones_own_must_say_how():
    with pytest.raises(NotImplementedError):
        StateBackend().to_dict()
    with pytest.raises(NotImplementedError):
        CheckpointStorage().to_dict()
