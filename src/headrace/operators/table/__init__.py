"""Operators of Table and SQL jobs: their declarations, and how stateful ones process the rows of an epoch."""
