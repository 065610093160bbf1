"""One run of a job: sources, sinks and state on the driver's side, from epoch to epoch."""
