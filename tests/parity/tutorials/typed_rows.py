"""Values of declared types, as they are printed."""

from datetime import date, datetime
from decimal import Decimal

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

ROWS = [
    Row(
        1,
        "a",
        1.5,
        True,
        None,
        date(2026, 1, 2),
        datetime(2026, 1, 2, 3, 4, 5, 678000),  # noqa: DTZ001
        Decimal("1.50"),
        [1, 2],
        {"k": 1.0},
    ),
    Row(
        2,
        "b\tc",
        1e20,
        False,
        b"xy",
        date(1969, 12, 31),
        datetime(1969, 12, 31, 23, 59, 59),  # noqa: DTZ001
        Decimal("-0.1"),
        [],
        {},
    ),
]
KIND = Types.ROW_NAMED(
    ["id", "text", "number", "flag", "raw", "day", "at", "price", "list", "map"],
    [
        Types.INT(), Types.STRING(), Types.FLOAT(), Types.BOOLEAN(),
        Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.SQL_DATE(),
        Types.SQL_TIMESTAMP(), Types.BIG_DEC(), Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.DOUBLE()),
    ],
)  # fmt: skip


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    rows = env.from_collection(ROWS, type_info=KIND)
    rows.print("typed")
    rows.map(lambda row: (row.id, row.number, [row.flag, None])).print("untyped")
    rows.map(lambda row: row.id / 3, output_type=Types.FLOAT()).print("float")
    rows.map(lambda row: row.id * 1e-5, output_type=Types.DOUBLE()).print("double")
    rows.map(lambda row: [row.text, row.text * 2], output_type=Types.OBJECT_ARRAY(Types.STRING())).print(
        "array"
    )
    rows.key_by(lambda row: row.flag).map(
        lambda row: {row.text: row.id}, output_type=Types.MAP(Types.STRING(), Types.INT())
    ).print()
    env.execute("typed rows")


if __name__ == "__main__":
    main()
