"""PyFlink's names for headrace's modules: importing this package makes `import pyflink...` answer with headrace."""

import importlib
import sys

from headrace import pyflink_alias

# The alias makes the package anew; whoever imported this one gets that.
sys.modules.pop(__name__, None)
pyflink_alias.install()
importlib.import_module(__name__)
