"""Small programs over PyFlink's public methods, whose results were recorded once from PyFlink itself.

Every module has functions of three kinds, marked by a decorator. They import `pyflink`: for PyFlink that is itself, for
headrace its alias. A function's name is the case's name.

    @value          returns something that needs no job: its text is compared, or that it raises
    @stream         takes an environment and returns a stream: the lines that `print` writes are compared
    @failing        as `stream`, but the job is expected to fail
    @query          takes a table environment and returns a table: columns, their types, and the rows that are left

`because`, or `program_differences.toml`, says why headrace answers otherwise, where it does so on purpose.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["value", "stream", "failing", "query"]


@dataclass(frozen=True)
class Case:
    """One program."""

    name: str
    kind: Kind
    run: Callable[..., Any]
    #: Why headrace differs; None where it must not.
    because: str | None = None
    #: Of a query: whether it runs as a stream.
    is_streaming: bool = False


_cases: dict[str, Case] = {}


def _add(case: Case) -> None:
    assert case.name not in _cases, f"two programs are called {case.name}"
    _cases[case.name] = case


def _register(kind: Kind, because: str | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(run: Callable[..., Any]) -> Callable[..., Any]:
        _add(Case(f"{run.__module__.rpartition('.')[2]}.{run.__name__}", kind, run, because))
        return run

    return register


def value(run: Callable[..., Any] | None = None, *, because: str | None = None) -> Any:
    """Mark a function that returns something to compare."""
    return _register("value", because)(run) if run else _register("value", because)


def values(because: str | None = None, **programs: Callable[[], Any]) -> None:
    """Mark short programs that return something to compare, by name."""
    module = inspect.stack()[1].frame.f_globals["__name__"]
    for name, run in programs.items():
        _add(Case(f"{module.rpartition('.')[2]}.{name}", "value", run, because))


def stream(run: Callable[..., Any] | None = None, *, because: str | None = None) -> Any:
    """Mark a function that returns a stream to print."""
    return _register("stream", because)(run) if run else _register("stream", because)


def failing(run: Callable[..., Any] | None = None, *, because: str | None = None) -> Any:
    """Mark a function that returns a stream whose job fails."""
    return _register("failing", because)(run) if run else _register("failing", because)


def query(run: Callable[..., Any] | None = None, *, streaming: bool = False) -> Any:
    """Mark a function that returns a table, whose rows are compared."""

    def register(run: Callable[..., Any]) -> Callable[..., Any]:
        _add(Case(f"{run.__module__.rpartition('.')[2]}.{run.__name__}", "query", run, None, streaming))
        return run

    return register(run) if run else register


def all_cases() -> dict[str, Case]:
    """Return all programs by name; this imports their modules, and so `pyflink`."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(_cases)


def text_of(result: Any) -> str:
    """Write what a program returned, so that both can be compared."""
    if isinstance(result, list | tuple):
        inner = ", ".join(map(text_of, result))
        return f"[{inner}]" if isinstance(result, list) else f"({inner})"
    if isinstance(result, dict):
        return "{" + ", ".join(f"{text_of(k)}: {text_of(v)}" for k, v in result.items()) + "}"
    return repr(result) if isinstance(result, str | bytes | float) else str(result)


def run_value(case: Case) -> dict[str, str]:
    """Return the text of a program's result, or the class and message of its error."""
    try:
        return {"text": text_of(case.run())}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)[:300]}


def run_query(case: Case, make: Callable[[bool], Any]) -> dict[str, Any]:
    """Return columns and rows of a query, or the class and message of its error.

    Args:
        case: The query.
        make: Makes a table environment; its argument says whether queries run as streams.
    """
    try:
        table = case.run(make(case.is_streaming))
        schema = table.get_schema()
        columns = [
            f"{name} {kind!r}"
            for name, kind in zip(schema.get_field_names(), schema.get_field_data_types(), strict=True)
        ]
        left: Counter[str] = Counter()
        with table.execute().collect() as rows:
            for row in rows:
                kind, row_text = row.get_row_kind().name, ", ".join(map(repr, row))
                left[row_text] += 1 if kind in ("INSERT", "UPDATE_AFTER") else -1
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)[:300]}
    return {"columns": columns, "lines": sorted((+left).elements())}
