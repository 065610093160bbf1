"""What the alias raises for modules of PyFlink that headrace does not have."""

from __future__ import annotations

from headrace.errors import UnsupportedFeatureError


class MissingModuleError(UnsupportedFeatureError, ModuleNotFoundError):
    """A module of PyFlink that headrace does not have yet.

    Also a ModuleNotFoundError, so that programs which try an import and continue without it keep working.
    """
