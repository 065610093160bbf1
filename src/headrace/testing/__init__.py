"""The test kit: what tests of headrace, and of programs and connectors written for it, are made of.

`harness` runs one operator by hand, `mini_cluster` whole jobs in this process, `sources` scripts what a job
reads, `contracts` checks sources and sinks. Nothing here needs Spark, and nothing of the engine needs this.
"""
