"""Types, times, rows, configuration and job handles that every API shares: PyFlink's `pyflink.common`.

Pure data and pure functions. Nothing here knows graphs, operators or Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.common._missing import missing_names
from headrace.common.completable_future import CompletableFuture
from headrace.common.config_options import ConfigOption, ConfigOptions
from headrace.common.configuration import Configuration
from headrace.common.execution_config import ExecutionConfig
from headrace.common.input_dependency_constraint import InputDependencyConstraint
from headrace.common.job_client import JobClient
from headrace.common.job_execution_result import JobExecutionResult
from headrace.common.job_id import JobID
from headrace.common.job_status import JobStatus
from headrace.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from headrace.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    SerializationSchema,
    SimpleStringSchema,
)
from headrace.common.serializer import TypeSerializer
from headrace.common.time import Duration, Instant, Time
from headrace.common.typeinfo import TypeInformation, Types
from headrace.common.types import Row, RowKind
from headrace.common.watermark_strategy import AssignerWithPeriodicWatermarksWrapper, WatermarkStrategy

__all__ = [
    "AssignerWithPeriodicWatermarksWrapper",
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "InputDependencyConstraint",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "WatermarkStrategy",
]

if not TYPE_CHECKING:  # checkers should go on to report these names as missing
    __getattr__ = missing_names(__name__)
