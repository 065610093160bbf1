"""Options of `'connector' = 'filesystem'` about writing: when files are full, and when a partition is complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from headrace.config.table_options import TableOptions
from headrace.connectors.file import FileSink, RollingPolicy
from headrace.errors import UnsupportedFeatureError

__all__ = [
    "read_sink_options",
    "set_compaction",
    "set_partition_commit",
    "set_rolling_policy",
    "shuffles_by_partition",
]

_ROLLING: Final = "sink.rolling-policy."
_COMMIT: Final = "sink.partition-commit."
_FILE_SIZE, _ROLLOVER = f"{_ROLLING}file-size", f"{_ROLLING}rollover-interval"
_INACTIVITY, _CHECK = f"{_ROLLING}inactivity-interval", f"{_ROLLING}check-interval"
_KIND, _TRIGGER, _DELAY = f"{_COMMIT}policy.kind", f"{_COMMIT}trigger", f"{_COMMIT}delay"
_SUCCESS_FILE = f"{_COMMIT}success-file.name"
_PATTERN: Final = "partition.time-extractor.timestamp-pattern"
_FORMATTER: Final = "partition.time-extractor.timestamp-formatter"
_EXTRACTOR: Final = "partition.time-extractor.kind"

_SHUFFLE: Final = "sink.shuffle-by-partition.enable"

_COMPACTS, _COMPACTED_SIZE = "auto-compaction", "compaction.file-size"
#: Flink's options that cannot be honoured, and why.
_REFUSED: Final = {
    f"{_COMMIT}watermark-time-zone": "times of partitions are compared with the watermark as they are, without a zone",
    "partition.time-extractor.class": "headrace loads no Java code",
    f"{_COMMIT}policy.class": "headrace loads no Java code",
    f"{_COMMIT}policy.class.parameters": "headrace loads no Java code",
    "compaction.parallelism": "the driver puts files together, one after the other",
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
    _PATTERN,
    _FORMATTER,
    _EXTRACTOR,
    _COMPACTED_SIZE,
)


def read_sink_options(options: TableOptions) -> None:
    """Know all options about writing, whoever asks, and refuse those that cannot be honoured."""
    for key in _HONOURED:
        options.text(key)
    options.boolean(_SHUFFLE, default=False)
    options.boolean(_COMPACTS, default=False)
    for key, reason in _REFUSED.items():
        if options.text(key) is not None:
            raise UnsupportedFeatureError(
                f"table {options.table!r}: option {key!r} cannot be honoured: {reason}", feature=key
            )


def shuffles_by_partition(options: Mapping[str, str]) -> bool:
    """Whether all rows of a partition come to one writer, so that it has fewer files."""
    return options.get(_SHUFFLE, "false").lower() == "true"


def set_rolling_policy(builder: FileSink.BaseBuilder, options: TableOptions, kind: str) -> None:
    """Say when a file is full."""
    size = options.memory(_FILE_SIZE)
    rollover, inactivity = options.duration(_ROLLOVER), options.duration(_INACTIVITY)
    check = options.duration(_CHECK)
    if check is not None:
        builder.with_bucket_check_interval(_millis(check))
    if size is None and rollover is None and inactivity is None:
        return
    if isinstance(builder, FileSink.BulkFormatBuilder):
        raise UnsupportedFeatureError(
            f"table {options.table!r}: {_ROLLING}* of {kind} files: a {kind} file is always closed by the next "
            "checkpoint",
            feature=f"{_ROLLING}* of {kind} files",
            hint="set execution.checkpointing.interval",
        )
    usual = RollingPolicy.default_rolling_policy()
    if options.boolean(_COMPACTS, default=False):
        for key in (_ROLLOVER, _INACTIVITY):
            if options.text(key) is not None:
                raise options.misplaced(key, f"without {_COMPACTS!r}, which closes files at each checkpoint")
    builder.with_rolling_policy(
        RollingPolicy.default_rolling_policy(
            usual.part_size if size is None else size.get_bytes(),
            usual.rollover_interval if rollover is None else _millis(rollover),
            usual.inactivity_interval if inactivity is None else _millis(inactivity),
        )
    )


def set_compaction(builder: FileSink.BaseBuilder, options: TableOptions) -> None:
    """Say whether the files of a checkpoint are merged, and how large they become."""
    wanted = options.memory(_COMPACTED_SIZE)
    if not options.boolean(_COMPACTS, default=False):
        if wanted is not None:
            raise options.misplaced(_COMPACTED_SIZE, f"with {_COMPACTS!r} = 'true'")
        return
    size = wanted or options.memory(_FILE_SIZE)
    if size is None:
        builder.with_compaction()
    else:
        builder.with_compaction(size.get_bytes())


def set_partition_commit(
    builder: FileSink.BaseBuilder, options: TableOptions, partition_keys: Sequence[str]
) -> None:
    """Set when a partition is complete, and how its completion is announced."""
    kind, trigger = options.text(_KIND), options.text(_TRIGGER, "process-time")
    if options.text(_EXTRACTOR, "default") != "default":
        raise options.wrong(_EXTRACTOR, f"'default': the time of a partition is found by {_PATTERN!r}")
    if trigger not in ("process-time", "partition-time"):
        raise options.wrong(_TRIGGER, "process-time or partition-time")
    if kind is None:
        commits = (_DELAY, _SUCCESS_FILE, _TRIGGER, _PATTERN, _FORMATTER)
        given = next((key for key in commits if options.text(key) is not None), None)
        if given is not None:
            raise options.misplaced(given, f"with {_KIND!r}")
        return
    if kind != "success-file":
        raise options.wrong(_KIND, "'success-file', the only policy that is supported")
    if not partition_keys:
        raise options.misplaced(_KIND, "for tables that are PARTITIONED BY columns")
    pattern = options.text(_PATTERN)
    for key in (_PATTERN, _FORMATTER):
        if trigger == "process-time" and options.text(key) is not None:
            raise options.misplaced(key, f"with {_TRIGGER!r} = 'partition-time'")
    builder.with_partition_commit(
        options.duration(_DELAY) or timedelta(0),
        options.text(_SUCCESS_FILE, "_SUCCESS") or "_SUCCESS",
        partition_time=None if trigger == "process-time" else pattern or f"${partition_keys[0]}",
        partition_time_format=options.text(_FORMATTER),
    )


def _millis(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
