"""The text of values of declared types."""

import datetime
import decimal

from pyflink.common import Row, RowKind, Types
from pyflink.common.time import Instant

from . import failing, stream


@stream
def strings(env):
    return env.from_collection(["a", "", "naïve", "two words"], Types.STRING())


@stream
def strings_none(env):
    return (
        env.from_collection([1, 2])
        .map(lambda n: "x" if n == 1 else None, Types.STRING())
        .map(lambda s: s or "nothing", Types.STRING())
    )


@stream
def booleans(env):
    return env.from_collection([True, False], Types.BOOLEAN())


@stream
def bytes_(env):
    return env.from_collection([1, -128, 127], Types.BYTE())


@stream
def shorts(env):
    return env.from_collection([1, -32768, 32767], Types.SHORT())


@stream
def ints(env):
    return env.from_collection([1, -(2**31), 2**31 - 1], Types.INT())


@stream
def longs(env):
    return env.from_collection([1, -(2**63), 2**63 - 1], Types.LONG())


_FLOATS = [
    0.0,
    -0.0,
    1.0,
    1.5,
    0.1,
    110.1,
    1e7,
    9999999.0,
    1e-3,
    0.00099,
    1e10,
    123456789.0,
    3.4e38,
    1e-45,
    1 / 3,
]


@stream
def floats_mapped(env):
    return env.from_collection(list(_FLOATS)).map(lambda x: x, Types.FLOAT())


@stream
def floats_special(env):
    return env.from_collection([float("inf"), float("-inf"), float("nan")]).map(lambda x: x, Types.FLOAT())


@stream
def floats_collected(env):
    return env.from_collection([1.5, 0.1, 110.1], Types.FLOAT())


@stream
def doubles_mapped(env):
    return env.from_collection(list(_FLOATS)).map(lambda x: x * 1.0, Types.DOUBLE())


@stream(because="Java 17 writes 1e23 as 9.999999999999999E22; headrace writes the shortest digits")
def doubles_more(env):
    numbers = [
        1e21,
        1e22,
        1e23,
        2e-3,
        1.1e-5,
        5e-324,
        1.7976931348623157e308,
        100.0,
        1234567.125,
        12345678.9,
        2.0**53,
    ]
    return env.from_collection(numbers).map(lambda x: x, Types.DOUBLE())


@stream
def doubles_special(env):
    return env.from_collection([float("inf"), float("-inf"), float("nan")]).map(lambda x: x, Types.DOUBLE())


@stream
def doubles_from_ints(env):
    return env.from_collection([1, 2]).map(float, Types.DOUBLE())


@stream(because="headrace takes what can be read without doubt, where PyFlink fails in its serializer")
def big_ints(env):
    return env.from_collection([1, 2**70, -(2**64)]).map(lambda x: x, Types.BIG_INT())


@stream
def decimals(env):
    numbers = [decimal.Decimal(each) for each in ("1", "1.50", "-0.001", "12345678901234567890.5", "0")]
    return env.from_collection(numbers).map(lambda x: x, Types.BIG_DEC())


@stream
def dates(env):
    return env.from_collection([datetime.date(2020, 1, 2), datetime.date(1969, 12, 31)], Types.SQL_DATE())


@stream
def times(env):
    return env.from_collection([datetime.time(1, 2, 3), datetime.time(23, 59, 59)], Types.SQL_TIME())


@stream
def timestamps(env):
    moments = [
        datetime.datetime(2020, 1, 2, 3, 4, 5),  # noqa: DTZ001
        datetime.datetime(2020, 1, 2, 3, 4, 5, 120000),  # noqa: DTZ001
        datetime.datetime(2020, 1, 2, 3, 4, 5, 123456),  # noqa: DTZ001
    ]
    return env.from_collection(moments).map(lambda x: x, Types.SQL_TIMESTAMP())


@stream
def instants(env):
    moments = [(0, 0), (1, 500000000), (1600000000, 123000000), (1600000000, 123456000)]
    return env.from_collection(moments).map(lambda x: Instant(*x), Types.INSTANT())


@stream
def tuples(env):
    return env.from_collection(
        [("hi", 1, 30, 7)], Types.TUPLE([Types.STRING(), Types.INT(), Types.INT(), Types.INT()])
    )


@stream
def tuples_of_all(env):
    kinds = Types.TUPLE([Types.BOOLEAN(), Types.FLOAT(), Types.DOUBLE(), Types.LONG(), Types.STRING()])
    return env.from_collection([1]).map(lambda _: (True, 0.1, 0.1, 5, "x"), kinds)


@stream(because="headrace takes what can be read without doubt, where PyFlink fails in its serializer")
def tuples_with_none(env):
    kinds = Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING()])
    return env.from_collection([1]).map(lambda _: (None, None, "a"), kinds)


@stream
def tuples_nested(env):
    kinds = Types.TUPLE([Types.INT(), Types.TUPLE([Types.STRING(), Types.BOOLEAN()])])
    return env.from_collection([1]).map(lambda _: (1, ("a", True)), kinds)


@stream(because="headrace takes what can be read without doubt, where PyFlink fails in its serializer")
def tuples_from_lists(env):
    return env.from_collection([1]).map(lambda _: [1, "a"], Types.TUPLE([Types.INT(), Types.STRING()]))


@stream
def tuples_with_lists(env):
    kinds = Types.TUPLE([Types.INT(), Types.BASIC_ARRAY(Types.STRING()), Types.PRIMITIVE_ARRAY(Types.INT())])
    return env.from_collection([1]).map(lambda _: (1, ["a", "b"], [1, 2]), kinds)


@stream
def tuples_with_maps(env):
    kinds = Types.TUPLE([Types.INT(), Types.MAP(Types.STRING(), Types.INT())])
    return env.from_collection([1]).map(lambda _: (1, {"a": 1, "b": 2}), kinds)


@stream
def tuples_with_dates(env):
    kinds = Types.TUPLE([Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP()])
    moment = datetime.datetime(2020, 1, 2, 3, 4, 5)  # noqa: DTZ001
    return env.from_collection([1]).map(lambda _: (moment.date(), moment.time(), moment), kinds)


@stream
def rows(env):
    return env.from_collection([Row(1, "Hello"), Row(2, "Hi")], Types.ROW([Types.INT(), Types.STRING()]))


@stream
def rows_named(env):
    return env.from_collection(
        [Row(1, "Hello")], Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()])
    )


@stream
def rows_from_tuples(env):
    return env.from_collection([(1, "Hello")], Types.ROW([Types.INT(), Types.STRING()]))


@stream
def rows_with_none(env):
    kinds = Types.ROW([Types.INT(), Types.STRING(), Types.BOOLEAN()])
    return env.from_collection([1]).map(lambda _: Row(None, None, True), kinds)


@stream
def rows_of_kinds(env):
    def kinds(n):
        return Row.of_kind(RowKind(n), n)

    return env.from_collection([0, 1, 2, 3]).map(kinds, Types.ROW([Types.INT()]))


@stream
def rows_nested(env):
    kinds = Types.ROW([Types.INT(), Types.ROW([Types.STRING(), Types.FLOAT()])])
    return env.from_collection([1]).map(lambda _: Row(1, Row("a", 0.1)), kinds)


@stream
def rows_with_collections(env):
    kinds = Types.ROW(
        [
            Types.BASIC_ARRAY(Types.STRING()),
            Types.PRIMITIVE_ARRAY(Types.LONG()),
            Types.MAP(Types.STRING(), Types.BOOLEAN()),
            Types.LIST(Types.DOUBLE()),
        ]
    )
    return env.from_collection([1]).map(lambda _: Row(["a", None], [1, 2], {"k": True}, [1.0, 0.5]), kinds)


@stream
def rows_with_tuples(env):
    kinds = Types.ROW([Types.TUPLE([Types.INT(), Types.STRING()]), Types.BOOLEAN()])
    return env.from_collection([1]).map(lambda _: Row((1, "a"), False), kinds)


@stream
def rows_with_decimals(env):
    kinds = Types.ROW([Types.BIG_DEC(), Types.SQL_DATE()])
    return env.from_collection([1]).map(
        lambda _: Row(decimal.Decimal("1.50"), datetime.date(2020, 1, 2)), kinds
    )


@stream
def maps(env):
    return env.from_collection([1]).map(lambda _: {"a": 1.5}, Types.MAP(Types.STRING(), Types.DOUBLE()))


@stream
def maps_several(env):
    kinds = Types.MAP(Types.STRING(), Types.INT())
    return env.from_collection([1]).map(lambda _: {"zebra": 1, "a": 2, "m": 3}, kinds)


@stream
def lists(env):
    return env.from_collection([1]).map(lambda _: ["a", "b"], Types.LIST(Types.STRING()))


@stream
def lists_of_booleans(env):
    return env.from_collection([1]).map(lambda _: [True, False], Types.LIST(Types.BOOLEAN()))


@stream
def undeclared_scalars(env):
    return env.from_collection([1, 1.5, "a", None, True])


@stream
def undeclared_tuples(env):
    return env.from_collection([("hi", 1, None, True)])


@stream
def undeclared_rows(env):
    return env.from_collection([1]).map(lambda n: Row(n, "a", None, True))


@stream
def undeclared_collections(env):
    return env.from_collection([{"a": 1}, [1, "b"], {1}])


@stream
def pickled(env):
    return env.from_collection([1]).map(lambda n: (n, "a"), Types.PICKLED_BYTE_ARRAY())


@stream(because="PyFlink prints the character zero for any, which is a defect of its CHAR")
def chars(env):
    return env.from_collection(["a", "z"]).map(lambda c: c, Types.CHAR())


@stream
def float_then_untyped(env):
    return env.from_collection([0.1, 110.1], Types.FLOAT()).map(lambda x: x)


@stream
def float_in_tuple_then_untyped(env):
    kinds = Types.TUPLE([Types.STRING(), Types.FLOAT()])
    return env.from_collection([("a", 110.1)], kinds).map(lambda x: x)


@stream
def float_mapped_keyed(env):
    kinds = Types.TUPLE([Types.STRING(), Types.FLOAT()])
    mapped = env.from_collection([1]).map(lambda _: ("a", 110.1), kinds)
    return mapped.key_by(lambda x: x[0], Types.STRING()).map(lambda x: x)


@stream
def primitive_array_then_untyped(env):
    mapped = env.from_collection([1]).map(lambda _: [1, 2, 3], Types.PRIMITIVE_ARRAY(Types.INT()))
    return mapped.rebalance().map(lambda x: (type(x).__name__, list(x)))


@stream
def primitive_doubles_then_untyped(env):
    mapped = env.from_collection([1]).map(lambda _: [1.0, 2.5], Types.PRIMITIVE_ARRAY(Types.DOUBLE()))
    return mapped.rebalance().map(lambda x: (type(x).__name__, list(x)))


@stream
def primitive_floats_then_untyped(env):
    mapped = env.from_collection([1]).map(lambda _: [0.1], Types.PRIMITIVE_ARRAY(Types.FLOAT()))
    return mapped.rebalance().map(lambda x: (type(x).__name__, list(x)))


@stream
def byte_array_then_untyped(env):
    mapped = env.from_collection([1]).map(lambda _: b"ab", Types.PRIMITIVE_ARRAY(Types.BYTE()))
    return mapped.rebalance().map(lambda x: (type(x).__name__, x))


@stream
def basic_array_then_untyped(env):
    mapped = env.from_collection([1]).map(lambda _: ["a", None], Types.BASIC_ARRAY(Types.STRING()))
    return mapped.rebalance().map(lambda x: (type(x).__name__, list(x)))


@stream
def object_array_then_untyped(env):
    kinds = Types.OBJECT_ARRAY(Types.TUPLE([Types.INT()]))
    mapped = env.from_collection([1]).map(lambda _: [(1,), (2,)], kinds)
    return mapped.rebalance().map(lambda x: (type(x).__name__, list(x)))


@stream
def row_named_then_untyped(env):
    kinds = Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()])
    mapped = env.from_collection([1]).map(lambda _: Row(1, "a"), kinds)
    return mapped.rebalance().map(lambda r: (r.id, r["word"], str(r), repr(r)))


@stream
def row_then_untyped(env):
    kinds = Types.ROW([Types.INT(), Types.STRING()])
    mapped = env.from_collection([1]).map(lambda _: Row(1, "a"), kinds)
    return mapped.rebalance().map(lambda r: (r[0], r.f1, str(r), repr(r)))


@stream
def row_collected_then_untyped(env):
    kinds = Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()])
    return env.from_collection([(1, "a")], kinds).map(
        lambda r: (type(r).__name__, r.id, repr(r), str(r.as_dict()))
    )


@stream
def dict_as_row(env):
    kinds = Types.ROW_NAMED(["id", "word"], [Types.INT(), Types.STRING()])
    return env.from_collection([{"id": 1, "word": "a"}], kinds)


@stream(because="headrace takes what can be read without doubt, where PyFlink fails in its serializer")
def tuple_mapped_as_row(env):
    return env.from_collection([1]).map(lambda _: (1, "a"), Types.ROW([Types.INT(), Types.STRING()]))


@stream(because="headrace takes what can be read without doubt, where PyFlink fails in its serializer")
def row_mapped_as_tuple(env):
    return env.from_collection([1]).map(lambda _: Row(1, "a"), Types.TUPLE([Types.INT(), Types.STRING()]))


@stream
def boolean_as_int(env):
    return env.from_collection([1]).map(lambda _: True, Types.INT())


@stream
def int_as_double(env):
    return env.from_collection([1]).map(lambda _: 3, Types.DOUBLE())


@stream
def int_as_boolean(env):
    return env.from_collection([1, 0, 5]).map(lambda n: n, Types.BOOLEAN())


@stream(because="headrace takes what can be read without doubt, where PyFlink fails in its serializer")
def list_then_untyped(env):
    mapped = env.from_collection([1]).map(lambda _: (1, 2), Types.LIST(Types.INT()))
    return mapped.rebalance().map(lambda x: (type(x).__name__, x))


@stream(
    because="PyFlink cuts timestamps to milliseconds; headrace keeps them as tables and formats have them"
)
def timestamp_then_untyped(env):
    moment = datetime.datetime(2020, 1, 2, 3, 4, 5, 123456)  # noqa: DTZ001
    return env.from_collection([1]).map(lambda _: moment, Types.SQL_TIMESTAMP()).rebalance().map(lambda x: x)


@stream
def keyed_stream(env):
    kinds = Types.TUPLE([Types.STRING(), Types.INT()])
    return (
        env.from_collection([("a", 1), ("a", 2)], kinds)
        .key_by(lambda x: x[0], Types.STRING())
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


@stream
def union_typed(env):
    one = env.from_collection([(1, True)], Types.TUPLE([Types.INT(), Types.BOOLEAN()]))
    return one.union(env.from_collection([(2, False)], Types.TUPLE([Types.INT(), Types.BOOLEAN()])))


@stream
def filter_typed(env):
    kinds = Types.TUPLE([Types.INT(), Types.BOOLEAN()])
    return env.from_collection([(1, True), (2, False)], kinds).filter(lambda x: x[1])


@stream
def project_typed(env):
    kinds = Types.TUPLE([Types.INT(), Types.BOOLEAN(), Types.STRING()])
    return env.from_collection([(1, True, "a")], kinds).project(2, 0)


@failing
def int_overflow(env):
    return env.from_collection([1]).map(lambda _: 2**31, Types.INT())


@failing
def long_overflow(env):
    return env.from_collection([1]).map(lambda _: 2**63, Types.LONG())


@failing
def string_as_int(env):
    return env.from_collection([1]).map(lambda _: "a", Types.INT())


@failing
def int_as_string(env):
    return env.from_collection([1]).map(lambda _: 1, Types.STRING())


@failing(because="PyFlink drops what is behind the point; headrace refuses to lose it silently")
def float_as_int(env):
    return env.from_collection([1]).map(lambda _: 1.5, Types.INT())


@failing
def string_as_double(env):
    return env.from_collection([1]).map(lambda _: "1.5", Types.DOUBLE())


@failing(because="headrace prints null, where PyFlink fails in its print sink")
def none_as_int(env):
    return env.from_collection([1]).map(lambda _: None, Types.INT())


@failing
def float_overflow(env):
    return env.from_collection([1]).map(lambda _: 1e300, Types.FLOAT())


@failing
def short_row(env):
    return env.from_collection([1]).map(lambda _: Row(1), Types.ROW([Types.INT(), Types.INT()]))


@failing(because="PyFlink cuts the number to 32 bits; headrace refuses it")
def collected_int_overflow(env):
    return env.from_collection([2**31], Types.INT())


@failing
def scalar_as_tuple(env):
    return env.from_collection([1]).map(lambda _: 1, Types.TUPLE([Types.INT()]))
