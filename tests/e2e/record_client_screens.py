"""Record what Flink's SQL client shows with Flink's own gateway behind it, in `flink_client_screens.json`.

    python -m tests.e2e.record_client_screens HOST:PORT JARS

HOST:PORT is a gateway of Flink 2.3 over a session cluster, and JARS a folder with flink-sql-gateway-2.3.0.jar and
flink-sql-gateway-api-2.3.0.jar. FLINK_HOME names the folder above Flink's `lib` and `opt`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.e2e.client_steps import STEPS, client_command, screens
from tests.e2e.test_control_plane import flink_jars

RECORDED = Path(__file__).with_name("flink_client_screens.json")


def main(endpoint: str, jars: str, target: str = str(RECORDED)) -> None:
    """Type every statement and keep the screens."""
    home = flink_jars()
    assert home is not None, "set FLINK_HOME"
    with tempfile.TemporaryDirectory() as folder:
        seen = screens(client_command(home, Path(jars), Path(folder), endpoint), Path(folder))
    kept = [
        {"sql": step.sql, "screen": screen.splitlines()} for step, screen in zip(STEPS, seen, strict=True)
    ]
    Path(target).write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
