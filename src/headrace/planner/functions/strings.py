"""String functions: searching, cutting, padding, encoding, hashing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from headrace.planner.coercion import common_type, is_string, length_of
from headrace.planner.expressions import Call
from headrace.planner.functions.printf import emit_printf
from headrace.planner.functions.registry import FunctionRegistry, same_as
from headrace.planner.functions.signature import Emission, Nulls, WrongArguments
from headrace.planner.functions.text import any_is_null, constant, let, quoted, string_constant
from headrace.types import ArrayType, BooleanType, DataType, DataTypes, IntType, MapType
from headrace.types.logical import MAX_LENGTH, VarCharType

__all__ = ["STRINGS"]

STRINGS: Final = FunctionRegistry("string")
_STRING: Final = DataTypes.STRING()
_INT: Final = IntType()
_LEAST_INT: Final = -(2**31)
_ALWAYS: Final = Nulls.ALWAYS
#: What Java's decoder reads: blanks at the end may be missing, and nothing else may be there.
_BASE64: Final = quoted("^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==)?|[A-Za-z0-9+/]{3}=?)?$")


def _as_long_as_the_first(types: Sequence[DataType]) -> DataType:
    return VarCharType(length_of(types[0]))


STRINGS.add(
    "CHAR_LENGTH(text STRING)",
    _INT,
    "char_length({0})",
    "The number of characters.",
    aliases=["CHARACTER_LENGTH"],
)
STRINGS.add("UPPER(text STRING)", same_as(), "upper({0})", "The string in capitals.")
STRINGS.add("LOWER(text STRING)", same_as(), "lower({0})", "The string in small letters.")
STRINGS.add(
    "POSITION(needle STRING, text STRING)",
    _INT,
    "locate({0}, {1})",
    "`POSITION(needle IN text)`: the position of a string in another, counted from 1; 0 if it is not found.",
)
STRINGS.add(
    "LOCATE(needle STRING, text STRING [, start INT])",
    _INT,
    lambda _, each: (
        f"locate({', '.join(each)})"
        if len(each) < 3
        else f"IF({each[2]} IS NULL, NULL, locate({', '.join(each)}))"
    ),
    "The position of a string in another, counted from 1; 0 if it is not found.",
)


def _emit_instr(call: Call, operands: list[str]) -> str:
    if len(operands) == 2:
        return f"instr({operands[0]}, {operands[1]})"
    text, needle, given, *_ = operands
    found = _emit_place(call, operands)
    if string_constant(call, 1):
        return found
    # An empty string is found before the first character, or going backwards after the last one.
    beside = f"CASE WHEN {given} > 0 THEN 1 WHEN {given} < 0 THEN length({text}) + 1 ELSE 0 END"
    return f"CASE WHEN {needle} = '' AND {found} IS NOT NULL THEN {beside} ELSE {found} END"


def _emit_place(call: Call, operands: list[str]) -> str:
    start = constant(call.operands[2])
    if len(operands) == 3 and isinstance(start, int) and start > 0:
        return f"locate({operands[1]}, {operands[0]}, {operands[2]})"
    text, needle, given, *occurrence = operands
    return _emit_occurrence(text, needle, given, occurrence[0] if occurrence else "1")


def _emit_occurrence(text: str, needle: str, start: str, occurrence: str) -> str:
    """Where a string is found for the n-th time, from a start on, or from one that counts from the end backwards."""
    all_places = (
        f"filter(sequence(1, greatest(length({text}), 1)), "
        f"__at -> substring({text}, __at, length({needle})) = {needle})"
    )
    onward = f"filter(__places, __at -> __at >= {start})"
    end = f"length({text}) + {start} + 1"
    backward = f"reverse(filter(__places, __at -> __at + length({needle}) - 1 <= {end}))"
    places = f"CASE WHEN {start} > 0 THEN {onward} WHEN {start} < 0 THEN {backward} ELSE array() END"
    no_number = "raise_error('INSTR: an occurrence is counted from 1')"
    found = f"coalesce(get({places}, IF({occurrence} > 0, {occurrence} - 1, {no_number})), 0)"
    is_null = any_is_null([text, needle, start, occurrence])
    return f"IF({is_null}, NULL, {let('__places', all_places, found)})"


STRINGS.add(
    "INSTR(text STRING, needle STRING [, start INT, occurrence INT])",
    _INT,
    _emit_instr,
    "The position of the first or n-th occurrence of a string, counted from 1; 0 if it is not found. A negative start "
    "counts from the end, and the search goes backwards.",
)


def emit_trim(side: str, characters: str, text: str) -> str:
    """TRIM with its side."""
    return f"trim({side} {characters} FROM {text})"


def _trimming(side: str) -> Emission:
    return lambda _, each: emit_trim(side, each[1] if len(each) > 1 else "' '", each[0])


for _name, _side, _where in (
    ("LTRIM", "LEADING", "start"),
    ("RTRIM", "TRAILING", "end"),
    ("BTRIM", "BOTH", "ends"),
):
    STRINGS.add(
        f"{_name}(text STRING [, characters STRING])",
        _STRING if _name == "BTRIM" else _as_long_as_the_first,
        _trimming(_side),
        f"The string without blanks, or given characters, at its {_where}.",
    )
STRINGS.add(
    "TRIM(side ANY, characters STRING, text STRING)",
    lambda types: _as_long_as_the_first(types[2:]),
    lambda call, each: emit_trim(str(constant(call.operands[0])), each[1], each[2]),
    "`TRIM([BOTH | LEADING | TRAILING] [characters] FROM text)`: the string without blanks, or given characters.",
)
STRINGS.add(
    "REPEAT(text STRING, times INT)", _STRING, "repeat({0}, {1})", "The string repeated several times."
)


def _overlaid(text: str, new: str, start: str, length: str | None = None) -> str:
    length = f"char_length({new})" if length is None else length
    return (
        f"CASE WHEN {any_is_null([new, start, length])} THEN NULL "
        f"WHEN {start} <= 0 OR {start} > char_length({text}) THEN {text} "
        # As Flink, which drops what follows if no characters are replaced.
        f"WHEN {length} <= 0 THEN concat(left({text}, {start} - 1), {new}) "
        f"ELSE overlay({text} PLACING {new} FROM {start} FOR {length}) END"
    )


STRINGS.add(
    "OVERLAY(text STRING, new STRING, start INT [, length INT])",
    lambda types: VarCharType(min(length_of(types[0]) + length_of(types[1]), MAX_LENGTH)),
    lambda _, each: _overlaid(*each),
    "`OVERLAY(text PLACING new FROM start [FOR length])`: puts a string in place of a part.",
)


def _emit_substring(call: Call, operands: list[str]) -> str:
    text = f"substring({', '.join(operands)})"
    start = constant(call.operands[1])
    if len(operands) == 2 and isinstance(start, int):
        return f"left({operands[0]}, 0)" if start == _LEAST_INT else text
    if len(operands) == 2:
        return f"IF({operands[1]} = {_LEAST_INT}, '', {text})"  # Spark counts past the least number
    length = constant(call.operands[2])
    if isinstance(length, int) and length >= 0:
        return text
    return f"IF({operands[2]} < 0, NULL, {text})"


STRINGS.add(
    "SUBSTRING(text STRING, start INT [, length INT])",
    _as_long_as_the_first,
    _emit_substring,
    "A part of the string. The start counts from 1, or from the end if it is negative.",
    nulls=_ALWAYS,
    aliases=["SUBSTR"],
)
STRINGS.add(
    "LEFT(text STRING, length INT)",
    _as_long_as_the_first,
    "left({0}, {1})",
    "The first characters.",
    nulls=_ALWAYS,
)
STRINGS.add(
    "RIGHT(text STRING, length INT)",
    _as_long_as_the_first,
    "right({0}, {1})",
    "The last characters.",
    nulls=_ALWAYS,
)
STRINGS.add(
    "REPLACE(text STRING, old STRING, new STRING)",
    _STRING,
    lambda call, each: (
        f"replace({', '.join(each)})"
        if string_constant(call, 1)
        else f"IF({each[1]} = '', regexp_replace({each[0]}, '', {_as_it_is(each[2])}), replace({', '.join(each)}))"
    ),
    "The string with every occurrence of another replaced.",
)
STRINGS.add(
    "TRANSLATE(text STRING, from STRING, to STRING)",
    _STRING,
    "coalesce(translate({0}, {1}, {2}), {0})",
    "The string with characters replaced one by one.",
    nulls=Nulls.FIRST,
)
# Words are letters and digits of ASCII, and no other letters change: Spark's are all that is between blanks.
STRINGS.add(
    "INITCAP(text STRING)",
    same_as(),
    "array_join(transform(regexp_extract_all({0}, '[A-Za-z0-9]+|[^A-Za-z0-9]+', 0), __word -> IF(__word RLIKE "
    "'^[A-Za-z0-9]', concat(upper(left(__word, 1)), lower(substring(__word, 2))), __word)), '')",
    "Each word with a capital letter; words consist of ASCII letters and digits.",
)
STRINGS.add("REVERSE(text STRING)", _STRING, "reverse({0})", "The string backwards.", nulls=_ALWAYS)
STRINGS.add("CONCAT(text STRING...)", _STRING, "concat({all})", "The strings joined; NULL if one is.")
STRINGS.add(
    "CONCAT_WS(separator STRING, text STRING...)",
    _STRING,
    "concat_ws({all})",
    "The strings that are not NULL, with a separator between them.",
    nulls=Nulls.PASS,
)
for _name, _where in (("LPAD", "before"), ("RPAD", "after")):
    STRINGS.add(
        f"{_name}(text STRING, length INT, pad STRING)",
        _STRING,
        f"IF({{1}} < 0 OR {{2}} = '', NULL, {_name.lower()}({{0}}, {{1}}, {{2}}))",
        f"The string cut or filled to a length, with the pad {_where} it.",
    )
STRINGS.add(
    "FROM_BASE64(text STRING)",
    _STRING,
    lambda _, each: (
        f"IF({each[0]} IS NULL OR {each[0]} RLIKE {_BASE64}, make_valid_utf8(CAST(unbase64({each[0]}) AS string)), "
        f"CAST(raise_error(concat('FROM_BASE64: this is not BASE64: ', {each[0]})) AS string))"
    ),
    "The string encoded in BASE64.",
)
STRINGS.add("TO_BASE64(text STRING)", _STRING, "base64(CAST({0} AS binary))", "The string in BASE64.")
# The first byte, which has a sign in Java.
STRINGS.add(
    "ASCII(text STRING)",
    _INT,
    "IF({0} = '', 0, CAST(CAST(conv(hex(left(CAST({0} AS binary), 1)), 16, 10) AS int) AS tinyint))",
    "The first byte in UTF-8, as a signed number: the code of the character if it is ASCII, otherwise negative.",
)
STRINGS.add("CHR(number INTEGER)", _STRING, "chr({0})", "The character with this code.", nulls=_ALWAYS)
STRINGS.add("DECODE(bytes BYTES, charset STRING)", _STRING, "decode({0}, {1})", "Bytes as a string.")
STRINGS.add(
    "ENCODE(text STRING, charset STRING)",
    DataTypes.BYTES(),
    "encode({0}, {1})",
    "A string as bytes.",
)
STRINGS.add(
    ["STARTSWITH(text STRING, start STRING)", "STARTSWITH(bytes BYTES, start BYTES)"],
    BooleanType(),
    "startswith({0}, {1})",
    "Whether the string starts with another.",
)
STRINGS.add(
    ["ENDSWITH(text STRING, end STRING)", "ENDSWITH(bytes BYTES, end BYTES)"],
    BooleanType(),
    "endswith({0}, {1})",
    "Whether the string ends with another.",
)


def _emit_element(call: Call, operands: list[str]) -> str:
    place = constant(call.operands[0])
    if isinstance(place, int) and place < 0:
        raise WrongArguments(f"the index of ELT starts at 1; got {place}")
    return f"elt({', '.join(operands)})"


STRINGS.add(
    "ELT(place INT, text STRING...)",
    lambda types: common_type(types[1:]) or _STRING,
    _emit_element,
    "One of the strings, by its position, counted from 1.",
    nulls=_ALWAYS,
)
STRINGS.add(
    "PRINTF(format STRING [, value ANY...])",
    _STRING,
    emit_printf,
    "Formats values as Java's String.format does; NULL if a value does not fit the format.",
    nulls=_ALWAYS,
)
STRINGS.add(
    "URL_DECODE(text STRING)",
    _STRING,
    "try_url_decode({0})",
    "A string from application/x-www-form-urlencoded.",
    nulls=_ALWAYS,
)
STRINGS.add(
    "URL_ENCODE(text STRING)",
    _STRING,
    "url_encode({0})",
    "A string in application/x-www-form-urlencoded.",
    nulls=_ALWAYS,
)
STRINGS.add(
    "PARSE_URL(url STRING, part STRING [, key STRING])",
    _STRING,
    "try_parse_url({all})",
    "A part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, AUTHORITY, FILE, USERINFO.",
    nulls=_ALWAYS,
)

# --- parts ----------------------------------------------------------------------------------------


def _literal_pattern(call: Call, place: int, operands: list[str]) -> str:
    """A regular expression that finds the operand's text as it is."""
    text = string_constant(call, place)
    if text is not None:
        return quoted(re.escape(text)) if text else quoted("")
    return f"concat('\\\\Q', {operands[place]}, '\\\\E')"


def _emit_split_index(call: Call, operands: list[str]) -> str:
    text, delimiter, index = operands
    if not is_string(call.operands[1].type):
        code = f"IF({delimiter} BETWEEN 1 AND 65535, decode(unhex(lpad(hex({delimiter}), 4, '0')), 'UTF-16BE'), NULL)"
        return f"IF({text} = '', NULL, get(split({text}, concat('\\\\Q', {code}, '\\\\E')), {index}))"
    parts = f"split({text}, {_literal_pattern(call, 1, operands)})"
    known = string_constant(call, 1)
    if known is None:
        parts = f"IF({delimiter} = '', array({text}), {parts})"
    elif known == "":
        parts = f"array({text})"
    # An empty string has no parts at all in Flink.
    return f"IF({text} = '', NULL, get({parts}, {index}))"


STRINGS.add(
    [
        "SPLIT_INDEX(text STRING, delimiter STRING, index INT)",
        "SPLIT_INDEX(text STRING, character INTEGER, index INT)",
    ],
    _STRING,
    _emit_split_index,
    "One of the parts between delimiters, by its position, counted from 0; NULL if it does not exist.",
    nulls=_ALWAYS,
)
STRINGS.add(
    "SPLIT(text STRING, delimiter STRING)",
    ArrayType(_STRING),
    lambda call, each: (
        f"CASE WHEN {each[0]} = '' THEN array() WHEN {each[1]} = '' THEN split({each[0]}, '') "
        f"ELSE split({each[0]}, {_literal_pattern(call, 1, each)}) END"
    ),
    "The parts between delimiters; characters, if the delimiter is empty.",
)
#: Between entries, and between key and value.
_DELIMITERS: Final = (quoted(","), quoted("="))
STRINGS.add(
    "STR_TO_MAP(text STRING [, delimiter STRING, assignment STRING])",
    MapType(_STRING, _STRING),
    lambda _, each: (
        f"IF({each[0]} = '', map(), str_to_map({', '.join([*each, *_DELIMITERS[len(each) - 1 :]])}))"
    ),
    "A map from text such as `k1=v1,k2=v2`.",
    nulls=_ALWAYS,
)

# --- regular expressions --------------------------------------------------------------------------


def _groups(pattern: str) -> int | None:
    try:
        return re.compile(pattern).groups
    except re.error:
        return None  # Java's and Python's differ: let Spark judge.


def _is_broken(call: Call) -> bool:
    """Whether a pattern is known to have a bracket that nobody closes: Flink finds nothing then, Spark fails."""
    pattern = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]", "", string_constant(call, 1) or "")
    return pattern.count("(") != pattern.count(")")


def _searched(template: str, otherwise: str = "NULL") -> Emission:
    return lambda call, each: otherwise if _is_broken(call) else template.format(*each)


def _as_it_is(text: str) -> str:
    """A replacement in which nothing means a group."""
    return f"replace(replace({text}, '\\\\', '\\\\\\\\'), '$', '\\\\$')"


def _emit_regexp_extract(call: Call, operands: list[str]) -> str:
    if _is_broken(call):
        return "NULL"
    # Flink's default group is the whole match, and no match is NULL; Spark's are group 1 and ''.
    index = operands[2] if len(operands) > 2 else "0"
    number = constant(call.operands[2]) if len(operands) > 2 else 0
    pattern = string_constant(call, 1)
    groups = None if pattern is None else _groups(pattern)
    if isinstance(number, int) and groups is not None and not 0 <= number <= groups:
        return "NULL"
    found = f"regexp_extract({operands[0]}, {operands[1]}, {index})"
    return f"IF({operands[0]} RLIKE {operands[1]}{_is_group(index, number, groups)}, {found}, NULL)"


def _is_group(index: str, number: object, groups: int | None) -> str:
    """The condition that a group exists, after another condition, where its number is only known in rows."""
    return "" if isinstance(number, int) or groups is None else f" AND {index} BETWEEN 0 AND {groups}"


STRINGS.add(
    "REGEXP_EXTRACT(text STRING, pattern STRING [, group INT])",
    _STRING,
    _emit_regexp_extract,
    "What a group of a regular expression matched first, by default the whole match; NULL without a match.",
    nulls=_ALWAYS,
)
STRINGS.add(
    "REGEXP_REPLACE(text STRING, pattern STRING, new STRING)",
    _STRING,
    lambda call, each: (
        "NULL" if _is_broken(call) else f"regexp_replace({each[0]}, {each[1]}, {_as_it_is(each[2])})"
    ),
    "The string with every match of a regular expression replaced by a literal string.",
)
STRINGS.add(
    "REGEXP(text STRING, pattern STRING)",
    BooleanType(),
    _searched("({0} RLIKE {1})", "FALSE"),
    "Whether a regular expression matches a part of the string.",
)
STRINGS.add(
    "REGEXP_COUNT(text STRING, pattern STRING)",
    _INT,
    _searched("regexp_count({0}, {1})"),
    "How often a regular expression matches.",
    nulls=_ALWAYS,
)


def _emit_extract_all(call: Call, operands: list[str]) -> str:
    number = constant(call.operands[2]) if len(operands) > 2 else 1
    groups = _groups(string_constant(call, 1) or "")
    if _is_broken(call) or (isinstance(number, int) and groups is not None and not 0 <= number <= groups):
        return "NULL"
    found = f"regexp_extract_all({', '.join(operands)})"
    condition = _is_group(operands[-1], number, groups)
    return f"IF(TRUE{condition}, {found}, NULL)" if condition else found


STRINGS.add(
    "REGEXP_EXTRACT_ALL(text STRING, pattern STRING [, group INT])",
    ArrayType(_STRING),
    _emit_extract_all,
    "What a group, by default the first, matched each time.",
    nulls=_ALWAYS,
)
STRINGS.add(
    "REGEXP_INSTR(text STRING, pattern STRING)",
    _INT,
    _searched("regexp_instr({0}, {1})"),
    "Where a regular expression matches first, from 1.",
    nulls=_ALWAYS,
)
STRINGS.add(
    "REGEXP_SUBSTR(text STRING, pattern STRING)",
    _STRING,
    _searched("IF({0} RLIKE {1}, regexp_extract({0}, {1}, 0), NULL)"),
    "The first match of a regular expression.",
    nulls=_ALWAYS,
)

# --- what a string looks like ---------------------------------------------------------------------

for _name, _pattern, _what in (
    ("IS_ALPHA", r"^\\p{{L}}+$", "letters"),
    ("IS_DIGIT", r"^\\p{{Nd}}+$", "digits"),
    (
        "IS_DECIMAL",
        r"^\\s*[+-]?(NaN|Infinity|(\\d+(\\.\\d*)?|\\.\\d+)([eE][+-]?\\d+)?[fFdD]?)\\s*$",
        "a number",
    ),
):
    STRINGS.add(
        f"{_name}(text NUMBER OR STRING)",
        BooleanType(),
        f"coalesce(CAST({{0}} AS string) RLIKE '{_pattern}', false)",
        f"Whether the string is {_what}.",
        nulls=Nulls.NEVER,
    )

# --- addresses and bytes --------------------------------------------------------------------------


def _emit_address(_: Call, operands: list[str]) -> str:
    # The last part of a short form is the last byte: 127.1 is 127.0.0.1.
    parts = r"transform(split(text, '\\.'), part -> CAST(part AS bigint))"
    number = (
        "parts[size(parts) - 1] + shiftleft(IF(size(parts) > 1, parts[0], 0L), 24) + "
        "shiftleft(IF(size(parts) > 2, parts[1], 0L), 16) + shiftleft(IF(size(parts) > 3, parts[2], 0L), 8)"
    )
    made = let("parts", parts, f"IF(exists(parts, part -> part > 255), NULL, {number})")
    is_address = r"text RLIKE '^[0-9]{1,9}(\\.[0-9]{1,9}){0,3}$'"
    return let("text", operands[0], f"IF({is_address}, {made}, NULL)")


STRINGS.add(
    "INET_ATON(address STRING)",
    DataTypes.BIGINT(),
    _emit_address,
    "The number of an IPv4 address, also of a short one such as 127.1; NULL if it is not an address.",
    nulls=_ALWAYS,
)
STRINGS.add(
    "INET_NTOA(number INTEGER)",
    _STRING,
    "CASE WHEN {0} BETWEEN 0 AND 4294967295 THEN concat_ws('.', shiftright({0}, 24), shiftright({0}, 16) & 255, "
    "shiftright({0}, 8) & 255, {0} & 255) END",
    "The IPv4 address of a number; NULL if the number is out of range.",
    nulls=_ALWAYS,
)
STRINGS.add(
    "IS_VALID_UTF8(bytes BYTES)",
    BooleanType(),
    "is_valid_utf8(CAST({0} AS string))",
    "Whether bytes are a string in UTF-8.",
)
STRINGS.add(
    "MAKE_VALID_UTF8(bytes BYTES)",
    _STRING,
    "make_valid_utf8(CAST({0} AS string))",
    "Bytes as a string in UTF-8, with U+FFFD in place of invalid bytes.",
)

# --- hashes ---------------------------------------------------------------------------------------

STRINGS.add("MD5(text STRING)", DataTypes.CHAR(32), "md5({0})", "The MD5 hash in hexadecimal digits.")
STRINGS.add("SHA1(text STRING)", DataTypes.CHAR(40), "sha1({0})", "The SHA-1 hash in hexadecimal digits.")
for _bits in (224, 256, 384, 512):
    STRINGS.add(
        f"SHA{_bits}(text STRING)",
        DataTypes.CHAR(_bits // 4),
        f"sha2({{0}}, {_bits})",
        f"The SHA-{_bits} hash in hexadecimal digits.",
    )


def _emit_sha2(call: Call, operands: list[str]) -> str:
    bits = constant(call.operands[1])
    if isinstance(bits, int) and bits not in (224, 256, 384, 512):
        raise WrongArguments(f"the hash length of SHA2 must be 224, 256, 384 or 512 bits, not {bits}")
    return f"sha2({operands[0]}, {operands[1]})"


STRINGS.add(
    "SHA2(text STRING, bits INT)",
    DataTypes.VARCHAR(128),
    _emit_sha2,
    "A SHA-2 hash in hexadecimal digits.",
)
