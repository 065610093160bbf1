"""Recorded epochs, run again in one process, without Spark: `headrace replay` and `headrace.testing.replay`.

recordings.py   finds the recording of a job: its directory, a checkpoint, a savepoint
session.py      runs an epoch: tasks with recorded clocks, and sinks that write nothing
live.py         what the loop of a live subtask did, again
comparison.py   what the replay did, beside what the job did
run.py          all of it in one call
debugger.py     stops before a record, at a line, or where a function raised
"""
