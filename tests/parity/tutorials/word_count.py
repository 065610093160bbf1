"""Words of a text file, counted: the first program of most tutorials."""

import os
import tempfile

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat

TEXT = """To be, or not to be,--that is the question:--
Whether 'tis nobler in the mind to suffer
The slings and arrows of outrageous fortune
Or to take arms against a sea of troubles,

And by opposing end them?--To die,--to sleep,--
No more; and by a sleep to say we end
"""


def words(line):
    for word in line.lower().replace("-", " ").split():
        yield word.strip(",.;:?'")


def main():
    path = os.path.join(tempfile.mkdtemp(), "hamlet.txt")
    with open(path, "w") as file:
        file.write(TEXT)
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_parallelism(1)
    lines = env.from_source(
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), path).build(),
        WatermarkStrategy.no_watermarks(),
        "text",
    )
    counts = (
        lines.flat_map(words, output_type=Types.STRING())
        .filter(lambda word: len(word) > 1)
        .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    counts.print()
    env.execute("word count")


if __name__ == "__main__":
    main()
