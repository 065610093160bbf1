"""Functions of other dialects that people write by habit, and how Flink's SQL says the same."""

from __future__ import annotations

from typing import Final

__all__ = ["OTHER_DIALECTS"]

#: Name in another dialect -> what to write.
OTHER_DIALECTS: Final = {
    name: f"write {here}"
    for name, here in {
        "ADD_MONTHS": "date + INTERVAL '1' MONTH",
        "APPROX_DISTINCT": "COUNT(DISTINCT column)",
        "ARRAYAGG": "ARRAY_AGG(column)",
        "DATEADD": "TIMESTAMPADD(DAY, count, time), or time + INTERVAL '1' DAY",
        "DATEDIFF": "TIMESTAMPDIFF(DAY, time1, time2)",
        "DATE_ADD": "time + INTERVAL '1' DAY",
        "DATE_DIFF": "TIMESTAMPDIFF(DAY, time1, time2)",
        "DATE_SUB": "time - INTERVAL '1' DAY",
        "DATE_TRUNC": "FLOOR(time TO HOUR)",
        "GETDATE": "CURRENT_TIMESTAMP",
        "GROUP_CONCAT": "LISTAGG(column, ',')",
        "IIF": "IF(condition, value, other)",
        "ISNULL": "value IS NULL, or COALESCE(value, other)",
        "LEN": "CHAR_LENGTH(text)",
        "LENGTH": "CHAR_LENGTH(text)",
        "MATCH_PROCTIME": "it in MEASURES of MATCH_RECOGNIZE",
        "MATCH_ROWTIME": "it in MEASURES of MATCH_RECOGNIZE",
        "NVL": "COALESCE(value, other)",
        "SIZE": "CARDINALITY(array)",
        "STRFTIME": "DATE_FORMAT(time, 'yyyy-MM-dd')",
        "STRING_AGG": "LISTAGG(column, ',')",
        "STRPOS": "POSITION(part IN text)",
        "SYSDATE": "CURRENT_TIMESTAMP",
        "TO_CHAR": "DATE_FORMAT(time, 'yyyy-MM-dd'), or CAST(value AS STRING)",
        "TO_NUMBER": "CAST(text AS DECIMAL(10, 2))",
        "WM_CONCAT": "LISTAGG(column, ',')",
    }.items()
}
