"""Records and the marker in one transaction: what makes `KafkaSink` exact.

    begin; the records; the marker, as a committed offset of a group of its own; commit

There is a transactional id for each subtask of the sink, and a group of the same name. Whoever writes under an id keeps
out all others that have it: a driver that was taken for lost, or a worker whose task is run again.

The marker is the number of the last epoch that was written, and by which *generation*: a publisher (`_publisher`) draws
a new one when it is made, and puts it into every checkpoint. After a failure, output that a checkpoint covers was
published if the marker says so for the checkpoint's generation. Epoch numbers alone would not do: a job that goes back
to an older savepoint counts on from there and writes other records.

    generation a   epochs 1 2 3 | 4 5 |            marker a:3, a:5
                              savepoint
    generation b              3 | 4 5 6 |          marker a:5 b:6: for b, 4 and 5 were not written before

If anything goes wrong on the way, nobody here has to know how far it came. A new producer with the same id first has
the broker settle what the last one left: a transaction whose end was not asked for is aborted, one whose end was is
committed. Only then is the marker read, and what it does not cover is written again.

    broker lost after     the broker has      a new producer finds it        marker     then
    begin, some records   a transaction       open: it is aborted            as before  all is written again
    the marker            a transaction       open: it is aborted            as before  all is written again
    asking to commit      heard of it, maybe  committed; or open: aborted    says which what is left is written
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, cast

from headrace.connectors.kafka._clients import Trouble, failure, make_client
from headrace.connectors.kafka._properties import KafkaProperties, kafka_library
from headrace.connectors.write_ahead import StagedRecords, transactions_of
from headrace.errors import ConnectorError

_log = logging.getLogger(__name__)

_WHO = "KafkaSink"
#: Records of one transaction at most, unless an epoch has more.
_MAX_RECORDS = 200_000
#: Generations that a marker remembers: how often a job may have come back since the checkpoint it is started from.
_GENERATIONS = 64
#: One call at most; whether to try again is decided between two of them.
_CALL_S = 30.0
#: How long the marker may take if the client has lost a broker: it may wait for one that will never answer.
_MARKER_S = 5.0

#: Topic, partition, key, value, time, headers: what workers stage for each record.
Staged = tuple[str, int | None, bytes | None, bytes | None, int | None, Sequence[tuple[str, bytes | None]]]


class TransactionalWriter:
    """Writes records in transactions under one id; used by one thread at a time.

    Args:
        properties: Of the producer.
        config: The same in librdkafka's names.
        transactional_id: The id of the transactions, and of the group that has the marker.
        topic: The topic that everything goes to; None if records choose theirs.
    """

    def __init__(
        self, properties: KafkaProperties, config: dict[str, Any], *, transactional_id: str, topic: str | None
    ) -> None:
        self._properties = properties
        self._call_s = min(_CALL_S, properties.api_timeout_s)
        self._config = config | {"transactional.id": transactional_id, "on_delivery": self._delivered}
        #: Why the first record of a transaction could not be written, and its topic.
        self._refused: tuple[Any, str] | None = None
        self._id = transactional_id
        self._topic = topic
        self._producer: Any = None
        self._trouble = Trouble()
        self._markers: _Markers | None = None

    def write(self, staged: Sequence[StagedRecords], generation: str) -> None:
        """Write what the marker does not cover.

        Args:
            staged: In the order of epochs.
            generation: Under which the checkpoint was written that covers them.

        Raises:
            ConnectorError: It failed for good, or for longer than the client's time limit for calls.
        """
        deadline = time.monotonic() + self._properties.api_timeout_s
        while True:
            try:
                self._publish(staged, generation)
                return
            except _Again as again:
                # The producer cannot be used any more, or the state of the transaction is unknown. A new one
                # settles it, and the marker says what is left to be done.
                self.close()
                if time.monotonic() > deadline:
                    raise again.failure from None
                _log.warning("%s; retrying", again.failure.message)

    def _publish(self, staged: Sequence[StagedRecords], generation: str) -> None:
        producer = self._ready_producer()
        markers = self._ready_markers(staged)
        done = markers.last_epoch(generation)
        for group in transactions_of((records for records in staged if records.epoch > done), _is_full):
            self._write(producer, markers, group, generation)

    def _delivered(self, error: Any, message: Any) -> None:
        codes = kafka_library().KafkaError
        if error is not None and self._refused is None and error.code() != codes._PURGE_QUEUE:
            self._refused = (error, message.topic())

    def _first_refusal(self, producer: Any) -> tuple[Any, str] | None:
        with suppress(
            kafka_library().KafkaException
        ):  # a client that is past repair says so, again and again
            producer.poll(0)
        return self._refused

    # -- one transaction -------------------------------------------------------------------------------

    def _write(
        self, producer: Any, markers: _Markers, group: Sequence[StagedRecords], generation: str
    ) -> None:
        library = kafka_library()
        count = sum(records.count for records in group)
        what = f"writing {count} records in a transaction of {self._id}"
        self._refused = None
        try:
            producer.begin_transaction()
            topic = self._produce(producer, group)
            metadata = markers.with_epoch(generation, group[-1].epoch)
            marker = library.TopicPartition(self._topic or topic, 0, group[-1].epoch, metadata)
            self._send_marker(producer, marker, markers.group)
            self._commit(producer)
        except library.KafkaException as error:
            # Of a record that was refused the transaction only says that it must be aborted.
            refusal = self._first_refusal(producer)
            if refusal is not None:
                raise self._failed(refusal[0], f"writing to topic {refusal[1]}") from None
            raise self._failed(error.args[0], what) from None
        markers.note(metadata)

    def _produce(self, producer: Any, group: Sequence[StagedRecords]) -> str:
        """Hand all records to the client, and return the topic of the first."""
        first = ""
        for records in group:
            for batch in cast("Iterator[list[Staged]]", records.batches()):
                first = first or batch[0][0]
                for record in batch:
                    _produce_one(producer, record)
                producer.poll(0)
        return first

    def _send_marker(self, producer: Any, marker: Any, group: Any) -> None:
        """Make the marker a part of the transaction.

        librdkafka takes no notice of the time this call may take (its issue 5456), and does not wake up if the broker
        that it remembers as the group's coordinator has left the cluster, be it for a moment (5511). So the call is
        made in a thread; a client that does not come back is left behind, and a new one takes its place and its id. If
        the old one wakes up after all, the broker refuses what it sends: its epoch is over.
        """
        sent = _in_thread(lambda: producer.send_offsets_to_transaction([marker], group, self._call_s))
        begun = time.monotonic()
        while not _is_done(sent):
            producer.poll(0)  # serves the callback that notes trouble
            has_trouble = self._trouble.recent() is not None
            if time.monotonic() - begun > (_MARKER_S if has_trouble else self._call_s):
                what = f"adding the marker to a transaction of {self._id}"
                raise _Again(failure(_WHO, what, None, self._properties, self._trouble))
        sent.result()

    def _commit(self, producer: Any) -> None:
        """Commit; that flushes. Trying again is harmless as long as the client says so."""
        library = kafka_library()
        deadline = time.monotonic() + self._properties.api_timeout_s
        while True:
            try:
                producer.commit_transaction(self._call_s)
                return
            except library.KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise

    def _failed(self, error: Any, what: str) -> Exception:
        """Whether to retry: yes, unless another driver has taken over or the records are rejected."""
        library = kafka_library()
        codes = library.KafkaError
        if error.code() in (codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH):
            return ConnectorError(
                f"{_WHO}: {what} failed: another producer has taken over the transactional id",
                hint="check that no other driver runs this job and no other job has its transactional id prefix",
                retryable=False,
            )
        problem = failure(_WHO, what, error, self._properties, self._trouble)
        return _Again(problem) if problem.retryable else problem

    # -- clients ---------------------------------------------------------------------------------------

    def _ready_producer(self) -> Any:
        """Return a producer whose id is ours alone: transactions that others left open are settled."""
        if self._producer is None:
            library = kafka_library()
            producer, self._trouble = make_client(library.Producer, self._config, self._properties, _WHO)
            try:
                producer.init_transactions(self._call_s)
            except library.KafkaException as error:
                self._first_refusal(producer)  # serves the callback that notes trouble
                raise self._failed(error.args[0], f"starting transactions of {self._id}") from None
            self._producer = producer
        return self._producer

    def _ready_markers(self, staged: Sequence[StagedRecords]) -> _Markers:
        if self._markers is None:
            topics = [self._topic] if self._topic else sorted({next(iter(each))[0] for each in staged})
            try:
                for topic in topics:
                    self._check_exists(topic)
                self._markers = _Markers(self._properties, self._id, topics)
            except kafka_library().KafkaException as error:
                what = f"fetching the marker of group {self._id}"
                raise self._failed(error.args[0], what) from None
        return self._markers

    def _check_exists(self, topic: str) -> None:
        """Fail at once if a topic is missing: a transaction would wait for it, for long."""
        error = self._producer.list_topics(topic, self._call_s).topics[topic].error
        if error is not None and error.code() == kafka_library().KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise self._failed(error, f"writing to topic {topic}")

    def close(self) -> None:
        if self._producer is not None:
            # What is not committed must not come out: a transaction that is open is left to whoever begins next.
            self._producer.purge()
            self._producer = None
        if self._markers is not None:
            self._markers.close()
            self._markers = None


class _Again(Exception):
    """The transaction failed, but a retry may succeed."""

    def __init__(self, failure: ConnectorError) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _in_thread(call: Callable[[], None]) -> Future[None]:
    """Make a call that may never return. Nobody waits for its thread when the process ends."""
    outcome: Future[None] = Future()

    def settle() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised to whoever asks for the result
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=settle, name="kafka-marker", daemon=True).start()
    return outcome


def _is_done(outcome: Future[None]) -> bool:
    """Wait up to 50 ms, and return whether the call has ended."""
    with suppress(TimeoutError):
        outcome.exception(timeout=0.05)
    return outcome.done()


def _produce_one(producer: Any, record: Staged) -> None:
    topic, partition, key, value, timestamp, headers = record
    options: dict[str, Any] = {}
    if partition is not None:
        options["partition"] = partition
    if timestamp is not None:
        options["timestamp"] = timestamp
    if headers:
        options["headers"] = list(headers)
    while True:
        try:
            producer.produce(topic, value, key, **options)
            return
        except BufferError:
            producer.poll(0.05)


def _is_full(group: list[StagedRecords], count: int, following: StagedRecords) -> bool:
    """Whether a transaction is full. It ends between epochs only: a marker stands for all of an epoch."""
    return following.epoch != group[-1].epoch and count + following.count > _MAX_RECORDS


class _Markers:
    """The committed offset of the sink's own group, and what its metadata says about generations."""

    def __init__(self, properties: KafkaProperties, group_id: str, topics: Sequence[str]) -> None:
        library = kafka_library()
        config = properties.client_config()
        kept = ("bootstrap.servers", "security.protocol", "client.id", "reconnect.")
        own = {
            name: value
            for name, value in config.items()
            if name.startswith((*kept, "sasl.", "ssl.", "socket."))
        }
        own |= {"group.id": group_id, "enable.auto.commit": False, "isolation.level": "read_committed"}
        self._consumer, _ = make_client(library.Consumer, own, properties, _WHO)
        #: Generation -> its last epoch; the latest generation last.
        self._epochs: dict[str, int] = {}
        try:
            found = self._consumer.committed(
                [library.TopicPartition(topic, 0) for topic in topics],
                timeout=min(_CALL_S, properties.api_timeout_s),
            )
        except BaseException:
            self._consumer.close()
            raise
        for each in sorted(found, key=lambda each: each.offset):
            for generation, epoch in _parsed(each.metadata).items():
                self._epochs[generation] = max(epoch, self.last_epoch(generation))

    @property
    def group(self) -> Any:
        """The group, as a transaction wants to have it."""
        return self._consumer.consumer_group_metadata()

    def last_epoch(self, generation: str) -> int:
        """Return the last epoch that a generation has published; -1 if it has none."""
        return self._epochs.get(generation, -1)

    def with_epoch(self, generation: str, epoch: int) -> str:
        """Return the metadata of the marker that says so, too."""
        epochs = {name: last for name, last in self._epochs.items() if name != generation} | {
            generation: epoch
        }
        return " ".join(f"{name}:{last}" for name, last in list(epochs.items())[-_GENERATIONS:])

    def note(self, metadata: str) -> None:
        """The marker was committed."""
        self._epochs = _parsed(metadata)

    def close(self) -> None:
        self._consumer.close()


def _parsed(metadata: str | None) -> dict[str, int]:
    pairs = (each.partition(":") for each in (metadata or "").split())
    return {name: int(epoch) for name, _, epoch in pairs}
