"""What spark-submit runs in application mode: the command line, in the process that Spark has made the driver.

The options of the program are in the archive that Spark has unpacked in the working directory, if there is one.
"""

from __future__ import annotations

import os
from pathlib import Path

from headrace.cli.main import main
from headrace.config.file import CONF_DIR_VARIABLE, FILE_NAME

#: As `headrace.spark.submission.FOLDER`, which cannot be imported before Spark is there.
_FOLDER = "application"

if __name__ == "__main__":
    if (Path(_FOLDER) / FILE_NAME).is_file():
        os.environ[CONF_DIR_VARIABLE] = _FOLDER
    main()
