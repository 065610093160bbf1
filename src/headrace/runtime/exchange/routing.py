"""Which channel a record takes: the partitioners at work, a batch at a time."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from headrace.elements import Batch
from headrace.errors import (
    HeadraceError,
    InvariantViolation,
    JobExecutionError,
    UserFunctionError,
    shorten,
)
from headrace.graph.partitioning import (
    Custom,
    EdgePartitioner,
    Forward,
    Global,
    KeyGroups,
    Rebalance,
    Rescale,
    Shuffle,
)
from headrace.operators.functions import key_getter, method_of
from headrace.operators.key_selectors import KeySelection
from headrace.runtime.exchange.channel import Channel
from headrace.runtime.exchange.key_owners import KeyOwners


class Router(Protocol):
    """Puts the records of a batch on an edge's channels."""

    def route(self, batch: Batch) -> None:
        """Append each record to its channel."""


class SingleRouter:
    """Everything to one channel: forward, global, or a pointwise edge with one consumer."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def route(self, batch: Batch) -> None:
        self._channel.extend(batch.values, batch.timestamps)


class RoundRobinRouter:
    """One record to each channel in turn. Where it starts depends on the epoch, so no channel is favoured."""

    def __init__(self, channels: Sequence[Channel], start: int) -> None:
        self._channels = channels
        self._next = start % len(channels)

    def route(self, batch: Batch) -> None:
        count = len(self._channels)
        for offset in range(min(count, len(batch))):
            channel = self._channels[(self._next + offset) % count]
            timestamps = None if batch.timestamps is None else batch.timestamps[offset::count]
            channel.extend(batch.values[offset::count], timestamps)
        self._next = (self._next + len(batch)) % count


class IndexRouter:
    """Each record to the channel that a function of the batch names."""

    def __init__(self, channels: Sequence[Channel], choose: Callable[[list[Any]], Sequence[int]]) -> None:
        self._channels = channels
        self._choose = choose

    def route(self, batch: Batch) -> None:
        chosen = self._choose(batch.values)
        if batch.timestamps is None:
            for value, index in zip(batch.values, chosen, strict=True):
                self._channels[index].append(value)
        else:
            for channel in self._channels:
                channel.start_timed()
            for value, timestamp, index in zip(batch.values, batch.timestamps, chosen, strict=True):
                self._channels[index].append(value)
                self._channels[index].append_timestamp(timestamp)


class KeyGroupRouter:
    """Each record to the subtask that owns its key's group."""

    def __init__(self, channels: Sequence[Channel], key_selector: Any, max_parallelism: int) -> None:
        self._channels = channels
        self._selection = KeySelection(key_getter(key_selector))
        self._owners = KeyOwners(max_parallelism, len(channels))
        self._appends = [channel.append for channel in channels]
        self._timestamp_appends = [channel.append_timestamp for channel in channels]

    def route(self, batch: Batch) -> None:
        owners = self._owners.of(self._keys(batch.values))
        if batch.timestamps is not None:
            for channel in self._channels:
                channel.start_timed()
            appends = map(self._timestamp_appends.__getitem__, owners)
            for timestamp, append_timestamp in zip(batch.timestamps, appends, strict=True):
                append_timestamp(timestamp)
        for value, append in zip(batch.values, map(self._appends.__getitem__, owners), strict=True):
            append(value)

    def _keys(self, values: list[Any]) -> list[Any]:
        rest = iter(values)
        try:
            return self._selection.keys(values, rest)
        except HeadraceError:
            raise
        except Exception as error:
            record = values[len(values) - operator.length_hint(rest) - 1]
            raise UserFunctionError.from_exception(error, record=record, operator="key_by") from error


def _custom_choice(partitioner: Custom, channels: int) -> Callable[[list[Any]], Sequence[int]]:
    key_of = key_getter(partitioner.key_selector)
    partition = method_of(partitioner.partitioner, "partition")

    def choose(values: list[Any]) -> Sequence[int]:
        rest = iter(values)
        try:
            chosen = [partition(key_of(value), channels) for value in rest]
        except Exception as error:
            record = values[len(values) - operator.length_hint(rest) - 1]
            raise UserFunctionError.from_exception(
                error, record=record, operator="partition_custom"
            ) from error
        for value, index in zip(values, chosen, strict=True):
            if not isinstance(index, int) or not 0 <= index < channels:
                raise JobExecutionError(
                    f"partition_custom(): the partitioner returned {shorten(index)} for record "
                    f"{shorten(value)}; expected a whole number from 0 to {channels - 1}",
                    hint="for example, return key % num_partitions",
                )
        return chosen

    return choose


def build_router(
    partitioner: EdgePartitioner, channels: Sequence[Channel], *, max_parallelism: int, seed: tuple[int, int]
) -> Router:
    """Make the router of an edge; ``seed`` is (producer, epoch), so that a re-run routes the same way."""
    producer, epoch = seed
    if isinstance(partitioner, KeyGroups):
        return KeyGroupRouter(channels, partitioner.key_selector, max_parallelism)
    if isinstance(partitioner, Custom):
        return IndexRouter(channels, _custom_choice(partitioner, len(channels)))
    if len(channels) == 1 or isinstance(
        partitioner, (Forward, Global)
    ):  # a broadcast has one channel for all
        return SingleRouter(channels[0])
    if isinstance(partitioner, Shuffle):
        chance = random.Random(f"{producer}/{epoch}")
        return IndexRouter(channels, lambda values: chance.choices(range(len(channels)), k=len(values)))
    if isinstance(partitioner, (Rebalance, Rescale)):
        return RoundRobinRouter(channels, producer + epoch)
    raise InvariantViolation(f"no router for partitioner {partitioner.name}")
