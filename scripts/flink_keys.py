"""Writes src/headrace/config/flink/keys.tsv: names, types and defaults of the keys on Flink's configuration pages.

python scripts/flink_keys.py CHECKOUT [TAG]      # a git checkout of Flink, such as release-2.3.0
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_FOLDER = "docs/layouts/shortcodes/generated"
_TARGET = Path(__file__).parents[1] / "src/headrace/config/flink/keys.tsv"
#: Pages that list no keys of the configuration: REST endpoints, translations, and options of models.
_OTHER_PAGES = re.compile(
    r".*_zh|rest_v.*|model_.*|openai_.*|triton_.*|ml_predict_runtime.*|vector_search_runtime.*"
)
_LONGEST = 80
#: A page whose keys are shown without what is in front of them.
_PREFIXES = {"sql_gateway_rest_configuration": "sql-gateway.endpoint.rest."}


def _git(checkout: str, *arguments: str) -> str:
    command = ["git", "-C", checkout, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # a developer's tool


def _plain(cell: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", cell))).strip()


def _rows(page: str) -> Iterator[tuple[str, str, str]]:
    for row in re.findall(r"<tr>(.*?)</tr>", page, re.S):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)
        key = (
            re.search(r"<h5>(.*?)</h5>", cells[0], re.S) if len(cells) > 3 else None
        )  # key, default, type, text
        if key is not None:
            default = _plain(cells[1]).replace('"', "")
            yield _plain(key[1]), _plain(cells[2]), default if len(default) <= _LONGEST else "(several)"


def main() -> None:
    checkout, tag = sys.argv[1], (sys.argv[2:] or ["release-2.3.0"])[0]
    found = {}
    for path in _git(checkout, "ls-tree", "-r", "--name-only", tag, _FOLDER).split():
        name = Path(path).stem
        if not _OTHER_PAGES.fullmatch(name):
            for key, kind, default in _rows(_git(checkout, "show", f"{tag}:{path}")):
                if key.startswith("partition.fields."):
                    continue  # of the table, not of the configuration
                found[_PREFIXES.get(name, "") + key] = (kind, default)
    lines = [f"{key}\t{kind}\t{default}" for key, (kind, default) in sorted(found.items())]
    _TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
