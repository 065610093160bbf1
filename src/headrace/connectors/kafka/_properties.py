"""Kafka's client properties: Java's names as Flink programs have them, turned into those of librdkafka.

What cannot be honoured is refused with the reason. Values that are secrets are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from headrace.errors import ConfigurationError, ConnectorError

#: Parts of names whose values are secrets.
_SECRET = ("password", "secret", "jaas", "token", ".pem", "oauthbearer.config", "private", "credential")

#: Java's name -> librdkafka's.
_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}

#: What is refused, with the reason and what to do.
_REFUSED = {
    "max.poll.records": "set headrace.epoch.max-records to limit how many records are read at once",
    "max.poll.interval.ms": "the source does not join a consumer group, so no poll deadline applies",
    "key.deserializer": "set the source's deserializer instead",
    "value.deserializer": "set the source's deserializer instead",
    "key.serializer": "set the sink's record serializer instead",
    "value.serializer": "set the sink's record serializer instead",
    "partition.assignment.strategy": "the job assigns partitions",
    "group.instance.id": "the job assigns partitions; the source does not join a consumer group",
    "interceptor.classes": "headrace cannot load Java classes",
    "ssl.truststore.location": "headrace cannot read Java trust stores; set ssl.ca.location to a PEM file",
    "ssl.truststore.password": "headrace cannot read Java trust stores; set ssl.ca.location to a PEM file",
    "ssl.truststore.type": "headrace cannot read Java trust stores; set ssl.ca.location to a PEM file",
    "max.block.ms": "set queue.buffering.max.messages and queue.buffering.max.kbytes instead",
    "transactional.id": "call set_transactional_id_prefix(...)",
}

#: Flink's own, which the connector reads itself.
DISCOVERY_INTERVAL = "partition.discovery.interval.ms"
COMMIT_ON_CHECKPOINT = "commit.offsets.on.checkpoint"
CLIENT_ID_PREFIX = "client.id.prefix"
#: Java's, of which librdkafka has no counterpart: how long a call may take while the broker is away.
API_TIMEOUT = "default.api.timeout.ms"
RESET = "auto.offset.reset"
_OWN = (DISCOVERY_INTERVAL, COMMIT_ON_CHECKPOINT, CLIENT_ID_PREFIX, API_TIMEOUT, RESET)

_JAAS_USER = re.compile(r"""\busername\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_JAAS_PASSWORD = re.compile(r"""\bpassword\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")


def kafka_library() -> ModuleType:
    """Import confluent-kafka.

    Raises:
        ConnectorError: It is not installed.
    """
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise ConnectorError(
            "kafka: confluent-kafka is not installed",
            hint="run pip install 'headrace[kafka]' where the program runs and on every worker",
            retryable=False,
        ) from error
    return confluent_kafka


@dataclass(frozen=True, repr=False)
class KafkaProperties:
    """The properties of a client, as the user gave them."""

    entries: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(given: Mapping[str, object], who: str) -> KafkaProperties:
        """Take what a builder collected.

        Raises:
            ConfigurationError: A property cannot be honoured.
        """
        for name in given:
            if name in _REFUSED:
                raise ConfigurationError(f"{who}: {name} is not supported: {_REFUSED[name]}")
        if _text(given.get("enable.auto.commit", "false")) != "false":
            raise ConfigurationError(
                f"{who}: enable.auto.commit is not supported: offsets are committed when a checkpoint completes",
                hint="enable checkpointing; the consumer group's offsets then follow the job",
            )
        return KafkaProperties(tuple((name, _text(value)) for name, value in given.items()))

    def get(self, name: str) -> str | None:
        """Return a property as the user gave it."""
        return dict(self.entries).get(name)

    @property
    def servers(self) -> str:
        """Where the brokers are."""
        return self.get("bootstrap.servers") or ""

    @property
    def api_timeout_s(self) -> float:
        """How long to wait for a broker that is away."""
        return float(self.get(API_TIMEOUT) or 60_000) / 1000

    def client_config(self, **defaults: Any) -> dict[str, Any]:
        """Return the properties in librdkafka's names.

        Args:
            defaults: What is set unless the user says otherwise; with _ for the dots.
        """
        config: dict[str, Any] = {
            # A broker that comes back is found within a second.
            **{"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 1000},
            # While all brokers are away, librdkafka would drop what it knows of them, and wait without end for a group
            # coordinator that it has dropped (its issue 5511). We make new clients when old ones do not come back.
            "metadata.recovery.strategy": "none",
            **{name.replace("_", "."): value for name, value in defaults.items()},
        }
        for name, value in self.entries:
            if name in _OWN:
                continue
            if name == "sasl.jaas.config":
                config |= _credentials_in(value)
            elif name == "ssl.endpoint.identification.algorithm":
                config[name] = value or "none"
            elif name == "buffer.memory":
                config["queue.buffering.max.kbytes"] = max(1, int(value) // 1024)
            else:
                config[_RENAMED.get(name, name)] = value
        return config

    def scrub(self, text: str) -> str:
        """Return a text without any of the secrets."""
        for secret in self._secrets():
            text = text.replace(secret, "***")
        return text

    def _secrets(self) -> Iterable[str]:
        for name, value in self.entries:
            if _is_secret(name) and value:
                yield value
                if name == "sasl.jaas.config":
                    yield from (each for each in _credentials_in(value).values() if each)

    def __repr__(self) -> str:
        shown = (f"{name}={'***' if _is_secret(name) else value}" for name, value in self.entries)
        return f"KafkaProperties({', '.join(shown)})"


def _is_secret(name: str) -> bool:
    return any(part in name for part in _SECRET)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _credentials_in(jaas: str) -> dict[str, str]:
    """Return user and password of a JAAS configuration, which is Java's way to name them.

    Raises:
        ConfigurationError: They are not there, as with Kerberos or a login module of one's own.
    """
    user, password = _JAAS_USER.search(jaas), _JAAS_PASSWORD.search(jaas)
    if user is None or password is None or not re.search(r"(Plain|Scram)LoginModule", jaas):
        raise ConfigurationError(
            "kafka: sasl.jaas.config is supported for PlainLoginModule and ScramLoginModule with user and password",
            hint="for other mechanisms use librdkafka's properties: sasl.kerberos.*, sasl.oauthbearer.*",
        )
    return {
        "sasl.username": user[1] if user[1] is not None else user[2],
        "sasl.password": (password[1] if password[1] is not None else password[2]).replace('\\"', '"'),
    }
