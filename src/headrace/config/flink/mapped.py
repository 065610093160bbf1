"""Keys of Flink's that become settings of Spark, or variables of the environment of Spark's processes.

A setting of Spark's that is given, such as `spark.yarn.queue`, is stronger than the key of Flink's that maps to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from headrace.config.flink.answers import Answer, Settings, mapped
from headrace.config.memory_size import MemorySize
from headrace.config.parsing import parse_duration, parse_list, parse_map

__all__ = ["MAPPED"]


# --- how values are written for Spark -----------------------------------------------------------------------


def _text(value: str) -> str:
    return value


def _comma_list(value: str) -> str:
    return ",".join(parse_list(value))


def _milliseconds(value: str) -> str:
    return f"{parse_duration(value) // timedelta(milliseconds=1)}ms"


def _seconds(value: str) -> str:
    return f"{int(value)}s"


def _bytes(value: str) -> str:
    return f"{MemorySize.parse(value).get_bytes()}b"


def _mebibytes(value: str) -> str:
    return str(max(1, MemorySize.parse(value).get_bytes() >> 20))


def _positive(value: str) -> str:
    return str(int(value)) if int(value) > 0 else ""


def _truth(value: str) -> str:
    if value.strip().lower() not in ("true", "false"):
        raise ValueError(f"not true or false: {value!r}")
    return value.strip().lower()


def _number(value: str) -> str:
    return str(float(value))


# --- rules ------------------------------------------------------------------------------------------------------


def _to(*keys: str, write: Callable[[str], str] = _text) -> Answer:
    """Write the value under other keys; an empty text sets nothing."""

    def settings(value: str, _rest: str) -> Mapping[str, str]:
        text = write(value)
        return dict.fromkeys(keys, text) if text else {}

    return mapped(", ".join(f"`{key}`" for key in keys), settings)


def _entries(*prefixes: str, suffix: str = "") -> Answer:
    """Write each entry of a map under a key of its own."""

    def settings(value: str, _rest: str) -> Mapping[str, str]:
        entries = parse_map(value)
        return {f"{prefix}{name}{suffix}": text for prefix in prefixes for name, text in entries.items()}

    return mapped(", ".join(f"`{prefix}NAME{suffix}`" for prefix in prefixes), settings)


def _renamed(*prefixes: str) -> Answer:
    """Keep what follows the prefix of the key, under another prefix."""

    def settings(value: str, rest: str) -> Mapping[str, str]:
        return {f"{prefix}{rest}": value for prefix in prefixes}

    return mapped(", ".join(f"`{prefix}NAME`" for prefix in prefixes), settings)


def _of(text: str, settings: Callable[[str], Mapping[str, str]]) -> Answer:
    def ignoring_rest(value: str, _rest: str) -> Mapping[str, str]:
        return settings(value)

    checked: Settings = ignoring_rest
    return mapped(text, checked)


def _java_options(*keys: str) -> Answer:
    def settings(value: str) -> Mapping[str, str]:
        if re.search(r"(^|\s)-Xm[xs]", value):
            raise ValueError("the size of the heap is set with taskmanager.memory.* and jobmanager.memory.*")
        return dict.fromkeys(keys, value) if value.strip() else {}

    return _of(", ".join(f"`{key}`" for key in keys), settings)


def _codec(value: str) -> Mapping[str, str]:
    name = value.strip().upper()
    if name == "NONE":
        return {"spark.shuffle.compress": "false"}
    if name not in ("LZ4", "ZSTD"):
        raise ValueError("Spark compresses with LZ4 or ZSTD")
    return {"spark.shuffle.compress": "true", "spark.io.compression.codec": name.lower()}


def _secret_variables(value: str) -> Mapping[str, str]:
    settings = {}
    for each in value.split(";"):
        parts = dict(part.split(":", 1) for part in each.split(",") if ":" in part)
        if set(parts) != {"env", "secret", "key"}:
            raise ValueError(f"expected env:NAME,secret:SECRET,key:KEY; got {each!r}")
        for role in ("driver", "executor"):
            settings[f"spark.kubernetes.{role}.secretKeyRef.{parts['env']}"] = (
                f"{parts['secret']}:{parts['key']}"
            )
    return settings


def _volume_claims(value: str) -> Mapping[str, str]:
    settings = {}
    for claim, path in parse_map(value).items():
        for role in ("driver", "executor"):
            volume = f"spark.kubernetes.{role}.volumes.persistentVolumeClaim.{claim}"
            settings[f"{volume}.mount.path"] = path
            settings[f"{volume}.options.claimName"] = claim
    return settings


def _skew(value: str) -> Mapping[str, str]:
    strategy = value.strip().lower()
    if strategy not in ("auto", "forced", "none"):
        raise ValueError("one of auto, forced, none")
    return {
        "spark.sql.adaptive.skewJoin.enabled": str(strategy != "none").lower(),
        "spark.sql.adaptive.forceOptimizeSkewedJoin": str(strategy == "forced").lower(),
    }


def _adaptive_broadcast(value: str) -> Mapping[str, str]:
    strategy = value.strip().lower()
    if strategy not in ("auto", "runtime_only", "none"):
        raise ValueError("one of auto, runtime_only, none")
    return {"spark.sql.adaptive.autoBroadcastJoinThreshold": "-1"} if strategy == "none" else {}


_DRIVER, _EXECUTOR = "spark.kubernetes.driver.", "spark.kubernetes.executor."
_AQE: Final = "spark.sql.adaptive."
_BLOOM: Final = "spark.sql.optimizer.runtime.bloomFilter."
_DRIVER_JAVA, _EXECUTOR_JAVA = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"

_YARN: Final = {
    "yarn.application.queue": _to("spark.yarn.queue"),
    "yarn.application.name": _to("spark.app.name"),
    "yarn.application.priority": _to("spark.yarn.priority", write=_positive),
    "yarn.application.node-label": _to("spark.yarn.am.nodeLabelExpression"),
    "yarn.taskmanager.node-label": _to("spark.yarn.executor.nodeLabelExpression"),
    "yarn.application-attempts": _to("spark.yarn.maxAppAttempts", write=_positive),
    "yarn.application-attempt-failures-validity-interval": _to(
        "spark.yarn.am.attemptFailuresValidityInterval", write=_milliseconds
    ),
    "yarn.appmaster.vcores": _to("spark.driver.cores", "spark.yarn.am.cores", write=_positive),
    "yarn.containers.vcores": _to("spark.executor.cores", write=_positive),
    "yarn.tags": _to("spark.yarn.tags"),
    "yarn.staging-directory": _to("spark.yarn.stagingDir"),
    "yarn.file-replication": _to("spark.yarn.submit.file.replication", write=_positive),
    "yarn.ship-files": _to("spark.yarn.dist.files", write=_comma_list),
    "yarn.ship-archives": _to("spark.yarn.dist.archives", write=_comma_list),
    "yarn.view.acls": _of(
        "`spark.ui.view.acls`, `spark.acls.enable`",
        lambda value: {"spark.ui.view.acls": value, "spark.acls.enable": "true"},
    ),
    "yarn.modify.acls": _of(
        "`spark.modify.acls`, `spark.acls.enable`",
        lambda value: {"spark.modify.acls": value, "spark.acls.enable": "true"},
    ),
    "yarn.rolled-logs.include-pattern": _to("spark.yarn.rolledLog.includePattern"),
    "yarn.rolled-logs.exclude-pattern": _to("spark.yarn.rolledLog.excludePattern"),
    "yarn.heartbeat.interval": _to("spark.yarn.scheduler.heartbeat.interval-ms", write=_seconds),
    "yarn.heartbeat.container-request-interval": _to(
        "spark.yarn.scheduler.initial-allocation.interval", write=_milliseconds
    ),
    "flink.yarn.": _renamed("spark.hadoop."),
    "flink.hadoop.": _renamed("spark.hadoop."),
    "containerized.master.env.": _renamed("spark.yarn.appMasterEnv.", "spark.kubernetes.driverEnv."),
    "containerized.taskmanager.env.": _renamed("spark.executorEnv."),
}
_KUBERNETES: Final = {
    "kubernetes.namespace": _to("spark.kubernetes.namespace"),
    "kubernetes.context": _to("spark.kubernetes.context"),
    "kubernetes.config.file": _to("KUBECONFIG"),
    "kubernetes.cluster-id": _to("spark.kubernetes.executor.podNamePrefix"),
    "kubernetes.container.image.ref": _to("spark.kubernetes.container.image"),
    "kubernetes.container.image": _to("spark.kubernetes.container.image"),
    "kubernetes.container.image.pull-policy": _to("spark.kubernetes.container.image.pullPolicy"),
    "kubernetes.container.image.pull-secrets": _to(
        "spark.kubernetes.container.image.pullSecrets", write=_comma_list
    ),
    "kubernetes.service-account": _to(
        "spark.kubernetes.authenticate.driver.serviceAccountName",
        "spark.kubernetes.authenticate.executor.serviceAccountName",
    ),
    "kubernetes.jobmanager.service-account": _to("spark.kubernetes.authenticate.driver.serviceAccountName"),
    "kubernetes.taskmanager.service-account": _to(
        "spark.kubernetes.authenticate.executor.serviceAccountName"
    ),
    "kubernetes.jobmanager.cpu.amount": _to(f"{_DRIVER}request.cores", write=_number),
    "kubernetes.taskmanager.cpu.amount": _of(
        f"`{_EXECUTOR}request.cores`",
        lambda value: {f"{_EXECUTOR}request.cores": _number(value)} if float(value) > 0 else {},
    ),
    "kubernetes.jobmanager.labels": _entries(f"{_DRIVER}label."),
    "kubernetes.taskmanager.labels": _entries(f"{_EXECUTOR}label."),
    "kubernetes.jobmanager.annotations": _entries(f"{_DRIVER}annotation."),
    "kubernetes.taskmanager.annotations": _entries(f"{_EXECUTOR}annotation."),
    "kubernetes.jobmanager.node-selector": _entries(f"{_DRIVER}node.selector."),
    "kubernetes.taskmanager.node-selector": _entries(f"{_EXECUTOR}node.selector."),
    "kubernetes.internal-service.labels": _entries("spark.kubernetes.driver.service.label."),
    "kubernetes.internal-service.annotations": _entries("spark.kubernetes.driver.service.annotation."),
    "kubernetes.secrets": _entries(f"{_DRIVER}secrets.", f"{_EXECUTOR}secrets."),
    "kubernetes.env.secretKeyRef": _of(
        f"`{_DRIVER}secretKeyRef.NAME`, `{_EXECUTOR}secretKeyRef.NAME`", _secret_variables
    ),
    "kubernetes.persistent-volume-claims": _of(
        f"`{_DRIVER}volumes.persistentVolumeClaim.NAME.*`, and the same of executors", _volume_claims
    ),
    "kubernetes.pod-template-file.default": _to(f"{_DRIVER}podTemplateFile", f"{_EXECUTOR}podTemplateFile"),
    "kubernetes.pod-template-file.jobmanager": _to(f"{_DRIVER}podTemplateFile"),
    "kubernetes.pod-template-file.taskmanager": _to(f"{_EXECUTOR}podTemplateFile"),
    "kubernetes.hadoop.conf.config-map.name": _to("spark.kubernetes.hadoop.configMapName"),
}
_SECURITY: Final = {
    "security.kerberos.login.keytab": _to("spark.kerberos.keytab"),
    "security.kerberos.login.principal": _to("spark.kerberos.principal"),
    "security.kerberos.access.hadoopFileSystems": _to(
        "spark.kerberos.access.hadoopFileSystems", write=_comma_list
    ),
    "security.kerberos.relogin.period": _to("spark.kerberos.relogin.period", write=_milliseconds),
    "security.kerberos.krb5-conf.path": _of(
        f"`{_DRIVER_JAVA}`, `{_EXECUTOR_JAVA}`: `-Djava.security.krb5.conf`",
        lambda value: dict.fromkeys((_DRIVER_JAVA, _EXECUTOR_JAVA), f"-Djava.security.krb5.conf={value}"),
    ),
    "security.delegation.tokens.renewal.retry.backoff": _to(
        "spark.security.credentials.retryWait", write=_milliseconds
    ),
    "security.delegation.tokens.renewal.time-ratio": _to(
        "spark.security.credentials.renewalRatio", write=_number
    ),
    "security.delegation.token.provider.": mapped(
        "`spark.security.credentials.NAME.enabled`",
        lambda value, rest: {f"spark.security.credentials.{rest}": value},
    ),
}
_PROCESSES: Final = {
    "env.java.home": _to("JAVA_HOME"),
    "env.hadoop.conf.dir": _to("HADOOP_CONF_DIR"),
    "env.yarn.conf.dir": _to("YARN_CONF_DIR"),
    "env.java.opts": _java_options(_DRIVER_JAVA, _EXECUTOR_JAVA),
    "env.java.opts.all": _java_options(_DRIVER_JAVA, _EXECUTOR_JAVA),
    "env.java.opts.jobmanager": _java_options(_DRIVER_JAVA),
    "env.java.opts.client": _java_options(_DRIVER_JAVA),
    "env.java.opts.sql-gateway": _java_options(_DRIVER_JAVA),
    "env.java.opts.taskmanager": _java_options(_EXECUTOR_JAVA),
    "io.tmp.dirs": _of(
        "`spark.local.dir`", lambda value: {"spark.local.dir": ",".join(re.split(r"[,|:;]", value))}
    ),
    "taskmanager.data.port": _to("spark.blockManager.port", write=_positive),
    "heartbeat.interval": _to("spark.executor.heartbeatInterval", write=_milliseconds),
    "pekko.ask.timeout": _to("spark.rpc.askTimeout", write=_milliseconds),
    "pekko.lookup.timeout": _to("spark.rpc.lookupTimeout", write=_milliseconds),
    "pekko.framesize": _to("spark.rpc.message.maxSize", write=_mebibytes),
    "resourcemanager.taskmanager-timeout": _to(
        "spark.dynamicAllocation.executorIdleTimeout", write=_milliseconds
    ),
    "taskmanager.network.compression.codec": _of(
        "`spark.shuffle.compress`, `spark.io.compression.codec`", _codec
    ),
    "taskmanager.network.retries": _to("spark.shuffle.io.maxRetries", write=_positive),
    "taskmanager.network.netty.client.connectTimeoutSec": _to(
        "spark.shuffle.io.connectionCreationTimeout", write=_seconds
    ),
}
_TABLES: Final = {
    "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task": _to(
        f"{_AQE}advisoryPartitionSizeInBytes", write=_bytes
    ),
    "execution.batch.adaptive.auto-parallelism.enabled": _to(
        f"{_AQE}coalescePartitions.enabled", write=_truth
    ),
    "execution.batch.adaptive.auto-parallelism.max-parallelism": _to(
        f"{_AQE}coalescePartitions.initialPartitionNum", write=_positive
    ),
    "table.optimizer.skewed-join-optimization.strategy": _of(
        f"`{_AQE}skewJoin.enabled`, `{_AQE}forceOptimizeSkewedJoin`", _skew
    ),
    "table.optimizer.skewed-join-optimization.skewed-factor": _to(
        f"{_AQE}skewJoin.skewedPartitionFactor", write=_number
    ),
    "table.optimizer.skewed-join-optimization.skewed-threshold": _to(
        f"{_AQE}skewJoin.skewedPartitionThresholdInBytes", write=_bytes
    ),
    "table.optimizer.adaptive-broadcast-join.strategy": _of(
        f"`{_AQE}autoBroadcastJoinThreshold`", _adaptive_broadcast
    ),
    "table.optimizer.join.broadcast-threshold": _to("spark.sql.autoBroadcastJoinThreshold"),
    "table.optimizer.bushy-join-reorder-threshold": _to("spark.sql.cbo.joinReorder.dp.threshold"),
    "table.optimizer.dynamic-filtering.enabled": _to(
        "spark.sql.optimizer.dynamicPartitionPruning.enabled", write=_truth
    ),
    "table.optimizer.runtime-filter.enabled": _to(f"{_BLOOM}enabled", write=_truth),
    "table.optimizer.runtime-filter.max-build-data-size": _to(f"{_BLOOM}creationSideThreshold", write=_bytes),
    "table.optimizer.runtime-filter.min-probe-data-size": _to(
        f"{_BLOOM}applicationSideScanSizeThreshold", write=_bytes
    ),
    "table.exec.spill-compression.enabled": _to("spark.shuffle.spill.compress", write=_truth),
    "table.exec.spill-compression.block-size": _to("spark.io.compression.lz4.blockSize", write=_bytes),
}

#: Key, or prefix that ends in a dot -> what it becomes.
MAPPED: Final[Mapping[str, Answer]] = {**_YARN, **_KUBERNETES, **_SECURITY, **_PROCESSES, **_TABLES}
