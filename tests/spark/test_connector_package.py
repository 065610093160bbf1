"""A connector that pip has installed runs on Spark: the package of the documentation, as it stands there."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tomllib
from collections import Counter

import pytest

from headrace.table import EnvironmentSettings, TableEnvironment
from tests.docs.documents import ROOT, blocks_of
from tests.packages import build_wheel
from tests.spark.sql_support import result_of

pytestmark = pytest.mark.spark

PAGE = ROOT / "docs" / "connectors" / "packages.md"


@pytest.fixture
def dice(tmp_path, monkeypatch):
    """Install the package as users do, without a network, beside the environment of the tests."""
    project, module, *_ = (block.text for block in blocks_of(PAGE))
    declared = tomllib.loads(project)["project"]
    wheel = build_wheel(
        tmp_path,
        declared["name"],
        declared["version"],
        declared["entry-points"],
        {"headrace_dice": module},
    )
    site = tmp_path / "site"
    offline = ["--no-index", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, "--target", str(site), str(wheel)], check=True
    )
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("headrace_dice", None)


def test_a_package_with_a_connector_is_installed_and_read_by_workers(dice):
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    create, query = re.findall(r'execute_sql\("+(.+?)"+\)', blocks_of(PAGE)[2].text, flags=re.DOTALL)
    t_env.execute_sql(create)

    with t_env.execute_sql(query).collect() as changelog:
        found = result_of(changelog)

    rolled = Counter(random.Random(number).randint(1, 6) for number in range(600))
    assert found == Counter(rolled.items())
