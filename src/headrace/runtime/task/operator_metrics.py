"""What is counted of every operator, whichever engine runs it: Flink's metrics of operators."""

from __future__ import annotations

from dataclasses import replace

from headrace.elements import MIN_WATERMARK
from headrace.graph.job_graph import JobVertex
from headrace.metrics.reports import (
    RECORDS_IN,
    RECORDS_OUT,
    CounterReport,
    GaugeReport,
    MetricName,
    MetricReport,
)
from headrace.operators.table.declarations import StatefulNode, TableScanDeclaration, TableSinkDeclaration
from headrace.runtime.epoch.messages import SubtaskReport


def operator_metrics(
    records_in: int, records_out: int, input_watermark: int | None, output_watermark: int | None
) -> dict[MetricName, MetricReport]:
    """Return the metrics of an epoch, under Flink's names."""
    return {
        RECORDS_IN: CounterReport(records_in),
        RECORDS_OUT: CounterReport(records_out),
        MetricName("currentInputWatermark"): _watermark(input_watermark),
        MetricName("currentOutputWatermark"): _watermark(output_watermark),
    }


def _watermark(watermark: int | None) -> GaugeReport:
    return GaugeReport(MIN_WATERMARK if watermark is None else watermark)


def with_operator_metrics(vertex: JobVertex, report: SubtaskReport) -> SubtaskReport:
    """Add the operator's metrics to the report of a subtask of a table, of which they follow.

    There are none of what Spark does without counting rows: queries, and sinks that discard everything.
    """
    node = vertex.head
    is_source = isinstance(node.declaration, TableScanDeclaration)
    is_sink = isinstance(node.declaration, TableSinkDeclaration)
    if isinstance(node.declaration, TableSinkDeclaration) and node.declaration.sink.discards:
        return report
    if not (is_source or is_sink or isinstance(node.declaration, StatefulNode)):
        return report
    counted = operator_metrics(
        report.records_in,
        report.records_out,
        None if is_source else report.watermark,
        report.watermark,
    )
    own = {**counted, **report.user_metrics.get(node.operator_id, {})}
    return replace(report, user_metrics={**report.user_metrics, node.operator_id: own})
