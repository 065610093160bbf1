"""The version of PyFlink whose names headrace has: `pyflink.version`."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "2.3.0"
