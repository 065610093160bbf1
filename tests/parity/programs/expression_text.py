"""The text of every expression that a method of `Expression` or a function of `expressions` makes."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from pyflink.table import DataTypes, expressions
from pyflink.table.expression import (
    JsonExistsOnError,
    JsonOnNull,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
    TimeIntervalUnit,
    TimePointUnit,
)
from pyflink.table.udf import udf

from . import values

_PROPERTIES = """
    abs acos array_agg asc ascii asin atan avg bin cardinality char_length chr collect cos cosh cot count day
    degrees desc distinct element end exp first_value flatten from_base64 hex hour init_cap is_false
    is_not_false is_not_null is_not_true is_null is_true last_value ln log10 log2 lower_case map_entries
    map_keys map_values max md5 min proctime radians reverse rowtime sha1 sha224 sha256 sha384 sha512 sign sin
    sinh sqrt start stddev_pop stddev_samp sum sum0 tan tanh to_base64 to_date to_time to_timestamp unhex
    upper_case var_pop var_samp array_distinct() array_max() array_min() array_reverse() array_sort()
    bitmap_and_agg() bitmap_and_cardinality_agg() bitmap_build() bitmap_build_agg()
    bitmap_build_cardinality_agg() bitmap_cardinality() bitmap_from_bytes() bitmap_or_agg()
    bitmap_or_cardinality_agg() bitmap_to_array() bitmap_to_bytes() bitmap_to_string() bitmap_xor_agg()
    bitmap_xor_cardinality_agg() btrim() inet_aton() inet_ntoa() json_quote() json_unquote() url_decode()
    url_encode() list_agg() log() ltrim() rtrim() trim() trim_leading() trim_trailing() truncate()
    str_to_map() is_json() ceil() floor()
"""

_CALLS = """
    a.alias('x') a.array_append(1) a.array_concat(b,b) a.array_contains(1) a.array_except(b)
    a.array_intersect(b) a.array_join(',') a.array_join(',','n') a.array_position(1) a.array_prepend(1)
    a.array_remove(1) a.array_slice(1) a.array_slice(1,2) a.array_sort(True) a.array_sort(True,False)
    a.array_union(b) a.as_argument('x') a.at(1) a.between(1,2) a.bitmap_and(b) a.bitmap_andnot(b)
    a.bitmap_or(b) a.bitmap_xor(b) a.btrim('x') a.cast(DataTypes.BIGINT()) a.cast(DataTypes.STRING())
    a.cast(DataTypes.DECIMAL(5,2)) a.cast(DataTypes.INT(False)) a.ceil(TimeIntervalUnit.HOUR)
    a.floor(TimeIntervalUnit.DAY) a.concat(b) a.decode('UTF-8') a.elt(b,'x') a.encode('UTF-8')
    a.ends_with('x') a.starts_with('x') a.extract(TimeIntervalUnit.DAY) a.get('f') a['f'] a[1] a.if_null(0)
    a.in_(1,2) a.in_('x') a.instr('x') a.is_json(JsonType.SCALAR) a.json_exists('$.x') a.left(2) a.right(2)
    a.json_exists('$.x',JsonExistsOnError.ERROR) a.json_value('$.x')
    a.json_value('$.x',DataTypes.INT(),JsonValueOnEmptyOrError.DEFAULT,1,JsonValueOnEmptyOrError.ERROR)
    a.json_query('$.x') a.json_query('$.x',JsonQueryWrapper.CONDITIONAL_ARRAY)
    a.json_query('$.x',JsonQueryWrapper.WITHOUT_ARRAY,JsonQueryOnEmptyOrError.EMPTY_ARRAY,JsonQueryOnEmptyOrError.ERROR)
    a.like('x%') a.like('x%','!') a.similar('x') a.list_agg(';') a.locate('x') a.locate('x',2) a.log(2)
    a.lpad(3,'x') a.rpad(3,'x') a.ltrim('x') a.rtrim('x') a.map_union(b) a.not_between(1,2) a.over('w')
    a.sum.over(col('w')) a.overlay('x',2) a.overlay('x',2,3) a.parse_url('HOST') a.parse_url('QUERY','k')
    a.percentile(0.5) a.percentile(0.5,b) a.position('x') a.printf(1,'x') a.regexp('x') a.regexp_count('x')
    a.regexp_extract('x') a.regexp_extract('x',1) a.regexp_extract_all('x') a.regexp_extract_all('x',1)
    a.regexp_instr('x') a.regexp_replace('x','y') a.regexp_substr('x') a.repeat(3) a.replace('x','y')
    a.round(1) a.sha2(256) a.split(',') a.split_index(',',1) a.str_to_map(',','=') a.substr(1) a.substr(1,2)
    a.substring(1) a.substring(1,2) a.then(1,2) a.translate('x','y') a.trim('x') a.trim_leading('x')
    a.trim_trailing('x') a.truncate(2) a.try_cast(DataTypes.INT()) a.object_update('k',1) a.x a+1 a-1 a*2 a/2
    a%2 a**2 1+a 1-a 2*a 2/a 2%a 2**a -a ~a a==1 a!=1 a<1 a>1 a<=1 a>=1 a&b a|b (a>1)&(b<2)|(a==b)
    a.sum.distinct a.distinct.sum a.count.alias('n') (a+1).alias('x') a.asc.desc a.is_null.is_true abs(a)
    lit(1).seconds lit(2).minutes lit(3).hours lit(4).days lit(1).milli lit(5).weeks lit(1).months
    lit(2).years lit(1).quarters lit(1).second lit(1).minute lit(1).hour lit(1).day lit(2).millis lit(1).week
    lit(1).month lit(1).year lit(1).quarter lit(None) lit('it''s') lit("it's") lit(2.0) lit(1e20) lit(1e-5)
    lit(3000000000) lit(-1) lit(False) lit(b'ab') lit(Decimal('1.50')) lit(date(2024,1,2)) lit(time(1,2,3))
    lit(datetime(2024,1,2,3,4,5)) lit(timedelta(seconds=5)) lit([1,2]) lit(1,DataTypes.BIGINT())
    lit('x',DataTypes.STRING()) lit(1,DataTypes.BIGINT(False)) lit(datetime(2024,1,2,3,4,5,600)) col('a')
    col('my_col') col('select') col('Ab') range_('a','c') range_(1,3) and_(a,b,a) or_(a,b) not_(a)
    current_database() current_date() current_time() current_timestamp() current_watermark(a) local_time()
    local_timestamp() to_date('x') to_date('x','yyyy') to_timestamp('x') to_timestamp('x','yyyy')
    to_timestamp_ltz(a,3) temporal_overlaps(a,lit(1).hours,b,lit(2).hours) date_format(a,'yyyy')
    timestamp_diff(TimePointUnit.DAY,a,b) convert_tz('x','UTC','CET') from_unixtime(a) from_unixtime(a,'yyyy')
    unix_timestamp() unix_timestamp('x') unix_timestamp('x','yyyy') array(1,2) row(1,'a') map_('k',1)
    map_from_arrays(a,b) row_interval(5) pi() e() rand() rand(1) rand(a) rand_integer(3) rand_integer(3,1)
    atan2(a,b) negative(a) concat(a,'x') concat_ws(',',a,b) uuid() null_of(DataTypes.INT())
    null_of(DataTypes.STRING()) log(a) log(a,2) source_watermark() if_then_else(a>1,'x','y') coalesce(a,b,1)
    with_all_columns() with_columns('a','b') with_columns(range_('a','b')) without_columns('a') json('1')
    json_string(a) json_object(JsonOnNull.NULL,'k',1) json_object(JsonOnNull.ABSENT,'k',a) json_object()
    json_object_agg(JsonOnNull.NULL,a,b) json_array(JsonOnNull.NULL,1,a) json_array()
    json_array_agg(JsonOnNull.ABSENT,a) lag(a) lag(a,2) lag(a,1,0) lead(a) lead(a,2,0) call('f',a,1)
    call('UPPER',a) call('my.db.f',a) call_sql('a+1') call(twice,a) twice(a) descriptor('a','b')
    object_of('x.Y','k',1) UNBOUNDED_ROW UNBOUNDED_RANGE CURRENT_ROW CURRENT_RANGE
"""


@udf(result_type=DataTypes.INT())
def twice(value):
    """Return the double."""
    return value * 2


_NAMES: dict[str, Any] = vars(expressions) | {
    "a": expressions.col("a"),
    "b": expressions.col("b"),
    **{
        each.__name__: each
        for each in (
            DataTypes, Decimal, JsonExistsOnError, JsonOnNull, JsonQueryOnEmptyOrError, JsonQueryWrapper, JsonType,
            JsonValueOnEmptyOrError, TimeIntervalUnit, TimePointUnit, date, datetime, time, timedelta,
        )
    },
    "twice": twice,
}  # fmt: skip


def _text(program: str) -> str:
    return str(eval(program, _NAMES))


_PROGRAMS = dict.fromkeys([f"a.{name}" for name in _PROPERTIES.split()] + _CALLS.split())
values(None, **{program: lambda program=program: _text(program) for program in _PROGRAMS})
