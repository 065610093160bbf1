from headrace.common.job_execution_result import JobExecutionResult as JobExecutionResult
from headrace.common.job_id import JobID as JobID
