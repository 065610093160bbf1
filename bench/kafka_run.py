"""`make bench-kafka`: Kafka in, count, Kafka out, against a bare confluent-kafka loop and Spark's own Kafka source.

Starts a broker of its own, on the same two cores, so all contenders share them with it. Prints JSON lines as `make
bench` does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

from bench import kafka_jobs
from bench.cpu_time import cpu_seconds
from bench.run import PARALLELISM, compare, emit
from headrace.config import Configuration
from headrace.connectors.base import DeliveryGuarantee
from headrace.spark.session import spark_context, stop_spark
from tests.kafka import KafkaBroker, run_broker

RECORDS = 2_000_000
MODES = {
    "epochs": {"headrace.exchange.kind": "blocking"},
    "live": {"headrace.exchange.kind": "pipelined", "execution.checkpointing.interval": "1 s"},
}
#: Subtasks of the widest live job: Spark is started before it is known.
_THREADS = 8
_PEER_TIMEOUT_S = 600


def spark_rate(kafka: KafkaBroker, topic: str, records: int, rounds: int) -> float | None:
    """Return the rate of Spark's own source; None if its package cannot be had."""
    command = [
        *(sys.executable, "-m", "bench.peer_spark_kafka", kafka.address, topic, kafka.create_topic(1)),
        *(str(records), str(rounds)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PEER_TIMEOUT_S, check=False)
    if done.returncode != 0:
        print(f"Spark's own source was not measured: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    rates: list[float] = json.loads(done.stdout.strip().splitlines()[-1])["rates"]
    return statistics.median(rates)


def scaling(kafka: KafkaBroker, records: int, rounds: int) -> None:
    """Copy exactly once over 1, 2 and 4 partitions, with as many subtasks: each writes its own transactions.

    Where a single partition keeps all cores busy, with the broker on them, more partitions cannot be faster. Then
    processor time says whether they would be with more cores: it must not rise with partitions.
    """
    single: dict[str, float] = {}
    for partitions in (1, 2, 4):
        topic = kafka_jobs.fill(kafka, records, partitions)
        for mode, options in MODES.items():
            began = cpu_seconds()
            rates = [
                kafka_jobs.run_copy(
                    kafka, topic, records, partitions, DeliveryGuarantee.EXACTLY_ONCE, partitions, options
                )
                for _ in range(rounds)
            ]
            spent_s = cpu_seconds() - began
            rate = statistics.median(rates)
            name = (
                f"Kafka to Kafka, exactly-once, {mode}, {partitions} partition{'s' if partitions > 1 else ''}"
            )
            ratio = rate / single.setdefault(mode, rate)
            emit(name, rate, "records/s", ratio=ratio, against="1 partition")
            emit(f"{name}, processor time", spent_s / rounds / records * 1e6, "s per million records")
            emit(f"{name}, busy cores", spent_s / sum(records / each for each in rates), "cores")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of records")
    parser.add_argument(
        "--only-scaling", action="store_true", help="measure only exactly-once over partitions"
    )
    arguments = parser.parse_args()
    records = int(RECORDS * arguments.scale)
    with run_broker() as kafka:
        if arguments.only_scaling:
            spark_context(Configuration(), least_threads=_THREADS)
            kafka_jobs.run_count(kafka, kafka_jobs.fill(kafka, 1000), 1000, 4)  # warms up workers
            scaling(kafka, records, arguments.rounds)
            stop_spark()
            return
        topic = kafka_jobs.fill(kafka, records)
        spark_context(Configuration(), least_threads=_THREADS)
        kafka_jobs.run_count(kafka, topic, records, PARALLELISM)  # warms up workers
        count = "Kafka in, count per key, Kafka out"
        rates: list[float] = []

        def ours() -> float:
            rates.append(kafka_jobs.run_count(kafka, topic, records, PARALLELISM))
            return rates[-1]

        bare = "bare confluent-kafka loop, one core"
        compare(
            count,
            ours,
            {bare: (lambda: kafka_jobs.bare_count(kafka, topic, records), "")},
            arguments.rounds,
            records,
        )
        for guarantee in (DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE):
            compare(
                f"Kafka to Kafka, {guarantee.value}",
                lambda guarantee=guarantee: kafka_jobs.run_copy(  # type: ignore[misc]
                    kafka, topic, records, PARALLELISM, guarantee
                ),
                {bare: (lambda: kafka_jobs.bare_copy(kafka, topic, records), "")},
                arguments.rounds,
                records,
            )
        scaling(kafka, records, arguments.rounds)
        stop_spark()
        theirs = spark_rate(kafka, topic, records, arguments.rounds)
        if theirs is not None:
            against = "Spark's own Kafka source and sink (JVM, SQL)"
            emit(f"{count}.{against}", theirs, "records/s")
            ratio = statistics.median(rates) / theirs
            emit(count, statistics.median(rates), "records/s", ratio=ratio, against=against)


if __name__ == "__main__":
    main()
