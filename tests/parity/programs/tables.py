"""Data types, schemas, descriptors and the text of expressions, none of which needs a job."""

from pyflink.table import DataTypes, FormatDescriptor, Schema, TableDescriptor, TableSchema
from pyflink.table.expressions import (
    array,
    call_sql,
    coalesce,
    col,
    concat,
    current_date,
    if_then_else,
    lit,
    map_,
    null_of,
    pi,
    row,
)

from . import values

_A, _B = col("a"), col("b")

values(
    int_type=lambda: repr(DataTypes.INT()),
    not_null_type=lambda: repr(DataTypes.INT(False)),
    string_type=lambda: repr(DataTypes.STRING()),
    varchar_type=lambda: repr(DataTypes.VARCHAR(5)),
    decimal_type=lambda: repr(DataTypes.DECIMAL(10, 2)),
    timestamp_type=lambda: repr(DataTypes.TIMESTAMP(3)),
    ltz_type=lambda: repr(DataTypes.TIMESTAMP_LTZ(3)),
    array_type=lambda: repr(DataTypes.ARRAY(DataTypes.INT())),
    map_type=lambda: repr(DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())),
    row_type=lambda: repr(DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())])),
    types_equal=lambda: DataTypes.INT() == DataTypes.INT(),
    types_unequal=lambda: DataTypes.INT() == DataTypes.INT(False),
    not_null=lambda: DataTypes.INT().not_null() == DataTypes.INT(False),
    row_names=lambda: DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())]).field_names(),
    column=lambda: str(_A),
    equals=lambda: str(_A == _B),
    not_equals=lambda: str(_A != 1),
    greater=lambda: str(_A > 1),
    less_or_equal=lambda: str(_A <= 1.5),
    plus=lambda: str(_A + 1),
    minus=lambda: str(_A - _B),
    times=lambda: str(_A * 2),
    divide=lambda: str(_A / _B),
    modulo=lambda: str(_A % 3),
    power=lambda: str(_A**2),
    negated=lambda: str(-_A),
    both=lambda: str((_A > 1) & (_B < 2)),
    either=lambda: str((_A > 1) | (_B < 2)),
    inverted=lambda: str(~(_A > 1)),
    literal_int=lambda: str(lit(1)),
    literal_text=lambda: str(lit("x")),
    literal_float=lambda: str(lit(1.5)),
    literal_boolean=lambda: str(lit(True)),
    alias=lambda: str(_A.alias("x")),
    aliases=lambda: str(_A.alias("x", "y")),
    cast=lambda: str(_A.cast(DataTypes.INT())),
    is_null=lambda: str(_A.is_null),
    is_not_null=lambda: str(_A.is_not_null),
    sum=lambda: str(_A.sum),
    count=lambda: str(_A.count),
    minimum=lambda: str(_A.min),
    average=lambda: str(_A.avg),
    distinct=lambda: str(_A.count.distinct),
    upper=lambda: str(_A.upper_case),
    substring=lambda: str(_A.substring(1, 2)),
    like=lambda: str(_A.like("x%")),
    in_list=lambda: str(_A.in_(1, 2, 3)),
    between=lambda: str(_A.between(1, 2)),
    ascending=lambda: str(_A.asc),
    descending=lambda: str(_A.desc),
    absolute=lambda: str(_A.abs),
    floor=lambda: str(_A.floor()),
    rounded=lambda: str(_A.round(2)),
    get_field=lambda: str(_A.get("f")),
    at_index=lambda: str(_A.at(1)),
    char_length=lambda: str(_A.char_length),
    concatenated=lambda: str(concat(_A, "x")),
    coalesced=lambda: str(coalesce(_A, 1)),
    condition=lambda: str(if_then_else(_A > 1, "x", "y")),
    array_of=lambda: str(array(1, 2)),
    map_of=lambda: str(map_("k", 1)),
    row_of=lambda: str(row(1, "a")),
    null=lambda: str(null_of(DataTypes.INT())),
    pi_number=lambda: str(pi()),
    today=lambda: str(current_date()),
    sql_text=lambda: str(call_sql("a + 1")),
    json_value=lambda: str(_A.json_value("$.x", DataTypes.STRING())),
    to_date=lambda: str(_A.to_date),
    schema=lambda: str(
        Schema.new_builder().column("a", DataTypes.INT()).column("b", DataTypes.STRING()).build()
    ),
    schema_key=lambda: str(Schema.new_builder().column("a", DataTypes.INT(False)).primary_key("a").build()),
    schema_computed=lambda: str(
        Schema.new_builder().column("a", DataTypes.INT()).column_by_expression("b", "a + 1").build()
    ),
    schema_metadata=lambda: str(Schema.new_builder().column_by_metadata("t", DataTypes.TIMESTAMP(3)).build()),
    schema_watermark=lambda: str(
        Schema.new_builder()
        .column("t", DataTypes.TIMESTAMP(3))
        .watermark("t", "t - INTERVAL '1' SECOND")
        .build()
    ),
    schemas_equal=lambda: (
        Schema.new_builder().column("a", "INT").build() == Schema.new_builder().column("a", "INT").build()
    ),
    descriptor=lambda: str(TableDescriptor.for_connector("print").option("a", "b").build()),
    descriptor_options=lambda: TableDescriptor.for_connector("print").option("a", "b").build().get_options(),
    schema_of_expressions=lambda: str(
        Schema.new_builder()
        .column("a", DataTypes.INT())
        .column("t", "TIMESTAMP(3)")
        .column_by_metadata("m", "STRING", "k", True)
        .column_by_expression("b", _A + 1)
        .watermark("t", col("t") - lit(5).seconds)
        .primary_key("a", "b")
        .build()
    ),
    descriptor_of_all=lambda: str(
        TableDescriptor.for_connector("print")
        .schema(Schema.new_builder().column("a", DataTypes.INT()).build())
        .option("z", "1")
        .partitioned_by("a")
        .comment("it's")
        .format(FormatDescriptor.for_format("json").option("x", "y").build())
        .build()
    ),
    format_text=lambda: str(FormatDescriptor.for_format("json").option("x", "y").option("a", "b").build()),
    descriptor_schema=lambda: TableDescriptor.for_connector("print").build().get_schema(),
    descriptor_keys=lambda: (
        TableDescriptor.for_connector("print").partitioned_by("a").build().get_partition_keys()
    ),
    descriptor_comment=lambda: TableDescriptor.for_connector("print").comment("c").build().get_comment(),
    table_schema_names=lambda: TableSchema.builder().field("a", DataTypes.INT()).build().get_field_names(),
    table_schema_count=lambda: TableSchema.builder().field("a", DataTypes.INT()).build().get_field_count(),
    table_schema_type=lambda: str(
        TableSchema.builder().field("a", DataTypes.INT()).build().get_field_data_type("a")
    ),
)
