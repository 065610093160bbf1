"""A private Kafka broker for tests, in a directory of its own, gone when they are done.

Apache Kafka in KRaft mode, one process. Its jars are resolved once by the Ivy that pyspark carries, from Ivy's default
repositories, and kept in the user's cache directory; without a network and without them there are no Kafka tests.

python -m tests.kafka        fetches the jars, as set-up does, and prints where they are
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

import pytest

from tests.postgres import ends_with_tests, free_port

VERSION = "3.9.1"
#: Less than a test may take, so that a slow network skips tests and does not fail them.
_RESOLVE_TIMEOUT_S = 80.0
_START_TIMEOUT_S = 60.0
_JAVA = ["-Xmx320m", "-Xms96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


class NoBrokerError(Exception):
    """There can be no broker here; the message says why."""


def find_jars() -> Path:
    """Return the directory of Kafka's jars; they are resolved if they are not there."""
    return cached_jars(f"kafka-{VERSION}", "org.apache.kafka", "kafka_2.13", VERSION)


def cached_jars(name: str, organisation: str, module: str, version: str) -> Path:
    """Return the directory of a module's jars, and of all it needs, in the user's cache."""
    if shutil.which("java") is None:
        raise NoBrokerError("there is no java on PATH")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"
    jars = cache / name
    if not jars.exists():
        cache.mkdir(parents=True, exist_ok=True)
        # Processes that test side by side share Ivy's cache too, and two of them fetching get in each other's way.
        with open(cache / f"{name}.lock", "w") as lock:
            _wait_for(lock)
            if not jars.exists():
                # The jars are there all at once or not at all.
                with tempfile.TemporaryDirectory(dir=cache) as directory:
                    resolve(organisation, module, version, Path(directory, "jars")).rename(jars)
    return jars


def _wait_for(lock: TextIO) -> None:
    deadline = time.monotonic() + _RESOLVE_TIMEOUT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise NoBrokerError("another process took too long to resolve its jars") from None
            time.sleep(0.2)


def resolve(organisation: str, module: str, version: str, target: Path) -> Path:
    """Have Ivy fetch a module and all it needs."""
    import pyspark

    command = [
        *("java", "-cp", f"{Path(pyspark.__file__).parent}/jars/*", "org.apache.ivy.Main", "-warn"),
        *("-dependency", organisation, module, version, "-confs", "default"),
        *("-retrieve", f"{target}/[artifact]-[revision].[ext]"),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_RESOLVE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoBrokerError("resolving its jars took too long") from None
    if done.returncode != 0 or not any(target.glob("*.jar")):
        raise NoBrokerError(f"its jars cannot be resolved: {(done.stderr or done.stdout).strip()[-300:]}")
    return target


class KafkaBroker:
    """A broker that can be stopped, killed and started again on the same port with the same data."""

    def __init__(self, jars: Path, directory: Path, host: str = "127.0.0.1") -> None:
        self._jars = jars
        self._directory = directory
        self._host = host
        self.port, self.sasl_port, controller_port = free_port(), free_port(), free_port()
        self.user, self.password = "tester", secrets.token_hex(12)
        self._process: subprocess.Popen[bytes] | None = None
        self._clients: list[Any] = []
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{host}:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{host}:{self.port},SASL_PLAINTEXT://{host}:{self.sasl_port},"
            f"CONTROLLER://{host}:{controller_port}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain."
            f'PlainLoginModule required user_{self.user}="{self.password}";',
            "log.dirs": str(directory / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            # A broker that was killed may come back at once.
            "broker.session.timeout.ms": "1000",
            "broker.heartbeat.interval.ms": "200",
            "num.network.threads": "2",
            "num.io.threads": "2",
            "log.cleaner.enable": "false",
            "controlled.shutdown.enable": "false",
        }
        self._config = directory / "server.properties"
        self._config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._run("kafka.tools.StorageTool", "format", "-t", _cluster_id(), "-c", str(self._config))

    @property
    def address(self) -> str:
        return f"{self._host}:{self.port}"

    @property
    def sasl_address(self) -> str:
        return f"{self._host}:{self.sasl_port}"

    def start(self) -> None:
        with open(self._directory / "log", "ab") as log:
            self._process = subprocess.Popen(
                [*ends_with_tests(), *self._java(), "kafka.Kafka", str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
            )
        self._wait_until_ready()

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Stop it; what it has acknowledged is in the page cache, and is there when it comes back."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def create_topic(self, partitions: int = 1, name: str | None = None, **config: str) -> str:
        """Make a topic, with a name that no other test has, and return its name."""
        from confluent_kafka.admin import NewTopic

        name = name or f"t-{uuid.uuid4().hex[:8]}"
        topic = NewTopic(
            name, partitions, 1, config={key.replace("_", "."): value for key, value in config.items()}
        )
        self.admin().create_topics([topic])[name].result(20)
        self._wait_for_leaders(name, partitions)
        return name

    def add_partitions(self, topic: str, partitions: int) -> None:
        from confluent_kafka.admin import NewPartitions

        self.admin().create_partitions([NewPartitions(topic, partitions)])[topic].result(20)
        self._wait_for_leaders(topic, partitions)

    def produce(self, topic: str, values: Any, partition: int | None = None, **options: Any) -> None:
        """Write values; one that is not bytes is written as its text."""
        from confluent_kafka import Producer

        with Producer({"bootstrap.servers": self.address, "linger.ms": 1, "log_level": 0}) as producer:
            for value in values:
                data = value if value is None or isinstance(value, bytes) else str(value).encode()
                more = {} if partition is None else {"partition": partition}
                while True:
                    try:
                        producer.produce(topic, data, **more, **options)
                        break
                    except BufferError:
                        producer.poll(0.1)
            assert producer.flush(30) == 0

    def messages(self, topic: str, *, at_least: int = 0) -> list[Any]:
        """Return what a consumer that reads committed data sees of a topic now, partition by partition.

        Args:
            topic: Its name.
            at_least: How many messages to wait for: a broker ends a transaction before its markers are everywhere.
        """
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        consumer = Consumer(
            {
                **{"bootstrap.servers": self.address, "group.id": uuid.uuid4().hex, "log_level": 0},
                **{
                    "isolation.level": "read_committed",
                    "fetch.wait.max.ms": 10,
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                },
            }
        )
        try:
            partitions = consumer.list_topics(topic, 20).topics[topic].partitions
            consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
            found, at_end = [], set()
            deadline = time.monotonic() + 30
            while len(at_end) < len(partitions) or len(found) < at_least:
                assert time.monotonic() < deadline, f"the end of {topic} was not reached"
                for message in consumer.consume(1000, 0.02):
                    if message.error() is None:
                        found.append(message)
                    elif message.error().code() == KafkaError._PARTITION_EOF:
                        at_end.add(message.partition())
        finally:
            consumer.close()
        return sorted(found, key=lambda each: (each.partition(), each.offset()))

    def values(self, topic: str, *, at_least: int = 0) -> list[str]:
        """Return the committed values of a topic as texts; see `messages`."""
        return [message.value().decode() for message in self.messages(topic, at_least=at_least)]

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return the offsets that a group has committed, by partition."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        future = self.admin().list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group]
        found = future.result(20).topic_partitions
        return {each.partition: each.offset for each in found if each.topic == topic}

    def admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        if not self._clients:
            # It lives as long as the tests, and must not forget a broker that is restarted.
            config = {"bootstrap.servers": self.address, "metadata.recovery.strategy": "none", "log_level": 0}
            self._clients.append(AdminClient(config))
        return self._clients[0]

    def _wait_for_leaders(self, topic: str, partitions: int) -> None:
        deadline = time.monotonic() + 20
        while True:
            found = self.admin().list_topics(topic, 20).topics[topic].partitions
            if len(found) == partitions and all(each.leader >= 0 for each in found.values()):
                return
            assert time.monotonic() < deadline, f"{topic} has no leaders"
            time.sleep(0.05)

    def _wait_until_ready(self) -> None:
        from confluent_kafka.admin import AdminClient

        deadline = time.monotonic() + _START_TIMEOUT_S
        while not _answers(self._host, self.port):
            self._check_alive(deadline)
            time.sleep(0.05)
        while True:  # the port is open before the broker is registered
            try:
                client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
                if client.list_topics(timeout=5).brokers:
                    return
            except Exception:
                self._check_alive(deadline)
            time.sleep(0.05)

    def _check_alive(self, deadline: float) -> None:
        assert self._process is not None
        if self._process.poll() is not None or time.monotonic() > deadline:
            raise NoBrokerError(f"it did not start: {(self._directory / 'log').read_text()[-500:]}")

    def _java(self) -> list[str]:
        return ["java", *_JAVA, "-cp", f"{self._jars}/*"]

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            [*self._java(), *command], capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode != 0:
            raise NoBrokerError(f"{command[0]} failed: {(done.stderr or done.stdout).strip()[-500:]}")


def _cluster_id() -> str:
    import base64

    # One that began with a dash would be taken for an option.
    return "K" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]


def _answers(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0


@contextmanager
def run_broker(host: str = "127.0.0.1") -> Iterator[KafkaBroker]:
    """Start a broker; stop it and remove its files at the end.

    Args:
        host: The address it listens at.

    Raises:
        NoBrokerError: There can be none; the message says why.
    """
    jars = find_jars()
    directory = Path(tempfile.mkdtemp(prefix="headrace-kafka-"))
    try:
        broker = KafkaBroker(jars, directory, host)
        try:
            broker.start()
            yield broker
        finally:
            broker.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """Return a broker that all tests of the run share; tests use topics of their own, and leave it running."""
    pytest.importorskip("confluent_kafka", reason="no client of Kafka: pip install 'headrace[kafka]'")
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(run_broker())
        except NoBrokerError as error:
            pytest.skip(f"no Kafka broker for tests: {error}")
        yield broker


if __name__ == "__main__":  # set-up fetches what tests would wait for
    print(find_jars())
