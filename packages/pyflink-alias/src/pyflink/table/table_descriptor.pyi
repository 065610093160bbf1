from headrace.common.config_options import ConfigOption as ConfigOption
from headrace.table.table_descriptor import FormatDescriptor as FormatDescriptor
from headrace.table.schema import Schema as Schema
from headrace.table.table_descriptor import TableDescriptor as TableDescriptor
