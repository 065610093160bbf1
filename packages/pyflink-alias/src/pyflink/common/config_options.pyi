from headrace.common.config_options import ConfigOption as ConfigOption
from headrace.common.config_options import ConfigOptions as ConfigOptions
