"""What runs in a worker: chains of operators, one subtask at a time."""
