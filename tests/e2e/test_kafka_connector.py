"""Kafka's source and sink on a real broker, without Spark: offsets, records, errors, generations of output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from headrace.common.serialization import SimpleStringSchema
from headrace.connectors.base import (
    Committable,
    CommitterContext,
    DeliveryGuarantee,
    ReaderContext,
    WriterContext,
)
from headrace.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from headrace.connectors.kafka._settings import KafkaPartitionSplit
from headrace.connectors.kafka.sink import close_producers
from headrace.elements import Batch
from headrace.errors import ConnectorError

EARLIEST, LATEST, NONE = (
    KafkaOffsetResetStrategy.EARLIEST,
    KafkaOffsetResetStrategy.LATEST,
    KafkaOffsetResetStrategy.NONE,
)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    close_producers()


@pytest.fixture(scope="module")
def numbers(kafka) -> str:
    """Return a topic with one partition: the numbers 0 to 9, each at 100 times its own time."""
    topic = kafka.create_topic(1)
    for number in range(10):
        kafka.produce(topic, [number], 0, timestamp=1000 + number * 100)
    return topic


def source_of(kafka, topic, address=None):
    builder = KafkaSource.builder().set_bootstrap_servers(address or kafka.address).set_topics(topic)
    return builder.set_group_id(f"g-{topic}").set_value_only_deserializer(SimpleStringSchema())


def first_slice(source: KafkaSource, position: int | None = None) -> Any:
    """Plan the first epoch of a source with one partition, fresh or from a position."""
    enumerator = source.create_enumerator(1)
    try:
        if position is None:
            [split] = enumerator.discover()
            position = enumerator.start_position(split)
        else:
            split = KafkaPartitionSplit.of(KafkaTopicPartition(source.subscription.topics[0], 0))
            enumerator.restore([split])
            enumerator.discover()
        return enumerator.plan(split, position, 1_000_000)
    finally:
        enumerator.close()


def read(source: KafkaSource, piece: Any, context: ReaderContext | None = None) -> list[Any]:
    reader = source.create_reader()
    reader.open(context or ReaderContext())
    try:
        return [value for batch in reader.read(piece) for value in batch.values]
    finally:
        reader.close()


# --- the source -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("initializer", "start"),
    [
        (KafkaOffsetsInitializer.earliest(), 0),
        (KafkaOffsetsInitializer.timestamp(1350), 4),
        (KafkaOffsetsInitializer.timestamp(1400), 4),
        (KafkaOffsetsInitializer.timestamp(9999), None),
        (KafkaOffsetsInitializer.latest(), None),
        (KafkaOffsetsInitializer.committed_offsets(EARLIEST), 0),
        (KafkaOffsetsInitializer.committed_offsets(LATEST), None),
    ],
)
def test_reading_begins_where_it_should(kafka, numbers, initializer, start):
    piece = first_slice(source_of(kafka, numbers).set_starting_offsets(initializer).build())

    assert (None if piece is None else piece.start) == start


def test_reading_begins_and_ends_at_given_offsets(kafka, numbers):
    partition = KafkaTopicPartition(numbers, 0)
    builder = source_of(kafka, numbers).set_starting_offsets(KafkaOffsetsInitializer.offsets({partition: 3}))
    source = builder.set_bounded(KafkaOffsetsInitializer.offsets({partition: 6})).build()

    assert read(source, first_slice(source)) == ["3", "4", "5"]


def test_offsets_are_committed_with_a_checkpoint_and_a_group_continues_there(kafka, numbers):
    source = source_of(kafka, numbers).set_group_id("committing").build()
    enumerator = source.create_enumerator(1)
    [split] = enumerator.discover()
    enumerator.checkpoint_completed({split.split_id: 7}, [])
    enumerator.close()  # waits for it

    assert kafka.committed("committing", numbers) == {0: 7}
    again = source_of(kafka, numbers).set_group_id("committing")
    piece = first_slice(again.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build())
    assert piece.start == 7


def test_a_group_without_offsets_and_without_a_strategy_is_an_error(kafka, numbers):
    builder = source_of(kafka, numbers).set_group_id("nobody")

    with pytest.raises(
        ConnectorError, match=f"topic {numbers}, partition 0: group nobody has committed no offset"
    ):
        first_slice(builder.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build())


@pytest.mark.parametrize(("reset", "start"), [("earliest", 4), ("latest", None), ("none", "error")])
def test_records_that_retention_took_are_skipped_or_missed(kafka, reset, start):
    from confluent_kafka import TopicPartition

    topic = kafka.create_topic(1)
    kafka.produce(topic, range(10), 0)
    [done] = kafka.admin().delete_records([TopicPartition(topic, 0, 4)]).values()
    done.result(20)
    source = source_of(kafka, topic).set_property("auto.offset.reset", reset).build()

    if start == "error":
        with pytest.raises(
            ConnectorError, match=f"topic {topic}, partition 0: offset 2 does not exist"
        ) as caught:
            first_slice(source, position=2)
        assert not caught.value.retryable
    else:
        piece = first_slice(source, position=2)
        assert (None if piece is None else piece.start) == start


def test_topics_are_found_by_a_pattern(kafka):
    names = [kafka.create_topic(1, f"shop-{kind}-{kafka.port}") for kind in ("clicks", "views")]
    kafka.create_topic(1, f"other-shop-clicks-{kafka.port}")
    builder = (
        KafkaSource.builder().set_bootstrap_servers(kafka.address).set_topic_pattern(f"shop-.*-{kafka.port}")
    )
    enumerator = builder.set_value_only_deserializer(SimpleStringSchema()).build().create_enumerator(1)

    assert [split.topic for split in enumerator.discover()] == sorted(names)
    enumerator.close()


class Whole(KafkaRecordDeserializationSchema):
    def deserialize(self, record) -> Sequence[Any]:
        return [(record.offset, record.key, record.value, record.timestamp, record.headers)]


def test_whole_records_have_keys_headers_and_times_and_tombstones_are_seen(kafka):
    topic = kafka.create_topic(1)
    kafka.produce(topic, [b"v", None], 0, key=b"k", headers={"h": b"1"}, timestamp=5)
    source = source_of(kafka, topic).set_deserializer(Whole()).build()
    values_only = source_of(kafka, topic).build()

    assert read(source, first_slice(source)) == [
        (0, b"k", b"v", 5, (("h", b"1"),)),
        (1, b"k", None, 5, (("h", b"1"),)),
    ]
    assert read(values_only, first_slice(values_only)) == ["v"]


def test_lag_and_offsets_are_shown_under_flinks_names(kafka, numbers):
    source = source_of(kafka, numbers).build()
    piece = first_slice(source)
    context = ReaderContext()

    read(source, type(piece)(piece.split, 0, 4, payload=piece.payload), context)

    assert context.metrics.values() == {
        "numRecordsInErrors": 0,
        "pendingRecords": 6,
        "KafkaSourceReader.KafkaConsumer.records-lag-max": 6,
        "KafkaSourceReader.commitsSucceeded": 0,
        "KafkaSourceReader.commitsFailed": 0,
        f"KafkaSourceReader.topic.{numbers}.partition.0.currentOffset": 3,
        f"KafkaSourceReader.topic.{numbers}.partition.0.committedOffset": -1,
    }


def test_a_topic_that_does_not_exist_is_named(kafka):
    with pytest.raises(ConnectorError, match="KafkaSource: looking up topic nowhere failed") as caught:
        first_slice(source_of(kafka, "nowhere").build())

    assert not caught.value.retryable
    assert "create the topic" in caught.value.hint


def with_login(builder, password):
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="tester" password="{password}";'
    for name, value in {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": jaas,
    }.items():
        builder.set_property(name, value)
    return builder


def test_wrong_credentials_are_an_error_that_does_not_tell_them(kafka, numbers):
    right = with_login(source_of(kafka, numbers, kafka.sasl_address), kafka.password).build()
    wrong = with_login(source_of(kafka, numbers, kafka.sasl_address), "wr0ng-s3cr3t").build()

    assert read(right, first_slice(right))[:2] == ["0", "1"]
    with pytest.raises(ConnectorError, match=r"[Aa]uthentication failed") as caught:
        first_slice(wrong)

    assert not caught.value.retryable
    assert "credentials" in caught.value.hint
    assert "s3cr3t" not in f"{caught.value}{caught.value.__cause__}{wrong!r}"
    assert kafka.password not in repr(right)


# --- the sink -------------------------------------------------------------------------------------


def serializer_to(topic):
    builder = KafkaRecordSerializationSchema.builder().set_topic(topic)
    return builder.set_value_serialization_schema(SimpleStringSchema())


def sink_with(kafka, serializer, guarantee=DeliveryGuarantee.AT_LEAST_ONCE, prefix="p"):
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.address).set_record_serializer(serializer)
    builder.set_property("default.api.timeout.ms", "5000")
    return builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(prefix).build()


def write(sink, values, timestamps=None, epoch=1) -> list[Committable]:
    writer = sink.create_writer(WriterContext(0, 1, epoch, f"a-{epoch}", "job", "sink"))
    writer.write_batch(Batch(list(values), timestamps))
    return [Committable(0, epoch, payload) for payload in writer.prepare_commit()]


def committer_of(sink):
    return sink.create_committer(CommitterContext("job", "sink", is_checkpointed=True))


@pytest.mark.parametrize("guarantee", [DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE])
def test_key_headers_partition_and_time_are_written(kafka, guarantee):
    topic = kafka.create_topic(3)
    schema = (
        serializer_to(topic)
        .set_key_serialization_schema(SimpleStringSchema())
        .set_header_provider(lambda value: [("from", value.encode())])
        .set_partitioner(lambda value, key, data, topic, count: count - 1)
        .build()
    )
    sink = sink_with(kafka, schema, guarantee, prefix=topic)

    staged = write(sink, ["a"], [1234])
    if guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        committer = committer_of(sink)
        committer.commit(staged)
        committer.close()

    [message] = kafka.messages(topic, at_least=1)
    assert (message.partition(), message.key(), message.value()) == (2, b"a", b"a")
    assert (message.timestamp()[1], message.headers()) == (1234, [("from", b"a")])


def test_records_may_choose_their_topic_exactly_once(kafka):
    topics = [kafka.create_topic(1) for _ in range(2)]
    schema = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(lambda value: topics[int(value) % 2])
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    sink = sink_with(kafka, schema, DeliveryGuarantee.EXACTLY_ONCE, prefix=topics[0])
    committer = committer_of(sink)
    snapshot = committer.snapshot()
    staged = write(sink, ["1", "2", "3"], epoch=1)
    committer.commit(staged)
    again = committer_of(sink)
    again.restore(snapshot)
    again.commit(staged)

    assert [kafka.values(topic, at_least=n) for n, topic in enumerate(topics, 1)] == [["2"], ["1", "3"]]
    again.close()
    committer.close()


def test_a_job_that_goes_back_to_a_savepoint_writes_its_new_output(kafka):
    #   first job    1 |savepoint| 2 3        second job, from the savepoint    2' |crash| 2'
    topic = kafka.create_topic(1)
    sink = sink_with(kafka, serializer_to(topic).build(), DeliveryGuarantee.EXACTLY_ONCE, prefix=topic)
    first = committer_of(sink)
    one, savepoint = write(sink, ["1"], epoch=1), first.snapshot()
    first.commit(one)
    for epoch in (2, 3):
        first.commit(write(sink, [f"{epoch}"], epoch=epoch))
    first.close()

    second = committer_of(sink)
    second.restore(savepoint)
    second.commit(one)
    second.discard_after(1)
    two, checkpoint = write(sink, ["2'"], epoch=2), second.snapshot()
    second.close()  # the driver is lost before it can publish
    third = committer_of(sink)
    third.restore(checkpoint)
    third.commit(two)
    third.commit(two)
    third.close()

    assert kafka.values(topic, at_least=4) == ["1", "2", "3", "2'"]


def test_a_restored_job_without_output_in_its_checkpoint_publishes_what_comes_next(kafka):
    topic = kafka.create_topic(1)
    sink = sink_with(kafka, serializer_to(topic).build(), DeliveryGuarantee.EXACTLY_ONCE, prefix=topic)
    first = committer_of(sink)
    savepoint = first.snapshot()
    first.commit(write(sink, ["old"], epoch=5))
    first.close()
    second = committer_of(sink)
    second.restore(savepoint)
    second.commit([])
    second.discard_after(4)

    second.commit(write(sink, ["new"], epoch=5))
    second.close()

    assert kafka.values(topic, at_least=2) == ["old", "new"]


@pytest.mark.parametrize("guarantee", [DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE])
def test_a_topic_that_does_not_exist_cannot_be_written_to(kafka, guarantee):
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.address)
    builder.set_record_serializer(serializer_to("nowhere").build()).set_delivery_guarantee(guarantee)
    builder.set_transactional_id_prefix("nowhere").set_property("topic.metadata.propagation.max.ms", "500")
    sink = builder.build()

    with pytest.raises(ConnectorError, match="KafkaSink: writing to topic nowhere failed") as caught:
        staged = write(sink, ["a"])
        committer_of(sink).commit(staged)
    assert "create the topic" in caught.value.hint
    assert not caught.value.retryable
