"""Decoding of request bodies."""

import pytest

from lamina.errors import BadRequest, UnsupportedMediaType
from lamina.server.codec.body import parse
from lamina.server.codec.yaml import YamlError, load_yaml
from lamina.server.kinds.kind import Findings


def test_a_missing_content_type_means_json() -> None:
    assert parse(b'{"a":1}', "", Findings()) == {"a": 1}


def test_yaml_is_accepted_and_json_is_yaml() -> None:
    assert parse(b"a: {b: 1}\n", "application/yaml", Findings()) == {"a": {"b": 1}}
    assert parse(b'{"a": {"b": 1}}', "application/yaml", Findings()) == {"a": {"b": 1}}


def test_other_formats_are_refused() -> None:
    with pytest.raises(UnsupportedMediaType, match=r"application/vnd\.kubernetes\.protobuf"):
        parse(b"x", "text/plain", Findings())


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'"x"', b"1", b"{'a':1}", b"\xff\xfe"])
def test_what_is_no_object_is_a_bad_request(data: bytes) -> None:
    with pytest.raises(BadRequest):
        parse(data, "application/json", Findings())


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (b'{"data":{"a":"1","a":"2"},"l":[{"x":1,"x":2}],"data2":1}', "application/json"),
        (b'{"data": {"a": "1", "a": "2"}, "l": [{"x": 1, "x": 2}], "data2": 1}', "application/json"),
    ],
)
def test_fields_that_are_said_twice_are_reported_by_their_path(data: bytes, content_type: str) -> None:
    findings = Findings()

    parsed = parse(data, content_type, findings)

    assert findings.sentences == ['duplicate field "data.a"', 'duplicate field "l[0].x"']
    assert parsed["data"] == {"a": "2"}


@pytest.mark.parametrize(
    "data",
    [b'{"data": {"a": "1", "a": "2"}}', b"data: {a: '1', a: '2'}", b"data: {a: '1', a: '2'}\n---\nb: 1\n"],
)
def test_keys_that_are_said_twice_in_yaml_are_reported_by_their_line(data: bytes) -> None:
    findings = Findings()

    parsed = parse(data, "application/yaml", findings)

    assert findings.sentences == ['yaml: unmarshal errors:\n  line 1: key "a" already set in map']
    assert findings.warnings == ['line 1: key "a" already set in map']
    assert parsed == {"data": {"a": "2"}}


def test_null_is_an_object_with_nothing_in_it() -> None:
    assert parse(b"null", "application/json", Findings()) == {}


def test_half_a_pair_of_surrogates_is_replaced() -> None:
    assert parse(b'{"s": "a\\ud800b"}', "application/json", Findings()) == {"s": "a\ufffdb"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True), ("On", True), ("y", True), ("no", False), ("OFF", False), ("n", False), ("true", True),
        ("010", 8), ("0o10", 8), ("0b11", 3), ("0x1F", 31), ("1_000", 1000), ("1e3", 1000), ("-1", -1), ("1.5", 1.5),
        ("2001-01-01", "2001-01-01"), ("1:30", "1:30"), ("~", None), ("null", None), ("''", ""), ("'010'", "010"),
        ("1.0.0", "1.0.0"), ("1Gi", "1Gi"), ("<<", "<<"), ("-", "-"), ("0", 0), ("18446744073709551615", 2**64 - 1),
    ],
)  # fmt: skip
def test_scalars_are_read_as_kubectl_reads_them(text: str, value: object) -> None:
    quoted = f'"{text}"' if text == "-" else text
    read = load_yaml(f"k: {quoted}")["k"]

    assert read == value
    assert type(read) is type(value)


def test_keys_become_strings() -> None:
    assert load_yaml("y: 1\n2: b\nnull: c\n") == {"true": 1, "2": "b", "null": "c"}


def test_merge_keys_work() -> None:
    assert load_yaml("a: &x {b: 1}\nc: {<<: *x, d: 2}\n")["c"] == {"b": 1, "d": 2}


@pytest.mark.parametrize("text", ["a: .inf", "a: [", "a: {b", "a: !!python/object:os.system x", "a: b: c"])
def test_what_json_cannot_hold_is_an_error(text: str) -> None:
    with pytest.raises(YamlError):
        load_yaml(text)
