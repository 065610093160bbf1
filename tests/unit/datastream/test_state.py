from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from headrace.common import Duration, Time, Types
from headrace.datastream import AggregateFunction, ReduceFunction
from headrace.datastream.state import (
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from headrace.errors import StateDescriptorError


class Add(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1 + value2


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return (accumulator[0] + value, accumulator[1] + 1)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return (acc_a[0] + acc_b[0], acc_a[1] + acc_b[1])


@pytest.mark.parametrize(
    ("descriptor", "kind", "type_info"),
    [
        (ValueStateDescriptor("s", Types.INT()), "value", Types.INT()),
        (ValueStateDescriptor("s", None), "value", None),
        (ListStateDescriptor("s", Types.INT()), "list", Types.INT()),
        (MapStateDescriptor("s", Types.STRING(), Types.INT()), "map", Types.INT()),
        (ReducingStateDescriptor("s", max, Types.INT()), "reducing", Types.INT()),
        (AggregatingStateDescriptor("s", Mean(), Types.INT()), "aggregating", Types.INT()),
    ],
)
def test_descriptors(descriptor: StateDescriptor, kind: str, type_info: Any) -> None:
    assert (descriptor.name, descriptor.get_name(), descriptor.kind) == ("s", "s", kind)
    assert descriptor.type_info == type_info
    assert descriptor.ttl_config is None
    again = pickle.loads(pickle.dumps(descriptor))
    assert again == descriptor
    assert hash(again) == hash(descriptor)


def test_the_key_type_of_a_map_is_kept() -> None:
    assert MapStateDescriptor("s", Types.STRING(), Types.INT()).key_type_info == Types.STRING()


def test_descriptors_are_equal_by_kind_and_name() -> None:
    assert ValueStateDescriptor("s", None) == ValueStateDescriptor("s", Types.INT())
    assert ValueStateDescriptor("s", None) != ValueStateDescriptor("t", None)
    assert ValueStateDescriptor("s", None) != ListStateDescriptor("s", None)
    assert ValueStateDescriptor("s", None) != "s"


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_a_state_needs_a_name(name: Any) -> None:
    with pytest.raises(StateDescriptorError, match="ValueStateDescriptor: expected a name"):
        ValueStateDescriptor(name, Types.INT())


@pytest.mark.parametrize(
    "make",
    [
        lambda: ValueStateDescriptor("s", int),  # type: ignore[arg-type]
        lambda: MapStateDescriptor("s", str, None),  # type: ignore[arg-type]
    ],
)
def test_a_python_type_is_not_type_information(make: Any) -> None:
    with pytest.raises(StateDescriptorError, match="expected a type, got <class"):
        make()


def test_a_reduce_function_may_be_a_callable() -> None:
    assert ReducingStateDescriptor("s", max, None).get_reduce_function().reduce(1, 2) == 2
    assert ReducingStateDescriptor("s", Add(), None).get_reduce_function().reduce(1, 2) == 3
    with pytest.raises(StateDescriptorError, match="expected a ReduceFunction or a callable"):
        ReducingStateDescriptor("s", 3, None)


def test_an_aggregate_function_must_be_one() -> None:
    mean = Mean()
    assert AggregatingStateDescriptor("s", mean, None).get_agg_function() is mean
    for wrong in (len, Mean, None):
        with pytest.raises(StateDescriptorError, match="expected an AggregateFunction"):
            AggregatingStateDescriptor("s", wrong, None)


# --------------------------------------------------------------------------------------------- time to live


@pytest.mark.parametrize("ttl", [Time.seconds(5), Duration.of_seconds(5), timedelta(seconds=5)])
def test_defaults_of_the_time_to_live(ttl: Any) -> None:
    config = StateTtlConfig.new_builder(ttl).build()

    assert (config.get_ttl(), config.ttl_ms, config.is_enabled()) == (ttl, 5000, True)
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    strategies = config.get_cleanup_strategies()
    assert (strategies.is_cleanup_in_background(), strategies.in_full_snapshot()) == (True, False)
    incremental = strategies.get_incremental_cleanup_strategy()
    rocksdb = strategies.get_rocksdb_compact_filter_cleanup_strategy()
    assert incremental is not None
    assert rocksdb is not None
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (5, False)
    assert rocksdb.get_query_time_after_num_entries() == 1000
    assert rocksdb.get_periodic_compaction_time() == Duration.of_days(30)


def test_everything_can_be_set() -> None:
    config = (
        StateTtlConfig.new_builder(Time.days(9))
        .set_ttl(Time.milliseconds(1))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .use_processing_time()
        .cleanup_full_snapshot()
        .cleanup_incrementally(10, True)
        .cleanup_in_rocksdb_compact_filter(7, Duration.of_days(1))
        .disable_cleanup_in_background()
        .build()
    )

    assert config.ttl_ms == 1
    assert repr(config).startswith("StateTtlConfig<update_type=UpdateType.OnReadAndWrite, state_visibility=")
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
    strategies = config.get_cleanup_strategies()
    assert (strategies.is_cleanup_in_background(), strategies.in_full_snapshot()) == (False, True)
    incremental = strategies.get_incremental_cleanup_strategy()
    rocksdb = strategies.get_rocksdb_compact_filter_cleanup_strategy()
    assert incremental is not None
    assert rocksdb is not None
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (10, True)
    assert (rocksdb.get_query_time_after_num_entries(), rocksdb.get_periodic_compaction_time()) == (
        7,
        Duration.of_days(1),
    )


def test_without_background_clean_up_there_are_no_default_strategies() -> None:
    strategies = (
        StateTtlConfig.new_builder(Time.days(1))
        .disable_cleanup_in_background()
        .build()
        .get_cleanup_strategies()
    )
    assert strategies.get_incremental_cleanup_strategy() is None
    assert strategies.get_rocksdb_compact_filter_cleanup_strategy() is None


@pytest.mark.parametrize("ttl", [Time.seconds(0), timedelta(seconds=-1), 5, "1h", None])
def test_a_time_to_live_must_be_a_positive_amount_of_time(ttl: Any) -> None:
    with pytest.raises(StateDescriptorError, match="the time to live must be"):
        StateTtlConfig.new_builder(ttl)
    with pytest.raises(StateDescriptorError, match="the time to live must be"):
        StateTtlConfig.new_builder(Time.days(1)).set_ttl(ttl)


def test_a_descriptor_takes_a_time_to_live() -> None:
    descriptor = ValueStateDescriptor("s", None)
    config = StateTtlConfig.new_builder(Time.hours(1)).build()
    descriptor.enable_time_to_live(config)
    assert descriptor.ttl_config is config
    assert pickle.loads(pickle.dumps(descriptor)).ttl_config.ttl_ms == config.ttl_ms


def test_a_disabled_time_to_live_has_no_effect() -> None:
    descriptor = ValueStateDescriptor("s", None)
    disabled = StateTtlConfig.new_builder(Time.hours(1)).set_update_type(StateTtlConfig.UpdateType.Disabled)
    descriptor.enable_time_to_live(disabled.build())
    assert descriptor.ttl_config is None
    with pytest.raises(StateDescriptorError, match="must be a StateTtlConfig"):
        descriptor.enable_time_to_live(Time.hours(1))  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------- what interfaces give


class DictMap(MapState[Any, Any]):
    """Map state over a dictionary."""

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        return self.entries.get(key)

    def put(self, key: Any, value: Any) -> None:
        self.entries[key] = value

    def put_all(self, dict_value: Any) -> None:
        self.entries.update(dict_value)

    def remove(self, key: Any) -> None:
        self.entries.pop(key, None)

    def contains(self, key: Any) -> bool:
        return key in self.entries

    def items(self) -> Any:
        return self.entries.items()

    def keys(self) -> Any:
        return self.entries.keys()

    def values(self) -> Any:
        return self.entries.values()

    def is_empty(self) -> bool:
        return not self.entries

    def clear(self) -> None:
        self.entries.clear()


def test_map_state_can_be_used_as_a_mapping() -> None:
    state = DictMap()
    state["a"] = 1
    assert (state["a"], state["b"], "a" in state, list(state)) == (1, None, True, ["a"])
    del state["a"]
    del state["a"]
    assert state.is_empty()


def test_list_state_can_be_iterated() -> None:
    class Three(ListState[int]):
        def get(self) -> Any:
            return [1, 2, 3]

        def add(self, value: int) -> None: ...
        def add_all(self, values: Any) -> None: ...
        def update(self, values: Any) -> None: ...
        def clear(self) -> None: ...

    assert list(Three()) == [1, 2, 3]
