from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from headrace.common import Configuration, Row, Types, WatermarkStrategy
from headrace.common.typeinfo import RowDataTypeInfo
from headrace.config import Configuration as LayeredConfiguration
from headrace.config import Layer
from headrace.config.options import checkpointing, execution, python, rocksdb, state
from headrace.connectors.collection import CollectionSource
from headrace.connectors.file import FileSource, StreamFormat
from headrace.connectors.file.csv import CsvReaderFormat, CsvSchema
from headrace.connectors.hybrid import HybridSource
from headrace.connectors.kafka import KafkaSource
from headrace.connectors.sequence import NumberSequenceSource
from headrace.datastream import (
    CheckpointingMode,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    RuntimeExecutionMode,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from headrace.datastream.execution_context import ExecutionContext
from headrace.errors import (
    ConfigurationError,
    InvalidTopologyError,
    JobDefinitionError,
    TypeInferenceError,
    UnsupportedFeatureError,
)
from headrace.formats.json import JsonRowDeserializationSchema
from headrace.operators.io import SourceDeclaration
from headrace.runtime.checkpoint.settings import CheckpointSettings
from tests.unit.datastream.fakes import FakeJob, make_env, stream_graph


def test_execute_submits_the_job_and_returns_its_result(
    env: StreamExecutionEnvironment, jobs: list[FakeJob]
) -> None:
    env.from_collection([1, 2]).map(str).print()

    result = env.execute("numbers")

    (job,) = jobs
    assert result.get_job_id() == job.job_id
    assert job.job_graph.name == "numbers"
    assert [vertex.name for vertex in job.job_graph.vertices] == [
        "Source: Collection Source",
        "Map -> Sink: Print to Std. Out",
    ]


def test_every_job_has_its_own_id_and_its_own_steps(
    env: StreamExecutionEnvironment, jobs: list[FakeJob]
) -> None:
    stream = env.from_collection([1])
    stream.map(str)
    env.execute()
    stream.map(abs)
    env.execute()

    first, second = (job.job_graph for job in jobs)
    assert first.job_id != second.job_id
    assert [len(graph.vertices) for graph in (first, second)] == [2, 2]
    with pytest.raises(InvalidTopologyError, match="no operators defined"):
        env.execute()


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        (None, {}, "Flink Streaming Job"),
        (None, {"pipeline.name": "configured"}, "configured"),
        ("given", {"pipeline.name": "configured"}, "given"),
    ],
)
def test_the_name_of_a_job(
    jobs: list[FakeJob], name: str | None, settings: dict[str, str], expected: str
) -> None:
    env = make_env(**settings)
    env.from_collection([1]).map(str)
    env.execute(name)
    assert jobs[0].job_graph.name == expected


def test_execute_async_returns_a_client(env: StreamExecutionEnvironment, jobs: list[FakeJob]) -> None:
    env.from_collection([1]).map(str)
    client = env.execute_async()
    assert client.get_job_id() == jobs[0].job_id
    assert jobs[0].job_graph.name == "Flink Streaming Job"


def test_the_plan_is_flinks_json_and_runs_nothing(
    env: StreamExecutionEnvironment, jobs: list[FakeJob]
) -> None:
    env.from_collection([1]).key_by(abs).sum().print()

    plan = json.loads(env.get_execution_plan())

    assert [(node["pact"], node["type"]) for node in plan["nodes"]] == [
        ("Data Source", "Source: Collection Source"),
        ("Operator", "Sum"),
        ("Data Sink", "Sink: Print to Std. Out"),
    ]
    assert jobs == []
    assert env.get_execution_plan() == env.get_execution_plan()


def test_checkpointing_is_a_matter_of_configuration(
    env: StreamExecutionEnvironment, jobs: list[FakeJob]
) -> None:
    env.enable_checkpointing(1000, CheckpointingMode.AT_LEAST_ONCE)
    assert env.get_checkpoint_interval() == 1000
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert env.get_checkpointing_consistency_mode() is CheckpointingMode.AT_LEAST_ONCE
    env.from_collection([1]).map(str)

    env.execute()

    [job] = jobs
    settings = CheckpointSettings.from_configuration(job.configuration)
    assert settings.interval_ms == 1000
    assert settings.mode is CheckpointingMode.AT_LEAST_ONCE
    assert not settings.publishes_with_checkpoints


# ---------------------------------------------------------------------------------------- configuration


def test_options_set_by_the_program_take_precedence_over_those_it_was_started_with(
    jobs: list[FakeJob],
) -> None:
    below = LayeredConfiguration().with_values(
        {"parallelism.default": 7, "pipeline.max-parallelism": 64}, layer=Layer.CLI
    )
    with ExecutionContext(below).entered():
        env = StreamExecutionEnvironment.get_execution_environment()
        assert (env.get_parallelism(), env.get_max_parallelism()) == (7, 64)
        assert env.get_config().get_parallelism() == 7

        env = StreamExecutionEnvironment.get_execution_environment(
            Configuration.from_dict({"parallelism.default": "3"})
        )
        assert (env.get_parallelism(), env.get_max_parallelism()) == (3, 64)


def test_all_layers_reach_the_executor(jobs: list[FakeJob]) -> None:
    below = LayeredConfiguration().with_values({"pipeline.max-parallelism": 64}, layer=Layer.CLI)
    with ExecutionContext(below).entered():
        env = make_env()
    env.from_collection([1]).map(str)
    env.execute()

    configuration = jobs[0].configuration
    origins = configuration.origins()
    assert origins[execution.MAX_PARALLELISM.key][0] == Layer.CLI.name
    assert origins[execution.PARALLELISM.key][0] == Layer.CODE.name


def test_unknown_keys_are_refused_at_once(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(ConfigurationError, match=r"paralelism\.default"):
        make_env(**{"paralelism.default": "2"})
    with pytest.raises(ConfigurationError, match=r"paralelism\.default"):
        env.configure(Configuration.from_dict({"paralelism.default": "2"}))
    assert env.get_parallelism() == 2


def test_settings_and_the_execution_config_are_the_same_thing(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(5).set_max_parallelism(50).set_buffer_timeout(20)
    assert (env.get_config().get_parallelism(), env.get_config().get_max_parallelism()) == (5, 50)
    env.get_config().set_parallelism(6)
    assert env.get_parallelism() == 6
    env.configure(Configuration.from_dict({"parallelism.default": "8"}))
    assert (env.get_parallelism(), env.get_buffer_timeout()) == (8, 20)


def test_a_buffer_timeout_can_be_turned_off_with_flinks_option(env: StreamExecutionEnvironment) -> None:
    env.configure(Configuration.from_dict({"execution.buffer-timeout.enabled": "false"}))
    assert env.get_buffer_timeout() == -1
    env.from_collection([1]).map(str)
    assert stream_graph(env).nodes[-1].buffer_timeout_ms == -1
    assert env.set_buffer_timeout(5).get_buffer_timeout() == 5


def test_settings_reach_the_graph(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(4).set_max_parallelism(40).set_buffer_timeout(-1).disable_operator_chaining()
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    env.get_config().enable_object_reuse().set_global_job_parameters({"a": "b"})
    env.from_collection([1]).map(str)

    graph = stream_graph(env)

    node = graph.nodes[-1]
    assert (node.parallelism, node.max_parallelism, node.buffer_timeout_ms) == (4, 40, -1)
    assert graph.is_batch
    assert not graph.settings.is_chaining_enabled
    assert graph.settings.object_reuse
    assert graph.settings.global_job_parameters == {"a": "b"}
    assert (env.is_chaining_enabled(), env.get_buffer_timeout()) == (False, -1)
    assert env.is_chaining_of_operators_with_different_max_parallelism_enabled()


@pytest.mark.parametrize("parallelism", [0, -1, "2", None])
def test_wrong_parallelism_is_refused(env: StreamExecutionEnvironment, parallelism: Any) -> None:
    with pytest.raises(JobDefinitionError, match="must be a whole number from 1"):
        env.set_parallelism(parallelism)
    with pytest.raises(JobDefinitionError, match="must be a whole number from 1"):
        env.set_default_local_parallelism(parallelism)


def test_the_default_parallelism_is_the_number_of_cores() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.get_parallelism() == env.get_default_local_parallelism()
    env.set_default_local_parallelism(3)
    assert (env.get_default_local_parallelism(), env.get_parallelism()) == (3, 3)


def test_slot_sharing_groups_are_registered_once(env: StreamExecutionEnvironment) -> None:
    def group(mb: int) -> SlotSharingGroup:
        return SlotSharingGroup.builder("g").set_cpu_cores(1.0).set_task_heap_memory_mb(mb).build()

    env.register_slot_sharing_group(group(1)).register_slot_sharing_group(group(1))
    with pytest.raises(JobDefinitionError, match="'g' is registered with other resources"):
        env.register_slot_sharing_group(group(2))
    with pytest.raises(JobDefinitionError, match="expected a SlotSharingGroup, got str 'g'"):
        env.register_slot_sharing_group("g")  # type: ignore[arg-type]


def test_dependencies_are_recorded(env: StreamExecutionEnvironment) -> None:
    env.add_python_file("a.py")
    env.add_python_file("b.zip")
    env.add_python_archive("data.zip")
    env.add_python_archive("model.zip", "model")
    env.set_python_requirements("requirements.txt", "cache")
    env.set_python_executable("python3")

    get = env._configuration.get
    assert get(python.FILES) == ["a.py", "b.zip"]
    assert get(python.ARCHIVES) == ["data.zip", "model.zip#model"]
    assert get(python.REQUIREMENTS) == "requirements.txt#cache"
    assert get(python.EXECUTABLE) == "python3"


@pytest.mark.parametrize("call", ["add_jars", "add_classpaths"])
def test_java_code_is_refused_with_the_reason(env: StreamExecutionEnvironment, call: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=rf"{call}\(.*\): headrace runs Python functions"):
        getattr(env, call)("file:///a.jar")


@pytest.mark.parametrize(
    "jar",
    [
        "flink-sql-connector-kafka-1.15.0.jar",
        "flink-sql-connector-kafka-4.0.1-2.0.jar",
        "flink-connector-jdbc-3.3.0-1.20.jar",
        "flink-sql-avro-1.15.0.jar",
        "flink-json-2.3-SNAPSHOT.jar",
    ],
)
def test_jars_of_connectors_that_we_have_are_passed_over(
    env: StreamExecutionEnvironment, jar: str, caplog: pytest.LogCaptureFixture
) -> None:
    env.add_jars(f"file:///path/to/{jar}")
    assert f"{jar} is not loaded" in caplog.text


@pytest.mark.parametrize("jar", ["flink-connector-pulsar-4.1.0.jar", "my-udfs.jar"])
def test_unknown_jars_are_refused_even_next_to_known_ones(env: StreamExecutionEnvironment, jar: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=jar):
        env.add_jars("file:///a/flink-sql-avro-1.15.0.jar", f"file:///a/{jar}")


def test_missing_names_raise_an_error(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"create_input\(\) is not supported yet"):
        env.create_input(None)


def test_a_state_backend_becomes_configuration(env: StreamExecutionEnvironment) -> None:
    assert isinstance(env.get_state_backend(), HashMapStateBackend)
    backend = EmbeddedRocksDBStateBackend(True)
    backend.set_db_storage_paths("/a", "/b")
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    assert env.set_state_backend(backend) is env
    assert env._configuration.get(state.BACKEND) == "rocksdb"
    assert env._configuration.get(rocksdb.PREDEFINED_OPTIONS) is PredefinedOptions.FLASH_SSD_OPTIMIZED
    chosen = env.get_state_backend()
    assert isinstance(chosen, EmbeddedRocksDBStateBackend)
    assert chosen.get_db_storage_paths() == ["/a", "/b"]
    assert chosen.is_incremental_checkpoints_enabled()
    assert isinstance(env.set_state_backend(HashMapStateBackend()).get_state_backend(), HashMapStateBackend)
    with pytest.raises(JobDefinitionError, match="expected a StateBackend; got str"):
        env.set_state_backend("rocksdb")  # type: ignore[arg-type]


def test_settings_without_effect_are_kept(env: StreamExecutionEnvironment) -> None:
    assert env.enable_changelog_state_backend(True).is_changelog_state_backend_enabled()
    assert env.set_default_savepoint_directory("/s").get_default_savepoint_directory() == "/s"
    env.get_checkpoint_config().enable_unaligned_checkpoints()
    assert not env.is_unaligned_checkpoints_enabled()
    assert env.enable_checkpointing(1000).is_unaligned_checkpoints_enabled()
    assert not env.is_force_unaligned_checkpoints()
    assert env._configuration.get(checkpointing.UNALIGNED)
    env.close()


# ---------------------------------------------------------------------------------------------- sources


def test_from_source(env: StreamExecutionEnvironment) -> None:
    source, strategy = NumberSequenceSource(1, 9), WatermarkStrategy.for_monotonous_timestamps()
    env.from_source(source, strategy, "numbers", Types.LONG()).map(str)

    node = stream_graph(env).nodes[0]
    assert (node.name, node.parallelism, node.output_type) == ("Source: numbers", 2, Types.LONG())
    assert node.declaration == SourceDeclaration(source, strategy)


def test_a_stream_has_the_type_that_its_source_knows(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    none = WatermarkStrategy.no_watermarks()
    names = CsvSchema.builder().add_number_column("id").add_string_column("name").build()
    rows = JsonRowDeserializationSchema.builder().type_info(Types.ROW([Types.INT(), Types.STRING()])).build()
    kafka = (
        KafkaSource.builder()
        .set_bootstrap_servers("b:9092")
        .set_topics("t")
        .set_value_only_deserializer(rows)
    )
    text = FileSource.for_record_stream_format(StreamFormat.text_line_format(), tmp_path).build()
    csv = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(names), tmp_path).build()
    numbers = NumberSequenceSource(1, 9)
    same = HybridSource.builder(numbers).add_source(numbers).build()
    mixed = HybridSource.builder(numbers).add_source(text).build()

    known = [
        env.from_source(source, none, "s").get_type()
        for source in (text, csv, kafka.build(), numbers, same, mixed)
    ]

    assert known == [
        Types.STRING(),
        RowDataTypeInfo(names.row_type.get_field_types(), ["id", "name"]),
        rows.get_produced_type(),
        Types.LONG(),
        Types.LONG(),
        Types.PICKLED_BYTE_ARRAY(),
    ]
    assert env.add_source(numbers).get_type() == Types.LONG()
    assert env.from_source(numbers, none, "given", Types.INT()).get_type() == Types.INT()


def test_add_source_has_no_event_time(env: StreamExecutionEnvironment) -> None:
    source = NumberSequenceSource(1, 9)
    env.add_source(source).map(str)
    node = stream_graph(env).nodes[0]
    assert node.name == "Source: Custom Source"
    assert node.declaration == SourceDeclaration(source, WatermarkStrategy.no_watermarks())


def test_wrong_sources_are_refused(env: StreamExecutionEnvironment) -> None:
    strategy = WatermarkStrategy.no_watermarks()
    with pytest.raises(JobDefinitionError, match=r"from_source\(\): expected a Source, got list \[1\]"):
        env.from_source([1], strategy, "s")  # type: ignore[arg-type]
    with pytest.raises(
        JobDefinitionError, match=r"from_source\(\): expected a WatermarkStrategy, got NoneType"
    ):
        env.from_source(NumberSequenceSource(1, 2), None, "s")  # type: ignore[arg-type]
    with pytest.raises(JobDefinitionError, match="the name of the source must be a string"):
        env.from_source(NumberSequenceSource(1, 2), strategy, "")
    with pytest.raises(JobDefinitionError, match=r"add_source\(\): expected a Source"):
        env.add_source(len)  # type: ignore[arg-type]


def elements(env: StreamExecutionEnvironment) -> Any:
    """Read back what the first source of the program holds."""
    declaration: Any = stream_graph(env).nodes[0].declaration
    source = declaration.source
    assert isinstance(source, CollectionSource)
    enumerator = source.create_enumerator(1)
    (split,) = enumerator.discover()
    piece = enumerator.plan(split, 0, 100)
    assert piece is not None
    return [value for batch in source.create_reader().read(piece) for value in batch.values]


def test_from_collection_takes_any_iterable(env: StreamExecutionEnvironment) -> None:
    env.from_collection(n * n for n in range(4)).map(str)
    assert elements(env) == [0, 1, 4, 9]


def test_from_collection_brings_elements_into_their_declared_form(env: StreamExecutionEnvironment) -> None:
    named = Types.ROW_NAMED(["n", "s"], [Types.INT(), Types.STRING()])
    env.from_collection([(1, "a"), {"n": 2, "s": "b"}, Row(3, "c")], named).map(str)
    assert [row.as_dict() for row in elements(env)] == [
        {"n": 1, "s": "a"},
        {"n": 2, "s": "b"},
        {"n": 3, "s": "c"},
    ]


def test_from_collection_refuses_what_it_cannot_read(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(JobDefinitionError, match="the collection is empty"):
        env.from_collection([])
    env.from_collection([], Types.INT())
    with pytest.raises(JobDefinitionError, match="expected a list or another iterable, got int 3"):
        env.from_collection(3)  # type: ignore[arg-type]
    with pytest.raises(JobDefinitionError, match="expected a list or another iterable, got str 'abc'"):
        env.from_collection("abc")
    with pytest.raises(TypeInferenceError, match=r"cannot convert element 1, \(1, 2, 3\), to ROW"):
        env.from_collection([(1, 2), (1, 2, 3)], Types.ROW([Types.INT(), Types.INT()]))
    with pytest.raises(JobDefinitionError, match="element 1 cannot be pickled"):
        env.from_collection([1, threading.Lock()])


def test_conveniences(env: StreamExecutionEnvironment, tmp_path: Any) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    env.read_text_file(str(tmp_path)).map(str)
    env.socket_text_stream("localhost", 9999).map(str)

    text, _, socket, _ = stream_graph(env).nodes
    assert (text.name, text.parallelism, text.output_type) == ("Source: Text File", 2, Types.STRING())
    assert (socket.name, socket.parallelism) == ("Source: Socket Stream", 1)
