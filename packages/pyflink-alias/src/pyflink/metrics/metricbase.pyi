from headrace.metrics.metricbase import Counter as Counter
from headrace.metrics.metricbase import Distribution as Distribution
from headrace.metrics.metricbase import Meter as Meter
from headrace.metrics.metricbase import Metric as Metric
from headrace.metrics.metricbase import MetricGroup as MetricGroup
