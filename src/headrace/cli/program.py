"""A user's program: named on the command line, compiled, and run as `python program.py` would run it."""

from __future__ import annotations

import builtins
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from headrace import pyflink_alias
from headrace.cli.errors import ExitCode
from headrace.errors import ConfigurationError

if TYPE_CHECKING:
    from headrace.config import Configuration

__all__ = ["Program", "ProgramError", "load_program", "program_options", "pyflink_names"]

#: The program that a file of SQL is.
_SCRIPT = "from headrace.table.script import run_script; run_script(__file__)"
F = TypeVar("F", bound=Callable[..., Any])


def program_options(command: F) -> F:
    """Add the program, its arguments and what concerns its imports to a command."""
    alias = click.option(
        "--pyflink-alias/--no-pyflink-alias",
        "alias",
        default=None,
        help="Whether `import pyflink` imports headrace's modules; headrace.pyflink-alias.enabled.",
    )
    file = click.option(
        "-py", "--python", "file", metavar="FILE", help="The program, as `flink run` takes it."
    )
    words = click.argument("words", metavar="PROGRAM [ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED)
    return alias(file(words(command)))


class ProgramError(click.ClickException):
    """The program cannot be started at all."""

    exit_code = ExitCode.REFUSED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it as all our errors are printed."""
        click.echo(f"error: {self.format_message()}", file=file, err=file is None)


@dataclass(frozen=True)
class Program:
    """A program that compiles."""

    #: Absolute, so that tracebacks lead to it from every worker of this machine.
    path: Path
    code: CodeType

    def run(self) -> None:
        """Run the program, inside `as_main`; whatever it raises comes out."""
        exec(self.code, sys.modules["__main__"].__dict__)  # noqa: S102  # that is what we are asked to do

    @contextmanager
    def as_main(self, arguments: Sequence[str]) -> Iterator[None]:
        """Put the program in the place of the main module.

        Functions and classes of the program are pickled by what `sys.modules['__main__']` holds, so it must be
        the program's module for as long as its jobs run.
        """
        module = ModuleType("__main__")
        module.__dict__.update(
            __file__=str(self.path),
            __builtins__=builtins,
            __loader__=SourceFileLoader("__main__", str(self.path)),
            __cached__=None,
        )
        before = sys.argv, sys.path[:], sys.modules["__main__"]
        sys.argv = [str(self.path), *arguments]
        sys.path.insert(0, str(self.path.parent))
        sys.modules["__main__"] = module
        try:
            yield
        finally:
            sys.argv, sys.path[:], sys.modules["__main__"] = before


def load_program(file: str | None, words: Sequence[str]) -> tuple[Program, list[str]]:
    """Read and compile the program that was named; return it with its arguments.

    Args:
        file: The value of `-py`, which leaves all words to the program.
        words: What followed the options: without `-py`, the program first.

    Raises:
        ProgramError: If there is no such file, or it is no Python program.
    """
    if file is not None:
        program, arguments = file, list(words)
    elif words:
        program, *arguments = words
    else:
        raise click.UsageError("give the path of the program, such as job.py")
    _warn_of_options(arguments)
    return _compile(program), arguments


def _warn_of_options(arguments: Sequence[str]) -> None:
    """Warn of configuration that comes after the program, and so is the program's."""
    for number, word in enumerate(arguments):
        text = "".join(arguments[number + 1 : number + 2]) if word == "-D" else word.removeprefix("-D")
        key, equals, _ = text.partition("=")
        if word.startswith("-D") and equals and _is_known(key):
            click.echo(
                f"warning: -D {key}=... comes after the program, so it is an argument of the program; to configure "
                "headrace, write it before the program",
                err=True,
            )


def _is_known(key: str) -> bool:
    from headrace.config.registry import known_options

    try:
        known_options().look_up(key)
    except ConfigurationError:
        return False
    return True


def pyflink_names(configuration: Configuration, choice: bool | None) -> AbstractContextManager[None]:
    """Allow the program to import pyflink, unless the command line or the configuration disables it."""
    from headrace.config.options.python import PYFLINK_ALIAS

    return pyflink_alias.installed(configuration.get(PYFLINK_ALIAS) if choice is None else choice)


def _compile(path: str) -> Program:
    file = Path(path)
    if not file.exists():
        raise ProgramError(f"program {path!r} not found")
    if file.is_dir():
        raise ProgramError(f"{path!r} is a directory; give the path of the program")
    if file.suffix == ".jar":
        raise ProgramError(f"{path!r} is a Java program; headrace runs programs written in Python")
    absolute = file.resolve()
    if file.suffix == ".sql":
        return Program(absolute, compile(_SCRIPT, str(absolute), "exec", dont_inherit=True))
    try:
        return Program(absolute, compile(absolute.read_bytes(), str(absolute), "exec", dont_inherit=True))
    except SyntaxError as error:
        shown = "".join(traceback.format_exception_only(error)).rstrip()
        raise ProgramError(f"{path!r} does not compile:\n{shown}") from error
    except ValueError as error:
        raise ProgramError(f"{path!r} is not a Python program: {error}") from error
    except OSError as error:
        raise ProgramError(f"{path!r} cannot be read: {error.strerror}") from error
