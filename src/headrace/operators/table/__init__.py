"""Operators of Table and SQL jobs: what they are declared as, and how the stateful ones work on an epoch's rows."""
