"""The elements of a collection in the form that their declared type gives them."""

from __future__ import annotations

from typing import Any

from headrace.common.typed_values import conformer
from headrace.common.typeinfo import TypeInformation
from headrace.errors import TypeInferenceError, shorten

__all__ = ["typed_elements"]


def typed_elements(elements: list[Any], type_info: TypeInformation) -> list[Any]:
    """Bring elements into the form their type says, such as a tuple into a Row."""
    conform = conformer(type_info)
    if conform is None:
        return elements
    try:
        return conform(elements)
    except (TypeInferenceError, TypeError, ValueError, AttributeError):
        for index, element in enumerate(elements):
            try:
                conform([element])
            except (TypeInferenceError, TypeError, ValueError, AttributeError) as error:
                raise TypeInferenceError(
                    f"from_collection(): cannot convert element {index}, {shorten(element)}, "
                    f"to {type_info.summary()}: {error}"
                ) from error
        raise
