"""What can be said of Kafka's connector without a broker: settings, what is refused, and what is never shown."""

from __future__ import annotations

import pickle
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from headrace.common.serialization import SimpleStringSchema
from headrace.connectors.base import Boundedness, DeliveryGuarantee
from headrace.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
    KafkaTopicSelector,
    _commits,
    _transactions,
)
from headrace.connectors.kafka._commits import OffsetCommits
from headrace.connectors.kafka._properties import KafkaProperties
from headrace.connectors.kafka._publisher import KafkaPublisher
from headrace.connectors.kafka._transactions import TransactionalWriter, _is_full, _parsed
from headrace.connectors.write_ahead import StagedRecords, transactions_of
from headrace.errors import ConfigurationError, ConnectorError, HeadraceError, JobDefinitionError
from tests import kafka as broker

pytest.importorskip("confluent_kafka", reason="no client of Kafka: pip install 'headrace[kafka]'")

JAAS = (
    'org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="s3cr3t-w0rd";'
)


def source():
    builder = KafkaSource.builder().set_bootstrap_servers("localhost:1").set_topics("clicks")
    return builder.set_value_only_deserializer(SimpleStringSchema())


def serializer():
    builder = KafkaRecordSerializationSchema.builder().set_topic("counts")
    return builder.set_value_serialization_schema(SimpleStringSchema())


def sink():
    return (
        KafkaSink.builder().set_bootstrap_servers("localhost:1").set_record_serializer(serializer().build())
    )


def test_a_source_begins_at_the_earliest_record_and_does_not_end_unless_told():
    plain = pickle.loads(pickle.dumps(source().build()))
    bounded = source().set_bounded(KafkaOffsetsInitializer.latest()).build()
    stopping = source().set_unbounded(KafkaOffsetsInitializer.latest()).build()

    assert plain.starting == KafkaOffsetsInitializer.earliest()
    assert [each.boundedness for each in (plain, bounded, stopping)] == [
        *(Boundedness.CONTINUOUS_UNBOUNDED, Boundedness.BOUNDED, Boundedness.CONTINUOUS_UNBOUNDED),
    ]
    assert [each.discovery_interval_s for each in (plain, bounded, stopping)] == [300.0, None, None]


def test_the_reset_strategy_is_that_of_the_starting_offsets_unless_a_property_says_otherwise():
    latest = source().set_starting_offsets(KafkaOffsetsInitializer.latest())

    assert latest.build().reset is KafkaOffsetResetStrategy.LATEST
    assert latest.set_property("auto.offset.reset", "none").build().reset is KafkaOffsetResetStrategy.NONE


def test_offsets_are_committed_for_a_group_unless_that_is_turned_off():
    assert not source().build().commits_offsets
    assert source().set_group_id("g").build().commits_offsets
    assert (
        not source()
        .set_group_id("g")
        .set_property("commit.offsets.on.checkpoint", "false")
        .build()
        .commits_offsets
    )


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: KafkaSource.builder().build(), "no bootstrap servers"),
        (lambda: KafkaSource.builder().set_bootstrap_servers("a:1").build(), "set the topics"),
        (lambda: source().set_topic_pattern("c.*").build(), "in exactly one way"),
        (lambda: source().set_topic_pattern("c("), "regular expression"),
        (lambda: KafkaSource.builder().set_bootstrap_servers("a:1").set_topics("t").build(), "deserializer"),
        (lambda: source().set_value_only_deserializer("utf-8"), "DeserializationSchema"),
        (lambda: source().set_deserializer("utf-8"), "KafkaRecordDeserializationSchema"),
        (lambda: source().set_starting_offsets("earliest"), "KafkaOffsetsInitializer"),
        (
            lambda: source().set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build(),
            "set_group_id",
        ),
        (lambda: source().set_dead_letter_tag(7), "OutputTag"),
        (lambda: source().set_dead_letter_tag(""), "OutputTag"),
        (lambda: source().set_property("max.poll.records", "5").build(), "max-records"),
        (lambda: source().set_property("enable.auto.commit", "true").build(), "when a checkpoint completes"),
        (lambda: source().set_property("fetch.min.bites", "5").build(), "fetch.min.bites"),
        (lambda: source().set_property("fetch.min.bytes", "many").build(), "fetch.min.bytes"),
        (lambda: source().set_property("partition.discovery.interval.ms", "soon").build(), "milliseconds"),
        (lambda: source().set_property("auto.offset.reset", "smallest").build(), "earliest, latest or none"),
        (lambda: source().set_property("ssl.truststore.location", "a.jks").build(), "ssl.ca.location"),
        (
            lambda: source().set_property("sasl.jaas.config", "com.sun.Krb5LoginModule required;").build(),
            "jaas",
        ),
        (lambda: KafkaOffsetsInitializer.timestamp(-1), "milliseconds"),
        (lambda: KafkaOffsetsInitializer.offsets({("t", 0): 1}), "KafkaTopicPartition"),
        (lambda: KafkaSink.builder().build(), "no bootstrap servers"),
        (lambda: KafkaSink.builder().set_bootstrap_servers("a:1").build(), "set_record_serializer"),
        (lambda: KafkaSink.builder().set_record_serializer(SimpleStringSchema()), "builder()"),
        (
            lambda: sink().set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).build(),
            "transactional_id_prefix",
        ),
        (lambda: sink().set_delivery_guarantee("exactly-once"), "DeliveryGuarantee"),
        (lambda: sink().set_property("transactional.id", "x").build(), "set_transactional_id_prefix"),
        (lambda: sink().set_property("lingering.ms", "5").build(), "lingering.ms"),
        (lambda: serializer().set_topic_selector(str).build(), "set a topic"),
        (lambda: KafkaRecordSerializationSchema.builder().set_topic("t").build(), "schema for values"),
    ],
)
def test_what_cannot_be_is_refused_when_the_program_is_made(make, problem):
    with pytest.raises((JobDefinitionError, ConfigurationError)) as caught:
        make()

    assert problem in str(caught.value)


def test_javas_names_become_those_of_librdkafka():
    properties = KafkaProperties.of(
        {
            **{"bootstrap.servers": "a:1", "fetch.max.wait.ms": 5, "sasl.mechanism": "SCRAM-SHA-256"},
            **{"sasl.jaas.config": JAAS, "partition.discovery.interval.ms": 7, "buffer.memory": 2048},
            "ssl.endpoint.identification.algorithm": "",
        },
        "test",
    )

    config = properties.client_config(linger_ms=3)

    assert {
        name: value for name, value in config.items() if not name.startswith(("reconnect", "metadata"))
    } == {
        **{"bootstrap.servers": "a:1", "fetch.wait.max.ms": "5", "sasl.mechanism": "SCRAM-SHA-256"},
        **{"sasl.username": "ann", "sasl.password": "s3cr3t-w0rd", "queue.buffering.max.kbytes": 2},
        **{"linger.ms": 3, "ssl.endpoint.identification.algorithm": "none"},
    }


@pytest.mark.parametrize(
    "name", ["sasl.password", "ssl.key.password", "sasl.oauthbearer.client.secret", "ssl.key.pem"]
)
def test_secrets_are_never_shown(name):
    made = source().set_property("security.protocol", "SASL_PLAINTEXT").set_property("sasl.jaas.config", JAAS)
    properties = KafkaProperties.of({"bootstrap.servers": "a:1", name: "s3cr3t-w0rd"}, "test")

    assert "s3cr3t-w0rd" not in f"{made.set_property('sasl.mechanism', 'PLAIN').build()!r} {properties!r}"
    assert properties.scrub("bad password s3cr3t-w0rd for ann") == "bad password *** for ann"


def test_a_property_with_a_secret_that_is_refused_does_not_tell_it():
    with pytest.raises(HeadraceError) as caught:
        source().set_property("sasl.passwrod", "s3cr3t-w0rd").build()

    assert "s3cr3t-w0rd" not in str(caught.value)


def test_a_record_has_key_headers_partition_and_time():
    schema = (
        serializer()
        .set_key_serialization_schema(SimpleStringSchema())
        .set_header_provider(lambda record: {"kind": record.encode()})
        .set_partitioner(lambda record, key, value, topic, count: len(record) % count)
        .build()
    )

    record = schema.to_record("abc", 7, lambda topic: 2)

    assert (record.topic, record.key, record.value, record.partition, record.timestamp, record.headers) == (
        *("counts", b"abc", b"abc", 1, 7),
        (("kind", b"abc"),),
    )
    with pytest.raises(ValueError, match="has 1 partitions"):
        serializer().set_partitioner(lambda *args: 5).build().to_record("a", None, lambda topic: 1)


class ByLength(KafkaTopicSelector):
    def apply(self, data: str) -> str:
        return f"length-{len(data)}"


@pytest.mark.parametrize("selector", [ByLength(), lambda data: f"length-{len(data)}"])
def test_a_record_may_choose_its_topic(selector):
    builder = KafkaRecordSerializationSchema.builder().set_topic_selector(selector)
    schema = builder.set_value_serialization_schema(SimpleStringSchema()).build()

    assert schema.to_record("abc", -1, lambda topic: 1).topic == "length-3"
    assert schema.to_record("abc", -1, lambda topic: 1).timestamp is None


def test_a_broker_that_is_not_there_is_named():
    enumerator = source().set_property("default.api.timeout.ms", "100").build().create_enumerator(1)

    with pytest.raises(
        ConnectorError, match=r"KafkaSource: looking up topic clicks failed at localhost:1: "
    ) as caught:
        enumerator.discover()

    assert caught.value.retryable
    assert "bootstrap.servers" in caught.value.hint
    enumerator.close()


def test_a_broker_that_is_not_there_when_output_is_published_is_named_and_nothing_is_taken_for_written():
    properties = KafkaProperties.of(
        {"bootstrap.servers": "localhost:1", "default.api.timeout.ms": 100}, "KafkaSink"
    )
    publisher = KafkaPublisher(properties, properties.client_config(), id_prefix="counts", topic="counts")

    with pytest.raises(
        ConnectorError, match=r"KafkaSink: starting transactions of counts-0 failed at localhost:1: "
    ) as caught:
        publisher.publish(staged(1, 10))

    assert caught.value.retryable  # what is staged stays, and is published after a restart
    assert "bootstrap.servers" in caught.value.hint
    publisher.close()


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    with pytest.raises(ConnectorError, match="kafka: confluent-kafka is not installed") as caught:
        source().build().create_enumerator(1).discover()

    assert "pip install 'headrace[kafka]'" in caught.value.hint
    assert not caught.value.retryable


def staged(epoch: int, count: int) -> StagedRecords:
    return StagedRecords(f"{epoch}", 0, epoch, count, b"", None)


def test_transactions_are_cut_between_epochs_only():
    #   epoch   1        1        2         2        3
    #   records 150,000  100,000  150,000   1        10
    records = [staged(1, 150_000), staged(1, 100_000), staged(2, 150_000), staged(2, 1), staged(3, 10)]

    groups = [[each.epoch for each in group] for group in transactions_of(records, _is_full)]

    assert groups == [[1, 1], [2, 2, 3]]


def test_a_marker_names_generations_and_their_last_epochs():
    assert _parsed("a:3 b:12") == {"a": 3, "b": 12}
    assert _parsed(None) == {}


def test_partitions_are_equal_by_topic_and_number():
    assert len({KafkaTopicPartition("t", 1), KafkaTopicPartition("t", 1), KafkaTopicPartition("t", 2)}) == 2


class SleepingProducer:
    """A client that waits for a coordinator that has left, whatever time it was given."""

    def __init__(self) -> None:
        self.wake = threading.Event()

    def send_offsets_to_transaction(self, *arguments):
        self.wake.wait()

    def poll(self, timeout):
        return 0


def test_a_client_that_does_not_come_back_is_given_up(monkeypatch):
    from confluent_kafka import KafkaError

    monkeypatch.setattr(_transactions, "_MARKER_S", 0.01)
    properties = KafkaProperties.of({"bootstrap.servers": "localhost:1"}, "KafkaSink")
    writer = TransactionalWriter(properties, {}, transactional_id="counts-1", topic="counts")
    writer._trouble.note(KafkaError(KafkaError._TRANSPORT, "localhost:1: Connection refused"))
    producer = SleepingProducer()

    with pytest.raises(_transactions._Again) as failed:
        writer._send_marker(producer, None, None)

    producer.wake.set()
    assert str(failed.value) == (
        "KafkaSink: adding the marker to a transaction of counts-1 failed at localhost:1: "
        "localhost:1: Connection refused"
    )


class FakeAdmin:
    """Answers commits as it is told: with an error, or as a broker does."""

    def __init__(self, fails: bool) -> None:
        self._fails = fails
        self.asked = []

    def alter_consumer_group_offsets(self, groups, request_timeout):
        [group] = groups
        self.asked.append({(each.topic, each.partition): each.offset for each in group.topic_partitions})
        answer = Future()
        if self._fails:
            answer.set_exception(RuntimeError("timed out"))
        else:
            answer.set_result(group)
        return {group.group_id: answer}


def test_offsets_that_could_not_be_committed_are_committed_by_a_new_client(monkeypatch):
    admins = [FakeAdmin(fails=True), FakeAdmin(fails=False)]
    clients = iter(admins)
    monkeypatch.setattr(_commits, "make_client", lambda *arguments: (next(clients), None))
    first, second = KafkaTopicPartition("t", 0), KafkaTopicPartition("t", 1)
    commits = OffsetCommits(KafkaProperties.of({"bootstrap.servers": "localhost:1"}, "KafkaSource"), "g")

    commits.commit({first: 5})
    commits.settle()
    assert (commits.failed, commits.of(first)) == (1, None)
    commits.commit({second: 7})
    commits.settle()
    commits.commit({first: 5, second: 7})  # nothing new
    commits.close()

    assert [each.asked for each in admins] == [[{("t", 0): 5}], [{("t", 0): 5, ("t", 1): 7}]]
    assert (commits.succeeded, commits.of(first), commits.of(second)) == (1, 5, 7)


def test_the_last_offsets_are_tried_again_at_the_end(monkeypatch):
    admins = [FakeAdmin(fails=True), FakeAdmin(fails=False)]
    clients = iter(admins)
    monkeypatch.setattr(_commits, "make_client", lambda *arguments: (next(clients), None))
    commits = OffsetCommits(KafkaProperties.of({"bootstrap.servers": "localhost:1"}, "KafkaSource"), "g")

    commits.commit({KafkaTopicPartition("t", 0): 5})
    commits.close()

    assert [each.asked for each in admins] == [[{("t", 0): 5}], [{("t", 0): 5}]]


def test_processes_that_test_side_by_side_fetch_the_broker_once(monkeypatch, tmp_path):
    fetched = []

    def resolve(organisation, module, version, target):
        fetched.append(target)
        target.mkdir()
        return target

    monkeypatch.setattr(broker, "resolve", resolve)
    monkeypatch.setattr(broker.shutil, "which", lambda name: "/usr/bin/java")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: broker.find_jars(), range(4)))

    assert found == {tmp_path / "headrace" / f"kafka-{broker.VERSION}"}
    assert len(fetched) == 1
