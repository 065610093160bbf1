"""Errors on their way from a worker to the driver, through Spark.

A worker's exception reaches the driver as text in a Java stack trace. So the worker puts the error itself, pickled,
at the end of its text; the driver takes it out again, and nobody has to read Java.

A record may stand in the same text, and may look as if an error were in it. So nothing but errors of headrace is made
of what is found there, and the last one counts: it is the worker's. A class that only the worker knows travels as the
nearest one of headrace, too: what a job does about an error must not depend on what the driver has imported.
"""

from __future__ import annotations

import base64
import pickle
import re
import traceback
from contextlib import suppress
from subprocess import Popen, TimeoutExpired

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from headrace import errors
from headrace.common import plain_pickle
from headrace.errors import DiskFullError, FormatError, HeadraceError, JobExecutionError, TaskLostError
from headrace.runtime.task.memory_limit import explain_memory_error
from headrace.spark.bad_records import bad_record
from headrace.util.disk_space import says_full

#: How long a process may take to be gone after its sockets.
_LAST_MOMENT_S = 1.0
_MARK = "headrace-error:"
#: Attributes of these types need no class to be read.
_READABLE = (str, int, float, bytes, type(None))
_CARRIED = re.compile(re.escape(_MARK) + r"([A-Za-z0-9+/=]+)")
#: What Spark says when a process or machine went away, rather than the user's code having failed.
_LOST = re.compile(
    r"ExecutorLostFailure|FetchFailed|Python worker exited unexpectedly|MetadataFetchFailed|"
    r"ShuffleBlockFetcherIterator|Executor heartbeat timed out|Connection reset|\bEOFException|"
    r"Failed to connect|crashed"
)
#: How Spark reports the attempt that was one too many.
_RECENT = re.compile(
    r"most recent failure: (?:Lost task \S+ in stage \S+ \(TID \d+\) "
    r"\((?P<host>\S+) executor (?P<executor>[^)]+)\): )(?P<reason>.*)"
)
#: What the query itself says about a value that it cannot continue with.
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (?P<what>.*?) SQLSTATE: ", re.DOTALL)
_WAYS_OUT = {
    "cannot CAST": "use TRY_CAST to get NULL for values that cannot be converted",
    "/ by zero": "use NULLIF(divisor, 0) to get NULL instead",
}
#: A file that Spark cannot read, and what is wrong with it: the last of the causes that follow.
_UNREADABLE = re.compile(
    r"\[FAILED_READ_FILE\.\w+\] Encountered error while reading file (?P<path>\S+?)\.?\s"
)
_CAUSE = re.compile(r"^Caused by: (?P<what>.*)$", re.MULTILINE)
#: How Java names the file that there was no space for.
_NO_SPACE_FOR = re.compile(r"(?P<directory>/\S*)/\S+ \(No space left on device\)")
#: A stage that Spark would compute again, which we do not allow, because what it was to read was lost or out of reach.
_NOT_FETCHED = re.compile(
    r"has failed the maximum allowable number of times: \d+\. Most recent failure reason:\s+"
)
#: What a Python worker was left with, outside of our own code; the last of a chain of tracebacks counts.
_PYTHON = re.compile(r"^[a-z][\w.]*\.[A-Z]\w*: (?P<what>.*)$", re.MULTILINE)
#: Java's names of exceptions, and lines of a stack trace that hold nothing else.
_CLASS_NAME = re.compile(r"\b(?:[a-z]\w*\.)+[A-Z][\w$]*: ?")
_NOISE = re.compile(
    r"An error occurred while calling |calling z:|at [\w.$/]+\(|Driver stacktrace:|\.\.\. \d+ more"
)
_CANCELLED = re.compile(r"cancelled|Job \d+ canceled|SparkContext was shut down", re.IGNORECASE)


class CarriedError(Exception):
    """An error of ours inside a Spark task: readable text, with the error itself behind it."""


def carry(error: BaseException) -> CarriedError:
    """Wrap an error for the way through Spark."""
    hint = explain_memory_error(error)
    if not isinstance(error, HeadraceError):
        text = "".join(traceback.format_exception(error))
        error = JobExecutionError(f"{type(error).__name__}: {error}\n{text}", hint=hint)
    error.hint = error.hint or hint
    # The driver reads the last one that it can.
    forms = [error] if _is_of_headrace(type(error)) else [_plain(error), error]
    return CarriedError("\n".join([str(error), *filter(None, map(_packed, forms))]))


def _packed(error: HeadraceError) -> str | None:
    try:
        return _MARK + base64.b64encode(pickle.dumps(error)).decode()
    except Exception:  # noqa: BLE001 - a class that came by value, or an attribute that cannot travel
        return None


def _is_of_headrace(kind: type) -> bool:
    return kind.__module__ == errors.__name__


def _plain(error: HeadraceError) -> HeadraceError:
    """Return an error of a program or connector as the nearest class of headrace, with what others can read of it."""
    bases = (each for each in type(error).__mro__ if issubclass(each, HeadraceError))
    kind = next(each for each in bases if _is_of_headrace(each))
    plain = kind.__new__(kind, error.message)
    plain.__dict__ |= {name: value for name, value in vars(error).items() if isinstance(value, _READABLE)}
    plain.retryable = error.retryable
    return plain


def recover_from(error: Exception, java: Popen[bytes] | None) -> HeadraceError:
    """Return the error behind one that a call of Spark raised; ``java`` is Spark's process, if it is ours."""
    if not isinstance(error, Py4JJavaError | PySparkException) and _has_ended(java):
        return JobExecutionError(
            "Spark's Java process has ended",
            hint="check whether the system killed it for using too much memory; spark.driver.memory sets its limit",
            retryable=False,
        )
    return recover(str(error))


def _has_ended(process: Popen[bytes] | None) -> bool:
    """Whether a process has ended; its sockets are gone a moment before it is."""
    if process is None:
        return False
    with suppress(TimeoutExpired):
        process.wait(_LAST_MOMENT_S)
    return process.poll() is not None


def recover(text: str) -> HeadraceError:
    """Return the error behind what Spark says, with the place where it happened."""
    error = _recovered(text)
    place = _RECENT.search(text)
    if isinstance(error, JobExecutionError) and place is not None:
        error.host, error.executor = place["host"], place["executor"]
    return error


def _recovered(text: str) -> HeadraceError:
    carried = _carried(text)
    if carried is not None:
        return carried
    if says_full(text):
        return _disk_full(text)
    said = _told(text)
    if said is not None:
        return said
    reason = reason_of(text)
    if _LOST.search(text):
        return TaskLostError(f"a worker process or executor was lost: {reason}")
    if _CANCELLED.search(text):
        return JobExecutionError(f"Spark cancelled the epoch: {reason}")
    return JobExecutionError(f"Spark failed the epoch: {reason}")


def _carried(text: str) -> HeadraceError | None:
    for found in reversed(_CARRIED.findall(text)):
        try:
            error = plain_pickle.loads(base64.b64decode(found), _error_classes())
        except Exception:  # noqa: BLE001, S112 - bytes that anyone may have written raise anything
            continue
        if isinstance(error, HeadraceError):
            return error
    return None


def _disk_full(text: str) -> DiskFullError:
    """Return the error for a disk that Spark itself found full: what it shuffles, caches or spills."""
    file = _NO_SPACE_FOR.search(text)
    directory = None if file is None else file["directory"]
    place = _RECENT.search(text)
    host = "" if place is None else f" on host {place['host']}"
    return DiskFullError(
        f"disk full{host}: Spark cannot write its temporary files{f' in {directory}' if directory else ''}",
        directory=directory,
        hint="free space there, or set spark.local.dir to a larger disk that every host has; on YARN and Kubernetes "
        "the cluster manager decides where it is",
    )


def _told(text: str) -> HeadraceError | None:
    """Return what Spark says about the data, without Spark: no process was lost, and nothing of ours failed."""
    raised = _RAISED.search(text)
    if raised is not None:
        what = raised["what"]
        refused = bad_record(what)
        if refused is not None:
            return refused
        hint = next((way for start, way in _WAYS_OUT.items() if what.startswith(start)), None)
        return JobExecutionError(what, hint=hint)
    unreadable = _UNREADABLE.search(text)
    if unreadable is not None:
        causes = [_CLASS_NAME.sub("", cause) for cause in _CAUSE.findall(text)]
        return FormatError(
            f"{unreadable['path']} does not match its table: {causes[-1] if causes else reason_of(text)}",
            hint="correct the file or the table; the option 'json.ignore-parse-errors' or 'csv.ignore-parse-errors' "
            "skips records that cannot be read",
        )
    return None


def _error_classes() -> dict[str, set[str]]:
    """Return what the pickle of an error may name: errors that this process knows, and the function that makes them."""
    names = {errors.base.__name__: {"_restore"}}
    found: list[type[HeadraceError]] = [HeadraceError]
    while found:
        each = found.pop()
        names.setdefault(each.__module__, set()).add(each.__qualname__)
        found += each.__subclasses__()
    return names


def reason_of(text: str) -> str:
    r"""Return what a Java stack trace says, without what only its authors need.

    >>> reason_of("calling z:a.B.\n: a.b.CException: Task 0 in stage 4.0 failed 4 times, most recent failure: "
    ...         "Lost task 0.3 in stage 4.0 (TID 8) (host executor 2): a.b.DException: out of luck. Consider prayer")
    'out of luck (executor 2 on host)'
    """
    if "thrown from the Python worker" in text:
        raised = _PYTHON.findall(text.partition("thrown from the Python worker")[2])
        if raised:
            return f"a Python worker failed: {raised[-1].partition(' It can be caused ')[0]}"[:300]
    stage = _NOT_FETCHED.search(text)
    if stage is not None:
        rest = text[stage.end() :]
        why = [rest.partition("\n")[0], *_CAUSE.findall(rest)][-1]
        return f"cannot fetch data from another executor: {_CLASS_NAME.sub('', why).strip()}"[:300]
    lines = [line.strip() for line in text.splitlines()]
    # Past the call that failed, and before the frames.
    said = [line for line in lines if line and not _NOISE.match(line)]
    line = " ".join(said[:2]) if said and said[0].endswith(":") else (said or ["no message"])[0]
    place = ""
    recent = _RECENT.search(line)
    if recent is not None:
        place = f" (executor {recent['executor']} on {recent['host']})"
        line = recent["reason"]
    line = _CLASS_NAME.sub("", line).partition(" Consider ")[0].strip(" :.")
    return line[:300] + place
