"""One run of a job: the driver's side of sources, sinks and state."""
