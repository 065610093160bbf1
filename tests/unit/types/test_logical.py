"""Types: equal by value, spelled as Flink and as Spark spell them, and as Arrow."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from headrace.errors import TypeInferenceError, UnsupportedFeatureError
from headrace.types import (
    DataType,
    DataTypes,
    DecimalType,
    RowField,
    RowType,
    TimestampType,
    VarCharType,
    create_arrow_schema,
    from_arrow_type,
    to_arrow_type,
)

T = DataTypes
PERSON = T.ROW([T.FIELD("id", T.BIGINT(False)), T.FIELD("tags", T.ARRAY(T.STRING()))])

SPELLINGS: list[tuple[DataType, str, str]] = [
    (T.BOOLEAN(), "BOOLEAN", "boolean"),
    (T.TINYINT(), "TINYINT", "tinyint"),
    (T.SMALLINT(), "SMALLINT", "smallint"),
    (T.INT(False), "INT NOT NULL", "int"),
    (T.BIGINT(), "BIGINT", "bigint"),
    (T.FLOAT(), "FLOAT", "float"),
    (T.DOUBLE(), "DOUBLE", "double"),
    (T.DECIMAL(10, 2), "DECIMAL(10, 2)", "decimal(10,2)"),
    (T.CHAR(3), "CHAR(3)", "string"),
    (T.VARCHAR(5), "VARCHAR(5)", "string"),
    (T.STRING(False), "STRING NOT NULL", "string"),
    (T.BINARY(4), "BINARY(4)", "binary"),
    (T.BYTES(), "BYTES", "binary"),
    (T.DATE(), "DATE", "date"),
    (T.TIME(), "TIME(0)", "time(0)"),
    (T.TIMESTAMP(3), "TIMESTAMP(3)", "timestamp_ntz"),
    (T.TIMESTAMP_LTZ(3), "TIMESTAMP_LTZ(3)", "timestamp"),
    (T.ARRAY(T.INT(False)), "ARRAY<INT NOT NULL>", "array<int>"),
    (T.MAP(T.STRING(), T.INT()), "MAP<STRING, INT>", "map<string,int>"),
    (T.MULTISET(T.STRING()), "MULTISET<STRING>", "map<string,int>"),
    (
        PERSON,
        "ROW<`id` BIGINT NOT NULL, `tags` ARRAY<STRING>>",
        "struct<`id`:bigint,`tags`:array<string>>",
    ),
    (T.INTERVAL(T.DAY(), T.SECOND(3)), "INTERVAL DAY(2) TO SECOND(3)", "interval day to second"),
    (T.INTERVAL(T.HOUR()), "INTERVAL HOUR", "interval day to second"),
    (T.INTERVAL(T.YEAR(4), T.MONTH()), "INTERVAL YEAR(4) TO MONTH", "int"),
    (T.NULL(), "NULL", "void"),
]


@pytest.mark.parametrize(("data_type", "flink", "spark"), SPELLINGS)
def test_a_type_is_spelled_as_flink_and_as_spark_spell_it(
    data_type: DataType, flink: str, spark: str
) -> None:
    assert (data_type.summary(), data_type.spark_name()) == (flink, spark)


@pytest.mark.parametrize("data_type", [case[0] for case in SPELLINGS])
def test_a_type_is_equal_by_value_and_pickles(data_type: DataType) -> None:
    copy = pickle.loads(pickle.dumps(data_type))
    assert copy == data_type
    assert hash(copy) == hash(data_type)
    if data_type != T.NULL():
        assert data_type.with_nullability(not data_type.is_nullable) != data_type


def test_parameters_and_nullability_make_types_different() -> None:
    assert VarCharType(3) != VarCharType(4)
    assert VarCharType(3) != T.CHAR(3)
    assert DecimalType(10, 2).not_null() != DecimalType(10, 2)
    assert DecimalType(10, 2).not_null().nullable() == DecimalType(10, 2)


def test_a_row_gives_its_fields_by_name_and_by_place() -> None:
    assert PERSON["id"] == PERSON[0] == RowField("id", T.BIGINT(False))
    assert [field.name for field in PERSON] == PERSON.field_names() == ["id", "tags"]
    assert PERSON.add("age", T.INT()).field_names() == ["id", "tags", "age"]
    with pytest.raises(KeyError):
        PERSON["age"]


def test_parameters_out_of_range_are_refused() -> None:
    for make in (
        lambda: DecimalType(39, 0),
        lambda: DecimalType(5, 6),
        lambda: TimestampType(10),
        lambda: VarCharType(-1),
        lambda: RowType([RowField("a", T.INT()), RowField("a", T.INT())]),
        lambda: T.INTERVAL(T.SECOND(), T.DAY()),
    ):
        with pytest.raises(TypeInferenceError):
            make()


def test_digits_of_a_second_beyond_sparks_are_refused_where_spark_would_hold_them() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"TIMESTAMP\(9\)"):
        T.TIMESTAMP(9).spark_name()


@pytest.mark.parametrize(
    "data_type",
    [
        case[0]
        for case in SPELLINGS
        if case[0].ROOT not in {"CHAR", "VARCHAR", "BINARY", "TIME", "MULTISET", "INTERVAL_DAY_TIME"}
        and case[0].ROOT not in {"INTERVAL_YEAR_MONTH", "TIMESTAMP", "TIMESTAMP_LTZ"}
    ]
    + [T.STRING(), T.TIMESTAMP(6), T.TIMESTAMP_LTZ(6), T.TIME(6)],
)
def test_types_go_to_arrow_and_back(data_type: DataType) -> None:
    assert from_arrow_type(to_arrow_type(data_type), data_type.is_nullable) == data_type


@pytest.mark.parametrize(
    ("data_type", "shown", "name"),
    [
        (T.INT(), "IntType(true)", "INT"),
        (T.DECIMAL(10, 2, False), "DecimalType(10, 2, false)", "DECIMAL"),
        (T.STRING(), "VarCharType(2147483647, true)", "VARCHAR"),
        (T.TIMESTAMP_LTZ(3), "LocalZonedTimestampType(3, true)", "LOCALZONEDTIMESTAMP"),
        (T.MAP(T.STRING(), T.INT()), "MapType(VarCharType(2147483647, true), IntType(true), true)", "MAP"),
        (PERSON, "RowType(RowField(id, BigIntType(false), ...),RowField(tags, ArrayType(VarCharType(2147483647, "
         "true), true), ...))", "ROW"),
        (T.INTERVAL(T.HOUR()), "DayTimeIntervalType(true)", "DAYTIMEINTERVAL"),
        (T.LIST_VIEW(T.INT()), "ListViewType(IntType(true))", "LISTVIEW"),
        (T.MAP_VIEW(T.INT(), T.INT()), "MapViewType(IntType(true), IntType(true))", "MAPVIEW"),
    ],
)  # fmt: skip
def test_types_print_as_in_pyflink(data_type: DataType, shown: str, name: str) -> None:
    assert (repr(data_type), str(data_type)) == (shown, name)


def test_a_field_of_a_row_prints_as_in_pyflink() -> None:
    field = T.FIELD("a", T.DECIMAL(4, 1), "about")
    assert (repr(field), str(field)) == (
        "RowField(a, DecimalType(4, 1, true), about)",
        "RowField(a, DECIMAL)",
    )


def test_columns_make_an_arrow_schema_with_their_nullability() -> None:
    schema = create_arrow_schema(["id", "at"], [T.BIGINT(False), T.TIMESTAMP(3)])
    assert schema == pa.schema([pa.field("id", pa.int64(), nullable=False), ("at", pa.timestamp("us"))])


def test_months_cross_to_python_as_a_number() -> None:
    assert to_arrow_type(T.INTERVAL(T.YEAR())) == pa.int32()


def test_an_arrow_type_that_tables_do_not_have_is_refused_by_name() -> None:
    with pytest.raises(TypeInferenceError, match="uint8"):
        from_arrow_type(pa.uint8())
