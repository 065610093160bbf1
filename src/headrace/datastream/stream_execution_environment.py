"""The entry point of a DataStream program: it holds the program's steps and configuration, and runs it.

get_execution_environment() -> from_source(...) -> ... -> sink_to(...) -> execute()
     configuration                 transformations               stream graph -> job graph -> executor
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from headrace.common._older_names import OlderMethods
from headrace.common.configuration import Configuration
from headrace.common.execution_config import ExecutionConfig
from headrace.common.job_client import JobClient
from headrace.common.job_execution_result import JobExecutionResult
from headrace.common.job_id import JobID
from headrace.common.typeinfo import TypeInformation, Types
from headrace.common.watermark_strategy import WatermarkStrategy
from headrace.config import ConfigOption
from headrace.config import Configuration as LayeredConfiguration
from headrace.config.options import checkpointing, execution, python, state
from headrace.connectors.base import Boundedness, Source
from headrace.datastream._checks import (
    check_buffer_timeout,
    check_max_parallelism,
    check_parallelism,
    check_text,
    check_type,
    kind_and_value,
)
from headrace.datastream._jars import no_java, pass_over_jars
from headrace.datastream._program_configuration import ProgramConfiguration
from headrace.datastream._typed_elements import typed_elements
from headrace.datastream.cached_data_stream import check_mode, release_caches, settle_caches
from headrace.datastream.checkpoint_config import CheckpointConfig
from headrace.datastream.checkpoint_storage import java_path
from headrace.datastream.checkpointing_mode import CheckpointingMode
from headrace.datastream.data_stream import DataStream
from headrace.datastream.execution_context import ExecutionContext
from headrace.datastream.execution_mode import RuntimeExecutionMode
from headrace.datastream.executor import available_cores, default_parallelism
from headrace.datastream.output_tag import OutputTag
from headrace.datastream.slot_sharing_group import SlotSharingGroup, resources_of
from headrace.datastream.started_jobs import StartedJobs
from headrace.datastream.state_backend import StateBackend, state_backend_of
from headrace.errors import JobDefinitionError, UnsupportedFeatureError
from headrace.graph.job_graph import JobGraph, build_job_graph
from headrace.graph.plan_json import stream_plan
from headrace.graph.stream_graph import GraphSettings, StreamGraph, build_stream_graph
from headrace.graph.transformations import PhysicalTransformation, SourceTransformation, Transformation
from headrace.operators.io import SourceDeclaration
from headrace.util.import_paths import add_to_import_path

__all__ = ["StreamExecutionEnvironment"]

T = TypeVar("T")

DEFAULT_JOB_NAME = "Flink Streaming Job"


class StreamExecutionEnvironment(OlderMethods):
    """Where a program begins. Make one with `get_execution_environment`.

    Example:
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> env.set_parallelism(2).get_parallelism()
        2
        >>> sink = env.from_collection([1, 2, 3]).map(lambda n: n * n).print()
        >>> "Map" in env.get_execution_plan()
        True
    """

    def __init__(
        self, configuration: Configuration | None = None, *, context: ExecutionContext | None = None
    ) -> None:
        self._context = context or ExecutionContext.current()
        self._configuration = ProgramConfiguration(self._context.configuration, configuration)
        self._configuration.layered()  # a wrong key is better found here than at the first use
        self._config = ExecutionConfig(self._configuration)
        self._checkpoint_config = CheckpointConfig(self._configuration)
        self._ids = itertools.count(1)
        #: Operators and sinks since the last execution; sources and virtual steps hang on them.
        self._operators: list[PhysicalTransformation] = []
        #: (step, tag) -> declared type, to find contradictions.
        self._side_outputs: dict[tuple[int, str], TypeInformation] = {}
        #: What tables of the program ask of the Spark session.
        self._session_settings: dict[str, str] = {}
        self._slot_sharing_groups: dict[str, SlotSharingGroup] = {}
        self._default_local_parallelism = available_cores()
        self._started_jobs = StartedJobs()

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """Make an environment.

        Args:
            configuration: What the program sets, over command line, environment variables and headrace.yaml.

        Raises:
            ConfigurationError: If there is an unknown key or a wrong value in any of them.
        """
        return StreamExecutionEnvironment(configuration)

    # ------------------------------------------------------------------------------- configuration

    def get_config(self) -> ExecutionConfig:
        """Return the configuration of the job, with named setters."""
        return self._config

    def configure(self, configuration: Configuration) -> StreamExecutionEnvironment:
        """Set many keys at once; they replace earlier values.

        Raises:
            ConfigurationError: If there is an unknown key or a wrong value.
        """
        self._configuration.layered().with_values(configuration.to_dict())
        self._configuration.add_all(configuration)
        return self

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Set how many subtasks operators have that set none themselves."""
        return self._set(execution.PARALLELISM, check_parallelism("set_parallelism", parallelism))

    def get_parallelism(self) -> int:
        """Return how many subtasks operators have that set none themselves."""
        configuration = self._configuration.layered()
        configured = configuration.get(execution.PARALLELISM)
        return configured or default_parallelism(configuration, self._default_local_parallelism)

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Set the number of key groups: the highest parallelism the job can ever be rescaled to."""
        maximum = check_max_parallelism("set_max_parallelism", max_parallelism)
        return self._set(execution.MAX_PARALLELISM, maximum)

    def get_max_parallelism(self) -> int:
        """Return the number of key groups; -1 if it is left open."""
        return self._configuration.get(execution.MAX_PARALLELISM)

    def get_default_local_parallelism(self) -> int:
        """Return the default parallelism on a local master: the number of cores, unless you set it."""
        return self._default_local_parallelism

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the default parallelism on a local master."""
        self._default_local_parallelism = check_parallelism("set_default_local_parallelism", parallelism)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Make a slot sharing group with resources known, to be used by its name.

        Raises:
            JobDefinitionError: If another one has the same name.
        """
        if not isinstance(slot_sharing_group, SlotSharingGroup):
            raise JobDefinitionError(
                "register_slot_sharing_group(): expected a SlotSharingGroup, got "
                f"{kind_and_value(slot_sharing_group)}"
            )
        name = slot_sharing_group.get_name()
        known = self._slot_sharing_groups.setdefault(name, slot_sharing_group)
        if known != slot_sharing_group:
            raise JobDefinitionError(
                f"slot sharing group {name!r} is registered with other resources already"
            )
        return self

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """Set whether the program runs as a stream or as a batch."""
        return self._set(execution.RUNTIME_MODE, execution_mode)

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """Set how long records may wait in output buffers, in ms; -1 for as long as it takes."""
        timeout = check_buffer_timeout("set_buffer_timeout", timeout_millis)
        if timeout >= 0:
            self._set(execution.BUFFER_TIMEOUT, timedelta(milliseconds=timeout))
        return self._set(execution.BUFFER_TIMEOUT_ENABLED, timeout >= 0)

    def get_buffer_timeout(self) -> int:
        """Return how long records may wait in output buffers, in ms; -1 for as long as it takes."""
        if not self._configuration.get(execution.BUFFER_TIMEOUT_ENABLED):
            return -1
        return self._configuration.get(execution.BUFFER_TIMEOUT) // timedelta(milliseconds=1)

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Run every operator in its own task."""
        return self._set(execution.OPERATOR_CHAINING, False)

    def is_chaining_enabled(self) -> bool:
        """Whether operators may share a task."""
        return self._configuration.get(execution.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Whether operators with different max parallelism may share a task."""
        return GraphSettings.chains_different_max_parallelism

    # ------------------------------------------------------------------------------- checkpointing

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Return the configuration of checkpoints, with named setters."""
        return self._checkpoint_config

    def enable_checkpointing(
        self, interval: int, mode: CheckpointingMode | None = None
    ) -> StreamExecutionEnvironment:
        """Complete a checkpoint from time to time, at the end of an epoch.

        From then on the output of sinks waits for the checkpoint that covers it, and a job that fails starts again
        from the last one.

        Args:
            interval: Milliseconds between two.
            mode: Whether results are exactly right after a recovery, or may repeat.
        """
        self._checkpoint_config.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """Return the milliseconds between two checkpoints; -1 if checkpointing is disabled."""
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return whether results are exactly right after a recovery."""
        return self._checkpoint_config.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Return whether results are exactly right after a recovery."""
        return self.get_checkpointing_mode()

    def set_state_backend(self, state_backend: StateBackend) -> StreamExecutionEnvironment:
        """Choose where keyed state lives between epochs: PyFlink 1's way to set `state.backend.type`.

        Raises:
            JobDefinitionError: If it is not a state backend.

        Example:
            >>> from headrace.datastream import EmbeddedRocksDBStateBackend
            >>> env = StreamExecutionEnvironment.get_execution_environment()
            >>> env.set_state_backend(EmbeddedRocksDBStateBackend()).get_state_backend()
            <EmbeddedRocksDBStateBackend>
        """
        if not isinstance(state_backend, StateBackend):
            raise JobDefinitionError(
                f"set_state_backend: expected a StateBackend; got {type(state_backend).__name__}",
                hint="HashMapStateBackend() or EmbeddedRocksDBStateBackend(); or set state.backend.type",
            )
        return self.configure(Configuration.from_dict(state_backend.to_dict()))

    def get_state_backend(self) -> StateBackend:
        """Return the state backend that the configuration amounts to."""
        return state_backend_of(self._configuration.layered())

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Accepted without effect: every epoch writes its changes, and only them."""
        return self._set(state.CHANGELOG, enabled)

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """Whether it was enabled; None if nothing was said about it."""
        return self._configuration.get_if_set(state.CHANGELOG)

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Set where savepoints go if the command names no place."""
        return self._set(checkpointing.SAVEPOINT_DIRECTORY, directory)

    def get_default_savepoint_directory(self) -> str | None:
        """Return where savepoints go if the command names no place."""
        directory = self._configuration.get(checkpointing.SAVEPOINT_DIRECTORY)
        return None if directory is None else java_path(directory)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether barriers may overtake records; as in Flink, not before checkpointing is enabled."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether barriers may overtake records in iterations, too; without effect."""
        return self._configuration.get(checkpointing.UNALIGNED_FORCED)

    # --------------------------------------------------------------------------------- dependencies

    def add_python_file(self, file_path: str) -> None:
        """Ship a Python file, directory, zip, egg or wheel file; the program and its functions can import from it."""
        files = self._configuration.get(python.FILES)
        self._set(python.FILES, [*files, check_text("add_python_file", "path", file_path)])
        add_to_import_path(file_path)

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Name the packages that workers need; pip installs them once in every executor.

        Args:
            requirements_file_path: A requirements file.
            requirements_cache_dir: A directory with the packages, for workers without a way to the index.
        """
        path = check_text("set_python_requirements", "path", requirements_file_path)
        self._set(python.REQUIREMENTS, f"{path}#{requirements_cache_dir}" if requirements_cache_dir else path)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Ship an archive; it is unpacked once in every executor, in the working directory of the functions.

        Args:
            archive_path: A zip or tar file.
            target_dir: Name of the directory it is unpacked to.
        """
        path = check_text("add_python_archive", "path", archive_path)
        archives = self._configuration.get(python.ARCHIVES)
        self._set(python.ARCHIVES, [*archives, f"{path}#{target_dir}" if target_dir else path])

    def set_python_executable(self, python_exec: str) -> None:
        """Set the Python interpreter of the workers."""
        self._set(python.EXECUTABLE, check_text("set_python_executable", "interpreter", python_exec))

    def add_jars(self, *jars_path: str) -> None:
        """Take jars of Flink's connectors and formats that headrace has itself; others are refused."""
        pass_over_jars(*jars_path)

    def add_classpaths(self, *classpaths: str) -> None:
        """Refused: no Java code of a program is loaded."""
        raise no_java("add_classpaths()")

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Ship a file or directory; functions get its path with ``get_distributed_cache()``.

        Args:
            file_path: A path, or a URI such as ``s3://bucket/path``.
            name: What functions call it: ``runtime_context.get_distributed_cache().get_file(name)``.
            executable: Whether it is a program.
        """
        path = check_text("register_cached_file", "path", file_path)
        name = check_text("register_cached_file", "name", name)
        entry = f"name:{name},path:{path},executable:{str(executable).lower()}"
        known = self._configuration.get(python.CACHED_FILES)
        self._set(python.CACHED_FILES, f"{known};{entry}" if known else entry)

    # -------------------------------------------------------------------------------------- sources

    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy,
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """Read a source.

        Args:
            source: One of the connectors' sources, or your own subclass of `headrace.connectors.base.Source`.
            watermark_strategy: Assigns timestamps and emits watermarks, separately for each split of the source.
            source_name: For plans, logs and metrics.
            type_info: Type of the records; that of the source if it knows one.

        Raises:
            JobDefinitionError: If an argument is something else.
        """
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise JobDefinitionError(
                f"from_source(): expected a WatermarkStrategy, got {kind_and_value(watermark_strategy)}",
                hint="use WatermarkStrategy.no_watermarks() for a program that needs no event time",
            )
        return self._read("from_source", source, watermark_strategy, source_name, type_info)

    def add_source(
        self,
        source_func: Source,
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """Read a source without event time; as `from_source` without watermarks."""
        return self._read(
            "add_source", source_func, WatermarkStrategy.no_watermarks(), source_name, type_info
        )

    def from_collection(
        self, collection: Iterable[Any], type_info: TypeInformation | None = None
    ) -> DataStream:
        """Read elements that the program holds. One subtask reads them, in order.

        Args:
            collection: The elements; each must pickle.
            type_info: Their type. Tuples and dictionaries become rows if it is a ROW.

        Raises:
            JobDefinitionError: If it is empty and has no type, or an element does not pickle or fit the type.

        Example:
            >>> env = StreamExecutionEnvironment.get_execution_environment()
            >>> env.from_collection([(1, "a"), (2, "b")]).get_name()
            'Collection Source'
        """
        from headrace.connectors.collection import CollectionSource

        if isinstance(collection, str | bytes) or not isinstance(collection, Iterable):
            raise JobDefinitionError(
                f"from_collection(): expected a list or another iterable, got {kind_and_value(collection)}"
            )
        type_info = check_type("from_collection", type_info)
        elements = list(collection)
        if not elements and type_info is None:
            raise JobDefinitionError(
                "from_collection(): the collection is empty, so the type of its elements is not known",
                hint="pass type_info, such as Types.INT()",
            )
        if type_info is not None:
            elements = typed_elements(elements, type_info)
        stream = self._read(
            "from_collection",
            CollectionSource(elements, type_info),
            WatermarkStrategy.no_watermarks(),
            "Collection Source",
            type_info,
        )
        return self._on_one_subtask(stream)

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """Read the lines of a file, or of all files of a directory. A convenience that PyFlink does not have.

        Args:
            file_path: A path, or a URI such as ``s3://bucket/path``.
            charset_name: The encoding.
        """
        from headrace.connectors.file import FileSource, StreamFormat

        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset_name), file_path)
        return self._read(
            "read_text_file", source.build(), WatermarkStrategy.no_watermarks(), "Text File", Types.STRING()
        )

    def socket_text_stream(self, hostname: str, port: int) -> DataStream:
        """Read lines of text from a server, for trying things out. A convenience that PyFlink does not have.

        Args:
            hostname: The server.
            port: Its port.
        """
        from headrace.connectors.socket import SocketSource

        stream = self._read(
            "socket_text_stream",
            SocketSource(hostname, port),
            WatermarkStrategy.no_watermarks(),
            "Socket Stream",
            Types.STRING(),
        )
        return self._on_one_subtask(stream)

    def create_input(self, input_format: Any, type_info: TypeInformation | None = None) -> DataStream:
        """Not in headrace yet."""
        raise UnsupportedFeatureError.not_yet("create_input()", "use from_source() with a source")

    def _read(
        self,
        call: str,
        source: Source,
        watermark_strategy: WatermarkStrategy,
        name: str,
        type_info: TypeInformation | None,
    ) -> DataStream:
        if not isinstance(source, Source):
            raise JobDefinitionError(
                f"{call}(): expected a Source, got {kind_and_value(source)}",
                hint="use one of headrace.datastream.connectors, or subclass headrace.connectors.base.Source",
            )
        output_type = check_type(call, type_info)
        if output_type is None:
            output_type = source.get_produced_type()
        step = SourceTransformation(
            id=self._next_id(),
            name=check_text(call, "name of the source", name),
            declaration=SourceDeclaration(source, watermark_strategy),
            output_type=output_type,
            is_bounded=source.boundedness is Boundedness.BOUNDED,
        )
        return DataStream(self, step)

    @staticmethod
    def _on_one_subtask(stream: DataStream) -> DataStream:
        operator = stream._operator("from_collection")
        operator.parallelism = 1
        operator.is_non_parallel = True
        return stream

    # ------------------------------------------------------------------------------------ execution

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the program and wait for its end.

        Args:
            job_name: The job's name; ``pipeline.name`` if None.

        Raises:
            InvalidTopologyError: If the steps do not make a job that can run.
            JobExecutionError: If the job fails.
        """
        return self._submit(job_name).get_job_execution_result().result()

    def execute_async(self, job_name: str = DEFAULT_JOB_NAME) -> JobClient:
        """Start the program and return at once.

        Args:
            job_name: The job's name.

        Raises:
            InvalidTopologyError: If the steps do not make a job that can run.
        """
        return self._submit(job_name)

    def get_execution_plan(self) -> str:
        """Return the steps as JSON, in the shape Flink's plan visualizer reads. Nothing runs."""
        return json.dumps(stream_plan(self._build_stream_graph()))

    def close(self) -> None:
        """Delete the results that `DataStream.cache` has kept."""
        release_caches(self)

    def _submit(self, job_name: str | None) -> JobClient:
        """Turn the steps since the last execution into a job, and start it."""
        configuration = self._configuration.layered()
        name = job_name or configuration.get(execution.NAME) or DEFAULT_JOB_NAME
        stream_graph = self._build_stream_graph()
        job_graph = build_job_graph(stream_graph, job_id=str(JobID.generate()), name=name)
        self._announce(stream_graph, job_graph, configuration)
        # As in Flink: the steps now belong to the job, and the next execution starts afresh.
        self._operators.clear()
        self._side_outputs.clear()
        return self._start(job_graph, configuration)

    def _submit_job_graph(self, job_graph: JobGraph) -> JobClient:
        """Start a job that was not made of this environment's steps: a query."""
        self._announce(None, job_graph, self._configuration.layered())
        return self._start(job_graph, self._configuration.layered())

    def _announce(self, stream_graph: StreamGraph | None, job: JobGraph, configuration: Any) -> None:
        if self._context.on_submission is not None:
            self._context.on_submission(stream_graph, job, configuration)

    def _start(self, job_graph: JobGraph, configuration: LayeredConfiguration) -> JobClient:
        executor = self._context.executor_for(configuration)
        client = JobClient(executor.submit(job_graph, configuration))
        return self._started_jobs.add(job_graph.name, client)

    def _job_graph_of(self, steps: Sequence[PhysicalTransformation], name: str) -> JobGraph:
        """Return the job of some steps and all that they read, whatever else there is."""
        return build_job_graph(self._build_stream_graph(steps), job_id=str(JobID.generate()), name=name)

    def _build_stream_graph(self, steps: Sequence[PhysicalTransformation] | None = None) -> StreamGraph:
        """Return the graph of the program, or of some steps and all that they read."""
        get = self._configuration.layered().get
        maximum = get(execution.MAX_PARALLELISM)
        parameters = get(execution.GLOBAL_JOB_PARAMETERS)
        settings = GraphSettings(
            parallelism=self.get_parallelism(),
            max_parallelism=None if maximum == -1 else maximum,
            runtime_mode=get(execution.RUNTIME_MODE),
            is_chaining_enabled=get(execution.OPERATOR_CHAINING),
            buffer_timeout_ms=self.get_buffer_timeout(),
            generates_uids=get(execution.AUTO_GENERATE_UIDS),
            allows_untyped=get(execution.GENERIC_TYPES),
            object_reuse=get(execution.OBJECT_REUSE),
            global_job_parameters=parameters,
            session_settings=self._session_settings,
            slot_resources=resources_of(self._slot_sharing_groups.values()),
        )
        steps = self._operators if steps is None else steps
        caches = settle_caches(steps)
        graph = build_stream_graph([*steps, *caches], settings)
        check_mode(caches, is_batch=graph.is_batch)
        return graph

    # ------------------------------------------------------------------ what the streams ask of it

    def _next_id(self) -> int:
        return next(self._ids)

    def _add_operator(self, step: PhysicalTransformation) -> None:
        self._operators.append(step)

    def _remove_operator(self, step: PhysicalTransformation) -> None:
        if step in self._operators:
            self._operators.remove(step)

    def _note_side_output(self, step: Transformation, tag: OutputTag) -> None:
        """Remember the type a side output was asked for with, and refuse another one."""
        known = self._side_outputs.setdefault((step.id, tag.tag_id), tag.type_info)
        if known != tag.type_info:
            raise JobDefinitionError(
                f"get_side_output(): {tag.tag_id!r} was asked for with the type {known.summary()} before, now with "
                f"{tag.type_info.summary()}",
                hint="use one OutputTag for both",
            )

    def _set(self, option: ConfigOption[T], value: T) -> StreamExecutionEnvironment:
        self._configuration.set(option, value)
        return self

    def __repr__(self) -> str:
        return f"<StreamExecutionEnvironment with {len(self._operators)} operators>"
