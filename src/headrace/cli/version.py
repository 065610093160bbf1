"""`headrace version`: headrace and what it runs on, for reports of problems."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import click

from headrace import __version__
from headrace.cli.options import json_option
from headrace.cli.text import print_json

__all__ = ["java_version", "show_version", "version"]


@click.command(short_help="Show the versions of headrace and what it runs on.")
@json_option
def version(as_json: bool) -> None:
    """Show the versions of headrace, Python, PySpark and Java."""
    if as_json:
        print_json(_versions())
    else:
        click.echo(_lines())


def show_version(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(_lines())
        context.exit()


def _lines() -> str:
    return "\n".join(f"{name:<9}{number}" for name, number in _versions().items())


def _versions() -> dict[str, str]:
    try:
        pyspark = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        pyspark = "not installed"
    return {
        "headrace": __version__,
        "python": platform.python_version(),
        "pyspark": pyspark,
        "java": java_version(),
    }


def java_version() -> str:
    """Ask the Java that Spark would start for its version."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return "not found: set JAVA_HOME, or put java on the PATH"
    try:
        answer = subprocess.run(  # noqa: S603  # the same program Spark starts
            [java, "-version"], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"not usable: {error}"
    number = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return number[1] if number else "unknown"
