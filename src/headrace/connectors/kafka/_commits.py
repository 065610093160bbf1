"""Offsets that a group has committed: how others see how far a job is. The job itself follows its checkpoints.

Committing is done in the background, and what fails is done again with the next checkpoint.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from headrace.connectors.kafka._clients import make_client
from headrace.connectors.kafka._properties import KafkaProperties, kafka_library
from headrace.connectors.kafka.offsets import KafkaTopicPartition
from headrace.errors import ConnectorError

_log = logging.getLogger(__name__)

_WHO = "KafkaSource"
_REQUEST_S = 10.0

Offsets = dict[KafkaTopicPartition, int]


@dataclass(frozen=True)
class _Commit:
    """One that was asked for."""

    offsets: Offsets
    future: Future[Any]
    #: Not used; but a client that is dropped does not answer any more.
    client: Any


class OffsetCommits:
    """Commits the offsets of a group.

    Args:
        properties: Of the client.
        group_id: The group.
    """

    def __init__(self, properties: KafkaProperties, group_id: str) -> None:
        self._properties = properties
        self._group_id = group_id
        self._client: Any = None
        self._asked: list[_Commit] = []
        #: What is to be committed, and what is known to be.
        self._reached: Offsets = {}
        self._committed: Offsets = {}
        self.succeeded = 0
        self.failed = 0

    def of(self, partition: KafkaTopicPartition) -> int | None:
        """Return what is committed of a partition; None if nothing is yet."""
        return self._committed.get(partition)

    def commit(self, reached: Offsets) -> None:
        """Begin to commit, if there is anything new."""
        self._reached |= reached
        changed = {each: at for each, at in self._reached.items() if self._committed.get(each) != at}
        if changed:
            self._begin(changed)

    def settle(self) -> None:
        """Take note of what has been answered."""
        while self._asked and self._asked[0].future.done():
            self._note(self._asked.pop(0))

    def close(self) -> None:
        """Wait for what is on its way. What fails is tried again, by a client that looks for the group again."""
        self._wait()
        if self._reached != self._committed:
            self.commit({})
            self._wait()
        self._client = None

    def _begin(self, offsets: Offsets) -> None:
        library = kafka_library()
        if self._client is None:
            config = self._properties.client_config()
            self._client, _ = make_client(library.admin.AdminClient, config, self._properties, _WHO)
        positions = [library.TopicPartition(each.topic, each.partition, at) for each, at in offsets.items()]
        asked = library.ConsumerGroupTopicPartitions(self._group_id, positions)
        try:
            answers = self._client.alter_consumer_group_offsets([asked], request_timeout=_REQUEST_S)
        except library.KafkaException as error:
            self._note_failure(error)
            return
        self._asked.append(_Commit(offsets, answers[self._group_id], self._client))

    def _wait(self) -> None:
        while self._asked:
            self._note(self._asked.pop(0))

    def _note(self, commit: _Commit) -> None:
        try:
            for each in commit.future.result(2 * _REQUEST_S).topic_partitions:
                if each.error is not None:
                    raise ConnectorError(each.error.str())
        except Exception as error:  # noqa: BLE001 - the job follows its checkpoints
            self._note_failure(error)
            if commit.client is self._client:
                # It may continue asking a coordinator that has left the cluster: librdkafka's issue 5511.
                self._client = None
        else:
            self._committed |= commit.offsets
            self.succeeded += 1

    def _note_failure(self, error: Exception) -> None:
        self.failed += 1
        _log.warning(
            "%s: committing the offsets of group %s failed: %s",
            _WHO,
            self._group_id,
            self._properties.scrub(str(error)),
        )
