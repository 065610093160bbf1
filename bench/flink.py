"""The real Flink that benchmarks compare with: PyFlink's environment, and the jars that Flink comes without.

PyFlink wants other versions of what Spark wants, so it has an environment of its own: the one of `FLINK_PYTHON`, or
`build/flink-env`, which `make` creates on first use.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: The version whose names headrace follows.
VERSION = "2.3.0"
PARQUET_JAR = f"flink-sql-parquet-{VERSION}.jar"


def flink_python() -> Path:
    """Return the interpreter that has PyFlink; its environment is created if it is missing."""
    default = ROOT / "build" / "flink-env" / "bin" / "python"
    # Links are not followed: Flink starts its Python workers with the `python` beside this one.
    named = Path(os.path.abspath(os.environ.get("FLINK_PYTHON", default)))
    if not named.exists():
        relative = os.path.relpath(named, ROOT)
        print(f"creating PyFlink's environment, {relative}, once", file=sys.stderr)
        subprocess.run(["make", relative], cwd=ROOT, check=True, stdout=sys.stderr)
    return named


def parquet_jars(named: Path | None = None) -> list[Path]:
    """Return the jars that Flink reads Parquet with: its own, which is downloaded once, and Spark's of Hadoop."""
    jar = named or ROOT / "build" / PARQUET_JAR
    if named is None and not jar.exists():
        _download(jar)
    return [each.absolute() for each in (jar, *_jars_of_spark("hadoop-client-*.jar"))]


def as_urls(jars: list[Path]) -> str:
    """Return jars the way `pipeline.jars` takes them."""
    return ";".join(f"file://{jar}" for jar in jars)


def _jars_of_spark(pattern: str) -> list[Path]:
    import pyspark

    return sorted((Path(pyspark.__file__).parent / "jars").glob(pattern))


def _download(jar: Path) -> None:
    """Have Ivy, which Spark fetches its packages with, download a jar from where it looks by default."""
    print(f"downloading {jar.name}, once", file=sys.stderr)
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    command = [java, "-cp", ":".join(map(str, _jars_of_spark("ivy-*.jar"))), "org.apache.ivy.Main"]
    command += ["-cache", str(jar.parent / "ivy"), "-notransitive", "-types", "jar"]
    command += ["-dependency", "org.apache.flink", jar.name.removesuffix(f"-{VERSION}.jar"), VERSION]
    command += ["-retrieve", f"{jar.parent}/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not jar.exists():
        raise SystemExit(
            f"cannot download {jar.name}:\n{done.stdout[-2000:]}{done.stderr[-1000:]}\n"
            f"download it yourself and put it at {jar}, or name it with --parquet-jar"
        )
