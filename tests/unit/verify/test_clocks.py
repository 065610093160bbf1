"""Clocks and time zones of verified runs, as programs read them."""

from __future__ import annotations

import datetime
import sys
import time
from types import ModuleType

import pytest

from headrace.verify.clocks import real_wall_clock, shifted_wall_clock, time_zone

YEAR = 366 * 86_400


def test_whatever_a_program_reads_the_time_with_is_shifted() -> None:
    then = time.localtime(time.time() + YEAR).tm_year
    with shifted_wall_clock(YEAR):
        years = {
            time.localtime().tm_year,
            time.gmtime().tm_year,
            int(time.strftime("%Y")),
            int(time.ctime()[-4:]),
            int(time.asctime()[-4:]),
            datetime.datetime.now().year,  # noqa: DTZ005
            datetime.date.today().year,  # noqa: DTZ011
        }
        assert years == {then}
        assert time.strftime("%Y", time.gmtime(0)) == "1970"
        assert time.gmtime(86_400).tm_mday == 2
        with real_wall_clock():
            assert time.localtime().tm_year == then - 1


def test_modules_of_users_that_import_a_clock_by_name_get_the_shifted_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = ModuleType("clocks_of_a_user")
    module.__file__ = "/jobs/clocks_of_a_user.py"
    module.now = time.time  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    real = time.time
    with shifted_wall_clock(YEAR):
        assert module.now() > real() + YEAR - 60
    assert module.now is real


def test_the_time_zone_is_another_one_and_then_the_same_as_before() -> None:
    before = time.localtime(0)
    with time_zone("<+1245>-12:45"):
        assert time.localtime(0)[:5] == (1970, 1, 1, 12, 45)
    assert time.localtime(0) == before
