from headrace.common.configuration import Configuration as Configuration
