"""What a task runs: the operators of the DataStream API, from batches to batches."""
