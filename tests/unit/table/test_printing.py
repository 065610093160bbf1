from __future__ import annotations

import datetime
from unittest.mock import create_autospec

import pytest

from headrace.common import JobClient
from headrace.common.types import Row, RowKind
from headrace.planner.logical import Field
from headrace.table._printing import TableFrame, shown
from headrace.table.result_kind import ResultKind
from headrace.table.table_result import TableResult
from headrace.types import DataTypes

SCHEMA = (Field("name", DataTypes.STRING()), Field("n", DataTypes.BIGINT(False)))


def test_a_changelog_is_printed_as_wide_as_its_types_with_the_kind_of_each_row(capsys):
    rows = [
        Row("ann", 1),
        Row.of_kind(RowKind.UPDATE_BEFORE, "ann", 1),
        Row.of_kind(RowKind.UPDATE_AFTER, None, 2),
    ]

    TableResult(SCHEMA, lambda: iter(rows), has_kinds=True).print()

    assert capsys.readouterr().out.splitlines() == [
        "+----+--------------------------------+----------------------+",
        "| op |                           name |                    n |",
        "+----+--------------------------------+----------------------+",
        "| +I |                            ann |                    1 |",
        "| -U |                            ann |                    1 |",
        "| +U |                         <NULL> |                    2 |",
        "+----+--------------------------------+----------------------+",
        "3 rows in set",
    ]


def test_rows_that_are_known_are_printed_as_wide_as_they_are(capsys):
    TableResult(SCHEMA, lambda: iter([Row("ann", 1)])).print()

    assert capsys.readouterr().out.splitlines() == [
        "+------+---+",
        "| name | n |",
        "+------+---+",
        "|  ann | 1 |",
        "+------+---+",
        "1 row in set",
    ]


def test_statements_show_null_as_nothing(capsys):
    TableResult(SCHEMA, lambda: iter([Row(None, 1)])).print()

    assert capsys.readouterr().out.splitlines()[3] == "|      | 1 |"


def test_a_query_in_batch_mode_is_printed_as_wide_as_its_types_without_kinds(capsys):
    TableResult(SCHEMA, lambda: iter([Row(None, 1)]), job_client=create_autospec(JobClient)).print()

    assert capsys.readouterr().out.splitlines()[1:4] == [
        "|                           name |                    n |",
        "+--------------------------------+----------------------+",
        "|                         <NULL> |                    1 |",
    ]


def test_no_rows_and_no_content(capsys):
    TableResult(SCHEMA, lambda: iter([])).print()
    TableResult(SCHEMA, lambda: iter([Row("OK")]), kind=ResultKind.SUCCESS).print()

    assert capsys.readouterr().out.splitlines() == ["Empty set", "OK"]


def test_the_counts_of_inserts_are_printed_without_a_frame(capsys):
    TableResult(
        SCHEMA, lambda: iter([Row(-1, -1)]), job_client=create_autospec(JobClient), is_raw=True
    ).print()

    assert capsys.readouterr().out == "-1, -1\n"


def test_long_texts_are_cut_and_wide_characters_take_two_places():
    frame = TableFrame(["t"], [DataTypes.STRING()], max_width=10)

    assert frame.row(Row("abcdefghijkl")) == "| +I | abcdefg... |"
    assert frame.row(Row("日本語")) == "| +I |     日本語 |"


def test_texts_cannot_send_commands_to_the_terminal():
    frame = TableFrame(["text"], [DataTypes.STRING()], max_width=20, has_kinds=False)
    assert frame.row(Row("\x1b[2Jgone\r")) == "|      \\x1b[2Jgone\\x0d |"


def test_values_are_shown_as_flink_shows_them():
    moment = datetime.datetime.fromisoformat("2020-01-02T03:04:05.678")

    assert shown(moment, DataTypes.TIMESTAMP(3)) == "2020-01-02 03:04:05.678"
    assert shown(moment, DataTypes.TIMESTAMP(0)) == "2020-01-02 03:04:05"
    assert shown({"a": None}) == "{a=NULL}"
    assert shown(Row(1, "x")) == "(1, x)"
    assert shown(b"\x01") == "x'01'"


def test_the_width_of_a_column_follows_its_type():
    types = [DataTypes.INT(), DataTypes.BOOLEAN(), DataTypes.TIMESTAMP(3), DataTypes.DECIMAL(10, 2)]
    frame = TableFrame(["a", "b", "c", "d"], types)

    assert [len(part) - 2 for part in frame.border.strip("+").split("+")] == [2, 11, 6, 23, 12]


def test_every_column_has_room_for_null_and_texts_are_as_wide_as_they_may_be():
    frame = TableFrame(["c", "b"], [DataTypes.CHAR(2), DataTypes.BOOLEAN(False)], max_width=10)

    assert frame.row(Row("ab", True)) == "| +I |         ab |   TRUE |"


def test_intervals_are_shown_as_sql_writes_them():
    day = datetime.timedelta(days=1, hours=2, seconds=3, milliseconds=40)

    assert (shown(day), shown(-day)) == ("+1 02:00:03.040", "-1 02:00:03.040")


def test_times_inside_of_values_have_the_digits_of_their_types():
    noon = datetime.datetime.fromisoformat("2024-02-29T12:00:00")
    time = DataTypes.TIMESTAMP(3)
    row = DataTypes.ROW([DataTypes.FIELD("at", time), DataTypes.FIELD("n", DataTypes.INT())])

    assert shown([noon, None], DataTypes.ARRAY(time)) == "[2024-02-29 12:00:00.000, NULL]"
    assert shown({"a": noon}, DataTypes.MAP(DataTypes.STRING(), time)) == "{a=2024-02-29 12:00:00.000}"
    assert shown(Row(noon, 1), row) == "(2024-02-29 12:00:00.000, 1)"


@pytest.mark.parametrize(("months", "text"), [(14, "+1-02"), (-3, "-0-03"), (0, "+0-00"), (-24, "-2-00")])
def test_an_interval_of_months_is_shown_in_years_and_months(months, text):
    assert shown(months, DataTypes.INTERVAL(DataTypes.MONTH())) == text


def test_large_and_small_numbers_have_an_exponent_as_where_they_are_cast_to_text():
    assert [shown(each, DataTypes.DOUBLE()) for each in (1e10, 1e-5, 0.25)] == ["1.0E10", "1.0E-5", "0.25"]
    assert shown([1e10], DataTypes.ARRAY(DataTypes.DOUBLE())) == "[1.0E10]"


def test_a_text_of_several_lines_is_printed_as_it_is():
    frame = TableFrame(["t"], [DataTypes.STRING()], max_width=10)

    assert frame.row(Row("one\ntwo")) == "| +I |    one\ntwo |"
