"""Checkpoints and savepoints: what one is, where it is kept, when it is due, how long it stays.

Everything here decides or reads and writes files; nothing knows epochs at work, Spark or threads.
"""
