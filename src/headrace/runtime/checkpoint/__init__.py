"""Checkpoints and savepoints: what one is, where it is kept, when it is due, how long it stays.

Everything here decides or reads and writes files. Only `checkpointing` has threads, and meets the running job.
"""
