"""Every exception headrace raises on purpose. This package imports nothing else from headrace.

    HeadraceError                       .domain  .retryable  .hint
    ├─ ConfigurationError               unknown key, invalid value, options that contradict each other
    ├─ JobDefinitionError               the program is wrong; found before anything runs
    │    ├─ InvalidTopologyError        the graph cannot be built or run
    │    ├─ TypeInferenceError          a type is missing or does not match
    │    ├─ StateDescriptorError        state is declared twice, or used where it cannot be
    │    └─ KeyTypeError                a key does not hash to the same value in every process
    ├─ SqlError                         .sql  .line  .column
    │    ├─ SqlParseError               the text is not a valid statement
    │    ├─ SqlValidationError          the statement refers to or combines things that do not match
    │    └─ CatalogError                a catalog object does not exist, or already exists
    ├─ UnsupportedFeatureError          Flink has it, headrace does not yet: .feature
    ├─ ConnectorError                   an external system refused a request or could not be reached
    │    └─ FormatError                 data that the format cannot read or write: .example
    ├─ JobExecutionError                .job  .operator  .subtask  .attempt
    │    ├─ UserFunctionError           .user_traceback  .record
    │    ├─ CheckpointError             .reason
    │    ├─ StateError                  state could not be read, written or restored
    │    │    ├─ DamagedStateError      a file of state or of a checkpoint is not what was written
    │    │    └─ StateTypeError         a value does not have the type its state declares
    │    │         └─ StateMigrationError   state was written under another declaration
    │    ├─ TaskLostError               a worker was lost together with its task
    │    ├─ NoResourceAvailableError    the job did not get the slots it needs
    │    ├─ DiskFullError               .directory  .needed  .free
    │    ├─ LeadershipError             another process leads the job
    │    └─ JobCancelledError           the job was cancelled
    ├─ JobSubmissionError               a job was rejected: its id is taken, or this process accepts no jobs
    ├─ UnknownJobError                  no job has this id
    ├─ ClusterError                     a cluster cannot be reached or refused a request: .status
    ├─ GatewayError                     a client of the SQL gateway asked for something that does not exist
    └─ InvariantViolation               a bug in headrace: .story

`domain` says who has to act ("user", "external", "internal"), `retryable` whether the same attempt may succeed later,
and `recovery` what a job does about the error. Schedulers read these attributes, never class names or texts. All errors
pickle with all attributes.

Each class says what it means in its first sentence, then under `Cause` and `Remedy` why it is raised and what to do.
`headrace.cli.error_docs` writes docs/errors.md from these.
"""

from __future__ import annotations

from headrace.errors.base import Domain, HeadraceError, RecoveryAction, recovery_of
from headrace.errors.cluster import ClusterError, GatewayError, JobSubmissionError, UnknownJobError
from headrace.errors.connectors import ConnectorError, FormatError
from headrace.errors.describe import describe_function, shorten
from headrace.errors.execution import (
    DiskFullError,
    JobCancelledError,
    JobExecutionError,
    LeadershipError,
    NoResourceAvailableError,
    TaskLostError,
    UserFunctionError,
)
from headrace.errors.expectations import require
from headrace.errors.internal import InvariantViolation
from headrace.errors.program import (
    ConfigurationError,
    InvalidTopologyError,
    JobDefinitionError,
    KeyTypeError,
    StateDescriptorError,
    TypeInferenceError,
    UnsupportedFeatureError,
)
from headrace.errors.sql import CatalogError, SqlError, SqlParseError, SqlValidationError
from headrace.errors.state import (
    CheckpointError,
    DamagedStateError,
    StateError,
    StateMigrationError,
    StateTypeError,
)

# In the order of the tree, which docs/errors.md follows.
__all__ = [
    "Domain",
    "RecoveryAction",
    "recovery_of",
    "HeadraceError",
    "ConfigurationError",
    "JobDefinitionError",
    "InvalidTopologyError",
    "TypeInferenceError",
    "StateDescriptorError",
    "KeyTypeError",
    "SqlError",
    "SqlParseError",
    "SqlValidationError",
    "CatalogError",
    "UnsupportedFeatureError",
    "ConnectorError",
    "FormatError",
    "JobExecutionError",
    "UserFunctionError",
    "CheckpointError",
    "StateError",
    "DamagedStateError",
    "StateTypeError",
    "StateMigrationError",
    "TaskLostError",
    "NoResourceAvailableError",
    "DiskFullError",
    "LeadershipError",
    "JobCancelledError",
    "JobSubmissionError",
    "UnknownJobError",
    "ClusterError",
    "GatewayError",
    "InvariantViolation",
    "shorten",
    "describe_function",
    "require",
]

# Tracebacks, failure reports and pickles show the path that programs import an error from.
for _name in __all__:
    _member = globals()[_name]
    if isinstance(_member, type) and issubclass(_member, HeadraceError):
        _member.__module__ = __name__
