"""Objects of `pyflink.common` and `pyflink.datastream` that need no job."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO

from pyflink.common import (
    ConfigOptions,
    Configuration,
    Duration,
    ExecutionConfig,
    Instant,
    JobID,
    JobStatus,
    RestartStrategies,
    Row,
    RowKind,
    SimpleStringSchema,
    Time,
    Types,
    WatermarkStrategy,
)
from pyflink.common.input_dependency_constraint import InputDependencyConstraint
from pyflink.datastream import (
    CheckpointingMode,
    EmbeddedRocksDBStateBackend,
    ExternalizedCheckpointRetention,
    HashMapStateBackend,
    MemorySize,
    OutputTag,
    PredefinedOptions,
    SlotSharingGroup,
    StreamExecutionEnvironment,
    TimeDomain,
)
from pyflink.datastream.async_retry_predicates import empty_result_predicate, has_exception_predicate
from pyflink.datastream.checkpoint_storage import FileSystemCheckpointStorage, JobManagerCheckpointStorage
from pyflink.datastream.connectors import DeliveryGuarantee
from pyflink.datastream.connectors.file_system import FileCompactStrategy, OutputFileConfig, RollingPolicy
from pyflink.datastream.functions import AsyncRetryStrategy, NullByteKeySelector
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from pyflink.datastream.window import (
    CountTrigger,
    CountWindow,
    CountWindowSerializer,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TimeWindowSerializer,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

from . import values


def _ttl():
    return StateTtlConfig.new_builder(Time.minutes(5))


def _cleanup(config):
    strategies = config.get_cleanup_strategies()
    return (
        strategies.is_cleanup_in_background(),
        strategies.in_full_snapshot(),
        strategies.get_incremental_cleanup_strategy() is not None,
        strategies.get_rocksdb_compact_filter_cleanup_strategy() is not None,
    )


def _group():
    return (
        SlotSharingGroup.builder("g")
        .set_cpu_cores(1.5)
        .set_task_heap_memory_mb(100)
        .set_task_off_heap_memory(MemorySize.of_mebi_bytes(10))
        .set_managed_memory_mb(20)
        .set_external_resource("gpu", 1.0)
        .build()
    )


def _execution(change):
    config = StreamExecutionEnvironment.get_execution_environment(Configuration()).get_config()
    change(config)
    return config


def _env():
    return StreamExecutionEnvironment.get_execution_environment(Configuration())


def _exponential():
    strategy = AsyncRetryStrategy.exponential_backoff(
        5, 100, 500, 2.0, empty_result_predicate, has_exception_predicate
    )
    return [_retry(strategy, attempt) for attempt in (1, 2, 3, 4, 5, 6)]


def _checkpoints(change):
    config = _env().get_checkpoint_config()
    change(config)
    return config


def _retry(strategy, attempt):
    return strategy.can_retry(attempt), strategy.get_backoff_time_millis(attempt)


def _configured(**options):
    env = _env()
    config = Configuration()
    for key, value in options.items():
        config.set_string(key.replace("_", "."), value)
    env.configure(config)
    return env


def _plan():
    import json

    env = _env().set_parallelism(1)
    env.from_collection([1, 2], Types.INT()).map(lambda x: x, Types.INT()).name("double").print()
    return sorted(json.loads(env.get_execution_plan()))


def _stream():
    return _env().from_collection([(1, "a")], Types.TUPLE([Types.INT(), Types.STRING()]))


def _dict_copy():
    target = {}
    config = Configuration()
    config.set_string("a", "1")
    config.add_all_to_dict(target)
    return target


def _prefixed():
    one, two = Configuration(), Configuration()
    two.set_string("b", "1")
    one.add_all(two, "a.")
    return sorted(one.to_dict().items())


values(
    option=lambda: type(ConfigOptions.key("a").int_type().default_value(3)).__name__,
    option_none=lambda: type(ConfigOptions.key("a").string_type().no_default_value()).__name__,
    config_of_dict=lambda: sorted(Configuration.from_dict({"a": "1", "b": "x"}).to_dict().items()),
    config_to_other_dict=_dict_copy,
    config_prefixed=_prefixed,
    config_list=lambda: Configuration.parse_list_value("[a, b]"),
    config_list_plain=lambda: Configuration.parse_list_value("a;b"),
    config_text_number=lambda: Configuration.from_dict({"a": "17"}).get_integer("a", 1),
    config_text_flag=lambda: Configuration.from_dict({"a": "true"}).get_boolean("a", False),
    config_bad_number=lambda: Configuration.from_dict({"a": "x"}).get_integer("a", 1),
    config_set_chain=lambda: Configuration().set_string("a", "1").set_integer("b", 2).to_dict(),
    constraint=lambda: [each.name for each in InputDependencyConstraint],
    statuses=lambda: [each.name for each in JobStatus],
    status_terminal=lambda: [each.name for each in JobStatus if each.is_terminal_state()],
    status_globally=lambda: [each.name for each in JobStatus if each.is_globally_terminal_state()],
    row_kinds=lambda: [(each.name, each.value) for each in RowKind],
    row_kind_text=lambda: str(RowKind.UPDATE_BEFORE),
    parallelism_default=lambda: (ExecutionConfig.PARALLELISM_DEFAULT, ExecutionConfig.PARALLELISM_UNKNOWN),
    closure_off=lambda: _execution(lambda it: it.disable_closure_cleaner()).is_closure_cleaner_enabled(),
    closure_on=lambda: _execution(lambda it: it.enable_closure_cleaner()).is_closure_cleaner_enabled(),
    latency_set=lambda: _execution(
        lambda it: it.set_latency_tracking_interval(500)
    ).get_latency_tracking_interval(),
    cancel_set=lambda: _execution(
        lambda it: it.set_task_cancellation_interval(500)
    ).get_task_cancellation_interval(),
    cancel_timeout=lambda: _execution(
        lambda it: it.set_task_cancellation_timeout(500)
    ).get_task_cancellation_timeout(),
    generic_off=lambda: _execution(lambda it: it.disable_generic_types()).has_generic_types_disabled(),
    uids_off=lambda: _execution(
        lambda it: it.disable_auto_generated_uids()
    ).has_auto_generated_uids_enabled(),
    reuse_off=lambda: _execution(
        lambda it: it.enable_object_reuse().disable_object_reuse()
    ).is_object_reuse_enabled(),
    parameters=lambda: _execution(
        lambda it: it.set_global_job_parameters({"a": "1", "b": "2"})
    ).get_global_job_parameters(),
    compression=lambda: _execution(
        lambda it: it.set_use_snapshot_compression(True)
    ).is_use_snapshot_compression(),
    negative_cancel_timeout=lambda: _execution(lambda it: it.set_task_cancellation_timeout(-1)),
    parallelism_negative=lambda: _execution(lambda it: it.set_parallelism(-3)),
    max_parallelism_zero=lambda: _execution(lambda it: it.set_max_parallelism(0)),
    max_parallelism_large=lambda: _env().set_max_parallelism(40000),
    kryo_types=lambda: _env().get_config().get_registered_kryo_types(),
    pojo_types=lambda: _env().get_config().get_registered_pojo_types(),
    kryo_classes=lambda: _env().get_config().get_default_kryo_serializer_classes(),
    restart_failure_rate=lambda: type(RestartStrategies.failure_rate_restart(3, 1000, 10)).__name__,
    restart_fall_back=lambda: type(RestartStrategies.fall_back_restart()).__name__,
    duration_equal=lambda: Duration.of_seconds(60) == Duration.of_minutes(1),
    time_millis=lambda: [
        each.to_milliseconds()
        for each in (Time.days(1), Time.hours(1), Time.minutes(1), Time.seconds(1), Time.milliseconds(1))
    ],
    instant=lambda: (str(Instant.of_epoch_milli(1500)), Instant.of_epoch_milli(1500).to_epoch_milli()),
    instant_parts=lambda: (Instant(1, 5).seconds, Instant(1, 5).nanos),
    job_id_type=lambda: JobID.__name__,
    schema_type=lambda: type(SimpleStringSchema("UTF-8")).__name__,
    ttl_text=lambda: str(_ttl().build().get_ttl().to_milliseconds()),
    ttl_update=lambda: _ttl().build().get_update_type(),
    ttl_visibility=lambda: _ttl().build().get_state_visibility(),
    ttl_time=lambda: _ttl().build().get_ttl_time_characteristic(),
    ttl_enabled=lambda: _ttl().build().is_enabled(),
    ttl_disabled=lambda: _ttl().set_update_type(StateTtlConfig.UpdateType.Disabled).build().is_enabled(),
    ttl_read=lambda: _ttl().update_ttl_on_read_and_write().build().get_update_type().name,
    ttl_expired=lambda: _ttl().return_expired_if_not_cleaned_up().build().get_state_visibility().name,
    ttl_cleanup=lambda: _cleanup(_ttl().build()),
    ttl_cleanup_full=lambda: _cleanup(_ttl().cleanup_full_snapshot().build()),
    ttl_cleanup_steps=lambda: _cleanup(_ttl().cleanup_incrementally(10, True).build()),
    ttl_cleanup_rocksdb=lambda: _cleanup(_ttl().cleanup_in_rocksdb_compact_filter(1000).build()),
    ttl_cleanup_off=lambda: _cleanup(_ttl().disable_cleanup_in_background().build()),
    ttl_cleanup_size=lambda: (
        _ttl()
        .cleanup_incrementally(7, True)
        .build()
        .get_cleanup_strategies()
        .get_incremental_cleanup_strategy()
        .get_cleanup_size()
    ),
    ttl_changed=lambda: _ttl().set_ttl(Time.seconds(1)).build().get_ttl().to_milliseconds(),
    descriptors=lambda: [
        ValueStateDescriptor("v", Types.INT()).get_name(),
        ListStateDescriptor("l", Types.INT()).get_name(),
        MapStateDescriptor("m", Types.INT(), Types.STRING()).get_name(),
    ],
    descriptor_type=lambda: str(ValueStateDescriptor("v", Types.INT()).type_info),
    reducing=lambda: (
        ReducingStateDescriptor("r", lambda a, b: a + b, Types.INT()).get_reduce_function().reduce(1, 2)
    ),
    reducing_wrong=lambda: ReducingStateDescriptor("r", 5, Types.INT()),
    aggregating_wrong=lambda: AggregatingStateDescriptor("r", lambda a: a, Types.INT()),
    memory=lambda: (
        MemorySize.of_mebi_bytes(3).get_bytes(),
        MemorySize(bytes_size=2048).get_kibi_bytes(),
        MemorySize.of_mebi_bytes(3).get_mebi_bytes(),
        MemorySize.of_mebi_bytes(3000).get_gibi_bytes(),
        MemorySize.of_mebi_bytes(3).get_tebi_bytes(),
    ),
    memory_text=lambda: str(MemorySize.of_mebi_bytes(3)),
    memory_order=lambda: (
        MemorySize.of_mebi_bytes(3) < MemorySize.of_mebi_bytes(4),
        MemorySize.of_mebi_bytes(1) == MemorySize(bytes_size=1 << 20),
    ),
    group_name=lambda: _group().get_name(),
    group_cores=lambda: _group().get_cpu_cores(),
    group_heap=lambda: _group().get_task_heap_memory().get_mebi_bytes(),
    group_off_heap=lambda: _group().get_task_off_heap_memory().get_mebi_bytes(),
    group_managed=lambda: _group().get_managed_memory().get_mebi_bytes(),
    group_external=lambda: _group().get_external_resources(),
    group_equal=lambda: _group() == _group(),
    group_bare=lambda: SlotSharingGroup.builder("x").build().get_cpu_cores(),
    tag=lambda: (OutputTag("late", Types.INT()).tag_id, str(OutputTag("late", Types.INT()).type_info)),
    tag_untyped=lambda: str(OutputTag("late").type_info),
    tag_empty=lambda: OutputTag(""),
    tag_none=lambda: OutputTag(None),
    time_domains=lambda: [each.name for each in TimeDomain],
    guarantees=lambda: [each.name for each in DeliveryGuarantee],
    predefined=lambda: [each.name for each in PredefinedOptions],
    retentions=lambda: [each.name for each in ExternalizedCheckpointRetention],
    rocksdb=lambda: EmbeddedRocksDBStateBackend(True).is_incremental_checkpoints_enabled(),
    rocksdb_default=lambda: EmbeddedRocksDBStateBackend().is_incremental_checkpoints_enabled(),
    rocksdb_options=lambda: EmbeddedRocksDBStateBackend().get_predefined_options().name,
    rocksdb_options_set=lambda: _rocksdb().get_predefined_options().name,
    rocksdb_threads=lambda: EmbeddedRocksDBStateBackend().get_number_of_transfer_threads(),
    rocksdb_paths=lambda: EmbeddedRocksDBStateBackend().get_db_storage_paths(),
    hashmap=lambda: type(HashMapStateBackend()).__name__,
    storage_files=lambda: FileSystemCheckpointStorage("file:///var/checkpoints").get_checkpoint_path(),
    storage_savepoints=lambda: FileSystemCheckpointStorage("file:///var/checkpoints").get_savepoint_path(),
    storage_threshold=lambda: FileSystemCheckpointStorage("file:///var/c").get_min_file_size_threshold(),
    storage_buffer=lambda: FileSystemCheckpointStorage("file:///var/c").get_write_buffer_size(),
    storage_manager=lambda: JobManagerCheckpointStorage().get_max_state_size(),
    storage_manager_path=lambda: JobManagerCheckpointStorage().get_checkpoint_path(),
    checkpoint_set=lambda: [
        _checkpoints(lambda it: it.set_checkpoint_interval(700)).get_checkpoint_interval(),
        _checkpoints(lambda it: it.set_checkpoint_timeout(70000)).get_checkpoint_timeout(),
        _checkpoints(lambda it: it.set_min_pause_between_checkpoints(7)).get_min_pause_between_checkpoints(),
        _checkpoints(lambda it: it.set_max_concurrent_checkpoints(2)).get_max_concurrent_checkpoints(),
        _checkpoints(
            lambda it: it.set_tolerable_checkpoint_failure_number(2)
        ).get_tolerable_checkpoint_failure_number(),
    ],
    unaligned_with_checkpoints=lambda: _checkpoints(
        lambda it: (it.set_checkpoint_interval(1000), it.enable_unaligned_checkpoints())
    ).is_unaligned_checkpoints_enabled(),
    unaligned_at_least_once=lambda: _checkpoints(
        lambda it: (
            it.set_checkpoint_interval(1000),
            it.set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE),
            it.enable_unaligned_checkpoints(),
        )
    ).is_unaligned_checkpoints_enabled(),
    checkpoint_fail=lambda: _checkpoints(
        lambda it: it.set_fail_on_checkpointing_errors(False)
    ).is_fail_on_checkpointing_errors(),
    checkpoint_tolerate_negative=lambda: _checkpoints(
        lambda it: it.set_tolerable_checkpoint_failure_number(-1)
    ),
    checkpoint_zero_interval=lambda: _checkpoints(lambda it: it.set_checkpoint_interval(0)),
    checkpoint_zero_timeout=lambda: _checkpoints(lambda it: it.set_checkpoint_timeout(0)),
    checkpoint_concurrent_zero=lambda: _checkpoints(lambda it: it.set_max_concurrent_checkpoints(0)),
    checkpoint_retained=lambda: (
        _checkpoints(
            lambda it: it.set_externalized_checkpoint_retention(
                ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
            )
        )
        .get_externalized_checkpoint_retention()
        .name
    ),
    mode_default=lambda: (
        _env().get_checkpointing_mode().name,
        _env().get_checkpoint_config().get_checkpointing_mode().name,
    ),
    mode_enabled=lambda: _env().enable_checkpointing(1000).get_checkpointing_consistency_mode().name,
    consistency=lambda: _env().get_checkpointing_consistency_mode().name,
    changelog=lambda: _env().is_changelog_state_backend_enabled(),
    savepoints=lambda: _env().get_default_savepoint_directory(),
    savepoints_set=lambda: (
        _env().set_default_savepoint_directory("file:///var/s").get_default_savepoint_directory()
    ),
    configured=lambda: _configured(parallelism_default="5").get_parallelism(),
    configured_more=lambda: _configured(
        **{"execution_checkpointing_interval": "7 s"}
    ).get_checkpoint_interval(),
    different_max_parallelism=lambda: (
        _env().is_chaining_of_operators_with_different_max_parallelism_enabled()
    ),
    plan=_plan,
    no_operators=lambda: _env().execute("none"),
    stream_type=lambda: str(_stream().get_type()),
    stream_mapped_type=lambda: str(_stream().map(lambda it: it).get_type()),
    stream_keyed_type=lambda: str(_stream().key_by(lambda it: it[0]).get_type()),
    stream_projected_type=lambda: str(_stream().project(1).get_type()),
    stream_name=lambda: _stream().map(str).name("m").get_name(),
    stream_default_names=lambda: [
        _stream().map(str).get_name(),
        _stream().flat_map(lambda it: [it]).get_name(),
        _stream().filter(lambda it: True).get_name(),
    ],
    stream_environment=lambda: type(_stream().get_execution_environment()).__name__,
    filter_type=lambda: str(_stream().filter(lambda it: True).get_type()),
    null_key=lambda: NullByteKeySelector().get_key("x"),
    empty_predicate=lambda: (
        empty_result_predicate([]),
        empty_result_predicate([1]),
        empty_result_predicate(None),
    ),
    exception_predicate=lambda: (has_exception_predicate(ValueError("x")), has_exception_predicate(None)),
    retry_fixed=lambda: _retry(
        AsyncRetryStrategy.fixed_delay(3, 100, empty_result_predicate, has_exception_predicate), 2
    ),
    retry_fixed_end=lambda: _retry(
        AsyncRetryStrategy.fixed_delay(3, 100, empty_result_predicate, has_exception_predicate), 4
    ),
    retry_exponential=_exponential,
    retry_none=lambda: AsyncRetryStrategy.no_restart().can_retry(1),
    time_window=lambda: (str(TimeWindow(0, 10)), TimeWindow(0, 10).max_timestamp()),
    time_window_parts=lambda: (
        TimeWindow(0, 10).intersects(TimeWindow(10, 20)),
        TimeWindow(0, 10).intersects(TimeWindow(11, 20)),
        str(TimeWindow(0, 10).cover(TimeWindow(15, 20))),
    ),
    window_start=lambda: [TimeWindow.get_window_start_with_offset(at, 0, 10) for at in (0, 9, 10, -1, -10)],
    window_start_offset=lambda: TimeWindow.get_window_start_with_offset(7, 3, 10),
    window_equal=lambda: (
        TimeWindow(0, 10) == TimeWindow(0, 10),
        hash(TimeWindow(0, 10)) == hash(TimeWindow(0, 10)),
    ),
    count_window=lambda: (str(CountWindow(3)), CountWindow(3) == CountWindow(3)),
    global_window=lambda: (str(GlobalWindow()), GlobalWindow() == GlobalWindow()),
    assigners=lambda: [
        str(TumblingEventTimeWindows.of(Time.seconds(5))),
        str(SlidingEventTimeWindows.of(Time.seconds(5), Time.seconds(1))),
        str(EventTimeSessionWindows.with_gap(Time.seconds(5))),
        str(TumblingProcessingTimeWindows.of(Time.seconds(5))),
        str(SlidingProcessingTimeWindows.of(Time.seconds(5), Time.seconds(1))),
    ],
    assigner_event_time=lambda: [
        TumblingEventTimeWindows.of(Time.seconds(5)).is_event_time(),
        TumblingProcessingTimeWindows.of(Time.seconds(5)).is_event_time(),
        GlobalWindows.create().is_event_time(),
    ],
    assigner_bad_offset=lambda: TumblingEventTimeWindows.of(Time.seconds(5), Time.seconds(7)),
    assigner_zero_gap=lambda: EventTimeSessionWindows.with_gap(Time.seconds(0)),
    trigger_results=lambda: [(each.name, each.is_fire(), each.is_purge()) for each in TriggerResult],
    trigger_types=lambda: [
        type(each).__name__
        for each in (EventTimeTrigger.create(), CountTrigger.of(3), PurgingTrigger.of(CountTrigger.of(2)))
    ],
    output_files=lambda: (
        OutputFileConfig.builder().with_part_prefix("p").with_part_suffix(".s").build().get_part_prefix(),
        OutputFileConfig.builder().with_part_prefix("p").with_part_suffix(".s").build().get_part_suffix(),
    ),
    output_files_default=lambda: OutputFileConfig.builder().build().get_part_prefix(),
    rolling=lambda: type(RollingPolicy.default_rolling_policy()).__name__,
    rolling_checkpoint=lambda: type(RollingPolicy.on_checkpoint_rolling_policy()).__name__,
    compaction=lambda: (
        type(FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).build()).__name__
    ),
    compaction_none=lambda: FileCompactStrategy.builder().build(),
    watermarks=lambda: (
        type(WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_seconds(1))).__name__
    ),
    row_text=lambda: (str(Row(a=1, b="x")), str(Row(1, "x")), repr(Row(1, None))),
    row_kind_row=lambda: str(Row.of_kind(RowKind.DELETE, 1, 2)),
    types_texts=lambda: [
        str(each)
        for each in (
            Types.INSTANT(),
            Types.SQL_DATE(),
            Types.SQL_TIME(),
            Types.SQL_TIMESTAMP(),
            Types.BIG_INT(),
            Types.BIG_DEC(),
            Types.CHAR(),
            Types.SHORT(),
            Types.BYTE(),
            Types.PICKLED_BYTE_ARRAY(),
        )
    ],
    types_converted=lambda: [
        Types.SQL_DATE().to_internal_type(date(2024, 1, 2)),
        Types.SQL_TIME().to_internal_type(time(1, 2, 3, 4000)),
        Types.SQL_DATE().from_internal_type(19724),
    ],
    types_row_converted=lambda: Types.ROW([Types.INT(), Types.STRING()]).to_internal_type(Row(1, "a")),
    types_need_conversion=lambda: [
        Types.SQL_DATE().need_conversion(),
        Types.INT().need_conversion(),
        Types.ROW([Types.INT()]).need_conversion(),
    ],
    instant_converted=lambda: Types.INSTANT().to_internal_type(Instant.of_epoch_milli(1500)),
)


def _rocksdb():
    backend = EmbeddedRocksDBStateBackend()
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    return backend


def _through(serializer, value):
    stream = BytesIO()
    serializer.serialize(value, stream)
    return stream.getvalue(), str(serializer.deserialize(BytesIO(stream.getvalue())))


values(
    time_window_bytes=lambda: _through(TimeWindowSerializer(), TimeWindow(1, 2)),
    count_window_bytes=lambda: _through(CountWindowSerializer(), CountWindow(1)),
    instant_of_date=lambda: str(
        Instant.of_epoch_milli(int(datetime(2024, 1, 2, tzinfo=UTC).timestamp() * 1000))
    ),
    decimal_text=lambda: str(Decimal("1.50")),
)
