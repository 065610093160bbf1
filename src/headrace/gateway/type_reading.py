"""Types as a gateway describes them in JSON, read by clients: the way back from `values.type_json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from headrace.errors import ClusterError
from headrace.types import DataTypes
from headrace.types import logical as t
from headrace.types.intervals import DayTimeIntervalType, YearMonthIntervalType

__all__ = ["type_from_json"]

_Parameters = Mapping[str, Any]
_MAKERS: Final[dict[str, Callable[[_Parameters], t.DataType]]] = {
    "NULL": lambda _: DataTypes.NULL(),
    "BOOLEAN": lambda _: DataTypes.BOOLEAN(),
    "TINYINT": lambda _: DataTypes.TINYINT(),
    "SMALLINT": lambda _: DataTypes.SMALLINT(),
    "INTEGER": lambda _: DataTypes.INT(),
    "BIGINT": lambda _: DataTypes.BIGINT(),
    "FLOAT": lambda _: DataTypes.FLOAT(),
    "DOUBLE": lambda _: DataTypes.DOUBLE(),
    "DECIMAL": lambda said: DataTypes.DECIMAL(said["precision"], said["scale"]),
    "CHAR": lambda said: DataTypes.CHAR(said["length"]),
    "VARCHAR": lambda said: DataTypes.VARCHAR(said["length"]),
    "BINARY": lambda said: DataTypes.BINARY(said["length"]),
    "VARBINARY": lambda said: DataTypes.VARBINARY(said["length"]),
    "DATE": lambda _: DataTypes.DATE(),
    "TIME_WITHOUT_TIME_ZONE": lambda said: DataTypes.TIME(said["precision"]),
    "TIMESTAMP_WITHOUT_TIME_ZONE": lambda said: DataTypes.TIMESTAMP(said["precision"]),
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": lambda said: DataTypes.TIMESTAMP_LTZ(said["precision"]),
    "INTERVAL_YEAR_MONTH": lambda said: YearMonthIntervalType(
        YearMonthIntervalType.YearMonthResolution[said["resolution"]], said["precision"]
    ),
    "INTERVAL_DAY_TIME": lambda said: DayTimeIntervalType(
        DayTimeIntervalType.DayTimeResolution[said["resolution"]],
        said["precision"],
        said["fractionalPrecision"],
    ),
    "VARIANT": lambda _: DataTypes.VARIANT(),
    "ARRAY": lambda said: DataTypes.ARRAY(type_from_json(said["elementType"])),
    "MULTISET": lambda said: DataTypes.MULTISET(type_from_json(said["elementType"])),
    "MAP": lambda said: DataTypes.MAP(type_from_json(said["keyType"]), type_from_json(said["valueType"])),
    "ROW": lambda said: DataTypes.ROW(
        [DataTypes.FIELD(each["name"], type_from_json(each["fieldType"])) for each in said["fields"]]
    ),
}


def type_from_json(described: _Parameters) -> t.DataType:
    """Read the description of a type; it is nullable unless it says otherwise.

    Raises:
        ClusterError: If the gateway has a type that headrace does not have.

    Example:
        >>> type_from_json({"type": "DECIMAL", "nullable": True, "precision": 9, "scale": 2}).summary()
        'DECIMAL(9, 2)'
    """
    maker = _MAKERS.get(described["type"])
    if maker is None:
        raise ClusterError(
            f"the gateway has described a column with the unknown type {described['type']}",
            hint="cast the column to STRING",
        )
    made = maker(described)
    return made if described.get("nullable", True) else made.not_null()
