"""The control channel of live jobs: what the driver and long-lived subtasks tell each other beside the data."""
