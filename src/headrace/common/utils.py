"""What PyFlink's classes over Java objects share; here there is no Java object to get."""

from __future__ import annotations

from typing import NoReturn

from headrace.errors import UnsupportedFeatureError

__all__ = ["JavaObjectWrapper"]


class JavaObjectWrapper:
    """Base of classes that wrap a Java object in PyFlink, so that programs may still ask what it is."""

    def get_java_object(self) -> NoReturn:
        """Not there: headrace runs no Java of its own.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError.not_yet(
            f"the Java object behind {type(self).__name__}", "use the Python object itself"
        )
