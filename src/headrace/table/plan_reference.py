"""Where a compiled plan is: in a file, or given as JSON."""

from __future__ import annotations

from headrace.common._missing import missing_names
from headrace.errors import UnsupportedFeatureError

__all__ = ["FilePlanReference", "JsonContentPlanReference", "PlanReference"]

__getattr__ = missing_names(__name__, "BytesContentPlanReference")


class PlanReference:
    """Where a compiled plan is, for `TableEnvironment.load_plan` and `execute_plan`.

    Example:
        >>> PlanReference.from_file("/plans/daily.json").get_file()
        '/plans/daily.json'
    """

    @staticmethod
    def from_file(path: str) -> FilePlanReference:
        """Return a reference to a file that COMPILE PLAN, or `CompiledPlan.write_to_file`, has written."""
        return FilePlanReference(path)

    @staticmethod
    def from_json_string(json_string: str) -> JsonContentPlanReference:
        """Return a reference to a plan that `CompiledPlan.as_json_string` has returned."""
        return JsonContentPlanReference(json_string)

    @staticmethod
    def from_smile_bytes(smile_bytes: bytes) -> PlanReference:
        """Refused: plans are JSON."""
        raise UnsupportedFeatureError.not_yet("from_smile_bytes()", "plans are JSON: from_json_string()")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))


class FilePlanReference(PlanReference):
    """A plan in a file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def get_file(self) -> str:
        """Return the path of the file with the plan."""
        return self._path


class JsonContentPlanReference(PlanReference):
    """A plan at hand."""

    def __init__(self, content: str) -> None:
        self._content = content

    def get_content(self) -> str:
        """Return the plan as JSON text."""
        return self._content
