"""spark-submit for a program whose driver is to run in the cluster: application mode.

    headrace run-application --master yarn -D ... job.py 1 2
      -> spark-submit --master yarn --deploy-mode cluster --archives application.zip#application ... entry.py
           run application/program/job.py 1 2                    <- what the driver runs in the cluster

Spark gives the driver one archive with the program, its artifacts and its options, unpacked in the working directory.
So no option of the program is a word of the command, which others can see; secrets among Spark's settings are in a file
of properties. Nothing is run here.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from headrace.config.configuration import Configuration
from headrace.config.file import FILE_NAME
from headrace.config.options import execution, python, spark
from headrace.config.references import escaped
from headrace.config.secrets import looks_secret
from headrace.errors import UnsupportedFeatureError
from headrace.runtime.artifacts import ArtifactKind, bundle, find_artifacts
from headrace.spark.masters import ClusterManager

#: Whether spark-submit waits for the end of the application, on YARN and on Kubernetes.
_WAITING = ("spark.yarn.submit.waitAppCompletion", "spark.kubernetes.submission.waitAppCompletion")
#: The directory of the driver in which Spark unpacks what it needs.
FOLDER = "application"


@dataclass(frozen=True)
class Application:
    """A program to submit with spark-submit, and its arguments."""

    configuration: Configuration
    #: `local:` before a path means that the image of the container has it.
    program: str
    arguments: Sequence[str] = ()
    #: "cluster", or "client" for a driver in this process's place.
    deploy_mode: str = "cluster"
    #: Whether spark-submit returns when the cluster has taken the application.
    is_detached: bool = False


@dataclass(frozen=True)
class Submission:
    """How to submit it."""

    command: tuple[str, ...]
    #: The options of the driver, as the text of a configuration file.
    options: str
    #: Settings of Spark that are secret, as the text of a properties file; empty if there are none.
    secret_settings: str = ""
    #: What the archive must hold, by name: bytes, or a file to read them from; without one there is no archive.
    archive: Mapping[str, bytes | Path] = field(default_factory=dict)


def plan_submission(
    application: Application, entry: Path, archive: Path, spark_submit: str, properties: Path
) -> Submission:
    """Return the command that submits an application.

    Args:
        application: What is submitted.
        entry: A Python file that runs the command line of headrace.
        archive: Where the archive is going to be.
        spark_submit: The command.
        properties: Where the file with secret settings is going to be.

    Raises:
        UnsupportedFeatureError: If the cluster cannot run the driver.
        ConfigurationError: If an artifact is missing.
    """
    configuration = application.configuration
    master = configuration.get(spark.MASTER)
    is_cluster = application.deploy_mode == "cluster"
    if is_cluster:
        _check_deploy_mode(master)
    options = configuration.to_dict()
    program = application.program
    content: dict[str, bytes | Path] = {}
    if is_cluster:
        named, artifacts = bundle(configuration)
        content = dict(artifacts)
        options |= {key: _inside(value, artifacts) for key, value in named.items()}
        if program.startswith("local:"):
            program = "/" + program.removeprefix("local:").lstrip("/")
        else:
            content[f"program/{Path(program).name}"] = Path(program)
            program = f"{FOLDER}/program/{Path(program).name}"
    # References were resolved here, where variables and files are. JSON is YAML as well.
    text = json.dumps({key: escaped(value) for key, value in options.items()}, indent=1)
    archives: list[str] = []
    if is_cluster:
        content[FILE_NAME] = text.encode()
        archives = [f"{archive}#{FOLDER}", *_interpreter_archives(configuration)]
    settings = _spark_settings(configuration)
    if application.is_detached:
        for key in _WAITING:
            settings.setdefault(key, "false")
    if not is_cluster:
        # Spark would take the first python3 of the path, which may know nothing of headrace.
        settings.setdefault("spark.pyspark.driver.python", sys.executable)
    secret = {key: settings.pop(key) for key in list(settings) if looks_secret(key)}
    command = [
        spark_submit,
        *("--master", master, "--deploy-mode", application.deploy_mode),
        *("--name", configuration.get(execution.NAME) or Path(program).stem),
        *(word for pair in settings.items() for word in ("--conf", "=".join(pair))),
        # With it, those of Spark's own defaults are read only if asked for.
        *(("--properties-file", str(properties), "--load-spark-defaults") if secret else ()),
        *(("--archives", ",".join(archives)) if archives else ()),
        *(str(entry), "run", program, *application.arguments),
    ]
    return Submission(tuple(command), text, _properties_text(secret), content)


def _properties_text(settings: Mapping[str, str]) -> str:
    """Return settings in the format of Java's properties files."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(text: str) -> str:
    """Write all but letters and digits as Java's code units, so that no sign has a meaning of its own."""
    return re.sub(r"[^A-Za-z0-9.]", _code_units, text)


def _code_units(match: re.Match[str]) -> str:
    data = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{data[at : at + 4]}" for at in range(0, len(data), 4))


def write_archive(content: Mapping[str, bytes | Path], path: Path) -> None:
    """Write the archive that a submission needs."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data.read_bytes() if isinstance(data, Path) else data)


def spark_submit_command() -> str:
    """Return where Spark's own command is: in SPARK_HOME, or in the pyspark that is installed."""
    return str(Path(_find_spark_home()) / "bin" / "spark-submit")


def _check_deploy_mode(master: str) -> None:
    manager = ClusterManager.of(master)
    if manager in (ClusterManager.YARN, ClusterManager.KUBERNETES):
        return
    if manager is ClusterManager.STANDALONE:
        raise UnsupportedFeatureError(
            "a Spark standalone cluster cannot run the driver of a Python program: Spark does not support that",
            feature="run-application on Spark standalone",
            hint=f"run the driver on a machine near the cluster: `headrace run -d --master {master} job.py`, or "
            f"send jobs to a session there: `headrace session --submit --master {master}`",
        )
    raise UnsupportedFeatureError(
        f"the master {master} is not a cluster that could run the driver",
        feature="run-application on a local master",
        hint="use `headrace run`, or choose a cluster with --master yarn or --master k8s://...",
    )


def _spark_settings(configuration: Configuration) -> dict[str, str]:
    settings = dict(sorted(configuration.spark_settings().items()))
    executable = configuration.get(python.EXECUTABLE)
    if executable is not None:
        settings.setdefault("spark.pyspark.python", executable)
    return settings


def _interpreter_archives(configuration: Configuration) -> list[str]:
    """Return the archive that the interpreter is in: the driver needs it before anything of ours runs."""
    executable = configuration.get(python.EXECUTABLE) or ""
    return [
        f"{each.path}#{each.name}"
        for each in find_artifacts(configuration)
        if each.kind is ArtifactKind.ARCHIVE and executable.startswith(f"{each.name}/")
    ]


def _inside(value: str, names: Mapping[str, bytes]) -> str:
    """Put the directory before the names of bundled files in the value of an option."""
    for name in names:
        value = value.replace(name, f"{FOLDER}/{name}")
    return value
