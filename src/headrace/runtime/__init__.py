"""The control plane and the tasks: master, epochs, exchange, levels."""
