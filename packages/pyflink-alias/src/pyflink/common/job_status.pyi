from headrace.common.job_status import JobStatus as JobStatus
