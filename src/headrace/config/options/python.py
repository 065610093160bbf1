"""Python: the code and packages that travel with a job."""

from __future__ import annotations

from headrace.config.option import option

FILES = (
    option("python.files", list[str])
    .default([])
    .describe("Python files, packages and zip files that functions import; put on the path of every worker.")
)
REQUIREMENTS = (
    option("python.requirements", str)
    .no_default()
    .describe(
        "A requirements file whose packages the workers need; `#` may be followed by a directory with them."
    )
)
ARCHIVES = (
    option("python.archives", list[str])
    .default([])
    .describe(
        "Archives unpacked in the working directory of every worker; `#` may be followed by a directory name."
    )
)
EXECUTABLE = (
    option("python.executable", str)
    .no_default("the interpreter that runs the program")
    .describe("The Python interpreter of the workers.")
)
PYFLINK_ALIAS = (
    option("headrace.pyflink-alias.enabled", bool)
    .default(True)
    .describe(
        "Whether `import pyflink` in a program started with `headrace run` answers with headrace's modules, so "
        "that programs written for PyFlink run unchanged."
    )
)
