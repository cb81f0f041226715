"""/openapi/v2 in protobuf is equal to its JSON."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from lamina.server.openapi.protobuf import definition_bytes
from lamina.server.openapi.v2 import Swagger
from tests.unit.server.served import crd, custom, every_built_in


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Parse a message: number and value of each field, in order."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        tag = varint()
        match tag & 7:
            case 0:
                yield tag >> 3, varint()
            case 1:
                yield tag >> 3, struct.unpack_from("<d", message, place)[0]
                place += 8
            case 2:
                size = varint()
                yield tag >> 3, message[place : place + size]
                place += size
            case other:
                raise AssertionError(f"wire type {other}")


def one(message: bytes, *path: int) -> Any:
    """Return the value at a path of field numbers that occur once each."""
    found: Any = message
    for number in path:
        [found] = [value for at, value in fields(found) if at == number]
    return found


def named(message: bytes, number: int) -> dict[str, bytes]:
    """Return the entries of a map, which is encoded as pairs."""
    return {one(pair, 1).decode(): one(pair, 2) for at, pair in fields(message) if at == number}


@pytest.fixture(scope="module")
def swagger() -> Swagger:
    return Swagger()


@pytest.fixture(scope="module")
def both(swagger: Swagger) -> tuple[Any, bytes]:
    kinds = (*every_built_in(), *custom(crd("ex.example.com", "Widget", {"v1": {"type": "object"}})))
    return orjson.loads(swagger.document(kinds).body), swagger.protobuf(kinds).body


def test_both_forms_have_the_same_paths_and_definitions(both: tuple[Any, bytes]) -> None:
    document, message = both

    assert one(message, 1) == b"2.0"
    assert list(named(one(message, 8), 2)) == list(document["paths"])
    assert list(named(one(message, 9), 1)) == list(document["definitions"])
    assert list(named(one(message, 10), 1)) == list(document["parameters"])


def test_every_operation_has_its_name_and_its_parameters(both: tuple[Any, bytes]) -> None:
    document, message = both
    numbers = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
    items = named(one(message, 8), 2)

    for path, item in document["paths"].items():
        for method in numbers.keys() & item.keys():
            operation, said = one(items[path], numbers[method]), item[method]
            assert one(operation, 5).decode() == said["operationId"]
            assert len([at for at, _ in fields(operation) if at == 8]) == len(said.get("parameters", ()))
            assert list(named(one(operation, 9), 1)) == list(said["responses"])


def test_every_property_of_every_definition_is_there(both: tuple[Any, bytes]) -> None:
    document, message = both

    for name, schema in named(one(message, 9), 1).items():
        said = document["definitions"][name]
        properties = [value for at, value in fields(schema) if at == 25]
        assert (list(named(properties[0], 1)) if properties else []) == list(said.get("properties", {}))


def test_kubectl_finds_a_kind_by_the_extension_of_its_definition(both: tuple[Any, bytes]) -> None:
    extensions = named(named(one(both[1], 9), 1)["io.k8s.api.apps.v1.Deployment"], 31)

    assert orjson.loads(one(extensions["x-kubernetes-group-version-kind"], 2)) == [
        {"group": "apps", "kind": "Deployment", "version": "v1"}
    ]


def test_what_bounds_a_value_is_written_as_what_it_is() -> None:
    schema = {
        "type": ["integer", "null"],
        "minimum": -1.5,
        "exclusiveMinimum": True,
        "maxLength": 300,
        "default": {"a": [1, "ü"]},
        "enum": ["a", 2],
        "items": {"$ref": "#/definitions/x"},
        "additionalProperties": False,
        "oneOf": "nothing that v2 knows",
    }

    message = one(definition_bytes("n", schema), 1, 2)

    assert list(fields(one(message, 22))) == [(1, b"integer"), (1, b"null")]
    assert one(message, 9) == -1.5
    assert one(message, 10) == 1
    assert one(message, 11) == 300
    assert orjson.loads(one(message, 5, 2)) == {"a": [1, "ü"]}
    assert [orjson.loads(one(value, 2)) for at, value in fields(message) if at == 20] == ["a", 2]
    assert one(message, 23, 1, 1) == b"#/definitions/x"
    assert one(message, 21, 2) == 0
    assert {at for at, _ in fields(message)} == {5, 9, 10, 11, 20, 21, 22, 23}


def test_the_mark_of_one_form_is_not_the_mark_of_the_other(swagger: Swagger) -> None:
    kinds = tuple(every_built_in())

    assert swagger.document(kinds).etag != swagger.protobuf(kinds).etag
    assert swagger.protobuf(kinds).etag == swagger.protobuf(tuple(kinds)).etag
