from headrace.common.time import Duration as Duration
from headrace.common.time import Instant as Instant
from headrace.common.time import Time as Time
