"""Expressions for the sweep over Flink's functions: each function with edge cases as arguments.

An argument is written as a constant, and, for a part of the cases, as a column of a table with one row, because a
planner that knows a value may take another way than one that does not.
"""

# ruff: noqa: E501 -- a table is read line by line

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

#: A literal, and the column that has the same value; "" where there is none.
Argument = tuple[str, str]

#: The columns of the table `edge`: a type of Flink and the value as JSON.
COLUMNS: dict[str, tuple[str, object]] = {
    "s_abc": ("STRING", "Abc"),
    "s_empty": ("STRING", ""),
    "s_null": ("STRING", None),
    "s_uni": ("STRING", "ÄÖß"),
    "s_emo": ("STRING", "😀x"),
    "s_num": ("STRING", "12"),
    "s_words": ("STRING", " a-b c1d "),
    "ti": ("TINYINT", 127),
    "si": ("SMALLINT", -32768),
    "i0": ("INT", 0),
    "i1": ("INT", 1),
    "i2": ("INT", 2),
    "i3": ("INT", 3),
    "im": ("INT", -1),
    "imax": ("INT", 2147483647),
    "imin": ("INT", -2147483648),
    "i_null": ("INT", None),
    "b7": ("BIGINT", 7),
    "bmax": ("BIGINT", 9223372036854775807),
    "bmin": ("BIGINT", -9223372036854775808),
    "b_null": ("BIGINT", None),
    "f": ("FLOAT", 1.5),
    "d": ("DOUBLE", 2.5),
    "dneg": ("DOUBLE", -0.5),
    "d0": ("DOUBLE", 0.0),
    "dbig": ("DOUBLE", 1e300),
    "d_null": ("DOUBLE", None),
    "de": ("DECIMAL(10, 2)", 12.35),
    "deneg": ("DECIMAL(10, 2)", -12.35),
    "de_null": ("DECIMAL(10, 2)", None),
    "bo": ("BOOLEAN", True),
    "bof": ("BOOLEAN", False),
    "bo_null": ("BOOLEAN", None),
    "dt": ("DATE", "2020-02-29"),
    "dt_null": ("DATE", None),
    "tm": ("TIME", "10:11:12"),
    "ts": ("TIMESTAMP(3)", "2020-02-29 23:59:59.999"),
    "ts6": ("TIMESTAMP(6)", "1969-12-31 23:59:59.123456"),
    "ts_null": ("TIMESTAMP(3)", None),
    "ltz": ("TIMESTAMP_LTZ(3)", "2020-02-29 23:59:59.999Z"),
    "ai": ("ARRAY<INT>", [3, 1, None, 1]),
    "ai_empty": ("ARRAY<INT>", []),
    "ai_null": ("ARRAY<INT>", None),
    "a_s": ("ARRAY<STRING>", ["b", "", None, "a"]),
    "m": ("MAP<STRING, INT>", {"a": 1, "b": None}),
    "m_null": ("MAP<STRING, INT>", None),
    "r": ("ROW<a INT, b STRING>", {"a": 1, "b": "x"}),
    "r_null": ("ROW<a INT, b STRING>", None),
}


def _literals(*texts: str) -> list[Argument]:
    return [(text, "") for text in texts]


S: list[Argument] = [
    ("'Abc'", "s_abc"),
    ("''", "s_empty"),
    ("CAST(NULL AS STRING)", "s_null"),
    ("'ÄÖß'", "s_uni"),
    ("'😀x'", "s_emo"),
    ("'12'", "s_num"),
    ("' a-b c1d '", "s_words"),
]
#: What a string is searched for, cut at, or filled with.
PART: list[Argument] = [
    ("'b'", ""),
    ("''", "s_empty"),
    ("CAST(NULL AS STRING)", "s_null"),
    ("'😀'", ""),
    ("'Abcd'", ""),
    ("' '", ""),
]
INT: list[Argument] = [
    ("0", "i0"),
    ("1", "i1"),
    ("2", "i2"),
    ("-1", "im"),
    ("CAST(NULL AS INT)", "i_null"),
    ("2147483647", "imax"),
    ("-2147483648", "imin"),
]
SMALL: list[Argument] = [*INT[:5], ("3", "i3"), *_literals("-2", "5")]
#: Numbers of every type.
N: list[Argument] = [
    ("CAST(127 AS TINYINT)", "ti"),
    ("CAST(-32768 AS SMALLINT)", "si"),
    ("0", "i0"),
    ("-1", "im"),
    ("2147483647", "imax"),
    ("-2147483648", "imin"),
    ("CAST(NULL AS INT)", "i_null"),
    ("CAST(7 AS BIGINT)", "b7"),
    ("9223372036854775807", "bmax"),
    ("CAST('-9223372036854775808' AS BIGINT)", "bmin"),
    ("CAST(1.5 AS FLOAT)", "f"),
    ("2.5e0", "d"),
    ("-0.5e0", "dneg"),
    ("CAST(0 AS DOUBLE)", "d0"),
    ("1e300", "dbig"),
    ("CAST(12.35 AS DECIMAL(10, 2))", "de"),
    ("CAST(-12.35 AS DECIMAL(10, 2))", "deneg"),
    ("CAST(NULL AS DECIMAL(10, 2))", "de_null"),
    ("CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0))", ""),
    ("0.005", ""),
    ("CAST('NaN' AS DOUBLE)", ""),
    ("CAST('Infinity' AS DOUBLE)", ""),
]
INTEGERS: list[Argument] = N[:10]
B: list[Argument] = [("TRUE", "bo"), ("FALSE", "bof"), ("CAST(NULL AS BOOLEAN)", "bo_null")]
DAY: list[Argument] = [
    ("DATE '2020-02-29'", "dt"),
    ("CAST(NULL AS DATE)", "dt_null"),
    *_literals("DATE '1969-12-31'", "DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '2021-01-03'"),
]
TIME: list[Argument] = [
    ("TIME '10:11:12'", "tm"),
    *_literals("TIME '00:00:00'", "TIME '23:59:59'", "CAST(NULL AS TIME)"),
]
STAMP: list[Argument] = [
    ("TIMESTAMP '2020-02-29 23:59:59.999'", "ts"),
    ("TIMESTAMP '1969-12-31 23:59:59.123456'", "ts6"),
    ("CAST(NULL AS TIMESTAMP(3))", "ts_null"),
    *_literals("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '2021-01-03 12:30:00'"),
]
ZONED: list[Argument] = [
    ("TO_TIMESTAMP_LTZ(1583020799999, 3)", "ltz"),
    *_literals("TO_TIMESTAMP_LTZ(-1, 3)", "CAST(NULL AS TIMESTAMP_LTZ(3))"),
]
MOMENT = [*DAY[:4], *STAMP, *ZONED]
ARRAY: list[Argument] = [
    ("ARRAY[3, 1, CAST(NULL AS INT), 1]", "ai"),
    ("CAST(NULL AS ARRAY<INT>)", "ai_null"),
    ("ARRAY[1]", ""),
    ("ARRAY['b', '', CAST(NULL AS STRING), 'a']", "a_s"),
    ("ARRAY_REMOVE(ARRAY[1], 1)", "ai_empty"),
    ("ARRAY['😀', 'ÄÖß']", ""),
    ("ARRAY[ARRAY[1], ARRAY[2, CAST(NULL AS INT)]]", ""),
    ("ARRAY[ROW(1, 'a'), ROW(2, CAST(NULL AS STRING))]", ""),
    ("ARRAY[1.5, 2.25]", ""),
    ("ARRAY[DATE '2020-02-29']", ""),
    ("ARRAY[2.5e0, CAST('NaN' AS DOUBLE), -1e0]", ""),
    ("ARRAY[MAP['k', 1]]", ""),
    ("ARRAY[TRUE, FALSE]", ""),
]
ELEMENT: list[Argument] = [
    ("1", "i1"),
    ("CAST(NULL AS INT)", "i_null"),
    ("'a'", "s_abc"),
    ("''", "s_empty"),
    ("CAST(NULL AS STRING)", "s_null"),
    ("NULL", ""),
    ("CAST(1 AS BIGINT)", "b7"),
    ("1.5", "de"),
    ("ARRAY[1]", "ai_empty"),
    ("ROW(1, 'a')", ""),
    ("DATE '2020-02-29'", "dt"),
    ("2.5e0", "d"),
]
MAP: list[Argument] = [
    ("MAP['a', 1, 'b', CAST(NULL AS INT)]", "m"),
    ("CAST(NULL AS MAP<STRING, INT>)", "m_null"),
    ("MAP[1, 'x', 2, '😀']", ""),
    ("MAP['a', 1, 'a', 2]", ""),
    ("MAP['k', ARRAY[1, 2]]", ""),
    ("MAP[1.5, ROW(1, 'a')]", ""),
]
ROW: list[Argument] = [
    ("ROW(1, 'x')", "r"),
    ("CAST(NULL AS ROW<a INT, b STRING>)", "r_null"),
    ("ROW(CAST(NULL AS INT), '😀', ARRAY[1])", ""),
]
BYTES: list[Argument] = _literals("X'61c3a9'", "X''", "CAST(NULL AS BYTES)", "X'ff'")
ANY: list[Argument] = [
    N[2], N[8], N[11], N[15], N[6], S[0], S[1], S[2], S[4], B[0], B[2], DAY[0], TIME[0], STAMP[0], STAMP[1],
    ZONED[0], ARRAY[0], ARRAY[1], ARRAY[3], MAP[0], MAP[1], ROW[0], ROW[1], BYTES[0],
]  # fmt: skip
JSON: list[Argument] = _literals(
    '\'{"a": 1, "b": [1, "x", null], "c": {"d": true}, "e": "😀", "f": 1.5, "n": null}\'',
    "'[1, 2, {\"a\": 3}]'", "'\"text\"'", "'12'", "'true'", "'null'", "''", "'bad'", "CAST(NULL AS STRING)", "'{}'",
    "'[]'", "'{\"a\": {\"b\": [{\"c\": 1}, {\"c\": 2}]}}'",
)  # fmt: skip
PATH: list[Argument] = _literals(
    "'$'", "'$.a'", "'lax $.a'", "'strict $.zz'", "'lax $.zz'", "'$.b[1]'", "'$[0]'", "'$.b[9]'", "'$.c.d'", "'$.e'",
    "'$.n'", "'$.b'", "'lax $.b[*]'", "'$.a.b[*].c'",
)  # fmt: skip
PATTERN: list[Argument] = _literals(
    "'b'", "''", "'(.)(b)?'", "'[a-z]+'", "CAST(NULL AS STRING)", "'('", "'.'", "'^$'", "'(?i)A'"
)
ZONE: list[Argument] = _literals(
    "'UTC'", "'Europe/Berlin'", "'GMT+02:00'", "'nowhere'", "CAST(NULL AS STRING)", "'+05:30'"
)
URL: list[Argument] = _literals(
    "'http://user:pw@host.org:80/p/a/t/h;x?k=v&k2=v%202&e=#ref'", "'https://host'", "'ftp://host/file'", "'no url'", "''",
    "CAST(NULL AS STRING)", "'http://hôst/ä?ü=ö'", "'mailto:a@b.c'",
)  # fmt: skip
UNITS = (
    "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND",
    "DECADE", "CENTURY", "MILLENNIUM", "EPOCH", "DOW", "DOY", "ISODOW", "ISOYEAR",
)  # fmt: skip
TYPES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(38, 18)", "STRING",
    "VARCHAR(2)", "CHAR(5)", "BYTES", "BINARY(2)", "DATE", "TIME", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)",
    "TIMESTAMP_LTZ(3)", "ARRAY<STRING>", "ARRAY<BIGINT>", "MAP<STRING, STRING>", "ROW<x BIGINT, y STRING>",
)  # fmt: skip

#: Strings that say values of other types, well or badly.
SAID: list[Argument] = _literals(
    "'12'", "' 12 '", "'-1.5'", "'1e3'", "'+7'", "'abc'", "''", "'true'", "'T'", "'1'", "'no'", "'2020-02-29'",
    "'2021-02-29'", "'2020-2-9'", "'2020-02-29 12:13:14.5678'", "'2020-02-29T12:13:14'", "'12:13:14'", "'12:13'",
    "'99999999999999999999'", "'NaN'", "'-Infinity'", "'0x1F'", "'1_000'", "'١٢'", "'😀'", "'128'", "'.5'", "'5.'",
    "'2020-02-29 24:00:00'", "'0000-00-00'", "'12345-01-01'", "'2020-02'", "'2020'", "'1.999'", "'null'",
)  # fmt: skip

#: A call with its arguments' pools, and how many of their combinations are taken.
Calls = list[tuple[str, Sequence[Sequence[Argument]], int]]

STRING_CALLS: Calls = [
    *((f"{name}({{0}})", [S], 7) for name in (
        "CHAR_LENGTH", "CHARACTER_LENGTH", "UPPER", "LOWER", "LTRIM", "RTRIM", "BTRIM", "INITCAP", "REVERSE", "ASCII",
        "TO_BASE64", "MD5", "SHA1", "SHA224", "SHA256", "SHA384", "SHA512", "URL_ENCODE", "IS_ALPHA", "IS_DECIMAL",
        "IS_DIGIT", "JSON_QUOTE", "JSON_UNQUOTE", "TO_DATE", "TO_TIMESTAMP", "HEX", "UNHEX", "INET_ATON",
    )),
    *((f"TRIM({side} {{1}} FROM {{0}})", [S, PART], 12) for side in ("BOTH", "LEADING", "TRAILING")),
    ("TRIM({0})", [S], 7),
    ("INITCAP({0})", [_literals("'a-b'", "'a1b c2D'", "'a_b'", "'x''y'", "'éa ÉA'", "'a😀b'", "'1ab'", "'ab.cd,ef\tgh'",
                               "'ﬁx ǆ'", "'HELLO wORLD'", "'ñandú'")], 11),
    ("UPPER({0})", [_literals("'straße'", "'ﬁ'", "'ǆ'", "'ı'", "'i̇'", "'😀ab'")], 6),
    ("LOWER({0})", [_literals("'STRASSE'", "'İ'", "'ΑΣ'", "'ǅ'", "'😀AB'")], 5),
    ("CHAR_LENGTH({0})", [_literals("'e\u0301'", "'👨\u200d👩'", "'a😀b'", "'\t '")], 4),
    ("REVERSE({0})", [_literals("'a😀b'", "'e\u0301x'", "'12 3'")], 3),
    ("{0} || {1}", [S, S], 14),
    ("CONCAT({0}, {1})", [S, S], 12),
    ("CONCAT({0}, {1}, {2})", [S, ANY, S], 14),
    ("CONCAT_WS({0}, {1}, {2})", [PART, S, S], 16),
    ("POSITION({0} IN {1})", [PART, S], 14),
    ("LOCATE({0}, {1})", [PART, S], 12),
    ("LOCATE({0}, {1}, {2})", [PART, S, SMALL], 30),
    ("INSTR({0}, {1})", [S, PART], 14),
    ("INSTR({0}, {1}, {2})", [S, PART, SMALL], 24),
    ("INSTR({0}, {1}, {2}, {3})", [S, PART, SMALL, SMALL], 30),
    ("REPEAT({0}, {1})", [S, SMALL], 20),
    ("OVERLAY({0} PLACING {1} FROM {2})", [S, PART, SMALL], 24),
    ("OVERLAY({0} PLACING {1} FROM {2} FOR {3})", [S, PART, SMALL, SMALL], 30),
    ("SUBSTRING({0} FROM {1})", [S, SMALL], 16),
    ("SUBSTRING({0}, {1}, {2})", [S, INT, SMALL], 40),
    ("SUBSTR({0}, {1})", [S, INT], 20),
    ("SUBSTR({0}, {1}, {2})", [S, SMALL, INT], 24),
    ("LEFT({0}, {1})", [S, INT], 20),
    ("RIGHT({0}, {1})", [S, INT], 20),
    ("REPLACE({0}, {1}, {2})", [S, PART, PART], 24),
    ("TRANSLATE({0}, {1}, {2})", [S, PART, PART], 24),
    ("LPAD({0}, {1}, {2})", [S, SMALL, PART], 26),
    ("RPAD({0}, {1}, {2})", [S, SMALL, PART], 26),
    ("STARTSWITH({0}, {1})", [S, PART], 14),
    ("ENDSWITH({0}, {1})", [S, PART], 14),
    ("STARTSWITH({0}, {1})", [BYTES, BYTES], 8),
    ("ENDSWITH({0}, {1})", [BYTES, BYTES], 8),
    ("FROM_BASE64({0})", [_literals("'QWJj'", "''", "'bad!'", "CAST(NULL AS STRING)", "'8J+YgA=='", "'QWI'", "'QQ==='")], 7),
    ("CHR({0})", [_literals("0", "65", "255", "256", "-1", "321", "CAST(NULL AS INT)", "9223372036854775807", "128512")], 9),
    ("ASCII({0})", [_literals("'é'", "'😀'", "'\t'", "'~'")], 4),
    ("DECODE({0}, {1})", [BYTES, _literals("'UTF-8'", "'US-ASCII'", "'ISO-8859-1'", "'UTF-16'", "'bad'")], 14),
    ("CAST(ENCODE({0}, {1}) AS STRING)", [S, _literals("'UTF-8'", "'US-ASCII'", "'ISO-8859-1'", "'bad'")], 14),
    ("HEX(ENCODE({0}, {1}))", [S[:5], _literals("'UTF-8'", "'UTF-16BE'", "'UTF-16LE'")], 8),
    ("URL_DECODE({0})", [_literals("'a%20b+c'", "'%'", "'%zz'", "''", "CAST(NULL AS STRING)", "'%F0%9F%98%80'", "'%C3'")], 7),
    ("URL_ENCODE({0})", [_literals("'a b+c/ä'", "'~*-._'", "'😀'")], 3),
    ("PARSE_URL({0}, {1})", [URL, _literals("'HOST'", "'PATH'", "'QUERY'", "'REF'", "'PROTOCOL'", "'FILE'", "'AUTHORITY'",
                                          "'USERINFO'", "'bad'", "'host'")], 44),
    ("PARSE_URL({0}, 'QUERY', {1})", [URL[:4], _literals("'k'", "'k2'", "'e'", "'zz'", "CAST(NULL AS STRING)")], 14),
    ("REGEXP_EXTRACT({0}, {1})", [S, PATTERN], 24),
    ("REGEXP_EXTRACT({0}, {1}, {2})", [S, PATTERN, SMALL], 30),
    ("REGEXP_REPLACE({0}, {1}, {2})", [S, PATTERN, _literals("'x'", "'$1'", "''", "'\\'", "CAST(NULL AS STRING)")], 30),
    ("REGEXP({0}, {1})", [S, PATTERN], 22),
    ("REGEXP_COUNT({0}, {1})", [S, PATTERN], 22),
    ("REGEXP_EXTRACT_ALL({0}, {1})", [S, PATTERN], 20),
    ("REGEXP_EXTRACT_ALL({0}, {1}, {2})", [S, PATTERN, SMALL], 22),
    ("REGEXP_INSTR({0}, {1})", [S, PATTERN], 20),
    ("REGEXP_SUBSTR({0}, {1})", [S, PATTERN], 20),
    ("SPLIT_INDEX({0}, {1}, {2})", [S, PART, SMALL], 30),
    ("SPLIT_INDEX({0}, {1}, {2})", [_literals("'a,b,,c'", "','", "'a.b'"), _literals("','", "'.'", "'44'", "44", "65536"), SMALL], 24),
    ("SPLIT({0}, {1})", [S, PART], 20),
    ("SPLIT({0}, {1})", [_literals("'a,b,,c,'", "','", "'a.b|c'"), _literals("','", "'.'", "'|'")], 9),
    ("STR_TO_MAP({0})", [_literals("'a=1,b=2'", "''", "'a'", "'a=1,a=2'", "'=x'", "CAST(NULL AS STRING)", "'a=b=c'")], 7),
    ("STR_TO_MAP({0}, {1}, {2})", [_literals("'a:1;b:2'", "''", "'a.1|b.2'"), _literals("';'", "'|'", "''", "CAST(NULL AS STRING)"),
                                 _literals("':'", "'.'", "''")], 14),
    ("ELT({0}, {1}, {2})", [SMALL, S, S], 18),
    ("PRINTF({0}, {1})", [_literals("'%s'", "'%d'", "'%5.2f'", "'%x'", "'%%'", "''", "CAST(NULL AS STRING)", "'%s %s'"),
                         [N[2], N[8], N[11], N[15], S[0], S[2], B[0], DAY[0], STAMP[0], ARRAY[0]]], 30),
    ("SHA2({0}, {1})", [S, _literals("224", "256", "384", "512", "1", "0", "CAST(NULL AS INT)")], 20),
    ("{0} LIKE {1}", [S, _literals("'%'", "'_bc'", "'A%c'", "''", "'😀_'", "'__'", "CAST(NULL AS STRING)", "'a\\%'", "'%b%'")], 30),
    ("{0} LIKE {1} ESCAPE {2}", [_literals("'a%b'", "'a_b'", "'axb'", "'a\\b'"), _literals("'a!%b'", "'a!_b'", "'a\\%b'", "'a!'"),
                               _literals("'!'", "'\\'")], 16),
    ("{0} NOT LIKE {1}", [S, _literals("'%'", "'_bc'")], 10),
    ("{0} SIMILAR TO {1}", [S, _literals("'%'", "'_bc'", "'(A|B)bc'", "'[A-Z]%'", "''", "'[0-9]+'", "'a*'", "'%😀%'", "'.*'")], 30),
    ("{0} NOT SIMILAR TO {1}", [S, _literals("'A%'", "'[0-9]*'")], 8),
    ("IS_ALPHA({0})", [_literals("'abcé'", "'a b'", "'a1'", "1", "'😀'")], 5),
    ("IS_DECIMAL({0})", [_literals("'1.5'", "'-1'", "'+.5'", "'1e5'", "'1.'", "' 1'", "'0x1'", "1", "'NaN'", "'1d'")], 10),
    ("IS_DIGIT({0})", [_literals("'١٢'", "'1.5'", "'-1'", "5", "'²'")], 5),
    ("INET_ATON({0})", [_literals("'127.0.0.1'", "'127.1'", "'255.255.255.255'", "'256.0.0.1'", "'1'", "'1.2.3'", "'a.b.c.d'",
                                "'1.2.3.4.5'", "'010.0.0.1'", "'-1.0.0.0'", "'::1'")], 11),
    ("INET_NTOA({0})", [_literals("0", "2130706433", "4294967295", "4294967296", "-1", "CAST(NULL AS BIGINT)")], 6),
    ("JSON_QUOTE({0})", [_literals("'a\"b'", "'\\'", "'ä😀'", "'a\tb'", "'/'")], 5),
    ("JSON_UNQUOTE({0})", [_literals("'\"a\"'", "'\"a\\\\nb\"'", "'\"\\\\u0041\"'", "'abc'", "'\"a'", "'\"\\\\ud83d\\\\ude00\"'", "'{}'")], 7),
    ("UNHEX({0})", [_literals("'4a'", "'4'", "'zz'", "'616'")], 4),
    ("HEX({0})", [N[:11]], 11),
    ("BIN({0})", [INTEGERS], 10),
]  # fmt: skip

NUMBER_CALLS: Calls = [
    *((f"{name}({{0}})", [N], 14) for name in (
        "ABS", "SQRT", "LN", "LOG10", "LOG2", "LOG", "EXP", "CEIL", "FLOOR", "SIN", "SINH", "COS", "COSH", "TAN", "TANH",
        "COT", "ASIN", "ACOS", "ATAN", "DEGREES", "RADIANS", "SIGN", "ROUND", "TRUNCATE",
    )),
    ("CEILING({0})", [N], 6),
    ("-{0}", [N], 22),
    ("+{0}", [N[:12]], 5),
    *((f"{{0}} {operator} {{1}}", [N, N], 60) for operator in "+-*/%"),
    ("MOD({0}, {1})", [N, N], 30),
    ("POWER({0}, {1})", [N, N], 30),
    ("LOG({0}, {1})", [N, N], 24),
    ("ATAN2({0}, {1})", [N, N], 20),
    ("ROUND({0}, {1})", [N, [*SMALL, *_literals("10", "40")]], 50),
    ("TRUNCATE({0}, {1})", [N, [*SMALL, *_literals("10", "40")]], 50),
    ("PI()", [], 1),
    ("E()", [], 1),
    *((f"{{0}} {operator} {{1}}", [[*N, *S[5:6], *B[:1]], N], 26) for operator in ("=", "<>", "<", ">=")),
    ("{0} BETWEEN {1} AND {2}", [N, N, N], 20),
    ("{0} NOT BETWEEN {1} AND {2}", [N, N, N], 10),
    ("{0} BETWEEN SYMMETRIC {1} AND {2}", [N, N, N], 14),
    ("{0} IN ({1}, {2})", [N, N, N], 20),
    ("{0} NOT IN ({1}, {2})", [N, N, N], 12),
    ("RAND_INTEGER({0}) IS NOT NULL", [_literals("5", "CAST(NULL AS INT)", "0", "-1")], 4),
    ("INET_NTOA({0})", [INTEGERS], 6),
]  # fmt: skip

TIME_CALLS: Calls = [
    *((f"EXTRACT({unit} FROM {{0}})", [MOMENT], 8) for unit in UNITS),
    *((f"EXTRACT({unit} FROM {{0}})", [TIME], 2) for unit in UNITS[5:11]),
    *((f"{name}({{0}})", [[*MOMENT, *TIME[:1]]], 9) for name in (
        "YEAR", "QUARTER", "MONTH", "WEEK", "DAYOFYEAR", "DAYOFMONTH", "DAYOFWEEK", "HOUR", "MINUTE", "SECOND",
    )),
    *((f"{name}({{0}} TO {unit})", [[*STAMP, *DAY[:4], *ZONED]], 7) for name in ("FLOOR", "CEIL") for unit in (*UNITS[:9], *UNITS[11:14])),
    *((f"{name}({{0}} TO {unit})", [TIME], 2) for name in ("FLOOR", "CEIL") for unit in UNITS[5:9]),
    *((f"TIMESTAMPADD({unit}, {{0}}, {{1}})", [[*SMALL, *_literals("-13", "100")], MOMENT], 14) for unit in UNITS[:8]),
    *((f"TIMESTAMPDIFF({unit}, {{0}}, {{1}})", [MOMENT, MOMENT], 14) for unit in UNITS[:8]),
    *((f"{{0}} {sign} INTERVAL {one}", [[*MOMENT, *TIME[:3]]], 8) for sign in "+-" for one in (
        "'1' DAY", "'1' MONTH", "'13' YEAR", "'1-2' YEAR TO MONTH", "'0.001' SECOND", "'1 02:03:04.5' DAY TO SECOND", "'25' HOUR",
        "'1' WEEK", "'1' QUARTER",
    )),
    *((f"{{2}} + ({{0}} - {{1}}) {unit}", [MOMENT, MOMENT, STAMP[:2] + DAY[:1]], 9) for unit in (
        "YEAR", "MONTH", "QUARTER", "DAY", "HOUR", "SECOND", "DAY TO SECOND", "YEAR TO MONTH", "HOUR TO MINUTE", "WEEK",
    )),
    *((f"CAST(({{0}} - {{1}}) {unit} AS BIGINT)", [MOMENT[:2], MOMENT], 3) for unit in ("DAY", "MONTH", "SECOND")),
    ("DATE_FORMAT({0}, {1})", [[*STAMP, *ZONED, *S[:3], *_literals("'2020-02-29 12:13:14'", "'2020-02-29'")], _literals(
        "'yyyy-MM-dd'", "'yyyy-MM-dd HH:mm:ss.SSS'", "'yyyy/MM/dd hh a'", "'E MMM d'", "''", "'bad'", "'yyyyMMdd''T''HHmm'",
        "CAST(NULL AS STRING)", "'D w u'", "'SSSSSS'")], 44),
    ("TO_DATE({0})", [SAID], 20),
    ("TO_DATE({0}, {1})", [_literals("'2020-02-29'", "'29.02.2020'", "'bad'", "''", "'20200229'", "'2020-02-30'", "CAST(NULL AS STRING)"),
                         _literals("'yyyy-MM-dd'", "'dd.MM.yyyy'", "'yyyyMMdd'", "'yyyy'", "CAST(NULL AS STRING)")], 22),
    ("TO_TIMESTAMP({0})", [SAID], 22),
    ("TO_TIMESTAMP({0}, {1})", [_literals("'2020-02-29 12:13:14'", "'2020-02-29'", "'29.02.2020 12:13'", "'bad'", "''", "CAST(NULL AS STRING)",
                                        "'2020-02-29 12:13:14.123456'"),
                              _literals("'yyyy-MM-dd HH:mm:ss'", "'yyyy-MM-dd'", "'dd.MM.yyyy HH:mm'", "'yyyy-MM-dd HH:mm:ss.SSS'",
                                        "'yyyy-MM-dd HH:mm:ss.SSSSSS'", "'yyyy'", "CAST(NULL AS STRING)")], 34),
    ("TO_TIMESTAMP_LTZ({0}, {1})", [[*N[2:8], *N[10:12], N[15], *_literals("1709210096", "1709210096123")], _literals("0", "3", "6", "9", "1", "CAST(NULL AS INT)")], 30),
    ("TO_TIMESTAMP_LTZ({0})", [[*N[2:8], *SAID[:16]]], 14),
    ("CAST(TO_TIMESTAMP_LTZ({0}, {1}) AS TIMESTAMP(3))", [_literals("1709210096", "-1", "0", "1709210096123"), _literals("0", "3")], 8),
    ("FROM_UNIXTIME({0})", [[*N[2:8], *_literals("1709210096")]], 7),
    ("FROM_UNIXTIME({0}, {1})", [_literals("0", "-1", "1709210096"), _literals("'yyyy'", "''", "'bad'", "CAST(NULL AS STRING)", "'HH:mm'")], 12),
    ("UNIX_TIMESTAMP({0})", [SAID], 16),
    ("UNIX_TIMESTAMP({0}, {1})", [SAID[11:18], _literals("'yyyy-MM-dd'", "'yyyy-MM-dd HH:mm:ss'", "'HH:mm:ss'", "'bad'")], 16),
    ("CONVERT_TZ({0}, {1}, {2})", [_literals("'2020-02-29 12:13:14'", "'2020-02-29'", "'bad'", "CAST(NULL AS STRING)", "'1970-01-01 00:00:00'"), ZONE, ZONE], 36),
    ("({0}, {1}) OVERLAPS ({2}, {3})", [STAMP[:2] + STAMP[3:], STAMP[:2] + STAMP[3:], STAMP, [*STAMP, ("INTERVAL '1' DAY", "")]], 16),
    *((f"{{0}} {operator} {{1}}", [[*MOMENT, *TIME[:1], *_literals("'2020-02-29'")], [*MOMENT, *TIME[:2]]], 24) for operator in ("=", "<", ">=")),
    ("{0} BETWEEN {1} AND {2}", [MOMENT, MOMENT, MOMENT], 12),
    *(("TYPEOF({0})", [ANY], 20),),
]  # fmt: skip

VALUE_CALLS: Calls = [
    *((f"{{0}} {what}", [ANY], 10) for what in ("IS NULL", "IS NOT NULL")),
    *((f"{{0}} IS {what}", [B], 3) for what in ("TRUE", "FALSE", "UNKNOWN", "NOT TRUE", "NOT FALSE", "NOT UNKNOWN")),
    *((f"{{0}} {what} {{1}}", [B, B], 9) for what in ("AND", "OR", "=", "<>", "<", "IS DISTINCT FROM")),
    ("NOT {0}", [B], 3),
    *((f"{{0}} {what} {{1}}", [ANY, ANY], 24) for what in ("IS DISTINCT FROM", "IS NOT DISTINCT FROM")),
    *((f"{{0}} {what} {{1}}", [S, S], 12) for what in ("=", "<>", "<", ">", "<=", ">=")),
    *((f"{{0}} {what} {{1}}", [[*ARRAY, *MAP, *ROW], [*ARRAY[:6], *MAP[:2], *ROW]], 14) for what in ("=", "<>", "<")),
    ("{0} = {1}", [ROW, ROW], 6),
    ("{0} = {1}", [MAP, MAP], 6),
    ("{0} IN ({1}, {2})", [S, S, S], 14),
    ("{0} IN ({1}, {2})", [S, N[:8], S], 10),
    ("CASE WHEN {0} THEN {1} ELSE {2} END", [B, ANY, ANY], 40),
    ("CASE {0} WHEN {1} THEN 'x' ELSE 'longer' END", [N[:12], N[:12]], 12),
    ("CASE {0} WHEN {1} THEN 1 END", [S, S], 8),
    ("NULLIF({0}, {1})", [ANY, ANY], 36),
    ("COALESCE({0}, {1})", [ANY, ANY], 40),
    ("COALESCE({0}, {1}, {2})", [N, N, N], 14),
    ("IF({0}, {1}, {2})", [B, ANY, ANY], 40),
    ("IF({0}, {1}, {2})", [B, N, N], 16),
    ("IFNULL({0}, {1})", [ANY, ANY], 36),
    ("GREATEST({0}, {1})", [ANY, ANY], 30),
    ("LEAST({0}, {1})", [ANY, ANY], 30),
    ("GREATEST({0}, {1}, {2})", [N, N, N], 24),
    ("LEAST({0}, {1})", [N, N], 24),
    ("GREATEST({0}, {1})", [S, S], 8),
    *((f"CAST({{0}} AS {kind})", [[*ANY, *N, *TIME[1:3], *STAMP[3:], *DAY[2:4], *BYTES]], 22) for kind in TYPES),
    *((f"TRY_CAST({{0}} AS {kind})", [[*ANY, *N]], 6) for kind in TYPES),
    *((f"CAST({{0}} AS {kind})", [SAID], 18) for kind in TYPES[:20]),
    *((f"TRY_CAST({{0}} AS {kind})", [SAID], 14) for kind in TYPES[:20]),
    *(("CAST({0} AS STRING)", [[*ARRAY, *MAP, *ROW]], 22),),
]  # fmt: skip

COLLECTION_CALLS: Calls = [
    ("CARDINALITY({0})", [[*ARRAY, *MAP]], 19),
    ("ELEMENT({0})", [ARRAY], 13),
    ("{0}[{1}]", [ARRAY, SMALL], 30),
    ("{0}[{1}]", [MAP, ELEMENT], 24),
    ("{0}[{1}]", [ROW, _literals("1", "2", "0", "9", "'a'")], 10),
    ("ROW(1, 'x')[{0}]", [_literals("1", "2", "3", "0", "'EXPR$0'")], 5),
    ("{0}.a", [[("r", "r"), ("r_null", "r_null")]], 2),
    *((f"{name}({{0}}, {{1}})", [ARRAY, ELEMENT], 36) for name in (
        "ARRAY_APPEND", "ARRAY_PREPEND", "ARRAY_CONTAINS", "ARRAY_POSITION", "ARRAY_REMOVE",
    )),
    ("ARRAY_CONTAINS(ARRAY['1'], {0})", [_literals("1", "'1'", "NULL", "1.0")], 4),
    *((f"{name}({{0}})", [ARRAY], 13) for name in ("ARRAY_DISTINCT", "ARRAY_REVERSE", "ARRAY_MAX", "ARRAY_MIN", "ARRAY_SORT")),
    ("ARRAY_SORT({0}, {1})", [ARRAY, B], 20),
    ("ARRAY_SORT({0}, {1}, {2})", [ARRAY, B, B], 20),
    *((f"{name}({{0}}, {{1}})", [ARRAY, ARRAY], 30) for name in ("ARRAY_UNION", "ARRAY_CONCAT", "ARRAY_EXCEPT", "ARRAY_INTERSECT")),
    ("ARRAY_CONCAT({0}, {1}, {2})", [ARRAY[:5], ARRAY[:5], ARRAY[:5]], 12),
    ("ARRAY_CONCAT({0})", [ARRAY], 5),
    ("ARRAY_SLICE({0}, {1})", [ARRAY[:7], SMALL], 24),
    ("ARRAY_SLICE({0}, {1}, {2})", [ARRAY[:7], SMALL, SMALL], 40),
    ("ARRAY_JOIN({0}, {1})", [ARRAY, PART], 20),
    ("ARRAY_JOIN({0}, {1}, {2})", [ARRAY[3:6], PART, PART], 16),
    *((f"{name}({{0}})", [MAP], 6) for name in ("MAP_KEYS", "MAP_VALUES", "MAP_ENTRIES")),
    ("MAP_UNION({0}, {1})", [MAP, MAP], 16),
    ("MAP_UNION({0})", [MAP], 3),
    ("MAP_FROM_ARRAYS({0}, {1})", [ARRAY, ARRAY], 30),
    ("ARRAY[{0}, {1}]", [ANY, ANY], 30),
    ("MAP[{0}, {1}]", [ANY, ANY], 24),
    ("MAP['a', {0}, 'b', {1}]", [ANY, ANY], 16),
    ("ROW({0}, {1})", [ANY, ANY], 20),
]  # fmt: skip

JSON_CALLS: Calls = [
    *((f"{{0}} IS {what}", [JSON], 12) for what in (
        "JSON", "JSON VALUE", "JSON SCALAR", "JSON ARRAY", "JSON OBJECT", "NOT JSON",
    )),
    ("JSON_EXISTS({0}, {1})", [JSON, PATH], 50),
    *((f"JSON_EXISTS({{0}}, {{1}} {how} ON ERROR)", [JSON, PATH], 10) for how in ("TRUE", "FALSE", "UNKNOWN", "ERROR")),
    ("JSON_VALUE({0}, {1})", [JSON, PATH], 80),
    *((f"JSON_VALUE({{0}}, {{1}} RETURNING {kind})", [JSON, PATH], 16) for kind in ("INT", "BOOLEAN", "DOUBLE", "STRING")),
    ("JSON_VALUE({0}, {1} DEFAULT 'e' ON EMPTY DEFAULT 'x' ON ERROR)", [JSON, PATH], 30),
    ("JSON_VALUE({0}, {1} NULL ON EMPTY ERROR ON ERROR)", [JSON, PATH], 16),
    ("JSON_QUERY({0}, {1})", [JSON, PATH], 60),
    *((f"JSON_QUERY({{0}}, {{1}} {how})", [JSON, PATH], 20) for how in (
        "WITH WRAPPER", "WITH CONDITIONAL WRAPPER", "EMPTY ARRAY ON EMPTY EMPTY OBJECT ON ERROR", "RETURNING ARRAY<STRING>",
    )),
    ("JSON_STRING({0})", [[*ANY, *N, *ARRAY, *MAP, *ROW]], 60),
    ("JSON_OBJECT('k' VALUE {0})", [ANY], 24),
    ("JSON_OBJECT('k' VALUE {0} ABSENT ON NULL)", [ANY], 12),
    ("JSON_OBJECT({0} VALUE {1}, 'z' VALUE 1)", [S[:5], ANY], 12),
    ("JSON_ARRAY({0}, {1})", [ANY, ANY], 24),
    ("JSON_ARRAY({0} NULL ON NULL)", [ANY], 12),
    ("JSON_OBJECT('k' VALUE JSON({0}))", [JSON], 12),
]  # fmt: skip

VARIANT: list[Argument] = _literals(
    *(f"PARSE_JSON('{text}')" for text in (
        '{"a": 1, "b": [1, "x", null, {"c": true}], "d": {"e": 2.5}, "n": null, "s": "t"}', '[]', '{}', '12', '-1.50', '1e3',
        '"text"', '"2020-02-29"', 'true', 'null', '9223372036854775807', '9223372036854775808', '1e400',
        '0.12345678901234567890123456789012345678', '{"b": 1, "a": 2}', '[1, 2, 300, 70000, 5000000000]', '"😀"', '""',
    )),
    "CAST(NULL AS VARIANT)", "PARSE_JSON(s_num)", "PARSE_JSON(s_null)",
)  # fmt: skip
SPAN: list[Argument] = _literals(
    "INTERVAL '1' DAY", "INTERVAL '-1 02:03:04.567' DAY TO SECOND", "INTERVAL '90' MINUTE", "INTERVAL '0.001' SECOND",
    "INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '-3' MONTH", "INTERVAL '10' YEAR", "INTERVAL '400' DAY(3)",
    "(ts - ts6) SECOND", "(ts - ts6) MONTH", "CAST(NULL AS INTERVAL DAY TO SECOND)", "CAST(i3 AS INTERVAL DAY)",
)  # fmt: skip
SPANS: tuple[str, ...] = (
    "INTERVAL DAY", "INTERVAL HOUR", "INTERVAL MINUTE", "INTERVAL SECOND", "INTERVAL DAY TO SECOND", "INTERVAL DAY(3) TO SECOND(6)",
    "INTERVAL YEAR", "INTERVAL MONTH", "INTERVAL YEAR TO MONTH",
)  # fmt: skip
VARIANT_CALLS: Calls = [
    ("PARSE_JSON({0})", [JSON], 15),
    ("TRY_PARSE_JSON({0})", [JSON], 15),
    ("JSON_STRING(PARSE_JSON({0}))", [JSON], 15),
    ("JSON_STRING(TRY_PARSE_JSON({0}))", [JSON], 15),
    ("PARSE_JSON({0}, TRUE)", [_literals("""'{"a": 1, "a": 2}'""", "'1'", "s_num", "s_null")], 4),
    ("JSON_STRING(PARSE_JSON({0}))", [_literals("""'{"a": 1, "a": 2}'""", """'{"a": 1} x'""", "' [1 , 2] '", "'01'", "'{''a'': 1}'")], 5),
    ("TRY_PARSE_JSON({0}, {1})", [_literals("""'{"a": 1, "a": 2}'""", "'[1'"), _literals("TRUE", "FALSE")], 4),
    ("JSON_STRING({0})", [VARIANT], 15),
    ("{0}", [VARIANT], 15),
    *((f"JSON_STRING({{0}}{path})", [VARIANT], 6) for path in ("['a']", "['b'][2]", "[1]", "['d']['e']", "['x']", "[0]", "[i2]", "[s_abc]", "['n']", "[-1]")),
    *((f"CAST({{0}} AS {kind})", [VARIANT], 10) for kind in (
        "INT", "BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DECIMAL(10, 2)", "DATE", "TINYINT", "FLOAT", "VARCHAR(2)",
    )),
    *((f"CAST({{0}} AS {kind})", [VARIANT[:5]], 5) for kind in ("ARRAY<INT>", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "BYTES", "ROW<a INT>", "MAP<STRING, INT>", "SMALLINT", "TIME")),
    *((f"TRY_CAST({{0}} AS {kind})", [VARIANT], 6) for kind in ("INT", "BIGINT", "STRING", "BOOLEAN")),
    *((f"CAST({{0}}{path} AS {kind})", [VARIANT[:1]], 1) for path in ("['a']", "['s']", "['n']", "['b'][1]", "['b'][2]", "['d']['e']", "['x']") for kind in ("INT", "STRING", "DOUBLE", "BOOLEAN", "DECIMAL(5, 1)", "BIGINT")),
    *((f"CAST({value} AS VARIANT)", [], 1) for value in ("1", "'x'", "2.5", "TRUE", "ai", "r", "s_abc", "m", "dt", "ts", "NULL")),
    ("{0} IS NULL", [VARIANT], 6),
    ("{0} = {1}", [VARIANT[:4], VARIANT[:4]], 6),
    ("{0} < {1}", [VARIANT[3:5], VARIANT[3:5]], 2),
    ("{0} = 1", [VARIANT[3:5]], 2),
    ("COALESCE({0}, PARSE_JSON('1'))", [VARIANT], 6),
    ("CASE WHEN bo THEN {0} ELSE PARSE_JSON('1') END", [VARIANT], 4),
    ("TYPEOF({0})", [VARIANT], 3),
    ("ARRAY[{0}, {1}]", [VARIANT[:3], VARIANT[:3]], 2),
    ("{0} IS JSON", [VARIANT[:2]], 2),
    ("JSON_VALUE({0}, '$.a')", [VARIANT[:2]], 2),
    ("CARDINALITY({0})", [VARIANT[:2]], 2),
    ("{0}.a", [VARIANT[:1]], 1),
]  # fmt: skip

SPAN_CALLS: Calls = [
    ("{0}", [SPAN], 6),
    *((f"CAST({{0}} AS {kind})", [SPAN], 6) for kind in (*SPANS, "INT", "BIGINT", "DOUBLE", "DECIMAL(20, 3)", "CHAR(5)", "VARCHAR(3)")),
    *((f"CAST({{0}} AS {kind})", [[*INT[:5], ("bmax", ""), ("b7", ""), ("ti", ""), ("de", ""), ("d", ""), ("s_num", ""), ("'12'", ""), ("bo", ""), ("CAST(NULL AS INT)", "")]], 7) for kind in SPANS),
    *((f"TRY_CAST({{0}} AS {kind})", [[*INT[:3], ("s_num", ""), ("INTERVAL '1' DAY", "")]], 5) for kind in SPANS[:6]),
    ("{0} + {1}", [SPAN, SPAN], 12),
    ("{0} - {1}", [SPAN, SPAN], 12),
    ("{0} * {1}", [SPAN, [("3", "i3"), ("-1", "im"), ("2.5", "d"), ("b7", "")]], 10),
    ("{1} * {0}", [SPAN[:4], [("3", "i3"), ("-1", "im")]], 4),
    ("{0} / 2", [SPAN], 6),
    ("- {0}", [SPAN], 6),
    ("ABS({0})", [SPAN[:3]], 3),
    *((f"{{0}} {sign} {{1}}", [SPAN, SPAN], 8) for sign in ("=", "<", ">=", "<>", "IS NOT DISTINCT FROM")),
    ("{0} BETWEEN {1} AND {2}", [SPAN[:5], SPAN[:5], SPAN[:5]], 6),
    ("{0} IN (INTERVAL '1' DAY, INTERVAL '90' MINUTE)", [SPAN], 6),
    ("COALESCE({0}, {1})", [SPAN, SPAN], 6),
    ("CASE WHEN bo THEN {0} ELSE {1} END", [SPAN, SPAN], 8),
    ("NULLIF({0}, {1})", [SPAN, SPAN], 6),
    ("GREATEST({0}, {1})", [SPAN, SPAN], 4),
    ("{0} IS NULL", [SPAN], 6),
    ("TYPEOF({0})", [SPAN], 6),
    *((f"{{0}} {sign} {{1}}", [[*STAMP, *DAY, *ZONED, *TIME[:2]], SPAN], 20) for sign in "+-"),
    ("{1} + {0}", [[*STAMP[:2], *DAY[:1]], SPAN], 6),
    *((f"EXTRACT({unit} FROM {{0}})", [SPAN], 6) for unit in ("DAY", "HOUR", "SECOND", "YEAR", "MONTH", "EPOCH", "MILLISECOND")),
    ("ARRAY[{0}, {1}]", [SPAN, SPAN], 4),
    ("ROW({0}, {1})", [SPAN, SPAN], 6),
    ("MAP['k', {0}]", [SPAN], 4),
    ("CAST({0} AS STRING) || '!'", [SPAN], 4),
    ("CHAR_LENGTH({0})", [SPAN[:3]], 3),
    ("JSON_STRING({0})", [SPAN], 6),
    ("FLOOR({0})", [SPAN[:3]], 3),
    ("FLOOR({0} TO HOUR)", [SPAN[:3]], 3),
]  # fmt: skip

GROUPS: dict[str, Calls] = {
    "strings": STRING_CALLS,
    "numbers": NUMBER_CALLS,
    "times": TIME_CALLS,
    "values": VALUE_CALLS,
    "collections": COLLECTION_CALLS,
    "json": JSON_CALLS,
    "variants": VARIANT_CALLS,
    "intervals": SPAN_CALLS,
}


def _combinations(
    pools: Sequence[Sequence[Argument]], most: int, choose: random.Random
) -> list[tuple[Argument, ...]]:
    every = list(itertools.product(*pools))
    return (
        every
        if len(every) <= most
        else [every[place] for place in sorted(choose.sample(range(len(every)), most))]
    )


def expressions(seed: int = 7) -> Iterator[str]:
    """All expressions, each once, in the order of the groups."""
    choose = random.Random(seed)
    seen: set[str] = set()
    for calls in GROUPS.values():
        for template, pools, most in calls:
            for arguments in _combinations(pools, most, choose):
                with_columns = choose.random() < 0.4
                shown = [column if with_columns and column else literal for literal, column in arguments]
                text = template.format(*shown)
                if text not in seen:
                    seen.add(text)
                    yield text
