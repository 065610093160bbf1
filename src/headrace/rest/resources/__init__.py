"""The subjects of the REST API, one module each: typed answers, handlers, and the endpoints they make.

Paths, names and types of the answers are those of Flink 2.3; what is ours is marked in the summaries.
"""
