from headrace.common.io import InputFormat as InputFormat
