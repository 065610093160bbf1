"""JSON paths that find several values find what Flink finds."""

import pytest

from headrace.common.json_paths import JsonPath, JsonPathError, found_as_document

_LIST = '{"a":[1,2,3]}'
_OBJECTS = '{"a":[{"b":1,"k":"x"},{"b":5,"k":"Yy","c":null},{"k":"z"}]}'


@pytest.mark.parametrize(
    ("document", "path", "found"),
    [
        # What Flink 2.3 answers to JSON_QUERY.
        ('{"a":{"b":1},"c":{"b":2}}', "$..b", "[1,2]"),
        (_LIST, "$.a[0,1]", "[1,2]"),
        (_LIST, "$.a[0:2]", "[1,2]"),
        (_LIST, "$.a[?(@>1)]", "[2,3]"),
        ('{"a":[{"b":1},{"b":2}]}', "$.a[?(@.b==2)]", '[{"b":2}]'),
        ('{"a":1,"b":[2]}', "$.*", "[1,[2]]"),
        (_LIST, "$.a.length()", "3"),
    ],
)
def test_a_path_finds_what_flink_finds(document, path, found):
    assert found_as_document(JsonPath(path), document) == found


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("@.b > 1 && @.b < 9", ["Yy"]),
        ("@.b == 1 || @.k == 'z'", ["x", "z"]),
        ("!@.b", ["z"]),
        ("@.c == null", ["Yy"]),
        ("@.c", ["Yy"]),
        ("@.k =~ /y+/i", ["Yy"]),
        ("@.k in ['x', 'z']", ["x", "z"]),
        ("(@.b == 1 || @.b == 5) && @.k != 'x'", ["Yy"]),
        ("@.b > 'a'", []),
        ("@.b < $.a[1].b", ["x"]),
    ],
)
def test_conditions_choose_elements(condition, found):
    given = {"a": [{"b": 1, "k": "x"}, {"b": 5, "k": "Yy", "c": None}, {"k": "z"}]}
    assert JsonPath(f"$.a[?({condition})].k").find(given) == found


@pytest.mark.parametrize(
    ("document", "path", "found"),
    [
        (_LIST, "$.a[-1]", "3"),
        (_LIST, "$.a[-2:]", "[2,3]"),
        (_LIST, "$.a[5,6]", "[]"),
        (_LIST, "$..zz", "[]"),
        (_LIST, "$.zz[0:1]", ""),
        ("no json", "$..a", ""),
        (None, "$..a", None),
        ('{"a":{"x y":"😀"}}', "$..['x y']", '["😀"]'),
    ],
)
def test_a_missing_value_is_not_json_unless_the_path_finds_several_values(document, path, found):
    assert found_as_document(JsonPath(path), document) == found


@pytest.mark.parametrize("path", ["a", "$.", "$.a[", "$.a[?(@.b ==)]", "$.a[?(@.b == 1]", "$.a.sum()", "$x"])
def test_a_wrong_path_is_refused(path):
    with pytest.raises(JsonPathError):
        JsonPath(path)
