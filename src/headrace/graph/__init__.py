"""From program to tasks: pure data and pure functions, one step a module.

    transformations -> stream_graph -> (chaining, operator_ids) -> job_graph -> execution_graph

`partitioning` declares how edges distribute records; `plan_json` shows the graphs to people and tools.
"""
