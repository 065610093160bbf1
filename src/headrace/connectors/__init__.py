"""Where records come from and where they go: one module or folder a connector, `base` for all.

Programs find them under PyFlink's names in `headrace.datastream.connectors`, tables by the entry points that packages
declare: `kafka` is the class in `kafka/factory.py`. Connectors do not import each other. Nothing is imported here: a
worker that reads numbers does not pay for file systems.
"""
