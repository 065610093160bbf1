"""Python: the code and packages that travel with a job."""

from __future__ import annotations

from headrace.config.option import option

FILES = (
    option("python.files", list[str])
    .default([])
    .describe(
        "Python files, directories, zip, egg and wheel files that functions import; on the path of the program and of "
        "its workers. Zipped ones are unpacked."
    )
)
REQUIREMENTS = (
    option("python.requirements", str)
    .no_default()
    .describe(
        "A requirements file whose packages are installed once in every executor; `#` may be followed by a directory "
        "that has them, which is shipped as well, and no index is asked then."
    )
)
ARCHIVES = (
    option("python.archives", list[str])
    .default([])
    .describe(
        "Zip and tar files, unpacked once in every executor, in the working directory of the functions: in a directory "
        "that has the name of the archive, or the one that follows `#`."
    )
)
EXECUTABLE = (
    option("python.executable", str)
    .no_default("the interpreter that runs the program")
    .describe(
        "The Python interpreter of the workers: a command, a path that every host has, or a path in an archive of the "
        "job, such as `./env.tar.gz/bin/python`."
    )
)
CACHED_FILES = (
    option("pipeline.cached-files", str)
    .default("")
    .describe(
        "Files that functions get by name from `RuntimeContext.get_distributed_cache()`; `register_cached_file` adds "
        "to them: `name:model,path:/models/a.bin;name:tool,path:/tools/t,executable:true`."
    )
)
PYFLINK_ALIAS = (
    option("headrace.pyflink-alias.enabled", bool)
    .default(True)
    .describe(
        "Whether `import pyflink` in a program started with `headrace run` answers with headrace's modules, so "
        "that programs written for PyFlink run unchanged."
    )
)
