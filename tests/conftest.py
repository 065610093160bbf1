"""Fixtures for tests that need a real Spark: one context for the whole run, and environments on it."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from headrace.common import Configuration as ProgramConfiguration
from headrace.config import Configuration
from headrace.datastream import StreamExecutionEnvironment
from headrace.datastream.execution_context import ExecutionContext
from headrace.datastream.executor import JobExecutor
from tests.class_archive import java_options
from tests.engines import MINI, MINI_EXECUTOR, SPARK
from tests.kafka import kafka  # noqa: F401 - a fixture
from tests.mariadb import mariadb  # noqa: F401 - a fixture
from tests.postgres import postgres  # noqa: F401 - a fixture
from tests.s3 import s3, s3_server  # noqa: F401 - fixtures
from tests.signals import start_processes_with_default_signals

if TYPE_CHECKING:
    from pyspark import SparkContext

EnvironmentFactory = Callable[..., StreamExecutionEnvironment]

# By default Hypothesis fails an example that takes 200 ms, which it may on a machine that is busy. The examples are the
# same every time, but for `make test-slow`, which looks for new ones, ten times as many.
settings.register_profile("new examples", deadline=None, max_examples=1000, derandomize=False)
settings.register_profile("same examples", deadline=None, derandomize=True, database=None)
settings.load_profile("same examples")

#: Where Linux keeps files in memory, and how much must be free there for those of tests.
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 4 << 30

#: What jobs of tests start from, instead of the user's own configuration.
BASE = {
    "headrace.spark.master": "local[2]",
    # Epochs are cut by max-records alone, however slow the machine is.
    "headrace.epoch.target-duration": "1 h",
    "headrace.epoch.initial-records": "5000",
}


#: The files that take longest, a minute or so, in the order in which two processes are to begin with them.
LONGEST = (
    "tests/e2e/test_control_plane.py",
    "tests/e2e/test_cli.py",
    "tests/chaos/test_driver_kills.py",
    "tests/differential/test_random_queries.py",
)


def pytest_configure() -> None:
    """Keep temporary files in memory, unless somebody has named another place: tests make some hundred thousand."""
    if "TMPDIR" not in os.environ and _can_have_files(MEMORY):
        directory = MEMORY / f"tests-{os.getuid()}"
        directory.mkdir(exist_ok=True)
        directory.chmod(0o1777)  # for databases, which run as users of their own
        os.environ["TMPDIR"] = str(directory)
        tempfile.tempdir = None  # which has been looked up before


def _can_have_files(place: Path) -> bool:
    """Whether there is room, and programs can be run from there."""
    if not os.access(place, os.W_OK):
        return False
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize > MEMORY_BYTES and not found.f_flag & os.ST_NOEXEC


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let files that take long come first where several processes share the work: the others fill what is left."""
    if hasattr(config, "workerinput"):
        items.sort(key=_place)


def pytest_collection_finish() -> None:
    """Keep what is there for as long as the tests run out of every search for garbage."""
    gc.collect()
    gc.freeze()


def _place(item: pytest.Item) -> int:
    file = item.nodeid.partition("::")[0]
    if file in LONGEST:
        return LONGEST.index(file)
    return len(LONGEST) + (item.get_closest_marker("spark") is None)


@pytest.fixture(scope="session", autouse=True)
def _environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Set what holds for all tests and for the processes they start."""
    start_processes_with_default_signals()
    with pytest.MonkeyPatch.context() as patch:
        # Logs and archives stay out of the user's own.
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("SPARK_SUBMIT_OPTS", java_options())
        yield


@pytest.fixture(scope="session")
def spark_local_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark keeps shuffle files."""
    return tmp_path_factory.mktemp("spark-local")


@pytest.fixture(scope="session")
def spark_session(spark_local_dir: Path) -> Iterator[SparkContext]:
    """Return the Spark context that all jobs of this run share."""
    from headrace.spark.session import spark_context, stop_spark

    configuration = Configuration(
        {
            **BASE,
            "spark.local.dir": str(spark_local_dir),
            "env.log.dir": str(spark_local_dir / "log"),
            "spark.python.daemon.module": "tests.worker_daemon",
        }
    )
    yield spark_context(configuration)
    stop_spark()


@pytest.fixture
def engine() -> str:
    """Where the test's jobs run; tests that run on both are parametrized with it, see `tests/engines.py`."""
    return SPARK


@pytest.fixture
def env(engine: str, request: pytest.FixtureRequest) -> Iterator[EnvironmentFactory]:
    """Return a function that makes environments: ``env(parallelism=2, max_records=5, options={...})``."""
    base = BASE | {"execution.target": MINI_EXECUTOR} if engine == MINI else BASE
    executors: dict[str, JobExecutor] = {}
    if engine == SPARK:
        request.getfixturevalue("spark_session")
        from tests.watching import EXECUTOR

        executors["spark"] = EXECUTOR

    def make(
        parallelism: int = 2, max_records: int | None = None, options: dict[str, Any] | None = None
    ) -> StreamExecutionEnvironment:
        values = {key: str(value) for key, value in (options or {}).items()}
        if max_records is not None:
            values["headrace.epoch.max-records"] = str(max_records)
        environment = StreamExecutionEnvironment.get_execution_environment(
            ProgramConfiguration.from_dict(values)
        )
        return environment.set_parallelism(parallelism)

    with ExecutionContext(Configuration(base), executors).entered(in_all_threads=True):
        yield make
