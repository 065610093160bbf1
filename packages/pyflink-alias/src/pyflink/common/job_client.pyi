from headrace.common.job_client import JobClient as JobClient
