"""The built-in kinds, and their definitions."""

from __future__ import annotations

import pytest

from lamina.server.kinds.builtin.catalogue import (
    CATALOGUE,
    DELETE_RETURNS_OBJECT,
    PACKAGES,
    Resource,
    group_rank,
    storage_hash,
)
from lamina.server.kinds.builtin.definitions import closure, definition, references
from lamina.server.kinds.builtin.tables import DATA, table


def find(api_version: str, plural: str) -> Resource:
    (found,) = (one for one in CATALOGUE if one.api_version == api_version and one.plural == plural)
    return found


def test_no_resource_is_listed_twice() -> None:
    assert len({(one.api_version, one.plural) for one in CATALOGUE}) == len(CATALOGUE)


def test_resources_of_a_group_version_stand_by_name() -> None:
    for api_version in {one.api_version for one in CATALOGUE}:
        plurals = [one.plural for one in CATALOGUE if one.api_version == api_version]
        assert plurals == sorted(plurals)


@pytest.mark.parametrize("resource", CATALOGUE, ids=lambda one: f"{one.plural}.{one.api_version}")
def test_every_kind_has_its_definition(resource: Resource) -> None:
    own = {"group": resource.group, "kind": resource.kind, "version": resource.version}

    assert own in definition(resource.definition)["x-kubernetes-group-version-kind"]
    if resource.stored:
        assert definition(f"{resource.definition}List")["required"] == ["items"]


@pytest.mark.parametrize("resource", CATALOGUE, ids=lambda one: f"{one.plural}.{one.api_version}")
def test_every_body_of_a_subresource_has_its_definition(resource: Resource) -> None:
    for sub in resource.subresources:
        assert definition(f"{PACKAGES[sub.group, sub.version]}.{sub.kind}")["type"] == "object"


@pytest.mark.parametrize(
    ("api_version", "plural", "says"),
    [
        ("v1", "configmaps", "qFsyl6wFWjQ="),
        ("apps/v1", "deployments", "8aSe+NMegvE="),
        ("autoscaling/v1", "horizontalpodautoscalers", "qwQve8ut294="),
        ("autoscaling/v2", "horizontalpodautoscalers", "qwQve8ut294="),
        ("v1", "events", "r2yiGXH7wu8="),
        ("events.k8s.io/v1", "events", "r2yiGXH7wu8="),
        ("apiextensions.k8s.io/v1", "customresourcedefinitions", "jfWCUB31mvA="),
        ("authorization.k8s.io/v1", "subjectaccessreviews", ""),
    ],
)
def test_the_mark_of_storage_is_that_of_a_real_server(api_version: str, plural: str, says: str) -> None:
    assert find(api_version, plural).storage_hash == says


def test_the_mark_of_a_custom_kind_is_that_of_a_real_server() -> None:
    assert storage_hash("ex.example.com", "v1", "Widget") == "ekXXaUVpFd8="


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("autoscaling/v1", "horizontalpodautoscalers"), ("autoscaling/v2", "horizontalpodautoscalers")),
        (("v1", "events"), ("events.k8s.io/v1", "events")),
    ],
)
def test_two_views_of_the_same_objects_share_a_bucket(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert find(*one).bucket == find(*other).bucket


def test_reviews_are_created_and_nothing_else() -> None:
    assert {one.verbs for one in CATALOGUE if not one.stored} == {("create",)}
    assert all(not one.list_kind for one in CATALOGUE if not one.stored)


def test_the_kinds_shown_when_deleted_are_served() -> None:
    assert len(DELETE_RETURNS_OBJECT) == 11
    assert {one.definition for one in CATALOGUE} >= DELETE_RETURNS_OBJECT


def test_groups_of_custom_resources_come_last() -> None:
    assert group_rank("") == 0
    assert group_rank("apps") < group_rank("flowcontrol.apiserver.k8s.io") < group_rank("example.com")


def test_every_reference_leads_to_a_definition() -> None:
    for path in DATA.glob("io.k8s.*.json.z"):
        for name, schema in table(path.name.removesuffix(".json.z")).items():
            for mentioned in references(schema):
                assert definition(mentioned), f"{name} refers to {mentioned}"


def test_a_closure_holds_what_is_needed_and_nothing_else() -> None:
    assert list(closure(["io.k8s.api.core.v1.ConfigMap"])) == [
        "io.k8s.api.core.v1.ConfigMap",
        "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    ]


@pytest.mark.parametrize("name", ["io.k8s.api.core.v1.Nope", "io.k8s.api.nope.v1.Pod", "Pod", ""])
def test_an_unknown_definition_is_a_lookup_error(name: str) -> None:
    with pytest.raises(LookupError):
        definition(name)


def test_definitions_say_what_only_a_server_says() -> None:
    """Defaults, enumerations and list semantics, and nothing that a validator would add."""
    port = definition("io.k8s.api.core.v1.ContainerPort")["properties"]
    assert port["protocol"]["default"] == "TCP"
    assert port["protocol"]["enum"] == ["SCTP", "TCP", "UDP"]
    assert port["protocol"]["description"].endswith('- `"UDP"` is the UDP protocol.')
    assert port["protocol"]["type"] == "string"
    assert port["containerPort"]["default"] == 0
    assert "default" not in port["hostPort"]

    config_map = definition("io.k8s.api.core.v1.ConfigMap")["properties"]
    assert config_map["kind"].keys() == {"description", "type"}
    assert config_map["metadata"]["default"] == {}
    assert config_map["metadata"]["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    ]

    ports = definition("io.k8s.api.core.v1.Container")["properties"]["ports"]
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["x-kubernetes-patch-merge-key"] == "containerPort"

    quantity = definition("io.k8s.apimachinery.pkg.api.resource.Quantity")
    assert quantity["oneOf"] == [{"type": "string"}, {"type": "number"}]
    assert quantity["description"].startswith("Quantity is a fixed-point representation of a number.")
