"""Go's messages for JSON errors."""

import pytest

from lamina.server.decode_errors import converter_error, json_syntax_error, summary


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ('{"a": 1', "unexpected end of JSON input"),
        ('"a', "unexpected end of JSON input"),
        ("{bad", "invalid character 'b' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ('{"a": 1} t', "invalid character 't' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ("notjson", "invalid character 'o' in literal null (expecting 'u')"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("-x", "invalid character 'x' in numeric literal"),
        ('"\\q"', "invalid character 'q' in string escape code"),
        ('"\\u12x4"', "invalid character 'x' in \\u hexadecimal character escape"),
        ('"\x01"', "invalid character '\\x01' in string literal"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ('{"a": [1, -2.5e+3, true, null, "\\u00e9"]}', ""),
    ],
)
def test_a_text_is_refused_in_the_words_of_go(text: str, said: str) -> None:
    assert json_syntax_error(text.encode()) == said


def test_a_byte_that_is_no_text_is_named_by_its_number() -> None:
    assert json_syntax_error(b"\x9e") == "invalid character '\\u009e' looking for beginning of value"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", "<empty>"),
        (b"{}", "{}"),
        (b"[]", "5b5d"),
        (b"{" + b"x" * 40, "{" + "x" * 29 + " ..."),
        (b"x" * 31, "78" * 30 + " ..."),
    ],
)
def test_a_body_is_shown_by_its_beginning(data: bytes, shown: str) -> None:
    assert summary(data) == shown


@pytest.mark.parametrize(
    ("given", "wanted", "said"),
    [
        ("string", "map[string]string", "cannot restore map from string"),
        ("object", "[]v1.Container", "cannot restore slice from map"),
        ("string", "v1.ObjectMeta", "cannot restore struct from: string"),
        ("number", "string", "cannot convert int64 to string"),
        ("string", "int32", "unrecognized type: int32"),
    ],
)
def test_a_strategic_patch_is_refused_without_a_field(given: str, wanted: str, said: str) -> None:
    why = f"json: cannot unmarshal {given} into Go struct field X.a.b of type {wanted}"

    assert converter_error(why) == said
    assert converter_error("illegal base64 data at input byte 0") == "illegal base64 data at input byte 0"
