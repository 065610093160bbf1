"""Records and events between tasks: buffers, channels, partitions, gates."""
