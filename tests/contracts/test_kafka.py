"""Kafka's source and sink against the contracts, on a real broker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from headrace.common.serialization import SimpleStringSchema
from headrace.connectors.base import (
    Committable,
    CommitterContext,
    DeliveryGuarantee,
    SplitProgress,
    WriterContext,
)
from headrace.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    _publisher,
)
from headrace.connectors.kafka._transactions import TransactionalWriter
from headrace.connectors.kafka.sink import close_producers
from headrace.elements import Batch
from headrace.errors import ConnectorError
from headrace.testing.contracts import check_sink, check_source
from tests.kafka import KafkaBroker

WORDS = [f"word-{i}" for i in range(23)]
#: Few: every slice is read by two readers, each with a consumer of its own.
CUTS = ((7, 1, 2), 1_000_000)
EPOCHS = [["a", "b", "c", "d", "e"], ["f"], [], [f"word-{i}" for i in range(50)]]


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    close_producers()


def source_of(kafka: KafkaBroker, *topics: str):
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.address)
        .set_topics(*topics)
        .set_value_only_deserializer(SimpleStringSchema())
    )


def fill(kafka: KafkaBroker, topic: str, partitions: int) -> None:
    for partition in range(partitions):
        kafka.produce(topic, WORDS[partition::partitions], partition)


def test_a_bounded_source_keeps_the_contract(kafka):
    topic = kafka.create_topic(4)  # one of them stays empty
    fill(kafka, topic, 3)

    source = source_of(kafka, topic).set_bounded(KafkaOffsetsInitializer.latest()).build()

    check_source(source, WORDS, parallelism=2, cuts=CUTS)


def test_an_unbounded_source_keeps_the_contract(kafka):
    topic = kafka.create_topic(2)
    fill(kafka, topic, 2)

    check_source(source_of(kafka, topic).build(), WORDS, parallelism=2, cuts=(2, 1_000_000))


@pytest.mark.parametrize(
    "isolation", ["read_committed", pytest.param("read_uncommitted", marks=pytest.mark.slow)]
)
def test_a_source_over_transactions_keeps_the_contract(kafka, isolation):
    from confluent_kafka import Producer

    topic = kafka.create_topic(1)
    producer = Producer(
        {"bootstrap.servers": kafka.address, "transactional.id": f"tx-{topic}", "log_level": 0}
    )
    producer.init_transactions(20)
    for number, word in enumerate(WORDS):  # each in a transaction of its own: every other offset is a marker
        producer.begin_transaction()
        producer.produce(topic, word if number % 5 else f"aborted-{word}")
        producer.flush(20)  # an abort takes back what has not left
        producer.commit_transaction(20) if number % 5 else producer.abort_transaction(20)
    expected = [word if number % 5 else f"aborted-{word}" for number, word in enumerate(WORDS)]
    if isolation == "read_committed":
        expected = [word for word in expected if not word.startswith("aborted")]

    source = source_of(kafka, topic).set_property("isolation.level", isolation)

    check_source(source.set_bounded(KafkaOffsetsInitializer.latest()).build(), expected, cuts=CUTS)


def test_partitions_that_come_later_are_read_from_their_beginning(kafka):
    topic = kafka.create_topic(1)
    kafka.produce(topic, ["old"], 0)
    source = source_of(kafka, topic).set_starting_offsets(KafkaOffsetsInitializer.latest())
    enumerator = source.set_property("partition.discovery.interval.ms", "1").build().create_enumerator(1)
    [first] = enumerator.discover()
    assert enumerator.start_position(first) == 1
    assert not enumerator.is_complete

    kafka.add_partitions(topic, 2)
    kafka.produce(topic, ["new"], 1)
    found = []
    while not found:
        found = list(enumerator.discover())

    assert [(split.partition, enumerator.start_position(split)) for split in found] == [(1, 0)]
    assert enumerator.plan(found[0], 0, 100).end == 1
    enumerator.close()


def sink_to(kafka: KafkaBroker, topic: str, guarantee: DeliveryGuarantee) -> KafkaSink:
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.address).set_record_serializer(serializer)
    return builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(f"p-{topic}").build()


@pytest.mark.parametrize(
    "guarantee",
    [
        DeliveryGuarantee.EXACTLY_ONCE,
        DeliveryGuarantee.AT_LEAST_ONCE,
        pytest.param(DeliveryGuarantee.NONE, marks=pytest.mark.slow),  # written as the one above
    ],
)
def test_the_sink_keeps_the_contract(kafka, guarantee):
    topic = kafka.create_topic(3)
    promised = DeliveryGuarantee.AT_LEAST_ONCE if guarantee is DeliveryGuarantee.NONE else guarantee

    check_sink(
        sink_to(kafka, topic, guarantee), EPOCHS, published=lambda: kafka.values(topic), guarantee=promised
    )


def test_a_reader_continues_with_what_it_has_read_ahead(kafka):
    topic = kafka.create_topic(1)
    fill(kafka, topic, 1)
    source = source_of(kafka, topic).build()
    enumerator, reader = source.create_enumerator(1), source.create_reader()
    [split] = enumerator.discover()
    found = []

    for start in (0, 5, 10, 5):  # at last another worker has been there, and the epoch comes back here
        piece = enumerator.plan(split, start, 5)
        found.append([value for batch in reader.read(piece) for value in batch.values])
        assert reader.progress() == SplitProgress(start + 5, is_finished=False)

    assert found == [WORDS[0:5], WORDS[5:10], WORDS[10:15], WORDS[5:10]]
    assert len(reader._consumers) == 1
    reader.close()
    enumerator.close()


class Interrupted:
    """A producer; when a call is made for the first time, something happens before it or after it."""

    def __init__(self, producer: Any, call: str, when: str, act: Callable[[], None]) -> None:
        self._producer, self._call, self._when, self._act = producer, call, when, act

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._producer, name)
        if name != self._call or self._act is None:
            return method

        def interrupted(*arguments: Any, **options: Any) -> Any:
            act, self._act = self._act, None
            if self._when == "before":
                act()
            result = method(*arguments, **options)
            if self._when == "behind":
                act()
            return result

        return interrupted


def test_a_commit_whose_answer_is_lost_is_not_done_twice(kafka):
    from confluent_kafka import KafkaError, KafkaException

    def lose_the_answer() -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    topic = kafka.create_topic(1)

    published = publish_interrupted(kafka, topic, "commit_transaction", "behind", lose_the_answer)

    assert published == EPOCHS[0] + EPOCHS[1]


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.timeout(300)
@pytest.mark.parametrize("when", ["before", "behind"])
@pytest.mark.parametrize(
    "call", ["begin_transaction", "produce", "send_offsets_to_transaction", "commit_transaction"]
)
def test_records_come_out_once_wherever_in_a_transaction_the_broker_is_lost(kafka, call, when):
    topic = kafka.create_topic(1)

    published = publish_interrupted(kafka, topic, call, when, kafka.restart)

    assert published == EPOCHS[0] + EPOCHS[1]


def publish_interrupted(
    kafka: KafkaBroker, topic: str, call: str, when: str, act: Callable[[], None]
) -> list[str]:
    """Publish two epochs; the second one is interrupted."""
    sink = sink_to(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE)
    committer = sink.create_committer()
    for epoch, values in enumerate(EPOCHS[:2]):
        writer = sink.create_writer(
            WriterContext(subtask=0, parallelism=1, epoch=epoch, attempt_id=str(epoch))
        )
        writer.write_batch(Batch(values))
        committables = [Committable(0, epoch, payload) for payload in writer.prepare_commit()]
        if epoch == 1:
            [(_, writing)] = [kept for key, kept in _publisher._writers.items() if topic in key[1]]
            writing._producer = Interrupted(writing._producer, call, when, act)
        committer.commit(committables)
    committer.close()
    return kafka.values(topic)


# --- shares of subtasks -------------------------------------------------------------------------------


def stage(sink: KafkaSink, subtask: int, epoch: int, values: list[str], staging: Path) -> list[Committable]:
    """Write records of one subtask and epoch; many of them go to a file."""
    writer = sink.create_writer(
        WriterContext(
            subtask=subtask,
            parallelism=2,
            epoch=epoch,
            attempt_id=f"{subtask}-{epoch}",
            job_id="job",
            sink_id="op",
            staging_dir=str(staging),
        )
    )
    writer.write_batch(Batch(values))
    return [Committable(subtask, epoch, payload) for payload in writer.prepare_commit()]


def many(subtask: int, epoch: int) -> list[str]:
    """Return more than what travels with a report."""
    return [f"{subtask}-{epoch}-{number}-" + "x" * 100 for number in range(700)]


class Workers:
    """Processes that publish: another one of them in every call."""

    def __init__(self, *pools: ProcessPoolExecutor) -> None:
        self.pools = list(pools)
        self.shares: list[int] = []

    def __call__(self, functions: Sequence[Callable[[], Any]]) -> list[Any]:
        pool = self.pools.pop(0)
        self.pools.append(pool)
        self.shares.append(len(functions))
        return [future.result(60) for future in [pool.submit(function) for function in functions]]


def test_workers_publish_shares_in_turn_and_each_comes_out_once(kafka, tmp_path):
    topic = kafka.create_topic(2)
    sink = sink_to(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE)
    expected: list[str] = []
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as one,
        ProcessPoolExecutor(1, get_context("spawn")) as other,
    ):
        workers = Workers(one, other)
        context = CommitterContext("job", "op", str(tmp_path), is_checkpointed=True, run_in_workers=workers)
        committer = sink.create_committer(context)
        # Epochs 0 and 2 go to the same process, whose producer was shut out meanwhile; in epoch 1 one share is small.
        for epoch in range(3):
            second = ["small"] if epoch == 1 else many(1, epoch)
            staged = [
                *stage(sink, 0, epoch, many(0, epoch), tmp_path),
                *stage(sink, 1, epoch, second, tmp_path),
            ]
            expected += many(0, epoch) + second
            committer.snapshot()
            committer.commit(staged)
        state = committer.snapshot()
        committer.close()
        # A restart with another parallelism publishes the last checkpoint again, from the driver.
        again = sink.create_committer(CommitterContext("job", "op", str(tmp_path), is_checkpointed=True))
        again.restore(state)
        again.commit(staged)
        again.discard_after(2)
        again.commit(stage(sink, 0, 3, ["last"], tmp_path))
        again.close()
    assert workers.shares == [2, 1, 2]
    assert sorted(kafka.values(topic, at_least=len(expected) + 1)) == sorted([*expected, "last"])
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def die(share: Callable[[], Any], when: str) -> None:
    """Be killed as a worker while it publishes: before the transaction is committed, or right after."""
    commit = TransactionalWriter._commit

    def deadly(writer: TransactionalWriter, producer: Any) -> None:
        if when == "before":
            producer.flush(20)
        else:
            commit(writer, producer)
        os._exit(9)

    TransactionalWriter._commit = deadly  # type: ignore[method-assign]
    share()


@pytest.mark.parametrize("when", ["before", "behind"])
def test_a_worker_that_is_killed_while_it_publishes_leaves_nothing_twice(kafka, tmp_path, when):
    topic = kafka.create_topic(1)
    sink = sink_to(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:

        def run(functions: Sequence[Callable[[], Any]]) -> list[Any]:
            with pytest.raises(BrokenProcessPool):
                pool.submit(die, functions[0], when).result(60)
            return [each() for each in functions]  # as Spark runs a task again

        committer = sink.create_committer(CommitterContext("job", "op", str(tmp_path), run_in_workers=run))
        committer.commit(stage(sink, 0, 1, many(0, 1), tmp_path))
        committer.close()
    assert kafka.values(topic, at_least=len(many(0, 1))) == many(0, 1)


def test_a_driver_that_is_not_the_only_one_is_shut_out(kafka, tmp_path):
    topic = kafka.create_topic(1)
    sink = sink_to(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE)
    old, new = sink.create_committer(), sink.create_committer()
    old.commit(stage(sink, 0, 1, ["a"], tmp_path))
    kept = dict(_publisher._writers)
    _publisher._writers.clear()  # as if it were another process
    new.commit(stage(sink, 0, 2, ["b"], tmp_path))
    _publisher._writers.clear()
    _publisher._writers.update(kept)
    with pytest.raises(ConnectorError, match="another producer has taken over") as caught:
        old.commit(stage(sink, 0, 3, ["c"], tmp_path))
    assert not caught.value.retryable
    assert kafka.values(topic, at_least=2) == ["a", "b"]
    old.close()
    new.close()
