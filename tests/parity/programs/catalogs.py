"""Catalogs and the objects that describe what is in them; none of it needs a job."""

from pyflink.common import Configuration
from pyflink.table import (
    DataTypes,
    EnvironmentSettings,
    ExplainDetail,
    FormatDescriptor,
    ModuleEntry,
    PlanReference,
    Schema,
    SqlDialect,
    StreamTableEnvironment,
    TableDescriptor,
    TableEnvironment,
    TableSchema,
)
from pyflink.table.catalog import (
    CatalogBaseTable,
    CatalogDatabase,
    CatalogFunction,
    CatalogPartition,
    CatalogPartitionSpec,
    CatalogTableStatistics,
    Column,
    Constraint,
    ObjectIdentifier,
    ObjectPath,
    ResolvedSchema,
    UniqueConstraint,
)
from pyflink.table.expressions import col
from pyflink.table.udf import AggregateFunction, ScalarFunction, udaf, udf, udtf

from . import values


def _env():
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


def _batch():
    return TableEnvironment.create(EnvironmentSettings.in_batch_mode())


def _catalog():
    return _env().get_catalog("default_catalog")


def _database():
    return CatalogDatabase.create_instance({"a": "1"}, "about")


def _table():
    schema = TableSchema.builder().field("id", DataTypes.INT(False)).field("v", DataTypes.STRING()).build()
    return CatalogBaseTable.create_table(schema, [], {"connector": "datagen"}, "about")


def _stored():
    catalog = _catalog()
    catalog.create_database("db", _database(), True)
    catalog.create_table(ObjectPath("db", "t"), _table(), False)
    return catalog


def _renamed():
    catalog = _stored()
    catalog.rename_table(ObjectPath("db", "t"), "u", False)
    return catalog.list_tables("db"), catalog.table_exists(ObjectPath("db", "t"))


def _dropped():
    catalog = _stored()
    catalog.drop_table(ObjectPath("db", "t"), False)
    return catalog.list_tables("db")


def _dropped_database():
    catalog = _stored()
    catalog.drop_database("db", False)


def _dropped_missing():
    _catalog().drop_database("nothing", False)


def _altered():
    catalog = _stored()
    catalog.alter_database("db", CatalogDatabase.create_instance({"b": "2"}, "more"), False)
    return catalog.get_database("db").get_properties()


def _functions():
    catalog = _stored()
    path = ObjectPath("db", "f")
    catalog.create_function(path, CatalogFunction.create_instance("m.f", "Python"), False)
    before = (
        catalog.list_functions("db"),
        catalog.function_exists(path),
        catalog.get_function(path).get_class_name(),
    )
    catalog.drop_function(path, False)
    return before, catalog.list_functions("db")


def _with_tables():
    env = _env()
    env.execute_sql(
        "CREATE TABLE t (id INT NOT NULL, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'datagen')"
    )
    env.execute_sql("CREATE TEMPORARY TABLE tt (id INT) WITH ('connector' = 'datagen')")
    env.execute_sql("CREATE VIEW v AS SELECT id FROM t")
    env.execute_sql("CREATE TEMPORARY VIEW tv AS SELECT id FROM t")
    return env


def _all_lists():
    env = _with_tables()
    return [
        sorted(each)
        for each in (
            env.list_tables(),
            env.list_views(),
            env.list_temporary_tables(),
            env.list_temporary_views(),
            env.list_databases(),
            env.list_catalogs(),
            env.list_modules(),
        )
    ]


def _drops():
    env = _with_tables()
    return (
        env.drop_temporary_table("tt"),
        env.drop_temporary_table("tt"),
        env.drop_temporary_view("tv"),
        env.drop_view("v"),
        env.drop_table("t"),
        sorted(env.list_tables()),
    )


def _drop_missing():
    return _env().drop_table("nothing")


def _used():
    env = _env()
    env.execute_sql("CREATE DATABASE other")
    env.use_database("other")
    return env.get_current_catalog(), env.get_current_database(), env.list_tables()


def _use_missing():
    _env().use_database("nothing")


def _use_missing_catalog():
    _env().use_catalog("nothing")


def _resolved():
    return _with_tables().from_path("t").get_resolved_schema()


def _timed():
    env = _env()
    env.execute_sql(
        "CREATE TABLE timed (a INT, ts TIMESTAMP(3), b AS a + 1, p AS PROCTIME(), "
        "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'datagen')"
    )
    return env.from_path("timed")


def _view():
    env = _with_tables()
    env.create_temporary_view("mine", env.from_path("t").select(col("id")))
    return env.from_path("mine").get_schema().get_field_names()


def _view_twice():
    env = _with_tables()
    env.create_temporary_view("mine", env.from_path("t"))
    env.create_temporary_view("mine", env.from_path("t"))


def _described():
    env = _env()
    env.create_temporary_table(
        "made",
        TableDescriptor.for_connector("datagen")
        .schema(
            Schema.new_builder().column("a", DataTypes.BIGINT()).column_by_expression("b", "a + 1").build()
        )
        .option("number-of-rows", "3")
        .build(),
    )
    return env.from_path("made").get_schema().get_field_names(), env.list_temporary_tables()


def _created_twice():
    env = _env()
    descriptor = (
        TableDescriptor.for_connector("datagen")
        .schema(Schema.new_builder().column("a", "INT").build())
        .build()
    )
    env.create_table("made", descriptor)
    env.create_table("made", descriptor)


def _created_twice_quietly():
    env = _env()
    descriptor = (
        TableDescriptor.for_connector("datagen")
        .schema(Schema.new_builder().column("a", "INT").build())
        .build()
    )
    env.create_table("made", descriptor)
    env.create_table("made", descriptor, True)
    return env.list_tables()


class Named(ScalarFunction):
    """A function in a class."""

    def eval(self, value):
        return value

    def is_deterministic(self):
        return False


class Summed(AggregateFunction):
    """An aggregate in a class."""

    def create_accumulator(self):
        return [0]

    def accumulate(self, accumulator, value):
        accumulator[0] += value

    def get_value(self, accumulator):
        return accumulator[0]


def _registered():
    env = _env()
    env.create_temporary_system_function("twice", udf(lambda x: x * 2, result_type=DataTypes.INT()))
    env.create_temporary_function("thrice", udf(lambda x: x * 3, result_type=DataTypes.INT()))
    before = sorted(env.list_user_defined_functions())
    return (
        before,
        env.drop_temporary_system_function("twice"),
        env.drop_temporary_function("thrice"),
        sorted(env.list_user_defined_functions()),
    )


def _drop_unknown_function():
    return _env().drop_temporary_system_function("nothing"), _env().drop_function("nothing")


def _modules():
    env = _env()
    env.use_modules("core")
    full = [str(each) for each in env.list_full_modules()]
    env.unload_module("core")
    return full, env.list_modules()


def _unload_unknown():
    _env().unload_module("nothing")


def _set(key, value):
    env = _env()
    env.get_config().set(key, value)
    return env.get_config().get(key, "none")


def _zone():
    config = _env().get_config()
    config.set_local_timezone("Asia/Shanghai")
    return config.get_local_timezone()


def _retention():
    from datetime import timedelta

    config = _env().get_config()
    config.set_idle_state_retention(timedelta(hours=1))
    return config.get_idle_state_retention()


def _dialect():
    config = _env().get_config()
    before = config.get_sql_dialect()
    config.set_sql_dialect(SqlDialect.HIVE)
    return before == SqlDialect.DEFAULT, config.get_sql_dialect() == SqlDialect.HIVE


def _settings():
    settings = (
        EnvironmentSettings.new_instance()
        .in_batch_mode()
        .with_built_in_catalog_name("c")
        .with_built_in_database_name("d")
        .build()
    )
    return (
        settings.get_built_in_catalog_name(),
        settings.get_built_in_database_name(),
        settings.is_streaming_mode(),
    )


def _configured():
    config = Configuration()
    config.set_string("table.exec.mini-batch.size", "7")
    settings = EnvironmentSettings.new_instance().with_configuration(config).build()
    return TableEnvironment.create(settings).get_config().get("table.exec.mini-batch.size", "none")


def _shown(statement):
    result = _with_tables().execute_sql(statement)
    return [list(row) for row in result.collect()]


def _schema_of(query):
    return str(_with_tables().sql_query(query).get_resolved_schema())


def _old_schema_of(query):
    return str(_with_tables().sql_query(query).get_schema())


def _partition_spec():
    return CatalogPartitionSpec({"a": "1", "b": "2"})


def _columns():
    return [
        Column.physical("a", DataTypes.INT()),
        Column.physical("b", DataTypes.STRING().not_null()).with_comment("about"),
        Column.metadata("m", DataTypes.BIGINT(), "key", True),
    ]


values(
    default_database=lambda: _catalog().get_default_database(),
    databases=lambda: _catalog().list_databases(),
    database_exists=lambda: (_catalog().database_exists("default_database"), _catalog().database_exists("x")),
    database=lambda: (_database().get_properties(), _database().get_comment()),
    database_copied=lambda: (_database().copy().get_comment(), _database().copy().get_properties()),
    database_description=lambda: (_database().get_description(), _database().get_detailed_description()),
    database_stored=lambda: _stored().get_database("db").get_properties(),
    database_comment=lambda: _stored().get_database("db").get_comment(),
    database_altered=_altered,
    database_dropped=_dropped_database,
    database_missing=_dropped_missing,
    database_unknown=lambda: _catalog().get_database("nothing"),
    database_twice=lambda: _stored().create_database("db", _database(), False),
    table_options=lambda: _table().get_options(),
    table_comment=lambda: (_table().get_comment(), _table().copy().get_comment()),
    table_schema=lambda: str(_table().get_unresolved_schema()),
    table_stored=lambda: _stored().list_tables("db"),
    table_found=lambda: _stored().get_table(ObjectPath("db", "t")).get_options(),
    table_found_schema=lambda: str(_stored().get_table(ObjectPath("db", "t")).get_unresolved_schema()),
    table_missing=lambda: _stored().get_table(ObjectPath("db", "x")),
    table_twice=lambda: _stored().create_table(ObjectPath("db", "t"), _table(), False),
    table_renamed=_renamed,
    table_dropped=_dropped,
    tables_of_missing=lambda: _catalog().list_tables("nothing"),
    views_of=lambda: _stored().list_views("db"),
    functions_of=_functions,
    function_missing=lambda: _stored().get_function(ObjectPath("db", "x")),
    function_parts=lambda: (
        CatalogFunction.create_instance("m.f").get_class_name(),
        str(CatalogFunction.create_instance("m.f").get_function_language()),
    ),
    partition=lambda: (
        CatalogPartition.create_instance({"a": "1"}, "c").get_properties(),
        CatalogPartition.create_instance({"a": "1"}, "c").get_comment(),
    ),
    partition_spec=lambda: _partition_spec().get_partition_spec(),
    partition_spec_equal=lambda: (_partition_spec() == _partition_spec(), str(_partition_spec())),
    path=lambda: (str(ObjectPath("a", "b")), ObjectPath("a", "b").get_full_name()),
    path_parts=lambda: (ObjectPath("a", "b").get_database_name(), ObjectPath("a", "b").get_object_name()),
    path_parsed=lambda: str(ObjectPath.from_string("a.b")),
    path_wrong=lambda: ObjectPath.from_string("a"),
    path_order=lambda: (
        ObjectPath("a", "b") < ObjectPath("a", "c"),
        ObjectPath("a", "b") == ObjectPath("a", "b"),
        ObjectPath("a", "b").compare_to(ObjectPath("a", "c")),
    ),
    identifier=lambda: (
        str(ObjectIdentifier.of("a", "b", "c")),
        ObjectIdentifier.of("a", "b", "c").as_serializable_string(),
        ObjectIdentifier.of("a", "b", "c").as_summary_string(),
        ObjectIdentifier.of("a", "b", "c").to_list(),
        str(ObjectIdentifier.of("a", "b", "c").to_object_path()),
    ),
    identifier_equal=lambda: ObjectIdentifier.of("a", "b", "c") == ObjectIdentifier.of("a", "b", "c"),
    identifier_odd=lambda: ObjectIdentifier.of("a b", "b`", "c").as_serializable_string(),
    statistics=lambda: (
        CatalogTableStatistics(1, 2, 3, 4, {"a": "b"}).get_row_count(),
        CatalogTableStatistics(1, 2, 3, 4, {"a": "b"}).get_total_size(),
        CatalogTableStatistics(1, 2, 3, 4, {"a": "b"}).get_raw_data_size(),
        CatalogTableStatistics(1, 2, 3, 4, {"a": "b"}).get_properties(),
    ),
    columns=lambda: [str(each) for each in _columns()],
    columns_summary=lambda: [each.as_summary_string() for each in _columns()],
    columns_kinds=lambda: [(each.is_physical(), each.is_persisted()) for each in _columns()],
    columns_comments=lambda: [each.get_comment() for each in _columns()],
    columns_extras=lambda: [each.explain_extras() for each in _columns()],
    columns_types=lambda: [repr(each.get_data_type()) for each in _columns()],
    column_renamed=lambda: [str(each.rename("z")) for each in _columns()],
    column_retyped=lambda: [str(each.copy(DataTypes.DOUBLE())) for each in _columns()],
    column_equal=lambda: _columns()[0] == Column.physical("a", DataTypes.INT()),
    metadata_parts=lambda: (_columns()[2].get_metadata_key(), _columns()[2].is_virtual()),
    key=lambda: (
        UniqueConstraint.primary_key("pk", ["a", "b"]).get_columns(),
        UniqueConstraint.primary_key("pk", ["a", "b"]).get_name(),
        UniqueConstraint.primary_key("pk", ["a", "b"]).is_enforced(),
        UniqueConstraint.primary_key("pk", ["a", "b"]).as_summary_string(),
    ),
    key_type=lambda: (
        UniqueConstraint.primary_key("pk", ["a"]).get_type_string(),
        [each.name for each in Constraint.ConstraintType],
    ),
    resolved=lambda: str(_resolved()),
    resolved_parts=lambda: (
        _resolved().get_column_count(),
        _resolved().get_column_names(),
        _resolved().get_watermark_specs(),
        list(_resolved().get_primary_key_indexes()),
    ),
    resolved_key=lambda: _resolved().get_primary_key().get_columns(),
    resolved_key_text=lambda: _resolved().get_primary_key().as_summary_string(),
    resolved_of_query=lambda: str(_with_tables().from_path("t").select(col("id")).get_resolved_schema()),
    resolved_of_view=lambda: str(_with_tables().from_path("v").get_resolved_schema()),
    resolved_timed=lambda: str(_timed().get_resolved_schema()),
    resolved_timed_query=lambda: str(_timed().where(col("a") > 1).get_resolved_schema()),
    resolved_timed_marks=lambda: [str(each) for each in _timed().get_resolved_schema().get_watermark_specs()],
    resolved_timed_columns=lambda: [str(each) for each in _timed().get_resolved_schema().get_columns()],
    resolved_types=lambda: [repr(each) for each in _resolved().get_column_data_types()],
    resolved_column=lambda: (str(_resolved().get_column(0)), str(_resolved().get_column("v"))),
    resolved_no_column=lambda: _resolved().get_column("x"),
    resolved_rows=lambda: [
        repr(_resolved().to_source_row_data_type()),
        repr(_resolved().to_physical_row_data_type()),
        repr(_resolved().to_sink_row_data_type()),
    ],
    resolved_made=lambda: str(ResolvedSchema.of(_columns()[:2])),
    resolved_physical=lambda: str(ResolvedSchema.physical(["a", "b"], [DataTypes.INT(), DataTypes.STRING()])),
    resolved_equal=lambda: _resolved() == _resolved(),
    lists=_all_lists,
    drops=_drops,
    drop_missing=_drop_missing,
    used=_used,
    use_missing=_use_missing,
    use_missing_catalog=_use_missing_catalog,
    view=_view,
    view_twice=_view_twice,
    described=_described,
    created_twice=_created_twice,
    created_twice_quietly=_created_twice_quietly,
    registered=_registered,
    drop_unknown_function=_drop_unknown_function,
    modules=_modules,
    module_entry=lambda: (
        str(ModuleEntry("core", True)),
        ModuleEntry("core", True) == ModuleEntry("core", True),
    ),
    unload_unknown=_unload_unknown,
    option_set=lambda: _set("table.exec.state.ttl", "1 h"),
    option_unset=lambda: _env().get_config().get("table.exec.mini-batch.size", "none"),
    zone=_zone,
    zone_unknown=lambda: _env().get_config().set_local_timezone("Nowhere/Town"),
    retention=_retention,
    dialect=_dialect,
    python_executable=lambda: _env().get_config().get_python_executable(),
    settings=_settings,
    settings_default=lambda: (
        EnvironmentSettings.in_streaming_mode().get_built_in_catalog_name(),
        EnvironmentSettings.in_streaming_mode().get_built_in_database_name(),
        EnvironmentSettings.in_streaming_mode().is_streaming_mode(),
        EnvironmentSettings.in_batch_mode().is_streaming_mode(),
    ),
    settings_configured=_configured,
    settings_configuration=lambda: (
        EnvironmentSettings.in_batch_mode().get_configuration().get_string("execution.runtime-mode", "none")
    ),
    show_tables=lambda: sorted(_shown("SHOW TABLES")),
    show_views=lambda: sorted(_shown("SHOW VIEWS")),
    show_databases=lambda: _shown("SHOW DATABASES"),
    show_catalogs=lambda: _shown("SHOW CATALOGS"),
    show_modules=lambda: _shown("SHOW MODULES"),
    show_columns=lambda: _shown("SHOW COLUMNS FROM t"),
    show_create=lambda: _shown("SHOW CREATE TABLE t"),
    show_create_view=lambda: _shown("SHOW CREATE VIEW v"),
    show_current=lambda: _shown("SHOW CURRENT DATABASE"),
    describe=lambda: _shown("DESCRIBE t"),
    describe_view=lambda: _shown("DESC v"),
    result_rows=lambda: _shown("CREATE TABLE x (a INT) WITH ('connector' = 'datagen')"),
    schema_of_query=lambda: _schema_of("SELECT id, v, id + 1 AS n, CAST(id AS DECIMAL(10, 2)) AS d FROM t"),
    schema_of_aggregate=lambda: _schema_of(
        "SELECT v, COUNT(*) AS n, SUM(id) AS s, AVG(id) AS a FROM t GROUP BY v"
    ),
    schema_of_texts=lambda: _schema_of(
        "SELECT 'x' AS a, UPPER(v) AS b, v || 'x' AS c, CHAR_LENGTH(v) AS d FROM t"
    ),
    schema_of_times=lambda: _schema_of(
        "SELECT CURRENT_TIMESTAMP AS a, CURRENT_DATE AS b, TIMESTAMP '2024-01-01 00:00:00' AS c"
    ),
    schema_of_nested=lambda: _schema_of("SELECT ARRAY[id] AS a, MAP['k', id] AS b, ROW(id, v) AS c FROM t"),
    schema_of_case=lambda: _schema_of(
        "SELECT CASE WHEN id > 1 THEN 'yes' ELSE 'no' END AS a, COALESCE(v, 'x') AS b, id > 1 AS c FROM t"
    ),
    old_schema=lambda: _old_schema_of("SELECT id, v, CAST(id AS DECIMAL(10, 2)) AS d FROM t"),
    old_schema_types=lambda: [
        repr(each) for each in _with_tables().from_path("t").get_schema().get_field_data_types()
    ],
    old_schema_row=lambda: repr(
        TableSchema.builder()
        .field("a", DataTypes.INT())
        .field("b", DataTypes.STRING())
        .build()
        .to_row_data_type()
    ),
    old_schema_text=lambda: str(
        TableSchema.builder().field("a", DataTypes.INT()).field("b", DataTypes.DECIMAL(5, 2)).build()
    ),
    old_schema_names=lambda: TableSchema(["a", "b"], [DataTypes.INT(), DataTypes.STRING()]).get_field_name(1),
    schema_copied=lambda: str(
        Schema.new_builder().from_schema(Schema.new_builder().column("a", "INT").build()).build()
    ),
    schema_of_fields=lambda: str(
        Schema.new_builder().from_fields(["a", "b"], [DataTypes.INT(), DataTypes.STRING()]).build()
    ),
    schema_of_row=lambda: str(
        Schema.new_builder()
        .from_row_data_type(DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())]))
        .build()
    ),
    schema_named_key=lambda: str(
        Schema.new_builder().column("a", DataTypes.INT(False)).primary_key_named("pk", "a").build()
    ),
    schema_resolved=lambda: str(Schema.new_builder().from_resolved_schema(_resolved()).build()),
    format_name=lambda: (
        FormatDescriptor.for_format("json").option("a", "b").build().get_format(),
        FormatDescriptor.for_format("json").option("a", "b").build().get_options(),
    ),
    table_text=lambda: str(_with_tables().from_path("t")).startswith("UnnamedTable$"),
    table_columns=lambda: _with_tables().from_path("t").get_schema().get_field_names(),
    column_attribute=lambda: str(_with_tables().from_path("t").id),
    column_unknown=lambda: str(_with_tables().from_path("t").nothing),
    path_unknown=lambda: _env().from_path("nothing"),
    query_unknown=lambda: _env().sql_query("SELECT * FROM nothing"),
    query_wrong=lambda: _env().sql_query("SELEC 1"),
    query_not_query=lambda: _env().sql_query("SHOW TABLES"),
    select_unknown=lambda: _with_tables().from_path("t").select(col("nothing")),
    statement_unknown=lambda: _env().execute_sql("DROP TABLE nothing"),
    explain_details=lambda: sorted(each for each in vars(ExplainDetail) if each.isupper()),
    plan_reference=lambda: type(PlanReference.from_file("/no/such/plan.json")).__name__,
    udf_name=lambda: (
        udf(lambda x: x, result_type=DataTypes.INT())._name,
        udf(Named(), result_type=DataTypes.INT())._name,
    ),
    udf_deterministic=lambda: udf(Named(), result_type="INT")._deterministic,
    udf_wrong_result=lambda: udf(lambda x: x, result_type=5),
    udf_wrong=lambda: udf("x", result_type=DataTypes.INT()),
    udf_contradicts=lambda: udf(Named(), result_type=DataTypes.INT(), deterministic=True),
    udf_wrong_type=lambda: udf(lambda x: x, result_type=DataTypes.INT(), func_type="other"),
    udf_wrong_inputs=lambda: udf(lambda x: x, input_types=5, result_type=DataTypes.INT()),
    udtf_wrong=lambda: udtf("x", result_types=[DataTypes.INT()]),
    udaf_wrong=lambda: udaf("x", result_type=DataTypes.INT(), accumulator_type=DataTypes.INT()),
    udaf_name=lambda: (
        udaf(Summed(), result_type=DataTypes.INT(), accumulator_type=DataTypes.ARRAY(DataTypes.INT()))._name
    ),
    environment_types=lambda: [
        type(_env()).__name__,
        type(_batch()).__name__,
        StreamTableEnvironment.__name__,
    ],
    from_elements_names=lambda: _env().from_elements([(1, "a")]).get_schema().get_field_names(),
    from_elements_named=lambda: _env().from_elements([(1, "a")], ["x", "y"]).get_schema().get_field_names(),
    from_elements_types=lambda: [
        repr(each)
        for each in _env()
        .from_elements([(1, "a", 1.5, True, None, b"x")], list("abcdef")[:4])
        .get_schema()
        .get_field_data_types()
    ],
    from_elements_types_given=lambda: str(
        _env()
        .from_elements(
            [(1, "a")],
            DataTypes.ROW(
                [DataTypes.FIELD("x", DataTypes.BIGINT()), DataTypes.FIELD("y", DataTypes.STRING())]
            ),
        )
        .get_schema()
    ),
    from_elements_empty=lambda: _env().from_elements([]),
    from_elements_wrong=lambda: _env().from_elements(
        [("x",)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())])
    ),
)
