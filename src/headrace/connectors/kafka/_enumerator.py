"""The driver's half of a Kafka source: finds partitions, asks how far they go, plans slices, commits offsets.

Before every epoch one request asks for the ends of all partitions. While brokers are away, nothing new is planned and
the question is asked again; only when that lasts too long does the job fail.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from headrace.connectors.base import Slice, SourceSplit, SplitEnumerator
from headrace.connectors.kafka._clients import failure, is_refusal, make_client
from headrace.connectors.kafka._commits import OffsetCommits, Offsets
from headrace.connectors.kafka._properties import kafka_library
from headrace.connectors.kafka._settings import KafkaPartitionSplit, KafkaSourceSettings
from headrace.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from headrace.errors import ConnectorError

_log = logging.getLogger(__name__)

_WHO = "KafkaSource"
#: One request; whether to try again is decided between two of them.
_REQUEST_S = 10.0
_ATTEMPT_S = 2.0
_WARN_S = 5.0


@dataclass(frozen=True)
class PartitionFacts:
    """What the driver knows about a partition when it plans a slice; readers show it as metrics."""

    log_end: int
    committed: int | None
    commits_succeeded: int
    commits_failed: int


class KafkaEnumerator(SplitEnumerator):
    """Plans what each epoch reads.

    Args:
        source: The source.
        clock: Seconds, from anywhere.
    """

    def __init__(self, source: KafkaSourceSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._cluster: _Cluster | None = None
        self._known: dict[KafkaTopicPartition, KafkaPartitionSplit] = {}
        #: Whether the brokers have answered once.
        self._has_started = False
        #: When partitions were looked for last; None before the first time.
        self._looked: float | None = None
        #: Whether partitions that are found now were there when the job first started.
        self._is_first = True
        self._starts: Offsets = {}
        self._ends: Offsets = {}
        #: Partitions whose position is not checked yet, with the first offset they still have.
        self._unchecked: Offsets = {}
        #: Since when the brokers have not answered, and when that was last said.
        self._away_since: float | None = None
        self._warned = -_WARN_S
        group = source.group_id if source.commits_offsets else None
        self._commits = None if group is None else OffsetCommits(source.properties, group)

    # -- finding -----------------------------------------------------------------------------------

    def restore(self, splits: Sequence[SourceSplit]) -> None:
        for split in splits:
            self._known[cast(KafkaPartitionSplit, split).topic_partition] = cast(KafkaPartitionSplit, split)
        self._is_first = False

    def discover(self) -> Sequence[SourceSplit]:
        if self._cluster is None:
            self._cluster = _Cluster(self._source)
        found: list[KafkaPartitionSplit] = []
        is_due = self._is_due()
        try:
            if is_due:
                found = self._look_again(self._cluster) if self._known else self._look(self._cluster)
            self._ends = self._cluster.ends(self._known)
            if not self._has_started:
                self._unchecked = self._cluster.beginnings(self._known)
        except ConnectorError as error:
            self._endure(error)
            return found
        self._has_started, self._away_since = True, None
        if is_due:
            self._looked = self._clock()
        return found

    def _is_due(self) -> bool:
        """Whether it is time to look for partitions."""
        interval = self._source.discovery_interval_s
        if self._looked is None:
            # What a source that is to end reads was settled when it first started.
            return self._is_first or self._source.stopping is None
        return interval is not None and self._clock() - self._looked >= interval

    def _look_again(self, cluster: _Cluster) -> list[KafkaPartitionSplit]:
        """Look for more partitions. If that fails there are still those that are known; it is done again later."""
        try:
            return self._look(cluster)
        except ConnectorError as error:
            _log.warning("%s; still reading the known partitions", error.message)
            return []

    def _look(self, cluster: _Cluster) -> list[KafkaPartitionSplit]:
        """Return splits of partitions that were not known; what comes later is read from its beginning."""
        new = [each for each in cluster.partitions() if each not in self._known]
        if not new:
            return []
        starting = self._source.starting if self._is_first else KafkaOffsetsInitializer.earliest()
        starts = cluster.offsets(starting, new)
        stops: Mapping[KafkaTopicPartition, int] = {}
        if self._source.stopping is not None:
            stops = cluster.offsets(self._source.stopping, new)
        self._starts |= starts
        splits = [KafkaPartitionSplit.of(each, stops.get(each)) for each in new]
        self._known |= {split.topic_partition: split for split in splits}
        self._is_first = False
        return splits

    def _endure(self, error: ConnectorError) -> None:
        """Brokers are away: wait, unless it is the first thing we hear, or waiting will not help."""
        now = self._clock()
        self._away_since = self._away_since or now
        if (
            not self._has_started
            or is_refusal(error)
            or now - self._away_since > self._source.properties.api_timeout_s
        ):
            raise error
        if now - self._warned >= _WARN_S:
            self._warned = now
            _log.warning("%s; the job has been waiting for %.0f s", error.message, now - self._away_since)

    @property
    def is_complete(self) -> bool:
        return self._has_started and self._source.discovery_interval_s is None

    # -- planning ----------------------------------------------------------------------------------

    def start_position(self, split: SourceSplit) -> int:
        partition = cast(KafkaPartitionSplit, split).topic_partition
        if partition not in self._starts:  # found before the job came back, and not begun
            assert self._cluster is not None
            self._starts |= self._cluster.offsets(self._source.starting, [partition])
        return self._starts[partition]

    def plan(self, split: SourceSplit, position: int, max_records: int) -> Slice | None:
        kafka_split = cast(KafkaPartitionSplit, split)
        partition = kafka_split.topic_partition
        log_end = self._ends.get(partition)
        if log_end is None:
            return None
        position = self._checked(partition, position, log_end)
        stop = kafka_split.stop
        if stop is not None and position >= stop:
            return Slice(split, position, position, payload=self._facts(partition, log_end))
        end = min(log_end, position + max_records, *(() if stop is None else (stop,)))
        if end <= position:
            return None
        return Slice(split, position, end, payload=self._facts(partition, log_end))

    def _checked(self, partition: KafkaTopicPartition, position: int, log_end: int) -> int:
        """Return where to continue; when a job starts, retention may have taken what it wants to read."""
        beginning = self._unchecked.pop(partition, None)
        if beginning is None or beginning <= position <= log_end:
            return position
        reset = self._source.reset
        what = f"{partition}: offset {position} does not exist; available offsets are {beginning} to {log_end - 1}"
        if reset is KafkaOffsetResetStrategy.NONE:
            raise ConnectorError(
                f"{_WHO}: {what}",
                hint="records were deleted before they were read; to continue without them, set auto.offset.reset to "
                "earliest or latest",
                retryable=False,
            )
        there = beginning if reset is KafkaOffsetResetStrategy.EARLIEST else log_end
        _log.warning("%s: %s; continuing at offset %d", _WHO, what, there)
        return there

    def _facts(self, partition: KafkaTopicPartition, log_end: int) -> PartitionFacts:
        commits = self._commits
        if commits is None:
            return PartitionFacts(log_end, None, 0, 0)
        commits.settle()
        return PartitionFacts(log_end, commits.of(partition), commits.succeeded, commits.failed)

    # -- committing --------------------------------------------------------------------------------

    def checkpoint_completed(self, positions: Mapping[str, Any], finished: Collection[SourceSplit]) -> None:
        if self._commits is None:
            return
        ended = cast("Collection[KafkaPartitionSplit]", finished)
        reached = {split.topic_partition: split.stop for split in ended if split.stop is not None} | {
            partition: int(positions[split.split_id])
            for partition, split in self._known.items()
            if split.split_id in positions
        }
        self._commits.commit(reached)

    def close(self) -> None:
        if self._commits is not None:
            self._commits.close()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None


class _Cluster:
    """Requests for topics, partitions and offsets, with errors that name the request."""

    def __init__(self, source: KafkaSourceSettings) -> None:
        library = kafka_library()
        self._source = source
        self._properties = source.properties
        config = source.consumer_config()
        self._consumer, self._trouble = make_client(library.Consumer, config, self._properties, _WHO)
        self._admin, self._admin_trouble = make_client(
            library.admin.AdminClient, self._properties.client_config(), self._properties, _WHO
        )
        levels = library.IsolationLevel
        is_committed = config["isolation.level"] == "read_committed"
        self._isolation = levels.READ_COMMITTED if is_committed else levels.READ_UNCOMMITTED

    def partitions(self) -> list[KafkaTopicPartition]:
        """Return the partitions that the source subscribes to, all that there are now.

        Raises:
            ConnectorError: The brokers cannot be asked; or a topic or partition does not exist.
        """
        subscription = self._source.subscription
        if subscription.pattern is not None:
            matches = re.compile(subscription.pattern).fullmatch
            metadata = self._metadata(None)
            topics = sorted(name for name in metadata if matches(name))
            return [each for name in topics for each in _partitions_of(name, metadata[name])]
        if subscription.topics:
            return [each for name in subscription.topics for each in self._topic(name)]
        there = {each for name in {p.topic for p in subscription.partitions} for each in self._topic(name)}
        missing = [each for each in subscription.partitions if each not in there]
        if missing:
            raise ConnectorError(
                f"{_WHO}: {missing[0]} does not exist at {self._properties.servers}",
                hint="check set_partitions(...)",
                retryable=False,
            )
        return list(subscription.partitions)

    def _topic(self, name: str) -> list[KafkaTopicPartition]:
        metadata = self._metadata(name)[name]
        if metadata.error is not None or not metadata.partitions:
            raise failure(_WHO, f"looking up topic {name}", metadata.error, self._properties)
        return _partitions_of(name, metadata)

    def _metadata(self, topic: str | None) -> dict[str, Any]:
        what = "listing topics" if topic is None else f"looking up topic {topic}"
        names = () if topic is None else (topic,)
        wait_s = min(_REQUEST_S, self._properties.api_timeout_s)
        deadline = time.monotonic() + wait_s
        while True:
            try:
                return dict(self._consumer.list_topics(*names, timeout=min(_ATTEMPT_S, wait_s)).topics)
            except kafka_library().KafkaException as error:
                self._consumer.poll(0)  # serves the callback that notes trouble
                problem = failure(_WHO, what, error.args[0], self._properties, self._trouble)
                # Credentials that are wrong will not get better by waiting.
                if is_refusal(problem) or time.monotonic() >= deadline:
                    raise problem from None

    def ends(self, partitions: Iterable[KafkaTopicPartition]) -> Offsets:
        """Return the offset after the last record that may be read, of each partition."""
        return self._list(partitions, kafka_library().admin.OffsetSpec.latest())

    def beginnings(self, partitions: Iterable[KafkaTopicPartition]) -> Offsets:
        """Return the offset of the first record that is there, of each partition."""
        return self._list(partitions, kafka_library().admin.OffsetSpec.earliest())

    def offsets(
        self, initializer: KafkaOffsetsInitializer, partitions: Iterable[KafkaTopicPartition]
    ) -> Offsets:
        """Return the offsets that an initializer stands for."""
        wanted = list(partitions)
        if initializer.kind == "earliest":
            return self.beginnings(wanted)
        if initializer.kind == "latest":
            return self.ends(wanted)
        if initializer.kind == "timestamp":
            spec = kafka_library().admin.OffsetSpec.for_timestamp(initializer.timestamp_ms)
            found = self._list(wanted, spec)
        elif initializer.kind == "offsets":
            found = {each: offset for each, offset in initializer.given if each in wanted}
        else:
            found = self._committed_offsets(wanted)
        found = {each: offset for each, offset in found.items() if offset >= 0}
        rest = [each for each in wanted if each not in found]
        return found | self._reset(initializer, rest) if rest else found

    def _reset(self, initializer: KafkaOffsetsInitializer, partitions: list[KafkaTopicPartition]) -> Offsets:
        if initializer.reset is KafkaOffsetResetStrategy.EARLIEST:
            return self.beginnings(partitions)
        if initializer.reset is KafkaOffsetResetStrategy.LATEST:
            return self.ends(partitions)
        missing = (
            f"group {self._source.group_id} has committed no offset"
            if initializer.kind == "committed"
            else "no start offset is given"
        )
        raise ConnectorError(
            f"{_WHO}: {partitions[0]}: {missing}, and no reset strategy is set",
            hint="pass one to KafkaOffsetsInitializer: KafkaOffsetResetStrategy.EARLIEST or LATEST",
            retryable=False,
        )

    def _committed_offsets(self, partitions: list[KafkaTopicPartition]) -> Offsets:
        library = kafka_library()
        asked = [library.TopicPartition(each.topic, each.partition) for each in partitions]
        try:
            found = self._consumer.committed(asked, timeout=_REQUEST_S)
        except library.KafkaException as error:
            what = f"fetching the committed offsets of group {self._source.group_id}"
            raise failure(_WHO, what, error.args[0], self._properties, self._trouble) from None
        return {KafkaTopicPartition(each.topic, each.partition): each.offset for each in found}

    def _list(self, partitions: Iterable[KafkaTopicPartition], spec: Any) -> Offsets:
        library = kafka_library()
        asked = {library.TopicPartition(each.topic, each.partition): spec for each in partitions}
        if not asked:
            return {}
        try:
            return self._list_once(asked)
        except library.KafkaException:
            # The client may not have heard of a partition that is new, or of a leader that has changed.
            self._refresh_metadata()
        try:
            return self._list_once(asked)
        except library.KafkaException as error:
            self._admin.poll(0)
            what = f"fetching the offsets of {self._source.subscription}"
            reason = error.args[0]
            raise failure(_WHO, what, reason, self._properties, self._admin_trouble, was_there=True) from None

    def _list_once(self, asked: dict[Any, Any]) -> Offsets:
        futures = self._admin.list_offsets(asked, isolation_level=self._isolation, request_timeout=_REQUEST_S)
        return {
            KafkaTopicPartition(partition.topic, partition.partition): future.result().offset
            for partition, future in futures.items()
        }

    def _refresh_metadata(self) -> None:
        try:
            self._admin.list_topics(timeout=_REQUEST_S)
        except kafka_library().KafkaException as error:
            self._admin.poll(0)
            raise failure(
                _WHO, "listing topics", error.args[0], self._properties, self._admin_trouble
            ) from None

    def close(self) -> None:
        self._consumer.close()


def _partitions_of(topic: str, metadata: Any) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(topic, number) for number in sorted(metadata.partitions)]
