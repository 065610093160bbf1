"""Slots, and the parallelism that a job gets with them."""
