from headrace.pyflink_alias.version import __version__ as __version__
