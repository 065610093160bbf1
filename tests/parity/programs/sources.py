"""Sources that know the type of their records."""

import atexit
import shutil
import tempfile
from pathlib import Path

from pyflink.common import WatermarkStrategy
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.formats.csv import CsvReaderFormat, CsvSchema
from pyflink.table import DataTypes

from . import stream


def _file(text):
    folder = Path(tempfile.mkdtemp(prefix="programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "input.csv").write_text(text)
    return str(folder)


def _read(env, source):
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "source")


def _csv(env, text, schema):
    return _read(
        env, FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), _file(text)).build()
    )


def _typed():
    return CsvSchema.builder().add_number_column("id", DataTypes.BIGINT()).add_string_column("name")


@stream
def numbers(env):
    return _read(env, NumberSequenceSource(1, 3))


@stream
def lines(env):
    return _read(
        env, FileSource.for_record_stream_format(StreamFormat.text_line_format(), _file("a\n\nb")).build()
    )


@stream
def csv_rows(env):
    schema = _typed().add_number_column("price", DataTypes.DOUBLE()).add_boolean_column("sold").build()
    return _csv(env, "1,ann,1.5,true\n2,bob,2,false\n", schema)


@stream
def csv_rows_in_python(env):
    return _csv(env, "1,ann\n", _typed().build()).map(
        lambda row: (type(row).__name__, row.id, row["name"], row[1])
    )


@stream
def csv_null(env):
    return _csv(env, "1,-\n", _typed().set_null_value("-").build())


@stream
def csv_quotes(env):
    schema = _typed().set_quote_char("'").set_column_separator(";").set_allow_comments().build()
    return _csv(env, "# names\n1;'a;b'\n", schema)


@stream
def csv_arrays(env):
    schema = CsvSchema.builder().add_string_column("name").add_array_column("n", ";", DataTypes.INT()).build()
    return _csv(env, "a,1;2;3\n", schema)
