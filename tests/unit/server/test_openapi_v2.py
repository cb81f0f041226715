"""OpenAPI v2: one document, CRDs included."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from lamina.server.kinds.kind import Kind
from lamina.server.openapi.v2 import Swagger
from tests.unit.server.served import crd, custom, every_built_in


def widgets(schema: Any = None) -> list[Kind]:
    return custom(crd("ex.example.com", "Widget", {"v1": schema or {"type": "object"}}))


@pytest.fixture(scope="module")
def swagger() -> Swagger:
    return Swagger()


@pytest.fixture(scope="module")
def whole(swagger: Swagger) -> Any:
    return orjson.loads(swagger.document((*every_built_in(), *widgets())).body)


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()


def test_it_is_swagger(whole: Any) -> None:
    assert whole["swagger"] == "2.0"
    assert list(whole["paths"]) == sorted(whole["paths"])


def test_every_reference_leads_somewhere(whole: Any) -> None:
    known = {f"#/{part}/{name}" for part in ("definitions", "parameters") for name in whole[part]}

    assert _references(whole) <= known


def test_nothing_is_said_that_v2_does_not_know(whole: Any) -> None:
    text = orjson.dumps(whole["definitions"]).decode()

    assert '"allOf":[' not in text
    assert "#/components/" not in text


def test_custom_kinds_are_in_it(whole: Any) -> None:
    assert "com.example.ex.v1.Widget" in whole["definitions"]
    patch = whole["paths"]["/apis/ex.example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert patch["consumes"] == [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ]
    assert "fieldValidation" in [parameter.get("name") for parameter in patch["parameters"]]


def test_bodies_stand_among_the_parameters(whole: Any) -> None:
    create = whole["paths"]["/api/v1/namespaces/{namespace}/configmaps"]["post"]

    assert create["parameters"][0] == {
        "name": "body",
        "in": "body",
        "required": True,
        "schema": {"$ref": "#/definitions/io.k8s.api.core.v1.ConfigMap"},
    }


def test_a_crd_comes_and_goes(swagger: Swagger) -> None:
    builtin = every_built_in()
    without = swagger.document(tuple(builtin))
    names = orjson.loads(without.body)["definitions"]
    with_widget = swagger.document((*builtin, *widgets()))

    assert "com.example.ex.v1.Widget" not in names
    assert "com.example.ex.v1.Widget" in orjson.loads(with_widget.body)["definitions"]
    assert with_widget.digest != without.digest


def test_a_crd_that_did_not_change_keeps_the_mark(swagger: Swagger) -> None:
    one = swagger.document((*every_built_in(), *widgets()))

    assert swagger.document((*every_built_in(), *widgets())).etag == one.etag


def test_a_crd_takes_the_place_of_nothing(swagger: Swagger) -> None:
    impostor = custom(crd("apps", "Deployment", {"v1": {"type": "object", "description": "mine"}}))
    document = orjson.loads(swagger.document((*impostor, *every_built_in())).body)

    path = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    assert path["get"]["responses"]["200"]["schema"]["$ref"] == "#/definitions/io.k8s.api.apps.v1.Deployment"
