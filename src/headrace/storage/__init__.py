r"""Files on local disks and object stores: the one place that opens, lists, moves and deletes them.

    engine      a path or URI, as text      files.py       state files, checkpoints, leases, results of jobs
    connectors  a Location                  locations.py   what a user's path names
                                            search.py      the files behind a directory or a pattern
                      |
                      v
                FileStore  (store.py)       what can be done with files, and what each call promises
                 /              \
           LocalFiles        RemoteFiles
           (local.py)        (remote.py)
        os: fsync, rename    pyarrow.fs: whole objects

Only `local.py` calls the operating system, so a test that loses power replaces what it calls there. Only `remote.py`
imports `pyarrow.fs`. Neither is imported from outside: `stores.py` finds the store of a path.

The copies of state that a host keeps for itself (`state/stores`, `state/columnar`) and temporary directories are not
stored here: nobody misses them after a crash.
"""
