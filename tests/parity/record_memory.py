"""Records how Flink's start script divides memory, in tests/unit/config/flink_memory.json.

python -m tests.parity.record_memory --flink build/flink-env/bin/python
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parents[1] / "unit" / "config" / "flink_memory.json"

#: Keys without their prefix, jobmanager.memory or taskmanager.memory.
DRIVER_CASES: list[dict[str, str]] = [
    {"process.size": "1600m"},
    {"process.size": "4g"},
    {"process.size": "20g"},
    {"process.size": "500m"},
    {"process.size": "448m"},
    {"flink.size": "1g"},
    {"flink.size": "128m"},
    {"flink.size": "12g"},
    {"heap.size": "1g"},
    {"heap.size": "1g", "off-heap.size": "512m"},
    {"heap.size": "1g", "flink.size": "1152m"},
    {"heap.size": "1g", "flink.size": "2g"},
    {"heap.size": "1g", "process.size": "1600m"},
    {"heap.size": "1g", "process.size": "3g"},
    {"flink.size": "1g", "process.size": "1500m"},
    {"flink.size": "1g", "process.size": "1300m"},
    {"process.size": "2g", "jvm-metaspace.size": "100m", "jvm-overhead.fraction": "0.3"},
    {"process.size": "2g", "jvm-overhead.min": "300m"},
    {"process.size": "2g", "jvm-overhead.max": "193m"},
]
EXECUTOR_CASES: list[dict[str, str]] = [
    {"process.size": "1728m"},
    {"process.size": "4g"},
    {"process.size": "32g"},
    {"process.size": "700m"},
    {"process.size": "600m"},
    {"flink.size": "1280m"},
    {"flink.size": "300m"},
    {"flink.size": "16g"},
    {"flink.size": "2g", "process.size": "3g"},
    {"flink.size": "2g", "process.size": "4g"},
    {"task.heap.size": "1g", "managed.size": "1g"},
    {"task.heap.size": "1g", "managed.size": "0"},
    {"task.heap.size": "100m", "managed.size": "100m", "network.max": "70m"},
    {"task.heap.size": "1g", "managed.size": "1g", "process.size": "4g"},
    {"task.heap.size": "1g", "managed.size": "1g", "process.size": "3200m"},
    {"task.heap.size": "1g", "managed.size": "1g", "flink.size": "2560m"},
    {"task.heap.size": "1g", "managed.size": "1g", "flink.size": "2300m"},
    {"task.heap.size": "1g", "process.size": "4g"},
    {"task.heap.size": "1g", "flink.size": "2g"},
    {"task.heap.size": "2g", "process.size": "3g"},
    {"managed.size": "1g", "process.size": "4g"},
    {"managed.size": "4g", "process.size": "4g"},
    {"managed.fraction": "0", "process.size": "4g"},
    {"managed.fraction": "0.7", "process.size": "4g"},
    {"process.size": "4g", "task.off-heap.size": "1g"},
    {"process.size": "4g", "network.fraction": "0.3", "network.max": "512m"},
    {"process.size": "4g", "network.min": "600m"},
    {"process.size": "4g", "framework.heap.size": "256m", "framework.off-heap.size": "64m"},
    {"process.size": "4g", "jvm-metaspace.size": "512m", "jvm-overhead.fraction": "0.2"},
    {"process.size": "40g", "jvm-overhead.max": "3g"},
]
_LINE = re.compile(r"-\s+(?P<name>[A-Z][\w -]*):\s.*?\(?(?P<bytes>\d+) bytes\)?")


def record(java: list[str], command: str, prefix: str, case: dict[str, str]) -> dict[str, Any]:
    """Return what Flink makes of a case: sizes by name, or that it refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"{prefix}{key}: {value}" for key, value in case.items()]
        Path(folder, "config.yaml").write_text("\n".join([*lines, "taskmanager.numberOfTaskSlots: 1"]))
        done = subprocess.run(
            [*java, command, "--configDir", folder], check=False, capture_output=True, text=True
        )
    text = done.stdout + done.stderr
    if "Final " not in text:
        return {"options": case, "refused": True}
    found = _LINE.findall(text.split("Final ")[1])
    # The two parts named Framework and Task stand once for the heap, once outside of it.
    names: dict[str, int] = {}
    for name, size in found:
        names[name if name not in names else f"{name} off-heap"] = int(size)
    return {"options": case, "sizes": names}


def main() -> None:
    """Write the recording."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flink", required=True)
    interpreter = parser.parse_args().flink
    done = subprocess.run(
        [interpreter, "-c", "import pyflink; print(pyflink.__path__[0])"],
        check=True,
        capture_output=True,
        text=True,
    )
    home = done.stdout.strip()
    java = ["java", "-cp", f"{home}/bin/bash-java-utils.jar:{home}/lib/*"]
    java.append("org.apache.flink.runtime.util.bash.BashJavaUtils")
    recorded = {
        "driver": [
            record(java, "GET_JM_RESOURCE_PARAMS", "jobmanager.memory.", case) for case in DRIVER_CASES
        ],
        "executor": [
            record(java, "GET_TM_RESOURCE_PARAMS", "taskmanager.memory.", case) for case in EXECUTOR_CASES
        ],
    }
    RECORDED.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
