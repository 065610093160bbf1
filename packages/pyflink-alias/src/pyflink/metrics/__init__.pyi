from headrace.metrics import Counter as Counter
from headrace.metrics import Distribution as Distribution
from headrace.metrics import Meter as Meter
from headrace.metrics import Metric as Metric
from headrace.metrics import MetricGroup as MetricGroup
