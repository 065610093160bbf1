"""The error for a record of a file that Spark cannot read."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.spark.bad_records import bad_record


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_record_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, end: str) -> None:
    file = tmp_path / "a file.csv"
    file.write_bytes(end.join(["1,one", "2,two", "x,three", "4,four", "x,three"]).encode())

    error = bad_record(f"bad csv record in {file.as_uri()}: x,three")

    assert error is not None
    assert f"{file.as_uri()}, line 3: a record does not match the columns of the table" in str(error)
    assert "'csv.ignore-parse-errors' = 'true' to skip" in str(error)


def test_a_long_record_is_found_by_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    file.write_text("1\n" + "y" * 500 + "\n")

    error = bad_record(f"bad csv record in {file.as_uri()}: {'y' * 200}")

    assert error is not None
    assert "long.csv, line 2:" in str(error)


@pytest.mark.parametrize("path", ["s3a://bucket/a.csv", "file:///nowhere/a.csv"])
def test_a_file_that_is_not_here_is_named_without_a_line(path: str) -> None:
    error = bad_record(f"bad csv record in {path}: x,three")

    assert error is not None
    assert f"{path}: a record does not match" in str(error)


def test_other_errors_are_none_of_a_record() -> None:
    assert bad_record("division by zero") is None
