"""Type information: how it prints, and when two types are equal."""

from pyflink.common import Types
from pyflink.common.typeinfo import BasicType, TypeInformation

from . import values

_PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
_NAMED = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])

values(
    equal_basic=lambda: Types.INT() == Types.INT(),
    unequal_basic=lambda: Types.INT() == Types.LONG(),
    equal_tuple=lambda: Types.TUPLE([Types.STRING(), Types.INT()]) == _PAIR,
    unequal_tuple=lambda: Types.TUPLE([Types.STRING()]) == _PAIR,
    equal_row=lambda: Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]) == _NAMED,
    unequal_row_names=lambda: Types.ROW_NAMED(["a", "c"], [Types.INT(), Types.STRING()]) == _NAMED,
    equal_map=lambda: Types.MAP(Types.INT(), Types.INT()) == Types.MAP(Types.INT(), Types.INT()),
    equal_list=lambda: Types.LIST(Types.INT()) == Types.LIST(Types.INT()),
    equal_arrays=lambda: Types.BASIC_ARRAY(Types.INT()) == Types.BASIC_ARRAY(Types.INT()),
    is_type=lambda: isinstance(_PAIR, TypeInformation),
    basic_types=lambda: sorted(each.name for each in BasicType),
    basic_values=lambda: sorted(each.value for each in BasicType),
    row_names=_NAMED.get_field_names,
    row_names_generated=lambda: Types.ROW([Types.INT(), Types.INT()]).get_field_names(),
    row_index=lambda: (_NAMED.get_field_index("b"), _NAMED.get_field_index("z")),
    row_types=lambda: _NAMED.get_field_types() == [Types.INT(), Types.STRING()],
    tuple_types=lambda: _PAIR.get_field_types() == [Types.STRING(), Types.INT()],
    row_repr=lambda: repr(_NAMED),
    tuple_repr=lambda: repr(_PAIR),
    int_repr=lambda: repr(Types.INT()),
    string_repr=lambda: repr(Types.STRING()),
    big_dec_repr=lambda: repr(Types.BIG_DEC()),
    float_repr=lambda: repr(Types.FLOAT()),
    pickled_repr=lambda: repr(Types.PICKLED_BYTE_ARRAY()),
    list_repr=lambda: repr(Types.LIST(Types.INT())),
    map_repr=lambda: repr(Types.MAP(Types.STRING(), Types.INT())),
    array_repr=lambda: repr(Types.BASIC_ARRAY(Types.STRING())),
    primitive_repr=lambda: repr(Types.PRIMITIVE_ARRAY(Types.LONG())),
    object_array_repr=lambda: repr(Types.OBJECT_ARRAY(_PAIR)),
    date_repr=lambda: repr(Types.SQL_DATE()),
    time_repr=lambda: repr(Types.SQL_TIME()),
    timestamp_repr=lambda: repr(Types.SQL_TIMESTAMP()),
    instant_repr=lambda: repr(Types.INSTANT()),
    nested_repr=lambda: repr(Types.ROW([_PAIR, Types.LIST(Types.INT())])),
    names_twice=lambda: Types.ROW_NAMED(["a", "a"], [Types.INT(), Types.INT()]).get_field_names(),
    primitive_of_string=lambda: repr(Types.PRIMITIVE_ARRAY(Types.STRING())),
    basic_of_tuple=lambda: repr(Types.BASIC_ARRAY(_PAIR)),
)
