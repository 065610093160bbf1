"""The options headrace knows, one module a subject.

A module-level `ConfigOption` in a module of this package is all it takes: the registry, the checks and
docs/configuration.md find it. The first line of a module's docstring heads its section there.
"""

from __future__ import annotations
