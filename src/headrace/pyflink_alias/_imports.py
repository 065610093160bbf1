"""Names that PyFlink's modules import from each other, and where the alias finds them.

Written by tests/parity/record_imports.py: modules with the modules whose names they have.
"""

from __future__ import annotations

from typing import Final

#: Modules below `pyflink`, each with the modules where its further names are.
IMPORTS: Final[dict[str, dict[str, str]]] = {
    "common": {
        "datastream.formats.avro": "AvroRowDeserializationSchema AvroRowSerializationSchema",
        "datastream.formats.csv": "CsvRowDeserializationSchema CsvRowSerializationSchema",
        "datastream.formats.json": "JsonRowDeserializationSchema JsonRowSerializationSchema",
    },
    "common.job_client": {
        "common.completable_future": "CompletableFuture",
        "common.job_execution_result": "JobExecutionResult",
        "common.job_id": "JobID",
        "common.job_status": "JobStatus",
    },
    "common.job_execution_result": {
        "common.job_id": "JobID",
    },
    "common.watermark_strategy": {
        "common.time": "Duration",
    },
    "datastream.async_data_stream": {
        "common.time": "Time",
        "common.typeinfo": "TypeInformation",
        "datastream.data_stream": "DataStream",
        "datastream.functions": "AsyncFunction AsyncFunctionDescriptor AsyncRetryStrategy",
    },
    "datastream.async_retry_strategies": {
        "datastream.functions": "AsyncRetryPredicate AsyncRetryStrategy",
    },
    "datastream.checkpoint_config": {
        "common.time": "Duration",
        "datastream.checkpointing_mode": "CheckpointingMode",
        "datastream.externalized_checkpoint_retention": "ExternalizedCheckpointRetention",
    },
    "datastream.connectors": {
        "datastream.connectors.base": "DeliveryGuarantee Sink Source",
        "datastream.connectors.dynamic_kafka": (
            "DynamicKafkaSource DynamicKafkaSourceBuilder KafkaMetadataService "
            "KafkaRecordDeserializationSchema KafkaStreamSetSubscriber KafkaStreamSubscriber "
            "SingleClusterTopicMetadataService StreamPatternSubscriber"
        ),
        "datastream.connectors.file_system": (
            "BucketAssigner FileEnumeratorProvider FileSink FileSource FileSourceBuilder "
            "FileSplitAssignerProvider OutputFileConfig RollingPolicy StreamFormat StreamingFileSink"
        ),
        "datastream.connectors.jdbc": "JdbcConnectionOptions JdbcExecutionOptions JdbcSink",
        "datastream.connectors.kafka": "FlinkKafkaConsumer FlinkKafkaProducer KafkaSource Semantic",
        "datastream.connectors.number_seq": "NumberSequenceSource",
        "datastream.connectors.pulsar": "PulsarSource PulsarSourceBuilder StartCursor StopCursor",
        "datastream.connectors.rabbitmq": "RMQConnectionConfig RMQSink RMQSource",
    },
    "datastream.connectors.cassandra": {
        "common.time": "Duration",
    },
    "datastream.connectors.dynamic_kafka": {
        "common.serialization": "DeserializationSchema",
        "datastream.connectors.base": "Source",
        "datastream.connectors.kafka": "KafkaOffsetsInitializer",
    },
    "datastream.connectors.elasticsearch": {
        "datastream.connectors.base": "DeliveryGuarantee Sink",
    },
    "datastream.connectors.file_system": {
        "common.serialization": "BulkWriterFactory Encoder RowDataBulkWriterFactory",
        "common.time": "Duration",
        "datastream.connectors.base": "Sink Source StreamTransformer SupportsPreprocessing",
        "datastream.functions": "SinkFunction",
    },
    "datastream.connectors.hybrid_source": {
        "datastream.connectors.base": "Source",
    },
    "datastream.connectors.jdbc": {
        "common.typeinfo": "RowTypeInfo",
        "datastream.functions": "SinkFunction",
    },
    "datastream.connectors.kafka": {
        "common.serialization": "DeserializationSchema SerializationSchema",
        "common.typeinfo": "TypeInformation Types",
        "common.types": "Row",
        "datastream.connectors.base": "DeliveryGuarantee Sink Source StreamTransformer SupportsPreprocessing",
        "datastream.functions": "SinkFunction SourceFunction",
    },
    "datastream.connectors.kinesis": {
        "common.serialization": "DeserializationSchema SerializationSchema",
        "common.watermark_strategy": "AssignerWithPeriodicWatermarksWrapper",
        "datastream.connectors.base": "Sink",
        "datastream.functions": "SourceFunction",
    },
    "datastream.connectors.number_seq": {
        "datastream.connectors.base": "Source",
    },
    "datastream.connectors.pulsar": {
        "common.config_options": "ConfigOption ConfigOptions",
        "common.serialization": "DeserializationSchema SerializationSchema",
        "common.time": "Duration",
        "datastream.connectors.base": "DeliveryGuarantee Sink Source",
    },
    "datastream.connectors.rabbitmq": {
        "common.serialization": "DeserializationSchema SerializationSchema",
        "datastream.functions": "SinkFunction SourceFunction",
    },
    "datastream.data_stream": {
        "common.execution_config": "ExecutionConfig",
        "common.typeinfo": "RowTypeInfo TypeInformation Types",
        "common.types": "Row",
        "common.watermark_strategy": "TimestampAssigner WatermarkStrategy",
        "datastream.connectors.base": "Sink",
        "datastream.functions": (
            "AggregateFunction AllWindowFunction AsyncFunctionDescriptor BroadcastProcessFunction "
            "CoFlatMapFunction CoMapFunction CoProcessFunction FilterFunction FlatMapFunction Function "
            "FunctionWrapper KeySelector KeyedBroadcastProcessFunction KeyedCoProcessFunction "
            "KeyedProcessFunction MapFunction NullByteKeySelector Partitioner "
            "PassThroughAllWindowFunction PassThroughWindowFunction ProcessAllWindowFunction "
            "ProcessFunction ProcessWindowFunction ReduceFunction RuntimeContext SinkFunction "
            "WindowFunction"
        ),
        "datastream.output_tag": "OutputTag",
        "datastream.slot_sharing_group": "SlotSharingGroup",
        "datastream.state": (
            "AggregatingStateDescriptor ListStateDescriptor MapStateDescriptor ReducingState "
            "ReducingStateDescriptor StateDescriptor"
        ),
        "datastream.utils": "convert_to_python_obj",
        "datastream.window": (
            "CountSlidingWindowAssigner CountTumblingWindowAssigner CountWindowSerializer "
            "GlobalWindowSerializer MergingWindowAssigner TimeWindowSerializer Trigger WindowAssigner "
            "WindowOperationDescriptor"
        ),
    },
    "datastream.formats.avro": {
        "common.io": "InputFormat",
        "common.serialization": "BulkWriterFactory DeserializationSchema SerializationSchema",
        "common.typeinfo": "TypeInformation",
        "datastream.utils": "ResultTypeQueryable",
    },
    "datastream.formats.csv": {
        "common.serialization": "BulkWriterFactory DeserializationSchema RowDataBulkWriterFactory SerializationSchema",
        "common.typeinfo": "TypeInformation",
        "datastream.connectors.file_system": "StreamFormat",
    },
    "datastream.formats.json": {
        "common.serialization": "DeserializationSchema SerializationSchema",
        "common.typeinfo": "TypeInformation",
    },
    "datastream.formats.orc": {
        "common.configuration": "Configuration",
        "common.serialization": "BulkWriterFactory RowDataBulkWriterFactory",
        "datastream.utils": "create_hadoop_configuration",
    },
    "datastream.formats.parquet": {
        "common.configuration": "Configuration",
        "common.serialization": "BulkWriterFactory RowDataBulkWriterFactory",
        "datastream.connectors.file_system": "BulkFormat StreamFormat",
        "datastream.formats.avro": "AvroSchema",
        "datastream.utils": "create_hadoop_configuration",
    },
    "datastream.functions": {
        "datastream.state": (
            "AggregatingState AggregatingStateDescriptor BroadcastState ListState ListStateDescriptor "
            "MapState MapStateDescriptor ReadOnlyBroadcastState ReducingState ReducingStateDescriptor "
            "ValueState ValueStateDescriptor"
        ),
        "datastream.time_domain": "TimeDomain",
        "datastream.timerservice": "TimerService",
        "metrics.metricbase": "MetricGroup",
    },
    "datastream.output_tag": {
        "common.typeinfo": "RowTypeInfo TypeInformation Types",
    },
    "datastream.state": {
        "common.time": "Duration Time",
        "common.typeinfo": "TypeInformation Types",
    },
    "datastream.stream_execution_environment": {
        "common.configuration": "Configuration",
        "common.execution_config": "ExecutionConfig",
        "common.io": "InputFormat",
        "common.job_client": "JobClient",
        "common.job_execution_result": "JobExecutionResult",
        "common.typeinfo": "TypeInformation Types",
        "common.watermark_strategy": "WatermarkStrategy",
        "datastream.checkpoint_config": "CheckpointConfig",
        "datastream.checkpointing_mode": "CheckpointingMode",
        "datastream.connectors.base": "Source",
        "datastream.data_stream": "DataStream",
        "datastream.execution_mode": "RuntimeExecutionMode",
        "datastream.functions": "SourceFunction",
        "datastream.slot_sharing_group": "SlotSharingGroup",
        "datastream.utils": "ResultTypeQueryable",
    },
    "datastream.utils": {
        "common.configuration": "Configuration",
        "common.typeinfo": (
            "BasicArrayTypeInfo ExternalTypeInfo ListTypeInfo MapTypeInfo ObjectArrayTypeInfo "
            "PrimitiveArrayTypeInfo RowTypeInfo TupleTypeInfo TypeInformation Types"
        ),
        "common.types": "Row RowKind",
    },
    "datastream.window": {
        "common.serializer": "TypeSerializer",
        "common.time": "Time",
        "common.typeinfo": "Types",
        "datastream.functions": "ReduceFunction RuntimeContext",
        "datastream.output_tag": "OutputTag",
        "datastream.state": "ReducingState ReducingStateDescriptor State StateDescriptor ValueStateDescriptor",
        "metrics.metricbase": "MetricGroup",
    },
    "table.catalog": {
        "common.configuration": "Configuration",
        "table.resolved_expression": "ResolvedExpression",
        "table.schema": "Schema",
        "table.table_schema": "TableSchema",
        "table.types": "DataType",
    },
    "table.compiled_plan": {
        "table.explain_detail": "ExplainDetail",
        "table.table_result": "TableResult",
    },
    "table.descriptors": {
        "table.table_schema": "TableSchema",
        "table.types": "DataType",
    },
    "table.environment_settings": {
        "common.configuration": "Configuration",
    },
    "table.expression": {
        "table.types": "DataType DataTypes",
    },
    "table.expressions": {
        "table.expression": (
            "CURRENT_RANGE CURRENT_ROW Expression JsonOnNull TimePointUnit UNBOUNDED_RANGE UNBOUNDED_ROW"
        ),
        "table.types": "DataType",
        "table.udf": "UserDefinedFunctionWrapper",
    },
    "table.functions": {
        "table.data_view": "ListView MapView",
        "table.udf": "AggregateFunction",
    },
    "table.model_descriptor": {
        "common.config_options": "ConfigOption",
        "table.schema": "Schema",
    },
    "table.resolved_expression": {
        "table.expression": "Expression",
        "table.types": "DataType",
    },
    "table.schema": {
        "table.expression": "Expression",
        "table.types": "DataType",
    },
    "table.serializers": {
        "table.utils": "arrow_to_pandas pandas_to_arrow",
    },
    "table.statement_set": {
        "table.compiled_plan": "CompiledPlan",
        "table.explain_detail": "ExplainDetail",
        "table.table_descriptor": "TableDescriptor",
        "table.table_pipeline": "TablePipeline",
        "table.table_result": "TableResult",
    },
    "table.table": {
        "table.catalog": "ResolvedSchema",
        "table.explain_detail": "ExplainDetail",
        "table.expression": "Expression",
        "table.expressions": "col with_columns without_columns",
        "table.serializers": "ArrowSerializer",
        "table.table_descriptor": "TableDescriptor",
        "table.table_pipeline": "TablePipeline",
        "table.table_result": "TableResult",
        "table.table_schema": "TableSchema",
        "table.types": "create_arrow_schema",
        "table.udf": (
            "UserDefinedAggregateFunctionWrapper UserDefinedScalarFunctionWrapper "
            "UserDefinedTableFunctionWrapper"
        ),
        "table.utils": "tz_convert_from_internal",
        "table.window": "GroupWindow OverWindow",
    },
    "table.table_config": {
        "common.configuration": "Configuration",
        "table.sql_dialect": "SqlDialect",
    },
    "table.table_descriptor": {
        "common.config_options": "ConfigOption",
        "table.schema": "Schema",
    },
    "table.table_environment": {
        "common.configuration": "Configuration",
        "common.typeinfo": "TypeInformation",
        "datastream.data_stream": "DataStream",
        "datastream.stream_execution_environment": "StreamExecutionEnvironment",
        "table.catalog": "Catalog CatalogDescriptor",
        "table.changelog_mode": "ChangelogMode",
        "table.compiled_plan": "CompiledPlan",
        "table.environment_settings": "EnvironmentSettings",
        "table.explain_detail": "ExplainDetail",
        "table.expression": "Expression",
        "table.model_descriptor": "ModelDescriptor",
        "table.module": "Module ModuleEntry",
        "table.plan_reference": "PlanReference",
        "table.schema": "Schema",
        "table.serializers": "ArrowSerializer",
        "table.statement_set": "StatementSet",
        "table.table": "Table",
        "table.table_config": "TableConfig",
        "table.table_descriptor": "TableDescriptor",
        "table.table_result": "TableResult",
        "table.types": "DataType RowField RowType create_arrow_schema from_arrow_type",
        "table.udf": "AggregateFunction TableAggregateFunction UserDefinedFunctionWrapper udaf udtaf",
    },
    "table.table_pipeline": {
        "table.catalog": "ObjectIdentifier",
        "table.compiled_plan": "CompiledPlan",
        "table.explain_detail": "ExplainDetail",
        "table.table_result": "TableResult",
    },
    "table.table_result": {
        "common.job_client": "JobClient",
        "common.types": "Row RowKind",
        "table.catalog": "ResolvedSchema",
        "table.result_kind": "ResultKind",
        "table.table_schema": "TableSchema",
        "table.utils": "pickled_bytes_to_python_converter",
    },
    "table.table_schema": {
        "table.types": "DataType RowType",
    },
    "table.types": {
        "common.types": "Row RowKind",
    },
    "table.udf": {
        "metrics.metricbase": "MetricGroup",
        "table.expression": "Expression",
        "table.types": "DataType",
    },
    "table.utils": {
        "common.types": "Row RowKind",
        "table.types": (
            "ArrayType DataType DateType FloatType LocalZonedTimestampType MapType RawType RowType "
            "TimeType TimestampType"
        ),
    },
    "table.window": {
        "table.expression": "Expression",
    },
}
