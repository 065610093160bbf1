"""Nobody sees a password: every place where connectors speak of themselves is searched for it."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from headrace.common import WatermarkStrategy
from headrace.config.secrets import mask_uri
from headrace.connectors.base import Source
from headrace.connectors.collection import CollectionSource
from headrace.connectors.jdbc import JdbcConnectionOptions, JdbcLookup, JdbcPartition, JdbcSink, JdbcSource
from headrace.datastream import StreamExecutionEnvironment
from headrace.formats._registry import RegistryAddress
from headrace.storage.locations import Location, locate
from headrace.storage.search import InputPath

SECRET = "Zx9+Geheim"
#: As it stands in a URL.
QUOTED = "Zx9%2BGeheim"
#: Nothing listens on port 1.
URL = f"jdbc:postgresql://127.0.0.1:1/shop?user=ann&password={QUOTED}"
CONNECTION = JdbcConnectionOptions("jdbc:postgresql://127.0.0.1:1/shop", "ann", SECRET)


def source() -> JdbcSource:
    return JdbcSource(CONNECTION, "orders", ["id"], JdbcPartition("id", 2))


THINGS: dict[str, Callable[[], Any]] = {
    "connection": lambda: CONNECTION,
    "connection by URL": lambda: JdbcConnectionOptions(URL),
    "source": source,
    "lookup": lambda: JdbcLookup(CONNECTION, "orders", ["id"], ["id"]),
    "sink": lambda: JdbcSink.sink("INSERT INTO t VALUES (?)", None, CONNECTION),
    "location": lambda: Location(f"s3://KEY:{QUOTED}@bucket/logs?region=eu", "bucket/logs"),
    "file system": lambda: Location(f"hdfs://ann:{QUOTED}@host:8020/logs", "/logs"),
    "registry": lambda: RegistryAddress(f"http://ann:{QUOTED}@host:8081"),
}


def assert_hidden(text: str) -> None:
    assert SECRET not in text
    assert QUOTED not in text


@pytest.mark.parametrize("name", THINGS)
def test_what_connectors_show_of_themselves(name: str) -> None:
    thing = THINGS[name]()
    assert_hidden(repr(thing))
    assert_hidden(str(thing))


@pytest.mark.parametrize(
    "fail",
    [
        lambda: source().create_enumerator(1).discover(),
        lambda: JdbcLookup(JdbcConnectionOptions(URL), "orders", ["id"], ["id"], max_retries=1)(1),
        lambda: locate(f"s3://KEY:{QUOTED}@bucket/logs?nonsense=1&secret_key={QUOTED}", who="FileSource"),
        lambda: InputPath.parse(f"nowhere://KEY:{QUOTED}@bucket/*.txt", who="FileSource"),
    ],
    ids=["jdbc source", "jdbc lookup", "object store", "unknown scheme"],
)
def test_errors_are_reported_without_the_secret(
    fail: Callable[[], Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.connectors.jdbc._connections._FIRST_DELAY_S", 0.0)
    with caplog.at_level(logging.DEBUG), pytest.raises(Exception) as caught:  # noqa: PT011 - any of them
        fail()
    assert_hidden("".join(traceback.format_exception(caught.value)))
    assert_hidden(caplog.text)


def test_plans_do_not_have_it() -> None:
    def read(given: Source) -> Any:
        return env.from_source(given, WatermarkStrategy.no_watermarks(), "Orders")

    env = StreamExecutionEnvironment.get_execution_environment()
    read(source()).sink_to(JdbcSink.sink("INSERT INTO t VALUES (?)", None, CONNECTION))
    read(CollectionSource([1])).map(JdbcLookup(CONNECTION, "orders", ["id"], ["id"])).print()
    assert_hidden(env.get_execution_plan())


def test_a_uri_is_masked_wherever_it_stands() -> None:
    assert mask_uri(f"no such bucket: s3://KEY:{SECRET}/x@bucket/a (retry)") == (
        "no such bucket: s3://***@bucket/a (retry)"
    )
    assert mask_uri("user@example.org wrote /data/a@b") == "user@example.org wrote /data/a@b"
