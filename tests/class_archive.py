"""An archive of Spark's classes for the tests: with it Java starts Spark without reading them from the jars again.

python -m tests.class_archive FILE

`make test` calls it once. Tests that start Spark in processes of their own, some fifty times, spend a third of that
time in loading classes. Java checks by itself that an archive is of its version and of these jars, and goes without
it if not; so do tests where there is none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARCHIVE = ROOT / "build" / "spark-classes.jsa"

#: Most Sparks of tests live for seconds: the optimizing compiler would take a third of the processor's time, and in as
#: much memory for what is new most of them never look for garbage. The first option keeps headrace from an archive of
#: its own (`spark/class_archive.py`).
_SHORT_LIVED = "-Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms600m -Xmn300m"

_OPTIONS = (
    *("--master", "local[2]", "-D", "rest.port=0"),
    # A machine without a name of its own in the network is enough.
    *("-D", "spark.driver.host=127.0.0.1", "-D", "spark.driver.bindAddress=127.0.0.1"),
)

#: What is loaded here is in the archive.
_PROGRAM = """
from headrace.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
env.from_collection(["a", "b", "a"]).key_by(lambda word: word).map(str.upper).print()
env.execute("load classes")
"""


def java_options(archive: Path = ARCHIVE) -> str:
    """Return the options for Sparks that tests start: they begin soon, rather than run fast for long."""
    if not archive.is_file():
        return _SHORT_LIVED
    # What Java has to say of an archive that does not fit would be in the output that tests look at.
    return f'{_SHORT_LIVED} "-XX:SharedArchiveFile={archive}" -Xlog:cds*=off'


def make(archive: Path) -> None:
    """Start Spark, run a job, and have Java write what it has loaded when it ends."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "job.py")
        program.write_text(_PROGRAM)
        made = Path(folder, "classes")
        environment = {
            **os.environ,
            "XDG_STATE_HOME": folder,
            "SPARK_SUBMIT_OPTS": f"{_SHORT_LIVED} -XX:ArchiveClassesAtExit={made}",
        }
        command = [sys.executable, "-m", "headrace.cli.main", "run", *_OPTIONS, str(program)]
        try:
            # Java ends after the command, and has its output until then: so long does this wait.
            said = subprocess.run(
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
                check=False,
            ).stdout
        except subprocess.TimeoutExpired:
            said = "it takes too long to make one"
        if not made.is_file():
            print(f"tests start Spark without an archive of its classes: {said[-2000:]}", file=sys.stderr)
            return
        # Another run of tests must not see half of it.
        partial = archive.with_suffix(f".{os.getpid()}")
        partial.write_bytes(made.read_bytes())
        partial.replace(archive)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
