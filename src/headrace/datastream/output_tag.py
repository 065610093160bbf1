"""Tags of side outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from headrace.common.typeinfo import RowTypeInfo, TypeInformation, Types
from headrace.errors import JobDefinitionError, UnsupportedFeatureError

__all__ = ["OutputTag"]


class OutputTag:
    """Names a side output and says what it carries. Tags with the same id are the same output.

    Args:
        tag_id: The name.
        type_info: The type of the records, or a list of types for rows; pickled if None.

    Raises:
        JobDefinitionError: If the name is empty, or the type is not type information.

    Example:
        >>> late = OutputTag("late", Types.STRING())
        >>> late.tag_id, late == OutputTag("late")
        ('late', True)
    """

    __slots__ = ("tag_id", "type_info")

    def __init__(
        self, tag_id: str, type_info: TypeInformation | Sequence[TypeInformation] | None = None
    ) -> None:
        if not tag_id or not isinstance(tag_id, str):
            raise JobDefinitionError(f"OutputTag: expected a name that is not empty; got {tag_id!r}")
        self.tag_id = tag_id
        self.type_info = _as_type(tag_id, type_info)

    def get_java_output_tag(self) -> NoReturn:
        """Not there: headrace has no Java objects behind its values.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError.not_yet("get_java_output_tag", "use the Python object itself")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OutputTag):
            return NotImplemented
        return self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r}, {self.type_info.summary()})"


def _as_type(tag_id: str, given: TypeInformation | Sequence[TypeInformation] | None) -> TypeInformation:
    if given is None:
        return Types.PICKLED_BYTE_ARRAY()
    if isinstance(given, TypeInformation):
        return given
    if isinstance(given, list | tuple):
        return RowTypeInfo(given)
    raise JobDefinitionError(
        f"OutputTag {tag_id!r}: expected type information; got {given!r}", hint="use one of Types"
    )
