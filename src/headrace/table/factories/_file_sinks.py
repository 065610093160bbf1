"""Options of `'connector' = 'filesystem'` about writing: when files are full, and when a partition is complete."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from headrace.connectors.file import FileSink, RollingPolicy
from headrace.errors import UnsupportedFeatureError
from headrace.table.factories.options import TableOptions

__all__ = ["read_sink_options", "set_partition_commit", "set_rolling_policy"]

_ROLLING: Final = "sink.rolling-policy."
_COMMIT: Final = "sink.partition-commit."
_FILE_SIZE, _ROLLOVER = f"{_ROLLING}file-size", f"{_ROLLING}rollover-interval"
_INACTIVITY, _CHECK = f"{_ROLLING}inactivity-interval", f"{_ROLLING}check-interval"
_KIND, _TRIGGER, _DELAY = f"{_COMMIT}policy.kind", f"{_COMMIT}trigger", f"{_COMMIT}delay"
_SUCCESS_FILE = f"{_COMMIT}success-file.name"

_NO_EVENT_TIME: Final = "sinks of files go by the clock, not by event time"
_NO_COMPACTION: Final = "small files are not put together: let them grow with sink.rolling-policy.*"
#: Flink's options that cannot be honoured, and why.
_REFUSED: Final = {
    f"{_COMMIT}watermark-time-zone": _NO_EVENT_TIME,
    "partition.time-extractor.kind": _NO_EVENT_TIME,
    "partition.time-extractor.class": _NO_EVENT_TIME,
    "partition.time-extractor.timestamp-pattern": _NO_EVENT_TIME,
    "partition.time-extractor.timestamp-formatter": _NO_EVENT_TIME,
    f"{_COMMIT}policy.class": "headrace loads no Java code",
    f"{_COMMIT}policy.class.parameters": "headrace loads no Java code",
    "auto-compaction": _NO_COMPACTION,
    "compaction.file-size": _NO_COMPACTION,
    "compaction.parallelism": _NO_COMPACTION,
    "sink.shuffle-by-partition.enable": "rows are written by the subtask that made them",
    "sink.parallelism": "a sink has the parallelism of the job: set parallelism.default",
}
_HONOURED: Final = (
    _FILE_SIZE,
    _ROLLOVER,
    _INACTIVITY,
    _CHECK,
    _KIND,
    _TRIGGER,
    _DELAY,
    _SUCCESS_FILE,
)


def read_sink_options(options: TableOptions) -> None:
    """Know all options about writing, whoever asks, and refuse those that cannot be honoured."""
    for key in _HONOURED:
        options.text(key)
    for key, reason in _REFUSED.items():
        if options.text(key) is not None:
            raise UnsupportedFeatureError(
                f"table {options.table!r}: option {key!r} cannot be honoured: {reason}", feature=key
            )


def set_rolling_policy(builder: FileSink.BaseBuilder, options: TableOptions, kind: str) -> None:
    """Say when a file is full."""
    size = options.memory(_FILE_SIZE)
    rollover, inactivity = options.duration(_ROLLOVER), options.duration(_INACTIVITY)
    check = options.duration(_CHECK)
    if check is not None:
        builder.with_bucket_check_interval(_millis(check))
    if size is None and rollover is None and inactivity is None:
        return
    if kind == "parquet":
        raise UnsupportedFeatureError(
            f"table {options.table!r}: {_ROLLING}* of Parquet: such a file is full with the next checkpoint",
            feature=f"{_ROLLING}* of Parquet",
            hint="set execution.checkpointing.interval",
        )
    usual = RollingPolicy.default_rolling_policy()
    builder.with_rolling_policy(
        RollingPolicy.default_rolling_policy(
            usual.part_size if size is None else size.get_bytes(),
            usual.rollover_interval if rollover is None else _millis(rollover),
            usual.inactivity_interval if inactivity is None else _millis(inactivity),
        )
    )


def set_partition_commit(builder: FileSink.BaseBuilder, options: TableOptions) -> None:
    """Say when a partition is complete, and how that is told."""
    kind = options.text(_KIND)
    if options.text(_TRIGGER, "process-time") != "process-time":
        raise UnsupportedFeatureError(
            f"table {options.table!r}: option {_TRIGGER!r} can be 'process-time' only: {_NO_EVENT_TIME}",
            feature=f"{_TRIGGER!r} = {options.text(_TRIGGER)!r}",
            hint="use 'process-time'",
        )
    if kind is None:
        given = next(
            (key for key in (_DELAY, _SUCCESS_FILE, _TRIGGER) if options.text(key) is not None), None
        )
        if given is not None:
            raise options.wrong(given, f"for tables with {_KIND!r}")
        return
    if kind != "success-file":
        raise options.wrong(_KIND, "'success-file': nothing else is done for a partition that is complete")
    builder.with_partition_commit(
        options.duration(_DELAY) or timedelta(0), options.text(_SUCCESS_FILE, "_SUCCESS") or "_SUCCESS"
    )


def _millis(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
