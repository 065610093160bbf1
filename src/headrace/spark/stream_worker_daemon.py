"""The process that workers of jobs without tables are forked from: it starts in half the time.

See `spark/worker_daemon.py`. A job with tables that comes later gets workers that import the rest by themselves.
"""

from __future__ import annotations

from headrace.spark.worker_daemon import main

if __name__ == "__main__":
    main(tables=False)
