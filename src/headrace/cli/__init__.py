"""The command line: arguments in, work done through the public API, results shown.

`main` is the way in, every command has a module of its own. None of them imports Spark or the DataStream API
before it has to: `headrace --help` answers at once.
"""
