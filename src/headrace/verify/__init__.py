"""`headrace verify`: runs a user's job many times under faults drawn from seeds, and compares the results.

    inputs.py        the job's input, read once and bounded; cut, mixed and reordered for every run
    capture.py       sinks that remember what was committed to them
    clocks.py        a clock of the engine that stands still, and a wall clock that is off
    scenario.py      what happens in a run: cuts, parallelism, faults, stops; drawn from a seed
    runs.py          one run on the mini cluster, and what came out
    other_process.py runs in another process: other hashes, other sets
    shrinking.py     the fewest records and events that still make a difference
    verification.py  runs until the budget is used up or a difference is found, and says what it looks like
    report.py        the difference as text, as a test to keep, and as a page

It stands on the test kit: real job master, tasks and state, with workers that are simulated.
"""
