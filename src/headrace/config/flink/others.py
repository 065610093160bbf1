"""Keys of Flink's that have no effect here, and keys that ask for something that headrace does not have.

A key is *without effect* if nobody misses anything: it tunes a part that Spark or headrace does not have. It is
*refused* if a program or an operator relies on it: results, security, where output or logs go, who is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.config.flink.answers import Answer, no_effect, refused

__all__ = ["OTHERS"]

# --- reasons that several keys share ----------------------------------------------------------------------------

_CLUSTER = no_effect("Spark's cluster manager runs the processes: use headrace.spark.master and spark.*")
_ADDRESSES = no_effect(
    "Spark's processes find each other: use spark.driver.host, spark.driver.port, spark.port.*"
)
_POOLS = no_effect("Spark's driver and executors have their own threads")
_NETWORK = no_effect("records travel through Spark's shuffle: use spark.shuffle.* and spark.network.*")
_BUFFERS = no_effect(
    "buffers of live jobs are bounded in bytes: use spark.shuffle.streaming.writerMaxMemory and readerMaxMemory; in "
    "epochs Spark's shuffle has them"
)
_CLASSES = no_effect("headrace does not load Java code of programs")
_KRYO = no_effect("values are serialized by their declared type, or pickled")
_WORKERS = no_effect("functions run inside the Python worker that holds the task")
_BATCH = no_effect("Spark runs batch queries with its own operators: use spark.sql.*")
_RPC = no_effect("headrace has no actor system: use spark.rpc.*")
_ROCKSDB_METRICS = refused(
    "RocksDB's own metrics are not reported: use state.latency-track.keyed-state-enabled and the metrics of state sizes"
)
_ROCKSDB_MERGES = no_effect("RocksDB merges its files by itself")
_FORST = refused("headrace has no ForSt backend: use state.backend.type: rocksdb and state.backend.rocksdb.*")
_DSTL = no_effect("every epoch writes the changes of state, and only them, to execution.checkpointing.dir")
_ZOOKEEPER = refused(
    "leaders are elected without ZooKeeper: use high-availability.type: filesystem with high-availability.storageDir"
)
_KUBERNETES_HA = refused(
    "leaders are elected in a directory: use high-availability.type: filesystem with high-availability.storageDir"
)
_POD = refused(
    "Spark takes it from a pod template: use spark.kubernetes.driver.podTemplateFile and executor.podTemplateFile"
)
_SERVICE = refused(
    "Spark creates no service for REST: create one for the driver's pod, and set rest.bind-address and a token"
)
_LIMITS = refused(
    "use spark.kubernetes.driver.limit.cores, spark.kubernetes.executor.limit.cores, or a pod template"
)
_HISTORY = refused(
    "headrace has no history server: a session keeps its ended jobs (jobstore.*), also across restarts with "
    "jobmanager.archive.fs.dir"
)
_JMX = refused("headrace has no JMX reporter: use metrics.reporters, or GET /metrics for Prometheus")
_EVENTS = refused(
    "events are not reported separately: traces.reporters reports checkpoints and restarts, and REST lists exceptions"
)
_SSL_INTERNAL = refused(
    "connections between processes are Spark's: use spark.authenticate, spark.network.crypto.enabled and "
    "spark.ssl.rpc.*; docs/security.md says what live jobs need"
)
_SSL_INTERNAL_PART = no_effect("it applies only with security.ssl.internal.enabled: use spark.ssl.*")
_SSL_REST = refused(
    "use headrace.rest.tls.certificate, headrace.rest.tls.key and headrace.rest.tls.authorities, in PEM files"
)
_SSL_REST_PART = no_effect("it applies only with security.ssl.rest.enabled: use headrace.rest.tls.*")
_SPECULATION = refused(
    "two attempts of a subtask would change the same state: find slow subtasks on the page, and "
    "leave slow hosts out with spark.excludeOnFailure.enabled"
)
_SLOW_TASKS = no_effect("it applies only with execution.batch.speculative.enabled, which is not supported")
_PROFILER = refused(
    "headrace has no Java profiler: rest.flamegraph.enabled shows where tasks spend their time"
)
_LISTENER = refused(
    "listeners are Java classes: use the JobClient that execute_async() returns, or poll REST"
)
_MODELS = refused(
    "ML_PREDICT and VECTOR_SEARCH are not supported: call the model in an asynchronous function"
)
_START_MODE = refused("a materialized table is always filled from the beginning")
_DELTA_JOIN = no_effect("joins keep their rows in state")
_CLIENT_RETRIES = no_effect(
    "requests of the command line and of sessions have one time limit, client.timeout"
)
_THREADS = no_effect("the server answers each request in a thread of its own")
_CEP = no_effect("headrace has no CEP library: use MATCH_RECOGNIZE")
_RECOVERY = refused("a batch job starts over when its driver is lost: store intermediate results in tables")
_RESULTS = no_effect("an application has one job: use job-result-store.*")
_MERGING = no_effect(
    "a checkpoint has one file per subtask and epoch, merged by headrace.state.compaction.max-changes"
)
_EXTERNAL = refused(
    "use Spark's resources: spark.executor.resource.gpu.amount, spark.task.resource.gpu.amount and a discovery script"
)
_DIRECTORY = no_effect("docs/deployment.md describes directories on hosts: use spark.local.dir and TMPDIR")
_ARTIFACTS = refused(
    "Java artifacts are not fetched: use python.files, python.archives and pipeline.cached-files"
)
_SORT = no_effect("a batch job over a stream keeps its rows in state: use headrace.epoch.max-bytes")
_SIZES = refused(
    "sizes of single state accesses are not tracked: use state.latency-track.*, and the sizes of checkpoints"
)
_BUNDLES = no_effect("records are handed to functions in lists: use headrace.exchange.buffer-records")
_FIXED_SLOTS = refused(
    "Spark's executors provide the slots: use spark.dynamicAllocation.minExecutors, maxExecutors, spark.cores.max"
)

# --- the keys ---------------------------------------------------------------------------------------------------

_PROCESSES: Final = {
    "taskmanager.": _CLUSTER,
    "taskmanager.bind-host": _ADDRESSES,
    "taskmanager.host": _ADDRESSES,
    "taskmanager.rpc.": _ADDRESSES,
    "taskmanager.data.bind-port": _ADDRESSES,
    "taskmanager.data.ssl.enabled": no_effect("it applies only with security.ssl.internal.enabled"),
    "taskmanager.collect-sink.port": no_effect("results are collected through Spark's driver"),
    "taskmanager.network.": _NETWORK,
    "taskmanager.network.memory.": _BUFFERS,
    "taskmanager.network.hybrid-shuffle.": refused(
        "headrace has no hybrid shuffle: use headrace.exchange.kind"
    ),
    "taskmanager.runtime.": _BATCH,
    "taskmanager.log.path": no_effect("Spark keeps the logs of executors: `headrace logs`"),
    "taskmanager.load-balance.mode": no_effect("Spark places tasks: use spark.locality.wait"),
    "taskmanager.jvm-exit-on-oom": no_effect("Spark ends an executor that runs out of memory"),
    "taskmanager.debug.memory.log": no_effect(
        "`headrace info --memory` and the metrics Status.JVM.Memory show it"
    ),
    "taskmanager.debug.memory.log-interval": no_effect("use the metrics Status.JVM.Memory"),
    "jobmanager.": _CLUSTER,
    "jobmanager.bind-host": _ADDRESSES,
    "jobmanager.rpc.": _ADDRESSES,
    "jobmanager.future-pool.size": _POOLS,
    "jobmanager.io-pool.size": _POOLS,
    "jobmanager.failure-enrichers": refused(
        "failures are not labelled by plugins: REST has their classes and causes"
    ),
    "jobmanager.partition.": _NETWORK,
    "jobmanager.execution.attempts-history-size": no_effect("use web.exception-history-size"),
    "jobmanager.retrieve-taskmanager-hostname": no_effect("hosts are shown as Spark calls them"),
    "jobmanager.resource-id": no_effect("drivers are known by high-availability.cluster-id"),
    "jobmanager.adaptive-scheduler.prefer-minimal-taskmanagers": no_effect(
        "Spark places the tasks of every epoch"
    ),
    "jobmanager.adaptive-scheduler.rescale-trigger.": no_effect(
        "a job rescales at the end of an epoch, and needs no checkpoint for that"
    ),
    "cluster.": _CLUSTER,
    "cluster.io-pool.size": _POOLS,
    "cluster.thread-dump.": no_effect("GET /taskmanagers/:id/thread-dump shows whole stacks"),
    "resourcemanager.": _CLUSTER,
    "slot.": no_effect("slots are free when their job ends: slot.request.timeout says how long a job waits"),
    "slotmanager.": _FIXED_SLOTS,
    "slotmanager.redundant-taskmanager-num": refused("use spark.dynamicAllocation.minExecutors"),
    "heartbeat.": no_effect("use heartbeat.timeout"),
    "heartbeat.rpc-failure-threshold": no_effect("use heartbeat.timeout"),
    "blob.": no_effect("files travel with Spark: use spark.files.*"),
    "pekko.": _RPC,
    "akka.": _RPC,
    "pekko.ssl.enabled": no_effect("it applies only with security.ssl.internal.enabled"),
    "minicluster.": no_effect("a local Spark is one process: use local-cluster[N,cores,memory] for several"),
    "external-resources": _EXTERNAL,
    "external-resource.": _EXTERNAL,
    "process.": _DIRECTORY,
    "user.artifacts.": _ARTIFACTS,
    "jmx.": _JMX,
    "historyserver.": _HISTORY,
    "shuffle-service-factory.class": refused("Spark has the shuffle: use headrace.exchange.kind"),
    "application-result-store.": _RESULTS,
    "completed-application-store.": _RESULTS,
    "cleanup-strategy.": no_effect(
        "leftovers of a job are removed by the next start: docs/fault-tolerance.md"
    ),
    "job-event.": no_effect(
        "it applies only with execution.batch.job-recovery.enabled, which is not supported"
    ),
    "yarn.": _CLUSTER,
    "yarn.application.id": no_effect("sessions are found by address: use headrace run -m HOST:PORT"),
    "yarn.application.type": no_effect("YARN shows the type SPARK"),
    "yarn.application-master.port": _ADDRESSES,
    "yarn.classpath.include-user-jar": _CLASSES,
    "yarn.container-start-command-template": refused(
        "Spark starts its containers: use spark.*.extraJavaOptions"
    ),
    "yarn.flink-dist-jar": no_effect("use spark.yarn.jars or spark.yarn.archive"),
    "yarn.provided.lib.dirs": no_effect("use spark.yarn.jars or spark.yarn.archive"),
    "yarn.provided.usrlib.dir": refused("use python.files and python.archives"),
    "yarn.security.appmaster.delegation.token.services": refused(
        "use spark.security.credentials.NAME.enabled"
    ),
    "yarn.security.kerberos.": no_effect("Spark ships the keytab: use spark.kerberos.keytab"),
    "kubernetes.": _CLUSTER,
    "kubernetes.rest-service.": _SERVICE,
    "kubernetes.hostnetwork.enabled": _POD,
    "kubernetes.jobmanager.tolerations": _POD,
    "kubernetes.taskmanager.tolerations": _POD,
    "kubernetes.jobmanager.owner.reference": _POD,
    "kubernetes.jobmanager.entrypoint.args": _POD,
    "kubernetes.taskmanager.entrypoint.args": _POD,
    "kubernetes.persistent-volume-claim-read-only": refused(
        "use spark.kubernetes.driver.volumes.persistentVolumeClaim.NAME.mount.readOnly, and the same of executors"
    ),
    "kubernetes.jobmanager.cpu.limit-factor": _LIMITS,
    "kubernetes.taskmanager.cpu.limit-factor": _LIMITS,
    "kubernetes.jobmanager.memory.limit-factor": _LIMITS,
    "kubernetes.taskmanager.memory.limit-factor": _LIMITS,
    "kubernetes.jobmanager.replicas": refused(
        "start several drivers with the same high-availability.cluster-id: one leads, the others wait"
    ),
    "kubernetes.artifacts.": refused("use spark.kubernetes.file.upload.path"),
    "high-availability.": _CLUSTER,
    "high-availability.jobmanager.port": _ADDRESSES,
    "high-availability.zookeeper.": _ZOOKEEPER,
    "high-availability.kubernetes.": _KUBERNETES_HA,
    "zookeeper.": _ZOOKEEPER,
}
_CODE: Final = {
    "env.": _CLASSES,
    "env.java.default-opts.": no_effect("Spark passes what its own Java process needs"),
    "env.java.opts.historyserver": _HISTORY,
    "env.pid.dir": no_effect(
        "`headrace run -d` and `headrace session` have no pid files: `headrace list` finds them"
    ),
    "env.ssh.opts": no_effect("clusters are started with Spark's own scripts: use SPARK_SSH_OPTS"),
    "env.hbase.conf.dir": refused("headrace has no connector for HBase"),
    "env.stdout-err.redirect-to-file": no_effect("output already goes to workers.log: docs/deployment.md"),
    "classloader.": _CLASSES,
    "pipeline.jars": _CLASSES,
    "pipeline.classpaths": _CLASSES,
    "pipeline.serialization-config": _KRYO,
    "pipeline.default-kryo-serializers": _KRYO,
    "pipeline.registered-kryo-types": _KRYO,
    "pipeline.registered-pojo-types": _KRYO,
    "pipeline.force-kryo-avro": _KRYO,
    "pipeline.cep.": _CEP,
    "pipeline.vertex-name-include-index-prefix": no_effect("vertices are named after their operators"),
    "pipeline.vertex-description-mode": no_effect("descriptions list the operators of a vertex in order"),
    "pipeline.jobvertex-parallelism-overrides": refused(
        "set parallelism in the program, or rescale the running job: `headrace rescale`, or "
        "PUT /jobs/:jobid/resource-requirements"
    ),
    "pipeline.sources.pause-until-first-checkpoint": refused("sources read from the start of a job"),
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism": refused(
        "operators with another max parallelism are chained as in Flink's default: use start_new_chain()"
    ),
    "pipeline.watermark-alignment.allow-unaligned-source-splits": refused(
        "splits that are ahead are always paused: leave the source out of its alignment group"
    ),
    "pipeline.watermark-alignment.buffer-size": no_effect("alignment is decided between batches of records"),
    "python.fn-execution.": _BUNDLES,
    "python.fn-execution.memory.managed": no_effect("docs/tuning.md describes the memory of workers"),
    "python.execution-mode": _WORKERS,
    "python.operator-chaining.enabled": no_effect("use pipeline.operator-chaining.enabled"),
    "python.client.executable": no_effect("the program runs in the Python that runs headrace"),
    "python.metric.enabled": no_effect("metrics of functions are always counted"),
    "python.profile.enabled": _PROFILER,
    "python.map-state.": no_effect("state is in the worker's own memory: use headrace.state.cache-entries"),
    "python.state.cache-size": no_effect(
        "state is in the worker's own memory: use headrace.state.cache-entries"
    ),
    "python.logging.default.level": no_effect("use env.log.level"),
    "python.logging.level.overrides": refused(
        "use env.log.level, or logging.getLogger(name).setLevel in open()"
    ),
    "python.pythonpath": refused("use python.files, or PYTHONPATH and spark.executorEnv.PYTHONPATH"),
    "python.systemenv.enabled": no_effect("workers inherit the environment of their executor"),
    "compiler.": _BATCH,
}
_JOBS: Final = {
    "execution.batch-shuffle-mode": refused(
        "batch jobs exchange rows through Spark's shuffle, all exchanges blocking; live jobs are not for batch"
    ),
    "execution.batch.adaptive.auto-parallelism.default-source-parallelism": _BATCH,
    "execution.batch.adaptive.auto-parallelism.min-parallelism": _BATCH,
    "execution.batch.job-recovery.enabled": _RECOVERY,
    "execution.batch.job-recovery.": no_effect("it applies only with execution.batch.job-recovery.enabled"),
    "execution.batch.speculative.enabled": _SPECULATION,
    "execution.batch.speculative.": _SLOW_TASKS,
    "slow-task-detector.": _SLOW_TASKS,
    "execution.checkpointing.cleaner.parallel-mode": no_effect(
        "old checkpoints are deleted in the background"
    ),
    "execution.checkpointing.create-subdir": refused(
        "every job has its own folder below execution.checkpointing.dir"
    ),
    "execution.checkpointing.data-inline-threshold": no_effect(
        "operator state is in the metadata, keyed state in files"
    ),
    "execution.checkpointing.during-recovery.enabled": refused("checkpoints begin when a job runs"),
    "execution.checkpointing.file-merging.": _MERGING,
    "execution.checkpointing.interval-during-backlog": refused("use execution.checkpointing.interval"),
    "execution.checkpointing.local-backup.": no_effect(
        "hosts keep a copy of state in any case: headrace.state.local-dir"
    ),
    "execution.checkpointing.unaligned.interruptible-timers.enabled": no_effect(
        "barriers do not wait for timers"
    ),
    "execution.checkpointing.unaligned.": no_effect("files in flight are written by subtask"),
    "execution.checkpointing.write-buffer-size": no_effect("files are written as a whole"),
    "execution.job-listeners": _LISTENER,
    "execution.job-status-changed-listeners": _LISTENER,
    "execution.program-config.enabled": refused(
        "programs may set options: use -D for options that take precedence"
    ),
    "execution.program-config.wildcards": refused("programs may set options of all names"),
    "execution.shutdown-on-application-finish": refused("a driver ends with its program"),
    "execution.shutdown-on-attached-exit": refused(
        "cancel the job: headrace run without -d does so on Ctrl-C"
    ),
    "execution.sort-keyed-partition.memory": _SORT,
    "execution.sort-partition.memory": _SORT,
    "execution.state-recovery.from-local": no_effect(
        "hosts reuse their copies of state if they are up to date"
    ),
    "execution.state-recovery.without-channel-state.checkpoint-id": refused(
        "checkpoints of epochs have no channel state; those of live jobs cannot be restored without it"
    ),
    "execution.terminate-application-on-any-job-terminated-exceptionally": refused(
        "the program decides: execute() raises"
    ),
    "sink.committer.retries": refused("failed commits are retried with the next checkpoint, without a limit"),
    "task.cancellation.timers.timeout": no_effect("Spark ends the tasks of a cancelled job"),
    "state.backend.forst.": _FORST,
    "state.backend.rocksdb.metrics.": _ROCKSDB_METRICS,
    "state.backend.rocksdb.manual-compaction.": _ROCKSDB_MERGES,
    "state.changelog.": _DSTL,
    "state.size-track.keyed-state-enabled": _SIZES,
    "state.size-track.": no_effect("it applies only with state.size-track.keyed-state-enabled"),
    "fs.allowed-fallback-filesystems": no_effect(
        "file systems are found by scheme: docs/connectors/files.md"
    ),
    "fs.default-scheme": refused("write paths with their scheme, such as hdfs://host/path"),
    "fs.output.always-create-directory": no_effect("sinks of files always write a directory"),
    "fs.overwrite-files": refused("files are never overwritten: INSERT OVERWRITE replaces a table"),
}
_TABLES: Final = {
    "table.exec.local-hash-agg.": _BATCH,
    "table.exec.resource.": _BATCH,
    "table.exec.sort.": _BATCH,
    "table.exec.operator-fusion-codegen.enabled": _BATCH,
    "table.exec.window-agg.buffer-size-limit": no_effect(
        "the rows of an epoch are aggregated together: headrace.epoch.*"
    ),
    "table.exec.async-lookup.key-ordered-enabled": refused(
        "lookups of an epoch run together, in the order of the rows"
    ),
    "table.exec.async-ml-predict.": _MODELS,
    "table.exec.async-vector-search.": _MODELS,
    "table.exec.async-state.enabled": no_effect("state is read for all rows of an epoch at once"),
    "table.exec.delta-join.": _DELTA_JOIN,
    "table.exec.sink.nested-constraint-enforcer": refused("constraints of nested fields are not checked"),
    "table.exec.sink.upsert-materialize-strategy.": no_effect(
        "sinks keep their rows in keyed state, whatever their number"
    ),
    "table.exec.uid.format": no_effect("the ids of a query's operators are derived from the query"),
    "table.exec.unbounded-over.version": no_effect("plans are not kept in files"),
    "table.generated-code.": _BATCH,
    "table.legacy-nested-row-nullability": refused("rows are nullable as in SQL"),
    "table.catalog-modification.listeners": _LISTENER,
    "table.resources.download-dir": _CLASSES,
    "table.optimizer.multiple-input-enabled": _BATCH,
    "table.optimizer.ptf.max-tables": no_effect("a call of a process table function takes up to 20 tables"),
    "table.optimizer.reuse-optimize-block-with-digest-enabled": no_effect("plans have no blocks"),
    "table.optimizer.runtime-filter.min-filter-ratio": _BATCH,
    "table.optimizer.source.report-statistics-enabled": no_effect("Spark reads the statistics of files"),
    "table.optimizer.sql2rel.project-merge.enabled": no_effect(
        "projections are merged by the planner's rules"
    ),
    "table.optimizer.union-all-as-breakpoint-enabled": no_effect("plans have no blocks"),
    "materialized-table.default-start-mode": _START_MODE,
    "sql-client.display.": no_effect("it configures Flink's SQL client"),
}
_SERVERS: Final = {
    "client.heartbeat.": no_effect("a session's job continues without its client: use execution.attached"),
    "client.retry-period": _CLIENT_RETRIES,
    "rest.await-leader-timeout": _CLIENT_RETRIES,
    "rest.cache.": no_effect("answers are read from the archived job: nothing is cached"),
    "rest.client.max-content-length": _CLIENT_RETRIES,
    "rest.connection-timeout": _CLIENT_RETRIES,
    "rest.flamegraph.cleanup-interval": no_effect("flame graphs are removed with their job"),
    "rest.idleness-timeout": _CLIENT_RETRIES,
    "rest.path": refused("use a reverse proxy"),
    "rest.url-prefix": refused("use a reverse proxy"),
    "rest.profiling.": _PROFILER,
    "rest.retry.": _CLIENT_RETRIES,
    "rest.server.": _THREADS,
    "sql-gateway.endpoint.rest.address": no_effect("clients use the address they connect to"),
    "sql-gateway.endpoint.rest.bind-port": refused("use sql-gateway.endpoint.rest.port"),
    "web.access-control-allow-origin": refused(
        "pages of other origins cannot read responses: docs/security.md"
    ),
    "web.adaptive-scheduler.rescale-history.size": no_effect("GET /jobs/:jobid/rescaling shows the requests"),
    "web.history": no_effect("use jobstore.max-capacity"),
    "web.log.path": no_effect("use env.log.dir"),
    "web.timeout": no_effect("use rest.async.store-duration"),
    "web.tmpdir": _DIRECTORY,
    "web.upload.dir": no_effect("programs are kept with the session's other files"),
    "security.context.factory.classes": _CLASSES,
    "security.module.factory.classes": _CLASSES,
    "security.delegation.tokens.enabled": refused(
        "use spark.security.credentials.NAME.enabled: false for each service"
    ),
    "security.kerberos.login.contexts": refused(
        "set sasl.jaas.config in the properties of the Kafka table or source"
    ),
    "security.kerberos.login.use-ticket-cache": refused("use spark.kerberos.renewal.credentials: keytab"),
    "security.kerberos.fetch.delegation-token": refused("use spark.security.credentials.NAME.enabled"),
    "security.ssl.": _SSL_INTERNAL_PART,
    "security.ssl.internal.enabled": _SSL_INTERNAL,
    "security.ssl.rest.": _SSL_REST_PART,
    "security.ssl.rest.enabled": _SSL_REST,
    "security.ssl.rest.authentication-enabled": _SSL_REST,
    "historyserver.web.ssl.enabled": _HISTORY,
    "metrics.fetcher.": no_effect("metrics are updated when an epoch completes"),
    "metrics.internal.": no_effect("metrics reach the driver with the results of tasks"),
    "metrics.job.status.enable": refused("times in a status are in GET /jobs/:jobid"),
    "metrics.system-resource": refused("use a node exporter for metrics of the host"),
    "metrics.system-resource-probing-interval": no_effect("it applies only with metrics.system-resource"),
    "traces.": _EVENTS,
    "events.": _EVENTS,
}

#: Key, or prefix that ends in a dot -> what is said about it.
OTHERS: Final[Mapping[str, Answer]] = {**_PROCESSES, **_CODE, **_JOBS, **_TABLES, **_SERVERS}
