"""Every key of Flink's configuration pages is honoured, mapped, without effect, which is said, or refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.config import Configuration
from headrace.config.configuration import DeprecatedKeyWarning
from headrace.config.flink import RULES, AnswerKind, documented_keys, former_keys, is_flinks_default
from headrace.config.flink_docs import FLINK_PAGE, render_flink_keys
from headrace.config.notices import new_notices
from headrace.config.options.execution import TASK_CANCELLATION_INTERVAL
from headrace.config.options.live import LOST_AFTER
from headrace.config.registry import known_options
from headrace.errors import ConfigurationError
from headrace.runtime.job.settings import live_options

#: What an operator would write for a key whose default says nothing.
_EXAMPLES = {
    "Boolean": "true",
    "Integer": "7",
    "Long": "7",
    "Double": "0.7",
    "Float": "0.7",
    "Duration": "7 s",
    "MemorySize": "7 mb",
    "Map": "name:value",
    "List<Map>": "env:NAME,secret:some,key:k",
}


def values_for(kind: str) -> list[str]:
    return [_EXAMPLES.get(kind, "some-text"), "false", "7", "ZSTD", "none"]


def test_the_page_of_flinks_keys_is_not_stale():
    assert FLINK_PAGE.read_text(encoding="utf-8") == render_flink_keys(), "run python -m headrace.config.docs"


def test_every_key_of_flinks_pages_has_an_answer():
    assert len(documented_keys()) > 900
    for each in documented_keys().values():
        known = known_options().look_up(each.example)
        assert known.option is not None or known.answer is not None, each.key


@pytest.mark.parametrize(
    "key",
    [each for each in documented_keys().values() if known_options().look_up(each.example).option is None],
    ids=lambda each: each.key,
)
def test_a_key_without_an_option_is_mapped_pointed_out_or_refused(key):
    answers = set()
    for value in values_for(key.type):
        try:
            config = Configuration({key.example: value})
        except ConfigurationError:
            answers.add("refused")
            continue
        if config.spark_settings() or config.process_variables():
            answers.add("mapped")
        elif config.ignored():
            assert "no effect" in config.explain()
            answers.add("no effect")
    answer = known_options().look_up(key.example).answer
    assert answer is not None
    assert answer.kind.value in answers


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("metrics.reporter.prometheus.allowList", "refused"),
        ("metrics.reporter.prometheus.hostUrl", "honoured"),
        ("metrics.reporter.influxdb.host", "refused"),
        ("metrics.reporter.OpenTelemetry.exporter.compression", "refused"),
        ("metrics.reporter.OpenTelemetry.exporter.endpoint", "honoured"),
        ("metrics.reporter.<name>.interval", "honoured"),
    ],
)
def test_the_page_says_which_options_reporters_have(key, answer):
    [row] = [line for line in render_flink_keys().splitlines() if line.startswith(f"| `{key}` |")]
    assert f"| {answer} |" in row


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("table.exec.legacy-cast-behaviour", "refused"),
        ("table.optimizer.distinct-agg.split.enabled", "honoured"),
        ("table.exec.mini-batch.enabled", "honoured"),
    ],
)
def test_an_option_with_a_single_possible_value_is_not_called_honoured(key, answer):
    [row] = [line for line in render_flink_keys().splitlines() if line.startswith(f"| `{key}` |")]
    assert f"| {answer} |" in row


def test_former_names_of_flinks_keys_stand_for_the_present_ones():
    assert len(former_keys()) > 40
    for former, key in former_keys().items():
        found, present = known_options().look_up(former), known_options().look_up(key)
        assert (found.option, found.answer, found.key) == (present.option, present.answer, present.key), (
            former
        )
        assert found.is_deprecated, former


def test_a_former_name_counts_and_warns():
    with pytest.warns(
        DeprecatedKeyWarning, match=r"'task\.cancellation-interval' .* use 'task\.cancellation\.interval'"
    ):
        config = Configuration({"task.cancellation-interval": "5 s"})
    assert config.get(TASK_CANCELLATION_INTERVAL) == timedelta(seconds=5)
    with pytest.warns(DeprecatedKeyWarning, match="execution.state-recovery.from-local"):
        ignored = Configuration({"state.backend.local-recovery": "true"})
    assert "hosts reuse their copies of state" in ignored.explain()
    with (
        pytest.warns(DeprecatedKeyWarning),
        pytest.raises(ConfigurationError, match=r"high-availability\.zookeeper\.quorum .* not supported"),
    ):
        Configuration({"recovery.zookeeper.quorum": "zk:2181"})


def test_rules_have_texts_that_say_what_to_use():
    for key, answer in RULES:
        assert answer.text, key
        assert not answer.text.endswith("."), key


def test_a_refused_key_may_have_flinks_default():
    assert Configuration({"security.ssl.internal.enabled": "false"}).to_dict()
    with pytest.raises(ConfigurationError, match="not supported: connections between processes are Spark's"):
        Configuration({"security.ssl.internal.enabled": "true"})


def test_flinks_default_is_recognised_however_it_is_written():
    assert is_flinks_default("rest.profiling.duration-max", "300 s")
    assert is_flinks_default("kubernetes.jobmanager.cpu.limit-factor", "1")
    assert not is_flinks_default("rest.profiling.duration-max", "301 s")
    assert not is_flinks_default("rest.profiling.duration-max", "soon")
    assert not is_flinks_default("jmx.server.port", "9000")


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("taskmanager.memory.process-size", "taskmanager.memory.process.size"),
        (
            "taskmanager.network.memory.buffer-debloat.enable",
            "taskmanager.network.memory.buffer-debloat.enabled",
        ),
        ("heartbeat.time-out", "heartbeat.timeout"),
        ("yarn.application.queues", "yarn.application.queue"),
    ],
)
def test_a_misspelt_key_is_refused_with_the_one_that_was_meant(key, meant):
    with pytest.raises(ConfigurationError, match=f"unknown configuration key '{key}'") as refused:
        Configuration({key: "1"})
    assert refused.value.hint == f"did you mean {meant!r}?"


@pytest.mark.parametrize(
    "key",
    [
        "flink.hadoop.fs.s3a.path.style.access",
        "containerized.master.env.TZ",
        "external-resource.gpu.param.discovery-script.args",
        "akka.ask.timeout",
    ],
)
def test_keys_that_flink_does_not_list_by_name_have_answers(key):
    assert known_options().look_up(key).answer is not None


def test_a_setting_of_spark_is_stronger_than_the_key_that_maps_to_it():
    config = Configuration({"yarn.application.queue": "a", "spark.yarn.queue": "b"})
    assert config.spark_settings() == {"spark.yarn.queue": "b"}


def test_options_for_java_are_joined():
    config = Configuration(
        {
            "env.java.opts.all": "-Da=1",
            "env.java.opts.jobmanager": "-Db=2",
            "security.kerberos.krb5-conf.path": "/etc/krb5.conf",
        }
    )
    assert config.spark_settings() == {
        "spark.driver.extraJavaOptions": "-Da=1 -Db=2 -Djava.security.krb5.conf=/etc/krb5.conf",
        "spark.executor.extraJavaOptions": "-Da=1 -Djava.security.krb5.conf=/etc/krb5.conf",
    }


def test_the_heap_cannot_be_set_among_options_for_java():
    with pytest.raises(ConfigurationError, match=r"size of the heap is set with taskmanager\.memory"):
        Configuration({"env.java.opts.all": "-verbose:gc -Xmx4g"})


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("heartbeat.timeout", "1 min", {"spark.network.timeout": "60000ms"}),
        ("yarn.ship-files", "a.txt;b.txt", {"spark.yarn.dist.files": "a.txt,b.txt"}),
        ("yarn.application.priority", "-1", {}),
        ("pekko.framesize", "20971520b", {"spark.rpc.message.maxSize": "20"}),
        ("flink.hadoop.dfs.replication", "1", {"spark.hadoop.dfs.replication": "1"}),
        ("io.tmp.dirs", "/a:/b", {"spark.local.dir": "/a,/b"}),
        ("kubernetes.jobmanager.labels", "a:b", {"spark.kubernetes.driver.label.a": "b"}),
        (
            "kubernetes.env.secretKeyRef",
            "env:PW,secret:db,key:password",
            {
                "spark.kubernetes.driver.secretKeyRef.PW": "db:password",
                "spark.kubernetes.executor.secretKeyRef.PW": "db:password",
            },
        ),
        ("taskmanager.network.compression.codec", "NONE", {"spark.shuffle.compress": "false"}),
        (
            "table.optimizer.skewed-join-optimization.strategy",
            "forced",
            {
                "spark.sql.adaptive.skewJoin.enabled": "true",
                "spark.sql.adaptive.forceOptimizeSkewedJoin": "true",
            },
        ),
    ],
)
def test_values_are_written_as_spark_reads_them(key, value, expected):
    assert Configuration({key: value}).spark_settings() == expected


def test_a_value_that_maps_to_nothing_is_refused():
    with pytest.raises(ConfigurationError, match="Spark compresses with LZ4 or ZSTD"):
        Configuration({"taskmanager.network.compression.codec": "LZO"})


def test_variables_of_the_environment_are_not_settings_of_spark():
    config = Configuration({"env.java.home": "/opt/java", "env.hadoop.conf.dir": "/etc/hadoop"})
    assert config.process_variables() == {"JAVA_HOME": "/opt/java", "HADOOP_CONF_DIR": "/etc/hadoop"}
    assert config.spark_settings() == {}


def test_a_key_without_effect_is_pointed_out_once():
    config = Configuration({"blob.fetch.retries": "9"})
    assert list(new_notices(config)) == ["blob.fetch.retries"]
    assert new_notices(config) == {}


def test_flinks_own_configuration_file_is_accepted():
    shipped = {
        "env.java.opts.all": "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
        "jobmanager.bind-host": "localhost",
        "jobmanager.rpc.port": "6123",
        "jobmanager.memory.process.size": "1600m",
        "jobmanager.execution.failover-strategy": "region",
        "taskmanager.bind-host": "localhost",
        "taskmanager.host": "localhost",
        "taskmanager.numberOfTaskSlots": "1",
        "taskmanager.memory.process.size": "1728m",
        "parallelism.default": "1",
        "rest.address": "localhost",
        "rest.bind-address": "localhost",
    }
    config = Configuration(shipped)
    assert config.to_dict().keys() == shipped.keys()
    assert all(
        RULES.find(key) is None or RULES.find(key)[0].kind is not AnswerKind.REFUSED for key in shipped
    )


def test_the_heartbeat_timeout_is_that_of_executors_and_of_live_subtasks():
    assert live_options(Configuration({})).heartbeat_timeout_s == 50
    assert "spark.network.timeout" not in Configuration({}).spark_settings(), "Spark's own default counts"
    short = Configuration({"heartbeat.timeout": "20 s"})
    assert live_options(short).heartbeat_timeout_s == 20
    assert short.spark_settings()["spark.network.timeout"] == "20000ms"
    own = Configuration({"heartbeat.timeout": "20 s", "headrace.live.heartbeat-timeout": "5 s"})
    assert live_options(own).heartbeat_timeout_s == 5
    with pytest.raises(ConfigurationError, match=r"heartbeat\.timeout: expected at least 100 ms; got '5 ms'"):
        Configuration({"heartbeat.timeout": "5 ms"}).get(LOST_AFTER)


def test_limits_of_cancellation_become_those_of_sparks_task_reaper():
    reaper = "spark.task.reaper."
    assert not [key for key in Configuration({}).spark_settings() if key.startswith(reaper)]
    limited = Configuration({"task.cancellation.timeout": "20 s", "task.cancellation.interval": "5 s"})
    assert limited.spark_settings() == {
        f"{reaper}enabled": "true",
        f"{reaper}pollingInterval": "5000ms",
        f"{reaper}killTimeout": "20000ms",
    }
    endless = Configuration({"task.cancellation.timeout": "0 ms"}).spark_settings()
    assert endless[f"{reaper}killTimeout"] == "-1", "0 waits for ever, as in Flink"
    assert (
        Configuration({"task.cancellation.interval": "1 s"}).spark_settings()[f"{reaper}killTimeout"]
        == "180000ms"
    )
    own = Configuration({"task.cancellation.timeout": "20 s", f"{reaper}killTimeout": "7s"}).spark_settings()
    assert own[f"{reaper}killTimeout"] == "7s", "a setting of Spark's own is stronger"
