"""What the tests of formats share."""

from tests.schema_registry import registry

__all__ = ["registry"]
