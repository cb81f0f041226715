"""Creating objects: C10 to C16."""

import base64
import re

import pytest

from tests.bed.kubectl import Kubectl
from tests.bed.scenarios import check
from tests.bed.wire import Api
from tests.conformance.checks.objects import NAMESPACES, config_map


@check("C10")
def test_kubectl_creates_with_protobuf_bodies(kubectl: Kubectl) -> None:
    assert kubectl("create", "configmap", "p1", "--from-literal=a=b") == "configmap/p1 created\n"
    assert kubectl("create", "secret", "generic", "p2", "--from-literal=k=v") == "secret/p2 created\n"
    assert kubectl("create", "serviceaccount", "p3") == "serviceaccount/p3 created\n"

    assert kubectl("get", "cm", "p1", "-o", "jsonpath={.data.a}") == "b"
    secret = kubectl("get", "secret", "p2", "-o", "jsonpath={.data.k} {.type}")
    assert secret == f"{base64.b64encode(b'v').decode()} Opaque"


@check("C11")
def test_kind_may_be_left_out_for_built_in_kinds_only(api: Api, configmaps: str, widgets: str) -> None:
    built_in = api.post(configmaps, {"metadata": {"name": "bare"}}).json
    custom = api.post(widgets, {"metadata": {"name": "bare"}, "spec": {"size": 1}}).json

    assert (built_in["kind"], built_in["apiVersion"]) == ("ConfigMap", "v1")
    assert built_in["metadata"]["name"] == "bare"
    assert (custom["code"], custom["reason"]) == (400, "BadRequest")


@check("C12")
def test_no_content_type_means_json_and_yaml_is_read_and_text_refused(api: Api, configmaps: str) -> None:
    untyped = api.post(configmaps, config_map("untyped"), content=None)
    yaml = api.post(configmaps, "metadata:\n  name: written-in-yaml\n", content="application/yaml")
    text = api.post(configmaps, "x", content="text/plain").json

    assert untyped.code == 201
    assert yaml.code == 201
    assert (text["code"], text["reason"]) == (415, "UnsupportedMediaType")


@check("C13")
def test_the_server_owns_uid_time_and_version(api: Api, configmaps: str, namespace: str) -> None:
    claims = {"name": "meta", "uid": "zzz", "creationTimestamp": "2001-01-01T00:00:00Z"}
    made = api.post(configmaps, {"metadata": claims}).json["metadata"]
    versioned = api.post(configmaps, {"metadata": {"name": "other", "resourceVersion": "5"}})

    assert len(made["uid"]) == 36
    assert made["creationTimestamp"] > "2020"
    assert made["resourceVersion"].isdigit()
    assert made["namespace"] == namespace
    assert versioned.code in {400, 422, 500}


@check("C14")
def test_the_same_name_cannot_be_created_twice(api: Api, configmaps: str) -> None:
    api.post(configmaps, config_map("twice"))
    again = api.post(configmaps, config_map("twice")).json

    assert (again["code"], again["reason"]) == (409, "AlreadyExists")
    assert again["message"] == 'configmaps "twice" already exists'
    assert again["details"] == {"name": "twice", "kind": "configmaps"}


@check("C15")
@pytest.mark.parametrize(
    ("metadata", "field", "reason"),
    [
        ({"name": "A_b"},                           "metadata.name",   "FieldValueInvalid"),
        ({"name": "fine", "labels": {"x": "!!"}},   "metadata.labels", "FieldValueInvalid"),
        ({},                                        "metadata.name",   "FieldValueRequired"),
    ],
)  # fmt: skip
def test_bad_names_and_labels_are_invalid(
    api: Api, configmaps: str, metadata: dict[str, object], field: str, reason: str
) -> None:
    refused = api.post(configmaps, {"metadata": metadata}).json

    assert (refused["code"], refused["reason"]) == (422, "Invalid")
    assert refused["details"]["causes"][0]["field"] == field
    assert refused["details"]["causes"][0]["reason"] == reason


@check("C15")
def test_a_namespace_must_exist_to_write_and_match_the_path(api: Api, configmaps: str) -> None:
    nowhere = api.post(f"{NAMESPACES}/nowhere/configmaps", config_map("x")).json
    elsewhere = api.post(configmaps, {"metadata": {"name": "x", "namespace": "other"}}).json

    assert (nowhere["code"], nowhere["message"]) == (404, 'namespaces "nowhere" not found')
    assert (elsewhere["code"], elsewhere["reason"]) == (400, "BadRequest")
    assert api.get(f"{NAMESPACES}/nowhere/configmaps").code == 200


@check("C16")
def test_generate_name_makes_a_new_name_each_time(api: Api, configmaps: str) -> None:
    names = [
        api.post(configmaps, {"metadata": {"generateName": "gen-"}}).json["metadata"]["name"] for _ in "ab"
    ]

    assert all(re.fullmatch(r"gen-[a-z0-9]{5}", name) for name in names)
    assert names[0] != names[1]
