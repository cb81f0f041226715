"""The lexer of markers: what it accepts, and what it refuses, is upstream's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.graph.language.markers import KEYS, FieldError, Marker, read_markers
from tests.bed.scenarios import check


@pytest.mark.parametrize(
    ("text", "markers"),
    [
        ("default=1", [("default", "1")]),
        ("default=", [("default", "")]),
        (' required=true\tdescription="two words"', [("required", "true"), ("description", "two words")]),
        ("default=a=b", [("default", "a=b")]),
        ('default="a=b"', [("default", "a=b")]),
        ("default=[1, 2] minItems=1", [("default", "[1, 2]"), ("minItems", "1")]),
        ('default={"a b": "c]"}', [("default", '{"a b": "c]"}')]),
        ('default={"a": "\\"true\\""}', [("default", '{"a": "\\"true\\""}')]),
        (r'pattern="^v\d+\.\d+$"', [("pattern", r"^v\d+\.\d+$")]),
        (r'default="a\\" minLength=1', [("default", "a\\"), ("minLength", "1")]),
        (r'description="a \"b\" \\ c"', [("description", r'a "b" \ c')]),
        ("default='a'", [("default", "'a'")]),
        ('default=x"y z"', [("default", 'x"y z"')]),
        ('default="a""b"', [("default", 'a""b')]),
        ('default=""', [("default", "")]),
        # White space before `=` is skipped, and does not end the key.
        ("de fault =1", [("default", "1")]),
        # Brackets are counted, not matched.
        ("default={]", [("default", "{]")]),
        ("default=1\u00a0required=true", [("default", "1"), ("required", "true")]),
        ("default=a\x1fb", [("default", "a\x1fb")]),
        (r"default=a\b", [("default", r"a\b")]),
    ],
)
def test_markers_are_read(text: str, markers: list[tuple[str, str]]) -> None:
    assert read_markers(text) == [Marker(*one) for one in markers]


@check("RG-7")
@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ('enum="a,b" | default="a"', 'invalid marker key "|default": unknown marker: |default'),
        ("optional", "marker key 'optional' without a value"),
        ('default = "x"', "marker key '\"x\"' without a value"),
        ("default=two words", "marker key 'words' without a value"),
        ("=1", "empty marker key"),
        ("", "marker key '' without a value"),
        ("default=1 ", "marker key '' without a value"),
        ("foo=1", 'invalid marker key "foo": unknown marker: foo'),
        ("required default=1", 'invalid marker key "requireddefault"'),
        ('default="a', "unclosed quote"),
        ('default="', "unclosed quote"),
        ('default="a\\"', "unclosed quote"),
        ("default=[1", "unclosed bracket/brace"),
        ("default=]", "unmatched closing bracket/brace"),
    ],
)
def test_markers_that_cannot_be_read_are_refused(text: str, fragment: str) -> None:
    with pytest.raises(FieldError) as refused:
        read_markers(text)
    assert fragment in str(refused.value)


QUOTABLE = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.lists(st.tuples(st.sampled_from(sorted(KEYS)), QUOTABLE), min_size=1, max_size=4))
def test_quoted_values_are_read_as_they_were(markers: list[tuple[str, str]]) -> None:
    stated = []
    for key, value in markers:
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        stated.append(f'{key}="{quoted}"')

    assert read_markers(" ".join(stated)) == [Marker(*one) for one in markers]


TOKENS = st.lists(st.sampled_from([*'"\\=[]{} \t|ab', "default", "enum"]), max_size=20).map("".join)


@given(TOKENS)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read_markers(text)
    except FieldError as refused:
        assert str(refused)
    else:
        assert found
        assert all(marker.key in KEYS for marker in found)
