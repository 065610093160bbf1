from headrace.common.completable_future import CompletableFuture as CompletableFuture
from headrace.common.job_client import JobClient as JobClient
from headrace.common.job_execution_result import JobExecutionResult as JobExecutionResult
from headrace.common.job_id import JobID as JobID
from headrace.common.job_status import JobStatus as JobStatus
