"""Record what Flink's SQL client shows of Flink's own gateway, and what that answers to requests.

FLINK_HOME=.../site-packages/pyflink python -m tests.e2e.record_screens [keys] [protocol]

It writes flink_screens.json (statements and keys) and flink_protocol.json; with arguments, only what they name.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.e2e import flink_client
from tests.e2e.gateway_protocol import PROTOCOL, Conversation, http
from tests.e2e.test_control_plane import flink_jars

_REST, _GATEWAY, _RPC = 18081, 18083, 16123
_CONFIGURATION = f"""\
jobmanager: {{rpc: {{address: localhost, port: {_RPC}}}, bind-host: localhost}}
taskmanager: {{host: localhost, bind-host: localhost, numberOfTaskSlots: 8}}
rest: {{address: localhost, port: {_REST}}}
parallelism: {{default: 1}}
execution: {{target: remote}}
"""
_MEMORY = {
    "taskmanager.cpu.cores": "8.0",
    "taskmanager.memory.task.heap.size": "256mb",
    "taskmanager.memory.framework.heap.size": "128mb",
    "taskmanager.memory.framework.off-heap.size": "128mb",
    "taskmanager.memory.task.off-heap.size": "0b",
    "taskmanager.memory.network.min": "128mb",
    "taskmanager.memory.network.max": "128mb",
    "taskmanager.memory.managed.size": "256mb",
    "taskmanager.memory.jvm-metaspace.size": "256mb",
    "taskmanager.memory.jvm-overhead.min": "192mb",
    "taskmanager.memory.jvm-overhead.max": "192mb",
}
_OPENED = ("lang", "net", "io", "nio", "lang.reflect", "text", "time", "util", "util.concurrent")


@contextmanager
def flink_gateway(jars: Path, folder: Path) -> Iterator[str]:
    """Run a cluster of Flink with its SQL gateway."""
    (folder / "config.yaml").write_text(_CONFIGURATION)
    (folder / "log4j.properties").write_text("rootLogger.level = OFF\n")
    home = flink_jars()
    assert home is not None
    extra = [*home.parent.glob("opt/flink-sql-client-*.jar"), *jars.glob("flink-sql-gateway*")]
    path = ":".join(map(str, [*sorted(home.glob("*.jar")), *extra]))
    opened = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED]
    java = ["java", "-Xmx600m", "-XX:MaxDirectMemorySize=500m", *opened]
    java += [f"-Dlog4j.configurationFile={folder / 'log4j.properties'}", "-cp", path]
    runtime = "org.apache.flink.runtime"
    address = "-Dsql-gateway.endpoint.rest"
    mains = (
        [f"{runtime}.entrypoint.StandaloneSessionClusterEntrypoint", "-c", str(folder)],
        [f"{runtime}.taskexecutor.TaskManagerRunner", "-c", str(folder), *_settings(_MEMORY)],
        [
            "org.apache.flink.table.gateway.SqlGateway",
            f"{address}.address=localhost",
            f"{address}.port={_GATEWAY}",
            f"{address}.bind-port={_GATEWAY}",
        ],
    )
    with ExitStack() as stack:
        for main in mains:
            stack.enter_context(_process(["env", f"FLINK_CONF_DIR={folder}", *java, *main]))
        _wait_for(f"http://localhost:{_REST}/v1/overview", '"slots-available":8')
        _wait_for(f"http://localhost:{_GATEWAY}/v1/info", "Apache Flink")
        yield f"localhost:{_GATEWAY}"


def _settings(values: dict[str, str]) -> list[str]:
    return [word for key, value in values.items() for word in ("-D", f"{key}={value}")]


@contextmanager
def _process(command: Sequence[str]) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(url: str, wanted: str) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
            if wanted in answer.read().decode():
                return
        time.sleep(0.5)
    raise TimeoutError(f"{url} does not answer with {wanted}")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch, name) for name in ("jars", "cluster", "client")]
        for folder in folders:
            folder.mkdir()
        jars, cluster, client = folders
        flink_client.fetch_jars(jars, flink_client.GATEWAY_JARS)
        with flink_gateway(jars, cluster) as endpoint:
            command = flink_client.client_command(jars, endpoint, client)
            wanted = set(sys.argv[1:]) or {"statements", "keys", "protocol"}
            if "protocol" in wanted:
                answers = Conversation(http(endpoint), runs_jobs=True).hold()
                PROTOCOL.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n", "utf-8")
            if "statements" in wanted:
                asked = flink_client.statements()
                shown = flink_client.screens_of_statements(command, asked, 800)
                screens = [
                    {"statement": statement, "screen": screen.splitlines()}
                    for statement, screen in zip(asked, shown, strict=True)
                ]
                _update(statements=screens)
            if "keys" in wanted:
                keys = flink_client.screens_of_keys(command, client)
                _update(keys={name: screen.splitlines() for name, screen in keys.items()})


def _update(**recorded: object) -> None:
    path = flink_client.SCREENS
    before = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**before, **recorded}, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
