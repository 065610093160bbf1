from headrace.common.constants import DEFAULT_OUTPUT_TAG as DEFAULT_OUTPUT_TAG
from headrace.common.constants import MAX_LONG_VALUE as MAX_LONG_VALUE
from headrace.common.constants import MIN_LONG_VALUE as MIN_LONG_VALUE
