"""Connectors of live jobs on Spark: a worker is killed, and every record is in Kafka, a database and files once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.kafka import KafkaBroker
from tests.postgres import PostgresServer
from tests.spark.live_connectors_program import KEYS, RECORDS

pytestmark = [pytest.mark.spark, pytest.mark.slow(seconds=120), pytest.mark.timeout(500)]

_PROGRAM = Path(__file__).with_name("live_connectors_program.py")
_ROOT = Path(__file__).parents[2]
EXPECTED = sorted(f"{number % KEYS} {number // KEYS + 1}" for number in range(RECORDS))


class Outcome(NamedTuple):
    """What the program left, and where."""

    directory: Path
    target: str
    printed: Any


@pytest.fixture(scope="module")
def outcome(
    kafka: KafkaBroker, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    directory = tmp_path_factory.mktemp("live-connectors")
    topic, target = kafka.create_topic(2), kafka.create_topic(2)
    for partition in range(2):
        # One partition and one file for each parity: a key is in only one of them every other time.
        numbers = [str(number) for number in range(RECORDS) if number % 2 == partition]
        kafka.produce(topic, numbers, partition=partition)
        (directory / "input").mkdir(exist_ok=True)
        (directory / "input" / str(partition)).write_text("".join(f"{each}\n" for each in numbers))
    postgres.execute("CREATE TABLE live (counted TEXT)")
    settings = {
        "directory": str(directory),
        "kafka": kafka.address,
        "topic": topic,
        "target": target,
        "jdbc": postgres.jdbc_url,
        "user": postgres.user,
        "password": postgres.password,
    }
    path = f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"
    ended = subprocess.run(
        [sys.executable, str(_PROGRAM), json.dumps(settings)],
        capture_output=True,
        text=True,
        timeout=480,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": path},
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return Outcome(directory, target, json.loads(ended.stdout.splitlines()[-1]))


def was_killed(outcome: Outcome, job: str) -> bool:
    return (outcome.directory / f"{job}-killed").exists()


def test_kafka_has_every_record_once(outcome: Outcome, kafka: KafkaBroker) -> None:
    assert was_killed(outcome, "kafka")
    assert sorted(kafka.values(outcome.target, at_least=RECORDS)) == EXPECTED


def test_a_database_has_every_record_once(outcome: Outcome, postgres: PostgresServer) -> None:
    assert was_killed(outcome, "jdbc")
    assert sorted(row[0] for row in postgres.execute("SELECT counted FROM live")) == EXPECTED


def test_files_have_every_record_once(outcome: Outcome) -> None:
    assert was_killed(outcome, "files")
    found = (path for path in (outcome.directory / "output").rglob("*") if path.is_file())
    published = [path for path in found if not path.name.startswith(".")]
    assert sorted(line for path in published for line in path.read_text().splitlines()) == EXPECTED


def test_what_comes_over_a_socket_arrives(outcome: Outcome) -> None:
    assert outcome.printed["sockets"] == EXPECTED
