"""The control channel of live jobs: messages between the driver and the long-lived subtasks."""
