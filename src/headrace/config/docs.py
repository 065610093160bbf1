"""Writes docs/configuration.md and docs/flink_keys.md from the options, and says when they are stale.

python -m headrace.config.docs            # write the pages
python -m headrace.config.docs --check    # fail if it differs
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from headrace.config.flink_docs import FLINK_PAGE, render_flink_keys
from headrace.config.option import ConfigOption
from headrace.config.registry import subjects

__all__ = ["PAGE", "main", "render"]

#: The page in a checkout of the repository.
PAGE: Final = Path(__file__).parents[3] / "docs" / "configuration.md"

_ORDER: Final = (
    "execution",
    "epochs",
    "spark",
    "state",
    "rocksdb",
    "checkpointing",
    "restart",
    "high_availability",
    "rest",
    "exchange",
    "python",
)

_HEAD: Final = """\
# Configuration

<!-- Written by `python -m headrace.config.docs` from src/headrace/config/options. Change it there. -->

Keys are Flink's where Flink has one; those under `headrace.` are headrace's own. A value is looked for in
these places, the strongest first:

1. code: `Configuration` and setters in the program, and `SET` in SQL;
2. the command line: `headrace run -D key=value`;
3. environment variables: `HEADRACE_` and the key in capitals, with `_` for `.` and `-`, without a leading
   `headrace.`: `HEADRACE_EPOCH_MAX_RECORDS`, `HEADRACE_EXECUTION_CHECKPOINTING_INTERVAL`;
4. the file `headrace.yaml`, in `$HEADRACE_CONF_DIR` or in `./conf`, with dotted or nested keys;
5. the default.

Durations are written `500 ms`, `10 s`, `1 min`, `1 h`, `2 d` (a plain number is milliseconds), sizes `512
kb`, `64 mb`, `1 gb` (a plain number is bytes), lists `a;b` or `a,b`, maps `key1:value1;key2:value2`. An
unknown key is an error. Keys that start with `spark.` go to Spark untouched. Other keys of Flink's become settings of
Spark, have no effect, which is pointed out at the start, or are refused: [flink_keys.md](flink_keys.md) lists them all.

On the command line, in variables and in the file, `${env:NAME}` stands for an environment variable and
`${file:PATH}` for the text of a file: [secrets](security.md#secrets) belong there.
"""


def render() -> str:
    """Make the text of the page."""
    found = subjects()
    names = [*(name for name in _ORDER if name in found), *sorted(set(found) - set(_ORDER))]
    return "\n".join([_HEAD, *(_section(name, found[name]) for name in names)])


def _section(name: str, declared: list[ConfigOption[Any]]) -> str:
    module = importlib.import_module(f"headrace.config.options.{name}")
    title = (module.__doc__ or name).strip().splitlines()[0].rstrip(".")
    rows = [_row(option) for option in declared]
    return "\n".join(
        [f"## {title}", "", "| key | default | type | meaning |", "|---|---|---|---|", *rows, ""]
    )


def _row(option: ConfigOption[Any]) -> str:
    return f"| `{option.key}` | {_default(option)} | {_kind(option)} | {_meaning(option)} |"


def _default(option: ConfigOption[Any]) -> str:
    if option.default is None:
        return f"*{option.default_note}*" if option.default_note else "*none*"
    return f"`{text}`" if (text := option.write(option.default)) else "*empty*"


def _kind(option: ConfigOption[Any]) -> str:
    if option.form.name == "enum":
        return ", ".join(f"`{member.name}`" for member in option.type)
    return option.form.name


def _meaning(option: ConfigOption[Any]) -> str:
    parts = [option.description]
    if option.minimum is not None and option.maximum is not None:
        parts.append(f"From {option.write(option.minimum)} to {option.write(option.maximum)}.")
    elif option.minimum is not None:
        parts.append(f"At least {option.write(option.minimum)}.")
    elif option.maximum is not None:
        parts.append(f"At most {option.write(option.maximum)}.")
    if option.no_effect:
        parts.append(f"*No effect here: {option.no_effect}.*")
    if option.deprecated_keys:
        parts.append("Formerly " + ", ".join(f"`{key}`" for key in option.deprecated_keys) + ".")
    return " ".join(parts).replace("|", "\\|")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the page; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m headrace.config.docs", description=(__doc__ or "").split(".")[0]
    )
    parser.add_argument("--check", action="store_true", help="only say whether the pages are up to date")
    parser.add_argument("--page", type=Path, help="write or check only configuration.md, in this file")
    chosen = parser.parse_args(arguments)
    pages = {PAGE: render, FLINK_PAGE: render_flink_keys} if chosen.page is None else {chosen.page: render}
    stale = 0
    for page, text in pages.items():
        if not chosen.check:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text(), encoding="utf-8")
        elif not page.is_file() or page.read_text(encoding="utf-8") != text():
            sys.stderr.write(f"{page} is stale: run python -m headrace.config.docs\n")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
