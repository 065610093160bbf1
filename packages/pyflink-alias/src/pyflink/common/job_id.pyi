from headrace.common.job_id import JobID as JobID
