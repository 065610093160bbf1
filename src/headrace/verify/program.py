"""Runs a program up to the job that it would submit, as the command line does, for tests that were kept."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn
from unittest import mock

from headrace import pyflink_alias
from headrace.config.configuration import Configuration
from headrace.config.options.execution import PARALLELISM
from headrace.config.options.python import PYFLINK_ALIAS
from headrace.datastream.execution_context import ExecutionContext
from headrace.graph.job_graph import JobGraph

#: Operators that the program gives no parallelism get this one, which tells them from those it gives one.
PLANNED_PARALLELISM = 2


def with_job(
    program: str,
    use: Callable[[JobGraph, Configuration], None],
    arguments: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    alias: bool | None = None,
) -> None:
    """Run a program up to its first `execute()`, and call a function with the job it would submit.

    Args:
        program: Its path.
        use: Called with the job and its options.
        arguments: Those of the program.
        options: Those of the command line, by their keys.
        alias: Whether `import pyflink` imports headrace's modules; None for what the options say.
    """

    def stop(_: object, job: JobGraph, configuration: Configuration) -> NoReturn:
        use(job, configuration)
        raise _Done

    values = {PARALLELISM.key: PLANNED_PARALLELISM, **(options or {})}
    configuration = Configuration.load(command_line=values)
    context = ExecutionContext(configuration, on_submission=stop)
    with (
        pyflink_alias.installed(configuration.get(PYFLINK_ALIAS) if alias is None else alias),
        context.entered(in_all_threads=True),
        mock.patch.object(sys, "argv", [program, *arguments]),
        mock.patch.object(sys, "path", [str(Path(program).parent), *sys.path]),
        suppress(_Done),
    ):
        if program.endswith(".sql"):
            from headrace.table.script import run_script  # few programs are SQL, and its modules take long

            run_script(program)
        else:
            runpy.run_path(program, run_name="__main__")


class _Done(BaseException):
    """The program has served its purpose."""
