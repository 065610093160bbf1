"""Windows at work: elements into windows, triggers, late data, merging sessions, shared slices."""
