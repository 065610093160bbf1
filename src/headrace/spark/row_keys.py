"""Keys of rows as two BIGINTs, computed in Spark: equal for equal keys, and different for different ones.

    one or two columns of a fixed width       a one-to-one function of their values: nothing can collide
    everything else, and keys with a NULL     SHA-256 of the job's secret and an encoding of all values, 128 bits of it

The encoding is one-to-one: no two keys of the same types have the same bytes. Nobody knows the secret, so nobody can
search for two keys with the same hash, and by chance there are none in 128 bits (docs/design/0009-keys.md).

Values are equal here if they are equal to GROUP BY within an epoch, which is Spark's: NaN equals NaN, -0.0 equals 0.0,
and the order of a map's entries does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.classic.column import Column as ClassicColumn

from headrace.errors import UnsupportedFeatureError
from headrace.operators.table.base import quote
from headrace.state.key_secret import KeySecret

#: How columns of digests begin, while keys are computed.
_DIGEST = "__digest"
#: What the numbers of some columns are called, while those of a key are made of them.
_VALUES = ("__values1", "__values2")
#: Digits of a decimal that Spark keeps in 64 bits.
_LONG_DIGITS = 18
#: For how many values a number of each type can say which are NULL: the type's literals end with the letter.
_FEW, _MANY = ("Y", 7), ("L", 63)
_INTEGERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_FIXED = (
    *(*_INTEGERS, t.BooleanType, t.FloatType, t.DoubleType),
    *(t.DateType, t.TimestampType, t.TimestampNTZType, t.TimeType),
    t.DayTimeIntervalType,
)


class RowKeys:
    """Computes keys with the secret of a job.

    The secret comes to Spark as a broadcast, of which plans, and so Spark's pages and logs, show the number only.
    """

    def __init__(self, session: SparkSession, secret: KeySecret) -> None:
        jvm = session._jvm
        assert jvm is not None
        self._broadcast = session._jsc.broadcast(jvm.scala.Some(secret.value))
        self._secret = _hidden_column(jvm, self._broadcast)

    def with_keys(
        self,
        frame: DataFrame,
        keys: Mapping[tuple[str, str], Sequence[str]],
        items: Sequence[str] = ("*",),
    ) -> DataFrame:
        """Add both numbers of some keys to rows.

        Args:
            frame: The rows.
            keys: The columns of each key, under the names of the two columns to add.
            items: Spark SQL of what to keep besides; the columns as they are if it is left out.
        """
        types = {field.name: field.dataType for field in frame.schema}
        kept = [quote(name) for name in frame.columns] if tuple(items) == ("*",) else items
        made = [
            _Key([(quote(column), types[column]) for column in columns], f"{_DIGEST}{number}")
            for number, columns in enumerate(keys.values())
        ]
        digests = [key.digest(self._secret).alias(key.name) for key in made if key.is_hashed]
        if digests:  # in a step of its own, or Spark would compute each of them twice
            frame = frame.select("*", *digests)
        numbers = [
            number.alias(name)
            for key, names in zip(made, keys, strict=True)
            for number, name in zip(key.numbers(self._secret), names, strict=True)
        ]
        return frame.select(*map(F.expr, kept), *numbers)

    def has_digest(self, frame: DataFrame, columns: Sequence[str]) -> bool:
        """Whether the numbers of a key are always those of a digest, which takes long to compute."""
        types = {field.name: field.dataType for field in frame.schema}
        return _Key([(quote(column), types[column]) for column in columns], _DIGEST).is_hashed

    def with_values(
        self,
        frame: DataFrame,
        names: tuple[str, str],
        key: tuple[str, str],
        columns: Sequence[str],
        items: Sequence[str],
    ) -> DataFrame:
        """Add both numbers of a key whose first columns are known by the numbers of a digest.

        Within a key they are one-to-one for one other column of a fixed width. Nobody knows the digests, so nobody can
        choose values for which both numbers are those of another key: both would have to fit by chance.

        Args:
            frame: The rows.
            names: What the numbers are called.
            key: Both numbers of the first columns.
            columns: The other columns.
            items: Spark SQL of what to keep besides.
        """
        one, other = _VALUES
        frame = self.with_keys(frame, {_VALUES: columns})
        numbers = (f"xxhash64({one}, {other}, {key[0]})", f"xxhash64({key[1]}, {one}, {other})")
        named = [f"{sql} AS {quote(name)}" for sql, name in zip(numbers, names, strict=True)]
        return frame.selectExpr(*items, *named)

    def close(self) -> None:
        """Release the broadcast variable."""
        with suppress(Py4JError, OSError):
            self._broadcast.destroy()


def _hidden_column(jvm: Any, broadcast: Any) -> Column:
    """Return the value of a broadcast as a column.

    Spark must not compute it while it plans, because the plan would show it then: what comes out of an object, as the
    option does, is left to the tasks.
    """
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()

    def object_type(name: str) -> Any:
        return jvm.org.apache.spark.sql.types.ObjectType(jvm.java.lang.Class.forName(name, True, loader))

    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    none = getattr(getattr(jvm.scala.collection.immutable, "Nil$"), "MODULE$")
    binary = getattr(getattr(jvm.org.apache.spark.sql.types, "BinaryType$"), "MODULE$")
    held = expressions.Literal(broadcast, object_type("org.apache.spark.broadcast.Broadcast"))
    option = expressions.objects.Invoke(
        held, "value", object_type("scala.Option"), none, none, True, False, True
    )
    value = expressions.objects.UnwrapOption(binary, option)
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(value))


class _Key:
    """The columns of one key, and what Spark computes of them."""

    def __init__(self, columns: Sequence[tuple[str, t.DataType]], name: str) -> None:
        self._columns = columns
        #: What the digest is called.
        self.name = name
        #: Whether its numbers are always those of its digest.
        self.is_hashed = len(columns) > 2 or not all(_is_fixed(kind) for _, kind in columns)

    def digest(self, secret: Column) -> Column:
        """Return the digest of the values and a secret."""
        return F.sha2(F.concat(secret, F.expr(encoding_sql(self._columns))), 256)

    def numbers(self, secret: Column) -> tuple[Column, Column]:
        """Return the two BIGINT columns that stand for the key: its values if they fit, else halves of its digest."""
        if not self._columns:
            return F.expr("0L"), F.expr("0L")
        if self.is_hashed:
            return _halves(F.col(self.name))
        has_null = F.expr(" OR ".join(f"isnull({sql})" for sql, _ in self._columns))
        hashed = _halves(self.digest(secret))
        first, second = (
            F.when(has_null, one).otherwise(F.expr(other))
            for one, other in zip(hashed, self._packed(), strict=True)
        )
        return first, second

    def _packed(self) -> tuple[str, str]:
        """Return two numbers that the values can be computed from.

        xxhash64 of one value of up to 64 bits is one-to-one. That of two values starts from the hash of the first, and
        is one-to-one in it once the second is known, which the other number says.
        """
        values = [_fixed_sql(sql, kind) for sql, kind in self._columns]
        if len(values) == 1:
            return f"xxhash64({values[0]})", "0L"
        return f"xxhash64({values[0]}, {values[1]})", f"xxhash64({values[1]})"


def _halves(digest: Column) -> tuple[Column, Column]:
    """Return 128 bits of a digest."""
    return F.xxhash64(digest), F.xxhash64(F.expr("1L"), digest)


# -- the encoding --------------------------------------------------------------------------------------------------


def encoding_sql(columns: Sequence[tuple[str, t.DataType]], depth: int = 0) -> str:
    """Return Spark SQL of bytes, as one BINARY, that are the same for the same values only.

        which values are NULL | the values, each in a form that says where it ends

    Args:
        columns: The SQL of each value, and its type.
        depth: How many lambdas are around it.
    """
    letter, most = _FEW if len(columns) <= _FEW[1] else _MANY
    flags = [
        f"CAST({_flags_sql(columns[at : at + most], letter)} AS BINARY)"
        for at in range(0, len(columns), most)
    ]
    bodies = [f"coalesce({_body_sql(sql, kind, depth)}, X'')" for sql, kind in columns]
    return f"concat({', '.join([*flags, *bodies])})"


def _flags_sql(columns: Sequence[tuple[str, t.DataType]], letter: str) -> str:
    flags = [f"IF(isnull({sql}), {1 << at}{letter}, 0{letter})" for at, (sql, _) in enumerate(columns)]
    return f"({' | '.join(flags)})"


def _body_sql(sql: str, kind: t.DataType, depth: int) -> str:
    """Return a value as bytes of which none are the beginning of another's; always the same ones, or NULL, for NULL."""
    if _is_fixed(kind):
        # One-to-one for up to 64 bits, and the same for -0.0 and 0.0, and for one NaN and another.
        return f"CAST(xxhash64({_fixed_sql(sql, kind)}) AS BINARY)"
    if isinstance(kind, t.StringType | t.CharType | t.VarcharType):
        return _sized_sql(f"CAST({sql} AS BINARY)")
    if isinstance(kind, t.BinaryType):
        return _sized_sql(sql)
    if isinstance(kind, t.DecimalType):
        return _sized_sql(f"CAST(CAST({sql} AS STRING) AS BINARY)")
    if isinstance(kind, t.NullType):
        return "CAST(NULL AS BINARY)"
    if isinstance(kind, t.StructType):
        parts = [(f"{sql}.{quote(field.name)}", field.dataType) for field in kind.fields]
        return encoding_sql(parts, depth)
    if isinstance(kind, t.ArrayType | t.MapType):
        return _elements_sql(sql, kind, depth)
    raise UnsupportedFeatureError(
        f"values of type {kind.simpleString().upper()} cannot be compared, so they cannot be a key",
        feature=f"a key of type {kind.simpleString().upper()}",
        hint="use a column of another type, or CAST it to STRING",
    )


def _elements_sql(sql: str, kind: t.ArrayType | t.MapType, depth: int) -> str:
    """Return how many elements there are, and each of them; entries of a map by the order of their bytes."""
    each = f"__e{depth}"
    if isinstance(kind, t.ArrayType):
        elements, parts = sql, [(each, kind.elementType)]
    else:
        elements = f"map_entries({sql})"
        parts = [(f"{each}.key", kind.keyType), (f"{each}.value", kind.valueType)]
    # Spark joins texts only; a text of Spark may be any bytes.
    encoded = f"transform({elements}, {each} -> CAST({encoding_sql(parts, depth + 1)} AS STRING))"
    if isinstance(kind, t.MapType):
        encoded = f"array_sort({encoded})"
    return f"concat(CAST(size({sql}) AS BINARY), CAST(array_join({encoded}, '') AS BINARY))"


def _sized_sql(binary: str) -> str:
    return f"concat(CAST(octet_length({binary}) AS BINARY), {binary})"


def _is_fixed(kind: t.DataType) -> bool:
    """Whether Spark hashes values of a type as a number of at most 64 bits."""
    return isinstance(kind, _FIXED) or (isinstance(kind, t.DecimalType) and kind.precision <= _LONG_DIGITS)


def _fixed_sql(sql: str, kind: t.DataType) -> str:
    """Return a value of a fixed width; numbers that are equal have the same width, whatever their types."""
    if isinstance(kind, _INTEGERS):
        return f"CAST({sql} AS BIGINT)"
    return f"CAST({sql} AS DOUBLE)" if isinstance(kind, t.FloatType) else sql
