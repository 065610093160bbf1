"""PrintSink: the prefix, where lines go, and that they come once."""

from __future__ import annotations

import pytest

from headrace.common.typeinfo import RowDataTypeInfo, Types
from headrace.common.types import Row
from headrace.connectors.base import Committable, WriterContext
from headrace.connectors.print import PrintSink
from headrace.elements import Batch

FIELDS = [Types.INT(), Types.BOOLEAN(), Types.STRING()]


def staged(
    sink: PrintSink, values: list[object], *, subtask: int = 0, parallelism: int = 1
) -> list[Committable]:
    writer = sink.create_writer(WriterContext(subtask, parallelism, 1, "a"))
    writer.write_batch(Batch(values))
    return [Committable(subtask, 1, payload) for payload in writer.prepare_commit()]


@pytest.mark.parametrize(
    ("identifier", "subtask", "parallelism", "line"),
    [
        (None, 0, 1, "x"),
        (None, 2, 4, "3> x"),
        ("words", 0, 1, "words> x"),
        ("words", 2, 4, "words:3> x"),
        ("", 0, 1, "x"),
    ],
)
def test_the_prefix_is_flinks(capsys, identifier, subtask, parallelism, line):
    sink = PrintSink(identifier)

    sink.create_committer().commit(staged(sink, ["x"], subtask=subtask, parallelism=parallelism))

    assert capsys.readouterr().out == f"{line}\n"


def test_nothing_is_printed_before_the_commit(capsys):
    staged(PrintSink(), ["x"])

    assert capsys.readouterr().out == ""


def test_values_are_shown_as_str_shows_them(capsys):
    sink = PrintSink()

    sink.create_committer().commit(staged(sink, [1.5, ("a", 1), Row("b", 2), None]))

    assert capsys.readouterr().out == f"1.5\n('a', 1)\n{Row('b', 2)}\nNone\n"


def test_it_prints_to_the_standard_error_if_asked(capsys):
    sink = PrintSink(to_stderr=True)

    sink.create_committer().commit(staged(sink, ["x"]))

    assert capsys.readouterr() == ("", "x\n")


def test_a_commit_that_is_repeated_in_part_prints_the_rest(capsys):
    committer = PrintSink().create_committer()
    committer.commit([Committable(0, 5, "a\n")])

    committer.commit([Committable(0, 5, "a\n"), Committable(1, 5, "b\n"), Committable(0, 6, "c\n")])

    assert capsys.readouterr().out == "a\nb\nc\n"


def test_an_epoch_without_records_has_nothing_to_commit():
    assert staged(PrintSink(), []) == []


@pytest.mark.parametrize(
    ("declared", "line"),
    [
        (Types.ROW_NAMED(["a", "b", "c"], FIELDS), "+I[1,True,None]\n"),
        # Files of CSV are read as tables are.
        (RowDataTypeInfo(FIELDS, ["a", "b", "c"]), "+I(1,true,null)\n"),
    ],
    ids=["a row of a program", "a row of a file"],
)
def test_rows_are_printed_by_where_their_type_comes_from(capsys, declared, line):
    sink = PrintSink().for_type(declared)
    writer = sink.create_writer(WriterContext(subtask=0, parallelism=1, epoch=0, attempt_id="a"))
    writer.write(Row(1, True, None), None)
    sink.create_committer().commit([Committable(0, 0, p) for p in writer.prepare_commit()])

    assert capsys.readouterr().out == line
