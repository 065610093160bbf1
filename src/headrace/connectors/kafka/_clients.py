"""Clients of Kafka: how they are created, and how their errors are explained."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from headrace.connectors.kafka._properties import KafkaProperties, kafka_library
from headrace.errors import ConfigurationError, ConnectorError

_log = logging.getLogger(__name__)
#: What librdkafka has to say goes to this logger, not to standard error. It repeats itself with every try to connect,
#: and our errors say the same, so it is silent unless the program sets its level.
_client_log = logging.getLogger("headrace.connectors.kafka.client")
if _client_log.level == logging.NOTSET:
    _client_log.setLevel(logging.CRITICAL)


class Trouble:
    """Remembers what a client's background threads complained about last: the calls themselves only time out."""

    def __init__(self) -> None:
        self._last: Any = None
        self._since = 0.0

    def note(self, error: Any) -> None:
        # That all brokers are down follows from what was said about each of them.
        library = kafka_library()
        if error.code() != library.KafkaError._ALL_BROKERS_DOWN or self.recent() is None:
            self._last, self._since = error, time.monotonic()

    def recent(self, within_s: float = 120.0) -> Any:
        """Return the last complaint if it is not old."""
        return self._last if self._last is not None and time.monotonic() - self._since < within_s else None


def make_client(
    make: Callable[..., Any], config: dict[str, Any], properties: KafkaProperties, who: str
) -> Any:
    """Make a client, and have it log and complain to us.

    Raises:
        ConfigurationError: A property is not known, or has a value that it cannot have.
    """
    library = kafka_library()
    trouble = Trouble()
    try:
        client = make({**config, "error_cb": trouble.note}, logger=_client_log)
    except library.KafkaException as error:
        raise ConfigurationError(
            f"{who}: {properties.scrub(error.args[0].str())}",
            hint="use librdkafka's properties, or those of Kafka's Java client that librdkafka has as well",
        ) from None
    return client, trouble


def failure(
    who: str,
    what: str,
    error: Any,
    properties: KafkaProperties,
    trouble: Trouble | None = None,
    *,
    was_there: bool = False,
) -> ConnectorError:
    """Say what went wrong, where, and what to do.

    Args:
        who: KafkaSource or KafkaSink.
        what: What was being done, with topic and partition.
        error: The KafkaError, or None if there is none and it just took too long.
        properties: Of the client, for its address and its secrets.
        trouble: What the client complained about meanwhile; it knows more about lost connections.
        was_there: Whether the topic is known to have existed: a broker that has just started may not know it yet.
    """
    codes = kafka_library().KafkaError
    told = trouble.recent() if trouble is not None else None
    away = (codes._TRANSPORT, codes._TIMED_OUT, codes._ALL_BROKERS_DOWN, codes._RESOLVE)
    if error is None or (error.code() in away and told is not None):
        error = told or error
    code = None if error is None else error.code()
    reason = "timed out" if error is None else properties.scrub(error.str())
    refused = (
        codes._AUTHENTICATION,
        codes.SASL_AUTHENTICATION_FAILED,
        codes.TOPIC_AUTHORIZATION_FAILED,
        codes.GROUP_AUTHORIZATION_FAILED,
        codes.CLUSTER_AUTHORIZATION_FAILED,
        codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )
    missing = (codes.UNKNOWN_TOPIC_OR_PART, codes._UNKNOWN_TOPIC, codes._UNKNOWN_PARTITION)
    if code in refused:
        hint = "check the credentials (sasl.*, security.protocol, ssl.*) and the user's permissions on topic and group"
    elif code in missing:
        hint = "create the topic, or check its name"
    elif code == codes.MSG_SIZE_TOO_LARGE:
        hint = "raise max.request.size for the sink and max.message.bytes for the topic, or write smaller records"
    else:
        hint = (
            "check that the brokers are running and every worker can reach the addresses in bootstrap.servers"
        )
    return ConnectorError(
        f"{who}: {what} failed at {properties.servers}: {reason}",
        hint=hint,
        retryable=code not in (*refused, codes.MSG_SIZE_TOO_LARGE) and (was_there or code not in missing),
    )


def is_refusal(error: ConnectorError) -> bool:
    """Whether waiting will not help."""
    return not error.retryable
