"""The only importer of pyspark: the session, epochs as Spark jobs, the worker entry, failures."""
