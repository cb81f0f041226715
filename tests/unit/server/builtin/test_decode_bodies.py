"""Bodies decoded as by Go: dropped and added fields, and error messages."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.server.kinds.builtin.decode import decode, decode_metadata, zero
from lamina.server.kinds.builtin.decode_scalars import TypeMismatch
from lamina.server.kinds.kind import Findings


def read(key: str, body: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    findings = Findings()
    return decode(key, body, findings), findings.sentences


def refusal(key: str, body: dict[str, Any]) -> str:
    with pytest.raises(TypeMismatch) as refused:
        decode(key, body, Findings())
    return str(refused.value)


def deployment(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def with_container(**container: Any) -> dict[str, Any]:
    return deployment(template={"spec": {"containers": [{"name": "c", **container}]}})


def test_unknown_fields_are_dropped_and_reported_by_their_paths() -> None:
    made, findings = read(
        "apps/v1.Deployment",
        {
            "metadata": {"name": "a", "bogus": 1},
            "Spec": {},
            "spec": {"template": {"spec": {"containers": [{"name": "a"}, {"name": "b", "foo": {"x": 1}}]}}},
        },
    )

    assert findings == [
        'unknown field "metadata.bogus"',
        'unknown field "Spec"',
        'unknown field "spec.template.spec.containers[1].foo"',
    ]
    assert made["metadata"] == {"name": "a"}
    assert "Spec" not in made
    assert "foo" not in made["spec"]["template"]["spec"]["containers"][1]


def test_nothing_inside_a_map_of_strings_is_unknown() -> None:
    made, findings = read("core/v1.ConfigMap", {"data": {"anything": "goes"}})

    assert findings == []
    assert made["data"] == {"anything": "goes"}


@pytest.mark.parametrize(
    ("key", "body", "expected"),
    [
        ("core/v1.ConfigMap", {"data": {}, "immutable": None}, {"metadata": {}}),
        ("core/v1.ConfigMap", {"immutable": False}, {"metadata": {}, "immutable": False}),
        ("core/v1.ConfigMap", {"data": {"a": None}}, {"metadata": {}, "data": {"a": ""}}),
        ("rbac/v1.Role", {}, {"metadata": {}, "rules": None}),
        ("rbac/v1.Role", {"rules": []}, {"metadata": {}, "rules": None}),
        ("rbac/v1.Role", {"rules": [None]}, {"metadata": {}, "rules": [{"verbs": None}]}),
        ("core/v1.Namespace", {}, {"metadata": {}, "spec": {}, "status": {}}),
        ("core/v1.Namespace", {"spec": None}, {"metadata": {}, "spec": {}, "status": {}}),
        ("core/v1.Service", {"status": {}}, {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}),
        ("core/v1.ServicePort", {"port": 1, "nodePort": 0}, {"port": 1, "targetPort": 0}),
        ("core/v1.Container", {"name": "c", "tty": False, "env": []}, {"name": "c", "resources": {}}),
        ("core/v1.ResourceFieldSelector", {"resource": "r"}, {"resource": "r", "divisor": "0"}),
        ("apps/v1.ReplicaSetStatus", {}, {"replicas": 0}),
        ("apps/v1.DeploymentStrategy", {"type": "", "rollingUpdate": {}}, {"rollingUpdate": {}}),
        ("meta/v1.ObjectMeta", {"creationTimestamp": None, "labels": {}, "generation": 0}, {}),
        ("apps/v1.ControllerRevision", {"revision": 1}, {"metadata": {}, "data": None, "revision": 1}),
        ("policy/v1.Eviction", {}, {"metadata": {}}),
    ],
)
def test_zeros_are_left_out_or_written_as_the_struct_says(key: str, body: Any, expected: Any) -> None:
    assert read(key, body)[0] == expected


def test_the_zero_of_a_struct_is_what_it_prints_when_nothing_is_set() -> None:
    assert zero("policy/v1.PodDisruptionBudgetStatus") == {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }
    assert zero("core/v1.Event") == {
        "metadata": {},
        "involvedObject": {},
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }


@pytest.mark.parametrize(
    ("key", "body", "message"),
    [
        (
            "core/v1.ConfigMap",
            {"data": {"a": 1}},
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            "core/v1.ConfigMap",
            {"data": []},
            "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
        ),
        (
            "core/v1.ConfigMap",
            {"metadata": {"labels": {"x": True}}},
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            "core/v1.ConfigMap",
            {"metadata": []},
            "json: cannot unmarshal array into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
        ),
        (
            "apps/v1.Deployment",
            deployment(replicas="3"),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "apps/v1.Deployment",
            deployment(replicas=1.5),
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "apps/v1.Deployment",
            deployment(replicas=3_000_000_000),
            "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "apps/v1.Deployment",
            deployment(strategy={"rollingUpdate": {"maxSurge": 1.5}}),
            "json: cannot unmarshal number 1.5 into Go struct field "
            "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
        (
            "apps/v1.Deployment",
            with_container(imagePullPolicy=3),
            "json: cannot unmarshal number into Go struct field "
            "Container.spec.template.spec.containers.imagePullPolicy of type v1.PullPolicy",
        ),
        (
            "apps/v1.Deployment",
            with_container(resources={"limits": []}),
            "json: cannot unmarshal array into Go struct field "
            "ResourceRequirements.spec.template.spec.containers.resources.limits of type v1.ResourceList",
        ),
        (
            "apps/v1.Deployment",
            deployment(template={"spec": {"volumes": [{"name": "v", "configMap": {"name": 1}}]}}),
            "json: cannot unmarshal number into Go struct field ConfigMapVolumeSource.spec.template.spec."
            "volumes.VolumeSource.configMap.LocalObjectReference.name of type string",
        ),
        ("core/v1.Secret", {"data": {"a": "!!"}}, "illegal base64 data at input byte 0"),
        (
            "core/v1.Secret",
            {"data": {"a": 1}},
            "json: cannot unmarshal number into Go struct field Secret.data of type []uint8",
        ),
        (
            "coordination/v1.Lease",
            {"spec": {"renewTime": 5}},
            "json: cannot unmarshal number into Go struct field LeaseSpec.spec.renewTime of type string",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_the_words_of_go(key: str, body: Any, message: str) -> None:
    assert refusal(key, body) == message


def test_a_quantity_that_is_none_is_refused_without_a_path() -> None:
    assert refusal("apps/v1.Deployment", with_container(resources={"limits": {"cpu": "x"}})) == (
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )


def test_an_int_or_string_keeps_its_type() -> None:
    made, _ = read("apps/v1.RollingUpdateDeployment", {"maxSurge": "25%", "maxUnavailable": 1})

    assert made == {"maxSurge": "25%", "maxUnavailable": 1}


def test_bytes_may_be_a_list_of_numbers() -> None:
    made, _ = read("core/v1.Secret", {"data": {"a": [97, 98], "b": None}})

    assert made["data"] == {"a": "YWI=", "b": ""}


def test_string_data_of_a_secret_is_folded_into_its_data() -> None:
    made, _ = read("core/v1.Secret", {"data": {"a": "YQ=="}, "stringData": {"a": "b", "c": "é"}})

    assert made["data"] == {"a": "Yg==", "c": "w6k="}
    assert "stringData" not in made


@pytest.mark.parametrize("said", ["serviceAccount", "serviceAccountName"])
def test_the_account_of_a_pod_is_said_under_both_names(said: str) -> None:
    made, _ = read("core/v1.PodSpec", {said: "builder", "containers": []})

    assert made["serviceAccount"] == made["serviceAccountName"] == "builder"


def test_a_raw_extension_is_kept_as_it_is() -> None:
    data: dict[str, Any] = {"spec": {"a": None, "b": [], "c": {"d": 0}}}
    made, findings = read("apps/v1.ControllerRevision", {"data": data, "revision": 1})

    assert made["data"] == {"spec": {"a": None, "b": [], "c": {"d": 0}}}
    assert findings == []


def test_schemas_inside_schemas_drop_what_they_do_not_know_without_a_word() -> None:
    made, findings = read(
        "apiextensions/v1.JSONSchemaProps",
        {
            "type": "object",
            "x-bogus": 1,
            "minimum": 1.0,
            "default": None,
            "items": {"type": "string", "bogus": 1},
            "additionalProperties": False,
        },
    )

    assert findings == ['unknown field "x-bogus"']
    assert made == {
        "type": "object",
        "minimum": 1,
        "items": {"type": "string"},
        "additionalProperties": False,
    }


def test_additional_properties_are_a_schema_or_a_boolean() -> None:
    assert refusal("apiextensions/v1.JSONSchemaProps", {"additionalProperties": "x"}) == (
        "boolean or JSON schema expected"
    )


def test_the_metadata_of_a_custom_resource_is_decoded_by_itself() -> None:
    findings = Findings()

    made = decode_metadata({"name": "a", "bogus": 1, "creationTimestamp": None}, findings)

    assert made == {"name": "a"}
    assert findings.sentences == ['unknown field "metadata.bogus"']
    with pytest.raises(TypeMismatch) as refused:
        decode_metadata({"labels": {"a": 1}}, Findings())
    assert str(refused.value) == (
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
    )


def test_options_are_decoded_like_anything_else() -> None:
    made, findings = read("meta/v1.DeleteOptions", {"gracePeriodSeconds": 0, "dryRun": [], "what": 1})

    assert made == {"gracePeriodSeconds": 0}
    assert findings == ['unknown field "what"']


def test_what_decoding_gives_decodes_to_itself() -> None:
    body = with_container(resources={"limits": {"cpu": 0.5}}, env=[{"name": "A"}])
    made, _ = read("apps/v1.Deployment", body)
    kept = {**made}

    again, findings = read("apps/v1.Deployment", made)

    assert again == kept
    assert findings == []
