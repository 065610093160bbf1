"""Functions of text and bytes, as methods of an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.table._calls import Calls, call_property

if TYPE_CHECKING:
    from headrace.table.expression import Expression

__all__ = ["TextFunctions"]


class TextFunctions(Calls):
    """Functions of text and bytes."""

    hex = call_property("HEX", "The number or text in hexadecimal, as text.")

    unhex = call_property("UNHEX", "The bytes that hexadecimal text stands for.")

    char_length = call_property("CHAR_LENGTH", "The number of characters.")

    upper_case = call_property("UPPER", "The text in upper case.")

    lower_case = call_property("LOWER", "The text in lower case.")

    init_cap = call_property("INITCAP", "The text with the first letter of each word in upper case.")

    from_base64 = call_property("FROM_BASE64", "The text that base 64 stands for.")

    to_base64 = call_property("TO_BASE64", "The text in base 64.")

    ascii = call_property("ASCII", "The code of the first character.")

    chr = call_property("CHR", "The character with this code.")

    reverse = call_property("REVERSE", "The text from its end to its start.")

    md5 = call_property("MD5", "The MD5 hash, in hexadecimal.")

    sha1 = call_property("SHA1", "The SHA-1 hash, in hexadecimal.")

    sha224 = call_property("SHA224", "The SHA-224 hash, in hexadecimal.")

    sha256 = call_property("SHA256", "The SHA-256 hash, in hexadecimal.")

    sha384 = call_property("SHA384", "The SHA-384 hash, in hexadecimal.")

    sha512 = call_property("SHA512", "The SHA-512 hash, in hexadecimal.")

    def concat(self, other: Any) -> Expression[Any]:
        """The text with another one appended."""
        return self._call("CONCAT", other)

    def starts_with(self, start_expr: Any) -> Expression[Any]:
        """Whether the text starts so."""
        return self._call("STARTSWITH", start_expr)

    def ends_with(self, end_expr: Any) -> Expression[Any]:
        """Whether the text ends so."""
        return self._call("ENDSWITH", end_expr)

    def substring(self, begin_index: Any, length: Any = None) -> Expression[Any]:
        """Part of the text, from a position that counts from 1."""
        return self._call("SUBSTRING", begin_index, length)

    def substr(self, begin_index: Any, length: Any = None) -> Expression[Any]:
        """Part of the text, from a position that counts from 1."""
        return self._call("SUBSTR", begin_index, length)

    def replace(self, search: Any = None, replacement: Any = None) -> Expression[Any]:
        """The text with every occurrence of a part replaced."""
        return self._call("REPLACE", search, replacement)

    def translate(self, from_str: Any, to_str: Any) -> Expression[Any]:
        """The text with characters replaced one by one."""
        return self._call("TRANSLATE", from_str, to_str)

    def lpad(self, length: Any, pad: Any) -> Expression[Any]:
        """The text, filled up on the left."""
        return self._call("LPAD", length, pad)

    def rpad(self, length: Any, pad: Any) -> Expression[Any]:
        """The text, filled up on the right."""
        return self._call("RPAD", length, pad)

    def regexp(self, regex: Any) -> Expression[Any]:
        """Whether some part of the text fits the expression."""
        return self._call("REGEXP", regex)

    def regexp_count(self, regex: Any) -> Expression[Any]:
        """How often the expression fits."""
        return self._call("REGEXP_COUNT", regex)

    def regexp_replace(self, regex: Any, replacement: Any) -> Expression[Any]:
        """The text with what fits replaced."""
        return self._call("REGEXP_REPLACE", regex, replacement)

    def regexp_extract(self, regex: Any, extract_index: Any = None) -> Expression[Any]:
        """What fits, or a group of it; NULL if nothing does."""
        return self._call("REGEXP_EXTRACT", regex, extract_index)

    def regexp_extract_all(self, regex: Any, extract_index: Any = None) -> Expression[Any]:
        """All that fits, as an array."""
        return self._call("REGEXP_EXTRACT_ALL", regex, extract_index)

    def regexp_instr(self, regex: Any) -> Expression[Any]:
        """Where the expression first fits, from 1; 0 if nowhere."""
        return self._call("REGEXP_INSTR", regex)

    def regexp_substr(self, regex: Any) -> Expression[Any]:
        """What first fits; NULL if nothing does."""
        return self._call("REGEXP_SUBSTR", regex)

    def decode(self, charset: Any) -> Expression[Any]:
        """The bytes as text."""
        return self._call("DECODE", charset)

    def encode(self, charset: Any) -> Expression[Any]:
        """The text as bytes."""
        return self._call("ENCODE", charset)

    def left(self, length: Any) -> Expression[Any]:
        """Return the leftmost characters of the string, as many as given."""
        return self._call("LEFT", length)

    def right(self, length: Any) -> Expression[Any]:
        """Return the rightmost characters of the string, as many as given."""
        return self._call("RIGHT", length)

    def instr(self, s: Any) -> Expression[Any]:
        """The position of the first occurrence of a text in this one, from 1; 0 if it does not occur."""
        return self._call("INSTR", s)

    def url_decode(self) -> Expression[Any]:
        """The text, decoded from URL encoding."""
        return self._call("URL_DECODE")

    def url_encode(self) -> Expression[Any]:
        """The text in a URL's encoding."""
        return self._call("URL_ENCODE")

    def inet_aton(self) -> Expression[Any]:
        """An IPv4 address as a number."""
        return self._call("INET_ATON")

    def inet_ntoa(self) -> Expression[Any]:
        """A number as an IPv4 address."""
        return self._call("INET_NTOA")

    def parse_url(self, part_to_extract: Any, key: Any = None) -> Expression[Any]:
        """A part of a URL."""
        return self._call("PARSE_URL", part_to_extract, key)

    def printf(self, *obj: Any) -> Expression[Any]:
        """Values written by this format."""
        return self._call("PRINTF", *obj)

    def ltrim(self, trim_str: Any = None) -> Expression[Any]:
        """The text without blanks, or other characters, at its start."""
        return self._call("LTRIM", trim_str)

    def rtrim(self, trim_str: Any = None) -> Expression[Any]:
        """The text without blanks, or other characters, at its end."""
        return self._call("RTRIM", trim_str)

    def btrim(self, trim_str: Any = None) -> Expression[Any]:
        """The text without blanks, or other characters, at both ends."""
        return self._call("BTRIM", trim_str)

    def repeat(self, n: Any) -> Expression[Any]:
        """The text, so many times."""
        return self._call("REPEAT", n)

    def split_index(self, separator: Any, index: Any) -> Expression[Any]:
        """A part of the text between separators, from 0; NULL if the text has fewer parts."""
        return self._call("SPLIT_INDEX", separator, index)

    def str_to_map(self, list_delimiter: Any = None, key_value_delimiter: Any = None) -> Expression[Any]:
        """The text as a map."""
        return self._call("STR_TO_MAP", list_delimiter, key_value_delimiter)

    def elt(self, expr: Any, *exprs: Any) -> Expression[Any]:
        """The text with this number, from 1."""
        return self._call("ELT", expr, *exprs)

    def split(self, delimiter: Any) -> Expression[Any]:
        """The parts of the text between delimiters, as an array."""
        return self._call("SPLIT", delimiter)

    def sha2(self, hash_length: Any) -> Expression[Any]:
        """The hash of the SHA-2 family with so many bits."""
        return self._call("SHA2", hash_length)

    def json_quote(self) -> Expression[Any]:
        """The text as a JSON string."""
        return self._call("JSON_QUOTE")

    def json_unquote(self) -> Expression[Any]:
        """The value of a JSON string, without quotes and escapes."""
        return self._call("JSON_UNQUOTE")

    def locate(self, s: Any, pos: Any = None) -> Expression[Any]:
        """The position of the first occurrence of this text in another one, from 1; 0 if it does not occur."""
        return self._call("LOCATE", s, *([] if pos is None else [pos]))
