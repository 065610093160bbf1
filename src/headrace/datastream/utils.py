"""The functions of ``pyflink.datastream.utils`` that make sense without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.common._missing import missing_names
from headrace.common.typeinfo import TypeInformation

__all__ = ["ResultTypeQueryable"]

_NO_JVM = "there is no JVM behind the API; pass plain Python values to connectors"

if not TYPE_CHECKING:  # checkers should go on to report these names as missing
    __getattr__ = missing_names(
        __name__,
        convert_to_python_obj=_NO_JVM,
        create_hadoop_configuration=_NO_JVM,
        create_java_properties=_NO_JVM,
        pickled_bytes_to_python_obj=_NO_JVM,
    )


class ResultTypeQueryable:
    """A source or format that knows the type of what it produces."""

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the produced records."""
        raise NotImplementedError
