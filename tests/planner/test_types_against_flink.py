"""Types of expressions and queries are those that Flink 2.3 gives them.

`flink_results.json` was written by Flink itself: for each text the columns of the result, or null where Flink
refuses it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.errors import SqlError
from tests.planner.environment import Session

TYPES: dict[str, list[str] | None] = json.loads(
    (Path(__file__).parent / "flink_results.json").read_text(encoding="utf-8")
)["types"]

TABLE = """
CREATE TABLE t (ti TINYINT, si SMALLINT, i INT, b BIGINT, f FLOAT, d DOUBLE, de DECIMAL(10,2), de2 DECIMAL(38,10),
  s STRING, vc VARCHAR(5), c CHAR(3), bo BOOLEAN, dt DATE, tm TIME, ts TIMESTAMP(3), ts6 TIMESTAMP(6),
  ltz TIMESTAMP_LTZ(3), arr ARRAY<INT>, m MAP<STRING,INT>, r ROW<a INT, b STRING>, `by` BYTES, nn INT NOT NULL,
  nb BIGINT NOT NULL, ns STRING NOT NULL, nd DECIMAL(10,2) NOT NULL, nts TIMESTAMP(3) NOT NULL)
WITH ('connector'='datagen')
"""

#: Where headrace answers otherwise, with the reason.
DIFFERENT = {
    "CAST(b AS TIMESTAMP(3))": "Flink lets it through here and refuses it when it makes the job",
    "CAST(ts AS BIGINT)": "Flink lets it through here and refuses it when it makes the job",
    "i = s": "Flink lets it through here and refuses it when it makes the job",
    "s = 1": "Flink lets it through here and refuses it when it makes the job",
    "d = s": "Flink lets it through here and refuses it when it makes the job",
    "de = s": "Flink lets it through here and refuses it when it makes the job",
    "SELECT * FROM (VALUES (1, 'a'), (2, 'bcd'), (3, NULL)) AS v(x, y)": "the other rows say the type",
}


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(TABLE)


@pytest.mark.parametrize("text", [text for text in TYPES if text not in DIFFERENT])
def test_a_type_is_flinks(session: Session, text: str) -> None:
    query = text if text.upper().startswith("SELECT") else f"SELECT {text} AS x FROM t"
    wanted = TYPES[text]
    if wanted is None:
        with pytest.raises(SqlError) as caught:
            session.schema(query)
        assert caught.value.line is not None
    else:
        assert session.schema(query, batch=True) == wanted


@pytest.mark.parametrize("text", DIFFERENT)
def test_a_difference_is_still_one(session: Session, text: str) -> None:
    query = text if text.startswith("SELECT") else f"SELECT {text} AS x FROM t"
    try:
        found = session.schema(query)
    except SqlError:
        found = None
    assert found != TYPES[text]
