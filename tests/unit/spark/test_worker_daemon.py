"""Where the daemon of workers imports PySpark from, and how its workers end."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.spark.worker_daemon import ends_quietly, leave_out_archives


def test_pyspark_is_imported_from_where_it_is_installed(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    library = site / "pyspark" / "python" / "lib"
    library.mkdir(parents=True)
    # As in a home of Spark that is made of links.
    (tmp_path / "home").symlink_to(site / "pyspark")
    archives = [str(tmp_path / "home" / "python" / "lib" / name) for name in ("pyspark.zip", "py4j-src.zip")]
    path = ["/program", *archives, "/users/own.zip", str(site)]
    leave_out_archives(path)
    assert path == ["/program", "/users/own.zip", str(site)]


def test_archives_of_a_spark_that_is_not_installed_here_stay(tmp_path: Path) -> None:
    path = [str(tmp_path / "spark" / "python" / "lib" / "pyspark.zip"), str(tmp_path / "site-packages")]
    before = list(path)
    leave_out_archives(path)
    assert path == before
    elsewhere = [str(tmp_path / "other" / "pyspark" / "python" / "lib" / "pyspark.zip"), *path]
    before = list(elsewhere)
    leave_out_archives(elsewhere)
    assert elsewhere == before


@pytest.mark.parametrize("error", [EOFError(), BrokenPipeError(), ConnectionResetError()])
def test_a_worker_whose_task_was_cancelled_ends_without_a_word(error: Exception) -> None:
    def worker(*_: object) -> int:
        raise error

    assert ends_quietly(worker)(None, True) == 1


def test_other_ends_of_a_worker_stay_as_they_are() -> None:
    assert ends_quietly(lambda sock, authenticated: 3)(None, False) == 3

    def worker(*_: object) -> int:
        raise ValueError("a mistake of ours")

    with pytest.raises(ValueError, match="a mistake of ours"):
        ends_quietly(worker)(None, True)
