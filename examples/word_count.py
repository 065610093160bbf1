"""Counts words: the first program to read.

It shows a text source, flat_map, key_by, a rolling sum and print. In STREAMING mode every word would yield its count
so far; this program runs in BATCH mode, in which only the final counts come.

    headrace run examples/word_count.py
    headrace run examples/word_count.py --input LICENSE
"""

from __future__ import annotations

import argparse
import re

from headrace.common import Types
from headrace.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment

TEXT = """\
The headrace carries water to the wheel,
and the wheel turns the mill.
When the water is low the mill is still;
when the water is high the wheel is fast.
"""


def words_of(line: str) -> list[str]:
    return re.findall(r"[a-z]+", line.lower())


def build(env: StreamExecutionEnvironment, path: str | None = None) -> DataStream:
    """Return a stream of (word, count)."""
    if path is None:
        lines = env.from_collection(TEXT.splitlines(), Types.STRING())
    else:
        lines = env.read_text_file(path)
    return (
        lines.flat_map(words_of, Types.STRING())
        .name("Words")
        .map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .sum(1)
        .name("Count")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts the words of a text.")
    parser.add_argument(
        "--input", help="a text file or a directory of them; without it, four lines of our own"
    )
    arguments = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    build(env, arguments.input).print()
    env.execute("word count")


if __name__ == "__main__":
    main()
